//! Moves that are made to save money: do they save enough, do they go round in circles, and whom do they disturb.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::model::{HourlyPrice, Resources};
use crate::plan::{Plan, ReasonCode, Step, StepKind};
use crate::snapshot::Pod;
use crate::snapshot::requests::effective_requests;
use cutlist_api::duration::NillableDuration;
use cutlist_api::keys;
use cutlist_api::node_pool::{ConsolidationPolicy, NodePool};
use cutlist_api::settings::Packing;

use super::concentration::Whereabouts;
use super::costs;
use super::known::{Known, must_move};
use super::removals::eviction_cost;
use super::steps::{moves_with, removed_node, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

const PAYBACK_ANNOTATION: &str = "cutlist.dev/payback";

/// Rounding of money to billionths of a dollar may shift a moment by less than this.
const TOLERANCE_SECONDS: f64 = 1.0;

/// One move that saves money.
struct Saving<'p> {
    removed: Vec<&'p Step>,
    created: Vec<&'p Step>,
    /// What concentration counts more afterwards, in dollars per hour.
    concentration: f64,
}

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let is_cheapest = known.inputs.policy.packing == Packing::Cheapest;
    let moves = moves(plan, known);
    let zones = zones_of_placed(plan, known);
    for it in moves.values() {
        let Some(first) = it.removed.first() else { continue };
        cheaper(it, first, known, findings);
        balanced(it, first, known, findings);
        if is_cheapest {
            repaid(it, first, &zones, known, findings);
        }
    }
    if is_cheapest {
        bought_again(&moves, findings);
    }
    undisturbed(plan, &moves, known, findings);
    some_replica_stays(plan, known, findings);
}

fn moves<'p>(plan: &'p Plan, known: &Known<'_>) -> BTreeMap<u32, Saving<'p>> {
    let mut moves: BTreeMap<u32, Saving<'_>> = BTreeMap::new();
    for step in steps(plan, StepKind::Remove).filter(|step| step.reason.code == ReasonCode::Underutilized) {
        let new = || Saving { removed: Vec::new(), created: Vec::new(), concentration: 0.0 };
        let it = moves.entry(step.move_number).or_insert_with(new);
        it.removed.push(step);
    }
    for step in steps(plan, StepKind::Create) {
        if let Some(it) = moves.get_mut(&step.move_number) {
            it.created.push(step);
        }
    }
    let Some(mut pods) = Whereabouts::provisioned(plan, known) else { return moves };
    for number in moves_with(plan, StepKind::Remove) {
        let more = pods.cost_of_move(number);
        if let Some(it) = moves.get_mut(&number) {
            it.concentration = more.max(0.0);
        }
    }
    moves
}

impl Saving<'_> {
    fn before(&self) -> HourlyPrice {
        self.removed.iter().map(|step| step.price_per_hour).sum()
    }

    fn after(&self) -> HourlyPrice {
        self.created.iter().map(|step| step.price_per_hour).sum()
    }

    /// In dollars per hour, with what every node costs beside its instance and what concentration counts more.
    fn saved(&self, known: &Known<'_>) -> f64 {
        let beside = |steps: &[&Step]| -> f64 { steps.iter().map(|step| costs::of_step(step, known)).sum() };
        (self.before() - self.after()).dollars() + beside(&self.removed) - beside(&self.created) - self.concentration
    }
}

/// A move for money saves money.
fn cheaper(it: &Saving<'_>, first: &Step, known: &Known<'_>, findings: &mut Findings) {
    // Less than a billionth of a dollar is rounding.
    if it.saved(known) < 0.5e-9 {
        let text = format!("move {} replaces {} by {}", first.move_number, it.before(), it.after());
        findings.add(ViolationCode::NotCheaper, ViolationPlace::step(first), text);
    }
}

/// What the move costs once comes back within the time that the pools of its nodes allow.
fn repaid(it: &Saving<'_>, first: &Step, zones: &BTreeMap<&str, &str>, known: &Known<'_>, findings: &mut Findings) {
    let of_pool = |step: &&&Step| {
        let annotations = known.pools.get(step.node_pool.as_str())?.metadata.annotations.as_ref()?;
        annotations.get(PAYBACK_ANNOTATION)?.parse::<NillableDuration>().ok()
    };
    let settings = &known.inputs.policy.disruption;
    let allowed = |step: &&Step| of_pool(&step).unwrap_or_else(|| settings.payback.clone()).seconds();
    let Some(limit) = it.removed.iter().filter_map(allowed).min() else { return };
    let costs = &settings.costs;
    let per_pod = costs.image_pull_per_pod + costs.warm_up_per_pod;
    let pods = it.removed.iter().flat_map(|step| known.pods_on(removed_node(step))).filter(|pod| must_move(pod));
    let of_pods: f64 = pods.map(|pod| per_pod * eviction_cost(pod).clamp(0.0, 10.0)).sum();
    let crossing = costs.cross_zone_per_pod * crossings(it, zones);
    #[expect(clippy::cast_precision_loss, reason = "seconds, as a number to calculate with")]
    let hours = |duration: &NillableDuration| duration.seconds().unwrap_or(0) as f64 / 3_600.0;
    let used = it.removed.iter().map(|step| step.price_per_hour.dollars() * used_share(removed_node(step), known));
    let warming_up = used.sum::<f64>() * hours(&costs.warm_up);
    let cost = it.after().dollars() * hours(&costs.node_overlap) + of_pods + warming_up + crossing;
    let seconds = cost / it.saved(known).max(f64::MIN_POSITIVE) * 3_600.0;
    #[expect(clippy::cast_precision_loss, reason = "seconds, as a number to calculate with")]
    let limit = limit as f64;
    if seconds > limit + TOLERANCE_SECONDS {
        let text = format!("move {} repays itself after {seconds:.0} s, allowed are {limit:.0}", first.move_number);
        findings.add(ViolationCode::PaybackTooLong, ViolationPlace::step(first), text);
    }
}

/// The part of a node that its pods stand for which have to move: of the resource that they take most of, what they ask for, of
/// what the others leave. In whole thousandths, as a plan counts it.
fn used_share(node: &str, known: &Known<'_>) -> f64 {
    let Some(existing) = known.nodes.get(node) else { return 0.0 };
    let allocatable = existing.node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let of_node = allocatable.into_iter().flatten().map(|(name, quantity)| (name.as_str(), quantity.0.clone()));
    let of_node = Resources::parse(of_node).unwrap_or_default();
    let (mut moving, mut staying) = (Resources::new(), Resources::new());
    for pod in known.pods_on(node) {
        let requests = effective_requests(pod).unwrap_or_default();
        if must_move(pod) { moving.add(&requests) } else { staying.add(&requests) }
    }
    let share = |(name, amount): (&str, i64)| {
        let left = of_node.get(name).saturating_sub(staying.get(name)).max(1);
        amount.saturating_mul(1_000) / left
    };
    let thousandths = moving.iter().map(share).max().unwrap_or(0);
    f64::from(i32::try_from(thousandths).unwrap_or(i32::MAX)) / 1_000.0
}

/// The zone that each pod of a plan comes to: of all moves together, since each has few of them. O(pods that get a place).
fn zones_of_placed<'a>(plan: &'a Plan, known: &'a Known<'_>) -> BTreeMap<&'a str, &'a str> {
    let on_new = steps(plan, StepKind::Create).flat_map(|step| step.pods.iter().map(|pod| (pod, step.zone.as_str())));
    let on_existing = plan.placements.iter().map(|placement| {
        let labels = known.nodes.get(&placement.node).and_then(|existing| existing.node.metadata.labels.as_ref());
        (&placement.pod, labels.and_then(|labels| labels.get(keys::ZONE)).map_or("", String::as_str))
    });
    on_new.chain(on_existing).map(|(pod, zone)| (pod.as_str(), zone)).collect()
}

/// Pods that come to another zone.
fn crossings(it: &Saving<'_>, zones: &BTreeMap<&str, &str>) -> f64 {
    let left = it.removed.iter().flat_map(|step| step.pods.iter().map(|pod| (pod.as_str(), step.zone.as_str())));
    let crossing = left.filter(|(pod, zone)| zones.get(pod).is_some_and(|to| to != zone)).count();
    f64::from(u32::try_from(crossing).unwrap_or(u32::MAX))
}

/// `Balanced`: the part of the pool's price that is saved is at least half the part of its disruption cost.
/// Source: reference, section 4.5.
fn balanced(it: &Saving<'_>, first: &Step, known: &Known<'_>, findings: &mut Findings) {
    let is_balanced = |pool: &&NodePool| pool.spec.disruption.consolidation_policy == ConsolidationPolicy::Balanced;
    let pools: BTreeSet<&str> = it.removed.iter().map(|step| step.node_pool.as_str()).collect();
    for name in pools {
        if known.pools.get(name).copied().filter(is_balanced).is_none() {
            continue;
        }
        let moved: Vec<&&Step> = it.removed.iter().filter(|step| step.node_pool == name).collect();
        let mut price_of_pool = 0.0;
        let mut disruption_of_pool = 0.0;
        for (node, existing) in known.nodes.iter().filter(|(_, existing)| existing.pool.as_deref() == Some(name)) {
            if existing.claim.is_none() {
                continue;
            }
            let labels = existing.node.metadata.labels.clone().unwrap_or_default();
            let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
            let price = known.price(name, &label(keys::INSTANCE_TYPE), &label(keys::ZONE), &label(keys::CAPACITY_TYPE));
            price_of_pool += price.unwrap_or(HourlyPrice::ZERO).dollars();
            disruption_of_pool += disruption_cost(node, known);
        }
        let share = moved.iter().map(|step| step.price_per_hour.dollars()).sum::<f64>() / it.before().dollars();
        let saved = (it.before() - it.after()).dollars() * share / price_of_pool;
        let disrupted: f64 = moved.iter().map(|step| disruption_cost(removed_node(step), known)).sum();
        if saved / (disrupted / disruption_of_pool) < 0.5 - 1e-9 {
            let text = format!(
                "Balanced: saves {:.3} of what {name} costs for {:.3} of its disruption",
                saved,
                disrupted / disruption_of_pool
            );
            findings.add(ViolationCode::NotBalanced, ViolationPlace::step(first), text);
        }
    }
}

fn disruption_cost(node: &str, known: &Known<'_>) -> f64 {
    let pods = known.pods_on(node).filter(|pod| must_move(pod));
    1.0 + pods.map(|pod: &Pod| eviction_cost(pod).clamp(-10.0, 10.0).max(0.0)).sum::<f64>()
}

/// No node is bought that is like one which goes to save money.
fn bought_again(moves: &BTreeMap<u32, Saving<'_>>, findings: &mut Findings) {
    let like = |step: &Step| (step.instance_type.clone(), step.zone.clone(), step.capacity_type.clone());
    let gone: BTreeSet<_> = moves.values().flat_map(|it| &it.removed).map(|step| like(step)).collect();
    for step in moves.values().flat_map(|it| &it.created).filter(|step| gone.contains(&like(step))) {
        let text = format!("a {} in {} is removed by the same plan to save money", step.instance_type, step.zone);
        findings.add(ViolationCode::BoughtAgain, ViolationPlace::step(step), text);
    }
}

/// A node that pods came to or left less than `consolidateAfter` ago gets no pods of such a move.
fn undisturbed(plan: &Plan, moves: &BTreeMap<u32, Saving<'_>>, known: &Known<'_>, findings: &mut Findings) {
    let moved: BTreeSet<&String> = moves.values().flat_map(|it| &it.removed).flat_map(|step| &step.pods).collect();
    for placement in plan.placements.iter().filter(|placement| moved.contains(&placement.pod)) {
        let Some(existing) = known.nodes.get(&placement.node) else { continue };
        let pool = existing.pool.as_deref().and_then(|pool| known.pools.get(pool));
        let wait = pool.and_then(|pool| pool.spec.disruption.consolidate_after.seconds());
        let last = existing.claim.and_then(|claim| claim.status.as_ref()?.last_pod_event_time.as_deref()?.parse().ok());
        let since = |last: Timestamp| known.inputs.now.as_second().saturating_sub(last.as_second());
        let Some((wait, seconds)) = wait.zip(last.map(since)) else { continue };
        if u64::try_from(seconds).unwrap_or(0) < wait {
            let text = format!("goes to node {}, where a pod came or went {seconds} s ago", placement.node);
            findings.add(ViolationCode::RecentlyChangedTarget, ViolationPlace::pod(&placement.pod), text);
        }
    }
}

/// In no wave do all replicas of a workload go, unless they are all on one node anyway; and nothing is removed in a wave before the
/// one that creates its replacements.
fn some_replica_stays(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let mut nodes_of: BTreeMap<(String, String, String), Vec<&str>> = BTreeMap::new();
    let running = known.inputs.snapshot.pods.iter().filter(|pod| !pod.is_terminal() && !pod.is_terminating());
    for pod in running.filter(|pod| must_move(pod)) {
        let owner = pod.metadata.owner_references.iter().find(|owner| owner.controller == Some(true));
        if let Some((owner, node)) = owner.zip(pod.spec.node_name.as_deref()) {
            let workload = (pod.metadata.namespace.clone(), owner.kind.clone(), owner.name.clone());
            nodes_of.entry(workload).or_default().push(node);
        }
    }
    let mut waves: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for step in steps(plan, StepKind::Remove) {
        waves.entry(step.wave.unwrap_or(1)).or_default().insert(removed_node(step));
    }
    for ((namespace, kind, name), nodes) in nodes_of {
        let on_several = nodes.iter().any(|node| *node != nodes[0]);
        for (wave, gone) in &waves {
            if on_several && nodes.iter().all(|node| gone.contains(node)) {
                let text = format!("all {} replicas leave in wave {wave}", nodes.len());
                let place = ViolationPlace::Workload(format!("{kind} {namespace}/{name}"));
                findings.add(ViolationCode::AllReplicasAtOnce, place, text);
            }
        }
    }
    for created in steps(plan, StepKind::Create) {
        let mut same = steps(plan, StepKind::Remove).filter(|step| step.move_number == created.move_number);
        if same.any(|step| step.wave < created.wave) {
            findings.add(
                ViolationCode::WrongOrder,
                ViolationPlace::step(created),
                "comes in a later wave than what it replaces",
            );
        }
    }
}
