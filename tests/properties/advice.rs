//! What a plan advises can be done: lint takes it, and the pods that it is for get a place.

use std::collections::{BTreeMap, BTreeSet};

use cutlist::api::keys::ZONE;
use cutlist::api::settings::Packing;
use cutlist::api::source::SourceFile;
use cutlist::core::plan::Change;
use cutlist::core::planner::decide;
use cutlist::definitions::{self, GivenVariables};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any};
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};
use serde_json::{Value, json};

use crate::bad_input::{cluster, pod};
use crate::build::Built;

/// Each takes some tenths of a second without optimisation.
const CLUSTERS: u32 = 40;

/// What pods ask for: by far too much of some, and of what nodes do not have.
fn requests() -> impl Strategy<Value = Value> {
    let amounts = (
        select(vec!["100m", "3", "64"]),
        option::of(select(vec!["1Gi", "18Gi", "150Gi", "2Ti"])),
        option::of(select(vec![("hugepages-2Mi", "512Mi"), ("smarter-devices/fuse", "1"), ("nvidia.com/gpu", "1")])),
    );
    amounts.prop_map(|(cpu, storage, other)| {
        let mut requests = json!({ "cpu": cpu });
        storage.into_iter().for_each(|storage| requests["ephemeral-storage"] = json!(storage));
        other.into_iter().for_each(|(name, amount)| requests[name] = json!(amount));
        requests
    })
}

/// What they ask of labels, some of which nobody may set.
fn selectors() -> impl Strategy<Value = Value> {
    let labels = vec![
        ("kubernetes.io/hostname", "ip-10-0-0-9"),
        ("karpenter.sh/provisioner-name", "default"),
        ("karpenter.sh/nodepool", "other"),
        ("karpenter.k8s.aws/instance-family", "none"),
        ("karpenter.k8s.aws/unheard-of", "1"),
        ("sub.karpenter.sh/team", "a"),
        ("node.kubernetes.io/instance-type", "x.huge"),
        ("topology.kubernetes.io/zone", "zone-z"),
        ("kubernetes.io/arch", "arm64"),
        ("example.com/team", "a"),
        ("example.com/odd", "-not a value-"),
    ];
    vec(select(labels), 0..3)
        .prop_map(|labels| json!({ "nodeSelector": labels.into_iter().collect::<BTreeMap<_, _>>() }))
}

fn text_of(object: &impl serde::Serialize) -> String {
    let mut value = serde_json::to_value(object).unwrap();
    // What only the cluster knows is no part of a definition.
    value.as_object_mut().unwrap().remove("status");
    value.to_string()
}

/// The errors that lint finds.
fn errors(built: &Built) -> BTreeSet<String> {
    let pools = built.pools.iter().map(text_of);
    let others = built.classes.iter().map(text_of).chain(built.overlays.iter().map(text_of));
    let files: Vec<SourceFile> = pools
        .chain(others)
        .enumerate()
        .map(|(number, text)| SourceFile::new(format!("{number}.json"), text.into_bytes()))
        .collect();
    let found = definitions::read(&files, &GivenVariables::default());
    let errors = found.diagnostics.iter().filter(|it| it.severity == definitions::Severity::Error);
    errors.map(|it| format!("{} {}", it.rule, it.message)).collect()
}

fn apply(built: &mut Built, changes: &[Change], pods: &[String]) {
    for change in changes {
        built.pools.iter_mut().for_each(|pool| change.apply_to_pool(pool));
        built.classes.iter_mut().for_each(|class| change.apply_to_node_class(class));
        built.overlays.extend(change.overlay());
        built.snapshot.pods.iter_mut().filter(|pod| pods.contains(&pod.key())).for_each(|pod| change.apply_to_pod(pod));
    }
}

fn can_be_followed(pods: Vec<Value>) -> Result<usize, String> {
    let before = errors(&cluster(pods.clone()));
    let advised: Vec<_> = decide(&cluster(pods.clone()).inputs(Packing::Cheapest)).pending;
    let mut followed = 0;
    for pending in advised.iter().filter(|pending| !pending.changes.is_empty()) {
        let mut built = cluster(pods.clone());
        apply(&mut built, &pending.changes, &pending.pods);
        let new: Vec<String> = errors(&built).difference(&before).cloned().collect();
        if !new.is_empty() {
            return Err(format!("{:?}: lint says {new:?}", pending.changes));
        }
        let still: BTreeSet<String> =
            decide(&built.inputs(Packing::Cheapest)).pending.into_iter().flat_map(|it| it.pods).collect();
        if pending.pods.iter().all(|pod| still.contains(pod)) {
            return Err(format!("{:?}: {:?} stay pending", pending.changes, pending.pods));
        }
        followed += 1;
    }
    Ok(followed)
}

/// DaemonSets of different zones never share a node.
#[test]
fn an_amount_that_is_advised_is_what_one_node_has_room_for() {
    let mut built = cluster(vec![pod("web", json!({ "cpu": "8" }), json!({}))]);
    for (zone, cpu) in [("zone-a", "900m"), ("zone-b", "800m")] {
        let containers = json!([{ "name": "agent", "resources": { "requests": { "cpu": cpu } } }]);
        let template = json!({
            "metadata": { "labels": { "app": zone } }, "spec": { "containers": containers, "nodeSelector": { ZONE: zone } },
        });
        let set = json!({
            "metadata": { "name": zone, "namespace": "kube-system" },
            "spec": { "selector": { "matchLabels": { "app": zone } }, "template": template },
        });
        built.snapshot.daemon_sets.push(serde_json::from_value(set).unwrap());
    }
    let plan = decide(&built.inputs(Packing::Cheapest));
    let advised = Change::LowerRequest { resource: "cpu".to_owned(), from: "8".to_owned(), to: "3.2".to_owned() };
    assert_eq!(plan.pending[0].changes, [advised]);
    let reasons: Vec<&str> = plan.pending[0].reasons.iter().map(|reason| reason.text.as_str()).collect();
    assert!(reasons[0].contains("at most 3.2 on one node"), "{reasons:?}");
}

#[test]
fn advice_passes_lint_and_lets_pods_in() {
    let fixed = Config { cases: CLUSTERS, rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    let followed = std::cell::Cell::new(0);
    let pods = vec((requests(), selectors(), any::<bool>()), 1..5).prop_map(|pods| {
        let pods = pods.into_iter().enumerate();
        pods.map(|(number, (requests, mut spec, tolerates))| {
            if tolerates {
                spec["tolerations"] = json!([{ "operator": "Exists" }]);
            }
            pod(&format!("web-{number}"), requests, spec)
        })
        .collect::<Vec<Value>>()
    });
    let result = runner.run(&pods, |pods| {
        followed.set(followed.get() + can_be_followed(pods).map_err(TestCaseError::fail)?);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    assert!(followed.get() > 20, "{} were tried", followed.get());
}
