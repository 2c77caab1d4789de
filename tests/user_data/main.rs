//! What machines are told. Each folder of `cases/` holds an EC2NodeClass (`node_class.yaml`) and what is known besides (`input.json`), and
//! what must come out: the bytes (`expected.txt`) or the error (`expected.error`), and what is said about them (`expected.findings`).
//! One whose class is that of an example names its file instead (`example`).
//! Each folder of `launches/` holds a class with its status, NodeClaims (`node_claims.yaml`), and what is known besides; and the launch templates
//! and calls of CreateFleet that come of it. `UPDATE=1` rewrites what must come out.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test reads files")]

mod any_text;
mod launches;
mod machine;

use std::path::{Path, PathBuf};

use cutlist::api::ec2_node_class::{AmiFamily, EC2NodeClass};
use cutlist::core::catalog::user_data::{Bootstrap, UserData, UserDataError, render};
use serde::Deserialize;

struct Case {
    folder: PathBuf,
    family: AmiFamily,
    bootstrap: Bootstrap,
}

impl Case {
    fn name(&self) -> String {
        self.folder.file_name().unwrap().to_string_lossy().into_owned()
    }

    fn render(&self) -> Result<UserData, UserDataError> {
        render(self.family, &self.bootstrap)
    }
}

/// Of the case, or of the example that it names: the last one in the file.
fn class_of(folder: &Path) -> EC2NodeClass {
    let Ok(example) = std::fs::read_to_string(folder.join("example")) else {
        return serde_yaml::from_str(&std::fs::read_to_string(folder.join("node_class.yaml")).unwrap()).unwrap();
    };
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(example.trim())).unwrap();
    let documents = serde_yaml::Deserializer::from_str(&text);
    documents.map(|document| EC2NodeClass::deserialize(document).unwrap()).last().unwrap()
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/user_data/cases");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
        .into_iter()
        .map(|folder| {
            let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
            let class = class_of(&folder);
            let mut bootstrap: Bootstrap = serde_json::from_str(&read("input.json")).unwrap();
            bootstrap.kubelet = class.spec.kubelet.clone().unwrap_or_default();
            bootstrap.instance_store_policy = class.spec.instance_store_policy;
            bootstrap.user_data = class.spec.user_data.clone();
            Case { family: class.spec.resolved_ami_family(), bootstrap, folder }
        })
        .collect()
}

#[test]
fn machines_are_told_what_is_expected() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut different = Vec::new();
    for case in cases() {
        let (text, findings, error) = match case.render() {
            Ok(UserData { text, findings }) => {
                let line = |line: Option<usize>| line.map_or("-".to_owned(), |line| line.to_string());
                let findings = findings.iter().map(|it| format!("{:?} {} {}\n", it.code, line(it.line), it.text));
                (Some(text), findings.collect::<String>(), None)
            }
            Err(error) => (None, String::new(), Some(format!("{error}\n"))),
        };
        let findings = (!findings.is_empty()).then_some(findings);
        for (file, found) in [("expected.txt", text), ("expected.findings", findings), ("expected.error", error)] {
            let file = case.folder.join(file);
            let expected = std::fs::read_to_string(&file).ok();
            if expected == found {
                continue;
            }
            match (update, &found) {
                (true, Some(found)) => std::fs::write(&file, found).unwrap(),
                (true, None) => std::fs::remove_file(&file).unwrap(),
                (false, _) => different.push(format!("{}\n{}", file.display(), found.unwrap_or_default())),
            }
        }
    }
    assert!(different.is_empty(), "other user data than expected:\n{}", different.join("\n"));
}

/// Read by other code than wrote it, and by what the machine does with it: the node must come out.
#[test]
fn the_machine_registers_the_node_that_was_asked_for() {
    let mut checked = 0;
    for case in cases().iter().filter(|case| case.family != AmiFamily::Custom) {
        let Ok(rendered) = case.render() else { continue };
        let node = machine::boot(case.family, &rendered.text);
        let asked = machine::asked_for(&case.bootstrap);
        assert_eq!(node.without_labels_of_the_class(&asked), asked, "{}", case.name());
        checked += 1;
    }
    assert!(checked >= 12, "{checked} cases");
}

#[test]
fn the_order_of_maps_changes_nothing() {
    for case in cases() {
        let mut turned = case.bootstrap.clone();
        for value in turned.kubelet.values_mut() {
            if let serde_json::Value::Object(fields) = value {
                *fields = std::mem::take(fields).into_iter().rev().collect();
            }
        }
        assert_eq!(render(case.family, &turned), case.render(), "{}", case.name());
    }
}
