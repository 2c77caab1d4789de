//! What the controller says: each thing that happens is one event, with the message and the fields under which people
//! look for it. Messages of Karpenter's log are kept to the letter, because dashboards and runbooks grep for them.

pub mod journal;
pub mod kubernetes_events;
mod levels;
pub mod metrics;
mod node_fields;
mod nodes;
pub mod refusal;
mod revisions;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::core::lifecycle::DeletionCause;
use crate::core::lifecycle::interruption::InterruptionKind;
use crate::core::model::{HourlyPrice, Resources};
use crate::core::plan::{Note, Plan, Reason, RefusedNode, Revision};
use crate::core::snapshot::Doubts;
use crate::definitions::Diagnostic;
use crate::ports::Unsigned;

use crate::api::node_plan::Fidelity;

use nodes::named;
use refusal::MoveRefusal;

pub use levels::Level;
pub use nodes::{Disrupted, Replacement};

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    // Revisions.
    RevisionFound {
        revision: Revision,
        title: String,
        rewritten: bool,
        notes: Vec<Note>,
    },
    /// `text` is the report as `cutlist lint` shows it, with terminal escapes.
    Linted {
        files: usize,
        documents: usize,
        diagnostics: Vec<Diagnostic>,
        text: String,
    },
    /// The revision has errors; the one named stays in force.
    RevisionRefused {
        revision: Revision,
        in_force: Option<Revision>,
    },
    /// Commits of the revision are not signed by who must have.
    RevisionUnsigned {
        revision: Revision,
        in_force: Option<Revision>,
        /// All that are named; the rest is counted.
        unsigned: Vec<Unsigned>,
        further: usize,
        /// The pools on which it is told.
        node_pools: Vec<String>,
    },
    /// The revision would remove every pool.
    RemovalHeld {
        revision: Revision,
        in_force: Option<Revision>,
        node_pools: Vec<String>,
    },
    RepositoryUnreachable {
        error: String,
    },
    RepositoryBack,
    DefinitionApplied {
        kind: &'static str,
        name: String,
        is_new: bool,
    },
    DefinitionPruned {
        kind: &'static str,
        name: String,
    },
    /// A pool or class left Git, and nodes still need it.
    PruneWaits {
        kind: &'static str,
        name: String,
        nodes: usize,
    },

    // Plans.
    PlanPosted {
        plan: Box<Plan>,
        /// NodeClaims of the nodes that are held back or removed, by node.
        node_claims: BTreeMap<String, String>,
        /// Pods whose annotation `karpenter.sh/do-not-disrupt` can not be read, and what is wrong with it.
        unreadable_annotations: BTreeMap<String, String>,
    },
    PlanSuperseded {
        plan_id: String,
        move_number: Option<u32>,
        refusal: MoveRefusal,
    },
    WaitsForApproval {
        plan_id: String,
        moves: Vec<u32>,
        /// Rules for approvals that become looser when it is approved.
        rules: Vec<String>,
    },
    Approved {
        plan_id: String,
        by: Option<String>,
    },
    ApprovalRefused {
        plan_id: String,
        by: String,
        because: String,
    },
    /// A revision that is in the history of the one in force is not used.
    OlderRevisionHeld {
        revision: Revision,
        in_force: Option<Revision>,
    },
    /// A revision whose settings name another cluster is not used.
    OfAnotherCluster {
        revision: Revision,
        in_force: Option<Revision>,
        /// Which, and what to do.
        because: String,
    },
    /// A move is under way: every call that begins it succeeded.
    MoveBegun {
        plan_id: String,
        move_number: u32,
    },
    /// The nodes of a plan are up and its pods have found a place.
    PlanFulfilled {
        plan_id: String,
        fidelity: Fidelity,
    },
    StepNotSupported {
        node: String,
    },

    // Karpenter's log.
    FoundProvisionablePods {
        pods: Vec<String>,
        duration: String,
    },
    ComputedNodeClaims {
        node_claims: usize,
        pods: usize,
    },
    CreatedNodeClaim {
        node_pool: String,
        node_claim: String,
        requests: Resources,
        instance_types: Vec<String>,
    },
    LaunchedNodeClaim {
        node_claim: String,
        provider_id: String,
        instance_type: String,
        zone: String,
        capacity_type: String,
        allocatable: Resources,
    },
    RegisteredNodeClaim {
        node_claim: String,
        provider_id: String,
        node: String,
    },
    InitializedNodeClaim {
        node_claim: String,
        provider_id: String,
        node: String,
        allocatable: Resources,
    },
    DisruptingNodes {
        plan_id: String,
        move_number: u32,
        reason: Reason,
        pods: usize,
        disrupted: Vec<Disrupted>,
        replacements: Vec<Replacement>,
    },
    /// The node of a pool that was removed belongs to another one now.
    AdoptedNode {
        node: String,
        node_claim: String,
        node_pool: String,
    },
    TaintedNode {
        node: String,
        node_claim: String,
    },
    /// A move of the plan that would have saved money was refused when it was its turn.
    ConsolidationRejected {
        disrupted: Vec<Disrupted>,
        replacements: usize,
        savings: HourlyPrice,
        because: String,
    },
    /// A replacement was launched; what it replaces waits for it to be ready.
    AwaitingReplacement {
        node_claim: String,
    },
    /// Its replacements are up, and the node goes.
    TerminatingNode {
        node: String,
        node_claim: String,
        /// The word for it, and the sentence.
        reason: String,
        text: String,
    },
    /// The end of a termination grace period was noted.
    AnnotatedNodeClaim {
        node_claim: String,
        node: String,
        termination_time: String,
    },
    EvictedPod {
        pod: String,
        reason: String,
    },
    /// Past its budgets, since the termination grace period of its node ends.
    DeletedPod {
        pod: String,
        termination_time: String,
        grace_seconds: u64,
        own_grace_seconds: i64,
    },
    /// The node is smaller than its claim says.
    InconsistentNodeClaim {
        node_claim: String,
        fault: String,
    },
    /// The node is drained, and volumes are still attached to it.
    AwaitingDetachment {
        node_claim: String,
        node: String,
        volumes: Vec<String>,
    },
    DeletedNode {
        node: String,
        node_claim: String,
    },
    DeletedNodeClaim {
        node_claim: String,
        provider_id: String,
        node: String,
    },
    InsufficientCapacity {
        node_claim: String,
        error: String,
    },
    LaunchFailed {
        node_claim: String,
        error: String,
    },
    GaveUp {
        node_claim: String,
        cause: DeletionCause,
    },
    /// None of the pods that a node was bought for came there.
    NodeRefused {
        refused: Box<RefusedNode>,
    },
    /// So many new nodes of a pool did not become ready that no more of its nodes are replaced.
    RolloutHalted {
        node_pool: String,
        because: String,
    },
    /// The instance ended before its node joined. `code`: EC2's word for it.
    InstanceEnded {
        node_claim: String,
        node_pool: String,
        provider_id: String,
        code: String,
        text: String,
    },
    /// So many ended in a row that none of the pool is launched for a while.
    LaunchesPaused {
        node_pool: String,
        because: String,
        /// RFC 3339.
        until: String,
    },
    EvictionBlocked {
        pod: String,
        node: String,
        error: String,
    },
    CommandFailed {
        node: String,
        node_claim: String,
        missing: Vec<String>,
    },
    /// Another controller tainted the node for a disruption that nobody goes on with.
    DisruptionTakenBack {
        node: String,
        node_claim: String,
    },
    /// Something of the cluster is not seen as it is; nothing ends on its word. Said once a minute.
    Doubted {
        doubts: Box<Doubts>,
    },
    /// All is seen again.
    SeenWhole,
    /// A condition of an EC2NodeClass is false that was not, or for another reason.
    NodeClassNotReady {
        node_class: String,
        condition: String,
        reason: String,
        text: String,
    },
    /// An instance that no claim knows is not ended yet.
    InstanceHeld {
        provider_id: String,
        why: String,
    },
    /// It has a claim again.
    AdoptedInstance {
        provider_id: String,
        node_claim: String,
    },
    GarbageCollected {
        provider_id: String,
    },
    /// EC2 has announced something about an instance; `ends`: that it goes.
    Interrupted {
        node_claim: String,
        node: String,
        kind: InterruptionKind,
        message: String,
        ends: bool,
    },
    InstanceVanished {
        node_claim: String,
        provider_id: String,
    },

    // The state of things.
    FleetChanged {
        fleet: Fleet,
    },
    CallFailed {
        error: String,
    },
    Stopped {
        plan_id: String,
        done: Vec<String>,
        not_done: Vec<String>,
    },
}

/// How many there are and what they cost, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    pub nodes: usize,
    /// Workload pods that have a node; DaemonSets do not count.
    pub pods_bound: usize,
    pub pods_pending: usize,
    pub price_per_hour: HourlyPrice,
}

impl Event {
    /// The message, the same for every event of a kind.
    pub fn message(&self) -> &'static str {
        match self {
            Self::RevisionFound { .. } => "found revision",
            Self::Linted { .. } => "checked definitions",
            Self::RevisionRefused { .. } => "revision has errors and is not used",
            Self::RevisionUnsigned { .. } => "revision is not signed by who must have and is not used",
            Self::RemovalHeld { .. } => "revision would remove every NodePool and is held",
            Self::RepositoryUnreachable { .. } => "repository can not be read, trying again",
            Self::RepositoryBack => "repository can be read again",
            Self::DefinitionApplied { is_new: true, .. } => "created definition",
            Self::DefinitionApplied { .. } => "changed definition",
            Self::DefinitionPruned { .. } => "removed definition",
            Self::PruneWaits { .. } => "definition left Git and waits for its nodes to go",
            Self::PlanPosted { .. } => "posted plan",
            Self::PlanSuperseded { .. } => "plan is superseded",
            Self::WaitsForApproval { .. } => "plan waits for approval",
            Self::Approved { .. } => "plan is approved",
            Self::ApprovalRefused { .. } => "approval does not count",
            Self::OlderRevisionHeld { .. } => "revision is older than the one in force and is not used",
            Self::OfAnotherCluster { .. } => "revision is for another cluster and is not used",
            Self::PlanFulfilled { .. } => "plan is fulfilled",
            Self::MoveBegun { .. } => "began move of plan",
            Self::StepNotSupported { .. } => "step can not be carried out by this version",
            Self::FoundProvisionablePods { .. } => "found provisionable pod(s)",
            Self::ComputedNodeClaims { .. } => "computed new nodeclaim(s) to fit pod(s)",
            Self::CreatedNodeClaim { .. } => "created nodeclaim",
            Self::LaunchedNodeClaim { .. } => "launched nodeclaim",
            Self::RegisteredNodeClaim { .. } => "registered nodeclaim",
            Self::InitializedNodeClaim { .. } => "initialized nodeclaim",
            Self::DisruptingNodes { .. } => "disrupting node(s)",
            Self::AdoptedNode { .. } => "adopted node",
            Self::TaintedNode { .. } => "tainted node",
            Self::ConsolidationRejected { .. } => "rejected consolidation",
            Self::AwaitingReplacement { .. } => "awaiting replacement",
            Self::TerminatingNode { .. } => "terminating node",
            Self::AnnotatedNodeClaim { .. } => "annotated nodeclaim",
            Self::EvictedPod { .. } => "evicted pod",
            Self::DeletedPod { .. } => "deleted pod",
            Self::InconsistentNodeClaim { .. } => "node is smaller than its nodeclaim",
            Self::AwaitingDetachment { .. } => "awaiting volume detachment",
            Self::DeletedNode { .. } => "deleted node",
            Self::DeletedNodeClaim { .. } => "deleted nodeclaim",
            Self::InsufficientCapacity { .. } => "insufficient capacity, deleting nodeclaim",
            Self::LaunchFailed { .. } => "failed launching nodeclaim",
            Self::GaveUp { .. } => "deleting nodeclaim that did not get on",
            Self::NodeRefused { .. } => "kube-scheduler refuses node the pods it was bought for",
            Self::RolloutHalted { .. } => "rollout is halted",
            Self::InstanceEnded { .. } => "instance ended before its node joined",
            Self::LaunchesPaused { .. } => "none of the nodepool is launched for a while",
            Self::EvictionBlocked { .. } => "failed draining node",
            Self::CommandFailed { .. } => "failed terminating nodes while executing a disruption command",
            Self::DisruptionTakenBack { .. } => "took back disruption that another controller left behind",
            Self::Doubted { .. } => "part of the cluster is not seen as it is, nothing is removed on its word",
            Self::SeenWhole => "all of the cluster is seen again",
            Self::NodeClassNotReady { .. } => "condition of ec2nodeclass is not true",
            Self::InstanceHeld { .. } => "instance has no NodeClaim and is held",
            Self::AdoptedInstance { .. } => "adopted instance without NodeClaim",
            Self::GarbageCollected { .. } => "garbage collected cloudprovider instance",
            Self::Interrupted { ends: true, .. } => "initiating delete from interruption message",
            Self::Interrupted { .. } => "received interruption message",
            Self::InstanceVanished { .. } => "instance is gone, deleting nodeclaim",
            Self::FleetChanged { .. } => "fleet changed",
            Self::CallFailed { .. } => "call failed, trying again",
            Self::Stopped { .. } => "stopped in the middle of a plan",
        }
    }

    /// Field name to value, in the order of Karpenter's log.
    pub fn fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::RevisionFound { .. }
            | Self::Linted { .. }
            | Self::RevisionRefused { .. }
            | Self::RevisionUnsigned { .. }
            | Self::RemovalHeld { .. }
            | Self::OlderRevisionHeld { .. }
            | Self::OfAnotherCluster { .. }
            | Self::RepositoryUnreachable { .. }
            | Self::RepositoryBack
            | Self::DefinitionApplied { .. }
            | Self::DefinitionPruned { .. }
            | Self::PruneWaits { .. } => self.revision_fields(),
            Self::PlanPosted { .. }
            | Self::PlanSuperseded { .. }
            | Self::WaitsForApproval { .. }
            | Self::Approved { .. }
            | Self::ApprovalRefused { .. }
            | Self::PlanFulfilled { .. }
            | Self::MoveBegun { .. }
            | Self::StepNotSupported { .. }
            | Self::Stopped { .. } => self.plan_fields(),
            _ => self.node_fields(),
        }
    }

    fn plan_fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::PlanPosted { plan, .. } => {
                vec![("plan", json!(plan.id)), ("revision", json!(plan.revision)), ("summary", json!(plan.summary))]
            }
            Self::PlanSuperseded { plan_id, move_number, refusal } => {
                vec![("plan", json!(plan_id)), ("move", json!(move_number)), ("reason", json!(refusal.to_string()))]
            }
            Self::WaitsForApproval { plan_id, moves, rules } => {
                vec![("plan", json!(plan_id)), ("moves", json!(moves)), ("rules", json!(rules))]
            }
            Self::Approved { plan_id, by } => vec![("plan", json!(plan_id)), ("by", json!(by))],
            Self::ApprovalRefused { plan_id, by, because } => {
                vec![("plan", json!(plan_id)), ("by", json!(by)), ("because", json!(because))]
            }
            Self::PlanFulfilled { plan_id, fidelity } => fulfilled(plan_id, fidelity),
            Self::MoveBegun { plan_id, move_number } => {
                vec![("plan", json!(plan_id)), ("move", json!(move_number))]
            }
            Self::StepNotSupported { node } => vec![("Node", named(node))],
            Self::Stopped { plan_id, done, not_done } => {
                vec![("plan", json!(plan_id)), ("done", json!(done)), ("not-done", json!(not_done))]
            }
            _ => Vec::new(),
        }
    }
}

fn fulfilled(plan_id: &str, fidelity: &Fidelity) -> Vec<(&'static str, Value)> {
    let share = |of: u32, all: u32| (all > 0).then(|| format!("{of}/{all}"));
    vec![
        ("plan", json!(short(plan_id))),
        ("pods-as-planned", json!(share(fidelity.pods_as_planned, fidelity.pods_planned))),
        ("nodes-as-planned", json!(share(fidelity.nodes_as_planned, fidelity.nodes_planned))),
        ("price-planned", json!(fidelity.price_planned)),
        ("price-launched", json!(fidelity.price_launched)),
    ]
}

/// The first characters of a plan's identity, as people quote it.
pub fn short(id: &str) -> &str {
    id.get(..6).unwrap_or(id)
}
