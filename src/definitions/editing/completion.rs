//! What can be written at a place: fields by the schema of the kind, and values by the schema, the catalog and what is defined.

use serde_json::Value;

use super::fields::{self, Field};
use super::place::{EditPlace, Role};
use super::values;
use crate::definitions::fixes;
use crate::definitions::kinds::Kind;
use crate::definitions::rules::limits::KNOWN as LIMITED;

/// What is known beside the text.
#[derive(Clone, Copy, Debug)]
pub struct CompletionContext<'k> {
    pub file_name: &'k str,
    pub region: &'k str,
    /// Names of the EC2NodeClasses that are defined.
    pub node_classes: &'k [String],
}

#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub label: String,
    /// What is written for the word that is typed.
    pub text: String,
    pub what: What,
    pub field: Option<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Field,
    /// The key of a label.
    Label,
    Value,
    /// The name of an object that is defined.
    Object,
}

/// Candidates for a place, and whether there are more than are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidates {
    pub candidates: Vec<Candidate>,
    pub has_more: bool,
}

/// So many are given. There are some 1,400 instance types, and nobody reads them.
const GIVEN_MAX: usize = 200;

/// Where requirements are lists of `key`, `operator` and `values`.
const REQUIREMENTS: &str = "requirements";

/// What can be written at the place, best first. What the word is no part of is left out.
pub fn candidates(place: &EditPlace, context: &CompletionContext<'_>) -> Candidates {
    let kind = fields::kind_of(place.of_root("apiVersion"), place.of_root("kind"), context.file_name);
    let may_become = place.role == Role::Value && place.begins_line;
    let becomes_mapping = may_become && (place.path.is_empty() || is_mapping(kind, place));
    let mut all =
        if place.role == Role::Key || becomes_mapping { names(kind, place) } else { values_at(kind, place, context) };
    let word = place.word.to_lowercase();
    all.retain(|it| it.label.to_lowercase().contains(&word));
    let has_more = all.len() > GIVEN_MAX;
    // What begins with the word comes first, so that cutting the list off leaves it.
    all.sort_by_key(|it| !it.label.to_lowercase().starts_with(&word));
    all.truncate(GIVEN_MAX);
    Candidates { candidates: all, has_more }
}

fn is_mapping(kind: Option<Kind>, place: &EditPlace) -> bool {
    kind.is_some_and(|kind| fields::is_mapping(kind, &place.path)) || !free_names(kind, place).is_empty()
}

/// Names of members of a mapping that may have any.
fn free_names(kind: Option<Kind>, place: &EditPlace) -> Vec<String> {
    match place.path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["spec", "template", "metadata", "labels"] if kind == Some(Kind::NodePool) => values::labels(),
        ["spec", "limits"] if kind == Some(Kind::NodePool) => LIMITED.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    }
}

/// Names of members that are not there yet.
fn names(kind: Option<Kind>, place: &EditPlace) -> Vec<Candidate> {
    let is_there = |name: &str| place.siblings().is_some_and(|siblings| siblings.contains_key(name));
    let mut found = match kind {
        Some(kind) => fields::members(kind, &place.path),
        None if place.path.is_empty() => {
            ["apiVersion", "kind", "metadata", "spec"].map(|name| (name, Field::default())).to_vec()
        }
        None => Vec::new(),
    };
    found.retain(|(name, _)| !is_there(name));
    found.sort_by_key(|(_, field)| !field.is_required);
    let of_field = |(name, field): (&str, Field)| {
        let has_members = field.type_name.starts_with("mapping") || field.type_name.starts_with("list");
        let behind = match (place.has_colon || place.quote.is_some(), has_members) {
            (true, _) => "",
            (false, true) => ":",
            (false, false) => ": ",
        };
        Candidate { label: name.to_owned(), text: format!("{name}{behind}"), what: What::Field, field: Some(field) }
    };
    let mut candidates: Vec<Candidate> = found.into_iter().map(of_field).collect();
    let free = free_names(kind, place);
    let behind = if place.has_colon || place.quote.is_some() { "" } else { ": " };
    candidates.extend(free.into_iter().filter(|name| !is_there(name)).map(|name| Candidate {
        text: format!("{name}{behind}"),
        label: name,
        what: What::Label,
        field: None,
    }));
    candidates
}

fn values_at(kind: Option<Kind>, place: &EditPlace, context: &CompletionContext<'_>) -> Vec<Candidate> {
    let path: Vec<&str> = place.path.iter().map(String::as_str).collect();
    let candidate = |label: &str, what, is_in_list: bool| {
        let text = if place.quote.is_some() { label.to_owned() } else { fixes::in_yaml(label) };
        let text = if is_in_list { format!("[{text}]") } else { text };
        Candidate { label: label.to_owned(), text, what, field: None }
    };
    let of = |labels: &[&str], what| labels.iter().map(|label| candidate(label, what, false)).collect();
    match path.as_slice() {
        ["kind"] => return of(&kinds(place), What::Value),
        ["apiVersion"] => return of(&versions(place), What::Value),
        [.., REQUIREMENTS, _, "key"] => {
            return values::labels().iter().map(|label| candidate(label, What::Label, false)).collect();
        }
        [.., REQUIREMENTS, _, "values"] => {
            let key = place.around(0).and_then(|members| members.get("key"));
            return of_key(key, context).into_iter().map(|value| candidate(value, What::Value, true)).collect();
        }
        [.., REQUIREMENTS, _, "values", _] => {
            let key = place.around(1).and_then(|members| members.get("key"));
            return of(&of_key(key, context), What::Value);
        }
        ["spec", "template", "metadata", "labels", key] => {
            return of(&values::of_label(key, context.region), What::Value);
        }
        [.., "nodeClassRef", "name"] => {
            return context.node_classes.iter().map(|name| candidate(name, What::Object, false)).collect();
        }
        [.., "nodeClassRef", "kind"] => return of(&[Kind::EC2NodeClass.name()], What::Value),
        [.., "nodeClassRef", "group"] => return of(&[group_of_classes()], What::Value),
        ["spec", "region"] if kind == Some(Kind::Settings) => return of(&values::regions(), What::Value),
        _ => {}
    }
    let Some(field) = kind.and_then(|kind| fields::at(kind, &place.path)) else { return Vec::new() };
    let mut written: Vec<String> = Vec::new();
    if field.type_name.contains("boolean") {
        written.extend(["true", "false"].map(str::to_owned));
    }
    for value in field.values.iter().copied().chain(field.default) {
        let text = match value {
            Value::String(text) if place.quote.is_some() => text.clone(),
            Value::String(text) => fixes::in_yaml(text),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => continue,
        };
        if !written.contains(&text) {
            written.push(text);
        }
    }
    let of_text = |text: String| {
        let label = text.trim_matches('"').to_owned();
        Candidate { label, text, what: What::Value, field: Some(field.clone()) }
    };
    written.into_iter().map(of_text).collect()
}

/// Values of the label that a requirement is about.
fn of_key(key: Option<&String>, context: &CompletionContext<'_>) -> Vec<&'static str> {
    key.map(|key| values::of_label(key, context.region)).unwrap_or_default()
}

fn group_of_classes() -> &'static str {
    Kind::EC2NodeClass.api_version().split('/').next().unwrap_or_default()
}

/// Kinds of the version that is written, or all.
fn kinds(place: &EditPlace) -> Vec<&'static str> {
    let version = place.of_root("apiVersion").filter(|it| !it.is_empty());
    let fits = |kind: &Kind| version.is_none_or(|version| kind.api_version() == version);
    Kind::ALL.into_iter().filter(fits).map(Kind::name).collect()
}

/// Versions of the kind that is written, or all.
fn versions(place: &EditPlace) -> Vec<&'static str> {
    let kind = place.of_root("kind").filter(|it| !it.is_empty());
    let fits = |it: &Kind| kind.is_none_or(|kind| it.name() == kind);
    let mut versions: Vec<&str> = Kind::ALL.into_iter().filter(fits).map(Kind::api_version).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

#[cfg(test)]
mod tests {
    use super::super::place::Extent;
    use super::*;

    /// Labels of the candidates at `|`.
    fn labels(text: &str) -> Vec<String> {
        candidates_at(text).candidates.into_iter().map(|it| it.label).collect()
    }

    fn candidates_at(text: &str) -> Candidates {
        let offset = text.find('|').unwrap();
        let place = EditPlace::at(&text.replacen('|', "", 1), offset, Extent::ToPlace).unwrap();
        let classes = ["default".to_owned(), "gpu".to_owned()];
        let context = CompletionContext { file_name: "a.yaml", region: "eu-west-1", node_classes: &classes };
        candidates(&place, &context)
    }

    const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\n";

    fn in_pool(text: &str) -> Vec<String> {
        labels(&format!("{POOL}{text}"))
    }

    #[test]
    fn fields_are_those_that_are_not_there_yet() {
        let found = in_pool("spec:\n  weight: 1\n  |\n  limits:\n    cpu: 1\n");
        assert!(found.contains(&"template".to_owned()) && found.contains(&"disruption".to_owned()), "{found:?}");
        assert!(!found.contains(&"weight".to_owned()) && !found.contains(&"limits".to_owned()), "{found:?}");
        assert_eq!(in_pool("spec:\n  templ|"), ["template"]);
        assert_eq!(in_pool("spec:\n  nonsense:\n    |"), Vec::<String>::new());
        assert_eq!(in_pool("spec: |"), Vec::<String>::new(), "no key stands behind a key");
        for limits in ["spec:\n  limits:\n    |", "spec:\n  limits:\n    cpu: 1\n    |"] {
            let found = in_pool(limits);
            assert!(found.contains(&"nvidia.com/gpu".to_owned()) && found.contains(&"memory".to_owned()), "{found:?}");
            assert_eq!(found.contains(&"cpu".to_owned()), !limits.contains("cpu"), "{found:?}");
        }
        assert_eq!(labels("|"), ["apiVersion", "kind", "metadata", "spec"]);
    }

    #[test]
    fn what_is_written_fits_the_field() {
        let texts = |text: &str| -> Vec<String> {
            candidates_at(&format!("{POOL}{text}")).candidates.into_iter().map(|it| it.text).collect()
        };
        assert_eq!(texts("spec:\n  templ|"), ["template:"]);
        assert_eq!(texts("spec:\n  weig|"), ["weight: "]);
        assert_eq!(texts("spec:\n  weig|ht: 3"), ["weight"]);
        let generations = "spec:\n  template:\n    spec:\n      requirements:\n      - key: karpenter.k8s.aws/instance-generation\n        values: ";
        assert!(texts(&format!("{generations}[|")).contains(&"\"7\"".to_owned()));
        assert!(texts(&format!("{generations}[\"|")).contains(&"7".to_owned()));
        assert!(texts(&format!("{generations}|")).contains(&"[\"7\"]".to_owned()));
    }

    #[test]
    fn values_come_from_schema_catalog_and_definitions() {
        let of_template = |text: &str| in_pool(&format!("spec:\n  template:\n    spec:\n{text}"));
        let requirement = |text: &str| of_template(&format!("      requirements:\n      - {text}"));
        assert!(requirement("{key: a, operator: |").contains(&"NotIn".to_owned()));
        assert!(requirement("key: instance-fam|").contains(&"karpenter.k8s.aws/instance-family".to_owned()));
        let key = "key: topology.kubernetes.io/zone\n        operator: In\n        values: [|";
        assert_eq!(requirement(key), ["eu-west-1a", "eu-west-1b", "eu-west-1c"]);
        let below = "operator: In\n        values: [|]\n        key: kubernetes.io/arch";
        assert_eq!(requirement(below), Vec::<String>::new(), "inside brackets what is below is not looked at");
        let list = "key: kubernetes.io/arch\n        values:\n        - |";
        assert_eq!(requirement(list), ["amd64", "arm64"]);
        assert_eq!(of_template("      nodeClassRef:\n        name: |"), ["default", "gpu"]);
        assert_eq!(of_template("      nodeClassRef:\n        kind: |"), ["EC2NodeClass"]);
        assert!(in_pool("spec:\n  disruption:\n    consolidationPolicy: When|").contains(&"WhenEmpty".to_owned()));
        assert!(labels("apiVersion: karpenter.sh/v1\nkind: |").contains(&"NodePool".to_owned()));
        assert_eq!(labels("kind: NodeOverlay\napiVersion: |"), ["karpenter.sh/v1alpha1"]);
    }

    #[test]
    fn a_long_list_is_cut_off_and_says_so() {
        let text = "spec:\n  template:\n    spec:\n      requirements:\n      - key: node.kubernetes.io/instance-type\n        values: [|";
        let all = candidates_at(&format!("{POOL}{text}"));
        assert!(all.has_more && all.candidates.len() == GIVEN_MAX);
        let some = candidates_at(&format!("{POOL}{}", text.replace('|', "m7i.2|")));
        assert!(!some.has_more && some.candidates.iter().any(|it| it.label == "m7i.2xlarge"));
    }
}
