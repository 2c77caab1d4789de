//! A real bare repository that is written by a script: the same script gives the same commits, hash by hash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{Commit, Index, IndexEntry, IndexTime, Repository, RepositoryInitOptions, Signature, Time, Tree};
use jiff::Timestamp;
use tempfile::TempDir;

use super::cause::GitCause;

const BRANCH: &str = "refs/heads/main";
const AUTHOR: &str = "Cutlist";
const ADDRESS: &str = "cutlist@localhost";
const REGULAR_FILE: u32 = 0o100_644;

/// What a commit does to files: path with `/` between its parts, and new content; `None` removes the file.
pub type Changes = BTreeMap<String, Option<Vec<u8>>>;

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("no folder for the repository can be made")]
    Folder(#[source] std::io::Error),
    #[error("`{0}` is no path of a file in a repository")]
    Path(String),
    #[error("`{0}` can not be removed: there is no such file")]
    NotThere(String),
    #[error("the repository in {} can not be written", path.display())]
    Git { path: PathBuf, source: GitCause },
}

/// Lives in a temporary folder that goes with it. Its only branch is `main`.
pub struct ScriptedRepository {
    folder: TempDir,
}

impl ScriptedRepository {
    /// Makes a repository with one commit that adds `files`, written at `time`.
    pub fn create(files: &BTreeMap<String, Vec<u8>>, message: &str, time: Timestamp) -> Result<Self, ScriptError> {
        let folder =
            tempfile::Builder::new().prefix("cutlist-").suffix(".git").tempdir().map_err(ScriptError::Folder)?;
        let repository = Self { folder };
        let mut options = RepositoryInitOptions::new();
        options.bare(true).external_template(false).initial_head(BRANCH);
        Repository::init_opts(repository.path(), &options).map_err(|source| repository.error(source))?;
        let changes = files.iter().map(|(path, content)| (path.clone(), Some(content.clone()))).collect();
        repository.commit(&changes, message, time)?;
        Ok(repository)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a commit to `main`, written at `time`; gives its hash.
    pub fn commit(&self, changes: &Changes, message: &str, time: Timestamp) -> Result<String, ScriptError> {
        let failed = |source| self.error(source);
        let repository = Repository::open_bare(self.path()).map_err(failed)?;
        let parent = match repository.find_reference(BRANCH) {
            Ok(branch) => Some(branch.peel_to_commit().map_err(failed)?),
            Err(_) => None,
        };
        let tree = self.tree(&repository, parent.as_ref(), changes)?;
        let signature = Signature::new(AUTHOR, ADDRESS, &Time::new(time.as_second(), 0)).map_err(failed)?;
        let parents: Vec<&Commit<'_>> = parent.iter().collect();
        let id = repository.commit(Some(BRANCH), &signature, &signature, message, &tree, &parents).map_err(failed)?;
        Ok(id.to_string())
    }

    fn tree<'a>(
        &self,
        repository: &'a Repository,
        parent: Option<&Commit<'_>>,
        changes: &Changes,
    ) -> Result<Tree<'a>, ScriptError> {
        let failed = |source| self.error(source);
        let mut index = Index::new().map_err(failed)?;
        if let Some(parent) = parent {
            index.read_tree(&parent.tree().map_err(failed)?).map_err(failed)?;
        }
        for (path, content) in changes {
            if !is_file_path(path) {
                return Err(ScriptError::Path(path.clone()));
            }
            let Some(content) = content else {
                if index.get_path(Path::new(path), 0).is_none() {
                    return Err(ScriptError::NotThere(path.clone()));
                }
                index.remove(Path::new(path), 0).map_err(failed)?;
                continue;
            };
            let id = repository.blob(content).map_err(failed)?;
            index.add(&entry(path, id)).map_err(failed)?;
        }
        let id = index.write_tree_to(repository).map_err(failed)?;
        repository.find_tree(id).map_err(failed)
    }

    fn error(&self, source: git2::Error) -> ScriptError {
        ScriptError::Git { path: self.path().to_owned(), source: source.into() }
    }
}

/// An entry holds the state of the file on disk; in a tree only path, mode and content count.
fn entry(path: &str, id: git2::Oid) -> IndexEntry {
    let never = IndexTime::new(0, 0);
    IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode: REGULAR_FILE,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

fn is_file_path(path: &str) -> bool {
    let is_name = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.eq_ignore_ascii_case(".git");
    !path.contains('\0') && path.split('/').all(is_name)
}
