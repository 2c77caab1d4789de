//! Why a node of a static pool stays.

use std::fmt;

use crate::model::words::part_of;
use crate::plan::{ReasonCode, kind};
use crate::scheduler::quota::LimitScope;

/// Why a node of a static pool is not replaced by another one of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StaticObstacle {
    SurplusGoesFirst,
    /// A limit has no room for both at a time.
    Limit {
        scope: LimitScope,
        resource: String,
    },
    InstancesEndEarly {
        why: String,
    },
    NothingOffered {
        why: String,
    },
    /// So many of its pods fit neither on other nodes nor on the new one.
    NoRoom {
        pods: usize,
        of: usize,
    },
}

impl StaticObstacle {
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::SurplusGoesFirst => ReasonCode::WaitsForOtherMove,
            Self::Limit { .. } => ReasonCode::LimitReached,
            Self::InstancesEndEarly { .. } => ReasonCode::InstancesEndEarly,
            Self::NothingOffered { .. } => ReasonCode::NoOffering,
            Self::NoRoom { .. } => ReasonCode::PodsWouldNotFit,
        }
    }

    pub fn kind(&self) -> Vec<String> {
        match self {
            Self::SurplusGoesFirst => kind(["SurplusGoesFirst"]),
            Self::Limit { resource, .. } => kind(["LimitOfStaticPool", resource]),
            Self::InstancesEndEarly { .. } => kind(["InstancesEndEarly"]),
            Self::NothingOffered { .. } => kind(["NothingOffered"]),
            Self::NoRoom { .. } => kind(["NoRoomInStaticPool"]),
        }
    }
}

impl fmt::Display for StaticObstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SurplusGoesFirst => out.write_str("its pool has more nodes than replicas: those go first"),
            Self::Limit { scope: LimitScope::Reservation(id), .. } => {
                write!(out, "capacity reservation {id} has no instance left for a replacement beside it")
            }
            Self::Limit { resource, .. } => {
                write!(out, "limits.{resource} leaves no room for a replacement beside it")
            }
            Self::InstancesEndEarly { why } | Self::NothingOffered { why } => out.write_str(why),
            Self::NoRoom { pods, of } => {
                write!(out, "{} would fit neither on other nodes nor on a new one of its pool", part_of(*pods, *of))
            }
        }
    }
}
