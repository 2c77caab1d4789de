//! Why a pod does not go somewhere: data, so that the report can rank it and say what would help.

use crate::plan::ReasonCode;

use super::quota::LimitScope;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// A taint, as `key=value:Effect`.
    Taint(String),
    /// A label on which pod and node can not agree.
    Requirement {
        key: String,
    },
    /// The resource that is short, on the roomiest place that is otherwise fine.
    Resource {
        name: String,
        requested: i64,
        available: i64,
    },
    HostPort,
    Volume,
    /// The node has not the devices asked for, or has given them away; of a new one nobody knows.
    Devices,
    Spread {
        key: String,
    },
    Affinity {
        key: String,
    },
    AntiAffinity {
        key: String,
    },
    /// The pool offers no type and zone for what is left after all requirements.
    Offering,
    /// The pool itself matches no instance type.
    EmptyPool,
    /// The smallest node that would do exceeds the limit of this resource, of the pool or of the cluster.
    Limit {
        scope: LimitScope,
        resource: String,
        limit: i64,
        used: i64,
        needed: i64,
    },
    MinValues {
        key: String,
    },
}

impl Refusal {
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::Taint(_) => ReasonCode::TaintNotTolerated,
            Self::Requirement { .. } => ReasonCode::RequirementsConflict,
            Self::Resource { .. } => ReasonCode::NoInstanceTypeFits,
            Self::HostPort => ReasonCode::HostPortConflict,
            Self::Volume => ReasonCode::VolumeUnsatisfied,
            Self::Devices => ReasonCode::DevicesUnsatisfied,
            Self::Spread { .. } => ReasonCode::TopologySpreadUnsatisfied,
            Self::Affinity { .. } => ReasonCode::AffinityUnsatisfied,
            Self::AntiAffinity { .. } => ReasonCode::AntiAffinityUnsatisfied,
            Self::Offering | Self::MinValues { .. } => ReasonCode::NoOffering,
            Self::EmptyPool => ReasonCode::NodePoolHasNoInstanceType,
            Self::Limit { scope: LimitScope::EarlyEnds(_), .. } => ReasonCode::InstancesEndEarly,
            Self::Limit { .. } => ReasonCode::LimitReached,
        }
    }

    /// Without its figures: what nodes that refuse a pod for the same reason have in common.
    #[must_use]
    pub fn kind(&self) -> Self {
        match self {
            Self::Resource { name, .. } => Self::Resource { name: name.clone(), requested: 0, available: 0 },
            other => other.clone(),
        }
    }

    /// Smaller is nearer to fitting: a limit is one number away, a taint says that the pool is for someone else.
    pub fn distance(&self) -> u8 {
        match self {
            Self::Limit { .. } => 0,
            Self::HostPort | Self::Spread { .. } | Self::AntiAffinity { .. } | Self::Affinity { .. } | Self::Volume => {
                1
            }
            Self::Offering | Self::MinValues { .. } => 2,
            Self::Resource { .. } => 3,
            Self::Requirement { .. } => 4,
            Self::Taint(_) => 5,
            Self::EmptyPool | Self::Devices => 6,
        }
    }
}
