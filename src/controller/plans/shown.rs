//! What was shown already: a plan that says nothing new is not shown again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::core::v1::Node;

use crate::controller::observed::view::{name_of, provider_id};
use crate::core::plan::{Pending, Placement, Plan, Step, StepKind};
use crate::core::snapshot::{Pod, Snapshot};

#[derive(Debug, Default)]
pub struct Shown {
    /// Pod to node or claim.
    placements: BTreeMap<String, String>,
    pending: Vec<Pending>,
    steps: Vec<String>,
}

impl Shown {
    /// Whether the plan has something that was not shown yet: other steps, a waiting pod placed elsewhere, or other pods pending.
    pub fn is_news(&self, plan: &Plan, snapshot: &Snapshot) -> bool {
        let steps = signature(plan);
        (!steps.is_empty() && steps != self.steps)
            || plan.pending.iter().any(|pending| self.says_more(pending))
            || self.places_others(plan, snapshot)
    }

    /// Whether a pod has another place than was shown. Of pods that still run on a node that goes nobody needs to hear at every look:
    /// kube-scheduler has the last word on them.
    fn places_others(&self, plan: &Plan, snapshot: &Snapshot) -> bool {
        let claims = claims_by_node(snapshot);
        let is_elsewhere = |placement: &&Placement| {
            let node = claims.get(placement.node.as_str()).copied().unwrap_or(&placement.node);
            self.placements.get(&placement.pod).map(String::as_str) != Some(node)
        };
        let mut elsewhere: BTreeSet<&str> =
            plan.placements.iter().filter(is_elsewhere).map(|placement| placement.pod.as_str()).collect();
        if !elsewhere.is_empty() {
            for pod in snapshot.pods.iter().filter(|pod| pod.spec.node_name.is_some()) {
                elsewhere.remove(pod.key().as_str());
            }
        }
        !elsewhere.is_empty()
    }

    /// Whether a pod is pending that was not, or for another reason. One that found its place is no news.
    fn says_more(&self, pending: &Pending) -> bool {
        let reasons = |pending: &Pending| -> Vec<_> {
            pending.reasons.iter().map(|reason| (reason.node_pool.clone(), reason.code)).collect()
        };
        let known: BTreeSet<&String> = self
            .pending
            .iter()
            .filter(|before| reasons(before) == reasons(pending))
            .flat_map(|before| &before.pods)
            .collect();
        pending.pods.iter().any(|pod| !known.contains(pod))
    }

    /// Remembers what is shown now.
    pub fn shown(&mut self, plan: &Plan, snapshot: &Snapshot) {
        let claims = claims_by_node(snapshot);
        let waiting: BTreeSet<String> =
            snapshot.pods.iter().filter(|pod| pod.spec.node_name.is_none()).map(Pod::key).collect();
        self.placements.retain(|pod, _| waiting.contains(pod));
        for placement in &plan.placements {
            let node = claims.get(placement.node.as_str()).copied().unwrap_or(&placement.node);
            self.placements.insert(placement.pod.clone(), node.to_owned());
        }
        for step in plan.steps.iter().filter(|step| step.kind == StepKind::Create) {
            self.placements.extend(step.pods.iter().map(|pod| (pod.clone(), step.node_claim.clone())));
        }
        self.pending.clone_from(&plan.pending);
        self.steps = signature(plan);
    }

    /// After steps were carried out, the same steps would be news again.
    pub fn carried_out(&mut self) {
        self.steps.clear();
    }
}

/// The steps without what is another one each time: names of claims and the plan's identity. With the images that they launch, and what
/// their classes say: who approved one did not approve another.
pub fn signature(plan: &Plan) -> Vec<String> {
    let used = plan.cloud_facts.iter().filter(|fact| fact.used && !fact.code.is_fleeting());
    let facts = used.map(|fact| format!("{} {} {:?}", fact.node_class, fact.subject, fact.after));
    let facts: Vec<String> = if plan.steps.is_empty() { Vec::new() } else { facts.collect() };
    plan.steps.iter().map(step_signature).chain(facts).collect()
}

fn step_signature(step: &Step) -> String {
    let what = (step.kind, step.move_number, &step.node_pool, &step.node, step.reason.code);
    let where_to = (&step.instance_type, &step.zone, &step.capacity_type, &step.pods);
    let class = step.launch.as_ref().and_then(|launch| launch.node_class_hash.as_ref());
    format!("{what:?} {where_to:?} {class:?}")
}

/// Also of nodes that have joined and are not registered yet: a plan speaks of the node as soon as there is one.
fn claims_by_node(snapshot: &Snapshot) -> HashMap<&str, &str> {
    let claims = snapshot.node_claims.iter().filter_map(|claim| Some((provider_id(claim)?, name_of(claim))));
    let claims: HashMap<&str, &str> = claims.collect();
    let claim_of = |node: &Node| claims.get(node.spec.as_ref()?.provider_id.as_deref()?).copied();
    snapshot.nodes.iter().filter_map(|node| Some((node.metadata.name.as_deref()?, claim_of(node)?))).collect()
}
