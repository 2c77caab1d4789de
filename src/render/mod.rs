//! SHOW. Values in their serialised form to text, Markdown, JSON and other forms. Pure: gives strings, writes nothing.

pub mod calendar;
pub mod catalog;
pub mod chart;
pub mod diagnostics;
pub mod explain;
pub mod fields;
pub mod migration;
pub mod notification;
pub mod plan;
pub mod posting;
pub mod preview;
pub mod simulation;
pub mod terminal;
pub mod why;
