//! Flux evaluates CEL with the object's fields as variables: in progress where `inProgress` holds, else failed where `failed`
//! does, else current where `current` does, else in progress. An error, such as for a status that is not there yet, makes it
//! wait, as for what is in progress.

use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, Program, Value as CelValue, to_value};
use serde_json::Value;

use cutlist::api::notification::{Notification, NotificationKind};
use cutlist::render::notification::Template;

use super::{Sample, documents, read};

#[test]
fn health_in_flux() {
    let kustomization = documents(&read("flux/kustomization.yaml")).remove(0);
    let checks = kustomization["spec"]["healthCheckExprs"].as_array().unwrap();
    let samples = Sample::all();
    for check in checks {
        let of_kind = |sample: &&Sample| {
            sample.object["apiVersion"] == check["apiVersion"] && sample.object["kind"] == check["kind"]
        };
        let samples: Vec<&Sample> = samples.iter().filter(of_kind).collect();
        assert!(!samples.is_empty(), "health.yaml has no {}", check["kind"]);
        for sample in samples {
            assert_eq!(health(check, &sample.object), sample.health, "{:#}", sample.object);
        }
    }
    assert!(!checks.is_empty());
}

fn health(check: &Value, object: &Value) -> &'static str {
    for (field, health) in [("inProgress", "Progressing"), ("failed", "Degraded"), ("current", "Healthy")] {
        let Some(expression) = check.get(field) else { continue };
        if holds(expression.as_str().unwrap(), object) {
            return health;
        }
    }
    "Progressing"
}

fn holds(expression: &str, object: &Value) -> bool {
    let program = Program::compile(expression).unwrap_or_else(|error| panic!("{error}"));
    let mut context = Context::default().with_all();
    for (name, value) in object.as_object().unwrap() {
        context.add_variable_from_value(name.clone(), to_value(value).unwrap());
    }
    match program.execute(&context) {
        Ok(CelValue::Bool(holds)) => holds,
        Ok(other) => panic!("{expression} is neither true nor false: {other:?}"),
        Err(_) => {
            assert!(object.get("status").is_none(), "{expression} cannot be evaluated on {object:#}");
            false
        }
    }
}

/// Source: `Event` of fluxcd/pkg, apis/event/v1beta1, and `cleanupMetadata` of notification-controller, which keeps keys of two groups
/// only. `make e2e-gitops` holds it to the events of Flux's own controllers.
#[test]
fn notification_controller_takes_what_the_template_makes() {
    let template = Template::new(read("flux/event.json.j2"), true).unwrap();
    for kind in NotificationKind::ALL {
        let notification = Notification { text: "it says \"no\"\n".to_owned(), ..Notification::example(kind) };
        let event: Value = serde_json::from_str(&template.body(&notification).unwrap().text).unwrap();
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        for field in ["apiVersion", "kind", "namespace", "name"] {
            assert!(!text(&format!("/involvedObject/{field}")).is_empty(), "{event}");
        }
        assert!(["info", "error"].contains(&text("/severity").as_str()), "{event}");
        assert!(text("/timestamp").parse::<jiff::Timestamp>().is_ok(), "{event}");
        assert_eq!(text("/message"), "An example. it says \"no\"\n");
        assert_eq!((text("/reason"), text("/reportingController")), (kind.word().to_owned(), "cutlist".to_owned()));
        let metadata = event["metadata"].as_object().unwrap();
        let is_kept =
            |key: &String| key.starts_with("event.toolkit.fluxcd.io/") || key.starts_with("source.toolkit.fluxcd.io/");
        assert!(metadata.keys().all(is_kept) && metadata.values().all(Value::is_string), "{event}");
        let revision = metadata.get("source.toolkit.fluxcd.io/revision").and_then(Value::as_str);
        assert_eq!(revision, notification.revision.as_ref().map(|id| format!("sha1:{id}")).as_deref());
    }
}

/// The component names the source that its role is for.
#[test]
fn the_component_may_read_what_it_follows() {
    let component = documents(&read("kustomize/flux/kustomization.yaml")).remove(0);
    let patch = component["patches"][0]["patch"].as_str().unwrap();
    assert!(patch.contains("--source-ref=GitRepository/nodes.flux-system"), "{patch}");
    let role = documents(&read("kustomize/flux/source.yaml")).remove(0);
    assert_eq!(role["metadata"]["namespace"], "flux-system");
    let rule = &role["rules"][0];
    assert_eq!((&rule["resources"][0], &rule["resourceNames"][0]), (&"gitrepositories".into(), &"nodes".into()));
    assert_eq!(rule["verbs"], serde_json::json!(["get", "list", "watch"]));
}
