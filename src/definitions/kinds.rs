//! Which kinds there are, and what becomes of a document of each.

use serde_json::Value;

use super::suggest;
use crate::api::{image_lock, scenario, settings};

/// The kinds whose definitions are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    NodePool,
    EC2NodeClass,
    NodeOverlay,
    CapacityBuffer,
    /// Pod templates are read for the buffers that name one.
    PodTemplate,
    DisruptionBudget,
    Settings,
    Scenario,
    ImageLock,
}

impl Kind {
    pub const ALL: [Self; 9] = [
        Self::NodePool,
        Self::EC2NodeClass,
        Self::NodeOverlay,
        Self::CapacityBuffer,
        Self::PodTemplate,
        Self::DisruptionBudget,
        Self::Settings,
        Self::Scenario,
        Self::ImageLock,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::NodePool => "NodePool",
            Self::EC2NodeClass => "EC2NodeClass",
            Self::NodeOverlay => "NodeOverlay",
            Self::CapacityBuffer => "CapacityBuffer",
            Self::PodTemplate => "PodTemplate",
            Self::DisruptionBudget => "DisruptionBudget",
            Self::Settings => "Settings",
            Self::Scenario => "Scenario",
            Self::ImageLock => "ImageLock",
        }
    }

    pub fn api_version(self) -> &'static str {
        match self {
            Self::NodePool => "karpenter.sh/v1",
            Self::EC2NodeClass => "karpenter.k8s.aws/v1",
            Self::NodeOverlay => "karpenter.sh/v1alpha1",
            Self::CapacityBuffer => "autoscaling.x-k8s.io/v1beta1",
            Self::PodTemplate => "v1",
            Self::DisruptionBudget | Self::Settings | Self::Scenario | Self::ImageLock => "cutlist.dev/v1alpha1",
        }
    }

    /// The group in the apiVersion of the kind. It is empty for a kind of Kubernetes' core.
    pub fn group(self) -> &'static str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// Whether it is an object of the cluster, with a name, rather than a file for Cutlist alone.
    pub fn is_object(self) -> bool {
        !matches!(self, Self::Settings | Self::Scenario | Self::ImageLock)
    }

    /// Whether the object lives in a namespace: `default`, where it names none.
    pub fn is_namespaced(self) -> bool {
        matches!(self, Self::CapacityBuffer | Self::PodTemplate)
    }
}

/// The kind that files of this name hold.
pub fn of_file(name: &str) -> Option<Kind> {
    match name {
        settings::FILE_NAME => Some(Kind::Settings),
        scenario::FILE_NAME => Some(Kind::Scenario),
        image_lock::FILE_NAME => Some(Kind::ImageLock),
        _ => None,
    }
}

/// What to do with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// One of ours, in the version that is read.
    Read(Kind),
    /// A kind of another tool or of Kubernetes: not our business.
    Foreign,
    /// Karpenter's, in a version that Karpenter 1 no longer serves.
    Old(&'static OldKind),
    /// Karpenter's or ours by its group, but not read.
    Unread { note: &'static str },
    /// A kind that nobody serves, in one of our groups or nearly, with the kind that was probably meant.
    Unknown { meant: Option<Kind> },
    /// Neither `apiVersion` nor `kind`, or one of them and no `metadata`.
    NoObject,
    /// One of `apiVersion` and `kind` is not there, or is not text.
    Incomplete { missing: &'static str },
}

/// A kind of Karpenter before version 1, and what took its place.
#[derive(Debug, PartialEq, Eq)]
pub struct OldKind {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub now: &'static str,
    /// Fields that moved or went, as (JSON pointer, what to write now).
    pub moved: &'static [(&'static str, &'static str)],
    /// Fields at the top and under `spec`, to find slips in manifests that have to be rewritten anyway.
    pub fields: &'static [(&'static str, &'static [&'static str])],
}

const ROOT: &[&str] = &["apiVersion", "kind", "metadata", "spec", "status"];

/// Sources: Karpenter's migration guides from v1alpha to v1beta1, and from v1beta1 to v1.
pub static OLD_KINDS: [OldKind; 6] = [
    OldKind {
        api_version: "karpenter.sh/v1alpha5",
        kind: "Provisioner",
        now: "`kind: NodePool`, `apiVersion: karpenter.sh/v1`",
        moved: &[
            ("/spec/ttlSecondsAfterEmpty", "disruption.consolidationPolicy: WhenEmpty with consolidateAfter"),
            ("/ttlSecondsAfterEmpty", "disruption.consolidationPolicy: WhenEmpty with consolidateAfter"),
            ("/spec/ttlSecondsUntilExpired", "template.spec.expireAfter"),
            ("/spec/providerRef", "template.spec.nodeClassRef"),
            ("/spec/provider", "an EC2NodeClass and template.spec.nodeClassRef"),
            ("/provider", "an EC2NodeClass and template.spec.nodeClassRef"),
            ("/spec/consolidation", "disruption.consolidationPolicy"),
            ("/spec/limits/resources", "limits"),
        ],
        fields: &[
            ("", ROOT),
            (
                "/spec",
                &[
                    "annotations",
                    "consolidation",
                    "kubeletConfiguration",
                    "labels",
                    "limits",
                    "provider",
                    "providerRef",
                    "requirements",
                    "startupTaints",
                    "taints",
                    "ttlSecondsAfterEmpty",
                    "ttlSecondsUntilExpired",
                    "weight",
                ],
            ),
            ("/spec/limits", &["resources"]),
            ("/limits", &["resources"]),
        ],
    },
    OldKind {
        api_version: "karpenter.k8s.aws/v1alpha1",
        kind: "AWSNodeTemplate",
        now: "`kind: EC2NodeClass`, `apiVersion: karpenter.k8s.aws/v1`",
        moved: &[
            ("/spec/subnetSelector", "subnetSelectorTerms"),
            ("/spec/securityGroupSelector", "securityGroupSelectorTerms"),
            ("/spec/amiSelector", "amiSelectorTerms"),
            ("/spec/launchTemplate", "the fields of EC2NodeClass: launch templates are no longer read"),
        ],
        fields: &[
            ("", ROOT),
            (
                "/spec",
                &[
                    "amiFamily",
                    "amiSelector",
                    "apiVersion",
                    "blockDeviceMappings",
                    "context",
                    "detailedMonitoring",
                    "instanceProfile",
                    "kind",
                    "launchTemplate",
                    "metadataOptions",
                    "securityGroupSelector",
                    "subnetSelector",
                    "tags",
                    "userData",
                ],
            ),
        ],
    },
    OldKind {
        api_version: "karpenter.sh/v1beta1",
        kind: "NodePool",
        now: "`apiVersion: karpenter.sh/v1`",
        moved: &[
            ("/spec/template/spec/nodeClassRef/apiVersion", "nodeClassRef.group: karpenter.k8s.aws"),
            ("/spec/disruption/expireAfter", "template.spec.expireAfter"),
            ("/spec/template/spec/kubelet", "spec.kubelet of the EC2NodeClass"),
        ],
        fields: &[("", ROOT), ("/spec", &["disruption", "limits", "template", "weight"])],
    },
    OldKind {
        api_version: "karpenter.k8s.aws/v1beta1",
        kind: "EC2NodeClass",
        now: "`apiVersion: karpenter.k8s.aws/v1`",
        moved: &[("/spec/amiFamily", "amiSelectorTerms with an alias, such as `al2023@latest`")],
        fields: &[("", ROOT)],
    },
    OldKind {
        api_version: "karpenter.sh/v1beta1",
        kind: "NodeClaim",
        now: "nothing: controllers make NodeClaims",
        moved: &[],
        fields: &[],
    },
    OldKind {
        api_version: "karpenter.sh/v1alpha5",
        kind: "Machine",
        now: "nothing: controllers make NodeClaims",
        moved: &[],
        fields: &[],
    },
];

/// Kinds of our and Karpenter's groups that exist and are not read from definitions.
const UNREAD: [(&str, &str, &str); 4] = [
    ("karpenter.sh", "NodeClaim", "NodeClaims are made by controllers, not read from definitions"),
    (
        "autoscaling.x-k8s.io",
        "CapacityBuffer",
        "CapacityBuffer is read in the version autoscaling.x-k8s.io/v1beta1 only: no room is kept for this one",
    ),
    ("karpenter.kwok.sh", "KWOKNodeClass", "KWOKNodeClass is for tests of Karpenter, and is not read"),
    ("cutlist.dev", "NodePlan", "NodePlans are written by Cutlist, not read from definitions"),
];

const GROUPS: [&str; 3] = ["karpenter.sh", "karpenter.k8s.aws", "cutlist.dev"];

/// Decides by `apiVersion` and `kind`.
pub fn classify(value: &Value) -> Class {
    let text = |name| value.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let (api_version, kind) = match (text("apiVersion"), text("kind")) {
        (Some(api_version), Some(kind)) => (api_version, kind),
        (None, None) if value.get("apiVersion").is_none() && value.get("kind").is_none() => return Class::NoObject,
        // kOps gives its list of addons a kind and a name, and no version.
        (None, Some("Addons")) => return Class::NoObject,
        // Files of other tools have a kind of their own.
        (None, _) | (_, None) if value.get("metadata").is_none() && !is_partly_ours(value) => return Class::NoObject,
        (None, _) => return Class::Incomplete { missing: "apiVersion" },
        (_, None) => return Class::Incomplete { missing: "kind" },
    };
    if let Some(read) = Kind::ALL.into_iter().find(|read| read.name() == kind && read.api_version() == api_version) {
        return Class::Read(read);
    }
    if let Some(old) = OLD_KINDS.iter().find(|old| old.kind == kind && old.api_version == api_version) {
        return Class::Old(old);
    }
    // `karpenter.sh` is a group whose version was forgotten; `v1` is a version.
    let group = api_version
        .split_once('/')
        .map_or(if api_version.contains('.') { api_version } else { "" }, |(group, _)| group);
    if let Some((.., note)) = UNREAD.iter().find(|(of, name, _)| *of == group && *name == kind) {
        return Class::Unread { note };
    }
    if let Some(meant) = meant(group, kind) {
        return Class::Unknown { meant: Some(meant) };
    }
    if GROUPS.contains(&group) { Class::Unknown { meant: None } } else { Class::Foreign }
}

/// The kind of ours that is called like a kind of another project.
pub fn named_alike(kind: &str) -> Option<Kind> {
    let ours = Kind::ALL.into_iter().filter(|it| it.is_object() && !it.group().is_empty());
    ours.into_iter().find(|it| it.name().eq_ignore_ascii_case(kind))
}

/// Whether what is there of apiVersion and kind is ours: of one of our groups, or one of our kinds.
pub fn is_partly_ours(value: &Value) -> bool {
    let text = |name| value.get(name).and_then(Value::as_str).map(str::trim);
    let group = text("apiVersion").and_then(|text| text.split('/').next());
    group.is_some_and(|group| GROUPS.contains(&group)) || text("kind").and_then(named_alike).is_some()
}

/// The kind that was probably meant by a kind of this group, where it is none that anybody serves. Whoever means
/// another kind has a group of their own, which is not like ours. `NodePool` is a kind of other projects, too.
fn meant(group: &str, kind: &str) -> Option<Kind> {
    let objects = || Kind::ALL.into_iter().filter(|it| it.api_version().contains('/'));
    if GROUPS.contains(&group) {
        return nearest_kind(kind, objects());
    }
    let is_like = |ours: &str| group.eq_ignore_ascii_case(ours) || suggest::is_like(group, ours);
    // `karpenter.k8s.gcp` as a whole is like a group of ours, and is the group of another project. There only a slip in
    // the kind tells.
    let is_near = |it: &Kind| group == it.group() || suggest::nearest(group, std::iter::once(it.group())).is_some();
    let is_slip = |it: &Kind| it.name() == kind || suggest::is_slip(kind, it.name());
    let near = nearest_kind(kind, objects().filter(|it| is_near(it) || (is_like(it.group()) && is_slip(it))));
    // Groups without a dot, and those of k8s.io, are Kubernetes' own, and it has no such kinds.
    let is_kubernetes_own = !group.contains('.') || group.ends_with(".k8s.io");
    let is_alike = is_kubernetes_own || ["karpenter", "cutlist"].iter().any(|word| group.to_lowercase().contains(word));
    near.or_else(|| objects().filter(|it| it.is_object() && is_alike).find(|it| it.name().eq_ignore_ascii_case(kind)))
}

/// The one of these kinds with this name, or with the nearest one.
fn nearest_kind(text: &str, mut kinds: impl Iterator<Item = Kind> + Clone) -> Option<Kind> {
    let nearest = suggest::nearest(text, kinds.clone().map(Kind::name));
    kinds.clone().find(|kind| kind.name() == text).or_else(|| kinds.find(|kind| Some(kind.name()) == nearest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(api_version: &str, kind: &str) -> Class {
        classify(&json!({ "apiVersion": api_version, "kind": kind }))
    }

    #[test]
    fn what_is_nearly_ours_is_a_mistake() {
        for (api_version, kind, meant) in [
            ("karpenter.sh/v1", "Nodepool", Some(Kind::NodePool)),
            ("karpenter.sh/v2", "NodePool", Some(Kind::NodePool)),
            ("karpenter.sh", "NodePool", Some(Kind::NodePool)),
            ("karpenter/v1", "NodePool", Some(Kind::NodePool)),
            ("Karpenter.sh/v1", "NodePool", Some(Kind::NodePool)),
            ("karpentr.sh/v1", "NodePoll", Some(Kind::NodePool)),
            ("v1", "NodePool", Some(Kind::NodePool)),
            ("apps/v1", "NodePool", Some(Kind::NodePool)),
            ("policy/v1", "disruptionBudget", Some(Kind::DisruptionBudget)),
            ("karpenter.sh/v1", "EC2NodeClass", Some(Kind::EC2NodeClass)),
            ("karpenter.aws/v1", "EC2NodeClass", Some(Kind::EC2NodeClass)),
            ("karpenter.k8s.aws/v1", "Ec2NodeClas", Some(Kind::EC2NodeClass)),
            ("cutlist.dev/v1", "DisruptionBudget", Some(Kind::DisruptionBudget)),
            ("cutlist.io/v1alpha1", "DisruptionBudgets", Some(Kind::DisruptionBudget)),
            ("autoscaling.x-k8s.io/v1beta1", "CapacityBufer", Some(Kind::CapacityBuffer)),
            ("autoscaling.k8s.io/v1beta1", "CapacityBuffer", Some(Kind::CapacityBuffer)),
            ("karpenter.sh/v1", "NodeClaims", None),
            ("karpenter.k8s.aws/v1", "Deployment", None),
        ] {
            assert_eq!(class(api_version, kind), Class::Unknown { meant }, "{api_version} {kind}");
        }
    }

    #[test]
    fn kinds_of_others_are_theirs() {
        for (api_version, kind) in [
            ("hypershift.openshift.io/v1beta1", "NodePool"),
            ("apps.openyurt.io/v1beta1", "NodePool"),
            ("container.gcp.upbound.io/v1beta1", "NodePool"),
            ("eks.amazonaws.com/v1", "NodeClass"),
            ("karpenter.azure.com/v1beta1", "AKSNodeClass"),
            ("karpenter.k8s.gcp/v1alpha1", "GCENodeClass"),
            ("karpenter.k8s.oracle/v1alpha1", "OCINodeClass"),
            ("policy/v1", "PodDisruptionBudget"),
            ("autoscaling.x-k8s.io/v1", "ProvisioningRequest"),
            ("apps/v1", "Deployment"),
            ("v1", "Pod"),
            ("v1", "Node"),
            ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
            ("scheduling.k8s.io/v1", "PriorityClass"),
        ] {
            assert_eq!(class(api_version, kind), Class::Foreign, "{api_version} {kind}");
        }
    }
}
