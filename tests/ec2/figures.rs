//! What launches, looks and templates cost, in calls and in virtual time, on accounts that lose answers, refuse, and show things late. Each
//! figure has a bound, which is a test here; `make bench-ec2` writes the whole table.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::node_claim::NodeClaim;
use cutlist::ports::{Cloud, PortErrorKind};
use futures::future::join_all;
use serde_json::json;

use super::account::Account;
use super::claims::{alternatives, claims, pass, provider_id};
use super::random::Random;
use super::scene::{account, class, run};
use super::{at, identity};

type Process<'a> = AwsCloud<&'a Account, EmbeddedClock>;

const ON_DEMAND: [&str; 2] = ["m5.large a on-demand", "m5.large b on-demand"];
const SPOT_FIRST: [&str; 3] = ["m5.large a spot", "m6i.large a spot", "m5.large b on-demand"];

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Figure {
    pub scenario: String,
    pub target: &'static str,
    pub found: String,
    pub is_met: bool,
}

impl Figure {
    fn new(scenario: impl Into<String>, target: &'static str, found: String, is_met: bool) -> Self {
        Self { scenario: scenario.into(), target, found, is_met }
    }
}

/// All of them, in the order of the table. `failed`: launches that fail, of which many take minutes.
pub fn all(failed: usize) -> Vec<Figure> {
    vec![
        thousand_claims(),
        thousand_claims_with_losses_and_kills(34),
        throttled(),
        cold_templates(),
        failed_launches(failed),
        stale_profiles(),
        idle_calls(),
    ]
}

fn process<'a>(account: &'a Account, clock: &EmbeddedClock) -> Process<'a> {
    let queue = Some("demo".to_owned());
    AwsCloud::new(
        account,
        clock.clone(),
        Settings { identity: identity(), queue, may_write: true, tries_launches: false },
    )
}

/// Four pools, of which each plans the same number of nodes.
fn four_pools(each: usize) -> Vec<Vec<NodeClaim>> {
    ["a", "b", "c", "d"].map(|launch| claims(launch, each)).into()
}

/// Instances that run and that no claim has; claims that have the same one.
fn unpaired(account: &Account, claims: &[NodeClaim]) -> (usize, usize) {
    let of_claims: Vec<String> =
        claims.iter().filter_map(provider_id).map(|id| id.rsplit('/').next().unwrap().to_owned()).collect();
    let different: BTreeSet<&String> = of_claims.iter().collect();
    let running = account.fleets.running();
    let orphans = running.iter().filter(|it| !different.contains(&it.id)).count();
    (orphans, of_claims.len() - different.len())
}

fn thousand_claims() -> Figure {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.fleets.latency.set(Duration::from_millis(100));
        let cloud = process(&account, &clock);
        let class = class();
        cloud.describe(&class).await.unwrap();
        let mut launches = four_pools(250);
        let began = tokio::time::Instant::now();
        let offerings = alternatives(&ON_DEMAND);
        let passes = launches.iter_mut().map(|claims| pass(&cloud, &class, claims, &offerings, 250));
        assert!(join_all(passes).await.iter().all(Vec::is_empty));
        let last = account.fleets.last_at().unwrap().duration_since(began);
        let all = launches.concat();
        let (orphans, doubles) = unpaired(&account, &all);
        let (calls, instances) = (account.fleets.fleets(), account.fleets.running().len());
        let is_met = calls <= 8 && (orphans, doubles, instances) == (0, 0, 1_000) && last <= Duration::from_secs(1);
        let found = format!(
            "{calls} calls, {} duplicates, the last {} ms after the plan (100 ms a call)",
            orphans + doubles,
            last.as_millis()
        );
        let target = "<= 8 CreateFleet calls, 0 duplicates, last call <= 1 s after the plan";
        Figure::new("1,000 claims of 4 pools at once", target, found, is_met)
    })
}

/// Each twentieth answer of CreateFleet is lost, a process dies at 20 of its calls, before or after EC2 has done what it asked for, and what it
/// had written by then is any part of it; instances are shown late.
pub fn thousand_claims_with_losses_and_kills(seed: u64) -> Figure {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let mut random = Random::new(seed);
        account.fleets.latency.set(Duration::from_millis(20));
        account.fleets.hidden.set(Duration::from_secs(5));
        account.fleets.lost.replace((0..2_000).filter(|_| random.below(20) == 0).collect());
        // Spot has too few, so that there are several calls.
        account.fleets.capacity.replace(
            [("m5.large us-east-1a spot", 180), ("m6i.large us-east-1a spot", 90)]
                .map(|(key, count)| (key.to_owned(), count))
                .into(),
        );
        let class = class();
        // In many launches, so that there are calls to die at.
        let mut launches: Vec<Vec<NodeClaim>> = (0..40).map(|number| claims(&format!("pool-{number}"), 25)).collect();
        let offerings = alternatives(&SPOT_FIRST);
        let (mut kills, mut turns) = (0, 0);
        while launches.iter().flatten().any(|claim| provider_id(claim).is_none()) || kills < 20 {
            turns += 1;
            assert!(turns < 400, "{kills} kills, and no end");
            if kills < 20 {
                let call = account.fleets.made() + random.below(60);
                account.fleets.dies_at.set(Some((call, random.below(2) == 0)));
                kills += 1;
            }
            let cloud = process(&account, &clock);
            let written: Vec<usize> = launches.iter().map(|_| random.below(26)).collect();
            let live = async {
                cloud.describe(&class).await.unwrap();
                let together = launches.iter_mut().zip(&written).filter(|(claims, _)| lacks(claims));
                join_all(together.map(|(claims, written)| pass(&cloud, &class, claims, &offerings, *written))).await;
                tokio::time::sleep(Duration::from_secs(20)).await;
                let lacking = launches.iter_mut().filter(|claims| lacks(claims));
                join_all(lacking.map(|claims| pass(&cloud, &class, claims, &offerings, 25))).await;
            };
            let _dies = tokio::time::timeout(Duration::from_secs(300), live).await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        let all = launches.concat();
        let (orphans, doubles) = unpaired(&account, &all);
        let ended = account.fleets.instances.borrow().iter().filter(|(it, _)| it.state.is_ended()).count();
        let (instances, lost) = (account.fleets.running().len(), account.fleets.lost_so_far());
        let is_met = (instances, orphans, doubles, ended) == (1_000, 0, 0, 0);
        let found = format!(
            "{instances} instances, {orphans} orphans, {ended} ended by mistake; {kills} kills, {lost} of {} answers lost",
            account.fleets.fleets()
        );
        let target = "1,000 instances, 0 orphans after 60 s, none ended by mistake";
        Figure::new("1,000 claims in 40 launches, 5 % lost answers, 20 kills", target, found, is_met)
    })
}

fn lacks(claims: &[NodeClaim]) -> bool {
    claims.iter().any(|claim| provider_id(claim).is_none())
}

fn throttled() -> Figure {
    let calls = |rate: Option<(f64, f64)>| {
        run(async {
            let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
            account.fleets.rate.set(rate);
            let cloud = process(&account, &clock);
            let class = class();
            cloud.describe(&class).await.unwrap();
            let mut launches: Vec<Vec<NodeClaim>> = (0..40).map(|number| claims(&format!("l{number}"), 25)).collect();
            let offerings = alternatives(&ON_DEMAND);
            let mut given_up = 0;
            for _ in 0..10 {
                for together in launches.chunks_mut(8) {
                    let lacking = together.iter_mut().filter(|claims| lacks(claims));
                    let passes = lacking.map(|claims| pass(&cloud, &class, claims, &offerings, 25));
                    let failures = join_all(passes).await.into_iter().flatten();
                    given_up += failures.filter(|failure| failure.error.kind != PortErrorKind::Temporary).count();
                }
            }
            (account.fleets.fleets(), account.fleets.running().len(), given_up)
        })
    };
    let (free, _, _) = calls(None);
    let (limited, launched, given_up) = calls(Some((2.0, 5.0)));
    let is_met = (launched, given_up) == (1_000, 0) && limited * 10 <= free * 12;
    let found = format!("{launched} launched, {given_up} claims given up, {limited} calls instead of {free}");
    let target = "all launched, no claim deleted, <= 1.2 times the calls of the free run";
    Figure::new("40 launches, CreateFleet limited to 2/s, bucket of 5", target, found, is_met)
}

fn cold_templates() -> Figure {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        let class = class();
        cloud.describe(&class).await.unwrap();
        account.fleets.latency.set(Duration::from_millis(100));
        let offerings = alternatives(&ON_DEMAND);
        let mut launches: Vec<Vec<NodeClaim>> = (0..20).map(|number| claims(&format!("pool-{number}"), 1)).collect();
        let before = account.templates.borrow().len();
        let began = tokio::time::Instant::now();
        let there = Cell::new(None);
        let watch = async {
            while account.templates.borrow().len() < before + 20 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            there.set(Some(began.elapsed()));
        };
        let passes = join_all(launches.iter_mut().map(|claims| pass(&cloud, &class, claims, &offerings, 1)));
        let _both = tokio::time::timeout(Duration::from_secs(60), futures::future::join(watch, passes)).await;
        let there: Option<Duration> = there.get();
        let milliseconds = there.map_or(u128::MAX, |there| there.as_millis());
        let found = format!("{milliseconds} ms until the last is there");
        Figure::new("20 cold templates at 100 ms a call", "<= 0.6 s", found, milliseconds <= 600)
    })
}

/// There is none of anything, of two types, on spot and on demand.
pub fn failed_launches(count: usize) -> Figure {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let offerings = ["m5.large a spot", "c5.large a spot", "m5.large a on-demand", "c5.large a on-demand"];
        let key = |offering: &str| {
            let words: Vec<&str> = offering.split(' ').collect();
            (format!("{} us-east-1{} {}", words[0], words[1], words[2]), 0)
        };
        account.fleets.capacity.replace(offerings.map(key).into());
        let cloud = process(&account, &clock);
        let class = class();
        cloud.describe(&class).await.unwrap();
        let before = account.templates.borrow().len();
        let offerings = alternatives(&offerings);
        let (mut most, mut failed) = (0, 0);
        for number in 0..count {
            let mut claims = claims("pool", 1);
            let launch = format!("launch-{number}");
            claims[0].metadata.uid = Some(launch.clone());
            claims[0].metadata.annotations = Some([("cutlist.dev/launch".to_owned(), launch)].into());
            failed += pass(&cloud, &class, &mut claims, &offerings, 1).await.len();
            most = most.max(account.templates.borrow().len() - before);
            if number % 100 == 0 {
                cloud.instances().await.unwrap();
                account.take_calls();
            }
        }
        // One image, one density of pods, two capacity types.
        let is_met = failed == count && most <= 2;
        let found = format!("{most} templates at most, after {failed} failures");
        let target = "never above images x densities x capacity types, here 2";
        Figure::new(format!("{} failed launches", thousands(count)), target, found, is_met)
    })
}

fn stale_profiles() -> Figure {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.iam_is_stale.set(true);
        let class = class();
        let mut cloud = process(&account, &clock);
        for look in 0..1_000 {
            // Every hundredth look is that of another process.
            if look % 100 == 0 {
                cloud = process(&account, &clock);
            }
            cloud.describe(&class).await.unwrap();
            tokio::time::sleep(Duration::from_secs(901)).await;
        }
        let made = account.profiles.borrow().len();
        Figure::new("1,000 looks with stale IAM reads", "1 profile", format!("{made} profile"), made == 1)
    })
}

/// As the controller asks: for catalog, classes, quotas and what is denied each minute, for instances each two minutes; and somebody listens
/// to the queue.
fn idle_calls() -> Figure {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let quotas = ["L-1216C47A", "L-34B43A08"].map(|code| (code.to_owned(), 100_000.0));
        account.things.borrow_mut().quotas = quotas.into();
        let cloud = process(&account, &clock);
        let classes: Vec<EC2NodeClass> = (0..10).map(class_of_its_own).collect();
        cloud.catalog().await.unwrap();
        for class in &classes {
            cloud.describe(class).await.unwrap();
        }
        let mut launches: Vec<Vec<NodeClaim>> = (0..10).map(|number| claims(&format!("l{number}"), 100)).collect();
        let offerings = alternatives(&ON_DEMAND);
        for (claims, class) in launches.iter_mut().zip(&classes) {
            assert!(pass(&cloud, class, claims, &offerings, 100).await.is_empty());
        }
        let idle = async {
            // Their names are written, and what is asked for once is asked for.
            for _ in 0..600 {
                let _told = (cloud.messages().await.unwrap(), cloud.failing().await.unwrap());
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            account.take_calls();
            for minute in 0..60 {
                cloud.catalog().await.unwrap();
                for class in &classes {
                    cloud.describe(class).await.unwrap();
                }
                let _quotas = (cloud.vcpu_quotas().await, cloud.notes().await, cloud.denied().await);
                if minute % 2 == 0 {
                    assert_eq!(cloud.instances().await.unwrap().len(), 1_000);
                }
                let _told = (cloud.messages().await.unwrap(), cloud.failing().await.unwrap());
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
        };
        tokio::select! {
            () = cloud.ears().listen() => unreachable!("it goes on"),
            () = idle => {}
        }
        let calls = account.take_calls().len();
        let tenths = calls * 10 / 60;
        let found = format!("{}.{} a minute over an hour", tenths / 10, tenths % 10);
        Figure::new("idle, 10 classes, 1,000 nodes", "<= 8 calls a minute", found, calls <= 8 * 60)
    })
}

/// With selectors that no other class has.
fn class_of_its_own(number: usize) -> EC2NodeClass {
    let name = format!("class-{number}");
    let value = json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": { "name": name, "generation": 1 },
        "spec": { "role": "nodes", "amiFamily": "AL2023", "amiSelectorTerms": [{ "id": "ami-1" }],
            "subnetSelectorTerms": [{ "tags": { "team": "x" } }, { "tags": { "team": name } }],
            "securityGroupSelectorTerms": [{ "tags": { "team": "x" } }] } });
    serde_json::from_value(value).unwrap()
}

fn thousands(count: usize) -> String {
    if count < 1_000 { count.to_string() } else { format!("{},{:03}", count / 1_000, count % 1_000) }
}
