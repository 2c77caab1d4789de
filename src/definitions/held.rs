//! Definitions within objects of other kinds: manifests among the values of a chart, in what a generator makes objects of, or in the text
//! of a ConfigMap. Another program makes objects of them, or nobody does, so they are in no plan.

use std::sync::Arc;

use serde_json::Value;

use super::chart_values;
use super::document::{self, Document, spans};
use super::findings::{Finding, FindingPlace};
use super::kinds::{Class, classify};
use super::rules::reading::TEMPLATE;
use crate::api::kustomization;

/// A definition in another object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Where it stands, or the text that it stands in.
    pub pointer: String,
    pub kind: &'static str,
    /// `None` where there is none, or a program puts another one in its place.
    pub name: Option<String>,
}

impl Held {
    /// ``NodePool `general` ``
    fn shown(&self) -> String {
        self.name.as_ref().map_or_else(|| self.kind.to_owned(), |name| format!("{} `{name}`", self.kind))
    }
}

/// What to do with values of charts.
const OF_CHART: &str = "lint what the chart renders: helm template CHART --values FILE | cutlist lint -";
/// Every group of Karpenter begins so.
const GROUPS: &str = "karpenter.";
/// Members that change or name an object that is elsewhere, and hold none.
const OF_OTHERS: [&str; 9] = [
    "annotations",
    "kustomize",
    "managedFields",
    "ownerReferences",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "postRenderers",
    "status",
];

/// The definitions in an object of another kind, in the order of their places.
pub fn of(document: &Document) -> Vec<Held> {
    let mut found = Vec::new();
    if document.group() != kustomization::GROUP && mentions(&document.value) {
        walk(&document.value, true, &mut found);
        found.sort_by(|one, other| one.pointer.cmp(&other.pointer));
    }
    found
}

/// The note about all of them, or about values of which a chart makes some.
pub fn finding(document: &Document) -> Option<Finding> {
    let held = of(document);
    let kind = document.str("/kind").unwrap_or_default();
    let Some(first) = held.first() else {
        let (pointer, name) = chart_values::of(document)?;
        let message = format!("what a chart makes of the `{name}` in this {kind} is not read, and in no plan");
        let finding = Finding::at(&TEMPLATE, document, &pointer, FindingPlace::Key, message);
        return Some(finding.hint(OF_CHART));
    };
    let what = match held.len() {
        1 => format!("{} in this {kind} is", first.shown()),
        count => format!("{} and {} more definitions in this {kind} are", first.shown(), count - 1),
    };
    let message = format!("{what} not read, and in no plan");
    let finding = Finding::at(&TEMPLATE, document, &first.pointer, FindingPlace::Value, message);
    let is_of_chart = chart_values::places(document).iter().any(|place| first.pointer.starts_with(place.as_str()));
    let of_others = "lint what another program makes of it, or define it in a document of its own";
    Some(finding.hint(if is_of_chart { OF_CHART } else { of_others }))
}

/// Most objects hold nothing, so this is asked before anything is noted of their places.
fn mentions(value: &Value) -> bool {
    let mut next = vec![value];
    while let Some(value) = next.pop() {
        match value {
            Value::String(text) if text.contains(GROUPS) => return true,
            Value::Array(items) => next.extend(items),
            Value::Object(members) => next.extend(members.values()),
            _ => {}
        }
    }
    false
}

fn walk(root: &Value, looks_into_texts: bool, found: &mut Vec<Held>) {
    let mut next = vec![(String::new(), root)];
    while let Some((pointer, value)) = next.pop() {
        match value {
            Value::Array(items) => {
                next.extend(items.iter().enumerate().map(|(index, item)| (format!("{pointer}/{index}"), item)));
            }
            Value::Object(members) => match kind_of(value) {
                Some(kind) if !pointer.is_empty() || !looks_into_texts => {
                    found.push(Held { pointer, kind, name: name_of(value) });
                }
                _ => {
                    let own = members.iter().filter(|(key, _)| !OF_OTHERS.contains(&key.as_str()));
                    next.extend(own.map(|(key, member)| (spans::join(&pointer, key), member)));
                }
            },
            Value::String(text) if looks_into_texts && text.contains(GROUPS) => {
                found.extend(in_text(text).into_iter().map(|held| Held { pointer: pointer.clone(), ..held }));
            }
            _ => {}
        }
    }
}

/// Karpenter's kind of a whole object. What only names one has no metadata.
fn kind_of(value: &Value) -> Option<&'static str> {
    if !value.get("metadata").is_some_and(Value::is_object) {
        return None;
    }
    match classify(value) {
        Class::Read(kind) if kind.group().starts_with(GROUPS) => Some(kind.name()),
        Class::Old(old) => Some(old.kind),
        _ => None,
    }
}

fn name_of(value: &Value) -> Option<String> {
    let name = value.pointer("/metadata/name")?.as_str()?;
    (!name.contains(['$', '{'])).then(|| name.to_owned())
}

/// Those of a text, be it manifests or values of a chart. What is no YAML before it is rendered is looked through line by line.
fn in_text(text: &str) -> Vec<Held> {
    let parsed = document::parse(0, &Arc::from(text));
    let mut found = Vec::new();
    for document in &parsed.documents {
        walk(&document.value, false, &mut found);
    }
    let line = |start: &str| {
        let mut lines = text.lines().map(|line| line.trim_start().trim_start_matches("- "));
        lines.find_map(|line| Some(line.strip_prefix(start)?.trim()))
    };
    if found.is_empty() && parsed.lacks_some() && line("apiVersion: karpenter.").is_some() {
        let kind = ["NodePool", "EC2NodeClass"].into_iter().find(|kind| line(&format!("kind: {kind}")) == Some(""));
        found.extend(kind.map(|kind| Held { pointer: String::new(), kind, name: None }));
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::{GivenVariables, lint};

    const POOL: &str = "{ apiVersion: karpenter.sh/v1, kind: NodePool, metadata: { name: general }, spec: {} }";

    fn object(kind: &str, rest: &str) -> String {
        format!("apiVersion: example.com/v1\nkind: {kind}\nmetadata: {{ name: pools }}\n{rest}\n")
    }

    fn said(text: &str) -> Vec<(usize, String)> {
        let found = lint(&[SourceFile::new("a.yaml", text)], &GivenVariables::default()).diagnostics.into_iter();
        found.filter(|it| it.code == "CL0014").map(|it| (it.span.line, it.message)).collect()
    }

    #[test]
    fn definitions_in_other_objects_are_named() {
        let text = "data:\n  pool.yaml: |\n    apiVersion: karpenter.sh/v1\n    kind: NodePool\n    metadata: { name: NAME }\n    spec: {}";
        let pool = "NodePool `general`";
        for (rest, expected) in [
            (format!("spec: {{ values: {{ resources: [{POOL}] }} }}"), pool),
            (format!("spec: {{ resources: [{{ id: p, template: {POOL} }}] }}"), pool),
            (format!("spec: {{ forProvider: {{ manifest: {POOL} }} }}"), pool),
            (format!("spec: {{ source: {{ helm: {{ values: 'resources: [{POOL}]' }} }} }}"), pool),
            (text.replace("NAME", "general"), pool),
            (text.replace("NAME", "'${name}'"), "NodePool"),
            (text.replace("NAME }", "{{ .Values.name }} }\n    {{- end }}"), "NodePool"),
        ] {
            let found = said(&object("Maker", &rest));
            let [(_, message)] = &found[..] else { panic!("{rest}: {found:?}") };
            assert_eq!(message, &format!("{expected} in this Maker is not read, and in no plan"), "{rest}");
        }
        let of_chart = |kind: &str, rest: &str| {
            let files = [SourceFile::new("a.yaml", format!("{kind}\nmetadata: {{ name: pools }}\n{rest}\n"))];
            let mut found = lint(&files, &GivenVariables::default()).diagnostics;
            found.pop().and_then(|it| it.hint).unwrap_or_default()
        };
        let flux = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease";
        assert_eq!(of_chart(flux, &format!("spec: {{ values: {{ extraObjects: [{POOL}] }} }}")), super::OF_CHART);
        let several = said(&object("Maker", &format!("spec:\n  all:\n  - {POOL}\n  - {POOL}\n  - {POOL}")));
        let message = "NodePool `general` and 2 more definitions in this Maker are not read, and in no plan";
        assert_eq!(several, [(6, message.to_owned())]);
    }

    #[test]
    fn what_only_names_a_definition_holds_none() {
        for rest in [
            "spec: { match: { apiVersion: karpenter.sh/v1, kind: NodePool, name: general } }".to_owned(),
            format!("spec: {{ patches: [{{ patch: '{POOL}' }}] }}"),
            "data: { exclusions: \"- apiGroups: [karpenter.sh]\\n  kinds: [NodePool]\" }".to_owned(),
            "data: { page: 'A NodePool of karpenter.sh has a template.' }".to_owned(),
            "data: { page: \"{{ x }}\\nkind: NodePool\\nof karpenter.sh\" }".to_owned(),
        ] {
            assert_eq!(said(&object("Maker", &rest)), [], "{rest}");
        }
    }
}
