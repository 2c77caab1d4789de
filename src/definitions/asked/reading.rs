//! What a document asks for, found in it.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Asked, List, PLACES, Written};
use crate::api::keys;
use crate::api::node_pool::{CLASS_GROUP, CLASS_KIND, NodePool, NodeSelectorRequirement, Operator};
use crate::core::catalog::labels::AWS_PREFIX;
use crate::core::model::requirements::normalized;
use crate::definitions::document::Document;
use crate::definitions::kinds::Kind;
use crate::definitions::providers::{is_of_another_provider, is_of_auto_mode};

const REQUIREMENTS: &str = "/spec/template/spec/requirements";
const LABELS: &str = "/spec/template/metadata/labels";

impl Asked {
    pub fn of(kind: Kind, document: &Document) -> Self {
        let lists = lists(kind, document);
        let places = if kind == Kind::NodePool && names_places(document) { with_places_alone(document) } else { None };
        Self { lists, places }
    }
}

/// Lists of requirements of one object: of a pool and an overlay one, of a pod its selector with each term of its affinity.
fn lists(kind: Kind, document: &Document) -> Vec<List> {
    match kind {
        Kind::NodePool => {
            // Nobody here knows what another provider sells, or which labels its nodes have.
            if is_of_another_provider(document) {
                return Vec::new();
            }
            let pointer = REQUIREMENTS;
            let mut written = labels(document, LABELS);
            written.extend(requirements(document, pointer));
            if is_of_auto_mode(document) {
                written.iter_mut().for_each(as_of_karpenter);
            }
            vec![List { pointer: pointer.to_owned(), written }]
        }
        Kind::NodeOverlay => {
            let pointer = "/spec/requirements";
            vec![List { pointer: pointer.to_owned(), written: requirements(document, pointer) }]
        }
        Kind::PodTemplate => lists_of_pod(document, "/template/spec"),
        _ => Vec::new(),
    }
}

/// The labels of EKS Auto Mode are Karpenter's under another name.
fn as_of_karpenter(written: &mut Written) {
    if let Some(name) = written.entry.key.strip_prefix(keys::AUTO_MODE_PREFIX) {
        written.entry.key = format!("{AWS_PREFIX}{name}");
    }
}

/// Where a workload says what its pods are.
pub fn pods_of(document: &Document) -> Option<&'static str> {
    let specs = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/template/spec", "/spec"];
    specs.into_iter().find(|spec| document.value.pointer(&format!("{spec}/containers")).is_some_and(Value::is_array))
}

/// The containers of pods, and those that run before them.
pub fn containers<'d>(document: &'d Document, spec: &str) -> Vec<(String, &'d Value)> {
    let lists = ["containers", "initContainers"].map(|field| format!("{spec}/{field}"));
    let mut containers = Vec::new();
    for list in &lists {
        containers.extend(document.items(list));
    }
    containers
}

pub fn lists_of_pod(document: &Document, spec: &str) -> Vec<List> {
    let selector = || labels(document, &format!("{spec}/nodeSelector"));
    let affinity = format!("{spec}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let terms: Vec<String> = document.items(&format!("{affinity}/nodeSelectorTerms")).map(|(term, _)| term).collect();
    let of_term = |term: &String| {
        let pointer = format!("{term}/matchExpressions");
        let mut written = selector();
        written.extend(requirements(document, &pointer));
        List { pointer, written }
    };
    match terms.is_empty() {
        true => vec![List { pointer: format!("{spec}/nodeSelector"), written: selector() }],
        false => terms.iter().map(of_term).collect(),
    }
}

/// The requirements that can be read and hold no variable. The schema speaks of the others.
fn requirements(document: &Document, pointer: &str) -> Vec<Written> {
    let read = |(pointer, entry): (String, &Value)| {
        let entry: NodeSelectorRequirement = serde_json::from_value(entry.clone()).ok()?;
        let is_open = std::iter::once(&entry.key).chain(&entry.values).any(|text| text.contains("${"));
        (!is_open).then_some(Written { pointer, entry, is_label: false })
    };
    document.items(pointer).filter_map(read).collect()
}

fn labels(document: &Document, pointer: &str) -> Vec<Written> {
    let read = |(pointer, key, value): (String, &str, &Value)| {
        let value = value.as_str().filter(|value| !value.contains("${"))?;
        let (key, values) = (key.to_owned(), vec![value.to_owned()]);
        let entry = NodeSelectorRequirement { key, operator: Operator::In, values, min_values: None };
        Some(Written { pointer, entry, is_label: true })
    };
    document.members(pointer).filter_map(read).collect()
}

fn names_places(pool: &Document) -> bool {
    let is_place = |key: &str| PLACES.contains(&normalized(key));
    let key = |entry: &Value| entry.get("key").and_then(Value::as_str).is_some_and(is_place);
    pool.items(REQUIREMENTS).any(|(_, entry)| key(entry)) || pool.members(LABELS).any(|(_, key, _)| is_place(key))
}

/// The pool with nothing but its requirements and labels. So a mistake elsewhere in the pool does not hide its zones.
fn with_places_alone(pool: &Document) -> Option<NodePool> {
    let entries = pool.items(REQUIREMENTS).map(|(_, entry)| entry);
    let entries: Vec<&Value> = entries.filter(|entry| NodeSelectorRequirement::deserialize(*entry).is_ok()).collect();
    let labels = pool.members(LABELS).filter(|(.., value)| value.is_string());
    let labels: Map<String, Value> = labels.map(|(_, key, value)| (key.to_owned(), value.clone())).collect();
    let class = json!({ "group": CLASS_GROUP, "kind": CLASS_KIND, "name": "any" });
    let template =
        json!({ "metadata": { "labels": labels }, "spec": { "requirements": entries, "nodeClassRef": class } });
    let value = json!({
        "apiVersion": Kind::NodePool.api_version(),
        "kind": Kind::NodePool.name(),
        "metadata": {},
        "spec": { "template": template },
    });
    NodePool::deserialize(value).ok()
}
