//! A pool that leaves the files is an effect, whatever becomes of its nodes at once, and whoever made it in the cluster: the base tells whose
//! it is.

use serde_json::{Value, json};

use crate::drift::found;
use crate::fleet::{Nodes, class, hashes, pool, snapshot};
use crate::sums::previewed;

/// As the base made it; nothing in the cluster says that.
fn in_cluster(mut pool: Value) -> Value {
    pool["metadata"]["annotations"] = hashes();
    pool
}

fn nodes(pool: &'static str, count: usize, pods: usize) -> Nodes {
    let instance_type = if pool == "a" { "m5.large" } else { "m6i.large" };
    Nodes { pool, instance_type, memory: "6903Mi", count, pod_millicores: 1_500, pods }
}

/// Neither could take over nodes of the other.
fn pools() -> [Value; 2] {
    [("a", "m5"), ("z", "m6i")].map(|(name, family)| pool(name, &[family], "WhenEmpty"))
}

/// What is said where pool `a` goes from the files. `settings`: above which share that waits, in the base and in the head.
fn without_a(nodes: &[Nodes], settings: Option<[&str; 2]>, further: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let [a, z] = pools();
    let cluster = snapshot(nodes, vec![found(class()), in_cluster(a.clone()), in_cluster(z.clone())]);
    for (side, share) in ["base", "head"].into_iter().zip(settings.into_iter().flatten()) {
        let approval = json!({ "confirmPoolRemovalAbove": share });
        let document =
            json!({ "apiVersion": "cutlist.dev/v1alpha1", "kind": "Settings", "spec": { "approval": approval } });
        std::fs::create_dir_all(folder.path().join(side)).unwrap();
        std::fs::write(folder.path().join(side).join("cutlist.yaml"), format!("{document:#}\n")).unwrap();
    }
    previewed(folder.path(), &[class(), z.clone(), a], &[class(), z], &cluster, further)
}

fn headline(target: &Value) -> &str {
    target["headline"].as_str().unwrap()
}

/// The plan, and the simulation beside it.
#[test]
fn the_next_day_takes_a_pool_for_removed_as_the_plan_does() {
    let target = without_a(&[nodes("a", 2, 1), nodes("z", 4, 1)], None, &[]);
    assert!(headline(&target).starts_with("2 nodes replaced"), "{target:#}");
    let day = target["next24Hours"][0].as_str().unwrap();
    assert!(!day.contains("No node comes or goes") && day.contains(" 2 removed"), "{target:#}");
}

#[test]
fn a_removal_that_waits_for_an_approval_says_so_first() {
    let expected = "the removal of NodePool a waits for an approval; ";
    let summary = |target: &Value| target["markdown"]["summary"].as_str().unwrap().to_owned();
    // The rules before a change judge it, and its own where they are stricter.
    for settings in [None, Some(["10%", "100%"]), Some(["100%", "10%"])] {
        let target = without_a(&[nodes("a", 4, 1)], settings, &["--without-simulation"]);
        assert!(headline(&target).starts_with(expected), "{settings:?}: {target:#}");
        assert!(summary(&target).starts_with(&format!("**{expected}")), "{settings:?}: {target:#}");
    }
    let target = without_a(&[nodes("a", 4, 1)], Some(["100%", "100%"]), &["--without-simulation"]);
    assert!(!headline(&target).contains("waits for an approval"), "{target:#}");
}

/// Without the change the nodes go at once, since they are empty; with it they wait.
#[test]
fn a_removal_of_nodes_that_would_go_anyway_is_an_effect() {
    let target = without_a(&[nodes("a", 4, 0)], None, &["--without-simulation"]);
    assert_eq!(target["verdict"], "changes", "{target:#}");
    assert!(headline(&target).starts_with("the removal of NodePool a waits for an approval; "), "{target:#}");
}

#[test]
fn a_pool_without_nodes_is_said_to_be_removed() {
    let target = without_a(&[nodes("z", 2, 1)], None, &["--without-simulation"]);
    assert_eq!(target["verdict"], "changes", "{target:#}");
    assert_eq!(headline(&target), "NodePool a is removed; no node changes because of this", "{target:#}");
}

/// It counts against the budget for as long as its finalizer stays, as Karpenter has it; who reads the plan learns whom to look for.
#[test]
fn a_node_that_nobody_lets_go_is_named_where_it_holds_a_budget() {
    let mut cluster: Value = serde_json::from_str(&snapshot(&[nodes("a", 2, 0)], Vec::new())).unwrap();
    let of_cluster = cluster["items"].as_array_mut().unwrap();
    let held = of_cluster.iter_mut().find(|it| it["kind"] == "NodeClaim" && it["metadata"]["name"] == "a-0").unwrap();
    held["metadata"]["deletionTimestamp"] = json!("2026-11-19T10:00:00Z");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let [base, _] = pools();
    let mut head = base.clone();
    head["spec"]["disruption"]["budgets"][0]["nodes"] = json!("1");
    let folder = tempfile::tempdir().unwrap();
    let further = &["--without-simulation"];
    let target = previewed(folder.path(), &[class(), base], &[class(), head], &cluster.to_string(), further);
    let expected = "a-1.ec2.internal: NodePool a allows 0 of 2 nodes now (1), 0 taken by this plan; a-0.ec2.internal counts as well, on its way \
                    out since 2026-11-19T10:00:00Z";
    assert_eq!(target["heldBack"][0]["text"], expected, "{target:#}");
}
