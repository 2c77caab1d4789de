//! What `cutlist migrate` decided, and what it left to people.

use super::terminal::{clean, clean_lines, page};
use crate::definitions::migration::{Migration, Remark};

/// Notes come first. What is left to do by hand comes last, where it is seen. `is_written`: the files were rewritten,
/// and lines are those of the new text.
pub fn text(migration: &Migration, is_written: bool) -> String {
    let mut out = String::new();
    for remark in &migration.notes {
        out.push_str(&of_remark("note", remark, is_written));
    }
    for remark in &migration.by_hand {
        out.push_str(&of_remark("by hand", remark, is_written));
    }
    out.push_str(&summary(migration, is_written));
    page(out)
}

fn of_remark(word: &str, remark: &Remark, is_written: bool) -> String {
    let line = if is_written { remark.line_after } else { remark.line };
    let object = remark.object.as_deref().map(|object| format!(" {}", clean(object))).unwrap_or_default();
    let mut text = format!("{word}: {}\n --> {}:{line}{object}\n", clean_lines(&remark.message), clean(&remark.file));
    if let Some(hint) = &remark.hint {
        text.push_str(&format!("  = help: {}\n", clean_lines(hint)));
    }
    text + "\n"
}

fn summary(migration: &Migration, is_written: bool) -> String {
    if migration.changed.is_empty() && migration.by_hand.is_empty() {
        return "nothing to migrate\n".to_owned();
    }
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let done = if is_written { "migrated" } else { "to migrate" };
    let files = counted(migration.changed.len(), "file");
    let mut text = format!("{} in {files} {done}", counted(migration.migrated, "definition"));
    if !migration.by_hand.is_empty() {
        text.push_str(&format!("; {} to do by hand", migration.by_hand.len()));
    }
    if !is_written && !migration.changed.is_empty() {
        text.push_str("; nothing is written without --write");
    }
    text + "\n"
}
