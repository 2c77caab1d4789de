//! Folders that Flux and Argo CD are told to apply. Each is applied by itself, also where kustomizations elsewhere build upon it.

use std::collections::BTreeMap;

use super::argo;
use super::document::{Document, Parsed};
use super::files;
use super::flux::FluxKustomizations;
use crate::api::kustomization::folder;
use crate::api::source::{SourceFile, Standing};

/// By folder, whether what lies in the folders below it is applied as well.
#[derive(Clone, Debug, Default)]
pub struct Roots(BTreeMap<String, bool>);

impl Roots {
    /// `parsed` has the documents of each of the files.
    pub fn of(flux: &FluxKustomizations, sources: &[&SourceFile], parsed: &[Parsed]) -> Self {
        let mut roots: BTreeMap<String, bool> = BTreeMap::new();
        let own = sources.iter().zip(parsed).filter(|(source, _)| source.standing != Standing::Applied);
        let documents = own.flat_map(|(_, parsed)| &parsed.documents);
        let of_argo = documents.filter(|it| argo::is_application(it)).flat_map(of_application);
        let of_flux = flux.folders().map(|(folder, _)| (folder.to_owned(), true));
        for (folder, is_deep) in of_argo.chain(of_flux) {
            *roots.entry(folder).or_default() |= is_deep;
        }
        // The root of a repository holds what others apply as well, and may be that of another one.
        roots.remove("");
        Self(roots)
    }

    pub fn is_one(&self, folder: &str) -> bool {
        self.0.contains_key(folder)
    }

    /// The nearest of them that a file is applied with.
    pub fn around(&self, path: &str) -> Option<&str> {
        let own = folder(path);
        let known = files::folders_around(path).filter_map(|around| self.0.get_key_value(around));
        let mut applied = known.filter(|(root, is_deep)| **is_deep || root.as_str() == own);
        applied.next().map(|(root, _)| root.as_str())
    }
}

/// A source that says which of its files are meant, or what makes objects of them, is not judged as the files stand.
fn of_application(application: &Document) -> Vec<(String, bool)> {
    const CHOICES: [&str; 5] = ["plugin", "helm", "directory/include", "directory/exclude", "directory/jsonnet"];
    let is_whole = |source: &String| {
        let says = |field: &&str| application.value.pointer(&format!("{source}/{field}")).is_some();
        !CHOICES.iter().any(says)
    };
    let sources = argo::sources_of(application).into_iter().filter(is_whole);
    sources.filter_map(|source| argo::folder_of(application, &source)).collect()
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::{GivenVariables, lint};

    const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  limits: { cpu: 64x }
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements: [{ key: topology.kubernetes.io/zone, operator: In, values: [eu-central-1a] }]
";
    const PATCHED: &str = "patches:
- target: { kind: NodePool }
  patch: '- { op: replace, path: /spec/limits/cpu, value: 8 }'
";

    fn flux(name: &str) -> String {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{ name: {name} }}\nspec: {{ path: ./{name}, sourceRef: {{ kind: GitRepository, name: all }} }}\n---\n"
        )
    }

    fn argo(source: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{ name: a }}\nspec: {{ source: {{ {source} }} }}\n---\n"
        )
    }

    /// Codes and files of what is found, but for classes that are elsewhere.
    fn found(told: &str, files: &[(&str, &str)]) -> Vec<(String, String)> {
        let told = ("clusters/told.yaml", told);
        let files = files.iter().chain([&told]);
        let files: Vec<SourceFile> = files.map(|(path, text)| SourceFile::new(*path, *text)).collect();
        let found = lint(&files, &GivenVariables::default()).diagnostics.into_iter();
        found.filter(|it| it.code != "CL0601").map(|it| (it.code, it.file)).collect()
    }

    fn staging(kustomization: &str) -> (&str, &str) {
        ("staging/kustomization.yaml", kustomization)
    }

    #[test]
    fn what_is_applied_by_itself_is_judged_so() {
        let pool = ("production/pool.yaml", POOL);
        let named = ("production/kustomization.yaml", "resources: [pool.yaml]\n");
        let deeper =
            [("production/pools/pool.yaml", POOL), ("production/pools/kustomization.yaml", "resources: [pool.yaml]\n")];
        let of_folder = |resource: &str| format!("resources: [{resource}]\n{PATCHED}");
        let (by_file, by_folder, by_deeper) =
            (of_folder("../production/pool.yaml"), of_folder("../production"), of_folder("../production/pools"));
        let both = flux("production") + &flux("staging");
        for (told, files, is_applied) in [
            (both.clone(), vec![pool, staging(&by_file)], true),
            (both.clone(), vec![pool, named, staging(&by_folder)], true),
            (both, [&deeper[..], &[staging(&by_deeper)]].concat(), true),
            (argo("path: production"), vec![pool, staging(&by_file)], true),
            (argo("path: production"), vec![pool, named, staging(&by_folder)], true),
            (argo("path: production"), [&deeper[..], &[staging(&by_deeper)]].concat(), false),
            (argo("path: production, directory: { exclude: pool.yaml }"), vec![pool, staging(&by_file)], false),
            (argo("path: '{{ path }}'"), vec![pool, staging(&by_file)], false),
            (flux("staging"), vec![pool, staging(&by_file)], false),
            (flux("staging"), vec![pool, named, staging(&by_folder)], false),
        ] {
            let expected =
                |file: &(&str, &str)| file.0.ends_with("pool.yaml").then(|| ("CL0206".to_owned(), file.0.to_owned()));
            let expected: Vec<(String, String)> = files.iter().filter(|_| is_applied).filter_map(expected).collect();
            let mut found = found(&told, &files);
            found.retain(|(code, _)| code == "CL0206");
            assert_eq!(found, expected, "{told} {files:?}");
        }
    }

    #[test]
    fn regions_of_separate_roots_are_not_mixed() {
        let eu = POOL.replace("64x", "8");
        let us = eu.replace("eu-central-1a", "us-west-2a").replace("name: default }\nspec", "name: west }\nspec");
        let files = [("production/pool.yaml", eu.as_str()), ("staging/pool.yaml", us.as_str())];
        let codes = |told: &str, files: &[(&str, &str)]| {
            let found = found(told, files).into_iter();
            found.map(|(code, _)| code).filter(|code| code == "CL0329").collect::<Vec<String>>()
        };
        assert_eq!(codes("", &files), ["CL0329"]);
        assert_eq!(codes(&(flux("production") + &flux("staging")), &files), Vec::<String>::new());
        let more = eu.replace("name: default }\nspec", "name: more }\nspec");
        let both = [files[0], files[1], ("staging/more.yaml", more.as_str())];
        assert_eq!(codes(&(flux("production") + &flux("staging")), &both), ["CL0329"]);
    }
}
