//! Invented instance types.

use cutlist::api::keys;
use serde_json::{Value, json};

use super::{GPU, ZONES};
use crate::world::Type;

pub(super) fn type_name(index: usize, it: &Type) -> String {
    format!("{}{}v{index}.{}x", category(it), it.generation, 1_u32 << it.cpu_power)
}

fn category(it: &Type) -> &'static str {
    match it.gibibytes_per_cpu {
        2 => "c",
        4 => "m",
        _ => "r",
    }
}

pub(super) fn instance_type(index: usize, it: &Type) -> Value {
    let name = type_name(index, it);
    let cpu = 1_u32 << it.cpu_power;
    let gibibytes = cpu * u32::from(it.gibibytes_per_cpu);
    let dollars = (f64::from(cpu) * 0.03 + f64::from(gibibytes) * 0.004) * f64::from(it.price_percent) / 100.0;
    let rounded = |dollars: f64| (dollars * 10_000.0).round() / 10_000.0;
    let mut offerings = Vec::new();
    for (zone, name) in ZONES.iter().enumerate() {
        let available = it.unavailable & (1 << zone) == 0;
        let offering = |capacity_type: &str, price: f64| json!({ "zone": name, "zoneId": format!("use1-az{zone}"), "capacityType": capacity_type, "price": price, "available": available });
        offerings.push(offering("on-demand", rounded(dollars)));
        if it.spot_percent[zone] > 0 {
            offerings.push(offering("spot", rounded(dollars * f64::from(it.spot_percent[zone]) / 100.0)));
        }
    }
    let has_spot = it.spot_percent.iter().any(|percent| *percent > 0);
    let (family, size) = name.split_once('.').unwrap();
    let mut capacity = json!({
        "cpu": cpu.to_string(), "memory": format!("{gibibytes}Gi"), "pods": (cpu * 8 + 4).to_string(), "ephemeral-storage": "20Gi"
    });
    let mut requirements = json!({
        keys::INSTANCE_TYPE: [name], keys::ARCHITECTURE: [if it.arm { "arm64" } else { "amd64" }],
        keys::OPERATING_SYSTEM: ["linux"], keys::REGION: ["us-east-1"], keys::ZONE: ZONES,
        keys::ZONE_ID: ["use1-az0", "use1-az1", "use1-az2"],
        keys::CAPACITY_TYPE: if has_spot { json!(["on-demand", "spot"]) } else { json!(["on-demand"]) },
        keys::INSTANCE_CATEGORY: [category(it)], keys::INSTANCE_FAMILY: [family], keys::INSTANCE_SIZE: [size],
        keys::INSTANCE_GENERATION: [it.generation.to_string()], keys::INSTANCE_CPU: [cpu.to_string()],
        keys::INSTANCE_MEMORY: [(gibibytes * 1024).to_string()],
    });
    if it.gpu {
        capacity[GPU] = json!("1");
        requirements["karpenter.k8s.aws/instance-gpu-count"] = json!(["1"]);
    }
    let overhead = json!({ "cpu": "80m", "memory": "400Mi", "ephemeral-storage": "3Gi" });
    json!({ "name": name, "requirements": requirements, "capacity": capacity, "overhead": overhead, "offerings": offerings })
}
