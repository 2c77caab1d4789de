//! Why a node is bought. Data until the plan is made.

use std::fmt;

use crate::inputs::Inputs;
use crate::model::words::pods_text;
use crate::plan::{Reason, ReasonCode};
use crate::provision::existing_refusal::ExistingRefusal;
use crate::provision::{Provisioning, Purchase};
use crate::snapshot::pod::is_of_buffer;

/// Why provisioning buys a node. One that is bought for pods of nodes that go has the [cause](crate::disrupt::removal_cause) of
/// these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreationCause {
    /// Its static pool has fewer nodes than it wants.
    StaticCapacity { node_pool: String, there: usize, wanted: usize },
    /// Pods need it.
    Pods { pods: PodsInNeed, because: Option<ExistingRefusal> },
}

/// Pods that need a node; of those of buffers only where there are no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodsInNeed {
    Pending(usize),
    /// All of them run on nodes that are on their way out.
    Displaced(usize),
    OfBuffers(usize),
}

impl CreationCause {
    /// As the plan says it.
    pub fn reason(&self) -> Reason {
        let code = match self {
            Self::StaticCapacity { .. } => ReasonCode::StaticCapacity,
            Self::Pods { .. } => ReasonCode::PodsPending,
        };
        Reason::new(code, self.to_string())
    }
}

impl PodsInNeed {
    pub fn of(purchase: &Purchase, inputs: &Inputs<'_>, provisioning: &Provisioning) -> Self {
        let pods = &purchase.pods;
        let displaced = pods.iter().filter(|pod| provisioning.backlog.displaced.contains(pod)).count();
        let buffered = pods.iter().filter(|pod| is_of_buffer(&inputs.snapshot.pods[**pod])).count();
        match pods.len() - buffered {
            0 => Self::OfBuffers(buffered),
            count if displaced == count => Self::Displaced(count),
            count => Self::Pending(count),
        }
    }
}

impl fmt::Display for CreationCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StaticCapacity { node_pool, there, wanted } => {
                write!(out, "NodePool {node_pool} has {there} of {wanted} replicas")
            }
            Self::Pods { pods, because } => {
                write!(out, "{pods}: ")?;
                because.as_ref().map_or(Ok(()), |because| write!(out, "{because}"))
            }
        }
    }
}

impl fmt::Display for PodsInNeed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Pending(count) => write!(out, "{} pending", pods_text(count)),
            Self::Displaced(count) => write!(out, "{} from nodes that are being removed", pods_text(count)),
            Self::OfBuffers(count) => write!(out, "room for {} of buffers", pods_text(count)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Refusal;

    #[test]
    fn a_cause_is_said_in_words_only_in_the_plan() {
        let refusal = Refusal::Resource { name: "cpu".to_owned(), requested: 0, available: 0 };
        let because = Some(ExistingRefusal::Most { refusal, of_allowed: true });
        let cause = CreationCause::Pods { pods: PodsInNeed::Pending(3), because };
        assert_eq!(
            cause.reason(),
            Reason::new(ReasonCode::PodsPending, "3 pods pending: no allowed node has room (cpu)".to_owned())
        );
        let because = Some(ExistingRefusal::NoNode);
        let cause = CreationCause::Pods { pods: PodsInNeed::OfBuffers(1), because };
        assert_eq!(cause.reason().text, "room for 1 pod of buffers: there is no node");
        let cause = CreationCause::StaticCapacity { node_pool: "a".to_owned(), there: 1, wanted: 3 };
        assert_eq!(
            cause.reason(),
            Reason::new(ReasonCode::StaticCapacity, "NodePool a has 1 of 3 replicas".to_owned())
        );
    }
}
