//! Templates of the catalog in this binary.

use serde_json::{Value, json};

use super::*;
use crate::adapters::aws::launch_templates::{Market, NAME_PREFIX, PlacementGroup, ReservationUse};
use crate::api::ec2_node_class::EC2NodeClass;
use crate::core::catalog::Catalog;
use crate::core::catalog::user_data::Cluster;

fn class(spec: Value) -> EC2NodeClass {
    let mut class = json!({ "metadata": { "name": "default" },
        "spec": { "amiSelectorTerms": [{ "alias": "al2023@latest" }], "subnetSelectorTerms": [],
            "securityGroupSelectorTerms": [] },
        "status": { "instanceProfile": "nodes", "securityGroups": [{ "id": "sg-2" }, { "id": "sg-1" }, { "id": "sg-2" }],
            "amis": [image("ami-amd", "amd64"), image("ami-arm", "arm64")],
            "capacityReservations": [{ "id": "cr-1", "instanceType": "m5.large", "availabilityZone": "us-east-1a",
                "reservationType": "capacity-block" }] } });
    class["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(class).unwrap()
}

fn image(id: &str, architecture: &str) -> Value {
    json!({ "id": id, "requirements": [{ "key": "kubernetes.io/arch", "operator": "In", "values": [architecture] }] })
}

fn cluster() -> Cluster {
    Cluster {
        name: "demo".to_owned(),
        endpoint: "https://demo.example.com".to_owned(),
        certificate_authority: None,
        service_cidr: Some("10.100.0.0/16".to_owned()),
        dns_address: None,
    }
}

fn specification(offerings: &[(&str, &str, &str)]) -> LaunchSpecification {
    let labels = BTreeMap::from([("karpenter.sh/nodepool".to_owned(), "general".to_owned())]);
    LaunchSpecification { labels, ..LaunchSpecification::plain(offerings) }
}

fn grouped(class: &EC2NodeClass, specification: &LaunchSpecification) -> Grouped {
    group(&Resolved::of(class, &cluster(), "us-east-1"), specification, &types()).unwrap()
}

fn types() -> Vec<InstanceType> {
    Catalog::built_in("us-east-1").unwrap().instance_types
}

fn divided(grouped: &Grouped) -> Vec<Vec<usize>> {
    grouped.groups.iter().map(|group| group.offerings.iter().map(|(place, _)| *place).collect()).collect()
}

#[test]
fn types_with_the_same_image_and_pods_share_a_template() {
    let specification = specification(&[
        ("m5.large", "us-east-1a", "on-demand"),
        ("c5.large", "us-east-1a", "on-demand"),
        ("m5.large", "us-east-1b", "on-demand"),
        ("m5.xlarge", "us-east-1a", "on-demand"),
        ("m7g.large", "us-east-1a", "on-demand"),
        ("m5.large", "us-east-1a", "spot"),
    ]);
    let of_interfaces = grouped(&class(json!({})), &specification);
    assert_eq!(divided(&of_interfaces), [vec![0, 1, 2], vec![3], vec![4], vec![5]]);
    let images: Vec<&str> = of_interfaces.groups.iter().map(|group| group.template.image_id.as_str()).collect();
    assert_eq!(images, ["ami-amd", "ami-amd", "ami-arm", "ami-amd"]);
    let stated = grouped(&class(json!({ "kubelet": { "maxPods": 110 } })), &specification);
    assert_eq!(divided(&stated), [vec![0, 1, 2, 3], vec![4], vec![5]], "one number of pods for all types");
    assert!(stated.groups[0].template.user_data.contains("maxPods: 110"));
    assert!(stated.groups[2].template.tags_spot_requests && !stated.groups[0].template.tags_spot_requests);
}

#[test]
fn names_are_the_content_and_nothing_else() {
    let of = |spec: Value, offerings: &[(&str, &str, &str)]| {
        grouped(&class(spec), &specification(offerings)).groups[0].name.clone()
    };
    let first = of(json!({}), &[("m5.large", "us-east-1a", "on-demand")]);
    assert!(first.starts_with(NAME_PREFIX) && first.len() == NAME_PREFIX.len() + 32, "{first}");
    assert_eq!(
        first,
        of(json!({}), &[("c5.large", "us-east-1b", "on-demand"), ("m5.xlarge", "us-east-1a", "on-demand")])
    );
    let differing = [
        json!({ "tags": { "team": "a" } }),
        json!({ "detailedMonitoring": true }),
        json!({ "userData": "#!/bin/sh\ntrue" }),
        json!({ "metadataOptions": { "httpPutResponseHopLimit": 2 } }),
        json!({ "blockDeviceMappings": [{ "deviceName": "/dev/xvda", "ebs": { "volumeSize": "30Gi" } }] }),
        json!({ "cpuOptions": { "nestedVirtualization": "enabled" } }),
        json!({ "associatePublicIPAddress": true }),
        json!({ "kubelet": { "seccompDefault": true } }),
        json!({ "instanceStorePolicy": "RAID0" }),
    ];
    let m5 = [("m5.large", "us-east-1a", "on-demand")];
    let names: std::collections::BTreeSet<String> = differing.iter().map(|spec| of(spec.clone(), &m5)).collect();
    assert_eq!(names.len(), differing.len());
    assert!(!names.contains(&first));
}

#[test]
fn the_content_is_what_the_class_and_the_cluster_say() {
    let mut resolved_class = class(json!({ "detailedMonitoring": true, "tags": { "team": "a" },
        "metadataOptions": { "httpTokens": "optional", "httpEndpoint": null } }));
    let cluster = Cluster { dns_address: Some("fd00::a".parse().unwrap()), ..cluster() };
    let mut resolved = Resolved::of(&resolved_class, &cluster, "us-iso-east-1");
    resolved.placement_group = Some(PlacementGroup { id: "pg-1".to_owned(), partition: Some(3) });
    let specification = specification(&[("m5.large", "us-east-1a", "on-demand")]);
    let template = group(&resolved, &specification, &types()).unwrap().groups.remove(0).template;
    assert_eq!(template.interfaces[0].security_groups, ["sg-1", "sg-2"]);
    assert_eq!(template.interfaces[0].primary_ipv6, Some(true));
    assert_eq!(
        (template.metadata.http_endpoint.as_str(), template.metadata.http_tokens.as_str()),
        ("enabled", "optional")
    );
    assert_eq!((&template.metadata.http_protocol_ipv6, template.metadata.http_put_response_hop_limit), (&None, 1));
    assert_eq!(template.tags["karpenter.sh/nodepool"], "general");
    assert_eq!(template.placement_group.as_ref().and_then(|it| it.partition), Some(3));
    assert!(template.detailed_monitoring && template.reservation == ReservationUse::Open);
    resolved_class.status.as_mut().unwrap().security_groups.reverse();
    let mut turned = Resolved::of(&resolved_class, &cluster, "us-iso-east-1");
    turned.placement_group = Some(PlacementGroup { id: "pg-1".to_owned(), partition: Some(3) });
    assert_eq!(group(&turned, &specification, &types()).unwrap().groups[0].name, template.name());
}

#[test]
fn reservations_are_for_those_who_ask() {
    let class = class(json!({}));
    let cluster = cluster();
    let mut resolved = Resolved::of(&class, &cluster, "us-east-1");
    resolved.reserves_capacity = true;
    let mut specification =
        specification(&[("m5.large", "us-east-1a", "reserved"), ("m5.large", "us-east-1a", "on-demand")]);
    let without = group(&resolved, &specification, &types()).unwrap();
    assert_eq!(without.left_out[0].1, LeftOut::NoReservation);
    assert_eq!(without.groups[0].template.reservation, ReservationUse::None);
    specification.reservation = Some("cr-1".to_owned());
    let with = group(&resolved, &specification, &types()).unwrap();
    let block = ReservationUse::Only { id: "cr-1".to_owned(), market: Market::CapacityBlock };
    assert_eq!(with.groups[0].template.reservation, block);
    specification.reservation = Some("cr-2".to_owned());
    specification.labels.insert("karpenter.k8s.aws/capacity-reservation-interruptible".to_owned(), "true".to_owned());
    let market = |grouped: Grouped| grouped.groups[0].template.reservation.clone();
    let other = ReservationUse::Only { id: "cr-2".to_owned(), market: Market::Interruptible };
    assert_eq!(market(group(&resolved, &specification, &types()).unwrap()), other);
}

#[test]
fn fabric_adapters_are_made_where_there_are_some_and_they_are_asked_for() {
    let mut specification =
        specification(&[("p5.48xlarge", "us-east-1a", "on-demand"), ("m5.large", "us-east-1a", "on-demand")]);
    let interfaces = |specification: &LaunchSpecification| {
        grouped(&class(json!({})), specification)
            .groups
            .iter()
            .map(|it| it.template.interfaces.len())
            .collect::<Vec<_>>()
    };
    assert_eq!(interfaces(&specification), [1, 1]);
    specification.wants_efa = true;
    assert_eq!(interfaces(&specification), [32, 1]);
}

#[test]
fn what_can_not_be_launched_is_named() {
    let types_of = |specification: &LaunchSpecification, class: &EC2NodeClass| {
        group(&Resolved::of(class, &cluster(), "us-east-1"), specification, &types())
    };
    let found = grouped(&class(json!({})), &specification(&[("m5.none", "us-east-1a", "spot")]));
    assert_eq!((found.groups.len(), found.left_out[0].1), (0, LeftOut::UnknownInstanceType));
    let mut amd_only = class(json!({}));
    amd_only.status.as_mut().unwrap().amis.pop();
    assert_eq!(
        grouped(&amd_only, &specification(&[("m7g.large", "us-east-1a", "spot")])).left_out[0].1,
        LeftOut::NoImage
    );
    let m5 = specification(&[("m5.large", "us-east-1a", "spot")]);
    let mut bare = class(json!({}));
    bare.status = None;
    assert_eq!(
        types_of(&m5, &bare).unwrap_err().to_string(),
        "EC2NodeClass default has no image yet; its conditions say why"
    );
    let mut no_profile = class(json!({}));
    no_profile.status.as_mut().unwrap().instance_profile = None;
    assert!(types_of(&m5, &no_profile).unwrap_err().to_string().contains("no instance profile yet"));
    let mut no_groups = class(json!({}));
    no_groups.status.as_mut().unwrap().security_groups.clear();
    assert!(types_of(&m5, &no_groups).unwrap_err().to_string().contains("no security groups yet"));
    let reserved_tag = class(json!({ "tags": { "karpenter.sh/nodepool": "x" } }));
    assert!(matches!(types_of(&m5, &reserved_tag), Err(TemplateError::Tags(_))));
    let user_data = class(json!({ "userData": "a: b" }));
    assert!(matches!(types_of(&m5, &user_data), Err(TemplateError::UserData(_))));
}
