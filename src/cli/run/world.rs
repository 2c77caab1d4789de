//! The embedded world and the controller's ports on it.

use jiff::Timestamp;

use crate::adapters::embedded::{
    EmbeddedClock, EmbeddedCloud, EmbeddedCluster, EmbeddedForge, EmbeddedWorld, WorldSettings,
};
use crate::cli::exit::Failure;
use crate::controller::{Journal, Ports};
use crate::core::catalog::Catalog;

use super::log;
use super::screen::Screen;

/// When virtual time begins: any day will do, so long as it is always the same.
pub const EPOCH_SECONDS: i64 = 1_795_165_200;

/// A world that sells what the built-in catalog says of a region.
pub fn build(region: &str, seed: u64, epoch: Timestamp) -> Result<EmbeddedWorld, Failure> {
    let catalog = Catalog::built_in(region)
        .map_err(|error| Failure::failed(error).with_hint("set spec.region in cutlist.yaml"))?;
    Ok(EmbeddedWorld::new(WorldSettings::new(seed, epoch), catalog))
}

pub fn ports<R>(
    repository: R,
    world: &EmbeddedWorld,
    forge: EmbeddedForge,
) -> Ports<R, EmbeddedCluster, EmbeddedCloud, EmbeddedForge, EmbeddedClock> {
    Ports { repository, cluster: world.cluster(), cloud: world.cloud(), forge, clock: world.clock() }
}

/// Shows events, and logs them for those who asked for it.
pub fn journal(screen: &Screen) -> Journal {
    let screen = screen.clone();
    Journal::new(move |now, event| {
        log::record(now, event);
        screen.show(now, event);
    })
}
