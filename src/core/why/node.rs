//! Why a node is there, stays or went: what the plan does with it now, and what the plans that were posted decided about it.
//! The record outlives the node.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inputs::Inputs;
use crate::model::HourlyPrice;
use crate::plan::{Alternative, DefinitionPlace, Plan, Reason, Revision, Step, StepKind};
use crate::prepare;
use crate::provision::{self, provision};
use crate::scheduler::{HostIndex, Problem};
use crate::snapshot::Objects;
use crate::snapshot::nodes::{Machine, machines};
use cutlist_api::node_plan::{APPROVED_BY, NodePlan, NodePlanPhase};

use super::{Fate, NodeDetails, considered, fate, node_of_machine, node_of_step, planned};

/// What is to be said about one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyNode {
    /// The node's name, or its NodeClaim's where it never registered or was not recorded.
    pub node: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_claim: Option<String>,
    /// Absent when the node is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<Present>,
    /// Oldest first.
    pub decisions: Vec<Decision>,
    /// About other nodes whose NodeClaim had the same name, before or after: pods that come back under their old names, such as
    /// those of a StatefulSet, get a node under its old name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namesakes: Vec<Decision>,
    /// Posted plans that were looked through.
    pub records: usize,
    /// Posted plans that can not be read: too long to be kept whole, or of another version.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub records_unread: usize,
    /// RFC 3339: the oldest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records_since: Option<String>,
    /// Nodes that earlier plans created or removed, of which only that is kept.
    #[serde(default, skip_serializing_if = "crate::plan::is_zero")]
    pub history: usize,
    /// RFC 3339: the oldest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_since: Option<String>,
}

/// A node that exists, and what the plan for this moment does with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Present {
    pub details: NodeDetails,
    pub fate: Fate,
    /// What goes with it and comes in its place, where it is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Exchange>,
}

/// The move that a removal belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// `namespace/name`: pods of this node that had to move.
    pub pods: Vec<String>,
    /// Other nodes that go by the same move.
    pub together_with: Vec<String>,
    pub replaced_by: Vec<NodeDetails>,
    /// All nodes that go, less all that come.
    pub saving_per_hour: HourlyPrice,
}

/// What one posted plan, or a run of them, decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// RFC 3339: the moment that was planned for; of a run the first.
    pub at: String,
    /// Of a run of plans that held the node back for the same reason: the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Plans of the run.
    pub plans: usize,
    pub plan_id: String,
    /// Of the definitions.
    pub revision: Revision,
    pub phase: NodePlanPhase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    pub reason: Reason,
    /// Where the definition of that revision has what the reason is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionPlace>,
    #[serde(flatten)]
    pub decided: Decided,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "decided")]
pub enum Decided {
    Created {
        details: NodeDetails,
        /// Pods it was created for.
        pods: Vec<String>,
        /// Other types that would have held the same pods, cheapest first.
        considered: Vec<Alternative>,
        /// Whether the move was begun.
        begun: bool,
    },
    Removed {
        details: NodeDetails,
        exchange: Exchange,
        begun: bool,
    },
    /// Given to another NodePool, without a change to the machine.
    Adopted {
        /// As of the pool that took it over.
        details: NodeDetails,
        begun: bool,
    },
    NeedsConfirmation,
    HeldBack,
}

/// A decision that was carried out, as it is kept when its plan is not any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub node_claim: String,
    pub decision: Decision,
}

/// More pods of one node than these are not kept.
const PODS_MAX: usize = 10;

/// What is worth keeping of a plan: which nodes it created, removed and gave to another pool.
pub fn kept(object: &NodePlan) -> Vec<Kept> {
    let Some(record) = Record::read(object) else { return Vec::new() };
    let kept = |step: &Step| {
        let mut decided = decided(&record, step);
        match &mut decided {
            Decided::Created { pods, considered, begun: true, .. } => {
                pods.truncate(PODS_MAX);
                considered.clear();
            }
            Decided::Removed { exchange, begun: true, .. } => exchange.pods.truncate(PODS_MAX),
            Decided::Adopted { begun: true, .. } => {}
            _ => return None,
        }
        let decision = decision(&record, &step.reason, decided);
        Some(Kept { node: step.node.clone(), node_claim: step.node_claim.clone(), decision })
    };
    record.plan.steps.iter().filter_map(kept).collect()
}

/// What is kept of plans that are not among the records any more, oldest first.
fn history(objects: &Objects<NodePlan>, records: &[Record<'_>]) -> Vec<Kept> {
    let entries = objects.iter().flat_map(|object| object.status.iter().flat_map(|status| &status.history));
    let mut history: Vec<Kept> = entries.filter_map(|entry| Kept::deserialize(entry).ok()).collect();
    history.retain(|kept| !records.iter().any(|record| record.plan.id == kept.decision.plan_id));
    history.sort_by(|one, two| one.decision.at.cmp(&two.decision.at));
    history
}

/// Objects that are neither a plan that can be read nor a page of the history.
fn unread(objects: &Objects<NodePlan>, records: &[Record<'_>]) -> usize {
    let is_page = |object: &&NodePlan| object.page_number().is_some();
    objects.len().saturating_sub(records.len() + objects.iter().filter(is_page).count())
}

impl Kept {
    fn is_about(&self, name: &str) -> bool {
        self.node_claim == name || self.node.as_deref() == Some(name)
    }
}

/// Answers for the node, or the node of the NodeClaim, of this name. `None` when neither the snapshot nor a posted plan has it.
/// Takes as long as a plan.
pub fn why_node(inputs: &Inputs<'_>, name: &str) -> Option<WhyNode> {
    let (snapshot, catalog) = (prepare::complete(inputs), prepare::preview_prices::catalog(inputs));
    let inputs = &Inputs { snapshot: &snapshot, catalog: &catalog, ..inputs.clone() };
    let problem = Problem::new(inputs);
    let records = records(&inputs.snapshot.node_plans);
    let is_meant = |machine: &Machine<'_>| machine.name == name || machine.claim_name() == Some(name);
    let host = problem.machines.position(is_meant);
    let machine = host.map(|host| &problem.machines[host]);
    let is_about = |step: &&Step| step.node.as_deref() == Some(name) || step.node_claim == name;
    let removal = records.iter().rev().find_map(|record| {
        let removal = record.plan.steps.iter().filter(|step| step.node.is_some()).find(is_about)?;
        Some((removal, record.plan.id.as_str()))
    });
    let history = history(&inputs.snapshot.node_plans, &records);
    let known = history.iter().rev().find(|kept| kept.node.is_some() && kept.is_about(name));
    let removed_by = removal.map(|(_, plan)| plan).or(known.map(|kept| kept.decision.plan_id.as_str()));
    let removed = removal.map(|(step, _)| (step.node.as_deref(), step.node_claim.as_str()));
    let removed = removed.or(known.map(|kept| (kept.node.as_deref(), kept.node_claim.as_str())));
    let node = machine.map(|machine| machine.name).or(removed.and_then(|(node, _)| node)).unwrap_or(name);
    let of_record = removed.map(|(_, claim)| claim).filter(|claim| !claim.is_empty());
    let node_claim = machine.and_then(Machine::claim_name).or(of_record);
    let names: BTreeSet<&str> = [name, node].into_iter().chain(node_claim).collect();
    let about = history.iter().filter(|kept| names.iter().any(|name| kept.is_about(name)));
    let mut all: Vec<Decision> = about.map(|kept| kept.decision.clone()).collect();
    all.extend(decisions(&records, &names));
    if host.is_none() && all.is_empty() {
        return None;
    }
    let mut lives = lives(all);
    let was_this = |life: &Vec<Decision>| life.iter().any(|decision| Some(decision.plan_id.as_str()) == removed_by);
    let of_last = lives.len().checked_sub(1);
    let meant = if host.is_some() { of_last } else { lives.iter().rposition(was_this).or(of_last) };
    let decisions = meant.map(|meant| lives.remove(meant)).unwrap_or_default();
    Some(WhyNode {
        node: node.to_owned(),
        node_claim: node_claim.map(str::to_owned),
        present: host.map(|host| present(inputs, &problem, host)),
        decisions,
        namesakes: lives.into_iter().flatten().collect(),
        records: records.len(),
        records_unread: unread(&inputs.snapshot.node_plans, &records),
        records_since: records.first().map(|record| record.plan.generated_for.clone()),
        history: history.len(),
        history_since: history.first().map(|kept| kept.decision.at.clone()),
    })
}

/// Divides what was decided under one name, oldest first, by the nodes that had it: one that was begun to be created, adopted or
/// removed is another one than the next that is created.
fn lives(decisions: Vec<Decision>) -> Vec<Vec<Decision>> {
    let is_begun = |decision: &Decision| {
        let (Decided::Created { begun, .. } | Decided::Adopted { begun, .. } | Decided::Removed { begun, .. }) =
            &decision.decided
        else {
            return false;
        };
        *begun
    };
    let mut lives: Vec<Vec<Decision>> = Vec::new();
    for decision in decisions {
        let is_creation = matches!(decision.decided, Decided::Created { .. });
        match lives.last_mut() {
            Some(life) if !(is_creation && life.iter().any(is_begun)) => life.push(decision),
            _ => lives.push(vec![decision]),
        }
    }
    lives
}

/// Where a node could have been found.
pub struct Searched {
    /// Names that can be asked for: of nodes that exist, and of those that posted plans removed or created.
    pub names: BTreeSet<String>,
    /// Posted plans that were looked through.
    pub records: usize,
    /// Those that can not be read.
    pub records_unread: usize,
}

/// What [`why_node`] looks through. O(nodes + posted plans).
pub fn searched(inputs: &Inputs<'_>) -> Searched {
    let mut names: BTreeSet<String> = machines(inputs.snapshot).iter().map(|machine| machine.name.to_owned()).collect();
    let records = records(&inputs.snapshot.node_plans);
    for step in records.iter().flat_map(|record| &record.plan.steps) {
        names.insert(step.node_claim.clone());
        names.extend(step.node.clone());
    }
    for kept in history(&inputs.snapshot.node_plans, &records) {
        names.insert(kept.node_claim);
        names.extend(kept.node);
    }
    let records_unread = unread(&inputs.snapshot.node_plans, &records);
    Searched { names, records: records.len(), records_unread }
}

fn present(inputs: &Inputs<'_>, problem: &Problem<'_>, host: HostIndex) -> Present {
    let mut engine = provision::engine(problem, inputs);
    let provisioning = provision(&mut engine, inputs, inputs.policy.packing);
    let plan = planned(&mut engine, inputs, &provisioning);
    let machine = &problem.machines[host];
    let goes = |step: &&Step| step.kind == StepKind::Remove && step.node.as_deref() == Some(machine.name);
    Present {
        details: node_of_machine(inputs, problem, host),
        fate: fate(&plan, machine),
        exchange: plan.steps.iter().find(goes).map(|step| exchange(&plan, step)),
    }
}

fn exchange(plan: &Plan, removal: &Step) -> Exchange {
    let of_move = |kind| plan.steps.iter().filter(move |it| it.kind == kind && it.move_number == removal.move_number);
    let price = |kind| of_move(kind).map(|step| step.price_per_hour).sum::<HourlyPrice>();
    let others = of_move(StepKind::Remove).filter(|step| *step != removal);
    Exchange {
        pods: removal.pods.clone(),
        together_with: others.map(|step| step.node.clone().unwrap_or_else(|| step.node_claim.clone())).collect(),
        replaced_by: of_move(StepKind::Create).map(node_of_step).collect(),
        saving_per_hour: price(StepKind::Remove) - price(StepKind::Create),
    }
}

/// A posted plan that can be read.
struct Record<'a> {
    object: &'a NodePlan,
    plan: Plan,
}

impl<'a> Record<'a> {
    fn read(object: &'a NodePlan) -> Option<Self> {
        let plan = Plan::deserialize(object.spec.plan.as_ref()?).ok()?;
        Some(Self { object, plan })
    }
}

/// Oldest first. What was too long to be kept whole, or is of another version, is left out.
fn records(objects: &Objects<NodePlan>) -> Vec<Record<'_>> {
    let mut records: Vec<Record<'_>> = objects.iter().filter_map(Record::read).collect();
    records.sort_by(|one, two| {
        let key = |record: &Record<'_>| (record.plan.generated_for.clone(), record.plan.id.clone());
        key(one).cmp(&key(two))
    });
    records
}

fn decisions(records: &[Record<'_>], names: &BTreeSet<&str>) -> Vec<Decision> {
    let mut decisions: Vec<Decision> = Vec::new();
    for record in records {
        let Record { plan, .. } = record;
        let is_meant = |step: &&Step| {
            names.contains(step.node_claim.as_str()) || step.node.as_deref().is_some_and(|node| names.contains(node))
        };
        for step in plan.steps.iter().filter(is_meant) {
            let definition = step.definition.clone();
            decisions.push(Decision { definition, ..decision(record, &step.reason, decided(record, step)) });
        }
        for held in plan.held_back.iter().filter(|held| names.contains(held.node.as_str())) {
            let reason = held.reason();
            match decisions.last_mut() {
                Some(last) if last.decided == Decided::HeldBack && last.reason.code == held.code => {
                    last.until = Some(plan.generated_for.clone());
                    last.plans += 1;
                    last.reason = reason;
                    last.definition.clone_from(&held.definition);
                }
                _ => decisions.push(Decision {
                    definition: held.definition.clone(),
                    ..decision(record, &reason, Decided::HeldBack)
                }),
            }
        }
    }
    decisions
}

/// Every step says something: a node that a plan names can be asked for.
fn decided(record: &Record<'_>, step: &Step) -> Decided {
    let begun = record.object.status.as_ref().is_some_and(|status| status.moves_begun.contains(&step.move_number));
    let details = node_of_step(step);
    match step.kind {
        StepKind::Create => Decided::Created { details, pods: step.pods.clone(), considered: considered(step), begun },
        StepKind::Remove => Decided::Removed { details, exchange: exchange(&record.plan, step), begun },
        StepKind::Hold => Decided::NeedsConfirmation,
        StepKind::Adopt => Decided::Adopted { details, begun },
    }
}

fn decision(record: &Record<'_>, reason: &Reason, decided: Decided) -> Decision {
    let Record { object, plan } = record;
    let annotations = object.metadata.annotations.as_ref();
    Decision {
        at: plan.generated_for.clone(),
        until: None,
        plans: 1,
        plan_id: plan.id.clone(),
        revision: plan.revision.clone(),
        phase: object.status.as_ref().map(|status| status.phase).unwrap_or_default(),
        approved_by: annotations.and_then(|all| all.get(APPROVED_BY)).cloned(),
        reason: reason.clone(),
        definition: None,
        decided,
    }
}
