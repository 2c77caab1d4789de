//! Pools, classes and budgets.

use cutlist::api::keys;
use serde_json::{Value, json};

use super::{LICENCE, STARTUP_TAINT, ZONES, requirement};
use crate::world::{Budget, CapacityTypes, ClusterBudget, ConsolidateAfter, Effect, Overlay, Pool};

pub(super) fn node_pool(index: usize, pool: &Pool) -> Value {
    let capacity_types = match pool.capacity {
        CapacityTypes::OnDemand => json!(["on-demand"]),
        CapacityTypes::Spot => json!(["spot"]),
        CapacityTypes::Both => json!(["on-demand", "spot"]),
    };
    let mut requirements = vec![requirement(keys::CAPACITY_TYPE, "In", capacity_types)];
    if let Some(arm) = pool.arm {
        requirements.push(requirement(keys::ARCHITECTURE, "In", json!([if arm { "arm64" } else { "amd64" }])));
    }
    if let Some(generation) = pool.minimum_generation {
        requirements.push(requirement(keys::INSTANCE_GENERATION, "Gt", json!([(generation - 1).to_string()])));
    }
    if let Some(bits) = pool.zones {
        let zones: Vec<&str> = (0..3).filter(|zone| bits & (1 << zone) != 0).map(|zone| ZONES[zone]).collect();
        requirements.push(requirement(keys::ZONE, "In", json!(zones)));
    }
    if let Some(minimum) = pool.minimum_types {
        requirements.push(json!({ "key": keys::INSTANCE_FAMILY, "operator": "Exists", "minValues": minimum }));
    }
    let mut limits = json!({});
    // A static pool limits nothing but its nodes, and has no weight.
    let weight = pool.weight.filter(|_| pool.replicas.is_none());
    if let Some(cpu) = pool.cpu_limit.filter(|_| pool.replicas.is_none()) {
        limits["cpu"] = json!(cpu);
    }
    if let Some(nodes) = pool.node_limit {
        limits["nodes"] = json!(nodes.to_string());
    }
    let labels = pool.team.map_or(json!({}), |team| json!({ "team": team_name(team) }));
    let taints =
        if pool.tainted { json!([{ "key": "team", "value": "a", "effect": "NoSchedule" }]) } else { json!([]) };
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": pool_name(index) },
        "spec": {
            "weight": weight,
            "replicas": pool.replicas,
            "limits": limits,
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": pool_name(index) },
                    "requirements": requirements, "taints": taints, "startupTaints": startup_taints(),
                },
            },
            "disruption": {
                "consolidationPolicy": if pool.only_empty { "WhenEmpty" } else { "WhenEmptyOrUnderutilized" },
                "consolidateAfter": match pool.consolidate_after {
                    ConsolidateAfter::AtOnce => "0s".to_owned(),
                    ConsolidateAfter::Minutes(minutes) => format!("{minutes}m"),
                    ConsolidateAfter::Never => "Never".to_owned(),
                },
                "budgets": pool_budgets(&pool.budget),
            },
        },
    })
}

fn pool_budgets(budget: &Budget) -> Value {
    match budget {
        Budget::Percent(percent) => json!([{ "nodes": format!("{percent}%") }]),
        Budget::Count(count) => json!([{ "nodes": count.to_string() }]),
        Budget::NotWhenEmpty => json!([{ "nodes": "0", "reasons": ["Empty"] }, { "nodes": "10%" }]),
        Budget::Window(hour) => json!([{ "nodes": "0", "schedule": format!("0 {hour} * * *"), "duration": "8h" }]),
    }
}

pub(super) fn startup_taints() -> Value {
    json!([{ "key": STARTUP_TAINT, "effect": "NoSchedule" }])
}

pub(super) fn pool_name(index: usize) -> String {
    format!("pool-{index}")
}

pub(super) fn team_name(team: u8) -> &'static str {
    if team == 0 { "blue" } else { "green" }
}

pub(super) fn node_class(index: usize, pool: &Pool) -> Value {
    let kubelet = pool.max_pods.map(|pods| json!({ "maxPods": pods }));
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": pool_name(index) },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }], "role": "nodes", "kubelet": kubelet,
            "subnetSelectorTerms": [{ "tags": { "cluster": "demo" } }],
            "securityGroupSelectorTerms": [{ "tags": { "cluster": "demo" } }],
        },
    })
}

pub(super) fn overlay(index: usize, overlay: &Overlay, pools: usize) -> Value {
    let mut requirements = Vec::new();
    if let Some(pool) = overlay.pool {
        requirements.push(requirement(keys::NODE_POOL, "In", json!([pool_name(pool % pools)])));
    }
    if let Some(generation) = overlay.generation {
        requirements.push(requirement(keys::INSTANCE_GENERATION, "In", json!([generation.to_string()])));
    }
    if let Some(zone) = overlay.zone {
        requirements.push(requirement(keys::ZONE, "In", json!([ZONES[zone]])));
    }
    if let Some(spot) = overlay.spot {
        let capacity_type = if spot { keys::SPOT } else { keys::ON_DEMAND };
        requirements.push(requirement(keys::CAPACITY_TYPE, "In", json!([capacity_type])));
    }
    let mut spec = json!({ "requirements": requirements, "weight": overlay.weight });
    match overlay.effect {
        Effect::Price(cents) => spec["price"] = json!(format!("{:.2}", f64::from(cents) / 100.0)),
        Effect::Percent(percent) => spec["priceAdjustment"] = json!(format!("{percent:+}%")),
        Effect::Thousandths(it) => spec["priceAdjustment"] = json!(format!("{:+.3}", f64::from(it) / 1000.0)),
        Effect::Licences(count) => spec["capacity"] = json!({ LICENCE: count.to_string() }),
    }
    json!({
        "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": format!("overlay-{index}") },
        "spec": spec,
    })
}

pub(super) fn cluster_budget(budget: &ClusterBudget) -> Value {
    let mut spec = json!({ "nodes": budget.nodes.to_string() });
    if let Some(cents) = budget.cents_per_hour {
        spec["moneyPerHour"] = json!(f64::from(cents) / 100.0);
    }
    if let Some((denies, hour)) = budget.window {
        let window = json!({ "schedule": format!("0 {hour} * * *"), "duration": "6h" });
        spec[if denies { "denyWindows" } else { "allowWindows" }] = json!([window]);
    }
    json!({
        "apiVersion": "cutlist.dev/v1alpha1", "kind": "DisruptionBudget", "metadata": { "name": "everything" },
        "spec": spec,
    })
}
