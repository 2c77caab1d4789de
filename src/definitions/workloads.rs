//! Workloads beside the definitions, with what says how many pods they have and how many may be away: kept while files are read, for the
//! rules that hold them against NodePools and PodDisruptionBudgets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document::Document;

/// Where objects are applied together: the kustomization that builds them, or nothing; and their namespace.
type Place = (String, String);

/// Of a place with more pairs of a workload and a PodDisruptionBudget nothing is said: to hold each against each would take too long.
const PAIRS_MAX: usize = 1_000_000;

#[derive(Debug, Default)]
pub struct Workloads(BTreeMap<Place, OfPlace>);

/// What is applied together.
#[derive(Debug, Default)]
pub struct OfPlace {
    workloads: Vec<Workload>,
    budgets: Vec<Document>,
    /// Kind and name of what somebody else scales.
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
    /// Keeps the object if it is one of them. `built_by`: the path of the kustomization that built it.
    pub fn add(&mut self, document: &Document, built_by: &str) {
        let Some(kind) = document.str("/kind") else { return };
        let namespace = document.str("/metadata/namespace").filter(|it| !it.is_empty()).unwrap_or("default");
        let place = || (built_by.to_owned(), namespace.to_owned());
        match (document.group(), kind) {
            ("apps", "Deployment" | "StatefulSet") => {
                let Some(workload) = Workload::of(document) else { return };
                self.0.entry(place()).or_default().workloads.push(workload);
            }
            ("policy", "PodDisruptionBudget") => {
                self.0.entry(place()).or_default().budgets.push(document.clone());
            }
            ("autoscaling" | "keda.sh", "HorizontalPodAutoscaler" | "ScaledObject") => {
                let target = |field: &str| document.str(&format!("/spec/scaleTargetRef/{field}"));
                // KEDA's default.
                let kind = target("kind").unwrap_or("Deployment").to_owned();
                let Some(name) = target("name") else { return };
                self.0.entry(place()).or_default().scaled.insert((kind, name.to_owned()));
            }
            _ => {}
        }
    }

    pub fn places(&self) -> impl Iterator<Item = &OfPlace> {
        self.0.values().filter(|it| it.workloads.len().saturating_mul(it.budgets.len()) <= PAIRS_MAX)
    }
}

impl OfPlace {
    /// Those whose number of pods is what they say.
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

    /// Each PodDisruptionBudget with the workloads that it selects by labels alone. Nothing of one that selects by expressions, or something
    /// whose number of pods is not fixed.
    pub fn with_selected(&self) -> impl Iterator<Item = (&Document, Vec<&Workload>)> {
        let selected = |budget: &Document| -> Vec<&Workload> {
            if budget.items("/spec/selector/matchExpressions").next().is_some() {
                return Vec::new();
            }
            let selected: Vec<&Workload> = self.workloads.iter().filter(|it| may_select(budget, it)).collect();
            if selected.iter().any(|it| self.is_scaled(it)) { Vec::new() } else { selected }
        };
        self.budgets.iter().map(move |budget| (budget, selected(budget)))
    }
}

/// What expressions say is not looked at.
fn may_select(budget: &Document, workload: &Workload) -> bool {
    let has = |(key, value): (&String, &Value)| workload.labels.get(key).map(String::as_str) == value.as_str();
    let Some(selector) = budget.value.pointer("/spec/selector").and_then(Value::as_object) else { return false };
    selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten().all(has)
}
