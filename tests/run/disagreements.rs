//! Planner and kube-scheduler disagree for reasons that the planner can not know: what is bought in vain stays bounded, and whoever looks
//! finds out why.

use std::fmt::Write;

use cutlist::adapters::embedded::Disagreement;
use cutlist::api::keys;
use cutlist::controller::events::Event;
use cutlist::core::inputs::Inputs;
use cutlist::core::plan::NoteCode;
use cutlist::core::plan::{Plan, ReasonCode};
use cutlist::core::planner::decide;
use cutlist::core::snapshot::Snapshot;
use cutlist::ports::Cluster;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner, contextualize_config};
use serde_json::json;

use crate::stage::{POOL, SETTINGS, Stage};

/// A story takes some seconds without optimisation.
const STORIES: u32 = 12;
const MINUTE: u64 = 60;
/// Waits of 1, 2, 4, 8, 16 and 32 minutes, and the first attempt.
const ATTEMPTS_IN_AN_HOUR: usize = 7;
const INTENT: &str = "example.com/intent";

/// Deployments `d0`, `d1` and so on without pods, which ask for the label that nodes of the pool have and for some storage.
fn deployments(count: usize) -> Snapshot {
    let deployment = |number: usize| {
        let name = format!("d{number}");
        let requests = json!({"cpu": "1", "memory": format!("{}Mi", 512 + number), "ephemeral-storage": "1Gi"});
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "nodeSelector": {INTENT: "apps"},
                    "containers": [{"name": "main", "resources": {"requests": requests}}],
                },
            }},
        }))
    };
    let deployments: Vec<_> = (0..count).map(|number| deployment(number).unwrap()).collect();
    Snapshot { deployments: deployments.into(), ..Snapshot::default() }
}

/// The pool with a label that its pods ask for, without a limit that would end what should end by itself.
fn pool(consolidate_after: &str) -> String {
    let labelled =
        POOL.replacen("    spec:\n", &format!("    metadata:\n      labels:\n        {INTENT}: apps\n    spec:\n"), 1);
    let pool = labelled.replace("consolidateAfter: 30s", &format!("consolidateAfter: {consolidate_after}"));
    let pool = pool.replace("cpu: \"100\"", "cpu: \"100000\"");
    assert!(pool != POOL && pool.contains(INTENT));
    pool
}

async fn stage(consolidate_after: &str, count: usize, disagreement: Option<Disagreement>) -> Stage {
    let mut stage = Stage::new(SETTINGS);
    stage.script.commit("begin", &[("pool.yaml", &pool(consolidate_after)), ("cutlist.yaml", SETTINGS)]);
    stage.world.with(|world| world.load(deployments(count)));
    assert!(stage.settle().await);
    stage.world.with(|world| world.disagree("default", disagreement));
    stage
}

fn scale(stage: &Stage, number: usize, replicas: u32) {
    assert!(stage.world.with(|world| world.scale(&format!("default/d{number}"), replicas)));
}

fn bought(stage: &Stage) -> usize {
    stage.count(|event| matches!(event, Event::CreatedNodeClaim { .. }))
}

fn posted(stage: &Stage) -> Vec<Plan> {
    let events = stage.events.borrow();
    let plans = events.iter().filter_map(|event| match event {
        Event::PlanPosted { plan, .. } => Some(plan.as_ref().clone()),
        _ => None,
    });
    plans.collect()
}

/// Why nodes were refused, as it was said.
fn said(stage: &Stage) -> Vec<String> {
    let events = stage.events.borrow();
    let said = events.iter().filter_map(|event| match event {
        Event::NodeRefused { refused } => Some(format!("{} {:?} {}", refused.attempts, refused.filters, refused.text)),
        _ => None,
    });
    said.collect()
}

fn waiting(stage: &Stage) -> usize {
    stage.world.with(|world| world.pod_counts().1)
}

async fn in_an_hour(disagreement: Disagreement) -> (Stage, usize) {
    let mut stage = stage("30s", 1, Some(disagreement)).await;
    scale(&stage, 0, 3);
    stage.run_for(60 * MINUTE).await;
    let bought = bought(&stage);
    assert_eq!(waiting(&stage), 3);
    assert!((3..=ATTEMPTS_IN_AN_HOUR).contains(&bought), "{bought}: {:#?}", said(&stage));
    (stage, bought)
}

#[tokio::test(start_paused = true)]
async fn a_label_that_new_nodes_lack_is_bought_ever_more_seldom() {
    let (mut stage, bought_before) = in_an_hour(Disagreement::LacksLabel(INTENT.to_owned())).await;
    let said_before = said(&stage);
    assert_eq!(said_before.len(), bought_before, "each is said once: {said_before:#?}");
    assert!(said_before[1].starts_with("2 [\"NodeAffinity\"] NodeAffinity: "), "{said_before:?}");
    let last = posted(&stage).pop().unwrap();
    let reason = &last.pending[0].reasons[0];
    assert_eq!((reason.code, last.pending[0].pods.len()), (ReasonCode::RefusedByScheduler, 3), "{:?}", last.pending);
    assert!(reason.text.contains("NodeAffinity"), "{}", reason.text);
    assert!(last.notes.iter().any(|note| note.code == NoteCode::RefusedByScheduler), "{:?}", last.notes);

    // Another process goes on where the last one was, though the empty nodes are gone and the pods have other names.
    assert!(stage.snapshot().nodes.is_empty());
    for pod in &stage.snapshot().pods {
        stage.world.cluster().delete_pod("default", &pod.metadata.name, "", 0).await.unwrap();
    }
    stage.restart();
    stage.run_for(5 * MINUTE).await;
    assert_eq!((bought(&stage), said(&stage)), (bought_before, said_before));

    // Once all is well the next attempt succeeds, and what is left follows at once.
    stage.world.with(|world| world.disagree("default", None));
    stage.run_for(60 * MINUTE).await;
    assert_eq!(waiting(&stage), 0);
    assert!(bought(&stage) <= bought_before + 3);
    stage.assert_consistent("at the end");
}

#[tokio::test(start_paused = true)]
async fn a_taint_that_nobody_told_of_is_named() {
    let (stage, _) = in_an_hour(Disagreement::Taint("example.com/quarantine".to_owned())).await;
    let said = said(&stage);
    assert!(said[0].contains("TaintToleration") && said[0].contains("example.com/quarantine"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_offers_less_than_it_was_to_is_named() {
    for resource in ["cpu", "ephemeral-storage"] {
        let (stage, _) = in_an_hour(Disagreement::Offers { resource: resource.to_owned(), percent: 0 }).await;
        let said = said(&stage);
        assert!(said[0].contains("NodeResourcesFit") && said[0].contains(resource), "{said:?}");
    }
}

/// What only kube-scheduler knows is told by what it says itself.
#[tokio::test(start_paused = true)]
async fn a_plugin_of_kube_scheduler_is_named() {
    let (stage, _) = in_an_hour(Disagreement::Plugin("Licences".to_owned())).await;
    let said = said(&stage);
    assert!(said[0].starts_with("1 [\"Licences\"]"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_pool_is_tried_at_once() {
    let (mut stage, bought_before) = in_an_hour(Disagreement::LacksLabel(INTENT.to_owned())).await;
    stage.world.with(|world| world.disagree("default", None));
    let mended = pool("30s")
        .replace("intent: apps", "intent: other-apps")
        .replace("example.com/intent: other-apps", "example.com/intent: apps");
    assert_ne!(mended, pool("30s"));
    stage.script.commit("mended", &[("pool.yaml", &mended), ("cutlist.yaml", SETTINGS)]);
    stage.run_for(3 * MINUTE).await;
    assert_eq!(waiting(&stage), 0);
    assert!(bought(&stage) <= bought_before + 2);
}

/// What happens in a world where something is not as it should be.
#[derive(Clone, Debug)]
struct Story {
    disagreement: Disagreement,
    consolidate_after: &'static str,
    deployments: usize,
    /// Minute, and what happens then.
    happenings: Vec<(u64, Happening)>,
}

#[derive(Clone, Debug)]
enum Happening {
    Scale { deployment: usize, replicas: u32 },
    PodsAreMadeAnew,
    Restart,
}

fn stories() -> impl Strategy<Value = Story> {
    let disagreement = prop_oneof![
        Just(Disagreement::LacksLabel(INTENT.to_owned())),
        Just(Disagreement::Taint("example.com/quarantine".to_owned())),
        (0..70u8).prop_map(|percent| Disagreement::Offers { resource: "cpu".to_owned(), percent }),
        (0..2u8).prop_map(|percent| Disagreement::Offers { resource: "ephemeral-storage".to_owned(), percent }),
        Just(Disagreement::Plugin("Licences".to_owned())),
    ];
    let happening = prop_oneof![
        2 => (0..3usize, 0..14u32).prop_map(|(deployment, replicas)| Happening::Scale { deployment, replicas }),
        1 => Just(Happening::PodsAreMadeAnew),
        1 => Just(Happening::Restart),
    ];
    let happenings = proptest::collection::vec((0..60u64, happening), 0..6);
    let after = prop_oneof![Just("0s"), Just("30s"), Just("10m"), Just("Never")];
    (disagreement, after, 1..4usize, happenings, any::<bool>()).prop_map(
        |(disagreement, consolidate_after, deployments, mut happenings, at_once)| {
            happenings.sort_by_key(|(minute, _)| *minute);
            let begin = (0..deployments).map(|deployment| (0, Happening::Scale { deployment, replicas: 7 }));
            let begin = begin.take(if at_once { deployments } else { 1 });
            let happenings = begin.chain(happenings).collect();
            Story { disagreement, consolidate_after, deployments, happenings }
        },
    )
}

/// How many nodes are bought, calls made, and plans posted in an hour and a half.
async fn play(story: &Story, disagreement: Option<Disagreement>) -> (usize, usize, usize) {
    let mut stage = stage(story.consolidate_after, story.deployments, disagreement).await;
    let mut minute = 0;
    for (at, happening) in &story.happenings {
        stage.run_for((at - minute) * MINUTE + 5).await;
        minute = *at;
        match happening {
            Happening::Scale { deployment, replicas } => scale(&stage, deployment % story.deployments, *replicas),
            Happening::PodsAreMadeAnew => {
                for pod in stage.snapshot().pods.iter().filter(|pod| pod.spec.node_name.is_none()) {
                    stage.world.cluster().delete_pod("default", &pod.metadata.name, "", 0).await.unwrap();
                }
            }
            Happening::Restart => stage.restart(),
        }
    }
    stage.run_for((90 - minute) * MINUTE).await;
    (bought(&stage), stage.fuse.calls(), posted(&stage).len())
}

fn stays_bounded(story: &Story) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (needed, ..) = runtime.block_on(play(story, None));
    let (bought, calls, posts) = runtime.block_on(play(story, Some(story.disagreement.clone())));
    // Half an hour more is the half of a wait more.
    let attempts = story.deployments * (ATTEMPTS_IN_AN_HOUR + 1);
    let mut wrong = String::new();
    if bought > 2 * needed.max(1) + attempts {
        let _ = write!(wrong, "{bought} nodes were bought, where {needed} are needed; ");
    }
    // A pod with a place is told to kube-scheduler at each look, for as long as its node may yet get it.
    if calls > 3000 + 60 * bought {
        let _ = write!(wrong, "{calls} calls for {bought} nodes; ");
    }
    if posts > 60 + 8 * bought {
        let _ = write!(wrong, "{posts} plans for {bought} nodes; ");
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

#[test]
fn what_is_bought_in_vain_is_bounded_in_every_story() {
    let fixed = Config { cases: STORIES, rng_seed: RngSeed::Fixed(1), max_shrink_iters: 20, ..Config::default() };
    let mut runner = TestRunner::new(contextualize_config(fixed));
    let played = runner.run(&stories(), |story| stays_bounded(&story).map_err(TestCaseError::fail));
    if let Err(failure) = played {
        panic!("{failure}");
    }
}

/// Plans as if nobody could tell which nodes were bought in vain: without the time at which they were.
fn decide_without_guard(inputs: &Inputs<'_>) -> Plan {
    let mut snapshot = inputs.snapshot.clone();
    let claims: Vec<_> = snapshot.node_claims.iter().cloned().collect();
    let hidden = claims.into_iter().map(|mut claim| {
        claim.metadata.creation_timestamp = None;
        claim
    });
    snapshot.node_claims = hidden.collect::<Vec<_>>().into();
    decide(&Inputs { snapshot: &snapshot, ..inputs.clone() })
}

/// What the stories hold would not hold by itself.
#[tokio::test(start_paused = true)]
async fn without_the_guard_nodes_are_bought_without_end() {
    let mut stage = stage("30s", 1, Some(Disagreement::LacksLabel(INTENT.to_owned()))).await;
    stage.restart_with(decide_without_guard);
    scale(&stage, 0, 3);
    stage.run_for(20 * MINUTE).await;
    assert!(bought(&stage) > 2 + 2 * ATTEMPTS_IN_AN_HOUR, "{}", bought(&stage));
    assert!(said(&stage).is_empty());
}

/// The note does not pile up: what is over is forgotten.
#[tokio::test(start_paused = true)]
async fn what_is_over_is_forgotten() {
    let (mut stage, _) = in_an_hour(Disagreement::LacksLabel(INTENT.to_owned())).await;
    let noted = |stage: &Stage| {
        let snapshot = stage.snapshot();
        let pool = snapshot.node_pools.iter().next().unwrap();
        pool.metadata.annotations.as_ref().and_then(|it| it.get(keys::REFUSED_NODES)).cloned().unwrap()
    };
    assert_eq!(noted(&stage).matches("\"need\"").count(), 1);
    scale(&stage, 0, 0);
    stage.run_for(180 * MINUTE).await;
    scale(&stage, 0, 1);
    stage.run_for(150).await;
    assert!(
        noted(&stage).contains("\"count\":1") && noted(&stage).matches("\"need\"").count() == 1,
        "{}",
        noted(&stage)
    );
}
