//! Events of the controller as Kubernetes Events, with the reference's reasons.
//! Source: reference, section 7.3.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::event_reason::EventReason;
use crate::core::lifecycle::interruption::InterruptionKind;
use crate::core::model::HourlyPrice;
use crate::core::plan::{
    Balance, BudgetKind, BudgetState, HeldBack, Plan, ReasonCode, RefusedNode, Step, StepKind, with_place,
};
use crate::ports::Notice;

use super::{Event, Replacement};

/// A plan that concerns more pods than this is told on its nodes and pools alone: the API server has better things to do.
const PODS_MAX: usize = 100;

/// For which budgets may be, in the reference's order of methods.
const DISRUPTION_REASONS: [&str; 3] = ["Empty", "Drifted", "Underutilized"];

/// What to tell, and on which objects.
pub fn of(event: &Event) -> Vec<Notice> {
    match event {
        Event::PlanPosted { plan, node_claims, unreadable_annotations } => {
            of_plan(plan, node_claims, unreadable_annotations)
        }
        Event::AdoptedNode { node, node_claim, node_pool } => {
            let note = format!("NodePool {node_pool} took it over");
            vec![
                on_node(node, false, EventReason::Adopted, note.clone()),
                on_claim(node_claim, false, EventReason::Adopted, note),
            ]
        }
        Event::InsufficientCapacity { node_claim, error } => {
            let note = format!("NodeClaim {node_claim} event: {error}");
            vec![on_claim(node_claim, true, EventReason::InsufficientCapacityError, note)]
        }
        Event::LaunchFailed { node_claim, error } => {
            vec![on_claim(node_claim, true, EventReason::LaunchFailed, error.clone())]
        }
        Event::RegisteredNodeClaim { node_claim, node, .. } => {
            vec![on_claim(node_claim, false, EventReason::Registered, format!("Node {node} registered"))]
        }
        Event::InitializedNodeClaim { node_claim, node, .. } => {
            vec![on_claim(node_claim, false, EventReason::Initialized, format!("Node {node} initialized"))]
        }
        Event::InconsistentNodeClaim { node_claim, fault } => {
            vec![on_claim(node_claim, true, EventReason::FailedConsistencyCheck, fault.clone())]
        }
        Event::AwaitingDetachment { node_claim, node, volumes } => {
            let note = format!("Awaiting detachment of {}", volumes.join(", "));
            vec![
                on_node(node, false, EventReason::AwaitingVolumeDetachment, note.clone()),
                on_claim(node_claim, false, EventReason::AwaitingVolumeDetachment, note),
            ]
        }
        Event::NodeRefused { refused } => {
            let RefusedNode { node, node_claim, text, next_attempt_at, .. } = refused.as_ref();
            let note = format!(
                "kube-scheduler refuses it the pods it was bought for: {text}; the next not before {next_attempt_at}"
            );
            vec![
                on_node(node, true, EventReason::RefusedByScheduler, note.clone()),
                on_claim(node_claim, true, EventReason::RefusedByScheduler, note),
            ]
        }
        Event::RevisionUnsigned { revision, unsigned, node_pools, .. } => {
            let id = revision.id.get(..7).unwrap_or(&revision.id);
            let first = unsigned.first().map(ToString::to_string).unwrap_or_default();
            let note = format!("Revision {id} is not used: {first}");
            node_pools.iter().map(|pool| on_pool(pool, true, EventReason::RevisionNotSigned, note.clone())).collect()
        }
        Event::RolloutHalted { node_pool, because } => {
            vec![on_pool(node_pool, true, EventReason::RolloutHalted, format!("No more nodes are replaced: {because}"))]
        }
        Event::InstanceEnded { node_claim, provider_id, text, .. } => {
            let note = format!("Instance {provider_id} ended before its node joined: {text}");
            vec![on_claim(node_claim, true, EventReason::InstanceEnded, note)]
        }
        Event::NodeClassNotReady { node_class, condition, reason, text } => {
            let note = format!("{condition} is not true, {reason}: {text}");
            vec![on_class(node_class, true, EventReason::NodeClassNotReady, note)]
        }
        Event::LaunchesPaused { node_pool, because, until } => {
            vec![on_pool(
                node_pool,
                true,
                EventReason::LaunchesPaused,
                format!("{because}; none is launched before {until}"),
            )]
        }
        event => of_disruption(event),
    }
}

fn of_plan(
    plan: &Plan,
    node_claims: &BTreeMap<String, String>,
    unreadable_annotations: &BTreeMap<String, String>,
) -> Vec<Notice> {
    let mut notices = on_pools(plan);
    notices.extend(on_candidates(plan, node_claims));
    notices.extend(on_balanced(plan, node_claims));
    notices.extend(unreadable_annotations.iter().filter_map(|(pod, fault)| {
        let note = format!("Invalid karpenter.sh/do-not-disrupt annotation: {fault}, ignoring annotation");
        on_pod(pod, true, EventReason::InvalidDoNotDisruptAnnotation, note)
    }));
    for step in plan.steps.iter().filter(|step| step.kind == StepKind::Create && step.pods.len() <= PODS_MAX) {
        for pod in &step.pods {
            let note = format!("Pod should schedule on: nodeclaim/{}", step.node_claim);
            notices.extend(on_pod(pod, false, EventReason::Nominated, note));
        }
    }
    for pending in plan.pending.iter().filter(|pending| pending.pods.len() <= PODS_MAX) {
        let reasons: Vec<String> =
            pending.reasons.iter().map(|reason| with_place(&reason.text, reason.definition.as_ref())).collect();
        for pod in &pending.pods {
            let note = format!("Failed to schedule pod, {}", reasons.join("; "));
            notices.extend(on_pod(pod, true, EventReason::FailedScheduling, note));
        }
    }
    for held in &plan.held_back {
        notices.extend(on_held_back(held, node_claims.get(&held.node)));
    }
    notices
}

/// On nodes that go, step by step, on those that replace them, and on their pods.
fn of_disruption(event: &Event) -> Vec<Notice> {
    match event {
        Event::DisruptingNodes { reason, replacements, .. } => {
            let note = format!("Launching NodeClaim: {:?}", reason.code);
            let told =
                |new: &Replacement| on_claim(&new.node_claim, false, EventReason::DisruptionLaunching, note.clone());
            replacements.iter().map(told).collect()
        }
        Event::AwaitingReplacement { node_claim } => {
            let note = "Waiting on readiness to continue disruption".to_owned();
            vec![on_claim(node_claim, false, EventReason::DisruptionWaitingReadiness, note)]
        }
        Event::TerminatingNode { node, node_claim, reason, text } => {
            let text = match ReasonCode::of_word(reason) {
                _ if text.is_empty() => reason.clone(),
                Some(code) if code.begins_its_text() => text.clone(),
                _ => format!("{reason}: {text}"),
            };
            let reason = EventReason::DisruptionTerminating;
            let of_node = (!node.is_empty()).then(|| on_node(node, false, reason, format!("Disrupting Node: {text}")));
            let of_claim = on_claim(node_claim, false, reason, format!("Disrupting NodeClaim: {text}"));
            of_node.into_iter().chain([of_claim]).collect()
        }
        Event::ConsolidationRejected { disrupted, replacements, savings, because } => disrupted
            .iter()
            .flat_map(|node| {
                let command = command(&node.node, disrupted.len(), *replacements);
                let note =
                    format!("Consolidation rejected: {command}, reason: {because} (savings: {})", dollars(*savings));
                on_both(&node.node, Some(&node.node_claim), EventReason::ConsolidationRejected, &note)
            })
            .collect(),
        Event::AnnotatedNodeClaim { node_claim, node, termination_time } => {
            let note = format!("All pods will be deleted by {termination_time}");
            let reason = EventReason::TerminationGracePeriodExpiring;
            let of_node = (!node.is_empty()).then(|| on_node(node, true, reason, note.clone()));
            of_node.into_iter().chain([on_claim(node_claim, true, reason, note)]).collect()
        }
        Event::EvictedPod { pod, reason } => {
            on_pod(pod, false, EventReason::Evicted, format!("Evicted pod: {reason}")).into_iter().collect()
        }
        Event::DeletedPod { pod, termination_time, grace_seconds, own_grace_seconds } => {
            let note = format!(
                "Deleting the pod to accommodate the terminationTime {termination_time} of the node. The pod was granted \
                 {grace_seconds} seconds of grace-period of its {own_grace_seconds} terminationGracePeriodSeconds. This bypasses \
                 the PDB of the pod and the do-not-disrupt annotation."
            );
            on_pod(pod, false, EventReason::Disrupted, note).into_iter().collect()
        }
        Event::EvictionBlocked { pod, node, error } => {
            let mut notices =
                vec![on_node(node, true, EventReason::FailedDraining, format!("Failed to drain node, {error}"))];
            notices.extend(on_pod(pod, true, EventReason::FailedDraining, error.clone()));
            notices
        }
        Event::Interrupted { node_claim, node, kind, message, ends } => {
            of_interruption(node_claim, node, *kind, message, *ends)
        }
        Event::CommandFailed { node, node_claim, missing } => {
            let note = format!("Replacement {} never came; the node stays", missing.join(", "));
            vec![
                on_node(node, true, EventReason::DisruptionBlocked, note.clone()),
                on_claim(node_claim, true, EventReason::DisruptionBlocked, note),
            ]
        }
        Event::DisruptionTakenBack { node, .. } => {
            let note = "Nobody goes on with the disruption that another controller began; the node stays for now";
            vec![on_node(node, true, EventReason::DisruptionBlocked, note.to_owned())]
        }
        _ => Vec::new(),
    }
}

/// That EC2 announced something about an instance.
fn of_interruption(node_claim: &str, node: &str, kind: InterruptionKind, message: &str, ends: bool) -> Vec<Notice> {
    let both = |is_warning, reason: EventReason, note: &str| {
        [on_node(node, is_warning, reason, note.to_owned()), on_claim(node_claim, is_warning, reason, note.to_owned())]
    };
    let mut notices = both(true, interrupted_as(kind), message).to_vec();
    if ends {
        notices.extend(both(true, EventReason::TerminatingOnInterruption, "Interruption triggered termination"));
    }
    notices
}

/// Pools of which nothing may go for a reason, and pools that no instance type is left for.
fn on_pools(plan: &Plan) -> Vec<Notice> {
    // Of a percentage something is left as long as there is a node.
    let allows_none = |budget: &&BudgetState| {
        let is_zero = matches!(budget.nodes.trim_end_matches('%').parse::<usize>(), Ok(0));
        budget.kind == BudgetKind::NodePool && budget.active && budget.nodes_counted > 0 && is_zero
    };
    let mut blocked: BTreeSet<(&str, &str)> = BTreeSet::new();
    for budget in plan.budgets.iter().filter(allows_none) {
        let applies = |reason: &&str| budget.reasons.is_empty() || budget.reasons.iter().any(|its| its == reason);
        blocked.extend(DISRUPTION_REASONS.iter().copied().filter(applies).map(|reason| (budget.name.as_str(), reason)));
    }
    let blocked = blocked.into_iter().map(|(pool, reason)| {
        let note = format!("No allowed disruptions for disruption reason {reason} due to blocking budget");
        on_pool(pool, false, EventReason::DisruptionBlocked, note)
    });
    let of_pods = plan.pending.iter().flat_map(|pending| &pending.reasons);
    let without_types: BTreeSet<&str> = of_pods
        .filter(|reason| reason.code == ReasonCode::NodePoolHasNoInstanceType)
        .map(|reason| reason.node_pool.as_str())
        .collect();
    let without_types = without_types.into_iter().map(|pool| {
        let note = "NodePool requirements filtered out all compatible available instance types".to_owned();
        on_pool(pool, true, EventReason::NoCompatibleInstanceTypes, note)
    });
    blocked.chain(without_types).collect()
}

/// Nodes that the plan removes to save money.
fn on_candidates(plan: &Plan, node_claims: &BTreeMap<String, String>) -> Vec<Notice> {
    let mut moves: BTreeMap<u32, (Vec<&str>, usize, HourlyPrice)> = BTreeMap::new();
    for step in &plan.steps {
        let entry = moves.entry(step.move_number).or_default();
        match step.kind {
            StepKind::Create => {
                entry.1 += 1;
                entry.2 -= step.price_per_hour;
            }
            StepKind::Remove if step.reason.code.saves_money() => {
                entry.0.extend(step.node.as_deref());
                entry.2 += step.price_per_hour;
            }
            StepKind::Remove | StepKind::Adopt | StepKind::Hold => {}
        }
    }
    let told = moves.into_values().flat_map(|(nodes, replacements, savings)| {
        let together = nodes.len();
        let told = nodes.into_iter().flat_map(move |node| {
            let command = command(node, together, replacements);
            let note = format!("Consolidation candidate: {command} (savings: {})", dollars(savings));
            on_both(node, node_claims.get(node), EventReason::ConsolidationCandidate, &note)
        });
        told.collect::<Vec<_>>()
    });
    told.collect()
}

/// That a move is worth it to a pool with `Balanced`: on the node if it is one, else on the pool.
fn on_balanced(plan: &Plan, node_claims: &BTreeMap<String, String>) -> Vec<Notice> {
    let told = |balance: &Balance| {
        let goes = |step: &&Step| step.kind == StepKind::Remove && step.move_number == balance.move_number;
        let gone: Vec<&str> = plan.steps.iter().filter(goes).filter_map(|step| step.node.as_deref()).collect();
        let note = format!(
            "score {:.2} >= threshold {:.2} (k: {}, savings {:.1}%, disruption {:.1}%)",
            balance.score(),
            Balance::threshold(),
            Balance::FACTOR,
            balance.savings_percent,
            balance.disruption_percent
        );
        match gone.as_slice() {
            [node] => on_both(node, node_claims.get(*node), EventReason::ConsolidationApproved, &note),
            _ => vec![on_pool(&balance.node_pool, false, EventReason::ConsolidationApproved, note)],
        }
    };
    plan.balances.iter().flat_map(told).collect()
}

/// The reference's short form: what is done to a node, and with how many others.
fn command(node: &str, nodes: usize, replacements: usize) -> String {
    let decision = if replacements == 0 { "delete" } else { "replace" };
    match (nodes, replacements) {
        (1, 0) => format!("{decision}: [{node}]"),
        (1, 1) => format!("{decision}: [{node}] -> [1 replacement]"),
        (1, more) => format!("{decision}: [{node}] -> [{more} replacements]"),
        (several, _) => format!("{decision}: [{node}] (part of {several}-node consolidation)"),
    }
}

/// An hour, as the reference writes it.
fn dollars(price: HourlyPrice) -> String {
    format!("${:.2}", price.dollars())
}

/// On the node, and on its NodeClaim where it has one.
fn on_both(node: &str, node_claim: Option<&String>, reason: EventReason, note: &str) -> Vec<Notice> {
    let mut notices = vec![on_node(node, false, reason, note.to_owned())];
    notices.extend(node_claim.map(|claim| on_claim(claim, false, reason, note.to_owned())));
    notices
}

fn on_held_back(held: &HeldBack, node_claim: Option<&String>) -> Vec<Notice> {
    let note = with_place(&held.text, held.definition.as_ref());
    blocked_as(held.code).map(|reason| on_both(&held.node, node_claim, reason, &note)).unwrap_or_default()
}

/// The reference's reason for an event about what EC2 announced.
fn interrupted_as(kind: InterruptionKind) -> EventReason {
    match kind {
        InterruptionKind::Spot => EventReason::SpotInterrupted,
        InterruptionKind::Rebalance => EventReason::SpotRebalanceRecommendation,
        InterruptionKind::Stopping => EventReason::InstanceStopping,
        InterruptionKind::Terminating => EventReason::InstanceTerminating,
        InterruptionKind::ScheduledChange | InterruptionKind::StatusCheckFailed => EventReason::InstanceUnhealthy,
        InterruptionKind::CapacityReservation => EventReason::CapacityReservationInstanceInterrupted,
        InterruptionKind::CapacityBlock => EventReason::CapacityBlockExpiring,
    }
}

/// The reference's reason for an event about a node that stays; `None`: it tells of none, since waiting is the rule.
fn blocked_as(code: ReasonCode) -> Option<EventReason> {
    match code {
        ReasonCode::ConsolidateAfterNotElapsed => None,
        ReasonCode::NodeRepairBlocked => Some(EventReason::NodeRepairBlocked),
        ReasonCode::ConsolidationDisabled
        | ReasonCode::NotCheaper
        | ReasonCode::PaybackTooLong
        | ReasonCode::PodsWouldNotFit
        | ReasonCode::UnknownInstanceType => Some(EventReason::Unconsolidatable),
        _ => Some(EventReason::DisruptionBlocked),
    }
}

fn on_pod(pod: &str, is_warning: bool, reason: EventReason, note: String) -> Option<Notice> {
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
        reason,
        note,
    })
}

fn on_node(node: &str, is_warning: bool, reason: EventReason, note: String) -> Notice {
    // kubectl describe finds events of a node by its name as UID.
    let uid = Some(node.to_owned());
    cluster_scoped("v1", "Node", node, uid, is_warning, reason, note)
}

fn on_claim(claim: &str, is_warning: bool, reason: EventReason, note: String) -> Notice {
    cluster_scoped("karpenter.sh/v1", "NodeClaim", claim, None, is_warning, reason, note)
}

fn on_class(class: &str, is_warning: bool, reason: EventReason, note: String) -> Notice {
    cluster_scoped("karpenter.k8s.aws/v1", "EC2NodeClass", class, None, is_warning, reason, note)
}

fn on_pool(pool: &str, is_warning: bool, reason: EventReason, note: String) -> Notice {
    cluster_scoped("karpenter.sh/v1", "NodePool", pool, None, is_warning, reason, note)
}

fn cluster_scoped(
    api_version: &'static str,
    kind: &'static str,
    name: &str,
    uid: Option<String>,
    is_warning: bool,
    reason: EventReason,
    note: String,
) -> Notice {
    let name = name.to_owned();
    Notice { api_version, kind, namespace: None, name, uid, is_warning, reason, note }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::plan::{DefinitionPlace, Reason};

    #[test]
    fn why_a_node_stays_is_told_on_it_and_on_its_claim() {
        let held = |code| HeldBack {
            node: "node-1".to_owned(),
            code,
            text: "a budget allows none".to_owned(),
            kind: Vec::new(),
            budget: None,
            definition: None,
        };
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

    #[test]
    fn events_say_where_the_definition_is() {
        let definition = Some(DefinitionPlace { file: "nodepools/default.yaml".to_owned(), line: 23 });
        let text = "a budget allows none".to_owned();
        let (node, kind) = ("node-1".to_owned(), Vec::new());
        let held = HeldBack { node, code: ReasonCode::BudgetExhausted, text, kind, budget: None, definition };
        let said: Vec<String> = on_held_back(&held, None).into_iter().map(|it| it.note).collect();
        assert_eq!(said, ["a budget allows none (nodepools/default.yaml:23)"]);
    }

    fn told(notices: &[Notice]) -> Vec<String> {
        notices.iter().map(|it| format!("{} {} {}: {}", it.kind, it.name, it.reason, it.note)).collect()
    }

    /// Source of the words: `pkg/controllers/disruption/events` of Karpenter 1.14.1.
    #[test]
    fn a_disruption_is_told_step_by_step_in_the_words_of_the_reference() {
        let (node, node_claim) = ("node-1".to_owned(), "default-1".to_owned());
        let replacement = Replacement {
            node_claim: "default-2".to_owned(),
            capacity_type: "spot".to_owned(),
            instance_types: vec![],
        };
        let reason = Reason::new(ReasonCode::Drifted, "NodePoolDrifted: other".to_owned());
        let launching = Event::DisruptingNodes {
            plan_id: "p".to_owned(),
            move_number: 1,
            reason,
            pods: 1,
            disrupted: vec![],
            replacements: vec![replacement],
        };
        assert_eq!(told(&of(&launching)), ["NodeClaim default-2 DisruptionLaunching: Launching NodeClaim: Drifted"]);
        assert_eq!(
            told(&of(&Event::AwaitingReplacement { node_claim: "default-2".to_owned() })),
            ["NodeClaim default-2 DisruptionWaitingReadiness: Waiting on readiness to continue disruption"]
        );
        let (reason, text) = ("Drifted".to_owned(), "NodePoolDrifted: other".to_owned());
        let terminating = Event::TerminatingNode { node, node_claim, reason, text };
        assert_eq!(
            told(&of(&terminating)),
            [
                "Node node-1 DisruptionTerminating: Disrupting Node: Drifted: NodePoolDrifted: other",
                "NodeClaim default-1 DisruptionTerminating: Disrupting NodeClaim: Drifted: NodePoolDrifted: other",
            ]
        );
        let evicted = Event::EvictedPod { pod: "shop/web-1".to_owned(), reason: "Drifted".to_owned() };
        assert_eq!(told(&of(&evicted)), ["Pod web-1 Evicted: Evicted pod: Drifted"]);
    }

    #[test]
    fn pools_that_let_nothing_go_or_have_no_type_are_told_so() {
        let budget = |nodes: &str, reasons: &[&str], nodes_counted| BudgetState {
            name: "default".to_owned(),
            kind: BudgetKind::NodePool,
            nodes: nodes.to_owned(),
            reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            nodes_counted,
            allowed: 0,
            used: 0,
            forced: 0,
            active: true,
            money: None,
            denied_by: None,
            definition: None,
        };
        let mut plan: Plan =
            serde_json::from_str(include_str!("../../../tests/plan/drifted-requirement/expected.json")).unwrap();
        plan.pending.clear();
        let blocked = |reason: &str| {
            format!(
                "NodePool default DisruptionBlocked: No allowed disruptions for disruption reason {reason} due to blocking budget"
            )
        };
        plan.budgets = vec![budget("0", &["Drifted"], 3), budget("10%", &[], 3), budget("1", &[], 3)];
        assert_eq!(told(&on_pools(&plan)), [blocked("Drifted")]);
        plan.budgets = vec![budget("0%", &[], 3)];
        assert_eq!(told(&on_pools(&plan)), ["Drifted", "Empty", "Underutilized"].map(blocked));
        plan.budgets = vec![budget("0", &[], 0)];
        assert!(on_pools(&plan).is_empty(), "no node");
    }

    /// Source of the words: `consolidationScoreMessage` of Karpenter 1.14.1.
    #[test]
    fn a_move_that_is_worth_it_to_a_balanced_pool_is_told_on_its_node_or_on_the_pool() {
        let mut plan: Plan =
            serde_json::from_str(include_str!("../../../tests/plan/drifted-requirement/expected.json")).unwrap();
        let removals = || plan.steps.iter().position(|step| step.kind == StepKind::Remove);
        let mut removal = plan.steps[removals().unwrap()].clone();
        (removal.move_number, removal.node) = (7, Some("a1".to_owned()));
        let balance = |node_pool: &str| Balance {
            move_number: 7,
            node_pool: node_pool.to_owned(),
            savings_percent: 50.0,
            disruption_percent: 40.0,
        };
        plan.steps = vec![removal.clone()];
        plan.balances = vec![balance("a")];
        let note = "ConsolidationApproved: score 1.25 >= threshold 0.50 (k: 2, savings 50.0%, disruption 40.0%)";
        let claims = [("a1".to_owned(), "a-1".to_owned())].into();
        assert_eq!(told(&on_balanced(&plan, &claims)), [format!("Node a1 {note}"), format!("NodeClaim a-1 {note}")]);
        plan.steps.push(Step { node: Some("b1".to_owned()), ..removal });
        plan.balances.push(balance("b"));
        assert_eq!(told(&on_balanced(&plan, &claims)), ["a", "b"].map(|pool| format!("NodePool {pool} {note}")));
    }

    #[test]
    fn a_class_is_told_what_it_lacks() {
        let event = Event::NodeClassNotReady {
            node_class: "default".to_owned(),
            condition: "SubnetsReady".to_owned(),
            reason: "SubnetsNotFound".to_owned(),
            text: "no subnet has the tag team=x".to_owned(),
        };
        let note = "SubnetsReady is not true, SubnetsNotFound: no subnet has the tag team=x";
        assert_eq!(told(&of(&event)), [format!("EC2NodeClass default NodeClassNotReady: {note}")]);
    }

    #[test]
    fn commands_are_written_as_the_reference_writes_them() {
        assert_eq!(command("a", 1, 0), "delete: [a]");
        assert_eq!(command("a", 1, 2), "replace: [a] -> [2 replacements]");
        assert_eq!(command("a", 3, 1), "replace: [a] (part of 3-node consolidation)");
    }
}
