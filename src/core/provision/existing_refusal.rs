//! Why no node that exists takes one more pod: data, which the report says in words.

use std::fmt;

use crate::scheduler::Refusal;

/// Why no node that exists takes one more pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExistingRefusal {
    NoNode,
    /// Nodes had room, and the topology spread over this label kept pods from them.
    Spread {
        key: String,
    },
    /// What most of the nodes that were asked say, without figures.
    Most {
        refusal: Refusal,
        /// Whether only nodes were asked that the pod may run on, by their labels and taints, since there are others.
        of_allowed: bool,
    },
}

impl fmt::Display for ExistingRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNode => out.write_str("there is no node"),
            Self::Spread { key } => {
                write!(out, "nodes with room would have been against the topology spread over {key}")
            }
            Self::Most { refusal, of_allowed } => {
                out.write_str(&in_short(refusal, if *of_allowed { "allowed node" } else { "node" }))
            }
        }
    }
}

/// `which`: what the nodes are called of which it is said.
pub fn in_short(refusal: &Refusal, which: &str) -> String {
    match refusal {
        Refusal::Resource { name, .. } => format!("no {which} has room ({name})"),
        Refusal::Taint(taint) => format!("no {which} without taint {taint} has room"),
        Refusal::Requirement { key } => format!("no {which} has the {key} asked for"),
        Refusal::HostPort => format!("the host port is taken on every {which}"),
        Refusal::Volume => format!("no {which} can reach or attach the volumes"),
        Refusal::Devices => format!("no {which} has free the devices that its resource claims ask for"),
        Refusal::Spread { key } => format!("no {which} satisfies the topology spread over {key}"),
        Refusal::Affinity { key } => format!("no {which} satisfies the pod affinity over {key}"),
        Refusal::AntiAffinity { key } => format!("no {which} satisfies the pod anti-affinity over {key}"),
        Refusal::Offering | Refusal::EmptyPool | Refusal::Limit { .. } | Refusal::MinValues { .. } => {
            format!("no {which} has room")
        }
    }
}
