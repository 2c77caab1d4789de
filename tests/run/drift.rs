//! What EC2 says of instances, against what their class selects.

use cutlist::api::ec2_node_class::SecurityGroup;
use cutlist::api::node_claim::NodeClaim;
use cutlist::controller::events::Event;
use cutlist::core::plan::{NoteCode, Plan, StepKind};

use crate::stage::{POOL, SETTINGS, Stage, apart};

const ONE: &str = "sg-00000000000000001";
const TWO: &str = "sg-00000000000000002";
const OTHERS: &str = "sg-00000000000000009";
/// EC2 is asked for the instances every two minutes.
const UNTIL_ASKED: u64 = 150;
const LONG: u64 = 1_800;

/// Any number of nodes may go at once, and each has room for one pod; their class names these groups.
fn pool(groups: &[&str]) -> String {
    let pool = POOL.replace(
        "consolidationPolicy: WhenEmptyOrUnderutilized\n    consolidateAfter: 30s\n",
        "consolidationPolicy: WhenEmpty\n    consolidateAfter: 1h\n    budgets: [{ nodes: \"100%\" }]\n",
    );
    let terms: String = groups.iter().map(|id| format!("    - id: {id}\n")).collect();
    let by_tag = "  securityGroupSelectorTerms:\n    - tags:\n        karpenter.sh/discovery: test\n";
    let changed = pool.replace(by_tag, &format!("  securityGroupSelectorTerms:\n{terms}"));
    assert!(pool != POOL && changed != pool);
    changed
}

/// The class is there before anything is launched with it; nothing has been said yet.
async fn of_four_nodes(pool: &str) -> Stage {
    let mut stage = Stage::new(SETTINGS);
    stage.script.commit("begin", &[("pool.yaml", pool), ("cutlist.yaml", SETTINGS)]);
    assert!(stage.settle().await);
    stage.world.with(|world| world.load(apart(4)));
    assert!(stage.settle().await);
    assert_eq!(stage.snapshot().nodes.len(), 4);
    stage.events.borrow_mut().clear();
    stage
}

/// For each plan that was posted and removes nodes, why it removes each.
fn removals(stage: &Stage) -> Vec<Vec<String>> {
    let events = stage.events.borrow();
    let of_plan = |plan: &Plan| {
        let removed = plan.steps.iter().filter(|step| step.kind == StepKind::Remove);
        removed.map(|step| step.reason.text.clone()).collect::<Vec<_>>()
    };
    let plans = events.iter().filter_map(|event| match event {
        Event::PlanPosted { plan, .. } => Some(of_plan(plan)),
        _ => None,
    });
    plans.filter(|removed| !removed.is_empty()).collect()
}

/// The groups of each instance.
fn groups(stage: &Stage) -> Vec<Vec<String>> {
    let instances = stage.world.with(|world| world.instances());
    instances.into_iter().map(|it| it.security_groups.into_iter().map(|group| group.id).collect()).collect()
}

fn attach(stage: &Stage, groups: &[&str]) {
    let first = stage.world.with(|world| world.instances())[0].provider_id.clone();
    let groups = groups.iter().map(|id| SecurityGroup { id: (*id).to_owned(), name: None }).collect();
    assert!(stage.world.with(|world| world.set_security_groups(&first, groups)));
}

fn is_marked(claim: &NodeClaim) -> bool {
    claim.condition("Drifted").is_some_and(|it| it.status == "True" && it.reason == "SecurityGroupDrift")
}

#[tokio::test(start_paused = true)]
async fn a_group_that_a_commit_adds_reaches_every_node_by_turns() {
    let mut stage = of_four_nodes(&pool(&[ONE])).await;
    stage.run_for(UNTIL_ASKED).await;
    assert_eq!((groups(&stage), removals(&stage).len()), (vec![vec![ONE.to_owned()]; 4], 0));
    stage.script.commit("two", &[("pool.yaml", &pool(&[ONE, TWO])), ("cutlist.yaml", SETTINGS)]);
    let mut marked = 0;
    let watch =
        |stage: &Stage| marked = marked.max(stage.snapshot().node_claims.iter().filter(|it| is_marked(it)).count());
    assert!(stage.settle_watched(watch).await);
    assert_eq!(marked, 4, "each claim says so");
    let removals = removals(&stage);
    assert_eq!(removals.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3], "one canary, then the others");
    let why = format!("SecurityGroupDrift: EC2NodeClass default selects {TWO}, which the node lacks");
    assert!(removals.iter().flatten().all(|text| *text == why), "{removals:?}");
    assert_eq!(groups(&stage), vec![vec![ONE.to_owned(), TWO.to_owned()]; 4]);
    stage.assert_consistent("after the rollout");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_somebody_attached_is_named_and_drift_only_where_it_is_to_be() {
    let mut stage = of_four_nodes(&pool(&[ONE])).await;
    attach(&stage, &[ONE, OTHERS]);
    stage.run_for(LONG).await;
    assert_eq!(removals(&stage).len(), 0);
    // The next plan that is posted names it.
    let other = format!("{SETTINGS}  batch: {{ idle: 2s }}\n");
    stage.script.commit("other", &[("pool.yaml", &pool(&[ONE])), ("cutlist.yaml", &other)]);
    assert!(stage.settle().await);
    assert_eq!(removals(&stage).len(), 0);
    let named = |event: &Event| {
        let Event::PlanPosted { plan, .. } = event else { return false };
        let mut of_groups = plan.notes.iter().filter(|note| note.code == NoteCode::ExtraSecurityGroups);
        of_groups.any(|note| note.text.contains("1 node has security groups") && note.text.contains(OTHERS))
    };
    assert!(stage.count(named) > 0);
    let strict = format!("{SETTINGS}  disruption: {{ extraSecurityGroupsDrift: true }}\n");
    stage.script.commit("strict", &[("pool.yaml", &pool(&[ONE])), ("cutlist.yaml", &strict)]);
    assert!(stage.settle().await);
    let why = format!("SecurityGroupDrift: the node has {OTHERS}, which EC2NodeClass default does not select");
    assert_eq!(removals(&stage), [[why]]);
    assert_eq!(groups(&stage), vec![vec![ONE.to_owned()]; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_somebody_detached_is_missed_once_that_is_seen() {
    let mut stage = of_four_nodes(&pool(&[ONE, TWO])).await;
    stage.run_for(UNTIL_ASKED).await;
    attach(&stage, &[TWO]);
    stage.run_for(LONG).await;
    let why = format!("SecurityGroupDrift: EC2NodeClass default selects {ONE}, which the node lacks");
    assert_eq!(removals(&stage), [[why]]);
    assert_eq!(groups(&stage), vec![vec![ONE.to_owned(), TWO.to_owned()]; 4]);
}
