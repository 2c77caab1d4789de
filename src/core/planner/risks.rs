//! Whom a plan disturbs: the waves in which its nodes go, and what is at risk all the same.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::disrupt::obstacle::NodeObstacle;
use crate::disrupt::removal_cause::RemovalCause;
use crate::disrupt::together::Together;
use crate::disrupt::waves::{PodCounts, waves};
use crate::disrupt::{self, Removal};
use crate::lifecycle::do_not_disrupt::{Protection, is_protected, protection};
use crate::lifecycle::drain::{deleted_at, is_evicted};
use crate::lifecycle::pod_disruption_budgets::Never;
use crate::lifecycle::staying::stays_for_long;
use crate::lifecycle::termination::TERMINATION_TIMESTAMP;
use crate::model::time::duration_text;
use crate::model::words::pods_text;
use crate::plan::{Note, NoteCode, Risk, RiskCode, Step, StepKind};
use crate::provision::backlog::is_reschedulable;
use crate::scheduler::Problem;
use crate::scheduler::volumes::{Disk, is_reached_only_from};
use crate::snapshot::Pod;
use crate::snapshot::nodes::Machine;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;

use super::disturbed::Disturbed;

/// More risks than this are counted in a note.
const RISKS_MAX: usize = 100;

/// What Kubernetes gives a pod that says nothing.
pub(super) const DEFAULT_GRACE_SECONDS: i64 = 30;

/// A drain that may take longer is worth knowing of.
const LONG_DRAIN_SECONDS: i64 = 300;

/// Numbers the waves of a plan that needs more than one; how many it needs. O(removals x waves x workloads on one).
pub fn number_waves(steps: &mut [Step], disturbed: &Disturbed<'_>) -> u32 {
    let removals: Vec<usize> = (0..steps.len()).filter(|step| steps[*step].kind == StepKind::Remove).collect();
    let moved: Vec<_> = removals.iter().map(|step| disturbed.workloads_by(&steps[*step])).collect();
    let waves = waves(&moved, &disturbed.replicas);
    let count = waves.iter().max().map_or(0, |last| last + 1);
    if count > 1 {
        // Capacity comes before it is needed.
        let mut first_of_move: BTreeMap<u32, usize> = BTreeMap::new();
        for (step, wave) in removals.iter().zip(&waves) {
            let first = first_of_move.entry(steps[*step].move_number).or_insert(*wave);
            *first = (*first).min(*wave);
        }
        let of_removals: BTreeMap<usize, usize> = removals.into_iter().zip(waves).collect();
        for (position, step) in steps.iter_mut().enumerate() {
            let wave = of_removals.get(&position).or_else(|| first_of_move.get(&step.move_number));
            step.wave = wave.and_then(|wave| u32::try_from(wave + 1).ok());
        }
    }
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What is at risk when the plan is carried out, and a note if there is more than is listed. O(moved pods x budgets).
pub fn risks(
    steps: &[Step],
    removals: &[Removal],
    problem: &Problem<'_>,
    disturbed: &Disturbed<'_>,
    together: &BTreeMap<&str, Together>,
    now: Timestamp,
    waves: u32,
) -> (Vec<Risk>, Vec<Note>) {
    let mut risks = of_workloads(steps, disturbed);
    risks.extend(of_nodes_that_go_first(removals, problem));
    let lost = lost_with(problem);
    let going = Going::new(steps, problem, now);
    risks.extend(of_pods(steps, disturbed, &lost, &going));
    risks.extend(of_disks(steps, problem, &lost));
    risks.extend(of_drains(problem, disturbed, &going));
    risks.extend(of_pods_together(problem, together, now));
    risks.sort();
    risks.dedup();
    let mut notes = Vec::new();
    let left_out = risks.len().saturating_sub(RISKS_MAX);
    risks.truncate(RISKS_MAX);
    if left_out > 0 {
        notes.push(Note::new(NoteCode::RisksLeftOut, format!("{left_out} more risks are not listed")));
    }
    if waves > 1 {
        let text =
            format!("nodes go in {waves} waves, so that no workload on several nodes loses all replicas at once");
        notes.push(Note::new(NoteCode::Waves, text));
    }
    (risks, notes)
}

fn of_workloads(steps: &[Step], disturbed: &Disturbed<'_>) -> Vec<Risk> {
    let mut risks = Vec::new();
    let mut unguarded = PodCounts::new();
    for step in steps.iter().filter(|step| step.kind == StepKind::Remove) {
        for (workload, count) in disturbed.workloads_by(step) {
            let all = disturbed.replicas_of(&workload);
            let node = step.node.as_deref().unwrap_or(&step.node_claim);
            match count {
                1 if all == 1 => {
                    let text = format!("its only replica moves from node {node}");
                    risks.push(Risk { code: RiskCode::SingleReplica, subject: workload.to_string(), text });
                }
                count if count >= all && all > 1 => {
                    let text = format!("all {all} replicas run on node {node}, which goes");
                    risks.push(Risk { code: RiskCode::AllReplicasOnOneNode, subject: workload.to_string(), text });
                }
                _ => {}
            }
        }
        for pod in disturbed.by(step).filter(|pod| disturbed.budgets.covering(pod).is_empty()) {
            if let Some(workload) = pod.workload() {
                *unguarded.entry(workload).or_default() += 1;
            }
        }
    }
    for (workload, moved) in unguarded.into_iter().filter(|(_, moved)| *moved > 1) {
        let all = disturbed.replicas_of(&workload);
        let text = format!("{moved} of {all} replicas move, and no PodDisruptionBudget covers them");
        risks.push(Risk { code: RiskCode::NoPodDisruptionBudget, subject: workload.to_string(), text });
    }
    risks
}

/// Pods of nodes in whose place the new one comes.
fn of_nodes_that_go_first(removals: &[Removal], problem: &Problem<'_>) -> Vec<Risk> {
    let goes_first = |removal: &&Removal| match &removal.cause {
        RemovalCause::WithoutPlaces { obstacle, .. } => matches!(**obstacle, NodeObstacle::OwnPlace(_)),
        _ => false,
    };
    let nodes = removals.iter().filter(goes_first).flat_map(|removal| &removal.nodes);
    let of_node = |going: &disrupt::Going| {
        let node = problem.machines[going.host].name;
        let text = format!("it waits from its eviction until there is a node in the place of {node}");
        let risk = |key: String| Risk { code: RiskCode::WaitsForNewNode, subject: key, text: text.clone() };
        going.pods.iter().map(|pod| risk(problem.snapshot.pods[*pod].key())).collect::<Vec<Risk>>()
    };
    nodes.flat_map(of_node).collect()
}

/// Nodes that are drained, and for whom the plan buys others.
struct Going<'p> {
    /// By name, nodes that go by this plan or went before.
    claims: BTreeMap<&'p str, &'p NodeClaim>,
    /// Those that this plan drains.
    drained: BTreeSet<&'p str>,
    bought_for: BTreeSet<&'p str>,
    now: Timestamp,
}

impl<'p> Going<'p> {
    /// O(nodes + pods of the steps).
    fn new(steps: &'p [Step], problem: &Problem<'p>, now: Timestamp) -> Self {
        let removals = steps.iter().filter(|step| step.kind == StepKind::Remove);
        let drained = removals.filter(|step| !step.mode.waits_for_nothing()).filter_map(|step| step.node.as_deref());
        let drained: BTreeSet<&str> = drained.collect();
        let goes = |machine: &&Machine<'_>| {
            machine.node.is_some() && (machine.is_being_removed() || drained.contains(machine.name))
        };
        let going = problem.machines.iter().filter(goes);
        let claims = going.filter_map(|machine| Some((machine.name, machine.claim?))).collect();
        let created = steps.iter().filter(|step| step.kind == StepKind::Create);
        let bought_for = created.flat_map(|step| &step.pods).map(String::as_str).collect();
        Self { claims, drained, bought_for, now }
    }

    /// Whether nothing is bought for a pod before it leaves. What an earlier plan did for the pods of its nodes is not known here.
    fn leaves_for_later(&self, pod: &Pod, disturbed: &Disturbed<'_>) -> bool {
        let Some(node) = pod.spec.node_name.as_deref().filter(|node| self.drained.contains(node)) else { return false };
        is_reschedulable(pod)
            && stays_for_long(pod, &disturbed.budgets, self.claims.get(node).copied(), self.now)
            && !self.bought_for.contains(pod.key().as_str())
    }
}

/// Drains that wait for a pod which is not evicted, of nodes that go by this plan or went before. O(pods).
fn of_drains(problem: &Problem<'_>, disturbed: &Disturbed<'_>, going: &Going<'_>) -> Vec<Risk> {
    let now = going.now;
    let risk = |pod: &Pod| {
        let node = pod.spec.node_name.as_deref()?;
        let claim = *going.claims.get(node)?;
        if pod.is_terminal() || pod.is_terminating() || !is_evicted(pod) || !is_protected(pod, now) {
            return None;
        }
        let (annotation, subject) = (keys::DO_NOT_DISRUPT, pod.key());
        let so = if going.leaves_for_later(pod, disturbed) { "; nothing is bought for it before" } else { "" };
        let until = match protection(pod) {
            Protection::Until(end) => Some(end),
            _ => None,
        };
        let Some(deadline) = Deadline::of(claim, now) else {
            let until = until.map_or_else(|| "somebody takes it off".to_owned(), |end| end.to_string());
            let text = format!(
                "node {node} goes and has no terminationGracePeriod: its drain waits for the annotation {annotation} until {until}{so}"
            );
            return Some(Risk { code: RiskCode::DrainBlocked, subject, text });
        };
        let deleted = deleted_at(pod, deadline.at);
        let ends = deadline.text;
        let grace = pod.spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
        let waits = format!("node {node} goes: its drain waits for the annotation {annotation} until");
        let text = if deleted <= now {
            let grace = duration_text(grace);
            format!(
                "node {node} goes: the pod is deleted at once, whatever {annotation} says, since it has {grace} to end, and {ends} ends before"
            )
        } else if grace > DEFAULT_GRACE_SECONDS {
            let grace = duration_text(grace);
            format!("{waits} {grace} before {ends} ends, and then the pod is deleted, which has so long to end{so}")
        } else {
            format!("{waits} {ends} ends, and then the pod is deleted{so}")
        };
        until.is_none_or(|end| end > deleted).then_some(Risk { code: RiskCode::DeletedAtDeadline, subject, text })
    };
    problem.snapshot.pods.iter().filter_map(risk).collect()
}

/// Drains that wait for pods of which each waits for the others. O(nodes).
fn of_pods_together(problem: &Problem<'_>, together: &BTreeMap<&str, Together>, now: Timestamp) -> Vec<Risk> {
    let risk = |machine: &Machine<'_>| {
        let together = together.get(machine.name)?;
        let (node, subject) = (machine.name, together.pod.clone());
        Some(match Deadline::of(machine.claim?, now) {
            None => {
                let text = format!("node {node} goes and has no terminationGracePeriod: {together}");
                Risk { code: RiskCode::DrainBlocked, subject, text }
            }
            Some(deadline) => {
                let text = format!("node {node} goes: {together}; they are deleted when {} ends", deadline.text);
                Risk { code: RiskCode::DeletedAtDeadline, subject, text }
            }
        })
    };
    problem.machines.iter().filter_map(risk).collect()
}

/// When the drain of a node ends whatever stands in its way.
struct Deadline {
    at: Timestamp,
    text: String,
}

impl Deadline {
    /// `None` where it never does.
    fn of(claim: &NodeClaim, now: Timestamp) -> Option<Self> {
        if let Some(written) = claim.annotation(TERMINATION_TIMESTAMP) {
            let at = written.parse().unwrap_or(now);
            return Some(Self { at, text: format!("its grace period at {written}") });
        }
        let period = claim.spec.termination_grace_period.as_ref()?;
        let seconds = i64::try_from(period.seconds()?).unwrap_or(i64::MAX);
        let began = claim.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
        let at = began.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        Some(Self { at, text: format!("its terminationGracePeriod {period}") })
    }
}

/// By pod, the volume that goes with its node.
fn lost_with<'p>(problem: &'p Problem<'_>) -> BTreeMap<String, &'p Disk> {
    problem.disks.iter().map(|(pod, disk)| (problem.snapshot.pods[*pod].key(), disk)).collect()
}

/// What is lost with the disks of nodes that go. O(removals x (volumes + pods that need a disk)).
fn of_disks(steps: &[Step], problem: &Problem<'_>, lost: &BTreeMap<String, &Disk>) -> Vec<Risk> {
    let mut risks = Vec::new();
    let ephemeral: BTreeSet<String> = problem.snapshot.pods.iter().flat_map(ephemeral_claims).collect();
    for step in steps.iter().filter(|step| step.kind == StepKind::Remove) {
        let node = step.node.as_deref().unwrap_or(&step.node_claim);
        let mut told = BTreeSet::new();
        for pod in &step.pods {
            let Some(Disk { volume, holds_pod }) = lost.get(pod) else { continue };
            told.insert(volume.as_str());
            let so = if *holds_pod { ", and the pod runs nowhere else until its claim is made anew" } else { "" };
            let text =
                format!("PersistentVolume {volume} is a disk of node {node}, which goes: what is on it is lost{so}");
            risks.push(Risk { code: RiskCode::DataLost, subject: pod.clone(), text });
        }
        let machine = problem.machines.iter().find(|machine| machine.name == node);
        let host_name = machine.and_then(|machine| machine.label(keys::HOSTNAME)).unwrap_or(node);
        for volume in &problem.snapshot.persistent_volumes {
            let (Some(name), Some(spec)) = (&volume.metadata.name, &volume.spec) else { continue };
            let Some(claim) = &spec.claim_ref else { continue };
            let key = format!(
                "{}/{}",
                claim.namespace.as_deref().unwrap_or_default(),
                claim.name.as_deref().unwrap_or_default()
            );
            let is_told = told.contains(name.as_str()) || ephemeral.contains(&key);
            if is_told || !is_reached_only_from(volume, node, host_name) {
                continue;
            }
            let text = format!(
                "PersistentVolume {name} of this PersistentVolumeClaim is a disk of node {node}, which goes: what is on it is lost"
            );
            risks.push(Risk { code: RiskCode::DataLost, subject: key, text });
        }
    }
    risks
}

/// Claims, as `namespace/name`, that go with the pod.
fn ephemeral_claims(pod: &Pod) -> impl Iterator<Item = String> {
    let volumes = pod.spec.volumes.iter().filter(|volume| volume.ephemeral.is_some());
    volumes.map(|volume| format!("{}-{}", pod.key(), volume.name))
}

/// Of a pod that may take its time to end. Its node gives it no more than it has itself: reference, section 4.9.
fn long_drain(pod: &Pod, going: &Going<'_>) -> Option<String> {
    let grace = pod.spec.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
    if grace <= LONG_DRAIN_SECONDS {
        return None;
    }
    let claim = pod.spec.node_name.as_deref().and_then(|node| going.claims.get(node));
    let of_node = claim.and_then(|claim| claim.spec.termination_grace_period.as_ref()?.seconds());
    let at_most = of_node.and_then(|seconds| i64::try_from(seconds).ok()).filter(|seconds| *seconds < grace);
    let grace = duration_text(grace);
    Some(match at_most {
        Some(seconds) => {
            let at_most = duration_text(seconds);
            format!("wants {grace} to end, and is ended after {at_most}: terminationGracePeriod of its node is shorter")
        }
        None => format!("may take {grace} to end"),
    })
}

fn of_pods(steps: &[Step], disturbed: &Disturbed<'_>, lost: &BTreeMap<String, &Disk>, going: &Going<'_>) -> Vec<Risk> {
    let mut risks = Vec::new();
    // By two budgets, how many pods both cover.
    let mut covered_twice: BTreeMap<(String, String, bool), usize> = BTreeMap::new();
    let removals = steps.iter().filter(|step| step.kind == StepKind::Remove);
    for pod in removals.flat_map(|step| disturbed.by(step)) {
        let mut risk = |code, text: String| risks.push(Risk { code, subject: pod.key(), text });
        let is_evicted = is_evicted(pod);
        if !is_evicted {
            let budgets = disturbed.budgets.covering(pod);
            let budgets: Vec<String> = budgets.iter().map(|budget| budget.key()).collect();
            let so = if budgets.is_empty() {
                String::new()
            } else {
                format!(", whatever PodDisruptionBudget {} says", budgets.join(", "))
            };
            risk(
                RiskCode::EndsWithInstance,
                format!("tolerates the removal: it is not evicted, and ends with the instance{so}"),
            );
        }
        if pod.metadata.owner_references.is_empty() {
            risk(RiskCode::NoController, "nobody makes it again when it is evicted".to_owned());
        }
        if let Some(text) = long_drain(pod, going).filter(|_| is_evicted) {
            risk(RiskCode::LongDrain, text);
        }
        let volumes = pod.spec.volumes.iter().filter(|volume| volume.persistent_volume_claim.is_some()).count();
        // Of those that start nowhere else, none has to detach.
        if volumes > 0 && !lost.contains_key(&pod.key()) {
            let noun = if volumes == 1 { "volume" } else { "volumes" };
            risk(RiskCode::VolumesDetach, format!("{volumes} {noun} must detach before it starts elsewhere"));
        }
        let is_for_later = going.leaves_for_later(pod, disturbed);
        match disturbed.budgets.never(pod).filter(|_| is_evicted) {
            Some(Never::AllIsAskedFor(budget)) => {
                let so = if is_for_later { "; nothing is bought for its pods before" } else { "" };
                let text = format!("never allows an eviction, however many replicas are ready{so}");
                risks.push(Risk { code: RiskCode::PodDisruptionBudgetNeverAllows, subject: budget.key(), text });
            }
            Some(Never::TwoBudgets(one, two)) => {
                *covered_twice.entry((one.key(), two.name().to_owned(), is_for_later)).or_default() += 1;
            }
            None => {}
        }
    }
    risks.extend(covered_twice.into_iter().map(|((one, two, is_for_later), pods)| {
        let so = if is_for_later { "; nothing is bought for them before" } else { "" };
        let pods = pods_text(pods);
        let text = format!(
            "covers {pods} together with PodDisruptionBudget {two}: the eviction API never lets such pods go{so}"
        );
        Risk { code: RiskCode::PodDisruptionBudgetNeverAllows, subject: one, text }
    }));
    risks
}
