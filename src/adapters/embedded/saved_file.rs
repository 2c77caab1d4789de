//! The file that keeps the instances of the embedded cloud.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use super::SavedMachine;

/// What is done with files. Whoever may touch the disk hands it in.
#[derive(Clone, Copy)]
pub struct FileAccess {
    /// `None` where there is no such file.
    pub read: fn(&Path) -> io::Result<Option<Vec<u8>>>,
    pub write: fn(&Path, &[u8]) -> io::Result<()>,
    /// From the first path to the second.
    pub rename: fn(&Path, &Path) -> io::Result<()>,
}

pub struct SavedFile {
    path: PathBuf,
    access: FileAccess,
}

/// A file that can not be read is an error, since its instances would be forgotten.
#[derive(Debug, thiserror::Error)]
#[error("instances in {}", path.display())]
pub struct UnreadableInstances {
    path: PathBuf,
    source: Box<dyn Error + Send + Sync>,
}

impl SavedFile {
    pub fn new(path: &Path, access: FileAccess) -> Self {
        Self { path: path.to_owned(), access }
    }

    /// The instances that an earlier process kept, if it did.
    pub(super) fn read(&self) -> Result<Option<Vec<SavedMachine>>, UnreadableInstances> {
        let unreadable = |source| UnreadableInstances { path: self.path.clone(), source };
        let bytes = (self.access.read)(&self.path).map_err(|error| unreadable(error.into()))?;
        let machines = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
        machines.map_err(|error| unreadable(error.into()))
    }

    /// Writes the whole file beside it, then renames it, so that a crash leaves the old one.
    pub(super) fn write(&self, machines: &[SavedMachine]) -> io::Result<()> {
        let bytes = serde_json::to_vec(machines).map_err(io::Error::other)?;
        let beside = self.path.with_extension("new");
        (self.access.write)(&beside, &bytes)?;
        (self.access.rename)(&beside, &self.path)
    }
}
