//! How many volumes go on a node that is yet to come.

use serde_json::json;

use crate::catalog::labels::HYPERVISOR;
use crate::plan::StepKind;
use crate::planner::decide;
use crate::snapshot::Snapshot;
use crate::testing::{BuildNode, BuildPod, node, object, pod};
use cutlist_api::keys;

use super::{Case, valid};

/// Small pods with so many volumes each, and no node. Of types of Nitro 25 volumes can be attached.
fn pods_with_volumes(counts: impl IntoIterator<Item = usize>) -> Case {
    let mut case = valid();
    case.snapshot = Snapshot::default();
    case.snapshot.storage_classes.push(object(json!({
        "metadata": { "name": "gp3" }, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer",
    })));
    for (number, count) in counts.into_iter().enumerate() {
        let mut with_volumes = pod(&format!("db-{number}")).cpu("10m").unschedulable();
        for volume in 0..count {
            let name = format!("data-{number}-{volume}");
            case.snapshot.persistent_volume_claims.push(object(json!({
                "metadata": { "name": name, "namespace": "default" },
                "spec": { "accessModes": ["ReadWriteOnce"], "storageClassName": "gp3" },
            })));
            with_volumes = with_volumes.claim(&name);
        }
        case.snapshot.pods.push(with_volumes);
    }
    for instance_type in &mut case.catalog.instance_types {
        instance_type.requirements.insert(HYPERVISOR.to_owned(), vec!["nitro".to_owned()]);
        instance_type.capacity.set("pods", 110);
    }
    case.pools[0].spec.limits.clear();
    case
}

/// By created node its type and its pods, when nothing is wrong with the plan and nobody waits.
fn created(case: &mut Case) -> Vec<(String, Vec<String>)> {
    case.plan = decide(&case.inputs());
    assert_eq!(case.check_as_it_is(), []);
    assert_eq!(case.plan.pending, []);
    let created = case.plan.steps.iter().filter(|step| step.kind == StepKind::Create);
    created.map(|step| (step.instance_type.clone(), step.pods.clone())).collect()
}

#[test]
fn no_more_than_the_type_attaches() {
    let nodes = created(&mut pods_with_volumes([1; 30]));
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    assert!(nodes.iter().all(|(_, pods)| pods.len() <= 25), "{nodes:?}");
}

#[test]
fn nodes_of_the_type_say_how_many_it_attaches() {
    let mut case = pods_with_volumes([1; 30]);
    case.snapshot.nodes.push(node("node-kept").node_label(keys::INSTANCE_TYPE, "m.large"));
    let driver = json!({ "name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": { "count": 10 } });
    let csi_node = json!({ "metadata": { "name": "node-kept" }, "spec": { "drivers": [driver] } });
    case.snapshot.csi_nodes.push(object(csi_node));
    let nodes = created(&mut case);
    assert!(nodes.iter().all(|(name, pods)| pods.len() <= if name == "m.large" { 10 } else { 25 }), "{nodes:?}");
}

#[test]
fn a_pod_with_more_has_its_node_for_itself() {
    let nodes = created(&mut pods_with_volumes([26, 1, 1]));
    let alone = ["default/db-0".to_owned()];
    assert!(nodes.iter().any(|(_, pods)| *pods == alone), "{nodes:?}");
}
