//! The plan as a document: names, order, references, and that no pod is in two places or in none.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{FORMAT_VERSION, Plan, StepKind};
use crate::snapshot::Pod;

use super::known::{Known, belongs_to_node};
use super::steps::{removed_node, steps};
use super::violation::{Findings, ViolationCode, ViolationPlace};

pub(super) fn check(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    inputs_are_said(plan, known, findings);
    order(plan, findings);
    names(plan, known, findings);
    mentions(plan, known, findings);
}

fn inputs_are_said(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let inputs = known.inputs;
    let facts = [
        ("version", plan.version == FORMAT_VERSION),
        ("revision", plan.revision == inputs.revision),
        ("cluster", plan.cluster == inputs.cluster),
        ("seed", plan.seed == inputs.seed),
        ("generatedFor", plan.generated_for.parse().is_ok_and(|moment: jiff::Timestamp| moment == inputs.now)),
        ("catalogDate", plan.catalog_date == inputs.catalog.date),
    ];
    for (field, _) in facts.iter().filter(|(_, right)| !right) {
        findings.add(
            ViolationCode::WrongInput,
            ViolationPlace::Field(field),
            "does not say what the plan was made from",
        );
    }
    if plan.id != plan.content_hash() {
        findings.add(ViolationCode::WrongId, ViolationPlace::Field("id"), "is not the hash of what the plan says");
    }
}

/// Moves in ascending number; in each move creations before removals.
fn order(plan: &Plan, findings: &mut Findings) {
    for pair in plan.steps.windows(2) {
        let [one, two] = pair else { continue };
        if two.move_number < one.move_number {
            findings.add(
                ViolationCode::WrongOrder,
                ViolationPlace::step(two),
                format!("move {} after {}", two.move_number, one.move_number),
            );
        } else if two.move_number == one.move_number && (one.kind, two.kind) == (StepKind::Remove, StepKind::Create) {
            findings.add(ViolationCode::WrongOrder, ViolationPlace::step(two), "created after a removal of its move");
        }
    }
}

/// New claims have names of their own; everything else names what is there.
fn names(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let claims = known.inputs.snapshot.node_claims.iter();
    let claims: BTreeSet<&str> = claims.filter_map(|claim| claim.metadata.name.as_deref()).collect();
    let mut seen = BTreeSet::new();
    for step in &plan.steps {
        if !seen.insert(&step.node_claim) {
            findings.add(ViolationCode::DuplicateName, ViolationPlace::step(step), "two steps for one claim");
        }
        if step.kind == StepKind::Create {
            if claims.contains(step.node_claim.as_str()) || known.nodes.contains_key(&step.node_claim) {
                findings.add(ViolationCode::DuplicateName, ViolationPlace::step(step), "a claim of that name exists");
            }
            continue;
        }
        let Some(existing) = known.nodes.get(removed_node(step)) else {
            findings.add(
                ViolationCode::UnknownNode,
                ViolationPlace::step(step),
                format!("no node {}", removed_node(step)),
            );
            continue;
        };
        let claim = existing.claim.and_then(|claim| claim.metadata.name.as_deref());
        if step.kind == StepKind::Remove && claim != Some(&step.node_claim) {
            findings.add(ViolationCode::UnknownNode, ViolationPlace::step(step), "is not the claim of the node");
        }
        if step.kind == StepKind::Remove && existing.pool.as_deref() != Some(&step.node_pool) {
            findings.add(ViolationCode::UnknownNodePool, ViolationPlace::step(step), "the node is not of this pool");
        }
    }
}

/// Where a plan mentions a pod as going to.
fn destinations(plan: &Plan) -> BTreeMap<&str, Vec<String>> {
    let mut mentions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for step in steps(plan, StepKind::Create) {
        for pod in &step.pods {
            mentions.entry(pod).or_default().push(ViolationPlace::step(step).to_string());
        }
    }
    for placement in &plan.placements {
        mentions.entry(&placement.pod).or_default().push(format!("node {}", placement.node));
    }
    for pod in plan.pending.iter().flat_map(|pending| &pending.pods) {
        mentions.entry(pod).or_default().push("pending".to_owned());
    }
    mentions
}

fn mentions(plan: &Plan, known: &Known<'_>, findings: &mut Findings) {
    let mentions = destinations(plan);
    for (pod, places) in &mentions {
        if !known.pods.contains_key(*pod) {
            findings.add(ViolationCode::UnknownPod, ViolationPlace::pod(pod), "is not in the snapshot");
        }
        if places.len() > 1 {
            findings.add(ViolationCode::PodInTwoPlaces, ViolationPlace::pod(pod), places.join(", "));
        }
    }
    for pod in known.inputs.snapshot.pods.iter().filter(|pod| is_provisionable(pod)) {
        if !mentions.contains_key(pod.key().as_str()) {
            let text = "is unschedulable, and the plan neither places it nor says why not";
            findings.add(ViolationCode::PendingPodForgotten, ViolationPlace::Pod(pod.key()), text);
        }
    }
    for step in steps(plan, StepKind::Remove) {
        for pod in step.pods.iter().filter(|pod| !known.pods.contains_key(*pod)) {
            findings.add(
                ViolationCode::UnknownPod,
                ViolationPlace::step(step),
                format!("{pod} is not in the snapshot"),
            );
        }
    }
}

/// kube-scheduler found no node, and nobody is making room by preemption.
pub(super) fn is_provisionable(pod: &Pod) -> bool {
    let mut conditions = pod.status.conditions.iter();
    let unschedulable = conditions.any(|condition| {
        condition.type_ == "PodScheduled"
            && condition.status == "False"
            && condition.reason.as_deref() == Some("Unschedulable")
    });
    unschedulable
        && pod.spec.node_name.is_none()
        && pod.status.nominated_node_name.is_none()
        && !pod.is_terminal()
        && !pod.is_terminating()
        && !belongs_to_node(pod)
}
