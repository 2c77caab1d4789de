//! Paths as forges and baselines know them, whatever way they were typed, and from wherever.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::api::kustomization;
use crate::cli::inputs;
use crate::definitions::Diagnostic;
use crate::render::diagnostics::LintReport;

/// Finds the repositories of files. What is known of a folder is not asked for again.
#[derive(Debug, Default)]
pub struct Places {
    repositories: BTreeMap<PathBuf, Option<PathBuf>>,
}

impl Places {
    /// The path of a file from the root of its repository, or else from the folder in which somebody works.
    pub fn relative(&mut self, path: &str) -> String {
        if path == inputs::STDIN_SHOWN {
            return path.to_owned();
        }
        let Some(place) = absolute(path) else { return path.to_owned() };
        let folder = place.parent().unwrap_or(&place);
        let below = |above: &Path| place.strip_prefix(above).ok().map(shown);
        let of_repository = self.repository_of(folder).and_then(|root| below(&root));
        let current = || std::env::current_dir().ok().filter(|current| current.parent().is_some());
        let of_current = || current().filter(|_| Path::new(path).is_absolute()).and_then(|current| below(&current));
        of_repository.or_else(of_current).unwrap_or_else(|| path.to_owned())
    }

    fn repository_of(&mut self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.repositories.get(folder) {
            return known.clone();
        }
        let root = folder.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned);
        self.repositories.insert(folder.to_owned(), root.clone());
        root
    }
}

/// The path of a folder from the root of its repository; empty for the root, and for a folder that is in no repository.
pub fn below_root(folder: &Path) -> String {
    let place = folder.to_str().and_then(absolute);
    let root = place.as_deref().and_then(|place| Places::default().repository_of(place));
    let below = |(place, root): (PathBuf, PathBuf)| place.strip_prefix(root).ok().map(shown);
    place.zip(root).and_then(below).unwrap_or_default()
}

/// Links on the way are left as they were typed: what is behind one is called by the path that leads there.
fn absolute(path: &str) -> Option<PathBuf> {
    let folder = match path.starts_with('/') {
        true => String::new(),
        false => std::env::current_dir().ok()?.to_str()?.to_owned(),
    };
    Some(Path::new("/").join(kustomization::join(&folder, path.trim_start_matches('/'))?))
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The report with such paths, and by each of them the path that was typed.
pub fn of_forges(report: &LintReport) -> (LintReport, BTreeMap<String, String>) {
    let mut places = Places::default();
    let mut typed = BTreeMap::new();
    let mut report = report.clone();
    let mut rename = |path: &mut String| {
        let known_as = places.relative(path);
        typed.insert(known_as.clone(), std::mem::replace(path, known_as));
    };
    let suppressed = report.suppressed.iter_mut().map(|it| &mut it.diagnostic);
    for Diagnostic { file, related, .. } in report.diagnostics.iter_mut().chain(suppressed) {
        rename(file);
        related.iter_mut().for_each(|related| rename(&mut related.file));
    }
    report.paths.iter_mut().for_each(rename);
    (report, typed)
}
