//! Why a rollout does not go on.

use std::fmt;

use crate::lifecycle::rollout_failures::Failures;
use crate::plan::{ReasonCode, kind};

/// Why a rollout does not replace one more node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutObstacle {
    Halted {
        node_pool: String,
        failures: Failures,
    },
    /// The canary has not joined.
    CanaryComes {
        node_claim: String,
    },
    /// This plan launches the canary, in the place of this node.
    CanaryReplaces {
        node: String,
    },
}

impl RolloutObstacle {
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::Halted { .. } => ReasonCode::RolloutHalted,
            Self::CanaryComes { .. } | Self::CanaryReplaces { .. } => ReasonCode::WaitsForCanary,
        }
    }

    pub fn kind(&self) -> Vec<String> {
        match self {
            Self::Halted { node_pool, .. } => kind(["RolloutHalted", node_pool]),
            Self::CanaryComes { .. } => kind(["CanaryComes"]),
            Self::CanaryReplaces { .. } => kind(["CanaryReplaces"]),
        }
    }
}

impl fmt::Display for RolloutObstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Halted { node_pool, failures } => {
                write!(out, "the rollout of NodePool {node_pool} is halted: {}", failures.text())
            }
            Self::CanaryComes { node_claim } => {
                write!(out, "it waits for the canary {node_claim}, which is not ready yet")
            }
            Self::CanaryReplaces { node } => write!(out, "it waits for the canary, which replaces {node}"),
        }
    }
}
