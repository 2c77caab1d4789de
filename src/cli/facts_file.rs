//! Files of facts, which `cutlist facts` writes.

use std::path::Path;

use anyhow::Context;

use super::failure::Failure;
use super::files::{FileKind, read_file};
use crate::api::cloud_facts::{CloudFacts, FORMAT_VERSION, KIND};

/// Reads a file of facts; the error names it.
pub fn read(path: &Path) -> Result<CloudFacts, Failure> {
    let place = || format!("facts {}", path.display());
    let bytes = read_file(path, FileKind::Facts).map_err(|error| Failure::of_file(place(), error))?;
    let hint = |failure: Failure| failure.with_hint("`cutlist facts pull` writes it");
    let facts: CloudFacts =
        serde_json::from_slice(&bytes).with_context(place).map_err(|error| hint(Failure::failed(error)))?;
    if facts.kind != KIND || facts.version != FORMAT_VERSION {
        let error = anyhow::anyhow!(
            "{}: it is {} of version {}, and this reads {KIND} of version {FORMAT_VERSION}",
            place(),
            facts.kind,
            facts.version
        );
        return Err(hint(Failure::failed(error)));
    }
    if let Err(error) = facts.taken_at.parse::<jiff::Timestamp>() {
        let error = anyhow::Error::new(error).context(format!("{}: takenAt", place()));
        return Err(hint(Failure::failed(error)));
    }
    Ok(facts)
}
