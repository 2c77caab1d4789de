//! The fields of what is said of nodes, NodeClaims, pods and instances.

use serde_json::{Value, json};

use crate::core::lifecycle::termination::TERMINATION_TIMESTAMP;
use crate::core::model::Resources;
use crate::core::model::resources::format_amount;

use super::Event;
use super::nodes::{self, Disrupted, Replacement, named, some_of};

/// How many doubts it lists.
const DOUBTS_MAX: usize = 10;

impl Event {
    /// Of nodes that come.
    pub(super) fn node_fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::FoundProvisionablePods { pods, duration } => {
                vec![("Pods", json!(some_of(pods))), ("duration", json!(duration))]
            }
            Self::ComputedNodeClaims { node_claims, pods } => {
                vec![("nodeclaims", json!(node_claims)), ("pods", json!(pods))]
            }
            Self::CreatedNodeClaim { node_pool, node_claim, requests, instance_types } => vec![
                ("NodePool", named(node_pool)),
                ("NodeClaim", named(node_claim)),
                ("requests", resources(requests)),
                ("instance-types", json!(some_of(instance_types))),
            ],
            Self::LaunchedNodeClaim { node_claim, provider_id, instance_type, zone, capacity_type, allocatable } => {
                vec![
                    ("NodeClaim", named(node_claim)),
                    ("provider-id", json!(provider_id)),
                    ("instance-type", json!(instance_type)),
                    ("zone", json!(zone)),
                    ("capacity-type", json!(capacity_type)),
                    ("allocatable", resources(allocatable)),
                ]
            }
            Self::RegisteredNodeClaim { node_claim, provider_id, node } => {
                vec![("NodeClaim", named(node_claim)), ("Node", named(node)), ("provider-id", json!(provider_id))]
            }
            Self::InitializedNodeClaim { node_claim, provider_id, node, allocatable } => vec![
                ("NodeClaim", named(node_claim)),
                ("Node", named(node)),
                ("provider-id", json!(provider_id)),
                ("allocatable", resources(allocatable)),
            ],
            _ => self.disruption_fields(),
        }
    }

    /// Of nodes that are made to go, and of their pods.
    fn disruption_fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::DisruptingNodes { plan_id, move_number, reason, pods, disrupted, replacements } => vec![
                ("command", json!(nodes::command_id(plan_id, *move_number))),
                ("reason", json!(format!("{:?}", reason.code).to_lowercase())),
                ("because", json!(reason.text)),
                ("decision", json!(if replacements.is_empty() { "delete" } else { "replace" })),
                ("disrupted-node-count", json!(disrupted.len())),
                ("replacement-node-count", json!(replacements.len())),
                ("pod-count", json!(pods)),
                ("disrupted-nodes", disrupted.iter().map(Disrupted::value).collect()),
                ("replacement-nodes", replacements.iter().map(Replacement::value).collect()),
            ],
            Self::AdoptedNode { node, node_claim, node_pool } => {
                vec![("Node", named(node)), ("NodeClaim", named(node_claim)), ("NodePool", named(node_pool))]
            }
            Self::TaintedNode { node, node_claim } | Self::DisruptionTakenBack { node, node_claim } => vec![
                ("Node", named(node)),
                ("NodeClaim", named(node_claim)),
                ("taint.Key", json!(crate::api::keys::DISRUPTED_TAINT)),
                ("taint.Value", json!("")),
                ("taint.Effect", json!("NoSchedule")),
            ],
            Self::ConsolidationRejected { disrupted, because, .. } => {
                vec![("disrupted-nodes", disrupted.iter().map(Disrupted::value).collect()), ("reason", json!(because))]
            }
            Self::AwaitingReplacement { node_claim } => vec![("NodeClaim", named(node_claim))],
            Self::TerminatingNode { node, node_claim, reason, .. } => {
                vec![("Node", named(node)), ("NodeClaim", named(node_claim)), ("reason", json!(reason.to_lowercase()))]
            }
            Self::AnnotatedNodeClaim { node_claim, termination_time, .. } => {
                vec![("NodeClaim", named(node_claim)), (TERMINATION_TIMESTAMP, json!(termination_time))]
            }
            Self::EvictedPod { pod, reason } => vec![("Pod", json!(pod)), ("reason", json!(reason))],
            Self::DeletedPod { pod, grace_seconds, .. } => {
                vec![("Pod", json!(pod)), ("grace-seconds", json!(grace_seconds))]
            }
            Self::EvictionBlocked { pod, node, error } => {
                vec![("Pod", json!(pod)), ("Node", named(node)), ("error", json!(error))]
            }
            Self::CommandFailed { node, node_claim, missing } => vec![
                ("Node", named(node)),
                ("NodeClaim", named(node_claim)),
                ("missing-replacements", json!(some_of(missing))),
            ],
            _ => self.claim_fields(),
        }
    }

    /// Of NodeClaims that do not get on, and of what is gone.
    fn claim_fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::InconsistentNodeClaim { node_claim, fault } => {
                vec![("NodeClaim", named(node_claim)), ("error", json!(fault))]
            }
            Self::AwaitingDetachment { node_claim, node, volumes } => {
                vec![("NodeClaim", named(node_claim)), ("Node", named(node)), ("volumes", json!(some_of(volumes)))]
            }
            Self::DeletedNode { node, node_claim } => vec![("Node", named(node)), ("NodeClaim", named(node_claim))],
            Self::DeletedNodeClaim { node_claim, provider_id, node } => {
                vec![("NodeClaim", named(node_claim)), ("Node", named(node)), ("provider-id", json!(provider_id))]
            }
            Self::InsufficientCapacity { node_claim, error } | Self::LaunchFailed { node_claim, error } => {
                vec![("NodeClaim", named(node_claim)), ("error", json!(error))]
            }
            Self::GaveUp { node_claim, cause } => {
                vec![("NodeClaim", named(node_claim)), ("reason", json!(cause.reason()))]
            }
            Self::NodeRefused { refused } => vec![
                ("NodePool", named(&refused.node_pool)),
                ("NodeClaim", named(&refused.node_claim)),
                ("Node", named(&refused.node)),
                ("Pods", json!(some_of(&refused.pods))),
                ("reason", json!(refused.text)),
                ("attempts", json!(refused.attempts)),
                ("next-attempt-at", json!(refused.next_attempt_at)),
            ],
            Self::RolloutHalted { node_pool, because } => {
                vec![("NodePool", named(node_pool)), ("reason", json!(because))]
            }
            Self::InstanceEnded { node_claim, node_pool, provider_id, code, text } => vec![
                ("NodePool", named(node_pool)),
                ("NodeClaim", named(node_claim)),
                ("provider-id", json!(provider_id)),
                ("code", json!(code)),
                ("reason", json!(text)),
            ],
            Self::LaunchesPaused { node_pool, because, until } => {
                vec![("NodePool", named(node_pool)), ("reason", json!(because)), ("until", json!(until))]
            }
            _ => self.cloud_fields(),
        }
    }

    /// Of instances, and of what is seen of the cluster and the cloud.
    fn cloud_fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Doubted { doubts } => {
                let texts: Vec<String> =
                    doubts.sentences().take(DOUBTS_MAX).map(|doubt| doubt.text().to_owned()).collect();
                vec![
                    ("doubts", json!(texts)),
                    ("kinds", json!(doubts.kinds.len())),
                    ("unreadable-objects", json!(doubts.unreadable.len())),
                ]
            }
            Self::SeenWhole => Vec::new(),
            Self::NodeClassNotReady { node_class, condition, reason, text } => vec![
                ("EC2NodeClass", named(node_class)),
                ("condition", json!(condition)),
                ("reason", json!(reason)),
                ("text", json!(text)),
            ],
            Self::InstanceHeld { provider_id, why } => {
                vec![("provider-id", json!(provider_id)), ("reason", json!(why))]
            }
            Self::AdoptedInstance { provider_id, node_claim } => {
                vec![("provider-id", json!(provider_id)), ("NodeClaim", named(node_claim))]
            }
            Self::GarbageCollected { provider_id } => vec![("provider-id", json!(provider_id))],
            Self::Interrupted { node_claim, node, kind, message, .. } => vec![
                ("NodeClaim", named(node_claim)),
                ("Node", named(node)),
                ("reason", json!(kind.reason())),
                ("text", json!(message)),
            ],
            Self::InstanceVanished { node_claim, provider_id } => {
                vec![("NodeClaim", named(node_claim)), ("provider-id", json!(provider_id))]
            }
            Self::FleetChanged { fleet } => vec![
                ("nodes", json!(fleet.nodes)),
                ("pods", json!(fleet.pods_bound)),
                ("pending", json!(fleet.pods_pending)),
                ("price-per-hour", json!(fleet.price_per_hour)),
            ],
            Self::CallFailed { error } => vec![("error", json!(error))],
            _ => Vec::new(),
        }
    }
}

fn resources(resources: &Resources) -> Value {
    let amounts = resources.iter().filter(|(_, amount)| *amount != 0);
    amounts.map(|(name, amount)| (name.to_owned(), json!(format_amount(name, amount)))).collect()
}
