//! Names, labels, annotations and namespaces that a kustomization gives to all its objects.

use serde_json::{Map, Value, json};

use super::Item;
use crate::definitions::document::{Document, Origin, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::{Class, Kind, classify};
use crate::definitions::rules::kustomize as rules;

/// Kinds whose names mean something to others, and stay.
const KEEP_THEIR_NAMES: [&str; 3] = ["CustomResourceDefinition", "Namespace", "APIService"];

fn kind_of(item: &Item) -> Option<Kind> {
    match classify(&item.document.value) {
        Class::Read(kind) => Some(kind),
        _ => None,
    }
}

/// Puts `namespace` into what lives in one. Of kinds that are not ours, those in none do not matter here. Those of ours that live in none are
/// known by it from now on.
pub(super) fn namespace(document: &Document, items: &mut [Item]) {
    let Some(namespace) = document.str("/namespace").filter(|namespace| !namespace.is_empty()) else { return };
    for item in items {
        let before = item.identity();
        if kind_of(item).is_none_or(Kind::is_namespaced) {
            set(item, "/metadata", "namespace", &json!(namespace), document.origin("/namespace"), true);
        } else {
            item.history.namespace = Some(namespace.to_owned());
        }
        item.remember(before);
    }
}

/// Prefix and suffix.
pub(super) fn names(document: &Document, items: &mut [Item]) {
    let text = |pointer| document.str(pointer).unwrap_or_default();
    let (prefix, suffix) = (text("/namePrefix"), text("/nameSuffix"));
    if prefix.is_empty() && suffix.is_empty() {
        return;
    }
    for item in items.iter_mut().filter(|item| !KEEP_THEIR_NAMES.contains(&item.kind()) && !item.name().is_empty()) {
        let before = item.identity();
        let new = format!("{prefix}{}{suffix}", before.name);
        if let Some(name) = item.document.value.pointer_mut("/metadata/name") {
            *name = json!(new);
        }
        item.remember(before);
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        item.history.prefixes.extend(given(prefix));
        item.history.suffixes.extend(given(suffix));
    }
}

/// `commonLabels` and `labels`; selectors and templates of workloads are no business of ours.
pub(super) fn labels(document: &Document, items: &mut [Item]) {
    give(document, "/commonLabels", "/metadata/labels", items, |_| true, true);
    for (entry, value) in document.items("/labels") {
        let pairs = format!("{entry}/pairs");
        give(document, &pairs, "/metadata/labels", items, |_| true, true);
        for field in value.get("fields").and_then(Value::as_array).into_iter().flatten() {
            let Some(path) = field.get("path").and_then(Value::as_str) else { continue };
            let pointer = format!("/{}", path.trim_matches('/'));
            let create = field.get("create") == Some(&Value::Bool(true));
            give(document, &pairs, &pointer, items, |item| is_of(item, field), create);
        }
    }
}

/// Kinds whose replicas a kustomization can set.
const REPLICATED: [&str; 4] = ["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"];

/// Whether a count may be text: Argo CD makes a number of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextCounts {
    Taken,
    Refused,
}

/// Sets the number of pods. Gives what is said of entries that are for nothing, with which kustomize builds nothing.
pub(super) fn replicas(document: &Document, items: &mut [Item], texts: TextCounts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (entry, value) in document.items("/replicas") {
        let Some(name) = value.get("name").and_then(Value::as_str) else { continue };
        let Some((count, pointer)) = count(&entry, value) else { continue };
        // Of a count that is text it was said that nothing is built.
        let is_text = value.get("count").is_some_and(Value::is_string);
        let mut is_for_nothing = texts == TextCounts::Taken || !is_text;
        for item in items.iter_mut().filter(|it| is_replicated(&it.document) && it.names().any(|own| own == name)) {
            is_for_nothing = false;
            set(item, "/spec", "replicas", &count, document.origin(&pointer), true);
        }
        if is_for_nothing {
            let message = format!("there is no {} `{name}` whose replicas could be set", REPLICATED.join(", "));
            let finding =
                Finding::at(&rules::INVALID, document, &format!("{entry}/name"), FindingPlace::Value, message);
            findings.push(finding.hint("remove the entry: the kustomization can not be built with it"));
        }
    }
    findings
}

/// Whether a kustomization can set its replicas.
pub fn is_replicated(document: &Document) -> bool {
    document.str("/kind").is_some_and(|kind| REPLICATED.contains(&kind))
}

/// The number in an entry, and where it stands. To kustomize no number is 0, and Argo CD takes it as text as well. Of a count that is
/// none it was said that nothing is built.
fn count(entry: &str, value: &Value) -> Option<(Value, String)> {
    let pointer = format!("{entry}/count");
    match value.get("count") {
        None => Some((json!(0), entry.to_owned())),
        Some(Value::Null) => Some((json!(0), pointer)),
        Some(Value::String(text)) => Some((json!(text.parse::<i64>().ok()?), pointer)),
        Some(count) => (count.is_i64() || count.is_u64()).then(|| (count.clone(), pointer)),
    }
}

/// Whether the object is of the kind that a field's specification is for.
pub(super) fn is_of(item: &Item, field: &Value) -> bool {
    let (group, version) = item.group_and_version();
    let fits = |name: &str, own: &str| {
        let wanted = field.get(name).and_then(Value::as_str).unwrap_or_default();
        wanted.is_empty() || wanted == own
    };
    fits("group", group) && fits("version", version) && fits("kind", item.kind())
}

pub(super) fn annotations(document: &Document, items: &mut [Item]) {
    give(document, "/commonAnnotations", "/metadata/annotations", items, |_| true, true);
}

/// Puts the pairs at `from` into the mapping at `to` of the objects.
fn give(document: &Document, from: &str, to: &str, items: &mut [Item], takes: impl Fn(&Item) -> bool, create: bool) {
    let pair = |(pointer, key, value): (String, &str, &Value)| {
        // Nothing is text without a character; of what is no text it was said that nothing is built.
        let value = if value.is_null() { json!("") } else { value.clone() };
        value.is_string().then(|| (pointer, key.to_owned(), value))
    };
    let pairs: Vec<(String, String, Value)> = document.members(from).filter_map(pair).collect();
    for item in items.iter_mut().filter(|item| takes(item)) {
        for (pointer, key, value) in &pairs {
            set(item, to, key, value, document.origin(pointer), create);
        }
    }
}

/// Writes a member of the mapping at `pointer`, which is made where `create` says so.
pub(super) fn set(item: &mut Item, pointer: &str, key: &str, value: &Value, origin: Origin, create: bool) {
    let mut map = &mut *item.document.value;
    for part in pointer.split('/').skip(1) {
        let Some(members) = map.as_object_mut() else { return };
        let part = spans::unescape(part);
        if !members.contains_key(&part) && !create {
            return;
        }
        let next = members.entry(part).or_insert_with(|| Value::Object(Map::new()));
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        map = next;
    }
    if let Some(members) = map.as_object_mut() {
        members.insert(key.to_owned(), value.clone());
        item.written(&spans::join(pointer, key), origin);
    }
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::{Diagnostic, GivenVariables, lint};

    const WEB: &str = "apiVersion: apps/v1
kind: KIND
metadata: { name: web }
spec:
  replicas: 1
  template: { metadata: { labels: { app: web } } }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: web }
spec: { minAvailable: 1, selector: { matchLabels: { app: web } } }
";

    fn found(kind: &str, base: &str, overlay: &str) -> Vec<Diagnostic> {
        let web = WEB.replace("KIND", kind);
        let base = format!("resources: [web.yaml]\n{base}\n");
        let overlay = format!("resources: [../base]\n{overlay}\n");
        let files =
            [("base/web.yaml", &web), ("base/kustomization.yaml", &base), ("overlay/kustomization.yaml", &overlay)];
        let files = files.map(|(path, text)| SourceFile::new(path, text.as_str()));
        lint(&files, &GivenVariables::default()).diagnostics
    }

    #[test]
    fn replicas_are_those_of_the_kustomization() {
        for (kind, base, overlay, expected) in [
            ("Deployment", "", "", &["CL0340"][..]),
            ("Deployment", "", "replicas: [{ name: web, count: 3 }]", &[]),
            ("StatefulSet", "namePrefix: a-", "replicas: [{ name: a-web, count: 3 }]", &[]),
            ("Deployment", "namePrefix: a-", "replicas: [{ name: web, count: 3 }]", &[]),
            ("Deployment", "replicas: [{ name: web, count: 3 }]", "replicas: [{ name: web, count: 1 }]", &["CL0340"]),
            // To kustomize no number is 0.
            ("Deployment", "", "replicas: [{ name: web }]", &[]),
            ("Deployment", "", "replicas: [{ name: other, count: 3 }]", &["CL0340", "CL0015"]),
        ] {
            let found = found(kind, base, overlay);
            let codes: Vec<&str> = found.iter().map(|it| it.code.as_str()).collect();
            assert_eq!(codes, expected, "{kind} {base} {overlay}: {found:?}");
        }
    }

    #[test]
    fn replicas_stand_where_they_are_set() {
        let found = found("Deployment", "replicas: [{ name: web, count: 3 }]", "replicas:\n- name: web\n  count: 1");
        let related = found.iter().flat_map(|it| &it.related).map(|it| (it.file.as_str(), it.span.line));
        assert_eq!(related.collect::<Vec<(&str, usize)>>(), [("overlay/kustomization.yaml", 4)], "{found:?}");
    }
}
