//! What a change of definitions does to the nodes: the plan of the head beside the plan of the base.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Deref;

use super::{Against, Plan, Step, StepKind, blocks};

/// The plan of the head, with each step marked whether the base plans it too, and what the base alone plans. A replacement is the same
/// as a whole or not at all: what its reason says and what it saves is true of all of its nodes together.
/// Both must be made from the same snapshot, catalog, seed and moment. O(steps x log steps).
pub fn compare(mut head: Plan, base: &Plan) -> Plan {
    let of_base = blocks(&base.steps);
    let mut unmatched: BTreeMap<Vec<Identity>, VecDeque<usize>> = BTreeMap::new();
    for (index, block) in of_base.iter().enumerate() {
        unmatched.entry(identity(block)).or_default().push_back(index);
    }
    for block in blocks(&mut head.steps) {
        let same = unmatched.get_mut(&identity(&block)).and_then(VecDeque::pop_front);
        block.into_iter().for_each(|step| step.also_in_base = Some(same.is_some()));
    }
    let mut no_longer: Vec<usize> = unmatched.into_values().flatten().collect();
    no_longer.sort_unstable();
    let no_longer = no_longer.into_iter().filter_map(|index| of_base.get(index)).flatten();
    head.against = Some(Against {
        revision: base.revision.clone(),
        plan_id: base.id.clone(),
        summary: base.summary.clone(),
        steps_no_longer_planned: no_longer.copied().cloned().collect(),
    });
    head.id = head.content_hash();
    head
}

/// What makes two steps the same.
type Identity = (StepKind, Vec<String>, usize);

/// In one order, since creations of one move have none.
fn identity(block: &[impl Deref<Target = Step>]) -> Vec<Identity> {
    let mut steps: Vec<Identity> = block.iter().map(|step| of_step(step)).collect();
    steps.sort_unstable();
    steps
}

/// A removal is the same when it is of the same node; a creation, when the same kind of node is bought for as many pods.
fn of_step(step: &Step) -> Identity {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match step.kind {
        StepKind::Create => {
            let bought = [&step.node_pool, &step.instance_type, &step.zone, &step.capacity_type];
            (step.kind, texts(&bought.map(String::as_str)), step.pods.len())
        }
        StepKind::Remove | StepKind::Adopt | StepKind::Hold => {
            (step.kind, texts(&[step.node_claim.as_str(), step.node.as_deref().unwrap_or_default()]), 0)
        }
    }
}
