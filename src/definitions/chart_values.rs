//! Values of charts that make pools and classes of their own forms of these, told to Flux or Argo CD: they say no kind, and are in no plan.

use std::sync::Arc;

use serde_json::Value;

use super::argo;
use super::document::{self, Document, spans};

/// Names under which charts have them, in small letters.
const NAMES: [&str; 7] =
    ["ec2nodeclass", "ec2nodeclasses", "nodeclass", "nodeclasses", "nodepool", "nodepools", "provisioners"];
/// Every group of Karpenter begins so.
const GROUPS: &str = "karpenter.";
/// Fields that no other kind of pool has.
const FIELDS: [&str; 8] = [
    "amiFamily",
    "amiSelectorTerms",
    "consolidateAfter",
    "consolidationPolicy",
    "expireAfter",
    "nodeClassRef",
    "securityGroupSelectorTerms",
    "subnetSelectorTerms",
];

/// Where Flux and Argo CD have the values of a chart.
pub fn places(document: &Document) -> Vec<String> {
    match document.str("/kind") {
        Some("HelmRelease") => vec!["/spec/values".to_owned()],
        _ if argo::is_application(document) => {
            let of_source = |source: String| ["values", "valuesObject"].map(|field| format!("{source}/helm/{field}"));
            argo::sources_of(document).into_iter().flat_map(of_source).collect()
        }
        _ => Vec::new(),
    }
}

/// The first of them, by its place or that of the text that it stands in, and its name.
pub fn of(document: &Document) -> Option<(String, String)> {
    places(document).into_iter().find_map(|place| match document.value.pointer(&place)? {
        Value::String(text) => {
            let parsed = document::parse(0, &Arc::from(text.as_str()));
            let found = parsed.documents.iter().find_map(|it| named(&it.value, ""));
            found.map(|(_, name)| (place, name))
        }
        value => named(value, &place),
    })
}

fn named(root: &Value, place: &str) -> Option<(String, String)> {
    let mut next = vec![(place.to_owned(), root)];
    let mut found = Vec::new();
    while let Some((pointer, value)) = next.pop() {
        for (name, member) in value.as_object().into_iter().flatten() {
            let at = spans::join(&pointer, name);
            match NAMES.contains(&name.to_lowercase().as_str()) && is_of_karpenter(member) {
                true => found.push((at, name.clone())),
                false => next.push((at, member)),
            }
        }
    }
    found.into_iter().min()
}

fn is_of_karpenter(value: &Value) -> bool {
    let mut next = vec![value];
    while let Some(value) = next.pop() {
        match value {
            Value::Array(items) => next.extend(items),
            Value::Object(members) => {
                let is_ours = |name: &String| FIELDS.contains(&name.as_str()) || name.starts_with(GROUPS);
                if members.keys().any(is_ours) {
                    return true;
                }
                next.extend(members.values());
            }
            Value::String(text) if text.starts_with(GROUPS) => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::{GivenVariables, lint};

    const POOLS: &str = "nodePools: { general: { nodeClassRef: { name: default } } }";

    fn said(text: &str) -> Vec<String> {
        let found = lint(&[SourceFile::new("a.yaml", text)], &GivenVariables::default()).diagnostics.into_iter();
        found
            .map(|it| format!("{}:{}: {} ({})", it.code, it.span.line, it.message, it.hint.unwrap_or_default()))
            .collect()
    }

    fn release(values: &str) -> String {
        format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{ name: pools }}\nspec:\n  values: {{ {values} }}\n"
        )
    }

    fn application(helm: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{ name: pools }}\nspec:\n  source:\n    chart: pools\n    helm: {{ {helm} }}\n"
        )
    }

    #[test]
    fn what_a_chart_makes_is_said_once() {
        let classes = "ec2NodeClasses: [{ amiFamily: AL2023 }]";
        for (text, kind, name, line) in [
            (release(POOLS), "HelmRelease", "nodePools", 5),
            (release(&format!("karpenter: {{ {POOLS} }}, other: 1")), "HelmRelease", "nodePools", 5),
            (release(&format!("{POOLS}, {classes}")), "HelmRelease", "ec2NodeClasses", 5),
            (application(&format!("valuesObject: {{ {POOLS} }}")), "Application", "nodePools", 7),
            (application(&format!("values: '{POOLS}'")), "Application", "nodePools", 7),
        ] {
            let message = format!("what a chart makes of the `{name}` in this {kind} is not read, and in no plan");
            let hint = "lint what the chart renders: helm template CHART --values FILE | cutlist lint -";
            assert_eq!(said(&text), [format!("CL0014:{line}: {message} ({hint})")], "{text}");
        }
    }

    #[test]
    fn pools_of_others_are_none() {
        for values in ["nodePools: [{ machineType: n2-standard-4 }]", "nodePools: {}", "replicas: 1"] {
            assert_eq!(said(&release(values)), [""; 0], "{values}");
            assert_eq!(said(&application(&format!("valuesObject: {{ {values} }}"))), [""; 0], "{values}");
        }
    }
}
