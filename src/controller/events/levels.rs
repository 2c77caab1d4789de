//! How much what the controller says matters.

use super::Event;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Told on the objects concerned; no line of a log or screen, of which there would be thousands.
    Debug,
    Info,
    Warn,
    Error,
}

impl Event {
    pub fn level(&self) -> Level {
        match self {
            Self::CallFailed { .. }
            | Self::Doubted { .. }
            | Self::LaunchFailed { .. }
            | Self::RepositoryUnreachable { .. } => Level::Error,
            Self::RevisionRefused { .. }
            | Self::RevisionUnsigned { .. }
            | Self::RemovalHeld { .. }
            | Self::ApprovalRefused { .. }
            | Self::OlderRevisionHeld { .. }
            | Self::OfAnotherCluster { .. }
            | Self::PlanSuperseded { .. }
            | Self::StepNotSupported { .. }
            | Self::InsufficientCapacity { .. }
            | Self::GaveUp { .. }
            | Self::NodeRefused { .. }
            | Self::RolloutHalted { .. }
            | Self::InstanceEnded { .. }
            | Self::LaunchesPaused { .. }
            | Self::EvictionBlocked { .. }
            | Self::InconsistentNodeClaim { .. }
            | Self::CommandFailed { .. }
            | Self::DisruptionTakenBack { .. }
            | Self::Interrupted { .. }
            | Self::NodeClassNotReady { .. }
            | Self::InstanceHeld { .. }
            | Self::AdoptedInstance { .. }
            | Self::InstanceVanished { .. }
            | Self::Stopped { .. } => Level::Warn,
            Self::ConsolidationRejected { .. }
            | Self::AwaitingReplacement { .. }
            | Self::TerminatingNode { .. }
            | Self::EvictedPod { .. }
            | Self::DeletedPod { .. } => Level::Debug,
            _ => Level::Info,
        }
    }
}
