//! Files of a cluster's own folder, and of the folder that several clusters share: each is named from the root of the repository.

use std::path::Path;

use crate::laid_out::in_folder;
use crate::program::{NOW, Ran, copy, cutlist};
use crate::{MERGE, root};

const PATCH: &str = "resources:
  - ../../base
patches:
  - target: { kind: NodePool, name: default }
    patch: |-
      - op: replace
        path: /spec/template/spec/requirements/0/values
        value: [\"m6i\"]
";

/// The preview of a change that makes `head` of the repository.
fn previewed(head: impl FnOnce(&Path)) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    copy(&root().join("clusters"), &at("clusters"));
    for side in ["base", "head"] {
        copy(&root().join("a-change/base"), &at(side).join("base"));
        let resources = "resources: [ec2nodeclass.yaml, nodepools.yaml]\n";
        std::fs::write(at(side).join("base/kustomization.yaml"), resources).unwrap();
        std::fs::create_dir_all(at(side).join("clusters/blue")).unwrap();
        std::fs::write(at(side).join("clusters/blue/kustomization.yaml"), "resources: [../../base]\n").unwrap();
    }
    head(&at("head"));
    in_folder(&at("repository"), &at("base"), &at("head"));
    let arguments = ["--cluster", "blue=clusters/blue.yaml", "--definitions", "blue=clusters/blue", "--now", NOW];
    cutlist(folder.path(), MERGE.into_iter().chain(arguments).chain(["--without-simulation"]))
}

#[test]
fn what_a_patch_says_is_where_the_patch_is() {
    let ran = previewed(|head| std::fs::write(head.join("clusters/blue/kustomization.yaml"), PATCH).unwrap());
    assert!(ran.stdout.contains("no longer allows"), "{}", ran.transcript());
    assert!(ran.stdout.contains("(clusters/blue/kustomization.yaml:"), "{}", ran.transcript());
    assert!(!ran.stdout.contains("(base/nodepools.yaml:"), "{}", ran.transcript());
}

#[test]
fn an_error_is_named_from_the_root() {
    let ran = previewed(|head| {
        let file = head.join("base/nodepools.yaml");
        let text = std::fs::read_to_string(&file).unwrap().replace("consolidateAfter", "consolidateAftre");
        std::fs::write(file, text).unwrap();
    });
    assert!(ran.stdout.contains("can not be used: base/nodepools.yaml:"), "{}", ran.transcript());
    assert!(!ran.stdout.contains("../"), "{}", ran.transcript());
}
