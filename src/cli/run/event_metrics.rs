//! Events of the controller as metrics.

use crate::adapters::operations::{Metrics, Readiness};
use crate::controller::events::{Event, short};
use crate::core::plan::Revision;
use crate::core::snapshot::doubts::Doubt;
use crate::render::terminal::clean;

pub fn count(metrics: &Metrics, readiness: &Readiness, event: &Event) {
    match event {
        Event::FleetChanged { fleet } => {
            readiness.set(true);
            metrics.fleet(fleet.nodes, fleet.pods_bound, fleet.pods_pending, fleet.price_per_hour.dollars());
        }
        Event::CreatedNodeClaim { node_pool, .. } => metrics.claim_created(node_pool, "provisioned"),
        Event::RegisteredNodeClaim { .. } => metrics.node_registered(),
        Event::DeletedNode { .. } => metrics.node_deleted(),
        Event::DeletedNodeClaim { .. } => metrics.claim_terminated(),
        Event::DisruptingNodes { reason, disrupted, replacements, .. } => {
            let reason = format!("{:?}", reason.code).to_lowercase();
            metrics.decided(if replacements.is_empty() { "delete" } else { "replace" }, &reason);
            for node in disrupted {
                metrics.claim_disrupted(&reason, &node.capacity_type);
            }
        }
        Event::RevisionFound { .. } => {
            readiness.forget_refused();
            metrics.revision("found");
        }
        Event::RevisionRefused { revision, in_force } => {
            refuse(readiness, revision, "has errors", in_force.is_some());
            metrics.revision("refused");
        }
        Event::RevisionUnsigned { revision, in_force, .. } => {
            refuse(readiness, revision, "is not signed by who must have", in_force.is_some());
            metrics.revision("unsigned");
        }
        Event::RemovalHeld { revision, in_force, .. } => {
            refuse(readiness, revision, "would remove every NodePool", in_force.is_some());
            metrics.revision("held");
        }
        Event::OlderRevisionHeld { revision, in_force } => {
            refuse(readiness, revision, "is older than the one that was used last", in_force.is_some());
            metrics.revision("held");
        }
        Event::PlanPosted { .. } => metrics.plan("posted"),
        Event::PlanSuperseded { .. } => metrics.plan("superseded"),
        Event::WaitsForApproval { .. } => metrics.plan("waiting"),
        Event::Approved { .. } => metrics.plan("approved"),
        Event::ApprovalRefused { .. } => metrics.plan("approval-refused"),
        Event::PlanFulfilled { fidelity, .. } => {
            metrics.plan("fulfilled");
            let elsewhere = fidelity.pods_planned.saturating_sub(fidelity.pods_as_planned);
            metrics.fulfilled(u64::from(fidelity.pods_as_planned), u64::from(elsewhere));
        }
        Event::CallFailed { .. } => metrics.call_failed(),
        Event::Doubted { doubts } => {
            // An object that can not be read holds what it speaks for, and nothing else.
            readiness.doubt(doubts.of_kinds());
            let objects = doubts.sentences().filter(|doubt| !matches!(doubt, Doubt::Kind(_)));
            readiness.leaves_out(objects.map(|doubt| clean(doubt.text())).collect());
            metrics.doubts(doubts.kinds.keys().map(String::as_str), doubts.unreadable.len());
            metrics.call_failed();
        }
        Event::SeenWhole => {
            readiness.doubt(None);
            readiness.leaves_out(Vec::new());
            metrics.doubts(std::iter::empty(), 0);
        }
        _ => {}
    }
}

fn refuse(readiness: &Readiness, revision: &Revision, why: &str, has_another: bool) {
    readiness.refuse(format!("revision {} {why}, and is not used", short(&revision.id)), has_another);
}
