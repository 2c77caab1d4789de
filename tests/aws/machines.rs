//! Plays the machines: each instance of the account reads the user data that EC2 has for it, and registers the Node that is written there.
//! Wrong user data is a wrong Node, or none. kwok plays the kubelets from then on.

use std::collections::BTreeSet;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::moto::{REGION, Raw};

#[derive(Default)]
pub struct Machines {
    booted: BTreeSet<String>,
}

impl Machines {
    /// Boots what runs and has not booted.
    pub fn look(&mut self, raw: &Raw<'_>, cluster: &Cluster) {
        for (id, instance_type) in raw.running() {
            if self.booted.insert(id.clone()) {
                let node = node(raw, &id, &instance_type);
                cluster.create("/api/v1/nodes", &node).unwrap_or_else(|error| panic!("{error}\n{node:#}"));
            }
        }
    }

    /// How many have booted so far.
    pub fn booted(&self) -> usize {
        self.booted.len()
    }
}

fn node(raw: &Raw<'_>, id: &str, instance_type: &str) -> Value {
    let config = config(&user_data(raw, id));
    let described = raw.ec2("DescribeInstances", &[("InstanceId.1", id)]).ok();
    let zone = described.all("availabilityZone").remove(0);
    let sizes = raw.ec2("DescribeInstanceTypes", &[("InstanceType.1", instance_type)]).ok();
    let (cpu, mebibytes) = (sizes.all("defaultVCpus").remove(0), sizes.all("sizeInMiB").remove(0));
    let name = format!("{id}.ec2.internal");
    let mut labels = json!({
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": instance_type,
        "topology.kubernetes.io/region": REGION, "topology.kubernetes.io/zone": zone,
    });
    let kubelet = &config["spec"]["kubelet"];
    let flags = kubelet["flags"].as_array().unwrap_or_else(|| panic!("no flags: {config:#}"));
    let of_flag = flags.iter().filter_map(Value::as_str).find_map(|flag| flag.strip_prefix("--node-labels="));
    for label in of_flag.unwrap().trim_matches('"').split(',') {
        let (key, value) = label.split_once('=').unwrap();
        labels[key] = json!(value);
    }
    let memory: u64 = mebibytes.parse::<u64>().unwrap() * 90 / 100;
    let room = json!({ "cpu": cpu, "memory": format!("{memory}Mi"), "pods": kubelet["config"]["maxPods"].to_string() });
    json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": labels },
        "spec": { "providerID": format!("aws:///{zone}/{id}"), "taints": kubelet["config"]["registerWithTaints"] },
        "status": { "capacity": room, "allocatable": room } })
}

/// As the machine gets it.
fn user_data(raw: &Raw<'_>, id: &str) -> String {
    let said = raw.ec2("DescribeInstanceAttribute", &[("InstanceId", id), ("Attribute", "userData")]).ok();
    String::from_utf8(BASE64_STANDARD.decode(&said.all("value")[0]).unwrap()).unwrap()
}

/// The last NodeConfig of the parts.
fn config(user_data: &str) -> Value {
    let boundary = user_data.split("boundary=\"").nth(1).and_then(|rest| rest.split('"').next());
    let boundary = boundary.unwrap_or_else(|| panic!("no parts: {user_data}"));
    let line = format!("--{boundary}");
    let parts = user_data.split(&line);
    let of_node = parts.filter(|part| part.contains("application/node.eks.aws"));
    let (_, text) = of_node.last().and_then(|part| part.split_once("\n\n")).unwrap();
    serde_yaml::from_str(text).unwrap()
}
