//! Clusters whose definitions are the same files with other values.

use std::path::Path;

use serde_json::Value;

use crate::laid_out::in_folder;
use crate::program::{NOW, Ran, copy, cutlist};
use crate::{MERGE, root};

/// A change that takes the family of instances from a variable.
fn stage() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("clusters"), &folder.path().join("clusters"));
    copy(&root().join("a-change/base"), &folder.path().join("head"));
    let pools = folder.path().join("head/nodepools.yaml");
    let text = std::fs::read_to_string(&pools).unwrap().replace("\"m5\"", "\"${family}\"");
    std::fs::write(&pools, text).unwrap();
    in_folder(&folder.path().join("repository"), &root().join("a-change/base"), &folder.path().join("head"));
    folder
}

fn preview(folder: &Path, further: &[&str]) -> Ran {
    let clusters = ["--cluster", "blue=clusters/blue.yaml", "--cluster", "red=clusters/blue.yaml", "--now", NOW];
    cutlist(folder, MERGE.into_iter().chain(clusters).chain(["--without-simulation"]).chain(further.iter().copied()))
}

#[test]
fn each_cluster_has_its_own_values() {
    let folder = stage();
    let given = ["--variable", "family=m5", "--cluster-variable", "red=family=m6i"];
    let ran = preview(folder.path(), &[&given[..], &["-o", "json"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let replaced = |index: usize| {
        let target = &document["targets"][index];
        (target["cluster"].clone(), target["figures"]["nodesReplaced"].clone())
    };
    // Of a cluster for which nothing changes there are no figures.
    assert_eq!([replaced(0), replaced(1)], [("blue".into(), Value::Null), ("red".into(), 1.into())], "{document}");
    let unknown = preview(folder.path(), &["--cluster-variable", "rde=family=m6i"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("did you mean red?"), "{}", unknown.transcript());
}

/// A large cluster is planned for seconds: all forms come of one run.
#[test]
fn several_forms_are_written_at_once() {
    let folder = stage();
    let to = ["--variable", "family=m6i", "-o", "text", "-o", "json=preview.json", "-o", "markdown=preview.md"];
    let ran = preview(folder.path(), &to);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert!(ran.stdout.starts_with("Preview "), "{}", ran.transcript());
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    for (name, form) in [("preview.json", "json"), ("preview.md", "markdown")] {
        assert_eq!(read(name), preview(folder.path(), &["--variable", "family=m6i", "-o", form]).stdout, "{form}");
    }
    let twice = preview(folder.path(), &["-o", "text", "-o", "json"]);
    assert!(twice.code == 2 && twice.stderr.contains("-o json=preview.json"), "{}", twice.transcript());
}
