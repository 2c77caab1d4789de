//! What is asked of the API server, in one table: the roles in `deploy/` and messages about what is missing come from it.

/// How far a controller, or a person who only wants a plan, goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Reads; posts plans, which are kinds of our own.
    Observe,
    /// Applies definitions, creates and removes nodes.
    Enforce,
}

/// Verbs on resources of one group that a mode needs.
#[derive(Clone, Copy, Debug)]
pub struct Permission {
    pub group: &'static str,
    pub resources: &'static [&'static str],
    pub verbs: &'static [&'static str],
    pub mode: Mode,
}

const fn permission(
    mode: Mode,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Permission {
    Permission { group, resources, verbs, mode }
}

const READ: &[&str] = &["get", "list", "watch"];

/// In the order of groups. `Enforce` needs those of `Observe` as well.
pub const PERMISSIONS: &[Permission] = &[
    permission(
        Mode::Observe,
        "",
        &[
            "limitranges",
            "namespaces",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "replicationcontrollers",
            "services",
        ],
        READ,
    ),
    permission(Mode::Observe, "apps", &["daemonsets", "deployments", "replicasets", "statefulsets"], READ),
    permission(Mode::Observe, "autoscaling.x-k8s.io", &["capacitybuffers"], READ),
    permission(Mode::Observe, "batch", &["jobs"], READ),
    permission(
        Mode::Observe,
        "coordination.k8s.io",
        &["leases"],
        &["create", "get", "list", "patch", "update", "watch"],
    ),
    permission(Mode::Observe, "cutlist.dev", &["disruptionbudgets"], READ),
    permission(
        Mode::Observe,
        "cutlist.dev",
        &["nodeplans", "nodeplans/status"],
        &["create", "delete", "get", "list", "patch", "update", "watch"],
    ),
    permission(Mode::Observe, "events.k8s.io", &["events"], &["create", "patch"]),
    permission(Mode::Observe, "karpenter.k8s.aws", &["ec2nodeclasses"], READ),
    permission(Mode::Observe, "karpenter.sh", &["nodeclaims", "nodeoverlays", "nodepools"], READ),
    permission(Mode::Observe, "node.k8s.io", &["runtimeclasses"], READ),
    permission(Mode::Observe, "policy", &["poddisruptionbudgets"], READ),
    permission(
        Mode::Observe,
        "resource.k8s.io",
        &["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"],
        READ,
    ),
    permission(Mode::Observe, "scheduling.k8s.io", &["priorityclasses"], READ),
    permission(Mode::Observe, "storage.k8s.io", &["csinodes", "storageclasses", "volumeattachments"], READ),
    permission(Mode::Enforce, "", &["nodes"], &["delete", "patch"]),
    permission(Mode::Enforce, "", &["pods"], &["delete"]),
    permission(Mode::Enforce, "", &["pods/eviction"], &["create"]),
    permission(Mode::Enforce, "", &["pods/status"], &["patch"]),
    permission(Mode::Enforce, "", &["podtemplates"], &["create", "delete", "patch"]),
    permission(Mode::Enforce, "autoscaling.x-k8s.io", &["capacitybuffers"], &["create", "delete", "patch"]),
    permission(Mode::Enforce, "cutlist.dev", &["disruptionbudgets"], &["create", "delete", "patch"]),
    permission(Mode::Enforce, "karpenter.k8s.aws", &["ec2nodeclasses"], &["create", "delete", "patch"]),
    permission(Mode::Enforce, "karpenter.k8s.aws", &["ec2nodeclasses/status"], &["patch"]),
    permission(
        Mode::Enforce,
        "karpenter.sh",
        &["nodeclaims", "nodeoverlays", "nodepools"],
        &["create", "delete", "patch"],
    ),
    permission(Mode::Enforce, "karpenter.sh", &["nodeclaims/status", "nodepools/status"], &["patch"]),
];
