//! A preview as text for terminals and as Markdown for reviews: what a change of definitions does to the nodes of each
//! cluster.
//!
//! `sentences.rs` has what is said in one line, `pieces.rs` the Markdown of one cluster, `page.rs` the document of all
//! of them, `text.rs` what a terminal shows.

mod page;
mod pieces;
mod sentences;
mod text;

use crate::api::preview::Preview;

pub use page::{markdown, unsigned};
pub use pieces::{pieces, short_pieces, tells_of_the_moment};
pub use sentences::{
    NextDay, Staleness, cause, conflict, dated, effect, headline, next_day, staleness, together, waits, worst_first,
};
pub use text::text;

/// The preview as pretty JSON; see `schemas/preview.json`. The error would be that of a value that JSON can not
/// express, and a preview has none.
pub fn json(preview: &Preview) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(preview)?;
    text.push('\n');
    Ok(text)
}
