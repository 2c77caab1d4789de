//! Where nodes come from, and where revisions are told of: both are chosen here, and nowhere else.

use anyhow::anyhow;

use crate::adapters::embedded::{EmbeddedWorld, SavedCloud, WorldSettings};
use crate::adapters::forge::{UnusedRevisions, Voice};
use crate::adapters::kubernetes::Connection;
use crate::adapters::kubernetes::nodes::ClusterNodes;
use crate::cli::arguments::{CloudArgument, ControllerArguments, ModeArgument, RunArguments};
use crate::cli::cluster::unreadable;
use crate::cli::exit::Failure;
use crate::cli::output;
use crate::cli::post::resolve;
use crate::core::catalog::Catalog;
use crate::ports::{NodeObjects, PortErrorKind};
use crate::render::posting::fitted_line;

use super::{boot, now};

/// Whether the cloud that is named can be had.
pub fn check(controller: &ControllerArguments) -> Result<(), Failure> {
    match controller.cloud {
        Some(CloudArgument::Embedded) => Ok(()),
        Some(CloudArgument::Aws) if cfg!(feature = "aws") => Ok(()),
        Some(CloudArgument::Aws) => {
            let error = anyhow!("this build of cutlist has no EC2: it was made without the Cargo feature aws");
            Err(Failure::usage(error).with_hint(
                "take a released build, or build it with `cargo build --release --locked`; --cloud embedded needs no account",
            ))
        }
        // Observing needs prices and instance types, which the built-in catalog has.
        None if controller.mode == ModeArgument::Observe => Ok(()),
        None => {
            let error = anyhow!("it is not said where nodes come from");
            Err(Failure::usage(error).with_hint(
                "add --cloud aws for EC2, --cloud embedded to try it, or --mode observe to plan beside Karpenter",
            ))
        }
    }
}

/// The cloud in memory, with the instances of an earlier process: of the file that keeps them, or else as the cluster's claims tell.
pub async fn embedded(
    arguments: &RunArguments,
    catalog: Catalog,
    connection: &Connection,
) -> Result<(EmbeddedWorld, SavedCloud), Failure> {
    let controller = &arguments.controller;
    let seconds = controller.boot_seconds;
    let settings = WorldSettings { seconds_to_join: (seconds, seconds), ..WorldSettings::new(arguments.seed, now()) };
    let world = EmbeddedWorld::new(settings, catalog);
    let file = controller.cloud_state.as_deref();
    let cloud = SavedCloud::new(&world, file.map(boot::kept_in));
    match file {
        Some(file) => boot::restore(&cloud, file)
            .map_err(|error| Failure::failed(error).with_hint("remove the file to begin anew"))?,
        // A cluster without the kinds has no claims.
        None => match ClusterNodes(connection.client.clone()).claims_and_classes().await {
            Ok((claims, _)) => cloud.learn(&claims),
            Err(error) if error.kind == PortErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(error, &connection.address)),
        },
    }
    Ok((world, cloud))
}

/// The forge that revisions are told of.
pub fn forge(arguments: &RunArguments) -> Result<UnusedRevisions, Failure> {
    if arguments.forge.forge.is_none() {
        return Ok(UnusedRevisions::default());
    }
    let forge = resolve(&arguments.forge, None)?.connect()?;
    let voice = Voice { line: |text, characters| output::shown(&fitted_line(text, characters)), say: output::say };
    Ok(UnusedRevisions::on(forge, &arguments.forge.forge_name, voice))
}
