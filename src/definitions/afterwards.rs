//! What Flux and Argo CD do with the objects of a folder after they were built, where the files say so: patches, and names. Where clusters
//! are told different things about one folder, nobody here knows which one is meant: it is left as it is, and a note says so.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document::{Document, Parsed};
use super::findings::Place;
use super::flux::{self, FluxKustomization, FluxKustomizations};
use super::kustomize::{Build, Layout, Plain, Together};
use crate::api::kustomization::join;
use crate::api::source::{SourceFile, Standing};

/// Fields of what both are told that have the form of a kustomization's, and are carried out.
const FIELDS: [&str; 5] = ["patches", "namePrefix", "nameSuffix", "commonLabels", "commonAnnotations"];
/// Other fields of Argo CD's that change nothing of what decides about nodes.
const WITHOUT_EFFECT: [&str; 11] = [
    "images",
    "replicas",
    "namespace",
    "version",
    "kubeVersion",
    "apiVersions",
    "forceCommonLabels",
    "forceCommonAnnotations",
    "labelWithoutSelector",
    "labelIncludeTemplates",
    "commonAnnotationsEnvsubst",
];
pub const ARGO: &str = "argoproj.io/";

/// A field, by file and line: the line of its key.
pub type Line = (String, usize);

/// By the folder whose objects they are.
#[derive(Debug, Default)]
pub struct Afterwards {
    /// `None`: nothing that can be carried out. What is told of a folder around it is not meant for this one.
    by_folder: BTreeMap<String, Option<Told>>,
    /// Where variables come from whose values are known, and what is for other clusters.
    known: BTreeSet<Line>,
}

#[derive(Debug)]
struct Told {
    /// With fields of a kustomization.
    fields: Document,
    lines: BTreeSet<Line>,
}

/// What was made of the files.
#[derive(Debug, Default)]
pub struct Done {
    /// Files whose objects are others now.
    pub files: BTreeMap<usize, Parsed>,
    /// What was carried out.
    pub lines: BTreeSet<Line>,
}

impl Afterwards {
    /// `cluster`: whose objects they are, where that is known.
    pub fn of(flux: &FluxKustomizations, sources: &[&SourceFile], parsed: &[Parsed], cluster: Option<&str>) -> Self {
        let mut told: BTreeMap<String, Vec<(String, Document)>> = BTreeMap::new();
        for (folder, kustomizations) in flux.folders() {
            let of_folder = told.entry(folder.to_owned()).or_default();
            of_folder.extend(kustomizations.iter().map(|it| (it.file.clone(), within(&it.document, "/spec"))));
        }
        let is_argo = |document: &&Document| {
            document.str("/kind") == Some("Application")
                && document.str("/apiVersion").is_some_and(|it| it.starts_with(ARGO))
        };
        let own = sources.iter().zip(parsed).filter(|(source, _)| source.standing != Standing::Applied);
        for (source, parsed) in own {
            for document in parsed.documents.iter().filter(is_argo) {
                for pointer in sources_of(document) {
                    let path = document.str(&format!("{pointer}/path"));
                    let Some(folder) = path.and_then(|path| join("", path.trim_start_matches('/'))) else { continue };
                    let fields = within(document, &format!("{pointer}/kustomize"));
                    told.entry(folder).or_default().push((source.path.clone(), fields));
                }
            }
        }
        let mut known = variables(flux, sources, parsed);
        for FluxKustomization { document, file, .. } in flux.of_others() {
            known.extend(lines_of_members(file, &within(document, "/spec")));
        }
        for all in told.values_mut() {
            for (file, fields) in flux::taken_of_others(all, cluster, |(file, _)| file) {
                known.insert((file, fields.place("", Place::Key).line));
            }
        }
        let by_folder = told.into_iter().map(|(folder, all)| (folder, Told::of(&all))).collect();
        Self { by_folder, known }
    }

    /// Does it to what was built, and to the objects of files that no kustomization names.
    pub fn carry_out(&self, layout: &Layout<'_>, parsed: &[Parsed], builds: &mut [Build], plain: &[usize]) -> Done {
        let mut done = Done { lines: self.known.clone(), ..Done::default() };
        let mut together = Together::new(layout, parsed);
        for told in self.by_folder.values().flatten() {
            let is_meant = |file: usize| {
                let nearest = flux::nearest(&self.by_folder, layout.path(file)).and_then(Option::as_ref);
                nearest.is_some_and(|nearest| std::ptr::eq(nearest, told))
            };
            let mut of_builds: Vec<&mut Build> = builds.iter_mut().filter(|build| is_meant(build.top)).collect();
            let files = plain.iter().filter(|file| is_meant(**file));
            let mut of_files: Vec<Plain> = files
                .filter_map(|file| Some(Plain { file: *file, documents: parsed.get(*file)?.documents.clone() }))
                .collect();
            if !together.change(&told.fields, &mut of_builds, &mut of_files) {
                continue;
            }
            done.lines.extend(told.lines.iter().cloned());
            for Plain { file, documents } in of_files {
                let Some(Parsed { count, findings, aside, has_unread, .. }) = parsed.get(file) else { continue };
                let (findings, aside) = (findings.clone(), aside.clone());
                let changed = Parsed { documents, count: *count, findings, aside, has_unread: *has_unread };
                done.files.insert(file, changed);
            }
        }
        done
    }
}

impl Told {
    /// Of what stands in several places the first, if all of them say the same.
    fn of(all: &[(String, Document)]) -> Option<Self> {
        let said = |document: &Document| -> BTreeMap<&str, Value> {
            let field = |name: &'static str| {
                let value = document.value.get(name)?;
                (!is_empty(value)).then(|| (name, value.clone()))
            };
            FIELDS.into_iter().filter_map(field).collect()
        };
        let (_, first) = all.first()?;
        let own = said(first);
        let is_alike = all.iter().all(|(_, other)| said(other) == own);
        // A file beside the kustomization: which one that is may be meant from elsewhere.
        let names_files = first.items("/patches").any(|(_, patch)| patch.get("path").is_some());
        if own.is_empty() || !is_alike || names_files {
            return None;
        }
        let line = |file: &String, document: &Document, field: &str| {
            (file.clone(), document.place(&format!("/{field}"), Place::Key).line)
        };
        let lines = all.iter().flat_map(|(file, document)| own.keys().map(move |field| line(file, document, field)));
        let mut lines: BTreeSet<Line> = lines.collect();
        for (file, document) in all {
            let is_known = |(_, name, value): (String, &str, &Value)| {
                [&FIELDS[..], &WITHOUT_EFFECT].concat().contains(&name) || is_empty(value)
            };
            if document.members("").all(is_known) {
                lines.insert((file.clone(), document.place("", Place::Key).line));
            }
        }
        Some(Self { fields: first.clone(), lines })
    }
}

/// The lines of all members.
fn lines_of_members<'d>(file: &'d str, document: &'d Document) -> impl Iterator<Item = Line> + use<'d> {
    document.members("").map(move |(pointer, ..)| (file.to_owned(), document.place(&pointer, Place::Key).line))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// A part of a document as one of its own, with the places of its values.
fn within(document: &Document, pointer: &str) -> Document {
    Document {
        value: document.value.pointer(pointer).cloned().unwrap_or_default().into(),
        root: format!("{}{pointer}", document.root),
        ambiguous: Vec::new(),
        parts: Vec::new(),
        ..document.clone()
    }
}

/// Pointers of the sources of an Application.
fn sources_of(document: &Document) -> Vec<String> {
    let several = document.items("/spec/sources").map(|(pointer, _)| pointer);
    std::iter::once("/spec/source".to_owned()).chain(several).collect()
}

/// Where Flux is told of variables whose values are known here, all of those that are meant for a folder.
fn variables(flux: &FluxKustomizations, sources: &[&SourceFile], parsed: &[Parsed]) -> BTreeSet<Line> {
    const POST_BUILD: &str = "/spec/postBuild";
    let (mut lines, mut taken, mut doubtful) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (_, all) in flux.folders() {
        let is_alike = all.iter().all(|it| Some(&it.variables) == all.first().map(|first| &first.variables));
        for kustomization in all {
            let FluxKustomization { document, file, unread, .. } = kustomization;
            let maps = if is_alike { &mut taken } else { &mut doubtful };
            maps.extend(config_maps(document).filter(|name| !unread.contains(&format!("ConfigMap {name}"))));
            if is_alike && unread.is_empty() && document.value.pointer(POST_BUILD).is_some() {
                lines.insert((file.clone(), document.place(POST_BUILD, Place::Key).line));
            }
        }
    }
    let is_map = |document: &&Document| {
        let name = document.str("/metadata/name").unwrap_or_default();
        document.str("/kind") == Some("ConfigMap") && taken.contains(name) && !doubtful.contains(name)
    };
    for (source, parsed) in sources.iter().zip(parsed) {
        let maps = parsed.documents.iter().filter(is_map);
        lines.extend(maps.map(|document| (source.path.clone(), document.place("/data", Place::Key).line)));
    }
    lines
}

/// The names of those that variables are taken from.
fn config_maps(document: &Document) -> impl Iterator<Item = String> {
    let from = document.items("/spec/postBuild/substituteFrom");
    let of_maps = from.filter(|(_, from)| from.get("kind").and_then(Value::as_str) == Some("ConfigMap"));
    of_maps.filter_map(|(_, from)| from.get("name").and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::plan::NoteCode;
    use crate::definitions::{Definitions, GivenVariables, read};

    const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  limits: { cpu: \"${cpu:=100}\" }
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements: [{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }]
";
    const PATCHES: &str =
        "patches: [{ target: { kind: NodePool }, patch: \"[{ op: add, path: /spec/weight, value: 7 }]\" }]";

    fn flux(name: &str, path: &str, spec: &str) -> String {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{ name: {name} }}\nspec:\n  path: {path}\n  \
             sourceRef: {{ kind: GitRepository, name: flux-system }}\n  {spec}\n"
        )
    }

    fn argo(path: &str, kustomize: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{ name: pools }}\nspec:\n  source:\n    path: {path}\n    \
             kustomize: {{ {kustomize} }}\n"
        )
    }

    fn read_files(files: &[(&str, &str)]) -> Definitions {
        let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
        read(&files, &GivenVariables::default())
    }

    fn weights(definitions: &Definitions) -> Vec<Option<i32>> {
        definitions.node_pools.iter().map(|pool| pool.value.spec.weight).collect()
    }

    fn notes(definitions: &Definitions) -> usize {
        definitions.notes.iter().filter(|note| note.code == NoteCode::PatchedElsewhere).count()
    }

    #[test]
    fn patches_are_carried_out_whoever_builds_the_folder() {
        let kustomization = ("pools/kustomization.yaml", "resources: [pool.yaml]\nnamePrefix: a-\n");
        let named = "patches: [{ patch: \"{ apiVersion: karpenter.sh/v1, kind: NodePool, metadata: { name: default }, spec: { weight: 7 } }\" }]";
        for (beside, told) in [
            (&[][..], flux("pools", "./pools", PATCHES)),
            (&[], flux("pools", "./", PATCHES)),
            (&[], flux("pools", "./pools", named)),
            (&[kustomization], flux("pools", "./pools", PATCHES)),
            (&[kustomization], flux("pools", "./pools", named)),
            (&[kustomization], argo("pools", PATCHES)),
        ] {
            let files = [&[("pools/pool.yaml", POOL), ("clusters/told.yaml", told.as_str())], beside].concat();
            let definitions = read_files(&files);
            assert!(!definitions.has_errors(), "{told}: {:?}", definitions.diagnostics);
            assert_eq!((weights(&definitions), notes(&definitions)), (vec![Some(7)], 0), "{told}");
        }
    }

    #[test]
    fn what_is_not_clear_is_left_as_it_is_and_said() {
        let other = PATCHES.replace('7', "9");
        let broken = PATCHES.replace("op: add", "op: test");
        let by_file = "patches: [{ target: { kind: NodePool }, path: x.yaml }]";
        for told in [
            [flux("one", "./pools", PATCHES), flux("two", "./pools", &other)].join("---\n"),
            [flux("one", "./pools", PATCHES), flux("two", "./pools", "prune: true")].join("---\n"),
            flux("pools", "./pools", &broken),
            flux("pools", "./pools", by_file),
            flux("pools", "./pools", "components: [../x]"),
        ] {
            let definitions = read_files(&[("pools/pool.yaml", POOL), ("clusters/told.yaml", &told)]);
            assert_eq!(weights(&definitions), [None], "{told}");
            assert!(notes(&definitions) > 0, "{told}");
        }
        // What is told of another folder is not meant.
        let outer = [flux("all", "./", PATCHES), flux("pools", "./pools", "prune: true")].join("---\n");
        let definitions = read_files(&[("pools/pool.yaml", POOL), ("clusters/told.yaml", &outer)]);
        assert_eq!(weights(&definitions), [None]);
    }

    #[test]
    fn of_several_clusters_each_gets_its_own() {
        let of = |weight: &str| flux("pools", "./pools", &PATCHES.replace('7', weight));
        let (blue, green) = (of("7"), of("9"));
        let settings = "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nmetadata: { name: cutlist }\nspec: { clusterName: green }\n";
        let files =
            [("pools/pool.yaml", POOL), ("clusters/blue/pools.yaml", &blue), ("clusters/green/pools.yaml", &green)];
        let as_sources: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
        let given = GivenVariables { cluster: Some("blue".to_owned()), ..GivenVariables::default() };
        let definitions = read(&as_sources, &given);
        assert_eq!((weights(&definitions), notes(&definitions)), (vec![Some(7)], 0));
        let definitions = read_files(&[&files[..], &[("cutlist.yaml", settings)]].concat());
        assert_eq!((weights(&definitions), notes(&definitions)), (vec![Some(9)], 0), "{:?}", definitions.diagnostics);
        assert_eq!(weights(&read_files(&files)), [None]);
    }

    #[test]
    fn what_a_patch_writes_is_known_by_its_place() {
        let told = flux("pools", "./pools", PATCHES);
        let definitions = read_files(&[("pools/pool.yaml", POOL), ("clusters/told.yaml", &told)]);
        let pool = definitions.node_pools.first().unwrap();
        assert_eq!(pool.file, "pools/pool.yaml");
        let carried: Vec<&Line> = definitions.carried_out.iter().collect();
        assert_eq!(carried, [&("clusters/told.yaml".to_owned(), 7)]);
    }
}
