//! What exists is innocent: instances without claims, claims without instances. Something is not seen more often than not wanted.

use cutlist::adapters::embedded::World;
use cutlist::api::node_claim::NodeClaim;
use cutlist::controller::events::Event;
use cutlist::core::plan::NoteCode;
use cutlist::core::snapshot::Snapshot;
use cutlist::ports::{Cloud, LaunchRequest, LaunchRules};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::stage::{POOL, SETTINGS, Stage, apart};

fn running(stage: &Stage) -> usize {
    stage.world.with(|world| world.instances()).len()
}

/// Whether it is said what an instance is, since when it runs and what it costs.
fn is_described(text: &str) -> bool {
    [", us-east-1", ", launched 20", "/h)"].iter().all(|part| text.contains(part))
}

/// Four nodes with a pod each.
async fn with_four_nodes() -> Stage {
    let mut stage = Stage::new(SETTINGS);
    stage.world.with(|world| world.load(apart(4)));
    assert!(stage.settle().await);
    assert_eq!(running(&stage), 4);
    stage
}

/// As an installation launches that is not told of here; no claim of this cluster knows it.
async fn launch_unknown(stage: &Stage, uid: &str, node_pool: &str, installation: &str) {
    let known = stage.world.with(|world| world.instances())[0].clone();
    let claim: NodeClaim = serde_json::from_value(serde_json::json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": format!("unknown-{uid}"), "uid": uid, "labels": { "karpenter.sh/nodepool": node_pool },
        },
        "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [],
        },
    }))
    .unwrap();
    let request = LaunchRequest {
        launch_id: uid,
        installation,
        claims: vec![&claim],
        assigned: Vec::new(),
        class: None,
        images: None,
        alternatives: &[cutlist::core::plan::Alternative {
            instance_type: known.instance_type,
            zone: known.zone,
            capacity_type: known.capacity_type,
            price_per_hour: cutlist::core::model::HourlyPrice::default(),
        }],
        rules: LaunchRules::default(),
    };
    stage.world.cloud().launch(&request).await.remove(0).unwrap();
}

#[tokio::test(start_paused = true)]
async fn instances_whose_claims_are_gone_are_adopted_by_their_nodes() {
    for pools_too in [false, true] {
        let mut stage = with_four_nodes().await;
        let before = stage.world.with(|world| world.instances());
        stage.world.with(World::forget_node_claims);
        if pools_too {
            stage.world.with(World::forget_node_pools);
        }
        stage.restart();
        assert!(stage.settle().await);
        stage.run_for(2 * 3600).await;
        assert_eq!(stage.world.with(|world| world.instances()), before, "none ended, none was bought");
        assert_eq!(stage.count(|event| matches!(event, Event::AdoptedInstance { .. })), 4);
        assert_eq!(stage.count(|event| matches!(event, Event::EvictedPod { .. })), 0);
        let snapshot = stage.snapshot();
        assert_eq!((snapshot.node_claims.len(), snapshot.nodes.len()), (4, 4));
        assert!(snapshot.node_claims.iter().all(|claim| claim.is_true("Initialized")));
        // They are ours again: they go when nobody needs them.
        stage.world.with(|world| world.load(apart(0)));
        stage.run_for(3600).await;
        assert!(running(&stage) < 4, "{}", running(&stage));
    }
}

#[tokio::test(start_paused = true)]
async fn instances_without_claim_and_node_are_adopted_by_their_tags() {
    let mut stage = with_four_nodes().await;
    stage.world.with(|world| {
        world.forget_node_claims();
        world.forget_nodes();
    });
    stage.restart();
    stage.run_for(30).await;
    assert_eq!(stage.count(|event| matches!(event, Event::AdoptedInstance { .. })), 4);
    stage.run_for(120).await;
    let told = |event: &Event| {
        matches!(event, Event::PlanPosted { plan, .. }
            if plan.notes.iter().filter(|note| note.code == NoteCode::InstanceAdopted && is_described(&note.text)).count() == 4)
    };
    assert!(stage.count(told) > 0, "a posted plan names them");
}

#[tokio::test(start_paused = true)]
async fn what_is_nobodys_is_held_shown_and_ended_one_at_a_time() {
    let mut stage = with_four_nodes().await;
    for token in ["a", "b", "c"] {
        launch_unknown(&stage, token, "of-nobody", "").await;
    }
    stage.run_for(10 * 60).await;
    assert_eq!((running(&stage), stage.count(|event| matches!(event, Event::InstanceHeld { .. }))), (7, 3));
    let shows = |event: &Event| {
        matches!(event, Event::PlanPosted { plan, .. }
            if plan.notes.iter().filter(|note| note.code == NoteCode::InstanceWithoutNodeClaim).count() == 3)
    };
    assert!(stage.count(shows) > 0, "a posted plan shows them");
    let describes = |event: &Event| {
        matches!(event, Event::PlanPosted { plan, .. }
            if plan.notes.iter().any(|note| note.code == NoteCode::InstanceWithoutNodeClaim && is_described(&note.text)))
    };
    assert_eq!(stage.count(describes), stage.count(shows), "with what it is");
    stage.run_for(20 * 60).await;
    assert_eq!(running(&stage), 6, "one in an hour");
    // Another leader waits anew.
    stage.restart();
    stage.run_for(4 * 60).await;
    assert_eq!(running(&stage), 6);
    stage.run_for(3 * 3600).await;
    assert_eq!(running(&stage), 4);
}

/// What gives Nodes their provider IDs is away: the pods of a Node without one may run on any instance that was launched before it joined.
#[tokio::test(start_paused = true)]
async fn an_instance_whose_node_does_not_say_that_it_is_its_is_not_ended() {
    let mut stage = with_four_nodes().await;
    let known: Vec<_> = stage.snapshot().nodes.iter().map(|node| node.metadata.name.clone()).collect();
    launch_unknown(&stage, "a", "of-nobody", "").await;
    stage.run_for(120).await;
    let nodes = stage.snapshot().nodes;
    let mut joined = nodes.iter().find(|node| !known.contains(&node.metadata.name)).unwrap().clone();
    let provider_id = joined.spec.as_mut().unwrap().provider_id.take();
    assert!(provider_id.is_some());
    let load = |stage: &Stage, node: Node| {
        stage.world.with(|world| world.load(Snapshot { nodes: vec![node].into(), ..Snapshot::default() }));
    };
    load(&stage, joined.clone());
    stage.run_for(3 * 3600).await;
    assert_eq!(running(&stage), 5);
    joined.spec.as_mut().unwrap().provider_id = provider_id;
    load(&stage, joined);
    stage.run_for(3600).await;
    assert_eq!(running(&stage), 4, "it is known, and empty");
}

#[tokio::test(start_paused = true)]
async fn instances_of_another_installation_are_not_touched() {
    let mut stage = with_four_nodes().await;
    launch_unknown(&stage, "a", "default", "another").await;
    stage.run_for(4 * 3600).await;
    assert_eq!(running(&stage), 5);
    let held = |event: &Event| matches!(event, Event::InstanceHeld { .. } | Event::AdoptedInstance { .. });
    assert_eq!(stage.count(held), 0);
}

/// The cloud was asked in the wrong region, or answers with an empty list.
#[tokio::test(start_paused = true)]
async fn claims_are_not_given_up_because_the_cloud_says_nothing() {
    let mut stage = with_four_nodes().await;
    stage.world.with(|world| world.hide_instances(true));
    stage.run_for(2 * 3600).await;
    assert_eq!((running(&stage), stage.snapshot().node_claims.len()), (4, 4));
    // Even where nodes are not ready, as in an outage of a zone: not all at once.
    let nodes: Vec<String> = stage.snapshot().nodes.iter().filter_map(|node| node.metadata.name.clone()).collect();
    for node in &nodes {
        stage.world.with(|world| world.set_node_condition(node, "Ready", "Unknown"));
    }
    stage.run_for(25 * 60).await;
    assert_eq!(stage.count(|event| matches!(event, Event::InstanceVanished { .. })), 1);
}

/// A commit that defines no pool takes none of ours away.
#[tokio::test(start_paused = true)]
async fn pools_of_another_installation_hold_no_revision() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    let mut node_pools = stage.snapshot().node_pools.clone();
    node_pools.iter_mut().for_each(|pool| {
        let labels = pool.metadata.labels.get_or_insert_default();
        labels.insert("cutlist.dev/installation".to_owned(), "another".to_owned());
    });
    stage.world.with(|world| world.load(Snapshot { node_pools, ..Snapshot::default() }));
    let class = POOL.split("---").nth(1).unwrap();
    stage.script.commit("classes", &[("class.yaml", class), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(60).await;
    let in_force = |event: &Event| matches!(event, Event::RevisionFound { revision, .. } if revision.id == "classes");
    let held = |event: &Event| matches!(event, Event::RemovalHeld { .. });
    assert_eq!((stage.count(in_force), stage.count(held)), (1, 0));
}

/// The API server removes with an owner what it owns, whatever its labels say: somebody gave a node to another pool by hand.
#[tokio::test(start_paused = true)]
async fn a_pool_that_owns_claims_stays_until_they_are_gone() {
    let mut stage = with_four_nodes().await;
    let extra = POOL.split("---").next().unwrap().replacen("name: default\n", "name: extra\n", 1);
    stage.script.commit("two", &[("pool.yaml", POOL), ("extra.yaml", &extra), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    let mut owned = stage.snapshot().node_claims[0].clone();
    owned.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodePool".to_owned(),
        name: "extra".to_owned(),
        uid: "extra".to_owned(),
        ..OwnerReference::default()
    }]);
    stage.world.with(|world| world.load(Snapshot { node_claims: vec![owned].into(), ..Snapshot::default() }));
    stage.script.commit("one", &[("pool.yaml", POOL), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(300).await;
    assert_eq!(stage.snapshot().node_pools.len(), 2);
    let waits = |event: &Event| matches!(event, Event::PruneWaits { name, nodes: 1, .. } if name == "extra");
    assert_eq!(stage.count(waits), 1, "it is said");
    assert_eq!(running(&stage), 4);
}

/// Two installations in one cluster: a definition of the other is neither written over nor pruned, its claims are not looked after, and
/// that is said.
#[tokio::test(start_paused = true)]
async fn definitions_and_claims_of_another_installation_are_not_touched() {
    let mut stage = with_four_nodes().await;
    let ours = stage.snapshot();
    let disown = |notes: &mut Option<std::collections::BTreeMap<String, String>>| {
        notes.get_or_insert_default().insert("cutlist.dev/installation".to_owned(), "another".to_owned());
    };
    let (mut node_pools, mut node_claims) = (ours.node_pools.clone(), ours.node_claims.clone());
    node_pools.iter_mut().for_each(|pool| disown(&mut pool.metadata.labels));
    node_claims.iter_mut().for_each(|claim| disown(&mut claim.metadata.annotations));
    let theirs = Snapshot { node_pools, node_claims, ..Snapshot::default() };
    stage.world.with(|world| world.load(theirs));
    let before = stage.snapshot();
    let changed = POOL.replace("[\"amd64\"]", "[\"amd64\", \"arm64\"]");
    stage.script.commit("changed", &[("pool.yaml", &changed), ("cutlist.yaml", SETTINGS)]);
    stage.restart();
    stage.run_for(900).await;
    let renamed = POOL.replace("name: default", "name: renamed");
    stage.script.commit("renamed", &[("pool.yaml", &renamed), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(900).await;
    let after = stage.snapshot();
    let of_before = |name: &Option<String>| before.node_pools.iter().any(|pool| pool.metadata.name == *name);
    let kept: Vec<_> = after.node_pools.iter().filter(|pool| of_before(&pool.metadata.name)).collect();
    assert_eq!(kept, before.node_pools.iter().collect::<Vec<_>>());
    let kept = before.node_claims.iter().filter(|claim| after.node_claims.iter().any(|other| other == *claim)).count();
    assert_eq!((kept, running(&stage) >= 4), (4, true));
    let said =
        |event: &Event| matches!(event, Event::CallFailed { error } if error.contains("of installation another"));
    assert!(stage.count(said) > 0);
}

/// Says of the pool and the class of this name that they are of an installation.
fn give(stage: &Stage, name: &str, installation: &str) {
    let ours = stage.snapshot();
    let (mut node_pools, mut node_classes) = (ours.node_pools.clone(), ours.node_classes);
    let note = |metadata: &mut ObjectMeta| {
        if metadata.name.as_deref() == Some(name) {
            let labels = metadata.labels.get_or_insert_default();
            labels.insert("cutlist.dev/installation".to_owned(), installation.to_owned());
        }
    };
    node_pools.iter_mut().for_each(|pool| note(&mut pool.metadata));
    node_classes.iter_mut().for_each(|class| note(&mut class.metadata));
    stage.world.with(|world| world.load(Snapshot { node_pools, node_classes, ..Snapshot::default() }));
}

/// A definition whose name another installation has is set aside alone: pods get nodes of the other pools. It comes back when nobody has it
/// any more.
#[tokio::test(start_paused = true)]
async fn a_definition_of_another_installation_keeps_no_pod_waiting() {
    let mut stage = with_four_nodes().await;
    let (pool, class) = POOL.split_once("---").unwrap();
    let pool = pool.replacen("name: default\n", "name: extra\n", 1).replace("name: default\n", "name: spare\n");
    let extra = format!("{pool}---{}", class.replacen("name: default\n", "name: spare\n", 1));
    let changed = POOL.replace("[\"amd64\"]", "[\"amd64\", \"arm64\"]");
    give(&stage, "default", "another");
    let theirs = stage.snapshot();
    stage.world.with(|world| world.scale("default/spread", 6));
    stage.script.commit("two", &[("pool.yaml", &changed), ("extra.yaml", &extra), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(900).await;
    let made = |stage: &Stage, pool: &str| {
        let is_its =
            |claim: &&NodeClaim| claim.metadata.labels.as_ref().is_some_and(|it| it["karpenter.sh/nodepool"] == pool);
        stage.snapshot().node_claims.iter().filter(is_its).count()
    };
    assert_eq!((made(&stage, "default"), made(&stage, "extra"), running(&stage)), (4, 2, 6));
    let default = |snapshot: &Snapshot| {
        let named = |name: &Option<String>| name.as_deref() == Some("default");
        let pool = snapshot.node_pools.iter().find(|pool| named(&pool.metadata.name)).cloned();
        (pool, snapshot.node_classes.iter().find(|class| named(&class.metadata.name)).cloned())
    };
    assert_eq!(default(&stage.snapshot()), default(&theirs), "nothing of it is touched");
    let noted = |event: &Event| {
        let Event::PlanPosted { plan, .. } = event else { return false };
        let about: Vec<&str> = plan
            .notes
            .iter()
            .filter(|it| it.code == NoteCode::OfAnotherInstallation)
            .map(|it| it.text.as_str())
            .collect();
        about.len() == 2 && about.iter().all(|text| text.contains("of installation another"))
    };
    assert!(stage.count(noted) > 0, "the plan says it of both");
    give(&stage, "default", "test");
    stage.script.wake();
    stage.run_for(900).await;
    let (pool, _) = default(&stage.snapshot());
    let values =
        pool.unwrap().spec.template.spec.requirements.iter().find(|it| it.key == "kubernetes.io/arch").cloned();
    assert_eq!(values.unwrap().values, ["amd64", "arm64"], "it is applied when nobody has it any more");
}

/// A pool of ours makes no node of a class that another installation put in the place of the one that was reviewed, and keeps its nodes.
#[tokio::test(start_paused = true)]
async fn no_node_is_made_of_a_class_of_another_installation() {
    let mut stage = with_four_nodes().await;
    let mut node_classes = stage.snapshot().node_classes.clone();
    node_classes.iter_mut().for_each(|class| {
        let labels = class.metadata.labels.get_or_insert_default();
        labels.insert("cutlist.dev/installation".to_owned(), "another".to_owned());
        class.spec.user_data = Some("theirs".to_owned());
    });
    stage.world.with(|world| world.load(Snapshot { node_classes, ..Snapshot::default() }));
    stage.world.with(|world| world.scale("default/spread", 6));
    stage.run_for(900).await;
    assert_eq!(running(&stage), 4, "two pods wait, and no node goes");
    assert_eq!(stage.snapshot().node_classes.first().unwrap().spec.user_data.as_deref(), Some("theirs"));
}
