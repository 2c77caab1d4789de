//! Why a node goes, or would go. Data until the plan is made.

use std::fmt;

use crate::inputs::Inputs;
use crate::lifecycle::expiry::{Expiry, expired};
use crate::lifecycle::health::Fault;
use crate::model::time::duration_text;
use crate::plan::{Reason, ReasonCode, kind};
use crate::snapshot::nodes::Machine;
use cutlist_api::duration::NillableDuration;
use cutlist_api::node_pool::NodePool;

use super::consolidate::saving::Saving;
use super::drift::{Drift, drift, is_from_definitions};
use super::obstacle::NodeObstacle;

#[derive(Clone, Debug, PartialEq)]
pub enum RemovalCause {
    /// EC2 takes its instance away.
    Interrupted {
        reason: String,
        message: String,
    },
    Unhealthy(Fault),
    Expired(Expiry),
    Drifted(Drift),
    PoolRemoved {
        node_pool: String,
    },
    /// Its static pool has more nodes than it wants.
    Surplus {
        node_pool: String,
        there: usize,
        wanted: usize,
    },
    /// Nothing ran on it for so long; `None`: nobody knows since when.
    Empty {
        quiet_seconds: Option<i64>,
        after: Option<NillableDuration>,
    },
    Underutilized(Saving),
    /// No pool is left, and somebody must say that this is meant.
    Unconfirmed(Box<RemovalCause>),
    /// It does not wait, although its pods find no place.
    WithoutPlaces {
        cause: Box<RemovalCause>,
        obstacle: Box<NodeObstacle>,
    },
}

impl RemovalCause {
    /// Why a machine has to go whether or not that saves money; `None` when it is what it should be.
    pub fn of(inputs: &Inputs<'_>, machine: &Machine<'_>, pool: Option<&NodePool>) -> Option<Self> {
        let Some(pool) = pool else { return pool_removed(inputs, machine) };
        // First: drift waits for a budget, and no budget holds back what has expired.
        let expired = expired(inputs, machine).map(Self::Expired);
        expired.or_else(|| drift(inputs, machine, pool).map(Self::Drifted))
    }

    pub fn code(&self) -> ReasonCode {
        match self {
            Self::Interrupted { .. } => ReasonCode::Interrupted,
            Self::Unhealthy(_) => ReasonCode::Unhealthy,
            Self::Expired(_) => ReasonCode::Expired,
            Self::Drifted(_) => ReasonCode::Drifted,
            Self::PoolRemoved { .. } => ReasonCode::NodePoolRemoved,
            Self::Surplus { .. } => ReasonCode::StaticCapacity,
            Self::Empty { .. } => ReasonCode::Empty,
            Self::Underutilized(_) => ReasonCode::Underutilized,
            Self::Unconfirmed(_) => ReasonCode::ConfirmationNeeded,
            Self::WithoutPlaces { cause, .. } => cause.code(),
        }
    }

    /// As the plan says it.
    pub fn reason(&self) -> Reason {
        let code = self.code();
        // Of drift the code does not say what has drifted.
        let kind = if code == ReasonCode::Drifted { self.kind() } else { Vec::new() };
        Reason { code, text: self.to_string(), kind }
    }

    /// What it has in common with those of other nodes: words, and names of NodePools, labels and conditions.
    pub fn kind(&self) -> Vec<String> {
        match self {
            Self::Interrupted { reason, .. } => kind(["Interrupted", reason]),
            Self::Unhealthy(fault) => kind(["Unhealthy", fault.policy.condition]),
            Self::Expired(_) => kind(["Expired"]),
            Self::Drifted(drift) => drift.kind(),
            Self::PoolRemoved { node_pool } => kind(["NodePoolRemoved", node_pool]),
            Self::Surplus { node_pool, .. } => kind(["Surplus", node_pool]),
            Self::Empty { .. } => kind(["Empty"]),
            Self::Underutilized(_) => kind(["Underutilized"]),
            Self::Unconfirmed(cause) => cause.kind(),
            Self::WithoutPlaces { cause, obstacle } => [cause.kind(), obstacle.kind()].concat(),
        }
    }

    /// Whether nodes go for this because the definitions changed.
    pub fn is_rollout(&self) -> bool {
        matches!(self, Self::Drifted(_) | Self::PoolRemoved { .. })
    }
}

impl fmt::Display for RemovalCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted { reason, message } => write!(out, "{reason}: {message}"),
            Self::Unhealthy(fault) => write!(out, "{fault}"),
            Self::Expired(expiry) => write!(out, "{expiry}"),
            Self::Drifted(drift) => write!(out, "{drift}"),
            Self::PoolRemoved { node_pool } => write!(out, "NodePool {node_pool} was removed from the definitions"),
            Self::Surplus { node_pool, there, wanted } => {
                write!(out, "NodePool {node_pool} has {there} nodes for {wanted} replicas")
            }
            Self::Empty { quiet_seconds, after } => {
                let quiet = quiet_seconds.map_or_else(|| "some time".to_owned(), duration_text);
                write!(out, "Empty for {quiet}")?;
                after.as_ref().map_or(Ok(()), |after| write!(out, " (consolidateAfter {after})"))
            }
            Self::Underutilized(saving) => write!(out, "{saving}"),
            Self::Unconfirmed(cause) => write!(out, "{cause}; removing every NodePool needs a confirmation"),
            Self::WithoutPlaces { cause, obstacle } => write!(out, "{cause}; {obstacle}"),
        }
    }
}

/// The pool was applied from the definitions and is not there any more.
fn pool_removed(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<RemovalCause> {
    let name = machine.node_pool()?;
    let applied = inputs.snapshot.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(name));
    let owned = applied.is_some_and(is_from_definitions) || inputs.policy.owned_pools.contains(name);
    owned.then(|| RemovalCause::PoolRemoved { node_pool: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disrupt::drift::DriftCause;
    use crate::disrupt::obstacle::NodeObstacle;

    #[test]
    fn what_is_added_to_a_cause_keeps_what_it_is() {
        let drift = Drift { cause: DriftCause::Template, message: "its hash differs".to_owned() };
        let drifted = RemovalCause::Drifted(drift);
        assert_eq!(drifted.reason().text, "NodePoolDrifted: its hash differs");
        let obstacle = Box::new(NodeObstacle::RoomOnItsWay);
        let without = RemovalCause::WithoutPlaces { cause: Box::new(drifted.clone()), obstacle: obstacle.clone() };
        assert_eq!(without.reason().code, ReasonCode::Drifted);
        assert_eq!(without.to_string(), format!("{drifted}; {obstacle}"));
        assert_eq!(
            (drifted.reason().kind, without.reason().name()),
            (kind(["NodePoolDrifted"]), "NodePoolDrifted".into())
        );
        let empty = RemovalCause::Empty { quiet_seconds: Some(90), after: Some("30s".parse().unwrap()) };
        assert_eq!(empty.to_string(), "Empty for 90s (consolidateAfter 30s)");
        assert_eq!(RemovalCause::Unconfirmed(Box::new(empty)).code(), ReasonCode::ConfirmationNeeded);
    }
}
