//! What has to be known of a repository before its first definition is read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::document::{self, Document, scalar};
use super::files;
use super::findings::{Finding, FindingPlace};
use super::flux::{self, FluxKustomizations};
use super::roots::Roots;
use super::rules::kinds as rules;
use super::substitution::Values;
use super::versions::{Installed, SaidBy};
use crate::api::source::{SourceFile, Standing};
use crate::api::{scenario, settings};
use crate::core::plan::DefinitionPlace;

/// Where `cutlist.yaml` names the findings that are known.
pub const BASELINE: &str = "/spec/lint/baseline";

/// What Flux puts in the place of variables, by the folder that it builds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flux {
    pub values: BTreeMap<String, flux::Values>,
    /// What each Kustomization says, for folders of which several say different things. Other folders have no entry.
    pub of_clusters: BTreeMap<String, Vec<(String, flux::Values)>>,
    /// All variables that have a value, for folders where the files say all that Flux is told.
    pub names: BTreeMap<String, BTreeSet<String>>,
    /// Folders in which Flux replaces variables, be they those of the files or others.
    pub substituted: BTreeSet<String>,
}

/// What `cutlist.yaml`, `scenario.yaml` and the names of the files say.
#[derive(Default)]
pub struct Context {
    pub variables: BTreeMap<String, String>,
    /// Variables of files below a folder that Flux builds, by the folder. They include the variables above, which come
    /// before those of Flux.
    pub of_flux: Flux,
    /// Where Flux gives variables their values, by the folder that it builds. Only plans need these places.
    pub places_of_flux: BTreeMap<String, flux::Places>,
    /// The variables whose values are shown nowhere.
    pub hidden: BTreeSet<String>,
    /// Entries of `spec.paths`.
    pub paths: Vec<String>,
    /// The settings document, for the place of its paths and what it says of findings.
    pub settings: Option<Document>,
    /// Files that a scenario commits later.
    pub staged: BTreeSet<String>,
    pub templates: BTreeSet<String>,
    /// The file of `spec.lint.baseline`, which holds no definition.
    pub baseline: Option<String>,
    /// The Karpenter that the definitions are for, where one is named.
    pub karpenter: Option<Installed>,
    /// Settings, scenarios and image locks of folders below, which are planned by themselves. Only a report looks at them.
    pub of_own_folders: BTreeSet<String>,
    /// What Flux and Argo CD apply by itself. Only a report goes by it.
    pub roots: Roots,
}

impl Context {
    pub fn new(sources: &[&SourceFile], overrides: &BTreeMap<String, String>) -> Self {
        let first = |name: &str| {
            let (index, source) = sources.iter().enumerate().find(|(_, source)| source.path == name)?;
            let text: Arc<str> = str::from_utf8(&source.content).ok()?.into();
            document::parse(index, &text).documents.into_iter().next()
        };
        let mut context = Self { settings: first(settings::FILE_NAME), ..Self::default() };
        if let Some(settings) = &context.settings {
            let variables = settings.members("/spec/variables");
            context.variables.extend(variables.filter_map(|(_, name, value)| Some((name.to_owned(), scalar(value)?))));
            let baseline = settings.str(BASELINE);
            context.baseline = baseline.map(|path| path.strip_prefix("./").unwrap_or(path).to_owned());
            // The schema of the settings refuses a version that is not known.
            let version = settings.str("/spec/lint/karpenterVersion").and_then(|version| version.parse().ok());
            context.karpenter = version.map(|version| Installed { version, said_by: SaidBy::Settings });
            context
                .paths
                .extend(settings.items("/spec/paths").filter_map(|(_, path)| path.as_str().map(str::to_owned)));
        }
        context.variables.extend(overrides.iter().map(|(name, value)| (name.clone(), value.clone())));
        if let Some(scenario) = first(scenario::FILE_NAME) {
            for (step, _) in scenario.items("/spec/steps") {
                let pointer = format!("{step}/commit/files");
                let files = scenario.members(&pointer);
                context.staged.extend(files.filter_map(|(_, _, file)| file.as_str().map(str::to_owned)));
            }
        }
        context.templates = files::chart_templates(sources);
        context
    }

    /// The cluster that the settings name.
    pub fn cluster(&self) -> Option<&str> {
        self.settings.as_ref()?.str("/spec/clusterName")
    }

    /// Takes the variables that Flux is told of in the files, beside those that are known. With `of_each` it takes
    /// those of each cluster, too.
    pub fn take_flux(&mut self, kustomizations: &FluxKustomizations, of_each: bool) {
        self.of_flux.values = kustomizations.values();
        self.of_flux.names = kustomizations.names_told();
        self.of_flux.substituted = kustomizations.substituted();
        if of_each {
            self.of_flux.of_clusters = kustomizations.of_clusters();
        } else {
            self.places_of_flux = kustomizations.places();
            let others = self.places_of_flux.values_mut();
            others.for_each(|places| places.retain(|name, _| !self.variables.contains_key(name)));
        }
        let of_clusters = self.of_flux.of_clusters.values_mut().flatten().map(|(_, values)| values);
        for values in self.of_flux.values.values_mut().chain(of_clusters) {
            values.extend(self.variables.clone());
        }
    }

    /// What variables stand for in a file, or in what the kustomization of this path builds.
    pub fn values_at(&self, path: &str) -> Values<'_> {
        let (is_of_flux, values) = match files::nearest(&self.of_flux.values, path) {
            Some((folder, values)) => (self.of_flux.substituted.contains(folder), values),
            None => (false, &self.variables),
        };
        Values { of: values, hidden: &self.hidden, is_of_flux }
    }

    /// All variables that Flux has a value for at this path. `None` where Flux is told of none, or where not all that
    /// it is told is known.
    pub fn names_of_flux(&self, path: &str) -> Option<&BTreeSet<String>> {
        let (folder, _) = files::nearest(&self.of_flux.values, path)?;
        self.of_flux.names.get(folder)
    }

    /// What variables stand for at this path, for each Kustomization of Flux that says something else, with its name.
    pub fn values_of_clusters(&self, path: &str) -> impl Iterator<Item = (&str, Values<'_>)> {
        let clusters = files::nearest(&self.of_flux.of_clusters, path).into_iter().flat_map(|(_, all)| all);
        let of = |values| Values { of: values, hidden: &self.hidden, is_of_flux: true };
        clusters.map(move |(cluster, values)| (cluster.as_str(), of(values)))
    }

    /// Where the texts of a document get their values in what Flux is told, by pointer. The kustomization of this path
    /// builds the document, or it stands in this file. Only a text with one variable that Flux gives a value has a
    /// place.
    pub fn given_at(&self, path: &str, document: &Document) -> BTreeMap<String, DefinitionPlace> {
        let Some((_, places)) = files::nearest(&self.places_of_flux, path) else { return BTreeMap::new() };
        let given = document.variables.names().iter().filter_map(|(pointer, names)| {
            let mut given = names.iter().filter_map(|name| places.get(name));
            let (file, line) = given.next().filter(|_| names.len() == 1)?;
            Some((pointer.clone(), DefinitionPlace { file: file.clone(), line: *line }))
        });
        given.collect()
    }

    /// The folder of templates that the file lies in.
    pub fn template_of(&self, path: &str) -> Option<&str> {
        self.templates.iter().map(String::as_str).find(|folder| path.starts_with(folder))
    }

    /// Entries of `spec.paths` under which there is nothing. Such paths say nothing of what a cluster has.
    pub fn unused_paths(&self, sources: &[&SourceFile]) -> Vec<Finding> {
        let Some(settings) = &self.settings else { return Vec::new() };
        if sources.iter().any(|source| source.standing == Standing::Applied) {
            return Vec::new();
        }
        let unused = |path: &str| !sources.iter().any(|source| files::covers(path, &source.path));
        let entries = settings.items("/spec/paths").filter_map(|(pointer, path)| Some((pointer, path.as_str()?)));
        let entries = entries.filter(|(_, path)| unused(path));
        let finding = |(pointer, path): (String, &str)| {
            let message = format!("nothing to read under `{path}`");
            Finding::at(&rules::EMPTY_PATH, settings, &pointer, FindingPlace::Value, message)
                .hint("paths are files and folders of the repository, from its root")
        };
        entries.map(finding).collect()
    }
}
