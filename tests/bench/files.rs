//! A scenario as files: definitions, a catalog, and a snapshot, which both programs read.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark writes files")]

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use cutlist::core::catalog::Catalog;
use serde_json::{Value, json};

use crate::objects::{self, node_and_claim};
use crate::scenarios::{NODE_TYPE, POOL, Scenario};
use crate::workloads;

pub struct Files {
    pub folder: PathBuf,
    pub definitions: PathBuf,
    pub catalog: PathBuf,
    pub snapshot: PathBuf,
}

/// Writes the scenario below the given folder. The files stay, so that one that is slow can be looked at.
pub fn write(scenario: &Scenario, catalog: &Value, below: &Path) -> Files {
    let folder = below.join(scenario.folder());
    let definitions = folder.join("definitions");
    if definitions.exists() {
        // An earlier scenario of this name may have had more pools.
        fs::remove_dir_all(&definitions).unwrap();
    }
    fs::create_dir_all(&definitions).unwrap();
    let files =
        Files { catalog: folder.join("catalog.json"), snapshot: folder.join("snapshot.json"), definitions, folder };
    for (number, pool) in scenario.pools.iter().enumerate() {
        write_json(&files.definitions.join(format!("nodepool-{number}.yaml")), pool);
    }
    write_json(&files.definitions.join("ec2nodeclass.yaml"), &objects::node_class());
    write_json(&files.definitions.join("cutlist.yaml"), &objects::settings(scenario.preference_policy));
    write_json(&files.catalog, catalog);
    write_snapshot(scenario, catalog, &files.snapshot);
    files
}

/// JSON is YAML.
fn write_json(path: &Path, value: &Value) {
    fs::write(path, serde_json::to_vec_pretty(value).unwrap()).unwrap();
}

/// Object by object, since all of them together do not fit well into memory.
fn write_snapshot(scenario: &Scenario, catalog: &Value, path: &Path) {
    let mut out = BufWriter::new(File::create(path).unwrap());
    out.write_all(b"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n").unwrap();
    let mut separator: &[u8] = b"";
    let mut put = |object: &Value| {
        out.write_all(separator).unwrap();
        separator = b",\n";
        serde_json::to_writer(&mut out, object).unwrap();
    };
    put(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": objects::NAMESPACE } }));
    scenario.daemon_sets.iter().for_each(&mut put);
    write_nodes(scenario, catalog, &mut put);
    scenario.pending.iter().for_each(|pod| put(&pod.pending()));
    out.write_all(b"\n]}\n").unwrap();
    out.flush().unwrap();
}

/// Nodes in all zones in turn. Their pods come from Deployments of 50, dealt out one by one, so that a node holds as many
/// kinds as pods.
fn write_nodes(scenario: &Scenario, catalog: &Value, put: &mut dyn FnMut(&Value)) {
    let nodes = scenario.nodes;
    if nodes.count == 0 {
        return;
    }
    let parsed = Catalog::parse(catalog.to_string()).unwrap();
    let parsed = parsed.instance_types.iter().find(|it| it.name == NODE_TYPE).unwrap();
    let allocatable = serde_json::to_value(parsed.allocatable()).unwrap();
    let instance_type = serde_json::to_value(parsed).unwrap();
    let zones: Vec<&String> = parsed.requirements[cutlist::api::keys::ZONE].iter().collect();
    let name = |number: usize| format!("node-{number:05}");
    for number in 0..nodes.count {
        let zone = zones[number % zones.len()];
        for object in node_and_claim(&name(number), POOL, zone, &instance_type, &allocatable) {
            put(&object);
        }
    }
    let count = nodes.count * nodes.pods_on_each;
    for (number, pod) in workloads::running(count).iter().enumerate() {
        put(&pod.bound(&name(number % nodes.count)));
    }
}
