//! `cutlist explain` and `cutlist schema export`.

use std::process::Command;

use serde_json::{Value, json};

/// Standard output, standard error and exit code.
fn cutlist(arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_cutlist")).args(arguments).env_clear().output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code().unwrap())
}

#[test]
fn a_rule_is_explained_by_code_or_name() {
    let (page, _, code) = cutlist(&["explain", "CL0464"]);
    assert_eq!(code, 0);
    assert!(page.starts_with("CL0464 unpinned-alias (note)\n\n"), "{page}");
    for part in [
        "drifts when AWS publishes",
        "\nBad:\n\n    kind: EC2NodeClass\n",
        "\nGood:\n\n    kind",
        "\nSource: <https://",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert!(!page.contains("```"), "{page}");
    assert_eq!(cutlist(&["explain", "unpinned-alias"]).0, page);
    assert_eq!(cutlist(&["explain", "cl0464"]).0, page);
    let (_, said, code) = cutlist(&["explain", "unpined-alias"]);
    assert_eq!(
        (said.as_str(), code),
        ("error: there is no rule `unpined-alias`\n\nhint: did you mean `unpinned-alias`?\n", 2)
    );
    for (word, hint) in [
        ("unpinned", "did you mean `unpinned-alias`?"),
        ("Unpined", "did you mean `unpinned-alias`?"),
        ("unpinned alias", "did you mean `unpinned-alias`?"),
        ("464", "did you mean `CL0464`?"),
        ("CL464", "did you mean `CL0464`?"),
        ("baseline", "did you mean one of `outdated-baseline`, `unusable-baseline`?"),
        ("9999", "`cutlist explain` lists them"),
        ("nothing of the kind", "`cutlist explain` lists them"),
    ] {
        let (_, said, code) = cutlist(&["explain", word]);
        assert_eq!((said.as_str(), code), (format!("error: there is no rule `{word}`\n\nhint: {hint}\n").as_str(), 2));
    }
    let (list, _, code) = cutlist(&["explain"]);
    assert_eq!((list.lines().count(), code), (cutlist::definitions::rules::all().len(), 0));
    assert!(list.contains("\nCL0464  note     unpinned-alias  "), "{list}");
}

/// The names of the files are those that kubeconform looks for, and the schemas are strict.
#[test]
fn schemas_are_exported_for_other_validators() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("schemas");
    let (_, said, code) = cutlist(&["schema", "export", target.to_str().unwrap()]);
    assert!(code == 0 && said.starts_with("wrote 8 schemas to "), "{said}");
    let read =
        |name: &str| serde_json::from_str::<Value>(&std::fs::read_to_string(target.join(name)).unwrap()).unwrap();
    for name in [
        "karpenter.k8s.aws/ec2nodeclass_v1.json",
        "karpenter.sh/nodeoverlay_v1alpha1.json",
        "autoscaling.x-k8s.io/capacitybuffer_v1beta1.json",
        "cutlist.dev/disruptionbudget_v1alpha1.json",
        "cutlist.dev/settings_v1alpha1.json",
        "cutlist.dev/scenario_v1alpha1.json",
        "cutlist.dev/imagelock_v1alpha1.json",
    ] {
        assert!(jsonschema::meta::is_valid(&read(name)), "{name}");
    }
    let pools = jsonschema::validator_for(&read("karpenter.sh/nodepool_v1.json")).unwrap();
    let mut pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "a" },
        "spec": { "template": { "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" }, "requirements": [],
        } } },
    });
    assert!(pools.is_valid(&pool), "{:?}", pools.validate(&pool).err());
    pool["spec"]["wieght"] = json!(10);
    assert!(!pools.is_valid(&pool));
    // A folder that can not be made is said.
    std::fs::write(folder.path().join("file"), "").unwrap();
    let (_, said, code) = cutlist(&["schema", "export", folder.path().join("file").to_str().unwrap()]);
    assert!(code == 1 && said.contains("can not be made"), "{said}");
}
