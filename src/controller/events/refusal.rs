//! Why a part of a plan is not carried out any more.

use crate::core::plan::ReasonCode;

/// What changed between the plan and its application.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoveRefusal {
    #[error("NodePool {name} changed since")]
    NodePoolChanged { name: String },
    #[error("node {node} is gone")]
    NodeGone { node: String },
    #[error("node {node} is being removed already")]
    NodeBeingRemoved { node: String },
    #[error("node {node} holds {}", other_pods(*planned, *found))]
    NodeHoldsOtherPods { node: String, planned: usize, found: usize },
    #[error("node {node} is well again")]
    NodeWell { node: String },
    #[error("there is a NodeClaim {name} from another plan")]
    NodeClaimExists { name: String },
    #[error("the planned NodeClaim {name} can not be read")]
    NodeClaimUnreadable { name: String },
    #[error("{because}")]
    InDoubt { because: String },
    #[error("another plan took its place")]
    OtherPlan,
    #[error("another revision is in force")]
    OtherRevision,
    #[error("its object was changed after it was posted: {field}")]
    ObjectChanged { field: &'static str },
    #[error("{code:?} is not for this version to carry out")]
    NotSupported { code: ReasonCode },
}

fn other_pods(planned: usize, found: usize) -> String {
    if planned == found {
        return "other pods that must move than were planned for".to_owned();
    }
    format!("{found} pods that must move, not {planned}")
}
