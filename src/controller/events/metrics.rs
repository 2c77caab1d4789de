//! What events are for those who operate the controller: figures, and whether it is ready.

use super::{Event, short};
use crate::api::node_plan::Fidelity;
use crate::core::plan::Revision;
use crate::core::snapshot::Doubts;
use crate::core::snapshot::doubts::Doubt;
use crate::ports::operations::{Meter, ReadyState};
use crate::render::terminal::clean;

/// Counts what an event says. One that is no figure is named here as well, so that a new event is not forgotten.
pub fn count(meter: &impl Meter, ready: &impl ReadyState, event: &Event) {
    match event {
        Event::FleetChanged { fleet } => {
            ready.sees();
            meter.fleet(fleet.nodes, fleet.pods_bound, fleet.pods_pending, fleet.price_per_hour.dollars());
        }
        Event::CreatedNodeClaim { node_pool, .. } => meter.claim_created(node_pool, "provisioned"),
        Event::RegisteredNodeClaim { .. } => meter.node_registered(),
        Event::DeletedNode { .. } => meter.node_deleted(),
        Event::DeletedNodeClaim { .. } => meter.claim_terminated(),
        Event::DisruptingNodes { reason, disrupted, replacements, .. } => {
            let reason = format!("{:?}", reason.code).to_lowercase();
            meter.decided(if replacements.is_empty() { "delete" } else { "replace" }, &reason);
            for node in disrupted {
                meter.claim_disrupted(&reason, &node.capacity_type);
            }
        }
        Event::RevisionFound { .. }
        | Event::RevisionRefused { .. }
        | Event::RevisionUnsigned { .. }
        | Event::RemovalHeld { .. }
        | Event::OlderRevisionHeld { .. }
        | Event::OfAnotherCluster { .. } => count_revision(meter, ready, event),
        Event::PlanPosted { .. } => meter.plan("posted"),
        Event::PlanSuperseded { .. } => meter.plan("superseded"),
        Event::WaitsForApproval { .. } => meter.plan("waiting"),
        Event::Approved { .. } => meter.plan("approved"),
        Event::ApprovalRefused { .. } => meter.plan("approval-refused"),
        Event::PlanFulfilled { fidelity, .. } => count_fulfilled(meter, fidelity),
        Event::CallFailed { .. } => meter.call_failed(),
        Event::Doubted { doubts } => count_doubts(meter, ready, doubts),
        Event::SeenWhole => {
            ready.doubt(None);
            ready.leaves_out(Vec::new());
            meter.doubts(std::iter::empty(), 0);
        }
        Event::Linted { .. }
        | Event::RepositoryUnreachable { .. }
        | Event::RepositoryBack
        | Event::DefinitionApplied { .. }
        | Event::DefinitionPruned { .. }
        | Event::PruneWaits { .. }
        | Event::MoveBegun { .. }
        | Event::StepNotSupported { .. }
        | Event::FoundProvisionablePods { .. }
        | Event::ComputedNodeClaims { .. }
        | Event::LaunchedNodeClaim { .. }
        | Event::InitializedNodeClaim { .. }
        | Event::AdoptedNode { .. }
        | Event::TaintedNode { .. }
        | Event::ConsolidationRejected { .. }
        | Event::AwaitingReplacement { .. }
        | Event::TerminatingNode { .. }
        | Event::AnnotatedNodeClaim { .. }
        | Event::EvictedPod { .. }
        | Event::DeletedPod { .. }
        | Event::InconsistentNodeClaim { .. }
        | Event::AwaitingDetachment { .. }
        | Event::InsufficientCapacity { .. }
        | Event::LaunchFailed { .. }
        | Event::GaveUp { .. }
        | Event::NodeRefused { .. }
        | Event::RolloutHalted { .. }
        | Event::InstanceEnded { .. }
        | Event::LaunchesPaused { .. }
        | Event::EvictionBlocked { .. }
        | Event::CommandFailed { .. }
        | Event::DisruptionTakenBack { .. }
        | Event::NodeClassNotReady { .. }
        | Event::InstanceHeld { .. }
        | Event::AdoptedInstance { .. }
        | Event::GarbageCollected { .. }
        | Event::Interrupted { .. }
        | Event::InstanceVanished { .. }
        | Event::Stopped { .. } => {}
    }
}

fn count_doubts(meter: &impl Meter, ready: &impl ReadyState, doubts: &Doubts) {
    // An object that can not be read holds what it speaks for, and nothing else.
    ready.doubt(doubts.of_kinds());
    let objects = doubts.sentences().filter(|doubt| !matches!(doubt, Doubt::Kind(_)));
    ready.leaves_out(objects.map(|doubt| clean(doubt.text())).collect());
    meter.doubts(doubts.kinds.keys().map(String::as_str), doubts.unreadable.len());
    meter.call_failed();
}

fn count_fulfilled(meter: &impl Meter, fidelity: &Fidelity) {
    meter.plan("fulfilled");
    let elsewhere = fidelity.pods_planned.saturating_sub(fidelity.pods_as_planned);
    meter.fulfilled(u64::from(fidelity.pods_as_planned), u64::from(elsewhere));
}

fn count_revision(meter: &impl Meter, ready: &impl ReadyState, event: &Event) {
    match event {
        Event::RevisionFound { .. } => {
            ready.forget_refused();
            meter.revision("found");
        }
        Event::RevisionRefused { revision, in_force } => {
            refuse(ready, revision, "has errors", in_force.is_some());
            meter.revision("refused");
        }
        Event::RevisionUnsigned { revision, in_force, .. } => {
            refuse(ready, revision, "is not signed by who must have", in_force.is_some());
            meter.revision("unsigned");
        }
        Event::RemovalHeld { revision, in_force, .. } => {
            refuse(ready, revision, "would remove every NodePool", in_force.is_some());
            meter.revision("held");
        }
        Event::OlderRevisionHeld { revision, in_force } => {
            refuse(ready, revision, "is older than the one that was used last", in_force.is_some());
            meter.revision("held");
        }
        Event::OfAnotherCluster { revision, in_force, .. } => {
            refuse(ready, revision, "is for another cluster", in_force.is_some());
            meter.revision("held");
        }
        _ => {}
    }
}

fn refuse(ready: &impl ReadyState, revision: &Revision, why: &str, has_another: bool) {
    ready.refuse(format!("revision {} {why}, and is not used", short(&revision.id)), has_another);
}
