//! Paths as forges know them, whatever way they were typed.

use std::collections::BTreeMap;
use std::path::Path;

use crate::definitions::Diagnostic;
use crate::render::diagnostics::LintReport;

/// The path of a file from the folder in which somebody works, or else from the root of its repository. What was typed from there already
/// stays.
pub fn relative(path: &str) -> String {
    let typed = Path::new(path);
    if !typed.is_absolute() {
        return path.to_owned();
    }
    let current = std::env::current_dir().ok().filter(|current| current.parent().is_some());
    let root = || typed.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned);
    let below = |above| typed.strip_prefix(above).ok();
    let found = current.as_deref().and_then(below).map(Path::to_owned);
    let found = found.or_else(|| Some(typed.strip_prefix(root()?).ok()?.to_owned()));
    found.map_or_else(|| path.to_owned(), |found| found.to_string_lossy().into_owned())
}

/// The report with such paths, and by each of them the path that was typed.
pub fn of_forges(report: &LintReport) -> (LintReport, BTreeMap<String, String>) {
    let mut typed = BTreeMap::new();
    let mut report = report.clone();
    let mut rename = |path: &mut String| {
        let known_as = relative(path);
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
