//! The commits between two revisions: who says to have signed each, and what each changed by itself.
//!
//! A merge answers for what would not come of merging its parents by itself, which is made here once more and in memory: else whoever
//! merges could leave out, or add, what nobody signed. Where Git's own merge and this one differ, it answers for the difference.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::{Commit, Diff, DiffOptions, Index, Odb, Oid, Repository, Signature, Sort, Tree};
use jiff::Timestamp;

use super::expanded::{Expanded, merge_options};
use super::read::{ReadError, RepositoryPlace, at_commit, other_settings_at, title, tree_error};
use super::tree::{self, TreeError};
use crate::api::kustomization::join;
use crate::api::source::SourceFile;
use crate::ports::RevisionContent;

/// Commits that are looked at. More at once are an import.
const COMMITS_MAX: usize = 10_000;

/// Parents of one commit that are merged. Git makes no octopus of more than some dozens.
const PARENTS_MERGED_MAX: usize = 32;

/// Higher than any store of a repository has: what is written goes here.
const IN_MEMORY_FIRST: i32 = 1_000;

/// The name of the commit that is in force, beside those that are fetched.
const KEPT: &str = "refs/cutlist/in-force";

/// A clone with its history.
pub struct SignedHistory {
    place: RepositoryPlace,
    path: PathBuf,
}

/// Commits that one revision has and another has not.
#[derive(Debug)]
pub struct Between {
    /// Those before their children. The last is the head itself.
    pub commits: Vec<SignedCommit>,
    /// There are more than are looked at.
    pub too_many: bool,
    /// Paths from the root that differ between both, sorted; of the head all, where there is no base.
    pub paths: Vec<String>,
    /// What stood there before: the base's, if there is one.
    pub before: Option<TreeName>,
    pub after: TreeName,
}

/// A tree of the clone, or one that was made in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeName(Oid);

#[derive(Debug)]
pub struct SignedCommit {
    pub id: String,
    /// First line of its message.
    pub title: String,
    /// As it says.
    pub committed_at: Option<Timestamp>,
    /// The bytes that were signed, and the signature.
    pub signed: Option<(Vec<u8>, Vec<u8>)>,
    /// Paths from the root that it changed by itself, sorted.
    pub paths: Vec<String>,
    /// What would be there without it; `None`: nothing.
    pub before: Option<TreeName>,
    pub after: TreeName,
}

impl SignedHistory {
    /// `path`: a bare repository, a clone, or a folder in one.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let place = RepositoryPlace::find(path)?.ok_or_else(|| ReadError::NotARepository(path.to_owned()))?;
        let history = Self { place, path: path.to_owned() };
        // Whatever merges make stays in memory, for as long as the history is open.
        let in_memory = |objects: Odb<'_>| objects.add_new_mempack_backend(IN_MEMORY_FIRST).map(drop);
        history.place.repository.odb().and_then(in_memory).map_err(|source| history.damaged(source))?;
        Ok(history)
    }

    /// The commit that a name stands for; `None` where there is none.
    pub fn commit(&self, reference: &str) -> Option<String> {
        self.place.commit(&self.path, reference).ok().map(|commit| commit.id().to_string())
    }

    /// The files of a commit below `folder`, as a poll gives them.
    pub fn content(&self, commit: &str, folder: &str, reference: &str) -> Result<RevisionContent, ReadError> {
        let commit = self.place.commit(&self.path, commit)?;
        let collector = tree::collect(&self.place.repository, &commit, folder);
        let mut content = at_commit(collector.map_err(|error| tree_error(error, reference))?, &commit, reference);
        content.notes.extend(other_settings_at(&commit, folder, &content.files));
        Ok(content)
    }

    /// Keeps a commit, with its history, also when no branch of the remote has it any more.
    pub fn keep(&self, commit: &str) -> Result<(), ReadError> {
        let kept = Oid::from_str(commit)
            .and_then(|commit| self.place.repository.reference(KEPT, commit, true, "in force").map(drop));
        kept.map_err(|source| self.damaged(source))
    }

    /// What `head` has and `base` has not; without a base the head alone.
    pub fn between(&self, base: Option<&str>, head: &str) -> Result<Between, ReadError> {
        let repository = &self.place.repository;
        let head = self.place.commit(&self.path, head)?;
        let base = base.map(|base| self.place.commit(&self.path, base)).transpose()?;
        let failed = |source: git2::Error| self.damaged(source);
        let ids = commits(repository, base.as_ref(), &head).map_err(failed)?;
        let (before, after) =
            (base.as_ref().map(tree_of).transpose().map_err(failed)?, tree_of(&head).map_err(failed)?);
        let expanded = &mut Expanded::default();
        let wrong = |error| match error {
            Wrong::Git(source) => self.damaged(source),
            Wrong::Tree(error) => tree_error(error, &head.id().to_string()),
        };
        let mut between = Between {
            commits: Vec::new(),
            too_many: ids.len() > COMMITS_MAX,
            paths: differing(repository, expanded, before.as_ref(), &after).map_err(wrong)?.into_iter().collect(),
            before: before.as_ref().map(|tree| TreeName(tree.id())),
            after: TreeName(after.id()),
        };
        if !between.too_many {
            let signed = ids.into_iter().map(|id| signed(repository, expanded, &repository.find_commit(id)?));
            between.commits = signed.collect::<Result<_, Wrong>>().map_err(wrong)?;
        }
        Ok(between)
    }

    /// What may hold definitions in a tree, below `folder`; nothing where there is no such folder.
    pub fn files(&self, name: TreeName, folder: &str) -> Result<Vec<SourceFile>, ReadError> {
        let repository = &self.place.repository;
        let tree = repository.find_tree(name.0).map_err(|source| self.damaged(source))?;
        let folder = join(&self.place.sub_path, folder).unwrap_or_default();
        match tree::collect_tree(repository, tree, &folder) {
            Ok(collector) => Ok(collector.finish().0),
            Err(TreeError::PathNotThere(_)) => Ok(Vec::new()),
            Err(error) => Err(tree_error(error, &name.0.to_string())),
        }
    }

    fn damaged(&self, source: git2::Error) -> ReadError {
        ReadError::DamagedRepository { path: self.path.clone(), source: source.into() }
    }
}

/// Why commits can not be looked at.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error(transparent)]
    Git(#[from] git2::Error),
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// One more than are looked at tells that there are more.
fn commits(repository: &Repository, base: Option<&Commit<'_>>, head: &Commit<'_>) -> Result<Vec<Oid>, git2::Error> {
    let Some(base) = base else { return Ok(vec![head.id()]) };
    let mut walk = repository.revwalk()?;
    walk.set_sorting(Sort::TOPOLOGICAL)?;
    walk.push(head.id())?;
    walk.hide(base.id())?;
    let mut ids = walk.take(COMMITS_MAX + 1).collect::<Result<Vec<Oid>, git2::Error>>()?;
    ids.reverse();
    // One that the base has already, as when a branch was set back, undoes what came since.
    if ids.is_empty() && base.id() != head.id() {
        ids.push(head.id());
    }
    Ok(ids)
}

fn tree_of<'r>(commit: &Commit<'r>) -> Result<Tree<'r>, git2::Error> {
    commit.tree()
}

fn signed(repository: &Repository, expanded: &mut Expanded, commit: &Commit<'_>) -> Result<SignedCommit, Wrong> {
    let after = commit.tree()?;
    let (before, conflicts) = without(repository, expanded, commit)?;
    let mut paths = differing(repository, expanded, before.as_ref(), &after)?;
    paths.extend(conflicts);
    // A commit without a signature, or with one in a header that is not looked at, is signed by nobody.
    let signature = repository.extract_signature(&commit.id(), None).ok();
    Ok(SignedCommit {
        id: commit.id().to_string(),
        title: title(commit),
        committed_at: Timestamp::from_second(commit.time().seconds()).ok(),
        signed: signature.map(|(signature, payload)| (payload.to_vec(), signature.to_vec())),
        paths: paths.into_iter().collect(),
        before: before.map(|tree| TreeName(tree.id())),
        after: TreeName(after.id()),
    })
}

/// What would be there without the commit, and paths that its parents changed both. Of more than two parents Git merges one after the other
/// into what came of those before it, and so does this: one that took what an old parent had would undo what another brings.
fn without<'r>(
    repository: &'r Repository,
    expanded: &mut Expanded,
    commit: &Commit<'r>,
) -> Result<(Option<Tree<'r>>, Vec<String>), Wrong> {
    let Ok(first) = commit.parent(0) else { return Ok((None, Vec::new())) };
    if commit.parent_count() > PARENTS_MERGED_MAX {
        return of_no_merge(repository, expanded, commit);
    }
    let (mut so_far, mut conflicts) = (first, Vec::new());
    for number in 1..commit.parent_count() {
        let parent = commit.parent(number)?;
        expanded.check_merge(repository, so_far.id(), parent.id())?;
        let Ok(mut merged) = repository.merge_commits(&so_far, &parent, Some(&merge_options())) else {
            return of_no_merge(repository, expanded, commit);
        };
        conflicts.extend(without_conflicts(&mut merged)?);
        let tree = repository.find_tree(merged.write_tree_to(repository)?)?;
        // Where merges are made in memory, this is, too.
        let who = Signature::new("merge", "merge@localhost", &commit.time())?;
        let made = repository.commit(None, &who, &who, "", &tree, &[&so_far, &parent])?;
        so_far = repository.find_commit(made)?;
    }
    Ok((Some(so_far.tree()?), conflicts))
}

/// Takes away what both sides changed, and says what that is.
fn without_conflicts(merged: &mut Index) -> Result<Vec<String>, git2::Error> {
    let mut paths = BTreeSet::new();
    if merged.has_conflicts() {
        for conflict in merged.conflicts()? {
            let conflict = conflict?;
            let sides = [conflict.our, conflict.their, conflict.ancestor].into_iter().flatten();
            paths.extend(sides.map(|entry| entry.path));
        }
    }
    let mut conflicts = Vec::new();
    for path in paths {
        let path = String::from_utf8_lossy(&path).into_owned();
        merged.conflict_remove(Path::new(&path))?;
        conflicts.push(path);
    }
    Ok(conflicts)
}

/// Of parents that can not be merged here, the commit answers for all that is not as in each of them.
fn of_no_merge<'r>(
    repository: &'r Repository,
    expanded: &mut Expanded,
    commit: &Commit<'r>,
) -> Result<(Option<Tree<'r>>, Vec<String>), Wrong> {
    let after = commit.tree()?;
    let (mut before, mut paths) = (None, BTreeSet::new());
    for number in 0..commit.parent_count() {
        let tree = commit.parent(number)?.tree()?;
        let differing = differing(repository, expanded, Some(&tree), &after)?;
        // The first that tells of a difference: against one that is the same nothing would be to be seen.
        if before.is_none() || paths.is_empty() {
            before = Some(tree);
        }
        paths.extend(differing);
    }
    Ok((before, paths.into_iter().collect()))
}

/// Paths that differ; a file that moved is one that went and one that came.
fn differing(
    repository: &Repository,
    expanded: &mut Expanded,
    before: Option<&Tree<'_>>,
    after: &Tree<'_>,
) -> Result<BTreeSet<String>, Wrong> {
    for tree in before.into_iter().chain([after]) {
        expanded.check(repository, tree)?;
    }
    let mut options = DiffOptions::new();
    options.include_typechange(true).ignore_submodules(false).skip_binary_check(true);
    let diff: Diff<'_> = repository.diff_tree_to_tree(before, Some(after), Some(&mut options))?;
    let paths = diff.deltas().flat_map(|delta| [delta.old_file().path_bytes(), delta.new_file().path_bytes()]);
    Ok(paths.flatten().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}
