//! What Cutlist foresees: a snapshot of the cluster as it stands, and the plan that is made of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::deeds::{Deeds, Gone, Made, Why};

/// How to ask it, again and again.
pub struct Planner {
    pub cutlist: PathBuf,
    pub kubeconfig: PathBuf,
    pub catalog: PathBuf,
    /// The folder with the definitions.
    pub definitions: PathBuf,
}

/// What came of one look.
pub struct Foreseen {
    pub deeds: Deeds,
    /// By claim, what is the same of nodes that are alike.
    pub alike: BTreeMap<String, String>,
    pub snapshot: Vec<u8>,
    pub plan: Value,
}

impl Planner {
    pub fn look(&self, folder: &Path) -> Foreseen {
        let snapshot = folder.join("snapshot.json");
        let taken = run(Command::new(&self.cutlist).arg("snapshot").arg("--kubeconfig").arg(&self.kubeconfig));
        std::fs::write(&snapshot, &taken).unwrap();
        let mut command = Command::new(&self.cutlist);
        command.arg("plan").arg(&self.definitions).arg("--snapshot").arg(&snapshot).arg("--catalog").arg(&self.catalog);
        let printed = run(command.args(["--packing", "karpenter", "-o", "json"]));
        let plan: Value = serde_json::from_slice(&printed).unwrap();
        let alike = alike(&serde_json::from_slice(&taken).unwrap());
        Foreseen { deeds: deeds(&plan).described(&alike), alike, snapshot: taken, plan }
    }
}

/// What each claim's node is, and the workloads of its pods.
fn alike(snapshot: &Value) -> BTreeMap<String, String> {
    let objects = snapshot["items"].as_array().unwrap();
    let of_kind = |kind: &'static str| objects.iter().filter(move |it| it["kind"] == kind);
    let mut pods: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for pod in of_kind("Pod") {
        let Some(node) = pod["spec"]["nodeName"].as_str() else { continue };
        pods.entry(node).or_default().push(pod["metadata"]["labels"]["app"].as_str().unwrap_or_default());
    }
    let described = of_kind("NodeClaim").map(|claim| {
        let label = |key: &str| claim["metadata"]["labels"][key].as_str().unwrap_or_default();
        let mut its = pods.get(claim["status"]["nodeName"].as_str().unwrap_or_default()).cloned().unwrap_or_default();
        its.sort_unstable();
        let keys = [
            "karpenter.sh/nodepool",
            "node.kubernetes.io/instance-type",
            "topology.kubernetes.io/zone",
            "karpenter.sh/capacity-type",
        ];
        (
            claim["metadata"]["name"].as_str().unwrap().to_owned(),
            format!("{} {}", keys.map(label).join(" "), its.join(" ")),
        )
    });
    described.collect()
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn deeds(plan: &Value) -> Deeds {
    let mut deeds = Deeds::default();
    for step in plan["steps"].as_array().unwrap() {
        match step["kind"].as_str().unwrap() {
            "create" => deeds.made.push(Made::new(
                &step["nodePool"],
                &step["instanceType"],
                &step["zone"],
                &step["capacityType"],
                &step["launch"]["nodeClaim"]["spec"]["resources"]["requests"],
            )),
            "remove" => deeds.gone.push(Gone {
                why: Why::of(step["reason"]["code"].as_str().unwrap()),
                alike: String::new(),
                claim: step["nodeClaim"].as_str().unwrap().to_owned(),
            }),
            _ => {}
        }
    }
    deeds.sorted()
}
