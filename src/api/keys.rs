//! Keys that Karpenter, Kubernetes and Cutlist put on objects.

pub const NODE_POOL: &str = "karpenter.sh/nodepool";
pub const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
pub const REGISTERED: &str = "karpenter.sh/registered";
pub const INITIALIZED: &str = "karpenter.sh/initialized";
pub const DO_NOT_DISRUPT: &str = "karpenter.sh/do-not-disrupt";
/// What [`DO_NOT_DISRUPT`] was called before v1, on pods and on nodes.
pub const OLD_DO_NOT_DISRUPT: [&str; 2] = [DO_NOT_EVICT, DO_NOT_CONSOLIDATE];
pub const DO_NOT_EVICT: &str = "karpenter.sh/do-not-evict";
pub const DO_NOT_CONSOLIDATE: &str = "karpenter.sh/do-not-consolidate";
/// On a pod: with `false` it asks Cluster Autoscaler to leave the pod where it is.
pub const SAFE_TO_EVICT: &str = "cluster-autoscaler.kubernetes.io/safe-to-evict";
pub const NODE_POOL_HASH: &str = "karpenter.sh/nodepool-hash";
pub const NODE_POOL_HASH_VERSION: &str = "karpenter.sh/nodepool-hash-version";
pub const TERMINATION_FINALIZER: &str = "karpenter.sh/termination";
/// On a NodeClaim whose `minValues` were lowered to what there was.
pub const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";
/// Label of a node that registers with its taints, so that they are not put on it again.
pub const DO_NOT_SYNC_TAINTS: &str = "karpenter.sh/do-not-sync-taints";
/// Taint of a node that is being removed; effect NoSchedule.
pub const DISRUPTED_TAINT: &str = "karpenter.sh/disrupted";
/// Taint of a node that has not registered; effect NoExecute.
pub const UNREGISTERED_TAINT: &str = "karpenter.sh/unregistered";

pub const EC2_NODE_CLASS: &str = "karpenter.k8s.aws/ec2nodeclass";
pub const EC2_NODE_CLASS_HASH: &str = "karpenter.k8s.aws/ec2nodeclass-hash";
pub const EC2_NODE_CLASS_HASH_VERSION: &str = "karpenter.k8s.aws/ec2nodeclass-hash-version";
pub const CAPACITY_RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
pub const CAPACITY_RESERVATION_INTERRUPTIBLE: &str = "karpenter.k8s.aws/capacity-reservation-interruptible";
pub const CAPACITY_RESERVATION_TYPE: &str = "karpenter.k8s.aws/capacity-reservation-type";
pub const TENANCY: &str = "karpenter.k8s.aws/instance-tenancy";
pub const INSTANCE_CPU: &str = "karpenter.k8s.aws/instance-cpu";
pub const INSTANCE_MEMORY: &str = "karpenter.k8s.aws/instance-memory";
pub const INSTANCE_CATEGORY: &str = "karpenter.k8s.aws/instance-category";
pub const INSTANCE_FAMILY: &str = "karpenter.k8s.aws/instance-family";
pub const INSTANCE_GENERATION: &str = "karpenter.k8s.aws/instance-generation";
pub const INSTANCE_SIZE: &str = "karpenter.k8s.aws/instance-size";

/// Tag of an instance: the NodeClaim that it was launched for.
pub const NODE_CLAIM_TAG: &str = "karpenter.sh/nodeclaim";
/// Tag of everything that is made in EC2 for a cluster.
pub const CLUSTER_NAME_TAG: &str = "eks:eks-cluster-name";
/// The beginning of the tag of everything that belongs to a cluster. The cluster's name follows.
pub const CLUSTER_TAG_PREFIX: &str = "kubernetes.io/cluster";

/// The beginning of the labels of nodes of EKS Auto Mode.
pub const AUTO_MODE_PREFIX: &str = "eks.amazonaws.com/";

pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub const ARCHITECTURE: &str = "kubernetes.io/arch";
pub const OPERATING_SYSTEM: &str = "kubernetes.io/os";
pub const HOSTNAME: &str = "kubernetes.io/hostname";
pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const REGION: &str = "topology.kubernetes.io/region";
pub const ZONE_ID: &str = "topology.k8s.aws/zone-id";
pub const WINDOWS_BUILD: &str = "node.kubernetes.io/windows-build";

/// On a NodeClaim: the plan that created it, and the move it belongs to.
pub const PLAN: &str = "cutlist.dev/plan";
pub const MOVE: &str = "cutlist.dev/move";
/// On a NodeClaim, and a tag of its instance: the launch that both are part of. Claims that are asked for in one call
/// have the same launch.
pub const LAUNCH: &str = "cutlist.dev/launch";
/// On a NodeClaim: the offerings that its plan chose, best first, as JSON. A launch after a restart asks for just these.
pub const LAUNCH_ALTERNATIVES: &str = "cutlist.dev/launch-alternatives";
/// Tag of an instance: the number of its part of the launch, where that part asks for more than the others.
pub const LAUNCH_PART: &str = "cutlist.dev/launch-part";
/// On a NodeClaim that a plan removes: the wave in which it goes. Absent where one wave is enough.
pub const WAVE: &str = "cutlist.dev/wave";
/// On a NodeClaim whose wave has come: since when it waits for the pods of the earlier waves to run elsewhere. RFC 3339.
pub const WAVE_WAITS_SINCE: &str = "cutlist.dev/wave-waits-since";
/// On a NodeClaim: the pods that it was created for, and those that later plans put on its node before it was up, as
/// `namespace/name`, with commas.
pub const PODS: &str = "cutlist.dev/pods";
/// On a NodeClaim: those of its pods that find their places only if kube-scheduler takes them before others, as `namespace/name`, with
/// commas.
pub const PODS_FIRST: &str = "cutlist.dev/pods-first";
/// On a NodeClaim that a plan removes: the claims that replace it, with commas; empty when none does.
pub const REPLACED_BY: &str = "cutlist.dev/replaced-by";
/// On a NodeClaim that a plan removes: where its pods go, as `namespace/name=node`, with commas.
pub const DESTINATIONS: &str = "cutlist.dev/destinations";
/// Taint, `PreferNoSchedule`, of nodes with room while others get the pods of a consolidation.
pub const HELD_FOR_MOVE_TAINT: &str = "cutlist.dev/held-for-move";
/// On objects that Cutlist applied from Git: the revision they came from.
pub const REVISION: &str = "cutlist.dev/revision";
/// On the same objects: when that revision was committed, in RFC 3339. By it a process that starts knows what would be
/// a step back.
pub const REVISION_COMMITTED_AT: &str = "cutlist.dev/revision-committed-at";
/// On the same objects: the file that the object was defined in.
pub const DEFINED_IN: &str = "cutlist.dev/defined-in";
/// On a NodePool: within which time a consolidation of its nodes must repay itself.
pub const PAYBACK: &str = "cutlist.dev/payback";
/// On an object of the definitions: codes of findings that do not count in it, and why.
pub const IGNORE: &str = "cutlist.dev/ignore";
/// On a NodePool: its new nodes that did not become ready, in a row, as JSON. Removing it lets a halted rollout go on.
pub const ROLLOUT_FAILURES: &str = "cutlist.dev/rollout-failures";
/// On a NodePool: those of its nodes that kube-scheduler refuses to the pods that they were bought for, as JSON. Once
/// it is removed, nodes are bought for these pods again at once.
pub const REFUSED_NODES: &str = "cutlist.dev/refused-nodes";
/// On a NodePool: its instances that ended before their nodes joined, in a row, as JSON. Removing it lets others be launched at once.
pub const EARLY_ENDS: &str = "cutlist.dev/early-ends";
/// On a NodePool that left the definitions: its nodes may go, however many they are. The value says who allowed it.
pub const REMOVAL_CONFIRMED: &str = "cutlist.dev/removal-confirmed";
/// On a NodeClaim: the hash of the EC2NodeClass that its instance was launched with. Karpenter's own hash covers the cluster's
/// CA bundle, which is not known here.
pub const LAUNCHED_CLASS_HASH: &str = "cutlist.dev/ec2nodeclass-hash";
/// On a NodeClaim: the selector terms of the EC2NodeClass that its instance was launched with, as JSON. No hash covers them.
pub const LAUNCHED_SELECTORS: &str = "cutlist.dev/ec2nodeclass-selectors";
/// On an EC2NodeClass or a NodePool of a written snapshot: its hash before something was left out. Never written to a cluster.
pub const HASH_BEFORE_REDACTION: &str = "cutlist.dev/hash-before-redaction";
/// On a pod of a snapshot: the fields that had too many terms, which were left out. Never written to a cluster.
pub const TOO_MANY_TERMS: &str = "cutlist.dev/too-many-terms";
/// Field manager of server-side apply, and value of `app.kubernetes.io/managed-by`.
pub const FIELD_MANAGER: &str = "cutlist";
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Which installation of Cutlist made an object: a label of definitions, an annotation of NodeClaims.
pub const INSTALLATION: &str = "cutlist.dev/installation";

/// Tenancy of instances that share a machine with those of other accounts.
pub const DEFAULT_TENANCY: &str = "default";
pub const DEDICATED_TENANCY: &str = "dedicated";
pub const ON_DEMAND: &str = "on-demand";
pub const SPOT: &str = "spot";
pub const RESERVED: &str = "reserved";

/// Source and kind of a message in the form of EventBridge's events that EventBridge did not send: the status checks of
/// instances, which EC2 is asked for.
pub const STATUS_CHECKS: &str = "cutlist.dev";
pub const STATUS_CHECK_FAILED: &str = "EC2 Instance Status Check Failed";
