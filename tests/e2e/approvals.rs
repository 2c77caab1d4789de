//! What the policies in `deploy/` make the API server refuse.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::interruptions::settles;
use crate::program::{self, Program};
use crate::rights::{DEPLOYMENT, scenario, web};

const PATIENCE: Duration = Duration::from_secs(60);
const PLANS: &str = "/apis/cutlist.dev/v1alpha1/nodeplans";
const CUTLIST: &str = "--as=system:serviceaccount:cutlist:cutlist";
/// Above the roles, so that only the policies are left.
const MASTERS: &str = "--as-group=system:masters";

/// The case `gate-is-the-committers`, on an API server that knows who asks.
pub fn approvals_are_in_ones_own_name(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (repository, _) = scenario();
    let program = Program::prepare(plane, &cluster, repository.path().to_owned());
    cluster.apply_all(&web());
    let mut cutlist = program.start_as("cutlist", plane, &["--approval", "manual,twoPeople=true"]);
    program::scale(&cluster, DEPLOYMENT, 4);
    let plan = cluster.wait("a plan that waits", PATIENCE, |cluster| {
        let plans = cluster.list(PLANS);
        let waits = plans.iter().find(|plan| plan["status"]["phase"] == "WaitsForApproval");
        waits.cloned().ok_or_else(|| cutlist.last_lines())
    });
    let name = plan["metadata"]["name"].as_str().unwrap();
    let author = plan["spec"]["notApprovedBy"][0].as_str().expect("the commit has an author");
    let as_author = format!("--as=https://issuer.example.com#{author}");
    let by_author = format!("cutlist.dev/approved-by=https://issuer.example.com#{author}");
    let by_itself = format!("cutlist.dev/approved-by={}", CUTLIST.trim_start_matches("--as="));
    let without_steps = r#"{"spec":{"plan":{"steps":[]}}}"#;
    let other_text = r#"{"status":{"text":"Nothing to do."}}"#;
    let other_price = r#"{"spec":{"priceChange":"+$0.0000/h"}}"#;
    for (arguments, expected) in [
        (&["annotate", "nodeplan", name, "cutlist.dev/approved-by=the-ceo"] as &[&str], "in their own name"),
        (&["patch", "nodeplan", name, "--type=merge", "-p", without_steps], "a plan that was posted never changes"),
        (&["patch", "nodeplan", name, "--type=merge", "-p", without_steps, CUTLIST, MASTERS], "never changes"),
        (&["patch", "nodeplan", name, "--type=merge", "-p", other_price], "never changes"),
        (&["patch", "nodeplan", name, "--type=merge", "--subresource=status", "-p", other_text], "only Cutlist"),
        (&["delete", "nodeplan", name], "only Cutlist"),
        (&["label", "nodeplan", name, "--overwrite", "cutlist.dev/installation=another"], "whose a plan is"),
        (&["annotate", "nodeplan", name, &by_itself, CUTLIST, MASTERS], "does not approve its own"),
        (&["annotate", "nodeplan", name, &by_author, &as_author, MASTERS], "is an author of the revision"),
    ] {
        let refused = plane.tool("kubectl", arguments).unwrap_err();
        assert!(refused.contains(expected), "{arguments:?}: {refused}");
    }
    std::thread::sleep(Duration::from_secs(3));
    assert!(cluster.list("/apis/karpenter.sh/v1/nodeclaims").is_empty(), "nobody has approved");
    plane.tool("kubectl", &["annotate", "nodeplan", name, "cutlist.dev/approved-by=admin"]).unwrap();
    settles(&cluster, &program, "approved", 4);
    cutlist.must_run();
    assert!(cutlist.log().contains(r#""by":"admin""#), "{}", cutlist.last_lines());
    assert_nothing_was_denied(&cutlist.log());
}

/// Cutlist has to write `pods/status`, with which more could be done.
pub fn of_pods_only_where_they_should_land(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let (repository, _) = scenario();
    let program = Program::prepare(plane, &cluster, repository.path().to_owned());
    cluster.apply_all(&web());
    let mut cutlist = program.start(plane);
    program::scale(&cluster, DEPLOYMENT, 4);
    settles(&cluster, &program, "with pods", 4);
    let pod = a_pod(&cluster);
    let name = pod["metadata"]["name"].as_str().unwrap();
    let unready = r#"{"status":{"conditions":[{"type":"Ready","status":"False"}]}}"#;
    for (patch, expected) in [
        (r#"{"status":{"phase":"Failed"}}"#, "only where it should land"),
        (unready, "only where it should land"),
        (r#"{"status":{"podIP":null,"podIPs":null,"startTime":null}}"#, "only where it should land"),
        (r#"{"metadata":{"labels":{"app":"other"}}}"#, "nothing else of a pod"),
        (r#"{"metadata":{"annotations":{"a":"b"}}}"#, "nothing else of a pod"),
    ] {
        let patch = ["patch", "pod", name, "-n", "shop", "--type=strategic", "--subresource=status", "-p", patch];
        let by_cutlist = [&patch as &[&str], &[CUTLIST, MASTERS]].concat();
        let refused = plane.tool("kubectl", &by_cutlist).unwrap_err();
        assert!(refused.contains(expected), "{patch:?}: {refused}");
        // Others go on as before: kubelets, for one.
        plane.tool("kubectl", &[&patch as &[&str], &["--dry-run=server"]].concat()).unwrap();
    }
    cutlist.must_run();
    assert_nothing_was_denied(&cutlist.log());
}

fn a_pod(cluster: &Cluster) -> Value {
    let mut pods = cluster.list("/api/v1/namespaces/shop/pods");
    pods.retain(|pod| pod["status"]["phase"] == "Running");
    pods.pop().unwrap()
}

/// The policies let through what the program does.
fn assert_nothing_was_denied(log: &str) {
    let denied: Vec<&str> = log.lines().filter(|line| line.contains("ValidatingAdmissionPolicy")).collect();
    assert!(denied.is_empty(), "{denied:?}");
}
