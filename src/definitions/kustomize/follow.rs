//! Names of objects in other objects. They follow a prefix, a suffix or another name only where a configuration says which field holds one:
//! `kustomize build` knows some fields of Kubernetes' own kinds, and none of Karpenter's and ours.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::builder::{BUILD_HINT, Builder};
use super::layout::Target;
use super::{Item, transform};
use crate::api::kustomization::Purpose;
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::rules::kustomize as rules;

/// Sections of a configuration that may say more of our kinds, and are not carried out.
const NOT_CARRIED_OUT: [&str; 7] =
    ["namePrefix", "nameSuffix", "namespace", "commonLabels", "labels", "templateLabels", "commonAnnotations"];

/// Done once, when all is built: what each kustomization on the way says of references holds for all objects.
pub(super) fn apply(builder: &mut Builder<'_>, tops: &[usize], items: &mut [Item]) {
    for document in configurations(builder, tops) {
        builder.findings.extend(not_carried_out(document));
        for (_, entry) in document.items("/nameReference") {
            for field in entry.get("fieldSpecs").and_then(Value::as_array).into_iter().flatten() {
                builder.findings.extend(follow(entry, field, items));
            }
        }
    }
}

/// Those of the kustomizations, and of all that they take from.
fn configurations<'b>(builder: &mut Builder<'b>, tops: &[usize]) -> Vec<&'b Document> {
    let (layout, parsed) = (builder.layout, builder.parsed);
    let mut files = BTreeSet::new();
    for kustomization in layout.below(tops) {
        let named = layout.references(kustomization).into_iter();
        let of_configurations = named.filter(|(reference, _)| reference.purpose == Purpose::Configuration);
        files.extend(of_configurations.filter_map(|(_, target)| match target {
            Target::File(file) => Some(file),
            _ => None,
        }));
    }
    builder.used.extend(&files);
    files.into_iter().filter_map(|file| parsed.get(file)).flat_map(|parsed| &parsed.documents).collect()
}

fn not_carried_out(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for section in NOT_CARRIED_OUT {
        for (pointer, field) in document.items(&format!("/{section}")) {
            let kind = field.get("kind").and_then(Value::as_str).unwrap_or_default();
            if Kind::ALL.iter().any(|ours| ours.name() == kind) {
                let message = format!("what a configuration says of `{section}` of a {kind} is not carried out");
                let finding = Finding::at(&rules::NOT_CARRIED_OUT, document, &pointer, FindingPlace::Key, message);
                findings.push(finding.hint(BUILD_HINT));
            }
        }
    }
    findings
}

/// Puts the names that objects have now where `field` holds one that they had before. `entry` says which objects.
fn follow(entry: &Value, field: &Value, items: &mut [Item]) -> Vec<Finding> {
    let path = field.get("path").and_then(Value::as_str).unwrap_or_default();
    let parts: Vec<String> = parts_of(path);
    let mut renamed: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
    for item in items.iter().filter(|item| transform::is_of(item, entry)) {
        for earlier in item.history.earlier.iter().filter(|earlier| earlier.name != item.name()) {
            renamed.entry(&earlier.name).or_default().push(item);
        }
    }
    let (mut changes, mut findings) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate().filter(|(_, item)| transform::is_of(item, field)) {
        let mut found = Vec::new();
        if !renamed.is_empty() {
            names_at(&item.document.value, String::new(), &parts, &mut found);
        }
        for (pointer, name) in found {
            match renamed.get(name).map_or(Ok(None), |candidates| meant(item, candidates)) {
                Ok(Some(now)) => changes.push((index, pointer, now.to_owned())),
                Ok(None) => {}
                Err((one, other)) => {
                    let message = format!("`{name}` may be `{one}` or `{other}`, and kustomize builds nothing then");
                    let finding = Finding::at(&rules::INVALID, &item.document, &pointer, FindingPlace::Value, message);
                    findings.push(finding.hint("give the objects different names before they are renamed"));
                }
            }
        }
    }
    for (index, pointer, now) in changes {
        if let Some(name) = items.get_mut(index).and_then(|item| item.document.value.pointer_mut(&pointer)) {
            *name = Value::String(now);
        }
    }
    findings
}

/// Parts of a path, in which `\/` is a slash. Lists are passed through unsaid, or by `[]`.
fn parts_of(path: &str) -> Vec<String> {
    const SLASH: char = '\u{0}';
    let escaped = path.replace("\\/", &SLASH.to_string());
    let parts = escaped.split('/').filter(|part| !part.is_empty());
    parts.map(|part| part.trim_end_matches("[]").replace(SLASH, "/")).collect()
}

/// The texts at a path, each with its pointer. A mapping there holds the text in `name`.
fn names_at<'v>(value: &'v Value, pointer: String, parts: &[String], found: &mut Vec<(String, &'v str)>) {
    match (value, parts) {
        (Value::Array(items), _) => {
            for (index, item) in items.iter().enumerate() {
                names_at(item, format!("{pointer}/{index}"), parts, found);
            }
        }
        (Value::Object(members), [part, rest @ ..]) => {
            if let Some(member) = members.get(part) {
                names_at(member, spans::join(&pointer, part), rest, found);
            }
        }
        (Value::Object(members), []) => {
            let name = members.get("name").and_then(Value::as_str);
            found.extend(name.map(|name| (format!("{pointer}/name"), name)));
        }
        (Value::String(name), []) => found.push((pointer, name)),
        _ => {}
    }
}

/// The name that the meant one of the objects has now. `Err`: two of them may be meant.
fn meant<'i>(referrer: &Item, candidates: &[&'i Item]) -> Result<Option<&'i str>, (&'i str, &'i str)> {
    let beside = |item: &&Item| item.namespace() == referrer.namespace();
    let mut left: Vec<&Item> = candidates.iter().copied().filter(beside).collect();
    for may_be_empty in [true, false] {
        if left.len() > 1 {
            left.retain(|item| item.history.is_of_one_build(&referrer.history, may_be_empty));
        }
    }
    let Some((first, others)) = left.split_first() else { return Ok(None) };
    match others.iter().find(|other| other.name() != first.name()) {
        Some(other) => Err((first.name(), other.name())),
        None => Ok(Some(first.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::source::SourceFile;
    use crate::definitions::diagnostic::Diagnostic;
    use crate::definitions::{GivenVariables, lint};

    const ALL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: general }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: std }
      requirements: [{ key: kubernetes.io/arch, operator: In, values: [amd64] }]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: std }
spec:
  role: node
  amiSelectorTerms: [{ alias: al2023@v20250920 }]
  subnetSelectorTerms: [{ tags: { karpenter.sh/discovery: demo } }]
  securityGroupSelectorTerms: [{ tags: { karpenter.sh/discovery: demo } }]
";
    const REFERENCES: &str = "nameReference:
- { kind: EC2NodeClass, fieldSpecs: [{ kind: NodePool, path: spec/template/spec/nodeClassRef/name }] }
";

    /// What is said with severity warning or more of a base with these kustomizations over it.
    fn linted(files: &[(&str, &str)]) -> Vec<Diagnostic> {
        let base = [("base/all.yaml", ALL), ("base/kustomization.yaml", "resources: [all.yaml]\n")];
        let files: Vec<SourceFile> =
            base.iter().chain(files).map(|(path, text)| SourceFile::new(*path, *text)).collect();
        let definitions = lint(&files, &GivenVariables::default());
        let is_said = |it: &Diagnostic| it.severity != crate::definitions::diagnostic::Severity::Note;
        definitions.diagnostics.into_iter().filter(is_said).collect()
    }

    #[test]
    fn a_name_follows_only_where_a_configuration_says_so() {
        let found = linted(&[("prod/kustomization.yaml", "resources: [../base]\nnamePrefix: prod-\n")]);
        let [missing] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((missing.code.as_str(), missing.file.as_str(), missing.span.line), ("CL0601", "base/all.yaml", 7));
        assert!(missing.hint.as_deref().is_some_and(|hint| hint.contains("nameReference")), "{missing:?}");
        let following = "resources: [../base]\nnamePrefix: prod-\nconfigurations: [references.yaml]\n";
        let files = [("prod/kustomization.yaml", following), ("prod/references.yaml", REFERENCES)];
        assert_eq!(linted(&files), Vec::new());
        // One that a base names holds for what is around it.
        let base = "resources: [../base]\nconfigurations: [references.yaml]\n";
        let around = ("around/kustomization.yaml", "resources: [../prod]\nnameSuffix: \"-2\"\n");
        let files = [("prod/kustomization.yaml", base), ("prod/references.yaml", REFERENCES), around];
        assert_eq!(linted(&files), Vec::new());
    }

    #[test]
    fn of_several_the_one_with_the_same_prefix_is_meant() {
        let one = ("one/kustomization.yaml", "resources: [../base]\nnamePrefix: one-\n");
        let two = ("two/kustomization.yaml", "resources: [../base]\nnamePrefix: two-\n");
        let all = ("all/kustomization.yaml", "resources: [../one, ../two]\nconfigurations: [references.yaml]\n");
        assert_eq!(linted(&[one, two, all, ("all/references.yaml", REFERENCES)]), Vec::new());
    }

    #[test]
    fn what_a_configuration_says_beyond_references_is_named() {
        let kustomization = "resources: [../base]\ncommonLabels: { a: b }\nconfigurations: [labels.yaml]\n";
        let labels = "commonLabels:\n- { kind: NodePool, path: spec/template/metadata/labels, create: true }\n";
        let found = linted(&[("prod/kustomization.yaml", kustomization), ("prod/labels.yaml", labels)]);
        let [named] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((named.code.as_str(), named.file.as_str(), named.span.line), ("CL0016", "prod/labels.yaml", 2));
    }

    #[test]
    fn finds_names_in_lists_and_mappings() {
        let value = serde_json::json!({ "a": [{ "b": { "name": "x" } }, { "b": ["y"] }], "c/d": "z" });
        let at = |path: &str| {
            let mut found = Vec::new();
            names_at(&value, String::new(), &parts_of(path), &mut found);
            found
        };
        assert_eq!(at("a[]/b"), [("/a/0/b/name".to_owned(), "x"), ("/a/1/b/0".to_owned(), "y")]);
        assert_eq!(at("c\\/d"), [("/c~1d".to_owned(), "z")]);
        assert!(at("a/x").is_empty() && at("").is_empty());
    }
}
