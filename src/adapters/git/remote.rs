//! A remote repository that is asked now and then.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use git2::{Oid, Repository as Clone, RepositoryInitOptions};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::address::{self, Address, AddressError};
use super::cause::GitCause;
use super::fetch::{FetchError, Fetched, Target, fetch};
use crate::ports::{PortError, PortErrorKind, Repository, RevisionContent};

/// A fetch that takes longer is given up. The library itself waits for a silent server without end.
const FETCH_TIMEOUT: Duration = Duration::from_secs(120);
/// Fetches that were given up and still wait for a silent server. Each keeps a thread.
const ABANDONED_MAX: usize = 4;
/// Asking more often is no use to anyone, and a burden for the server.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Which repository to follow, and how.
#[derive(Clone, Debug)]
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

/// Follows one branch or tag. An error of one poll, such as a server that is away, does not hinder the next.
pub struct GitRepository {
    target: Arc<Target>,
    folder: Arc<CloneFolder>,
    interval: Duration,
    /// When to ask again. Kept here because waiting for it may be given up half-way, again and again.
    due: Option<Instant>,
    known: Option<Oid>,
    nudge: Arc<Notify>,
    abandoned: Vec<JoinHandle<Result<Option<Fetched>, FetchError>>>,
}

enum CloneFolder {
    Kept(PathBuf),
    Temporary(TempDir),
}

impl CloneFolder {
    fn path(&self) -> &Path {
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
            sub_path: address::sub_path(&settings.sub_path)?,
            credentials_file: settings.credentials_file.clone(),
        };
        let folder = match &settings.clone_folder {
            Some(path) => CloneFolder::Kept(path.clone()),
            None => CloneFolder::Temporary(
                tempfile::Builder::new().prefix("cutlist-").tempdir().map_err(OpenError::Folder)?,
            ),
        };
        let mut options = RepositoryInitOptions::new();
        options.bare(true).mkpath(true).external_template(false);
        let made = match Clone::open_bare(folder.path()) {
            Ok(clone) => Ok(clone),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Clone::init_opts(folder.path(), &options),
            Err(error) => Err(error),
        };
        made.map_err(|source| OpenError::Clone { path: folder.path().to_owned(), source: source.into() })?;
        Ok(Self {
            target: Arc::new(target),
            folder: Arc::new(folder),
            interval: settings.interval.max(INTERVAL_MIN),
            due: None,
            known: None,
            nudge: Arc::new(Notify::new()),
            abandoned: Vec::new(),
        })
    }

    pub fn nudge(&self) -> Nudge {
        Nudge(self.nudge.clone())
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
        self.abandoned.retain(|fetch| !fetch.is_finished());
        if self.abandoned.len() >= ABANDONED_MAX {
            let text = format!("{ABANDONED_MAX} fetches still wait for an answer of the server");
            return Err(self.error(PortErrorKind::Temporary, text));
        }
        let (target, folder, known) = (self.target.clone(), self.folder.clone(), self.known);
        let mut running = tokio::task::spawn_blocking(move || fetch(&target, folder.path(), known));
        let Ok(ended) = tokio::time::timeout(FETCH_TIMEOUT, &mut running).await else {
            self.abandoned.push(running);
            let text = format!("the server did not answer within {} seconds", FETCH_TIMEOUT.as_secs());
            return Err(self.error(PortErrorKind::Temporary, text));
        };
        let fetched = ended.map_err(|error| self.error(PortErrorKind::Permanent, error))?;
        let fetched = fetched.map_err(|error| self.error(error.kind(), error))?;
        Ok(fetched.map(|Fetched { head, content }| {
            self.known = Some(head);
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
