//! Nodes and pods as a real API server sends them, with everything that nobody here looks at.

use std::sync::OnceLock;

const POD: &str = include_str!("pod.yaml");
const NODE: &str = include_str!("node.yaml");

/// Pods of one Deployment.
const REPLICAS: usize = 20;

pub fn pod(number: usize) -> String {
    static TEXT: OnceLock<String> = OnceLock::new();
    filled(TEXT.get_or_init(|| json(POD)), number)
}

pub fn node(number: usize) -> String {
    static TEXT: OnceLock<String> = OnceLock::new();
    filled(TEXT.get_or_init(|| json(NODE)), number)
}

fn json(text: &str) -> String {
    serde_yaml::from_str::<serde_json::Value>(text).unwrap().to_string()
}

/// Of the object with this number.
fn filled(text: &str, number: usize) -> String {
    let (workload, node) = (number / REPLICAS, number / crate::PODS_PER_NODE);
    text.replace("NUMBER", &format!("{number:06}"))
        .replace("WORKLOAD", &format!("{workload:05}"))
        .replace("NODE", &format!("{node:05}"))
        .replace("NAMESPACE", &format!("{:03}", workload % 200))
}
