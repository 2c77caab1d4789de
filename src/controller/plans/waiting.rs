//! The plan that waits: its approval is heard, checked, and carried out, or the plan is given up.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;

use crate::api::approval_rules::ApprovalRules;
use crate::api::keys;
use crate::api::node_plan::{NodePlan, NodePlanPhase};
use crate::controller::Controller;
use crate::controller::events::Event;
use crate::controller::events::refusal::MoveRefusal;
use crate::controller::moves::apply::steps_of;
use crate::controller::moves::gate::removal_to_confirm;
use crate::controller::pace::RETRY;
use crate::controller::revisions::inventory::CONFIRMED_BY_PLAN;
use crate::core::plan::{Note, Plan};
use crate::core::snapshot::Snapshot;
use crate::ports::{Clock, Cloud, Cluster, Forge, PortError, Repository, chain};

use super::approvals::{self, Approved, Waiting};
use super::records::{self, Gate};
use super::shown::signature;

impl<R: Repository, K: Cluster, E: Cloud, F: Forge, C: Clock> Controller<R, K, E, F, C> {
    /// Whether an approval is there to be acted on. Not while another revision may be on its way: it would make the plan void.
    pub(in crate::controller) fn is_approved(&self) -> bool {
        self.approvals.approved.is_some() && !self.ports.repository.is_asking()
    }

    /// Somebody may have approved the plan that waits, on its object, or have thought better of it.
    pub(in crate::controller) fn hear_approval(&mut self, snapshot: &Snapshot, now: Timestamp) {
        let Some(waiting) = &self.approvals.waiting else {
            self.approvals.approved = None;
            return;
        };
        if self.approvals.approved.as_ref().is_some_and(|approved| approved.by.is_none()) {
            return;
        }
        // It is held against the object as it was written: until that is known, it is not heard.
        if self.plans.records.is_behind(&waiting.plan.id) {
            return;
        }
        let is_unreadable = records::is_unreadable(snapshot, &waiting.plan.id);
        let object = approvals::object_of(snapshot, &waiting.plan.id).filter(|_| !is_unreadable);
        let Some(object) = object else {
            // It is how people answer: where somebody removed it, or made it say what nobody can read, the plan that there is by then is
            // written once more.
            self.approvals.approved = None;
            if is_unreadable || snapshot.doubts.leave_all_known() {
                self.approvals.waiting = None;
                self.show_anew(now);
            }
            return;
        };
        let by = object.approver().map(str::to_owned);
        if let Some(by) = &by
            && let Some(why) = waiting.refusal(by, &[])
        {
            self.approvals.approved = None;
            let plan_id = waiting.plan.id.clone();
            self.refuse_approval(plan_id, by.clone(), why, now);
            return;
        }
        let failed = self.approvals.approved.as_ref().is_some_and(|approved| approved.failed);
        self.approvals.approved = by.map(|by| Approved { by: Some(by), failed });
    }

    fn show_anew(&mut self, now: Timestamp) {
        if let Some(in_force) = &mut self.revisions.in_force {
            in_force.shown = false;
        }
        self.plans.due_at = now.saturating_add(RETRY).ok();
        self.wake(self.plans.due_at);
    }

    fn refuse_approval(&mut self, plan_id: String, by: String, because: &str, now: Timestamp) {
        let refused = (plan_id, by);
        if !self.approvals.refused.contains(&refused) {
            let (plan_id, by) = refused.clone();
            self.journal.say(now, &Event::ApprovalRefused { plan_id, by, because: because.to_owned() });
            self.approvals.refused.push(refused);
        }
    }

    /// The rules that are in force for the revision: what it asks for more, at once; what it asks for less, when it is approved.
    pub(in crate::controller) fn take_rules(&mut self, snapshot: &Snapshot) {
        let asked = self.options.approval_floor.and(&ApprovalRules::from(&self.settings().approval));
        let before = self.approvals.rules.take().or_else(|| approvals::rules_before(snapshot));
        let rules = before.map_or_else(|| asked.clone(), |before| before.and(&asked));
        self.approvals.looser_rules = (!asked.cover(&rules)).then_some(asked);
        self.approvals.rules = Some(rules);
    }

    /// What the revision asks about less than the rules in force, in words.
    pub(in crate::controller) fn loosened(&self) -> Vec<String> {
        let rules = self.approvals.rules.as_ref().zip(self.approvals.looser_rules.as_ref());
        rules.map(|(rules, looser)| looser.loosened_from(rules)).unwrap_or_default()
    }

    pub(in crate::controller) fn note_of_rules(&self) -> Option<Note> {
        let loosened = self.loosened();
        (!loosened.is_empty()).then(|| approvals::note_of(&loosened))
    }

    /// What is written on a plan's object of the approval it needs.
    pub(in crate::controller) fn gate_of(&self, snapshot: &Snapshot) -> Gate {
        let mut not_approved_by = Vec::new();
        let mut has_unknown_authors = false;
        if let Some(in_force) = &self.revisions.in_force
            && self.approvals.rules.as_ref().is_some_and(|rules| rules.two_people)
        {
            // Another process may have seen more commits of it come.
            let alike = snapshot.node_plans.iter().filter(|plan| plan.spec.revision.id == in_force.revision.id);
            let known = alike.flat_map(|plan| &plan.spec.not_approved_by);
            let all: BTreeSet<&String> = in_force.authors.iter().chain(known).collect();
            not_approved_by.extend(all.into_iter().cloned());
            has_unknown_authors = not_approved_by.is_empty();
        }
        let (approval, approval_becomes) = (self.approvals.rules.clone(), self.approvals.looser_rules.clone());
        Gate { approval, approval_becomes, not_approved_by, has_unknown_authors }
    }

    /// Who approved of the same on the object of a process that ended before it could act on that. Only the first plan asks.
    pub(in crate::controller) fn inherited_approval(
        &mut self,
        snapshot: &Snapshot,
        waiting: &Waiting,
        now: Timestamp,
    ) -> Option<String> {
        if std::mem::replace(&mut self.approvals.heard_earlier_leader, true) {
            return None;
        }
        let object = approvals::of_earlier_leader(snapshot, waiting)?;
        let (by, plan_id) = (object.approver()?.to_owned(), object.spec.plan_id.clone());
        if !approvals::is_as_written(object, &self.revisions.masks()) {
            self.refuse_approval(plan_id, by, "its object is not as it was written for the plan in it", now);
            return None;
        }
        if !approvals::text_is_of_plan(object, &self.revisions.masks()) {
            self.refuse_approval(plan_id, by, "its object was changed after it was posted: status.text", now);
            return None;
        }
        let mut hidden = hidden_variables(&waiting.plan);
        hidden.extend(self.revisions.hidden_variables(&waiting.plan));
        if !hidden.is_empty() {
            let names = hidden.into_iter().collect::<Vec<_>>().join(", ");
            let because =
                format!("this process may have other values than the one before it, of what is shown nowhere: {names}");
            self.refuse_approval(plan_id, by, &because, now);
            return None;
        }
        if let Some(why) = waiting.refusal(&by, &object.spec.not_approved_by) {
            self.refuse_approval(plan_id, by, why, now);
            return None;
        }
        Some(by)
    }

    /// Lets the plan wait, unless an equal one does, and what somebody approved of an earlier leader's go.
    pub(in crate::controller) async fn wait_for_approval(
        &mut self,
        waiting: Waiting,
        inherited: Option<String>,
        is_news: bool,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let is_same =
            self.approvals.waiting.as_ref().is_some_and(|before| {
                signature(&before.plan) == signature(&waiting.plan) && before.rules == waiting.rules
            });
        if is_same && !is_news {
            return Ok(());
        }
        if !is_same {
            self.supersede_waiting(MoveRefusal::OtherPlan, now).await?;
        }
        let Waiting { plan, moves, .. } = &waiting;
        let (name, rules) = (records::name_of(&plan.id), self.loosened());
        let numbers: Vec<String> = moves.iter().map(u32::to_string).collect();
        let mut waits: Vec<String> = Vec::new();
        if !numbers.is_empty() {
            waits.push(format!("move {} waits", numbers.join(", ")));
        }
        waits.extend(rules.iter().map(|rule| format!("{rule} when it is approved")));
        let message = match waiting.has_unknown_authors {
            true => format!("{}; nobody can approve it: {}", waits.join("; "), approvals::UNKNOWN_AUTHORS),
            false => format!("{}; approve with `cutlist approve {name}`", waits.join("; ")),
        };
        self.enter(&plan.id, NodePlanPhase::WaitsForApproval, &message, now).await?;
        let event = Event::WaitsForApproval { plan_id: plan.id.clone(), moves: moves.clone(), rules };
        self.journal.say(now, &event);
        self.approvals.waiting = Some(waiting);
        self.approvals.approved = inherited.map(|by| Approved { by: Some(by), failed: false });
        if let Some(approved) = self.approvals.approved.take() {
            self.carry_out_waiting(approved, now).await?;
        }
        Ok(())
    }

    pub(in crate::controller) async fn supersede_waiting(
        &mut self,
        refusal: MoveRefusal,
        now: Timestamp,
    ) -> Result<(), PortError> {
        self.approvals.approved = None;
        let Some(waiting) = self.approvals.waiting.take() else { return Ok(()) };
        let (plan_id, message) = (waiting.plan.id.clone(), refusal.to_string());
        self.journal.say(now, &Event::PlanSuperseded { plan_id, move_number: None, refusal });
        self.enter(&waiting.plan.id, NodePlanPhase::Superseded, &message, now).await
    }

    /// The same, where something else must not fail for it: the next plan that is posted closes what is open.
    pub(in crate::controller) async fn supersede_for_revision(&mut self, now: Timestamp) {
        if let Err(error) = self.supersede_waiting(MoveRefusal::OtherRevision, now).await {
            self.say_trouble(chain(&error), now);
        }
    }

    /// Carries out what was approved, if it is what was shown, and for the revision in force.
    pub(in crate::controller) async fn carry_out_approved(
        &mut self,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let (Some(waiting), Some(approved)) = (&self.approvals.waiting, self.approvals.approved.take()) else {
            return Ok(());
        };
        let in_force = self.revisions.in_force.as_ref().map(|in_force| &in_force.revision);
        if in_force != Some(&waiting.plan.revision) {
            return self.supersede_waiting(MoveRefusal::OtherRevision, now).await;
        }
        let written = self.plans.records.written(&waiting.plan.id);
        let found = approvals::object_of(snapshot, &waiting.plan.id);
        let changed = match (&approved.by, written, found) {
            (None, ..) => None,
            (Some(_), Some(written), Some(found)) => approvals::difference(written, found),
            (Some(_), ..) => Some("the object"),
        };
        let Some(field) = changed else { return self.carry_out_waiting(approved, now).await };
        let (plan_id, by) = (waiting.plan.id.clone(), approved.by.unwrap_or_default());
        let because = format!("its object was changed after it was posted: {field}");
        self.refuse_approval(plan_id, by, &because, now);
        // Under another name.
        self.show_anew(now);
        self.supersede_waiting(MoveRefusal::ObjectChanged { field }, now).await
    }

    /// An approval outlives a call that fails: what is begun is not begun twice, the rest is tried again.
    async fn carry_out_waiting(&mut self, approved: Approved, now: Timestamp) -> Result<(), PortError> {
        let Some(waiting) = self.approvals.waiting.take() else { return Ok(()) };
        if !approved.failed {
            self.journal.say(now, &Event::Approved { plan_id: waiting.plan.id.clone(), by: approved.by.clone() });
        }
        let done = self.begin_approved(&waiting, now).await;
        if done.is_err() {
            self.approvals.waiting = Some(waiting);
            self.approvals.approved = Some(Approved { failed: true, ..approved });
        }
        done
    }

    async fn begin_approved(&mut self, waiting: &Waiting, now: Timestamp) -> Result<(), PortError> {
        let plan = &waiting.plan;
        let begun = self.plans.records.written(&plan.id).and_then(|object: &NodePlan| object.status.as_ref());
        let begun = begun.map(|status| status.moves_begun.clone()).unwrap_or_default();
        let moves: Vec<u32> = waiting.moves.iter().copied().filter(|number| !begun.contains(number)).collect();
        self.say_computed(plan, &moves, now);
        for error in self.confirm_removals(plan, &moves, now).await? {
            self.say_trouble(chain(&error), now);
        }
        if let Some(rules) = &waiting.rules {
            self.approvals.rules = Some(rules.clone());
            self.approvals.looser_rules = None;
            // Who comes after reads the rules from the plan that was posted last.
            if let Some(in_force) = &mut self.revisions.in_force {
                in_force.shown = false;
            }
            self.plans.due_at = Some(now);
            self.wake(self.plans.due_at);
        }
        if self.carry_out(plan, &moves, &waiting.seen, now).await? {
            self.enter(&plan.id, NodePlanPhase::Applied, "", now).await?;
        }
        Ok(())
    }

    /// Notes on pools whose removal the plan asks about that it was approved: the plans that come after it need not ask again. Gives the
    /// refusals: after those somebody is asked once more.
    async fn confirm_removals(
        &mut self,
        plan: &Plan,
        moves: &[u32],
        now: Timestamp,
    ) -> Result<Vec<PortError>, PortError> {
        let mut notes = self.set_aside.purpose();
        let steps = moves.iter().flat_map(|number| steps_of(plan, *number));
        let pools: BTreeSet<&str> = steps.filter_map(removal_to_confirm).collect();
        let value = format!("{CONFIRMED_BY_PLAN}{}", records::name_of(&plan.id));
        for pool in pools {
            let patch = json!({ "metadata": { "annotations": { keys::REMOVAL_CONFIRMED: value } } });
            let noted = self.ports.cluster.patch_node_pool(pool, &patch);
            notes.attempt(&format!("confirmation on NodePool {pool}"), now, noted).await?;
        }
        Ok(notes.left().refused)
    }
}

/// The variables of classes that the plan launches whose values only the process knows that planned it.
fn hidden_variables(plan: &Plan) -> BTreeSet<&str> {
    let launches = plan.steps.iter().filter_map(|step| step.launch.as_ref());
    launches.flat_map(|launch| &launch.node_class_variables).map(String::as_str).collect()
}
