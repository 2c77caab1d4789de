//! Each fetch leaves a pack. Over months of commits they would fill the disk, with what no revision holds any more among it.

use std::path::{Path, PathBuf};

use git2::{Oid, Repository};

use super::cause::said;

/// Packs of a clone. So many fetches are cheap to look through, and small.
const PACKS_MAX: usize = 40;

/// Why packs were not put together; they can stay as they are.
#[derive(Debug, thiserror::Error)]
pub(super) enum PackError {
    #[error("{}", said(.0))]
    Git(#[from] git2::Error),
    #[error("the packs can not be changed")]
    Files(#[from] std::io::Error),
}

/// Puts what is in the history of these commits into one pack, and removes the others, when there are many. Nothing else may write to
/// the clone meanwhile; a handle that was opened before may miss objects afterwards.
pub(super) fn pack_together(repository: &Repository, kept: &[Oid]) -> Result<(), PackError> {
    let folder = repository.path().join("objects/pack");
    let before = packs(&folder)?;
    if before.len() <= PACKS_MAX {
        return Ok(());
    }
    let mut walk = repository.revwalk()?;
    for commit in kept {
        walk.push(*commit)?;
    }
    let mut builder = repository.packbuilder()?;
    builder.insert_walk(&mut walk)?;
    // Beside the others, and only then instead of them: whoever ends in between has everything.
    builder.write(&folder, 0)?;
    let all = packs(&folder)?;
    // One with the same objects has the same name: then it is among those before, and which it is can not be told.
    if all.len() == before.len() + 1 {
        for pack in before {
            for extension in ["idx", "rev", "pack"] {
                match std::fs::remove_file(pack.with_extension(extension)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

fn packs(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut packs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "pack") {
            packs.push(path);
        }
    }
    Ok(packs)
}
