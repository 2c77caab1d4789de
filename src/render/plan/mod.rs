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

pub(in crate::render) use alike::risks_by_code;
pub use markdown::escape::fenced;
pub use markdown::markdown;
pub(in crate::render) use text::budget;
pub use text::text;
pub(in crate::render) use text::within_preview;
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
    let reference = reference_beside(&revision.id, &revision.reference).map(super::terminal::clean);
    match (id.as_str(), reference) {
        (_, None) => id,
        ("", Some(reference)) => reference,
        (id, Some(reference)) => format!("{id} ({reference})"),
    }
}

/// The name of a revision, where it says more than its id: a commit may be asked for by as many digits of its hash as one likes.
pub(super) fn reference_beside<'r>(id: &str, reference: &'r str) -> Option<&'r str> {
    let begins_so = |begin: &str| begin.eq_ignore_ascii_case(reference);
    let is_hash = reference.len() >= REVISION_DIGITS && id.get(..reference.len()).is_some_and(begins_so);
    (!reference.is_empty() && !is_hash && id != reference).then_some(reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_shown_once() {
        let id = "f45682b765d1fb9030ac620b53c6616eefd3d8c0";
        for (reference, expected) in [
            (id, None),
            ("F45682B765D1", None),
            ("f45682b", None),
            ("", None),
            ("main", Some("main")),
            ("f45", Some("f45")),
            ("é456", Some("é456")),
        ] {
            assert_eq!(reference_beside(id, reference), expected);
        }
        assert_eq!(reference_beside("", "main"), Some("main"));
    }
}
