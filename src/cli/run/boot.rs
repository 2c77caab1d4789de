//! The instances of the embedded cloud in a file.

use std::path::Path;

use anyhow::Context;

use crate::adapters::embedded::{Keep, SavedCloud};
use crate::cli::inputs::{FileKind, read_file};

/// Keeps instances in a file: written whole beside it, then renamed, so that a crash leaves the old one.
pub fn kept_in(file: &Path) -> Keep {
    let file = file.to_owned();
    Box::new(move |bytes| {
        let beside = file.with_extension("new");
        std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, &file))
    })
}

/// The instances that an earlier process kept in a file, if it did. A file that can not be read is an error, since its instances would
/// be forgotten.
pub fn restore(cloud: &SavedCloud, file: &Path) -> anyhow::Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let place = || format!("instances in {}", file.display());
    let bytes = read_file(file, FileKind::Instances).with_context(place)?;
    cloud.restore(&bytes).with_context(place)
}
