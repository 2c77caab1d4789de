//! Reasons of the Kubernetes Events that the controller writes. Those that Karpenter has too mean what Karpenter's mean.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One word, one meaning, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum EventReason {
    /// On Pod: a plan buys the node that it should run on.
    Nominated,
    /// On Pod: no NodePool can have a node for it, and why.
    FailedScheduling,
    /// On Pod: its annotation `karpenter.sh/do-not-disrupt` says nothing that is understood, and does not count.
    InvalidDoNotDisruptAnnotation,
    /// On Pod: it was evicted because its node goes.
    Evicted,
    /// On Pod: it was deleted because the termination grace period of its node ends, whatever protects it.
    Disrupted,
    /// On Node and Pod: a PodDisruptionBudget or a webhook does not let the pod be evicted.
    FailedDraining,
    /// On Node and NodeClaim: another NodePool took it over.
    Adopted,
    /// On NodeClaim: EC2 has none of what was asked for.
    InsufficientCapacityError,
    /// On NodeClaim: EC2 refused the launch.
    LaunchFailed,
    /// On NodeClaim: its node joined.
    Registered,
    /// On NodeClaim: its node is ready for pods.
    Initialized,
    /// On NodeClaim: the node is not what its instance type promises.
    FailedConsistencyCheck,
    /// On NodeClaim: its instance ended before its node joined.
    InstanceEnded,
    /// On EC2NodeClass: one of its conditions is not true any more, or was not when the controller began, and why.
    NodeClassNotReady,
    /// On NodePool: instances ended before their nodes joined; none is launched for a while.
    LaunchesPaused,
    /// On Node and NodeClaim: kube-scheduler refuses the node the pods that it was bought for.
    RefusedByScheduler,
    /// On NodePool: a commit is not signed by somebody who must have; the revision is not used.
    RevisionNotSigned,
    /// On NodePool: new nodes did not become ready; no more are replaced.
    RolloutHalted,
    /// On NodePool: its requirements leave no instance type.
    NoCompatibleInstanceTypes,
    /// On Node and NodeClaim: the plan removes it to save money.
    ConsolidationCandidate,
    /// On Node and NodeClaim, or on NodePool for several nodes: the move is worth it to a pool with `Balanced`.
    ConsolidationApproved,
    /// On Node and NodeClaim: the cluster changed since the plan was made; the move is not carried out.
    ConsolidationRejected,
    /// On NodeClaim: it was created to take the place of others.
    DisruptionLaunching,
    /// On NodeClaim: the nodes that it replaces stay until it is ready.
    DisruptionWaitingReadiness,
    /// On Node and NodeClaim: its replacements are up, and it goes.
    DisruptionTerminating,
    /// On Node and NodeClaim: something keeps it from going. On NodePool: a budget allows nothing to go.
    DisruptionBlocked,
    /// On Node and NodeClaim: nothing would be saved without it.
    Unconsolidatable,
    /// On Node and NodeClaim: too many nodes are broken to take one of them for broken.
    NodeRepairBlocked,
    /// On Node and NodeClaim: volumes are still attached, and the node waits for them.
    AwaitingVolumeDetachment,
    /// On Node and NodeClaim: from when on its pods are deleted and no longer evicted.
    TerminationGracePeriodExpiring,
    /// On Node and NodeClaim: EC2 takes a spot instance back in two minutes.
    SpotInterrupted,
    /// On Node and NodeClaim: EC2 says that a spot instance may be taken back; nothing is done for it.
    SpotRebalanceRecommendation,
    /// On Node and NodeClaim: the instance is stopping.
    InstanceStopping,
    /// On Node and NodeClaim: the instance is terminating.
    InstanceTerminating,
    /// On Node and NodeClaim: EC2 has scheduled maintenance of the instance.
    InstanceUnhealthy,
    /// On Node and NodeClaim: the capacity reservation that it runs in is taken back.
    CapacityReservationInstanceInterrupted,
    /// On Node and NodeClaim: the capacity block that it runs in ends soon.
    CapacityBlockExpiring,
    /// On Node and NodeClaim: what EC2 announced makes the node go.
    TerminatingOnInterruption,
}

impl fmt::Display for EventReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}
