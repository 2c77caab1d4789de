//! How far a plan came, noted on its object; and what of a plan waits until it is posted and its definitions are applied.

use jiff::Timestamp;

use crate::api::node_plan::NodePlanPhase;
use crate::controller::Controller;
use crate::controller::moves::apply::steps_of;
use crate::core::plan::{Plan, ReasonCode, RemovalMode, Step, StepKind, buffer_of};
use crate::core::snapshot::Snapshot;
use crate::ports::{Clock, Cloud, Cluster, Forge, PortError, Repository, chain};

use super::inputs_seen::InputsSeen;

impl<R: Repository, K: Cluster, E: Cloud, F: Forge, C: Clock> Controller<R, K, E, F, C> {
    /// Notes how far a plan came. Where that can not be written yet it is said, and the plan goes on.
    pub(in crate::controller) async fn enter(
        &mut self,
        plan_id: &str,
        phase: NodePlanPhase,
        message: &str,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let writer = (&self.ports.cluster, &mut self.set_aside);
        let refused = self.plans.records.enter(writer, plan_id, phase, message, now).await?;
        self.say_unwritten(refused, now);
        Ok(())
    }

    /// Writes what could not be written of a plan before.
    pub(super) async fn write_plan_again(&mut self, now: Timestamp) -> Result<(), PortError> {
        let writer = (&self.ports.cluster, &mut self.set_aside);
        let refused = self.plans.records.write_again(writer, now).await?;
        self.say_unwritten(refused, now);
        Ok(())
    }

    /// Says what was refused of objects of plans. What is left to write is tried again when it may be.
    pub(super) fn say_unwritten(&mut self, refused: impl IntoIterator<Item = PortError>, now: Timestamp) {
        refused.into_iter().for_each(|error| self.say_trouble(chain(&error), now));
        if !self.plans.records.is_written() {
            self.plan_when_allowed(now);
        }
    }

    /// What was set aside is tried again by a plan, though nothing else may have changed by then.
    pub(super) fn plan_when_allowed(&mut self, now: Timestamp) {
        self.plans.inputs_seen = InputsSeen::default();
        self.plans.due_at = self.plans.due_at.into_iter().chain(self.set_aside.again_at(now)).min();
        self.wake(self.plans.due_at);
    }

    /// Whether a move of the plan that was shown may be begun now. While its object is not in the cluster nothing is removed. While its
    /// definitions are not, nothing is done that only they ask for: pods that wait get nodes of pools that are there as they are defined,
    /// and what EC2 takes away is replaced.
    pub(super) fn may_begin(&self, plan: &Plan, number: u32, snapshot: &Snapshot) -> bool {
        let Some(in_force) = &self.revisions.in_force else { return false };
        let is_posted = self.plans.records.is_posted();
        if is_posted && in_force.applied {
            return true;
        }
        let waits = |step: &Step| {
            let is_for_pods = step.pods.iter().any(|pod| buffer_of(pod).is_none());
            is_for_pods && matches!(step.reason.code, ReasonCode::PodsPending | ReasonCode::Interrupted)
        };
        steps_of(plan, number).into_iter().all(|step| match step.kind {
            StepKind::Create => waits(step) && (in_force.applied || in_force.stands(&step.node_pool, snapshot)),
            StepKind::Remove => is_posted && matches!(step.mode, RemovalMode::AtOnce { .. }),
            StepKind::Adopt | StepKind::Hold => false,
        })
    }
}
