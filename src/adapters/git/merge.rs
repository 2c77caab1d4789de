//! What would be there if one branch were merged into another. The merge is made in memory: nothing is written, nothing is checked
//! out, and no hook, filter or driver of the repository runs.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{Commit, ErrorCode, Index, IndexConflict, MergeFileOptions, Oid, Repository, Signature, Time};

use super::cause::GitCause;
use super::collect::Collector;
use super::expanded::{Expanded, merge_options};
use super::read::{ReadError, RepositoryPlace, at_commit, other_settings_at, tree_error};
use super::tree::{self, TreeError};
use crate::api::kustomization::join;
use crate::core::plan::{DefinitionPlace, Revision};
use crate::ports::RevisionContent;

/// Paths that are named when a merge has conflicts; the rest is counted.
const CONFLICTS_NAMED_MAX: usize = 20;

/// Characters of a mark of conflicts: more than a file has that somebody committed with marks in it.
const MARKER: u16 = 40;

/// Lines by which a part of a file is found again. More would take long in a file of many that are alike.
const LINES_COMPARED_MAX: usize = 20;

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
        /// Files from the root of the repository, in order, not all where there are many; each with the line of the head at which the first
        /// conflict begins, and the first line where both sides have another file.
        places: Vec<DefinitionPlace>,
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
        conflicts(repository, &merged).map_err(damaged)?
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

fn conflicts(repository: &Repository, merged: &Index) -> Result<Merge, git2::Error> {
    let mut conflicts: BTreeMap<String, IndexConflict> = BTreeMap::new();
    for conflict in merged.conflicts()? {
        let conflict = conflict?;
        let entry = conflict.our.as_ref().or(conflict.their.as_ref()).or(conflict.ancestor.as_ref());
        let path = entry.map(|entry| String::from_utf8_lossy(&entry.path).into_owned());
        conflicts.extend(path.map(|path| (path, conflict)));
    }
    let further = conflicts.len().saturating_sub(CONFLICTS_NAMED_MAX);
    let named = conflicts.into_iter().take(CONFLICTS_NAMED_MAX);
    let places = named.map(|(file, conflict)| {
        let line = first_line(repository, &conflict).unwrap_or(1);
        DefinitionPlace { file, line }
    });
    Ok(Merge::Conflicts { places: places.collect(), further })
}

/// The line of the head at which the first conflict in the file begins. `None` where the two sides are not merged line by line.
fn first_line(repository: &Repository, conflict: &IndexConflict) -> Option<usize> {
    let (ancestor, our, their) = (conflict.ancestor.as_ref()?, conflict.our.as_ref()?, conflict.their.as_ref()?);
    let mut options = MergeFileOptions::new();
    options.marker_size(MARKER);
    let merged = repository.merge_file_from_index(ancestor, our, their, Some(&mut options)).ok()?;
    let head = repository.find_blob(their.id).ok()?;
    line_in_head(merged.content(), head.content())
}

/// What the head has between the marks, as near as can be to where the marks are: before them the base may have more lines, or fewer.
fn line_in_head(merged: &[u8], head: &[u8]) -> Option<usize> {
    let (merged, head) = (lines(merged), lines(head));
    let is_mark = |line: &[u8], mark: u8| line.iter().take_while(|byte| **byte == mark).count() >= usize::from(MARKER);
    let begins = merged.iter().position(|line| is_mark(line, b'<'))?;
    let of_head = merged.iter().skip(begins).skip_while(|line| !is_mark(line, b'=')).skip(1);
    let of_head: Vec<&[u8]> =
        of_head.copied().take_while(|line| !is_mark(line, b'>')).take(LINES_COMPARED_MAX).collect();
    let is_here = |start: &usize| of_head.iter().zip(head.iter().skip(*start)).all(|(one, other)| one == other);
    let starts = 0..=head.len().saturating_sub(of_head.len());
    let nearest = starts.filter(is_here).min_by_key(|start| start.abs_diff(begins));
    Some(nearest.unwrap_or(begins).min(head.len().saturating_sub(1)) + 1)
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.strip_suffix(b"\n").unwrap_or(text).split(|byte| *byte == b'\n').collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_begins_where_the_head_has_it() {
        let [begin, middle, end] = ["<", "=", ">"].map(|mark| mark.repeat(usize::from(MARKER)));
        let merged = |of_head: &str| {
            format!("of the base\nalso\na: 1\n{begin} ours\nb: 2\n{middle}\n{of_head}{end} theirs\nc: 3\n").into_bytes()
        };
        // The base has two lines more before it.
        assert_eq!(line_in_head(&merged("b: 3\n"), b"a: 1\nb: 3\nc: 3\n"), Some(2));
        assert_eq!(line_in_head(&merged("b: 3\n"), b"b: 3\na: 1\nb: 3\nc: 3\n"), Some(3));
        // The head took it away, so that nothing is to be found.
        assert_eq!(line_in_head(&merged(""), b"a: 1\nc: 3\n"), Some(2));
        assert_eq!(line_in_head(b"a: 1\n", b"a: 1\n"), None);
        // Marks that somebody committed are shorter.
        assert_eq!(line_in_head(b"<<<<<<< HEAD\n", b"a: 1\n"), None);
    }
}
