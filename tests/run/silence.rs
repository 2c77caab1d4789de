//! EC2 takes calls and says nothing: pods are evicted and approvals heard all the same, and what comes of the calls is not lost.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use cutlist::adapters::aws::beside::Beside;
use cutlist::core::snapshot::Snapshot;
use cutlist::ports::{Clock, Cluster};
use serde_json::json;

use crate::stage::{FusedCloud, On, SETTINGS, Stage, without_pods};

/// One kind of action each.
const ACTIONS: [&str; 8] = [
    "CreateFleet",
    "DescribeInstanceStatus",
    "DescribeInstanceTypes",
    "DescribeInstances",
    "DescribeSubnets",
    "GetServiceQuota",
    "ReceiveMessage",
    "TerminateInstances",
];
/// Within so many seconds of a silence that goes on something is done.
const SOON: i64 = 15;
/// Of one with which a process begins: there is nothing to go by yet, and it is waited for a little longer.
const SOON_AT_FIRST: i64 = 40;

struct Silent {
    stage: Stage,
    controller: On<Beside<FusedCloud>>,
    calls: Pin<Box<dyn Future<Output = ()>>>,
}

impl Silent {
    /// A process that begins on this stage.
    fn of(stage: Stage) -> Self {
        stage.events.borrow_mut().clear();
        let (controller, calls) = stage.beside();
        Self { stage, controller, calls: Box::pin(calls) }
    }

    async fn look(&mut self) {
        tokio::select! {
            () = Box::pin(self.controller.pass()) => {}
            () = &mut self.calls => {}
        }
    }

    /// Runs until it is so, and says after how many seconds; no longer than that.
    async fn until(&mut self, seconds: i64, is_so: impl Fn(&Stage) -> bool) -> i64 {
        let began = self.stage.clock.now();
        let passed = |silent: &Self| silent.stage.clock.now().duration_since(began).as_secs();
        loop {
            self.look().await;
            if is_so(&self.stage) || passed(self) >= seconds {
                return passed(self);
            }
            tokio::select! {
                () = self.controller.wait() => {}
                () = &mut self.calls => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
    }

    async fn run_for(&mut self, seconds: i64) {
        self.until(seconds, |_| false).await;
    }
}

fn claims(stage: &Stage) -> usize {
    stage.snapshot().node_claims.len()
}

fn pods_of(snapshot: &Snapshot, app: &str) -> BTreeSet<String> {
    let is_of = |labels: &std::collections::BTreeMap<String, String>| labels.get("app").is_some_and(|it| it == app);
    snapshot.pods.iter().filter(|pod| is_of(&pod.metadata.labels)).map(|pod| pod.metadata.uid.clone()).collect()
}

/// Seconds until the pods of a node that goes are evicted, and until what an approval lets go is written.
async fn seconds_of(actions: &'static [&'static str], from_the_beginning: bool) -> (i64, i64) {
    let mut stage = Stage::new(&format!("{SETTINGS}  approval: {{ provision: manual }}\n"));
    stage.world.with(|world| world.load(without_pods(&["other"])));
    assert!(stage.settle().await);
    stage.scale(5);
    stage.run_for(20).await;
    let plan = stage.waiting().pop().unwrap();
    assert!(stage.controller.approve(&plan));
    assert!(stage.settle().await);
    assert_eq!((claims(&stage), stage.world.with(|world| world.pod_counts())), (1, (5, 0)));
    let leaving = stage.snapshot().node_claims[0].metadata.name.clone().unwrap();
    let before = pods_of(&stage.snapshot(), "web");
    let mut silent = Silent::of(stage);
    if from_the_beginning {
        silent.stage.fuse.hang(actions);
    } else {
        silent.run_for(90).await;
        silent.stage.fuse.hang(actions);
    }
    Cluster::delete_node_claim(&silent.stage.world.cluster(), &leaving, "").await.unwrap();
    let evicted = silent.until(600, |stage| pods_of(&stage.snapshot(), "web").is_disjoint(&before)).await;
    // Its pods want another node, which somebody approves.
    silent.until(60, |stage| !stage.waiting().is_empty()).await;
    silent.run_for(20).await;
    let plan = silent.stage.waiting().pop().unwrap();
    assert!(silent.controller.approve(&plan));
    let is_another =
        |stage: &Stage| stage.snapshot().node_claims.iter().any(|claim| claim.metadata.name.as_ref() != Some(&leaving));
    let approved = silent.until(600, is_another).await;
    // When EC2 answers again, all ends as it should.
    silent.stage.fuse.hang(&[]);
    silent.run_for(400).await;
    assert_eq!(silent.stage.world.with(|world| world.pod_counts()), (5, 0), "{actions:?}");
    silent.stage.assert_consistent(&format!("after {actions:?}"));
    (evicted, approved)
}

#[tokio::test(start_paused = true)]
async fn pods_are_evicted_and_approvals_heard_whatever_has_no_answer() {
    for action in &ACTIONS {
        let (evicted, approved) = Box::pin(seconds_of(std::slice::from_ref(action), false)).await;
        assert!(evicted <= SOON && approved <= SOON, "{action}: {evicted} {approved}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_evicted_and_approvals_heard_where_nothing_has_an_answer() {
    let (evicted, approved) = Box::pin(seconds_of(&ACTIONS, false)).await;
    assert!(evicted <= SOON && approved <= SOON, "{evicted} {approved}");
}

#[tokio::test(start_paused = true)]
async fn who_begins_while_ec2_is_silent_evicts_and_hears_as_well() {
    let (evicted, approved) = Box::pin(seconds_of(&ACTIONS, true)).await;
    assert!(evicted <= SOON_AT_FIRST && approved <= SOON, "{evicted} {approved}");
}

/// EC2 launches, and says so a minute later.
#[tokio::test(start_paused = true)]
async fn nothing_is_launched_twice_while_its_launch_is_under_way() {
    for is_deleted in [false, true] {
        let mut stage = Stage::new(SETTINGS);
        assert!(stage.settle().await);
        let mut silent = Silent::of(stage);
        silent.stage.fuse.hang(&["CreateFleet answered"]);
        silent.stage.scale(5);
        silent.until(60, |stage| claims(stage) == 1).await;
        silent.run_for(40).await;
        assert_eq!(silent.stage.launches.borrow().calls, 1, "it is asked for once");
        if is_deleted {
            let claim = silent.stage.snapshot().node_claims[0].metadata.name.clone().unwrap();
            Cluster::delete_node_claim(&silent.stage.world.cluster(), &claim, "").await.unwrap();
            silent.stage.scale(0);
            silent.run_for(20).await;
            assert_eq!(claims(&silent.stage), 1, "it stays for the instance that may come of it");
        }
        silent.stage.fuse.hang(&[]);
        silent.run_for(200).await;
        assert_eq!(claims(&silent.stage), usize::from(!is_deleted));
        silent.stage.assert_consistent("when the answer came");
    }
}

/// A spot instance is taken back two minutes after it is announced.
#[tokio::test(start_paused = true)]
async fn what_is_announced_is_heard_while_everything_else_is_silent() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.scale(5);
    assert!(stage.settle().await);
    let mut silent = Silent::of(stage);
    silent.run_for(30).await;
    let others: Vec<&'static str> = ACTIONS.into_iter().filter(|action| *action != "ReceiveMessage").collect();
    silent.stage.fuse.hang(&others);
    silent.run_for(20).await;
    let snapshot = silent.stage.snapshot();
    let id = snapshot.node_claims[0].status.as_ref().unwrap().provider_id.clone().unwrap();
    let instance = id.rsplit('/').next().unwrap();
    let body = json!({ "version": "0", "source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning",
        "detail": { "instance-id": instance, "instance-action": "terminate" } });
    silent.stage.world.with(|world| world.announce(body.to_string()));
    let is_noted = |stage: &Stage| {
        stage.count(|event| matches!(event, cutlist::controller::events::Event::Interrupted { .. })) > 0
    };
    let heard = silent.until(600, is_noted).await;
    assert!(heard <= 30, "{heard}");
}

/// A process that was frozen and thaws begins nothing.
#[tokio::test(start_paused = true)]
async fn who_leads_no_longer_launches_and_ends_nothing() {
    let mut stage = Stage::new(SETTINGS);
    assert!(stage.settle().await);
    stage.scale(5);
    assert!(stage.settle().await);
    let mut silent = Silent::of(stage);
    silent.run_for(30).await;
    silent.stage.fuse.lose_lease(true);
    silent.stage.scale(0);
    let (launched, running) =
        (silent.stage.launches.borrow().calls, silent.stage.world.with(|world| world.instances()).len());
    silent.run_for(300).await;
    silent.stage.scale(200);
    silent.run_for(300).await;
    assert_eq!(silent.stage.launches.borrow().calls, launched);
    assert_eq!(silent.stage.world.with(|world| world.instances()).len(), running);
}
