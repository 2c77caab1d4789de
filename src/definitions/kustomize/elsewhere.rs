//! What a kustomization takes from where nothing is read, or makes with what is not carried out: objects come of it that nobody here knows.

use std::collections::BTreeSet;

use serde_json::Value;

use super::layout::{Layout, Target};
use crate::api::kustomization::Purpose;
use crate::definitions::findings::FindingPlace;

/// Fields that make objects, and are not carried out.
const MAKERS: [&str; 3] = ["generators", "helmCharts", "helmChartInflationGenerator"];

/// One place where it does so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    pub file: usize,
    /// From 1.
    pub line: usize,
    /// ``takes `git@example.com:pools.git` from elsewhere, which is not read``
    pub what: String,
}

/// Those of the kustomization, and of all that it takes from.
pub fn elsewhere(layout: &Layout<'_>, top: usize) -> Vec<Elsewhere> {
    let mut found = Vec::new();
    let (mut seen, mut next) = (BTreeSet::new(), vec![top]);
    while let Some(file) = next.pop() {
        let Some(document) = layout.document(file).filter(|_| seen.insert(file)) else { continue };
        for (reference, target) in layout.references(file) {
            match (reference.purpose, target) {
                (Purpose::Resource | Purpose::Component, Target::Remote) => {
                    let line = document.place(&reference.pointer, FindingPlace::Value).line;
                    let what = format!("takes `{}` from elsewhere, which is not read", reference.path);
                    found.push(Elsewhere { file, line, what });
                }
                (Purpose::Resource | Purpose::Component, Target::Kustomization(other)) => next.push(other),
                _ => {}
            }
        }
        for field in MAKERS {
            let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            if document.value.get(field).is_some_and(|value| !is_empty(value)) {
                let line = document.place(&format!("/{field}"), FindingPlace::Key).line;
                let what = format!("makes objects by `{field}`, which is not carried out");
                found.push(Elsewhere { file, line, what });
            }
        }
    }
    found
}
