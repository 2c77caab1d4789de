//! A folder or clone on disk that is watched.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use git2::{Oid, Repository as Clone};
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::fetch::is_rewritten;
use super::read::{self, ReadError, Reading};
use crate::ports::{PortError, PortErrorKind, Repository, RevisionContent};

/// A burst of events is over when there was none for so long. An editor's save takes a few milliseconds.
const QUIET: Duration = Duration::from_millis(200);
/// A folder that never rests is read nevertheless, so that a change is seen within a second.
const BURST_MAX: Duration = Duration::from_millis(600);
/// How often it is looked whether the folder is still the one that is watched, and, where it can not be watched, read.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Some file systems report nothing (those of a network), so everything is read again now and then.
const READ_INTERVAL_LOOKS: u32 = 60;

/// Follows the files of a folder; in a clone also its `HEAD`. The clock must be a real one: files do not wait.
pub struct WatchedFolder {
    path: PathBuf,
    events: Arc<Notify>,
    watched: Watched,
    /// A change was seen, and not read yet. Kept here because waiting for it may be given up half-way.
    is_pending: bool,
    looks: u32,
    known: Option<(String, Option<Oid>)>,
}

/// What the operating system reports on.
struct Watched {
    /// `None` where it can not: then the folder is polled.
    _watcher: Option<RecommendedWatcher>,
    works: bool,
    /// The folder itself was removed or renamed: nothing is reported any more, whatever is there now.
    is_lost: Arc<AtomicBool>,
    /// `None` as long as the folder is gone.
    identity: Option<Identity>,
}

/// Where the path leads, and to which folder there. One that was deleted and made again may have the same number, so a
/// loss that was reported or noticed counts as well.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    path: PathBuf,
    #[cfg(unix)]
    inode: (u64, u64),
}

impl WatchedFolder {
    /// `path` is a folder, or a folder in a clone. It must exist now; later it may go and come back.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        if !path.is_dir() {
            return Err(ReadError::PathNotThere(path.to_owned()));
        }
        let events = Arc::new(Notify::new());
        let watched = Watched::start(path, &events);
        Ok(Self { path: path.to_owned(), events, watched, is_pending: false, looks: 0, known: None })
    }

    /// Waits for an event or a reason to look, and says whether there is something to read.
    async fn wait(&mut self) -> bool {
        let is_event = timeout(LOOK_INTERVAL, self.events.notified()).await.is_ok();
        self.looks += 1;
        if self.watched.is_lost.load(Ordering::SeqCst) || Identity::of(&self.path) != self.watched.identity {
            let (path, events) = (self.path.clone(), self.events.clone());
            let started = tokio::task::spawn_blocking(move || Watched::start(&path, &events)).await;
            if let Ok(watched) = started {
                self.watched = watched;
            }
            return true;
        }
        let is_gone = self.watched.identity.is_none();
        is_event || !is_gone && (!self.watched.works || self.looks.is_multiple_of(READ_INTERVAL_LOOKS))
    }

    fn error(&self, source: ReadError) -> PortError {
        let kind = match &source {
            ReadError::PathNotThere(_) | ReadError::EmptyRepository(_) => PortErrorKind::NotFound,
            // A folder that is just being replaced.
            ReadError::Unreadable { .. } => PortErrorKind::Temporary,
            _ => PortErrorKind::Permanent,
        };
        PortError { operation: format!("read {}", self.path.display()), kind, source: Some(Box::new(source)) }
    }
}

impl Repository for WatchedFolder {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        self.is_pending = false;
        let (path, before) = (self.path.clone(), self.known.as_ref().and_then(|(_, head)| *head));
        let reading = tokio::task::spawn_blocking(move || {
            let mut reading = read::read(&path)?;
            reading.content.rewritten = was_rewritten(&path, &reading, before);
            Ok(reading)
        });
        let reading = reading.await;
        if let Ok(Err(ReadError::PathNotThere(_))) = &reading {
            self.watched = Watched::nothing();
        }
        let reading = reading.map_err(|error| PortError {
            operation: format!("read {}", self.path.display()),
            kind: PortErrorKind::Permanent,
            source: Some(Box::new(error)),
        })?;
        let Reading { content, head } = reading.map_err(|error| self.error(error))?;
        let id = content.revision.id.clone();
        if self.known.as_ref().is_some_and(|(known, _)| *known == id) {
            return Ok(None);
        }
        self.known = Some((id, head));
        Ok(Some(content))
    }

    async fn changed(&mut self) {
        while !self.is_pending {
            self.is_pending = self.wait().await;
        }
        let _burst_goes_on =
            timeout(BURST_MAX, async { while timeout(QUIET, self.events.notified()).await.is_ok() {} }).await;
    }
}

fn was_rewritten(path: &Path, reading: &Reading, before: Option<Oid>) -> bool {
    let (Some(before), Some(head)) = (before, reading.head) else { return false };
    let clone = Clone::discover(path);
    clone.and_then(|clone| clone.find_commit(head).map(|commit| is_rewritten(&clone, &commit, before))).unwrap_or(true)
}

impl Watched {
    fn nothing() -> Self {
        Self { _watcher: None, works: false, is_lost: Arc::default(), identity: None }
    }

    fn start(path: &Path, events: &Arc<Notify>) -> Self {
        let identity = Identity::of(path);
        let Some(folder) = identity.as_ref().map(|identity| identity.path.clone()) else {
            return Self::nothing();
        };
        let is_lost = Arc::new(AtomicBool::new(false));
        match watch(&folder, events.clone(), is_lost.clone()) {
            Ok(watcher) => Self { _watcher: Some(watcher), works: true, is_lost, identity },
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "the folder can not be watched and is polled instead");
                Self { identity, ..Self::nothing() }
            }
        }
    }
}

fn watch(folder: &Path, events: Arc<Notify>, is_lost: Arc<AtomicBool>) -> notify::Result<RecommendedWatcher> {
    let git_folders = git_folders(folder);
    let (own_folder, filter_folders) = (folder.to_owned(), git_folders.clone());
    let report = move |event: notify::Result<Event>| {
        if event.as_ref().is_ok_and(|event| is_loss(event, &own_folder)) {
            is_lost.store(true, Ordering::SeqCst);
        }
        // An error is a reason to look as well.
        if event.map_or(true, |event| is_relevant(&event, &filter_folders)) {
            events.notify_one();
        }
    };
    let mut watcher = RecommendedWatcher::new(report, Config::default().with_follow_symlinks(false))?;
    watcher.watch(folder, RecursiveMode::Recursive)?;
    for git_folder in git_folders.iter().filter(|git_folder| !git_folder.starts_with(folder)) {
        watcher.watch(git_folder, RecursiveMode::NonRecursive)?;
        let references = git_folder.join("refs");
        if references.is_dir() {
            watcher.watch(&references, RecursiveMode::Recursive)?;
        }
    }
    Ok(watcher)
}

/// The folders in which the repository of `folder` keeps `HEAD` and the branches; none for a folder that is no clone.
fn git_folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(clone) = Clone::discover(folder) else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        [clone.path(), clone.commondir()].iter().filter_map(|path| path.canonicalize().ok()).collect();
    folders.dedup();
    folders
}

fn is_relevant(event: &Event, git_folders: &[PathBuf]) -> bool {
    match event.kind {
        // Reading is reported too, also our own.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
        EventKind::Access(_) => return false,
        _ => {}
    }
    event.need_rescan() || event.paths.is_empty() || event.paths.iter().any(|path| is_relevant_path(path, git_folders))
}

/// Whether the event tells that `folder` itself was removed or renamed.
fn is_loss(event: &Event, folder: &Path) -> bool {
    let is_end = matches!(event.kind, EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)));
    is_end && event.paths.iter().any(|path| path == folder)
}

fn is_relevant_path(path: &Path, git_folders: &[PathBuf]) -> bool {
    let Some(inside) = git_folders.iter().find_map(|git_folder| path.strip_prefix(git_folder).ok()) else {
        return true;
    };
    let first = inside.iter().next().unwrap_or_default();
    (first == "HEAD" || first == "refs" || first == "packed-refs")
        && path.extension().is_none_or(|extension| extension != "lock")
}

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(unix)]
        let device = std::os::unix::fs::MetadataExt::dev(&metadata);
        #[cfg(not(unix))]
        drop(metadata);
        Some(Self {
            path,
            #[cfg(unix)]
            inode: (device, inode),
        })
    }
}

#[cfg(test)]
mod tests {
    use notify::event::RemoveKind;

    use super::*;

    #[test]
    fn of_git_only_heads_and_branches_matter() {
        let git_folders = [PathBuf::from("/clone/.git")];
        for (path, expected) in [
            ("/clone/pool.yaml", true),
            ("/clone/..data", true),
            ("/clone/.git/HEAD", true),
            ("/clone/.git/HEAD.lock", false),
            ("/clone/.git/refs/heads/main", true),
            ("/clone/.git/refs/heads/main.lock", false),
            ("/clone/.git/packed-refs", true),
            ("/clone/.git/objects/ab/cd", false),
            ("/clone/.git/index", false),
            ("/clone/.git", false),
        ] {
            assert_eq!(is_relevant_path(Path::new(path), &git_folders), expected, "{path}");
        }
    }

    #[test]
    fn losing_a_file_is_not_losing_the_folder() {
        let removed = |path: &str| Event::new(EventKind::Remove(RemoveKind::Any)).add_path(PathBuf::from(path));
        assert!(is_loss(&removed("/folder"), Path::new("/folder")));
        assert!(!is_loss(&removed("/folder/pool.yaml"), Path::new("/folder")));
    }

    #[test]
    fn reading_is_no_change() {
        let event = |kind| Event::new(kind).add_path(PathBuf::from("/folder/pool.yaml"));
        assert!(!is_relevant(&event(EventKind::Access(AccessKind::Open(AccessMode::Read))), &[]));
        assert!(!is_relevant(&event(EventKind::Access(AccessKind::Close(AccessMode::Read))), &[]));
        assert!(is_relevant(&event(EventKind::Access(AccessKind::Close(AccessMode::Write))), &[]));
        assert!(is_relevant(&event(EventKind::Any), &[]));
    }
}
