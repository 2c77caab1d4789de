//! Every pod that the plan gives a place, put there and judged by the filters.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;

use crate::core::model::Resources;
use crate::core::plan::{Plan, ReasonCode, StepKind};
use crate::core::snapshot::{Pod, Snapshot};

use super::creations::{alternatives, node_to_come};
use super::filters::{Filter, FilterContext, Refusal};
use super::known::{Known, belongs_to_node, daemon_pod, must_move, removed_node, removed_nodes, steps};
use super::plan::place;
use super::violation::{Findings, ViolationCode};

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let destinations = destinations(plan, known, findings);
    let after = after(plan, known, &destinations);
    let mut context = FilterContext::new(&after);
    let moving: Vec<(&Pod, &str)> =
        after.pods.iter().filter_map(|pod| Some((pod, destinations.get(&pod.key())?.as_str()))).collect();
    let placed_all = place_all(&moving, &mut context, findings);
    requested_resources(plan, &context, findings);
    if placed_all {
        other_alternatives(plan, known, &after, &moving, findings);
        pending_pods_fit_nowhere(plan, known, &context, findings);
    }
    everybody_has_a_place(plan, known, &destinations, findings);
}

/// `namespace/name` of each pod that moves, and the node it goes to.
fn destinations(plan: &Plan, known: &Known<'_>, findings: &mut Findings) -> BTreeMap<String, String> {
    let removed = removed_nodes(plan);
    let mut destinations = BTreeMap::new();
    for step in steps(plan, StepKind::Create) {
        destinations.extend(step.pods.iter().map(|pod| (pod.clone(), step.node_claim.clone())));
    }
    for placement in &plan.placements {
        if !known.nodes.contains_key(&placement.node) || removed.contains(placement.node.as_str()) {
            let text = format!("goes to node {}, which is not there or goes away", placement.node);
            findings.add(ViolationCode::UnknownNode, format!("pod {}", placement.pod), text);
        }
        destinations.insert(placement.pod.clone(), placement.node.clone());
    }
    for (key, pod) in &known.pods {
        let Some(node) = pod.spec.node_name.as_deref().filter(|_| destinations.contains_key(key)) else { continue };
        let going = removed.contains(node) || known.nodes.get(node).is_some_and(|existing| existing.going);
        if !going || belongs_to_node(pod) || pod.is_terminal() {
            let text = format!("runs on node {node}, and nothing makes it leave");
            findings.add(ViolationCode::PodMovedWithoutReason, format!("pod {key}"), text);
        }
    }
    destinations
}

/// The cluster when the plan is carried out, but for the pods that move: those are on no node yet.
fn after(plan: &Plan, known: &Known<'_>, destinations: &BTreeMap<String, String>) -> Snapshot {
    let removed = removed_nodes(plan);
    let mut after = known.inputs.snapshot.clone();
    let stays = |name: &str| !removed.contains(name);
    after.nodes =
        known.nodes.iter().filter(|(name, _)| stays(name)).map(|(_, existing)| existing.node.clone()).collect();
    after.pods.retain(|pod| {
        pod.spec
            .node_name
            .as_deref()
            .is_none_or(|node| !removed.contains(node) || destinations.contains_key(&pod.key()))
    });
    for pod in &mut after.pods {
        if destinations.contains_key(&pod.key()) {
            pod.spec.node_name = None;
            pod.metadata.deletion_timestamp = None;
        }
    }
    let to_come: Vec<Node> = steps(plan, StepKind::Create)
        .filter_map(|step| node_to_come(step, alternatives(step).first()?, known))
        .collect();
    for node in &to_come {
        after.pods.extend(daemon_pods(node, known));
    }
    after.nodes.extend(to_come);
    after
}

/// The pods that DaemonSets run on a new node. Their controller looks at taints and node affinity only.
fn daemon_pods(node: &Node, known: &Known<'_>) -> Vec<Pod> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let empty = Snapshot::default();
    let context = FilterContext::new(&empty);
    let pods = known.inputs.snapshot.daemon_sets.iter().filter_map(|daemon_set| daemon_pod(daemon_set, name));
    pods.filter(|pod| {
        let refusal = context.examine(pod).refusal(node).map(|refusal| refusal.filter);
        !matches!(refusal, Some(Filter::TaintToleration | Filter::NodeAffinity))
    })
    .map(|mut pod| {
        pod.spec.node_name = Some(name.to_owned());
        pod
    })
    .collect()
}

/// Places the pods one by one as a scheduler could: a pod that is refused waits for those after it, because affinity and
/// spread look at who is there already. An order is found when there is one among three; else the first is reported.
fn place_all<'a>(moving: &[(&'a Pod, &'a str)], context: &mut FilterContext<'a>, findings: &mut Findings) -> bool {
    let mut constrained_first = moving.to_vec();
    constrained_first.sort_by_key(|(pod, _)| pod.spec.topology_spread_constraints.is_empty());
    let reversed: Vec<_> = constrained_first.iter().rev().copied().collect();
    let mut first_refusals = None;
    for order in [constrained_first, reversed, moving.to_vec()] {
        let refusals = place_in_order(&order, context);
        if refusals.is_empty() {
            return true;
        }
        for (pod, _) in moving {
            context.remove(pod);
        }
        first_refusals.get_or_insert((order, refusals));
    }
    if let Some((order, refusals)) = first_refusals {
        for (pod, node, refusal) in refusals {
            findings.add(ViolationCode::Refused, format!("pod {}", pod.key()), format!("on node {node}: {refusal}"));
        }
        place_in_order(&order, context);
    }
    false
}

fn place_in_order<'a>(
    order: &[(&'a Pod, &'a str)],
    context: &mut FilterContext<'a>,
) -> Vec<(&'a Pod, &'a str, Refusal)> {
    let mut waiting = order.to_vec();
    loop {
        let mut refused = Vec::new();
        for (pod, node_name) in &waiting {
            // A node that is not there was reported where the plan names it.
            let Some(node) = context.node(node_name) else { continue };
            match context.examine(pod).refusal(node) {
                None => {
                    context.place(pod, node_name);
                }
                Some(refusal) => refused.push((*pod, *node_name, refusal)),
            }
        }
        if refused.is_empty() || refused.len() == waiting.len() {
            return refused;
        }
        waiting = refused.iter().map(|(pod, node, _)| (*pod, *node)).collect();
    }
}

/// The other instance types and zones that may be launched must do as well: one at a time, with all else as planned.
fn other_alternatives(
    plan: &Plan,
    known: &Known<'_>,
    after: &Snapshot,
    moving: &[(&Pod, &str)],
    findings: &mut Findings,
) {
    for step in steps(plan, StepKind::Create) {
        for alternative in alternatives(step).iter().skip(1) {
            let Some(node) = node_to_come(step, alternative, known) else { continue };
            let mut context = FilterContext::new(after);
            let (here, elsewhere): (Vec<_>, Vec<_>) = moving.iter().partition(|(_, name)| *name == step.node_claim);
            context.add_node(&node);
            for (pod, name) in elsewhere {
                context.place(pod, name);
            }
            for (pod, _, refusal) in place_in_order(&here, &mut context) {
                let what = format!("{} in {}", alternative.instance_type, alternative.zone);
                let text = format!("alternative {what} does not take pod {}: {refusal}", pod.key());
                findings.add(ViolationCode::Refused, place(step), text);
            }
        }
    }
}

/// `allocatable` and `requested` of the steps, against the node and the pods that are on it afterwards.
fn requested_resources(plan: &Plan, context: &FilterContext<'_>, findings: &mut Findings) {
    for step in steps(plan, StepKind::Create) {
        let Some(node) = context.node(&step.node_claim) else { continue };
        let quantities = node.status.as_ref().and_then(|status| status.allocatable.clone()).unwrap_or_default();
        let allocatable = Resources::parse(quantities.iter().map(|(name, amount)| (name.as_str(), amount.0.clone())))
            .unwrap_or_default();
        let requested = context.requested_on(&step.node_claim);
        for (field, shown, right) in
            [("allocatable", &step.allocatable, &allocatable), ("requested", &step.requested, &requested)]
        {
            let names: BTreeSet<&str> = shown.iter().chain(right.iter()).map(|(name, _)| name).collect();
            for name in names.into_iter().filter(|name| shown.get(name) != right.get(name)) {
                let text = format!("{field} {name} is {}, not {}", right.get(name), shown.get(name));
                findings.add(ViolationCode::WrongResources, place(step), text);
            }
        }
    }
}

/// A pod that is left pending must not fit on a node that is there: kube-scheduler would put it there.
fn pending_pods_fit_nowhere(plan: &Plan, known: &Known<'_>, context: &FilterContext<'_>, findings: &mut Findings) {
    for key in plan.pending.iter().flat_map(|pending| &pending.pods) {
        let Some(pod) = known.pods.get(key).filter(|pod| pod.spec.node_name.is_none()) else { continue };
        let examination = context.examine(pod);
        let nodes = known.nodes.iter().filter(|(name, existing)| existing.initialized && context.node(name).is_some());
        for (name, existing) in nodes.filter(|(_, existing)| !existing.going) {
            if examination.refusal(&existing.node).is_none() {
                findings.add(
                    ViolationCode::PendingPodFits,
                    format!("pod {key}"),
                    format!("node {name} has room for it"),
                );
                break;
            }
        }
    }
}

/// Pods of removed nodes go somewhere, unless the reason for the removal does not wait for that.
fn everybody_has_a_place(
    plan: &Plan,
    known: &Known<'_>,
    destinations: &BTreeMap<String, String>,
    findings: &mut Findings,
) {
    let removals = steps(plan, StepKind::Remove);
    let waits = |code| !matches!(code, ReasonCode::Empty | ReasonCode::Expired | ReasonCode::StaticCapacity);
    for step in removals.filter(|step| waits(step.reason.code)) {
        for pod in known.pods_on(removed_node(step)).filter(|pod| must_move(pod)) {
            if !destinations.contains_key(&pod.key()) {
                let text = format!("leaves node {} and has no other", removed_node(step));
                findings.add(ViolationCode::PodWithoutPlace, format!("pod {}", pod.key()), text);
            }
        }
    }
}
