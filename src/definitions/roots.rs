//! Folders that Flux and Argo CD are told to apply. Each is applied by itself, also where kustomizations elsewhere build upon it.

use std::collections::BTreeMap;

use super::argo::{ArgoSource, Choice, Chosen};
use super::files;
use super::flux::FluxKustomizations;
use crate::api::kustomization::{self, folder};

/// By folder, what of it is applied.
#[derive(Clone, Debug, Default)]
pub struct Roots(BTreeMap<String, Ways>);

/// How those that apply a folder take it.
#[derive(Clone, Debug, Default)]
struct Ways {
    /// Somebody takes all of it.
    is_whole: bool,
    /// With what lies in the folders below it.
    is_deep: bool,
    /// Files that others choose, and whether they choose below it as well.
    chosen: Vec<(Box<Chosen>, bool)>,
}

/// Sources that choose files of one folder. Nobody divides a folder among more.
const CHOSEN_MAX: usize = 100;

/// What makes objects of files in another way than they stand.
const MAKERS: [&str; 3] = ["plugin", "helm", "directory/jsonnet"];

impl Roots {
    pub fn of(flux: &FluxKustomizations, argo: &[ArgoSource<'_>]) -> Self {
        let mut roots: BTreeMap<String, Ways> = BTreeMap::new();
        for (folder, _) in flux.folders() {
            roots.entry(folder.to_owned()).or_default().take_whole(true);
        }
        for source in argo.iter().filter(|source| !MAKERS.iter().any(|field| source.value(field).is_some())) {
            let choice = source.choice();
            for folder in &source.folders {
                let ways = roots.entry(folder.clone()).or_default();
                match &choice {
                    Choice::All => ways.take_whole(source.is_deep()),
                    Choice::Some(chosen) if ways.chosen.len() < CHOSEN_MAX => {
                        ways.chosen.push((chosen.clone(), source.is_deep()));
                    }
                    Choice::Some(_) | Choice::NotKnown => {}
                }
            }
        }
        // The root of a repository holds what others apply as well, and may be that of another one.
        roots.remove("");
        Self(roots)
    }

    pub fn is_one(&self, folder: &str) -> bool {
        self.0.get(folder).is_some_and(|ways| ways.is_whole)
    }

    /// The nearest of them that a file is applied with.
    pub fn around(&self, path: &str) -> Option<&str> {
        let known = files::folders_around(path).filter_map(|around| self.0.get_key_value(around));
        let mut applied = known.filter(|(root, ways)| ways.apply(root, path));
        applied.next().map(|(root, _)| root.as_str())
    }
}

impl Ways {
    fn take_whole(&mut self, is_deep: bool) {
        self.is_whole = true;
        self.is_deep |= is_deep;
    }

    fn apply(&self, root: &str, path: &str) -> bool {
        let is_here = folder(path) == root;
        // Who chooses files builds no kustomization.
        let below = path.strip_prefix(root).filter(|_| !kustomization::is_file(path));
        let below = below.map(|below| below.trim_start_matches('/'));
        let is_chosen = |(chosen, is_deep): &(Box<Chosen>, bool)| {
            (*is_deep || is_here) && below.is_some_and(|below| chosen.has(below))
        };
        (self.is_whole && (self.is_deep || is_here)) || self.chosen.iter().any(is_chosen)
    }
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::{GivenVariables, Severity, lint};

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
    const LIST: &str = "{ list: { elements: [{ folder: production }] } }";
    const FOLDERS: &str = "{ git: { directories: [{ path: '*' }, { path: staging, exclude: true }] } }";
    const PATCHED: &str = "patches:
- target: { kind: NodePool }
  patch: '- { op: replace, path: /spec/limits/cpu, value: 8 }'
";

    fn flux(name: &str) -> String {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{ name: {name} }}\nspec: {{ path: ./{name}, sourceRef: {{ kind: GitRepository, name: all }} }}\n---\n"
        )
    }

    fn set(generators: &str, source: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{ name: a }}\nspec: {{ generators: [{generators}], template: {{ spec: {{ source: {{ {source} }} }} }} }}\n---\n"
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
            (argo("path: production, directory: { exclude: '*.json' }"), vec![pool, staging(&by_file)], true),
            (argo("path: production, directory: { include: '{p,q}*.yaml' }"), vec![pool, staging(&by_file)], true),
            (argo("path: production, directory: { include: 'pools/*' }"), vec![pool, staging(&by_file)], false),
            (argo("path: production, directory: { include: '[' }"), vec![pool, staging(&by_file)], false),
            (set(LIST, "path: '{{ folder }}'"), vec![pool, staging(&by_file)], true),
            (set(FOLDERS, "path: '{{path}}'"), vec![pool, staging(&by_file)], true),
            (set(FOLDERS, "path: '{{path}}'"), vec![pool, named, staging(&by_folder)], true),
            (set(FOLDERS, "path: '{{path}}', helm: {}"), vec![pool, staging(&by_file)], false),
            (set("{ clusters: {} }", "path: '{{name}}'"), vec![pool, staging(&by_file)], false),
            (set("{ clusters: {} }", "path: production"), vec![pool, staging(&by_file)], true),
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
    fn folders_that_no_file_tells_are_said_once() {
        let pool = ("production/pool.yaml", POOL);
        let said = |told: &str| {
            let files = [pool, ("clusters/told.yaml", told)].map(|(path, text)| SourceFile::new(path, text));
            let found = lint(&files, &GivenVariables::default()).diagnostics.into_iter();
            let found = found.filter(|it| it.code == "CL0016");
            found.map(|it| (it.severity, it.span.line, it.message)).collect::<Vec<_>>()
        };
        let message = "no file tells which folders these are: `production` may be one, and is not judged by itself";
        let open = set("{ clusters: {} }", "path: '{{name}}'");
        assert_eq!(said(&open), [(Severity::Note, 4, message.to_owned())]);
        for told in [
            set("{ clusters: {} }", "path: 'apps/{{name}}'"),
            set("{ clusters: {} }", "path: production"),
            set(&format!("{FOLDERS}, {{ clusters: {{}} }}"), "path: '{{path}}'"),
            set(LIST, "path: '{{ folder }}'"),
            argo("path: '{{name}}'"),
        ] {
            assert_eq!(said(&told), [], "{told}");
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
