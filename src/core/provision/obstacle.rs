//! Why no node is bought for a pod that waits: data, which the report says in words.

use std::fmt;

use jiff::Timestamp;

use crate::kube_scheduler;
use crate::plan::{PendingReason, ReasonCode};
use crate::scheduler::taints::EffectiveTaint;

use super::amounts::amount;

/// What keeps a pod waiting whatever could be bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodObstacle {
    SchedulingGate {
        name: String,
    },
    /// Another scheduler has yet to say that it finds no node.
    OtherScheduler {
        name: String,
    },
    /// It says more than is planned for; what it has.
    TooManyTerms {
        has: String,
    },
    /// What it asks for is not planned for in this version.
    NotSupported {
        what: String,
    },
    /// What it asks for can not be read.
    Invalid {
        error: String,
    },
    /// kube-scheduler makes room for it by ending others.
    Preempting {
        node: String,
    },
    /// It has its data on a node that goes.
    DiskOfRemovedNode {
        volume: String,
        node: String,
    },
    /// One pod alone may use its claim, and another one does.
    ClaimInUse {
        claim: String,
        pod: String,
    },
    /// Its DaemonSet means it for one node.
    MeantForNode {
        node: String,
        because: DaemonObstacle,
    },
    /// Pods of one need that kube-scheduler refused the nodes that were bought for them.
    RefusedByScheduler {
        refused: RefusedNeed,
        next: NextAttempt,
    },
    /// It lost its place on a node that was bought for it, which kube-scheduler has had no time for yet.
    Unsettled {
        node: String,
        is_open: bool,
        refusal: Option<kube_scheduler::FilterRefusal>,
    },
}

/// Why a pod of a DaemonSet does not start on its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaemonObstacle {
    NodeIsNotThere,
    Taint(EffectiveTaint),
    HostPort,
    /// Of each resource that is short.
    Resources(Vec<Shortage>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    pub resource: String,
    /// Amounts as of [`Resources`](crate::model::Resources): `cpu` in thousandths of a core.
    pub free: i64,
    pub requested: i64,
}

/// What kube-scheduler refused pods that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedNeed {
    pub node: String,
    /// How often a node was bought in vain.
    pub attempts: u32,
    /// What kube-scheduler says, or which filter refuses them.
    pub because: String,
}

/// When the next node is bought for pods that were refused one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextAttempt {
    NotBefore(Timestamp),
    /// Nothing is known to keep the pods from the node that is there: another would be no better.
    WhenNodeIsGone,
    /// For one pod, now.
    OneIsTried,
}

impl PodObstacle {
    pub fn code(&self) -> ReasonCode {
        match self {
            Self::SchedulingGate { .. } => ReasonCode::SchedulingGated,
            Self::OtherScheduler { .. } => ReasonCode::LeftToItsScheduler,
            Self::TooManyTerms { .. } => ReasonCode::TooManyTerms,
            Self::NotSupported { .. } => ReasonCode::NotSupported,
            Self::Invalid { .. } => ReasonCode::InvalidPod,
            Self::Preempting { .. } => ReasonCode::Preempting,
            Self::DiskOfRemovedNode { .. } | Self::ClaimInUse { .. } => ReasonCode::VolumeUnsatisfied,
            Self::MeantForNode { .. } => ReasonCode::DaemonSetPodWaits,
            Self::RefusedByScheduler { .. } | Self::Unsettled { .. } => ReasonCode::RefusedByScheduler,
        }
    }

    /// As the plan says it.
    pub fn reason(&self) -> PendingReason {
        PendingReason { kind: self.kind(), ..PendingReason::new("", self.code(), self.to_string()) }
    }

    /// What it has in common with those of other pods, in words.
    fn kind(&self) -> Vec<String> {
        let about = match self {
            Self::SchedulingGate { name } | Self::OtherScheduler { name } => vec![name.clone()],
            Self::NotSupported { what } => vec![what.clone()],
            Self::TooManyTerms { has } => vec![has.clone()],
            Self::Invalid { error } => vec![error.clone()],
            Self::Preempting { .. } | Self::RefusedByScheduler { .. } => Vec::new(),
            Self::DiskOfRemovedNode { .. } => vec!["DiskOfRemovedNode".to_owned()],
            Self::ClaimInUse { claim, .. } => vec!["ClaimInUse".to_owned(), claim.clone()],
            Self::MeantForNode { because, .. } => because.kind(),
            Self::Unsettled { .. } => vec!["Unsettled".to_owned()],
        };
        std::iter::once(self.code().word()).chain(about).collect()
    }
}

impl DaemonObstacle {
    fn kind(&self) -> Vec<String> {
        match self {
            Self::NodeIsNotThere => vec!["NodeIsNotThere".to_owned()],
            Self::Taint(taint) => vec!["Taint".to_owned(), taint.key.clone()],
            Self::HostPort => vec!["HostPort".to_owned()],
            Self::Resources(short) => short.iter().map(|shortage| shortage.resource.clone()).collect(),
        }
    }
}

impl fmt::Display for PodObstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SchedulingGate { name } => write!(out, "waits for scheduling gate {name}"),
            Self::OtherScheduler { name } => write!(
                out,
                "scheduler {name} has not said that it finds no node for it: nothing is bought before it does"
            ),
            Self::TooManyTerms { has } => write!(out, "it has {has}"),
            Self::NotSupported { what } => out.write_str(what),
            Self::Invalid { error } => out.write_str(error),
            Self::Preempting { node } => write!(
                out,
                "kube-scheduler is evicting pods of lower priority on node {node} for it; its room there is held"
            ),
            Self::DiskOfRemovedNode { volume, node } => {
                write!(out, "PersistentVolume {volume} is a disk of node {node}, which is being removed")
            }
            Self::ClaimInUse { claim, pod } => {
                write!(out, "PersistentVolumeClaim {claim} can be used by one pod, and {pod} uses it")
            }
            Self::MeantForNode { node, because } => {
                write!(out, "its DaemonSet means it for node {node} alone, {because}; no node is bought for it")
            }
            Self::RefusedByScheduler { refused, next } => write!(out, "{refused}; {next}"),
            Self::Unsettled { node, is_open, refusal } => {
                let state = if *is_open { "just opened" } else { "is not open yet" };
                write!(out, "it does not fit on node {node}, which was bought for it and {state}")?;
                if let Some(refusal) = refusal {
                    write!(out, " ({refusal})")?;
                }
                out.write_str("; nothing is bought in its place before kube-scheduler had its time")
            }
        }
    }
}

impl fmt::Display for DaemonObstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeIsNotThere => out.write_str("which is not there"),
            Self::Taint(taint) => write!(out, "whose taint {taint} it does not tolerate"),
            Self::HostPort => out.write_str("where a host port that it asks for is taken"),
            Self::Resources(short) => {
                let texts: Vec<String> = short.iter().map(ToString::to_string).collect();
                write!(out, "which has not enough room: {}", texts.join("; "))
            }
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, free, requested } = self;
        write!(out, "{resource} {} free, {} requested", amount(resource, *free), amount(resource, *requested))
    }
}

impl fmt::Display for RefusedNeed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, attempts, because } = self;
        let attempts = attempts_text(*attempts);
        write!(out, "kube-scheduler refuses node {node}, which was bought for them ({attempts}): {because}")
    }
}

impl fmt::Display for NextAttempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBefore(time) => write!(out, "the next one is bought not before {time}"),
            Self::WhenNodeIsGone => out.write_str("the next one is bought when that one is gone"),
            Self::OneIsTried => out.write_str("the next one is tried with one of the pods"),
        }
    }
}

/// `1 attempt`, `3 attempts`
pub fn attempts_text(count: u32) -> String {
    if count == 1 { "1 attempt".to_owned() } else { format!("{count} attempts") }
}
