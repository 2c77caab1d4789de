//! Images that are locked in the repository: what is launched, what a change of the lock replaces, and what is not launched without one.

use std::collections::BTreeSet;

use cutlist::controller::events::Event;
use cutlist::core::plan::{CloudFactCode, Plan, ReasonCode, StepKind};

use crate::stage::{POOL, SETTINGS, Stage, apart};

const ONE: &str = "ami-00000000000000001";
const TWO: &str = "ami-00000000000000002";
/// EC2 is asked for the instances every two minutes.
const UNTIL_ASKED: u64 = 150;
const LOCKED_ONLY: &str = "  images: { requireLock: true }\n";

/// Any number of nodes may go at once, and each has room for one pod.
fn pool() -> String {
    let pool = POOL.replace(
        "consolidationPolicy: WhenEmptyOrUnderutilized\n    consolidateAfter: 30s\n",
        "consolidationPolicy: WhenEmpty\n    consolidateAfter: 1h\n    budgets: [{ nodes: \"100%\" }]\n",
    );
    assert!(pool != POOL);
    pool
}

fn lock(image: &str) -> String {
    format!(
        "apiVersion: cutlist.dev/v1alpha1\nkind: ImageLock\nspec:\n  nodeClasses:\n  - name: default\n    amiSelectorTerms:\n    - alias: \
         al2023@v20240807\n    images:\n    - id: {image}\n      requirements:\n      - {{ key: kubernetes.io/arch, operator: In, values: [amd64] }}\n"
    )
}

fn commit(stage: &Stage, id: &str, lock: Option<&str>, further_settings: &str) {
    let (pool, settings) = (pool(), format!("{SETTINGS}{further_settings}"));
    let mut files = vec![("pool.yaml", pool.as_str()), ("cutlist.yaml", settings.as_str())];
    files.extend(lock.map(|text| ("cutlist.lock", text)));
    stage.script.commit(id, &files);
}

async fn of_four_nodes(image: &str, further_settings: &str) -> Stage {
    let mut stage = Stage::new(SETTINGS);
    commit(&stage, "begin", Some(&lock(image)), further_settings);
    assert!(stage.settle().await);
    stage.world.with(|world| world.load(apart(4)));
    assert!(stage.settle().await);
    stage.run_for(UNTIL_ASKED).await;
    assert_eq!(images(&stage), [ONE; 4], "what is locked is launched");
    stage.events.borrow_mut().clear();
    stage
}

/// That of each instance.
fn images(stage: &Stage) -> Vec<String> {
    stage.world.with(|world| world.instances()).into_iter().map(|instance| instance.image_id).collect()
}

fn plans(stage: &Stage) -> Vec<Plan> {
    let events = stage.events.borrow();
    let plan = |event: &Event| match event {
        Event::PlanPosted { plan, .. } => Some(plan.as_ref().clone()),
        _ => None,
    };
    events.iter().filter_map(plan).collect()
}

fn removed(plan: &Plan) -> usize {
    plan.steps.iter().filter(|step| step.kind == StepKind::Remove).count()
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_lock_is_a_rollout() {
    let mut stage = of_four_nodes(ONE, "").await;
    commit(&stage, "two", Some(&lock(TWO)), "");
    assert!(stage.settle().await);
    let plans = plans(&stage);
    let of_image: Vec<_> = plans.iter().flat_map(|plan| &plan.cloud_facts).collect();
    let all = of_image.iter().find(|fact| fact.code == CloudFactCode::ImageReplacesNodes).expect("it is announced");
    assert_eq!((all.before.as_slice(), all.after.as_deref()), ([ONE.to_owned()].as_slice(), Some(TWO)));
    assert_eq!(all.replaces.values().sum::<usize>(), 4, "all of them, whatever the first plan removes");
    let removals: Vec<usize> = plans.iter().map(removed).filter(|count| *count > 0).collect();
    assert_eq!(removals, [1, 3], "one canary, then the others");
    let first = plans.iter().flat_map(|plan| &plan.steps).find(|step| step.kind == StepKind::Remove).unwrap();
    assert_eq!(
        first.reason.text,
        format!("AMIDrift: cutlist.lock has {TWO} for EC2NodeClass default, the node runs {ONE}")
    );
    let place = first.definition.as_ref().map(ToString::to_string);
    assert_eq!(place.as_deref(), Some("cutlist.lock:9"), "the line of the lock");
    assert_eq!(images(&stage), [TWO; 4]);
    stage.assert_consistent("after the rollout");
}

#[tokio::test(start_paused = true)]
async fn without_a_lock_that_is_asked_for_nothing_is_launched_and_no_node_goes() {
    let mut stage = of_four_nodes(ONE, LOCKED_ONLY).await;
    let before: BTreeSet<String> =
        stage.world.with(|world| world.instances()).into_iter().map(|it| it.provider_id).collect();
    commit(&stage, "unlocked", None, LOCKED_ONLY);
    stage.world.with(|world| world.load(apart(6)));
    stage.run_for(1_800).await;
    let now: BTreeSet<String> =
        stage.world.with(|world| world.instances()).into_iter().map(|it| it.provider_id).collect();
    assert_eq!(before, now);
    let waits = |plan: &Plan| {
        plan.pending.iter().flat_map(|it| &it.reasons).any(|reason| reason.code == ReasonCode::ImagesNotLocked)
    };
    assert!(plans(&stage).iter().any(waits), "it is said why");
    commit(&stage, "locked again", Some(&lock(ONE)), LOCKED_ONLY);
    assert!(stage.settle().await);
    assert_eq!(images(&stage), [ONE; 6]);
    stage.assert_consistent("after the lock came back");
}

/// Who approved one image did not approve another.
#[tokio::test(start_paused = true)]
async fn another_image_is_another_plan_to_approve() {
    let manual = "  approval: { disrupt: manual }\n";
    let mut stage = of_four_nodes(ONE, manual).await;
    commit(&stage, "two", Some(&lock(TWO)), manual);
    stage.run_for(60).await;
    let first = plans(&stage).last().expect("a plan that waits").clone();
    let three = "ami-00000000000000003";
    commit(&stage, "three", Some(&lock(three)), manual);
    stage.run_for(60).await;
    let second = plans(&stage).last().unwrap().clone();
    assert_ne!(first.id, second.id);
    assert!(!stage.controller.approve(&first.id), "the one that was shown first no longer waits");
    assert!(stage.controller.approve(&second.id));
    stage.run_for(600).await;
    assert!(images(&stage).contains(&three.to_owned()) && !images(&stage).contains(&TWO.to_owned()));
}
