//! Workloads beside the definitions, with what says how many pods they have and how many may be away. They are kept
//! while files are read, for the rules that hold them against NodePools and PodDisruptionBudgets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::architectures;
use super::asked::{List, containers, lists_of_pod, pods_of};
use super::document::Document;
use crate::api::keys;
use crate::api::node_pool::Operator;

/// What objects that are applied together share: the kustomization that builds them, or an empty text, and their
/// namespace.
type WorkloadKey = (String, String);

/// Nothing is said of a place with more pairs of a workload and a PodDisruptionBudget than this. To hold each against
/// each would take too long.
const PAIRS_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub struct Workloads {
    places: BTreeMap<WorkloadKey, OfPlace>,
    /// NodePools that pods ask for.
    asked: Vec<AskedPool>,
    /// Workloads whose pods do not fit each node.
    choosing: Vec<Choosing>,
    /// Workloads with an image for one architecture.
    of_one_architecture: Vec<Choosing>,
    /// Names of objects that are NodePools to whoever wrote them, and are not read as such.
    misread_pools: BTreeSet<String>,
}

/// A NodePool that pods ask for by its name.
#[derive(Debug)]
pub struct AskedPool {
    pub document: Document,
    /// Where the name stands.
    pub pointer: String,
    pub name: String,
}

/// A workload whose pods are for nodes that have something.
#[derive(Debug)]
pub struct Choosing {
    pub document: Document,
    /// Where it says what its pods are.
    pub spec: &'static str,
    /// A node needs to have what one of them asks for.
    pub lists: Vec<List>,
}

/// What is applied together.
#[derive(Debug, Default)]
pub struct OfPlace {
    workloads: Vec<Workload>,
    budgets: Vec<Document>,
    /// The kind and the name of each workload that somebody else scales.
    scaled: BTreeSet<(String, String)>,
}

/// A Deployment or StatefulSet that says how many pods it has.
#[derive(Debug)]
pub struct Workload {
    pub document: Document,
    pub replicas: u64,
    labels: BTreeMap<String, String>,
}

impl Workload {
    fn of(document: &Document) -> Option<Self> {
        let replicas = document.value.pointer("/spec/replicas")?.as_u64()?;
        let labels = document.members("/spec/template/metadata/labels");
        let labels = labels.filter_map(|(_, key, value)| Some((key.to_owned(), value.as_str()?.to_owned())));
        Some(Self { document: document.clone(), replicas, labels: labels.collect() })
    }
}

impl Workloads {
    /// Keeps the object if it is a workload or says something of one. `built_by` is the path of the kustomization that
    /// built it.
    pub fn add(&mut self, document: &Document, built_by: &str) {
        let Some(kind) = document.str("/kind") else { return };
        if let Some(spec) = pods_of(document) {
            let lists = lists_of_pod(document, spec);
            self.asked.extend(pools_named(document, &lists));
            if lists.iter().all(|list| !list.written.is_empty()) {
                self.choosing.push(Choosing { document: document.clone(), spec, lists: lists.clone() });
            }
            if has_image_for_one(document, spec) {
                self.of_one_architecture.push(Choosing { document: document.clone(), spec, lists });
            }
        }
        let namespace = document.str("/metadata/namespace").filter(|it| !it.is_empty()).unwrap_or("default");
        let place = || (built_by.to_owned(), namespace.to_owned());
        match (document.group(), kind) {
            ("apps", "Deployment" | "StatefulSet") => {
                let Some(workload) = Workload::of(document) else { return };
                self.places.entry(place()).or_default().workloads.push(workload);
            }
            ("policy", "PodDisruptionBudget") => {
                self.places.entry(place()).or_default().budgets.push(document.clone());
            }
            ("autoscaling" | "keda.sh", "HorizontalPodAutoscaler" | "ScaledObject") => {
                let target = |field: &str| document.str(&format!("/spec/scaleTargetRef/{field}"));
                // `Deployment` is KEDA's default.
                let kind = target("kind").unwrap_or("Deployment").to_owned();
                let Some(name) = target("name") else { return };
                self.places.entry(place()).or_default().scaled.insert((kind, name.to_owned()));
            }
            _ => {}
        }
    }

    /// Keeps the name of what may be meant for a NodePool.
    pub fn add_misread_pool(&mut self, document: &Document) {
        self.misread_pools.extend(document.str("/metadata/name").map(str::to_owned));
    }

    /// The NodePools that pods ask for, without those that are there and not read.
    pub fn asked_pools(&self) -> impl Iterator<Item = &AskedPool> {
        self.asked.iter().filter(|asked| !self.misread_pools.contains(&asked.name))
    }

    pub fn of_one_architecture(&self) -> &[Choosing] {
        &self.of_one_architecture
    }

    pub fn choosing(&self) -> &[Choosing] {
        &self.choosing
    }

    /// Names of what may be meant for a NodePool, and is read as none.
    pub fn misread_pools(&self) -> &BTreeSet<String> {
        &self.misread_pools
    }

    pub fn places(&self) -> impl Iterator<Item = &OfPlace> {
        self.places.values().filter(|it| it.workloads.len().saturating_mul(it.budgets.len()) <= PAIRS_MAX)
    }
}

impl OfPlace {
    /// The workloads whose number of pods is what they say.
    pub fn of_fixed_size(&self) -> impl Iterator<Item = &Workload> {
        self.workloads.iter().filter(|workload| !self.is_scaled(workload))
    }

    fn is_scaled(&self, workload: &Workload) -> bool {
        let text = |pointer: &str| workload.document.str(pointer).unwrap_or_default().to_owned();
        self.scaled.contains(&(text("/kind"), text("/metadata/name")))
    }

    /// Whether some PodDisruptionBudget is, or may be, for the pods of the workload.
    pub fn has_budget(&self, workload: &Workload) -> bool {
        self.budgets.iter().any(|budget| may_select(budget, workload))
    }

    /// Each PodDisruptionBudget with the workloads that it selects. A PodDisruptionBudget has no workloads here where
    /// they are not known, or where the number of pods of one is not fixed.
    pub fn with_selected(&self) -> impl Iterator<Item = (&Document, Vec<&Workload>)> {
        let selected = |budget: &Document| -> Vec<&Workload> {
            let selects = self.workloads.iter().map(|it| selects(budget, it).map(|is_selected| (it, is_selected)));
            let Some(all) = selects.collect::<Option<Vec<(&Workload, bool)>>>() else { return Vec::new() };
            let selected: Vec<&Workload> = all.into_iter().filter_map(|(it, is)| is.then_some(it)).collect();
            if selected.iter().any(|it| self.is_scaled(it)) { Vec::new() } else { selected }
        };
        self.budgets.iter().map(move |budget| (budget, selected(budget)))
    }
}

/// The NodePools that pods ask for. Each of them takes the pods.
pub fn asked_pools(document: &Document, spec: &str) -> Vec<AskedPool> {
    pools_named(document, &lists_of_pod(document, spec))
}

fn pools_named(document: &Document, lists: &[List]) -> Vec<AskedPool> {
    let mut asked = Vec::new();
    for written in lists.iter().flat_map(|list| &list.written) {
        if written.entry.key == keys::NODE_POOL && written.entry.operator == Operator::In {
            let names = written.entry.values.iter().enumerate();
            asked.extend(names.map(|(index, name)| AskedPool {
                document: document.clone(),
                pointer: written.place(Some(index)),
                name: name.clone(),
            }));
        }
    }
    asked
}

fn has_image_for_one(document: &Document, spec: &str) -> bool {
    containers(document, spec).iter().any(|(_, it)| {
        it.get("image").and_then(Value::as_str).is_some_and(|it| architectures::of_container_image(it).is_some())
    })
}

fn may_select(budget: &Document, workload: &Workload) -> bool {
    selects(budget, workload).unwrap_or(true)
}

/// Whether a PodDisruptionBudget is for the pods of the workload. `None` where nobody can say, as an expression of it
/// is malformed.
fn selects(budget: &Document, workload: &Workload) -> Option<bool> {
    let Some(selector) = budget.value.pointer("/spec/selector").and_then(Value::as_object) else { return Some(false) };
    let has = |(key, value): (&String, &Value)| workload.labels.get(key).map(String::as_str) == value.as_str();
    if !selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten().all(has) {
        return Some(false);
    }
    let mut expressions = budget.items("/spec/selector/matchExpressions").map(|(_, expression)| expression);
    expressions.try_fold(true, |all, expression| Some(matches(expression, &workload.labels)? && all))
}

/// Whether the labels fit an expression of a selector, as Kubernetes holds one against the other. `None` for a
/// malformed expression.
fn matches(expression: &Value, labels: &BTreeMap<String, String>) -> Option<bool> {
    let value = labels.get(expression.get("key")?.as_str()?);
    let is_named = || {
        let values = expression.get("values").and_then(Value::as_array);
        value.is_some_and(|value| values.is_some_and(|values| values.iter().any(|it| it == value.as_str())))
    };
    match expression.get("operator")?.as_str()? {
        "In" => Some(is_named()),
        "NotIn" => Some(!is_named()),
        "Exists" => Some(value.is_some()),
        "DoesNotExist" => Some(value.is_none()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_select_as_kubernetes_does() {
        let labels: BTreeMap<String, String> = [("app".to_owned(), "web".to_owned())].into();
        for (expression, selects) in [
            (r#"{ "key": "app", "operator": "In", "values": ["api", "web"] }"#, Some(true)),
            (r#"{ "key": "app", "operator": "In", "values": ["api"] }"#, Some(false)),
            (r#"{ "key": "tier", "operator": "In", "values": ["web"] }"#, Some(false)),
            (r#"{ "key": "app", "operator": "NotIn", "values": ["web"] }"#, Some(false)),
            (r#"{ "key": "tier", "operator": "NotIn", "values": ["web"] }"#, Some(true)),
            (r#"{ "key": "app", "operator": "Exists" }"#, Some(true)),
            (r#"{ "key": "app", "operator": "DoesNotExist" }"#, Some(false)),
            (r#"{ "key": "app", "operator": "Like", "values": ["w*"] }"#, None),
            (r#"{ "operator": "Exists" }"#, None),
        ] {
            assert_eq!(matches(&serde_json::from_str(expression).unwrap(), &labels), selects, "{expression}");
        }
    }
}
