//! Why a pod does not go somewhere: data, so that the report can rank it and say what would help.

use crate::plan::ReasonCode;
use crate::plan::change::key_of_taint;

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

    /// The same in words: the code, and what it is about.
    pub fn kind_in_words(&self) -> Vec<String> {
        let code = self.code().word();
        let about = match self {
            Self::Taint(taint) => Some(key_of_taint(taint)),
            Self::Requirement { key }
            | Self::Spread { key }
            | Self::Affinity { key }
            | Self::AntiAffinity { key }
            | Self::MinValues { key } => Some(key.as_str()),
            Self::Resource { name, .. } => Some(name.as_str()),
            Self::Limit { scope: LimitScope::Reservation(id), .. } => Some(id.as_str()),
            Self::Limit { scope: LimitScope::Cluster, resource, .. } => {
                return vec![code, "cutlist.yaml".to_owned(), resource.clone()];
            }
            Self::Limit { scope: LimitScope::NodePool, resource, .. } => Some(resource.as_str()),
            Self::Limit { scope: LimitScope::EarlyEnds(_), .. }
            | Self::HostPort
            | Self::Volume
            | Self::Devices
            | Self::Offering
            | Self::EmptyPool => None,
        };
        std::iter::once(code).chain(about.map(str::to_owned)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_about_different_labels_are_two_kinds() {
        let requirement = |key: &str| Refusal::Requirement { key: key.to_owned() }.kind_in_words();
        assert_ne!(requirement("kubernetes.io/arch"), requirement("topology.k8s.aws/zone-id"));
        let taint = |value: &str| Refusal::Taint(format!("example.com/rack={value}:NoSchedule")).kind_in_words();
        assert_eq!(taint("17"), taint("18"));
        assert_eq!(taint("17"), ["TaintNotTolerated", "example.com/rack"]);
        let limit = |scope, limit| {
            Refusal::Limit { scope, resource: "cpu".to_owned(), limit, used: 1, needed: 1 }.kind_in_words()
        };
        assert_eq!(limit(LimitScope::NodePool, 1), limit(LimitScope::NodePool, 2));
        assert_ne!(limit(LimitScope::NodePool, 1), limit(LimitScope::Cluster, 1));
    }
}
