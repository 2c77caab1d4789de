//! Events of the controller as Kubernetes Events, with the reference's reasons.
//! Source: reference, section 7.3.

use crate::adapters::kubernetes::Notice;
use crate::controller::events::{Event, short};
use crate::core::plan::{HeldBack, ReasonCode, StepKind};

/// A plan that concerns more pods than this is told on its nodes and pools alone: the API server has better things to do.
const MOST_PODS: usize = 100;

/// What to tell, and on which objects.
pub fn of(event: &Event) -> Vec<Notice> {
    match event {
        Event::PlanPosted { plan, node_claims } => {
            let mut notices = Vec::new();
            for step in plan.steps.iter().filter(|step| step.kind == StepKind::Create && step.pods.len() <= MOST_PODS) {
                for pod in &step.pods {
                    let note = format!("Pod should schedule on: nodeclaim/{}", step.node_claim);
                    notices.extend(on_pod(pod, false, "Nominated", note));
                }
            }
            for pending in plan.pending.iter().filter(|pending| pending.pods.len() <= MOST_PODS) {
                let reasons: Vec<&str> = pending.reasons.iter().map(|reason| reason.text.as_str()).collect();
                for pod in &pending.pods {
                    let note = format!("Failed to schedule pod, {}", reasons.join("; "));
                    notices.extend(on_pod(pod, true, "FailedScheduling", note));
                }
            }
            for held in &plan.held_back {
                notices.extend(on_held_back(held, node_claims.get(&held.node)));
            }
            notices
        }
        Event::DisruptingNodes { plan_id, reason, disrupted, .. } => disrupted
            .iter()
            .flat_map(|node| {
                let note = format!("Disrupting Node: {} (plan {})", reason.text, short(plan_id));
                [
                    on_node(&node.node, false, "DisruptionTerminating", note.clone()),
                    on_claim(&node.node_claim, false, "DisruptionTerminating", note),
                ]
            })
            .collect(),
        Event::AdoptedNode { node, node_claim, node_pool } => {
            let note = format!("NodePool {node_pool} took it over");
            vec![on_node(node, false, "Adopted", note.clone()), on_claim(node_claim, false, "Adopted", note)]
        }
        Event::InsufficientCapacity { node_claim, error } => {
            let note = format!("NodeClaim {node_claim} event: {error}");
            vec![on_claim(node_claim, true, "InsufficientCapacityError", note)]
        }
        Event::LaunchFailed { node_claim, error } => vec![on_claim(node_claim, true, "LaunchFailed", error.clone())],
        Event::RegisteredNodeClaim { node_claim, node, .. } => {
            vec![on_claim(node_claim, false, "Registered", format!("Node {node} registered"))]
        }
        Event::InitializedNodeClaim { node_claim, node, .. } => {
            vec![on_claim(node_claim, false, "Initialized", format!("Node {node} initialized"))]
        }
        Event::InconsistentNodeClaim { node_claim, fault } => {
            vec![on_claim(node_claim, true, "FailedConsistencyCheck", fault.clone())]
        }
        Event::AwaitingDetachment { node_claim, node, volumes } => {
            let note = format!("Awaiting detachment of {}", volumes.join(", "));
            vec![
                on_node(node, false, "AwaitingVolumeDetachment", note.clone()),
                on_claim(node_claim, false, "AwaitingVolumeDetachment", note),
            ]
        }
        Event::RolloutHalted { node_pool, because } => {
            vec![on_pool(node_pool, true, "RolloutHalted", format!("No more nodes are replaced: {because}"))]
        }
        Event::EvictionBlocked { pod, node, error } => {
            let mut notices = vec![on_node(node, true, "FailedDraining", format!("Failed to drain node, {error}"))];
            notices.extend(on_pod(pod, true, "FailedDraining", error.clone()));
            notices
        }
        Event::Interrupted { node_claim, node, reason, message, ends } => {
            let both = |is_warning, reason: &str, note: &str| {
                [
                    on_node(node, is_warning, reason, note.to_owned()),
                    on_claim(node_claim, is_warning, reason, note.to_owned()),
                ]
            };
            let mut notices = both(true, reason, message).to_vec();
            if *ends {
                notices.extend(both(true, "TerminatingOnInterruption", "Interruption triggered termination"));
            }
            notices
        }
        Event::CommandFailed { node, node_claim, missing } => {
            let note = format!("Replacement {} never came; the node stays", missing.join(", "));
            vec![
                on_node(node, true, "DisruptionBlocked", note.clone()),
                on_claim(node_claim, true, "DisruptionBlocked", note),
            ]
        }
        _ => Vec::new(),
    }
}

/// On the node, and on its NodeClaim where it has one.
fn on_held_back(held: &HeldBack, node_claim: Option<&String>) -> Vec<Notice> {
    let Some(reason) = blocked_as(held.code) else { return Vec::new() };
    let mut notices = vec![on_node(&held.node, false, reason, held.text.clone())];
    notices.extend(node_claim.map(|claim| on_claim(claim, false, reason, held.text.clone())));
    notices
}

/// The reference's reason for an event about a node that stays; `None`: it tells of none, since waiting is the rule.
fn blocked_as(code: ReasonCode) -> Option<&'static str> {
    match code {
        ReasonCode::ConsolidateAfterNotElapsed => None,
        ReasonCode::NodeRepairBlocked => Some("NodeRepairBlocked"),
        ReasonCode::ConsolidationDisabled
        | ReasonCode::NotCheaper
        | ReasonCode::PaybackTooLong
        | ReasonCode::PodsWouldNotFit
        | ReasonCode::UnknownInstanceType => Some("Unconsolidatable"),
        _ => Some("DisruptionBlocked"),
    }
}

fn on_pod(pod: &str, is_warning: bool, reason: &str, note: String) -> Option<Notice> {
    // Nobody runs the pods of a buffer.
    if crate::core::plan::buffer_of(pod).is_some() {
        return None;
    }
    let (namespace, name) = pod.split_once('/')?;
    Some(Notice {
        api_version: "v1",
        kind: "Pod",
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
        uid: None,
        is_warning,
        reason: reason.to_owned(),
        note,
    })
}

fn on_node(node: &str, is_warning: bool, reason: &str, note: String) -> Notice {
    // kubectl describe finds events of a node by its name as UID.
    let uid = Some(node.to_owned());
    cluster_scoped("v1", "Node", node, uid, is_warning, reason, note)
}

fn on_claim(claim: &str, is_warning: bool, reason: &str, note: String) -> Notice {
    cluster_scoped("karpenter.sh/v1", "NodeClaim", claim, None, is_warning, reason, note)
}

fn on_pool(pool: &str, is_warning: bool, reason: &str, note: String) -> Notice {
    cluster_scoped("karpenter.sh/v1", "NodePool", pool, None, is_warning, reason, note)
}

fn cluster_scoped(
    api_version: &'static str,
    kind: &'static str,
    name: &str,
    uid: Option<String>,
    is_warning: bool,
    reason: &str,
    note: String,
) -> Notice {
    let (name, reason) = (name.to_owned(), reason.to_owned());
    Notice { api_version, kind, namespace: None, name, uid, is_warning, reason, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_node_stays_is_told_on_it_and_on_its_claim() {
        let held = |code| HeldBack { node: "node-1".to_owned(), code, text: "a budget allows none".to_owned() };
        let told = |code, claim: Option<&String>| -> Vec<String> {
            let notices = on_held_back(&held(code), claim);
            notices.iter().map(|it| format!("{} {} {}", it.kind, it.name, it.reason)).collect()
        };
        let claim = "default-1".to_owned();
        let both = ["Node node-1 DisruptionBlocked", "NodeClaim default-1 DisruptionBlocked"];
        assert_eq!(told(ReasonCode::BudgetExhausted, Some(&claim)), both);
        assert_eq!(told(ReasonCode::BudgetExhausted, None), both[..1]);
        assert!(told(ReasonCode::ConsolidateAfterNotElapsed, Some(&claim)).is_empty());
    }
}
