//! A small plan that is right, and one way after the other to break it: the checker must name each.

mod adoptions;
mod constraints;
mod going_first;
mod looks;
mod pending;
mod repairs;
mod reservations;
mod rollouts;
mod volumes;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::catalog::{Catalog, NodeCosts};
use crate::inputs::{Inputs, Policy, RefusedOffering};
use crate::model::HourlyPrice;
use crate::plan::{CostsPerHour, Plan, ReasonCode, Revision, Step};
use crate::snapshot::Snapshot;
use crate::testing::{BuildNode, BuildPod, Merge, node, object, pod, snapshot};
use cutlist_api::disruption_budget::DisruptionBudget;
use cutlist_api::duration::NillableDuration;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_overlay::NodeOverlay;
use cutlist_api::node_pool::{IntOrString, NodePool};
use cutlist_api::settings::{MinValuesPolicy, Penalties};

use super::{ViolationCode as Code, check};

const NOW: &str = "2026-11-20T12:00:00Z";

/// Inputs and a plan for them.
#[derive(Clone)]
struct Case {
    snapshot: Snapshot,
    pools: Vec<NodePool>,
    classes: Vec<EC2NodeClass>,
    overlays: Vec<NodeOverlay>,
    budgets: Vec<DisruptionBudget>,
    catalog: Catalog,
    zones_with_subnet: BTreeMap<String, Vec<String>>,
    policy: Policy,
    plan: Plan,
}

impl Case {
    /// With the id that belongs to the content.
    fn check(&self) -> Vec<super::Violation> {
        let mut case = self.clone();
        case.plan.id = case.plan.content_hash();
        case.check_as_it_is()
    }

    fn check_as_it_is(&self) -> Vec<super::Violation> {
        check(&self.plan, &self.inputs())
    }

    fn inputs(&self) -> Inputs<'_> {
        Inputs {
            revision: Revision { id: "abc".to_owned(), reference: "main".to_owned() },
            cluster: "demo",
            node_pools: &self.pools,
            node_classes: &self.classes,
            node_overlays: &self.overlays,
            capacity_buffers: &[],
            pod_templates: &[],
            disruption_budgets: &self.budgets,
            places: crate::plan::DefinitionPlaces::none(),
            snapshot: &self.snapshot,
            catalog: &self.catalog,
            policy: Policy { zones_with_subnet: self.zones_with_subnet.clone(), ..self.policy.clone() },
            seed: 7,
            now: NOW.parse().unwrap(),
            notes: Vec::new(),
        }
    }

    fn step(&mut self, claim: &str) -> &mut Step {
        self.plan.steps.iter_mut().find(|step| step.node_claim == claim).unwrap()
    }

    fn edit_step(&mut self, claim: &str, patch: Value) {
        let step = self.step(claim);
        *step = step.clone().merge(patch);
    }

    fn edit_pod(&mut self, name: &str, edit: impl Fn(crate::snapshot::Pod) -> crate::snapshot::Pod) {
        let pod = self.snapshot.pods.iter_mut().find(|pod| pod.metadata.name == name).unwrap();
        *pod = edit(pod.clone());
    }

    fn edit_node(&mut self, name: &str, patch: Value) {
        let node = self.snapshot.nodes.iter_mut().find(|node| node.metadata.name.as_deref() == Some(name)).unwrap();
        *node = node.clone().merge(patch);
    }

    fn edit_claim(&mut self, name: &str, patch: Value) {
        let claims = &mut self.snapshot.node_claims;
        let claim = claims.iter_mut().find(|claim| claim.metadata.name.as_deref() == Some(name)).unwrap();
        *claim = claim.clone().merge(patch);
    }

    fn edit_pool(&mut self, patch: Value) {
        self.pools[0] = self.pools[0].clone().merge(patch);
    }

    /// The class as it is defined is in the cluster, with this status.
    fn apply_class(&mut self, status: Value) {
        self.snapshot.node_classes.push(self.classes[0].clone().merge(json!({ "status": status })));
    }

    fn disruption_budget(&mut self, spec: Value) {
        self.budgets.push(object(json!({
            "apiVersion": "cutlist.dev/v1alpha1", "kind": "DisruptionBudget",
            "metadata": { "name": "everything" }, "spec": spec,
        })));
    }
}

fn instance_type(name: &str, cpu: u32, memory: &str, price: f64) -> Value {
    let offering = |zone: &str| json!({ "zone": zone, "capacityType": "on-demand", "price": price });
    json!({
        "name": name,
        "requirements": {
            keys::INSTANCE_TYPE: [name], keys::ARCHITECTURE: ["amd64"], keys::OPERATING_SYSTEM: ["linux"],
            keys::INSTANCE_CATEGORY: ["m"], keys::ZONE: ["a", "b"], keys::CAPACITY_TYPE: ["on-demand"],
        },
        "capacity": { "cpu": cpu.to_string(), "memory": memory, "pods": "20", "ephemeral-storage": "20Gi" },
        "overhead": {},
        "offerings": [offering("a"), offering("b"), { "zone": "c", "capacityType": "on-demand", "price": price, "available": false }],
    })
}

fn claim_of(name: &str, node: &str) -> NodeClaim {
    object(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": name, "creationTimestamp": "2026-11-20T00:00:00Z" },
        "spec": {
            "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
            "requirements": [], "expireAfter": "720h",
        },
        "status": {
            "nodeName": node, "lastPodEventTime": "2026-11-20T11:00:00Z",
            "conditions": [{ "type": "Initialized", "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-11-20T00:10:00Z" }],
        },
    }))
}

fn pool_node(name: &str, instance_type: &str, cpu: &str, memory: &str) -> k8s_openapi::api::core::v1::Node {
    node(name)
        .allocatable(cpu, memory, "20")
        .node_label(keys::NODE_POOL, "default")
        .node_label(keys::INSTANCE_TYPE, instance_type)
        .node_label(keys::CAPACITY_TYPE, keys::ON_DEMAND)
        .node_label(keys::INITIALIZED, "true")
}

fn launch(claim: &str, instance_types: &[(&str, f64)]) -> Value {
    let names: Vec<&str> = instance_types.iter().map(|(name, _)| *name).collect();
    let alternative = |(name, price): &(&str, f64)| json!({ "instanceType": name, "zone": "a", "capacityType": "on-demand", "pricePerHour": price });
    json!({
        "nodeClaim": {
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": claim, "labels": { keys::NODE_POOL: "default", "team": "blue" } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [{ "key": keys::INSTANCE_TYPE, "operator": "In", "values": names }],
                "expireAfter": "720h",
            },
        },
        "alternatives": instance_types.iter().map(alternative).collect::<Vec<_>>(),
    })
}

/// One node for two pending pods, one pending pod on a node that is there, an empty node removed, and a large node
/// replaced by a small one.
fn valid() -> Case {
    let mut snapshot = snapshot(
        [
            pool_node("node-empty", "m.large", "2", "8Gi"),
            pool_node("node-big", "m.xlarge", "4", "16Gi"),
            pool_node("node-kept", "m.large", "2", "8Gi"),
        ],
        [
            pod("job-0").cpu("1500m").unschedulable().owned_by("ReplicaSet", "job"),
            pod("job-1").cpu("1500m").unschedulable().owned_by("ReplicaSet", "job"),
            pod("tiny").cpu("300m").unschedulable(),
            pod("never").cpu("64").unschedulable(),
            pod("web-0").cpu("1").label("app", "web").owned_by("ReplicaSet", "web").on("node-big"),
            pod("api-0").cpu("1500m").label("app", "api").owned_by("ReplicaSet", "api").on("node-kept"),
        ],
    );
    snapshot.node_claims = vec![
        claim_of("claim-empty", "node-empty"),
        claim_of("claim-big", "node-big"),
        claim_of("claim-kept", "node-kept"),
    ]
    .into();
    let daemon = json!({ "metadata": { "labels": { "app": "agent" } }, "spec": { "containers": [
        { "name": "agent", "resources": { "requests": { "cpu": "100m" } } }
    ] } });
    snapshot.daemon_sets.push(object(json!({
        "metadata": { "name": "agent", "namespace": "kube-system" },
        "spec": { "selector": { "matchLabels": { "app": "agent" } }, "template": daemon },
    })));
    Case {
        snapshot,
        pools: vec![object(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
            "spec": {
                "template": {
                    "metadata": { "labels": { "team": "blue" } },
                    "spec": {
                        "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                        "requirements": [{ "key": keys::INSTANCE_CATEGORY, "operator": "In", "values": ["m", "c"] }],
                    },
                },
                "disruption": { "consolidateAfter": "30s", "budgets": [{ "nodes": "2" }] },
                "limits": { "cpu": 20 },
            },
        }))],
        classes: vec![object(json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": { "name": "default" },
            "spec": { "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "amiSelectorTerms": [] },
        }))],
        overlays: Vec::new(),
        budgets: Vec::new(),
        catalog: object(json!({
            "version": 1, "region": "us-east-1", "date": "2026-11-20",
            "instanceTypes": [
                instance_type("m.large", 2, "8Gi", 0.1),
                instance_type("m.xlarge", 4, "16Gi", 0.2),
                instance_type("m.2xlarge", 8, "32Gi", 0.4),
            ],
        })),
        zones_with_subnet: BTreeMap::new(),
        policy: Policy { penalties: Penalties { per_node_per_hour: 0.0, ..Penalties::default() }, ..Policy::default() },
        plan: object(valid_plan()),
    }
}

fn valid_plan() -> Value {
    let step = |kind: &str, number: u32, claim: &str, instance_type: &str, price: f64, pods: &[&str], reason: &str| {
        json!({
            "kind": kind, "move": number, "nodePool": "default", "nodeClaim": claim, "instanceType": instance_type,
            "zone": "a", "capacityType": "on-demand", "pricePerHour": price, "pods": pods,
            "reason": { "code": reason, "text": "" }, "preconditions": [], "allocatable": {}, "requested": {},
        })
    };
    let create = |number,
                  claim,
                  alternatives: &[(&str, f64)],
                  pods: &[&str],
                  reason,
                  cpu: &str,
                  memory: &str,
                  requested: &str| {
        let (name, price) = alternatives[0];
        step("create", number, claim, name, price, pods, reason).merge(json!({
            "launch": launch(claim, alternatives),
            "allocatable": { "cpu": cpu, "memory": memory, "pods": 20, "ephemeral-storage": "20Gi" },
            "requested": { "cpu": requested, "pods": pods.len() + 1 },
        }))
    };
    let remove = |number, claim, node: &str, name, price, pods: &[&str], reason| {
        step("remove", number, claim, name, price, pods, reason).merge(json!({ "node": node }))
    };
    json!({
        "version": 1, "id": "0".repeat(64), "revision": { "id": "abc", "reference": "main" }, "cluster": "demo",
        "generatedFor": NOW, "catalogDate": "2026-11-20", "seed": 7, "packing": "cheapest",
        "steps": [
            create(1, "new-1", &[("m.xlarge", 0.2), ("m.2xlarge", 0.4)], &["default/job-0", "default/job-1"], "PodsPending", "4", "16Gi", "3100m"),
            remove(2, "claim-empty", "node-empty", "m.large", 0.1, &[], "Empty"),
            create(3, "new-2", &[("m.large", 0.1)], &["default/web-0"], "Underutilized", "2", "8Gi", "1100m"),
            remove(3, "claim-big", "node-big", "m.xlarge", 0.2, &["default/web-0"], "Underutilized"),
        ],
        "placements": [{ "pod": "default/tiny", "node": "node-kept" }],
        "pending": [{ "pods": ["default/never"], "reasons": [{ "nodePool": "default", "code": "NoInstanceTypeFits", "text": "" }] }],
        "heldBack": [], "notes": [],
        "budgets": [{
            "name": "default", "kind": "NodePool", "nodes": "2", "reasons": [], "nodesCounted": 3, "allowed": 2, "used": 2, "active": true,
        }],
        "summary": {
            "nodesBefore": 3, "nodesAfter": 3, "nodesCreated": 1, "nodesReplaced": 1, "nodesRemoved": 1,
            "pricePerHourBefore": 0.4, "pricePerHourAfter": 0.4,
            "podsPlaced": 3, "podsPending": 1, "podsDisrupted": 1, "candidates": 3, "candidatesExamined": 3,
        },
    })
}

#[test]
fn a_valid_plan_is_valid() {
    let violations = valid().check();
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Breaks the valid case, and expects the checker to say so.
#[track_caller]
fn breaks(code: Code, edit: impl FnOnce(&mut Case)) {
    let mut case = valid();
    edit(&mut case);
    let violations = case.check();
    assert!(violations.iter().any(|violation| violation.code == code), "{code:?} is missing in {violations:#?}");
}

#[test]
fn the_document() {
    assert!(valid().check_as_it_is().iter().any(|violation| violation.code == Code::WrongId));
    breaks(Code::WrongInput, |case| case.plan.seed = 8);
    breaks(Code::WrongInput, |case| case.plan.generated_for = "yesterday".to_owned());
    breaks(Code::WrongOrder, |case| case.plan.steps.swap(0, 1));
    breaks(Code::WrongOrder, |case| case.plan.steps.swap(2, 3));
    breaks(Code::DuplicateName, |case| case.edit_step("new-2", json!({ "nodeClaim": "new-1" })));
    breaks(Code::DuplicateName, |case| case.edit_step("new-2", json!({ "nodeClaim": "claim-kept" })));
    breaks(Code::UnknownNode, |case| case.edit_step("claim-big", json!({ "node": "node-lost" })));
    breaks(Code::UnknownNode, |case| case.edit_step("claim-big", json!({ "node": "node-kept" })));
    breaks(Code::UnknownNodePool, |case| case.edit_step("new-1", json!({ "nodePool": "other" })));
    breaks(Code::UnknownNodeClass, |case| case.classes.clear());
}

#[test]
fn each_pod_once() {
    breaks(Code::UnknownPod, |case| case.step("new-1").pods.push("default/ghost".to_owned()));
    breaks(Code::PodInTwoPlaces, |case| case.step("new-2").pods.push("default/job-0".to_owned()));
    breaks(Code::PodInTwoPlaces, |case| case.plan.pending[0].pods.push("default/tiny".to_owned()));
    breaks(Code::PendingPodForgotten, |case| case.plan.pending.clear());
    breaks(Code::PodWithoutPlace, |case| case.step("new-2").pods.clear());
    breaks(Code::PodMovedWithoutReason, |case| case.step("new-2").pods.push("default/api-0".to_owned()));
    breaks(Code::PendingPodFits, |case| case.edit_pod("never", |pod| pod.cpu("0")));
    breaks(Code::UnknownNode, |case| case.plan.placements[0].node = "node-big".to_owned());
}

#[test]
fn what_is_created() {
    breaks(Code::CreatedForNothing, |case| case.step("new-1").pods.clear());
    breaks(Code::InstanceTypeNotAllowed, |case| {
        case.edit_pool(json!({ "spec": { "template": { "spec": { "requirements": [
            { "key": keys::INSTANCE_CATEGORY, "operator": "In", "values": ["c"] }
        ] } } } }));
    });
    breaks(Code::InstanceTypeNotAllowed, |case| {
        case.edit_pool(json!({ "spec": { "template": { "spec": { "requirements": [
            { "key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Exists" }
        ] } } } }));
    });
    breaks(Code::OfferingNotAvailable, |case| {
        case.edit_step("new-1", json!({ "zone": "c", "launch": { "alternatives": [] } }));
    });
    breaks(Code::OfferingNotAvailable, |case| {
        case.edit_step("new-1", json!({ "zone": "d", "launch": { "alternatives": [] } }));
    });
    breaks(Code::ZoneWithoutSubnet, |case| {
        case.zones_with_subnet.extend([("default".to_owned(), vec!["b".to_owned()])]);
    });
    breaks(Code::TypeWithoutImage, |case| {
        let arm = json!([{ "key": keys::ARCHITECTURE, "operator": "In", "values": ["arm64"] }]);
        case.apply_class(json!({ "amis": [{ "id": "ami-1", "requirements": arm }] }));
    });
    breaks(Code::ClassNotReady, |case| {
        case.apply_class(json!({ "conditions": [{ "type": "SubnetsReady", "status": "False",
            "reason": "SubnetsNotFound", "message": "", "lastTransitionTime": "2026-11-20T08:00:00Z" }] }));
    });
    breaks(Code::WrongPrice, |case| {
        case.step("new-1").launch.as_mut().unwrap().alternatives[1].price_per_hour = HourlyPrice::ZERO;
    });
    breaks(Code::LaunchDiffers, |case| case.step("new-1").instance_type = "m.2xlarge".to_owned());
    breaks(Code::LaunchDiffers, |case| case.step("new-1").launch = None);
    breaks(Code::LaunchDiffers, |case| {
        case.edit_pool(
            json!({ "spec": { "template": { "spec": { "taints": [{ "key": "team", "effect": "NoSchedule" }] } } } }),
        );
    });
    breaks(Code::LaunchDiffers, |case| {
        let requirement = json!([{ "key": keys::INSTANCE_TYPE, "operator": "In", "values": ["m.xlarge"] }]);
        case.edit_step("new-1", json!({ "launch": { "nodeClaim": { "spec": { "requirements": requirement } } } }));
    });
    breaks(Code::TooFewAlternatives, |case| {
        case.edit_pool(json!({ "spec": { "template": { "spec": { "requirements": [
            { "key": keys::INSTANCE_TYPE, "operator": "Exists", "minValues": 3 }
        ] } } } }));
    });
    breaks(Code::LimitExceeded, |case| case.edit_pool(json!({ "spec": { "limits": { "cpu": 13 } } })));
    breaks(Code::LimitExceeded, |case| case.edit_pool(json!({ "spec": { "limits": { "nodes": 4 } } })));
    breaks(Code::WrongResources, |case| case.step("new-1").requested.set("cpu", 3000));
    breaks(Code::WrongResources, |case| case.step("new-1").allocatable.set("pods", 110));
}

#[test]
fn where_pods_go() {
    breaks(Code::Refused, |case| case.edit_pod("job-0", |pod| pod.cpu("2600m")));
    breaks(Code::Refused, |case| case.edit_pod("tiny", |pod| pod.cpu("600m")));
    breaks(Code::Refused, |case| case.edit_pod("job-0", |pod| pod.node_selector("team", "red")));
    breaks(Code::Refused, |case| case.edit_pod("job-0", |pod| pod.node_selector(keys::ZONE, "b")));
    breaks(Code::Refused, |case| {
        for name in ["job-0", "job-1"] {
            case.edit_pod(name, |pod| pod.label("app", "job").anti_affinity_to("job", keys::HOSTNAME));
        }
    });
    breaks(Code::Refused, |case| {
        for name in ["job-0", "job-1"] {
            case.edit_pod(name, |pod| pod.label("app", "job").spread(keys::HOSTNAME, 1, "job"));
        }
    });
    breaks(Code::Refused, |case| {
        for name in ["job-0", "job-1"] {
            case.edit_pod(name, |pod| pod.host_port(80));
        }
    });
    // DaemonSets come along: 4 cores hold two pods of 1950m, but not beside the agent.
    breaks(Code::Refused, |case| {
        for name in ["job-0", "job-1"] {
            case.edit_pod(name, |pod| pod.cpu("1960m"));
        }
    });
    // The alternative that may be launched instead lacks what the shown one has.
    breaks(Code::Refused, |case| {
        case.edit_pod("job-0", |pod| pod.node_affinity(keys::INSTANCE_TYPE, "NotIn", &["m.2xlarge"]));
    });
    breaks(Code::Refused, |case| case.edit_node("node-kept", json!({ "spec": { "unschedulable": true } })));
    breaks(Code::Refused, |case| {
        case.edit_pool(
            json!({ "spec": { "template": { "spec": { "taints": [{ "key": "team", "effect": "NoSchedule" }] } } } }),
        );
    });
    breaks(Code::Refused, |case| {
        case.classes[0] = case.classes[0].clone().merge(json!({ "spec": { "kubelet": { "maxPods": 2 } } }));
    });
}

#[test]
fn pods_that_need_each_other_are_placed_in_the_order_that_works() {
    let mut case = valid();
    case.edit_pod("job-0", |pod| pod.affinity_to("leader", keys::HOSTNAME));
    case.edit_pod("job-1", |pod| pod.label("app", "leader"));
    assert_eq!(case.check(), []);
}

/// Room for a pod of this many cores, on the node of the jobs.
fn with_a_buffer(case: &mut Case, cpu: &str) {
    let metadata = json!({ "name": "spare", "namespace": "default" });
    let containers = json!([{ "name": "main", "resources": { "requests": { "cpu": cpu } } }]);
    let template = json!({ "metadata": metadata, "template": { "spec": { "containers": containers } } });
    let spec = json!({ "podTemplateRef": { "name": "spare" }, "replicas": 1 });
    case.snapshot.pod_templates.push(object(template));
    case.snapshot.capacity_buffers.push(object(json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": metadata, "spec": spec,
    })));
    let pods = json!(["default/buffer:spare:0", "default/job-0", "default/job-1"]);
    case.edit_step("new-1", json!({ "pods": pods, "requested": { "cpu": "3600m", "pods": 4 } }));
    case.plan.summary.buffer_pods_placed = 1;
}

#[test]
fn room_of_buffers() {
    let mut case = valid();
    with_a_buffer(&mut case, "500m");
    assert_eq!(case.check(), []);
    breaks(Code::Refused, |case| with_a_buffer(case, "1"));
    breaks(Code::UnknownPod, |case| {
        with_a_buffer(case, "500m");
        case.snapshot.capacity_buffers.clear();
    });
    breaks(Code::WrongSummary, |case| {
        with_a_buffer(case, "500m");
        case.plan.summary.buffer_pods_placed = 0;
        case.plan.summary.pods_placed += 1;
    });
}

#[test]
fn room_held_for_a_pod_that_preempts() {
    breaks(Code::Refused, |case| {
        let vip = pod("vip").cpu("500m").unschedulable();
        case.snapshot.pods.push(vip.merge(json!({ "status": { "nominatedNodeName": "node-kept" } })));
    });
}

#[test]
fn what_daemons_take() {
    breaks(Code::WrongResources, |case| {
        let limits = json!([{ "type": "Container", "defaultRequest": { "memory": "1Gi" } }]);
        let metadata = json!({ "name": "defaults", "namespace": "kube-system" });
        case.snapshot.limit_ranges.push(object(json!({ "metadata": metadata, "spec": { "limits": limits } })));
    });
    breaks(Code::WrongResources, |case| {
        let running =
            pod("agent-1").namespace("kube-system").cpu("200m").owned_by("DaemonSet", "agent").on("node-empty");
        case.snapshot.pods.push(running);
    });
    breaks(Code::WrongResources, |case| with_a_runtime_class(case, &json!({})));
}

/// The agent takes half a core more than its containers.
fn with_a_runtime_class(case: &mut Case, scheduling: &Value) {
    case.snapshot.runtime_classes.push(object(json!({
        "metadata": { "name": "kata" }, "handler": "kata", "overhead": { "podFixed": { "cpu": "500m" } }, "scheduling": scheduling,
    })));
    let agent = &mut case.snapshot.daemon_sets[0];
    *agent = agent.clone().merge(json!({ "spec": { "template": { "spec": { "runtimeClassName": "kata" } } } }));
}

#[test]
fn what_runtime_classes_add_is_planned_for() {
    for (scheduling, taken) in [(json!({}), 600), (json!({ "nodeSelector": { "team": "red" } }), 0)] {
        let mut case = valid();
        with_a_runtime_class(&mut case, &scheduling);
        case.snapshot.nodes.clear();
        case.snapshot.node_claims.clear();
        case.snapshot.pods.retain(|pod| pod.metadata.name == "job-0");
        case.plan = crate::planner::decide(&case.inputs());
        assert_eq!(case.check_as_it_is(), [], "{taken}");
        let created: Vec<i64> = case.plan.steps.iter().map(|step| step.requested.get("cpu")).collect();
        assert_eq!(created, [1500 + taken]);
    }
}

#[test]
fn default_spread_constraints() {
    let constraint = json!({ "maxSkew": 1, "topologyKey": keys::HOSTNAME, "whenUnsatisfiable": "DoNotSchedule" });
    let edit = |case: &mut Case| {
        case.policy.scheduling = object(json!({ "defaultTopologySpreadConstraints": [constraint] }));
        for name in ["job-0", "job-1"] {
            case.edit_pod(name, |pod| pod.label("app", "job"));
        }
    };
    let mut nothing_selects_them = valid();
    edit(&mut nothing_selects_them);
    assert_eq!(nothing_selects_them.check(), []);
    breaks(Code::Refused, |case| {
        edit(case);
        let metadata = json!({ "name": "job", "namespace": "default" });
        case.snapshot.services.push(object(json!({ "metadata": metadata, "spec": { "selector": { "app": "job" } } })));
    });
    breaks(Code::Refused, |case| {
        edit(case);
        let metadata = json!({ "name": "job", "namespace": "default" });
        let spec = json!({ "selector": { "matchLabels": { "app": "job" } } });
        case.snapshot.replica_sets.push(object(json!({ "metadata": metadata, "spec": spec })));
    });
}

#[test]
fn what_is_removed() {
    breaks(Code::NotRemovable, |case| {
        case.edit_claim("claim-big", json!({ "metadata": { "deletionTimestamp": "2026-11-20T11:59:00Z" } }));
    });
    breaks(Code::NotRemovable, |case| case.edit_step("claim-big", json!({ "pods": [] })));
    breaks(Code::NotRemovable, |case| case.edit_step("claim-big", json!({ "instanceType": "m.large" })));
    breaks(Code::NotRemovable, |case| case.edit_step("claim-big", json!({ "reason": { "code": "PodsPending" } })));
    breaks(Code::NotRemovable, |case| case.edit_step("claim-big", json!({ "reason": { "code": "Expired" } })));
    breaks(Code::NotRemovable, |case| {
        case.edit_node("node-big", json!({ "metadata": { "labels": { keys::INITIALIZED: null } } }));
        case.edit_claim("claim-big", json!({ "status": { "conditions": [] } }));
    });
    breaks(Code::WrongPrice, |case| case.edit_step("claim-big", json!({ "pricePerHour": 0.3 })));
    breaks(Code::NotEmpty, |case| case.edit_step("claim-big", json!({ "reason": { "code": "Empty" } })));
    breaks(Code::NotCheaper, |case| case.step("new-2").price_per_hour = HourlyPrice::from_dollars(0.2).unwrap());
}

#[test]
fn when_consolidation_may_be() {
    let code = Code::ConsolidationNotAllowed;
    breaks(code, |case| case.edit_pool(json!({ "spec": { "disruption": { "consolidateAfter": "2h" } } })));
    breaks(code, |case| case.edit_pool(json!({ "spec": { "disruption": { "consolidateAfter": "Never" } } })));
    breaks(code, |case| case.edit_pool(json!({ "spec": { "disruption": { "consolidationPolicy": "WhenEmpty" } } })));
    breaks(code, |case| case.edit_pool(json!({ "spec": { "replicas": 3 } })));
}

#[test]
fn what_a_move_must_be_worth() {
    let payback = |case: &mut Case, seconds| {
        case.policy.disruption.payback = NillableDuration::from_seconds(seconds);
    };
    // $0.1 saved for three minutes of $0.1 and a pod.
    breaks(Code::PaybackTooLong, |case| payback(case, 60));
    breaks(Code::PaybackTooLong, |case| {
        case.edit_pool(json!({ "metadata": { "annotations": { keys::PAYBACK: "1m" } } }));
    });
    breaks(Code::PaybackTooLong, |case| case.policy.disruption.costs.warm_up_per_pod = 0.2);
    breaks(Code::PaybackTooLong, |case| case.policy.disruption.costs.warm_up = NillableDuration::from_seconds(360_000));
    let mut of_pool = valid();
    payback(&mut of_pool, 60);
    of_pool.edit_pool(json!({ "metadata": { "annotations": { keys::PAYBACK: "10m" } } }));
    assert_eq!(of_pool.check(), [], "the pool has the word");
    let mut balanced = valid();
    balanced.edit_pool(json!({ "spec": { "disruption": { "consolidationPolicy": "Balanced" } } }));
    assert_eq!(balanced.check(), [], "a quarter of the price for two fifths of the disruption");
    breaks(Code::NotBalanced, |case| {
        case.edit_pool(json!({ "spec": { "disruption": { "consolidationPolicy": "Balanced" } } }));
        case.edit_pod("web-0", |pod| pod.annotation("controller.kubernetes.io/pod-deletion-cost", "671088640"));
    });
    breaks(Code::BoughtAgain, |case| case.step("new-2").instance_type = "m.xlarge".to_owned());
    breaks(Code::RecentlyChangedTarget, |case| {
        case.plan.steps.retain(|step| step.node_claim != "new-2");
        case.plan.placements.push(object(json!({ "pod": "default/web-0", "node": "node-kept" })));
        case.edit_claim("claim-kept", json!({ "status": { "lastPodEventTime": "2026-11-20T11:59:50Z" } }));
    });
}

#[test]
fn what_nodes_cost_beside_their_instances() {
    let dollars = |dollars: f64| HourlyPrice::from_dollars(dollars).unwrap();
    let mut case = valid();
    case.policy.penalties.per_node_per_hour = 0.02;
    case.classes[0].spec.associate_public_ip_address = Some(true);
    let nodes = case.plan.summary.nodes_after;
    let volumes = NodeCosts::of_class(&case.classes[0].spec).volumes;
    case.plan.summary.costs_per_hour = Some(CostsPerHour {
        instances: case.plan.summary.price_per_hour_after,
        volumes: volumes.times(nodes),
        addresses: dollars(0.005).times(nodes),
        per_node: dollars(0.02).times(nodes),
        ..CostsPerHour::default()
    });
    assert_eq!(case.check(), []);
    let is_wrong = |change: fn(&mut CostsPerHour)| {
        let mut wrong = case.plan.clone();
        change(wrong.summary.costs_per_hour.as_mut().unwrap());
        let found = check(&wrong, &case.inputs());
        found.iter().any(|it| it.code == Code::WrongSummary && it.text.contains("costsPerHour"))
    };
    assert!(is_wrong(|costs| costs.instances += HourlyPrice::from_nanodollars(1)));
    assert!(is_wrong(|costs| costs.volumes += HourlyPrice::from_nanodollars(2_000)));
    assert!(is_wrong(|costs| costs.addresses = HourlyPrice::ZERO));
    assert!(is_wrong(|costs| costs.monitoring = HourlyPrice::MAX));
    assert!(is_wrong(|costs| costs.per_node = HourlyPrice::ZERO));
    case.plan.summary.costs_per_hour = None;
    assert!(case.check().iter().any(|it| it.code == Code::WrongSummary));
}

#[test]
fn somebody_stays_in_each_wave() {
    let second_replica = |case: &mut Case, wave: u32| {
        let web_1 = pod("web-1").cpu("0").label("app", "web").owned_by("ReplicaSet", "web").on("node-empty");
        case.snapshot.pods.push(web_1);
        case.edit_step("claim-empty", json!({ "pods": ["default/web-1"], "reason": { "code": "Underutilized" } }));
        case.plan.placements.push(object(json!({ "pod": "default/web-1", "node": "node-kept" })));
        case.plan.summary.pods_disrupted = 2;
        case.step("claim-empty").wave = Some(wave);
    };
    let is_broken = |case: &Case| case.check().iter().any(|it| it.code == Code::AllReplicasAtOnce);
    let mut two_waves = valid();
    second_replica(&mut two_waves, 2);
    assert!(!is_broken(&two_waves), "{:?}", two_waves.check());
    breaks(Code::AllReplicasAtOnce, |case| second_replica(case, 1));
    breaks(Code::WrongOrder, |case| case.step("new-2").wave = Some(2));
}

#[test]
fn who_must_not_be_disturbed() {
    let annotation = keys::DO_NOT_DISRUPT;
    breaks(Code::DoNotDisrupt, |case| case.edit_pod("web-0", |pod| pod.annotation(annotation, "true")));
    breaks(Code::DoNotDisrupt, |case| case.edit_pod("web-0", |pod| pod.annotation(annotation, "2h")));
    breaks(Code::DoNotDisrupt, |case| {
        case.edit_node("node-empty", json!({ "metadata": { "annotations": { annotation: "true" } } }));
    });
    let over = |case: &mut Case| {
        case.edit_pod("web-0", |pod| {
            pod.annotation(annotation, "1h").merge(json!({ "status": { "startTime": "2026-11-20T10:00:00Z" } }))
        });
    };
    let mut case = valid();
    over(&mut case);
    assert_eq!(case.check(), [], "its protection is over");

    let budget = |name: &str, allowed: i32, policy: &str| {
        object(json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "selector": { "matchLabels": { "app": "web" } }, "unhealthyPodEvictionPolicy": policy },
            "status": { "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1 },
        }))
    };
    let code = Code::PodDisruptionBudget;
    breaks(code, |case| case.snapshot.pod_disruption_budgets.push(budget("web", 0, "IfHealthyBudget")));
    breaks(code, |case| case.snapshot.pod_disruption_budgets.push(budget("web", 0, "AlwaysAllow")));
    breaks(code, |case| case.snapshot.pod_disruption_budgets.extend([budget("one", 1, ""), budget("two", 1, "")]));
    let mut case = valid();
    case.snapshot.pod_disruption_budgets.push(budget("web", 0, "AlwaysAllow"));
    case.edit_pod("web-0", |pod| pod.merge(json!({ "status": { "conditions": [] } })));
    assert_eq!(case.check(), [], "an unhealthy pod may go");
}

#[test]
fn nothing_is_put_on_what_expired() {
    breaks(Code::ExpiredTarget, |case| case.edit_claim("claim-kept", json!({ "spec": { "expireAfter": "1h" } })));
}

#[test]
fn nothing_is_put_where_two_nodes_are_of_one_instance() {
    breaks(Code::DoubledTarget, |case| {
        let mut doubled = crate::snapshot::doubts::Doubled::default();
        doubled.names.extend(["node-kept".to_owned(), "twin".to_owned()]);
        case.snapshot.doubts.doubled.push(doubled);
    });
}

#[test]
fn how_many_may_go_at_once() {
    let pool =
        |case: &mut Case, budget: Value| case.edit_pool(json!({ "spec": { "disruption": { "budgets": [budget] } } }));
    let code = Code::BudgetExceeded;
    breaks(code, |case| pool(case, json!({ "nodes": "1" })));
    breaks(code, |case| pool(case, json!({ "nodes": "10%" })));
    breaks(code, |case| pool(case, json!({ "nodes": "0", "reasons": ["Empty"] })));
    breaks(code, |case| pool(case, json!({ "nodes": "0", "schedule": "0 11 * * *", "duration": "2h" })));
    breaks(code, |case| pool(case, json!({ "nodes": "5", "schedule": "every day", "duration": "2h" })));
    breaks(code, |case| {
        case.edit_node("node-kept", json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } }));
    });
    breaks(code, |case| case.disruption_budget(json!({ "nodes": "1" })));
    breaks(code, |case| {
        case.disruption_budget(
            json!({ "nodes": "0", "schedule": "0 21 * * *", "duration": "1h", "timeZone": "Asia/Seoul" }),
        );
    });
    // It asks no budget, but leaves less for the others.
    let expired = |case: &mut Case| {
        case.edit_claim("claim-empty", json!({ "spec": { "expireAfter": "1h" } }));
        case.edit_step("claim-empty", json!({ "reason": { "code": "Expired" } }));
        (case.plan.budgets[0].used, case.plan.budgets[0].forced) = (1, 1);
    };
    let mut within_budget = valid();
    expired(&mut within_budget);
    assert_eq!(within_budget.check(), []);
    breaks(code, |case| {
        expired(case);
        pool(case, json!({ "nodes": "1" }));
    });
    breaks(Code::WrongBudget, |case| {
        expired(case);
        case.plan.budgets[0].forced = 0;
    });
    breaks(Code::WrongBudget, |case| case.plan.budgets.clear());
    breaks(Code::WrongBudget, |case| case.plan.budgets[0].allowed = 1);
    let allowed = |case: &mut Case, edit: &dyn Fn(&mut Case)| {
        edit(case);
        let violations = case.check();
        assert!(!violations.iter().any(|violation| violation.code == code), "{violations:#?}");
    };
    allowed(&mut valid(), &|case| pool(case, json!({ "nodes": "34%" })));
    allowed(&mut valid(), &|case| pool(case, json!({ "nodes": "0", "reasons": ["Drifted"] })));
    allowed(&mut valid(), &|case| pool(case, json!({ "nodes": "0", "reasons": [] })));
    allowed(&mut valid(), &|case| pool(case, json!({ "nodes": "0", "schedule": "0 13 * * *", "duration": "2h" })));
    allowed(&mut valid(), &|case| {
        case.disruption_budget(json!({ "nodes": "0", "nodePoolSelector": { "names": ["other"] } }));
    });
}

#[test]
fn the_figures() {
    for field in [
        "nodesBefore",
        "nodesAfter",
        "nodesCreated",
        "nodesReplaced",
        "nodesRemoved",
        "podsPlaced",
        "podsPending",
        "podsDisrupted",
    ] {
        breaks(Code::WrongSummary, |case| {
            let summary = serde_json::to_value(&case.plan.summary).unwrap();
            let wrong = summary[field].as_u64().unwrap() + 1;
            case.plan.summary = case.plan.summary.clone().merge(json!({ field: wrong }));
        });
    }
    breaks(Code::WrongSummary, |case| case.plan.summary.nodes_leaving += 1);
    breaks(Code::WrongSummary, |case| case.plan.summary.price_per_hour_before = HourlyPrice::ZERO);
    breaks(Code::WrongSummary, |case| case.plan.summary.price_per_hour_after = HourlyPrice::ZERO);
    breaks(Code::WrongSummary, |case| case.plan.summary.candidates_examined = 4);
}

#[test]
fn limits_of_the_cluster() {
    let limit = |cpu: i64| [("cpu".to_owned(), IntOrString::Int(cpu))].into();
    // 2 + 4 + 2 cores are there; 4 and 2 come before anything goes.
    let mut enough = valid();
    enough.policy.limits = limit(14);
    assert_eq!(enough.check(), []);
    breaks(Code::LimitExceeded, |case| case.policy.limits = limit(13));
    breaks(Code::LimitExceeded, |case| case.policy.limits = [("nodes".to_owned(), IntOrString::Int(4))].into());
}

#[test]
fn lately_refused() {
    let refused = |at: &str| RefusedOffering {
        instance_type: "m.2xlarge".to_owned(),
        zone: "a".to_owned(),
        capacity_type: keys::ON_DEMAND.to_owned(),
        at: at.parse().unwrap(),
    };
    let mut long_ago = valid();
    long_ago.policy.refused.push(refused("2026-11-20T11:57:00Z"));
    assert_eq!(long_ago.check(), []);
    breaks(Code::OfferingNotAvailable, |case| case.policy.refused.push(refused("2026-11-20T11:57:01Z")));
    breaks(Code::OfferingNotAvailable, |case| {
        case.edit_claim(
            "claim-kept",
            json!({
                "spec": { "requirements": [
                    { "key": keys::INSTANCE_TYPE, "operator": "In", "values": ["m.large", "m.2xlarge"] },
                    { "key": keys::ZONE, "operator": "In", "values": ["a"] },
                    { "key": keys::CAPACITY_TYPE, "operator": "In", "values": [keys::ON_DEMAND] },
                ] },
                "status": { "conditions": [{
                    "type": "Launched", "status": "False", "reason": "InsufficientCapacityError", "message": "",
                    "lastTransitionTime": "2026-11-20T11:59:30Z",
                }] },
            }),
        );
    });
}

#[test]
fn minimum_values_that_were_lowered() {
    let three_types = |case: &mut Case| {
        case.edit_pool(json!({ "spec": { "template": { "spec": { "requirements": [
            { "key": keys::INSTANCE_TYPE, "operator": "Exists", "minValues": 3 },
        ] } } } }));
        // Not the move that only saves money: that is never less varied.
        case.plan.steps.retain(|step| step.node_claim != "new-2" && step.node_claim != "claim-big");
        case.step("new-1").launch.as_mut().unwrap().node_claim["metadata"]["annotations"] =
            json!({ keys::MIN_VALUES_RELAXED: "true" });
        case.step("new-1").launch.as_mut().unwrap().node_claim["spec"]["requirements"] = json!([
            { "key": keys::INSTANCE_TYPE, "operator": "In", "values": ["m.xlarge", "m.2xlarge"], "minValues": 2 },
        ]);
    };
    let is_missing = |case: &Case| case.check().iter().any(|it| it.code == Code::TooFewAlternatives);
    let mut lowered = valid();
    three_types(&mut lowered);
    assert!(is_missing(&lowered), "Strict is the default");
    lowered.policy.scheduling.min_values_policy = MinValuesPolicy::BestEffort;
    assert!(!is_missing(&lowered));
    let mut silent = lowered.clone();
    silent.step("new-1").launch.as_mut().unwrap().node_claim["metadata"]["annotations"] = json!({});
    assert!(is_missing(&silent));
    lowered.step("new-1").reason.code = ReasonCode::Underutilized;
    assert!(is_missing(&lowered));
}

#[test]
fn overlays() {
    let overlay = |name: &str, spec: Value| -> NodeOverlay {
        object(json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": name }, "spec": spec,
        }))
    };
    let families = |values: &[&str]| json!([{ "key": keys::INSTANCE_TYPE, "operator": "In", "values": values }]);
    let price_of_largest =
        |price: &str| overlay("price", json!({ "requirements": families(&["m.2xlarge"]), "price": price }));
    let is_wrong = |case: &Case| case.check().iter().any(|it| it.code == Code::WrongPrice);
    breaks(Code::WrongPrice, |case| case.overlays.push(price_of_largest("0.3")));
    // Nodes that exist cost what their overlay says, too.
    breaks(Code::WrongSummary, |case| {
        case.overlays
            .push(overlay("kept", json!({ "requirements": families(&["m.large"]), "priceAdjustment": "-10%" })));
    });
    let mut right = valid();
    right.overlays.push(price_of_largest("0.3"));
    right.step("new-1").launch.as_mut().unwrap().alternatives[1].price_per_hour =
        HourlyPrice::from_dollars(0.3).unwrap();
    assert_eq!(right.check(), []);
    // A heavier one has the word; one of the same weight is not applied at all, also where it says the same.
    let mut heavier = right.clone();
    heavier.overlays.push(overlay("other", json!({ "requirements": [], "price": "9", "weight": 2 })));
    assert!(is_wrong(&heavier));
    let mut equal = right.clone();
    equal
        .overlays
        .push(overlay("a-later-one", json!({ "requirements": families(&["m.2xlarge", "m.large"]), "price": "0.3" })));
    assert_eq!(equal.check(), []);
    let mut of_another_pool = right.clone();
    of_another_pool.overlays[0].spec.requirements.push(object(json!(
        { "key": keys::NODE_POOL, "operator": "NotIn", "values": ["default"] }
    )));
    assert!(is_wrong(&of_another_pool));
    let mut gate_off = right;
    gate_off.policy.feature_gates.node_overlay = false;
    assert!(is_wrong(&gate_off));
    // A device that only an overlay gives.
    let device = |case: &mut Case| {
        for name in ["job-0", "job-1"] {
            case.edit_pod(name, |pod| {
                pod.merge(json!({ "spec": { "containers": [{
                "name": "c", "resources": { "requests": { "cpu": "1500m", "example.com/device": "1" } },
            }] } }))
            });
        }
    };
    breaks(Code::Refused, device);
    let mut with_device = valid();
    device(&mut with_device);
    with_device
        .overlays
        .push(overlay("device", json!({ "requirements": [], "capacity": { "example.com/device": 2 } })));
    assert!(!with_device.check().iter().any(|it| it.code == Code::Refused));
}

#[test]
fn static_pools() {
    // A pool with nodes for their own sake beside the other.
    let fixed = |replicas: i64| -> NodePool {
        let mut pool = valid().pools[0].clone();
        pool.metadata.name = Some("fixed".to_owned());
        pool.spec.replicas = Some(replicas);
        pool
    };
    let with_pool = |replicas: i64, edit: &dyn Fn(&mut Case)| {
        let mut case = valid();
        case.pools.push(fixed(replicas));
        edit(&mut case);
        case.check().into_iter().filter(|it| it.code == Code::WrongReplicas).collect::<Vec<_>>()
    };
    let moved_to_it = |case: &mut Case| case.edit_step("new-1", json!({ "nodePool": "fixed" }));
    let for_itself = |case: &mut Case| {
        moved_to_it(case);
        case.edit_step("new-1", json!({ "reason": { "code": "StaticCapacity", "text": "" } }));
    };
    assert_eq!(with_pool(1, &|_| {}), []);
    assert_eq!(with_pool(1, &for_itself), []);
    assert_ne!(with_pool(0, &for_itself), []);
    assert_ne!(with_pool(1, &moved_to_it), []);
    assert_ne!(
        with_pool(1, &|case| {
            for_itself(case);
            case.policy.feature_gates.static_capacity = false;
        }),
        []
    );
    // A removal as surplus, where nothing is.
    assert_ne!(
        with_pool(1, &|case| {
            case.edit_step(
                "claim-empty",
                json!({ "nodePool": "fixed", "reason": { "code": "StaticCapacity", "text": "" } }),
            );
        }),
        []
    );
}
