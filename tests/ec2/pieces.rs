//! Batches that EC2 refuses for their size, since others have taken from the account's instances a second.

use std::time::Duration;

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::ports::{Cloud, PortErrorKind};

use super::account::Account;
use super::claims::{alternatives, claims, pass, provider_id};
use super::scene::{account, class, run};
use super::{at, identity};

fn cloud<'a>(account: &'a Account, clock: &EmbeddedClock) -> AwsCloud<&'a Account, EmbeddedClock> {
    AwsCloud::new(
        account,
        clock.clone(),
        Settings { identity: identity(), queue: None, may_write: true, tries_launches: false },
    )
}

/// EC2 has tokens for 300 instances, and gains two a second: a call for 1,000 never gets through.
#[test]
fn a_batch_that_is_too_large_for_ec2_is_asked_for_in_pieces() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.fleets.instance_rate.set(Some((2.0, 300.0)));
        let cloud = cloud(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let mut claims = claims("l", 1_000);
        let offerings = alternatives(&["m5.large a on-demand"]);
        let began = tokio::time::Instant::now();
        let mut said = Vec::new();
        while claims.iter().any(|claim| provider_id(claim).is_none()) {
            let failures = pass(&cloud, &class(), &mut claims, &offerings, 1_000).await;
            assert!(failures.iter().all(|it| it.error.kind == PortErrorKind::Temporary), "{:?}", failures[0]);
            let launched = account.fleets.running().len();
            said.push(format!("{:>3} s: {launched} by {} calls", began.elapsed().as_secs(), account.fleets.fleets()));
            assert!(said.len() < 100, "{said:#?}");
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        println!("{}", said.join("\n"));
        assert_eq!(account.fleets.running().len(), 1_000, "none twice");
        assert!(said[0].contains(" s: 2"), "the first 200 and more come at once: {said:#?}");
        // 700 at two a second take six minutes.
        assert!(began.elapsed() <= Duration::from_secs(600), "{said:#?}");
    });
}

/// The own bucket was emptied by a launch before: what is left is asked for at once, and not when it is full again.
#[test]
fn a_launch_behind_a_large_one_gets_what_is_left() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = cloud(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let offerings = alternatives(&["m5.large a on-demand"]);
        assert!(pass(&cloud, &class(), &mut claims("first", 900), &offerings, 900).await.is_empty());
        let mut second = claims("second", 200);
        let failures = pass(&cloud, &class(), &mut second, &offerings, 200).await;
        let launched = second.iter().filter(|claim| provider_id(claim).is_some()).count();
        assert!(launched >= 100 && launched + failures.len() == 200, "{launched}");
        assert!(failures.iter().all(|it| it.error.kind == PortErrorKind::Temporary));
    });
}

/// Where the one call whose answer was lost is refused afterwards, it stays the same call, however large it is.
#[test]
fn a_lost_call_is_not_divided() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.fleets.hidden.set(Duration::from_secs(600));
        let cloud = cloud(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        account.fleets.lost.replace(vec![0]);
        account.fleets.rate.set(Some((0.02, 1.0)));
        let mut claims = claims("l", 100);
        let offerings = alternatives(&["m5.large a on-demand"]);
        for _ in 0..12 {
            pass(&cloud, &class(), &mut claims, &offerings, 100).await;
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        assert_eq!(account.fleets.running().len(), 100);
        assert!(claims.iter().all(|claim| provider_id(claim).is_some()));
    });
}
