//! What of a snapshot is not to be relied on: kinds of which it is not known how they are now, objects that could not be read, and those
//! that contradict each other.
//! Nothing ends on their word.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use cutlist_api::keys;

use super::list::Objects;
use super::pod::Pod;

/// Of a text that says what could not be read: a path may be long.
const CHARACTERS_MAX: usize = 200;
/// So many are named of those that share an instance.
const NAMED_MAX: usize = 5;

/// Empty where all was seen, could be read, and can be so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// By the name of the kind in paths and permissions, such as `pods`.
    pub kinds: BTreeMap<String, KindInDoubt>,
    /// By kind, namespace and name. They are not among the objects, or as they were when they could be read last.
    pub unreadable: Vec<Unreadable>,
    /// By kind and provider ID. They are among the objects.
    pub doubled: Vec<Doubled>,
}

/// A kind that was seen whole last at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindInDoubt {
    pub whole_at: Timestamp,
    pub why: String,
}

/// An object that is set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// What could not be read.
    pub why: String,
    /// Whose it is, or itself; empty where it does not say.
    node_pool: String,
    /// The node it is on, or itself.
    pub node: String,
    pub provider_id: String,
    /// Which installation of Cutlist made it; empty where it does not say.
    pub installation: String,
    /// `status.phase`, as it stands there.
    pub phase: String,
}

impl Unreadable {
    /// What can be told of an object that does not have the shape of its kind.
    pub fn new(kind: &str, object: &Value, why: &str) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let first = |one: String, other: String| if one.is_empty() { other } else { one };
        let name = text("/metadata/name");
        let note = |of: &str, key: &str| text(&format!("/metadata/{of}/{}", key.replace('/', "~1")));
        let why = match why.char_indices().nth(CHARACTERS_MAX) {
            Some((end, _)) => format!("{}...", why.get(..end).unwrap_or_default()),
            None => why.to_owned(),
        };
        Self {
            kind: kind.to_owned(),
            namespace: text("/metadata/namespace"),
            uid: text("/metadata/uid"),
            resource_version: text("/metadata/resourceVersion"),
            why,
            node_pool: if kind == "NodePool" { name.clone() } else { note("labels", keys::NODE_POOL) },
            node: match kind {
                "Node" | "CSINode" => name.clone(),
                _ => first(text("/spec/nodeName"), text("/status/nodeName")),
            },
            provider_id: first(text("/spec/providerID"), text("/status/providerID")),
            installation: first(note("labels", keys::INSTALLATION), note("annotations", keys::INSTALLATION)),
            phase: text("/status/phase"),
            name,
        }
    }

    /// `EC2NodeClass gpu`, `Pod shop/web-1`
    pub fn object(&self) -> String {
        let separator = if self.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{separator}{}", self.kind, self.namespace, self.name)
    }

    /// Whether it is a plan: it says what was meant to be done, and nothing of what there is.
    pub fn is_plan(&self) -> bool {
        self.kind == "NodePlan"
    }

    /// Whether the end of a node might take with it what this object would have spoken for. What says nothing of whose it is
    /// speaks for all.
    fn concerns(&self, subject: &Subject<'_>, pods: &Objects<Pod>) -> bool {
        let is_node = subject.node.is_some_and(|node| node == self.node);
        match self.kind.as_str() {
            _ if self.is_plan() => false,
            // Pods may be on no node.
            "Pod" | "CSINode" => is_node,
            "Node" | "NodeClaim" => is_node || self.node_pool.is_empty() || self.node_pool == subject.node_pool,
            "NodePool" => self.name == subject.node_pool,
            "EC2NodeClass" => self.name == subject.node_class,
            _ if self.namespace.is_empty() => true,
            _ => pods.iter().any(|pod| {
                pod.metadata.namespace == self.namespace
                    && pod.spec.node_name.is_some()
                    && pod.spec.node_name.as_deref() == subject.node
            }),
        }
    }
}

/// Objects of one kind that are of one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubled {
    /// `Node` or `NodeClaim`.
    pub kind: &'static str,
    pub provider_id: String,
    /// Two or more.
    pub names: BTreeSet<String>,
    /// Those of which one of them, or what has it for its instance, says that it is.
    pub(super) node_pools: BTreeSet<String>,
    pub(super) nodes: BTreeSet<String>,
}

impl Doubled {
    /// Whether the end of a machine might be the end of what one of these stands for.
    pub(super) fn concerns(&self, subject: &Subject<'_>) -> bool {
        self.node_pools.contains(subject.node_pool) || subject.node.is_some_and(|node| self.nodes.contains(node))
    }
}

impl std::fmt::Display for Doubled {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named: Vec<&str> = self.names.iter().map(String::as_str).take(NAMED_MAX).collect();
        let more = self.names.len() - named.len();
        let and_more = if more == 0 { String::new() } else { format!(" and {more} more") };
        write!(out, "{}s {}{and_more} have one provider ID, {}", self.kind, named.join(", "), self.provider_id)
    }
}

/// A machine that might end.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub node: Option<&'a str>,
    pub node_pool: &'a str,
    pub node_class: &'a str,
}

/// Why it must not end now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    Kind(String),
    Object(String),
    Doubled(String),
}

impl Doubt {
    pub fn text(&self) -> &str {
        let (Self::Kind(text) | Self::Object(text) | Self::Doubled(text)) = self;
        text
    }
}

impl Doubts {
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.unreadable.is_empty() && self.doubled.is_empty()
    }

    /// Whether all that there is was seen and could be read: what can not are plans, if anything.
    pub fn leave_all_known(&self) -> bool {
        self.kinds.is_empty() && self.doubled.is_empty() && self.unreadable.iter().all(Unreadable::is_plan)
    }

    /// `it is not known how pods are now, since 2026-11-20T09:00:00Z: list pods: etcdserver: request timed out`, for the first
    /// kind in doubt.
    pub fn of_kinds(&self) -> Option<String> {
        let (resource, kind) = self.kinds.first_key_value()?;
        Some(of_kind(resource, kind))
    }

    /// One sentence for each kind, each object and each instance.
    pub fn sentences(&self) -> impl Iterator<Item = Doubt> {
        let kinds = self.kinds.iter().map(|(resource, kind)| Doubt::Kind(of_kind(resource, kind)));
        let objects = self.unreadable.iter().map(|object| Doubt::Object(of_object(object)));
        kinds.chain(objects).chain(self.doubled.iter().map(|doubled| Doubt::Doubled(doubled.to_string())))
    }

    /// Whether another one says that it is of the same instance as this Node, or as this NodeClaim while it has none: of what both have at
    /// most one has it.
    pub fn is_doubled(&self, machine: &str) -> bool {
        self.doubled.iter().any(|doubled| doubled.names.contains(machine))
    }

    /// What keeps a machine from ending, of a cluster with these pods.
    pub fn about(&self, subject: &Subject<'_>, pods: &Objects<Pod>) -> Option<Doubt> {
        if let Some(text) = self.of_kinds() {
            return Some(Doubt::Kind(text));
        }
        let concerning = self.unreadable.iter().find(|object| object.concerns(subject, pods));
        concerning.map(|object| Doubt::Object(of_object(object))).or_else(|| {
            let doubled = self.doubled.iter().find(|doubled| doubled.concerns(subject))?;
            Some(Doubt::Doubled(doubled.to_string()))
        })
    }
}

fn of_kind(resource: &str, kind: &KindInDoubt) -> String {
    format!("it is not known how {resource} are since {}: {}", kind.whole_at, kind.why)
}

fn of_object(object: &Unreadable) -> String {
    format!("{} can not be read: {}", object.object(), object.why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{BuildPod, pod};

    fn subject<'a>(node: &'a str, node_pool: &'a str) -> Subject<'a> {
        Subject { node: Some(node), node_pool, node_class: "default" }
    }

    #[test]
    fn an_object_that_can_not_be_read_holds_what_it_speaks_for_and_nothing_else() {
        let pods = vec![pod("web").on("n1")].into();
        let held = |kind: &str, object: Value| {
            let doubts =
                Doubts { unreadable: vec![Unreadable::new(kind, &object, "unknown variant")], ..Doubts::default() };
            [("n1", "a"), ("n2", "b")].map(|(node, pool)| doubts.about(&subject(node, pool), &pods).is_some())
        };
        let named = |name: &str| json!({ "metadata": { "name": name } });
        assert_eq!(held("NodePool", named("a")), [true, false]);
        assert_eq!(held("EC2NodeClass", named("default")), [true, true]);
        assert_eq!(held("EC2NodeClass", named("gpu")), [false, false]);
        assert_eq!(held("Pod", json!({ "metadata": { "name": "x" }, "spec": { "nodeName": "n2" } })), [false, true]);
        assert_eq!(held("Pod", named("pending")), [false, false]);
        let claim = json!({ "metadata": { "name": "b-1", "labels": { "karpenter.sh/nodepool": "b" } } });
        assert_eq!(held("NodeClaim", claim), [false, true]);
        assert_eq!(held("NodeClaim", named("of-nobody")), [true, true]);
        assert_eq!(held("DeviceClass", named("gpu")), [true, true]);
        let budget = json!({ "metadata": { "name": "web", "namespace": "default" } });
        assert_eq!(held("PodDisruptionBudget", budget), [true, false]);
        assert_eq!(held("NodePlan", named("old")), [false, false]);
    }

    #[test]
    fn a_plan_that_can_not_be_read_hides_nothing_of_what_there_is() {
        let of = |kind: &str| {
            let object = json!({
                "metadata": { "name": "a", "labels": { keys::INSTALLATION: "blue" } },
                "status": { "phase": "WaitsForApproval" },
            });
            Doubts { unreadable: vec![Unreadable::new(kind, &object, "")], ..Doubts::default() }
        };
        let of_plan = of("NodePlan");
        assert!(of_plan.leave_all_known() && !of_plan.is_empty());
        let Unreadable { installation, phase, .. } = &of_plan.unreadable[0];
        assert_eq!((installation.as_str(), phase.as_str()), ("blue", "WaitsForApproval"));
        assert!(!of("NodePool").leave_all_known());
    }

    #[test]
    fn a_kind_in_doubt_holds_everything_and_what_is_quoted_is_cut() {
        let whole_at = "2026-11-20T09:00:00Z".parse().unwrap();
        let kinds = [("pods".to_owned(), KindInDoubt { whole_at, why: "list pods: timed out".to_owned() })];
        let doubts = Doubts { kinds: kinds.into(), ..Doubts::default() };
        let doubt = doubts.about(&subject("n1", "a"), &Objects::default()).unwrap();
        assert_eq!(doubt.text(), "it is not known how pods are since 2026-11-20T09:00:00Z: list pods: timed out");
        let long = Unreadable::new("Pod", &json!({}), &"x".repeat(5000));
        assert!(long.why.len() < 300);
    }
}
