//! The files of a commit, straight from its objects.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use git2::{Commit, ErrorCode, FileMode, ObjectType, Oid, Repository, Tree, TreeEntry};

use super::cause::GitCause;
use super::collect::{Collector, Content, LimitError};
use super::walk::{self, Entry, Files, Finds, Kind, Step, WalkScope};
use crate::api::kustomization;
use crate::api::source::Standing;

/// Longer than any path that an operating system takes; a commit may have anything for a link.
const TARGET_BYTES_MAX: u64 = 4_096;

#[derive(Debug, thiserror::Error)]
pub(super) enum TreeError {
    #[error("`{0}` is not there")]
    PathNotThere(String),
    #[error("object {id} of `{path}` can not be read")]
    Object { id: Oid, path: String, source: GitCause },
    #[error("two entries of `{path}` are both shown as `{name}`: their names are no UTF-8 text, so rename one")]
    Alike { path: String, name: String },
    #[error("`{0}` is listed and not there")]
    NotAsListed(String),
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Reads what may hold definitions under `sub_path` (`/` between the parts; empty: everything) of a commit.
/// A `sub_path` that names a file gives that file.
pub(super) fn collect(repository: &Repository, commit: &Commit<'_>, sub_path: &str) -> Result<Collector, TreeError> {
    collect_tree(repository, root_of(commit)?, sub_path)
}

/// The same of a tree that may be no commit's.
pub(super) fn collect_tree(repository: &Repository, root: Tree<'_>, sub_path: &str) -> Result<Collector, TreeError> {
    let objects = Objects { repository, root };
    let mut collector = Collector::default();
    let finds = objects.find(sub_path, &mut collector)?;
    walk::collect(&objects, &everywhere(), finds, &mut collector)?;
    Ok(collector)
}

/// The same files by path, without their content.
pub(super) fn identities(
    repository: &Repository,
    commit: &Commit<'_>,
    sub_path: &str,
) -> Result<BTreeMap<String, Oid>, TreeError> {
    let objects = Objects { repository, root: root_of(commit)? };
    let finds = objects.find(sub_path, &mut Collector::default())?;
    let finds: Vec<_> = finds.into_iter().filter(|(_, found)| !matches!(found.standing, Standing::LinkTo(_))).collect();
    let mut places: BTreeSet<String> = finds.iter().map(|(_, found)| found.place.clone()).collect();
    let mut identities = BTreeMap::new();
    for (path, found) in finds {
        let (id, _) = objects.entry(&found.place)?.ok_or_else(|| TreeError::NotAsListed(found.place.clone()))?;
        match objects.link_as_text(id, &found.place)? {
            None => {
                identities.insert(path, id);
            }
            Some(target) => {
                if let (Some((id, _)), true) = (objects.entry(&target)?, places.insert(target)) {
                    identities.insert(path, id);
                }
            }
        }
    }
    Ok(identities)
}

/// Of a commit everything may be reached.
fn everywhere() -> WalkScope {
    WalkScope { root: String::new(), links: String::new() }
}

struct Objects<'r> {
    repository: &'r Repository,
    root: Tree<'r>,
}

fn root_of<'r>(commit: &Commit<'r>) -> Result<Tree<'r>, TreeError> {
    commit.tree().map_err(|source| object_error(commit.id(), "", source))
}

impl Objects<'_> {
    fn find(&self, sub_path: &str, collector: &mut Collector) -> Result<Finds, TreeError> {
        let not_there = || TreeError::PathNotThere(sub_path.to_owned());
        let (place, kind) = self.resolve(sub_path)?.ok_or_else(not_there)?;
        let scope = |root: String| WalkScope { root, links: String::new() };
        match kind {
            Kind::Folder => walk::find(self, &scope(place), collector),
            Kind::File => {
                let name = sub_path.rsplit('/').next().unwrap_or(sub_path).to_owned();
                let folder = kustomization::folder(sub_path).to_owned();
                walk::find_one(self, &scope(folder), (name, place), collector)
            }
            Kind::Link | Kind::Submodule => Err(not_there()),
        }
    }

    /// What stands at a path, links not followed.
    fn entry(&self, path: &str) -> Result<Option<(Oid, Kind)>, TreeError> {
        if path.is_empty() {
            return Ok(Some((self.root.id(), Kind::Folder)));
        }
        match self.root.get_path(Path::new(path)) {
            Ok(entry) => Ok(kind_of(&entry).map(|kind| (entry.id(), kind))),
            Err(error) if error.code() == ErrorCode::NotFound && path.contains(char::REPLACEMENT_CHARACTER) => {
                self.entry_shown_as(path)
            }
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(source) => Err(object_error(self.root.id(), path, source)),
        }
    }

    /// What stands at a path in which names are no text; by the names that are shown for them no entry is found.
    fn entry_shown_as(&self, path: &str) -> Result<Option<(Oid, Kind)>, TreeError> {
        let mut found = (self.root.id(), Kind::Folder);
        for part in path.split('/') {
            let (id, Kind::Folder) = found else { return Ok(None) };
            let tree = find_tree(self.repository, id, path)?;
            let entry = tree.iter().find(|entry| shown(entry) == part);
            let Some(next) = entry.and_then(|entry| Some((entry.id(), kind_of(&entry)?))) else { return Ok(None) };
            found = next;
        }
        Ok(Some(found))
    }

    /// Where a link leads that is a file with the path in it, as the walk takes it. Larger files are none, and not read.
    fn link_as_text(&self, id: Oid, place: &str) -> Result<Option<String>, TreeError> {
        let failed = |source| object_error(id, place, source);
        let (bytes, _) = self.repository.odb().and_then(|database| database.read_header(id)).map_err(failed)?;
        if bytes > walk::LINK_BYTES_MAX {
            return Ok(None);
        }
        let content = self.content(place, place)?.unwrap_or(Content::TooLarge);
        walk::link_as_text(self, &everywhere(), place, content.bytes())
    }

    fn target(&self, link: Oid, path: &str) -> Result<String, TreeError> {
        let failed = |source| object_error(link, path, source);
        let (bytes, _) = self.repository.odb().and_then(|database| database.read_header(link)).map_err(failed)?;
        LimitError::check_size((path, bytes), TARGET_BYTES_MAX, "a symbolic link")?;
        let blob = self.repository.find_blob(link).map_err(failed)?;
        Ok(String::from_utf8_lossy(blob.content()).into_owned())
    }
}

impl Files for Objects<'_> {
    type Error = TreeError;

    fn entries(&self, folder: &str) -> Result<Vec<Entry>, TreeError> {
        let Some((id, Kind::Folder)) = self.entry(folder)? else {
            return Err(TreeError::NotAsListed(folder.to_owned()));
        };
        let tree = find_tree(self.repository, id, folder)?;
        let entry = |entry: TreeEntry<'_>| kind_of(&entry).map(|kind| Entry { name: shown(&entry), kind });
        let entries: Vec<Entry> = tree.iter().filter_map(entry).collect();
        match walk::alike(&entries) {
            Some(name) => Err(TreeError::Alike { path: folder.to_owned(), name: name.to_owned() }),
            None => Ok(entries),
        }
    }

    fn resolve(&self, path: &str) -> Result<Option<(String, Kind)>, TreeError> {
        walk::followed(path, |place| {
            Ok(match self.entry(place)? {
                Some((id, Kind::Link)) => Some(Step::LeadsTo(self.target(id, place)?)),
                Some((_, kind)) => Some(Step::There(kind)),
                None => None,
            })
        })
    }

    fn commit_of(&self, place: &str) -> Option<String> {
        let entry = self.entry(place).ok().flatten();
        entry.filter(|(_, kind)| *kind == Kind::Submodule).map(|(id, _)| id.to_string())
    }

    fn is_of_repository(&self, _: &str) -> bool {
        true
    }

    fn content(&self, path: &str, known_as: &str) -> Result<Option<Content>, TreeError> {
        // A commit does not change: what is gone now was never there.
        let Some((id, Kind::File)) = self.entry(path)? else { return Err(TreeError::NotAsListed(path.to_owned())) };
        let failed = |source| object_error(id, known_as, source);
        let database = self.repository.odb().map_err(failed)?;
        let (bytes, _) = database.read_header(id).map_err(failed)?;
        if Collector::is_too_large(bytes as u64) {
            return Ok(Some(Content::TooLarge));
        }
        let blob = self.repository.find_blob(id).map_err(failed)?;
        Ok(Some(Content::Read(blob.content().to_vec())))
    }
}

/// Git takes any bytes for a name, and a tree that nobody checked even a slash in one.
fn shown(entry: &TreeEntry<'_>) -> String {
    String::from_utf8_lossy(entry.name_bytes()).replace('/', char::REPLACEMENT_CHARACTER.encode_utf8(&mut [0; 4]))
}

fn kind_of(entry: &TreeEntry<'_>) -> Option<Kind> {
    match entry.kind()? {
        ObjectType::Tree => Some(Kind::Folder),
        ObjectType::Commit => Some(Kind::Submodule),
        ObjectType::Blob if entry.filemode() == i32::from(FileMode::Link) => Some(Kind::Link),
        ObjectType::Blob => Some(Kind::File),
        _ => None,
    }
}

fn find_tree<'a>(repository: &'a Repository, id: Oid, path: &str) -> Result<Tree<'a>, TreeError> {
    repository.find_tree(id).map_err(|source| object_error(id, path, source))
}

pub(super) fn object_error(id: Oid, path: &str, source: git2::Error) -> TreeError {
    TreeError::Object { id, path: path.to_owned(), source: source.into() }
}

#[cfg(test)]
mod tests {
    use git2::Signature;

    use super::*;

    /// A few kilobytes that are packed may stand for gigabytes.
    #[test]
    fn a_link_that_is_no_path_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        let who = Signature::now("a", "a@localhost").unwrap();
        let collected = |bytes: usize| {
            let link = repository.blob("a".repeat(bytes).as_bytes()).unwrap();
            let mut builder = repository.treebuilder(None).unwrap();
            builder.insert("pools.yaml", link, FileMode::Link.into()).unwrap();
            let tree = repository.find_tree(builder.write().unwrap()).unwrap();
            let commit = repository.commit(None, &who, &who, "text", &tree, &[]).unwrap();
            collect(&repository, &repository.find_commit(commit).unwrap(), "")
        };
        assert!(collected(4_096).is_ok(), "it leads nowhere");
        let error = collected(4_097).unwrap_err();
        assert_eq!(error.to_string(), "`pools.yaml` has 4097 bytes, and at most 4096 are read of a symbolic link");
    }
}
