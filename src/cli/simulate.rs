//! `cutlist simulate`

mod livelock;
mod progress;
mod tally;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use anyhow::anyhow;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;

use super::arguments::{InputArguments, PackingArgument, Resize, SimulateArguments, SimulateOutput, Until};
use super::exit::{Failure, Outcome};
use super::inputs::{self, ReadInputs, ReadRevision};
use super::output;
use super::process::{abort_on_signal, runtime, standard_output};
use super::run::log;
use super::run::screen::{Screen, Times};
use super::run::world;
use super::settings;
use crate::adapters::embedded::{EmbeddedForge, EmbeddedWorld, OneRevision, ScaleError, WorldSettings};
use crate::api::keys;
use crate::api::settings::{Approval, ApprovalMode, Packing};
use crate::controller::preview::after_base;
use crate::controller::{Controller, Journal, Shutdown};
use crate::core::plan::simulation::{FORMAT_VERSION, Simulation, SimulationSummary};
use crate::core::plan::{Note, NoteCode, ReasonCode};
use crate::core::planner::leaving::leaving;
use crate::core::planner::moments::{Stuck, longest_wait, next_moment};
use crate::core::planner::{cluster_notes, decide};
use crate::core::prepare::lost_nodes::without_pods_of_missing_nodes;
use crate::core::snapshot::doubled::doubled;
use crate::core::snapshot::nodes::machines;
use crate::core::snapshot::{Snapshot, moment};
use crate::definitions::Definitions;
use crate::definitions::suggest::nearest;
use crate::ports::Clock;
use crate::render::chart::duration;
use crate::render::plan::count;
use crate::render::simulation as render;
use crate::render::terminal::Style;

use livelock::Livelock;
use progress::Progress;
use tally::Tally;

/// A cluster in which something is still under way after this time beyond the longest `consolidateAfter` and what is known to end some
/// time, or these many plans, does not settle.
const PATIENCE: SignedDuration = SignedDuration::from_hours(24);
const PLANS_MAX: usize = 1000;
/// Looks in a row that found and changed nothing, after which a cluster is stuck: for an hour if they are retries.
const IDLE_LOOKS_MAX: usize = 720;
/// Looks in a row that found and changed nothing, after which only time can bring anything: each plan is made anew within them.
const QUIET_LOOKS: usize = 13;
/// Longer than any plan looks ahead.
const SECONDS_MAX: u64 = 366 * 24 * 3_600;
/// Workloads that an error lists.
const NAMES_MAX: usize = 5;

pub fn run(arguments: &SimulateArguments) -> Result<Outcome, Failure> {
    if arguments.inputs.snapshot.is_empty() {
        let error = anyhow!("there is no cluster to begin with");
        return Err(Failure::usage(error).with_hint(
            "give its objects with --snapshot FILE, as `kubectl get nodes,nodeclaims,nodepools,pods,... -A -o json` \
             prints them; `cutlist run --embedded PATH` begins with an empty one",
        ));
    }
    let mut read = inputs::read_all(&arguments.inputs)?;
    // A kubelet confirms its node every few minutes, so the newest date is close to when the snapshot was taken.
    read.now = arguments.inputs.planning.now.or_else(|| moment::newest(&read.snapshot)).unwrap_or(read.now);
    runtime(true)?.block_on(simulate(arguments, &read))
}

async fn simulate(arguments: &SimulateArguments, read: &ReadInputs) -> Result<Outcome, Failure> {
    let settings = WorldSettings::new(arguments.inputs.planning.seed, read.now);
    let world = EmbeddedWorld::new(settings, read.catalog.clone());
    world.with(|world| world.take_over(without_pods_of_missing_nodes(&read.snapshot)));
    let tally = Rc::new(RefCell::new(Tally::new(read.now)));
    let replicas = arguments.scale.iter().map(|resize| resize.replicas).fold(0, usize::saturating_add);
    if replicas > MANY_REPLICAS {
        progress::say(&format!("note: {}: planning for so many takes minutes", count(replicas, "pod")));
    }
    for resize in &arguments.scale {
        world
            .with(|state| state.resize(&resize.workload, resize.replicas))
            .map_err(|error| not_scaled(&world, error))?;
    }
    abort_on_signal();
    // Of the screen alone, whose reader may have seen enough.
    let shutdown = Shutdown::default();
    let shows = arguments.verbose && arguments.output == SimulateOutput::Text;
    let screen = shows.then(|| Screen::new(standard_output(), Times::SinceBeginning, read.now, shutdown.clone()));
    let bounds = Bounds::of(arguments.until);
    let settled = carry_on(arguments, read, &world, &tally, screen.as_ref(), &shutdown, bounds).await?;
    if shutdown.is_requested() {
        return screen.map_or(Ok(Outcome::Interrupted), |screen| screen.written(Outcome::Interrupted));
    }
    let simulation = simulation(arguments, read, &world, &tally.borrow(), settled);
    match arguments.output {
        SimulateOutput::Text => output::text(&render::text(&simulation, Style::Coloured))?,
        SimulateOutput::Json => {
            output::data(&render::json(&simulation).map_err(Failure::failed)?)?;
        }
    }
    if arguments.until == Until::Settled && !settled {
        let plans = simulation.summary.plans;
        let error = anyhow!(
            "the cluster does not settle: after {plans} plans and {} something is still under way",
            duration(simulation.summary.virtual_seconds)
        );
        return Err(Failure::failed(error)
            .with_hint("`-v` shows every plan; `--until 2h` stops after that time and is no error"));
    }
    Ok(Outcome::Clean)
}

/// Lets the controller look and act until nothing moves any more, or the time is over. Whether nothing moves. Fails where the controller
/// never comes to rest, which would take for ever.
async fn carry_on(
    arguments: &SimulateArguments,
    read: &ReadInputs,
    world: &EmbeddedWorld,
    tally: &Rc<RefCell<Tally>>,
    screen: Option<&Screen>,
    shutdown: &Shutdown,
    bounds: Bounds,
) -> Result<bool, Failure> {
    let patience = match arguments.until {
        Until::Settled => PATIENCE.saturating_add(longest_consolidate_after(read)).saturating_add(known_waits(read)),
        Until::Seconds(seconds) => SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)),
    };
    let end = read.now.saturating_add(patience).unwrap_or(Timestamp::MAX);
    let repository = OneRevision::new(read.head.content.clone());
    let ports = world::ports(repository, world, EmbeddedForge::default());
    let inputs = &arguments.inputs.planning;
    let (definitions, packing) = (inputs.definitions.clone(), inputs.packing);
    let began_with = read.snapshot.clone();
    let options = world::options(inputs.seed, move |files| {
        for_simulation(settings::read_definitions(files, &definitions).beside(&began_with), packing)
    });
    // Who asks for the end is told soon that some node never goes; who asks for a time gets all of it.
    let stuck = if arguments.until == Until::Settled { Stuck::Count } else { Stuck::Stay };
    let journal = journal(screen.cloned(), world, tally);
    let mut controller = Controller::new(ports, options, journal, shutdown.clone());
    let clock = world.clock();
    let (mut idle, mut settled_at, mut livelock) = (Idle::default(), None, Livelock::default());
    let mut progress = Progress::new(arguments.verbose);
    let mut looks = 0;
    loop {
        looks += 1;
        progress.show(|| {
            let passed = u64::try_from(clock.now().duration_since(read.now).as_secs()).unwrap_or(0);
            format!("{} simulated, {}", duration(passed), count(tally.borrow().plans(), "plan"))
        });
        let before = controller.unsettled_since().map(|_| world.with(|world| world.snapshot()));
        controller.pass().await;
        let in_vain =
            before.and_then(|before| Some((livelock.see(&before, world.pods_evicted(), clock.now())?, before)));
        if let Some((since, before)) = in_vain {
            let since = duration(u64::try_from(since.duration_since(read.now).as_secs()).unwrap_or(0));
            let error = livelock::error(&since, &before, &world.with(|world| world.snapshot()));
            let hint = "this is a mistake of cutlist: please report it together with the snapshot";
            return Err(Failure::failed(error).with_hint(hint));
        }
        let seen = controller.last_revision().is_some();
        let (generation, is_still) = world.with(|world| (world.generation(), world.is_still()));
        if seen && controller.is_settled() && is_still {
            settled_at = Some(generation);
        }
        let settled = settled_at == Some(generation);
        // A pod that takes its time to end is nothing that is stuck.
        if is_still {
            idle.see(generation);
        }
        let is_over = match arguments.until {
            Until::Settled => settled || idle.looks >= IDLE_LOOKS_MAX,
            Until::Seconds(_) => false,
        };
        let is_enough = tally.borrow().plans() >= bounds.plans || looks >= bounds.looks;
        if is_over || is_enough || clock.now() >= end || shutdown.is_requested() {
            return Ok(settled);
        }
        let left = Duration::try_from(end.duration_since(clock.now())).unwrap_or_default();
        let is_quiet = is_still && seen && (settled || idle.looks >= QUIET_LOOKS);
        if is_quiet && let_pass(read, world, left, stuck).await {
            // Nothing is stuck that waits for a time.
            idle.looks = idle.looks.min(QUIET_LOOKS);
        }
        let left = Duration::try_from(end.duration_since(clock.now())).unwrap_or_default();
        // Whoever waits for ever here would wait without a clock that runs.
        let _time_is_over = tokio::time::timeout(left, controller.wait()).await;
    }
}

/// How much is simulated at most.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    plans: usize,
    /// Of the controller; each takes time by the size of the cluster.
    looks: usize,
}

impl Bounds {
    /// Who asks for a time gets all of it.
    fn of(until: Until) -> Self {
        let plans = if until == Until::Settled { PLANS_MAX } else { usize::MAX };
        Self { plans, looks: usize::MAX }
    }

    /// For a preview, which should take seconds: fewer looks at a larger cluster. It is a measure of work, and not a time, so that the same
    /// input gives the same bytes.
    fn of_preview(snapshot: &Snapshot) -> Self {
        let objects = snapshot.pods.len() + snapshot.nodes.len();
        Self { plans: PREVIEW_PLANS_MAX, looks: PREVIEW_WORK / objects.max(PREVIEW_OBJECTS_MIN) }
    }
}

/// Virtual seconds of a preview.
const DAY_SECONDS: u64 = 24 * 3_600;
const PREVIEW_PLANS_MAX: usize = 60;
/// Looks times objects.
const PREVIEW_WORK: usize = 400_000;
/// Below this a look costs as much.
const PREVIEW_OBJECTS_MIN: usize = 100;

/// What these arguments, which ask for nothing else, mean to simulate.
pub fn of_next_day(inputs: InputArguments) -> SimulateArguments {
    let until = Until::Seconds(DAY_SECONDS);
    SimulateArguments { inputs, until, scale: Vec::new(), output: SimulateOutput::Json, verbose: false }
}

/// The next 24 hours, or as much of them as a preview has the time for.
pub fn next_day(arguments: &SimulateArguments, read: &ReadInputs) -> Result<Simulation, Failure> {
    runtime(true)?.block_on(async {
        let settings = WorldSettings::new(arguments.inputs.planning.seed, read.now);
        let world = EmbeddedWorld::new(settings, read.catalog.clone());
        let after = |base: &ReadRevision| after_base(&read.head.definitions, &base.definitions, &read.snapshot);
        let begins_with = read.base.as_ref().map_or_else(|| read.snapshot.clone(), after);
        world.with(|world| world.take_over(without_pods_of_missing_nodes(&begins_with)));
        let tally = Rc::new(RefCell::new(Tally::new(read.now)));
        let shutdown = Shutdown::default();
        let bounds = Bounds::of_preview(&read.snapshot);
        let settled = carry_on(arguments, read, &world, &tally, None, &shutdown, bounds).await?;
        Ok(simulation(arguments, read, &world, &tally.borrow(), settled))
    })
}

/// Looks that changed nothing.
#[derive(Default)]
struct Idle {
    generation: u64,
    looks: usize,
}

impl Idle {
    fn see(&mut self, generation: u64) {
        self.looks = if generation == self.generation { self.looks + 1 } else { 0 };
        self.generation = generation;
    }
}

fn longest_consolidate_after(read: &ReadInputs) -> SignedDuration {
    let pools = read.head.definitions.node_pools.iter();
    let seconds = pools.filter_map(|pool| pool.value.spec.disruption.consolidate_after.seconds()).max().unwrap_or(0);
    SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// What ends at a known time is waited for.
fn known_waits(read: &ReadInputs) -> SignedDuration {
    let pools: Vec<_> = read.head.definitions.node_pools.iter().map(|it| it.value.clone()).collect();
    longest_wait(&pools, &read.snapshot, read.now)
}

/// Lets the time pass at once in which nothing would happen but looks of the controller that find nothing; at most `left`. Whether
/// there is such a time.
async fn let_pass(read: &ReadInputs, world: &EmbeddedWorld, left: Duration, stuck: Stuck) -> bool {
    let definitions = &read.head.definitions;
    let pools: Vec<_> = definitions.node_pools.iter().map(|it| it.value.clone()).collect();
    let budgets: Vec<_> = definitions.disruption_budgets.iter().map(|it| it.value.clone()).collect();
    let (now, snapshot) = (world.clock().now(), world.with(|world| world.snapshot()));
    let Some(next) = next_moment(&pools, &budgets, &snapshot, now, stuck) else { return false };
    let pause = Duration::try_from(next.duration_since(now)).unwrap_or_default();
    tokio::time::sleep(pause.min(left)).await;
    true
}

/// Nobody is there to approve anything, and who asks for a simulation wants to see what comes after.
fn for_simulation(mut definitions: Definitions, packing: Option<PackingArgument>) -> Definitions {
    let approve = ApprovalMode::Automatic;
    let confirm_pool_removal_above = "100%".to_owned();
    definitions.settings.approval =
        Approval { provision: approve, disrupt: approve, confirm_pool_removal_above, two_people: false };
    match packing {
        Some(PackingArgument::Cheapest) => definitions.settings.packing = Packing::Cheapest,
        Some(PackingArgument::Karpenter) => definitions.settings.packing = Packing::Karpenter,
        None => {}
    }
    definitions
}

/// Counts every event; shows them to those who asked for it.
fn journal(screen: Option<Screen>, world: &EmbeddedWorld, tally: &Rc<RefCell<Tally>>) -> Journal {
    let (world, tally) = (world.clone(), tally.clone());
    Journal::new(move |now, event| {
        tally.borrow_mut().count(now, event, world.pods_evicted());
        if let Some(screen) = &screen {
            log::record(now, event);
            screen.show(now, event);
        }
    })
}

fn simulation(
    arguments: &SimulateArguments,
    read: &ReadInputs,
    world: &EmbeddedWorld,
    tally: &Tally,
    settled: bool,
) -> Simulation {
    let now = world.clock().now();
    let snapshot = world.with(|world| world.snapshot());
    let at_end = ReadInputs {
        head: read.head.clone(),
        base: read.base.clone(),
        snapshot,
        catalog: read.catalog.clone(),
        region_said_by: read.region_said_by,
        now,
        // By then they are history.
        facts: None,
        notes: Vec::new(),
    };
    let last = inputs::with_inputs(&arguments.inputs, &at_end, decide);
    let tallied = tally.summary(now, world.pods_evicted());
    let waiting = last.pending.iter().filter(|it| it.reasons.iter().any(|it| it.code == ReasonCode::DaemonSetPodWaits));
    let summary = SimulationSummary {
        // The fleet counts no pods of DaemonSets: most come and go with their nodes.
        pods_pending_end: tallied.pods_pending_end + waiting.map(|it| it.pods.len()).sum::<usize>(),
        lower_bound_price_per_hour_end: last.summary.lower_bound_price_per_hour,
        // Of a plan that still does something it is not what there is.
        costs_per_hour_end: last.summary.costs_per_hour.filter(|_| last.steps.is_empty()),
        ..tallied
    };
    let mut notes: Vec<Note> = read.notes.iter().chain(&read.head.content.notes).cloned().collect();
    notes.extend(read.head.definitions.beside(&read.snapshot).notes);
    notes.extend(about_cluster(read));
    notes.extend(about_nodes(read));
    notes.extend(last.notes.iter().filter(|note| note.code == NoteCode::WindowsPricedAsLinux).cloned());
    if read.head.definitions.settings.approval.disrupt == ApprovalMode::Manual {
        let text = "approval.disrupt is manual: the simulation approves every plan at once".to_owned();
        notes.push(Note::new(NoteCode::ApprovedAutomatically, text));
    }
    let (risks, left_out) = tally.risks();
    if left_out > 0 {
        notes.push(Note::new(NoteCode::RisksLeftOut, format!("risks that are not listed were said {left_out} times")));
    }
    Simulation {
        version: FORMAT_VERSION,
        revision: read.head.content.revision.clone(),
        cluster: read.head.definitions.settings.cluster_name.clone(),
        began_at: read.now.to_string(),
        catalog_date: read.catalog.date.clone(),
        seed: arguments.inputs.planning.seed,
        packing: last.packing,
        settled,
        summary,
        series: tally.series(now, world.pods_evicted()),
        plans: tally.posted().to_vec(),
        risks,
        held_back: last.held_back,
        leaving: leaving(&at_end.snapshot, now),
        pending: last.pending,
        notes,
    }
}

/// What a plan says of the cluster, too.
fn about_cluster(read: &ReadInputs) -> Vec<Note> {
    let pools: Vec<_> = read.head.definitions.node_pools.iter().map(|it| it.value.clone()).collect();
    let mut snapshot = read.snapshot.clone();
    snapshot.doubts.doubled = doubled(&snapshot);
    cluster_notes::notes(&snapshot, &machines(&snapshot), &pools)
}

/// Nodes that are of no pool, and such that have no price.
fn about_nodes(read: &ReadInputs) -> Vec<Note> {
    let Snapshot { nodes, node_claims, .. } = &read.snapshot;
    let mut notes = Vec::new();
    let claimed: BTreeSet<&str> =
        node_claims.iter().filter_map(|claim| claim.status.as_ref()?.provider_id.as_deref()).collect();
    let label = |node: &Node, key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    let provider_id = |node: &&Node| node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    let unclaimed = nodes.iter().filter(|node| provider_id(node).is_none_or(|id| !claimed.contains(id.as_str())));
    let is_of_pool = |node: &&Node| label(node, keys::NODE_POOL).is_some_and(|pool| !pool.is_empty());
    let of_nobody = unclaimed.filter(|node| !is_of_pool(node)).count();
    if of_nobody > 0 {
        let nodes = count(of_nobody, "node");
        let text = format!("{nodes} of no NodePool: they stay as they are and their price does not count");
        notes.push(Note::new(NoteCode::NodesOfNobody, text));
    }
    let sold: BTreeSet<&str> =
        read.catalog.instance_types.iter().map(|instance_type| instance_type.name.as_str()).collect();
    let unknown: BTreeSet<String> = nodes
        .iter()
        .filter(|node| provider_id(node).is_some_and(|id| claimed.contains(id.as_str())))
        .filter_map(|node| label(node, keys::INSTANCE_TYPE))
        .filter(|name| !sold.contains(name.as_str()))
        .collect();
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.into_iter().take(NAMES_MAX).collect();
        let text = format!("instance types that the catalog does not have count as free: {}", names.join(", "));
        notes.push(Note::new(NoteCode::UnknownInstanceTypes, text));
    }
    notes
}

fn not_scaled(world: &EmbeddedWorld, error: ScaleError) -> Failure {
    let failure = Failure::failed(error.clone());
    let ScaleError::Unknown { workload } = error else { return failure };
    let workloads = world.with(|world| world.workloads());
    let of_name = |other: &&String| other.split_once('/').map(|(_, name)| name) == Some(workload.as_str());
    let alike = workloads.iter().find(of_name).map(String::as_str);
    if let Some(alike) = alike.or_else(|| nearest(&workload, workloads.iter().map(String::as_str))) {
        return failure.with_hint(format!("did you mean {alike}?"));
    }
    let names: Vec<&str> = workloads.iter().take(NAMES_MAX).map(String::as_str).collect();
    failure.with_hint(match (names.is_empty(), workloads.len().saturating_sub(names.len())) {
        (true, _) => "nothing in the snapshot owns pods".to_owned(),
        (false, 0) => format!("there are {}", names.join(", ")),
        (false, more) => format!("there are {} and {more} more", names.join(", ")),
    })
}

impl std::str::FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "settled" {
            return Ok(Self::Settled);
        }
        let duration = text.parse::<crate::api::duration::NillableDuration>();
        match duration.map_err(|error| error.to_string())?.seconds() {
            Some(seconds) if seconds > SECONDS_MAX => Err(format!("at most {}h, a year", SECONDS_MAX / 3_600)),
            Some(seconds) if seconds > 0 => Ok(Self::Seconds(seconds)),
            _ => Err("write `settled`, or a time such as `2h`".to_owned()),
        }
    }
}

impl std::str::FromStr for Resize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = || "write NAMESPACE/NAME=REPLICAS".to_owned();
        let (workload, replicas) = text.split_once('=').ok_or_else(form)?;
        let (namespace, name) = workload.split_once('/').ok_or_else(form)?;
        if namespace.is_empty() || name.is_empty() {
            return Err(form());
        }
        let replicas: usize = replicas.parse().map_err(|_| form())?;
        if replicas > REPLICAS_MAX {
            return Err(format!("at most {REPLICAS_MAX} replicas, as many pods as a cluster of Kubernetes can have"));
        }
        Ok(Self { workload: workload.to_owned(), replicas })
    }
}

/// More are planned for in minutes, which nobody should take for a program that hangs.
const MANY_REPLICAS: usize = 20_000;
/// What Kubernetes supports in one cluster. So many take minutes.
const REPLICAS_MAX: usize = 150_000;
