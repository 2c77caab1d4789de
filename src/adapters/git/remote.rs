//! A remote repository that is asked now and then.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use git2::Oid;
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::address::{self, Address, AddressError};
use super::cause::GitCause;
use super::fetch::{Earlier, Target, content, open_or_make};
use super::process::{FetchFailed, FetchLimits, fetch_beside};
use crate::ports::{PortError, PortErrorKind, Repository, RevisionContent};

/// Asking more often is no use to anyone, and a burden for the server.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Whether the remote is there, and nobody has pushed anything to it: that is no mistake of whoever follows it.
pub fn has_no_commit(error: &PortError) -> bool {
    let cause = error.source.as_deref().and_then(|source| source.downcast_ref::<FetchFailed>());
    cause.is_some_and(|failed| failed.is_empty)
}

/// Which repository to follow, and how.
#[derive(Clone)]
pub struct RemoteSettings {
    /// URL (`file`, `http`, `git`; `https` and `ssh` with the feature `tls`), `user@host:path`, or a path.
    pub url: String,
    /// Branch or tag; `None`: the branch that the remote's HEAD names.
    pub reference: Option<String>,
    /// Folder of the repository that holds the definitions; empty: all of it.
    pub sub_path: String,
    /// How long [`Repository::changed`] waits; at least a second.
    pub interval: Duration,
    /// File that holds a token, `user:password`, or a private key. Read at each fetch.
    pub credentials_file: Option<PathBuf>,
    /// Folder for a bare clone that is kept; `None`: a temporary one that goes with the process.
    pub clone_folder: Option<PathBuf>,
    /// This program, which fetches in a process of its own.
    pub program: PathBuf,
    pub limits: FetchLimits,
    /// What an earlier process used last: a head that is older is marked as such, until one comes that is not.
    pub earlier: Option<Earlier>,
    /// Also what came before the head, which its signatures are looked for in.
    pub with_history: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("no folder for a clone can be made")]
    Folder(#[source] std::io::Error),
    #[error("no clone can be made in {}", path.display())]
    Clone { path: PathBuf, source: GitCause },
}

/// Without the address, which may hold a password.
impl std::fmt::Debug for RemoteSettings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("RemoteSettings");
        shown.field("url", &address::redacted(&self.url)).field("reference", &self.reference);
        shown.field("sub_path", &self.sub_path).finish_non_exhaustive()
    }
}

/// Follows one branch or tag. An error of one poll, such as a server that is away, does not hinder the next.
pub struct GitRepository {
    /// As it was given: it may hold a password.
    url: String,
    target: Arc<Target>,
    sub_path: String,
    program: PathBuf,
    limits: FetchLimits,
    folder: Arc<CloneFolder>,
    interval: Duration,
    /// When to ask again. Kept here because waiting for it may be given up half-way, again and again.
    due: Option<Instant>,
    known: Option<Oid>,
    nudge: Arc<Notify>,
}

pub(super) enum CloneFolder {
    Kept(PathBuf),
    Temporary(TempDir),
}

impl CloneFolder {
    /// With an empty clone in it, if there is none yet.
    pub(super) fn open(settings: &RemoteSettings) -> Result<Self, OpenError> {
        let folder = match &settings.clone_folder {
            Some(path) => Self::Kept(path.clone()),
            None => Self::Temporary(tempfile::Builder::new().prefix("cutlist-").tempdir().map_err(OpenError::Folder)?),
        };
        open_or_make(folder.path())
            .map_err(|source| OpenError::Clone { path: folder.path().to_owned(), source: source.into() })?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

/// Makes [`Repository::changed`] return at once, as when a forge says that there is something new.
#[derive(Clone, Debug)]
pub struct Nudge(Arc<Notify>);

impl Nudge {
    pub fn nudge(&self) {
        self.0.notify_one();
    }
}

impl GitRepository {
    /// Checks the address and makes an empty clone. The remote is not asked before the first poll.
    pub fn open(settings: &RemoteSettings) -> Result<Self, OpenError> {
        let target = Target {
            address: Address::parse(&settings.url)?,
            reference: settings.reference.clone(),
            credentials_file: settings.credentials_file.clone(),
            earlier: settings.earlier.clone(),
            with_history: settings.with_history,
            listed: None,
        };
        let sub_path = address::sub_path(&settings.sub_path)?;
        let folder = CloneFolder::open(settings)?;
        Ok(Self {
            url: settings.url.clone(),
            target: Arc::new(target),
            sub_path,
            program: settings.program.clone(),
            limits: settings.limits,
            folder: Arc::new(folder),
            interval: settings.interval.max(INTERVAL_MIN),
            due: None,
            known: None,
            nudge: Arc::new(Notify::new()),
        })
    }

    pub fn nudge(&self) -> Nudge {
        Nudge(self.nudge.clone())
    }

    /// The clone. It goes with this, unless it is kept.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn error(&self, kind: PortErrorKind, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> PortError {
        let what = self.target.reference.as_deref().unwrap_or("HEAD");
        let operation = format!("fetch {what} from {}", self.target.address.shown);
        PortError { operation, kind, source: Some(source.into()) }
    }
}

impl Repository for GitRepository {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        self.due = None;
        let (folder, known) = (self.folder.clone(), self.known);
        let fetched = fetch_beside(&self.program, &self.url, &self.target, folder.path(), known, self.limits);
        let fetched = fetched.await.map_err(|error| self.error(error.kind, error))?;
        let Some(fetched) = fetched.fetched else { return Ok(None) };
        let sub_path = self.sub_path.clone();
        let reading = tokio::task::spawn_blocking(move || content(&fetched, folder.path(), &sub_path, known));
        let read = reading.await.map_err(|error| self.error(PortErrorKind::Permanent, error))?;
        let read = read.map_err(|error| self.error(error.kind(), error))?;
        Ok(read.map(|(head, content)| {
            self.known = Some(head);
            if !content.is_older {
                Arc::make_mut(&mut self.target).earlier = None;
            }
            content
        }))
    }

    async fn changed(&mut self) {
        let due = *self.due.get_or_insert_with(|| Instant::now() + self.interval);
        tokio::select! {
            () = tokio::time::sleep_until(due) => {}
            () = self.nudge.notified() => {}
        }
        self.due = None;
    }
}
