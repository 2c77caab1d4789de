//! `cutlist migrate`

use std::path::Path;

use super::arguments::MigrateArguments;
use super::exit::{Failure, Outcome};
use super::lint::sets;
use super::replacing::replace;
use super::{inputs, output, patching};
use crate::definitions::migration::{self, Migration};
use crate::render::migration as render;

pub fn run(arguments: &MigrateArguments) -> Result<Outcome, Failure> {
    let of_stdin = arguments.paths.iter().filter(|path| inputs::is_stdin(path)).count();
    if of_stdin > 0 && (of_stdin < arguments.paths.len() || arguments.write || of_stdin > 1) {
        let error = anyhow::anyhow!("what comes from standard input is migrated by itself, and printed");
        return Err(Failure::usage(error).with_hint("name files and folders, or `-` alone and without --write"));
    }
    let sets = sets::sets(&arguments.paths, None)?;
    let mut all = Migration::default();
    for set in &sets {
        all.add(migration::migrate(&set.files), |path| set.typed(path));
    }
    if of_stdin > 0 {
        let changed = all.changed.first().map(|it| it.after.clone().into_bytes());
        let content = sets.first().and_then(|set| set.files.first()).map(|file| file.content.clone());
        output::bytes(&changed.or(content).unwrap_or_default())?;
    } else if arguments.write {
        for file in &all.changed {
            replace(Path::new(&file.path), &file.after).map_err(Failure::failed)?;
        }
    } else {
        let shown = all.changed.iter();
        let shown = shown.map(|it| patching::Change { file: &it.path, before: &it.before, after: &it.after });
        patching::show(&shown.collect::<Vec<_>>())?;
    }
    let is_written = arguments.write || of_stdin > 0;
    output::complain(&render::text(&all, is_written));
    Ok(if all.by_hand.is_empty() { Outcome::Clean } else { Outcome::Findings })
}
