//! The line of a file at which a definition begins to differ, for an annotation that a reviewer sees beside it.

use crate::api::source::SourceFile;

/// Between two documents of a file.
const SEPARATOR: &str = "---";

/// Where the change stands: in the definition's own document, else in another file that differs, such as a patch of a kustomization, and
/// best in one that names it. Else at its beginning.
pub fn of_change(
    before: (&str, usize),
    after: (&str, usize),
    name: &str,
    base: &[SourceFile],
    head: &[SourceFile],
) -> (String, usize) {
    let name = name.rsplit('/').next().unwrap_or(name);
    let old = document(text(base, before.0), before.1);
    let new = document(text(head, after.0), after.1);
    if let Some(offset) = first_difference(&old, &new) {
        return (after.0.to_owned(), after.1 + offset.min(new.len().saturating_sub(1)));
    }
    let differs = |file: &&SourceFile| file.has_content() && text(base, &file.path) != text(head, &file.path);
    let names_it = |file: &&SourceFile| std::str::from_utf8(&file.content).is_ok_and(|text| text.contains(name));
    let elsewhere = || head.iter().filter(differs).filter(|file| file.path != after.0);
    match elsewhere().find(names_it).or_else(|| elsewhere().next()) {
        Some(file) => (file.path.clone(), first_differing(&file.path, 1, base, head)),
        None => (after.0.to_owned(), after.1),
    }
}

/// The first line from `line` on at which the file differs between both; `line` where it does not, or is new.
pub fn first_differing(path: &str, line: usize, base: &[SourceFile], head: &[SourceFile]) -> usize {
    let lines = |files: &'_ [SourceFile]| -> Vec<String> {
        text(files, path).lines().skip(line - 1).map(str::to_owned).collect()
    };
    let (old, new) = (lines(base), lines(head));
    if old.is_empty() {
        return line;
    }
    line + old.iter().zip(&new).take_while(|(old, new)| old == new).count().min(new.len().saturating_sub(1))
}

fn text<'a>(files: &'a [SourceFile], path: &str) -> &'a str {
    let file = files.iter().find(|file| file.has_content() && file.path == path);
    file.and_then(|file| std::str::from_utf8(&file.content).ok()).unwrap_or_default()
}

/// The lines of the document that begins at this line.
fn document(text: &str, line: usize) -> Vec<&str> {
    let lines = text.lines().skip(line.saturating_sub(1));
    lines
        .enumerate()
        .take_while(|(index, line)| *index == 0 || !line.starts_with(SEPARATOR))
        .map(|(_, line)| line)
        .collect()
}

/// How many lines are the same at the beginning; `None` where all are.
fn first_difference(old: &[&str], new: &[&str]) -> Option<usize> {
    let same = old.iter().zip(new).take_while(|(old, new)| old.trim_end() == new.trim_end()).count();
    (same < old.len().max(new.len())).then_some(same)
}
