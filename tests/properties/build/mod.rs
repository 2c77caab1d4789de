//! From a description to the objects that `kubectl` and the catalog would give.

mod binding;
mod catalog;
mod definitions;
mod nodes;
mod workloads;

use std::collections::BTreeMap;

use cutlist::api::disruption_budget::DisruptionBudget;
use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::node_overlay::NodeOverlay;
use cutlist::api::node_pool::NodePool;
use cutlist::api::settings::{ConcentrationPenalty, FeatureGates, Packing, Penalties};
use cutlist::core::catalog::Catalog;
use cutlist::core::inputs::{Inputs, Policy};
use cutlist::core::plan::Revision;
use cutlist::core::snapshot::Snapshot;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::world::{self, World};

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
const CPU: [&str; 7] = ["100m", "250m", "500m", "1", "1500m", "3", "7"];
const MEMORY: [&str; 6] = ["64Mi", "256Mi", "512Mi", "1Gi", "4Gi", "12Gi"];
const GPU: &str = "nvidia.com/gpu";
const DRIVER: &str = "ebs.csi.aws.com";
const LICENCE: &str = "example.com/licence";
pub const STARTUP_TAINT: &str = "node.example.com/starting";
/// A Friday, noon.
const NOW_SECONDS: i64 = 1_795_176_000;

pub struct Built {
    seed: u64,
    pub pools: Vec<NodePool>,
    pub classes: Vec<EC2NodeClass>,
    budgets: Vec<DisruptionBudget>,
    pub overlays: Vec<NodeOverlay>,
    pub snapshot: Snapshot,
    pub catalog: Catalog,
    pub penalties: Penalties,
    zones_with_subnet: Option<Vec<String>>,
}

fn object<T: DeserializeOwned>(value: Value) -> T {
    let text = value.to_string();
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn now() -> Timestamp {
    Timestamp::from_second(NOW_SECONDS).unwrap()
}

fn minutes_ago(minutes: i64) -> String {
    (now() - SignedDuration::from_mins(minutes)).to_string()
}

impl Built {
    pub fn new(world: &World) -> Self {
        let catalog: Catalog = object(json!({
            "version": 1, "region": "us-east-1", "date": "2026-11-20",
            "instanceTypes": world.types.iter().enumerate().map(|(index, it)| catalog::instance_type(index, it)).collect::<Vec<_>>(),
        }));
        let pools: Vec<NodePool> =
            world.pools.iter().enumerate().map(|(index, pool)| object(definitions::node_pool(index, pool))).collect();
        let classes: Vec<EC2NodeClass> =
            world.pools.iter().enumerate().map(|(index, pool)| object(definitions::node_class(index, pool))).collect();
        let budgets: Vec<DisruptionBudget> =
            world.cluster_budget.iter().map(|budget| object(definitions::cluster_budget(budget))).collect();
        let overlays: Vec<NodeOverlay> = world
            .overlays
            .iter()
            .enumerate()
            .map(|(index, it)| object(definitions::overlay(index, it, world.pools.len())))
            .collect();
        let mut snapshot = Snapshot {
            node_pools: pools.clone().into(),
            node_classes: classes.clone().into(),
            disruption_budgets: budgets.clone().into(),
            ..Snapshot::default()
        };
        for (index, node) in world.nodes.iter().enumerate() {
            nodes::add_node(index, node, world, &catalog, &classes, &mut snapshot);
        }
        for index in 0..world.unmanaged_nodes {
            snapshot.nodes.push(object(nodes::unmanaged_node(index)));
        }
        snapshot.daemon_sets =
            world.daemons.iter().enumerate().map(|(index, it)| object(workloads::daemon_set(index, it))).collect();
        snapshot.storage_classes = workloads::storage_classes().into();
        let mut workloads = Vec::new();
        for (index, workload) in world.workloads.iter().enumerate() {
            workloads.push(workloads::add_workload(index, workload, world, &mut snapshot));
        }
        binding::bind(&workloads, &world.workloads, &mut snapshot);
        Self {
            seed: world.seed,
            pools,
            classes,
            budgets,
            overlays,
            snapshot,
            catalog,
            penalties: world.penalties.as_ref().map(penalties).unwrap_or_default(),
            zones_with_subnet: world
                .zones_with_subnet
                .map(|count| ZONES[..count].iter().map(|zone| (*zone).to_owned()).collect()),
        }
    }

    /// A cluster of pods without nodes, and one pool for them.
    pub fn of_objects(node_pool: Value, node_class: Value, instance_types: Vec<Value>, pods: Vec<Value>) -> Self {
        let (pools, classes): (Vec<NodePool>, Vec<EC2NodeClass>) = (vec![object(node_pool)], vec![object(node_class)]);
        Self {
            seed: 1,
            snapshot: Snapshot {
                node_pools: pools.clone().into(),
                node_classes: classes.clone().into(),
                pods: pods.into_iter().map(object).collect(),
                ..Snapshot::default()
            },
            pools,
            classes,
            budgets: Vec::new(),
            overlays: Vec::new(),
            penalties: Penalties::default(),
            catalog: object(json!({
                "version": 1, "region": "us-east-1", "date": "2026-11-20", "instanceTypes": instance_types,
            })),
            zones_with_subnet: None,
        }
    }

    /// Each class has subnets in the same zones.
    fn zones_by_class(&self) -> BTreeMap<String, Vec<String>> {
        let zones = self.zones_with_subnet.iter();
        let names = self.classes.iter().filter_map(|class| class.metadata.name.clone());
        names.zip(zones.cycle()).map(|(name, zones)| (name, zones.clone())).collect()
    }

    pub fn inputs(&self, packing: Packing) -> Inputs<'_> {
        Inputs {
            revision: Revision { id: "abc".to_owned(), reference: "main".to_owned() },
            cluster: "demo",
            node_pools: &self.pools,
            node_classes: &self.classes,
            node_overlays: &self.overlays,
            capacity_buffers: &[],
            pod_templates: &[],
            disruption_budgets: &self.budgets,
            places: cutlist::core::plan::DefinitionPlaces::none(),
            snapshot: &self.snapshot,
            catalog: &self.catalog,
            policy: Policy {
                packing,
                penalties: self.penalties.clone(),
                zones_with_subnet: self.zones_by_class(),
                feature_gates: FeatureGates { node_overlay: true, static_capacity: true, ..FeatureGates::default() },
                ..Policy::default()
            },
            seed: self.seed,
            now: now(),
            notes: Vec::new(),
        }
    }
}

fn penalties(it: &world::Penalties) -> Penalties {
    let dollars = |thousandths: u8| f64::from(thousandths) / 1000.0;
    let concentration = |thousandths: u8| ConcentrationPenalty {
        per_pod_per_hour: dollars(thousandths),
        max_share_percent: u32::from(it.share_percent),
    };
    Penalties {
        per_node_per_hour: dollars(it.per_node),
        blast_radius: concentration(it.blast_radius),
        spot_concentration: concentration(it.spot_concentration),
    }
}

fn requirement(key: &str, operator: &str, values: Value) -> Value {
    json!({ "key": key, "operator": operator, "values": values })
}
