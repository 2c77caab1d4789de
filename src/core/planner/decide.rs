//! The one function that decides.

use std::collections::BTreeMap;

use crate::disrupt::{Disruption, Going, Removal, disrupt, drift, removed_pools, rollout};
use crate::inputs::Inputs;
use crate::lifecycle::early_ends;
use crate::plan::{
    FORMAT_VERSION, Note, NoteCode, Pending, Placement, Plan, Precondition, Reason, ReasonCode, RemovalMode, Step,
    StepKind, Summary,
};
use crate::prepare;
use crate::prepare::buffers;
use crate::provision::{self, Provisioning, provision, refused_nodes};
use crate::scheduler::{HostIndex, Problem};
use crate::snapshot::PodIndex;
use cutlist_api::settings::Packing;

use super::build::{Builder, NodeStep};
use super::creation_cause::CreationCause;
use super::disturbed::Disturbed;
use super::fewer_nodes::fewer_nodes;
use super::{cloud_facts, cluster_notes, costs, drains, penalties, report, risks};

/// Decides what to create, replace and remove. Pure; O((pods + nodes) log nodes) for provisioning and, for disruption,
/// the sum over candidates of the pods they hold.
pub fn decide(inputs: &Inputs<'_>) -> Plan {
    decide_in_phases(inputs, &mut |_| {})
}

/// The parts of a decision that take time, for those who measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Compiled,
    Provisioned,
    Disrupted,
}

/// The same, and tells when each part is done; what the caller does then does not change the plan.
pub fn decide_in_phases(inputs: &Inputs<'_>, done: &mut dyn FnMut(Phase)) -> Plan {
    let (snapshot, catalog) = (prepare::complete(inputs), prepare::preview_prices::catalog(inputs));
    let inputs = &Inputs { snapshot: &snapshot, catalog: &catalog, ..inputs.clone() };
    let mut problem = Problem::new(inputs);
    done(Phase::Compiled);
    let mut engine = provision::engine(&problem, inputs);
    let mut provisioning = provision(&mut engine, inputs, inputs.policy.packing);
    done(Phase::Provisioned);
    let (explained, changes_not_tried) = report::pending(&engine, inputs, &provisioning);
    let causes = report::creation_causes(&engine, inputs, &provisioning);
    let mut notes = report::preemption(&engine, inputs, &provisioning);
    notes.extend(report::notes_of_shortfalls(&engine, &provisioning));
    notes.extend(report::note_of_lost_places(&problem, &provisioning));
    notes.extend(report::note_of_binding_order(inputs, &provisioning));
    notes.extend(buffers::notes(inputs));
    notes.extend(changes_not_tried);
    notes.extend(report::notes_of_search(inputs, &problem, &provisioning));
    notes.extend(rollout::notes(inputs));
    notes.extend(removed_pools::notes(inputs, &problem.machines));
    notes.extend(drift::notes(inputs, &problem.machines));
    notes.extend(cluster_notes::notes(inputs.snapshot, problem.machines.iter(), inputs.node_pools));
    let disruption = disrupt(&mut engine, inputs, &provisioning);
    drop(engine);
    provisioning.fewer_nodes = fewer_nodes(inputs, &mut problem, &provisioning);
    done(Phase::Disrupted);
    assemble(inputs, &problem, &provisioning, &causes, explained, disruption, notes)
}

pub fn assemble(
    inputs: &Inputs<'_>,
    problem: &Problem<'_>,
    provisioning: &Provisioning,
    causes: &[CreationCause],
    pending: Vec<Pending>,
    disruption: Disruption,
    further_notes: Vec<Note>,
) -> Plan {
    let mut builder = Builder::new(inputs, problem);
    for (purchase, cause) in provisioning.purchases.iter().zip(causes) {
        let number = builder.begin_move();
        builder.create(number, purchase, cause.reason(), None);
    }
    for adoption in &disruption.adoptions {
        builder.adopt(adoption);
    }
    let unconfirmed = removed_pools::unconfirmed(inputs, &problem.machines);
    let mut placements: BTreeMap<PodIndex, HostIndex> = provisioning.placements.iter().copied().collect();
    for removal in &disruption.removals {
        steps_of_removal(&mut builder, removal, &unconfirmed);
        // Room of a buffer may have been found on the node that goes now.
        for pod in removal.purchases.iter().flat_map(|purchase| &purchase.pods) {
            placements.remove(pod);
        }
        placements.extend(removal.placements.iter().copied());
    }
    disruption.holds.iter().for_each(|(host, cause)| hold(&mut builder, *host, cause.reason()));
    let placements = published(inputs, problem, &placements);
    let mut summary = report::summary(inputs, problem, provisioning, &disruption, &builder.steps);
    summary.penalties_per_hour = penalties::per_hour(inputs, problem, &builder.steps, &placements);
    summary.fewer_nodes = provisioning.fewer_nodes;
    add_costs(inputs, problem, provisioning, &disruption, &builder.steps, &mut summary);
    let mut notes = inputs.notes.clone();
    if !report::knows_spot(problem) {
        notes.retain(|note| note.code != NoteCode::SpotPricesAssumed);
    }
    notes.extend(further_notes);
    notes.extend(report::notes(inputs, problem));
    let purchases = provisioning.purchases.iter();
    let purchases: Vec<_> =
        purchases.chain(disruption.removals.iter().flat_map(|removal| &removal.purchases)).collect();
    let refused_nodes = provisioning.refused_nodes.for_plan(inputs.snapshot);
    notes.extend(refused_nodes::notes(&refused_nodes));
    let (ended_instances, notes_of_ends) = early_ends::in_plan(inputs);
    notes.extend(notes_of_ends);
    notes.extend(report::notes_of_purchases(problem, &purchases));
    notes.extend(report::notes_of_reservations(problem, &purchases));
    notes.extend(report::notes_of_daemon_sets(problem, &purchases));
    let disturbed = Disturbed::new(&builder.steps, inputs.snapshot);
    let waves = risks::number_waves(&mut builder.steps, &disturbed);
    let together = drains::together(&builder.steps, problem, &disturbed);
    let removals = &disruption.removals;
    let (risks, notes_of_risks) =
        risks::risks(&builder.steps, removals, problem, &disturbed, &together, inputs.now, waves);
    notes.extend(notes_of_risks);
    summary.longest_drain = drains::longest_drain(&builder.steps, inputs.snapshot, &disturbed, &together, inputs.now);
    let cloud_facts = cloud_facts::facts(inputs, &problem.machines, &builder.steps);
    let mut notes: Vec<Note> = notes.into_iter().map(|note| note.with_place(inputs.places)).collect();
    notes.sort();
    notes.dedup();
    let mut plan = Plan {
        version: FORMAT_VERSION,
        id: String::new(),
        revision: inputs.revision.clone(),
        against: None,
        cluster: inputs.cluster.to_owned(),
        generated_for: inputs.now.to_string(),
        catalog_date: inputs.catalog.date.clone(),
        seed: inputs.seed,
        packing: match inputs.policy.packing {
            Packing::Cheapest => "cheapest".to_owned(),
            Packing::Karpenter => "karpenter".to_owned(),
        },
        placements,
        pending,
        held_back: disruption.held_back,
        refused_nodes,
        ended_instances,
        unlimited: report::unlimited(&builder.steps, &disruption.budgets),
        budgets: disruption.budgets.into_states(),
        cloud_facts,
        steps: builder.steps,
        balances: builder.balances,
        risks,
        notes,
        summary,
    };
    plan.id = plan.content_hash();
    plan
}

/// Placements as a plan has them, by names.
fn published(inputs: &Inputs<'_>, problem: &Problem<'_>, placements: &BTreeMap<PodIndex, HostIndex>) -> Vec<Placement> {
    let by_name = |(pod, host): (&PodIndex, &HostIndex)| Placement {
        pod: inputs.snapshot.pods[*pod].key(),
        node: problem.machines[*host].name.to_owned(),
    };
    let mut placements: Vec<Placement> = placements.iter().map(by_name).collect();
    placements.sort();
    placements
}

/// What nodes cost after the steps, and what they cost at least.
fn add_costs(
    inputs: &Inputs<'_>,
    problem: &Problem<'_>,
    provisioning: &Provisioning,
    disruption: &Disruption,
    steps: &[Step],
    summary: &mut Summary,
) {
    summary.costs_per_hour = costs::per_hour(inputs, problem, steps, summary);
    let Some(bounds) = report::bounds(inputs, problem, provisioning, disruption) else { return };
    summary.lower_bound_price_per_hour = Some(bounds.price);
    if let Some(costs) = &mut summary.costs_per_hour {
        costs.lower_bound = Some(bounds.cost);
    }
}

/// A node that a confirmation is needed for.
fn hold(builder: &mut Builder<'_, '_>, host: HostIndex, reason: Reason) {
    let step = NodeStep {
        kind: StepKind::Hold,
        move_number: builder.begin_move(),
        host,
        pods: &[],
        reason,
        mode: RemovalMode::Graceful,
        preconditions: builder.holds_only(host, &[]).into_iter().collect(),
    };
    builder.add(step);
}

/// The steps of one move that removes nodes.
fn steps_of_removal(builder: &mut Builder<'_, '_>, removal: &Removal, unconfirmed: &BTreeMap<String, String>) {
    let number = builder.begin_move();
    builder.balance(&removal.balances);
    let reason = removal.cause.reason();
    let first = removal.nodes.first().map(|going| &builder.problem.machines[going.host]);
    let definition = first.and_then(|machine| drift::definition(builder.inputs, machine, reason.code));
    for purchase in &removal.purchases {
        builder.create(number, purchase, reason.clone(), definition.clone());
    }
    for going in &removal.nodes {
        builder.add(NodeStep {
            kind: StepKind::Remove,
            move_number: number,
            host: going.host,
            pods: &going.pods,
            reason: reason.clone(),
            mode: removal.mode.clone(),
            preconditions: preconditions(builder, removal, going, unconfirmed),
        });
    }
}

/// What goes at once waits for nothing.
fn preconditions(
    builder: &Builder<'_, '_>,
    removal: &Removal,
    going: &Going,
    unconfirmed: &BTreeMap<String, String>,
) -> Vec<Precondition> {
    if removal.mode.waits_for_nothing() {
        return Vec::new();
    }
    let mut preconditions = Vec::from_iter(builder.holds_only(going.host, &going.pods));
    if !removal.purchases.is_empty() {
        preconditions.push(Precondition::ReplacementsInitialized);
    }
    let pool = builder.problem.machines[going.host].node_pool().unwrap_or_default();
    if removal.cause.code() == ReasonCode::NodePoolRemoved && unconfirmed.contains_key(pool) {
        preconditions.push(Precondition::RemovalConfirmed { node_pool: pool.to_owned() });
    }
    preconditions
}
