//! Calls for launches that are made up.

use super::*;
use crate::adapters::aws::launch_templates::{LaunchSpecification, LaunchTemplate, MetadataOptions};
use crate::api::node_claim::NodeClaim;

fn offering((instance_type, zone, capacity_type): &(&str, &str, &str)) -> Offering {
    Offering {
        instance_type: (*instance_type).to_owned(),
        zone: (*zone).to_owned(),
        capacity_type: (*capacity_type).to_owned(),
    }
}

fn group(name: &str, offerings: &[(usize, &str, &str, &str)]) -> Group {
    let template = LaunchTemplate {
        image_id: format!("ami-{name}"),
        user_data: String::new(),
        instance_profile: "nodes".to_owned(),
        block_devices: Vec::new(),
        metadata: MetadataOptions {
            http_endpoint: "enabled".to_owned(),
            http_protocol_ipv6: None,
            http_put_response_hop_limit: 1,
            http_tokens: "required".to_owned(),
        },
        interfaces: Vec::new(),
        detailed_monitoring: false,
        nested_virtualization: None,
        enclave: false,
        tenancy: "default".to_owned(),
        placement_group: None,
        reservation: ReservationUse::Open,
        tags: BTreeMap::new(),
        tags_spot_requests: false,
    };
    let offerings: Vec<(usize, Offering)> =
        offerings.iter().map(|(place, name, zone, kind)| (*place, offering(&(name, zone, kind)))).collect();
    Group { name: name.to_owned(), template, capacity_type: offerings[0].1.capacity_type.clone(), offerings }
}

const LAUNCH: &str = "0123456789abcdef0123456789abcdef";

fn claim() -> NodeClaim {
    let class = serde_json::json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
    serde_json::from_value(serde_json::json!({ "metadata": {}, "spec": { "nodeClassRef": class, "requirements": [] } }))
        .unwrap()
}

fn part(claims: &[NodeClaim]) -> LaunchPart<'_> {
    LaunchPart { launch_id: LAUNCH, specification: LaunchSpecification::plain(&[]), claims: claims.iter().collect() }
}

fn made(part: &LaunchPart<'_>, groups: &[Group], order: Order) -> Requests {
    let subnets = BTreeMap::from([("a".to_owned(), "subnet-a".to_owned()), ("b".to_owned(), "subnet-b".to_owned())]);
    let tags = BTreeMap::from([("team".to_owned(), "search".to_owned())]);
    requests(part, groups, 0, &Surroundings { subnets: &subnets, order, tags: &tags, context: Some("ctx-1") })
}

#[test]
fn one_call_asks_for_all_claims_of_a_part() {
    let groups = [
        group("arm", &[(1, "m7g.large", "a", "spot"), (3, "m7g.large", "b", "spot")]),
        group("amd", &[(0, "m5.large", "b", "spot"), (2, "m5.large", "c", "spot")]),
    ];
    let made = made(&part(&vec![claim(); 7]), &groups, Order::Price);
    let [request] = made.requests.as_slice() else { panic!("{made:?}") };
    assert_eq!((request.count, request.target), (7, Target::Spot));
    assert_eq!(request.strategy, Some(Strategy::PriceCapacityOptimized));
    assert_eq!(request.tags["cutlist.dev/launch"], LAUNCH);
    assert_eq!((request.tags["team"].as_str(), request.context.as_deref()), ("search", Some("ctx-1")));
    assert!(request.client_token.len() <= 64 && request.client_token.is_ascii());
    let overrides: Vec<_> = request
        .configs
        .iter()
        .flat_map(|it| {
            it.overrides
                .iter()
                .map(|o| (it.template.as_str(), o.instance_type.as_str(), o.subnet_id.as_str(), o.priority))
        })
        .collect();
    assert_eq!(
        overrides,
        [("amd", "m5.large", "subnet-b", 0), ("arm", "m7g.large", "subnet-a", 1), ("arm", "m7g.large", "subnet-b", 3)]
    );
    assert_eq!(made.not_asked, [(offering(&("m5.large", "c", "spot")), NotAsked::NoSubnet)]);
    assert_eq!(request.configs[0].overrides[0].image_id, "ami-amd");
}

#[test]
fn capacity_types_come_in_the_order_of_the_plan_each_with_a_token_of_its_own() {
    let groups = [
        group("on-demand", &[(2, "m5.large", "a", "on-demand")]),
        group("spot", &[(1, "m5.large", "a", "spot")]),
        group("reserved", &[(0, "m5.large", "b", "reserved")]),
    ];
    let in_order = made(&part(&[claim()]), &groups, Order::Plan).requests;
    let found: Vec<_> = in_order.iter().map(|it| (it.target, it.strategy)).collect();
    assert_eq!(
        found,
        [
            (Target::OnDemand, Some(Strategy::Prioritized)),
            (Target::Spot, Some(Strategy::CapacityOptimizedPrioritized)),
            (Target::OnDemand, Some(Strategy::Prioritized)),
        ]
    );
    let tokens: std::collections::BTreeSet<&str> = in_order.iter().map(|it| it.client_token.as_str()).collect();
    assert_eq!(tokens.len(), 3);
    let turned = made(&part(&[claim()]), &groups.into_iter().rev().collect::<Vec<_>>(), Order::Plan).requests;
    assert_eq!(turned, in_order, "whatever order the groups come in");
}

#[test]
fn reserved_capacity_is_bought_as_it_was_reserved() {
    for (market, target, strategy) in [
        (Market::OnDemand, Target::OnDemand, Some(Strategy::LowestPrice)),
        (Market::CapacityBlock, Target::CapacityBlock, None),
        (Market::Interruptible, Target::ReservedCapacity, None),
    ] {
        let mut group = group("reserved", &[(0, "p5.48xlarge", "a", "reserved")]);
        group.template.reservation = ReservationUse::Only { id: "cr-1".to_owned(), market };
        let made = made(&part(&[claim()]), &[group], Order::Price);
        assert_eq!((made.requests[0].target, made.requests[0].strategy), (target, strategy));
    }
}

#[test]
fn what_the_plan_likes_least_is_left_out_where_there_is_too_much() {
    let names: Vec<String> = (0..400).map(|number| format!("t{number}.large")).collect();
    let all: Vec<_> = names.iter().enumerate().map(|(place, name)| (place, name.as_str(), "a", "spot")).collect();
    let found = made(&part(&[claim()]), &[group("one", &all)], Order::Price);
    assert_eq!((found.requests[0].configs[0].overrides.len(), found.not_asked.len()), (OVERRIDES_MAX, 100));
    assert_eq!(found.not_asked[0], (offering(&("t300.large", "a", "spot")), NotAsked::TooMany));
    let each: Vec<Group> = all.iter().take(60).map(|it| group(&format!("template-{}", it.0), &[*it])).collect();
    let found = made(&part(&[claim()]), &each, Order::Price);
    assert_eq!((found.requests[0].configs.len(), found.not_asked.len()), (CONFIGS_MAX, 10));
}

#[test]
fn nothing_is_asked_for_where_there_is_no_subnet() {
    let found = made(&part(&[claim()]), &[group("one", &[(0, "m5.large", "z", "spot")])], Order::Price);
    assert_eq!((found.requests.len(), found.not_asked.len()), (0, 1));
}

#[test]
fn a_launch_with_less_variety_than_was_asked_for_has_no_context() {
    let claims = [claim()];
    let mut part = part(&claims);
    part.specification.lowers_min_values = true;
    let found = made(&part, &[group("one", &[(0, "m5.large", "a", "spot")])], Order::Price);
    assert_eq!(found.requests[0].context, None);
}
