//! Every pod that the plan gives a place, put there and judged by the filters.

use std::collections::{BTreeMap, BTreeSet};

use crate::kube_scheduler::FilterContext;
use crate::plan::{Plan, ReasonCode, StepKind};
use crate::snapshot::{Pod, nodes};

use super::disks::needs_disk;
use super::known::{Existing, Known, belongs_to_node, must_move};
use super::rehearsal::{Scene, Variant, daemon_pods};
use super::removals::{Rights, has_no_future};
use super::steps::{removed_node, removed_nodes, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

/// Looks at nodes and pods that judging places may take: a tenth of what plans of 5,000 nodes and 150,000 pods take, and far more than
/// those of ordinary clusters need.
#[derive(Clone, Copy, Debug)]
pub(super) struct LooksMax {
    pub of_any_plan: u64,
    pub of_each_pod: u64,
    pub of_each_pod_that_gets_a_place: u64,
}

impl LooksMax {
    pub(super) const NONE: Self = Self { of_any_plan: u64::MAX, of_each_pod: 0, of_each_pod_that_gets_a_place: 0 };

    fn of(self, destinations: &BTreeMap<String, String>, known: &Known<'_>) -> u64 {
        let pods = self.of_each_pod.saturating_mul(known.pods.len() as u64);
        let places = self.of_each_pod_that_gets_a_place.saturating_mul(destinations.len() as u64);
        self.of_any_plan.saturating_add(pods).saturating_add(places)
    }
}

/// What was not tried, because it would have taken too many looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Untried {
    /// Pods in the places that the plan shows for them.
    pub places: usize,
    /// Other instance types and zones that the plan may launch, with the pods of their nodes.
    pub alternatives: usize,
    /// Pods that stay pending, on the nodes that stay.
    pub pending: usize,
}

/// First what the plan shows, then what it may launch instead, the first alternative of each node before the second of any, at last
/// who stays pending: as far as the looks last.
pub(super) fn check(plan: &Plan, known: &Known<'_>, looks_max: LooksMax, findings: &mut Findings) -> Untried {
    let destinations = destinations(plan, known, findings);
    everybody_has_a_place(plan, known, &destinations, findings);
    nobody_is_put_on_what_expired(plan, known, findings);
    nobody_is_put_on_what_is_doubled(plan, known, findings);
    let looks_max = looks_max.of(&destinations, known);
    let scene = Scene::new(plan, known, &destinations);
    let alternatives = scene.variants.iter().filter(|variant| variant.alternative > 0).count();
    let pending = pending_pods(plan, known);
    let Some(as_shown) = scene.rehearse(None, looks_max) else {
        return Untried { places: destinations.len(), alternatives, pending: pending.len() };
    };
    for (pod, node, refusal) in &as_shown.refused {
        findings.refused(ViolationPlace::pod(pod), &format!("on node {node}"), refusal);
    }
    if !as_shown.refused.is_empty() {
        return Untried::default();
    }
    requested_resources(plan, &as_shown.context, findings);
    let mut finished = as_shown.context;
    let (alternatives, looks) = other_alternatives(plan, &scene, &mut finished, looks_max, findings);
    let looks_left = looks_max.saturating_sub(looks);
    let untried = pending.len();
    let pending = if pending.is_empty() {
        0
    } else {
        let so_far = if scene.removes_nothing() { finished.looks() } else { 0 };
        let looks_max = looks_left.saturating_add(so_far);
        scene
            .before_removals(finished, looks_max)
            .map_or(untried, |context| pending_pods_fit_nowhere(plan, known, &pending, context, looks_max, findings))
    };
    Untried { places: 0, alternatives, pending }
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

/// The other instance types and zones that may be launched must do as well: one at a time, with all else as planned. Says how many were
/// not tried, and how many looks it took.
fn other_alternatives<'s>(
    plan: &Plan,
    scene: &'s Scene<'_>,
    finished: &mut FilterContext<'s>,
    looks_max: u64,
    findings: &mut Findings,
) -> (usize, u64) {
    let of_rehearsal = finished.looks();
    let mut of_others = 0_u64;
    let mut untried = 0;
    let mut variants: Vec<&Variant> = scene.variants.iter().filter(|variant| variant.alternative > 0).collect();
    variants.sort_by_key(|variant| variant.alternative);
    for variant in variants {
        let step = &plan.steps[variant.step];
        let left = |finished: &FilterContext<'_>| looks_max.checked_sub(finished.looks().saturating_add(of_others));
        if left(finished).is_none() {
            untried += 1;
            continue;
        }
        if scene.takes_the_same_pods(variant, finished) {
            continue;
        }
        // Put in at the end it refuses; put in from the start the pods may come in an order that works. That takes as long as what the
        // plan shows took.
        let left = left(finished).filter(|left| *left >= of_rehearsal);
        let Some(anew) = left.and_then(|left| scene.rehearse(Some(variant), left)) else {
            of_others = of_others.saturating_add(left.unwrap_or_default());
            untried += 1;
            continue;
        };
        of_others = of_others.saturating_add(anew.context.looks());
        for (pod, node, refusal) in anew.refused {
            let what = format!("{} in {}", variant.instance_type, variant.zone);
            let whereby = format!("with alternative {what}, pod {pod} on node {node}");
            findings.refused(ViolationPlace::step(step), &whereby, &refusal);
        }
    }
    (untried, finished.looks().saturating_add(of_others))
}

/// Pods that the plan leaves pending, and that are to be tried on the nodes that stay. Those under spread constraints are left out:
/// Karpenter reckons with the zones and hosts that new nodes could bring, kube-scheduler only with those that are there, so a pod that
/// waits may well fit.
fn pending_pods<'k>(plan: &'k Plan, known: &Known<'k>) -> Vec<(&'k String, &'k Pod)> {
    // What a planner says that it can not plan for, it may leave.
    let supported = plan.pending.iter().filter(|it| it.reasons.iter().all(|it| it.code != ReasonCode::NotSupported));
    let pods = supported.flat_map(|pending| &pending.pods).filter_map(|key| Some((key, *known.pods.get(key)?)));
    let pods = pods.filter(|(_, pod)| {
        pod.spec.node_name.is_none()
            && pod.spec.topology_spread_constraints.is_empty()
            && pod.status.nominated_node_name.is_none()
    });
    pods.collect()
}

/// A pod that is left pending must not fit on a node that stays: kube-scheduler would put it there. Asked when pending
/// pods have their places and nothing has been removed yet, because that is what a planner looks at first; what a removal
/// makes possible is for the next plan. And what DaemonSets will run on a node is kept free. Says how many were not tried.
fn pending_pods_fit_nowhere(
    plan: &Plan,
    known: &Known<'_>,
    pods: &[(&String, &Pod)],
    context: FilterContext<'_>,
    looks_max: u64,
    findings: &mut Findings,
) -> usize {
    let removed = removed_nodes(plan);
    let stays = |name: &str, existing: &Existing<'_>| {
        existing.initialized
            && !existing.going
            && !has_no_future(existing, known)
            && !removed.contains(name)
            && !known.inputs.snapshot.doubts.is_doubled(name)
    };
    let staying: Vec<(&String, &Existing<'_>)> =
        known.nodes.iter().filter(|(name, existing)| stays(name, existing)).collect();
    let with_room = |pod: &Pod| {
        let examination = context.examine(pod);
        staying.iter().copied().find(|(_, existing)| examination.refusal(&existing.node).is_none())
    };
    let mut suspects: BTreeMap<&String, &Existing<'_>> = BTreeMap::new();
    let mut tried = 0;
    for (_, pod) in pods.iter().take_while(|_| context.looks() <= looks_max) {
        suspects.extend(with_room(pod));
        tried += 1;
    }
    let coming: Vec<(&String, Pod)> = suspects
        .iter()
        .flat_map(|(name, existing)| daemon_pods(&existing.node, known).into_iter().map(move |daemon| (*name, daemon)))
        .filter(|(name, daemon)| !context.pods_on(name).any(|pod| is_of_same_daemon_set(pod, daemon)))
        .collect();
    if suspects.is_empty() {
        return pods.len() - tried;
    }
    let mut context = context;
    for (name, daemon) in &coming {
        context.place(daemon, name);
    }
    for (key, pod) in &pods[..tried] {
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
    pods.len() - tried
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
