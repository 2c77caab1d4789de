//! What was not done, why things are done, and the sums.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;

use crate::disrupt::budgets::{Allowance, Ledger};
use crate::disrupt::removed_pools::removed_pools;
use crate::disrupt::{Disruption, Going};
use crate::inputs::Inputs;
use crate::model::HourlyPrice;
use crate::model::time::{duration_text, seconds_between};
use crate::model::words::pods_text;
use crate::offer::{NotReady, Reservation, Subnets};
use crate::plan::{
    NodeCounts, Note, NoteCode, Pending, PendingReason, ReasonCode, Step, StepKind, Summary, Unlimited, change,
};
use crate::provision::advice::Adviser;
use crate::provision::amounts::amount;
use crate::provision::bound::{OpenNode, lower_bound};
use crate::provision::cheapest::market::Counted;
use crate::provision::existing_refusal::ExistingRefusal;
use crate::provision::explain::{explain, why_not_existing};
use crate::provision::passing::passes;
use crate::provision::priority::may_preempt;
use crate::provision::purchase::Lowered;
use crate::provision::static_capacity::Shortfall;
use crate::provision::{Provisioning, Purchase};
use crate::scheduler::daemons::without_known_overhead;
use crate::scheduler::quota::LimitScope;
use crate::scheduler::template::Template;
use crate::scheduler::{ClassIndex, Demand, Engine, HostIndex, Problem, Refusal};
use crate::snapshot::nodes::Machine;
use crate::snapshot::pod::is_of_buffer;
use crate::snapshot::{PodIndex, Snapshot};
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::{DisruptionReason, NodePool};
use cutlist_api::settings::Packing;

use super::creation_cause::{CreationCause, PodsInNeed};
use super::{annotations, namespaces, penalties, windows};

/// A note names so many pods in its text.
const NAMES_SHOWN: usize = 3;

/// Pods that stay pending, by what keeps them: one entry for pods that can not be told apart or share a reason.
pub fn pending(
    engine: &Engine<'_, '_>,
    inputs: &Inputs<'_>,
    provisioning: &Provisioning,
) -> (Vec<Pending>, Option<Note>) {
    let key = |position: &PodIndex| inputs.snapshot.pods[*position].key();
    let mut entries: Vec<Pending> = Vec::new();
    let waiting = provisioning.backlog.waiting.values().map(Vec::len).sum();
    let any = !provisioning.unplaced.is_empty();
    let mut adviser = any.then(|| Adviser::new(engine, inputs, waiting));
    // Where the work does not do for all, it goes to what most pods wait for.
    let mut unplaced: Vec<(&ClassIndex, &Vec<PodIndex>)> = provisioning.unplaced.iter().collect();
    unplaced.sort_by_key(|(class, pods)| (Reverse(pods.len()), **class));
    let mut not_tried = 0;
    for (class, pods) in unplaced {
        // What passes by itself needs no change.
        let mut adviser = adviser.as_mut().filter(|_| !passes(engine, *class));
        not_tried += usize::from(adviser.as_ref().is_some_and(|adviser| adviser.is_spent()));
        let advised = adviser.as_mut().and_then(|adviser| adviser.advise(engine, *class, pods));
        let changes = advised.unwrap_or_default();
        entries.push(Pending {
            pods: pods.iter().map(key).collect(),
            reasons: explain(engine, *class, inputs.places),
            smallest_change: (!changes.is_empty()).then(|| change::text(&changes)),
            changes,
        });
    }
    let mut by_reason: BTreeMap<PendingReason, Vec<String>> = BTreeMap::new();
    for (position, obstacle) in &provisioning.backlog.not_schedulable {
        by_reason.entry(obstacle.reason()).or_default().push(key(position));
    }
    for (reason, pods) in by_reason {
        entries.push(Pending { pods, reasons: vec![reason], smallest_change: None, changes: Vec::new() });
    }
    entries.iter_mut().for_each(|entry| entry.pods.sort());
    entries.sort_by(|one, two| one.pods.cmp(&two.pods));
    let note = (not_tried > 0).then(|| Note::new(NoteCode::ChangesNotTried, format!(
            "for {not_tried} of {} kinds of pending pods no change was tried; `cutlist why pod` tries for one of them",
            provisioning.unplaced.len()
        )));
    (entries, note)
}

/// For each purchase, why it is made: what the largest group of its pods says of the nodes that exist.
pub fn creation_causes(
    engine: &Engine<'_, '_>,
    inputs: &Inputs<'_>,
    provisioning: &Provisioning,
) -> Vec<CreationCause> {
    let mut known: BTreeMap<ClassIndex, Option<ExistingRefusal>> = BTreeMap::new();
    let cause = |purchase: &Purchase| {
        let template = &engine.problem.templates[purchase.template];
        if let Some(replicas) = template.replicas {
            let (there, wanted) = (replicas.there, replicas.wanted);
            return CreationCause::StaticCapacity { node_pool: template.name.clone(), there, wanted };
        }
        let mut counts: BTreeMap<ClassIndex, usize> = BTreeMap::new();
        for class in purchase.pods.iter().filter_map(|pod| engine.problem.class_of_pod[*pod]) {
            *counts.entry(class).or_default() += 1;
        }
        let most = counts.iter().max_by_key(|(class, count)| (**count, Reverse(**class))).map(|(class, _)| *class);
        let because =
            most.and_then(|class| known.entry(class).or_insert_with(|| why_not_existing(engine, class)).clone());
        CreationCause::Pods { pods: PodsInNeed::of(purchase, inputs, provisioning), because }
    };
    provisioning.purchases.iter().map(cause).collect()
}

/// Counts and money, before and after.
pub fn summary(
    inputs: &Inputs<'_>,
    problem: &Problem<'_>,
    provisioning: &Provisioning,
    disruption: &Disruption,
    steps: &[Step],
) -> Summary {
    let counts = NodeCounts::of(steps);
    let price = |kind: StepKind| {
        steps.iter().filter(|step| step.kind == kind).map(|step| step.price_per_hour).sum::<HourlyPrice>()
    };
    let nodes_before = problem.machines.len();
    let price_before: HourlyPrice =
        problem.machines.iter().filter_map(|machine| problem.offer.price_of(inputs, machine)).sum();
    let leaving = || problem.machines.iter().filter(|machine| machine.is_being_removed());
    let price_leaving: HourlyPrice = leaving().filter_map(|machine| problem.offer.price_of(inputs, machine)).sum();
    let price_after = price_before + price(StepKind::Create) - price(StepKind::Remove) - price_leaving;
    let placed = provisioning
        .purchases
        .iter()
        .flat_map(|purchase| &purchase.pods)
        .chain(provisioning.placements.iter().map(|(pod, _)| pod));
    let is_of_buffer = |pod: &PodIndex| is_of_buffer(&inputs.snapshot.pods[*pod]);
    let (buffer_pods, pods): (Vec<PodIndex>, Vec<PodIndex>) = placed.copied().partition(is_of_buffer);
    let pods_placed = pods.iter().filter(|pod| !provisioning.backlog.displaced.contains(pod)).count();
    let not_schedulable = provisioning.backlog.not_schedulable.iter().map(|(pod, ..)| *pod);
    let pending = provisioning.unplaced.values().flatten().copied().chain(not_schedulable);
    let (buffer_pods_pending, pods_pending): (Vec<PodIndex>, Vec<PodIndex>) = pending.partition(is_of_buffer);
    Summary {
        nodes_before,
        nodes_after: nodes_before + counts.created + counts.replacements
            - counts.removed
            - counts.replaced
            - leaving().count(),
        nodes_leaving: leaving().count(),
        nodes_created: counts.created,
        nodes_replaced: counts.replaced,
        nodes_removed: counts.removed,
        price_per_hour_before: price_before,
        price_per_hour_after: price_after,
        penalties_per_hour: None,
        costs_per_hour: None,
        fewer_nodes: None,
        lower_bound_price_per_hour: None,
        pods_placed,
        pods_pending: pods_pending.len(),
        buffer_pods_placed: buffer_pods.len(),
        buffer_pods_pending: buffer_pods_pending.len(),
        pods_disrupted: going(disruption).map(|going| going.pods.len()).sum(),
        longest_drain: None,
        candidates: disruption.candidates,
        candidates_examined: disruption.candidates,
        consolidation: disruption.consolidation.clone(),
    }
}

fn going(disruption: &Disruption) -> impl Iterator<Item = &Going> {
    disruption.removals.iter().flat_map(|removal| &removal.nodes)
}

/// What no fleet for the same pods can cost less than: in the prices of instances, and with what nodes cost beside them.
pub struct Bounds {
    pub price: HourlyPrice,
    pub cost: HourlyPrice,
}

/// The nodes that can not go, and the least that nodes for everything else can cost.
pub fn bounds(
    inputs: &Inputs<'_>,
    problem: &Problem<'_>,
    provisioning: &Provisioning,
    disruption: &Disruption,
) -> Option<Bounds> {
    let removed: BTreeSet<HostIndex> = going(disruption).map(|going| going.host).collect();
    let open: Vec<OpenNode> = disruption.open.iter().filter(|open| !removed.contains(&open.host)).cloned().collect();
    let open_or_removed: BTreeSet<HostIndex> =
        removed.iter().copied().chain(open.iter().map(|open| open.host)).collect();
    let stays =
        |host: &HostIndex, machine: &Machine<'_>| !open_or_removed.contains(host) && !machine.is_being_removed();
    let staying = problem.machines.enumerated().filter(|(host, machine)| stays(host, machine));
    let price = |machine| problem.offer.price_of(inputs, machine).unwrap_or_default();
    let staying: Vec<(HourlyPrice, HourlyPrice)> =
        staying.map(|(host, machine)| (price(machine), problem.nodes[host].cost_beside)).collect();
    let purchases =
        provisioning.purchases.iter().chain(disruption.removals.iter().flat_map(|removal| &removal.purchases));
    let purchases: Vec<&Purchase> = purchases.collect();
    // A plan is made at every look then, and one that buys nothing says little of where the moves lead.
    if inputs.policy.moves_under_way && purchases.is_empty() {
        return None;
    }
    // Nodes for their own sake are no part of what pods cost.
    let is_static = |purchase: &&Purchase| problem.templates[purchase.template].is_static();
    if purchases.is_empty() && disruption.open.is_empty() || purchases.iter().any(is_static) {
        return None;
    }
    let placed =
        provisioning.placements.iter().chain(disruption.removals.iter().flat_map(|removal| &removal.placements));
    let pods = purchases.iter().flat_map(|purchase| &purchase.pods).chain(placed.map(|(pod, _)| pod));
    let pods = pods.chain(open.iter().flat_map(|open| &open.pods));
    let mut demand = Demand::new();
    for class in pods.filter_map(|pod| problem.class_of_pod[*pod]) {
        *demand.entry(class).or_default() += 1;
    }
    let spreads_hold = !provisioning.counted_nodes_alone;
    let least = |counted| lower_bound(problem, &demand, &removed, &open, spreads_hold, counted);
    let price = least(Counted::Instance)?;
    let mut cost = price;
    let beside = beside_at_least(problem, &open);
    if beside > Some(HourlyPrice::ZERO) {
        // Parts of large nodes have next to no part of it, but where anything is to be paid for there is one node at least.
        let of_one = beside.filter(|_| price > HourlyPrice::ZERO).unwrap_or_default();
        cost = least(Counted::WholeNode)?.max(price + of_one);
    }
    let price_of_staying: HourlyPrice = staying.iter().map(|(price, _)| *price).sum();
    let beside_staying: HourlyPrice = staying.iter().map(|(_, beside)| *beside).sum();
    Some(Bounds { price: price_of_staying + price, cost: price_of_staying + beside_staying + cost })
}

/// What a node that is bought or kept for its price costs beside its instance at least.
fn beside_at_least(problem: &Problem<'_>, open: &[OpenNode]) -> Option<HourlyPrice> {
    let of_new = problem.templates.iter().map(|template| template.cost_beside);
    of_new.chain(open.iter().map(|open| problem.nodes[open.host].cost_beside)).min()
}

/// Reasons for which nodes of a pool go that no budget limits now.
pub fn unlimited(steps: &[Step], budgets: &Ledger) -> Vec<Unlimited> {
    let going = steps.iter().filter(|step| step.kind == StepKind::Remove && !step.mode.waits_for_nothing());
    let unlimited = going.filter_map(|step| {
        // A pool that left the definitions has no budgets to think of any more.
        let reason: DisruptionReason =
            step.reason.code.budget().filter(|_| step.reason.code != ReasonCode::NodePoolRemoved)?;
        let is_unlimited = budgets.allowance(&step.node_pool, reason) == Allowance::default();
        is_unlimited.then(|| Unlimited { node_pool: step.node_pool.clone(), reason: format!("{reason:?}") })
    });
    unlimited.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Static pools that stay below their replicas, and why.
pub fn notes_of_shortfalls(engine: &Engine<'_, '_>, provisioning: &Provisioning) -> Vec<Note> {
    let note = |shortfall: &Shortfall| {
        let template = &engine.problem.templates[shortfall.template];
        let because = match &shortfall.because {
            Refusal::Limit { scope: LimitScope::NodePool, resource, limit, .. } => {
                format!("limits.{resource} is {}", amount(resource, *limit))
            }
            Refusal::Limit { scope: LimitScope::Cluster, resource, limit, .. } => {
                format!("spec.limits.{resource} of cutlist.yaml is {}", amount(resource, *limit))
            }
            Refusal::Limit { scope: LimitScope::EarlyEnds(why), .. } => why.clone(),
            Refusal::Limit { scope: LimitScope::Reservation(id), .. } => {
                format!("capacity reservation {id} is used up")
            }
            _ => template.nothing_offered_text(),
        };
        Note::new(
            NoteCode::StaticCapacityLimited,
            format!("NodePool {} stays {} below its replicas: {because}", template.name, shortfall.missing),
        )
        .about_pool(&template.name)
    };
    provisioning.shortfalls.iter().map(note).collect()
}

/// Static pools with new nodes that are too small for all of their DaemonSets: they are launched whether or not these run.
pub fn notes_of_daemon_sets(problem: &Problem<'_>, purchases: &[&Purchase]) -> Vec<Note> {
    let mut too_small: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for purchase in purchases {
        let template = &problem.templates[purchase.template];
        let position = template.offerings.position(&purchase.instance_type);
        let Some(daemons) = position.and_then(|position| template.without_room.get(&position)) else { continue };
        let names = daemons.iter().map(|daemon| &problem.daemons[*daemon]);
        let names = names.map(|daemon| format!("{}/{}", daemon.namespace, daemon.name));
        too_small.entry((&template.name, &purchase.instance_type)).or_default().extend(names);
    }
    let note = |((pool, instance_type), names): ((&str, &str), BTreeSet<String>)| {
        let noun = if names.len() == 1 { "DaemonSet" } else { "DaemonSets" };
        let names: Vec<String> = names.into_iter().collect();
        let text = format!(
            "new nodes of NodePool {pool} are {instance_type} and have no room for {noun} {}",
            names.join(", ")
        );
        Note::new(NoteCode::DaemonSetsWithoutRoom, text).about_pool(pool)
    };
    too_small.into_iter().map(note).collect()
}

/// Pods that run only if kube-scheduler takes them before others.
pub fn note_of_binding_order(inputs: &Inputs<'_>, provisioning: &Provisioning) -> Option<Note> {
    let mut pods: Vec<String> = provisioning.order_matters.iter().map(|pod| inputs.snapshot.pods[*pod].key()).collect();
    pods.sort();
    pods.dedup();
    let them = match pods.as_slice() {
        [] => return None,
        [pod] => format!("pod {pod} finds its place only if kube-scheduler takes it"),
        several => format!("pods {} find their places only if kube-scheduler takes them", some_of(several)),
    };
    let text = format!("{them} before others that a topology spread counts, and that do not have it themselves");
    Some(Note::new(NoteCode::BindingOrderMatters, text).about_pods(pods))
}

/// `a, b and c`, or `a, b, c and 4 more`.
fn some_of(names: &[String]) -> String {
    let (shown, rest) = names.split_at(names.len().min(NAMES_SHOWN));
    match (shown, rest.len()) {
        ([first @ .., last], 0) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        (shown, 0) => shown.join(", "),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Pods that still run on nodes that go, and have lost the place that an earlier plan had for them.
pub fn note_of_lost_places(problem: &Problem<'_>, provisioning: &Provisioning) -> Option<Note> {
    let lost = &provisioning.backlog.postponed;
    let first = problem.snapshot.pods[*lost.first()?].key();
    let (verb, such_as) = if lost.len() == 1 { ("has", "") } else { ("have", "such as ") };
    Some(Note::new(
        NoteCode::PlaceLost,
        format!(
            "{} of nodes that go {verb} no place any more ({such_as}{first}): bought for when evicted, if there is none then",
            pods_text(lost.len())
        ),
    ))
}

/// Whether a pool may launch spot, or a node is spot: else no price of spot is behind any figure.
pub fn knows_spot(problem: &Problem<'_>) -> bool {
    let may_launch = |template: &Template| {
        template.requirements.get(keys::CAPACITY_TYPE).is_none_or(|requirement| requirement.allows(keys::SPOT))
    };
    problem.templates.iter().any(may_launch)
        || problem.machines.iter().any(|machine| machine.label(keys::CAPACITY_TYPE) == Some(keys::SPOT))
}

/// How much of each capacity reservation is used.
pub fn notes_of_reservations(problem: &Problem<'_>, purchases: &[&Purchase]) -> Vec<Note> {
    let note = |reservation: &Rc<Reservation>| {
        let Reservation { id, instance_type, zone, available, .. } = reservation.as_ref();
        let is_launched_into = |purchase: &&&Purchase| {
            let of_purchase = &problem.templates[purchase.template].reservation;
            of_purchase.as_ref().is_some_and(|of_purchase| of_purchase.id == *id)
        };
        let used = purchases.iter().filter(is_launched_into).count();
        Note::new(
            NoteCode::CapacityReservation,
            match available {
                0 => format!("capacity reservation {id} ({instance_type} in {zone}): no instance is left"),
                _ => format!(
                    "capacity reservation {id} ({instance_type} in {zone}): {used} of {available} left are used"
                ),
            },
        )
    };
    problem.offer.reservations().iter().map(note).collect()
}

/// Of pools whose `minValues` were lowered, by how much and on how many new nodes.
pub fn notes_of_purchases(problem: &Problem<'_>, purchases: &[&Purchase]) -> Vec<Note> {
    let mut lowered: BTreeMap<(&str, &str, usize), (usize, usize)> = BTreeMap::new();
    for purchase in purchases {
        let pool = problem.templates[purchase.template].name.as_str();
        for Lowered { key, asked, there } in &purchase.lowered {
            let entry = lowered.entry((pool, key, *asked)).or_insert((*there, 0));
            *entry = (entry.0.min(*there), entry.1 + 1);
        }
    }
    let note = |((pool, key, asked), (there, nodes)): ((&str, &str, usize), (usize, usize))| {
        Note::new(
            NoteCode::MinValuesLowered,
            format!(
                "NodePool {pool}: minValues of {key} {asked} -> {there} on {nodes} new {} (minValuesPolicy BestEffort)",
                if nodes == 1 { "node" } else { "nodes" }
            ),
        )
        .about_pool(pool)
    };
    lowered.into_iter().map(note).collect()
}

/// Pods that may not wait for the nodes that are bought for them: kube-scheduler can put them where others are.
pub fn preemption(engine: &Engine<'_, '_>, inputs: &Inputs<'_>, provisioning: &Provisioning) -> Vec<Note> {
    let class_of = |pod: &PodIndex| engine.problem.class_of_pod[*pod];
    let bought = provisioning.purchases.iter().flat_map(|purchase| &purchase.pods);
    let waiting: Vec<PodIndex> = bought.chain(provisioning.unplaced.values().flatten()).copied().collect();
    let classes = waiting.iter().filter_map(class_of).collect();
    let pushing = may_preempt(engine, &classes);
    let pods = waiting.iter().filter(|pod| class_of(pod).is_some_and(|class| pushing.contains(&class)));
    let mut pods: Vec<String> = pods.map(|pod| inputs.snapshot.pods[*pod].key()).collect();
    pods.sort();
    let Some(first) = pods.first() else { return Vec::new() };
    let who = if pods.len() == 1 { first.clone() } else { format!("{} pods, {first} first,", pods.len()) };
    let text =
        format!("{who} may evict pods of lower priority from nodes that exist, instead of waiting for a new node");
    vec![Note::new(NoteCode::MayPreempt, text)]
}

/// What shaped the search beside prices, and what it left out.
pub fn notes_of_search(inputs: &Inputs<'_>, problem: &Problem<'_>, provisioning: &Provisioning) -> Vec<Note> {
    let mut notes = Vec::new();
    let budget = &provisioning.budget;
    if inputs.policy.packing == Packing::Cheapest && budget.is_spent() {
        let text = format!(
            "the search for a cheaper fleet ended after {} looks (spec.searchWork): {} groups of new nodes were not taken apart once more",
            problem.search_work, budget.not_tried
        );
        notes.push(Note::new(NoteCode::SearchEnded, text));
    }
    notes.extend(penalties::note(inputs, problem, provisioning));
    notes
}

/// What a reader should know of the inputs.
pub fn notes(inputs: &Inputs<'_>, problem: &Problem<'_>) -> Vec<Note> {
    let mut notes = problem.offer.notes().to_vec();
    let mut note = |code: NoteCode, text: String| notes.push(Note::new(code, text));
    if let Some(text) = zones_assumed(inputs) {
        note(NoteCode::AllZonesAssumed, text);
    }
    let unpriced: Vec<&str> = problem
        .machines
        .iter()
        .filter(|machine| problem.offer.price_of(inputs, machine).is_none())
        .map(|machine| machine.name)
        .collect();
    match unpriced.as_slice() {
        [] => {}
        [node] => note(NoteCode::PriceUnknown, format!("node {node} has no price in the catalog and counts as free")),
        [node, ..] => {
            note(
                NoteCode::PriceUnknown,
                format!("{} nodes, {node} first, have no price in the catalog and count as free", unpriced.len()),
            );
        }
    }
    notes.extend(inputs.node_pools.iter().flat_map(|pool| notes_of_pool(inputs, pool)));
    notes.extend(annotations::notes(problem));
    notes.extend(namespaces::note(inputs.snapshot));
    notes.extend(windows::note(problem));
    notes.extend(notes_of_overheads(inputs.snapshot));
    let mut note = |code: NoteCode, text: String| notes.push(Note::new(code, text));
    if let Some(text) = unknown_room(inputs, problem) {
        note(NoteCode::RoomNotKnown, text);
    }
    if let Some(text) = events_to_come(inputs, problem) {
        note(NoteCode::ClockBehind, text);
    }
    let pools: Vec<&str> = inputs.node_pools.iter().filter_map(|pool| pool.metadata.name.as_deref()).collect();
    let managed: Vec<_> = problem.machines.iter().filter(|machine| machine.is_managed()).collect();
    let renamed = removed_pools(inputs).next().is_some();
    if !managed.is_empty()
        && !pools.is_empty()
        && !renamed
        && managed.iter().all(|machine| !machine.node_pool().is_some_and(|pool| pools.contains(&pool)))
    {
        note(NoteCode::AnotherCluster, "no node of the snapshot belongs to a NodePool of these definitions: is it the snapshot of another cluster?".to_owned());
    }
    notes
}

/// Of a pool that is not planned for as it stands.
fn notes_of_pool<'a>(inputs: &Inputs<'a>, pool: &'a NodePool) -> Vec<Note> {
    let class = &pool.spec.template.spec.node_class_ref;
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let place = |pointer: &str| inputs.places.of_pool(name, pointer);
    let mut notes = Vec::new();
    if class.is_of_auto_mode() {
        let text = format!("NodePool {name} is left out: EKS Auto Mode makes its nodes");
        notes.push(Note::new(NoteCode::NodePoolOfAutoMode, text).about_pool(name));
    } else if class.is_of_others() {
        let text = format!("NodePool {name} is left out: what looks after each {} makes its nodes", class.kind);
        notes.push(Note::new(NoteCode::NodePoolOfAnotherProvider, text).about_pool(name));
    } else if !inputs.node_classes.iter().any(|it| it.metadata.name.as_ref() == Some(&class.name)) {
        let text = format!("NodePool {name} is not used: its {}", inputs.why_no_class(&class.name));
        notes.push(Note::new(NoteCode::NodeClassMissing, text).about_pool(name));
    }
    let defined = inputs.node_classes.iter().find(|it| it.metadata.name.as_ref() == Some(&class.name));
    let defined = defined.filter(|_| !class.is_of_auto_mode());
    if let Some(not_ready) = defined.and_then(|it| NotReady::of_pool(inputs, pool, it)) {
        let text = format!("NodePool {name} makes no nodes: {not_ready}");
        notes.push(Note::new(NoteCode::NodeClassNotReady, text).about_pool(name));
    }
    if pool.spec.replicas.is_some() && !inputs.policy.feature_gates.static_capacity {
        let text =
            format!("spec.featureGates.StaticCapacity is off: NodePool {name} with spec.replicas is left as it is");
        notes.push(Note::new(NoteCode::FeatureGateOff, text).about_pool(name).at(place("/spec/replicas")));
    }
    notes
}

/// DaemonSets that take room of which the snapshot says nothing.
fn notes_of_overheads(snapshot: &Snapshot) -> impl Iterator<Item = Note> {
    without_known_overhead(snapshot).into_iter().map(|(daemon_set, class)| Note::new(NoteCode::OverheadNotKnown, format!(
            "what RuntimeClass {class} takes beside the containers of DaemonSet {daemon_set}, and on which nodes it lets it run, is \
             not known, since no pod of the class is there: it counts as nothing, and as all nodes"
        )))
}

/// Where nobody says in which zones a class has subnets.
fn zones_assumed(inputs: &Inputs<'_>) -> Option<String> {
    let used: Vec<&EC2NodeClass> =
        inputs.node_classes.iter().filter(|class| NotReady::of(inputs, class).is_none()).collect();
    let is_unknown = |class: &&EC2NodeClass| Subnets::of(inputs, class).zones().is_none();
    let unknown: Vec<&EC2NodeClass> = used.iter().copied().filter(is_unknown).collect();
    if used.is_empty() && !inputs.node_classes.is_empty() {
        return None;
    }
    let all = unknown.len() == used.len();
    if unknown.is_empty() && (!all || !inputs.policy.zones_with_subnet.is_empty()) {
        return None;
    }
    let names: Vec<&str> = unknown.iter().filter_map(|class| class.metadata.name.as_deref()).collect();
    let which = if all { String::new() } else { format!(" for EC2NodeClass {}", names.join(", ")) };
    let region = &inputs.catalog.region;
    Some(format!("no cloud was asked: every zone of {region} counts as having a subnet{which}"))
}

/// Pods on nodes of which nobody knows what they take.
fn unknown_room(inputs: &Inputs<'_>, problem: &Problem<'_>) -> Option<String> {
    let invalid = problem.invalid_pods.iter().map(|(pod, error)| (&inputs.snapshot.pods[*pod], error));
    let running: Vec<_> = invalid.filter(|(pod, _)| pod.spec.node_name.is_some() && !pod.is_terminal()).collect();
    let (first, error) = running.first()?;
    let who = match running.len() {
        1 => format!("pod {} takes ({error}): it counts", first.key()),
        pods => format!("{pods} pods take, {} first ({error}): they count", first.key()),
    };
    Some(format!("not known what room {who} as nothing but a pod, and no node with such a pod goes to save money"))
}

/// Clocks of two machines may differ by so much.
const CLOCKS_APART_SECONDS: i64 = 60;

/// Nodes that were made, or whose pods came or went, later than now.
fn events_to_come(inputs: &Inputs<'_>, problem: &Problem<'_>) -> Option<String> {
    let seconds_ahead = |moment: Option<Timestamp>| {
        Some(seconds_between(inputs.now, moment?)).filter(|ahead| *ahead > CLOCKS_APART_SECONDS)
    };
    let of_pods = |machine: &Machine<'_>| machine.claim.and_then(NodeClaim::last_pod_event);
    let made = |machine: &Machine<'_>| {
        let of_claim = machine.claim.and_then(|claim| claim.metadata.creation_timestamp.as_ref());
        let of_node = machine.node.and_then(|node| node.metadata.creation_timestamp.as_ref());
        of_claim.into_iter().chain(of_node).map(|time| time.0).max()
    };
    let ahead_by = |moment: &dyn Fn(&Machine<'_>) -> Option<Timestamp>| -> Vec<(&str, i64)> {
        let machines = problem.machines.iter();
        machines.filter_map(|machine| Some((machine.name, seconds_ahead(moment(machine))?))).collect()
    };
    let (noted, created) = (ahead_by(&of_pods), ahead_by(&made));
    let (ahead, [one, several]) = match noted.as_slice() {
        [] => (created, ["was made", "were made"]),
        _ => (noted, ["noted a pod", "noted a pod"]),
    };
    let (node, seconds) = ahead.iter().max_by_key(|(node, seconds)| (*seconds, Reverse(*node)))?;
    let nodes = match ahead.len() {
        1 => format!("node {node} {one}"),
        count => format!("{count} nodes, {node} first, {several}"),
    };
    Some(format!(
        "{nodes} {} later than the moment planned for, {}: the clock is behind, or was ahead; it counts as now",
        duration_text(*seconds),
        inputs.now
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_some_are_said() {
        let names = |count: usize| -> Vec<String> { (0..count).map(|name| format!("p{name}")).collect() };
        assert_eq!(some_of(&names(2)), "p0 and p1");
        assert_eq!(some_of(&names(3)), "p0, p1 and p2");
        assert_eq!(some_of(&names(5)), "p0, p1, p2 and 2 more");
    }
}
