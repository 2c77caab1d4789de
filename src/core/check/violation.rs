//! What the checker finds, as data.

use std::fmt;

use crate::kube_scheduler::{Filter, FilterRefusal};
use crate::plan::Step;

/// One code, one rule broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViolationCode {
    // The plan contradicts itself or its inputs.
    WrongId,
    WrongInput,
    WrongOrder,
    DuplicateName,
    UnknownNodePool,
    UnknownNodeClass,
    UnknownNode,
    UnknownPod,
    WrongSummary,
    WrongResources,
    // A node that can not be created, or not like this.
    InstanceTypeNotAllowed,
    OfferingNotAvailable,
    ZoneWithoutSubnet,
    TypeWithoutImage,
    ClassNotReady,
    WrongPrice,
    LaunchDiffers,
    TooFewAlternatives,
    LimitExceeded,
    /// A static pool has other than its replicas, or its nodes are used as if it were not static.
    WrongReplicas,
    CreatedForNothing,
    /// More nodes are launched into a capacity reservation than are left of it.
    ReservationOverused,
    /// A node is launched into a capacity reservation that is not for it.
    WrongReservation,
    // A pod that can not run where it is put, or is lost.
    Refused,
    PodInTwoPlaces,
    PodWithoutPlace,
    PodMovedWithoutReason,
    PendingPodForgotten,
    PendingPodFits,
    /// A volume that is a disk of a node goes with it, and nothing makes the node go.
    DataLost,
    // A node that may not go, or not now.
    NotRemovable,
    NotEmpty,
    NotCheaper,
    /// A move does not repay its disruption in time.
    PaybackTooLong,
    /// A pool with `Balanced` is disrupted more than it saves.
    NotBalanced,
    /// A node like one that is removed to save money is bought by the same plan.
    BoughtAgain,
    /// All replicas of a workload leave several nodes in one wave.
    AllReplicasAtOnce,
    /// A pod moves to a node where pods came or went a moment ago.
    RecentlyChangedTarget,
    /// A pod is put on a node that expired, and goes as soon as it can.
    ExpiredTarget,
    /// A pod is put on a node whose provider ID another one has as well.
    DoubledTarget,
    ConsolidationNotAllowed,
    DoNotDisrupt,
    PodDisruptionBudget,
    BudgetExceeded,
    /// A node is given to a pool that would make another one, or has no room for it.
    NotAdoptable,
    /// Nodes are replaced by several nodes of a pool of which none is known to become ready.
    NoCanary,
    /// Nodes are replaced by those of a pool whose new nodes do not become ready.
    RolloutHalted,
    WrongBudget,
}

impl ViolationCode {
    /// Whether only a figure is wrong that people read: what the plan does breaks nothing.
    pub fn is_of_the_account(self) -> bool {
        matches!(self, Self::WrongSummary | Self::WrongResources | Self::WrongPrice | Self::WrongBudget)
    }
}

/// Where in a plan a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationPlace {
    /// What all NodePools make together.
    Cluster,
    /// A field of the plan itself.
    Field(&'static str),
    /// By the name of its NodeClaim.
    Step(String),
    /// `namespace/name`
    Pod(String),
    NodePool(String),
    DisruptionBudget(String),
    /// By its id.
    Reservation(String),
    /// `Deployment namespace/name`
    Workload(String),
}

impl ViolationPlace {
    pub(super) fn step(step: &Step) -> Self {
        Self::Step(step.node_claim.clone())
    }

    /// `key`: namespace and name.
    pub(super) fn pod(key: &str) -> Self {
        Self::Pod(key.to_owned())
    }

    pub(super) fn pool(name: &str) -> Self {
        Self::NodePool(name.to_owned())
    }
}

impl fmt::Display for ViolationPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => write!(out, "cluster"),
            Self::Field(field) => write!(out, "{field}"),
            Self::Step(claim) => write!(out, "step {claim}"),
            Self::Pod(key) => write!(out, "pod {key}"),
            Self::NodePool(name) => write!(out, "pool {name}"),
            Self::DisruptionBudget(name) => write!(out, "budget {name}"),
            Self::Reservation(id) => write!(out, "reservation {id}"),
            Self::Workload(workload) => write!(out, "{workload}"),
        }
    }
}

/// A rule, where it is broken, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub code: ViolationCode,
    pub place: ViolationPlace,
    pub text: String,
    /// The filter of kube-scheduler that keeps a pod from its place.
    pub filter: Option<Filter>,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} at {}: {}", self.code, self.place, self.text)
    }
}

/// Findings in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Violation>);

impl Findings {
    pub(super) fn add(&mut self, code: ViolationCode, place: ViolationPlace, text: impl Into<String>) {
        self.0.push(Violation { code, place, text: text.into(), filter: None });
    }

    /// `place` is wrong for a pod: `whereby` says on which node, and which pod where that is not said yet.
    pub(super) fn refused(&mut self, place: ViolationPlace, whereby: &str, refusal: &FilterRefusal) {
        let text = format!("{whereby}: {refusal}");
        self.0.push(Violation { code: ViolationCode::Refused, place, text, filter: Some(refusal.filter) });
    }

    pub(super) fn sorted(all: Vec<Self>) -> Vec<Violation> {
        let mut violations: Vec<Violation> = all.into_iter().flat_map(|findings| findings.0).collect();
        violations.sort();
        violations.dedup();
        violations
    }
}
