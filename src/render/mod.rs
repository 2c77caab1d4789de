//! SHOW. Plans and diagnostics as text, Markdown and JSON, made from their serialised form only.

pub mod diagnostics;
pub mod plan;
pub mod terminal;
