//! The `NodePlan` objects: each plan that is posted, and what became of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::approval_rules::ApprovalRules;
use crate::api::keys;
use crate::api::node_plan::{
    Fidelity, HISTORY_PREFIX, NodePlan, NodePlanPhase, NodePlanRevision, NodePlanSpec, NodePlanStatus,
};
use crate::controller::set_aside::SetAside;
use crate::core::lifecycle::conditions;
use crate::core::model::HourlyPrice;
use crate::core::plan::{Plan, StepKind};
use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubts::Unreadable;
use crate::core::snapshot::kinds::Stored;
use crate::definitions::Masks;
use crate::ports::{Cluster, PortError, PortErrorKind};
use crate::render::terminal::clean_lines;

use super::history;

/// How many plans are kept whole that nothing more will be done of.
const HISTORY: usize = 20;
/// An object of the API server may take 1.5 MB with everything; a plan and its text get so much of that.
const PLAN_BYTES_MAX: usize = 768 * 1024;
const TEXT_BYTES_MAX: usize = 192 * 1024;
/// Characters of a plan's identity that name its object.
const NAME_CHARACTERS: usize = 12;
/// Calls that somebody refuses before no more are made.
const REFUSED_MAX: usize = 4;

/// What all plans are remembered by where one can not be written: what refuses one, or is silent of it, does so of the next one.
const NODE_PLANS: &str = "NodePlans";

/// Plans of this process that something may still be done of. Lost with it: a plan is not carried on by another process, its
/// nodes are.
#[derive(Debug, Default)]
pub struct Records {
    open: BTreeMap<String, Open>,
    /// Whose plans these are. Those of others are not ours to give up, to forget, or to take rules from.
    installation: String,
    /// What is not written down.
    pub masks: Masks,
}

/// A plan that something may still be done of.
#[derive(Debug)]
struct Open {
    object: NodePlan,
    written: Written,
}

/// How much of an object is known to be in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Nothing,
    /// Not how far the plan came since.
    Earlier,
    All,
}

/// The object's name.
pub fn name_of(plan_id: &str) -> &str {
    plan_id.get(..NAME_CHARACTERS).unwrap_or(plan_id)
}

/// What a plan's object says of the approval that it needs.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    pub approval: Option<ApprovalRules>,
    pub approval_becomes: Option<ApprovalRules>,
    pub not_approved_by: Vec<String>,
    /// Two people are asked for, and nobody says who wrote the revision: whoever approves may be its author.
    pub has_unknown_authors: bool,
}

impl Records {
    pub fn of_installation(installation: &str) -> Self {
        Self { installation: installation.to_owned(), ..Self::default() }
    }

    /// Writes the object of a plan that is shown now, gives up those that it takes the place of, and forgets the oldest. Gives what somebody
    /// refuses of that, and what gets no answer: the plan is shown all the same, and its object written later.
    pub async fn post<K: Cluster>(
        &mut self,
        (cluster, aside): (&K, &mut SetAside),
        plan: &Plan,
        text: &str,
        snapshot: &Snapshot,
        (lease_transitions, gate): (Option<i64>, Gate),
        now: Timestamp,
    ) -> Result<Vec<PortError>, PortError> {
        let name = name_of(&plan.id);
        let mut refused = Vec::new();
        if !aside.is_aside(NODE_PLANS, now) {
            self.close_earlier(cluster, name, snapshot, now, &mut refused).await?;
        }
        self.open.clear();
        let mut object = object_of(plan, &self.installation, lease_transitions, gate);
        object.spec.plan.iter_mut().for_each(|plan| self.masks.value(plan));
        object.status = Some(NodePlanStatus { text: shown(text), ..NodePlanStatus::default() });
        enter(&mut object, NodePlanPhase::Posted, "", now);
        self.open.insert(name.to_owned(), Open { object, written: Written::Nothing });
        refused.extend(self.write(cluster, aside, name, now).await?);
        Ok(refused)
    }

    /// Gives up the plans before the one of this name, and forgets the oldest.
    async fn close_earlier<K: Cluster>(
        &mut self,
        cluster: &K,
        name: &str,
        snapshot: &Snapshot,
        now: Timestamp,
        refused: &mut Vec<PortError>,
    ) -> Result<(), PortError> {
        let message = format!("plan {name} took its place");
        for older in &snapshot.node_plans {
            let phase = older.status.as_ref().map(|status| status.phase).unwrap_or_default();
            let older_name = older.metadata.name.as_deref().unwrap_or_default();
            if !phase.is_final() && older_name != name {
                let mut older = self.open.remove(older_name).map_or_else(|| older.clone(), |open| open.object);
                let begun = older.status.as_ref().is_some_and(|status| !status.moves_begun.is_empty());
                let phase = if begun { NodePlanPhase::Applied } else { NodePlanPhase::Superseded };
                enter(&mut older, phase, if begun { "" } else { &message }, now);
                unless_refused(cluster.record_plan(&older).await, refused)?;
                if is_silent(refused) {
                    return Ok(());
                }
            }
        }
        for older in self.unreadable(snapshot).filter(|older| older.name != name) {
            let begun = older.phase == format!("{:?}", NodePlanPhase::Applying);
            let phase = if begun { NodePlanPhase::Applied } else { NodePlanPhase::Superseded };
            let mut status = NodePlanStatus::default();
            enter_status(&mut status, 1, phase, if begun { "" } else { &message }, now);
            let object = json!({
                "apiVersion": NodePlan::API_VERSION, "kind": NodePlan::KIND, "metadata": { "name": older.name }, "status": status,
            });
            unless_refused(unless_gone(cluster.write_status(&object).await), refused)?;
            if is_silent(refused) {
                return Ok(());
            }
        }
        let forgotten = history_to_forget(snapshot);
        for page in history::pages_with(snapshot, &forgotten) {
            unless_refused(cluster.record_plan(&page).await, refused)?;
            // What is not written there must not be forgotten here.
            if is_silent(refused) {
                return Ok(());
            }
        }
        for plan in forgotten {
            // There are more of them each time.
            if refused.len() >= REFUSED_MAX || is_silent(refused) {
                break;
            }
            let (name, uid) = (plan.metadata.name.as_deref(), plan.metadata.uid.as_deref());
            let forgotten = cluster.forget_plan(name.unwrap_or_default(), uid.unwrap_or_default()).await;
            unless_refused(unless_another(forgotten), refused)?;
        }
        Ok(())
    }

    /// Plans of this installation, of earlier processes, that can not be read and do not say that nothing more is done of them.
    fn unreadable<'s>(&self, snapshot: &'s Snapshot) -> impl Iterator<Item = &'s Unreadable> {
        let finals = [NodePlanPhase::Applied, NodePlanPhase::Superseded].map(|phase| format!("{phase:?}"));
        let known =
            move |it: &Unreadable| snapshot.node_plans.iter().any(|plan| plan.metadata.name.as_ref() == Some(&it.name));
        snapshot.doubts.unreadable.iter().filter(move |it| {
            let is_anothers = !it.installation.is_empty() && it.installation != self.installation;
            let is_page = it.name.starts_with(HISTORY_PREFIX);
            it.is_plan() && !is_anothers && !is_page && !finals.contains(&it.phase) && !known(it)
        })
    }

    /// Writes the object of an open plan, unless that was refused lately. Gives the refusal: then it is tried again later.
    async fn write<K: Cluster>(
        &mut self,
        cluster: &K,
        aside: &mut SetAside,
        name: &str,
        now: Timestamp,
    ) -> Result<Option<PortError>, PortError> {
        let Some(open) = self.open.get_mut(name) else { return Ok(None) };
        if aside.is_aside(NODE_PLANS, now) {
            return Ok(None);
        }
        match cluster.record_plan(&open.object).await {
            Ok(()) => {
                open.written = Written::All;
                aside.done(NODE_PLANS);
                Ok(None)
            }
            Err(error) if error.is_of_one_object() => {
                aside.refused(NODE_PLANS, now);
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes what could not be written before, if it may be tried again.
    pub async fn write_again<K: Cluster>(
        &mut self,
        (cluster, aside): (&K, &mut SetAside),
        now: Timestamp,
    ) -> Result<Option<PortError>, PortError> {
        let behind = self.open.iter().find(|(_, open)| open.written != Written::All).map(|(name, _)| name.clone());
        match behind {
            Some(name) => self.write(cluster, aside, &name, now).await,
            None => Ok(None),
        }
    }

    /// Whether the plan that was shown last is in the cluster for everybody to see.
    pub fn is_posted(&self) -> bool {
        self.open.values().all(|open| open.written != Written::Nothing)
    }

    /// Whether nothing is left to write.
    pub fn is_written(&self) -> bool {
        self.open.values().all(|open| open.written == Written::All)
    }

    /// Whether the object of a plan does not say in the cluster how far it came.
    pub fn is_behind(&self, plan_id: &str) -> bool {
        self.open.get(name_of(plan_id)).is_some_and(|open| open.written != Written::All)
    }

    /// Notes how far a plan came. One that was not posted by this process, or is final, stays as it is. Gives the refusal, where that can not
    /// be written yet.
    pub async fn enter<K: Cluster>(
        &mut self,
        (cluster, aside): (&K, &mut SetAside),
        plan_id: &str,
        phase: NodePlanPhase,
        message: &str,
        now: Timestamp,
    ) -> Result<Option<PortError>, PortError> {
        let name = name_of(plan_id);
        let Some(open) = self.open.get_mut(name) else { return Ok(None) };
        let before = open.object.status.clone();
        if before.as_ref().is_some_and(|status| status.phase.is_final()) {
            return Ok(None);
        }
        enter(&mut open.object, phase, message, now);
        if open.object.status == before {
            return Ok(None);
        }
        if open.written == Written::All {
            open.written = Written::Earlier;
        }
        self.write(cluster, aside, name, now).await
    }

    /// The object of a plan of this process, as it was written last.
    pub fn written(&self, plan_id: &str) -> Option<&NodePlan> {
        self.open.get(name_of(plan_id)).map(|open| &open.object)
    }

    /// Notes that moves are under way; written with the next phase.
    pub fn begun(&mut self, plan_id: &str, moves: &[u32]) {
        if let Some(open) = self.open.get_mut(name_of(plan_id)) {
            let begun = &mut open.object.status.get_or_insert_default().moves_begun;
            begun.extend_from_slice(moves);
            begun.sort_unstable();
            begun.dedup();
        }
    }

    /// Notes what the cluster made of a plan.
    pub async fn fidelity<K: Cluster>(
        &mut self,
        cluster: &K,
        snapshot: &Snapshot,
        plan_id: &str,
        fidelity: Fidelity,
    ) -> Result<(), PortError> {
        let name = name_of(plan_id);
        let known = snapshot.node_plans.iter().find(|plan| plan.metadata.name.as_deref() == Some(name));
        let open = self.open.get(name).map(|open| &open.object);
        let Some(mut object) = open.or(known).cloned() else { return Ok(()) };
        object.status.get_or_insert_default().fidelity = Some(fidelity);
        cluster.record_plan(&object).await?;
        if let Some(open) = self.open.get_mut(name) {
            *open = Open { object, written: Written::All };
        }
        Ok(())
    }
}

/// Whether the object of a plan can not be read as it is now.
pub fn is_unreadable(snapshot: &Snapshot, plan_id: &str) -> bool {
    snapshot.doubts.unreadable.iter().any(|it| it.is_plan() && it.name == name_of(plan_id))
}

/// Where there is no such plan any more, nothing is to be said of it.
fn unless_gone(outcome: Result<(), PortError>) -> Result<(), PortError> {
    match outcome {
        Err(error) if error.kind == PortErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// A plan that has the name of one that is history by now is not it.
fn unless_another(outcome: Result<(), PortError>) -> Result<(), PortError> {
    match outcome {
        Err(error) if error.kind == PortErrorKind::Conflict => Ok(()),
        outcome => outcome,
    }
}

/// Whether one of these got no answer: each further call might take as long.
fn is_silent(refused: &[PortError]) -> bool {
    refused.iter().any(|error| !error.is_refused())
}

/// A policy may keep what was posted, for those who audit.
fn unless_refused(outcome: Result<(), PortError>, refused: &mut Vec<PortError>) -> Result<(), PortError> {
    match outcome {
        Err(error) if error.is_of_one_object() => {
            refused.push(error);
            Ok(())
        }
        outcome => outcome,
    }
}

/// Sets the phase, with the conditions that `kubectl wait`, kstatus and Argo CD read.
fn enter(plan: &mut NodePlan, phase: NodePlanPhase, message: &str, now: Timestamp) {
    let generation = plan.metadata.generation.unwrap_or(1);
    enter_status(plan.status.get_or_insert_default(), generation, phase, message, now);
}

fn enter_status(status: &mut NodePlanStatus, generation: i64, phase: NodePlanPhase, message: &str, now: Timestamp) {
    status.observed_generation = Some(generation);
    status.phase = phase;
    let message = clean_lines(message);
    message.clone_into(&mut status.message);
    let is = |yes: bool| if yes { "True" } else { "False" };
    let waits = phase == NodePlanPhase::WaitsForApproval;
    for (type_, value) in [
        ("Ready", is(phase.is_final())),
        ("Reconciling", is(!phase.is_final() && !waits)),
        ("Approved", is(!waits && phase != NodePlanPhase::Superseded)),
    ] {
        conditions::write(&mut status.conditions, type_, value, &format!("{phase:?}"), &message, Some(generation), now);
    }
}

/// As it is written first.
pub(super) fn object_of(plan: &Plan, installation: &str, lease_transitions: Option<i64>, gate: Gate) -> NodePlan {
    let count = |kind: StepKind| {
        let steps = plan.steps.iter().filter(|step| step.kind == kind).count();
        i64::try_from(steps).unwrap_or(i64::MAX)
    };
    let mut object = NodePlan::new(
        name_of(&plan.id),
        NodePlanSpec {
            plan_id: plan.id.clone(),
            revision: NodePlanRevision { id: plan.revision.id.clone(), reference: plan.revision.reference.clone() },
            generated_for: plan.generated_for.clone(),
            nodes_created: count(StepKind::Create),
            nodes_removed: count(StepKind::Remove),
            price_change: price_change(plan),
            lease_transitions,
            approval: gate.approval,
            approval_becomes: gate.approval_becomes,
            not_approved_by: gate.not_approved_by,
            plan: plan_value(plan),
        },
    );
    let labels = object.metadata.labels.get_or_insert_default();
    labels.insert(keys::MANAGED_BY.to_owned(), keys::FIELD_MANAGER.to_owned());
    labels.insert(keys::INSTALLATION.to_owned(), installation.to_owned());
    object
}

/// `+$1.2000/h`
pub fn price_change(plan: &Plan) -> String {
    let change = plan.summary.price_per_hour_after - plan.summary.price_per_hour_before;
    format!("{}{change}", if change > HourlyPrice::ZERO { "+" } else { "" })
}

/// The plan as data; where it is too long, first without kinds of reasons, then without what to launch, then not at all.
fn plan_value(plan: &Plan) -> Option<Value> {
    let fits = |value: &Value| value.to_string().len() <= PLAN_BYTES_MAX;
    let mut value = serde_json::to_value(plan).ok()?;
    if !fits(&value) {
        value = serde_json::to_value(plan.without_kinds()).ok()?;
    }
    if !fits(&value) {
        let steps = value.get_mut("steps").and_then(Value::as_array_mut);
        for step in steps.into_iter().flatten() {
            if let Some(step) = step.as_object_mut() {
                step.remove("launch");
            }
        }
    }
    fits(&value).then_some(value)
}

/// Finished plans beyond those that are kept, oldest first.
fn history_to_forget(snapshot: &Snapshot) -> Vec<&NodePlan> {
    let is_final = |plan: &&NodePlan| {
        plan.page_number().is_none() && plan.status.as_ref().is_some_and(|status| status.phase.is_final())
    };
    let mut finished: Vec<&NodePlan> = snapshot.node_plans.iter().filter(is_final).collect();
    finished.sort_by_key(|plan| (plan.metadata.creation_timestamp.clone(), plan.spec.generated_for.clone()));
    let surplus = finished.len().saturating_sub(HISTORY);
    finished.into_iter().take(surplus).collect()
}

/// As much of a plan's text as its object holds.
pub fn shown(text: &str) -> String {
    cut(text, TEXT_BYTES_MAX)
}

/// The beginning of a text, with a line that says how much is missing.
fn cut(text: &str, most_bytes: usize) -> String {
    if text.len() <= most_bytes {
        return text.to_owned();
    }
    let end = text.char_indices().map(|(start, _)| start).take_while(|start| *start <= most_bytes).last().unwrap_or(0);
    let shown = text.get(..end).unwrap_or_default();
    let lines = text.lines().count().saturating_sub(shown.lines().count());
    format!("{shown}\n... {lines} more lines; the whole plan: cutlist plan\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it launches is what is approved; its kinds of reasons the sentences say as well.
    #[test]
    fn a_plan_that_is_too_long_loses_its_kinds_before_its_launches() {
        let step = json!({
            "kind": "create", "move": 1, "nodePool": "default", "nodeClaim": "default-1", "instanceType": "m6i.large", "zone": "a",
            "capacityType": "spot", "pricePerHour": 0.1, "pods": [], "reason": { "code": "PodsPending", "text": "" },
            "preconditions": [], "allocatable": {}, "requested": {}, "launch": { "nodeClaim": {}, "alternatives": [] },
        });
        let kind = ["k".repeat(90)];
        let held = |node: usize| {
            let node = format!("node-{node}");
            json!({ "node": node, "code": "NotCheaper", "text": "nothing would be saved", "kind": kind })
        };
        let plan = |nodes: usize| -> Plan {
            let plan = json!({
                "version": 1, "id": "", "revision": { "id": "abc", "reference": "main" }, "cluster": "demo",
                "generatedFor": "2026-11-20T09:00:00Z", "catalogDate": "2026-11-20", "seed": 0, "packing": "cheapest",
                "steps": [step], "placements": [], "pending": [], "heldBack": (0..nodes).map(held).collect::<Vec<_>>(),
                "budgets": [], "notes": [], "summary": {
                    "nodesBefore": 1, "nodesAfter": 1, "nodesCreated": 0, "nodesReplaced": 0, "nodesRemoved": 0,
                    "pricePerHourBefore": 0.1, "pricePerHourAfter": 0.1, "podsPlaced": 0, "podsPending": 0,
                    "podsDisrupted": 0, "candidates": 0, "candidatesExamined": 0,
                },
            });
            serde_json::from_value(plan).unwrap()
        };
        let kept = |nodes: usize| {
            let value = plan_value(&plan(nodes)).unwrap();
            (value.pointer("/heldBack/0/kind").is_some(), value.pointer("/steps/0/launch").is_some())
        };
        assert_eq!(kept(10), (true, true));
        assert_eq!(kept(6_000), (false, true));
    }
}
