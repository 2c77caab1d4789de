//! What is launched from: what of a class makes no template is said before EC2 is asked; and what a template says besides the class.

use std::time::Duration;

use cutlist::adapters::aws::api::launch::Strategy;
use cutlist::adapters::aws::api::template::{LaunchTemplate, ReservationUse};
use cutlist::adapters::aws::cloud::{AwsCloud, Settings};
use cutlist::adapters::embedded::EmbeddedClock;
use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::node_claim::NodeClaim;
use cutlist::ports::{Cloud, LaunchRequest, LaunchRules};
use serde_json::{Value, json};

use super::account::Account;
use super::claims::{alternatives, claims};
use super::scene::{account, class, run};
use super::{at, identity};

fn cloud<'a>(account: &'a Account, clock: &EmbeddedClock, may_write: bool) -> AwsCloud<&'a Account, EmbeddedClock> {
    AwsCloud::new(
        account,
        clock.clone(),
        Settings { identity: identity(), queue: None, may_write, tries_launches: false },
    )
}

/// The class with these fields.
fn with(fields: Value) -> EC2NodeClass {
    let mut value = serde_json::to_value(class()).unwrap();
    json_patch::merge(&mut value, &json!({ "spec": fields }));
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_makes_no_template_is_a_condition_and_no_call() {
    let many: Value =
        (0..42).map(|number| (format!("tag-{number}"), json!("a"))).collect::<serde_json::Map<_, _>>().into();
    // It is smaller than EC2 takes, and with what joins the node it is larger.
    let large = format!("#!/bin/bash\n#{}\n", "x".repeat(16_200));
    for (fields, reason, text) in [
        (json!({ "userData": large }), "UserDataSizeLimitExceeded", "EC2 takes 16384"),
        (json!({ "userData": "kind: ConfigMap\n" }), "InvalidUserData", "spec.userData:1: this is no NodeConfig"),
        (json!({ "tags": many }), "TagValidationFailed", "42 tags, and there is room for 41"),
        (json!({ "tags": { "cutlist.dev/launch": "mine" } }), "TagValidationFailed", "set by the controller"),
        (
            json!({ "blockDeviceMappings": [{ "deviceName": "/dev/xvda" }] }),
            "InvalidBlockDeviceMappings",
            "spec.blockDeviceMappings[0]: has no `ebs`",
        ),
    ] {
        for may_write in [true, false] {
            run(async {
                let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
                // Who only observes makes no profile, and finds this one.
                let class = with(json!({ "role": null, "instanceProfile": "nodes" }));
                let mut value = serde_json::to_value(class).unwrap();
                json_patch::merge(&mut value, &json!({ "spec": fields }));
                let class: EC2NodeClass = serde_json::from_value(value).unwrap();
                let facts = cloud(&account, &clock, may_write).describe(&class).await.unwrap();
                let said = facts.conditions.iter().find(|it| it.type_ == "ValidationSucceeded").unwrap();
                assert_eq!((said.status, said.reason.as_str()), (Some(false), reason), "{}", said.message);
                assert!(said.message.contains(text), "{}", said.message);
                let calls = account.take_calls();
                assert!(!calls.iter().any(|call| call.contains("CreateLaunchTemplate")), "{calls:?}");
            });
        }
    }
}

/// The template and the strategy of a launch of one claim.
fn launched(class: &EC2NodeClass, rules: LaunchRules, offering: &str) -> (LaunchTemplate, Option<Strategy>) {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = cloud(&account, &clock, true);
        cloud.describe(class).await.unwrap();
        let (claims, offerings) = (claims("l", 1), alternatives(&[offering]));
        let request = LaunchRequest {
            launch_id: "l",
            installation: "one",
            claims: claims.iter().collect(),
            assigned: Vec::new(),
            class: Some(class),
            images: None,
            alternatives: &offerings,
            rules,
        };
        assert!(cloud.launch(&request).await.iter().all(Result::is_ok));
        let (request, _) = account.fleets.tokens.borrow().values().next().unwrap().clone();
        let template = account.contents.borrow()[&request.configs[0].template].clone();
        (template, request.strategy)
    })
}

#[test]
fn a_launch_goes_by_gates_and_by_prices_of_the_plan() {
    let rules = |reserves_capacity, keeps_order| LaunchRules { reserves_capacity, keeps_order };
    for (rules, offering, reservation, strategy) in [
        (rules(false, false), "m5.large a on-demand", ReservationUse::Open, Strategy::LowestPrice),
        (rules(true, false), "m5.large a spot", ReservationUse::None, Strategy::PriceCapacityOptimized),
        (rules(true, true), "m5.large a on-demand", ReservationUse::None, Strategy::Prioritized),
        (rules(false, true), "m5.large a spot", ReservationUse::Open, Strategy::CapacityOptimizedPrioritized),
    ] {
        let (template, found) = launched(&class(), rules, offering);
        assert_eq!((template.reservation, found), (reservation, Some(strategy)), "{rules:?}");
    }
}

/// What EKS says of Services decides where pods ask for names: also images that would guess it are told.
#[test]
fn machines_are_told_where_to_ask_for_names() {
    for (family, text) in [
        ("AL2023", "clusterDNS:\n      - 172.20.0.10\n"),
        ("AL2", "--dns-cluster-ip '172.20.0.10'"),
        ("Bottlerocket", "cluster-dns-ip = \"172.20.0.10\""),
        ("Windows2022", "-DNSClusterIP '172.20.0.10'"),
    ] {
        let class = with(json!({ "amiFamily": family }));
        let (template, _) = launched(&class, LaunchRules::default(), "m5.large a on-demand");
        assert!(template.user_data.contains(text), "{}", template.user_data);
    }
}

/// EC2 chooses among the zones of a call: none of them may be too small for what it is asked for.
#[test]
fn a_subnet_gets_no_more_nodes_than_it_has_addresses_for() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.things.borrow_mut().subnets[0].free_addresses = 9;
        let cloud = cloud(&account, &clock, true);
        cloud.describe(&class()).await.unwrap();
        // Each takes one address, and three for its pods.
        let mut claims = claims("l", 10);
        let offerings = alternatives(&["m5.large a on-demand", "m5.large b on-demand"]);
        assert!(super::claims::pass(&cloud, &class(), &mut claims, &offerings, 10).await.is_empty());
        assert!(account.fleets.running().iter().all(|it| it.zone == "us-east-1b"), "two would fit into the other");
    });
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        account.things.borrow_mut().subnets[0].free_addresses = 9;
        account.things.borrow_mut().subnets[1].free_addresses = 13;
        let cloud = cloud(&account, &clock, true);
        cloud.describe(&class()).await.unwrap();
        let mut claims = claims("l", 10);
        let offerings = alternatives(&["m5.large a on-demand", "m5.large b on-demand"]);
        for _ in 0..5 {
            super::claims::pass(&cloud, &class(), &mut claims, &offerings, 10).await;
        }
        let in_zone = |zone: &str| account.fleets.running().iter().filter(|it| it.zone == zone).count();
        assert_eq!((in_zone("us-east-1a"), in_zone("us-east-1b")), (2, 3), "and no more than there is room for");
    });
}

/// Two launches at once do not count on the same addresses.
#[test]
fn launches_at_the_same_time_share_what_is_free() {
    run(async {
        let (account, clock) = (account(), EmbeddedClock::starting_at(at(0)));
        let cloud = cloud(&account, &clock, true);
        account.fleets.latency.set(Duration::from_millis(100));
        account.things.borrow_mut().subnets[0].free_addresses = 30;
        account.things.borrow_mut().subnets[1].free_addresses = 0;
        cloud.describe(&class()).await.unwrap();
        let offerings = alternatives(&["m5.large a on-demand", "m5.large b on-demand"]);
        // Each node takes one address, and three for its pods: seven fit.
        let mut launches: Vec<_> = ["k", "l", "m"].map(|launch| claims(launch, 5)).into();
        let class = class();
        let pass =
            async |claims: &mut Vec<NodeClaim>| super::claims::pass(&cloud, &class, claims, &offerings, 10).await;
        futures::future::join_all(launches.iter_mut().map(&pass)).await;
        assert_eq!(account.fleets.running().len(), 7, "five, two, and none");
        for claims in &mut launches {
            pass(claims).await;
        }
        assert_eq!(account.fleets.running().len(), 7);
    });
}
