//! Why something is done, and why something is not.

use schemars::JsonSchema;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};

use cutlist_api::node_pool::DisruptionReason;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    pub code: ReasonCode,
    pub text: String,
    /// What the code leaves open, in words: of drift Karpenter's reason, such as `NodeClassDrift`, and the label that it is about. Absent
    /// where the code says all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<String>,
}

impl Reason {
    /// Of which the code says all.
    pub fn new(code: ReasonCode, text: String) -> Self {
        Self { code, text, kind: Vec::new() }
    }

    /// The words in which it is told from others: the code, and of what has drifted Karpenter's reason.
    pub fn name(&self) -> String {
        self.kind.first().cloned().unwrap_or_else(|| self.code.word())
    }

    /// Whether another reason differs from it in figures and names alone.
    pub fn is_like(&self, other: &Self) -> bool {
        self.code == other.code && self.kind == other.kind
    }
}

/// Words for what reasons have in common, whatever figures and names are in their sentences.
pub fn kind<const WORDS: usize>(words: [&str; WORDS]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// One code, one meaning, never reused. First those of steps, then those of pods that stay pending, then those of nodes that stay; some
/// are said of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ReasonCode {
    /// Step: pods wait for a node.
    PodsPending,
    /// Step: nothing runs on the node that would have to move.
    Empty,
    /// Step: its pods fit elsewhere, on fewer or cheaper nodes.
    Underutilized,
    /// Step: the node is not as its NodePool or EC2NodeClass wants it now.
    Drifted,
    /// Step: the node is older than `expireAfter`.
    Expired,
    /// Step: a static NodePool has more or fewer nodes than `replicas`.
    StaticCapacity,
    /// Step: the NodePool left the definitions.
    NodePoolRemoved,
    /// Step: the node has been broken for longer than its condition may last.
    Unhealthy,
    /// Step: another NodePool with the same content takes the node over.
    NodePoolRenamed,
    /// Step: EC2 announced that it takes the instance away.
    Interrupted,
    /// Pending: there is no NodePool.
    NoNodePool,
    /// Pending: the EC2NodeClass of the pool is nowhere.
    NodeClassMissing,
    /// Pending: `cutlist.lock` has no images for the EC2NodeClass of the pool, and the settings require it.
    ImagesNotLocked,
    /// Pending: EKS Auto Mode makes the nodes of the pool.
    NodePoolOfAutoMode,
    /// Pending: Karpenter with the provider of another cloud makes the nodes of the pool.
    NodePoolOfAnotherProvider,
    /// Pending: the pool or its class is not ready, or goes.
    NodePoolNotReady,
    /// Pending or held back: a limit of the pool, or of all pools, is reached.
    LimitReached,
    /// Pending: the pod asks for labels that the pool's nodes can not have.
    RequirementsConflict,
    /// Pending: the pool has a taint that the pod does not tolerate.
    TaintNotTolerated,
    /// Pending: no instance type of the pool has room for the pod.
    NoInstanceTypeFits,
    /// Pending: types that fit are not sold where, or as, the pod asks for them.
    NoOffering,
    /// Pending: the requirements of the pool match no instance type.
    NodePoolHasNoInstanceType,
    /// Pending: a port of the host is taken.
    HostPortConflict,
    /// Pending: there is no node beside the pods that the pod wants to be with.
    AffinityUnsatisfied,
    /// Pending: there is no node away from the pods that the pod wants to be apart from.
    AntiAffinityUnsatisfied,
    /// Pending: each node would make the spread more uneven than the pod allows.
    TopologySpreadUnsatisfied,
    /// Pending: a volume of the pod is where no node can be, or can not be found out.
    VolumeUnsatisfied,
    /// Pending: the pod has scheduling gates.
    SchedulingGated,
    /// Pending: kube-scheduler, too, could not read what the pod asks for.
    InvalidPod,
    /// Pending or held back: what the object asks for is not planned for in this version.
    NotSupported,
    /// Pending: the pod waits for others that kube-scheduler ends for it.
    Preempting,
    /// Pending: no device that the pod claims can be had.
    DevicesUnsatisfied,
    /// Pending: kube-scheduler refused the nodes that were bought for the pod.
    RefusedByScheduler,
    /// Pending or held back: instances of the pool end before their nodes join; none is launched for a while.
    InstancesEndEarly,
    /// Pending: the pod, or all pods of the cluster together, say more than is planned for.
    TooManyTerms,
    /// Pending: a pod of a DaemonSet that its node does not take; none is bought for it.
    DaemonSetPodWaits,
    /// Pending: another scheduler has not said that it finds no node for it.
    LeftToItsScheduler,
    /// Held back: pods came or went within `consolidateAfter`.
    ConsolidateAfterNotElapsed,
    /// Held back: the pool never consolidates, or only empty nodes.
    ConsolidationDisabled,
    /// Held back: a disruption budget allows no more nodes now.
    BudgetExhausted,
    /// Held back: an annotation of the node or of one of its pods forbids it.
    DoNotDisrupt,
    /// Held back: a PodDisruptionBudget allows no eviction.
    PodDisruptionBudget,
    /// Held back: the node has not initialized.
    NotInitialized,
    /// Held back: the node is on its way out.
    BeingDeleted,
    /// Held back: pods that wait are to run on the node.
    NominatedForPods,
    /// Held back: the pods of the node fit nowhere else.
    PodsWouldNotFit,
    /// Held back: nothing cheaper would hold its pods.
    NotCheaper,
    /// Held back: what would be saved does not repay the move within `payback`.
    PaybackTooLong,
    /// Held back: nobody knows the NodePool of the node.
    UnknownNodePool,
    /// Held back: the catalog does not have the instance type of the node.
    UnknownInstanceType,
    /// Held back: somebody has to confirm it.
    ConfirmationNeeded,
    /// Held back: another move comes first.
    WaitsForOtherMove,
    /// Held back: the first node of a roll-out has yet to prove itself.
    WaitsForCanary,
    /// Held back: new nodes of the pool did not become ready.
    RolloutHalted,
    /// Held back: too many nodes are broken to take one of them for broken.
    NodeRepairBlocked,
    /// Held back: a volume of one of its pods would be gone with the node.
    LocalVolume,
    /// Held back: some kind of the cluster is not known as it is now.
    SnapshotIncomplete,
    /// Held back: an object that speaks for the node can not be read.
    ObjectUnreadable,
    /// Held back: two Nodes, or two NodeClaims, of its NodePool have one provider ID.
    ProviderIdShared,
}

impl ReasonCode {
    /// For which reason a node that goes for this one asks the budgets; `None`: it asks none, since nobody chose that it goes.
    pub fn budget(self) -> Option<DisruptionReason> {
        match self {
            Self::Empty => Some(DisruptionReason::Empty),
            Self::Underutilized => Some(DisruptionReason::Underutilized),
            Self::Drifted | Self::NodePoolRemoved => Some(DisruptionReason::Drifted),
            _ => None,
        }
    }

    /// Whether a node that goes for this reason goes to save money, and for nothing else.
    pub fn saves_money(self) -> bool {
        matches!(self, Self::Empty | Self::Underutilized)
    }

    /// Whether what is said of a step with this code begins with the word.
    pub fn begins_its_text(self) -> bool {
        matches!(self, Self::Empty | Self::Underutilized | Self::Expired | Self::Unhealthy)
    }

    /// The word of the code, as it stands in conditions and annotations.
    pub fn word(self) -> String {
        format!("{self:?}")
    }

    /// The code of a word; `None`: there is none.
    pub fn of_word(word: &str) -> Option<Self> {
        let word: StrDeserializer<'_, ValueError> = word.into_deserializer();
        Self::deserialize(word).ok()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads files")]
mod tests {
    use super::*;
    use crate::plan::{Plan, StepKind};

    #[test]
    fn a_code_is_found_by_its_word() {
        assert_eq!(ReasonCode::of_word(&ReasonCode::Drifted.word()), Some(ReasonCode::Drifted));
        assert_eq!(ReasonCode::of_word("drifted"), None);
    }

    /// Nobody looks at the sentence to find out, so each plan of the cases is asked whether it is so.
    #[test]
    fn texts_begin_with_the_words_of_the_codes_that_say_so() {
        let cases = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/plan")).unwrap();
        let plans = cases.filter_map(|case| std::fs::read_to_string(case.unwrap().path().join("expected.json")).ok());
        let mut seen = 0;
        for plan in plans {
            let Ok(plan) = serde_json::from_str::<Plan>(&plan) else { continue };
            for step in plan.steps.iter().filter(|step| step.kind == StepKind::Remove) {
                let Reason { code, text, .. } = &step.reason;
                assert_eq!(text.starts_with(&code.word()), code.begins_its_text(), "{text}");
                seen += 1;
            }
        }
        assert!(seen > 5, "{seen}");
    }
}
