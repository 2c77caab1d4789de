//! Pods that leave while PodDisruptionBudgets of every form look on: the controller comes to rest, and makes no storm of calls meanwhile.

use cutlist::core::snapshot::Snapshot;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::stage::{POOL, SETTINGS, Stage, without_pods};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// How many looks may begin within a number of seconds.
fn looks_max(seconds: i64) -> i64 {
    200 + 20 * seconds + 1
}

/// A budget over the pods of one Deployment, or over all.
#[derive(Clone, Debug)]
struct Budget {
    of: Option<usize>,
    limit: Value,
    always_allows_unhealthy: bool,
}

/// What is moved, and why.
#[derive(Clone, Debug)]
struct Play {
    /// Pods of each Deployment at first, and how many of them go then.
    replicas: Vec<(u32, u32)>,
    budgets: Vec<Budget>,
    /// The pool changes too: every node is replaced.
    drifts: bool,
}

fn plays() -> impl Strategy<Value = Play> {
    let limit = prop_oneof![
        (0..3).prop_map(|pods| json!({ "maxUnavailable": pods })),
        (0..100).prop_map(|percent| json!({ "maxUnavailable": format!("{percent}%") })),
        (0..5).prop_map(|pods| json!({ "minAvailable": pods })),
        (0..=100).prop_map(|percent| json!({ "minAvailable": format!("{percent}%") })),
    ];
    let budget = (prop_oneof![3 => (0..NAMES.len()).prop_map(Some), 1 => Just(None)], limit, any::<bool>());
    let budget = budget.prop_map(|(of, limit, always_allows_unhealthy)| Budget { of, limit, always_allows_unhealthy });
    let replicas = vec((1..6_u32, 0..4_u32), 1..=NAMES.len());
    (replicas, vec(budget, 1..4), any::<bool>()).prop_map(|(replicas, budgets, drifts)| Play {
        replicas,
        budgets,
        drifts,
    })
}

fn pod_disruption_budget(number: usize, budget: &Budget) -> PodDisruptionBudget {
    let selector = budget.of.map_or(json!({}), |of| json!({ "matchLabels": { "app": NAMES[of] } }));
    let mut object = json!({
        "metadata": { "name": format!("budget-{number}"), "namespace": "default" },
        "spec": budget.limit,
    });
    object["spec"]["selector"] = selector;
    if budget.always_allows_unhealthy {
        object["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
    }
    serde_json::from_value(object).unwrap()
}

/// What was counted while the world went on.
#[derive(Debug, Default)]
struct Counts {
    looks: i64,
    calls: usize,
    settled: bool,
}

/// Plays until nothing moves, for so many seconds at most.
async fn play_on(stage: &mut Stage, seconds: i64) -> Counts {
    let mut counts = Counts::default();
    let (began, calls) = (now(stage), stage.fuse.calls());
    while now(stage).duration_since(began) < SignedDuration::from_secs(seconds) && !counts.settled {
        stage.controller.pass().await;
        counts.looks += 1;
        let passed = now(stage).duration_since(began).as_secs();
        assert!(counts.looks <= looks_max(passed + 1), "{} looks in {passed} s", counts.looks);
        counts.settled = stage.controller.is_settled() && stage.world.with(|world| world.is_still());
        stage.controller.wait().await;
    }
    counts.calls = stage.fuse.calls() - calls;
    counts
}

fn now(stage: &Stage) -> Timestamp {
    cutlist::ports::Clock::now(&stage.world.clock())
}

/// Pods of nodes that are on their way out.
fn leaving(snapshot: &Snapshot) -> usize {
    let claims = snapshot.node_claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_some());
    let nodes: Vec<_> = claims.filter_map(|claim| claim.status.as_ref()?.node_name.clone()).collect();
    snapshot.pods.iter().filter(|pod| pod.spec.node_name.as_ref().is_some_and(|node| nodes.contains(node))).count()
}

async fn comes_to_rest(play: &Play) {
    let mut stage = Stage::new(SETTINGS);
    let budgets = play.budgets.iter().enumerate().map(|(number, budget)| pod_disruption_budget(number, budget));
    let objects = Snapshot { pod_disruption_budgets: budgets.collect::<Vec<_>>().into(), ..without_pods(&NAMES) };
    stage.world.with(|world| world.load(objects));
    let scale = |stage: &Stage, name: &str, replicas| {
        assert!(stage.world.with(|world| world.scale(&format!("default/{name}"), replicas)));
    };
    for (name, (before, _)) in NAMES.iter().zip(&play.replicas) {
        scale(&stage, name, *before);
        assert!(play_on(&mut stage, 3_600).await.settled, "pods come");
    }
    for (name, (before, fewer)) in NAMES.iter().zip(&play.replicas) {
        scale(&stage, name, before.saturating_sub(*fewer));
    }
    if play.drifts {
        let changed =
            POOL.replace("  template:\n", "  template:\n    metadata:\n      labels: { generation: second }\n");
        assert_ne!(changed, POOL);
        stage.script.commit("revision-2", &[("pool.yaml", &changed), ("cutlist.yaml", SETTINGS)]);
    }
    let moved = play_on(&mut stage, 3_600).await;
    if moved.settled {
        return;
    }
    // What is left waits for a budget that allows nothing, or for two, and will do so for ever.
    let waiting = leaving(&stage.snapshot());
    assert!(waiting > 0, "it neither settles nor waits for a budget: {:?}", stage.snapshot().node_claims.len());
    let blocked = play_on(&mut stage, 300).await;
    assert_eq!(leaving(&stage.snapshot()), waiting, "no pod went in the last five minutes");
    assert!(blocked.calls <= 150, "{} calls in five minutes while budgets allow nothing", blocked.calls);
    assert!(blocked.looks <= 300, "{} looks in five minutes while budgets allow nothing", blocked.looks);
}

fn play(play: &Play) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(comes_to_rest(play));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_budgets_let_the_controller_come_to_rest(it in plays()) {
        play(&it);
    }
}

/// What never ended before: turns of nodes went round in circles at one moment, since no pod of any node was allowed to leave.
#[test]
fn three_nodes_behind_one_budget() {
    let budget = Budget { of: None, limit: json!({ "maxUnavailable": 1 }), always_allows_unhealthy: false };
    play(&Play { replicas: vec![(3, 0), (3, 0), (3, 0)], budgets: vec![budget], drifts: true });
}

/// Whatever asks for a look all the time gets as many as time passes, not as many as the machine can make.
#[tokio::test(start_paused = true)]
async fn looks_are_limited_whatever_asks_for_them() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.fuse.always_changed(true);
    let began = now(&stage);
    let mut looks = 0;
    while now(&stage).duration_since(began) < SignedDuration::from_secs(60) {
        stage.controller.pass().await;
        looks += 1;
        assert!(looks <= looks_max(60), "time does not pass");
        stage.controller.wait().await;
    }
    assert!(stage.controller.unsettled_since().is_some());
}
