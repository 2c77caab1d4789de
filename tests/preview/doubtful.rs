//! What a preview does not know is not said as a fact: definitions that can not be used, or not be seen.

use std::path::Path;

use serde_json::{Value, json};

use crate::MERGE;
use crate::drift::found;
use crate::fleet::{Nodes, class, pool, snapshot};
use crate::laid_out::in_folder;
use crate::program::{NOW, cutlist};

type Files = Vec<(&'static str, String)>;

fn text(document: &Value) -> String {
    format!("{document:#}\n")
}

fn good(name: &str) -> String {
    text(&pool(name, &["m5"], "WhenEmpty"))
}

/// With a duration that is none.
fn bad(name: &str) -> String {
    good(name).replace("\"0s\"", "\"0 seconds\"")
}

fn with_class(pools: &[(&'static str, String)]) -> Files {
    [("class.yaml", text(&class()))].into_iter().chain(pools.iter().cloned()).collect()
}

/// The exit code and the only target, for a cluster with nodes of both pools.
fn previewed(base: &Files, head: &Files) -> (i32, Value) {
    previewed_beside(base, head, Vec::new())
}

/// The same, with further objects in the cluster.
fn previewed_beside(base: &Files, head: &Files, others: Vec<Value>) -> (i32, Value) {
    let folder = tempfile::tempdir().unwrap();
    for (side, files) in [("base", base), ("head", head)] {
        for (path, text) in files {
            let path = folder.path().join(side).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }
    let nodes =
        |pool| Nodes { pool, instance_type: "m5.large", memory: "6903Mi", count: 2, pod_millicores: 300, pods: 1 };
    std::fs::write(folder.path().join("cluster.json"), snapshot(&[nodes("a"), nodes("b")], others)).unwrap();
    ran_in(folder.path())
}

fn ran_in(folder: &Path) -> (i32, Value) {
    in_folder(&folder.join("repository"), &folder.join("base"), &folder.join("head"));
    let arguments = ["--cluster", "blue=cluster.json", "--now", NOW, "--without-simulation", "-o", "json"];
    let ran = cutlist(folder, MERGE.into_iter().chain(arguments));
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.transcript()));
    (ran.code, document["targets"][0].clone())
}

fn causes(target: &Value) -> String {
    let causes = target["causes"].as_array().into_iter().flatten();
    causes.map(|it| it["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

fn headline(target: &Value) -> &str {
    target["headline"].as_str().unwrap()
}

#[test]
fn who_takes_away_what_can_not_be_used_takes_its_nodes_away() {
    let base = with_class(&[("a.yaml", bad("a")), ("b.yaml", good("b"))]);
    let (code, target) = previewed(&base, &with_class(&[("b.yaml", good("b"))]));
    assert_eq!((code, &target["verdict"]), (0, &json!("changes")), "{target:#}");
    assert!(headline(&target).contains("the base can not be used"), "{target:#}");
    assert!(causes(&target).contains("NodePool a is removed"), "{target:#}");
}

#[test]
fn who_mends_makes_nothing_new() {
    let base = with_class(&[("a.yaml", bad("a")), ("b.yaml", good("b"))]);
    let (code, target) = previewed(&base, &with_class(&[("a.yaml", good("a")), ("b.yaml", good("b"))]));
    assert_eq!((code, &target["verdict"]), (0, &json!("changes")), "{target:#}");
    assert!(!causes(&target).contains("is new"), "{target:#}");
    assert!(!target["markdown"].to_string().contains("because of it"), "{target:#}");
}

#[test]
fn what_is_broken_before_and_after_is_not_untouched_where_it_differs() {
    let base = with_class(&[("a.yaml", bad("a")), ("b.yaml", good("b"))]);
    let mut head = with_class(&[("a.yaml", bad("a").replace("m5", "m6i")), ("b.yaml", good("b"))]);
    let (code, target) = previewed(&base, &head);
    assert_eq!((code, &target["verdict"]), (1, &json!("invalid")), "{target:#}");
    assert!(headline(&target).starts_with("as the base, this can not be used"), "{target:#}");
    // Whoever changes something else has nothing to do with it.
    head = base.clone();
    head.push(("notes.md", "# Why\n".to_owned()));
    head.push(("apps/web.yaml", "apiVersion: v1\nkind: Service\nmetadata: { name: web }\n".to_owned()));
    let (code, target) = previewed(&base, &head);
    assert_eq!((code, &target["verdict"]), (0, &json!("untouched")), "{target:#}");
}

/// Folders of two clusters, and nobody says which is meant.
#[test]
fn what_is_defined_twice_is_not_untouched_where_it_differs() {
    let base: Files = ["blue/a.yaml", "green/a.yaml"].map(|path| (path, good("a"))).into_iter().collect();
    for changed in 0..2 {
        let mut head = base.clone();
        head[changed].1 = good("a").replace("m5", "m6i");
        let (code, target) = previewed(&base, &head);
        assert_eq!((code, &target["verdict"]), (1, &json!("invalid")), "{target:#}");
    }
}

fn kustomization(resources: &str) -> (&'static str, String) {
    ("kustomization.yaml", format!("resources: [class.yaml, b.yaml{resources}]\n"))
}

/// A pool that may come from where nothing is read has not gone.
#[test]
fn what_moves_out_of_sight_is_not_removed() {
    let templates = || -> Files {
        let chart = "apiVersion: v2\nname: pools\nversion: 1.0.0\n".to_owned();
        let template = good("a").replace("m5", "{{ .Values.family }}");
        vec![("chart/Chart.yaml", chart), ("chart/templates/a.yaml", template)]
    };
    let pools = || with_class(&[("a.yaml", good("a")), ("b.yaml", good("b"))]);
    let rest = || with_class(&[("b.yaml", good("b"))]);
    let and = |mut files: Files, more: Files| {
        files.extend(more);
        files
    };
    let remote = "https://github.com/acme/pools//a?ref=v1";
    let generator = (
        "kustomization.yaml",
        "resources: [class.yaml, b.yaml]\nhelmCharts: [{ name: a, repo: https://x }]\n".to_owned(),
    );
    for (base, head, is_hidden) in [
        (
            and(pools(), vec![kustomization(", a.yaml")]),
            and(rest(), vec![kustomization(&format!(", \"{remote}\""))]),
            true,
        ),
        (and(pools(), vec![kustomization(", a.yaml")]), and(rest(), vec![generator]), true),
        (pools(), and(rest(), templates()), true),
        // The chart was there before, so the pool goes for another reason.
        (and(pools(), templates()), and(rest(), templates()), false),
        (and(pools(), vec![kustomization(", a.yaml")]), and(rest(), vec![kustomization("")]), false),
    ] {
        let (code, target) = previewed(&base, &head);
        assert_eq!(code, 0, "{target:#}");
        let said = if is_hidden { "NodePool a is not seen any more" } else { "NodePool a is removed" };
        assert!(causes(&target).contains(said), "{target:#}");
        assert_eq!(headline(&target).contains("NodePool a is not taken for removed"), is_hidden, "{target:#}");
        if is_hidden {
            assert_eq!(target["figures"]["nodesRemoved"], 0, "{target:#}");
        }
    }
}

/// That no node changes says nothing of a pool that no plan is made with.
#[test]
fn a_pool_that_is_left_out_is_named_first() {
    let pools = |families: &[&str]| {
        let mut pool = pool("a", families, "WhenEmpty");
        pool["spec"]["limits"] = json!({ "cpu": "${cpu_limit}" });
        with_class(&[("a.yaml", text(&pool)), ("b.yaml", good("b"))])
    };
    let (code, target) = previewed(&pools(&["m5"]), &pools(&["m6i"]));
    assert_eq!(code, 0, "{target:#}");
    let expected = "NodePool a is left out: there is no value for cpu_limit in spec.limits.cpu; ";
    assert!(headline(&target).starts_with(expected), "{target:#}");
}

/// The class goes, and nobody waits: its pools make no nodes any more, which no step shows.
#[test]
fn a_pool_whose_class_goes_is_named_first() {
    let pools = vec![("a.yaml", good("a")), ("b.yaml", good("b"))];
    let expected = "NodePool a is not used: its EC2NodeClass default is neither in the definitions nor in the cluster, and 1 more; ";
    // That the cluster still has the class which the base made does not keep it.
    for others in [vec![], vec![found(class())]] {
        let (code, target) = previewed_beside(&with_class(&pools), &pools, others);
        assert_eq!((code, &target["verdict"]), (0, &json!("changes")), "{target:#}");
        assert!(headline(&target).starts_with(expected), "{target:#}");
    }
    // It was so before, and is no news.
    let further = [pools.clone(), vec![("c.yaml", good("c").replace("\"default\"", "\"other\""))]].concat();
    let (_, target) = previewed(&pools, &further);
    assert!(headline(&target).starts_with("NodePool c is not used"), "{target:#}");
    assert!(!headline(&target).contains("more"), "{target:#}");
}

/// That no node changes by a plan says nothing where nobody knows what its nodes were launched with.
#[test]
fn nodes_of_which_it_is_not_known_whether_they_drift_are_named_first() {
    let pools = [("a.yaml", good("a")), ("b.yaml", good("b"))];
    let with = |field: &str, value: Value| {
        let mut class = class();
        class["spec"][field] = value;
        [vec![("class.yaml", text(&class))], pools.to_vec()].concat()
    };
    let by_tags = with("subnetSelectorTerms", json!([{ "tags": { "team": "shop" } }]));
    let unknown = "the snapshot has no EC2NodeClass default, so whether any of its 4 nodes drifts is not known; ";
    for (head, others, expected) in [
        (with("amiSelectorTerms", json!([{ "alias": "al2023@v20251112" }])), vec![], unknown),
        (by_tags.clone(), vec![], unknown),
        (
            by_tags,
            vec![found(class())],
            "nodes of EC2NodeClass default may drift once this is applied, which is not in this plan; ",
        ),
    ] {
        let (code, target) = previewed_beside(&with_class(&pools), &head, others);
        assert_eq!((code, &target["verdict"]), (0, &json!("changes")), "{target:#}");
        assert!(headline(&target).starts_with(expected), "{target:#}");
    }
}

/// What never goes matters as much as what goes.
#[test]
fn nodes_whose_pods_find_no_place_are_in_the_headline() {
    let folder = tempfile::tempdir().unwrap();
    let nodes =
        |pool| Nodes { pool, instance_type: "m5.large", memory: "6903Mi", count: 1, pod_millicores: 1_500, pods: 1 };
    let mut cluster: Value = serde_json::from_str(&snapshot(&[nodes("a"), nodes("b")], vec![])).unwrap();
    for object in cluster["items"].as_array_mut().unwrap() {
        if object["metadata"]["name"] == "web-a-0-0" {
            object["spec"]["nodeSelector"] = json!({ "karpenter.k8s.aws/instance-family": "m5" });
        }
    }
    let of = |families: &[&str]| [class(), pool("a", families, "WhenEmpty"), pool("b", families, "WhenEmpty")];
    let (base, head) = (of(&["m5"]), of(&["m6i"]));
    let target = crate::sums::previewed(folder.path(), &base, &head, &cluster.to_string(), &["--without-simulation"]);
    let expected = "1 node replaced, 1 pod moves, 1 node held back (PodsWouldNotFit), ";
    assert!(headline(&target).starts_with(expected), "{target:#}");
}

/// The same node goes at the same price, and budgets of one reason do not count for the other.
#[test]
fn another_reason_for_what_goes_anyway_is_said() {
    let empty =
        Nodes { pool: "a", instance_type: "m5.large", memory: "6903Mi", count: 1, pod_millicores: 300, pods: 0 };
    let mut head = [class(), pool("a", &["m6i"], "WhenEmpty")];
    head[1]["spec"]["disruption"]["consolidateAfter"] = json!("Never");
    let base = [class(), pool("a", &["m5"], "WhenEmpty")];
    let folder = tempfile::tempdir().unwrap();
    let cluster = snapshot(&[empty], vec![]);
    let target = crate::sums::previewed(folder.path(), &base, &head, &cluster, &["--without-simulation"]);
    let expected =
        "1 node goes for another reason (Empty -> RequirementsDrifted), same price; 1 removal would happen anyway";
    assert_eq!((&target["verdict"], headline(&target)), (&json!("changes"), expected), "{target:#}");
    assert!(target["markdown"]["summary"].as_str().unwrap().contains("1 node goes for another reason"), "{target:#}");
    let sections = target["markdown"]["sections"].to_string();
    assert!(sections.contains("no longer allows") && sections.contains("(without this change:"), "{sections}");
}

/// What other programs make of files is not known here, and is no reason to say that nothing changes.
#[test]
fn what_others_patch_is_not_said_to_be_as_before() {
    let flux = |value: &str| {
        let patches = format!("patches: [{{ target: {{ kind: NodePool }}, patch: \"{value}\" }}]");
        let head = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: { name: pools }\n";
        ("clusters/pools.yaml", format!("{head}spec:\n  path: ./\n  {patches}\n"))
    };
    let with = |value: &str| {
        let mut files = with_class(&[("a.yaml", good("a")), ("b.yaml", good("b"))]);
        files.push(flux(value));
        files
    };
    let (code, target) = previewed(&with("one"), &with("two"));
    assert_eq!((code, &target["verdict"]), (0, &json!("notKnown")), "{target:#}");
    let expected = "what Flux makes by spec.patches of Kustomization pools is not known here";
    assert_eq!(headline(&target), expected, "{target:#}");
    assert_eq!(
        (&target["causes"][0]["path"], &target["causes"][0]["line"]),
        (&json!("clusters/pools.yaml"), &json!(6))
    );
    let (_, same) = previewed(&with("one"), &with("one"));
    assert_eq!(same["verdict"], "untouched", "{same:#}");
}

/// That no node changes says nothing where the snapshot has no node of this cluster, and a gate that goes by the exit code stays shut.
#[test]
fn a_snapshot_that_tells_nothing_of_the_cluster_is_no_reason_to_say_that_nothing_changes() {
    let foreign =
        || Nodes { pool: "z", instance_type: "m5.large", memory: "6903Mi", count: 2, pod_millicores: 300, pods: 1 };
    let another =
        "no node of the snapshot belongs to a NodePool of these definitions: is it the snapshot of another cluster?";
    let nothing = "there are neither nodes nor pods in the snapshot: is it empty?";
    let pools = |families: &[&str]| [class(), pool("a", families, "WhenEmpty")];
    for (nodes, others, expected) in [
        (vec![foreign()], vec![], Some(another)),
        (vec![], vec![found(class())], Some(nothing)),
        // One that has our pools is of this cluster, whoever the nodes belong to.
        (vec![foreign()], vec![pool("a", &["m5"], "WhenEmpty")], None),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let cluster = snapshot(&nodes, others);
        let (code, target) = crate::sums::with_code(folder.path(), &pools(&["m5"]), &pools(&["m6i"]), &cluster, &[]);
        assert_eq!(code, i32::from(expected.is_some()), "{target:#}");
        match expected {
            Some(why) => {
                let expected = format!("nothing is known of this cluster: {why}");
                assert_eq!((&target["notKnown"], headline(&target)), (&json!(why), &*expected));
                // What is said by a snapshot that tells nothing would be read as if it were so.
                assert_eq!(target["verdict"], "notKnown", "{target:#}");
                for field in ["plan", "figures", "risks", "heldBack", "pending", "next24Hours", "causes"] {
                    assert!(target[field].is_null(), "{field}: {target:#}");
                }
                assert!(target["snapshot"]["digest"].is_string(), "{target:#}");
            }
            None => assert!(target["notKnown"].is_null() && target["verdict"] != "notKnown", "{target:#}"),
        }
    }
}

/// No step shows that a pool has no room left under its limits.
#[test]
fn a_limit_below_what_nodes_have_is_said() {
    let of_limit = |cpu: Option<&str>| {
        let mut pool = pool("a", &["m5"], "WhenEmpty");
        pool["spec"]["limits"] = cpu.map_or_else(|| json!({}), |cpu| json!({ "cpu": cpu }));
        [class(), pool]
    };
    let nodes =
        Nodes { pool: "a", instance_type: "m5.large", memory: "6903Mi", count: 2, pod_millicores: 900, pods: 1 };
    let cluster = snapshot(&[nodes], vec![]);
    let reached = "NodePool a launches nothing more: 3.86 of 2 cpu are in use; no node changes because of this";
    let none = "no node changes because of this";
    for (base, head, verdict, expected) in [
        (Some("64"), Some("2"), "changes", reached),
        (None, Some("2"), "changes", reached),
        (Some("64"), Some("4"), "noEffect", none),
        // It launched nothing before.
        (Some("3"), Some("2"), "noEffect", none),
        (Some("2"), Some("64"), "noEffect", none),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (base, head) = (of_limit(base), of_limit(head));
        let target = crate::sums::previewed(folder.path(), &base, &head, &cluster, &["--without-simulation"]);
        assert_eq!((&target["verdict"], headline(&target)), (&json!(verdict), expected), "{target:#}");
    }
}
