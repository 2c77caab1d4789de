//! What Cutlist foresees: a snapshot of the cluster as it stands, and the plan that is made of it.

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
    pub snapshot: Vec<u8>,
    pub plan: Value,
}

impl Planner {
    pub fn look(&self, folder: &Path) -> Foreseen {
        let snapshot = folder.join("snapshot.json");
        let taken = self.run(Command::new(&self.cutlist).arg("snapshot").arg("--kubeconfig").arg(&self.kubeconfig));
        std::fs::write(&snapshot, &taken).unwrap();
        let mut command = Command::new(&self.cutlist);
        command.arg("plan").arg(&self.definitions).arg("--snapshot").arg(&snapshot).arg("--catalog").arg(&self.catalog);
        let printed = self.run(command.args(["--packing", "karpenter", "-o", "json"]));
        let plan: Value = serde_json::from_slice(&printed).unwrap();
        Foreseen { deeds: deeds(&plan), snapshot: taken, plan }
    }

    fn run(&self, command: &mut Command) -> Vec<u8> {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
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
                claim: step["nodeClaim"].as_str().unwrap().to_owned(),
            }),
            _ => {}
        }
    }
    deeds.sorted()
}
