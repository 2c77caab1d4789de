//! Why the definitions do not let a node go to save money.

use std::fmt;

use crate::model::time::duration_text;
use crate::plan::{ReasonCode, kind};
use cutlist_api::duration::NillableDuration;

/// Why the definitions do not let a node go to save money now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotConsolidatable {
    StaticPool {
        node_pool: String,
    },
    UndefinedPool {
        node_pool: String,
    },
    /// `consolidateAfter: Never`
    Never,
    /// `consolidateAfter` has not passed; `None`: not known since when it is quiet.
    NotQuiet {
        quiet_seconds: Option<i64>,
        left_seconds: i64,
        after: NillableDuration,
    },
    /// `consolidationPolicy: WhenEmpty`
    OnlyWhenEmpty,
}

impl NotConsolidatable {
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::StaticPool { .. } | Self::Never | Self::OnlyWhenEmpty => ReasonCode::ConsolidationDisabled,
            Self::UndefinedPool { .. } => ReasonCode::UnknownNodePool,
            Self::NotQuiet { .. } => ReasonCode::ConsolidateAfterNotElapsed,
        }
    }

    pub fn kind(&self) -> Vec<String> {
        match self {
            Self::StaticPool { node_pool } => kind(["StaticPool", node_pool]),
            Self::UndefinedPool { node_pool } => kind(["UndefinedPool", node_pool]),
            Self::Never => kind(["Never"]),
            Self::NotQuiet { quiet_seconds: Some(_), .. } => kind(["NotQuiet"]),
            Self::NotQuiet { quiet_seconds: None, .. } => kind(["NotKnownToBeQuiet"]),
            Self::OnlyWhenEmpty => kind(["OnlyWhenEmpty"]),
        }
    }
}

impl fmt::Display for NotConsolidatable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaticPool { node_pool } => {
                write!(out, "NodePool {node_pool} is static (spec.replicas): its nodes are not consolidated")
            }
            Self::UndefinedPool { node_pool } => write!(out, "NodePool {node_pool} is not in the definitions"),
            Self::Never => out.write_str("consolidateAfter: Never"),
            Self::NotQuiet { quiet_seconds: Some(quiet), left_seconds, after } => {
                let (quiet, left) = (duration_text(*quiet), duration_text(*left_seconds));
                write!(out, "a pod came or went {quiet} ago; consolidateAfter {after} ends in {left}")
            }
            Self::NotQuiet { quiet_seconds: None, after, .. } => {
                write!(out, "not known since when it is quiet (consolidateAfter {after})")
            }
            Self::OnlyWhenEmpty => out.write_str("consolidationPolicy: WhenEmpty, and it is not empty"),
        }
    }
}
