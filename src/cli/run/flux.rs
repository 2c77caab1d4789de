//! `cutlist run --source flux`: the revision is the artifact of a source of Flux.

use anyhow::anyhow;

use crate::adapters::flux::{FluxRepository, FluxSource};
use crate::adapters::git::read_archive;
use crate::adapters::kubernetes::Connection;
use crate::cli::arguments::RunArguments;
use crate::cli::exit::Failure;
use crate::cli::output;

use super::source::Follow;

/// Begins to follow what was named.
pub fn follow(arguments: &RunArguments, connection: &Connection) -> Result<Follow, Failure> {
    let Some(name) = arguments.controller.source_ref.clone() else {
        return Err(Failure::usage(anyhow!("--source flux needs the source of Flux that it takes"))
            .with_hint("add --source-ref KIND/NAME.NAMESPACE, such as GitRepository/nodes.flux-system"));
    };
    let source = FluxSource::follow(&connection.client, name).map_err(Failure::failed)?;
    let folder = arguments.sub_path.clone().unwrap_or_default();
    let repository = FluxRepository::new(
        source,
        &folder,
        |archive, folder| read_archive(archive, folder).map_err(Into::into),
        output::say,
    );
    Ok(Follow::Flux(Box::new(repository)))
}
