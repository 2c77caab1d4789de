//! Going back to a mark must leave nothing behind, whatever was tried in between.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::catalog::Catalog;
use crate::inputs::{Inputs, Policy};
use crate::plan::Revision;
use crate::scheduler::offerings::TypeIndex;
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::topology::{Domain, GroupIndex};
use crate::scheduler::{ClassIndex, HostIndex, Problem};
use crate::snapshot::Snapshot;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;
use cutlist_api::settings::{ConcentrationPenalty, Packing, Penalties};

use super::Engine;

const ZONES: [&str; 3] = ["z-a", "z-b", "z-c"];

fn catalog() -> Catalog {
    let offerings: Vec<Value> = ZONES
        .iter()
        .map(|zone| json!({ "zone": zone, "capacityType": keys::SPOT, "price": 0.1, "available": true }))
        .collect();
    let instance_type = |name: &str, cpu: &str| {
        json!({
            "name": name, "requirements": { "kubernetes.io/arch": ["amd64"] }, "overhead": {},
            "capacity": { "cpu": cpu, "memory": "16Gi", "pods": "10" }, "offerings": offerings,
        })
    };
    let types = json!([instance_type("large", "8"), instance_type("small", "2")]);
    let text = json!({ "version": 1, "region": "r", "date": "2026-11-20", "instanceTypes": types });
    Catalog::parse(text.to_string()).unwrap()
}

fn pod(number: usize, node: Option<&str>) -> Value {
    let app = ["plain", "spread", "apart", "together", "ports"][number % 5];
    let selector = json!({ "matchLabels": { "app": app } });
    let term = |key: &str| json!([{ "topologyKey": key, "labelSelector": selector }]);
    let mut spec = json!({ "containers": [{ "name": "c", "resources": { "requests": { "cpu": "500m" } } }] });
    match app {
        "spread" => {
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": keys::ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector,
            }]);
        }
        "apart" => {
            spec["affinity"] = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": term(keys::HOSTNAME) } });
        }
        "together" => {
            spec["affinity"] =
                json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": term(keys::ZONE) } });
        }
        "ports" => spec["containers"][0]["ports"] = json!([{ "containerPort": 80, "hostPort": 80 }]),
        _ => {}
    }
    spec["nodeName"] = json!(node);
    json!({
        "metadata": {
            "name": format!("{app}-{number}"), "namespace": "d", "labels": { "app": app },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": true }],
        },
        "spec": spec, "status": { "phase": if node.is_some() { "Running" } else { "Pending" } },
    })
}

fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (number, zone) in ZONES.iter().enumerate() {
        let labels = json!({ keys::ZONE: zone, keys::HOSTNAME: format!("n{number}"), "kubernetes.io/arch": "amd64" });
        let allocatable = json!({ "cpu": "4", "memory": "16Gi", "pods": "10" });
        let node = json!({ "metadata": { "name": format!("n{number}"), "labels": labels }, "status": { "allocatable": allocatable } });
        snapshot.nodes.push(serde_json::from_value(node).unwrap());
        for pod_number in 0..4 {
            let bound = pod(number * 4 + pod_number, Some(&format!("n{number}")));
            snapshot.pods.push(serde_json::from_value(bound).unwrap());
        }
    }
    for number in 0..5 {
        snapshot.pods.push(serde_json::from_value(pod(100 + number, None)).unwrap());
    }
    snapshot
}

fn definitions() -> (NodePool, EC2NodeClass) {
    let reference = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c" });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "p" },
        "spec": { "template": { "spec": { "nodeClassRef": reference, "requirements": [] } }, "limits": { "cpu": "64" } },
    });
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "c" },
        "spec": { "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [{ "alias": "al2023@latest" }] },
    });
    (serde_json::from_value(pool).unwrap(), serde_json::from_value(class).unwrap())
}

/// Everything an engine knows, as text; a count of zero and no count are the same.
fn state(engine: &Engine<'_, '_>) -> String {
    let planned = &engine.planned;
    let domains = (0..engine.all_hosts().count() + 8).map(Domain::at);
    let counts = |group: GroupIndex| {
        let counters = &engine.counters[group];
        domains.clone().map(|domain| (counters.matching(domain), counters.owners(domain))).collect::<Vec<_>>()
    };
    let counted: Vec<_> =
        engine.counters.indices().map(|group| (counts(group), engine.counters[group].any_matching())).collect();
    let concentration = engine.price_of_concentration();
    format!("{:?}\n{counted:?}\n{planned:?}\n{concentration}\n{}", engine.hosts, engine.table.state())
}

/// One thing that a search may do.
fn act(engine: &mut Engine<'_, '_>, action: u8, choice: usize) {
    let problem = engine.problem;
    let class = ClassIndex::from(choice % problem.classes.len());
    let variant = problem.classes[class].variants[0];
    let host = HostIndex::from(choice % engine.all_hosts().count());
    let is_open = engine.open_node(host).is_some();
    match action {
        0 if !is_open && engine.fits_existing(class, variant, host) => {
            engine.place_on_existing(class, host);
        }
        1 => {
            let template = TemplateIndex::default();
            if let Ok(open) = engine.opened(class, variant, template, None) {
                engine.open(class, open, problem.templates[template].limited_capacity[TypeIndex::default()].clone());
            }
        }
        2 if is_open && !engine.is_closed(host) => {
            if let Ok(narrowed) = engine.narrowed(class, variant, host) {
                engine.place_on_open(class, host, narrowed);
            }
        }
        3 if !is_open => {
            if let Some(class) = engine.host(host).pods.keys().next().copied() {
                engine.remove_pod(class, host);
            }
        }
        4 if !is_open => engine.close(host),
        5 if is_open && !engine.is_closed(host) => {
            engine.discard(host);
        }
        _ => {}
    }
}

proptest! {
    // Failing seeds become tests with a name, not files beside the sources.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn going_back_leaves_nothing_behind(
        before in prop::collection::vec((0_u8..6, 0_usize..1000), 0..30),
        tried in prop::collection::vec((0_u8..6, 0_usize..1000), 0..30),
    ) {
        let (snapshot, catalog, (pool, class)) = (snapshot(), catalog(), definitions());
        let concentration = ConcentrationPenalty { per_pod_per_hour: 1.0, max_share_percent: 20 };
        let penalties = Penalties { blast_radius: concentration.clone(), spot_concentration: concentration, ..Penalties::default() };
        let inputs = Inputs {
            revision: Revision::default(), cluster: "c", node_pools: &[pool], node_classes: &[class], node_overlays: &[], capacity_buffers: &[], pod_templates: &[], disruption_budgets: &[],
            places: crate::plan::DefinitionPlaces::none(),
            snapshot: &snapshot, catalog: &catalog,
            policy: Policy { penalties, ..Policy::default() },
            seed: 0, now: jiff::Timestamp::UNIX_EPOCH, notes: Vec::new(),
        };
        let problem = Problem::new(&inputs);
        let mut engine = Engine::new(&problem, Packing::Cheapest);
        before.iter().for_each(|(action, choice)| act(&mut engine, *action, *choice));
        let (mark, expected) = (engine.mark(), state(&engine));
        tried.iter().for_each(|(action, choice)| act(&mut engine, *action, *choice));
        engine.revert(mark);
        prop_assert_eq!(state(&engine), expected);
    }
}
