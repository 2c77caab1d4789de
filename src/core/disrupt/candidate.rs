//! Candidates: nodes that a method may look at, with what stands in the way.
//! Behaviour: reference, section 4.2.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::inputs::Inputs;
use crate::lifecycle::conditions::transition;
use crate::lifecycle::consolidatable::quiet_since;
use crate::lifecycle::do_not_disrupt::{Protection, is_protected, protection};
use crate::lifecycle::drain::is_evicted;
use crate::lifecycle::pod_disruption_budgets::PodDisruptionBudgets;
use crate::lifecycle::staying::stays_for_long;
use crate::lifecycle::waits_for;
use crate::model::HourlyPrice;
use crate::model::time::seconds_between;
use crate::provision::Provisioning;
use crate::provision::backlog::is_reschedulable;
use crate::scheduler::{ClassIndex, Engine, HostIndex, Problem};
use crate::snapshot::PodIndex;
use crate::snapshot::nodes::Machine;
use crate::snapshot::pod::is_of_buffer;
use cutlist_api::duration::NillableDuration;
use cutlist_api::keys;
use cutlist_api::node_pool::{ConsolidationPolicy, Disruption, NodePool};

use super::cost::{self, MoveCosts};
use super::obstacle::consolidation::NotConsolidatable;
use super::obstacle::{HoldingPod, NodeObstacle};
use super::removal_cause::RemovalCause;
use super::together::Together;

/// A node that could go.
#[derive(Debug)]
pub struct Candidate {
    pub host: HostIndex,
    pub name: String,
    pub pool: String,
    /// `None` when the pool left the definitions.
    pub disruption: Option<Disruption>,
    /// That it is not known what room one of them takes.
    pub unknown_room: Option<HoldingPod>,
    /// Of the pool: its replacement comes from no pool of a lower one.
    pub weight: i32,
    /// Of its instance.
    pub price: Option<HourlyPrice>,
    /// What it costs beside its instance, as plans count it.
    pub cost_beside: HourlyPrice,
    /// Positions of the pods that would have to move.
    pub pods: Vec<PodIndex>,
    /// Those of them that can run nowhere else, because one of their volumes is a disk of this node.
    pub held_by_disk: BTreeSet<PodIndex>,
    /// Those of them that stay for long on a node that expired: nothing is bought for them yet.
    pub staying: BTreeSet<PodIndex>,
    /// Positions of the pods of CapacityBuffers whose room is here.
    pub buffer_pods: Vec<PodIndex>,
    /// The reference's number (`cost::of_pods`): 1 for the node, and for each pod 0 to 10.
    pub disruption_cost: f64,
    /// Billionths of a dollar that moving its pods is taken to cost.
    pub move_nanodollars: i64,
    /// In which a move must repay itself; `None`: any saving will do.
    pub payback_seconds: Option<i64>,
    /// Drifted, expired, or its pool was removed: it goes whether or not that saves anything.
    pub removal_cause: Option<RemovalCause>,
    pub drifted_since: Option<String>,
    /// Since when no pod came or went.
    pub quiet_since: Option<Timestamp>,
    /// Of a static pool: it may be neither emptied nor consolidated away.
    pub is_static: bool,
    /// By whoever watches its pods, for the time that the pool asks for.
    marked_consolidatable: bool,
    /// Why no method may touch it.
    pub obstacle: Option<NodeObstacle>,
    /// What of its pods keeps it from going to save money, although it may go for what else it has to go for.
    waived: Option<NodeObstacle>,
}

impl Candidate {
    /// What budgets count: a node without a price in the catalog counts as free, and a note of the plan says so.
    pub fn price_counted(&self) -> HourlyPrice {
        self.price.unwrap_or_default()
    }

    /// Expiry is forceful: the drain waits for what stands in the way, the decision does not.
    pub fn is_expired(&self) -> bool {
        matches!(self.removal_cause, Some(RemovalCause::Expired(_)))
    }

    /// Nothing runs here, and no room is kept here.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.buffer_pods.is_empty()
    }

    /// Everything that needs another place when it goes, and can have one.
    pub fn displaced(&self) -> impl DoubleEndedIterator<Item = PodIndex> {
        let movable = self.pods.iter().filter(|pod| !self.held_by_disk.contains(pod) && !self.staying.contains(pod));
        movable.chain(&self.buffer_pods).copied()
    }

    /// Whether its pods let it go to save money and `consolidateAfter` has passed, or why that does not count.
    pub fn consolidatable_at(&self, now: Timestamp) -> Result<(), NodeObstacle> {
        if let Some(obstacle) = &self.waived {
            return Err(obstacle.clone());
        }
        self.is_quiet(now).map_err(NodeObstacle::NotConsolidatable)
    }

    fn is_quiet(&self, now: Timestamp) -> Result<(), NotConsolidatable> {
        if self.is_static {
            return Err(NotConsolidatable::StaticPool { node_pool: self.pool.clone() });
        }
        let Some(disruption) = &self.disruption else {
            return Err(NotConsolidatable::UndefinedPool { node_pool: self.pool.clone() });
        };
        let after = &disruption.consolidate_after;
        let Some(after_seconds) = after.seconds() else { return Err(NotConsolidatable::Never) };
        if self.marked_consolidatable {
            return Ok(());
        }
        let quiet_seconds = self.quiet_since.map(|since| seconds_between(since, now));
        let left_seconds = i64::try_from(after_seconds).unwrap_or(i64::MAX).saturating_sub(quiet_seconds.unwrap_or(0));
        if quiet_seconds.is_some() && left_seconds <= 0 {
            return Ok(());
        }
        Err(NotConsolidatable::NotQuiet { quiet_seconds, left_seconds, after: after.clone() })
    }

    /// Whether its pool lets nodes with pods go to save money, and it is known what would move.
    pub fn may_be_consolidated(&self) -> Result<(), NodeObstacle> {
        if let Some(pod) = &self.unknown_room {
            return Err(pod.clone().into());
        }
        match self.disruption.as_ref().map(|disruption| disruption.consolidation_policy) {
            Some(ConsolidationPolicy::WhenEmpty) => Err(NotConsolidatable::OnlyWhenEmpty.into()),
            _ => Ok(()),
        }
    }

    /// Whether a move must save as large a part of its pool as it disrupts.
    pub fn is_balanced(&self) -> bool {
        self.disruption.as_ref().is_some_and(|it| it.consolidation_policy == ConsolidationPolicy::Balanced)
    }

    /// Why it goes where nothing runs on it.
    pub fn emptiness(&self, now: Timestamp) -> RemovalCause {
        let quiet_seconds = self.quiet_since.map(|since| seconds_between(since, now));
        let after = self.disruption.as_ref().map(|disruption| disruption.consolidate_after.clone());
        RemovalCause::Empty { quiet_seconds, after }
    }
}

/// Every managed node, in the order of names. O(pods).
pub fn candidates(
    engine: &Engine<'_, '_>,
    inputs: &Inputs<'_>,
    provisioning: &Provisioning,
    costs: &MoveCosts,
) -> Vec<Candidate> {
    let budgets = PodDisruptionBudgets::new(inputs.snapshot);
    let mut nominated: BTreeSet<HostIndex> = BTreeSet::new();
    let mut buffer_pods: BTreeMap<HostIndex, Vec<PodIndex>> = BTreeMap::new();
    for (pod, host) in &provisioning.placements {
        if is_of_buffer(&inputs.snapshot.pods[*pod]) {
            buffer_pods.entry(*host).or_default().push(*pod);
        } else {
            nominated.insert(*host);
        }
    }
    let nodes = engine.problem.nodes.enumerated();
    nominated.extend(nodes.filter(|(_, node)| !node.nominated.is_empty()).map(|(host, _)| host));
    nominated.extend(engine.problem.machines.indices().filter(|host| provisioning.refused_nodes.is_awaited(*host)));
    let awaited = awaited(&engine.problem.machines);
    let of_awaited = engine.problem.machines.enumerated();
    nominated.extend(
        of_awaited
            .filter(|(_, machine)| machine.claim_name().is_some_and(|name| awaited.contains(name)))
            .map(|(host, _)| host),
    );
    let mut candidates: Vec<Candidate> = Vec::new();
    for (host, machine) in engine.problem.machines.enumerated() {
        // On its way out already, or nobody's to decide about.
        if machine.is_being_removed() || !machine.is_managed() {
            continue;
        }
        let mut candidate = candidate(engine, inputs, provisioning, &budgets, costs, host, nominated.contains(&host));
        candidate.buffer_pods = buffer_pods.remove(&host).unwrap_or_default();
        candidates.push(candidate);
    }
    candidates.sort_by(|one, two| one.name.cmp(&two.name));
    candidates
}

/// NodeClaims that take the place of some that are still there: whose pods come may be seen only when those are drained.
fn awaited<'a>(machines: &[Machine<'a>]) -> BTreeSet<&'a str> {
    let claims = machines.iter().filter_map(|machine| machine.claim);
    claims.flat_map(|claim| claim.listed(keys::REPLACED_BY)).collect()
}

fn candidate(
    engine: &Engine<'_, '_>,
    inputs: &Inputs<'_>,
    provisioning: &Provisioning,
    budgets: &PodDisruptionBudgets<'_>,
    costs: &MoveCosts,
    host: HostIndex,
    is_nominated: bool,
) -> Candidate {
    let snapshot = inputs.snapshot;
    let machine = &engine.problem.machines[host];
    let pool_name = machine.node_pool().unwrap_or_default().to_owned();
    let pool = inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(&pool_name));
    let pods: Vec<PodIndex> = engine.problem.nodes[host]
        .pods
        .iter()
        .map(|(pod, _)| *pod)
        .filter(|pod| is_reschedulable(&snapshot.pods[*pod]))
        .collect();
    let claim = machine.claim;
    let created = machine.node.and_then(|node| node.metadata.creation_timestamp.as_ref()).map(|time| time.0);
    // What is to come, by a clock that was set back since, happens now.
    let quiet_since = claim.and_then(quiet_since).or(created).map(|since| since.min(inputs.now));
    let removal_cause = RemovalCause::of(inputs, machine, pool);
    let price = engine.problem.offer.price_of(inputs, machine);
    let unknown_room = pods.iter().find_map(|pod| {
        let key = || snapshot.pods[*pod].key();
        if let Some(has) = engine.problem.too_large_pods.get(pod) {
            return Some(HoldingPod::TooManyTerms { pod: key(), has: has.clone() });
        }
        let error = engine.problem.invalid_pods.get(pod)?;
        Some(HoldingPod::Invalid { pod: key(), error: error.clone() })
    });
    let mut candidate = Candidate {
        host,
        unknown_room,
        name: machine.name.to_owned(),
        pool: pool_name,
        disruption: pool.map(|pool| pool.spec.disruption.clone()),
        weight: pool.and_then(|pool| pool.spec.weight).unwrap_or(0),
        price,
        cost_beside: engine.problem.nodes[host].cost_beside,
        disruption_cost: cost::of_pods(pods.iter().map(|pod| &snapshot.pods[*pod])),
        move_nanodollars: costs.of_leaving(engine.problem, host, price.unwrap_or_default(), &pods),
        payback_seconds: payback_seconds(inputs, pool),
        held_by_disk: pods.iter().filter(|pod| is_held_by_disk(engine.problem, **pod)).copied().collect(),
        pods,
        staying: BTreeSet::new(),
        buffer_pods: Vec::new(),
        drifted_since: claim.and_then(|claim| transition(claim, "Drifted")).map(|time| time.to_string()),
        removal_cause,
        quiet_since,
        is_static: pool.is_some_and(|pool| pool.spec.replicas.is_some()),
        marked_consolidatable: claim.is_some_and(|claim| claim.is_true("Consolidatable"))
            && (quiet_since.is_none() || has_waited_as_defined(inputs, pool)),
        obstacle: None,
        waived: None,
    };
    if candidate.is_expired() && !candidate.is_static {
        let stays = |pod: &&PodIndex| stays_for_long(&snapshot.pods[**pod], budgets, claim, inputs.now);
        candidate.staying = candidate.pods.iter().filter(stays).copied().collect();
    }
    candidate.obstacle = obstacle(inputs, machine, pool, &candidate, is_nominated);
    if candidate.obstacle.is_none() && !candidate.is_expired() {
        let of_pods = obstacle_of_pods(inputs, budgets, &engine.problem.nodes[host].pods);
        // New nodes for them would be bought in vain.
        let refused = || candidate.pods.iter().find_map(|pod| provisioning.refused_nodes.refused(*pod));
        let of_pods = of_pods
            .or_else(|| Together::on(engine.problem, budgets, host).map(HoldingPod::Together))
            .or_else(|| refused().map(HoldingPod::Refused))
            .map(NodeObstacle::Pod);
        // With a termination grace period the reference lets what must go eventually go, and waits while draining.
        let goes_eventually = candidate.removal_cause.is_some()
            && claim.is_some_and(|claim| claim.spec.termination_grace_period.is_some());
        *(if goes_eventually { &mut candidate.waived } else { &mut candidate.obstacle }) = of_pods;
        let is_removed = matches!(candidate.removal_cause, Some(RemovalCause::PoolRemoved { .. }));
        let goes_with_data = goes_eventually || is_removed;
        let obstacle = if goes_with_data { &mut candidate.waived } else { &mut candidate.obstacle };
        *obstacle =
            obstacle.take().or_else(|| obstacle_of_volumes(engine.problem, &candidate.pods).map(NodeObstacle::Pod));
    }
    candidate
}

fn is_held_by_disk(problem: &Problem<'_>, pod: PodIndex) -> bool {
    problem.disks.get(&pod).is_some_and(|disk| disk.holds_pod)
}

/// That what is on a volume would be lost. The reference takes such pods to get another volume, and they never run again.
fn obstacle_of_volumes(problem: &Problem<'_>, pods: &[PodIndex]) -> Option<HoldingPod> {
    let (pod, disk) = pods.iter().find_map(|pod| Some((*pod, problem.disks.get(pod)?)))?;
    let pod = problem.snapshot.pods[pod].key();
    Some(HoldingPod::LocalVolume { pod, volume: disk.volume.clone(), fits_on_no_other: disk.holds_pod })
}

/// Whether the cluster waits as long as the definitions say: what it says of a node is no answer to a change of `consolidateAfter`.
fn has_waited_as_defined(inputs: &Inputs<'_>, pool: Option<&NodePool>) -> bool {
    let after = |pool: &NodePool| pool.spec.disruption.consolidate_after.seconds();
    let applied =
        |pool: &&NodePool| inputs.snapshot.node_pools.iter().find(|it| it.metadata.name == pool.metadata.name);
    pool.is_some_and(|pool| applied(&pool).is_some_and(|applied| after(applied) == after(pool)))
}

/// What the pool is annotated with, else what the settings say.
fn payback_seconds(inputs: &Inputs<'_>, pool: Option<&NodePool>) -> Option<i64> {
    let annotations = pool.and_then(|pool| pool.metadata.annotations.as_ref());
    let of_pool = annotations.and_then(|annotations| annotations.get(keys::PAYBACK)?.parse::<NillableDuration>().ok());
    let payback = of_pool.as_ref().unwrap_or(&inputs.policy.disruption.payback);
    payback.seconds().map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX))
}

/// What keeps a node from going, whatever runs on it.
fn obstacle(
    inputs: &Inputs<'_>,
    machine: &Machine<'_>,
    pool: Option<&NodePool>,
    candidate: &Candidate,
    is_nominated: bool,
) -> Option<NodeObstacle> {
    let is_supported = !candidate.is_static || inputs.policy.feature_gates.static_capacity;
    if candidate.is_expired() && is_supported {
        return None;
    }
    if !machine.is_initialized() {
        let waits_for = machine.claim.and_then(|claim| waits_for(claim, machine.node));
        return Some(NodeObstacle::NotInitialized { waits_for });
    }
    if pool.is_none() && candidate.removal_cause.is_none() {
        let unplanned = inputs.why_unplanned("NodePool", &candidate.pool).map(str::to_owned);
        return Some(NodeObstacle::UnknownNodePool { node_pool: candidate.pool.clone(), unplanned });
    }
    if !is_supported {
        return Some(NodeObstacle::StaticCapacityIsOff);
    }
    if is_nominated {
        return Some(NodeObstacle::Nominated);
    }
    if machine.annotation(keys::DO_NOT_DISRUPT) == Some("true") {
        return Some(NodeObstacle::DoNotDisrupt);
    }
    inputs.policy.removals_refused.contains(machine.name).then_some(NodeObstacle::RemovalRefused)
}

/// What of these pods keeps their node from going.
fn obstacle_of_pods(
    inputs: &Inputs<'_>,
    budgets: &PodDisruptionBudgets<'_>,
    pods: &[(PodIndex, ClassIndex)],
) -> Option<HoldingPod> {
    let running = pods
        .iter()
        .map(|(pod, _)| &inputs.snapshot.pods[*pod])
        .filter(|pod| !pod.is_terminal() && !pod.is_terminating());
    if let Some(pod) = running.clone().find(|pod| is_protected(pod, inputs.now)) {
        let until = match protection(pod) {
            Protection::Until(end) => Some(end),
            _ => None,
        };
        return Some(HoldingPod::DoNotDisrupt { pod: pod.key(), until });
    }
    // Of a DaemonSet too: a drain evicts whatever does not tolerate it.
    let evicted = running.filter(|pod| is_evicted(pod));
    let obstacles = evicted.filter_map(|pod| Some((budgets.lets_go_anyway(pod), budgets.obstacle(pod)?)));
    // The reference holds the node for pods that the eviction API would let go, too; but what holds in truth is named first.
    obstacles.min_by_key(|(lets_go, _)| *lets_go).map(|(_, obstacle)| HoldingPod::Eviction(obstacle))
}
