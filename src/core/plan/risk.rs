//! What may go wrong for whom when nodes go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Risk {
    pub code: RiskCode,
    /// `namespace/Kind/name` of a workload, `namespace/name` of a pod or a PodDisruptionBudget.
    pub subject: String,
    pub text: String,
}

/// One code, one meaning, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum RiskCode {
    /// Nobody makes the pod again.
    NoController,
    /// The only replica moves.
    SingleReplica,
    /// All replicas run on one node, which goes.
    AllReplicasOnOneNode,
    /// Several replicas move, and nothing keeps them from being evicted together.
    NoPodDisruptionBudget,
    /// No eviction will ever be allowed, so the drain ends only by force.
    PodDisruptionBudgetNeverAllows,
    /// A pod may take long to end.
    LongDrain,
    /// Volumes must detach before the pod starts elsewhere.
    VolumesDetach,
    /// A pod is never evicted, because of its annotation or of others that must be with it, and its node has no time after which it ends
    /// all the same.
    DrainBlocked,
    /// A pod is never evicted, because of its annotation or of others that must be with it, and deleted when the grace period of its node
    /// is over.
    DeletedAtDeadline,
    /// A pod tolerates the removal: it is not evicted, and ends with the instance, whatever budgets say.
    EndsWithInstance,
    /// A volume is a disk of a node that goes: what is on it is lost.
    DataLost,
    /// A pod is evicted before there is a place for it: its node has to go first.
    WaitsForNewNode,
}
