//! The nodes that an event of a disruption names, in the form of Karpenter's log.

use serde_json::{Value, json};

use crate::api::keys::SPOT;

use super::{Event, short};

/// How many names a line lists before it says how many more there are.
const NAMES_MAX: usize = 5;

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
            "Node": named(&self.node),
            "NodeClaim": named(&self.node_claim),
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

impl Event {
    /// Fields for logs alone: under what runbooks of earlier versions of Karpenter look for the same.
    pub fn former_fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::DisruptingNodes { plan_id, move_number, pods, disrupted, replacements, .. } => vec![
                ("command-id", json!(command_id(plan_id, *move_number))),
                ("formerly", json!(sentence(*pods, disrupted, replacements))),
            ],
            _ => Vec::new(),
        }
    }
}

/// The move of a plan.
pub(super) fn command_id(plan_id: &str, move_number: u32) -> String {
    format!("{}/{move_number}", short(plan_id))
}

/// What Karpenter 1.0 wrote where it disrupted nodes. Newer ones, and this program, have it in fields.
fn sentence(pods: usize, disrupted: &[Disrupted], replacements: &[Replacement]) -> String {
    let nodes: Vec<String> =
        disrupted.iter().map(|it| format!("{}/{}/{}", it.node, it.instance_type, it.capacity_type)).collect();
    let decision = if replacements.is_empty() { "delete" } else { "replace" };
    let count = disrupted.len();
    let mut text = format!("disrupting nodeclaim(s) via {decision}, terminating {count} nodes ({pods} pods) ");
    text.push_str(&nodes.join(", "));
    match replacements {
        [] => {}
        [one] => {
            let types = some_of(&one.instance_types);
            text.push_str(&format!(" and replacing with {} node from types {types}", one.capacity_type));
        }
        [first, ..] => {
            let spot = replacements.iter().filter(|it| it.capacity_type == SPOT).count();
            let others = replacements.len() - spot;
            let types = some_of(&first.instance_types);
            text.push_str(&format!(" and replacing with {spot} spot and {others} on-demand, from types {types}"));
        }
    }
    text
}

/// An object by its name, as Karpenter's log has it: `.NodeClaim.name`.
pub(super) fn named(name: &str) -> Value {
    json!({ "name": name })
}

/// `a, b, c and 17 other(s)`, as Karpenter writes long lists.
pub(in crate::controller) fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} other(s)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_of_karpenter_1_0_has_nodes_and_what_replaces_them() {
        let of = |capacity_type: &str| Replacement {
            node_claim: "default-1".to_owned(),
            capacity_type: capacity_type.to_owned(),
            instance_types: vec!["c7a.large".to_owned(), "c7i.large".to_owned()],
        };
        let disrupted = [Disrupted {
            node: "ip-192-168-1-1".to_owned(),
            node_claim: "default-0".to_owned(),
            instance_type: "c5a.2xlarge".to_owned(),
            capacity_type: "on-demand".to_owned(),
        }];
        let terminating = "terminating 1 nodes (2 pods) ip-192-168-1-1/c5a.2xlarge/on-demand";
        let cases = [
            (vec![], format!("disrupting nodeclaim(s) via delete, {terminating}")),
            (
                vec![of("spot")],
                format!(
                    "disrupting nodeclaim(s) via replace, {terminating} and replacing with spot node from types c7a.large, c7i.large"
                ),
            ),
            (
                vec![of("spot"), of("on-demand"), of("reserved")],
                format!(
                    "disrupting nodeclaim(s) via replace, {terminating} and replacing with 1 spot and 2 on-demand, from types c7a.large, c7i.large"
                ),
            ),
        ];
        for (replacements, expected) in cases {
            assert_eq!(sentence(2, &disrupted, &replacements), expected);
        }
    }
}
