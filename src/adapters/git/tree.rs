//! The files of a commit, straight from its objects.

use std::collections::BTreeMap;
use std::path::Path;

use git2::{Commit, ErrorCode, FileMode, ObjectType, Oid, Repository, Tree};

use super::cause::GitCause;
use super::collect::{Collector, LeftOut, LimitError};
use crate::api::source::may_hold_definitions;

#[derive(Debug, thiserror::Error)]
pub(super) enum TreeError {
    #[error("`{0}` is not there")]
    PathNotThere(String),
    #[error("object {id} of `{path}` can not be read")]
    Object { id: Oid, path: String, source: GitCause },
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Reads what may hold definitions under `sub_path` (`/` between the parts; empty: everything) of a commit.
/// A `sub_path` that names a file gives that file.
pub(super) fn collect(repository: &Repository, commit: &Commit<'_>, sub_path: &str) -> Result<Collector, TreeError> {
    let mut collector = Collector::default();
    let found = walk(repository, commit, sub_path, &mut collector)?;
    let database = repository.odb().map_err(|source| object_error(commit.id(), sub_path, source))?;
    for (path, id) in found {
        let (bytes, _) = database.read_header(id).map_err(|source| object_error(id, &path, source))?;
        Collector::bytes_max(&path, bytes as u64)?;
        let blob = repository.find_blob(id).map_err(|source| object_error(id, &path, source))?;
        collector.add(path, blob.content().to_vec())?;
    }
    Ok(collector)
}

/// The same files by path, without their content.
pub(super) fn identities(
    repository: &Repository,
    commit: &Commit<'_>,
    sub_path: &str,
) -> Result<BTreeMap<String, Oid>, TreeError> {
    walk(repository, commit, sub_path, &mut Collector::default())
}

fn walk(
    repository: &Repository,
    commit: &Commit<'_>,
    sub_path: &str,
    collector: &mut Collector,
) -> Result<BTreeMap<String, Oid>, TreeError> {
    let mut found = BTreeMap::new();
    let root = commit.tree().map_err(|source| object_error(commit.id(), "", source))?;
    let mut folders: Vec<(Tree<'_>, String, usize)> = Vec::new();
    if sub_path.is_empty() {
        folders.push((root, String::new(), 0));
    } else {
        let entry = root.get_path(Path::new(sub_path)).map_err(|source| match source.code() {
            ErrorCode::NotFound => TreeError::PathNotThere(sub_path.to_owned()),
            _ => object_error(root.id(), sub_path, source),
        })?;
        match entry.kind() {
            Some(ObjectType::Tree) => folders.push((find_tree(repository, entry.id(), sub_path)?, String::new(), 0)),
            Some(ObjectType::Blob) if entry.filemode() != i32::from(FileMode::Link) => {
                found.insert(sub_path.rsplit('/').next().unwrap_or(sub_path).to_owned(), entry.id());
            }
            _ => return Err(TreeError::PathNotThere(sub_path.to_owned())),
        }
    }
    while let Some((tree, prefix, depth)) = folders.pop() {
        for entry in &tree {
            let name = String::from_utf8_lossy(entry.name_bytes());
            let path = format!("{prefix}{name}");
            collector.enter(&path, depth)?;
            if name.starts_with('.') {
                continue;
            }
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    let tree = find_tree(repository, entry.id(), &path)?;
                    folders.push((tree, format!("{path}/"), depth + 1));
                }
                Some(ObjectType::Commit) => collector.leave_out(&path, LeftOut::Submodule),
                Some(ObjectType::Blob) if entry.filemode() == i32::from(FileMode::Link) => {
                    collector.leave_out(&path, LeftOut::SymbolicLink);
                }
                Some(ObjectType::Blob) if may_hold_definitions(&path) => {
                    found.insert(path, entry.id());
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

fn find_tree<'a>(repository: &'a Repository, id: Oid, path: &str) -> Result<Tree<'a>, TreeError> {
    repository.find_tree(id).map_err(|source| object_error(id, path, source))
}

fn object_error(id: Oid, path: &str, source: git2::Error) -> TreeError {
    TreeError::Object { id, path: path.to_owned(), source: source.into() }
}
