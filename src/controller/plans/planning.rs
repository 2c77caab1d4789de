//! When to plan, and the way of a plan: post, definitions, gate, apply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};

use crate::api::duration::NillableDuration;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_plan::NodePlanPhase;
use crate::api::settings::Settings;
use crate::controller::annotations::of_definitions::{self, Origin, Seen};
use crate::controller::claims::effects::{place_of, unless_gone};
use crate::controller::claims::opening::{self, Nomination};
use crate::controller::claims::refused_nodes;
use crate::controller::events::Event;
use crate::controller::events::refusal::MoveRefusal;
use crate::controller::moves::apply::{self, ApplyError};
use crate::controller::moves::gate::{Gated, gate};
use crate::controller::observed::look::Eyes;
use crate::controller::observed::view::{View, name_of};
use crate::controller::pace::{POLL, SEARCH_UNDER_WAY};
use crate::controller::revisions::inputs::{self, Beside};
use crate::controller::revisions::inventory;
use crate::controller::revisions::statuses;
use crate::controller::set_aside::Left;
use crate::controller::{Controller, Mode};
use crate::core::check::judged;
use crate::core::disrupt::drift;
use crate::core::inputs::{Inputs, Policy};
use crate::core::plan::{HeldBack, Plan, ReasonCode, StepKind, buffer_of};
use crate::core::snapshot::{Pod, Snapshot};
use crate::ports::{Clock, Cloud, Cluster, Forge, PortError, PortErrorKind, Repository, chain};
use crate::render::{self, plan::Style};

use super::approvals::Waiting;
use super::beginning;
use super::inputs_seen::InputsSeen;

/// NodeClaims that are written at the same time.
const CLAIMS_TOGETHER_MAX: usize = 32;
/// Pods that are told to kube-scheduler at the same time.
const PLACES_TOGETHER_MAX: usize = 32;
/// After so many, what is left of a plan waits for the next one, which begins with others: each refusal may take half a minute.
const BEGINNINGS_REFUSED_MAX: usize = 3;
/// Of so many, what comes after them waits for the next plan: nothing depends on it, and each refusal may take half a minute.
const PLACES_REFUSED_MAX: usize = 4;

/// With so many pods in the cluster a search for what could be saved takes longer than the plan for pods that wait: they come first, and the
/// search at the next look.
const PODS_MANY: usize = 2_000;

/// What definitions that are not applied yet are remembered by, where one of them is refused.
const DEFINITIONS: &str = "definitions";

/// A plan on its way through the gate.
struct Passing {
    plan: Plan,
    gated: Gated,
    /// Moves that no gate holds, and that are not begun yet all the same.
    are_left: bool,
    waiting: Option<Waiting>,
    inherited: Option<String>,
    /// The pools of the cluster as they were.
    seen: Seen,
}

impl<R: Repository, K: Cluster, E: Cloud, F: Forge, C: Clock> Controller<R, K, E, F, C> {
    /// Whether a revision, a batch of pods, a candidate or the poll asks for a plan now.
    pub(in crate::controller) fn is_plan_due(&mut self, view: &View<'_>, now: Timestamp) -> bool {
        if self.revisions.in_force.is_none() {
            return false;
        }
        let pods = view.provisionable_pods(now);
        let placed = opening::pods_of_closed(view);
        if !placed.is_empty() {
            let have_place = pods.iter().filter(|(_, pod)| placed.contains(pod.key().as_str()));
            self.plans.batch.know(have_place.map(|(uid, _)| *uid));
        }
        self.plans.batch.see(&pods.keys().copied().collect(), now);
        self.hear_approval(view.snapshot, now);
        let batch_closes_at = self.plans.batch.closes_at(&self.settings().batch);
        let batch_closed = batch_closes_at.is_some_and(|moment| now >= moment);
        let poll_due = self.plans.due_at.is_none_or(|due| now >= due);
        // One that could not be carried out is tried again when a plan is due.
        let approval_due =
            self.is_approved() && self.approvals.approved.as_ref().is_some_and(|approved| !approved.failed);
        if !(batch_closed || poll_due || approval_due) || !view.is_synced() {
            // What is due already waits for a change: for nodes that are on their way.
            let to_come = [batch_closes_at, self.plans.due_at].into_iter().flatten().filter(|moment| *moment > now);
            self.wake(to_come.min());
            return false;
        }
        if batch_closed && let Some(duration) = self.plans.batch.close(now) {
            self.say_found(&pods, duration, now);
        }
        true
    }

    pub(in crate::controller) async fn plan_now(
        &mut self,
        shared: Arc<Snapshot>,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let snapshot = shared.as_ref();
        let Some(in_force) = &self.revisions.in_force else { return Ok(()) };
        let (is_new_revision, is_shown) = (!in_force.applied, in_force.shown);
        self.plans.due_at = now.saturating_add(POLL).ok();
        self.wake(self.plans.due_at);
        self.write_plan_again(now).await?;
        if self.is_approved() {
            return Box::pin(self.carry_out_approved(snapshot, now)).await;
        }
        self.take_rules(snapshot);
        if !is_new_revision && self.plans.inputs_seen.is_same(&shared, &self.claims, now) {
            self.settled = self.plans.inputs_seen.settled;
            return Ok(());
        }
        let view = View::new(snapshot);
        let searched_lately =
            self.plans.searched_at.is_some_and(|searched_at| now.duration_since(searched_at) < SEARCH_UNDER_WAY);
        let pods_wait = !view.provisionable_pods(now).is_empty();
        let moves_under_way = searched_lately && (pods_wait || !view.is_at_rest());
        let pods_first =
            !moves_under_way && !self.plans.search_follows && pods_wait && snapshot.pods.len() >= PODS_MANY;
        self.plans.search_follows = pods_first;
        let Some(plan) = self.decide(snapshot, moves_under_way || pods_first, now) else { return Ok(()) };
        if pods_first {
            self.plans.due_at = Some(now);
            self.wake(self.plans.due_at);
        } else if !moves_under_way {
            self.plans.searched_at = Some(now);
        }
        self.settled = is_settled(&plan, &view) && !is_new_revision && !pods_first;
        // What is to be done may fail, and is then planned again.
        let is_to_be_done = plan.steps.iter().any(|step| !apply::is_held(step));
        self.plans.inputs_seen = if is_to_be_done || pods_first {
            InputsSeen::default()
        } else {
            InputsSeen::new(&shared, &self.claims, self.settled, now)
        };
        // Where the definitions can not be applied the same plan is made again and again, and is no news.
        let is_news = self.plans.shown.is_news(&plan, snapshot) || !is_shown || self.garbage.is_news();
        if is_news {
            self.post(&plan, snapshot, now).await?;
        }
        let left = self.use_definitions(snapshot, is_new_revision, now).await?;
        self.apply_again(&left, now);
        self.say_changed_definitions(snapshot, is_new_revision, now);
        if self.options.mode == Mode::Observe || !plan.is_sound() {
            return Ok(());
        }
        if let Some((known, in_force)) = self.catalog.as_ref().zip(self.revisions.in_force.as_ref()) {
            let facts = |name: &str| known.classes.get(name).map(|(_, facts)| facts);
            let when = (now, is_new_revision);
            let (cluster, aside) = (&self.ports.cluster, &mut self.set_aside);
            let written = statuses::write(cluster, snapshot, &plan, in_force, facts, aside, when).await;
            match written {
                // Nothing depends on what a pool says of itself.
                Err(error) if error.is_of_one_object() => self.say_trouble(chain(&error), now),
                result => result?,
            }
        }
        self.note_refused_nodes(snapshot, &plan, now).await?;
        let places = opening::places(&plan, &view, now);
        let mut claims = opening::claims_with_further_pods(&plan, &view);
        claims.extend(opening::claims_with_other_destinations(&plan, &view));
        let passing = self.passing(plan, snapshot, now);
        // What is written from here on should not make the cluster copy what nobody looks at any more.
        drop(view);
        drop(shared);
        // New nodes take longer than being told of one that is there.
        Box::pin(self.pass_gate(passing, is_news || is_new_revision, now)).await?;
        self.note_places(&claims, now).await?;
        self.say_places(&places, now).await
    }

    /// What was applied should be what is there.
    fn say_changed_definitions(&mut self, snapshot: &Snapshot, is_new_revision: bool, now: Timestamp) {
        let applies = self.options.mode == Mode::Enforce && self.options.applies_definitions && !is_new_revision;
        let Some(in_force) = self.revisions.in_force.as_ref().filter(|_| applies) else { return };
        let changed = of_definitions::changed_by_others(snapshot, &in_force.definitions);
        changed.into_iter().for_each(|sentence| self.say_trouble(sentence, now));
    }

    /// Before anything of the plan is done: an empty node may go, and what it was is then known from its pool alone.
    async fn note_refused_nodes(&mut self, snapshot: &Snapshot, plan: &Plan, now: Timestamp) -> Result<(), PortError> {
        let Some(in_force) = &self.revisions.in_force else { return Ok(()) };
        let (cluster, journal) = (&self.ports.cluster, &mut self.journal);
        match refused_nodes::note(cluster, snapshot, plan, in_force, &mut self.set_aside, (now, journal)).await {
            // While the node stands, the plan tells by it.
            Err(error) if error.is_of_one_object() => {
                self.say_trouble(chain(&error), now);
                Ok(())
            }
            result => result,
        }
    }

    /// On claims on their way, and on those that go. One that is gone meanwhile takes no pods, and has none.
    async fn note_places(&mut self, claims: &[NodeClaim], now: Timestamp) -> Result<(), PortError> {
        let mut refused = 0;
        for together in claims.chunks(PLACES_TOGETHER_MAX) {
            let noted = together.iter().map(|claim| self.ports.cluster.update_node_claim(claim));
            for result in join_all(noted).await {
                match result {
                    // Noted by a plan for the claim as it is now.
                    Err(error) if error.kind == PortErrorKind::Conflict => {
                        self.plans.due_at = Some(now);
                        self.wake(self.plans.due_at);
                    }
                    // Then the pods are told later, or kube-scheduler chooses.
                    Err(error) if error.is_of_one_object() => {
                        refused += 1;
                        self.say_trouble(chain(&error), now);
                    }
                    result => unless_gone(result)?,
                }
            }
            if refused >= PLACES_REFUSED_MAX {
                break;
            }
        }
        Ok(())
    }

    /// Says on NodeClaims that they drifted, before a plan is made that goes by since when. `true` when something was written. What is
    /// refused of one keeps nobody from planning for the others.
    pub(in crate::controller) async fn mark_drift(
        &mut self,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> Result<bool, PortError> {
        let claims = self.with_inputs(snapshot, false, now, drift::to_mark).unwrap_or_default();
        let object = |claim: &NodeClaim| format!("drift of NodeClaim {}", name_of(claim));
        let (mut refused, mut wrote) = (Vec::new(), false);
        for together in claims.chunks(CLAIMS_TOGETHER_MAX) {
            let mut due: Vec<&NodeClaim> = together.iter().collect();
            due.retain(|claim| self.set_aside.may_try(&object(claim), now));
            let marked = due.iter().map(|claim| self.ports.cluster.update_node_claim(claim));
            for (claim, result) in due.iter().zip(join_all(marked).await) {
                match result {
                    // Somebody changed it meanwhile: the next look sees how it is now.
                    Err(error) if error.kind == PortErrorKind::Conflict => {}
                    // It is gone, or its status is not found though it is there: then it is not asked for at each look.
                    Err(error) if error.kind == PortErrorKind::NotFound => {
                        self.set_aside.refused(&object(claim), now);
                        continue;
                    }
                    Err(error) if error.is_of_one_object() => {
                        self.set_aside.refused(&object(claim), now);
                        refused.push(error);
                        continue;
                    }
                    result => result?,
                }
                wrote = true;
            }
        }
        self.try_again(&refused, now);
        Ok(wrote)
    }

    /// Tells kube-scheduler where pods should land, several at a time. A pod of which it can not be said is left alone for a while.
    async fn say_places(&mut self, places: &[Nomination], now: Timestamp) -> Result<(), PortError> {
        let object = |place: &Nomination| place_of(&format!("{}/{}", place.namespace, place.pod));
        let mut refused = 0;
        for together in places.chunks(PLACES_TOGETHER_MAX) {
            let mut due: Vec<&Nomination> = together.iter().collect();
            due.retain(|place| !self.set_aside.is_aside(&object(place), now));
            let cluster = &self.ports.cluster;
            let told = due.iter().map(|place| cluster.nominate(&place.namespace, &place.pod, &place.node));
            for (place, result) in due.iter().zip(join_all(told).await) {
                match result {
                    // Then it chooses by itself.
                    Err(error) if error.kind == PortErrorKind::Denied => {
                        self.say_trouble(chain(&error), now);
                        return Ok(());
                    }
                    Err(error) if error.is_of_one_object() => {
                        refused += 1;
                        self.set_aside.refused(&object(place), now);
                        self.say_trouble(chain(&error), now);
                    }
                    result => result?,
                }
            }
            if refused >= PLACES_REFUSED_MAX {
                break;
            }
        }
        Ok(())
    }

    fn say_found(&mut self, pods: &BTreeMap<&str, &Pod>, duration: SignedDuration, now: Timestamp) {
        if pods.is_empty() {
            return;
        }
        let mut names: Vec<String> = pods.values().map(|pod| pod.key()).collect();
        names.sort();
        let duration = format!("{}ms", duration.as_millis());
        self.journal.say(now, &Event::FoundProvisionablePods { pods: names, duration });
    }

    fn decide(&self, snapshot: &Snapshot, moves_under_way: bool, now: Timestamp) -> Option<Plan> {
        let plan = self.with_inputs(snapshot, moves_under_way, now, |inputs| judged(inputs, &*self.options.planner))?;
        Some(self.revisions.masks_of(&plan).numbered(plan))
    }

    /// What a plan is made of, by the definitions in force; `None` before there are any.
    pub(in crate::controller) fn with_inputs<T>(
        &self,
        snapshot: &Snapshot,
        moves_under_way: bool,
        now: Timestamp,
        use_them: impl FnOnce(&Inputs<'_>) -> T,
    ) -> Option<T> {
        let in_force = self.revisions.in_force.as_ref()?;
        let known = self.catalog.as_ref()?;
        let counted = statuses::counted(snapshot, |name| known.classes.get(name).map(|(_, facts)| facts));
        let snapshot = counted.as_ref().unwrap_or(snapshot);
        let definitions = &in_force.definitions;
        let settings = &definitions.settings;
        let notes = in_force
            .notes
            .iter()
            .cloned()
            .chain(in_force.of_others.notes(&self.options.installation))
            .chain(definitions.of_variables(snapshot))
            .chain(self.garbage.notes(&known.prices))
            .chain(known.notes.iter().cloned())
            .chain(self.revisions.note_of_trouble())
            .chain(self.note_of_rules());
        let beside = Beside {
            revision: &in_force.revision,
            prefix: "",
            snapshot,
            catalog: &known.catalog,
            policy: Policy {
                zones_with_subnet: known.zones_with_subnet(self.options.mode),
                free_addresses: known.free_addresses(),
                vcpu_quotas: known.vcpu_quotas.clone(),
                denied: known.denied.clone(),
                owned_pools: inventory::managed_pools(snapshot).into_iter().collect(),
                refused: self.claims.refused().to_vec(),
                instances: self.garbage.live.known(now),
                moves_under_way,
                removals_refused: beginning::refused_lately(snapshot, &self.set_aside),
                confirm_pool_removal_above: self.confirmed_above(settings),
                ..Policy::of(settings)
            },
            seed: self.options.seed,
            now,
            notes: notes.collect(),
        };
        Some(inputs::with_inputs(definitions, beside, use_them))
    }

    /// Of the rules that are in force, which the revision may not have loosened itself.
    fn confirmed_above(&self, settings: &Settings) -> Vec<String> {
        let of_settings = || vec![settings.approval.confirm_pool_removal_above.clone()];
        self.approvals.rules.as_ref().map_or_else(of_settings, |rules| rules.confirm_pool_removal_above.clone())
    }

    /// What of the plan may go, what waits, and who has approved it already.
    fn passing(&mut self, plan: Plan, snapshot: &Snapshot, now: Timestamp) -> Passing {
        let mut gated = gate(&plan, &self.approvals.rules.clone().unwrap_or_default());
        let open = gated.open.len();
        gated.open.retain(|number| self.may_begin(&plan, *number, snapshot));
        let are_left = gated.open.len() < open;
        let seen = of_definitions::seen(snapshot);
        let waiting = Waiting::of(&plan, &gated, self.gate_of(snapshot), &seen);
        let inherited = waiting.as_ref().and_then(|waiting| self.inherited_approval(snapshot, waiting, now));
        self.approvals.heard_earlier_leader = true;
        Passing { plan, gated, are_left, waiting, inherited, seen }
    }

    /// Shows the plan where people review, before anything of it is done.
    async fn post(&mut self, plan: &Plan, snapshot: &Snapshot, now: Timestamp) -> Result<(), PortError> {
        let masks = self.revisions.masks_of(plan);
        let text = masks.text(&render::plan::text(plan, Style::Plain));
        self.plans.records.masks = masks;
        let gate = self.gate_of(snapshot);
        let (writer, transitions) = ((&self.ports.cluster, &mut self.set_aside), self.options.lease_transitions);
        let refused = self.plans.records.post(writer, plan, &text, snapshot, (transitions, gate), now).await?;
        self.say_unwritten(refused, now);
        let masks = &self.plans.records.masks;
        self.ports.forge.post_plan(plan, || masks.text(&render::plan::markdown(plan))).await?;
        self.plans.shown.shown(plan, snapshot);
        self.garbage.shown(now);
        if let Some(in_force) = &mut self.revisions.in_force {
            in_force.shown = true;
        }
        let removed = plan.steps.iter().filter(|step| step.kind == StepKind::Remove);
        let removed = removed.filter_map(|step| step.node.as_deref());
        let held: BTreeSet<&str> = plan.held_back.iter().map(|held| held.node.as_str()).chain(removed).collect();
        let of_held = |claim: &NodeClaim| {
            let node = claim.status.as_ref()?.node_name.as_deref().filter(|node| held.contains(node))?;
            Some((node.to_owned(), name_of(claim).to_owned()))
        };
        let node_claims = snapshot.node_claims.iter().filter_map(of_held).collect();
        let unreadable_annotations = unreadable_annotations(snapshot);
        self.journal.say(now, &Event::PlanPosted { plan: Box::new(plan.clone()), node_claims, unreadable_annotations });
        Ok(())
    }

    /// Brings the definitions of the revision in force into the cluster, once, and then removes those that left Git. Gives what was left:
    /// where one of them is refused, pods wait for no other.
    async fn use_definitions(
        &mut self,
        snapshot: &Snapshot,
        is_new_revision: bool,
        now: Timestamp,
    ) -> Result<Left, PortError> {
        let Some(in_force) = &mut self.revisions.in_force else { return Ok(Left::default()) };
        if self.options.mode == Mode::Observe || !self.options.applies_definitions {
            in_force.applied = true;
            return Ok(Left::default());
        }
        let (cluster, journal) = (&self.ports.cluster, &mut self.journal);
        if is_new_revision {
            let (revision, committed_at) = (&in_force.revision, in_force.committed_at);
            let origin = Origin { revision, committed_at, installation: &self.options.installation };
            let applied = inventory::apply(cluster, &in_force.definitions, origin, snapshot, now, journal);
            let mut applying = self.set_aside.purpose().of_commits();
            let name = format!("{DEFINITIONS} of {}", in_force.revision.id);
            if applying.attempt(&name, now, applied).await?.is_none() {
                let left = applying.left();
                return Ok(in_force.refuse(left, |error| journal.say(now, &Event::CallFailed { error })));
            }
            (in_force.applied, in_force.refused) = (true, None);
            // Once more with the definitions in place: what they allow should not wait for the poll.
            self.plans.due_at = Some(now);
            self.wake_at = Some(now);
        }
        let remembered = (&mut self.revisions.prunes_said, &mut self.set_aside);
        inventory::prune(cluster, &in_force.definitions, snapshot, remembered, now, journal).await
    }

    /// Says what could not be applied or removed. It is tried again when it may be.
    fn apply_again(&mut self, left: &Left, now: Timestamp) {
        left.refused.iter().for_each(|error| self.say_trouble(chain(error), now));
        if !left.refused.is_empty() || left.untried {
            self.plan_when_allowed(now);
        }
    }

    async fn pass_gate(&mut self, passing: Passing, is_news: bool, now: Timestamp) -> Result<(), PortError> {
        let Passing { plan, gated, are_left, waiting, inherited, seen } = passing;
        self.say_computed(&plan, &gated.open, now);
        let is_complete = self.carry_out(&plan, &gated.open, &seen, now).await? && !are_left;
        if let Some(waiting) = waiting {
            return self.wait_for_approval(waiting, inherited, is_news, now).await;
        }
        if self.approvals.waiting.is_some() && !is_news {
            // When it comes again it is shown again, or nobody could approve it.
            self.plans.shown.carried_out();
        }
        self.supersede_waiting(MoveRefusal::OtherPlan, now).await?;
        if is_complete {
            self.enter(&plan.id, NodePlanPhase::Applied, "", now).await?;
        }
        Ok(())
    }

    pub(in crate::controller) fn say_computed(&mut self, plan: &Plan, moves: &[u32], now: Timestamp) {
        let for_pods = plan.steps.iter().filter(|step| {
            step.kind == StepKind::Create
                && moves.contains(&step.move_number)
                && step.reason.code == ReasonCode::PodsPending
        });
        let (node_claims, pods) = for_pods.fold((0, 0), |(claims, pods), step| (claims + 1, pods + step.pods.len()));
        if node_claims > 0 {
            self.journal.say(now, &Event::ComputedNodeClaims { node_claims, pods });
        }
    }

    /// Begins the moves in order, those that only create a few dozen at a time. The first whose preconditions are not met ends the plan: it
    /// is superseded by the next one. One that somebody forbids is left, and the plan fails when the others were begun. Whether nothing was
    /// left because of a request to stop.
    pub(in crate::controller) async fn carry_out(
        &mut self,
        plan: &Plan,
        moves: &[u32],
        seen: &Seen,
        now: Timestamp,
    ) -> Result<bool, PortError> {
        let moves: Vec<u32> = moves
            .iter()
            .copied()
            .filter(|number| !apply::steps_of(plan, *number).into_iter().any(apply::is_held))
            .collect();
        let (mut begun, mut forbidden, mut refused) = (Vec::new(), None, 0);
        for (together, beginning) in beginning::in_turn(plan, &moves, &self.set_aside) {
            // Lets a request to stop be heard between two groups.
            tokio::task::yield_now().await;
            if self.shutdown.is_requested() {
                self.say_stopped(plan, &moves, &begun, now);
                return Ok(false);
            }
            if beginning.is_aside(&self.set_aside, now) || refused >= BEGINNINGS_REFUSED_MAX {
                forbidden.get_or_insert_with(|| not_again_yet(together));
                continue;
            }
            if begun.is_empty() {
                self.enter(&plan.id, NodePlanPhase::Applying, "", now).await?;
            }
            let eyes = Eyes { installation: &self.options.installation, definitions: self.revisions.definitions() };
            let begun_now =
                apply::begin(&self.ports.cluster, plan, together, (eyes, seen), now, &mut self.journal).await;
            beginning.remember(&begun_now, &mut self.set_aside, now);
            match begun_now {
                Ok(untold) => {
                    untold.iter().for_each(|error| self.say_trouble(chain(error), now));
                    self.begun(plan, together, now);
                    begun.extend_from_slice(together);
                }
                Err(ApplyError::Port(error) | ApplyError::NotCreated { first: error, .. })
                    if error.is_of_one_object() =>
                {
                    self.say_trouble(chain(&error), now);
                    refused += 1;
                    forbidden.get_or_insert(error);
                }
                Err(ApplyError::Port(error) | ApplyError::NotCreated { first: error, .. }) => return Err(error),
                Err(ApplyError::Refused { move_number, refusal }) => {
                    let message = format!("move {move_number}: {refusal}");
                    let phase = if begun.is_empty() { NodePlanPhase::Superseded } else { NodePlanPhase::Applied };
                    self.enter(&plan.id, phase, &message, now).await?;
                    if let Some(event) = apply::rejected(plan, move_number, &refusal) {
                        self.journal.say(now, &event);
                    }
                    let (plan_id, move_number) = (plan.id.clone(), Some(move_number));
                    self.journal.say(now, &Event::PlanSuperseded { plan_id, move_number, refusal });
                    self.plans.shown.carried_out();
                    self.plans.due_at = Some(now);
                    self.wake(self.plans.due_at);
                    return Ok(true);
                }
            }
        }
        forbidden.map_or(Ok(true), Err)
    }

    fn begun(&mut self, plan: &Plan, moves: &[u32], now: Timestamp) {
        self.plans.shown.carried_out();
        self.plans.records.begun(&plan.id, moves);
        self.plans.expectations.expect(plan, moves, now);
        for number in moves {
            self.journal.say(now, &Event::MoveBegun { plan_id: plan.id.clone(), move_number: *number });
        }
    }

    fn say_stopped(&mut self, plan: &Plan, moves: &[u32], begun: &[u32], now: Timestamp) {
        let names = |are_begun: bool| {
            let moves = moves.iter().filter(|number| begun.contains(number) == are_begun);
            let steps = moves.flat_map(|number| apply::steps_of(plan, *number));
            steps.map(|step| format!("{:?} {}", step.kind, step.node_claim).to_lowercase()).collect()
        };
        let event = Event::Stopped { plan_id: plan.id.clone(), done: names(true), not_done: names(false) };
        self.journal.say(now, &event);
    }
}

/// The plan fails for what was left of it, and is made again.
fn not_again_yet(moves: &[u32]) -> PortError {
    let numbers: Vec<String> = moves.iter().map(u32::to_string).collect();
    let operation = format!("begin move {}: it was refused a moment ago, or others were", numbers.join(", "));
    PortError { operation, kind: PortErrorKind::Refused, source: None }
}

/// By pod, what is wrong with its annotation `karpenter.sh/do-not-disrupt`, which then protects nothing.
fn unreadable_annotations(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let fault = |pod: &Pod| {
        let text = pod.metadata.annotations.get(keys::DO_NOT_DISRUPT).filter(|text| *text != "true")?;
        match text.parse::<NillableDuration>().ok().and_then(|duration| duration.seconds()) {
            None => Some(format!("failed to parse {:?} as a duration", text.chars().take(40).collect::<String>())),
            Some(0) => Some(format!("duration {text:?} must be positive")),
            Some(_) => None,
        }
    };
    snapshot.pods.iter().filter_map(|pod| Some((pod.key(), fault(pod)?))).collect()
}

/// Whether nothing is under way, and only a change from outside would change the plan.
fn is_settled(plan: &Plan, view: &View<'_>) -> bool {
    let passes_with_time = |code: ReasonCode| {
        matches!(
            code,
            ReasonCode::ConsolidateAfterNotElapsed
                | ReasonCode::NotInitialized
                | ReasonCode::BeingDeleted
                | ReasonCode::NominatedForPods
                | ReasonCode::WaitsForOtherMove
        )
    };
    let acts = plan.steps.iter().any(|step| !apply::is_held(step));
    // Pods of a CapacityBuffer are placed for as long as it is there, and nobody binds them.
    let is_for_buffer = |pod: &str| buffer_of(pod).is_some();
    let binds = plan.placements.iter().any(|placement| !is_for_buffer(&placement.pod));
    let holds_a_buffer = |held: &HeldBack| {
        let mut placements = plan.placements.iter();
        held.code == ReasonCode::NominatedForPods
            && placements.any(|placement| placement.node == held.node && is_for_buffer(&placement.pod))
    };
    !acts
        && !binds
        && view.is_at_rest()
        && !plan.held_back.iter().any(|held| passes_with_time(held.code) && !holds_a_buffer(held))
}
