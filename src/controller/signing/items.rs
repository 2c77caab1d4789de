//! What a commit changes that a rule may be about: paths, definitions, amounts that become larger.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::api::node_pool::IntOrString;
use crate::api::signing_policy::SigningAmount;
use crate::core::model::Resources;
use crate::definitions::Definitions;
use crate::definitions::changes::{ChangeKind, changes};

pub use crate::definitions::changes::Side;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// From the root of the repository.
    Path(String),
    Definition {
        kind: &'static str,
        name: String,
    },
    Raised {
        amount: SigningAmount,
        /// `cpu of NodePool/general`
        what: String,
    },
}

impl fmt::Display for Item {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(formatter, "changes {path}"),
            Self::Definition { kind, name } if name.is_empty() => write!(formatter, "changes the {kind}"),
            Self::Definition { kind, name } => write!(formatter, "changes {kind}/{name}"),
            Self::Raised { amount: SigningAmount::Limits, what } => write!(formatter, "raises the limit {what}"),
            Self::Raised { amount: SigningAmount::Replicas, what } => write!(formatter, "raises {what}"),
        }
    }
}

/// What the definitions of one side are otherwise on the other.
pub fn changed(before: Side<'_>, after: Side<'_>) -> BTreeSet<Item> {
    let mut items = BTreeSet::new();
    for change in changes(before, after) {
        let kind = change.kind;
        if let ChangeKind::Renamed { from } = change.what {
            items.insert(Item::Definition { kind, name: from });
        }
        items.insert(Item::Definition { kind, name: change.name });
    }
    items.extend(raised(before.definitions, after.definitions));
    items
}

fn raised(before: &Definitions, after: &Definitions) -> Vec<Item> {
    let mut items = Vec::new();
    let limit = |resource: &str, of: &str| Item::Raised {
        amount: SigningAmount::Limits,
        what: if resource.is_empty() { format!("of {of}") } else { format!("{resource} of {of}") },
    };
    let larger = larger(&before.settings.limits, &after.settings.limits);
    items.extend(larger.iter().map(|resource| limit(resource, "the settings")));
    for pool in after.node_pools.iter().map(|pool| &pool.value) {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let of = format!("NodePool/{name}");
        let known = before.node_pools.iter().map(|pool| &pool.value).find(|it| it.metadata.name == pool.metadata.name);
        let replicas_before = known.and_then(|known| known.spec.replicas);
        match known {
            // Whatever its limits are, they come on top of those of the others.
            None => items.push(limit("", &of)),
            Some(known) => {
                let larger = self::larger(&known.spec.limits, &pool.spec.limits);
                items.extend(larger.iter().map(|resource| limit(resource, &of)));
            }
        }
        if pool.spec.replicas.unwrap_or_default() > replicas_before.unwrap_or_default() {
            items.push(Item::Raised { amount: SigningAmount::Replicas, what: format!("replicas of {of}") });
        }
    }
    items
}

/// Resources of which more is allowed afterwards. What can not be read is allowed more of.
fn larger(before: &BTreeMap<String, IntOrString>, after: &BTreeMap<String, IntOrString>) -> Vec<String> {
    let amount = |resource: &str, quantity: &IntOrString| {
        Resources::parse([(resource, quantity.text())]).map(|resources| resources.get(resource)).unwrap_or(i64::MAX)
    };
    let is_larger = |(resource, quantity): &(&String, &IntOrString)| {
        let becomes = after.get(*resource).map_or(i64::MAX, |quantity| amount(resource, quantity));
        becomes > amount(resource, quantity)
    };
    before.iter().filter(is_larger).map(|(resource, _)| resource.clone()).collect()
}
