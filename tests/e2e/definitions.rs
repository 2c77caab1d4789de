//! The custom resource definitions that `cutlist crds` prints: the real API server takes them, and rejects with them what
//! Karpenter's would reject. The objects are in `definitions/`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::{Apply, Cluster, documents};
use crate::control_plane::ControlPlane;

/// How long the API server may take to serve a new kind.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn api_server_takes_our_definitions(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let definitions = definitions();
    for definition in &definitions {
        let name = &definition["metadata"]["name"];
        cluster.apply(definition, Apply::DryRun).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for definition in &definitions {
        establish(&cluster, definition);
    }
    let bases = read("accepted.yaml");
    for object in &bases {
        accept(&cluster, object, Apply::ForReal);
    }
    // What people have in their repositories.
    let accepted = examples(&definitions).iter().map(|object| accept(&cluster, object, Apply::DryRun)).count();
    let cases = read("rejected.yaml");
    reject(&cluster, &bases, &cases);
    assert_every_rule_has_a_case(&definitions, &cases);
    plane.say(format!("{} definitions, {accepted} objects of examples, {} bad ones", definitions.len(), cases.len()));
    assert!(accepted > 20, "the examples are missing");
}

/// What `cutlist crds` prints.
pub fn definitions() -> Vec<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_cutlist")).arg("crds").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    documents(&String::from_utf8(output.stdout).unwrap())
}

/// Creates the definition, and waits until its kind is served.
pub fn establish(cluster: &Cluster, definition: &Value) {
    cluster.apply(definition, Apply::ForReal).unwrap();
    let path = cluster.path_of(definition);
    let conditions = cluster.wait(&format!("{path} established"), PATIENCE, |cluster| {
        let conditions = cluster.get(&path).unwrap()["status"]["conditions"].take();
        let is_true = |kind: &str| {
            conditions.as_array().is_some_and(|all| {
                all.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
            })
        };
        if is_true("Established") && is_true("NamesAccepted") { Ok(conditions) } else { Err(conditions.to_string()) }
    });
    // Accepted, with a complaint: a schema that is not structural, for one.
    let complaints = conditions.as_array().unwrap().iter().any(|condition| condition["type"] == "NonStructuralSchema");
    assert!(!complaints, "{path}: {conditions:#}");
}

/// The documents of the examples that are of one of the kinds.
fn examples(definitions: &[Value]) -> Vec<Value> {
    let kinds: Vec<(&str, &str)> = definitions
        .iter()
        .map(|definition| {
            let spec = &definition["spec"];
            (spec["group"].as_str().unwrap(), spec["names"]["kind"].as_str().unwrap())
        })
        .collect();
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                found.extend(documents(&std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.retain(|object| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, kind) =
            (version.split('/').next().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
        // Snapshots hold objects that a cluster made; only what people write is applied.
        kinds.contains(&(group, kind)) && object["metadata"]["uid"].is_null()
    });
    found
}

fn accept(cluster: &Cluster, object: &Value, how: Apply) {
    cluster.apply(object, how).unwrap_or_else(|error| panic!("{error}\n{object:#}"));
}

/// Each case is refused, with the words it expects.
fn reject(cluster: &Cluster, bases: &[Value], cases: &[Value]) {
    let mut wrong = Vec::new();
    for case in cases {
        let expected = case["rejected"].as_str().unwrap();
        let mut object = bases.iter().find(|base| base["kind"] == case["kind"]).unwrap().clone();
        merge(&mut object, &case["with"]);
        match cluster.apply(&object, Apply::DryRun) {
            Ok(_) => wrong.push(format!("accepted, and should not be ({expected}): {object}")),
            Err(error) if error.to_string().contains(expected) => {}
            Err(error) => wrong.push(format!("rejected with\n  {error}\nand not with\n  {expected}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}

/// A rule that nobody tried may be one that rejects nothing.
fn assert_every_rule_has_a_case(definitions: &[Value], cases: &[Value]) {
    for definition in definitions {
        let kind = &definition["spec"]["names"]["kind"];
        let mut messages = Vec::new();
        rule_messages(&definition["spec"]["versions"], &mut messages);
        for message in messages {
            let tried =
                cases.iter().any(|case| case["kind"] == *kind && message.contains(case["rejected"].as_str().unwrap()));
            assert!(tried, "definitions/rejected.yaml has no case of {kind} for the rule: {message}");
        }
    }
}

fn rule_messages<'a>(schema: &'a Value, messages: &mut Vec<&'a str>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(rules)) = fields.get("x-kubernetes-validations") {
                messages.extend(rules.iter().map(|rule| rule["message"].as_str().unwrap()));
            }
            fields.values().for_each(|field| rule_messages(field, messages));
        }
        Value::Array(items) => items.iter().for_each(|item| rule_messages(item, messages)),
        _ => {}
    }
}

fn read(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/definitions").join(name);
    documents(&std::fs::read_to_string(path).unwrap())
}
