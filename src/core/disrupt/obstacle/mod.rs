//! What keeps a node from going: data, which the report says in words. What is particular to one method stands with it.

pub mod budget;
pub mod consolidation;
pub mod own_place;
pub mod rollout;
pub mod static_capacity;

use std::fmt;

use jiff::Timestamp;

use crate::lifecycle::Lacking;
use crate::lifecycle::health::UNHEALTHY_PERCENT_MAX;
use crate::plan::{PendingReason, ReasonCode, kind};
use crate::provision::obstacle::RefusedNeed;
use crate::snapshot::doubts::Doubt;
use cutlist_api::keys;

use super::consolidate::obstacle::NotSaved;
use super::together::Together;
use crate::lifecycle::pod_disruption_budgets::EvictionObstacle;

use budget::SpentBudget;
use consolidation::NotConsolidatable;
use own_place::OwnPlace;
use rollout::RolloutObstacle;
use static_capacity::StaticObstacle;

#[derive(Clone, Debug, PartialEq)]
pub enum NodeObstacle {
    NotInitialized {
        waits_for: Option<Lacking>,
    },
    /// Nobody knows its NodePool; empty where it names none.
    UnknownNodePool {
        node_pool: String,
        /// Why its definition does not count, where there is one.
        unplanned: Option<String>,
    },
    StaticCapacityIsOff,
    /// Pods that wait get their place there.
    Nominated,
    /// The node has the annotation.
    DoNotDisrupt,
    /// Somebody refused its removal a moment ago.
    RemovalRefused,
    /// It is not known what would end with it.
    InDoubt(Doubt),
    /// Too many of its pool, or of the cluster where that is empty, are broken.
    TooManyUnhealthy {
        broken: usize,
        nodes: usize,
        node_pool: String,
    },
    Pod(HoldingPod),
    Budget(Box<SpentBudget>),
    Rollout(RolloutObstacle),
    /// Its pods find no place, and what keeps one of them from the nearest pool.
    NoPlace {
        pods: usize,
        of: usize,
        nearest: Option<Box<PendingReason>>,
    },
    /// Nodes that are on their way have room for its pods.
    RoomOnItsWay,
    /// Nothing but what it takes itself: it goes before what replaces it is there.
    OwnPlace(OwnPlace),
    Static(StaticObstacle),
    NotConsolidatable(NotConsolidatable),
    NotSaved(NotSaved),
}

/// A pod that keeps its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldingPod {
    /// It has the annotation; `None`: without an end.
    DoNotDisrupt {
        pod: String,
        until: Option<Timestamp>,
    },
    Eviction(EvictionObstacle),
    Together(Together),
    /// Nodes were bought for pods like it, and kube-scheduler refused them.
    Refused(RefusedNeed),
    /// Its data would be lost, or it would find no other node.
    LocalVolume {
        pod: String,
        volume: String,
        fits_on_no_other: bool,
    },
    /// It says more than is planned for.
    TooManyTerms {
        pod: String,
        has: String,
    },
    /// What room it takes can not be read.
    Invalid {
        pod: String,
        error: String,
    },
}

impl NodeObstacle {
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::NotInitialized { .. } => ReasonCode::NotInitialized,
            Self::UnknownNodePool { .. } => ReasonCode::UnknownNodePool,
            Self::StaticCapacityIsOff => ReasonCode::NotSupported,
            Self::Nominated => ReasonCode::NominatedForPods,
            Self::DoNotDisrupt => ReasonCode::DoNotDisrupt,
            Self::InDoubt(Doubt::Kind(_)) => ReasonCode::SnapshotIncomplete,
            Self::InDoubt(Doubt::Object(_)) => ReasonCode::ObjectUnreadable,
            Self::InDoubt(Doubt::Doubled(_)) => ReasonCode::ProviderIdShared,
            Self::TooManyUnhealthy { .. } => ReasonCode::NodeRepairBlocked,
            Self::Pod(pod) => pod.code(),
            Self::Budget(_) => ReasonCode::BudgetExhausted,
            Self::Rollout(rollout) => rollout.code(),
            Self::NoPlace { nearest, .. } => match nearest.as_ref().map(|nearest| nearest.code) {
                Some(ReasonCode::LimitReached) => ReasonCode::LimitReached,
                _ => ReasonCode::PodsWouldNotFit,
            },
            Self::RemovalRefused | Self::RoomOnItsWay => ReasonCode::WaitsForOtherMove,
            Self::OwnPlace(OwnPlace::Limit(_)) => ReasonCode::LimitReached,
            Self::OwnPlace(_) => ReasonCode::PodsWouldNotFit,
            Self::Static(of_pool) => of_pool.code(),
            Self::NotConsolidatable(not) => not.code(),
            Self::NotSaved(not) => not.code(),
        }
    }

    /// What it has in common with those of other nodes: words, and names of NodePools, budgets, labels and resources.
    pub fn kind(&self) -> Vec<String> {
        match self {
            Self::NotInitialized { waits_for } => {
                kind(["NotInitialized", waits_for.as_ref().map_or("Unknown", |lacking| lacking.kind)])
            }
            Self::UnknownNodePool { node_pool, .. } => kind(["UnknownNodePool", node_pool]),
            Self::StaticCapacityIsOff => kind(["StaticCapacityIsOff"]),
            Self::Nominated => kind(["Nominated"]),
            Self::DoNotDisrupt => kind(["NodeDoNotDisrupt"]),
            Self::RemovalRefused => kind(["RemovalRefused"]),
            Self::InDoubt(_) => kind(["InDoubt"]),
            Self::TooManyUnhealthy { node_pool, .. } => kind(["TooManyUnhealthy", node_pool]),
            Self::Pod(pod) => pod.kind(),
            Self::Budget(budget) => budget.kind(),
            Self::Rollout(rollout) => rollout.kind(),
            Self::NoPlace { nearest, .. } => {
                let nearest = nearest.iter().flat_map(|nearest| nearest.kind.clone());
                std::iter::once("NoPlace".to_owned()).chain(nearest).collect()
            }
            Self::RoomOnItsWay => kind(["RoomOnItsWay"]),
            Self::OwnPlace(_) => kind(["OwnPlace"]),
            Self::Static(of_pool) => of_pool.kind(),
            Self::NotConsolidatable(not) => not.kind(),
            Self::NotSaved(not) => not.kind(),
        }
    }
}

impl HoldingPod {
    fn code(&self) -> ReasonCode {
        match self {
            Self::DoNotDisrupt { .. } => ReasonCode::DoNotDisrupt,
            Self::Eviction(_) | Self::Together(_) => ReasonCode::PodDisruptionBudget,
            Self::Refused(_) => ReasonCode::RefusedByScheduler,
            Self::LocalVolume { .. } => ReasonCode::LocalVolume,
            Self::TooManyTerms { .. } => ReasonCode::TooManyTerms,
            Self::Invalid { .. } => ReasonCode::InvalidPod,
        }
    }

    fn kind(&self) -> Vec<String> {
        match self {
            Self::DoNotDisrupt { until: None, .. } => kind(["PodDoNotDisrupt"]),
            Self::DoNotDisrupt { until: Some(_), .. } => kind(["PodDoNotDisruptUntil"]),
            Self::Eviction(EvictionObstacle::Never { .. }) => kind(["NeverEvicted"]),
            Self::Eviction(EvictionObstacle::NotNow { .. }) => kind(["NotEvictedNow"]),
            Self::Eviction(EvictionObstacle::TwoBudgets { .. }) => kind(["TwoPodDisruptionBudgets"]),
            Self::Together(_) => kind(["Together"]),
            Self::Refused(_) => kind(["RefusedByScheduler"]),
            Self::LocalVolume { fits_on_no_other: true, .. } => kind(["LocalVolume", "FitsOnNoOther"]),
            Self::LocalVolume { fits_on_no_other: false, .. } => kind(["LocalVolume", "DataLost"]),
            Self::TooManyTerms { .. } => kind(["TooManyTerms"]),
            Self::Invalid { .. } => kind(["InvalidPod"]),
        }
    }
}

impl fmt::Display for NodeObstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInitialized { waits_for: None } => out.write_str("it has not initialized yet"),
            Self::NotInitialized { waits_for: Some(lacking) } => {
                write!(out, "it has not initialized yet: {}", lacking.text)
            }
            Self::UnknownNodePool { unplanned: Some(why), .. } => out.write_str(why),
            Self::UnknownNodePool { node_pool, unplanned: None } => {
                let name = if node_pool.is_empty() { "its NodePool".to_owned() } else { of_pool(node_pool) };
                write!(out, "{name} is not in the definitions, and was not applied from them")
            }
            Self::StaticCapacityIsOff => {
                out.write_str("spec.featureGates.StaticCapacity is off, and its pool has spec.replicas")
            }
            Self::Nominated => out.write_str("pending pods get their place here"),
            Self::DoNotDisrupt => write!(out, "the node has annotation {}=true", keys::DO_NOT_DISRUPT),
            Self::RemovalRefused => out.write_str("its removal was refused a moment ago: others go first"),
            Self::InDoubt(doubt) => out.write_str(doubt.text()),
            Self::TooManyUnhealthy { broken, nodes, node_pool } => {
                let of = if node_pool.is_empty() { "the cluster".to_owned() } else { of_pool(node_pool) };
                write!(
                    out,
                    "{broken} of {nodes} nodes of {of} are unhealthy: more than {UNHEALTHY_PERCENT_MAX} % are not repaired"
                )
            }
            Self::Pod(pod) => write!(out, "{pod}"),
            Self::Budget(budget) => write!(out, "{budget}"),
            Self::Rollout(rollout) => write!(out, "{rollout}"),
            Self::NoPlace { pods, of, nearest } => {
                write!(out, "{pods} of its {of} pods would find no place")?;
                nearest.as_ref().map_or(Ok(()), |nearest| write!(out, ": {}", nearest.text))
            }
            Self::RoomOnItsWay => {
                out.write_str("nodes that are on their way have room for its pods: it goes when they are there")
            }
            Self::OwnPlace(own) => write!(out, "{own}: it goes first, and its pods wait for the node that replaces it"),
            Self::Static(of_pool) => write!(out, "{of_pool}"),
            Self::NotConsolidatable(not) => write!(out, "{not}"),
            Self::NotSaved(not) => write!(out, "{not}"),
        }
    }
}

fn of_pool(name: &str) -> String {
    format!("NodePool {name}")
}

impl fmt::Display for HoldingPod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoNotDisrupt { pod, until } => {
                write!(out, "pod {pod} has annotation {}", keys::DO_NOT_DISRUPT)?;
                until.map_or(Ok(()), |end| write!(out, ", which holds until {end}"))
            }
            Self::Eviction(obstacle) => write!(out, "{obstacle}"),
            Self::Together(together) => write!(out, "{together}"),
            Self::Refused(refused) => write!(out, "pods like it wait: {refused}"),
            Self::LocalVolume { pod, volume, fits_on_no_other } => {
                let so = if *fits_on_no_other { "the pod fits on no other" } else { "what is on it would be lost" };
                write!(out, "PersistentVolume {volume} of pod {pod} is a disk of this node: {so}")
            }
            Self::TooManyTerms { pod, has } => write!(out, "not known where pod {pod} could go: it has {has}"),
            Self::Invalid { pod, error } => write!(out, "not known what room pod {pod} takes: {error}"),
        }
    }
}

impl From<HoldingPod> for NodeObstacle {
    fn from(pod: HoldingPod) -> Self {
        Self::Pod(pod)
    }
}

impl From<SpentBudget> for NodeObstacle {
    fn from(budget: SpentBudget) -> Self {
        Self::Budget(Box::new(budget))
    }
}

impl From<RolloutObstacle> for NodeObstacle {
    fn from(rollout: RolloutObstacle) -> Self {
        Self::Rollout(rollout)
    }
}

impl From<StaticObstacle> for NodeObstacle {
    fn from(of_pool: StaticObstacle) -> Self {
        Self::Static(of_pool)
    }
}

impl From<NotConsolidatable> for NodeObstacle {
    fn from(not: NotConsolidatable) -> Self {
        Self::NotConsolidatable(not)
    }
}

impl From<NotSaved> for NodeObstacle {
    fn from(not: NotSaved) -> Self {
        Self::NotSaved(not)
    }
}
