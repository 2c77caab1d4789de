//! The least planner there is: pods go to the first node that is there and takes them.

use cutlist::core::inputs::Inputs;
use cutlist::core::kube_scheduler::FilterContext;
use cutlist::core::plan::{FORMAT_VERSION, Pending, Placement, Plan, Summary};

pub fn place_where_there_is_room(inputs: &Inputs<'_>) -> Plan {
    let mut context = FilterContext::new(inputs.snapshot);
    // Who is on a node that goes is nobody's neighbour any more.
    for node in inputs.snapshot.nodes.iter().filter(|node| node.metadata.deletion_timestamp.is_some()) {
        let leaving: Vec<_> = context.pods_on(node.metadata.name.as_deref().unwrap_or_default()).collect();
        leaving.into_iter().for_each(|pod| {
            context.remove(pod);
        });
    }
    let mut waiting: Vec<_> = inputs.snapshot.pods.iter().filter(|pod| pod.spec.node_name.is_none()).collect();
    let mut placements = Vec::new();
    // Placing one pod may make room for another by affinity or spread.
    loop {
        let before = waiting.len();
        waiting.retain(|pod| {
            let examination = context.examine(pod);
            let node = inputs.snapshot.nodes.iter().find(|node| examination.refusal(node).is_none());
            let Some(name) = node.and_then(|node| node.metadata.name.clone()) else { return true };
            context.place(pod, &name);
            placements.push(Placement { pod: pod.key(), node: name });
            false
        });
        if waiting.len() == before {
            break;
        }
    }
    let mut plan = Plan {
        version: FORMAT_VERSION,
        id: String::new(),
        revision: inputs.revision.clone(),
        against: None,
        cluster: inputs.cluster.to_owned(),
        generated_for: inputs.now.to_string(),
        catalog_date: inputs.catalog.date.clone(),
        seed: inputs.seed,
        packing: String::new(),
        steps: Vec::new(),
        placements,
        pending: vec![Pending {
            pods: waiting.iter().map(|pod| pod.key()).collect(),
            reasons: Vec::new(),
            smallest_change: None,
            changes: Vec::new(),
        }],
        held_back: Vec::new(),
        refused_nodes: Vec::new(),
        ended_instances: Vec::new(),
        cloud_facts: Vec::new(),
        unlimited: Vec::new(),
        budgets: Vec::new(),
        balances: Vec::new(),
        risks: Vec::new(),
        notes: Vec::new(),
        summary: Summary::default(),
    };
    plan.id = plan.content_hash();
    plan
}
