//! CL0625: folders that Flux or Argo CD is told to build, and that are not there; and CL0016 of those that no file tells.
//! Sources: Flux, Kustomization, "Path", and GitRepository, "Include"; Argo CD, "Application Specification".

use std::collections::BTreeSet;

use super::Rule;
use super::kustomize::NOT_CARRIED_OUT;
use crate::api::kustomization::{folder, join};
use crate::api::source::{SourceFile, Standing};
use crate::definitions::argo::{self, ArgoSource};
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::files::{covers, folders_around};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::flux::GROUP as FLUX;
use crate::definitions::globs::Glob;
use crate::definitions::revision::Object;
use crate::definitions::suggest;

pub static PATH_MISSING: Rule =
    Rule::pass("CL0625", "path-missing", Note, "The folders that Flux and Argo CD build of a repository are in it.");

pub static RULES: &[&Rule] = &[&PATH_MISSING];

const SOURCES_OF_FLUX: &str = "source.toolkit.fluxcd.io";

/// A folder that is to be built.
struct Built<'d> {
    document: &'d Document,
    /// Where its path stands.
    pointer: String,
    /// The path of the folder from the root of the repository.
    folder: String,
    /// What tells its repository from others.
    source: String,
}

/// Finds nothing in a source of which no folder is there, as that is another repository. `files` are all files of this
/// one, from its root.
pub fn paths_missing(documents: &[&Document], files: &[&SourceFile]) -> Vec<Finding> {
    let built: Vec<Built<'_>> = documents.iter().flat_map(|it| of_flux(it).into_iter().chain(of_argo(it))).collect();
    if built.is_empty() {
        return Vec::new();
    }
    let folders: BTreeSet<&str> = files.iter().flat_map(|file| folders_around(&file.path)).collect();
    // What a link or a submodule brings is not read.
    let is_bringing = |file: &&&SourceFile| !matches!(file.standing, Standing::Own | Standing::Template);
    let bringing: Vec<&str> = files.iter().filter(is_bringing).map(|file| file.path.as_str()).collect();
    let is_there =
        |it: &Built<'_>| folders.contains(it.folder.as_str()) || bringing.iter().any(|path| covers(path, &it.folder));
    let ours: BTreeSet<&str> = built.iter().filter(|it| is_there(it)).map(|it| it.source.as_str()).collect();
    let with_others = with_others(documents);
    let is_missing = |it: &&Built<'_>| ours.contains(it.source.as_str()) && !is_there(it);
    let missing = built.iter().filter(is_missing).filter(|it| !with_others.contains(it.source.as_str()));
    missing.map(|it| finding(it, &folders)).collect()
}

fn finding(built: &Built<'_>, folders: &BTreeSet<&str>) -> Finding {
    let folder = &built.folder;
    let message =
        format!("no file of YAML or JSON lies in `{folder}` of this repository, as one does in others of its source");
    let finding = Finding::at(&PATH_MISSING, built.document, &built.pointer, FindingPlace::Value, message);
    match suggest::nearest(folder, folders.iter().copied()) {
        Some(near) => finding.hint(format!("there is `{near}`")),
        None => finding.hint("the path is that of a folder, from the root of the repository"),
    }
}

/// Sets of Applications whose generators ask for what stands in no file, where definitions lie in what may come of it. `paths` are those of
/// the files, in their order.
pub fn not_told(argo: &[ArgoSource<'_>], objects: &[Object], paths: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in argo.iter().filter(|source| source.is_open) {
        let pointer = format!("{}/path", source.pointer);
        let Some(glob) = source.document.str(&pointer).and_then(glob_of) else { continue };
        let lying = objects.iter().filter(|it| it.kind.is_object() && !it.staged && it.root.is_none());
        let places = lying.filter_map(|it| paths.get(it.build.unwrap_or(it.document.file)));
        let may_be = |place: &&&str| folders_around(place).any(|it| glob.has(it));
        let folders: BTreeSet<&str> = places.filter(may_be).map(|place| folder(place)).collect();
        let Some(first) = folders.first() else { continue };
        let what = match folders.len() {
            1 => format!("`{first}` may be one, and is not judged by itself"),
            count => format!("`{first}` and {} more may be among them, and are not judged by themselves", count - 1),
        };
        let message = format!("no file tells which folders these are: {what}");
        let finding = Finding::at(&NOT_CARRIED_OUT, source.document, &pointer, FindingPlace::Value, message);
        let mut finding = finding.hint("to judge one of them: argocd app manifests NAME | cutlist lint -");
        // The set may be right as it is, and there is no other way to write it.
        finding.severity = Note;
        findings.push(finding);
    }
    findings
}

/// What a path is with anything in the place of its parameters.
fn glob_of(path: &str) -> Option<Glob> {
    let mut pattern = String::new();
    let mut rest = path.trim_start_matches('/').trim_start_matches("./");
    while let Some((before, behind)) = rest.split_once("{{") {
        pattern.push_str(&literal(before));
        pattern.push('*');
        rest = behind.split_once("}}")?.1;
    }
    pattern.push_str(&literal(rest.trim_end_matches('/')));
    Glob::of_directory(&pattern)
}

fn literal(text: &str) -> String {
    let escaped = text.chars().flat_map(|sign| {
        let is_of_patterns = ['*', '?', '[', ']', '{', '}', '\\'].contains(&sign);
        is_of_patterns.then_some('\\').into_iter().chain([sign])
    });
    escaped.collect()
}

/// The folder of a path as both Flux and Argo CD take it. `None` for a folder that lies elsewhere, that has a variable
/// in its path, or that is hidden.
fn folder_of(path: &str) -> Option<String> {
    let folder = join("", path.trim_start_matches('/'))?;
    let is_hidden = folder.split('/').any(|part| part.starts_with('.'));
    (!folder.is_empty() && !is_hidden && !folder.contains("${") && !folder.contains("{{")).then_some(folder)
}

fn of_flux(document: &Document) -> Option<Built<'_>> {
    let text = |field: &str| document.str(&format!("/spec/sourceRef/{field}"));
    let is_one = document.group() == FLUX && document.str("/kind") == Some("Kustomization");
    if !is_one || text("kind") != Some("GitRepository") {
        return None;
    }
    let pointer = "/spec/path";
    let folder = folder_of(document.str(pointer)?)?;
    Some(Built { document, pointer: pointer.to_owned(), folder, source: format!("GitRepository {}", text("name")?) })
}

fn of_argo(document: &Document) -> Vec<Built<'_>> {
    let built = |source: String| {
        let text = |field: &str| document.str(&format!("{source}/{field}"));
        // A plugin makes objects of whatever lies there, and Jsonnet is neither YAML nor JSON.
        let is_of_others = ["plugin", "directory/jsonnet"]
            .iter()
            .any(|field| document.value.pointer(&format!("{source}/{field}")).is_some());
        let folder = text("path").filter(|_| !is_of_others).and_then(folder_of)?;
        let repository = text("repoURL").filter(|it| !it.contains("{{"))?;
        let revision = text("targetRevision").unwrap_or_default();
        let pointer = format!("{source}/path");
        Some(Built { document, pointer, folder, source: format!("{repository} {revision}") })
    };
    let sources = argo::is_application(document).then(|| argo::sources_of(document));
    sources.into_iter().flatten().filter_map(built).collect()
}

/// Sources into which Flux puts what other repositories have.
fn with_others(documents: &[&Document]) -> BTreeSet<String> {
    let is_one = |it: &&&Document| it.group() == SOURCES_OF_FLUX && it.str("/kind") == Some("GitRepository");
    let including = documents.iter().filter(is_one).filter(|it| it.value.pointer("/spec/include").is_some());
    including.filter_map(|it| Some(format!("GitRepository {}", it.str("/metadata/name")?))).collect()
}

#[cfg(test)]
mod tests {
    use crate::api::source::{SourceFile, Standing};
    use crate::definitions::{GivenVariables, LintOptions, lint_with};

    const POOL: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: general }\n";

    fn flux(name: &str, path: &str) -> String {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{ name: {name} }}\nspec:\n  path: {path}\n  sourceRef: {{ kind: GitRepository, name: flux-system }}\n---\n"
        )
    }

    fn argo(repository: &str, path: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{ name: a }}\nspec:\n  source: {{ repoURL: {repository}, path: {path} }}\n---\n"
        )
    }

    fn said(told: &str, more: Vec<SourceFile>, is_root: bool) -> Vec<String> {
        let mut files = vec![SourceFile::new("clusters/told.yaml", told), SourceFile::new("nodes/pools/a.yaml", POOL)];
        files.extend(more);
        let options = LintOptions { is_root, ..LintOptions::default() };
        let found = lint_with(&files, &GivenVariables::default(), options).diagnostics.into_iter();
        let found = found.filter(|it| it.code == super::PATH_MISSING.code);
        found.map(|it| format!("{}: {}; {}", it.span.line, it.message, it.hint.unwrap_or_default())).collect()
    }

    #[test]
    fn folders_that_are_not_there_are_named() {
        let told = [flux("a", "./nodes/pools"), flux("b", "./nodes/pols"), flux("c", "./apps")].concat();
        let message = |folder: &str| {
            format!(
                "no file of YAML or JSON lies in `{folder}` of this repository, as one does in others of its source"
            )
        };
        let expected = [
            format!("12: {}; there is `nodes/pools`", message("nodes/pols")),
            format!("19: {}; the path is that of a folder, from the root of the repository", message("apps")),
        ];
        assert_eq!(said(&told, Vec::new(), true), expected);
        assert_eq!(said(&told, Vec::new(), false), [""; 0], "of what lies around the files nobody knows");
        let of_argo =
            [argo("https://git.example.com/own", "nodes"), argo("https://git.example.com/own", "apps")].concat();
        assert_eq!(said(&of_argo, Vec::new(), true).len(), 1);
    }

    #[test]
    fn what_may_be_elsewhere_is_not_named() {
        let known = flux("a", "./nodes/pools");
        for told in [
            // No folder of this source is known to be here.
            flux("b", "./apps"),
            [known.clone(), argo("https://git.example.com/others", "apps")].concat(),
            [known.clone(), flux("b", "./apps/${CLUSTER}"), flux("c", "./.hidden"), flux("d", "./")].concat(),
            [known.clone(), flux("b", "./apps").replace("GitRepository", "OCIRepository")].concat(),
            format!(
                "{known}{}apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{ name: flux-system }}\nspec: {{ include: [] }}\n",
                flux("b", "./apps")
            ),
        ] {
            assert_eq!(said(&told, Vec::new(), true), [""; 0], "{told}");
        }
        let submodule = SourceFile { standing: Standing::Submodule, ..SourceFile::new("apps", "abc") };
        let told = [known, flux("b", "./apps/web")].concat();
        assert_eq!(said(&told, vec![submodule], true), [""; 0]);
    }
}
