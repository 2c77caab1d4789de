//! Which pods run where when planning begins.

use cutlist::core::kube_scheduler::FilterContext;
use cutlist::core::snapshot::{Pod, Snapshot};
use serde_json::json;

use super::{minutes_ago, object};
use crate::world::Workload;

/// DaemonSet pods run on every node that takes them; then each workload's running pods go to the first that takes them,
/// and what finds no place is pending as kube-scheduler leaves it.
pub(super) fn bind(workloads: &[Vec<Pod>], descriptions: &[Workload], snapshot: &mut Snapshot) {
    let mut bound: Vec<Pod> = Vec::new();
    let daemons = daemon_pods(snapshot);
    {
        let world = snapshot.clone();
        let mut context = FilterContext::new(&world);
        for (pod, node) in &daemons {
            let fits = context.node(node).is_some_and(|it| context.examine(pod).refusal(it).is_none());
            if fits && context.place(pod, node) {
                bound.push(running(pod, node));
            }
        }
        for (pods, description) in workloads.iter().zip(descriptions) {
            for (replica, pod) in pods.iter().enumerate() {
                let nodes = world.nodes.iter().cycle().skip(description.first_node).take(world.nodes.len());
                let may_run = replica < usize::from(description.running);
                let taken_by = {
                    let examination = context.examine(pod);
                    nodes.filter(|_| may_run).find(|node| examination.refusal(node).is_none())
                };
                match taken_by.and_then(|node| node.metadata.name.as_deref()) {
                    Some(node) => {
                        context.place(pod, node);
                        bound.push(running(pod, node));
                    }
                    None => bound.push(unschedulable(pod)),
                }
            }
        }
    }
    snapshot.pods = bound.into();
}

fn daemon_pods(snapshot: &Snapshot) -> Vec<(Pod, String)> {
    let names = snapshot.nodes.iter().filter_map(|node| node.metadata.name.clone());
    names
        .flat_map(|of_node| {
            snapshot.daemon_sets.iter().map(move |daemon_set| {
                let name = daemon_set.metadata.name.clone().unwrap();
                let mut pod: Pod = object(serde_json::to_value(&daemon_set.spec.as_ref().unwrap().template).unwrap());
                pod.metadata.name = format!("{name}-{of_node}");
                pod.metadata.namespace = "kube-system".to_owned();
                pod.metadata.owner_references =
                    vec![object(json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": name, "controller": true }))].into();
                (pod, of_node.clone())
            })
        })
        .collect()
}

fn running(pod: &Pod, node: &str) -> Pod {
    let mut pod = pod.clone();
    pod.spec.node_name = Some(node.to_owned());
    pod.status.phase = Some("Running".to_owned());
    pod.status.start_time = Some(minutes_ago(100));
    pod.status.conditions = vec![object(json!({ "type": "Ready", "status": "True" }))].into();
    pod
}

fn unschedulable(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    let reason = if pod.spec.scheduling_gates.is_empty() { "Unschedulable" } else { "SchedulingGated" };
    pod.status.conditions = vec![object(json!({ "type": "PodScheduled", "status": "False", "reason": reason }))].into();
    pod
}
