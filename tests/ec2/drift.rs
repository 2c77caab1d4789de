//! Instances of an account against their class as it is in the cluster: which have drifted, by the one comparison that plans go by.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use cutlist::adapters::aws::api::instances::InstanceAnswer;
use cutlist::adapters::aws::instances::{capacity_type, to_port};
use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::keys;
use cutlist::api::node_claim::NodeClaim;
use cutlist::api::node_pool::NodePool;
use cutlist::api::settings::Packing;
use cutlist::core::catalog::{Catalog, for_node_class};
use cutlist::core::disrupt::drift;
use cutlist::core::inputs::{Inputs, LiveInstance, Policy};
use cutlist::core::lifecycle::selectors::Selectors;
use cutlist::core::plan::{DefinitionPlaces, Note, Revision};
use cutlist::core::snapshot::Snapshot;
use cutlist::core::snapshot::nodes::machines;
use serde_json::{Value, json};

use super::at;

/// How a comparison is asked for.
#[derive(Clone, Copy)]
enum Strictness {
    Usual,
    BySetting,
    OfKarpenter,
}

pub fn show(
    text: &mut String,
    launched_with: &EC2NodeClass,
    applied: &EC2NodeClass,
    patch: Option<&Value>,
    instances: &[InstanceAnswer],
    are_known: bool,
) {
    let name = applied.metadata.name.clone().unwrap();
    let instances: Vec<&InstanceAnswer> =
        instances.iter().filter(|it| it.tags.get(keys::EC2_NODE_CLASS) == Some(&name)).collect();
    if instances.is_empty() {
        return;
    }
    let mut defined = json!(EC2NodeClass { status: None, ..applied.clone() });
    if let Some(patch) = patch {
        json_patch::merge(&mut defined, patch);
    }
    let defined: EC2NodeClass = serde_json::from_value(defined).unwrap();
    let claims = instances.iter().map(|it| claim(it, &name, launched_with)).collect();
    let snapshot = Snapshot { node_classes: vec![applied.clone()].into(), node_claims: claims, ..Snapshot::default() };
    let live: BTreeMap<String, LiveInstance> =
        instances.iter().filter(|_| are_known).map(|it| (to_port(it).provider_id, said_of(it))).collect();
    let said = |strictness| said((&name, &snapshot, &defined), &Arc::new(live.clone()), strictness);
    let (usual, notes) = said(Strictness::Usual);
    let (strict, no_extra) = said(Strictness::BySetting);
    assert_eq!((&strict, &no_extra), (&said(Strictness::OfKarpenter).0, &said(Strictness::OfKarpenter).1));
    for ((instance, found), strictly) in instances.iter().zip(&usual).zip(&strict) {
        writeln!(text, "{}: {found}", instance.id).unwrap();
        if strictly != found {
            writeln!(text, "{}, strictly: {strictly}", instance.id).unwrap();
        }
    }
    notes.iter().for_each(|note| writeln!(text, "{:?}: {}", note.code, note.text).unwrap());
}

fn said(
    (class, snapshot, defined): (&str, &Snapshot, &EC2NodeClass),
    live: &Arc<BTreeMap<String, LiveInstance>>,
    strictness: Strictness,
) -> (Vec<String>, Vec<Note>) {
    let pool: NodePool = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "general" },
        "spec": { "template": { "spec": { "requirements": [],
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class } } } },
    }))
    .unwrap();
    let mut policy = Policy { instances: live.clone(), ..Policy::default() };
    match strictness {
        Strictness::Usual => {}
        Strictness::BySetting => policy.disruption.extra_security_groups_drift = true,
        Strictness::OfKarpenter => policy.packing = Packing::Karpenter,
    }
    let inputs = Inputs {
        places: DefinitionPlaces::none(),
        revision: Revision { id: "1".to_owned(), reference: "main".to_owned() },
        cluster: "demo",
        node_pools: std::slice::from_ref(&pool),
        node_classes: std::slice::from_ref(defined),
        node_overlays: &[],
        capacity_buffers: &[],
        pod_templates: &[],
        disruption_budgets: &[],
        snapshot,
        catalog: &Catalog::built_in("us-east-1").unwrap(),
        policy,
        seed: 0,
        now: at(0),
        notes: Vec::new(),
    };
    let machines = machines(snapshot);
    let drifted = machines.iter().map(|machine| drift::drift(&inputs, machine, &pool));
    let drifted = drifted.map(|found| found.map_or_else(|| "no drift".to_owned(), |drift| drift.to_string())).collect();
    (drifted, drift::notes(&inputs, &machines))
}

/// As Cutlist makes it when it is launched. Its name sorts as the instances do.
fn claim(instance: &InstanceAnswer, class: &str, launched_with: &EC2NodeClass) -> NodeClaim {
    let port = to_port(instance);
    let catalog = Catalog::built_in("us-east-1").unwrap();
    let of_type = catalog.instance_types.iter().find(|it| it.name == instance.instance_type);
    let of_type = of_type.map(|it| for_node_class(it, &launched_with.spec).requirements).unwrap_or_default();
    let single = of_type.into_iter().filter_map(|(key, values)| Some((key, values.first().cloned()?)));
    let mut labels: BTreeMap<String, String> = single.collect();
    labels.extend([
        (keys::NODE_POOL.to_owned(), "general".to_owned()),
        (keys::INSTANCE_TYPE.to_owned(), instance.instance_type.clone()),
        (keys::ZONE.to_owned(), instance.zone.clone()),
        (keys::CAPACITY_TYPE.to_owned(), capacity_type(instance).to_owned()),
    ]);
    serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": instance.id,
            "labels": labels,
            "annotations": { keys::LAUNCHED_SELECTORS: Selectors::of(&launched_with.spec).to_text() },
        },
        "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": class }, "requirements": [] },
        "status": { "providerID": port.provider_id, "imageID": port.image_id },
    }))
    .unwrap()
}

/// As the controller knows it.
fn said_of(instance: &InstanceAnswer) -> LiveInstance {
    let port = to_port(instance);
    LiveInstance {
        image_id: Some(port.image_id),
        subnet_id: port.subnet_id,
        security_groups: port.security_groups,
        reservation_id: port.reservation_id,
    }
}
