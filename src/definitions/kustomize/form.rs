//! The fields of a kustomization, and what may stand in each: kustomize decodes it strictly, and builds nothing of one that holds anything else.
//!
//! Source: `api/types` of kustomize 5.7. Go takes names of fields in any case; only a few people write them so.

use std::collections::BTreeMap;

use serde_json::Value;

use super::builder::BUILD_HINT;
use crate::api::kustomization::GROUP;
use crate::definitions::document::{Disagreement, Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::fixes::Instead;
use crate::definitions::rules::kustomize as rules;
use crate::definitions::suggest::{self, Hint};

/// What a field takes. Nothing (`null`) is taken everywhere, but for a [`Form::Path`].
#[derive(Debug)]
enum Form {
    Text,
    /// Text that names something: never empty.
    Path,
    /// A whole number.
    Count,
    Flag,
    Any,
    List(&'static Form),
    /// Members of any name.
    Map(&'static Form),
    Fields(Fields),
}

type Fields = &'static [(&'static str, &'static Form)];

const TEXTS: Form = Form::List(&Form::Text);
const PATHS: Form = Form::List(&Form::Path);
const PAIRS: Form = Form::Map(&Form::Text);

const SELECTOR: Fields = &[
    ("group", &Form::Text),
    ("version", &Form::Text),
    ("kind", &Form::Text),
    ("name", &Form::Text),
    ("namespace", &Form::Text),
    ("annotationSelector", &Form::Text),
    ("labelSelector", &Form::Text),
];
const PATCH: Form = Form::Fields(&[
    ("path", &Form::Text),
    ("patch", &Form::Text),
    ("target", &Form::Fields(SELECTOR)),
    ("options", &Form::Fields(&[("allowNameChange", &Form::Flag), ("allowKindChange", &Form::Flag)])),
]);
const LABEL: Form = Form::Fields(&[
    ("pairs", &PAIRS),
    ("includeSelectors", &Form::Flag),
    ("includeTemplates", &Form::Flag),
    (
        "fields",
        &Form::List(&Form::Fields(&[
            ("group", &Form::Text),
            ("version", &Form::Text),
            ("kind", &Form::Text),
            ("path", &Form::Text),
            ("create", &Form::Flag),
        ])),
    ),
]);
const IMAGE: Form = Form::Fields(&[
    ("name", &Form::Text),
    ("newName", &Form::Text),
    ("tagSuffix", &Form::Text),
    ("newTag", &Form::Text),
    ("digest", &Form::Text),
]);
const FIELD_OPTIONS: Form = Form::Fields(&[
    ("delimiter", &Form::Text),
    ("index", &Form::Count),
    ("encoding", &Form::Text),
    ("create", &Form::Flag),
]);
const REPLACEMENT: Form = Form::Fields(&[
    ("path", &Form::Text),
    ("sourceValue", &Form::Text),
    (
        "source",
        &Form::Fields(&[
            ("group", &Form::Text),
            ("version", &Form::Text),
            ("kind", &Form::Text),
            ("name", &Form::Text),
            ("namespace", &Form::Text),
            ("fieldPath", &Form::Text),
            ("options", &FIELD_OPTIONS),
        ]),
    ),
    (
        "targets",
        &Form::List(&Form::Fields(&[
            ("select", &Form::Fields(SELECTOR)),
            ("reject", &Form::List(&Form::Fields(SELECTOR))),
            ("fieldPaths", &TEXTS),
            ("options", &FIELD_OPTIONS),
        ])),
    ),
]);
const GENERATOR_OPTIONS: Form = Form::Fields(&[
    ("labels", &PAIRS),
    ("annotations", &PAIRS),
    ("disableNameSuffixHash", &Form::Flag),
    ("immutable", &Form::Flag),
]);
/// `type` is of Secrets alone, and `emitStringData` is newer than the rest.
const GENERATOR: Form = Form::Fields(&[
    ("namespace", &Form::Text),
    ("name", &Form::Text),
    ("behavior", &Form::Text),
    ("type", &Form::Text),
    ("literals", &TEXTS),
    ("files", &TEXTS),
    ("envs", &TEXTS),
    ("env", &Form::Text),
    ("emitStringData", &Form::Flag),
    ("options", &GENERATOR_OPTIONS),
]);
const METADATA: Form =
    Form::Fields(&[("name", &Form::Text), ("namespace", &Form::Text), ("labels", &PAIRS), ("annotations", &PAIRS)]);
const REPLICA: Form = Form::Fields(&[("name", &Form::Text), ("count", &Form::Count)]);
const SORTING: Form = Form::Fields(&[("order", &Form::Text), ("legacySortOptions", &Form::Any)]);

/// Fields that are carried out, change no object of ours, or are named in a finding ([`UNSUPPORTED`]).
const KUSTOMIZATION: Fields = &[
    ("apiVersion", &Form::Text),
    ("kind", &Form::Text),
    ("metadata", &METADATA),
    ("resources", &PATHS),
    ("bases", &PATHS),
    ("components", &PATHS),
    ("patches", &Form::List(&PATCH)),
    ("patchesStrategicMerge", &PATHS),
    ("patchesJson6902", &Form::List(&PATCH)),
    ("namePrefix", &Form::Text),
    ("nameSuffix", &Form::Text),
    ("namespace", &Form::Text),
    ("labels", &Form::List(&LABEL)),
    ("commonLabels", &PAIRS),
    ("commonAnnotations", &PAIRS),
    ("replacements", &Form::List(&REPLACEMENT)),
    ("configurations", &PATHS),
    ("configMapGenerator", &Form::List(&GENERATOR)),
    ("secretGenerator", &Form::List(&GENERATOR)),
    ("generatorOptions", &GENERATOR_OPTIONS),
    ("images", &Form::List(&IMAGE)),
    ("imageTags", &Form::List(&IMAGE)),
    ("replicas", &Form::List(&REPLICA)),
    ("validators", &PATHS),
    ("buildMetadata", &TEXTS),
    ("sortOptions", &SORTING),
    // Of kustomize before version 4.
    ("inventory", &Form::Any),
    ("helmGlobals", &Form::Fields(&[("chartHome", &Form::Text), ("configHome", &Form::Text)])),
    ("generators", &PATHS),
    ("transformers", &PATHS),
    ("helmCharts", &Form::List(&Form::Map(&Form::Any))),
    ("helmChartInflationGenerator", &Form::List(&Form::Map(&Form::Any))),
    ("vars", &Form::List(&Form::Map(&Form::Any))),
    ("openapi", &PAIRS),
    ("crds", &PATHS),
];
const UNSUPPORTED: [(&str, &str); 7] = [
    ("generators", "what generators make is not read"),
    ("transformers", "transformers are not carried out"),
    ("helmCharts", "Helm charts are not rendered"),
    ("helmChartInflationGenerator", "Helm charts are not rendered"),
    ("vars", "vars are left as they are written"),
    ("openapi", "merge keys of an OpenAPI schema are not used: a list in a patch takes the place of the whole list"),
    ("crds", "what the schemas of custom resources say of references is not used"),
];

/// What keeps kustomize from reading the document, and what of it is not carried out here.
pub(super) fn check(document: &Document) -> Vec<Finding> {
    let mut findings = not_carried_out(document);
    findings.extend(head(document));
    let mut walk = Walk::of(document);
    walk.fields("", KUSTOMIZATION);
    findings.append(&mut walk.findings);
    let is_empty = |(_, field, value): (String, &str, &Value)| {
        ["apiVersion", "kind"].contains(&field) || value.is_null() || value.as_str() == Some("")
    };
    if findings.is_empty() && document.members("").all(is_empty) {
        findings.push(Finding::at(&rules::INVALID, document, "", FindingPlace::Key, EMPTY).hint(EMPTY_HINT));
    }
    findings
}

/// The same of a document of replacements that a kustomization names.
pub(super) fn check_replacements(document: &Document) -> Vec<Finding> {
    let mut walk = Walk::of(document);
    match &*document.value {
        Value::Array(_) => walk.value("", &Form::List(&REPLACEMENT)),
        _ => walk.value("", &REPLACEMENT),
    }
    walk.findings
}

pub(super) const EMPTY: &str =
    "the kustomization is empty: kustomize builds nothing of it, and nothing of what names its folder";
pub(super) const EMPTY_HINT: &str = "name files under `resources`, write `resources: []`, or remove it";

fn not_carried_out(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (pointer, field, value) in document.members("") {
        let Some((_, what)) = UNSUPPORTED.iter().find(|(name, _)| *name == field) else { continue };
        let is_empty = value.as_array().is_some_and(Vec::is_empty) || value.is_null();
        if !is_empty {
            findings.push(
                Finding::at(&rules::NOT_CARRIED_OUT, document, &pointer, FindingPlace::Key, *what).hint(BUILD_HINT),
            );
        }
    }
    findings
}

/// The kind, and the version that goes with it.
fn head(document: &Document) -> Option<Finding> {
    let text = |pointer: &str| document.str(pointer).filter(|text| !text.is_empty());
    let kind = text("/kind").unwrap_or("Kustomization");
    let version = match kind {
        "Kustomization" => format!("{GROUP}/v1beta1"),
        "Component" => format!("{GROUP}/v1alpha1"),
        _ => {
            let message = format!("`kind` is \"{kind}\", and kustomize takes Kustomization and Component");
            let finding = Finding::at(&rules::INVALID, document, "/kind", FindingPlace::Value, message);
            let kinds = ["Kustomization", "Component"];
            let meant = kinds.into_iter().find(|known| known.eq_ignore_ascii_case(kind));
            let hint = meant.map(|meant| Hint::question(&[meant]));
            return Some(finding.maybe_hint(hint.or_else(|| suggest::did_you_mean(kind, kinds.into_iter()))));
        }
    };
    let written = text("/apiVersion").filter(|written| *written != version)?;
    let message = format!("`apiVersion` of a {kind} is \"{written}\", and kustomize takes {version}");
    Some(
        Finding::at(&rules::INVALID, document, "/apiVersion", FindingPlace::Value, message)
            .hint(format!("write {version}")),
    )
}

/// A document on the way through its fields.
struct Walk<'d> {
    document: &'d Document,
    /// Scalars that programs read differently, by pointer.
    ambiguous: BTreeMap<&'d str, Disagreement>,
    findings: Vec<Finding>,
}

impl<'d> Walk<'d> {
    fn of(document: &'d Document) -> Self {
        let ambiguous = document.ambiguous.iter().map(|(pointer, what)| (pointer.as_str(), *what)).collect();
        Self { document, ambiguous, findings: Vec::new() }
    }
}

impl Walk<'_> {
    fn fields(&mut self, pointer: &str, known: Fields) {
        let document = self.document;
        for (at, field, _) in document.members(pointer) {
            if let Some((_, form)) = known.iter().find(|(name, _)| *name == field) {
                self.value(&at, form);
            } else if let Some((name, _)) = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(field)) {
                let message = format!("kustomize reads `{field}` as `{name}`, and it is not carried out here");
                let finding = Finding::at(&rules::NOT_CARRIED_OUT, document, &at, FindingPlace::Key, message);
                self.findings.push(finding.hint(Hint::question(&[name])));
            } else {
                let place = match pointer {
                    "" => "a kustomization".to_owned(),
                    _ => format!("`{}`", spans::field_path(pointer)),
                };
                let message = format!("unknown field `{field}` in {place}");
                let hint = suggest::did_you_mean(field, known.iter().map(|(name, _)| *name));
                self.findings
                    .push(Finding::at(&rules::INVALID, document, &at, FindingPlace::Key, message).maybe_hint(hint));
            }
        }
    }

    fn value(&mut self, pointer: &str, form: &'static Form) {
        let document = self.document;
        let Some(found) = document.value.pointer(pointer) else { return };
        // kustomize reads YAML as kubectl does.
        let disagreement = self.ambiguous.get(pointer).copied();
        match (form, disagreement) {
            (Form::Text | Form::Path, Some(Disagreement::Text))
            | (Form::Flag, Some(Disagreement::Boolean(_)))
            | (Form::Count, Some(Disagreement::Octal(Some(_)) | Disagreement::Number(Some(_)))) => return,
            (Form::Text | Form::Path, Some(_)) => return self.findings.push(unquoted(document, pointer, found)),
            _ => {}
        }
        let wanted = match (form, found) {
            (Form::Path, Value::String(text)) if !text.trim().is_empty() => return,
            (Form::Path, Value::String(_) | Value::Null) => return self.findings.push(unnamed(document, pointer)),
            (_, Value::Null) | (Form::Any, _) | (Form::Text, Value::String(_)) | (Form::Flag, Value::Bool(_)) => return,
            (Form::Count, Value::Number(number)) if number.is_i64() || number.is_u64() => return,
            (Form::List(of), Value::Array(items)) => {
                return (0..items.len()).for_each(|index| self.value(&format!("{pointer}/{index}"), of));
            }
            (Form::Map(of), Value::Object(_)) => {
                return document.members(pointer).for_each(|(at, ..)| self.value(&at, of));
            }
            (Form::Fields(known), Value::Object(_)) => return self.fields(pointer, known),
            (Form::Text | Form::Path, _) => "text",
            (Form::Count, _) => "a whole number",
            (Form::Flag, _) => "true or false",
            (Form::List(_), _) => "a list",
            (Form::Map(_) | Form::Fields(_), _) => "a mapping",
        };
        self.findings.push(other_than(document, pointer, wanted, form, found));
    }
}

fn unnamed(document: &Document, pointer: &str) -> Finding {
    let message = format!("an entry of `{}` is empty", spans::field_path(spans::parent(pointer)));
    Finding::at(&rules::INVALID, document, pointer, FindingPlace::Value, message).hint("remove it")
}

/// `newTag`, or an entry of a list.
fn name_of(pointer: &str) -> String {
    let name = spans::last(pointer);
    let is_entry = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    match is_entry {
        true => format!("an entry of `{}`", spans::field_path(spans::parent(pointer))),
        false => format!("`{name}`"),
    }
}

/// What is said of a number or a boolean where text is wanted.
fn unquoted(document: &Document, pointer: &str, found: &Value) -> Finding {
    let as_found = || found.as_str().map_or_else(|| found.to_string(), str::to_owned);
    let written = document.written(pointer).unwrap_or_else(as_found);
    let message = format!("{} must be text, and `{written}` without quotes is none", name_of(pointer));
    let quoted = format!("\"{written}\"");
    let finding = Finding::at(&rules::INVALID, document, pointer, FindingPlace::Value, message);
    finding.hint(format!("quote it: {quoted}")).instead(Some(Instead::Yaml(quoted)))
}

/// What is said of a value of another type.
fn other_than(document: &Document, pointer: &str, wanted: &str, form: &Form, found: &Value) -> Finding {
    let message = format!("{} must be {wanted}", name_of(pointer));
    match found {
        Value::Number(_) | Value::Bool(_) if matches!(form, Form::Text | Form::Path) => {
            unquoted(document, pointer, found)
        }
        Value::String(text) if matches!(form, Form::Flag | Form::Count) => {
            let finding = Finding::at(&rules::INVALID, document, pointer, FindingPlace::Value, message);
            let is_meant = match form {
                Form::Flag => ["true", "false"].contains(&text.as_str()),
                _ => text.parse::<i64>().is_ok(),
            };
            match is_meant {
                true => {
                    finding.hint(format!("write it without quotes: {text}")).instead(Some(Instead::Yaml(text.clone())))
                }
                false => finding,
            }
        }
        Value::Array(_) | Value::Object(_) => {
            Finding::at(&rules::INVALID, document, pointer, FindingPlace::Key, message)
        }
        _ if matches!(form, Form::List(_)) => {
            Finding::at(&rules::INVALID, document, pointer, FindingPlace::Key, message)
        }
        _ => Finding::at(&rules::INVALID, document, pointer, FindingPlace::Value, message),
    }
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::{GivenVariables, lint};

    const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  weight: 1
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements: [{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }]
";

    /// Files and lines of what kustomize does not build, with the message.
    fn refused(files: &[(&str, &str)]) -> Vec<(String, usize, String)> {
        let pool = ("pool.yaml", POOL);
        let files = [&[pool][..], files].concat();
        let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
        let found = lint(&files, &GivenVariables::default()).diagnostics.into_iter();
        found.filter(|it| it.code == "CL0015").map(|it| (it.file, it.span.line, it.message)).collect()
    }

    /// As kustomize 5.5 says by itself: all of these it refuses.
    #[test]
    fn what_kustomize_does_not_decode_is_said_at_its_line() {
        for (rest, message) in [
            ("images: [{name: a, newTag: 1}]", "`newTag` must be text, and `1` without quotes is none"),
            ("images: [{name: a, newTag: 1.10}]", "`newTag` must be text, and `1.10` without quotes is none"),
            ("images: [{name: a, newTag: yes}]", "`newTag` must be text, and `yes` without quotes is none"),
            ("images: [{name: a, newTag: 012}]", "`newTag` must be text, and `012` without quotes is none"),
            ("images: [{name: a, newTag: 1_000}]", "`newTag` must be text, and `1_000` without quotes is none"),
            ("images: [{name: a, newTg: x}]", "unknown field `newTg` in `images[0]`"),
            ("images: {name: a}", "`images` must be a list"),
            ("namePrefix: 1", "`namePrefix` must be text, and `1` without quotes is none"),
            ("namespace: true", "`namespace` must be text, and `true` without quotes is none"),
            ("commonLabels: {a: 1}", "`a` must be text, and `1` without quotes is none"),
            ("commonAnnotations: {a: true}", "`a` must be text, and `true` without quotes is none"),
            ("labels: [{pairs: {a: 1}}]", "`a` must be text, and `1` without quotes is none"),
            ("labels: [{pairs: {a: b}, includeSelectors: \"true\"}]", "`includeSelectors` must be true or false"),
            ("labels: [{pair: {a: b}}]", "unknown field `pair` in `labels[0]`"),
            ("labels: [{pairs: {a: b}, fields: {path: x}}]", "`fields` must be a list"),
            ("labels: {a: b}", "`labels` must be a list"),
            ("metadata: {name: a, foo: b}", "unknown field `foo` in `metadata`"),
            ("replicas: [{name: a, count: \"3\"}]", "`count` must be a whole number"),
            ("replicas: [{name: a, count: 1.5}]", "`count` must be a whole number"),
            ("configMapGenerator: [{name: a, file: [x]}]", "unknown field `file` in `configMapGenerator[0]`"),
            ("configMapGenerator: [{name: a, literals: a=b}]", "`literals` must be a list"),
            ("generatorOptions: {immutable: \"true\"}", "`immutable` must be true or false"),
            ("buildMetadata: originAnnotations", "`buildMetadata` must be a list"),
            ("components: [\"\"]", "an entry of `components` is empty"),
            ("configurations: [missing.yaml]", "there is no `missing.yaml` that can be read"),
            (
                "apiVersion: kustomize.config.k8s.io/v1",
                "`apiVersion` of a Kustomization is \"kustomize.config.k8s.io/v1\", and kustomize takes kustomize.config.k8s.io/v1beta1",
            ),
            ("kind: kustomization", "`kind` is \"kustomization\", and kustomize takes Kustomization and Component"),
            (
                "patches: [{target: {nme: default}, patch: \"- {op: remove, path: /spec/weight}\"}]",
                "unknown field `nme` in `patches[0].target`",
            ),
            ("patches: [{target: {kind: NodePool}, patch: \"# nothing\"}]", "there is nothing in the patch"),
            ("patches: [{target: {kind: NodePool}, patch: \"[]\"}]", "there is nothing in the patch"),
            ("patches: [{path: comments.yaml}]", "there is nothing in the patch"),
            ("patchesStrategicMerge: [comments.yaml]", "there is nothing in the patch"),
        ] {
            let text = format!("resources: [pool.yaml]\n{rest}\n");
            let found = refused(&[("comments.yaml", "# nothing\n---\n"), ("kustomization.yaml", &text)]);
            assert_eq!(found, [("kustomization.yaml".to_owned(), 2, message.to_owned())], "{rest}");
        }
    }

    #[test]
    fn what_kustomize_decodes_is_no_mistake() {
        for rest in [
            "images: [{name: a, newTag: null}]",
            "images: [{name: a, newTag: 2026-01-01}, {name: b, newTag: 12:30}, {name: c, newTag: 1.2.3}]",
            "generatorOptions: {immutable: yes}",
            "labels: [{pairs: {a: null}, includeTemplates: true, fields: [{path: spec/x, create: true}]}]",
            "patches: []",
            "NamePrefix: a-",
            "metadata: {name: a}",
            "namespace: \"\"",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component",
            "configMapGenerator: [{name: a, literals: [a=b], options: {disableNameSuffixHash: true, labels: {a: b}}}]",
            "replacements: [{source: {kind: NodePool, fieldPath: spec.weight}, targets: [{select: {kind: NodePool}, fieldPaths: [spec.weight]}]}]",
        ] {
            let text = format!("resources: [pool.yaml]\n{rest}\n");
            assert_eq!(refused(&[("kustomization.yaml", &text)]), [], "{rest}");
        }
        assert_eq!(refused(&[("kustomization.yaml", "resources: []\n")]), []);
    }

    #[test]
    fn an_empty_kustomization_is_not_built() {
        for text in ["", "# later\n", "---\n", "kind: Kustomization\n", "resources:\n", "namePrefix: \"\"\n", "{}\n"] {
            for outer in [None, Some("resources: [base]\n")] {
                let mut files = vec![("base/kustomization.yaml", text)];
                files.extend(outer.map(|outer| ("kustomization.yaml", outer)));
                let found = refused(&files);
                let places: Vec<(&str, usize)> = found.iter().map(|(file, line, _)| (file.as_str(), *line)).collect();
                assert_eq!(places, [("base/kustomization.yaml", 1)], "{text:?}");
                assert!(
                    found.iter().all(|(.., message)| message.starts_with("the kustomization is empty")),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_object_can_not_be_a_resource() {
        let kustomization = ("kustomization.yaml", "resources: [pool.yaml, values.yaml, nothing.yaml]\n");
        let found = refused(&[kustomization, ("nothing.yaml", "# later\n---\n"), ("values.yaml", "\na: b\n")]);
        let places: Vec<(&str, usize)> = found.iter().map(|(file, line, _)| (file.as_str(), *line)).collect();
        assert_eq!(places, [("values.yaml", 2)], "{found:?}");
    }
}
