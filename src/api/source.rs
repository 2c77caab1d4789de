//! A file of a repository of definitions, as it is handed from the adapter that read it to the ring that understands it.

/// Path with `/` between its parts, relative to the root (or the sub-path) that was asked for; and content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFile {
    pub path: String,
    pub content: Vec<u8>,
}

/// Whether a file may hold definitions: by extension, and not inside a folder (or with a name) that starts with a dot.
pub fn may_hold_definitions(path: &str) -> bool {
    let extension = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    matches!(extension, Some("yaml" | "yml" | "json"))
        && !path.split('/').any(|part| part.len() > 1 && part.starts_with('.') && part != "..")
}
