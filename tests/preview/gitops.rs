//! What Flux and Argo CD are told in the repository is what the cluster gets, so it is what is planned.

use serde_json::Value;

use crate::laid_out::in_folder;
use crate::program::{NOW, copy, cutlist};
use crate::{MERGE, root};

const FLUX: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: { name: pools, namespace: flux-system }
spec:
  path: ./pools
  sourceRef: { kind: GitRepository, name: flux-system }
";

/// The target of a change of one file beside the pools, whose family of instances is `family`.
fn target_of(family: &str, path: &str, before: &str, after: &str, more: &[(&str, &str)]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("clusters"), &folder.path().join("clusters"));
    for (side, text) in [("base", before), ("head", after)] {
        let side = folder.path().join(side);
        copy(&root().join("a-change/base"), &side.join("pools"));
        let pools = side.join("pools/nodepools.yaml");
        std::fs::write(&pools, std::fs::read_to_string(&pools).unwrap().replace("\"m5\"", family)).unwrap();
        for (path, text) in more.iter().chain([&(path, text)]) {
            let file = side.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
    }
    in_folder(&folder.path().join("repository"), &folder.path().join("base"), &folder.path().join("head"));
    let arguments = ["--cluster", "blue=clusters/blue.yaml", "--now", NOW, "--without-simulation", "-o", "json"];
    let ran = cutlist(folder.path(), MERGE.into_iter().chain(arguments));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["targets"][0].take()
}

#[track_caller]
fn replaces_a_node(target: &Value) {
    assert_eq!((&target["verdict"], &target["figures"]["nodesReplaced"]), (&"changes".into(), &1.into()), "{target:#}");
    assert!(!target.to_string().contains("not known"), "{target:#}");
}

#[test]
fn a_variable_of_flux_is_what_the_cluster_gets() {
    let flux = format!("{FLUX}  postBuild: {{ substituteFrom: [{{ kind: ConfigMap, name: settings }}] }}\n");
    let map = |family: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: settings }}\ndata: {{ family: {family} }}\n")
    };
    let beside = [("clusters/blue/pools.yaml", flux.as_str())];
    let target = target_of("\"${family}\"", "clusters/blue/settings.yaml", &map("m5"), &map("m6i"), &beside);
    replaces_a_node(&target);
}

#[test]
fn a_patch_of_flux_or_argo_cd_is_what_the_cluster_gets() {
    let patch = "patches:
    - target: { kind: NodePool }
      patch: |
        - op: replace
          path: /spec/template/spec/requirements/0/values
          value: [m6i]
";
    let flux = format!("{FLUX}  {patch}");
    let target = target_of("\"m5\"", "clusters/blue/pools.yaml", FLUX, &flux, &[]);
    replaces_a_node(&target);
    let cause = &target["causes"][0];
    assert!(cause["text"].as_str().unwrap().contains("[\"m5\"] -> [\"m6i\"]"), "{cause}");

    let application = |kustomize: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{ name: pools }}\nspec:\n  source:\n    path: pools\n    \
             repoURL: https://git.example.com/shop\n{kustomize}"
        )
    };
    let of_argo = format!("    kustomize:\n      {}", patch.replace("\n  ", "\n      "));
    let kustomization = ("pools/kustomization.yaml", "resources: [nodepools.yaml, ec2nodeclass.yaml]\n");
    let target = target_of("\"m5\"", "apps/pools.yaml", &application(""), &application(&of_argo), &[kustomization]);
    replaces_a_node(&target);
}

/// Each cluster of one preview gets what the files in the folder of its name say.
#[test]
fn what_is_told_for_one_cluster_is_not_meant_for_another() {
    let flux = |family: &str| format!("{FLUX}  postBuild: {{ substitute: {{ family: {family} }} }}\n");
    let beside = [("clusters/green/pools.yaml", flux("m5"))];
    let beside: Vec<(&str, &str)> = beside.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let target = target_of("\"${family}\"", "clusters/blue/pools.yaml", &flux("m5"), &flux("m6i"), &beside);
    replaces_a_node(&target);
    let beside = [("clusters/blue/pools.yaml", flux("m5"))];
    let beside: Vec<(&str, &str)> = beside.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let target = target_of("\"${family}\"", "clusters/green/pools.yaml", &flux("m5"), &flux("m6i"), &beside);
    assert_eq!(target["verdict"], "untouched", "{target:#}");
}
