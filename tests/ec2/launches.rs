//! Launches on an account that loses answers, refuses, has little of something; and processes that die at any call.

use std::collections::BTreeSet;
use std::time::Duration;

use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::api::node_claim::NodeClaim;
use cutlist::ports::{Cloud, PortErrorKind};
use futures::future::join_all;

use super::account::Account;
use super::claims::{alternatives, claims, pass, provider_id};
use super::scene::{account, class, run};
use super::{at, identity};

type Process<'a> = AwsCloud<&'a Account, EmbeddedClock>;

fn process<'a>(account: &'a Account, clock: &EmbeddedClock) -> Process<'a> {
    AwsCloud::new(
        account,
        clock.clone(),
        Settings { identity: identity(), queue: None, may_write: true, tries_launches: false },
    )
}

/// Each claim has an instance of its own, and there is no other.
fn assert_paired(account: &Account, claims: &[NodeClaim]) {
    let of_claims: BTreeSet<&str> = claims.iter().filter_map(provider_id).collect();
    assert_eq!(of_claims.len(), claims.len(), "each has its own");
    let running = account.fleets.running();
    let running: BTreeSet<String> = running.iter().map(|it| format!("aws:///{}/{}", it.zone, it.id)).collect();
    assert_eq!(running.iter().map(String::as_str).collect::<BTreeSet<_>>(), of_claims);
}

const THREE: [&str; 3] = ["m5.large a spot", "m6i.large a spot", "m5.large b on-demand"];

#[test]
fn claims_get_instances_by_few_calls_and_are_found_again() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        let facts = cloud.describe(&class()).await.unwrap();
        let said: Vec<_> = facts.conditions.iter().map(|it| (it.type_.as_str(), it.status)).collect();
        assert!(said.iter().all(|(_, status)| *status == Some(true)), "{:?}", facts.conditions);
        assert_eq!(facts.zones, ["us-east-1a", "us-east-1b"]);
        let mut claims = claims("l", 20);
        assert!(pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 20).await.is_empty());
        assert_paired(&account, &claims);
        assert_eq!(account.fleets.fleets(), 1);
        let listed = cloud.instances().await.unwrap();
        assert_eq!(listed.len(), 20);
        assert!(listed.iter().all(|it| (it.launch_id.as_str(), it.installation.as_str()) == ("l", "one")));
        // Their names are written when there is time.
        cloud.failing().await.unwrap();
        let named = cloud.instances().await.unwrap();
        assert_eq!(named.iter().filter(|it| it.node_claim.starts_with("l-")).count(), 20);
    });
}

#[test]
fn a_thousand_claims_of_four_pools_take_four_calls() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        let class = class();
        cloud.describe(&class).await.unwrap();
        let mut launches: Vec<Vec<NodeClaim>> = ["a", "b", "c", "d"].map(|launch| claims(launch, 250)).into();
        let offerings = alternatives(&["m5.large a on-demand", "m5.large b on-demand"]);
        let passes = launches.iter_mut().map(|claims| pass(&cloud, &class, claims, &offerings, 250));
        assert!(join_all(passes).await.iter().all(Vec::is_empty));
        let all: Vec<NodeClaim> = launches.into_iter().flatten().collect();
        assert_paired(&account, &all);
        assert_eq!(account.fleets.fleets(), 4);
    });
}

#[test]
fn lost_answers_launch_nothing_twice() {
    for hidden in [0, 5, 45] {
        run(async {
            let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
            account.fleets.hidden.set(Duration::from_secs(hidden));
            // More in a row than one pass tries.
            account.fleets.lost.replace(vec![0, 1, 2, 3, 5]);
            let mut cloud = process(&account, &clock);
            cloud.describe(&class()).await.unwrap();
            let mut claims = claims("l", 30);
            for turn in 0..40 {
                pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 30).await;
                // Every other time another process goes on.
                if turn % 2 == 0 {
                    cloud = process(&account, &clock);
                    cloud.describe(&class()).await.unwrap();
                }
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            assert_paired(&account, &claims);
        });
    }
}

/// Whatever call it dies at, before or after EC2 has done what was asked for, and however many claims were written by then.
#[test]
fn a_process_that_dies_at_any_call_loses_nothing() {
    for (hidden, writes) in [(0, 0), (0, 3), (20, 2)] {
        for call in 0..14 {
            for done in [false, true] {
                run(async {
                    let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
                    account.fleets.hidden.set(Duration::from_secs(hidden));
                    // Spot has too few, so that there are two calls.
                    account.fleets.capacity.replace(
                        [("m5.large us-east-1a spot", 2), ("m6i.large us-east-1a spot", 1)]
                            .map(|(key, count)| (key.to_owned(), count))
                            .into(),
                    );
                    account.fleets.dies_at.set(Some((call, done)));
                    let mut claims = claims("l", 6);
                    for turn in 0..6 {
                        let cloud = process(&account, &clock);
                        let live = async {
                            cloud.describe(&class()).await.unwrap();
                            let written = if turn == 0 { writes } else { 6 };
                            pass(&cloud, &class(), &mut claims, &alternatives(&THREE), written).await;
                            for _ in 0..5 {
                                tokio::time::sleep(Duration::from_secs(20)).await;
                                pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 6).await;
                            }
                        };
                        let _dies = tokio::time::timeout(Duration::from_secs(600), live).await;
                        tokio::time::sleep(Duration::from_secs(10)).await;
                    }
                    assert_paired(&account, &claims);
                });
            }
        }
    }
}

#[test]
fn what_one_way_of_paying_lacks_the_next_brings() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account
            .fleets
            .capacity
            .replace([("m5.large us-east-1a spot".to_owned(), 3), ("m6i.large us-east-1a spot".to_owned(), 0)].into());
        let cloud = process(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let mut claims = claims("l", 5);
        assert!(pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 5).await.is_empty());
        let spot = account.fleets.running().iter().filter(|it| it.lifecycle.is_some()).count();
        assert_eq!((spot, account.fleets.running().len()), (3, 5));
        // Others need not find out again.
        let catalog = cloud.catalog().await.unwrap();
        let sold = |name: &str, capacity_type: &str| {
            let one = catalog.instance_types.iter().find(|it| it.name == name).unwrap();
            one.offerings.iter().filter(|it| it.capacity_type == capacity_type && it.available).count()
        };
        assert_eq!((sold("m5.large", "spot"), sold("m6i.large", "spot"), sold("m5.large", "on-demand")), (0, 0, 2));
        assert!(std::sync::Arc::ptr_eq(&catalog, &cloud.catalog().await.unwrap()), "the same while nothing changes");
        tokio::time::sleep(Duration::from_secs(181)).await;
        assert!(!std::sync::Arc::ptr_eq(&catalog, &cloud.catalog().await.unwrap()), "it may be tried again");
    });
}

#[test]
fn a_shortage_of_everything_is_said_with_what_there_is_none_of() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.fleets.capacity.replace(
            ["m5.large us-east-1a spot", "m6i.large us-east-1a spot", "m5.large us-east-1b on-demand"]
                .map(|key| (key.to_owned(), 0))
                .into(),
        );
        let cloud = process(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let failures = pass(&cloud, &class(), &mut claims("l", 2), &alternatives(&THREE), 2).await;
        assert_eq!(failures.len(), 2);
        assert_eq!((failures[0].error.kind, failures[0].exhausted.len()), (PortErrorKind::InsufficientCapacity, 3));
        assert!(
            failures[0].error.operation.contains("InsufficientInstanceCapacity"),
            "{}",
            failures[0].error.operation
        );
    });
}

/// EC2 takes two calls in a second, and five at once; ours are as many as without that, nearly, and no claim is given up.
#[test]
fn under_throttling_all_is_launched_with_hardly_more_calls() {
    let calls = |rate: Option<(f64, f64)>| {
        run(async {
            let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
            account.fleets.rate.set(rate);
            let cloud = process(&account, &clock);
            let class = class();
            cloud.describe(&class).await.unwrap();
            let mut launches: Vec<Vec<NodeClaim>> = (0..40).map(|number| claims(&format!("l{number}"), 5)).collect();
            let offerings = alternatives(&["m5.large a on-demand"]);
            for _ in 0..10 {
                for together in launches.chunks_mut(8) {
                    let passes = together
                        .iter_mut()
                        .filter(|claims| claims.iter().any(|claim| provider_id(claim).is_none()))
                        .map(|claims| pass(&cloud, &class, claims, &offerings, 5));
                    for failure in join_all(passes).await.into_iter().flatten() {
                        assert_eq!(failure.error.kind, PortErrorKind::Temporary, "{}", failure.error.operation);
                    }
                }
            }
            let all: Vec<NodeClaim> = launches.into_iter().flatten().collect();
            assert_paired(&account, &all);
            account.fleets.fleets()
        })
    };
    let free = calls(None);
    assert_eq!(free, 40);
    let limited = calls(Some((2.0, 5.0)));
    assert!(limited <= 48, "{limited} calls");
    // Others in the account take nearly all of it.
    let starved = calls(Some((0.5, 1.0)));
    assert!(starved <= 80, "{starved} calls");
}

/// Templates of all variants are made at the same time, once, and are used again.
#[test]
fn cold_templates_take_the_time_of_a_few_calls() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        let class = class();
        cloud.describe(&class).await.unwrap();
        account.fleets.latency.set(Duration::from_millis(100));
        let offerings = alternatives(&["m5.large a on-demand"]);
        let mut launches: Vec<Vec<NodeClaim>> = (0..20).map(|number| claims(&format!("pool-{number}"), 1)).collect();
        let before = account.templates.borrow().len();
        let began = tokio::time::Instant::now();
        // Four may be asked for at once; the others wait for their tokens.
        let passes = launches.iter_mut().take(4).map(|claims| pass(&cloud, &class, claims, &offerings, 1));
        assert!(join_all(passes).await.iter().all(Vec::is_empty));
        assert!(began.elapsed() <= Duration::from_millis(350), "{:?}", began.elapsed());
        let rest = launches.iter_mut().skip(4).map(|claims| pass(&cloud, &class, claims, &offerings, 1));
        join_all(rest).await;
        assert_eq!(account.templates.borrow().len() - before, 20);
        // Again, by the same process and by another one.
        account.take_calls();
        let mut again = claims("pool-1", 1);
        again[0].metadata.uid = Some("another".to_owned());
        again[0].metadata.annotations = Some([("cutlist.dev/launch".to_owned(), "another".to_owned())].into());
        assert!(pass(&cloud, &class, &mut again, &offerings, 1).await.is_empty());
        let created = |calls: Vec<String>| {
            calls.iter().filter(|call| call.starts_with("ec2:CreateLaunchTemplate cutlist")).count()
        };
        assert_eq!(created(account.take_calls()), 0);
        assert_eq!(account.templates.borrow().len() - before, 20);
    });
}

#[test]
fn a_template_that_somebody_deleted_is_made_again() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let offerings = alternatives(&["m5.large a on-demand"]);
        assert!(pass(&cloud, &class(), &mut claims("l", 1), &offerings, 1).await.is_empty());
        account.templates.borrow_mut().clear();
        let mut more = claims("l", 3);
        more.iter_mut().for_each(|claim| {
            claim.metadata.annotations = Some([("cutlist.dev/launch".to_owned(), "more".to_owned())].into());
        });
        assert!(pass(&cloud, &class(), &mut more, &offerings, 3).await.is_empty());
        assert_eq!(account.fleets.running().len(), 4);
    });
}

#[test]
fn what_is_denied_is_written_on_claims_and_not_tried_at_once_again() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        account.failures.borrow_mut().insert("ec2:CreateFleet".to_owned(), "UnauthorizedOperation".to_owned());
        let facts = cloud.describe(&class()).await.unwrap();
        let condition = facts.conditions.iter().find(|it| it.type_ == "ValidationSucceeded").unwrap();
        assert_eq!((condition.status, condition.reason.as_str()), (Some(false), "CreateFleetAuthCheckFailed"));
        let mut claims = claims("l", 2);
        for _ in 0..10 {
            let failures = pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 2).await;
            assert_eq!(failures[0].error.kind, PortErrorKind::Permanent);
            assert!(
                failures[0].error.operation.contains("ec2:CreateFleet is denied"),
                "{}",
                failures[0].error.operation
            );
        }
        let tried = account.take_calls().iter().filter(|call| call.starts_with("ec2:CreateFleet l-")).count();
        assert_eq!(tried, 1);
        account.failures.borrow_mut().clear();
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert!(pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 2).await.is_empty());
        assert_paired(&account, &claims);
    });
}

#[test]
fn instances_end_together_until_they_are_gone() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let mut claims = claims("l", 50);
        pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 50).await;
        account.take_calls();
        let ids: Vec<String> = claims.iter().filter_map(provider_id).map(str::to_owned).collect();
        let ended = join_all(ids.iter().map(|id| cloud.terminate(id))).await;
        assert!(ended.iter().all(Result::is_ok));
        let calls = account.take_calls();
        assert_eq!(calls.iter().filter(|call| call.starts_with("ec2:TerminateInstances")).count(), 1, "{calls:?}");
        let all: Vec<String> = ids.iter().map(|id| id.rsplit('/').next().unwrap().to_owned()).collect();
        account.fleets.terminate(&all).unwrap();
        let gone = join_all(ids.iter().map(|id| cloud.terminate(id))).await;
        assert!(gone.iter().all(|it| it.as_ref().is_err_and(|error| error.kind == PortErrorKind::NotFound)));
        let strange = cloud.terminate("kwok://node").await.unwrap_err();
        assert_eq!(strange.kind, PortErrorKind::NotFound);
    });
}

#[test]
fn what_was_just_launched_and_is_not_shown_is_not_taken_for_gone() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.fleets.hidden.set(Duration::from_secs(30));
        let cloud = process(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let mut claims = claims("l", 1);
        pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 1).await;
        let id = provider_id(&claims[0]).unwrap();
        assert_eq!(cloud.terminate(id).await.unwrap_err().kind, PortErrorKind::Temporary);
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert!(cloud.terminate(id).await.is_ok());
        assert!(account.fleets.running().is_empty());
    });
}

#[test]
fn what_could_not_be_asked_stands_in_plans_with_the_same_words() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        cloud.catalog().await.unwrap();
        let before = cloud.describe(&class()).await.unwrap();
        assert_eq!(cloud.notes().await, []);
        for action in ["ec2:DescribeSubnets", "pricing:GetProducts"] {
            account.failures.borrow_mut().insert(action.to_owned(), "RequestLimitExceeded".to_owned());
        }
        let mut said = Vec::new();
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(14 * 3_600)).await;
            cloud.catalog().await.unwrap();
            let after = cloud.describe(&class()).await.unwrap();
            assert_eq!((&after.zones, &after.free_addresses), (&before.zones, &before.free_addresses));
            said.push(cloud.notes().await.into_iter().map(|note| note.text).collect::<Vec<_>>());
        }
        assert_eq!(said[0].len(), 2, "{said:?}");
        assert!(said[0][0].contains("as of 2026-09-01T12:00:00Z") && said[0][1].contains("throttled"), "{said:?}");
        assert_eq!(said[0], said[2]);
    });
}

/// What was launched by a call whose answer was lost is not launched again because a call behind it was turned away: EC2 did not say what came
/// of the first.
#[test]
fn a_lost_answer_is_asked_for_again_after_a_refusal_behind_it() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.fleets.hidden.set(Duration::from_secs(600));
        let cloud = process(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(120)).await;
        account.fleets.lost.replace(vec![0]);
        account.fleets.rate.set(Some((0.000_1, 1.0)));
        let mut claims = claims("l", 3);
        let failures = pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 3).await;
        assert_eq!((failures.len(), failures[0].error.kind), (3, PortErrorKind::Temporary));
        assert_eq!(account.fleets.running().len(), 3);
        // Again it is not let through; then the plan wants something else.
        pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 3).await;
        account.fleets.rate.set(None);
        for _ in 0..4 {
            pass(&cloud, &class(), &mut claims, &alternatives(&["c5.large a spot"]), 3).await;
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        assert_paired(&account, &claims);
    });
}

/// A node outside of its placement group is another one than the class asks for.
#[test]
fn nothing_is_launched_while_the_placement_group_is_not_known() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let mut class = class();
        let selector = serde_json::json!({ "name": "close-together" });
        class.spec.placement_group_selector = Some(serde_json::from_value(selector).unwrap());
        account
            .failures
            .borrow_mut()
            .insert("ec2:DescribePlacementGroups".to_owned(), "RequestLimitExceeded".to_owned());
        let cloud = process(&account, &clock);
        cloud.describe(&class).await.unwrap();
        let failures = pass(&cloud, &class, &mut claims("l", 1), &alternatives(&THREE), 1).await;
        assert_eq!(failures[0].error.kind, PortErrorKind::Temporary);
        let text = &failures[0].error.operation;
        assert!(text.contains("placement group is not known") && text.contains("DescribePlacementGroups"), "{text}");
        assert!(account.fleets.running().is_empty());
    });
}

#[test]
fn what_the_class_names_and_ec2_does_not_have_is_written_on_claims() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        let code = "InvalidSnapshot.NotFound The snapshot 'snap-1' does not exist.";
        account.failures.borrow_mut().insert("ec2:CreateFleet l-".to_owned(), code.to_owned());
        account.take_calls();
        for _ in 0..10 {
            let failures = pass(&cloud, &class(), &mut claims("l", 2), &alternatives(&THREE), 2).await;
            assert_eq!(failures[0].error.kind, PortErrorKind::Permanent);
            assert!(failures[0].error.operation.contains("'snap-1'"), "{}", failures[0].error.operation);
        }
        let tried = account.take_calls().iter().filter(|call| call.starts_with("ec2:CreateFleet l-")).count();
        assert_eq!(tried, 1, "it is not tried at once again");
    });
}

/// One that somebody protected, or that the policy does not let end, keeps none of the others.
#[test]
fn an_instance_that_may_not_end_keeps_no_other() {
    for code in ["OperationNotPermitted The instance may not be terminated", "UnauthorizedOperation no"] {
        run(async {
            let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
            let cloud = process(&account, &clock);
            cloud.describe(&class()).await.unwrap();
            let mut claims = claims("l", 30);
            pass(&cloud, &class(), &mut claims, &alternatives(&THREE), 30).await;
            let ids: Vec<String> = claims.iter().filter_map(provider_id).map(str::to_owned).collect();
            let kept = ids[7].rsplit('/').next().unwrap().to_owned();
            let what = |of: &str| format!("ec2:TerminateInstances{of}");
            account.failures.borrow_mut().insert(what(&format!(" {kept}")), code.to_owned());
            let ended = join_all(ids.iter().map(|id| cloud.terminate(id))).await;
            assert_eq!(ended.iter().filter(|it| it.is_err()).count(), 1, "{code}");
            let running: Vec<String> = account.fleets.running().into_iter().map(|it| it.id).collect();
            assert_eq!(running, [kept]);
            // Where none may, not each is tried.
            let mut more = super::claims::claims("m", 30);
            pass(&cloud, &class(), &mut more, &alternatives(&THREE), 30).await;
            account.failures.borrow_mut().insert(what(""), "UnauthorizedOperation no".to_owned());
            account.take_calls();
            let ids: Vec<&str> = more.iter().filter_map(provider_id).collect();
            let ended = join_all(ids.iter().map(|id| cloud.terminate(id))).await;
            assert!(ended.iter().all(Result::is_err));
            let calls = account.take_calls().iter().filter(|call| call.starts_with(&what(""))).count();
            assert_eq!(calls, 11);
        });
    }
}

#[test]
fn an_instance_that_ec2_does_not_know_yet_gets_its_name_later() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = process(&account, &clock);
        cloud.describe(&class()).await.unwrap();
        pass(&cloud, &class(), &mut claims("l", 3), &alternatives(&THREE), 3).await;
        let named = async || cloud.instances().await.unwrap().iter().filter(|it| !it.node_claim.is_empty()).count();
        let tagged = |calls: Vec<String>| calls.iter().filter(|call| call.starts_with("ec2:CreateTags")).count();
        account.failures.borrow_mut().insert("ec2:CreateTags".to_owned(), "InvalidInstanceID.NotFound".to_owned());
        account.take_calls();
        for _ in 0..5 {
            cloud.failing().await.unwrap();
        }
        assert_eq!((named().await, tagged(account.take_calls())), (0, 3), "it is not asked again at once");
        account.failures.borrow_mut().clear();
        tokio::time::sleep(Duration::from_secs(10)).await;
        cloud.failing().await.unwrap();
        assert_eq!(named().await, 3);
        // One that is gone has no need of a name.
        pass(&cloud, &class(), &mut claims("m", 1), &alternatives(&THREE), 1).await;
        account.failures.borrow_mut().insert("ec2:CreateTags".to_owned(), "InvalidInstanceID.NotFound".to_owned());
        tokio::time::sleep(Duration::from_secs(130)).await;
        account.take_calls();
        for _ in 0..3 {
            cloud.failing().await.unwrap();
            tokio::time::sleep(Duration::from_secs(15)).await;
        }
        assert_eq!(tagged(account.take_calls()), 1);
    });
}
