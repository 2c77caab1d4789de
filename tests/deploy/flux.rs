//! Flux evaluates CEL with the object's fields as variables: in progress where `inProgress` holds, else failed where `failed`
//! does, else current where `current` does, else in progress. An error, such as for a status that is not there yet, makes it
//! wait, as for what is in progress.

use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, Program, Value as CelValue, to_value};
use serde_json::Value;

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
