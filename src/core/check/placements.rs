//! Every pod that the plan gives a place, put there and judged by the filters.

use std::collections::{BTreeMap, BTreeSet};

use crate::kube_scheduler::{FilterContext, repels};
use crate::plan::{Plan, ReasonCode, StepKind};
use crate::snapshot::{Pod, nodes};

use super::disks::needs_disk;
use super::known::{Existing, Known, belongs_to_node, must_move};
use super::rehearsal::{Scene, daemon_pods};
use super::removals::{Rights, has_no_future};
use super::steps::{alternatives, removed_node, removed_nodes, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

/// How many looks at pods [`check`] takes, at most: each pod that gets a place looks at all that run where it, or one of them, has a
/// constraint over others, once for the plan and once for each alternative of its node.
pub(super) fn looks(plan: &Plan, known: &Known<'_>) -> u64 {
    let is_constrained = |pod: &Pod| {
        let affinity = pod.spec.affinity.as_ref();
        let has_terms = affinity.is_some_and(|it| it.pod_affinity.is_some() || it.pod_anti_affinity.is_some());
        has_terms || !pod.spec.topology_spread_constraints.is_empty()
    };
    let pods = known.pods.len() as u64;
    let repelling = known.pods.values().filter(|pod| repels(pod)).count() as u64;
    let of_pod = |key: &String| match known.pods.get(key) {
        Some(pod) if is_constrained(pod) => pods,
        _ => repelling + 1,
    };
    let created = steps(plan, StepKind::Create).map(|step| {
        let variants = alternatives(step).len() as u64 + 2;
        step.pods.iter().map(of_pod).sum::<u64>().saturating_mul(variants)
    });
    let placed = plan.placements.iter().map(|placement| of_pod(&placement.pod).saturating_mul(2));
    let pending = plan.pending.iter().flat_map(|pending| &pending.pods).map(of_pod);
    created.chain(placed).chain(pending).fold(pods.saturating_mul(2), u64::saturating_add)
}

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let destinations = destinations(plan, known, findings);
    let scene = Scene::new(plan, known, &destinations);
    let as_shown = scene.rehearse(None);
    for (pod, node, refusal) in &as_shown.refused {
        findings.add(ViolationCode::Refused, ViolationPlace::pod(pod), format!("on node {node}: {refusal}"));
    }
    if as_shown.refused.is_empty() {
        requested_resources(plan, &as_shown.context, findings);
        other_alternatives(plan, &scene, as_shown.context, findings);
        pending_pods_fit_nowhere(plan, known, &scene, findings);
    }
    everybody_has_a_place(plan, known, &destinations, findings);
    nobody_is_put_on_what_expired(plan, known, findings);
    nobody_is_put_on_what_is_doubled(plan, known, findings);
}

fn nobody_is_put_on_what_expired(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    for placement in &plan.placements {
        let existing = known.nodes.get(&placement.node);
        if existing.is_some_and(|existing| !existing.going && has_no_future(existing, known)) {
            let text = format!("node {} expired", placement.node);
            findings.add(ViolationCode::ExpiredTarget, ViolationPlace::pod(&placement.pod), text);
        }
    }
}

/// Of two nodes that say that they are of one instance at most one has the room that both say they have.
fn nobody_is_put_on_what_is_doubled(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let doubts = &known.inputs.snapshot.doubts;
    for placement in plan.placements.iter().filter(|placement| doubts.is_doubled(&placement.node)) {
        let text = format!("another one has the provider ID of node {}", placement.node);
        findings.add(ViolationCode::DoubledTarget, ViolationPlace::pod(&placement.pod), text);
    }
}

/// The other instance types and zones that may be launched must do as well: one at a time, with all else as planned.
fn other_alternatives<'s>(plan: &Plan, scene: &'s Scene<'_>, mut finished: FilterContext<'s>, findings: &mut Findings) {
    for variant in scene.variants.iter().filter(|variant| variant.alternative > 0) {
        let step = &plan.steps[variant.step];
        if scene.takes_the_same_pods(variant, &mut finished) {
            continue;
        }
        // Put in at the end it refuses; put in from the start the pods may come in an order that works.
        for (pod, node, refusal) in scene.rehearse(Some(variant)).refused {
            let what = format!("{} in {}", variant.instance_type, variant.zone);
            let text = format!("with alternative {what}, pod {pod} on node {node}: {refusal}");
            findings.add(ViolationCode::Refused, ViolationPlace::step(step), text);
        }
    }
}

/// A pod that is left pending must not fit on a node that stays: kube-scheduler would put it there. Asked when pending
/// pods have their places and nothing has been removed yet, because that is what a planner looks at first; what a removal
/// makes possible is for the next plan. Pods under spread constraints are left out: Karpenter reckons with the zones and
/// hosts that new nodes could bring, kube-scheduler only with those that are there, so a pod that waits may well fit. And what
/// DaemonSets will run on a node is kept free.
fn pending_pods_fit_nowhere(plan: &Plan, known: &Known<'_>, scene: &Scene<'_>, findings: &mut Findings) {
    let removed = removed_nodes(plan);
    // What a planner says that it can not plan for, it may leave.
    let supported = plan.pending.iter().filter(|it| it.reasons.iter().all(|it| it.code != ReasonCode::NotSupported));
    let pods = supported.flat_map(|pending| &pending.pods).filter_map(|key| Some((key, *known.pods.get(key)?)));
    let pods = pods.filter(|(_, pod)| {
        pod.spec.node_name.is_none()
            && pod.spec.topology_spread_constraints.is_empty()
            && pod.status.nominated_node_name.is_none()
    });
    let pods: Vec<(&String, &Pod)> = pods.collect();
    let stays = |name: &str, existing: &Existing<'_>| {
        existing.initialized
            && !existing.going
            && !has_no_future(existing, known)
            && !removed.contains(name)
            && !known.inputs.snapshot.doubts.is_doubled(name)
    };
    let staying: Vec<(&String, &Existing<'_>)> =
        known.nodes.iter().filter(|(name, existing)| stays(name, existing)).collect();
    let context = scene.before_removals();
    let with_room = |(_, pod): &(&String, &Pod)| {
        let examination = context.examine(pod);
        staying.iter().copied().find(|(_, existing)| examination.refusal(&existing.node).is_none())
    };
    let suspects: BTreeMap<&String, &Existing<'_>> = pods.iter().filter_map(with_room).collect();
    let coming: Vec<(&String, Pod)> = suspects
        .iter()
        .flat_map(|(name, existing)| daemon_pods(&existing.node, known).into_iter().map(move |daemon| (*name, daemon)))
        .filter(|(name, daemon)| !context.pods_on(name).any(|pod| is_of_same_daemon_set(pod, daemon)))
        .collect();
    let mut context = context;
    for (name, daemon) in &coming {
        context.place(daemon, name);
    }
    for (key, pod) in pods {
        let examination = context.examine(pod);
        let found = suspects.iter().find(|(_, existing)| examination.refusal(&existing.node).is_none());
        if let Some((name, _)) = found {
            findings.add(
                ViolationCode::PendingPodFits,
                ViolationPlace::pod(key),
                format!("node {name} has room for it"),
            );
        }
    }
}

fn is_of_same_daemon_set(one: &Pod, two: &Pod) -> bool {
    let set = |pod: &Pod| {
        let owner = pod.metadata.owner_references.iter().find(|owner| owner.kind == "DaemonSet");
        owner.map(|owner| (pod.metadata.namespace.clone(), owner.name.clone()))
    };
    set(one) == set(two)
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
            findings.add(ViolationCode::UnknownNode, ViolationPlace::pod(&placement.pod), text);
        }
        destinations.insert(placement.pod.clone(), placement.node.clone());
    }
    for (key, pod) in &known.pods {
        let Some(node) = pod.spec.node_name.as_deref().filter(|_| destinations.contains_key(key)) else { continue };
        let going = removed.contains(node) || known.nodes.get(node).is_some_and(|existing| existing.going);
        if !going || belongs_to_node(pod) || pod.is_terminal() {
            let text = format!("runs on node {node}, and nothing makes it leave");
            findings.add(ViolationCode::PodMovedWithoutReason, ViolationPlace::pod(key), text);
        }
    }
    destinations
}

/// `allocatable` and `requested` of the steps, against the node and the pods that are on it afterwards.
fn requested_resources(plan: &Plan, context: &FilterContext<'_>, findings: &mut Findings) {
    for step in steps(plan, StepKind::Create) {
        let Some(node) = context.node(&step.node_claim) else { continue };
        let allocatable = nodes::allocatable(node);
        let requested = context.requested_on(&step.node_claim);
        for (field, shown, right) in
            [("allocatable", &step.allocatable, &allocatable), ("requested", &step.requested, &requested)]
        {
            let names: BTreeSet<&str> = shown.iter().chain(right.iter()).map(|(name, _)| name).collect();
            for name in names.into_iter().filter(|name| shown.get(name) != right.get(name)) {
                let text = format!("{field} {name} is {}, not {}", right.get(name), shown.get(name));
                findings.add(ViolationCode::WrongResources, ViolationPlace::step(step), text);
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
    for step in removals.filter(|step| !Rights::of(step.reason.code).leaves_pods_without_place) {
        for pod in known.pods_on(removed_node(step)).filter(|pod| must_move(pod)) {
            let needs_disk =
                known.nodes.get(removed_node(step)).is_some_and(|existing| needs_disk(pod, existing, known));
            if !needs_disk && !destinations.contains_key(&pod.key()) {
                let text = format!("leaves node {} and has no other", removed_node(step));
                findings.add(ViolationCode::PodWithoutPlace, ViolationPlace::Pod(pod.key()), text);
            }
        }
    }
}
