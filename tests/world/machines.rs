use cutlist::core::snapshot::Snapshot;
use cutlist::ports::{Cloud, Cluster, Offering, PortErrorKind};
use serde_json::json;

use crate::scene::{claim, deployment, launch, load_deployment, pass, seconds_since_beginning, world};

#[tokio::test(start_paused = true)]
async fn an_instance_boots_joins_and_gets_ready_within_a_minute() {
    let world = world(0);
    let (cluster, cloud) = (world.cluster(), world.cloud());
    cluster.create_node_claim(&claim("default-1")).await.unwrap();
    let instance = launch(&cloud, "uid", "default-1", &["c7.2xlarge"], "on-demand").await.unwrap();
    let again = launch(&cloud, "uid", "default-1", &["c7.2xlarge"], "on-demand").await.unwrap();
    assert_eq!(instance, again, "the claim launches once");

    let ready = loop {
        let nodes = cluster.observe().await.unwrap().nodes.clone();
        if let Some(node) = nodes.first() {
            let taints = node.spec.as_ref().unwrap().taints.clone().unwrap_or_default();
            assert!(taints.iter().any(|taint| taint.key == "karpenter.sh/unregistered"));
            if !taints.iter().any(|taint| taint.key == "node.kubernetes.io/not-ready") {
                break node.clone();
            }
        }
        cluster.changed().await;
    };
    let seconds = seconds_since_beginning(&world);
    assert!((32..=45).contains(&seconds), "{seconds}");
    let labels = ready.metadata.labels.unwrap();
    assert_eq!(labels["topology.kubernetes.io/zone"], "zone-a");
    assert_eq!(labels["team"], "a");
    assert_eq!(ready.status.unwrap().allocatable.unwrap()["cpu"].0, "7910m");

    cloud.terminate(&instance.provider_id).await.unwrap();
    pass(&world, 10).await;
    let error = cloud.terminate(&instance.provider_id).await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn many_instances_have_as_many_names() {
    // Of some forty thousand addresses, drawn without a look, thirty pairs would be the same.
    const INSTANCES: usize = 1500;
    let world = world(0);
    let (cluster, cloud) = (world.cluster(), world.cloud());
    for number in 0..INSTANCES {
        launch(&cloud, &format!("uid-{number}"), "default-1", &["c7.2xlarge"], "on-demand").await.unwrap();
    }
    pass(&world, 60).await;
    assert_eq!(cluster.observe().await.unwrap().nodes.len(), INSTANCES);
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_counted_down_and_up_again() {
    let world = world(0);
    let cloud = &world.cloud();
    let reservation =
        json!({"id": "cr-1", "instanceType": "c7.large", "availabilityZone": "zone-a", "availableInstanceCount": 1});
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {"subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": []},
        "status": {"capacityReservations": [&reservation]},
    });
    let snapshot =
        Snapshot { node_classes: vec![serde_json::from_value(class).unwrap()].into(), ..Snapshot::default() };
    world.with(|world| world.load(snapshot));
    let reserved = async |name: &str| launch(cloud, name, name, &["c7.large"], "reserved").await;
    let first = reserved("default-1").await.unwrap();
    assert_eq!(first.capacity_type, "reserved");
    assert_eq!(reserved("default-1").await.unwrap(), first, "the claim launches once");
    let error = reserved("default-2").await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::InsufficientCapacity);
    // Whoever looked before that writes what was left then.
    let status = json!({"capacityReservations": [&reservation]});
    let before = json!({"kind": "EC2NodeClass", "metadata": {"name": "default"}, "status": status});
    world.cluster().write_status(&before).await.unwrap();
    let error = reserved("default-2").await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::InsufficientCapacity, "what a status says launches nothing");
    let class = world.cluster().observe().await.unwrap().node_classes.first().unwrap().clone();
    let found = cloud.describe(&class).await.unwrap().found.unwrap();
    assert_eq!(found.capacity_reservations[0].available_instance_count, Some(0), "who asks is told");
    cloud.terminate(&first.provider_id).await.unwrap();
    pass(&world, 30).await;
    assert!(reserved("default-2").await.is_ok(), "the instance is left again");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_found_starting_gets_its_devices_and_loses_its_taints() {
    let world = world(0);
    let is_true = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": type_, "message": "",
            "lastTransitionTime": "2026-11-20T08:59:00Z"})
    };
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": "default-1", "uid": "claim", "creationTimestamp": "2026-11-20T08:59:00Z",
            "labels": {"node.kubernetes.io/instance-type": "c7.large"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [], "resources": {"requests": {"example.com/device": "1"}}},
        "status": {"providerID": "aws:///zone-a/i-1", "nodeName": "n1",
            "conditions": [is_true("Launched"), is_true("Registered")]},
    });
    let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
    let node = json!({
        "metadata": {"name": "n1", "uid": "node", "creationTimestamp": "2026-11-20T08:59:00Z"},
        "spec": {"providerID": "aws:///zone-a/i-1", "taints": [taint("readiness.k8s.io/cni"),
            taint("node.cloudprovider.kubernetes.io/uninitialized"), taint("team")]},
        "status": {"allocatable": {"cpu": "1910m", "example.com/device": "0"},
            "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let snapshot = Snapshot {
        node_claims: vec![serde_json::from_value(claim).unwrap()].into(),
        nodes: vec![serde_json::from_value(node).unwrap()].into(),
        ..Snapshot::default()
    };
    world.with(|world| world.take_over(snapshot));
    pass(&world, 20).await;
    let node = world.cluster().observe().await.unwrap().nodes.first().unwrap().clone();
    let taints = node.spec.unwrap().taints.unwrap_or_default();
    let keys: Vec<&str> = taints.iter().map(|taint| taint.key.as_str()).collect();
    assert_eq!(keys, ["team"], "what does not go by itself stays");
    assert_eq!(node.status.unwrap().allocatable.unwrap()["example.com/device"].0, "1");
}

#[tokio::test(start_paused = true)]
async fn capacity_runs_out_and_comes_back() {
    let world = world(0);
    let cloud = world.cloud();
    let offering =
        Offering { instance_type: "c7.large".into(), zone: "zone-a".into(), capacity_type: "on-demand".into() };
    world.with(|world| world.exhaust(offering.clone()));
    let error = launch(&cloud, "a", "claim-a", &["c7.large"], "on-demand").await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::InsufficientCapacity);
    let available =
        |catalog: std::sync::Arc<cutlist::core::catalog::Catalog>| catalog.instance_types[0].offerings[0].available;
    assert!(!available(cloud.catalog().await.unwrap()));
    pass(&world, 181).await;
    assert!(available(cloud.catalog().await.unwrap()), "after three minutes it is worth another try");
    let second = launch(&cloud, "a", "claim-a", &["c7.large", "c7.2xlarge"], "on-demand").await.unwrap();
    assert_eq!(second.instance_type, "c7.2xlarge");
    world.with(|world| world.replenish(&offering));
    let third = launch(&cloud, "b", "claim-b", &["c7.large"], "on-demand").await.unwrap();
    assert_eq!(third.instance_type, "c7.large");
}

#[tokio::test(start_paused = true)]
async fn a_patch_made_from_an_old_node_brings_no_taint_back() {
    let world = world(0);
    let (cluster, cloud) = (world.cluster(), world.cloud());
    launch(&cloud, "uid", "none", &["c7.2xlarge"], "on-demand").await.unwrap();
    pass(&world, 60).await;
    let old = cluster.observe().await.unwrap().nodes[0].clone();
    let kept: Vec<_> = old.spec.clone().unwrap().taints.unwrap();
    cluster.patch_node(&old, &json!({"spec": {"taints": []}})).await.unwrap();
    let refused = cluster.patch_node(&old, &json!({"spec": {"taints": kept}})).await.unwrap_err();
    assert_eq!(refused.kind, PortErrorKind::Conflict);
    let labelled = json!({"metadata": {"labels": {"team": "a"}}});
    cluster.patch_node(&old, &labelled).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reclaimed_spot_instance_takes_its_node_and_pods() {
    let world = world(0);
    let (cluster, cloud) = (world.cluster(), world.cloud());
    load_deployment(&world, deployment("web", 2, "1"));
    let instance = launch(&cloud, "uid", "none", &["c7.2xlarge"], "spot").await.unwrap();
    pass(&world, 60).await;
    let node = cluster.observe().await.unwrap().nodes[0].clone();
    cluster.patch_node(&node, &json!({"spec": {"taints": []}})).await.unwrap();
    assert_eq!(world.with(|world| world.pod_counts()), (2, 0));
    assert!(world.with(|world| world.interrupt(&instance.provider_id)));
    pass(&world, 119).await;
    assert_eq!(world.with(|world| world.pod_counts()), (2, 0));
    pass(&world, 2).await;
    assert_eq!(world.with(|world| world.pod_counts()), (0, 2), "the pods are made again and wait");
}
