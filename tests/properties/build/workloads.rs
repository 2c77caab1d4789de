//! Pods of workloads and of DaemonSets, with what they mount.

use cutlist::api::keys;
use cutlist::core::snapshot::{Pod, Snapshot};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};

use super::catalog::type_name;
use super::definitions::team_name;
use super::{CPU, DRIVER, GPU, LICENCE, MEMORY, ZONES, minutes_ago, object, requirement};
use crate::world::{Constraint, Daemon, Workload, World};

pub(super) fn storage_classes() -> Vec<StorageClass> {
    let class = |name: &str, topologies: Value| {
        object(json!({
            "metadata": { "name": name }, "provisioner": DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies,
        }))
    };
    let in_zone =
        |zone: &&str| class(zone, json!([{ "matchLabelExpressions": [{ "key": keys::ZONE, "values": [zone] }] }]));
    ZONES.iter().map(in_zone).chain([class("anywhere", json!([]))]).collect()
}

pub(super) fn daemon_set(index: usize, daemon: &Daemon) -> Value {
    let name = format!("daemon-{index}");
    let mut container = json!({ "name": "main", "resources": { "requests": { "cpu": CPU[daemon.cpu] } } });
    if let Some(port) = daemon.host_port {
        container["ports"] = json!([host_port(port)]);
    }
    let selector = daemon.arm.map(|arm| json!({ keys::ARCHITECTURE: if arm { "arm64" } else { "amd64" } }));
    let tolerations = if daemon.tolerates { json!([{ "operator": "Exists" }]) } else { json!([]) };
    json!({
        "metadata": { "name": name, "namespace": "kube-system" },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [container], "nodeSelector": selector, "tolerations": tolerations },
            },
        },
    })
}

fn host_port(port: u8) -> Value {
    let port = 8000 + u16::from(port);
    json!({ "containerPort": port, "hostPort": port, "protocol": "TCP" })
}

fn app(index: usize) -> String {
    format!("app-{index}")
}

fn namespace(workload: &Workload) -> &'static str {
    if workload.other_namespace { "other" } else { "default" }
}

/// Adds what the workload needs and gives its pods, none of them bound yet.
pub(super) fn add_workload(index: usize, workload: &Workload, world: &World, snapshot: &mut Snapshot) -> Vec<Pod> {
    let namespace = namespace(workload);
    if let Some(allowed) = workload.disruption_budget {
        snapshot.pod_disruption_budgets.push(object(json!({
            "metadata": { "name": app(index), "namespace": namespace },
            "spec": { "selector": { "matchLabels": { "app": app(index) } }, "maxUnavailable": 1 },
            "status": {
                "disruptionsAllowed": allowed, "currentHealthy": workload.running, "desiredHealthy": 1,
                "expectedPods": workload.running + workload.pending,
            },
        })));
    }
    (0..workload.running + workload.pending)
        .map(|replica| {
            let name = format!("{}-{replica}", app(index));
            let annotations = if workload.do_not_disrupt { json!({ keys::DO_NOT_DISRUPT: "true" }) } else { json!({}) };
            let mut pod = json!({
                "metadata": {
                    "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "labels": { "app": app(index) },
                    "annotations": annotations, "creationTimestamp": minutes_ago(i64::from(replica)),
                    "ownerReferences": [{
                        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app(index), "uid": app(index), "controller": true
                    }],
                },
                "spec": {
                    "priority": workload.priority,
                    "containers": [{ "name": "main", "resources": { "requests": {
                        "cpu": CPU[workload.cpu], "memory": MEMORY[workload.memory],
                    } } }],
                },
                "status": { "phase": "Pending" },
            });
            for constraint in &workload.constraints {
                constrain(&mut pod, index, constraint, world, snapshot);
            }
            object(pod)
        })
        .collect()
}

fn push(list: &mut Value, item: Value) {
    if !list.is_array() {
        *list = json!([]);
    }
    list.as_array_mut().unwrap().push(item);
}

fn constrain(pod: &mut Value, own: usize, constraint: &Constraint, world: &World, snapshot: &mut Snapshot) {
    let other = |workload: usize| app(workload % world.workloads.len());
    let selector = |app: String| json!({ "matchLabels": { "app": app } });
    let spread = |key: &str, max_skew: u8, app: String, when: &str| json!({ "topologyKey": key, "maxSkew": max_skew, "whenUnsatisfiable": when, "labelSelector": selector(app) });
    let key = |by_zone: bool| if by_zone { keys::ZONE } else { keys::HOSTNAME };
    let term = |app: String, key: &str| json!({ "topologyKey": key, "labelSelector": selector(app) });
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let spec = &mut pod["spec"];
    let hard = "DoNotSchedule";
    match constraint {
        Constraint::ZoneSpread { max_skew, min_domains, honours_taints } => {
            let mut constraint = spread(keys::ZONE, *max_skew, app(own), hard);
            constraint["minDomains"] = json!(min_domains);
            constraint["nodeTaintsPolicy"] = json!(if *honours_taints { "Honor" } else { "Ignore" });
            push(&mut spec["topologySpreadConstraints"], constraint);
        }
        Constraint::HostnameSpread { max_skew } => {
            push(&mut spec["topologySpreadConstraints"], spread(keys::HOSTNAME, *max_skew, app(own), hard));
        }
        Constraint::CapacityTypeSpread => {
            push(&mut spec["topologySpreadConstraints"], spread(keys::CAPACITY_TYPE, 1, app(own), hard));
        }
        Constraint::SoftZoneSpread => {
            push(&mut spec["topologySpreadConstraints"], spread(keys::ZONE, 1, app(own), "ScheduleAnyway"));
        }
        Constraint::SpreadAmong { workload } => {
            push(&mut spec["topologySpreadConstraints"], spread(keys::ZONE, 1, other(*workload), hard));
        }
        Constraint::AntiAffinityByHostname => {
            push(&mut spec["affinity"]["podAntiAffinity"][REQUIRED], term(app(own), keys::HOSTNAME));
        }
        Constraint::AntiAffinityByZone => {
            push(&mut spec["affinity"]["podAntiAffinity"][REQUIRED], term(app(own), keys::ZONE));
        }
        Constraint::AffinityByZone => push(&mut spec["affinity"]["podAffinity"][REQUIRED], term(app(own), keys::ZONE)),
        Constraint::AffinityByHostname => {
            push(&mut spec["affinity"]["podAffinity"][REQUIRED], term(app(own), keys::HOSTNAME));
        }
        Constraint::AffinityTo { workload, by_zone } => {
            push(&mut spec["affinity"]["podAffinity"][REQUIRED], term(other(*workload), key(*by_zone)));
        }
        Constraint::AntiAffinityTo { workload, by_zone } => {
            push(&mut spec["affinity"]["podAntiAffinity"][REQUIRED], term(other(*workload), key(*by_zone)));
        }
        Constraint::TolerateEverything => push(&mut spec["tolerations"], json!({ "operator": "Exists" })),
        Constraint::TolerateTeamTaint => push(&mut spec["tolerations"], json!({ "key": "team", "value": "a" })),
        Constraint::HostPort { port } => push(&mut spec["containers"][0]["ports"], host_port(*port)),
        Constraint::Gpu => spec["containers"][0]["resources"]["requests"][GPU] = json!("1"),
        Constraint::Licence => spec["containers"][0]["resources"]["requests"][LICENCE] = json!("1"),
        Constraint::Sidecar { cpu, setup_cpu, is_first } => add_sidecar(spec, CPU[*cpu], CPU[*setup_cpu], *is_first),
        Constraint::PodLevelResources { cpu, is_limit } => {
            spec["resources"][if *is_limit { "limits" } else { "requests" }] = json!({ "cpu": CPU[*cpu] });
        }
        Constraint::SchedulingGate => push(&mut spec["schedulingGates"], json!({ "name": "example.com/wait" })),
        Constraint::VolumeInZone { zone } => add_volume(pod, Some(ZONES[*zone]), None, snapshot),
        Constraint::VolumeToCome { zone } => {
            add_volume(pod, None, Some(zone.map_or("anywhere", |zone| ZONES[zone])), snapshot);
        }
        Constraint::SharedVolume { for_one_pod } => add_shared_volume(pod, own, *for_one_pod, snapshot),
        Constraint::LocalVolume { node } => add_local_volume(pod, &format!("node-{node}"), snapshot),
        place => constrain_place(spec, place, world),
    }
}

fn add_sidecar(spec: &mut Value, cpu: &str, setup_cpu: &str, is_first: bool) {
    let container = |name: &str, cpu: &str| json!({ "name": name, "resources": { "requests": { "cpu": cpu } } });
    let mut sidecar = container("sidecar", cpu);
    sidecar["restartPolicy"] = json!("Always");
    let setup = container("setup", setup_cpu);
    let (one, two) = if is_first { (sidecar, setup) } else { (setup, sidecar) };
    push(&mut spec["initContainers"], one);
    push(&mut spec["initContainers"], two);
}

/// Constraints on the labels of the node.
fn constrain_place(spec: &mut Value, constraint: &Constraint, world: &World) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let types = &world.types;
    match constraint {
        Constraint::PreferredZone { zone } => {
            let preference = json!({ "matchExpressions": [requirement(keys::ZONE, "In", json!([ZONES[*zone]]))] });
            let preferred = &mut spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
            push(preferred, json!({ "weight": 10, "preference": preference }));
        }
        Constraint::EitherZone { one, two } => {
            let term =
                |zone: usize| json!({ "matchExpressions": [requirement(keys::ZONE, "In", json!([ZONES[zone]]))] });
            spec["affinity"]["nodeAffinity"][REQUIRED] = json!({ "nodeSelectorTerms": [term(*one), term(*two)] });
        }
        Constraint::NotInstanceType { instance_type } => {
            let index = instance_type % types.len();
            let name = type_name(index, &types[index]);
            let term = json!({ "matchExpressions": [requirement(keys::INSTANCE_TYPE, "NotIn", json!([name]))] });
            spec["affinity"]["nodeAffinity"][REQUIRED] = json!({ "nodeSelectorTerms": [term] });
        }
        Constraint::GenerationAbove { generation } => {
            let above = requirement(keys::INSTANCE_GENERATION, "Gt", json!([generation.to_string()]));
            spec["affinity"]["nodeAffinity"][REQUIRED] =
                json!({ "nodeSelectorTerms": [{ "matchExpressions": [above] }] });
        }
        Constraint::Zone { zone } => spec["nodeSelector"][keys::ZONE] = json!(ZONES[*zone]),
        Constraint::Architecture { arm } => {
            spec["nodeSelector"][keys::ARCHITECTURE] = json!(if *arm { "arm64" } else { "amd64" });
        }
        Constraint::CapacityType { spot } => {
            spec["nodeSelector"][keys::CAPACITY_TYPE] = json!(if *spot { keys::SPOT } else { keys::ON_DEMAND });
        }
        Constraint::Team { team } => spec["nodeSelector"]["team"] = json!(team_name(*team)),
        other => panic!("{other:?} is no constraint on a place"),
    }
}

/// A claim that all pods of the workload name, not bound yet.
fn add_shared_volume(pod: &mut Value, own: usize, for_one_pod: bool, snapshot: &mut Snapshot) {
    let mode = if for_one_pod { "ReadWriteOncePod" } else { "ReadWriteMany" };
    let name = format!("{}-shared-{for_one_pod}", app(own));
    let source = json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
    push(&mut pod["spec"]["volumes"], source);
    if snapshot.persistent_volume_claims.iter().all(|claim| claim.metadata.name.as_deref() != Some(&name)) {
        snapshot.persistent_volume_claims.push(object(json!({
            "metadata": { "name": name, "namespace": pod["metadata"]["namespace"] },
            "spec": { "accessModes": [mode], "storageClassName": "anywhere", "resources": { "requests": { "storage": "1Gi" } } },
            "status": { "phase": "Pending" },
        })));
    }
}

/// A claim for this pod, bound to a disk of a node.
fn add_local_volume(pod: &mut Value, node: &str, snapshot: &mut Snapshot) {
    add_volume(pod, Some(ZONES[0]), None, snapshot);
    let mut volumes: Vec<_> = snapshot.persistent_volumes.iter().cloned().collect();
    let mut changed = serde_json::to_value(volumes.pop().unwrap()).unwrap();
    let on_node = json!({ "matchExpressions": [requirement(keys::HOSTNAME, "In", json!([node]))] });
    changed["spec"]["csi"].take();
    changed["spec"]["local"] = json!({ "path": "/mnt/disk" });
    changed["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"] = json!([on_node]);
    volumes.push(object(changed));
    snapshot.persistent_volumes = volumes.into();
}

/// A claim for this pod: bound to a volume in a zone, or waiting for its first consumer.
fn add_volume(pod: &mut Value, zone: Option<&str>, class: Option<&str>, snapshot: &mut Snapshot) {
    let owner = pod["metadata"]["name"].as_str().unwrap().to_owned();
    let volumes = pod["spec"]["volumes"].as_array().map_or(0, Vec::len);
    let name = format!("{owner}-data-{volumes}");
    let namespace = pod["metadata"]["namespace"].clone();
    push(
        &mut pod["spec"]["volumes"],
        json!({ "name": format!("data-{volumes}"), "persistentVolumeClaim": { "claimName": name } }),
    );
    let annotations = if zone.is_some() { json!({ "pv.kubernetes.io/bind-completed": "yes" }) } else { json!({}) };
    let volume = zone.map(|_| name.clone());
    snapshot.persistent_volume_claims.push(object(json!({
        "metadata": { "name": name, "namespace": namespace, "annotations": annotations },
        "spec": { "accessModes": ["ReadWriteOnce"], "storageClassName": class.unwrap_or("anywhere"), "volumeName": volume,
            "resources": { "requests": { "storage": "1Gi" } } },
        "status": { "phase": if zone.is_some() { "Bound" } else { "Pending" } },
    })));
    if let Some(zone) = zone {
        let term = json!({ "matchExpressions": [requirement(keys::ZONE, "In", json!([zone]))] });
        snapshot.persistent_volumes.push(object(json!({
            "metadata": { "name": name },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "anywhere",
                "csi": { "driver": DRIVER, "volumeHandle": format!("vol-{name}") },
                "claimRef": { "namespace": namespace, "name": name },
                "nodeAffinity": { "required": { "nodeSelectorTerms": [term] } },
            },
            "status": { "phase": "Bound" },
        })));
    }
}
