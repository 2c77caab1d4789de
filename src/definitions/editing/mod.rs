//! What an editor asks of a text while it is typed: where a place is, what can stand there, what it means, and how a finding is
//! silenced; and what is called how in all files. The text is seldom valid at that moment, so nothing here needs that it is. Pure:
//! `cli/lsp` speaks the protocol.

pub mod completion;
pub mod fields;
pub mod names;
pub mod place;
pub mod positions;
pub mod silencing;
pub mod values;
