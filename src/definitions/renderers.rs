//! What other programs make of definitions, or with what they make them, and this one does not: templates and values of
//! charts, and what of Flux's and Argo CD's is not carried out (`afterwards.rs`). Where one of these changed, nobody
//! here knows what a cluster gets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::Definitions;
use super::afterwards::is_empty;
use super::argo::{self, GROUP as ARGO};
use super::changes::Side;
use super::document::{self, Document};
use super::files::{chart_templates, covers};
use super::findings::FindingPlace;
use super::flux::GROUP as FLUX;
use super::held;
use super::kinds::{Class, classify};
use crate::api::kustomization;
use crate::api::source::{SourceFile, Standing};
use crate::core::plan::{DefinitionPlace, Note, NoteCode};

/// Every object of Karpenter's groups, and what patches one, has one of these words.
const WORDS: [&str; 3] = ["karpenter", "NodePool", "EC2NodeClass"];
/// Parts of the groups' names, by which files are found that may have one of their objects, or of Karpenter's in others.
const GROUPS: [&str; 5] = ["toolkit.fluxcd.io", "argoproj.io", "ConfigMap", "Secret", "karpenter."];
const FLUX_HELM: &str = "helm.toolkit.fluxcd.io";

/// Fields of a Flux Kustomization that change objects whatever their variables are.
const FLUX_PATCHES: [&str; 6] =
    ["patches", "patchesStrategicMerge", "patchesJson6902", "components", "namePrefix", "nameSuffix"];
const FLUX_VALUES: [&str; 3] = ["values", "valuesFrom", "postRenderers"];
/// Fields of a kustomization that are not carried out.
const MAKERS: [&str; 4] = ["helmCharts", "helmChartInflationGenerator", "generators", "transformers"];
const ARGO_FIELDS: [&str; 3] = ["kustomize", "plugin", "helm"];

/// A file, or a field in it, that is something else than before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unseen {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// `what Flux makes by spec.postBuild of Kustomization pools`
    pub what: String,
}

/// What differs between two revisions and decides about nodes without being read here, by file and line.
pub fn unseen(base: Side<'_>, head: Side<'_>) -> Vec<Unseen> {
    let (before, after) = (by_path(base.files), by_path(head.files));
    let paths: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let text = |side: &BTreeMap<&str, &SourceFile>, path: &str| side.get(path).map(|file| text_of(file).to_owned());
    let differing = paths.into_iter().filter(|path| text(&before, path) != text(&after, path));
    let surroundings = Surroundings::of(&[base, head]);
    let mut found = Vec::new();
    for path in differing {
        if let Some(what) = surroundings.of_chart(path, before.get(path).or_else(|| after.get(path)).copied()) {
            let line = first_differing(text_at(&before, path), text_at(&after, path));
            found.push(Unseen { file: path.to_owned(), line, what });
            continue;
        }
        let fields = |side: &BTreeMap<&str, &SourceFile>| surroundings.fields_in(path, text_at(side, path));
        let (old, new) = (fields(&before), fields(&after));
        let is_carried_out = |side: Side<'_>, field: Option<&Field>| {
            field.is_none_or(|field| side.definitions.carried_out.contains(&(path.to_owned(), field.line)))
        };
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (old, new) = (old.get(name), new.get(name));
            // What comes of the field is in the definitions.
            let is_seen = is_carried_out(base, old) && is_carried_out(head, new);
            if !is_seen && old.map(|it| &it.value) != new.map(|it| &it.value) {
                let line = new.map_or(1, |it| it.line);
                found.push(Unseen { file: path.to_owned(), line, what: name.clone() });
            }
        }
    }
    found.sort();
    found
}

/// Notes for readers of a plan on what is patched after it was written in files, where the files say so.
pub fn notes(files: &[SourceFile], definitions: &Definitions) -> Vec<Note> {
    let surroundings = Surroundings::of(&[Side { definitions, files }]);
    let mut notes = Vec::new();
    let may_patch = |file: &&SourceFile| file.has_content() && [FLUX, ARGO].iter().any(|it| text_of(file).contains(it));
    for file in files.iter().filter(may_patch) {
        for (what, field) in surroundings.fields_in(&file.path, text_of(file)) {
            if !field.is_patch || definitions.carried_out.contains(&(file.path.clone(), field.line)) {
                continue;
            }
            let place = DefinitionPlace { file: file.path.clone(), line: field.line };
            notes.push(Note::new(NoteCode::PatchedElsewhere, format!("{what} is not in this plan")).at(Some(place)));
        }
    }
    notes
}

/// A field that another program goes by.
struct Field {
    value: Value,
    line: usize,
    /// Whether it changes objects that are read here.
    is_patch: bool,
}

/// What of a repository the other programs work on.
struct Surroundings {
    /// Files of definitions.
    defined_in: BTreeSet<String>,
    /// Folders of templates that make definitions: `charts/pools/templates/`.
    charts: BTreeSet<String>,
    /// Kinds and names of the objects that variables are taken from.
    sources: BTreeSet<(String, String)>,
}

impl Surroundings {
    fn of(sides: &[Side<'_>]) -> Self {
        let files = || sides.iter().flat_map(|side| side.files);
        let all: Vec<&SourceFile> = files().collect();
        let makes =
            |folder: &String| all.iter().any(|it| it.path.starts_with(folder.as_str()) && mentions(text_of(it)));
        let charts = chart_templates(&all).into_iter().filter(makes).collect();
        let defined_in = sides.iter().flat_map(|side| side.definitions.files_of_objects()).map(str::to_owned).collect();
        let mut surroundings = Self { defined_in, charts, sources: BTreeSet::new() };
        let naming = files().filter(|file| file.has_content() && text_of(file).contains("substituteFrom"));
        let documents = naming.flat_map(|file| documents(text_of(file)));
        let mut sources = BTreeSet::new();
        for document in documents.filter(|it| it.group() == FLUX && surroundings.is_flux_of_ours(it)) {
            for (pointer, _) in document.items("/spec/postBuild/substituteFrom") {
                let text = |field: &str| document.str(&format!("{pointer}/{field}")).unwrap_or_default().to_owned();
                sources.insert((text("kind"), text("name")));
            }
        }
        surroundings.sources = sources;
        surroundings
    }

    /// What is to be said of a submodule, of a file of a chart that makes definitions, or of its values.
    fn of_chart(&self, path: &str, file: Option<&SourceFile>) -> Option<String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if file.is_some_and(|file| file.standing == Standing::Submodule) {
            return Some(format!("what the submodule {path} brings"));
        }
        let is_template = file.is_some_and(|file| file.standing == Standing::Template && mentions(text_of(file)));
        if is_template || self.charts.iter().any(|templates| path.starts_with(templates.as_str())) {
            return Some(format!("what a chart makes with its template {path}"));
        }
        let is_in_chart =
            self.charts.iter().filter_map(|it| it.strip_suffix("templates/")).any(|it| path.starts_with(it));
        let is_values = name.starts_with("values") && !self.charts.is_empty();
        (is_in_chart || is_values).then(|| format!("what a chart of NodePools makes with {path}"))
    }

    /// The fields of a file that other programs go by, by what is said of each.
    fn fields_in(&self, path: &str, text: &str) -> BTreeMap<String, Field> {
        let mut fields = self.fields_of_kustomization(path, text);
        for document in documents(text) {
            let kind = document.str("/kind").unwrap_or_default();
            let object = format!("{kind} {}", document.str("/metadata/name").unwrap_or_default());
            let known = fields.len();
            let mut add = |pointer: &str, said: String, is_patch: bool| {
                if let Some(value) = document.value.pointer(pointer).filter(|value| !is_empty(value)) {
                    let line = document.place(pointer, FindingPlace::Key).line;
                    fields.insert(said, Field { value: value.clone(), line, is_patch });
                }
            };
            match (document.group(), kind) {
                (FLUX, "Kustomization") if self.is_flux_of_ours(&document) => {
                    for field in FLUX_PATCHES {
                        add(&format!("/spec/{field}"), format!("what Flux makes by spec.{field} of {object}"), true);
                    }
                    add("/spec/postBuild", format!("what Flux makes by spec.postBuild of {object}"), false);
                }
                (FLUX_HELM, "HelmRelease") if self.is_release_of_ours(&document) => {
                    for field in FLUX_VALUES {
                        add(&format!("/spec/{field}"), format!("what Flux makes by spec.{field} of {object}"), false);
                    }
                }
                (ARGO, "Application" | "ApplicationSet") => {
                    let mut is_ours = false;
                    for source in argo::sources_of(&document) {
                        if !self.is_source_of_ours(&document, &source) {
                            continue;
                        }
                        is_ours = true;
                        for field in ARGO_FIELDS {
                            let said = format!("what Argo CD makes by {field} of {object}");
                            add(&format!("{source}/{field}"), said, field != "helm");
                        }
                    }
                    if is_ours {
                        add("/spec/generators", format!("what Argo CD makes by the generators of {object}"), false);
                    }
                }
                ("", "ConfigMap" | "Secret") => {
                    let name = document.str("/metadata/name").unwrap_or_default();
                    if self.sources.contains(&(kind.to_owned(), name.to_owned())) {
                        for field in ["data", "stringData"] {
                            add(
                                &format!("/{field}"),
                                format!("what Flux puts in place of variables by {object}"),
                                false,
                            );
                        }
                    }
                }
                _ => {}
            }
            if fields.len() == known {
                fields.extend(field_of_held(&document, &object));
            }
        }
        fields
    }

    /// What a kustomization takes from elsewhere, or makes with what is not carried out.
    fn fields_of_kustomization(&self, path: &str, text: &str) -> BTreeMap<String, Field> {
        let mut fields = BTreeMap::new();
        if !kustomization::is_file(path) || !self.is_of_ours(kustomization::folder(path)) {
            return fields;
        }
        let Some(document) = document::parse(0, &Arc::from(text)).documents.into_iter().next() else { return fields };
        for field in MAKERS {
            let pointer = format!("/{field}");
            if let Some(value) = document.value.pointer(&pointer).filter(|value| !is_empty(value)) {
                let line = document.place(&pointer, FindingPlace::Key).line;
                let said = format!("what the kustomization makes by {field}");
                fields.insert(said, Field { value: value.clone(), line, is_patch: false });
            }
        }
        let is_taken = |it: &kustomization::Reference| {
            let is_object = matches!(it.purpose, kustomization::Purpose::Resource | kustomization::Purpose::Component);
            is_object && kustomization::is_remote(&it.path)
        };
        let taken: Vec<_> = kustomization::references(&document.value).into_iter().filter(is_taken).collect();
        if let Some(first) = taken.first() {
            let line = document.place(&first.pointer, FindingPlace::Value).line;
            let value = taken.iter().map(|it| Value::String(it.path.clone())).collect();
            let said = "what the kustomization takes from elsewhere".to_owned();
            fields.insert(said, Field { value, line, is_patch: false });
        }
        fields
    }

    fn is_flux_of_ours(&self, document: &Document) -> bool {
        self.is_of_ours(document.str("/spec/path").unwrap_or_default()) || mentions_in(document, "/spec")
    }

    fn is_source_of_ours(&self, document: &Document, source: &str) -> bool {
        let path = document.str(&format!("{source}/path"));
        path.is_some_and(|path| self.is_of_ours(path)) || mentions_in(document, &format!("{source}/kustomize"))
    }

    fn is_release_of_ours(&self, document: &Document) -> bool {
        document.str("/spec/chart/spec/chart").is_some_and(|path| self.is_chart(path)) || mentions_in(document, "/spec")
    }

    /// Whether definitions lie in the folder, or it is a chart that makes some.
    fn is_of_ours(&self, path: &str) -> bool {
        self.defined_in.iter().any(|file| covers(path, file)) || self.is_chart(path)
    }

    fn is_chart(&self, path: &str) -> bool {
        let path = path.trim_start_matches("./").trim_matches('/');
        self.charts.iter().filter_map(|it| it.strip_suffix("templates/")).any(|it| it.trim_end_matches('/') == path)
    }
}

/// Definitions in an object of another kind.
fn field_of_held(document: &Document, object: &str) -> Option<(String, Field)> {
    if !matches!(classify(&document.value), Class::Foreign) {
        return None;
    }
    let held = held::of(document);
    let line = document.place(&held.first()?.pointer, FindingPlace::Value).line;
    let values = held.iter().filter_map(|it| document.value.pointer(&it.pointer).cloned());
    let field = Field { value: values.collect(), line, is_patch: false };
    Some((format!("what is made of the definitions in {object}"), field))
}

fn documents(text: &str) -> Vec<Document> {
    if !GROUPS.iter().any(|group| text.contains(group)) {
        return Vec::new();
    }
    document::parse(0, &Arc::from(text)).documents
}

fn mentions(text: &str) -> bool {
    WORDS.iter().any(|word| text.contains(word))
}

fn mentions_in(document: &Document, pointer: &str) -> bool {
    document.value.pointer(pointer).is_some_and(|value| WORDS[1..].iter().any(|word| value.to_string().contains(word)))
}

fn by_path(files: &[SourceFile]) -> BTreeMap<&str, &SourceFile> {
    let is_read =
        |file: &&SourceFile| file.has_content() || matches!(file.standing, Standing::Template | Standing::Submodule);
    files.iter().filter(is_read).map(|file| (file.path.as_str(), file)).collect()
}

fn text_of(file: &SourceFile) -> &str {
    str::from_utf8(&file.content).unwrap_or_default()
}

fn text_at<'f>(side: &BTreeMap<&str, &'f SourceFile>, path: &str) -> &'f str {
    side.get(path).map_or("", |file| text_of(file))
}

/// From 1.
fn first_differing(old: &str, new: &str) -> usize {
    let same = old.lines().zip(new.lines()).take_while(|(old, new)| old == new).count();
    1 + same.min(new.lines().count().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::{GivenVariables, read};

    const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements: [{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }]
";

    fn flux(path: &str, spec: &str) -> String {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{ name: pools }}\nspec:\n  path: {path}\n  {spec}\n"
        )
    }

    fn argo(path: &str, source: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{ name: pools }}\nspec:\n  source:\n    path: {path}\n    {source}\n"
        )
    }

    fn with(files: &[(&str, &str)]) -> (Vec<SourceFile>, Definitions) {
        let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
        let definitions = read(&files, &GivenVariables::default());
        (files, definitions)
    }

    fn between(base: &[(&str, &str)], head: &[(&str, &str)]) -> Vec<Unseen> {
        let ((base, of_base), (head, of_head)) = (with(base), with(head));
        unseen(Side { definitions: &of_base, files: &base }, Side { definitions: &of_head, files: &head })
    }

    #[test]
    fn what_others_make_otherwise_is_told_with_its_line() {
        let pool = ("pools/pool.yaml", POOL);
        let chart = ("charts/pools/Chart.yaml", "name: pools\n");
        let template = ("charts/pools/templates/pool.yaml", POOL);
        let variables = |value: &str| {
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{ name: vars }}\nstringData: {{ cpu: \"{value}\" }}\n")
        };
        let from = flux("./pools", "postBuild: { substituteFrom: [{ kind: Secret, name: vars }] }");
        let with_secret = |value: &str| {
            format!(
                "postBuild: {{ substitute: {{ cpu: \"{value}\" }}, substituteFrom: [{{ kind: Secret, name: vars }}] }}"
            )
        };
        let made = |weight: &str| {
            format!(
                "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {{ name: pools }}\nspec:\n  resources:\n  - {{ apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {{ name: a }}, spec: {{ weight: {weight} }} }}\n"
            )
        };
        for (beside, path, old, new, line) in [
            (
                &[pool][..],
                "kustomization.yaml",
                "resources:\n- pools/pool.yaml\n- https://github.com/acme/pools//a?ref=v1\n".to_owned(),
                "resources:\n- pools/pool.yaml\n- https://github.com/acme/pools//a?ref=v2\n".to_owned(),
                3,
            ),
            (&[pool][..], "c.yaml", flux("./pools", &with_secret("1")), flux("./pools", &with_secret("0")), 6),
            (&[pool], "c.yaml", flux("./pools", ""), flux("./pools", "patches: [{ patch: x }]"), 6),
            (&[pool, ("f.yaml", from.as_str())], "vars.yaml", variables("1"), variables("0"), 4),
            (
                &[pool],
                "c.yaml",
                argo("pools", "kustomize: { components: [../a] }"),
                argo("pools", "kustomize: { components: [../b] }"),
                7,
            ),
            (&[pool], "made.yaml", made("1"), made("2"), 6),
            (&[pool], "made.yaml", made("1"), String::new(), 1),
            (&[chart, template], "clusters/blue/values.yaml", "a: 1\nb: 1\n".to_owned(), "a: 1\nb: 2\n".to_owned(), 2),
            (&[chart], "charts/pools/templates/pool.yaml", POOL.to_owned(), POOL.replace("on-demand", "spot"), 8),
        ] {
            let side = |text: &'_ str| -> Vec<(String, String)> {
                let own = [(path.to_owned(), text.to_owned())];
                beside.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).chain(own).collect()
            };
            let (old, new) = (side(&old), side(&new));
            let [old, new] = [&old, &new]
                .map(|files| files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
            let found = between(&old, &new);
            let [one] = &found[..] else { panic!("{path}: {found:?}") };
            assert_eq!((one.file.as_str(), one.line), (path, line), "{one:?}");
            assert_eq!(between(&new, &new), []);
        }
    }

    #[test]
    fn a_submodule_that_moves_on_is_told() {
        let at = |commit: &str| SourceFile { standing: Standing::Submodule, ..SourceFile::new("shared", commit) };
        let definitions = Definitions::default();
        let between = |base: &[SourceFile], head: &[SourceFile]| {
            unseen(Side { definitions: &definitions, files: base }, Side { definitions: &definitions, files: head })
        };
        let told = between(&[at("abc")], &[at("def")]);
        assert_eq!(told.first().map(|it| it.what.as_str()), Some("what the submodule shared brings"));
        assert_eq!(between(&[], &[at("def")]).len(), 1);
        assert_eq!(between(&[at("abc")], &[at("abc")]), []);
    }

    #[test]
    fn what_has_nothing_to_do_with_definitions_is_not_told() {
        let pool = ("pools/pool.yaml", POOL);
        for (path, old, new) in [
            (
                "c.yaml",
                flux("./apps", "postBuild: { substitute: { a: \"1\" } }"),
                flux("./apps", "postBuild: { substitute: { a: \"2\" } }"),
            ),
            ("c.yaml", flux("./pools", "interval: 1h"), flux("./pools", "interval: 2h")),
            ("c.yaml", argo("apps", "helm: { values: a }"), argo("apps", "helm: { values: b }")),
            ("values.yaml", "a: 1\n".to_owned(), "a: 2\n".to_owned()),
        ] {
            assert_eq!(between(&[pool, (path, &old)], &[pool, (path, &new)]), [], "{path}");
        }
    }

    /// What comes of it is in the definitions, and shown as any other change.
    #[test]
    fn what_is_carried_out_here_is_not_told() {
        let pool = ("pools/pool.yaml", POOL);
        let variables = |value: &str| {
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: vars }}\ndata: {{ cpu: \"{value}\" }}\n")
        };
        let from = flux("./pools", "postBuild: { substituteFrom: [{ kind: ConfigMap, name: vars }] }");
        let patch = |weight: u8| {
            let operations = format!("\"- {{ op: add, path: /spec/weight, value: {weight} }}\"");
            format!("patches: [{{ target: {{ kind: NodePool }}, patch: {operations} }}]")
        };
        for (beside, path, old, new) in [
            (
                &[pool][..],
                "c.yaml",
                flux("./pools", "postBuild: { substitute: { cpu: \"1\" } }"),
                flux("./pools", "postBuild: { substitute: { cpu: \"0\" } }"),
            ),
            (&[pool, ("f.yaml", from.as_str())], "vars.yaml", variables("1"), variables("0")),
            (&[pool], "c.yaml", flux("./pools", ""), flux("./pools", &patch(1))),
            (
                &[pool],
                "c.yaml",
                argo("pools", &format!("kustomize: {{ {} }}", patch(1))),
                argo("pools", &format!("kustomize: {{ {}, images: [a] }}", patch(2))),
            ),
        ] {
            let [old, new] = [&old, &new].map(|text| [beside, &[(path, text.as_str())]].concat());
            assert_eq!(between(&old, &new), [], "{path}: {new:?}");
        }
    }

    #[test]
    fn a_plan_says_what_is_patched_behind_it() {
        let patches = flux("./pools", "patches: [{ target: { kind: NodePool }, patch: x }]");
        for (file, count) in [(patches.as_str(), 1), (&flux("./pools", "postBuild: { substitute: { a: b } }"), 0)] {
            let (_, definitions) = with(&[("pools/pool.yaml", POOL), ("clusters/pools.yaml", file)]);
            let notes: Vec<&Note> =
                definitions.notes.iter().filter(|note| note.code == NoteCode::PatchedElsewhere).collect();
            assert_eq!(notes.len(), count, "{notes:?}");
            if let [note] = notes[..] {
                assert_eq!(note.text, "what Flux makes by spec.patches of Kustomization pools is not in this plan");
                assert_eq!(note.definition.as_ref().map(|it| it.line), Some(6));
            }
        }
    }
}
