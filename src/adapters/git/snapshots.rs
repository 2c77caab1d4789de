//! Snapshots of clusters on a branch of their own: `CLUSTER/TIME.json.gz`, in one commit without a parent, so that the server forgets
//! what is no longer kept.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{FileMode, ObjectType, Oid, PushOptions, PushUpdate, RemoteRedirect, Repository, Signature, Tree};

use super::address::{Address, AddressError};
use super::cause::GitCause;
use super::collect::LimitError;
use super::fetch::{self, FetchError, Target, callbacks, proxy};
use super::read::{ReadError, RepositoryPlace};
use crate::core::snapshot::unpack::UNPACKED_BYTES_MAX;

/// Others push to the same branch, such as those of other clusters at the same minute: so often it is begun anew from what they left there.
const ATTEMPTS: u32 = 8;
/// Before the second attempt; twice as long each time, and not the same for each process.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// What servers say of a branch that moved while they were asked to move it.
const OVERTAKEN: [&str; 6] =
    ["lock ref", "already exists", "failed to update ref", "incorrect old value", "stale info", "fetch first"];

/// A branch of a remote repository, and what it wants to know about us.
#[derive(Clone, Debug)]
pub struct SnapshotBranch {
    /// URL, or path of a bare repository.
    pub repository: String,
    pub branch: String,
    /// Holds a token, `user:password`, or a private key.
    pub credentials_file: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum SnapshotBranchError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("branch {branch} of {repository} can not be read")]
    Fetch { branch: String, repository: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("no snapshot can be made ready for branch {branch}")]
    Local { branch: String, source: GitCause },
    #[error("no folder for it can be made")]
    Folder(#[from] std::io::Error),
    #[error("branch {branch} can not be pushed to {repository}")]
    Push { branch: String, repository: String, source: GitCause },
    #[error("{repository} refuses branch {branch}: {reason}")]
    Refused { branch: String, repository: String, reason: String },
    #[error("others push to branch {branch} of {repository} again and again")]
    Overtaken { branch: String, repository: String },
}

impl SnapshotBranchError {
    /// Whether somebody else pushed in between, so that another attempt has other things to begin from.
    fn is_overtaken(&self) -> bool {
        match self {
            Self::Overtaken { .. } => true,
            Self::Refused { reason, .. } => OVERTAKEN.iter().any(|words| reason.contains(words)),
            _ => false,
        }
    }
}

impl SnapshotBranch {
    /// Puts a snapshot of the cluster on the branch, where the newest `keep` of each cluster stay. `file`: a name that sorts by time.
    pub fn push(&self, cluster: &str, file: &str, content: &[u8], keep: usize) -> Result<(), SnapshotBranchError> {
        let address = Address::parse(&self.repository)?;
        let _held = hold(&address);
        let snapshot = Snapshot { cluster, file, content, keep };
        let mut attempts = 0;
        loop {
            match self.push_once(&address, &snapshot) {
                Err(error) if error.is_overtaken() && attempts + 1 < ATTEMPTS => std::thread::sleep(pause(attempts)),
                outcome => return outcome,
            }
            attempts += 1;
        }
    }

    /// From what is on the branch now. Whatever is there when this arrives, and was not here, is not written over.
    fn push_once(&self, address: &Address, snapshot: &Snapshot<'_>) -> Result<(), SnapshotBranchError> {
        let address = address.clone();
        let (branch, repository) = (self.branch.clone(), address.shown.clone());
        let reference = Some(format!("refs/heads/{branch}"));
        let credentials_file = self.credentials_file.clone();
        let target = Target { address, reference, credentials_file, earlier: None, with_history: false, listed: None };
        let folder = tempfile::tempdir()?;
        let failed = |source: FetchError| SnapshotBranchError::Fetch {
            branch: self.branch.clone(),
            repository: repository.clone(),
            source: source.into(),
        };
        let before = match fetch::fetch(&target, folder.path(), None, &|| {}) {
            Ok(looked) => looked.fetched.map(|fetched| fetched.own_name),
            Err(FetchError::Empty | FetchError::NoSuchReference { .. }) => None,
            Err(error) => return Err(failed(error)),
        };
        let local = |source: git2::Error| SnapshotBranchError::Local { branch: branch.clone(), source: source.into() };
        let clone = fetch::open_or_make(folder.path()).map_err(local)?;
        let expected = commit(&clone, before.as_deref(), snapshot).map_err(local)?;
        self.send(&clone, &target, expected).map_err(|error| match error {
            Sending::Overtaken => {
                SnapshotBranchError::Overtaken { branch: branch.clone(), repository: repository.clone() }
            }
            Sending::Refused(reason) => {
                SnapshotBranchError::Refused { branch: branch.clone(), repository: repository.clone(), reason }
            }
            Sending::Failed(source) => SnapshotBranchError::Push {
                branch: branch.clone(),
                repository: repository.clone(),
                source: source.into(),
            },
            Sending::Credentials(error) => failed(error),
        })
    }

    /// `expected`: what the branch was at, if it was there. The commit has no parent, so the server is told to take it whatever it has, and to
    /// compare that with what it said at the beginning of this very exchange: here that is compared with what was read before.
    fn send(&self, clone: &Repository, target: &Target, expected: Option<Oid>) -> Result<(), Sending> {
        let mut remote = clone.remote_anonymous(&target.address.url)?;
        let refused = std::cell::RefCell::new(None);
        let is_overtaken = std::cell::Cell::new(false);
        let nobody = || {};
        let mut callbacks = callbacks(target, &nobody).map_err(Sending::Credentials)?;
        callbacks.push_update_reference(|_, status| {
            *refused.borrow_mut() = status.map(str::to_owned);
            Ok(())
        });
        callbacks.push_negotiation(|updates: &[PushUpdate<'_>]| {
            let found = |update: &PushUpdate<'_>| Some(update.src()).filter(|id| !id.is_zero());
            is_overtaken.set(updates.iter().any(|update| found(update) != expected));
            if is_overtaken.get() { Err(git2::Error::from_str("the branch moved")) } else { Ok(()) }
        });
        let mut options = PushOptions::new();
        options.remote_callbacks(callbacks).proxy_options(proxy(target)).follow_redirects(RemoteRedirect::None);
        let refspec = format!("+{OWN}:refs/heads/{}", self.branch);
        let pushed = remote.push(&[refspec], Some(&mut options));
        drop(options);
        if is_overtaken.get() {
            return Err(Sending::Overtaken);
        }
        pushed?;
        match refused.into_inner() {
            Some(reason) => Err(Sending::Refused(reason)),
            None => Ok(()),
        }
    }
}

/// What the new commit is called here.
const OWN: &str = "refs/heads/snapshots";

enum Sending {
    Overtaken,
    Refused(String),
    Failed(git2::Error),
    Credentials(FetchError),
}

impl From<git2::Error> for Sending {
    fn from(error: git2::Error) -> Self {
        Self::Failed(error)
    }
}

struct Snapshot<'a> {
    cluster: &'a str,
    file: &'a str,
    content: &'a [u8],
    keep: usize,
}

/// A folder of this machine takes what is pushed without a look at what is there: one process pushes after the other.
fn hold(address: &Address) -> Option<File> {
    let path = address.path.as_deref().or_else(|| address.url.strip_prefix("file://").map(Path::new))?;
    let folder = File::open(path).ok()?;
    // Where locks are not known, it is as it was.
    folder.lock().ok()?;
    Some(folder)
}

fn pause(attempts: u32) -> Duration {
    let own = Duration::from_millis(u64::from(std::process::id() % 16) * 20);
    FIRST_PAUSE.saturating_mul(1_u32.checked_shl(attempts).unwrap_or(u32::MAX)) + own
}

/// Makes the commit, and gives the one that it begins from.
fn commit(clone: &Repository, before: Option<&str>, snapshot: &Snapshot<'_>) -> Result<Option<Oid>, git2::Error> {
    let before = match before {
        Some(reference) => Some(clone.find_reference(reference)?.peel_to_commit()?),
        None => None,
    };
    let root = before.as_ref().map(git2::Commit::tree).transpose()?;
    let folder = match root.as_ref().and_then(|root| root.get_name(snapshot.cluster)) {
        Some(entry) if entry.kind() == Some(ObjectType::Tree) => Some(clone.find_tree(entry.id())?),
        _ => None,
    };
    let mut of_cluster = clone.treebuilder(folder.as_ref())?;
    let blob = clone.blob(snapshot.content)?;
    of_cluster.insert(snapshot.file, blob, FileMode::Blob.into())?;
    let folder = clone.find_tree(of_cluster.write()?)?;
    let names = snapshots_in(&folder);
    let surplus = names.len().saturating_sub(snapshot.keep.max(1));
    for name in names.iter().take(surplus) {
        of_cluster.remove(name)?;
    }
    let mut of_all = clone.treebuilder(root.as_ref())?;
    of_all.insert(snapshot.cluster, of_cluster.write()?, FileMode::Tree.into())?;
    let tree = clone.find_tree(of_all.write()?)?;
    let who = Signature::now("cutlist", "cutlist@localhost")?;
    let title = format!("Snapshot of {} {}", snapshot.cluster, snapshot.file);
    let id: Oid = clone.commit(None, &who, &who, &title, &tree, &[])?;
    clone.reference(OWN, id, true, "")?;
    Ok(before.map(|commit| commit.id()))
}

/// Names of the snapshots in a folder, oldest first.
fn snapshots_in(tree: &Tree<'_>) -> Vec<String> {
    let names = tree.iter().map(|entry| String::from_utf8_lossy(entry.name_bytes()).into_owned());
    let mut names: Vec<String> = names.filter(|name| is_snapshot(name)).collect();
    names.sort();
    names
}

/// Whether a file in a folder of snapshots is one.
pub fn is_snapshot(name: &str) -> bool {
    [".json", ".json.gz", ".yaml", ".yml"].iter().any(|end| name.ends_with(end)) && !name.starts_with('.')
}

/// The newest snapshot of a cluster on a branch of the repository of `path`: in the folder of its name, else in the root. With where it
/// is. `None`: there is none.
pub fn newest_snapshot(path: &Path, branch: &str, cluster: &str) -> Result<Option<(String, Vec<u8>)>, ReadError> {
    let Some(place) = RepositoryPlace::find(path)? else { return Err(ReadError::NotARepository(path.to_owned())) };
    let commit = place.commit(path, branch)?;
    let damaged = |source: git2::Error| ReadError::DamagedRepository { path: path.to_owned(), source: source.into() };
    let root = commit.tree().map_err(damaged)?;
    let folder = match root.get_name(cluster).filter(|entry| entry.kind() == Some(ObjectType::Tree)) {
        Some(entry) => Some(place.repository.find_tree(entry.id()).map_err(damaged)?),
        None => None,
    };
    let (tree, prefix) = match &folder {
        Some(folder) => (folder, format!("{cluster}/")),
        None => (&root, String::new()),
    };
    let Some(name) = snapshots_in(tree).pop() else { return Ok(None) };
    let Some(entry) = tree.get_name(&name).filter(|entry| entry.kind() == Some(ObjectType::Blob)) else {
        return Ok(None);
    };
    let file = format!("{prefix}{name}");
    let header = place.repository.odb().and_then(|database| database.read_header(entry.id()));
    let (bytes, _) = header.map_err(damaged)?;
    LimitError::check_size((&file, bytes), UNPACKED_BYTES_MAX, "a snapshot")?;
    let blob = place.repository.find_blob(entry.id()).map_err(damaged)?;
    Ok(Some((file, blob.content().to_vec())))
}
