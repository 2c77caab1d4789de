//! The embedded world and the controller's ports on it.

use std::path::Path;

use jiff::Timestamp;

use crate::adapters::embedded::{
    EmbeddedClock, EmbeddedCloud, EmbeddedCluster, EmbeddedForge, EmbeddedWorld, WorldSettings,
};
use crate::api::approval_rules::ApprovalRules;
use crate::api::source::SourceFile;
use crate::cli::exit::Failure;
use crate::cli::inputs::catalog_of_file;
use crate::controller::{EMBEDDED_INSTALLATION, Journal, Mode, Options, Ports};
use crate::core::catalog::Catalog;
use crate::core::planner::decide;
use crate::definitions::Definitions;

use super::log;
use super::screen::Screen;

/// When virtual time begins: any day will do, so long as it is always the same.
pub const EPOCH_SECONDS: i64 = 1_795_165_200;

/// A world that sells what a file holds, or what the built-in catalog says of a region.
pub fn build(region: &str, file: Option<&Path>, seed: u64, epoch: Timestamp) -> Result<EmbeddedWorld, Failure> {
    let catalog = match file {
        Some(file) => catalog_of_file(file)?,
        None => Catalog::built_in(region)
            .map_err(|error| Failure::failed(error).with_hint("set spec.region in cutlist.yaml"))?,
    };
    Ok(EmbeddedWorld::new(WorldSettings::new(seed, epoch), catalog))
}

pub fn ports<R>(
    repository: R,
    world: &EmbeddedWorld,
    forge: EmbeddedForge,
) -> Ports<R, EmbeddedCluster, EmbeddedCloud, EmbeddedForge, EmbeddedClock> {
    Ports { repository, cluster: world.cluster(), cloud: world.cloud(), forge, clock: world.clock() }
}

/// Of a controller that has such a world for itself.
pub fn options(seed: u64, read: impl Fn(&[SourceFile]) -> Definitions + 'static) -> Options {
    Options {
        mode: Mode::Enforce,
        applies_definitions: true,
        lease_transitions: None,
        installation: EMBEDDED_INSTALLATION.to_owned(),
        cluster_name: None,
        region: None,
        approval_floor: ApprovalRules::default(),
        allows_older_revisions: true,
        read: Box::new(read),
        seed,
        planner: Box::new(decide),
    }
}

/// Shows events, and logs them for those who asked for it.
pub fn journal(screen: &Screen) -> Journal {
    let screen = screen.clone();
    Journal::new(move |now, event| {
        log::record(now, event);
        screen.show(now, event);
    })
}
