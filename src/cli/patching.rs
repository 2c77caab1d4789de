//! What would be written into files, as a patch.

use std::path::{Path, PathBuf};

use super::exit::Failure;
use super::output;
use crate::render::diagnostics::patch;

/// What a file was and would be, with the path that the user calls it by.
#[derive(Clone, Copy, Debug)]
pub struct Change<'c> {
    pub file: &'c str,
    pub before: &'c str,
    pub after: &'c str,
}

/// Prints all changes as one patch.
pub fn show(changes: &[Change<'_>]) -> Result<(), Failure> {
    let place = |file: &str| Path::new(file).canonicalize().unwrap_or_else(|_| PathBuf::from(file));
    let places: Vec<PathBuf> = changes.iter().map(|change| place(change.file)).collect();
    let folder = folder_of(&places);
    for (change, place) in changes.iter().zip(&places) {
        let name = place.strip_prefix(&folder).unwrap_or(place).to_string_lossy();
        output::patch(&patch(&name, change.before, change.after))?;
    }
    Ok(())
}

/// Where the patch is to be applied: in the working directory, or, where a file lies outside of it, in the root of the repository. What is
/// in neither is called from the root of the disk (`patch -p1 -d /`).
fn folder_of(places: &[PathBuf]) -> PathBuf {
    let Some(first) = places.first() else { return PathBuf::new() };
    let here = Path::new(".").canonicalize().ok();
    let repository = first.ancestors().skip(1).find(|folder| folder.join(".git").exists());
    let mut folders = here.as_deref().into_iter().chain(repository);
    let holds_all = |folder: &&Path| places.iter().all(|place| place.starts_with(folder));
    folders.find(holds_all).or_else(|| first.ancestors().last()).map_or_else(PathBuf::new, Path::to_owned)
}
