//! The life of one NodeClaim, as a pure state machine: what is seen of it and the time go in, what to do comes out.
//!
//! ```text
//! created --launch--> Launched --register--> Registered --initialize--> Initialized
//!    \___ 5 min ___________\_____ 15 min _____/                             |
//!                 v                v                                        v deleted
//!               deleted         deleted            taint -> drain -> volumes detach -> terminate -> node goes -> claim goes
//! ```
//!
//! Nothing is remembered between two calls: every state can be told from the objects, so that a restart goes on where
//! the last process stopped. Each list of effects may be cut off after any of them and asked for again.
//! Source: the reference, sections 4.9 and 5.

pub mod claims;
pub mod conditions;
mod consistency;
pub mod consolidatable;
pub mod do_not_disrupt;
pub mod drain;
pub mod early_ends;
pub mod ending;
pub mod eviction_order;
pub mod expiry;
pub mod health;
mod initialization;
pub mod interruption;
pub mod launches;
mod liveness;
mod noted_claims;
pub mod pod_disruption_budgets;
mod registration;
pub mod rollout_failures;
pub mod selectors;
pub mod staying;
pub mod taint_patch;
pub mod termination;
pub mod volumes;

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use serde_json::Value;

use crate::snapshot::Pod;
use cutlist_api::node_claim::NodeClaim;

pub use initialization::{Lacking, has_started, is_ready, ready_since, startup_taints, waits_for};
pub use liveness::{given_up, instance_has_ended};
pub use registration::registered_taints;

/// What is known about one claim at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    pub claim: &'a NodeClaim,
    /// The node of the claim's instance.
    pub node: Option<&'a Node>,
    /// Pods bound to that node.
    pub pods: &'a [&'a Pod],
    /// Persistent volumes that are attached to that node and have to go first: [`volumes::attached`]. Looked at once it is drained.
    pub attached_volumes: &'a [String],
    /// Whether a node waits for this one to be ready before it goes.
    pub is_awaited: bool,
    /// EC2 said that the instance is gone.
    pub instance_gone: bool,
    /// `consolidateAfter` of the claim's pool in seconds; `None` for `Never` and for claims without a pool.
    pub consolidate_after_seconds: Option<u64>,
    pub now: Timestamp,
}

/// What to do, in this order; and when to look again if nothing changes before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reaction {
    pub effects: Vec<Effect>,
    pub look_again_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the cloud for an instance; what it gives is written with [`claims::launched`].
    Launch,
    WriteClaim(Box<NodeClaim>),
    /// Merge patch of the claim's node, made from the node as it was observed.
    PatchNode(Value),
    DeleteClaim(DeletionCause),
    DeleteNode {
        node: String,
    },
    Evict {
        namespace: String,
        name: String,
    },
    DeletePod {
        namespace: String,
        name: String,
        uid: String,
        grace_seconds: u64,
        /// What the pod itself asks for; 0 where it does not say.
        own_grace_seconds: i64,
    },
    TerminateInstance {
        provider_id: String,
    },
    /// The effects before have brought the claim this far.
    Reached(Milestone),
}

/// Stages that people follow in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Milestone {
    Registered {
        node: String,
    },
    Initialized {
        node: String,
    },
    Consolidatable,
    /// The node is smaller than its claim says.
    Inconsistent {
        fault: String,
    },
    Tainted {
        node: String,
    },
    /// When the termination grace period ends, RFC 3339.
    DeadlineSet {
        termination_time: String,
    },
    /// The node is drained and waits for these volumes.
    AwaitsDetachment {
        node: String,
        volumes: Vec<String>,
    },
    NodeDeleted {
        node: String,
    },
    ClaimDeleted,
}

/// Why a claim is given up without a plan having said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionCause {
    LaunchTimeout,
    RegistrationTimeout,
    /// A node waits for it to be ready before it goes, and that does not come.
    InitializationTimeout,
    /// Its instance ended before its node joined.
    InstanceEnded,
    /// Somebody deleted the node.
    NodeDeleted,
}

impl DeletionCause {
    /// The reference's word for it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::LaunchTimeout => "launch_timeout",
            Self::RegistrationTimeout => "registration_timeout",
            Self::InitializationTimeout => "initialization_timeout",
            Self::InstanceEnded => "instance_ended",
            Self::NodeDeleted => "node_deleted",
        }
    }

    /// Whether the node did not become ready in its time, and not because somebody wanted it gone.
    pub fn is_failure(self) -> bool {
        match self {
            Self::LaunchTimeout | Self::RegistrationTimeout | Self::InitializationTimeout | Self::InstanceEnded => true,
            Self::NodeDeleted => false,
        }
    }
}

/// What to do about a claim now. Nothing when it is where it should be.
pub fn react(observation: &Observation<'_>) -> Reaction {
    if observation.claim.metadata.deletion_timestamp.is_some() {
        return termination::react(observation);
    }
    if let Some(cause) = given_up(observation.claim, observation.node, observation.is_awaited, observation.now) {
        return Reaction { effects: vec![Effect::DeleteClaim(cause)], look_again_at: None };
    }
    let claim = observation.claim;
    if !claim.is_true(conditions::LAUNCHED) {
        return Reaction { effects: vec![Effect::Launch], look_again_at: liveness::launch_deadline(claim) };
    }
    if !claim.is_true(conditions::REGISTERED) {
        return registration::react(observation);
    }
    if !claim.is_true(conditions::INITIALIZED) {
        return initialization::react(observation);
    }
    consolidatable::react(observation)
}

/// `moment` and so many seconds, or the end of time.
fn seconds_after(moment: Timestamp, seconds: u64) -> Timestamp {
    let duration = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    moment.saturating_add(duration).unwrap_or(Timestamp::MAX)
}
