//! `cutlist run` on a real cluster.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};

use crate::adapters::either::Either;
use crate::adapters::git::{Earlier, Followed};
use crate::adapters::kubernetes::{
    Calls, ClusterDefinitions, Connection, Leadership, Own, Taken, applied_last, cluster_identity, install_definitions,
    missing_definition, node_labels, other_enforcer, permissions, take_lease,
};
use crate::adapters::operations::{Metrics, Readiness, serve};
use crate::api::source::SourceFile;
use crate::cli::arguments::{ControllerArguments, ModeArgument, RunArguments, SourceArgument};
use crate::cli::cluster::{connected, unreadable};
use crate::cli::exit::{Failure, Outcome};
use crate::cli::inputs::{FileKind, read_file};
use crate::cli::patience::awaited;
use crate::cli::process::{abort, shutdown_on_signal};
use crate::cli::{output, settings};
use crate::controller::Shutdown;
use crate::core::catalog::regions::{self, Region, SaidBy};

use super::clouds;
use super::drive::{Drive, Watched, beside, leads_no_longer, lease_namespace, own};
use super::guard::Guard;
use super::{flux, notifications, source, usage};

/// How long a call that is under way when a stop is requested may take. With the lease given back after it, less than the 30
/// seconds that Kubernetes waits.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
const STOP_LOOK: Duration = Duration::from_millis(250);

/// Until stopped, or until another replica leads.
pub fn run(arguments: &RunArguments) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let standing = HeldLease::default();
    let shutdown = shutdown_on_signal();
    runtime.spawn(end_when_overdue(shutdown.clone(), standing.clone()));
    let ended = runtime.block_on(async {
        let ended = Box::pin(control(arguments, &shutdown, &standing)).await;
        give_back(&standing).await;
        ended
    });
    // A thread that waits for a name server or a disk has nothing to finish.
    runtime.shutdown_background();
    ended
}

/// The lease of this process, once it stands for election.
type HeldLease = Arc<Mutex<Option<Leadership>>>;

async fn give_back(standing: &HeldLease) {
    let leadership = standing.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(leadership) = leadership {
        leadership.give_back().await;
    }
}

/// Kubernetes waits for 30 seconds. A call that the API server does not answer, or a plan that takes long, may be under way: what
/// matters of it is in the cluster, where the next one finds it.
async fn end_when_overdue(shutdown: Shutdown, standing: HeldLease) {
    while !shutdown.is_requested() {
        tokio::time::sleep(STOP_LOOK).await;
    }
    tokio::time::sleep(STOP_PATIENCE).await;
    output::say("the call that is under way does not end: stopping without it");
    give_back(&standing).await;
    abort();
}

async fn control(arguments: &RunArguments, shutdown: &Shutdown, standing: &HeldLease) -> Result<Outcome, Failure> {
    let controller = &arguments.controller;
    clouds::check(controller)?;
    let place = match controller.source {
        SourceArgument::Repository => Some(source::place(arguments)?),
        SourceArgument::Cluster | SourceArgument::Flux => None,
    };
    usage::check(arguments, place.as_ref())?;
    refuse_address_beside_cluster(arguments)?;
    refuse_two_people_without_authors(controller)?;
    notifications::check(&arguments.notifications)?;
    let connection = connected(&controller.cluster).await?;
    let failed = |error| unreadable(error, &connection.address);
    let watched = Watched::default();
    listen(controller, &watched, &connection.calls).await?;
    if controller.install_crds {
        let installed =
            awaited("the definitions that are installed", Box::pin(install_definitions(&connection.client))).await;
        for name in installed.map_err(failed)? {
            output::say(&format!("applied {name}"));
        }
    }
    refuse_without_definitions(&connection, controller.mode).await?;
    if controller.mode == ModeArgument::Enforce {
        refuse_beside_others(&connection, &own(controller, &connection, None)).await?;
    }
    let identity = identity();
    let mut leadership = Leadership::alone();
    if controller.elects() {
        leadership = stand(controller, &connection, &identity).await?;
        *standing.lock().unwrap_or_else(PoisonError::into_inner) = Some(leadership.clone());
        output::say(&format!("{identity} waits to lead"));
        watched.readiness.waits_to_lead();
        tokio::select! {
            () = shutdown.requested() => return Ok(Outcome::Interrupted),
            () = leadership.becomes(true) => {}
        }
        watched.readiness.set(false);
        output::say(&format!("{identity} leads"));
    } else if controller.holds_lease() {
        leadership = take(controller, &connection, &identity).await?;
        *standing.lock().unwrap_or_else(PoisonError::into_inner) = Some(leadership.clone());
    }
    watched.metrics.leads(true);
    if controller.mode == ModeArgument::Enforce {
        // Once more: another one may have begun meanwhile.
        refuse_beside_others(&connection, &own(controller, &connection, None)).await?;
    }
    Box::pin(lead(arguments, connection, leadership, &identity, &watched, shutdown)).await
}

/// Acts as the leader until stopped, or until it no longer leads.
async fn lead(
    arguments: &RunArguments,
    connection: Connection,
    leadership: Leadership,
    identity: &str,
    watched: &Watched,
    shutdown: &Shutdown,
) -> Result<Outcome, Failure> {
    let controller = &arguments.controller;
    let installation = match &controller.installation {
        Some(name) => name.clone(),
        None => {
            let identity = awaited("namespace kube-system", cluster_identity(&connection.client)).await;
            identity.map_err(|error| unreadable(error, &connection.address))?
        }
    };
    let mut lost = leadership.clone();
    let (repository, region) = tokio::select! {
        found = definitions(arguments, &connection, &installation, &watched.readiness) => found?,
        () = shutdown.requested() => return Ok(Outcome::Interrupted),
        () = lost.becomes(false) => return Err(leads_no_longer()),
    };
    let region = match region.said_by {
        SaidBy::Settings => region,
        _ => region_of_nodes(&connection).await?.unwrap_or(region),
    };
    if region.said_by == SaidBy::Nobody {
        output::say(&format!("region {} is only assumed: set spec.region in cutlist.yaml", region.name));
    }
    let cluster_name = clouds::cluster_name(controller);
    let connection = &connection;
    let name = region.name.clone();
    let drive = Drive {
        arguments,
        connection,
        leadership,
        identity,
        watched,
        shutdown,
        installation,
        cluster_name,
        region: name,
    };
    Box::pin(clouds::choose_and_drive(drive, repository, &region)).await
}

/// Serves metrics and health, if an address was given.
async fn listen(controller: &ControllerArguments, watched: &Watched, calls: &Calls) -> Result<(), Failure> {
    let Some(address) = controller.listen else { return Ok(()) };
    let calls = calls.clone();
    let Watched { metrics, readiness, heartbeat, tally } = watched.clone();
    let count_calls = move |metrics: &Metrics| {
        for (verb, resource, count) in calls.all() {
            metrics.calls(verb, &resource, count);
        }
        for (action, outcome, count) in tally.counts() {
            metrics.cloud_calls(action.name(), outcome.name(), count);
        }
    };
    let served = serve(address, metrics, readiness, heartbeat, count_calls).await;
    let address = served
        .with_context(|| format!("listen on {address}"))
        .map_err(|error| Failure::failed(error).with_hint("choose another --listen ADDRESS:PORT"))?;
    output::say(&format!("metrics and health at http://{address}"));
    Ok(())
}

async fn stand(
    controller: &ControllerArguments,
    connection: &Connection,
    identity: &str,
) -> Result<Leadership, Failure> {
    let namespace = lease_namespace(controller, connection);
    let standing = Leadership::stand(connection, &namespace, identity);
    let leadership = awaited(&format!("the lease of namespace {namespace}"), standing).await;
    leadership.map_err(|error| unreadable(error, &connection.address))
}

/// Without standing for election the lease is held all the same: two who did not ask for it would not see each other.
async fn take(
    controller: &ControllerArguments,
    connection: &Connection,
    identity: &str,
) -> Result<Leadership, Failure> {
    let namespace = lease_namespace(controller, connection);
    let taken = take_lease(connection, &namespace, identity, connection.time.clone());
    let taken = awaited(&format!("the lease of namespace {namespace}"), taken).await;
    match taken.map_err(|error| unreadable(error, &connection.address))? {
        Taken::Ours(leadership) => Ok(leadership),
        Taken::Held(other) => Err(beside(&other)),
    }
}

/// Plans could not be posted, nor nodes be written down.
async fn refuse_without_definitions(connection: &Connection, mode: ModeArgument) -> Result<(), Failure> {
    let mode = match mode {
        ModeArgument::Observe => permissions::Mode::Observe,
        ModeArgument::Enforce => permissions::Mode::Enforce,
    };
    let missing = awaited("the kinds that are installed", missing_definition(&connection.client, mode)).await;
    match missing.map_err(|error| unreadable(error, &connection.address))? {
        None => Ok(()),
        Some(name) => {
            let error = anyhow!("the cluster has no {name}: their definition is not installed");
            Err(Failure::failed(error).with_hint(
                "start with --install-crds, or install them: `cutlist crds | kubectl apply --server-side -f -`",
            ))
        }
    }
}

/// Two controllers that create and remove nodes would undo each other's work.
async fn refuse_beside_others(connection: &Connection, own: &Own) -> Result<(), Failure> {
    let other = other_enforcer(&connection.client, own, &connection.time);
    let other = awaited("the leases and Deployments of others that act", other).await;
    match other.map_err(|error| unreadable(error, &connection.address))? {
        None => Ok(()),
        Some(other) => Err(beside(&other)),
    }
}

/// Another one for each process.
fn identity() -> String {
    let host = std::env::var("POD_NAME").or_else(|_| std::env::var("HOSTNAME"));
    format!("{}-{}", host.unwrap_or_else(|_| "cutlist".to_owned()), std::process::id())
}

type DefinitionsFrom = Either<Followed<Guard>, ClusterDefinitions>;

/// Where definitions come from, and the region they are for.
async fn definitions(
    arguments: &RunArguments,
    connection: &Connection,
    installation: &str,
    readiness: &Readiness,
) -> Result<(DefinitionsFrom, Region), Failure> {
    let waits = |why| readiness.waits_for_definitions(why);
    if arguments.controller.source == SourceArgument::Flux {
        let (followed, region) = source::first_look(flux::follow(arguments, connection)?, arguments, &waits).await?;
        return Ok((Either::One(followed), region));
    }
    if arguments.controller.source == SourceArgument::Repository {
        let earlier = awaited("what was applied last", applied_last(&connection.client, installation)).await;
        let earlier = earlier.map_err(|error| unreadable(error, &connection.address))?;
        let earlier = earlier.map(|(id, at)| Earlier { id, committed_seconds: at.as_second() });
        let follow = source::follow(source::place(arguments)?, arguments, earlier)?;
        let (followed, region) = source::first_look(follow, arguments, &waits).await?;
        return Ok((Either::One(followed), region));
    }
    let settings = match &arguments.repository {
        Some(folder) => settings_file(Path::new(folder))?,
        None => Vec::new(),
    };
    let region = settings::read_definitions(&settings, &arguments.definitions).region();
    let interval = Duration::from_secs(arguments.interval.seconds().unwrap_or(30));
    let definitions = ClusterDefinitions::new(connection.client.clone(), interval, settings);
    Ok((Either::Other(definitions), region))
}

/// The region that the nodes of the cluster are in.
async fn region_of_nodes(connection: &Connection) -> Result<Option<Region>, Failure> {
    let labels = awaited("the nodes of the cluster", node_labels(&connection.client)).await;
    let labels = labels.map_err(|error| unreadable(error, &connection.address))?;
    let region = regions::find(None, &labels, &[]);
    Ok((region.said_by == SaidBy::Nodes).then_some(region))
}

/// Where nobody says who wrote the definitions, nobody can be held to be a second person.
fn refuse_two_people_without_authors(controller: &ControllerArguments) -> Result<(), Failure> {
    let what = match controller.source {
        SourceArgument::Repository => return Ok(()),
        SourceArgument::Flux => "an artifact of Flux does not say who wrote it",
        SourceArgument::Cluster => "objects of the cluster do not say who wrote them",
    };
    if !controller.approval.iter().any(|rule| rule.0.two_people) {
        return Ok(());
    }
    let error = anyhow!("{what}, so nobody can be held to be a second person");
    Err(Failure::usage(error).with_hint("leave out twoPeople=true, or follow the Git repository itself"))
}

/// Settings are a file, which is not fetched.
fn refuse_address_beside_cluster(arguments: &RunArguments) -> Result<(), Failure> {
    let is_of_cluster = arguments.controller.source == SourceArgument::Cluster;
    match &arguments.repository {
        Some(text) if is_of_cluster && source::is_address(text) && !Path::new(text).is_dir() => {
            let error = anyhow!("with --source cluster REPOSITORY is a folder with cutlist.yaml, and no address");
            Err(Failure::usage(error).with_hint("name a folder that holds cutlist.yaml, or leave it out"))
        }
        _ => Ok(()),
    }
}

/// With `--source cluster`, a folder gives settings and nothing else.
fn settings_file(folder: &Path) -> Result<Vec<SourceFile>, Failure> {
    let name = crate::api::settings::FILE_NAME;
    let path = folder.join(name);
    let content = read_file(&path, FileKind::Settings).map_err(|error| {
        Failure::of_file(path.display().to_string(), error)
            .with_hint("with --source cluster, name a folder with cutlist.yaml")
    })?;
    Ok(vec![SourceFile::applied(name, content)])
}
