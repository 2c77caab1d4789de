//! `--fix` and `--diff`: what can be written for findings, in the files that were asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::sets::Set;
use crate::api::source::Standing;
use crate::cli::exit::Failure;
use crate::cli::replacing::replace;
use crate::cli::{inputs, output, patching};
use crate::definitions::rules::reading;
use crate::definitions::{Fix, apply_fixes};
use crate::render::diagnostics::LintReport;

/// A fix may uncover what was hidden, such as the fields of a kind that was misspelt. Nobody's file needs more rounds.
const ROUNDS_MAX: usize = 10;

/// What a file was, and what it became.
pub struct Change {
    pub before: String,
    pub after: String,
}

/// Applies in memory what can be, round by round, and gives the last report, and the files that changed by the paths that were typed. A
/// file in which a round breaks the YAML stays as it was before the round.
pub fn fix(
    sets: &mut [Set],
    first: LintReport,
    judge: &dyn Fn(&[Set]) -> LintReport,
) -> (LintReport, BTreeMap<String, Change>) {
    let originals = texts(sets);
    let mut stuck: BTreeSet<String> = BTreeSet::new();
    let mut report = first;
    for _ in 0..ROUNDS_MAX {
        let before = texts(sets);
        let mut fixes: BTreeMap<&str, Vec<&Fix>> = BTreeMap::new();
        for diagnostic in report.diagnostics.iter().filter(|it| !stuck.contains(&it.file)) {
            if let Some(fix) = diagnostic.fix.as_ref().filter(|_| before.contains_key(&diagnostic.file)) {
                fixes.entry(diagnostic.file.as_str()).or_default().push(fix);
            }
        }
        if fixes.is_empty() {
            break;
        }
        let written: BTreeMap<String, String> =
            fixes.into_iter().map(|(file, fixes)| (file.to_owned(), apply_fixes(&before[file], &fixes))).collect();
        put(sets, &written);
        let after = judge(sets);
        let worse = |file: &&String| broken(&after, file) > broken(&report, file);
        let worse: Vec<String> = written.keys().filter(worse).cloned().collect();
        report = if worse.is_empty() {
            after
        } else {
            put(sets, &worse.iter().map(|file| (file.clone(), before[file].clone())).collect());
            stuck.extend(worse);
            judge(sets)
        };
    }
    let mut changes = BTreeMap::new();
    for (file, after) in texts(sets) {
        if let Some(before) = originals.get(&file).filter(|before| **before != after) {
            changes.insert(file, Change { before: before.clone(), after });
        }
    }
    (report, changes)
}

/// What is wrong with the YAML itself. A fix can uncover all else.
fn broken(report: &LintReport, file: &str) -> usize {
    let codes = [&reading::SYNTAX, &reading::DUPLICATE_KEY, &reading::COMPLEX_KEY, &reading::UNREADABLE];
    let is_broken = |code: &str| codes.iter().any(|rule| rule.code == code);
    report.diagnostics.iter().filter(|it| it.file == file && is_broken(&it.code)).count()
}

/// The texts of the files that may be written, by the paths that were typed.
fn texts(sets: &[Set]) -> BTreeMap<String, String> {
    let files = sets.iter().flat_map(|set| set.files.iter().map(move |file| (set.typed(&file.path), file)));
    let files = files.filter(|(path, file)| file.standing == Standing::Own && path != inputs::STDIN_SHOWN);
    files.filter_map(|(path, file)| Some((path, str::from_utf8(&file.content).ok()?.to_owned()))).collect()
}

fn put(sets: &mut [Set], written: &BTreeMap<String, String>) {
    for set in sets {
        for index in 0..set.files.len() {
            let Some(typed) = set.files.get(index).map(|file| set.typed(&file.path)) else { continue };
            if let Some((text, file)) = written.get(&typed).zip(set.files.get_mut(index)) {
                file.content = text.clone().into_bytes();
            }
        }
    }
}

/// Prints the changes as a patch.
pub fn show<'c>(changes: &'c BTreeMap<String, Change>) -> Result<(), Failure> {
    let shown = |(file, change): (&'c String, &'c Change)| patching::Change {
        file,
        before: &change.before,
        after: &change.after,
    };
    patching::show(&changes.iter().map(shown).collect::<Vec<_>>())
}

/// Writes the changed files to where they came from.
pub fn write(changes: &BTreeMap<String, Change>) -> Result<(), Failure> {
    for (file, change) in changes {
        replace(Path::new(file), &change.after).map_err(Failure::failed)?;
    }
    if !changes.is_empty() {
        let files = changes.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        output::say(&format!("fixed: {files}"));
    }
    Ok(())
}
