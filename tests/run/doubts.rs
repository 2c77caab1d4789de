//! What is seen is not what is: a watch that breaks, one that is silent, objects that can not be read. Nothing ends on their word.

use cutlist::adapters::embedded::World;
use cutlist::api::keys;
use cutlist::api::node_claim::NodeClaim;
use cutlist::controller::events::Event;
use cutlist::core::plan::{Note, NoteCode};
use cutlist::core::snapshot::doubts::{KindInDoubt, Unreadable};
use cutlist::core::snapshot::{Doubts, Snapshot};
use cutlist::ports::{Cluster, PortErrorKind};
use serde_json::json;

use crate::repair;
use crate::stage::{POOL, SETTINGS, Stage, apart};

const KINDS: [&str; 8] = [
    "pods",
    "nodes",
    "nodeclaims",
    "nodepools",
    "ec2nodeclasses",
    "poddisruptionbudgets",
    "persistentvolumeclaims",
    "volumeattachments",
];

/// How many instances run.
fn running(stage: &Stage) -> usize {
    stage.world.with(|world| world.instances()).len()
}

fn began_or_ended(stage: &Stage) -> usize {
    let ends = |event: &Event| {
        matches!(
            event,
            Event::TerminatingNode { .. }
                | Event::DisruptingNodes { .. }
                | Event::DeletedNode { .. }
                | Event::GaveUp { .. }
        )
    };
    stage.count(ends)
}

/// A cluster with one node of five pods.
async fn with_a_node() -> Stage {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.scale(5);
    assert!(stage.settle().await);
    assert_eq!(running(&stage), 1);
    stage
}

#[tokio::test(start_paused = true)]
async fn nothing_is_removed_while_a_kind_is_known_not_to_be_seen() {
    for kind in KINDS {
        let mut stage = with_a_node().await;
        stage.world.with(|world| world.freeze(&[kind], Some("list failed: etcdserver: request timed out")));
        // The node is empty, whether or not that is seen.
        stage.scale(0);
        stage.run_for(3600).await;
        assert_eq!((running(&stage), began_or_ended(&stage)), (1, 0), "{kind}");
        let said = stage.count(|event| matches!(event, Event::Doubted { doubts } if doubts.kinds.contains_key(kind)));
        assert!((50..=65).contains(&said), "{kind}: once a minute, not {said} times");
        stage.world.with(World::see_all);
        stage.run_for(600).await;
        assert_eq!(running(&stage), 0, "{kind}: it goes when all is seen again");
        assert_eq!(stage.count(|event| matches!(event, Event::SeenWhole)), 1);
        stage.assert_consistent(kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_was_never_read_is_said_and_nothing_is_planned_without_it() {
    let mut stage = Stage::new(SETTINGS);
    let whole_at = "2026-11-20T09:00:00Z".parse().unwrap();
    let kind = KindInDoubt { whole_at, why: "list nodes: connection refused".to_owned() };
    stage.fuse.never_read(Doubts { kinds: [("nodes".to_owned(), kind)].into(), ..Doubts::default() });
    stage.scale(5);
    stage.run_for(3600).await;
    assert_eq!((running(&stage), stage.count(|event| matches!(event, Event::PlanPosted { .. }))), (0, 0));
    let said = stage.count(|event| matches!(event, Event::Doubted { doubts } if doubts.kinds.contains_key("nodes")));
    assert!((50..=65).contains(&said), "once a minute, not {said} times");
    assert_eq!(stage.count(|event| matches!(event, Event::CallFailed { .. })), 0, "in one way");
    stage.fuse.never_read(Doubts::default());
    stage.run_for(120).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    assert_eq!(stage.count(|event| matches!(event, Event::SeenWhole)), 1);
}

/// Nobody knows that pods came: the plan takes the node for empty.
#[tokio::test(start_paused = true)]
async fn a_node_that_only_looks_empty_is_not_begun_to_be_removed() {
    let mut stage = with_a_node().await;
    stage.scale(0);
    stage.run_for(10).await;
    stage.world.with(|world| world.freeze(&["pods"], None));
    stage.scale(3);
    stage.run_for(3600).await;
    assert_eq!((running(&stage), began_or_ended(&stage)), (1, 0));
    let said = stage.count(|event| matches!(event, Event::CallFailed { error } if error.contains("not seen yet")));
    assert!((10..=60).contains(&said), "it was tried again now and then, {said} times");
    assert_eq!(stage.world.with(|world| world.pod_counts()), (3, 0));
}

/// Somebody deletes the claim by hand: its pods are not seen, and there are some.
#[tokio::test(start_paused = true)]
async fn no_instance_ends_under_pods_that_a_silent_watch_does_not_show() {
    for kinds in [&["pods"][..], &["nodes"], &["pods", "nodes"]] {
        let mut stage = with_a_node().await;
        let claim = stage.snapshot().node_claims[0].metadata.name.clone().unwrap();
        stage.world.with(|world| world.lose(kinds));
        Cluster::delete_node_claim(&stage.world.cluster(), &claim, "").await.unwrap();
        stage.run_for(300).await;
        assert_eq!(running(&stage), 1, "{kinds:?}");
        assert_eq!(stage.world.with(|world| world.pod_counts()).0, 5, "{kinds:?}");
        stage.world.with(World::see_all);
        assert!(stage.settle().await);
        stage.run_for(150).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "{kinds:?}: they were moved");
        stage.assert_consistent("when all is seen again");
    }
}

/// Where the node that joined is not seen, its claim is not given up for not having joined.
#[tokio::test(start_paused = true)]
async fn a_claim_whose_node_joined_unseen_is_not_given_up() {
    for why in [None, Some("watch nodes: connection refused")] {
        let mut stage = Stage::new(SETTINGS);
        assert!(stage.settle().await);
        stage.world.with(|world| world.freeze(&["nodes"], why));
        stage.scale(5);
        stage.run_for(3600).await;
        assert_eq!((running(&stage), began_or_ended(&stage)), (1, 0), "{why:?}");
        stage.world.with(World::see_all);
        assert!(stage.settle().await);
        assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
        stage.assert_consistent("when all is seen again");
    }
}

/// Each claim is to be given up by what is seen, at each look, and each time the API server says otherwise.
#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_not_held_against_lists_at_every_look() {
    let mut stage = Stage::new(SETTINGS);
    stage.world.with(|world| world.load(apart(4)));
    assert!(stage.settle().await);
    stage.world.with(|world| world.lose(&["nodes"]));
    stage.fuse.always_changed(true);
    let before = (stage.fuse.lists(), stage.launches.borrow().lists);
    stage.run_for(60).await;
    stage.fuse.always_changed(false);
    let lists = (stage.fuse.lists() - before.0, stage.launches.borrow().lists - before.1);
    assert!(lists.0 < 100 && lists.1 < 12, "lists of nodes and of instances in a minute: {lists:?}");
    assert_eq!((running(&stage), began_or_ended(&stage)), (4, 0));
    stage.world.with(World::see_all);
    stage.run_for(120).await;
    stage.assert_consistent("when all is seen again");
}

/// A watch breaks while a node starts: pods wait for it.
#[tokio::test(start_paused = true)]
async fn a_node_that_joins_while_a_kind_is_not_seen_opens() {
    for kind in ["volumeattachments", "persistentvolumeclaims", "poddisruptionbudgets", "nodepools"] {
        let mut stage = Stage::new(SETTINGS);
        assert!(stage.settle().await);
        stage.scale(5);
        while stage.snapshot().node_claims.is_empty() {
            stage.run_for(1).await;
        }
        assert_eq!(stage.world.with(|world| world.pod_counts()), (0, 5), "{kind}");
        stage.world.with(|world| world.freeze(&[kind], Some("list failed: etcdserver: request timed out")));
        stage.run_for(600).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "{kind}");
        stage.world.with(World::see_all);
        assert!(stage.settle().await);
        stage.assert_consistent(kind);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_can_not_be_read_holds_the_nodes_of_its_pool_only() {
    for (name, is_held) in [("default", true), ("another", false)] {
        let mut stage = with_a_node().await;
        let object = json!({"metadata": {"name": name}});
        let object = Unreadable::new("NodePool", &object, "unknown variant `WhenQuiet`");
        stage.world.with(|world| world.set_aside(object));
        stage.scale(0);
        stage.run_for(600).await;
        assert_eq!(running(&stage), usize::from(is_held), "{name}");
        assert!(stage.count(|event| matches!(event, Event::Doubted { .. })) > 5);
    }
}

/// The address of an instance that ended comes back with another one, and with it the name of the Node; a watch is late.
#[tokio::test(start_paused = true)]
async fn what_took_the_name_of_a_node_that_goes_stays() {
    let mut stage = with_a_node().await;
    let claim = stage.snapshot().node_claims[0].metadata.name.clone().unwrap();
    let mut other = stage.snapshot().nodes[0].clone();
    other.metadata.uid = Some("another".to_owned());
    other.spec.get_or_insert_default().provider_id = Some("aws:///us-east-1a/i-another".to_owned());
    stage.world.with(|world| {
        world.freeze(&["nodes"], None);
        world.load(Snapshot { nodes: vec![other].into(), ..Snapshot::default() });
    });
    let cluster = stage.world.cluster();
    Cluster::delete_node_claim(&cluster, &claim, "").await.unwrap();
    stage.run_for(60).await;
    let nodes = Cluster::nodes_now(&cluster).await.unwrap();
    let other = nodes.iter().find(|node| node.metadata.uid.as_deref() == Some("another"));
    assert!(other.is_some_and(|node| node.metadata.deletion_timestamp.is_none()), "{nodes:?}");
    let refused = Cluster::delete_node_claim(&cluster, &claim, "another").await;
    assert!(refused.is_err_and(|error| error.kind == PortErrorKind::Conflict));
}

/// What came into doubt while a plan waited for its approval is in doubt.
#[tokio::test(start_paused = true)]
async fn an_approved_plan_begins_nothing_of_what_came_into_doubt_meanwhile() {
    let mut stage = Stage::new(&format!("{SETTINGS}  approval: {{ disrupt: manual }}\n"));
    assert!(stage.settle().await);
    stage.scale(5);
    assert!(stage.settle().await);
    stage.scale(0);
    stage.run_for(120).await;
    assert_eq!((running(&stage), began_or_ended(&stage)), (1, 0));
    let mut twin = stage.snapshot().nodes[0].clone();
    twin.metadata.name = Some("twin".to_owned());
    (twin.metadata.uid, twin.metadata.finalizers) = (None, None);
    stage.world.with(|world| world.load(Snapshot { nodes: vec![twin].into(), ..Snapshot::default() }));
    let plan = stage.waiting().pop().unwrap();
    assert!(stage.controller.approve(&plan));
    stage.run_for(300).await;
    assert_eq!((running(&stage), began_or_ended(&stage)), (1, 0));
    let is_marked = |claim: &NodeClaim| {
        claim.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(keys::REPLACED_BY))
    };
    assert!(!stage.snapshot().node_claims.iter().any(is_marked), "no pod is kept from its node");
    // When only one is left, it is asked for once more.
    let before = stage.waiting().len();
    Cluster::delete_node(&stage.world.cluster(), "twin", "").await.unwrap();
    stage.run_for(300).await;
    assert!(stage.waiting().len() > before && running(&stage) == 1);
    let plan = stage.waiting().pop().unwrap();
    assert!(stage.controller.approve(&plan));
    stage.run_for(300).await;
    assert_eq!(running(&stage), 0);
}

/// Anybody who may register a Node may say that it is of an instance that is another one's.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_pool_ends_while_two_nodes_or_claims_are_of_one_instance() {
    for kind in ["Node", "NodeClaim"] {
        let mut stage = with_a_node().await;
        let cluster = stage.world.cluster();
        if kind == "Node" {
            let mut twin = stage.snapshot().nodes[0].clone();
            twin.metadata.name = Some("twin".to_owned());
            (twin.metadata.uid, twin.metadata.finalizers) = (None, None);
            stage.world.with(|world| world.load(Snapshot { nodes: vec![twin].into(), ..Snapshot::default() }));
        } else {
            let mut twin = stage.snapshot().node_claims[0].clone();
            twin.metadata.name = Some("twin".to_owned());
            (twin.metadata.uid, twin.metadata.finalizers) = (None, None);
            Cluster::create_node_claim(&cluster, &twin).await.unwrap();
        }
        // A plan without steps is posted where its revision is new.
        stage.script.commit("again", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
        stage.scale(0);
        stage.run_for(600).await;
        assert_eq!((running(&stage), began_or_ended(&stage)), (1, 0), "{kind}");
        assert!(stage.count(|event| matches!(event, Event::Doubted { doubts } if doubts.doubled.len() == 1)) > 5);
        let is_said = |note: &Note| note.code == NoteCode::ProviderIdShared && note.text.contains("twin");
        let said =
            stage.count(|event| matches!(event, Event::PlanPosted { plan, .. } if plan.notes.iter().any(is_said)));
        assert!(said > 0, "{kind}");
        // Nor where somebody deletes the claim.
        let claim = stage
            .snapshot()
            .node_claims
            .iter()
            .find_map(|claim| claim.metadata.name.clone().filter(|name| name != "twin"));
        Cluster::delete_node_claim(&cluster, &claim.unwrap(), "").await.unwrap();
        stage.run_for(600).await;
        assert_eq!(running(&stage), 1, "{kind}");
        if kind == "Node" {
            Cluster::delete_node(&cluster, "twin", "").await.unwrap();
        } else {
            stage.world.with(|world| world.forget_node_claim("twin"));
        }
        stage.run_for(600).await;
        assert_eq!(running(&stage), 0, "{kind}: when only one is left");
    }
}

/// Half of a backup was restored: a claim has the instance of another one, which has none. Then somebody deletes it.
#[tokio::test(start_paused = true)]
async fn no_instance_ends_on_the_word_of_a_claim_that_it_was_not_given_to() {
    let mut stage = Stage::of_four_nodes(POOL).await;
    // Long enough for the cloud to be asked about what runs.
    stage.run_for(150).await;
    let cluster = stage.world.cluster();
    let claims = stage.snapshot().node_claims;
    let (mut one, mut other) = (claims[0].clone(), claims[1].clone());
    let id = other.status.as_mut().unwrap().provider_id.take();
    one.status.as_mut().unwrap().provider_id.clone_from(&id);
    Cluster::update_node_claim(&cluster, &other).await.unwrap();
    Cluster::update_node_claim(&cluster, &one).await.unwrap();
    let evicted = stage.world.pods_evicted();
    Cluster::delete_node_claim(&cluster, one.metadata.name.as_deref().unwrap(), "").await.unwrap();
    stage.run_for(5).await;
    let runs = stage.world.with(|world| world.instances()).iter().any(|it| Some(&it.provider_id) == id.as_ref());
    assert!(runs, "it is the other one's");
    assert_eq!(stage.world.pods_evicted(), evicted);
    let said = |event: &Event| matches!(event, Event::CallFailed { error } if error.contains("was given to nodeclaim"));
    assert_eq!(stage.count(said), 1);
}

/// A repair is due by what is seen, and nobody knows that the watch is silent.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_well_again_unseen_is_not_repaired() {
    let mut stage = repair::four_nodes().await;
    let broken = repair::names(&stage)[1].clone();
    repair::say(&stage, &broken, "False");
    stage.run_for(29 * 60).await;
    stage.world.with(|world| world.freeze(&["nodes"], None));
    repair::say(&stage, &broken, "True");
    stage.run_for(3600).await;
    assert_eq!((repair::repaired(&stage), running(&stage)), (0, 4));
    let says = |event: &Event| matches!(event, Event::CallFailed { error } if error.contains("it is well again"));
    assert!(stage.count(says) > 0, "it is said why the plan does not begin");
    stage.world.with(World::see_all);
    stage.run_for(600).await;
    assert_eq!((repair::repaired(&stage), running(&stage)), (0, 4));
    assert!(repair::names(&stage).contains(&broken));
}

/// Somebody asks that a node stays, and the watch of what it is asked on is silent. On the claim it is asked only until the node has
/// registered, as in the reference.
#[tokio::test(start_paused = true)]
async fn what_somebody_protects_unseen_stays() {
    for kind in ["nodes", "pods"] {
        let mut stage = with_a_node().await;
        stage.world.with(|world| world.freeze(&[kind], None));
        protect(&stage, kind, Some("true")).await;
        let changed = POOL.replacen("    spec:\n", "    metadata: { labels: { release: two } }\n    spec:\n", 1);
        assert_ne!(changed, POOL);
        stage.script.commit("two", &[("pool.yaml", &changed), ("cutlist.yaml", SETTINGS)]);
        stage.run_for(3600).await;
        assert_eq!((running(&stage), began_or_ended(&stage)), (1, 0), "{kind}");
        let says = |event: &Event| matches!(event, Event::CallFailed { error } if error.starts_with("remove node "));
        assert!(stage.count(says) > 0, "{kind}: it is said why the plan does not begin");
        // Once it is seen it counts, and when nobody asks for it any more the node is replaced.
        stage.world.with(World::see_all);
        stage.run_for(600).await;
        assert_eq!((running(&stage), began_or_ended(&stage)), (1, 0), "{kind}");
        protect(&stage, kind, None).await;
        stage.run_for(1200).await;
        assert!(running(&stage) == 1 && began_or_ended(&stage) > 0, "{kind}");
        stage.assert_consistent(kind);
    }
}

/// Puts the annotation on all objects of the kind, or takes it away.
async fn protect(stage: &Stage, kind: &str, value: Option<&str>) {
    let cluster = stage.world.cluster();
    match kind {
        "nodes" => {
            for node in Cluster::nodes_now(&cluster).await.unwrap() {
                let patch = json!({ "metadata": { "annotations": { keys::DO_NOT_DISRUPT: value } } });
                Cluster::patch_node(&cluster, &node, &patch).await.unwrap();
            }
        }
        _ => {
            let node = Cluster::nodes_now(&cluster).await.unwrap()[0].metadata.name.clone().unwrap();
            let mut pods = Cluster::pods_on_now(&cluster, &node).await.unwrap();
            for pod in &mut pods {
                pod.metadata.annotations.remove(keys::DO_NOT_DISRUPT);
                pod.metadata.annotations.extend(value.map(|value| (keys::DO_NOT_DISRUPT.to_owned(), value.to_owned())));
            }
            stage.world.with(|world| world.load(Snapshot { pods: pods.into(), ..Snapshot::default() }));
        }
    }
}
