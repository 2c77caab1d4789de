//! The plan: what will be created, replaced and removed, why, and what was not done.
//!
//! [`Plan`] is the published form (`schemas/plan.json`); every output, also the text on a terminal, is made from it.

mod against;
mod blocks;
pub mod calendar;
pub mod change;
mod cloud_fact;
mod counts;
mod definition_place;
mod ended;
pub mod leaving;
mod note;
mod reason;
mod risk;
pub mod simulation;
mod summary;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::catalog::matching::UnmatchedRequirements;
use crate::model::hexadecimal;
use crate::model::shared::Shared;
use crate::model::{HourlyPrice, Resources};
use crate::snapshot::pod::BUFFER_POD_PREFIX;

pub use against::compare;
pub use blocks::blocks;
pub use change::Change;
pub use cloud_fact::{CloudFact, CloudFactCode};
pub use counts::NodeCounts;
pub use definition_place::{ClassAsWritten, DefinitionPlace, DefinitionPlaces, IMAGE_LOCK, field_of, with_place};
pub use ended::{EndCause, EndedInstances};
pub use note::{Note, NoteCode, NoteSubject};
pub use reason::{Reason, ReasonCode, kind};
pub use risk::{Risk, RiskCode};
pub use summary::{CostsPerHour, FewerNodes, LongestDrain, Outlook, PenaltiesPerHour, Summary};

/// The version of the plan format that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// An immutable list of steps, with the report of what was left undone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    pub version: u32,
    /// Hash over everything below, and over what the plan was made from; 64 hexadecimal digits.
    pub id: String,
    pub revision: Revision,
    /// The other revision of `cutlist plan --against`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    pub cluster: String,
    /// RFC 3339; the `now` that was planned for.
    pub generated_for: String,
    /// The day the prices were valid.
    pub catalog_date: String,
    pub seed: u64,
    pub packing: String,
    /// In the order in which they are carried out: moves in ascending number, and in each move creations before removals.
    pub steps: Vec<Step>,
    /// What EC2 says of what is launched and replaced, by EC2NodeClass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cloud_facts: Vec<CloudFact>,
    /// Pods placed on nodes that exist already.
    pub placements: Vec<Placement>,
    pub pending: Vec<Pending>,
    pub held_back: Vec<HeldBack>,
    /// Nodes that were bought for pods which kube-scheduler does not let run there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_nodes: Vec<RefusedNode>,
    /// Instances that ended before their nodes joined, by pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_instances: Vec<EndedInstances>,
    pub budgets: Vec<BudgetState>,
    /// Reasons for which this plan disrupts nodes of a pool, and no budget limits how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlimited: Vec<Unlimited>,
    /// What moves out of pools with `Balanced` came to there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub balances: Vec<Balance>,
    /// What may go wrong for whom when nodes go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<Risk>,
    /// What the reader should know about the inputs, such as zones taken without a subnet.
    pub notes: Vec<Note>,
    pub summary: Summary,
}

impl Plan {
    /// SHA-256 over the JSON form without the id itself, in hexadecimal. A definition whose lines only moved makes no other plan, nor do
    /// facts of EC2 that this plan does not use or that change from minute to minute; another image to launch does. Kinds of reasons say
    /// no more than the sentences beside them, so that a plan of a version without them keeps its id.
    pub fn content_hash(&self) -> String {
        // Hashed as it is written: the text of a plan for thousands of nodes is as large as the plan.
        let mut hashing = Hashing(Sha256::new());
        // A plan is plain data, which always has a JSON form; and nothing refuses to be hashed.
        serde_json::to_writer(&mut hashing, &self.unnamed()).unwrap_or_default();
        hexadecimal(hashing.0.finalize())
    }

    /// The same over what is left of it when `hide` took out what nobody is shown.
    pub fn hash_without(&self, hide: impl FnOnce(&mut serde_json::Value)) -> String {
        let mut json = serde_json::to_value(self.unnamed()).unwrap_or_default();
        hide(&mut json);
        hexadecimal(Sha256::digest(json.to_string()))
    }

    fn unnamed(&self) -> Self {
        let mut unnamed = Self { id: String::new(), ..self.without_kinds() };
        unnamed.forget_places();
        unnamed.cloud_facts.retain(|fact| fact.used && !fact.code.is_fleeting());
        unnamed
    }

    fn forget_places(&mut self) {
        let of_base = self.against.iter_mut().flat_map(|against| &mut against.steps_no_longer_planned);
        self.steps.iter_mut().chain(of_base).for_each(|step| step.definition = None);
        self.pending.iter_mut().flat_map(|it| &mut it.reasons).for_each(|reason| reason.definition = None);
        self.held_back.iter_mut().for_each(|held| held.definition = None);
        self.notes.iter_mut().for_each(|note| note.definition = None);
        self.budgets.iter_mut().for_each(|budget| budget.definition = None);
        self.cloud_facts.iter_mut().for_each(|fact| fact.definition = None);
    }

    /// Pods that find their places only if kube-scheduler takes them before others.
    pub fn pods_to_bind_first(&self) -> BTreeSet<&str> {
        let notes = self.notes.iter().filter(|note| note.code == NoteCode::BindingOrderMatters);
        notes.flat_map(|note| note.pods.iter().map(String::as_str)).collect()
    }

    /// As versions wrote it that knew no kinds of reasons: it has the same id, and is shorter.
    #[must_use]
    pub fn without_kinds(&self) -> Self {
        let mut plan = self.clone();
        let of_base = plan.against.iter_mut().flat_map(|against| &mut against.steps_no_longer_planned);
        plan.steps.iter_mut().chain(of_base).for_each(|step| step.reason.kind.clear());
        plan.pending.iter_mut().flat_map(|it| &mut it.reasons).for_each(|reason| reason.kind.clear());
        plan.held_back.iter_mut().for_each(|held| held.kind.clear());
        plan
    }
}

/// What is written is hashed.
struct Hashing(Sha256);

impl std::io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revision {
    /// Commit hash, or a hash over the files of a folder that is no repository.
    pub id: String,
    /// Branch, tag or path that was asked for.
    pub reference: String,
}

/// What the plan for the base revision looks like, for comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Against {
    pub revision: Revision,
    pub plan_id: String,
    pub summary: Summary,
    /// Steps of the base plan that the change takes away.
    pub steps_no_longer_planned: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    pub kind: StepKind,
    /// Steps of one move stand or fall together.
    #[serde(rename = "move")]
    pub move_number: u32,
    pub node_pool: String,
    pub node_claim: String,
    /// Nodes of one wave may go together: no workload on several nodes loses all of its replicas in one. Creations belong to the
    /// wave that needs them. Absent where one wave is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wave: Option<u32>,
    /// The node's name; for a creation the name is known once it registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub price_per_hour: HourlyPrice,
    /// `namespace/name`: pods that a creation is for, or that a removal makes move. Room for a pod of a CapacityBuffer is
    /// `namespace/buffer:NAME:NUMBER`, here and wherever pods are named.
    pub pods: Vec<String>,
    pub reason: Reason,
    /// Where the definition has what the reason is about; absent where it is about none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionPlace>,
    pub preconditions: Vec<Precondition>,
    /// On removals, where it is not graceful.
    #[serde(default, skip_serializing_if = "RemovalMode::is_graceful")]
    pub mode: RemovalMode,
    /// On creations: what the applier needs, so that it has nothing to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// Allocatable of the node and the part of it that is requested after the plan, with DaemonSets.
    pub allocatable: Resources,
    pub requested: Resources,
    /// With `--against`: whether the base revision plans the same step; of a replacement, all of its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also_in_base: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    Create,
    Remove,
    /// A node that exists is taken over: only its labels and owner change.
    Adopt,
    /// A node that a confirmation is needed for.
    Hold,
}

/// What must still hold when the step is carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Precondition {
    /// The NodePool still has the generation (and, from Git, the content) it was planned with.
    NodePoolUnchanged { name: String, hash: String },
    /// The node still holds just these reschedulable pods.
    #[serde(rename_all = "camelCase")]
    NodeHoldsOnly {
        node: String,
        pods: usize,
        /// A hash over which pods they are, and what they say about being disturbed. Absent in plans of older versions; then their names have to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pods_hash: Option<String>,
    },
    /// Every creation of the same move has initialized.
    ReplacementsInitialized,
    /// Somebody approved the plan, or the annotation of the pool says that its nodes may go.
    #[serde(rename_all = "camelCase")]
    RemovalConfirmed { node_pool: String },
}

/// How the node of a removal goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum RemovalMode {
    /// When the nodes that take its place are up, budgets allow it and its wave has come, it is drained.
    #[default]
    Graceful,
    /// EC2 has announced that it takes the instance away. The node is drained at once: without waiting for replacements or budgets, but
    /// its pods are evicted and not deleted. Only while the NodeClaim still says so.
    AtOnce {
        /// Karpenter's reason for what was announced, such as `SpotInterrupted`.
        announced: String,
    },
    /// The node is broken. It goes at once and by force: without waiting for replacements or budgets, and its pods are deleted and not
    /// evicted. Only while the node still says so of itself.
    ByForce { condition: String, status: String },
}

impl RemovalMode {
    /// Whether nothing is waited for: neither replacements nor budgets, nor pods that stay.
    pub fn waits_for_nothing(&self) -> bool {
        *self != Self::Graceful
    }

    fn is_graceful(&self) -> bool {
        *self == Self::Graceful
    }
}

/// What a consolidation saves of a pool with `consolidationPolicy: Balanced`, and what it disrupts there. Source: reference, section
/// 4.5.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Balance {
    #[serde(rename = "move")]
    pub move_number: u32,
    pub node_pool: String,
    /// Of the price of all nodes of the pool; a move out of several pools saves for each by what their nodes cost.
    pub savings_percent: f64,
    /// Of the disruption cost of all nodes of the pool.
    pub disruption_percent: f64,
}

impl Balance {
    /// A move may disrupt this many times the part that it saves.
    pub const FACTOR: u8 = 2;

    /// The part saved for the part disrupted.
    pub fn score(&self) -> f64 {
        self.savings_percent / self.disruption_percent.max(f64::MIN_POSITIVE)
    }

    /// The score that is enough.
    pub fn threshold() -> f64 {
        1.0 / f64::from(Self::FACTOR)
    }

    pub fn is_enough(&self) -> bool {
        // What is just enough stays so, however it is rounded.
        self.savings_percent * f64::from(Self::FACTOR) >= self.disruption_percent * (1.0 - 1e-12)
    }
}

/// What to launch: a NodeClaim as it will be written, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    pub node_claim: serde_json::Value,
    /// SHA-256 over what is written of the EC2NodeClass, which the NodeClaim only names: role, user data, and all else that the node is
    /// launched with. Absent where the class is in the cluster alone, and in plans of older versions. Of a variable whose value is shown
    /// nowhere it covers the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_hash: Option<String>,
    /// The variables of the EC2NodeClass whose values are shown nowhere, and are those of the process that launches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_class_variables: Vec<String>,
    /// Instance type and zone, in the order of preference; the first is the one the plan shows.
    #[schemars(with = "Vec<Alternative>")]
    pub alternatives: Shared<Vec<Alternative>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Alternative {
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub price_per_hour: HourlyPrice,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// `namespace/name`
    pub pod: String,
    pub node: String,
}

/// The CapacityBuffer, as `namespace/name`, whose room a plan means by `namespace/buffer:NAME:NUMBER`; `None` for a pod.
pub fn buffer_of(pod: &str) -> Option<String> {
    let (namespace, name) = pod.split_once('/')?;
    let (buffer, _) = name.strip_prefix(BUFFER_POD_PREFIX)?.rsplit_once(':')?;
    Some(format!("{namespace}/{buffer}"))
}

/// Pods that stay pending for the same reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// `namespace/name`
    pub pods: Vec<String>,
    /// Nearest pool first.
    pub reasons: Vec<PendingReason>,
    /// The smallest change that would let one of them in, in words; made to these pods, it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_change: Option<String>,
    /// The same as data; several only where no single one is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingReason {
    /// Empty when the reason is the pod's own.
    pub node_pool: String,
    pub code: ReasonCode,
    pub text: String,
    /// What keeps the pods from the pool, in words with the labels and resources that they are about. Sentences with one code and one kind
    /// differ in figures and names alone. Absent in plans of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<String>,
    /// Which requirements of the pool match nothing, where no instance type does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<UnmatchedRequirements>,
    /// The instance types that the pool would take and that have no price, where there are no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_price: Vec<String>,
    /// Where the definition has what the reason is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionPlace>,
}

impl PendingReason {
    /// Whose kind is its code.
    pub fn new(node_pool: &str, code: ReasonCode, text: String) -> Self {
        Self {
            node_pool: node_pool.to_owned(),
            code,
            text,
            kind: vec![code.word()],
            unmatched: None,
            without_price: Vec::new(),
            definition: None,
        }
    }
}

/// A node that was bought for pods, and that kube-scheduler refused them: nothing is bought for them again for a while, twice as long after
/// each attempt. Whoever carries the plan out notes it on the NodePool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedNode {
    pub node_pool: String,
    pub node_claim: String,
    pub node: String,
    /// `namespace/name`: pods that wait, and for which it or one like it was bought.
    pub pods: Vec<String>,
    /// A hash over their workload and what they ask for: pods that come in their place are the same need.
    pub need: String,
    /// Names of kube-scheduler's filters that refuse it; empty where they are not known.
    pub filters: Vec<String>,
    pub text: String,
    /// How often one was bought in vain.
    pub attempts: u32,
    /// RFC 3339: when the last one was given up.
    pub refused_at: String,
    /// RFC 3339: before this none is bought for them.
    pub next_attempt_at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct HeldBack {
    pub node: String,
    pub code: ReasonCode,
    pub text: String,
    /// What the node would go for and what keeps it, in words with the names of NodePools and budgets. Sentences with one code and one kind
    /// differ in figures and in names of nodes and pods alone. Absent in plans of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<String>,
    /// The budget that has nothing left for it, where that is what keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<HoldingBudget>,
    /// Where the definition has what the reason is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionPlace>,
}

impl HeldBack {
    pub fn reason(&self) -> Reason {
        Reason { code: self.code, text: self.text.clone(), kind: self.kind.clone() }
    }
}

/// A budget that keeps a node from going.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldingBudget {
    pub kind: BudgetKind,
    /// NodePool, or name of a `DisruptionBudget`.
    pub name: String,
    /// Whether its money is what is used up, and not its nodes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_out_of_money: bool,
}

/// What one budget allows at the moment planned for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetState {
    /// NodePool, or name of a `DisruptionBudget`.
    pub name: String,
    pub kind: BudgetKind,
    /// As written: `10%`, `5`.
    pub nodes: String,
    /// Reasons it applies to; empty: all.
    pub reasons: Vec<String>,
    /// Nodes it counts.
    pub nodes_counted: usize,
    /// Nodes that may be disrupted by it before this plan, with those that are being disrupted already taken off.
    pub allowed: usize,
    /// Nodes that this plan disrupts within it.
    pub used: usize,
    /// Nodes that this plan removes without asking it: expired, broken, or more than a static pool wants. They count all the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forced: usize,
    /// Whether its window is open and its list of reasons, where it has one, names any; else it does not restrict.
    pub active: bool,
    /// What its `moneyPerHour` comes to; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<BudgetMoney>,
    /// Why nothing is allowed at this hour, whatever `nodes` says; absent where windows allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
    /// Where it is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<DefinitionPlace>,
}

/// A reason that no budget of a pool speaks of at the moment planned for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unlimited {
    pub node_pool: String,
    pub reason: String,
}

/// Prices of nodes that are disrupted at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BudgetMoney {
    pub limit_per_hour: HourlyPrice,
    /// Before this plan, with the nodes that are being disrupted already taken off.
    pub allowed_per_hour: HourlyPrice,
    /// What the nodes cost that this plan disrupts.
    pub used_per_hour: HourlyPrice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum BudgetKind {
    NodePool,
    DisruptionBudget,
}

pub fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
}
