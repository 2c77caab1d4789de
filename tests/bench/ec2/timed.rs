//! What passes in the time of this machine: how soon a pod that waits becomes a call of CreateFleet, and whether a long run keeps what it no
//! longer needs.

use std::time::{Duration, Instant};

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::{EmbeddedClock, EmbeddedWorld, WorldSettings};
use cutlist::api::node_claim::NodeClaim;
use cutlist::controller::{Journal, Mode};
use cutlist::core::catalog::Catalog;
use cutlist::ports::Cloud;

use crate::claims::{alternatives, claims, pass, provider_id};
use crate::controller::{apart, controller, definitions};
use crate::figures::Figure;
use crate::scene::{account, at, class, identity, run};

/// Pods that come one after the other.
const PODS: u32 = 20;
/// So that batches do not overlap, and the controller is at rest in between.
const APART: Duration = Duration::from_millis(2_500);
/// The settings' own: pods are waited for as long as others may come.
const WINDOW: Duration = Duration::from_secs(1);
const TARGET_PODS: &str = "p99 <= 200 ms plus the batch window (1 s)";
const TARGET_MEMORY: &str = "within 5 % after minute 10";
/// Instances that are launched and ended in a minute.
const A_MINUTE: usize = 50;

/// The whole controller, with a cluster in memory: from the pod to the call, in real time.
pub fn pending_pod_to_fleet() -> Figure {
    let account = account();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut waits: Vec<Duration> = runtime.block_on(async {
        let world = EmbeddedWorld::new(WorldSettings::new(0, at(0)), Catalog::built_in("us-east-1").unwrap());
        world.with(|world| world.load(apart(0)));
        let journal = Journal::new(|_, _| {});
        let mut controller = controller(&account, &world, definitions(None), Mode::Enforce, journal);
        let pods = async {
            // The first look asks for everything, and the first node needs its template.
            tokio::time::sleep(APART).await;
            assert!(world.with(|world| world.scale("default/web", 1)));
            let began = Instant::now();
            while account.fleets.fleets() == 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert!(began.elapsed() < Duration::from_secs(60), "no call for the first pod");
            }
            let mut waits = Vec::new();
            for number in 2..PODS + 2 {
                tokio::time::sleep(APART).await;
                let before = account.fleets.fleets();
                let came = tokio::time::Instant::now();
                assert!(world.with(|world| world.scale("default/web", number)));
                while account.fleets.fleets() == before {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    assert!(came.elapsed() < Duration::from_secs(30), "no call for the pod");
                }
                waits.push(account.fleets.last_at().unwrap().duration_since(came));
            }
            waits
        };
        tokio::select! {
            () = controller.run() => panic!("the controller has stopped"),
            waits = pods => waits,
        }
    });
    waits.sort_unstable();
    let (median, worst) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    let found = format!("median {} ms, worst of {PODS} {} ms", median.as_millis(), worst.as_millis());
    Figure {
        scenario: "pending pod to CreateFleet, warm".to_owned(),
        target: TARGET_PODS,
        found,
        is_met: worst <= Duration::from_millis(200) + WINDOW,
    }
}

/// In virtual time; memory is that of the process.
pub fn memory_of_an_hour() -> Figure {
    let began = Instant::now();
    let (early, late) = run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let settings = Settings { identity: identity(), queue: None, may_write: true, tries_launches: false };
        let cloud = AwsCloud::new(&account, clock.clone(), settings);
        let class = class();
        let offerings = alternatives(&["m5.large a on-demand", "m5.large b on-demand"]);
        let mut early = 0.0;
        for minute in 0..60 {
            cloud.catalog().await.unwrap();
            cloud.describe(&class).await.unwrap();
            let mut launched: Vec<NodeClaim> = Vec::new();
            for launch in 0..5 {
                let mut claims = claims(&format!("pool-{minute}-{launch}"), A_MINUTE / 5);
                let failures = pass(&cloud, &class, &mut claims, &offerings, A_MINUTE).await;
                assert!(failures.is_empty(), "{failures:?}");
                launched.extend(claims);
            }
            cloud.instances().await.unwrap();
            cloud.messages().await.unwrap();
            cloud.failing().await.unwrap();
            for claim in &launched {
                cloud.terminate(provider_id(claim).unwrap()).await.unwrap();
            }
            let _said = (cloud.vcpu_quotas().await, cloud.notes().await, cloud.denied().await);
            // What the account remembers is not what is measured.
            account.fleets.instances.borrow_mut().retain(|(instance, _)| !instance.state.is_ended());
            account.fleets.tokens.borrow_mut().clear();
            account.take_calls();
            tokio::time::sleep(Duration::from_secs(60)).await;
            if minute == 10 {
                early = resident();
            }
        }
        (early, resident())
    });
    let growth = (late / early - 1.0) * 100.0;
    let found = format!(
        "{early:.1} MiB after minute 10, {late:.1} MiB after an hour ({growth:+.1} %), {} instances in {:.0} s",
        A_MINUTE * 60,
        began.elapsed().as_secs_f64()
    );
    Figure { scenario: "an hour of launches and ends".to_owned(), target: TARGET_MEMORY, found, is_met: growth <= 5.0 }
}

/// Mebibytes that the process has in memory.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kibibytes.unwrap_or_default() / 1024.0
}
