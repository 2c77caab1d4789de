//! How much trees hold, before Git expands them for a merge or a comparison, and how large files are, before Git merges them. A few kilobytes of trees in trees, each named ten times in the
//! one above it, stand for a hundred million paths, of which Git would keep every one.

use std::collections::HashMap;

use git2::{Commit, MergeOptions, Oid, Repository, Tree};

use super::collect::{DEPTH_MAX, LimitError, PATHS_BYTES_MAX};
use super::tree::{TreeError, object_error};

/// What Git keeps of a path besides its bytes, about: identity, mode, times and the entry of an index.
const OF_EACH_PATH: usize = 100;
/// Where commits have several common ancestors Git merges those first, as often as this, and then takes one of them.
const ANCESTORS_MERGED_MAX: u32 = 8;

/// One file of a merge, of which Git reads all versions at once, and some more to find out what was renamed. Forges take no larger ones.
const MERGED_BYTES_MAX: u64 = 128 << 20;

/// How commits are merged that [`Expanded::check_merge`] lets pass.
pub(super) fn merge_options() -> MergeOptions {
    let mut options = MergeOptions::new();
    options.recursion_limit(ANCESTORS_MERGED_MAX);
    options
}

/// What a tree holds, with all below it.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    paths: usize,
    bytes: usize,
}

/// Trees that were counted. Each is read once, however often it is named: O(entries of different trees).
#[derive(Debug, Default)]
pub(super) struct Expanded {
    known: HashMap<Oid, Held>,
}

impl Expanded {
    /// Whether the tree may be expanded.
    pub fn check(&mut self, repository: &Repository, tree: &Tree<'_>) -> Result<(), TreeError> {
        let held = self.held(repository, tree, 0)?;
        let bytes = held.bytes.saturating_add(held.paths.saturating_mul(OF_EACH_PATH));
        if bytes > PATHS_BYTES_MAX { Err(LimitError::TooManyPaths.into()) } else { Ok(()) }
    }

    fn check_commit(&mut self, repository: &Repository, commit: &Commit<'_>) -> Result<(), TreeError> {
        let tree = commit.tree().map_err(|source| object_error(commit.id(), "", source))?;
        self.check(repository, &tree)
    }

    /// Whether two commits may be merged: they, and the ancestors that Git merges them by.
    pub fn check_merge(&mut self, repository: &Repository, one: Oid, other: Oid) -> Result<(), TreeError> {
        let commit = |id| repository.find_commit(id).map_err(|source| object_error(id, "", source));
        self.check_commit(repository, &commit(one)?)?;
        self.check_commit(repository, &commit(other)?)?;
        let mut pairs = vec![(one, other)];
        for _ in 0..=ANCESTORS_MERGED_MAX {
            let mut further = Vec::new();
            for (one, other) in std::mem::take(&mut pairs) {
                // Those without any are not merged.
                let Ok(bases) = repository.merge_bases(one, other) else { continue };
                for base in bases.iter() {
                    let base = commit(*base)?;
                    self.check_commit(repository, &base)?;
                    for side in [one, other] {
                        check_changed(repository, &base, &commit(side)?, MERGED_BYTES_MAX)?;
                    }
                }
                further.extend(bases.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?))));
            }
            further.dedup();
            further.truncate(ANCESTORS_MERGED_MAX as usize);
            pairs = further;
        }
        Ok(())
    }

    fn held(&mut self, repository: &Repository, tree: &Tree<'_>, depth: usize) -> Result<Held, TreeError> {
        if let Some(held) = self.known.get(&tree.id()) {
            return Ok(*held);
        }
        if depth > DEPTH_MAX {
            return Err(LimitError::TooDeep { path: tree.id().to_string() }.into());
        }
        let mut held = Held::default();
        for entry in tree {
            let name = entry.name_bytes().len();
            let below = match entry.kind() {
                Some(git2::ObjectType::Tree) => {
                    let id = entry.id();
                    let below = repository.find_tree(id).map_err(|source| object_error(id, "", source))?;
                    self.held(repository, &below, depth + 1)?
                }
                _ => Held::default(),
            };
            let of_names = below.paths.saturating_mul(name + 1).saturating_add(name);
            held.paths = held.paths.saturating_add(below.paths).saturating_add(1);
            held.bytes = held.bytes.saturating_add(below.bytes).saturating_add(of_names);
        }
        self.known.insert(tree.id(), held);
        Ok(held)
    }
}

/// Whether no file that differs between two commits is too large to be merged. None is read for that.
fn check_changed(
    repository: &Repository,
    before: &Commit<'_>,
    after: &Commit<'_>,
    bytes_max: u64,
) -> Result<(), TreeError> {
    let failed = |source| object_error(after.id(), "", source);
    let (before, tree) = (before.tree().map_err(failed)?, after.tree().map_err(failed)?);
    let changed = repository.diff_tree_to_tree(Some(&before), Some(&tree), None).map_err(failed)?;
    let database = repository.odb().map_err(failed)?;
    for file in changed.deltas().flat_map(|delta| [delta.old_file(), delta.new_file()]) {
        // What is not there is a submodule, or only the other has it.
        let Ok((bytes, _)) = database.read_header(file.id()) else { continue };
        let path = String::from_utf8_lossy(file.path_bytes().unwrap_or_default());
        LimitError::check_size((&path, bytes), bytes_max, "a file that is merged")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use git2::{Repository, Signature};

    use super::*;

    /// Trees in trees, each named ten times in the one above.
    fn nested(repository: &Repository, depth: usize) -> Oid {
        let blob = repository.blob(b"x").unwrap();
        let mut inner = (blob, 0o100_644);
        for _ in 0..depth {
            let mut builder = repository.treebuilder(None).unwrap();
            for number in 0..10 {
                builder.insert(format!("f{number}"), inner.0, inner.1).unwrap();
            }
            inner = (builder.write().unwrap(), 0o040_000);
        }
        inner.0
    }

    #[test]
    fn trees_in_trees_are_counted_without_being_expanded() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        let tree = |depth| repository.find_tree(nested(&repository, depth)).unwrap();
        let mut expanded = Expanded::default();
        assert!(expanded.check(&repository, &tree(5)).is_ok(), "111,110 paths");
        assert_eq!((expanded.known[&tree(2).id()].paths, expanded.known[&tree(2).id()].bytes), (110, 10 * 2 + 100 * 5));
        let refused = expanded.check(&repository, &tree(8)).unwrap_err();
        assert!(matches!(refused, TreeError::Limit(LimitError::TooManyPaths)), "{refused}");
        let refused = expanded.check(&repository, &tree(DEPTH_MAX + 2)).unwrap_err();
        assert!(matches!(refused, TreeError::Limit(_)), "{refused}");
    }

    #[test]
    fn ancestors_count_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        let who = Signature::now("a", "a@localhost").unwrap();
        let commit = |tree: Oid, parents: &[Oid], text: &str| {
            let parents: Vec<_> = parents.iter().map(|id| repository.find_commit(*id).unwrap()).collect();
            let tree = repository.find_tree(tree).unwrap();
            repository.commit(None, &who, &who, text, &tree, &parents.iter().collect::<Vec<_>>()).unwrap()
        };
        let (small, large) = (nested(&repository, 1), nested(&repository, 8));
        let check = |one, other| Expanded::default().check_merge(&repository, one, other).is_ok();
        let root = commit(small, &[], "root");
        let (one, other) = (commit(small, &[root], "one"), commit(small, &[root], "other"));
        assert!(check(one, other));
        assert!(!check(one, commit(large, &[root], "large")));
        let bomb = commit(large, &[], "bomb");
        assert!(!check(commit(small, &[bomb], "one"), commit(small, &[bomb], "other")));
        // Two that were merged into each other both ways have two ancestors in common, and these one that is large.
        let (left, right) = (commit(small, &[bomb], "left"), commit(small, &[bomb], "right"));
        let (one, other) = (commit(small, &[left, right], "one"), commit(small, &[right, left], "other"));
        assert!(!check(one, other));
    }

    #[test]
    fn a_large_file_is_merged_only_where_nobody_changed_it() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        let who = Signature::now("a", "a@localhost").unwrap();
        let commit = |files: &[(&str, usize)]| {
            let mut builder = repository.treebuilder(None).unwrap();
            for (name, bytes) in files {
                let blob = repository.blob("a".repeat(*bytes).as_bytes()).unwrap();
                builder.insert(*name, blob, 0o100_644).unwrap();
            }
            let tree = repository.find_tree(builder.write().unwrap()).unwrap();
            let id = repository.commit(None, &who, &who, "text", &tree, &[]).unwrap();
            repository.find_commit(id).unwrap()
        };
        let root = commit(&[("video", 500), ("pool.yaml", 5)]);
        let check = |files: &[(&str, usize)]| check_changed(&repository, &root, &commit(files), 100);
        assert!(check(&[("video", 500), ("pool.yaml", 6)]).is_ok());
        let error = check(&[("video", 500), ("pool.yaml", 101)]).unwrap_err();
        assert_eq!(error.to_string(), "`pool.yaml` has 101 bytes, and at most 100 are read of a file that is merged");
        assert!(check(&[("pool.yaml", 5)]).is_err(), "it may have another name now");
    }
}
