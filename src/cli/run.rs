//! `cutlist run`

#[cfg(feature = "aws")]
mod aws;
mod clouds;
mod drive;
mod flux;
mod guard;
mod lines;
mod live;
pub(super) mod log;
mod notifications;
mod reviews;
mod scenario;
pub(super) mod screen;
mod source;
mod tally;
mod usage;
pub(super) mod world;

use std::path::Path;

use jiff::Timestamp;

use crate::adapters::embedded::EmbeddedForge;
use crate::adapters::git::serve_fetch;
use crate::controller::{Controller, Shutdown};
use crate::core::snapshot::Snapshot;
use crate::ports::Clock;

use super::arguments::{RunArguments, SnapshotArguments};
use super::exit::{Failure, Outcome};
use super::process::{runtime, shutdown_on_signal, standard_output};
use super::settings;

use screen::{Screen, Times};
use source::SourcePlace;

/// The other process of [`run`].
pub fn fetch_for_controller() -> Result<Outcome, Failure> {
    serve_fetch().map(|()| Outcome::Clean).map_err(Failure::failed)
}

pub fn run(arguments: &RunArguments) -> Result<Outcome, Failure> {
    if arguments.verbose {
        log::start();
    }
    if !arguments.embedded {
        return live::run(arguments);
    }
    let place = source::place(arguments)?;
    usage::check(arguments, Some(&place))?;
    if let SourcePlace::Scenario(folder) = &place {
        return run_scenario(folder, arguments);
    }
    let follow = source::follow(place, arguments, None)?;
    runtime(false)?.block_on(follow_until_stopped(follow, arguments))
}

fn run_scenario(folder: &Path, arguments: &RunArguments) -> Result<Outcome, Failure> {
    let script = scenario::script(folder, &arguments.definitions)?;
    let runtime = runtime(!arguments.real_time)?;
    runtime.block_on(async {
        let world = world::build(&script.region, arguments.catalog.as_deref(), arguments.seed, epoch()?)?;
        let shutdown = shutdown_on_signal();
        let clock = world.clock();
        let screen = Screen::new(standard_output(), Times::SinceBeginning, clock.now(), shutdown.clone());
        let seed = arguments.seed;
        scenario::play(&script, &arguments.definitions, world, seed, None, &screen, &shutdown).await?;
        screen.summary(clock.now());
        screen.written(outcome(&shutdown))
    })
}

/// Follows a repository or folder; nothing else happens in the cluster than what its definitions ask for.
async fn follow_until_stopped(follow: source::Follow, arguments: &RunArguments) -> Result<Outcome, Failure> {
    let shutdown = shutdown_on_signal();
    let (repository, region) = tokio::select! {
        found = source::first_look(follow, arguments, &|_| {}) => found?,
        () = shutdown.requested() => return Ok(Outcome::Interrupted),
    };
    let world = world::build(&region.name, arguments.catalog.as_deref(), arguments.seed, now())?;
    let clock = world.clock();
    let screen = Screen::new(standard_output(), Times::Clock, clock.now(), shutdown.clone());
    let ports = world::ports(repository, &world, EmbeddedForge::default());
    let definitions = arguments.definitions.clone();
    let options = world::options(arguments.seed, move |files| settings::read_definitions(files, &definitions));
    let mut controller = Controller::new(ports, options, world::journal(&screen), shutdown.clone());
    controller.run().await;
    screen.summary(clock.now());
    screen.written(outcome(&shutdown))
}

/// The embedded cluster after the scenario of a folder was played, for `cutlist snapshot`.
pub fn snapshot_after(folder: &Path, arguments: &SnapshotArguments) -> Result<Snapshot, Failure> {
    let definitions = super::arguments::DefinitionArguments::default();
    let script = scenario::script(folder, &definitions)?;
    runtime(true)?.block_on(async {
        let world = world::build(&script.region, None, arguments.seed, epoch()?)?;
        let shutdown = Shutdown::default();
        let screen = Screen::new(Box::new(std::io::sink()), Times::SinceBeginning, epoch()?, shutdown.clone());
        let (seed, until) = (arguments.seed, arguments.after_step);
        let world = scenario::play(&script, &definitions, world, seed, until, &screen, &shutdown).await?;
        Ok(world.with(|world| world.snapshot()))
    })
}

fn epoch() -> Result<Timestamp, Failure> {
    Timestamp::from_second(world::EPOCH_SECONDS).map_err(Failure::failed)
}

fn outcome(shutdown: &Shutdown) -> Outcome {
    if shutdown.is_requested() { Outcome::Interrupted } else { Outcome::Clean }
}

#[expect(clippy::disallowed_methods, reason = "the command line knows what time it is")]
fn now() -> Timestamp {
    Timestamp::now()
}
