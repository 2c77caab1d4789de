//! A file of a repository of definitions, as it is handed from the adapter that read it to the ring that understands it.

/// Path with `/` between its parts, relative to the root (or the sub-path) that was asked for; and content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFile {
    pub path: String,
    pub content: Vec<u8>,
}
