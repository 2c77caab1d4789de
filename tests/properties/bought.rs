//! What a plan buys is what the definitions want: a node that was just launched as planned drifts by no rule.

use std::collections::BTreeSet;

use cutlist::api::ec2_node_class::EC2NodeClassStatus;
use cutlist::api::keys;
use cutlist::api::settings::Packing;
use cutlist::core::catalog::for_node_class;
use cutlist::core::catalog::node_class::image_for;
use cutlist::core::check::check;
use cutlist::core::disrupt::drift::drift;
use cutlist::core::inputs::Inputs;
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use cutlist::core::snapshot::nodes::machines;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::build::Built;
use crate::carried_out::carry_out;
use crate::for_each_world;

/// What the class of a number is said to find: images for some types or for all, and subnets in some zones or nobody says which.
fn status(number: usize) -> EC2NodeClassStatus {
    let gpu = |operator: &str| json!({ "key": "karpenter.k8s.aws/instance-gpu-count", "operator": operator });
    let arch = |value: &str| json!({ "key": keys::ARCHITECTURE, "operator": "In", "values": [value] });
    let image = |id: &str, requirements: &[Value]| json!({ "id": id, "requirements": requirements });
    let images = match number % 5 {
        0 => vec![image("ami-amd", &[arch("amd64")])],
        1 => vec![image("ami-arm", &[arch("arm64")])],
        2 => vec![image("ami-amd", &[arch("amd64"), gpu("DoesNotExist")]), image("ami-arm", &[arch("arm64")])],
        3 => vec![image("ami-gpu", &[gpu("Exists")]), image("ami-any", &[])],
        _ => Vec::new(),
    };
    let subnet = |zone: &str| json!({ "id": format!("subnet-{zone}"), "zone": zone });
    let subnets = match number % 3 {
        0 => vec![subnet("zone-a"), subnet("zone-b")],
        1 => vec![subnet("zone-a"), subnet("zone-b"), subnet("zone-c")],
        _ => Vec::new(),
    };
    serde_json::from_value(json!({ "amis": images, "subnets": subnets })).unwrap()
}

/// The new claims run the image that their class selects for their type.
fn boot(snapshot: &mut Snapshot, built: &Built, before: &BTreeSet<Option<String>>) -> Result<(), String> {
    for claim in snapshot.node_claims.iter_mut().filter(|claim| !before.contains(&claim.metadata.name)) {
        let labels = claim.metadata.labels.clone().unwrap_or_default();
        let class_name = &claim.spec.node_class_ref.name;
        let mut classes = snapshot.node_classes.iter();
        let class = classes.find(|class| class.metadata.name.as_ref() == Some(class_name)).unwrap();
        let images = &class.status.as_ref().unwrap().amis;
        if images.is_empty() {
            continue;
        }
        let mut sold = built.catalog.instance_types.iter();
        let sold = sold.find(|it| Some(&it.name) == labels.get(keys::INSTANCE_TYPE)).unwrap();
        let Some(image) = image_for(&for_node_class(sold, &class.spec), &labels, images) else {
            return Err(format!("{} was bought, which class {class_name} has no image for", sold.name));
        };
        claim.status.get_or_insert_default().image_id = Some(image.id.clone());
    }
    Ok(())
}

fn what_is_bought_stays(built: &Built, packing: Packing) -> Result<(), String> {
    let mut snapshot = built.snapshot.clone();
    for (number, class) in snapshot.node_classes.iter_mut().enumerate() {
        class.status = Some(status(number + built.catalog.instance_types.len()));
    }
    let before: BTreeSet<Option<String>> =
        snapshot.node_claims.iter().map(|claim| claim.metadata.name.clone()).collect();
    let first = built.inputs(packing);
    let inputs = Inputs { snapshot: &snapshot, ..first.clone() };
    let plan = decide(&inputs);
    let violations: Vec<String> = check(&plan, &inputs).iter().map(ToString::to_string).collect();
    if !violations.is_empty() {
        return Err(violations.join("\n"));
    }
    carry_out(&plan, &mut snapshot, &built.catalog, &built.classes, first.now);
    boot(&mut snapshot, built, &before)?;
    let inputs = Inputs { snapshot: &snapshot, now: first.now + SignedDuration::from_mins(1), ..first.clone() };
    for machine in machines(&snapshot) {
        let is_new = machine.claim.is_some_and(|claim| !before.contains(&claim.metadata.name));
        let pool = built.pools.iter().find(|pool| pool.metadata.name.as_deref() == machine.node_pool());
        if let Some(why) = pool.filter(|_| is_new).and_then(|pool| drift(&inputs, &machine, pool)) {
            return Err(format!("{} was just bought, and drifts: {why}", machine.name));
        }
    }
    Ok(())
}

#[test]
fn a_node_just_bought_never_drifts() {
    for_each_world(|built| what_is_bought_stays(built, Packing::Cheapest));
    for_each_world(|built| what_is_bought_stays(built, Packing::Karpenter));
}
