//! The files of a folder on disk.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::collect::{Collector, Content, FILE_BYTES_MAX, LimitError};
use super::walk::{self, Entry, Files, Kind, WalkScope};
use crate::api::kustomization::join;
use crate::api::source::may_hold_definitions;

#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    #[error("{} can not be read", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("two entries of {} are both shown as `{name}`: their names are no UTF-8 text, so rename one", path.display())]
    Alike { path: PathBuf, name: String },
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// What the walk passes over. Paths are relative to what may be reached.
pub(super) trait Rules {
    fn ignores(&self, path: &str, is_folder: bool) -> bool;
    /// Whether the file is one of the repository.
    fn is_of_repository(&self, path: &str) -> bool;
    /// Whether the folder is another repository.
    fn is_submodule(&self, path: &str, folder: &Path) -> bool;
}

/// A folder that is no clone.
pub(super) struct Plain;

impl Rules for Plain {
    fn ignores(&self, _: &str, _: bool) -> bool {
        false
    }

    fn is_of_repository(&self, _: &str) -> bool {
        false
    }

    fn is_submodule(&self, _: &str, _: &Path) -> bool {
        false
    }
}

/// How far a walk from a folder may go.
pub(super) struct Bounds {
    /// Everything that may be reached lies below it.
    top: PathBuf,
    scope: WalkScope,
    /// What looks like a definition anywhere below `top` counts as of the repository: somebody works there, in no clone.
    is_workplace: bool,
}

impl Bounds {
    /// From `folder`, in a clone: as far as the clone goes.
    pub fn of_work_tree(work_tree: &Path, sub_path: &str) -> Self {
        let scope = WalkScope { root: sub_path.to_owned(), links: String::new() };
        Self { top: work_tree.to_owned(), scope, is_workplace: false }
    }

    /// From `folder`, in no repository. Below the folder in which somebody works, that one is as far as it goes. Elsewhere links stay in the
    /// folder, and a kustomization may take other kustomizations from anywhere, as it may for the program that it is written for.
    pub fn of_folder(folder: &Path) -> Result<Self, FolderError> {
        let folder = folder.canonicalize().map_err(|source| unreadable(folder, source))?;
        let current = std::env::current_dir().and_then(|current| current.canonicalize());
        let current = current.ok().filter(|current| current.parent().is_some() && folder != *current);
        let (top, is_workplace) = match current.filter(|current| folder.starts_with(current)) {
            Some(current) => (current, true),
            None => (folder.ancestors().last().unwrap_or(&folder).to_owned(), false),
        };
        let root = folder.strip_prefix(&top).map(text_of).unwrap_or_default();
        let links = if is_workplace { String::new() } else { root.clone() };
        Ok(Self { top, scope: WalkScope { root, links }, is_workplace })
    }
}

fn text_of(path: &Path) -> String {
    path.iter().map(std::ffi::OsStr::to_string_lossy).collect::<Vec<_>>().join("/")
}

/// Reads what may hold definitions in the folder.
pub(super) fn collect<R: Rules>(bounds: &Bounds, rules: &R) -> Result<Collector, FolderError> {
    let disk = Disk { bounds, rules };
    let mut collector = Collector::default();
    let finds = walk::find(&disk, &bounds.scope, &mut collector)?;
    walk::collect(&disk, &bounds.scope, finds, &mut collector)?;
    Ok(collector)
}

/// Reads one file of the folder, which is called `name` from then on.
pub(super) fn collect_file<R: Rules>(
    bounds: &Bounds,
    rules: &R,
    file: &Path,
    name: String,
) -> Result<Collector, FolderError> {
    let disk = Disk { bounds, rules };
    let mut collector = Collector::default();
    let place = file.canonicalize().map_err(|source| unreadable(file, source))?;
    // A link that was typed is followed wherever it leads.
    let Ok(place) = place.strip_prefix(&bounds.top).map(text_of) else {
        if let Some(content) = content(&place) {
            collector.add(name, content, Default::default())?;
        }
        return Ok(collector);
    };
    let finds = walk::find_one(&disk, &bounds.scope, (name, place), &mut collector)?;
    walk::collect(&disk, &bounds.scope, finds, &mut collector)?;
    Ok(collector)
}

struct Disk<'a, R: Rules> {
    bounds: &'a Bounds,
    rules: &'a R,
}

impl<R: Rules> Disk<'_, R> {
    /// Where a path leads. Names that are no text are shown as other names, and are looked for.
    fn place(&self, path: &str) -> PathBuf {
        let mut place = self.bounds.top.join(path);
        if !path.contains(char::REPLACEMENT_CHARACTER) || place.symlink_metadata().is_ok() {
            return place;
        }
        place.clone_from(&self.bounds.top);
        for part in path.split('/') {
            let named = place.join(part);
            let mut listed = std::fs::read_dir(&place).into_iter().flatten().filter_map(Result::ok);
            place = match named.symlink_metadata() {
                Ok(_) => named,
                Err(_) => {
                    listed.find(|it| it.file_name().to_string_lossy() == part).map_or(named, |found| found.path())
                }
            };
        }
        place
    }
}

impl<R: Rules> Files for Disk<'_, R> {
    type Error = FolderError;

    fn entries(&self, folder: &str) -> Result<Vec<Entry>, FolderError> {
        let place = self.place(folder);
        let mut entries = Vec::new();
        // It may have been removed since its parent was listed.
        let Some(listed) = gone_is_none(std::fs::read_dir(&place), &place)? else { return Ok(entries) };
        for entry in listed {
            let entry = entry.map_err(|source| unreadable(&place, source))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(kind) = gone_is_none(entry.file_type(), &entry.path())? else { continue };
            let path = join(folder, &name).unwrap_or_default();
            // Before Git is asked, which has an opinion on its own folder.
            if !name.starts_with('.') && self.rules.ignores(&path, kind.is_dir()) {
                continue;
            }
            let kind = match kind {
                kind if kind.is_symlink() => Kind::Link,
                kind if kind.is_dir() && self.rules.is_submodule(&path, &entry.path()) => Kind::Submodule,
                kind if kind.is_dir() => Kind::Folder,
                kind if kind.is_file() => Kind::File,
                _ => continue,
            };
            entries.push(Entry { name, kind });
        }
        if let Some(name) = walk::alike(&entries) {
            return Err(FolderError::Alike { path: place, name: name.to_owned() });
        }
        Ok(entries)
    }

    fn resolve(&self, path: &str) -> Result<Option<(String, Kind)>, FolderError> {
        let Ok(place) = self.place(path).canonicalize() else { return Ok(None) };
        let Ok(below) = place.strip_prefix(&self.bounds.top) else { return Ok(None) };
        let below = text_of(below);
        let kind = if place.is_dir() { Kind::Folder } else { Kind::File };
        let is_git = below.split('/').any(|part| part == ".git");
        let is_there = kind == Kind::Folder || place.is_file();
        Ok((is_there && !is_git && !self.rules.ignores(&below, kind == Kind::Folder)).then_some((below, kind)))
    }

    fn is_of_repository(&self, place: &str) -> bool {
        self.rules.is_of_repository(place) || (self.bounds.is_workplace && may_hold_definitions(place))
    }

    fn content(&self, path: &str, _: &str) -> Result<Option<Content>, FolderError> {
        Ok(content(&self.place(path)))
    }
}

/// Reads a file, unless it was removed since its folder was listed: editors write beside a file and rename. One that can not be read hides
/// none of the others.
fn content(file: &Path) -> Option<Content> {
    match read(file) {
        Ok(content) => Some(content),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Content::Unreadable(error.to_string())),
    }
}

fn read(file: &Path) -> std::io::Result<Content> {
    let open = std::fs::File::open(file)?;
    if Collector::is_too_large(open.metadata()?.len()) {
        return Ok(Content::TooLarge);
    }
    let mut content = Vec::new();
    // One byte more than allowed tells a file that grew meanwhile from one that just fits.
    open.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut content)?;
    Ok(Content::Read(content))
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
