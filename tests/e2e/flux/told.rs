//! What Cutlist has to tell, in the form of Flux's events.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::listener::Listener;
use super::{Flux, PATIENCE, PLANS, program};
use crate::cluster::{Apply, Cluster};
use crate::control_plane::{ControlPlane, Process, free_ports};
use crate::program::{ENFORCE, scale};
use crate::rights::{DEPLOYMENT, scenario, web};

const PREFIXES: [&str; 2] = ["event.toolkit.fluxcd.io/", "source.toolkit.fluxcd.io/"];

/// Our event beside one that source-controller sends itself: the same fields of the same types, about the same object, and nothing in
/// its metadata that notification-controller would drop.
pub fn flux_is_told_in_its_own_form(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let flux = Flux::start(plane, &cluster, scenario().0);
    flux.follow(&cluster);
    let _cutlist = plan_that_waits(plane, &cluster, flux.events.url());
    // Of what has gone wrong it sends none of a revision.
    let heard = |who: &str| {
        cluster.wait(&format!("an event of {who}"), PATIENCE, |_| {
            flux.events.of(who).into_iter().find(|event| event["metadata"].is_object()).ok_or_else(String::new)
        })
    };
    let (ours, theirs) = (heard("cutlist"), heard("source-controller"));
    plane.say(format!("ours {ours}\n  theirs {theirs}"));
    for field in theirs.as_object().unwrap().keys().filter(|field| *field != "reportingInstance") {
        assert_eq!(kind(&ours[field]), kind(&theirs[field]), "{field} of {ours}");
    }
    for (field, value) in ours.as_object().unwrap() {
        assert_eq!(kind(value), kind(&theirs[field]), "{field} of {ours}");
    }
    for field in ["apiVersion", "kind", "namespace", "name"] {
        assert_eq!(ours["involvedObject"][field], theirs["involvedObject"][field]);
    }
    let text = |field: &str| ours[field].as_str().unwrap();
    assert_eq!((text("severity"), text("reason")), ("info", "plan-waits"));
    assert!(text("timestamp").parse::<jiff::Timestamp>().is_ok());
    let metadata = ours["metadata"].as_object().unwrap();
    assert!(metadata.keys().all(|key| PREFIXES.iter().any(|prefix| key.starts_with(prefix))), "{ours}");
    assert!(metadata.values().all(Value::is_string), "{ours}");
    assert_eq!(metadata["event.toolkit.fluxcd.io/cluster"], "demo");
    let revision = "source.toolkit.fluxcd.io/revision";
    assert_eq!(
        format!("main@{}", metadata[revision].as_str().unwrap()),
        theirs["metadata"][revision].as_str().unwrap()
    );
}

/// With the real one, where there is one: an Alert on the source brings our event to whom its Provider names.
pub fn notification_controller_tells_it_on(plane: &mut ControlPlane) {
    let cluster = plane.cluster();
    let flux = Flux::start(plane, &cluster, scenario().0);
    flux.follow(&cluster);
    let chat = Listener::start();
    let [port, receivers] = free_ports();
    let mut command = super::controller(plane, "notification-controller", &flux.events);
    command.args(["--events-addr", &format!("127.0.0.1:{port}"), "--receiverAddr", &format!("127.0.0.1:{receivers}")]);
    let mut controller = plane.run("notification-controller", command);
    let of_kind = |kind: &str, spec: Value| {
        let object = json!({ "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": kind, "spec": spec,
                             "metadata": { "name": "chat", "namespace": "flux-system" } });
        cluster.apply(&object, Apply::ForReal).unwrap();
    };
    of_kind("Provider", json!({ "type": "generic", "address": chat.url() }));
    of_kind(
        "Alert",
        json!({ "providerRef": { "name": "chat" }, "eventSeverity": "info",
                             "eventSources": [{ "kind": "GitRepository", "name": "nodes" }] }),
    );
    let _cutlist = plan_that_waits(plane, &cluster, format!("http://127.0.0.1:{port}/"));
    let event = cluster.wait("our event at the chat", PATIENCE, |_| {
        chat.of("cutlist").into_iter().next().ok_or_else(|| controller.last_lines())
    });
    controller.must_run();
    let metadata: BTreeSet<&str> = event["metadata"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(metadata, BTreeSet::from(["cluster", "installation", "plan", "revision"]), "{event}");
    plane.say(event.to_string());
}

/// Cutlist with the template of `deploy/flux`, and a plan that waits for somebody.
fn plan_that_waits(plane: &ControlPlane, cluster: &Cluster, receiver: String) -> Process {
    let program = program(plane, cluster, ENFORCE);
    cluster.apply_all(&web());
    let address = plane.folder().join("receiver");
    std::fs::write(&address, receiver).unwrap();
    let template = format!("{}/deploy/flux/event.json.j2", env!("CARGO_MANIFEST_DIR"));
    let arguments =
        ["--approval=manual", "--notify-allow-plain-http", "--notify-template", &template, "--notify-webhook-file"];
    let arguments = [&arguments[..], &[address.to_str().unwrap()]].concat();
    let cutlist = program.start_as("cutlist", plane, &arguments);
    scale(cluster, DEPLOYMENT, 4);
    cluster.wait("a plan that waits", PATIENCE, |cluster| {
        let waits = cluster.list(PLANS).iter().any(|plan| plan["status"]["phase"] == "WaitsForApproval");
        if waits { Ok(()) } else { Err(cutlist.last_lines()) }
    });
    cutlist
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
