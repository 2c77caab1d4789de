//! A plan as text for terminals, as Markdown for reviews and as JSON for machines.
//!
//! To add an output format: a file here that takes a [`Plan`], a case in `tests/render.rs`, a name in
//! `cli/arguments.rs`.

mod alike;
pub(super) mod groups;
pub mod markdown;
pub mod text;
pub(super) mod units;
pub(super) mod workloads;

use crate::core::plan::Plan;

pub use markdown::escape::fenced;
pub use markdown::markdown;
pub(in crate::render) use text::budget;
pub use text::text;
pub use units::count;

pub use super::terminal::Style;

/// The plan as pretty JSON, with fields in the order in which they are declared; see `schemas/plan.json`. The error is
/// that of a value that JSON can not express, such as a map with keys that are no text.
pub fn json(plan: &Plan) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(plan)?;
    text.push('\n');
    Ok(text)
}

/// The first digits of a hash, with a mark where the files differ from that commit. Any other id is cut only where it
/// is very long.
pub(super) fn short(id: &str, digits: usize) -> String {
    let (hash, mark) = id.split_once("-dirty").map_or((id, ""), |(hash, _)| (hash, "-dirty"));
    let is_hash = hash.len() > digits && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash {
        return format!("{}{mark}", hash.get(..digits).unwrap_or(hash));
    }
    id.chars().take(ID_CHARACTERS_MAX).collect()
}

/// The most characters of an id that is no hash: whoever makes a preview may write anything into it.
const ID_CHARACTERS_MAX: usize = 100;

/// Digits of a plan's id and of a revision that are shown.
pub(super) const PLAN_DIGITS: usize = 6;
pub(super) const REVISION_DIGITS: usize = 7;

/// `3f2a91c (main)`
fn revision(revision: &crate::core::plan::Revision) -> String {
    let id = super::terminal::clean(&short(&revision.id, REVISION_DIGITS));
    let reference = super::terminal::clean(&revision.reference);
    match (id.as_str(), reference.as_str()) {
        (id, "") => id.to_owned(),
        ("", reference) => reference.to_owned(),
        (id, reference) if id == reference || revision.id == revision.reference => id.to_owned(),
        (id, reference) => format!("{id} ({reference})"),
    }
}
