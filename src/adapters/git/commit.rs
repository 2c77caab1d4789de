//! One file of a clone, committed alone to the branch that is checked out. What else is staged or changed stays as it is.

use std::path::{Path, PathBuf};

use git2::build::TreeUpdateBuilder;
use git2::{ErrorCode, FileMode, Oid, Repository, RepositoryState, Signature, Status};

use super::cause::GitCause;
use super::read::{ReadError, RepositoryPlace};

/// Why there is no commit; [`CommitError::hint`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{} is a bare repository", .0.display())]
    Bare(PathBuf),
    #[error("{file} has changes that are not committed")]
    Dirty { file: String },
    #[error("{file} is not committed yet")]
    Untracked { file: String },
    #[error("a merge, rebase or the like is under way in {}", .0.display())]
    UnderWay(PathBuf),
    #[error("the repository's configuration has no author")]
    NoAuthor { source: GitCause },
    #[error("{file} can not be written")]
    Write { file: String, source: std::io::Error },
    #[error("{file} is written, and can not be committed")]
    Commit { file: String, source: GitCause },
}

impl CommitError {
    /// What the user can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Read(error) => return error.hint(),
            Self::Bare(_) => "name a clone with a branch that is checked out".to_owned(),
            Self::Dirty { file } => format!("commit it, or take it back: git checkout -- {file}"),
            Self::Untracked { file } => format!("commit it, or remove it: {file}"),
            Self::UnderWay(_) => "end it first: `git status` says how".to_owned(),
            Self::NoAuthor { .. } => "git config user.name NAME && git config user.email ADDRESS".to_owned(),
            Self::Write { .. } => "check the permissions of the folder".to_owned(),
            Self::Commit { .. } => "`git status` says how it stands".to_owned(),
        })
    }
}

/// A file that may be committed: nothing of it is changed yet, and there is an author.
pub struct Committer {
    repository: Repository,
    author: Signature<'static>,
    /// Relative to the work tree.
    file: String,
    on_disk: PathBuf,
}

impl Committer {
    /// `folder`: a clone, or a folder in it; `name`: a file in that, which need not exist.
    pub fn new(folder: &Path, name: &str) -> Result<Self, CommitError> {
        let place = RepositoryPlace::find(folder)?.ok_or_else(|| ReadError::NotARepository(folder.to_owned()))?;
        let RepositoryPlace { repository, sub_path } = place;
        let Some(work_tree) = repository.workdir().map(Path::to_owned) else {
            return Err(CommitError::Bare(folder.to_owned()));
        };
        if repository.state() != RepositoryState::Clean {
            return Err(CommitError::UnderWay(folder.to_owned()));
        }
        let file = if sub_path.is_empty() { name.to_owned() } else { format!("{sub_path}/{name}") };
        match repository.status_file(Path::new(&file)) {
            Ok(Status::CURRENT) => {}
            Ok(Status::WT_NEW) => return Err(CommitError::Untracked { file }),
            Ok(_) => return Err(CommitError::Dirty { file }),
            // Neither on disk nor committed.
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Err(source) => return Err(CommitError::Commit { file, source: source.into() }),
        }
        let author = repository.signature().map_err(|source| CommitError::NoAuthor { source: source.into() })?;
        Ok(Self { on_disk: work_tree.join(&file), repository, author, file })
    }

    /// Writes the file and commits it. Gives the commit's hash.
    pub fn commit(&self, content: &[u8], message: &str) -> Result<String, CommitError> {
        std::fs::write(&self.on_disk, content)
            .map_err(|source| CommitError::Write { file: self.file.clone(), source })?;
        let id = self.commit_written(content, message);
        let id = id.map_err(|source| CommitError::Commit { file: self.file.clone(), source: source.into() })?;
        Ok(id.to_string())
    }

    fn commit_written(&self, content: &[u8], message: &str) -> Result<Oid, git2::Error> {
        let parent = match self.repository.head().and_then(|head| head.peel_to_commit()) {
            Ok(commit) => Some(commit),
            Err(error) if error.code() == ErrorCode::UnbornBranch => None,
            Err(error) => return Err(error),
        };
        let before = match &parent {
            Some(commit) => commit.tree()?,
            None => self.repository.find_tree(self.repository.treebuilder(None)?.write()?)?,
        };
        let blob = self.repository.blob(content)?;
        let mut update = TreeUpdateBuilder::new();
        update.upsert(self.file.as_str(), blob, FileMode::Blob);
        let tree = self.repository.find_tree(update.create_updated(&self.repository, &before)?)?;
        let parents: Vec<_> = parent.iter().collect();
        let id = self.repository.commit(Some("HEAD"), &self.author, &self.author, message, &tree, &parents)?;
        let mut index = self.repository.index()?;
        index.add_path(Path::new(&self.file))?;
        index.write()?;
        Ok(id)
    }
}
