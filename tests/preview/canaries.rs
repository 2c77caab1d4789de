//! What is a secret in a cluster, in definitions or in the environment is in nothing that others read.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::laid_out::laid_out;
use crate::program::NOW;
use crate::{MERGE, root};

/// Stands for what is nobody's business. Its signs are such as Markdown escapes.
const CANARY: &str = "sekret_4of-2prod";

/// A cluster with the canary in twenty places in which clusters have secrets.
fn cluster(text: &str) -> String {
    let mut documents: Vec<Value> = serde_yaml::Deserializer::from_str(text)
        .map(|document| <Value as serde::Deserialize>::deserialize(document).unwrap())
        .collect();
    for document in &mut documents {
        document["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(CANARY);
        document["metadata"]["managedFields"] = json!([{ "manager": CANARY }]);
        if document["kind"] == "Pod" {
            document["spec"]["serviceAccountName"] = json!(CANARY);
            document["spec"]["imagePullSecrets"] = json!([{ "name": CANARY }]);
            document["spec"]["hostAliases"] = json!([{ "ip": "127.0.0.1", "hostnames": [CANARY] }]);
            document["spec"]["volumes"] = json!([{ "name": "v", "secret": { "secretName": CANARY } }, { "name": "w", "configMap": { "name": CANARY } }]);
            for container in document["spec"]["containers"].as_array_mut().unwrap() {
                container["image"] = json!(format!("user:{CANARY}@registry.example/x"));
                container["args"] = json!([CANARY]);
                container["command"] = json!([CANARY]);
                container["workingDir"] = json!(CANARY);
                container["env"] = json!([{ "name": CANARY, "value": CANARY }]);
                container["envFrom"] = json!([{ "secretRef": { "name": CANARY } }]);
                container["lifecycle"] = json!({ "preStop": { "exec": { "command": [CANARY] } } });
                container["livenessProbe"] =
                    json!({ "httpGet": { "port": 80, "httpHeaders": [{ "name": "Authorization", "value": CANARY }] } });
            }
            document["status"]["message"] = json!(CANARY);
        }
        if document["kind"] == "Node" {
            document["status"]["addresses"] = json!([{ "type": "Hostname", "address": CANARY }]);
            document["status"]["images"] = json!([{ "names": [CANARY] }]);
            document["status"]["nodeInfo"] = json!({ "machineID": CANARY });
        }
    }
    documents.push(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "namespace": "shop" }, "data": { "a": CANARY }, "stringData": { "b": CANARY } }));
    documents.push(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c", "namespace": "shop" }, "data": { "a": CANARY } }));
    let texts: Vec<String> = documents.iter().map(ToString::to_string).collect();
    assert!(texts.concat().matches(CANARY).count() > 50);
    texts.join("\n---\n") + "\n"
}

/// Standard output and standard error, with a value in the environment that definitions use.
fn ran(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("CUTLIST_VAR_TEAM", CANARY)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// However its signs are escaped.
fn holds_canary(text: &str) -> bool {
    let plain: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    text.contains(CANARY) || plain.contains("sekret4of2prod")
}

#[test]
fn no_preview_and_no_snapshot_holds_a_secret() {
    assert!(holds_canary(r"sekret\_4of-2prod") && holds_canary("se-kret 4of 2prod") && !holds_canary("sekret"));
    let folder = tempfile::tempdir().unwrap();
    let case = folder.path().join("case");
    crate::program::copy(&root().join("a-change"), &case);
    // Another value of the pool, and of the class, that comes from the environment, and user data that differs.
    let template =
        |label: &str| format!("  template:\n    metadata:\n      labels:\n        example.com/team: \"{label}\"\n");
    for (side, label) in [("base", "none"), ("head", "${TEAM}")] {
        let pools = case.join(side).join("nodepools.yaml");
        let text = std::fs::read_to_string(&pools).unwrap().replacen("  template:\n", &template(label), 1);
        std::fs::write(&pools, text).unwrap();
    }
    let class = case.join("head/ec2nodeclass.yaml");
    let text = std::fs::read_to_string(&class).unwrap() + &format!("  userData: |\n    TOKEN={CANARY}\n");
    std::fs::write(&class, text).unwrap();
    crate::program::copy(&root().join("clusters"), &folder.path().join("clusters"));
    let repository = laid_out(&case);
    let snapshot = repository.path().join("clusters/blue.yaml");
    std::fs::write(&snapshot, cluster(&std::fs::read_to_string(&snapshot).unwrap())).unwrap();
    let preview = [&MERGE[..], &["--cluster", "blue=clusters/blue.yaml", "--now", NOW]].concat();
    for form in ["text", "markdown", "json"] {
        let text = ran(repository.path(), &[&preview[..], &["-o", form]].concat());
        assert!(!holds_canary(&text), "{form}: {text}");
        assert!(text.contains("TEAM"), "{form} says which value is hidden: {text}");
    }
    let kept = ["snapshot", "--from", "clusters/blue.yaml", "--to", "kept", "--name", "blue"];
    assert!(!holds_canary(&ran(repository.path(), &kept)));
    let mut unpacked = String::new();
    for path in crate::laid_out::everything_below(&repository.path().join("kept")).into_values() {
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(path.as_slice()), &mut unpacked).unwrap();
    }
    assert!(unpacked.contains("\"Pod\"") && !holds_canary(&unpacked), "{unpacked}");
}
