//! What Flux and Argo CD do with the objects of a folder after they were built, where the files say so: patches, and
//! names. Where clusters are told different things about one folder, nobody here knows which cluster is meant. The
//! folder is left as it is, and a note says so.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::argo::ArgoSource;
use super::diagnostic::Severity;
use super::document::{Document, Parsed};
use super::files;
use super::findings::{Finding, FindingPlace};
use super::flux::{self, FluxKustomization, FluxKustomizations};
use super::kinds::{Class, classify};
use super::kustomize::{Build, Layout, Plain, Together, is_replicated};
use super::rules::kustomize as rules;
use crate::api::source::SourceFile;

/// The fields that are carried out. Flux and Argo CD write them in the form of a kustomization.
const FIELDS: [&str; 6] = ["components", "patches", "namePrefix", "nameSuffix", "commonLabels", "commonAnnotations"];
/// A field of Argo CD that is carried out where all say the same of it. It changes no definition, so nothing is said where they do not.
const REPLICAS: &str = "replicas";
/// Other fields of Argo CD. They change nothing that decides about nodes.
const WITHOUT_EFFECT: [&str; 10] = [
    "images",
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

/// A field, by file and line: the line of its key.
pub type Line = (String, usize);

/// What Flux and Argo CD are told, by the folder whose objects it is for.
#[derive(Debug, Default)]
pub struct Afterwards {
    /// What is told of an outer folder is not meant for the folders in it.
    by_folder: BTreeMap<String, Told>,
    /// The places of variables whose values are known, and what is told for other clusters.
    known: BTreeSet<Line>,
}

/// What one object tells of a folder.
#[derive(Debug)]
struct FolderPart {
    /// The file that it stands in.
    file: String,
    by: By,
    /// The document has the fields of a kustomization.
    fields: Document,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Flux,
    ArgoCd,
}

/// All that is told of a folder.
#[derive(Debug)]
struct Told {
    parts: Vec<FolderPart>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It has nothing that changes objects.
    Nothing,
    /// All that tell of the folder say the same.
    Alike,
    /// Several tell different things of the folder, one for each cluster.
    Different,
    /// A patch of Flux names the path of a file. Flux takes no such patch.
    NoPatch,
}

/// What was made of the files.
#[derive(Debug, Default)]
pub struct Done {
    /// Files whose objects were changed, by index.
    pub files: BTreeMap<usize, Parsed>,
    /// What was carried out.
    pub lines: BTreeSet<Line>,
    /// Files that had a part in what was carried out.
    pub used: BTreeSet<usize>,
    /// What is wrong with what is told, and what of it was not carried out.
    pub findings: Vec<Finding>,
}

impl Afterwards {
    /// `cluster` is the one whose objects these are, where that is known.
    pub fn of(
        (flux, argo): (&FluxKustomizations, &[ArgoSource<'_>]),
        sources: &[&SourceFile],
        parsed: &[Parsed],
        cluster: Option<&str>,
    ) -> Self {
        let mut told: BTreeMap<String, Vec<FolderPart>> = BTreeMap::new();
        for (folder, kustomizations) in flux.folders() {
            let part = |it: &FluxKustomization| FolderPart {
                file: it.file.clone(),
                by: By::Flux,
                fields: within(&it.document, "/spec"),
            };
            told.entry(folder.to_owned()).or_default().extend(kustomizations.iter().map(part));
        }
        for source in argo {
            let fields = within(source.document, &format!("{}/kustomize", source.pointer));
            let file = sources.get(source.document.file).filter(|_| !fields.value.to_string().contains("{{"));
            let Some(file) = file.map(|file| &file.path) else { continue };
            for folder in &source.folders {
                let part = FolderPart { file: file.clone(), by: By::ArgoCd, fields: fields.clone() };
                told.entry(folder.clone()).or_default().push(part);
            }
        }
        if told.is_empty() {
            return Self::default();
        }
        let mut known = variables(flux, sources, parsed);
        for FluxKustomization { document, file, .. } in flux.of_others() {
            known.extend(document.lines_of_members("/spec").map(|(_, line)| (file.clone(), line)));
        }
        for all in told.values_mut() {
            for FolderPart { file, fields, .. } in flux::taken_of_others(all, cluster, |part| &part.file) {
                known.insert((file, fields.place("", FindingPlace::Key).line));
            }
        }
        let by_folder = told.into_iter().map(|(folder, all)| (folder, Told::of(all))).collect();
        Self { by_folder, known }
    }

    /// Changes what was built, and the objects of files that no kustomization names. Each object is looked up once.
    pub fn carry_out(&self, layout: &Layout<'_>, parsed: &[Parsed], builds: &mut [Build], plain: &[usize]) -> Done {
        let mut done = Done { lines: self.known.clone(), ..Done::default() };
        if self.by_folder.values().all(|told| told.what == What::Nothing) {
            return done;
        }
        let folder_of = |file: usize| files::nearest(&self.by_folder, layout.path(file)).map(|(folder, _)| folder);
        let mut meant: BTreeMap<&str, Meant<'_>> = BTreeMap::new();
        for build in builds {
            if let Some(folder) = folder_of(build.top) {
                meant.entry(folder).or_default().builds.push(build);
            }
        }
        for (file, parsed) in plain.iter().filter_map(|file| Some((*file, parsed.get(*file)?))) {
            if let Some(folder) = folder_of(file).filter(|_| !parsed.documents.is_empty()) {
                meant.entry(folder).or_default().plain.push(file);
            }
        }
        let mut together = Together::new(layout, parsed);
        for (folder, told) in &self.by_folder {
            let Some(meant) = meant.remove(folder.as_str()) else { continue };
            let has_ours = meant.has_ours(parsed);
            match (told.what, told.parts.first()) {
                (What::Alike, Some(part)) if has_ours || (told.sets_replicas() && meant.has_replicas(parsed)) => {
                    let known = done.findings.len();
                    if meant.change(&mut together, (folder, &part.fields), parsed, &mut done) {
                        done.lines.extend(told.lines());
                    }
                    // Nobody knows enough of a folder without objects of ours, but for what would have the replicas.
                    if !has_ours {
                        let of_folder = done.findings.split_off(known);
                        done.findings.extend(of_folder.into_iter().filter(is_of_replicas));
                    }
                }
                _ if has_ours => done.findings.extend(told.not_carried_out(folder)),
                _ => {}
            }
        }
        done.used = together.into_used();
        done
    }
}

/// The objects that are meant by what is told of a folder.
#[derive(Default)]
struct Meant<'b> {
    builds: Vec<&'b mut Build>,
    plain: Vec<usize>,
}

impl Meant<'_> {
    /// Objects of other kinds decide nothing here, but for the number of their pods.
    fn has_ours(&self, parsed: &[Parsed]) -> bool {
        self.documents(parsed).any(|it| matches!(classify(&it.value), Class::Read(kind) if kind.is_object()))
    }

    fn has_replicas(&self, parsed: &[Parsed]) -> bool {
        self.documents(parsed).any(is_replicated)
    }

    fn documents<'m>(&'m self, parsed: &'m [Parsed]) -> impl Iterator<Item = &'m Document> {
        let of_files = self.plain.iter().filter_map(|file| parsed.get(*file)).flat_map(|it| &it.documents);
        self.builds.iter().flat_map(|build| &build.documents).chain(of_files)
    }

    /// Gives `false` where something is wrong with what is told. Nothing is changed then.
    fn change(
        mut self,
        together: &mut Together<'_>,
        (folder, fields): (&str, &Document),
        parsed: &[Parsed],
        done: &mut Done,
    ) -> bool {
        let plain = |file: usize| Some(Plain { file, documents: parsed.get(file)?.documents.clone() });
        let mut files: Vec<Plain> = self.plain.into_iter().filter_map(plain).collect();
        let changed = together.change(folder, fields, &mut self.builds, &mut files);
        let is_done = changed.is_ok();
        done.findings.extend(changed.unwrap_or_else(|findings| findings));
        for Plain { file, documents } in files.into_iter().filter(|_| is_done) {
            let Some(Parsed { documents: before, count, findings, aside, has_unread }) = parsed.get(file) else {
                continue;
            };
            // An object that did not change is still known.
            if documents.len() == before.len() && documents.iter().zip(before).all(|(now, before)| now.is_same(before))
            {
                continue;
            }
            let (findings, aside) = (findings.clone(), aside.clone());
            let changed = Parsed { documents, count: *count, findings, aside, has_unread: *has_unread };
            done.files.insert(file, changed);
        }
        is_done
    }
}

impl Told {
    fn of(mut parts: Vec<FolderPart>) -> Self {
        let replicas = |part: &FolderPart| part.fields.value.get(REPLICAS).cloned();
        let is_alike = parts.iter().all(|part| replicas(part) == parts.first().and_then(replicas));
        for members in parts.iter_mut().filter(|_| !is_alike).filter_map(|part| part.fields.value.as_object_mut()) {
            members.remove(REPLICAS);
        }
        let names_file = |part: &FolderPart| {
            part.by == By::Flux && part.fields.items("/patches").any(|(_, patch)| patch.get("path").is_some())
        };
        let said: Vec<BTreeMap<&str, &Value>> = parts.iter().map(FolderPart::said).collect();
        let what = match said.first() {
            _ if said.iter().all(BTreeMap::is_empty) && !parts.iter().any(FolderPart::sets_replicas) => What::Nothing,
            Some(first) if said.iter().any(|other| other != first) => What::Different,
            _ if parts.iter().any(names_file) => What::NoPatch,
            _ => What::Alike,
        };
        Self { parts, what }
    }

    fn sets_replicas(&self) -> bool {
        self.parts.iter().any(FolderPart::sets_replicas)
    }

    /// The lines of what is carried out.
    fn lines(&self) -> BTreeSet<Line> {
        let mut lines = BTreeSet::new();
        for FolderPart { file, fields, .. } in &self.parts {
            let mut add = |pointer: &str| lines.insert((file.clone(), fields.place(pointer, FindingPlace::Key).line));
            for (pointer, name, value) in fields.members("") {
                if FIELDS.contains(&name) && !is_empty(value) {
                    add(&pointer);
                }
            }
            let is_known = |(_, name, value): (String, &str, &Value)| {
                FIELDS.contains(&name) || WITHOUT_EFFECT.contains(&name) || name == REPLICAS || is_empty(value)
            };
            if fields.members("").all(is_known) {
                add("");
            }
        }
        lines
    }

    /// Names the fields that are not carried out, for people who go by what is reported.
    fn not_carried_out(&self, folder: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.what == What::Nothing {
            return findings;
        }
        let shown = if folder.is_empty() { "the root" } else { folder };
        for part in &self.parts {
            if self.what == What::NoPatch {
                for (pointer, _) in part.fields.items("/patches").filter(|(_, patch)| patch.get("path").is_some()) {
                    let message = "a patch in a Kustomization of Flux stands in `patch`: it takes no file";
                    let at = format!("{pointer}/path");
                    let finding = Finding::at(&rules::NOT_CARRIED_OUT, &part.fields, &at, FindingPlace::Key, message);
                    findings.push(
                        finding.hint("write the patch there, or name its file in the kustomization of the folder"),
                    );
                }
                continue;
            }
            for (field, _) in part.said() {
                let message = format!(
                    "several say different `{field}` of {shown}, one for each cluster: none is carried out here"
                );
                let pointer = format!("/{field}");
                let finding = Finding::at(&rules::NOT_CARRIED_OUT, &part.fields, &pointer, FindingPlace::Key, message);
                let hint = match part.by {
                    By::Flux => {
                        "to have one of them: flux build kustomization NAME --path FOLDER --dry-run | cutlist lint -"
                    }
                    By::ArgoCd => "to have one of them: argocd app manifests NAME | cutlist lint -",
                };
                let mut finding = finding.hint(hint);
                // The field may be right as it is, and there is no other way to write it.
                finding.severity = Severity::Note;
                findings.push(finding);
            }
        }
        findings
    }
}

impl FolderPart {
    fn sets_replicas(&self) -> bool {
        self.fields.value.get(REPLICAS).is_some_and(|value| !is_empty(value))
    }

    /// Fields that are carried out.
    fn said(&self) -> BTreeMap<&str, &Value> {
        let said = FIELDS.into_iter().filter_map(|name| Some((name, self.fields.value.get(name)?)));
        said.filter(|(_, value)| !is_empty(value)).collect()
    }
}

/// Whether a field says nothing.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Whether it is about a member of an entry of [`REPLICAS`].
fn is_of_replicas(finding: &Finding) -> bool {
    let member = finding.pointer.as_deref().and_then(|pointer| pointer.strip_prefix('/'));
    member.and_then(|member| member.split('/').next()) == Some(REPLICAS)
}

/// A part of a document as a document of its own, with the places of its values.
fn within(document: &Document, pointer: &str) -> Document {
    Document {
        value: document.value.pointer(pointer).cloned().unwrap_or_default().into(),
        root: format!("{}{pointer}", document.root),
        ambiguous: Vec::new(),
        parts: Vec::new(),
        ..document.clone()
    }
}

/// The lines where Flux is told of variables, where the values of all that are meant for a folder are known here.
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
                lines.insert((file.clone(), document.place(POST_BUILD, FindingPlace::Key).line));
            }
        }
    }
    let is_map = |document: &&Document| {
        let name = document.str("/metadata/name").unwrap_or_default();
        document.str("/kind") == Some("ConfigMap") && taken.contains(name) && !doubtful.contains(name)
    };
    for (source, parsed) in sources.iter().zip(parsed) {
        let maps = parsed.documents.iter().filter(is_map);
        lines.extend(maps.map(|document| (source.path.clone(), document.place("/data", FindingPlace::Key).line)));
    }
    lines
}

/// The names of the ConfigMaps that variables are taken from.
fn config_maps(document: &Document) -> impl Iterator<Item = String> {
    let from = document.items("/spec/postBuild/substituteFrom");
    let of_maps = from.filter(|(_, from)| from.get("kind").and_then(Value::as_str) == Some("ConfigMap"));
    of_maps.filter_map(|(_, from)| from.get("name").and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::plan::NoteCode;
    use crate::definitions::{Definitions, GivenVariables, LintOptions, Memory, lint, lint_again, read};

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
        "patches: [{ target: { kind: NodePool }, patch: \"- { op: add, path: /spec/weight, value: 7 }\" }]";

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
            argo("pools", by_file),
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

    #[test]
    fn each_folder_of_a_generator_gets_what_it_is_told() {
        let set = |path: &str, kustomize: &str| {
            format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{ name: all }}\nspec:\n  generators: [{{ git: {{ directories: [{{ path: 'pools/*' }}] }} }}]\n  \
                 template: {{ spec: {{ source: {{ path: '{path}', kustomize: {{ {kustomize} }} }} }} }}\n"
            )
        };
        for (path, kustomize, expected) in [
            ("{{path}}", PATCHES, Some(7)),
            ("{{path}}", "namePrefix: '{{path.basename}}-'", None),
            ("{{name}}", PATCHES, None),
        ] {
            let told = set(path, kustomize);
            let definitions = read_files(&[("pools/one/pool.yaml", POOL), ("clusters/told.yaml", &told)]);
            assert_eq!(weights(&definitions), [expected], "{told}: {:?}", definitions.diagnostics);
        }
    }

    /// Code, file and line of what `lint` finds, beside what it says of a pool without a class.
    fn linted(files: &[(&str, &str)]) -> Vec<(String, String, usize)> {
        let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
        let found = lint(&files, &GivenVariables::default()).diagnostics.into_iter();
        let found = found.filter(|it| ["CL0015", "CL0016", "CL0207", "CL0600"].contains(&it.code.as_str()));
        found.map(|it| (it.code, it.file, it.span.line)).collect()
    }

    #[test]
    fn lint_judges_what_is_patched_at_the_patch() {
        let kustomization = ("pools/kustomization.yaml", "resources: [pool.yaml]\n");
        let too_much = PATCHES.replace('7', "500");
        for (beside, told) in [
            (&[][..], flux("pools", "./pools", &too_much)),
            (&[kustomization], flux("pools", "./pools", &too_much)),
            (&[], argo("pools", &too_much)),
            (&[kustomization], argo("pools", &too_much)),
        ] {
            let files = [&[("pools/pool.yaml", POOL), ("clusters/told.yaml", told.as_str())], beside].concat();
            let place = ("CL0207".to_owned(), "clusters/told.yaml".to_owned(), 7);
            assert_eq!(linted(&files), [place], "{told}");
        }
    }

    #[test]
    fn what_can_not_be_carried_out_is_said_at_its_line() {
        let of = |code: &str, line: usize| (code.to_owned(), "clusters/told.yaml".to_owned(), line);
        let broken = PATCHES.replace("op: add", "op: test");
        let by_file = "patches: [{ target: { kind: NodePool }, path: x.yaml }]";
        let different = [flux("one", "./pools", PATCHES), flux("two", "./pools", &PATCHES.replace('7', "9"))];
        for (told, expected) in [
            (flux("pools", "./pools", &broken), vec![of("CL0015", 7)]),
            (flux("pools", "./pools", by_file), vec![of("CL0016", 7)]),
            (argo("pools", by_file), vec![of("CL0015", 7)]),
            (flux("pools", "./pools", "components: [../x]"), vec![of("CL0015", 7)]),
            (different.join("---\n"), vec![of("CL0016", 7), of("CL0016", 15)]),
            // Nobody knows enough of a folder without objects of ours.
            (flux("apps", "./apps", &broken), Vec::new()),
        ] {
            assert_eq!(linted(&[("pools/pool.yaml", POOL), ("clusters/told.yaml", &told)]), expected, "{told}");
        }
    }

    #[test]
    fn components_and_files_of_patches_are_found_from_the_folder() {
        let pool = ("pools/pool.yaml", POOL);
        let kustomization = ("pools/kustomization.yaml", "resources: [pool.yaml]\n");
        let component = (
            "components/heavy/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [more.yaml]\n\
             patches: [{ target: { kind: NodePool }, path: weight.yaml }]\n",
        );
        let more = POOL.replace("name: default }\nspec", "name: more }\nspec");
        let weight = "- { op: add, path: /spec/weight, value: 7 }\n";
        let beside = [component, ("components/heavy/more.yaml", &more), ("components/heavy/weight.yaml", weight)];
        let components = "components: [../components/heavy]";
        for around in [&[pool][..], &[pool, kustomization]] {
            for told in [flux("pools", "./pools", components), argo("pools", components)] {
                let files = [around, &beside, &[("clusters/told.yaml", told.as_str())]].concat();
                let definitions = read_files(&files);
                assert!(!definitions.has_errors(), "{told}: {:?}", definitions.diagnostics);
                assert_eq!((weights(&definitions), notes(&definitions)), (vec![Some(7), Some(7)], 0), "{told}");
                assert_eq!(linted(&files), [], "{told}");
            }
        }
        let told = argo("pools", "patches: [{ target: { kind: NodePool }, path: ../components/heavy/weight.yaml }]");
        let definitions = read_files(&[pool, kustomization, beside[2], ("clusters/told.yaml", &told)]);
        assert_eq!((weights(&definitions), notes(&definitions)), (vec![Some(7)], 0), "{:?}", definitions.diagnostics);
    }

    #[test]
    fn replicas_are_those_that_argo_cd_is_told() {
        let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec:\n  replicas: 1\n  template: { metadata: { labels: { app: web } } }\n---\n\
                   apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: { name: web }\nspec: { minAvailable: 1, selector: { matchLabels: { app: web } } }\n";
        let kustomization = ("apps/kustomization.yaml", "resources: [web.yaml]\n");
        let of = |counts: &[&str]| {
            let told = counts.iter().map(|count| argo("apps", &format!("replicas: [{{ name: web, count: {count} }}]")));
            told.collect::<Vec<String>>().join("---\n")
        };
        for (beside, told, is_evicted) in [
            (&[][..], of(&["1"]), false),
            (&[], of(&["3"]), true),
            (&[kustomization], of(&["'3'"]), true),
            (&[], of(&["3", "3"]), true),
            // Nobody knows which cluster is meant, so the file counts.
            (&[], of(&["3", "5"]), false),
        ] {
            let files = [&[("apps/web.yaml", web), ("clusters/told.yaml", told.as_str())], beside].concat();
            let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
            let found = lint(&files, &GivenVariables::default()).diagnostics;
            let codes: Vec<&str> = found.iter().map(|it| it.code.as_str()).collect();
            assert_eq!(codes, if is_evicted { &[][..] } else { &["CL0340"] }, "{told}: {found:?}");
        }
    }

    #[test]
    fn replicas_of_nothing_are_said_as_kustomize_says_them() {
        let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec:\n  replicas: 3\n";
        let at_line = ("CL0015".to_owned(), "clusters/told.yaml".to_owned(), 7);
        let pool = POOL.replace("${cpu:=100}", "100");
        let files =
            [("apps/web.yaml", web), ("apps/pool.yaml", pool.as_str()), ("apps/names.yaml", "nameReference: []\n")];
        for (kustomization, entry, is_found) in [
            ("resources: [web.yaml]", "name: wbe, count: 1", true),
            ("resources: [web.yaml]", "name: wbe, count: '1'", true),
            ("resources: [web.yaml]", "name: web, count: 1", false),
            ("resources: [web.yaml, pool.yaml]", "name: wbe, count: 1", true),
            ("resources: [web.yaml]\nnamePrefix: a-", "name: a-web, count: 1", false),
            // What has them may be among what nobody here knows.
            ("resources: [web.yaml, 'https://example.com/all.yaml']", "name: wbe, count: 1", false),
            ("resources: [web.yaml]\nhelmCharts: [{ name: wbe }]", "name: wbe, count: 1", false),
            ("resources: [web.yaml]\nconfigurations: [names.yaml]", "name: wbe, count: 1", false),
            ("resources: [pool.yaml]", "name: '{{ name }}', count: 1", false),
        ] {
            let told = argo("apps", &format!("replicas: [{{ {entry} }}]"));
            let beside = [("apps/kustomization.yaml", kustomization), ("clusters/told.yaml", told.as_str())];
            let found = linted(&[&files[..], &beside].concat()).into_iter().filter(|it| it.1 == at_line.1);
            let expected: Vec<_> = is_found.then(|| at_line.clone()).into_iter().collect();
            assert_eq!(found.collect::<Vec<_>>(), expected, "{kustomization} {entry}");
        }
        // Argo CD builds nothing of a folder without a kustomization, whatever it is told.
        let told = argo("apps", "replicas: [{ name: wbe, count: 1 }]");
        assert_eq!(linted(&[files[0], ("clusters/told.yaml", &told)]), []);
    }

    #[test]
    fn a_patch_that_changes_is_judged_again() {
        let given = GivenVariables::default();
        let mut memory = Memory::default();
        for weight in ["7", "500", "500", "7"] {
            let told = flux("pools", "./pools", &PATCHES.replace('7', weight));
            let files = [("pools/pool.yaml", POOL), ("clusters/told.yaml", told.as_str())];
            let files: Vec<SourceFile> = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
            assert_eq!(
                lint_again(&files, &given, LintOptions::default(), &mut memory).has_errors(),
                weight == "500",
                "{weight}"
            );
        }
    }
}
