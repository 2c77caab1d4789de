//! What Argo CD is told in the files: its Applications, and the sources that each of them applies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document::{Document, Parsed};
use super::files::covers;
use super::generators::{Language, Parameters, Repository};
use super::globs::Glob;
use crate::api::kustomization::{folder, join};
use crate::api::source::{SourceFile, Standing};

/// The group of Argo CD's kinds.
pub const GROUP: &str = "argoproj.io";

/// A source of an Application, or of those of a set, and the folders that it is.
#[derive(Debug)]
pub struct ArgoSource<'d> {
    pub document: &'d Document,
    pub pointer: String,
    /// As far as the files tell.
    pub folders: BTreeSet<String>,
    /// A generator puts folders there of which the files tell nothing.
    pub is_open: bool,
}

/// Which files of a folder are applied.
#[derive(Clone, Debug)]
pub enum Choice {
    All,
    Some(Box<Chosen>),
    /// It is no pattern, or a generator makes one of it.
    NotKnown,
}

#[derive(Clone, Debug)]
pub struct Chosen {
    include: Option<Glob>,
    exclude: Option<Glob>,
}

impl Chosen {
    /// `path` is that from the folder.
    pub fn has(&self, path: &str) -> bool {
        self.include.as_ref().is_none_or(|glob| glob.has(path))
            && !self.exclude.as_ref().is_some_and(|glob| glob.has(path))
    }
}

impl ArgoSource<'_> {
    /// Whether what lies below the folders is applied as well.
    pub fn is_deep(&self) -> bool {
        self.value("directory/recurse") == Some(&Value::Bool(true))
    }

    pub fn value(&self, field: &str) -> Option<&Value> {
        self.document.value.pointer(&format!("{}/{field}", self.pointer))
    }

    pub fn choice(&self) -> Choice {
        let pattern = |field: &str| self.value(field).and_then(Value::as_str).filter(|pattern| !pattern.is_empty());
        let (include, exclude) = (pattern("directory/include"), pattern("directory/exclude"));
        if include.is_none() && exclude.is_none() {
            return Choice::All;
        }
        // `Some(None)`: nothing is said.
        let glob = |pattern: Option<&str>| match pattern {
            Some(pattern) => Glob::of_directory(pattern).filter(|_| !pattern.contains("{{")).map(Some),
            None => Some(None),
        };
        match (glob(include), glob(exclude)) {
            (Some(include), Some(exclude)) => Choice::Some(Box::new(Chosen { include, exclude })),
            _ => Choice::NotKnown,
        }
    }

    /// Whether it applies a file, or what the kustomization in this file makes.
    pub fn applies(&self, path: &str) -> bool {
        let own = folder(path);
        match self.is_deep() {
            true => self.folders.iter().any(|folder| covers(folder, path)),
            false => self.folders.contains(own),
        }
    }
}

/// Whether it is an Application, or a set of those.
pub fn is_application(document: &Document) -> bool {
    matches!(document.str("/kind"), Some("Application" | "ApplicationSet")) && document.group() == GROUP
}

/// All sources that are folders, in the order of the files. `parsed` has the documents of each of them.
pub fn sources<'d>(files: &[&SourceFile], parsed: &'d [Parsed]) -> Vec<ArgoSource<'d>> {
    let repository = Repository::of(files);
    let own = files.iter().zip(parsed).filter(|(file, _)| file.standing != Standing::Applied);
    let applications = own.flat_map(|(_, parsed)| &parsed.documents).filter(|it| is_application(it));
    applications.flat_map(|application| of_application(application, &repository)).collect()
}

fn of_application<'d>(application: &'d Document, repository: &Repository<'_>) -> Vec<ArgoSource<'d>> {
    let is_set = application.str("/kind") == Some("ApplicationSet");
    let all = if is_set { repository.applications(application) } else { vec![Parameters::default()] };
    let language = Language::of(application);
    // What a patch of the template changes is not worked out.
    let is_patched = application.str("/spec/templatePatch").is_some_and(|patch| patch.contains("source"));
    let source = |pointer: String| {
        let path = application.str(&format!("{pointer}/path"))?;
        let filled: Vec<Option<String>> = match is_patched || (is_set && repository.is_too_much(all.len())) {
            true => vec![None],
            false => all.iter().map(|parameters| parameters.fill(path, language)).collect(),
        };
        let is_open = is_set && filled.contains(&None);
        let folders = filled.into_iter().flatten().filter_map(|path| join("", path.trim_start_matches('/'))).collect();
        Some(ArgoSource { document: application, pointer, folders, is_open })
    };
    sources_of(application).into_iter().filter_map(source).collect()
}

/// Pointers of the sources of an Application, or of the template of those of a set.
pub fn sources_of(document: &Document) -> Vec<String> {
    let mut pointers = Vec::new();
    for spec in ["/spec", "/spec/template/spec"] {
        pointers.push(format!("{spec}/source"));
        pointers.extend(document.items(&format!("{spec}/sources")).map(|(pointer, _)| pointer));
    }
    pointers
}
