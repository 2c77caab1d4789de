//! `--changed-since`: what a change is answerable for. That is what is found in the files that it touches, and what is found elsewhere and
//! was not before, since something there depends on what it touches.

use std::collections::{BTreeMap, BTreeSet};

use super::Earlier;
use super::sets::Set;
use crate::cli::arguments::LintArguments;
use crate::definitions::Diagnostic;
use crate::render::diagnostics::LintReport;

/// The files and findings of a revision.
pub struct Base {
    contents: BTreeMap<String, Vec<u8>>,
    fingerprints: BTreeSet<String>,
}

impl Base {
    pub fn of(earlier: &Earlier, arguments: &LintArguments) -> Self {
        let report = super::report(&earlier.sets, &earlier.definitions, arguments);
        let diagnostics = report.diagnostics.into_iter().map(|diagnostic| diagnostic.fingerprint);
        Self { fingerprints: diagnostics.collect(), contents: contents(&earlier.sets) }
    }

    /// Leaves what is new, and what is in files that are.
    pub fn narrow(&self, report: &mut LintReport, sets: &[Set]) {
        let contents = contents(sets);
        let changed = |path: &str| contents.get(path) != self.contents.get(path);
        let stays =
            |diagnostic: &Diagnostic| changed(&diagnostic.file) || !self.fingerprints.contains(&diagnostic.fingerprint);
        report.diagnostics.retain(stays);
        report.suppressed.retain(|suppressed| changed(&suppressed.diagnostic.file));
        let found: BTreeSet<&str> = report.diagnostics.iter().map(|it| it.file.as_str()).collect();
        report.paths.retain(|path| changed(path) || found.contains(path.as_str()));
        report.count();
    }
}

/// The content of each file by its path as it was typed.
fn contents(sets: &[Set]) -> BTreeMap<String, Vec<u8>> {
    let files = sets.iter().flat_map(|set| set.files.iter().map(move |file| (set.typed(&file.path), file)));
    files.map(|(path, file)| (path, file.content.clone())).collect()
}
