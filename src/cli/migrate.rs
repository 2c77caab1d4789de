//! `cutlist migrate`

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::arguments::MigrateArguments;
use super::exit::{Failure, Outcome};
use super::lint::{USAGE, sets};
use super::{inputs, output};
use crate::definitions::migration::{self, Migration};
use crate::render::diagnostics::patch;
use crate::render::migration as render;

pub fn run(arguments: &MigrateArguments) -> Result<Outcome, Failure> {
    let of_stdin = arguments.paths.iter().filter(|path| inputs::is_stdin(path)).count();
    if of_stdin > 0 && (of_stdin < arguments.paths.len() || arguments.write || of_stdin > 1) {
        let error = anyhow::anyhow!("what comes from standard input is migrated by itself, and printed");
        return Err(Failure::usage(USAGE, error).with_hint("name files and folders, or `-` alone and without --write"));
    }
    let sets = sets::sets(&arguments.paths, None)?;
    let mut all = Migration::default();
    for set in &sets {
        all.add(migration::migrate(&set.files), |path| set.typed(path));
    }
    if of_stdin > 0 {
        let changed = all.changed.first().map(|it| it.after.clone().into_bytes());
        let content = sets.first().and_then(|set| set.files.first()).map(|file| file.content.clone());
        output::bytes(&changed.or(content).unwrap_or_default());
    } else if arguments.write {
        for file in &all.changed {
            replace(Path::new(&file.path), &file.after).map_err(|error| Failure::usage(USAGE, error))?;
        }
    } else {
        all.changed.iter().for_each(|file| output::bytes(patch(&file.path, &file.before, &file.after).as_bytes()));
    }
    let is_written = arguments.write || of_stdin > 0;
    output::complain(&render::text(&all, is_written));
    Ok(if all.by_hand.is_empty() { Outcome::Clean } else { Outcome::Findings })
}

/// Puts a new file in the place of the old one, at once: a reader sees the one or the other. A link stays a link.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("{} can not be written", path.display());
    let target = path.canonicalize().with_context(context)?;
    let folder = target.parent().map_or_else(PathBuf::new, Path::to_owned);
    let write = || -> std::io::Result<()> {
        let permissions = std::fs::metadata(&target)?.permissions();
        if permissions.readonly() {
            return Err(std::io::Error::from(std::io::ErrorKind::PermissionDenied));
        }
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(permissions)?;
        file.as_file().sync_all()?;
        file.persist(&target)?;
        Ok(())
    };
    write().with_context(context)
}
