//! The nodes that an event of a disruption names, in the form of Karpenter's log.

use serde_json::{Value, json};

/// How many names a line lists before it says how many more there are.
const NAMES_SHOWN: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disrupted {
    pub node: String,
    pub node_claim: String,
    pub instance_type: String,
    pub capacity_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    pub node_claim: String,
    pub capacity_type: String,
    pub instance_types: Vec<String>,
}

impl Disrupted {
    pub(in crate::controller) fn value(&self) -> Value {
        json!({
            "Node": {"name": self.node},
            "NodeClaim": {"name": self.node_claim},
            "instance-type": self.instance_type,
            "capacity-type": self.capacity_type,
        })
    }
}

impl Replacement {
    pub(in crate::controller) fn value(&self) -> Value {
        json!({ "capacity-type": self.capacity_type, "instance-types": some_of(&self.instance_types) })
    }
}

/// `a, b, c and 17 other(s)`, as Karpenter writes long lists.
pub(in crate::controller) fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} other(s)"),
    }
}
