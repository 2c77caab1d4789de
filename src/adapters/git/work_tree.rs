//! The files of a clone as they are on disk, and how they differ from its commit.

use std::collections::BTreeSet;
use std::path::Path;

use git2::{Commit, FileMode, IndexEntryExtendedFlag, ObjectType, Oid, Repository};

use super::collect::listed;
use super::folder::Rules;
use super::tree::{self, TreeError};
use crate::api::source::{SourceFile, may_hold_definitions};
use crate::core::plan::{Note, NoteCode};

/// Passes over what Git ignores, and over other repositories; as a reading of a commit would.
pub(super) struct WorkTree<'a> {
    repository: &'a Repository,
    tracked: BTreeSet<String>,
    submodules: BTreeSet<String>,
    /// Files that a sparse checkout left out.
    left_out: BTreeSet<String>,
}

impl<'a> WorkTree<'a> {
    pub fn new(repository: &'a Repository) -> Result<Self, git2::Error> {
        let (mut tracked, mut submodules, mut left_out) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for entry in repository.index()?.iter() {
            let path = String::from_utf8_lossy(&entry.path).into_owned();
            let is_submodule = entry.mode == u32::from(FileMode::Commit);
            let flags = IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended);
            if flags.contains(IndexEntryExtendedFlag::SKIP_WORKTREE) {
                left_out.insert(path.clone());
            }
            if is_submodule { &mut submodules } else { &mut tracked }.insert(path);
        }
        Ok(Self { repository, tracked, submodules, left_out })
    }

    /// Tells the reader which files below `sub_path` a sparse checkout left out.
    pub fn left_out(&self, sub_path: &str) -> Option<Note> {
        let is_missed = |path: &&String| {
            let below = path.strip_prefix(sub_path).filter(|rest| sub_path.is_empty() || rest.starts_with('/'));
            let is_there = || self.repository.workdir().is_some_and(|root| root.join(path).exists());
            below.is_some() && may_hold_definitions(path) && !is_there()
        };
        let missed: Vec<String> = self.left_out.iter().filter(is_missed).cloned().collect();
        let files = match missed.len() {
            0 => return None,
            1 => "1 file is".to_owned(),
            count => format!("{count} files are"),
        };
        let text = format!("{files} not in this sparse checkout, and not read: {}", listed(missed));
        Some(Note::new(NoteCode::LeftOut, text))
    }

    fn is_tracked(&self, path: &str, is_folder: bool) -> bool {
        if !is_folder {
            return self.tracked.contains(path);
        }
        let beginning = format!("{path}/");
        self.tracked.range(beginning.clone()..).next().is_some_and(|first| first.starts_with(&beginning))
    }
}

impl Rules for WorkTree<'_> {
    fn ignores(&self, path: &str, is_folder: bool) -> bool {
        // What is tracked is never ignored. The slash says that the path is a folder even if it is gone by now.
        let asked = if is_folder { format!("{path}/") } else { path.to_owned() };
        !self.is_tracked(path, is_folder) && self.repository.is_path_ignored(Path::new(&asked)).unwrap_or(false)
    }

    fn is_of_repository(&self, path: &str) -> bool {
        self.is_tracked(path, false)
    }

    fn is_submodule(&self, path: &str, folder: &Path) -> bool {
        self.submodules.contains(path) || folder.join(".git").exists()
    }
}

/// Paths of the files that were changed, added or removed since the commit; sorted.
pub(super) fn differences(
    repository: &Repository,
    commit: &Commit<'_>,
    sub_path: &str,
    files: &[SourceFile],
) -> Result<BTreeSet<String>, TreeError> {
    let mut committed = match tree::identities(repository, commit, sub_path) {
        Err(TreeError::PathNotThere(_)) => Default::default(),
        other => other?,
    };
    let mut differing = BTreeSet::new();
    for file in files.iter().filter(|file| file.has_content()) {
        let identity = Oid::hash_object(ObjectType::Blob, &file.content).ok();
        if identity.is_none() || committed.remove(&file.path) != identity {
            differing.insert(file.path.clone());
        }
    }
    // A file that is read under another path is no missing one.
    for link in files.iter().filter(|file| !file.has_content()) {
        committed.remove(&link.path);
    }
    differing.extend(committed.into_keys());
    Ok(differing)
}

/// Tells the reader that the commit named is not what was read.
pub(super) fn uncommitted(commit: &str, differing: BTreeSet<String>) -> Note {
    let short = commit.get(..7).unwrap_or(commit);
    let files =
        if differing.len() == 1 { "1 file differs".to_owned() } else { format!("{} files differ", differing.len()) };
    let text = format!("{files} from commit {short}: {}", listed(differing.into_iter().collect()));
    Note::new(NoteCode::UncommittedChanges, text)
}
