//! How much one repository may ask to be planned with. A plan ends in a second or two whatever somebody commits.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::Document;
use super::findings::{Finding, FindingPlace};
use super::kinds::Kind;
use super::limits;
use super::rules::reading::LIMIT;

/// Lists and mappings that no schema limits, by kind.
const ENTRIES: [(Kind, &str); 7] = [
    (Kind::NodePool, "/spec/limits"),
    (Kind::NodePool, "/spec/template/spec/taints"),
    (Kind::NodePool, "/spec/template/spec/startupTaints"),
    (Kind::NodePool, "/spec/template/metadata/annotations"),
    (Kind::EC2NodeClass, "/spec/tags"),
    (Kind::NodeOverlay, "/spec/capacity"),
    (Kind::CapacityBuffer, "/spec/limits"),
];
/// Lists and mappings that a schema limits to less.
const LIMITED_BY_SCHEMA: [(Kind, &str); 8] = [
    (Kind::NodePool, "/spec/disruption/budgets"),
    (Kind::NodePool, "/spec/template/metadata/labels"),
    (Kind::NodePool, "/spec/template/spec/requirements"),
    (Kind::EC2NodeClass, "/spec/blockDeviceMappings"),
    (Kind::EC2NodeClass, "/spec/subnetSelectorTerms"),
    (Kind::NodeOverlay, "/spec/requirements"),
    (Kind::DisruptionBudget, "/spec/allowWindows"),
    (Kind::DisruptionBudget, "/spec/denyWindows"),
];
/// Where requirements are, by kind.
const REQUIREMENTS: [(Kind, &str); 2] =
    [(Kind::NodePool, "/spec/template/spec/requirements"), (Kind::NodeOverlay, "/spec/requirements")];

/// How many definitions of each kind were read.
#[derive(Debug, Default)]
pub struct Amounts(BTreeMap<Kind, usize>);

impl Amounts {
    /// Counts a definition. Only the first one beyond the limit has a finding.
    pub fn one_more(&mut self, kind: Kind, document: &Document) -> Option<Finding> {
        let count = self.0.entry(kind).or_default();
        *count += 1;
        if *count != limits::OF_ONE_KIND + 1 {
            return None;
        }
        let message = format!("there are more than {} definitions of kind {}", limits::OF_ONE_KIND, kind.name());
        Some(
            Finding::at(&LIMIT, document, "/kind", FindingPlace::Value, message)
                .hint("divide them among several clusters"),
        )
    }

    pub fn is_beyond(&self, kind: Kind) -> bool {
        self.0.get(&kind).is_some_and(|count| *count > limits::OF_ONE_KIND)
    }
}

/// What one definition has too much of.
pub fn too_much_of(kind: Kind, document: &Document) -> Vec<Finding> {
    let mut found = Vec::new();
    for (_, pointer) in ENTRIES.iter().filter(|(its, _)| *its == kind) {
        let count = document.value.pointer(pointer).map_or(0, entries);
        if count > limits::ENTRIES {
            found.push(beyond(document, pointer, "entries", count, limits::ENTRIES));
        }
    }
    for (_, pointer) in REQUIREMENTS.iter().filter(|(its, _)| *its == kind) {
        for (requirement, _) in document.items(pointer) {
            let values = format!("{requirement}/values");
            let count = document.value.pointer(&values).map_or(0, entries);
            if count > limits::VALUES {
                found.push(beyond(document, &values, "values", count, limits::VALUES));
            }
        }
    }
    let replicas = document.value.pointer("/spec/replicas").and_then(Value::as_u64).filter(|_| kind == Kind::NodePool);
    if let Some(replicas) = replicas.filter(|replicas| *replicas > limits::REPLICAS) {
        let message = format!("{replicas} nodes are more than the {} that are planned for", limits::REPLICAS);
        found.push(Finding::at(&LIMIT, document, "/spec/replicas", FindingPlace::Value, message));
    }
    found
}

fn entries(value: &Value) -> usize {
    value.as_array().map(Vec::len).or_else(|| value.as_object().map(serde_json::Map::len)).unwrap_or_default()
}

fn beyond(document: &Document, pointer: &str, what: &str, count: usize, most: usize) -> Finding {
    let name = super::document::spans::last(pointer);
    let message = format!("`{name}` has {count} {what}, and must have at most {most}");
    Finding::at(&LIMIT, document, pointer, FindingPlace::Key, message)
}

/// Whether a list or mapping of the definition is too long to be looked at entry by entry. The schema or
/// [`too_much_of`] has a finding that says so.
pub fn is_far_too_long(kind: Kind, document: &Document) -> bool {
    let of_schema = LIMITED_BY_SCHEMA.iter().filter(|(its, _)| *its == kind);
    let mut lengths = of_schema.map(|(_, pointer)| document.value.pointer(pointer).map_or(0, entries));
    lengths.any(|count| count > limits::ENTRIES) || !too_much_of(kind, document).is_empty()
}
