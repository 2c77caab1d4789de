//! What would be there if one branch were merged into another. The merge is made in memory: nothing is written, nothing is checked
//! out, and no hook, filter or driver of the repository runs.

use std::path::Path;

use git2::{Commit, ErrorCode, Index, Oid, Repository, Signature, Time};

use super::cause::GitCause;
use super::collect::Collector;
use super::expanded::{Expanded, merge_options};
use super::read::{ReadError, RepositoryPlace, at_commit, other_settings_at, tree_error};
use super::tree::{self, TreeError};
use crate::api::kustomization::join;
use crate::core::plan::Revision;
use crate::ports::RevisionContent;

/// Paths that are named when a merge has conflicts; the rest is counted.
const CONFLICTS_NAMED_MAX: usize = 20;

/// Higher than any store of a repository has: what is written goes here.
const IN_MEMORY_FIRST: i32 = 1_000;

/// Two revisions, and what comes of merging one into the other.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub base: RevisionContent,
    /// What was proposed; its content is that of the merge.
    pub head: Revision,
    pub merge: Merge,
    /// Where the paths of the files begin, from the root of the repository: empty, or with `/` at its end.
    pub prefix: String,
}

#[derive(Clone, Debug)]
pub enum Merge {
    /// The revision is one that exists nowhere else; its hash depends on nothing but both commits.
    Content(Box<RevisionContent>),
    /// Both changed the same.
    Conflicts {
        /// Paths from the root of the repository, in order; not all where there are many.
        paths: Vec<String>,
        further: usize,
    },
}

/// Merges the commit `head` into the commit `base`, both named as [`super::read_revision`] takes them, and reads what is below `path` and
/// `folder`. A folder that only one of the two has is empty in the other.
pub fn read_merge(path: &Path, folder: &str, base: &str, head: &str) -> Result<Proposal, ReadError> {
    let Some(mut place) = RepositoryPlace::find(path)? else { return Err(ReadError::NotARepository(path.to_owned())) };
    let inside = || ReadError::PathNotInRevision { sub_path: folder.to_owned(), reference: head.to_owned() };
    place.sub_path = join(&place.sub_path, folder).filter(|it| !it.starts_with("..")).ok_or_else(inside)?;
    let damaged = |source: git2::Error| ReadError::DamagedRepository { path: path.to_owned(), source: source.into() };
    // Whatever the merge makes stays in memory.
    let objects = place.repository.odb().map_err(damaged)?;
    let _memory = objects.add_new_mempack_backend(IN_MEMORY_FIRST).map_err(damaged)?;
    let (of_base, of_head) = (place.commit(path, base)?, place.commit(path, head)?);
    let repository = &place.repository;
    is_related(repository, &of_base, &of_head, path)?;
    let of_both = Expanded::default().check_merge(repository, of_base.id(), of_head.id());
    of_both.map_err(|error| tree_error(error, head))?;
    let merged = repository
        .merge_commits(&of_base, &of_head, Some(&merge_options()))
        .map_err(|source| incomplete(repository, path, source))?;
    let head_revision = Revision { id: of_head.id().to_string(), reference: head.to_owned() };
    let base_content = content(&place, &of_base, base)?;
    let merge = if merged.has_conflicts() {
        conflicts(&merged).map_err(damaged)?
    } else {
        let commit = commit(repository, merged, &of_base, &of_head).map_err(damaged)?;
        Merge::Content(Box::new(content(&place, &commit, head)?))
    };
    let neither = |content: &RevisionContent| content.files.is_empty();
    if let Merge::Content(merged) = &merge
        && neither(merged)
        && neither(&base_content)
    {
        // Says so where there is no such folder.
        tree::collect(repository, &of_base, &place.sub_path).map_err(|error| tree_error(error, base))?;
    }
    let prefix = prefix(&place, &of_head);
    Ok(Proposal { base: base_content, head: head_revision, merge, prefix })
}

/// Where definitions are one file, their path is its name, below its folder.
fn prefix(place: &RepositoryPlace, commit: &Commit<'_>) -> String {
    let is_file = commit
        .tree()
        .and_then(|tree| tree.get_path(Path::new(&place.sub_path)))
        .is_ok_and(|entry| entry.kind() == Some(git2::ObjectType::Blob));
    let folder = match place.sub_path.rsplit_once('/') {
        Some((folder, _)) if is_file => folder,
        None if is_file => "",
        _ => place.sub_path.as_str(),
    };
    if folder.is_empty() { String::new() } else { format!("{folder}/") }
}

/// Without an ancestor in common there is nothing that both changed; most often the clone only lacks its history.
fn is_related(repository: &Repository, base: &Commit<'_>, head: &Commit<'_>, path: &Path) -> Result<(), ReadError> {
    match repository.merge_base(base.id(), head.id()) {
        Ok(_) => Ok(()),
        Err(error) if error.code() == ErrorCode::NotFound => Err(ReadError::NothingInCommon {
            path: path.to_owned(),
            one: base.id().to_string(),
            other: head.id().to_string(),
            shallow: repository.is_shallow(),
        }),
        Err(source) => Err(incomplete(repository, path, source)),
    }
}

/// A clone without all of its objects is not damaged.
fn incomplete(repository: &Repository, path: &Path, source: git2::Error) -> ReadError {
    if repository.is_shallow() && source.code() == ErrorCode::NotFound {
        return ReadError::HistoryIncomplete { path: path.to_owned(), source: source.into() };
    }
    ReadError::DamagedRepository { path: path.to_owned(), source: GitCause::from(source) }
}

/// The commit of the merge, with dates and people of the head, so that it is the same each time.
fn commit<'r>(
    repository: &'r Repository,
    mut merged: Index,
    base: &Commit<'r>,
    head: &Commit<'r>,
) -> Result<Commit<'r>, git2::Error> {
    let id: Oid = merged.write_tree_to(repository)?;
    let tree = repository.find_tree(id)?;
    let author = head.author().to_owned();
    let committer = Signature::new("cutlist", "cutlist@localhost", &Time::new(head.time().seconds(), 0))?;
    let title = head.summary_bytes().map(|title| String::from_utf8_lossy(title).into_owned()).unwrap_or_default();
    let id = repository.commit(None, &author, &committer, &title, &tree, &[base, head])?;
    repository.find_commit(id)
}

fn conflicts(merged: &Index) -> Result<Merge, git2::Error> {
    let mut paths = Vec::new();
    for conflict in merged.conflicts()? {
        let conflict = conflict?;
        let entry = conflict.our.or(conflict.their).or(conflict.ancestor);
        paths.extend(entry.map(|entry| String::from_utf8_lossy(&entry.path).into_owned()));
    }
    paths.sort();
    paths.dedup();
    let further = paths.len().saturating_sub(CONFLICTS_NAMED_MAX);
    paths.truncate(CONFLICTS_NAMED_MAX);
    Ok(Merge::Conflicts { paths, further })
}

/// A folder that is not there has no files.
fn content(place: &RepositoryPlace, commit: &Commit<'_>, reference: &str) -> Result<RevisionContent, ReadError> {
    match tree::collect(&place.repository, commit, &place.sub_path) {
        Ok(collector) => {
            let mut content = at_commit(collector, commit, reference);
            content.notes.extend(other_settings_at(commit, &place.sub_path, &content.files));
            Ok(content)
        }
        Err(TreeError::PathNotThere(_)) => Ok(at_commit(Collector::default(), commit, reference)),
        Err(error) => Err(tree_error(error, reference)),
    }
}
