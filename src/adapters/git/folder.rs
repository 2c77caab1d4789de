//! The files of a folder on disk.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::collect::{Collector, LeftOut, LimitError};
use crate::api::source::may_hold_definitions;

#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    #[error("{} can not be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// What the walk does with links, and what it passes over.
pub(super) trait Rules {
    /// Whether links to files inside the folder are read as those files.
    const FOLLOWS_LINKS_INSIDE: bool;
    /// Whether the entry is passed over; `path` is relative to the folder.
    fn ignores(&self, path: &str, is_folder: bool) -> bool;
    /// Whether the folder is another repository.
    fn is_submodule(&self, path: &str, folder: &Path) -> bool;
}

/// A folder that is no clone. Links inside it are followed, since that is how Kubernetes mounts a ConfigMap.
pub(super) struct Plain;

impl Rules for Plain {
    const FOLLOWS_LINKS_INSIDE: bool = true;

    fn ignores(&self, _: &str, _: bool) -> bool {
        false
    }

    fn is_submodule(&self, _: &str, _: &Path) -> bool {
        false
    }
}

/// Reads what may hold definitions under `root`, which exists.
pub(super) fn collect<R: Rules>(root: &Path, rules: &R) -> Result<Collector, FolderError> {
    let mut collector = Collector::default();
    let canonical_root = root.canonicalize().map_err(|source| unreadable(root, source))?;
    let mut folders = vec![(root.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            // It was removed since its parent was listed.
            Err(error) if error.kind() == ErrorKind::NotFound && depth > 0 => continue,
            Err(source) => return Err(unreadable(&folder, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| unreadable(&folder, source))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = format!("{prefix}{name}");
            collector.enter(&path, depth)?;
            if name.starts_with('.') {
                continue;
            }
            let Some(kind) = gone_is_none(entry.file_type(), &entry.path())? else { continue };
            if rules.ignores(&path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                if rules.is_submodule(&path, &entry.path()) {
                    collector.leave_out(&path, LeftOut::Submodule);
                } else {
                    folders.push((entry.path(), format!("{path}/"), depth + 1));
                }
            } else if kind.is_symlink() {
                if R::FOLLOWS_LINKS_INSIDE
                    && may_hold_definitions(&path)
                    && leads_inside(&entry.path(), &canonical_root)
                {
                    read_file(&entry.path(), path, &mut collector)?;
                } else {
                    collector.leave_out(&path, LeftOut::SymbolicLink);
                }
            } else if kind.is_file() && may_hold_definitions(&path) {
                read_file(&entry.path(), path, &mut collector)?;
            }
        }
    }
    Ok(collector)
}

/// Reads one file, which is called `path` from then on.
pub(super) fn collect_file(file: &Path, path: String) -> Result<Collector, FolderError> {
    let mut collector = Collector::default();
    read_file(file, path, &mut collector)?;
    Ok(collector)
}

fn leads_inside(link: &Path, canonical_root: &Path) -> bool {
    link.canonicalize().is_ok_and(|target| target.starts_with(canonical_root) && target.is_file())
}

/// Reads a file, unless it was removed since its folder was listed: editors write beside a file and rename.
fn read_file(file: &Path, path: String, collector: &mut Collector) -> Result<(), FolderError> {
    let Some(open) = gone_is_none(std::fs::File::open(file), file)? else { return Ok(()) };
    let metadata = open.metadata().map_err(|source| unreadable(file, source))?;
    let bytes_max = Collector::bytes_max(&path, metadata.len())?;
    let mut content = Vec::new();
    // One byte more than allowed tells a file that grew meanwhile from one that just fits.
    let bytes_read = open.take(bytes_max as u64 + 1).read_to_end(&mut content);
    bytes_read.map_err(|source| unreadable(file, source))?;
    Ok(collector.add(path, content)?)
}

fn gone_is_none<T>(result: std::io::Result<T>, path: &Path) -> Result<Option<T>, FolderError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(unreadable(path, source)),
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> FolderError {
    FolderError::Unreadable { path: path.to_owned(), source }
}
