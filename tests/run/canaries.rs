//! What is posted where people read it: plans, statuses, comments, events. Nothing of what pods and classes carry is in them.

use cutlist::adapters::embedded::Post;
use cutlist::api::source::SourceFile;
use cutlist::controller::events::Event;
use cutlist::core::snapshot::Snapshot;
use serde_json::{Value, json};

use crate::stage::{ENVIRONMENT_CANARY, POOL, SETTINGS, Stage};

/// Stands for what is in pods and classes and is nobody's business.
const CANARY: &str = "sekret4of2prod";

/// A Deployment whose pods carry the canary wherever a pod may carry a secret.
fn workload() -> Snapshot {
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("user:{CANARY}@registry.example/x"), "args": [CANARY], "command": [CANARY],
            "env": [{ "name": "TOKEN", "value": CANARY }],
            "envFrom": [{ "secretRef": { "name": CANARY } }],
            "lifecycle": { "preStop": { "exec": { "command": [CANARY] } } },
            "livenessProbe": { "httpGet": { "port": 80, "httpHeaders": [{ "name": "Authorization", "value": CANARY }] } },
            "resources": { "requests": { "cpu": "1" } }, "terminationMessagePath": format!("/{CANARY}"), "workingDir": CANARY,
        })
    };
    let deployment = json!({
        "metadata": {
            "name": "web", "namespace": "default", "annotations": { "kubectl.kubernetes.io/last-applied-configuration": CANARY },
        },
        "spec": { "replicas": 5, "selector": { "matchLabels": { "app": "web" } }, "template": {
            "metadata": { "labels": { "app": "web" }, "annotations": { "vault.example/token": CANARY } },
            "spec": {
                "containers": [container("main")],
                "imagePullSecrets": [{ "name": CANARY }], "hostAliases": [{ "ip": "127.0.0.1", "hostnames": [CANARY] }],
                "volumes": [{ "name": "v", "configMap": { "name": CANARY } }],
                "serviceAccountName": CANARY,
            },
        } },
    });
    // One that finds no place, and is told of at length.
    let mut pending = deployment.clone();
    pending["metadata"]["name"] = json!("large");
    pending["spec"]["replicas"] = json!(1);
    pending["spec"]["selector"]["matchLabels"]["app"] = json!("large");
    pending["spec"]["template"]["metadata"]["labels"]["app"] = json!("large");
    pending["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("4000");
    let deployments: Vec<_> =
        [deployment, pending].into_iter().map(|value| serde_json::from_value(value).unwrap()).collect();
    Snapshot { deployments: deployments.into(), ..Snapshot::default() }
}

/// Pool and class with a value from the environment in them, and the canary where a class holds secrets.
fn definitions() -> String {
    let label = "    metadata: { labels: { example.com/team: \"${CANARY}\" } }\n    spec:\n";
    let pool = POOL.replacen("    spec:\n", label, 1);
    let class =
        format!("  role: karpenterNodeRole-test\n  userData: |\n    TOKEN={CANARY} ${{CANARY}}\n  context: {CANARY}\n");
    let both = pool.replacen("  role: karpenterNodeRole-test\n", &class, 1);
    assert!(both.contains("userData") && both.contains("example.com/team"));
    both
}

fn holds(value: &str) -> Option<&'static str> {
    [CANARY, ENVIRONMENT_CANARY].into_iter().find(|canary| value.contains(canary))
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_posted_holds_what_pods_and_classes_carry() {
    let mut stage = Stage::new(SETTINGS);
    stage.script.commit("secret", &[("pool.yaml", &definitions()), ("cutlist.yaml", SETTINGS)]);
    stage.world.with(|world| world.load(workload()));
    stage.run_for(120).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 1));
    // A replacement, a refusal, an end: whatever else is told of.
    let changed = definitions().replace("example.com/team", "example.com/group");
    stage.script.commit("changed", &[("pool.yaml", &changed), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(900).await;
    let broken = definitions()
        .replace("userData:", "userDatum:")
        .replace("consolidateAfter: 30s", "consolidateAfter: ${CANARY}");
    stage.script.commit("broken", &[("pool.yaml", &broken), ("cutlist.yaml", SETTINGS)]);
    let not_yaml = SourceFile::new("pool.yaml", definitions().replace("spec:", "spec: ["));
    stage.script.commit_with("not-yaml", &[("cutlist.yaml", SETTINGS)], vec![not_yaml]);
    stage.run_for(120).await;
    stage.world.with(|world| assert!(world.scale("default/web", 0)));
    stage.run_for(600).await;
    let snapshot = stage.snapshot();
    assert!(snapshot.node_plans.len() > 2 && stage.events.borrow().len() > 20);
    for plan in &snapshot.node_plans {
        let text = serde_json::to_string(plan).unwrap();
        assert_eq!(holds(&text), None, "in NodePlan {:?}: {text}", plan.metadata.name);
    }
    let statuses = snapshot.node_pools.iter().map(|pool| json!(pool.status));
    let statuses: Vec<Value> = statuses.chain(snapshot.node_classes.iter().map(|class| json!(class.status))).collect();
    assert_eq!(holds(&json!(statuses).to_string()), None, "in a status");
    for claim in &snapshot.node_claims {
        let text = json!([claim.status, claim.metadata.annotations]).to_string();
        assert!(!text.contains(CANARY), "on NodeClaim {:?}: {text}", claim.metadata.name);
    }
    for node in &snapshot.nodes {
        assert!(!json!(node).to_string().contains(CANARY), "on node {:?}", node.metadata.name);
    }
    let posts = stage.forge.posts();
    let failures = posts.iter().filter(|post| matches!(post, Post::Failure { .. })).count();
    assert_eq!(failures, 2);
    for post in posts {
        let (Post::Plan { markdown, .. } | Post::Failure { markdown, .. }) = &post;
        assert_eq!(holds(markdown), None, "where people review: {markdown}");
    }
    // Logs and Kubernetes Events are made of these. Values of the environment are hidden at the door, with the rest of the log.
    for event in stage.events.borrow().iter() {
        let told = format!("{} {:?}", event.message(), event.fields());
        let text = if let Event::Linted { text, .. } = event { format!("{told} {text}") } else { told };
        assert!(!text.contains(CANARY), "{text}");
    }
}
