//! A file of a repository of definitions, as it is handed from the adapter that read it to the ring that understands it.

use super::{image_lock, kustomization};

/// Path with `/` between its parts, relative to the root (or the sub-path) that was asked for; and content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFile {
    pub path: String,
    pub content: Vec<u8>,
    pub standing: Standing,
}

/// Why a file is among those that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is what was asked for.
    #[default]
    Own,
    /// A kustomization names it; it lies outside of what was asked for, or could not hold definitions by its name.
    Named,
    /// An object as a cluster has it, or the settings beside those: whoever applied it has chosen the files, and replaced variables.
    Applied,
    /// It is the file with this path, by another way: a symbolic link. Has no content of its own.
    LinkTo(String),
    /// A symbolic link that was not followed, since it leads out of the repository or nowhere. Has no content.
    LinkNotFollowed,
    /// A folder that is another repository: a submodule. Its content is the hash of its commit, where that is known,
    /// and holds no definitions.
    Submodule,
    /// A template of a Helm chart whose Chart.yaml lies above what was asked for. It is no YAML before it is rendered.
    Template,
    /// It is larger than any file of definitions. Has no content.
    TooLarge,
    /// The system does not let this program read it. Its content is the reason, in the system's words, and holds no definitions.
    Unreadable,
}

impl SourceFile {
    pub fn new(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), content: content.into(), standing: Standing::Own }
    }

    pub fn applied(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { standing: Standing::Applied, ..Self::new(path, content) }
    }

    /// Whether it stands for itself: is read, counted, and part of what identifies a revision.
    pub fn has_content(&self) -> bool {
        matches!(self.standing, Standing::Own | Standing::Named | Standing::Applied)
    }
}

/// Whether a file may hold definitions: by extension, or because it is called `cutlist.lock`, and not inside a folder (or with a name) that starts with a dot.
pub fn may_hold_definitions(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let is_named_so = matches!(extension, Some("yaml" | "yml" | "json"))
        || name == image_lock::FILE_NAME
        || kustomization::is_file(path);
    is_named_so && !path.split('/').any(|part| part.len() > 1 && part.starts_with('.') && part != "..")
}

/// Whether somebody might miss what is behind a link of this path. One that is called `logo.png` is missed by nobody; one without an
/// extension may stand for a folder.
pub fn is_worth_a_note(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    may_hold_definitions(path) || !name.contains('.')
}
