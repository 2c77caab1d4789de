//! What goes wrong around the controller and stays so: finalizers, webhooks, clocks, a zone, a repository that is away.

use std::collections::BTreeSet;
use std::time::Duration;

use cutlist::adapters::embedded::{Webhook, World};
use cutlist::api::keys;
use cutlist::controller::events::Event;
use cutlist::core::snapshot::Snapshot;
use cutlist::ports::{Cluster, PortErrorKind};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::stage::{POOL, SETTINGS, Stage, apart, without_pods};

const KEEP: &str = "example.com/keep";
/// What a webhook takes that gives no answer.
const SLOW: Duration = Duration::from_secs(30);

/// Two Deployments, one with pods on a node.
async fn with_a_node() -> (Stage, String, String) {
    let mut stage = Stage::new(SETTINGS);
    stage.world.with(|world| world.load(without_pods(&["other"])));
    stage.scale(5);
    assert!(stage.settle().await);
    let snapshot = stage.snapshot();
    let node = snapshot.nodes[0].metadata.name.clone().unwrap();
    let claim = snapshot.node_claims[0].metadata.name.clone().unwrap();
    (stage, node, claim)
}

/// Whether the rest goes on: other pods get a node, and it goes when they do.
async fn the_rest_goes_on(stage: &mut Stage, context: &str) {
    others_get_nodes(stage, context).await;
    let instances = stage.world.with(|world| world.instances()).len();
    assert!(stage.world.with(|world| world.scale("default/other", 0)));
    stage.run_for(600).await;
    assert!(stage.world.with(|world| world.instances()).len() < instances, "{context}: their nodes go again");
}

async fn others_get_nodes(stage: &mut Stage, context: &str) {
    let bound = |stage: &Stage| stage.world.with(|world| world.pod_counts());
    let before = bound(stage);
    assert!(stage.world.with(|world| world.scale("default/other", 30)));
    stage.run_for(120).await;
    assert_eq!(bound(stage), (before.0 + before.1 + 30, 0), "{context}: other pods get nodes");
}

fn said(stage: &Stage, text: &str) -> usize {
    stage.count(|event| matches!(event, Event::CallFailed { error } if error.contains(text)))
}

/// As somebody else would do it.
async fn patch_as_it_is(stage: &Stage, name: &str, patch: &Value) {
    let snapshot = stage.snapshot();
    let node = snapshot.nodes.iter().find(|node| node.metadata.name.as_deref() == Some(name)).unwrap();
    stage.world.cluster().patch_node(node, patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_on_a_node_that_stays() {
    let (mut stage, node, _) = with_a_node().await;
    let patch = json!({ "metadata": { "finalizers": [keys::TERMINATION_FINALIZER, KEEP] } });
    patch_as_it_is(&stage, &node, &patch).await;
    stage.scale(0);
    stage.run_for(3600).await;
    assert_eq!(stage.world.with(|world| world.instances()).len(), 0, "the instance costs nothing any more");
    let held = stage.snapshot().nodes[0].metadata.finalizers.clone();
    assert_eq!(held.as_deref(), Some(&[KEEP.to_owned()][..]), "what somebody else set is theirs to remove");
    let calls = stage.fuse.calls();
    stage.run_for(3600).await;
    assert!(stage.fuse.calls() - calls < 200, "{} calls in an hour", stage.fuse.calls() - calls);
    assert!(said(&stage, KEEP) > 30, "said while it lasts");
    the_rest_goes_on(&mut stage, "a Node stays").await;
    patch_as_it_is(&stage, &node, &json!({ "metadata": { "finalizers": null } })).await;
    assert!(stage.settle().await);
    stage.run_for(600).await;
    assert!(stage.snapshot().node_claims.is_empty());
    stage.assert_consistent("after the Node was let go");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_on_a_node_claim_that_stays() {
    let (mut stage, _, claim) = with_a_node().await;
    let held = |stage: &Stage| {
        stage.snapshot().node_claims.iter().find(|it| it.metadata.name.as_ref() == Some(&claim)).cloned()
    };
    let mut kept = held(&stage).unwrap();
    kept.metadata.finalizers.get_or_insert_default().push(KEEP.to_owned());
    stage.world.cluster().update_node_claim(&kept).await.unwrap();
    stage.scale(0);
    stage.run_for(3600).await;
    assert_eq!((stage.world.with(|world| world.instances()).len(), stage.snapshot().nodes.len()), (0, 0));
    assert_eq!(held(&stage).unwrap().metadata.finalizers.as_deref(), Some(&[KEEP.to_owned()][..]));
    let deleted = stage.count(|event| matches!(event, Event::DeletedNodeClaim { .. }));
    let calls = stage.fuse.calls();
    stage.run_for(3600).await;
    assert!(stage.fuse.calls() - calls < 200, "{} calls in an hour", stage.fuse.calls() - calls);
    assert_eq!(stage.count(|event| matches!(event, Event::DeletedNodeClaim { .. })), deleted);
    assert!(said(&stage, KEEP) > 30, "said while it lasts");
    the_rest_goes_on(&mut stage, "a NodeClaim stays").await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_never_ends() {
    let (mut stage, node, _) = with_a_node().await;
    let pod = stage.snapshot().pods.first().unwrap().key();
    stage.world.with(|world| world.hold_pod(&pod));
    Cluster::delete_node(&stage.world.cluster(), &node, "").await.unwrap();
    stage.run_for(30).await;
    the_rest_goes_on(&mut stage, "a pod stays").await;
    // As the reference does: what is a minute past its grace is not waited for.
    assert!(stage.snapshot().nodes.iter().all(|it| it.metadata.name.as_ref() != Some(&node)));
    stage.world.with(World::let_pods_go);
    assert!(stage.settle().await);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0));
    stage.assert_consistent("after a pod that never ended");
}

/// What a webhook makes of definitions is not what is in Git: nothing is applied again and again, pods get nodes, and it is said.
#[tokio::test(start_paused = true)]
async fn a_webhook_that_changes_definitions() {
    let ways: [(&str, Webhook); 3] = [
        ("a label", |object| object["metadata"]["labels"]["team"] = json!("platform")),
        ("a label of nodes", |object| {
            if object["kind"] == "NodePool" {
                object["spec"]["template"]["metadata"]["labels"]["team"] = json!("platform");
            }
        }),
        ("a limit", |object| {
            if object["kind"] == "NodePool" {
                object["spec"]["limits"]["cpu"] = json!("50");
            }
        }),
    ];
    for (context, webhook) in ways {
        let mut stage = Stage::new(SETTINGS);
        stage.world.with(|world| world.change_definitions(Some(webhook)));
        stage.scale(5);
        stage.run_for(600).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (5, 0), "{context}");
        let calls = stage.fuse.calls();
        stage.run_for(3600).await;
        assert!(stage.fuse.calls() - calls < 200, "{context}: {} calls in an hour", stage.fuse.calls() - calls);
        let evicted = stage.count(|event| matches!(event, Event::EvictedPod { .. }));
        assert_eq!(evicted, 0, "{context}: no node is replaced for it");
        if context != "a label" {
            assert!(said(&stage, "NodePool default") > 0, "{context}: said");
        }
    }
}

/// The clock of the controller's machine is set: ahead, back, to and fro, while nodes come and go.
#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps() {
    for hours in [5, -5, 24 * 30, -24 * 30] {
        let (mut stage, node, _) = with_a_node().await;
        let ahead = SignedDuration::from_hours(hours);
        let context = format!("{hours} hours");
        // Nothing is to be done, and nothing is.
        stage.clock.set(ahead);
        stage.run_for(600).await;
        assert!(stage.snapshot().nodes.iter().any(|it| it.metadata.name.as_ref() == Some(&node)), "{context}");
        assert_eq!(stage.world.pods_evicted(), 0, "{context}");
        // What comes in that time comes, where it is not taken for old at once.
        stage.scale(40);
        stage.run_for(300).await;
        let bound = stage.world.with(|world| world.pod_counts()).0;
        assert!(hours > 0 || bound == 40, "{context}: {bound} pods");
        assert_eq!(stage.world.pods_evicted(), 0, "{context}: nothing that runs is ended");
        stage.clock.set(SignedDuration::ZERO);
        stage.run_for(900).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (40, 0), "{context}: set right");
        stage.scale(3);
        stage.run_for(1800).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (3, 0), "{context}: set right");
        assert!(stage.world.with(|world| world.instances()).len() <= 2, "{context}: what is empty goes");
        // To and fro, every few seconds.
        for turn in 0..60 {
            stage.clock.set(if turn % 2 == 0 { ahead } else { SignedDuration::ZERO });
            stage.scale(5 + turn % 7 * 5);
            stage.run_for(5).await;
        }
        stage.clock.set(SignedDuration::ZERO);
        stage.scale(10);
        assert!(stage.settle().await, "{context}");
        stage.run_for(1800).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (10, 0), "{context}: in the end");
        stage.assert_consistent(&context);
    }
}

/// The clock was a day ahead when the last look began, and is set right while the loop waits and looks.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_right_between_two_looks_holds_nothing_up() {
    let (mut stage, _, _) = with_a_node().await;
    stage.clock.set(SignedDuration::from_hours(24));
    stage.run_for(60).await;
    stage.controller.pass().await;
    stage.clock.set(SignedDuration::ZERO);
    let waited = tokio::time::timeout(Duration::from_secs(60), stage.controller.wait()).await;
    assert!(waited.is_ok(), "no longer than until the next poll");
    assert!(stage.world.with(|world| world.scale("default/other", 30)));
    stage.run_for(120).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (35, 0));
    stage.run_for(900).await;
    stage.assert_consistent("after a clock was set right");
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_is_lost() {
    let mut stage = Stage::of_four_nodes(POOL).await;
    let zone_of = |node: &k8s_openapi::api::core::v1::Node| node.metadata.labels.as_ref().unwrap()[keys::ZONE].clone();
    let zone = zone_of(&stage.snapshot().nodes[0]);
    let lost: BTreeSet<String> = stage.world.with(|world| world.lose_zone(&zone)).into_iter().collect();
    assert!(!lost.is_empty());
    stage.run_for(600).await;
    let snapshot = stage.snapshot();
    let runs = |pod: &&cutlist::core::snapshot::Pod| {
        !pod.is_terminating() && pod.spec.node_name.as_ref().is_some_and(|node| !lost.contains(node))
    };
    assert_eq!(snapshot.pods.iter().filter(runs).count(), 4, "all have a node elsewhere");
    assert!(
        snapshot
            .nodes
            .iter()
            .filter(|node| !lost.contains(node.metadata.name.as_ref().unwrap()))
            .all(|node| zone_of(node) != zone)
    );
    // Whatever becomes of the nodes that are lost: no pod that runs leaves for it.
    let running: Vec<String> = snapshot.pods.iter().filter(runs).map(|pod| pod.metadata.uid.clone()).collect();
    stage.run_for(4 * 3600).await;
    let after = stage.snapshot();
    assert!(running.iter().all(|uid| after.pods.iter().any(|pod| pod.metadata.uid == *uid)));
}

#[tokio::test(start_paused = true)]
async fn a_repository_that_is_away_for_days() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    for day in 0..5 {
        for _ in 0..24 {
            stage.script.fail();
            stage.run_for(3600).await;
        }
        let replicas = 5 + day % 2 * 20;
        stage.scale(replicas);
        stage.run_for(120).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (usize::try_from(replicas).unwrap(), 0), "day {day}");
    }
    let unreachable = stage.count(|event| matches!(event, Event::RepositoryUnreachable { .. }));
    assert!((2..=10).contains(&unreachable), "said now and then, {unreachable} times");
    stage.script.commit("back", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    assert_eq!(stage.count(|event| matches!(event, Event::RepositoryBack)), 1);
    stage.assert_consistent("after five days");
}

/// Whatever the object is, and whatever is to be done with it: the rest goes on, and it goes when it may. The same where no answer comes.
#[tokio::test(start_paused = true)]
async fn a_policy_that_refuses_what_is_written_to_one_object() {
    let kinds = [PortErrorKind::Refused, PortErrorKind::Denied, PortErrorKind::Temporary];
    for (what, kind) in ["nodeclaim", "node", "pod"].into_iter().flat_map(|what| kinds.map(|kind| (what, kind))) {
        let (mut stage, node, claim) = with_a_node().await;
        let pod = stage.snapshot().pods.iter().find(|pod| pod.spec.node_name.as_deref() == Some(&node)).cloned();
        let name = match what {
            "nodeclaim" => claim.clone(),
            "node" => node.clone(),
            _ => pod.unwrap().metadata.name,
        };
        stage.fuse.forbid_as(&name, kind);
        Cluster::delete_node_claim(&stage.world.cluster(), &claim, "").await.unwrap();
        stage.run_for(120).await;
        assert!(stage.snapshot().node_claims.iter().any(|it| it.metadata.name.as_ref() == Some(&claim)), "{what}");
        let refusals = said(&stage, "policy.example.com");
        assert!((1..=30).contains(&refusals), "{what}: it is said, and not at each attempt: {refusals}");
        // The node that can not go takes what the budget allows, so that of others does not go either.
        others_get_nodes(&mut stage, what).await;
        stage.fuse.allow_all();
        stage.run_for(900).await;
        assert!(stage.snapshot().node_claims.iter().all(|it| it.metadata.name.as_ref() != Some(&claim)), "{what}");
        stage.assert_consistent(what);
    }
}

/// A webhook of which no answer comes takes half a minute for each refusal, and a cluster in which something always changes is looked at
/// all the time.
#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_asked_for_at_every_look() {
    let of_node = [PortErrorKind::Refused, PortErrorKind::Temporary].map(|kind| ("node", kind));
    // The status of a claim may not be found though the claim is there.
    let of_claim =
        [PortErrorKind::Refused, PortErrorKind::Temporary, PortErrorKind::NotFound].map(|kind| ("nodeclaim", kind));
    for (what, kind) in of_node.into_iter().chain(of_claim) {
        let (mut stage, node, claim) = with_a_node().await;
        stage.fuse.forbid_as(if what == "node" { &node } else { &claim }, kind);
        Cluster::delete_node_claim(&stage.world.cluster(), &claim, "").await.unwrap();
        stage.fuse.always_changed(true);
        let before = stage.fuse.refused();
        stage.run_for(60).await;
        stage.fuse.always_changed(false);
        let asked = stage.fuse.refused() - before;
        assert!((2..=40).contains(&asked), "{what}: {kind:?}, {asked} times in a minute");
        stage.fuse.allow_all();
        stage.run_for(300).await;
        assert!(stage.snapshot().node_claims.iter().all(|it| it.metadata.name.as_ref() != Some(&claim)), "{what}");
        stage.assert_consistent(what);
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_forbids_to_remove_a_definition() {
    let (mut stage, _, _) = with_a_node().await;
    let extra = POOL.split("---").next().unwrap().replacen("name: default\n", "name: extra\n", 1);
    stage.script.commit("two", &[("pool.yaml", POOL), ("extra.yaml", &extra), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    let pools = |stage: &Stage| stage.snapshot().node_pools.len();
    assert_eq!(pools(&stage), 2);
    stage.fuse.forbid("extra");
    stage.script.commit("one", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(120).await;
    assert_eq!(pools(&stage), 2);
    assert!(said(&stage, "policy.example.com") > 0);
    the_rest_goes_on(&mut stage, "a pool that may not be removed").await;
    stage.fuse.allow_all();
    stage.run_for(600).await;
    assert_eq!(pools(&stage), 1);
}

/// Nobody can see the plans, so that nothing is removed for them: pods get nodes all the same.
#[tokio::test(start_paused = true)]
async fn a_policy_that_refuses_plans() {
    for kind in [PortErrorKind::Refused, PortErrorKind::Temporary] {
        let (mut stage, _, _) = with_a_node().await;
        let refused = stage.fuse.refused();
        stage.fuse.forbid_as("record_plan", kind);
        others_get_nodes(&mut stage, "plans are refused").await;
        assert!(said(&stage, "write record_plan") > 0, "{kind:?}");
        let instances = stage.world.with(|world| world.instances()).len();
        assert!(stage.world.with(|world| world.scale("default/other", 0)));
        stage.run_for(600).await;
        assert_eq!(stage.world.with(|world| world.instances()).len(), instances, "{kind:?}: no plan says so");
        assert!(stage.fuse.refused() - refused < 60, "{kind:?}: {} times", stage.fuse.refused() - refused);
        stage.fuse.allow_all();
        stage.run_for(600).await;
        assert!(stage.world.with(|world| world.instances()).len() < instances, "{kind:?}");
        assert!(stage.settle().await);
        stage.assert_consistent("after plans were taken again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_refuses_definitions_keeps_no_pod_waiting() {
    let (mut stage, _, _) = with_a_node().await;
    let revision = |stage: &Stage| {
        let pool = stage.snapshot().node_pools[0].clone();
        pool.metadata.annotations.and_then(|annotations| annotations.get(keys::REVISION).cloned())
    };
    stage.fuse.freeze_definitions(true);
    let extra = POOL.split("---").next().unwrap().replacen("name: default\n", "name: extra\n", 1);
    let tainted =
        extra.replacen("      expireAfter", "      taints: [{ key: extra, effect: NoSchedule }]\n      expireAfter", 1);
    assert_ne!(tainted, extra);
    stage.script.commit("more", &[("pool.yaml", POOL), ("extra.yaml", &tainted), ("cutlist.yaml", SETTINGS)]);
    others_get_nodes(&mut stage, "definitions are refused").await;
    assert_eq!((stage.snapshot().node_pools.len(), revision(&stage).as_deref()), (1, Some("revision-1")));
    // What only the definitions that are not there ask for is not done.
    let other = POOL.replacen("    spec:\n", "    metadata: { labels: { generation: second } }\n    spec:\n", 1);
    assert_ne!(other, POOL);
    stage.script.commit("drift", &[("pool.yaml", &other), ("cutlist.yaml", SETTINGS)]);
    let evicted = stage.world.pods_evicted();
    stage.run_for(300).await;
    assert_eq!(stage.world.pods_evicted(), evicted);
    stage.fuse.freeze_definitions(false);
    stage.run_for(120).await;
    assert_eq!(revision(&stage).as_deref(), Some("drift"));
    assert!(stage.settle().await);
    assert!(stage.world.pods_evicted() > evicted);
    stage.assert_consistent("after definitions were taken again");
}

/// What the API server refuses for what it is stays so until somebody commits something else, or changes the API server.
#[tokio::test(start_paused = true)]
async fn definitions_that_are_refused_for_good_are_said_once_and_by_the_pools() {
    let (mut stage, _, _) = with_a_node().await;
    let stalled = |stage: &Stage| {
        let pool = stage.snapshot().node_pools[0].clone();
        let mut conditions = pool.status.unwrap().conditions.into_iter();
        conditions.find(|it| it.type_ == "Stalled").map(|it| (it.status, it.reason, it.message)).unwrap()
    };
    let pool = |stage: &Stage| stage.snapshot().node_pools[0].clone();
    let revision = |stage: &Stage| pool(stage).metadata.annotations.unwrap()[keys::REVISION].clone();
    for (kind, most) in [(PortErrorKind::Permanent, 16), (PortErrorKind::Refused, 40)] {
        stage.fuse.freeze_definitions_as(kind);
        let (said_before, refused) = (said(&stage, ""), stage.fuse.refused());
        let commit = format!("refused as {kind:?}");
        stage.script.commit(&commit, &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
        stage.run_for(1800).await;
        let refusals = stage.fuse.refused() - refused;
        assert!((10..=most).contains(&refusals), "{kind:?}: tried {refusals} times in half an hour");
        assert_eq!(said(&stage, "") - said_before, 1, "{kind:?}: it is said once");
        let (status, reason, message) = stalled(&stage);
        assert_eq!((status.as_str(), reason.as_str()), ("True", "DefinitionsRefused"), "{kind:?}");
        assert!(message.starts_with(&format!("{commit} is not applied: ")), "{message}");
        // Another commit waits for nothing.
        stage.fuse.freeze_definitions(false);
        let mended = format!("mended after {kind:?}");
        stage.script.commit(&mended, &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
        stage.run_for(3).await;
        assert_eq!(revision(&stage), mended);
        assert!(stage.settle().await);
        assert_eq!(stalled(&stage).0, "False");
    }
    stage.assert_consistent("after definitions were refused");
}

/// Rights that are missing are all named. They are used soon after they are given, though nothing else changes, and at once with a commit.
#[tokio::test(start_paused = true)]
async fn definitions_that_may_not_be_removed_are_all_named_and_tried_again() {
    let names = ["extra-1", "extra-2", "extra-3", "extra-4"];
    let first = POOL.split("---").next().unwrap();
    let extra = names.map(|name| first.replacen("name: default\n", &format!("name: {name}\n"), 1)).join("---\n");
    for (commits, seconds) in [(false, 62), (true, 3)] {
        let (mut stage, _, _) = with_a_node().await;
        stage.script.commit("more", &[("pool.yaml", POOL), ("extra.yaml", &extra), ("cutlist.yaml", SETTINGS)]);
        assert!(stage.settle().await);
        let pools = |stage: &Stage| stage.snapshot().node_pools.len();
        assert_eq!(pools(&stage), 5);
        names.iter().for_each(|name| stage.fuse.forbid_as(name, PortErrorKind::Denied));
        stage.script.commit("fewer", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
        stage.run_for(130).await;
        for name in names {
            assert!(said(&stage, &format!("write {name}")) > 0, "{name}");
        }
        stage.fuse.allow_all();
        if commits {
            stage.script.commit("again", &[("pool.yaml", POOL), ("cutlist.yaml", &format!("{SETTINGS}\n# Again.\n"))]);
        }
        stage.run_for(seconds).await;
        assert_eq!(pools(&stage), 1, "with another commit: {commits}");
    }
}

/// Each refusal takes half a minute, so that the first may be tried again when the last was refused.
#[tokio::test(start_paused = true)]
async fn removals_that_may_not_begin_keep_no_other_from_it() {
    let budget = "    consolidateAfter: 30s\n    budgets:\n      - nodes: 100%\n";
    let pool = POOL.replace("    consolidateAfter: 30s\n", budget);
    for allowed in 0..4 {
        let mut stage = Stage::of_four_nodes(&pool).await;
        let claims = |stage: &Stage| -> BTreeSet<String> {
            stage.snapshot().node_claims.iter().map(|claim| claim.metadata.name.clone().unwrap()).collect()
        };
        let before = claims(&stage);
        let spared = before.iter().nth(allowed).unwrap();
        before.iter().filter(|name| *name != spared).for_each(|name| stage.fuse.forbid(name));
        stage.fuse.refuse_after(SLOW);
        assert!(stage.world.with(|world| world.scale("default/spread", 0)));
        stage.run_for(1200).await;
        assert!(!claims(&stage).contains(spared), "{spared}");
        assert_eq!(claims(&stage).len(), 3);
        stage.fuse.allow_all();
        stage.run_for(900).await;
        assert!(claims(&stage).is_empty(), "{:?}", claims(&stage));
    }
}

/// A budget of one node is not spent on the same node by each plan.
#[tokio::test(start_paused = true)]
async fn a_removal_that_may_not_begin_leaves_its_turn_to_others() {
    let budget = "    consolidateAfter: 30s\n    budgets:\n      - nodes: \"1\"\n";
    let pool = POOL.replace("    consolidateAfter: 30s\n", budget);
    for allowed in 0..4 {
        let mut stage = Stage::of_four_nodes(&pool).await;
        let claims = |stage: &Stage| -> BTreeSet<String> {
            stage.snapshot().node_claims.iter().map(|claim| claim.metadata.name.clone().unwrap()).collect()
        };
        let before = claims(&stage);
        let spared = before.iter().nth(allowed).unwrap();
        before.iter().filter(|name| *name != spared).for_each(|name| stage.fuse.forbid(name));
        assert!(stage.world.with(|world| world.scale("default/spread", 0)));
        stage.run_for(600).await;
        let others: BTreeSet<String> = before.iter().filter(|name| *name != spared).cloned().collect();
        assert_eq!(claims(&stage), others, "{spared} goes, and no other");
        let says = |event: &Event| {
            let is_it = |held: &cutlist::core::plan::HeldBack| held.text.contains("was refused a moment ago");
            matches!(event, Event::PlanPosted { plan, .. } if plan.held_back.iter().any(is_it))
        };
        assert!(stage.count(says) > 0, "it is said why the others stay");
        stage.fuse.allow_all();
        stage.run_for(900).await;
        assert!(claims(&stage).is_empty(), "{:?}", claims(&stage));
    }
}

/// As many that are refused as are written at once, several times, and one that is not.
#[tokio::test(start_paused = true)]
async fn claims_that_may_not_be_written_keep_no_other_pool_waiting() {
    let pool = POOL.replace("cpu: \"100\"", "cpu: \"4000\"");
    let default = pool.split("---").next().unwrap();
    for (refused, allowed) in [("default", "other"), ("other", "default")] {
        let mut stage = Stage::new(SETTINGS);
        let other = default.replacen("name: default\n", "name: other\n", 1);
        let files = [("pool.yaml", pool.as_str()), ("other.yaml", &other), ("cutlist.yaml", SETTINGS)];
        stage.script.commit("two", &files);
        assert!(stage.settle().await);
        let mut workloads = apart(130);
        let mut others = without_pods(&["late"]);
        let select = |workloads: &mut Snapshot, pool: &str| {
            let template = &mut workloads.deployments[0].spec.as_mut().unwrap().template;
            let selector = [(keys::NODE_POOL.to_owned(), pool.to_owned())].into();
            template.spec.as_mut().unwrap().node_selector = Some(selector);
        };
        select(&mut workloads, refused);
        select(&mut others, allowed);
        stage.fuse.forbid(&format!("a claim of {refused}"));
        stage.fuse.refuse_after(SLOW);
        stage.world.with(|world| world.load(workloads));
        stage.world.with(|world| world.load(others));
        assert!(stage.world.with(|world| world.scale("default/late", 1)));
        stage.run_for(600).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (1, 130), "{allowed}");
        stage.fuse.allow_all();
        stage.run_for(900).await;
        assert_eq!(stage.world.with(|world| world.pod_counts()), (131, 0), "{allowed}");
    }
}

/// A claim waits for an instance, and another for the end of its own: what the cluster needs goes on.
#[tokio::test(start_paused = true)]
async fn a_cloud_that_launches_and_ends_nothing() {
    let (mut stage, node, claim) = with_a_node().await;
    stage.fuse.forbid("CreateFleet");
    assert!(stage.world.with(|world| world.scale("default/other", 30)));
    stage.run_for(60).await;
    let (_, waiting) = stage.world.with(|world| world.pod_counts());
    assert!(waiting > 0 && said(&stage, "no answer to CreateFleet") > 0);
    // The first node drains meanwhile, as far as there is room for its pods.
    stage.scale(0);
    Cluster::delete_node_claim(&stage.world.cluster(), &claim, "").await.unwrap();
    stage.run_for(200).await;
    let snapshot = stage.snapshot();
    assert!(snapshot.node_claims.iter().all(|it| it.metadata.name.as_ref() != Some(&claim)), "it has ended");
    assert!(snapshot.nodes.iter().all(|it| it.metadata.name.as_ref() != Some(&node)));
    stage.fuse.allow_all();
    stage.run_for(600).await;
    assert_eq!(stage.world.with(|world| world.pod_counts()), (30, 0));

    stage.fuse.forbid("TerminateInstances");
    let instances = stage.world.with(|world| world.instances()).len();
    let leaving = stage.snapshot().node_claims[0].metadata.name.clone().unwrap();
    Cluster::delete_node_claim(&stage.world.cluster(), &leaving, "").await.unwrap();
    stage.run_for(300).await;
    assert!(said(&stage, "no answer to TerminateInstances") > 0);
    assert_eq!(stage.world.with(|world| world.pod_counts()), (30, 0), "its pods have other nodes");
    assert!(stage.world.with(|world| world.instances()).len() > instances.saturating_sub(1), "it runs on");
    stage.fuse.allow_all();
    stage.run_for(300).await;
    assert!(stage.snapshot().node_claims.iter().all(|it| it.metadata.name.as_ref() != Some(&leaving)));
    stage.assert_consistent("after the cloud was silent");
}
