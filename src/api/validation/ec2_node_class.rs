//! CEL rules of EC2NodeClass.

use super::CelRule;

pub static TAGS_EMPTY: CelRule = CelRule::new(
    "self.all(key, key != '' && self[key] != '')",
    "tags to select by have neither empty keys nor empty values; `*` stands for any value",
);
pub static SELECTOR_TAGS: [&CelRule; 1] = [&TAGS_EMPTY];

pub static SUBNET_EMPTY: CelRule =
    CelRule::new("has(self.tags) || has(self.id)", "the term selects by nothing: give tags or id");
pub static SUBNET_ID_ALONE: CelRule = CelRule::new("!has(self.id) || !has(self.tags)", "id excludes tags in one term");
pub static SUBNET_TERM: [&CelRule; 2] = [&SUBNET_EMPTY, &SUBNET_ID_ALONE];

pub static SECURITY_GROUP_EMPTY: CelRule = CelRule::new(
    "has(self.tags) || has(self.id) || has(self.name)",
    "the term selects by nothing: give tags, id or name",
);
pub static SECURITY_GROUP_ID_ALONE: CelRule =
    CelRule::new("!has(self.id) || (!has(self.tags) && !has(self.name))", "id excludes tags and name in one term");
pub static SECURITY_GROUP_NAME_ALONE: CelRule =
    CelRule::new("!has(self.name) || has(self.id) || !has(self.tags)", "name excludes tags in one term");
pub static SECURITY_GROUP_TERM: [&CelRule; 3] =
    [&SECURITY_GROUP_EMPTY, &SECURITY_GROUP_ID_ALONE, &SECURITY_GROUP_NAME_ALONE];

pub static RESERVATION_EMPTY: CelRule = CelRule::new(
    "has(self.tags) || has(self.id) || has(self.instanceMatchCriteria)",
    "the term selects by nothing: give tags, id or instanceMatchCriteria",
);
pub static RESERVATION_ID_ALONE: CelRule = CelRule::new(
    "!has(self.id) || (!has(self.tags) && !has(self.ownerID) && !has(self.instanceMatchCriteria))",
    "id excludes every other field in one term",
);
pub static RESERVATION_TERM: [&CelRule; 2] = [&RESERVATION_EMPTY, &RESERVATION_ID_ALONE];

pub static AMI_EMPTY: CelRule = CelRule::new(
    "has(self.alias) || has(self.tags) || has(self.id) || has(self.name) || has(self.ssmParameter)",
    "the term selects by nothing: give alias, tags, id, name or ssmParameter",
);
pub static AMI_ID_ALONE: CelRule = CelRule::new(
    "!has(self.id) || (!has(self.alias) && !has(self.tags) && !has(self.name) && !has(self.owner))",
    "id excludes every other field in one term",
);
pub static AMI_ALIAS_ALONE: CelRule = CelRule::new(
    "!has(self.alias) || has(self.id) || (!has(self.tags) && !has(self.name) && !has(self.owner))",
    "alias excludes id, tags, name and owner in one term",
);
pub static AMI_TERM: [&CelRule; 3] = [&AMI_EMPTY, &AMI_ID_ALONE, &AMI_ALIAS_ALONE];
pub static AMI_ALIAS_ONLY_TERM: CelRule = CelRule::new(
    "self.size() == 1 || !self.exists(term, has(term.alias))",
    "a term with an alias must be the only term",
);
pub static AMI_TERMS: [&CelRule; 1] = [&AMI_ALIAS_ONLY_TERM];
pub static ALIAS_FAMILY: CelRule = CelRule::new(
    "!self.contains('@') || self.split('@')[0] in ['al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025']",
    "the family of an alias is al2, al2023, bottlerocket, windows2019, windows2022 or windows2025",
);
pub static ALIAS_WINDOWS: CelRule = CelRule::new(
    "!self.startsWith('windows') || !self.contains('@') || self.split('@')[1] == 'latest'",
    "aliases of Windows have no version but `latest`",
);
pub static ALIAS: [&CelRule; 2] = [&ALIAS_FAMILY, &ALIAS_WINDOWS];

pub static PLACEMENT_GROUP: CelRule = CelRule::new("has(self.name) != has(self.id)", "give exactly one of name and id");
pub static PLACEMENT_GROUP_SELECTOR: [&CelRule; 1] = [&PLACEMENT_GROUP];

pub static TAG_EMPTY: CelRule = CelRule::new("self.all(key, key != '')", "a tag has a key");
pub static TAG_CLUSTER: CelRule = CelRule::new(
    "self.all(key, key != 'eks:eks-cluster-name')",
    "the tag eks:eks-cluster-name is set by the controller",
);
pub static TAG_OWNER: CelRule = CelRule::new(
    "self.all(key, !key.startsWith('kubernetes.io/cluster'))",
    "tags that begin with kubernetes.io/cluster are set by the controller",
);
pub static TAG_NODE_POOL: CelRule = CelRule::new(
    "self.all(key, key != 'karpenter.sh/nodepool')",
    "the tag karpenter.sh/nodepool is set by the controller",
);
pub static TAG_NODE_CLAIM: CelRule = CelRule::new(
    "self.all(key, key != 'karpenter.sh/nodeclaim')",
    "the tag karpenter.sh/nodeclaim is set by the controller",
);
pub static TAG_NODE_CLASS: CelRule = CelRule::new(
    "self.all(key, key != 'karpenter.k8s.aws/ec2nodeclass')",
    "the tag karpenter.k8s.aws/ec2nodeclass is set by the controller",
);
pub static TAGS: [&CelRule; 6] =
    [&TAG_EMPTY, &TAG_CLUSTER, &TAG_OWNER, &TAG_NODE_POOL, &TAG_NODE_CLAIM, &TAG_NODE_CLASS];

pub static VOLUME_CONTENT: CelRule =
    CelRule::new("has(self.snapshotID) || has(self.volumeSize)", "a volume needs volumeSize or snapshotID");
pub static VOLUME_RATE: CelRule = CelRule::new(
    "!has(self.volumeInitializationRate) || has(self.snapshotID)",
    "volumeInitializationRate is for volumes made from a snapshot",
)
.at(".volumeInitializationRate");
pub static BLOCK_DEVICE: [&CelRule; 2] = [&VOLUME_CONTENT, &VOLUME_RATE];
pub static ONE_ROOT_VOLUME: CelRule = CelRule::new(
    "self.filter(mapping, has(mapping.rootVolume) && mapping.rootVolume).size() <= 1",
    "only one volume is the root volume",
);
pub static BLOCK_DEVICE_MAPPINGS: [&CelRule; 1] = [&ONE_ROOT_VOLUME];

pub static PRIMARY_INTERFACE: CelRule = CelRule::new(
    "self.size() == 0 || self.exists(one, one.networkCardIndex == 0 && one.deviceIndex == 0 \
     && one.interfaceType == 'interface')",
    "the list needs the primary interface: network card 0, device 0, of type interface",
);
pub static INTERFACE_TWICE: CelRule = CelRule::new(
    "self.all(one, self.filter(other, other.networkCardIndex == one.networkCardIndex \
     && other.deviceIndex == one.deviceIndex).size() == 1)",
    "two interfaces have the same network card and device",
);
pub static EFA_ONLY_TWICE: CelRule = CelRule::new(
    "self.all(one, self.filter(other, other.networkCardIndex == one.networkCardIndex \
     && other.interfaceType == 'efa-only').size() <= 1)",
    "a network card has at most one interface of type efa-only",
);
pub static NETWORK_INTERFACES: [&CelRule; 3] = [&PRIMARY_INTERFACE, &INTERFACE_TWICE, &EFA_ONLY_TWICE];

pub static TRACKING_EMPTY: CelRule = CelRule::new(
    "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
    "connectionTracking needs at least one timeout",
);
pub static CONNECTION_TRACKING: [&CelRule; 1] = [&TRACKING_EMPTY];
// Source: EC2, "Connection tracking timeouts".
pub static TCP_ESTABLISHED_TIMEOUT: CelRule =
    CelRule::new("self >= 60 && self <= 432000", "the timeout of TCP connections is from 60 to 432000 seconds");
pub static UDP_STREAM_TIMEOUT: CelRule =
    CelRule::new("self >= 60 && self <= 180", "the timeout of UDP streams is from 60 to 180 seconds");
pub static UDP_TIMEOUT: CelRule =
    CelRule::new("self >= 30 && self <= 60", "the timeout of UDP flows is from 30 to 60 seconds");

pub static ROLE_OR_PROFILE: CelRule =
    CelRule::new("has(self.role) != has(self.instanceProfile)", "give exactly one of role and instanceProfile");
pub static FAMILY_OF_ALIAS: CelRule = CelRule::new(
    "!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(term, \
     !has(term.alias) || term.alias.split('@')[0] == self.amiFamily.lowerAscii())",
    "amiFamily is another one than that of the alias",
)
.at(".amiFamily");
pub static FAMILY_WITHOUT_ALIAS: CelRule = CelRule::new(
    "has(self.amiFamily) || self.amiSelectorTerms.size() == 0 || self.amiSelectorTerms.exists(term, has(term.alias))",
    "amiFamily is needed when no term has an alias",
);
pub static EC2_NODE_CLASS_SPEC: [&CelRule; 3] = [&ROLE_OR_PROFILE, &FAMILY_OF_ALIAS, &FAMILY_WITHOUT_ALIAS];
