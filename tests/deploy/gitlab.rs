//! The script of the GitLab job, run as a runner runs it, with the program that was built.

use std::path::Path;
use std::process::Command;

use super::{documents, read};

/// A class that no pool uses: one finding, which is a note.
const DEFINITIONS: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: general }
spec:
  limits: { cpu: 100 }
  template: { spec: { nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: used }, requirements: [] } }
---
CLASS used
---
CLASS unused
";
const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
spec:
  role: nodes
  amiSelectorTerms: [{ alias: al2023@v20250920 }]
  subnetSelectorTerms: [{ tags: { team: shop } }]
  securityGroupSelectorTerms: [{ tags: { team: shop } }]
metadata:
  name:";

#[test]
fn the_settings_say_what_fails_the_job_unless_the_input_does() {
    let inputs = &documents(&read("gitlab-ci/lint.yml"))[0]["spec"]["inputs"]["fail-on"];
    assert!(inputs["options"].as_array().unwrap().contains(&inputs["default"]), "GitLab refuses another default");
    let default = inputs["default"].as_str().unwrap();
    for (settings, input, code) in
        [("", default, 0), ("note", default, 1), ("never", default, 0), ("note", "error", 0), ("never", "note", 1)]
    {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("nodes.yaml"), DEFINITIONS.replace("CLASS", CLASS)).unwrap();
        if !settings.is_empty() {
            let text = format!(
                "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: {{ lint: {{ failOn: {settings} }} }}\n"
            );
            std::fs::write(folder.path().join("cutlist.yaml"), text).unwrap();
        }
        assert_eq!(run(folder.path(), input), Some(code), "settings {settings:?}, input {input:?}");
        assert!(folder.path().join("cutlist-quality.json").exists());
    }
}

fn run(folder: &Path, fail_on: &str) -> Option<i32> {
    let job = documents(&read("gitlab-ci/lint.yml")).remove(1);
    let script = job["cutlist-lint"]["script"][0].as_str().unwrap().to_owned();
    let program = Path::new(env!("CARGO_BIN_EXE_cutlist")).parent().unwrap();
    let search = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let ran = Command::new("sh")
        .args(["-e", "-c", &script])
        .current_dir(folder)
        .env("PATH", search)
        .env("CUTLIST_PATH", ".")
        .env("CUTLIST_FAIL_ON", fail_on)
        .output()
        .unwrap();
    ran.status.code()
}
