//! `cutlist snapshot`, and the reading of snapshot files for every command that takes them.

pub(super) mod places;

use std::path::PathBuf;

use anyhow::Context;

use crate::core::snapshot::Snapshot;
use crate::core::snapshot::read::read;
use crate::core::snapshot::write::write;
use crate::render::terminal;

use super::arguments::SnapshotArguments;
use super::exit::{Failure, Outcome};
use super::inputs::{FileKind, is_stdin, read_file};
use super::output;

pub fn run(arguments: &SnapshotArguments) -> Result<Outcome, Failure> {
    let live = arguments.cluster.are_given();
    let snapshot = match (&arguments.embedded, arguments.from.as_slice()) {
        (Some(path), []) if !live => super::run::snapshot_after(path, arguments)?,
        (None, files @ [_, ..]) if !live => from_files(files)?,
        (None, []) => {
            let (snapshot, notes) = super::cluster::read(&arguments.cluster)?;
            for note in notes {
                output::say(&format!("note: {note}"));
            }
            snapshot
        }
        _ => {
            let error = anyhow::anyhow!("a live cluster, --embedded and --from exclude each other");
            return Err(Failure::usage(error));
        }
    };
    let text = write(&snapshot).map_err(Failure::failed)?;
    let text = terminal::json(text);
    match &arguments.to {
        Some(place) => places::keep(place, arguments, text.as_bytes())?,
        None => output::plain(&text)?,
    }
    Ok(Outcome::Clean)
}

fn from_files(files: &[PathBuf]) -> Result<Snapshot, Failure> {
    let (snapshot, notes) = read_files(files)?;
    for note in notes {
        output::say(&format!("note: {note}"));
    }
    if !snapshot.ignored.is_empty() {
        let kinds: Vec<String> = snapshot.ignored.iter().map(|(kind, count)| format!("{count} x {kind}")).collect();
        output::say(&format!("note: left out, not needed for planning: {}", kinds.join(", ")));
    }
    Ok(snapshot)
}

/// Reads snapshot files, `-` being standard input, into one snapshot; also gives what the reader noticed, with the file.
pub(super) fn read_files(files: &[PathBuf]) -> Result<(Snapshot, Vec<String>), Failure> {
    let mut snapshot = Snapshot::default();
    let mut notes = Vec::new();
    for file in files {
        let name = if is_stdin(file) { "standard input".to_owned() } else { file.display().to_string() };
        let bytes = read_file(file, FileKind::Snapshot).map_err(|error| Failure::of_file(name.clone(), error))?;
        let report = read(&bytes, &mut snapshot).with_context(|| name.clone()).map_err(Failure::failed)?;
        notes.extend(report.notes.into_iter().map(|note| format!("{name}: {note}")));
    }
    Ok((snapshot, notes))
}
