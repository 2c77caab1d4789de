//! Flux applies the definitions, and Cutlist plans from what is in the cluster.

use std::path::Path;
use std::process::Command;

use cutlist::adapters::git::ScriptedRepository;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Flux, PATIENCE, PLANS, POOL, SOURCE, controller, stays};
use crate::cluster::{Apply, Cluster, documents};
use crate::control_plane::{ControlPlane, Process};
use crate::interruptions::settles;
use crate::program::{self, ENFORCE, Program, scale};
use crate::rights::{DEPLOYMENT, scenario, web};

const KUSTOMIZATION: &str = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/nodes";
/// What Flux replaces: with and without a default, inside a text, in a list.
const VARIABLES: [(&str, &str); 3] = [
    ("labels: { team: shop }", "labels: { team: '${TEAM}', tier: 'a-${TIER:=second}-b' }"),
    ("values: [c7i, m7i]", "values: ['${FAMILY}', 'm7i']"),
    ("expireAfter: Never", "expireAfter: ${EXPIRY:-Never}"),
];

/// What Flux substitutes and applies gives the plan that our own reader makes of the same commit; and Flux waits for what Cutlist says of
/// the definitions, with the checks that `deploy/flux` has.
pub fn flux_applies_and_cutlist_plans(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let folder = plane.folder().join("work-tree");
    let flux = Flux::start(plane, &cluster, repository(&folder));
    let settings = plane.folder().join("settings");
    std::fs::create_dir(&settings).unwrap();
    std::fs::copy(folder.join("cutlist.yaml"), settings.join("cutlist.yaml")).unwrap();
    let program = Program::from_folder(plane, &cluster, ENFORCE, vec![settings.into(), "--source=cluster".into()]);
    cluster.apply_all(&web());
    scale(&cluster, DEPLOYMENT, 4);
    flux.follow(&cluster);
    // Before Flux applies anything: it waits for each class to be ready before it applies a pool, and nobody else says that.
    let mut cutlist = program.start_as("cutlist", plane, &["--approval=manual"]);
    let mut kustomize = plane.run("kustomize-controller", controller(plane, "kustomize-controller", &flux.events));
    cluster.apply(&kustomization(), Apply::ForReal).unwrap();
    let posted = cluster.wait("a plan for four pods", PATIENCE, |cluster| {
        let plans = cluster.list(PLANS);
        let waits = plans.iter().find(|plan| plan["status"]["phase"] == "WaitsForApproval");
        waits.cloned().ok_or_else(|| format!("{}\n{}", kustomize.last_lines(), cutlist.last_lines()))
    });
    same_plan(plane, &folder, &posted["spec"]["plan"]);
    let name = posted["metadata"]["name"].as_str().unwrap();
    plane.tool("kubectl", &["annotate", "nodeplan", name, "cutlist.dev/approved-by=admin"]).unwrap();
    settles(&cluster, &program, "with what Flux applied", 4);
    is_ready(&cluster, &kustomize, "True", "ReconciliationSucceeded");
    // Neither of them writes what the other has written.
    stays("a pool that two work on", || cluster.get(POOL).unwrap()["metadata"]["resourceVersion"].take());

    // A pool without its class never becomes ready: Flux says so, and does not wait until its time is over.
    let pool = std::fs::read_to_string(folder.join("nodes/nodepool.yaml")).unwrap();
    let broken =
        pool.replace("name: default }", "name: missing }").replace("\n  name: default\n", "\n  name: broken\n");
    let commit = flux.commit("nodes/broken.yaml", &broken);
    flux.fetch(&cluster, &commit);
    is_ready(&cluster, &kustomize, "False", "HealthCheckFailed");
    settles(&cluster, &program, "beside a pool that is not ready", 4);
    let mended = flux.commit("nodes/broken.yaml", &broken.replace("name: missing }", "name: default }"));
    flux.fetch(&cluster, &mended);
    is_ready(&cluster, &kustomize, "True", "ReconciliationSucceeded");
    kustomize.must_run();
    cutlist.must_run();
}

/// The scenario's pool and class with variables, below a folder, and `cutlist.yaml` beside that: Flux knows no such kind.
fn repository(folder: &Path) -> ScriptedRepository {
    let (_, files) = scenario();
    let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
    let mut pool = text("nodepool.yaml");
    for (from, to) in VARIABLES {
        assert!(pool.contains(from), "{from}");
        pool = pool.replace(from, to);
    }
    let variables = "variables: { TEAM: shop, FAMILY: c7i }\n  paths: [nodes]";
    let settings = text("cutlist.yaml").replace("paths: [nodepool.yaml, ec2nodeclass.yaml]", variables);
    assert!(settings.contains(variables));
    // What is escaped comes into the cluster without its escape, and is no variable of ours there.
    let class = "role: nodes-${TEAM}\n  userData: 'echo $${TEAM} ${TEAM}'";
    let class = text("ec2nodeclass.yaml").replace("role: nodes", class);
    let files = [("cutlist.yaml", settings), ("nodes/nodepool.yaml", pool), ("nodes/ec2nodeclass.yaml", class)];
    std::fs::create_dir_all(folder.join("nodes")).unwrap();
    for (path, text) in &files {
        std::fs::write(folder.join(path), text).unwrap();
    }
    let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.into_bytes())).collect();
    ScriptedRepository::create(&files, "Begin", Timestamp::now()).unwrap()
}

/// That of `deploy/flux`, for a folder, with variables.
fn kustomization() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/flux/kustomization.yaml");
    let mut object = documents(&std::fs::read_to_string(path).unwrap()).remove(0);
    object["spec"]["path"] = json!("./nodes");
    object["spec"]["postBuild"] = json!({ "substitute": { "TEAM": "shop", "FAMILY": "c7i" } });
    object
}

fn is_ready(cluster: &Cluster, kustomize: &Process, status: &str, reason: &str) {
    let commit = cluster.get(SOURCE).unwrap()["status"]["artifact"]["revision"].take();
    cluster.wait(&format!("the Kustomization is {status}, {reason}"), PATIENCE, |cluster| {
        let found = cluster.get(KUSTOMIZATION).unwrap()["status"].take();
        let conditions = found["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|it| it["type"] == "Ready");
        let is_so = ready.is_some_and(|it| it["status"] == status && it["reason"] == reason);
        if is_so && found["lastAttemptedRevision"] == commit {
            return Ok(());
        }
        Err(format!("{found:#}\n{}", kustomize.last_lines()))
    });
}

/// The plan that is made of the repository is the one that was made of the cluster's objects.
fn same_plan(plane: &ControlPlane, folder: &Path, posted: &Value) {
    let mut command = Command::new(program::program());
    command.arg("plan").arg(folder).arg("--kubeconfig").arg(plane.kubeconfig_of_admin()).args(["--output", "json"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let ours: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    // The API server keeps fields in another order.
    assert!(ours["steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{ours:#}");
    assert_eq!(posted["steps"], ours["steps"]);
}
