//! `NodePlan` (cutlist.dev/v1alpha1): a plan that was posted, and what became of it. Written by Cutlist, read and approved by
//! people.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval_rules::ApprovalRules;
use super::keys;
use super::validation::node_plan as rules;

/// Annotation by which people approve a plan. Its value says who did, and the policy in `deploy/` lets people write
/// only their own name.
pub const APPROVED_BY: &str = "cutlist.dev/approved-by";

/// Annotation beside it where a program approves for people who did so elsewhere: `pull request 7 by ada`.
pub const APPROVED_ON: &str = "cutlist.dev/approved-on";

#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "cutlist.dev",
    version = "v1alpha1",
    kind = "NodePlan",
    plural = "nodeplans",
    category = "cutlist",
    status = "NodePlanStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Create","type":"integer","jsonPath":".spec.nodesCreated"}"#,
    printcolumn = r#"{"name":"Remove","type":"integer","jsonPath":".spec.nodesRemoved"}"#,
    printcolumn = r#"{"name":"Price change","type":"string","jsonPath":".spec.priceChange"}"#,
    printcolumn = r#"{"name":"Revision","type":"string","jsonPath":".spec.revision.id","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::SPEC))]
pub struct NodePlanSpec {
    /// The plan's identity: a hash over its content and over what it was made from.
    pub plan_id: String,
    /// The revision of the definitions it was made for.
    pub revision: NodePlanRevision,
    /// RFC 3339: the moment that was planned for.
    pub generated_for: String,
    pub nodes_created: i64,
    pub nodes_removed: i64,
    /// Per hour, with its sign: `-$1.20/h`.
    pub price_change: String,
    /// How often the lease had changed hands when this was planned. A plan of an earlier leader is not carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_transitions: Option<i64>,
    /// The rules for approvals that are in force, whatever the revision says that the plan is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRules>,
    /// The rules that the revision asks for, where they ask for less: in force once a plan of it is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_becomes: Option<ApprovalRules>,
    /// Users that may not approve the plan, since they are the authors of its revision, where two people are asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_approved_by: Vec<String>,
    /// The plan as `cutlist plan -o json` prints it. Left out where it would not fit into an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub plan: Option<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlanRevision {
    pub id: String,
    pub reference: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePlanStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub phase: NodePlanPhase,
    /// What there is to know about the phase: which moves wait, why the rest was given up.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The plan as people read it; cut where it is long.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Moves that were begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves_begun: Vec<u32>,
    /// What the cluster made of it, once the nodes are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    /// Only of objects named `history-0`, `history-1` and so on, which are no plans: which nodes earlier plans created and removed whose
    /// own objects are gone. `cutlist why node` reads it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "any_objects")]
    pub history: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NodePlanPhase {
    /// Shown; nothing of it is done yet.
    #[default]
    Posted,
    /// Some moves wait for an approval.
    WaitsForApproval,
    /// Begun: nodes are on their way.
    Applying,
    /// Everything that was to be done is under way or done.
    Applied,
    /// Another plan took its place, or its inputs changed.
    Superseded,
}

/// Annotation of the first page of the history: what people elsewhere were told, by receiver and key, and when. On that
/// page it outlives plans, and needs no right that plans do not need.
pub const NOTIFIED: &str = "cutlist.dev/notified";

/// The beginning of the names of objects that are no plans, but pages of what earlier plans did. A number follows.
pub const HISTORY_PREFIX: &str = "history-";

impl NodePlan {
    /// Who approved it, as its annotation says.
    pub fn approver(&self) -> Option<&str> {
        let by = self.metadata.annotations.as_ref()?.get(APPROVED_BY)?.trim();
        (!by.is_empty()).then_some(by)
    }

    /// An empty page of the history.
    pub fn page(number: usize) -> Self {
        let name = format!("{HISTORY_PREFIX}{number}");
        let mut page = Self::new(
            &name,
            NodePlanSpec {
                plan_id: name.clone(),
                revision: NodePlanRevision::default(),
                generated_for: String::new(),
                nodes_created: 0,
                nodes_removed: 0,
                price_change: String::new(),
                lease_transitions: None,
                approval: None,
                approval_becomes: None,
                not_approved_by: Vec::new(),
                plan: None,
            },
        );
        let labels = page.metadata.labels.get_or_insert_default();
        labels.insert(keys::MANAGED_BY.to_owned(), keys::FIELD_MANAGER.to_owned());
        page.status = Some(NodePlanStatus {
            phase: NodePlanPhase::Applied,
            message: "what plans did whose own objects are gone".to_owned(),
            ..NodePlanStatus::default()
        });
        page
    }

    /// The number of a page of the history; `None` for a plan.
    pub fn page_number(&self) -> Option<usize> {
        self.metadata.name.as_deref()?.strip_prefix(HISTORY_PREFIX)?.parse().ok()
    }
}

impl NodePlanPhase {
    /// Whether nothing more will be done of the plan.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Applied | Self::Superseded)
    }
}

/// Planned against what happened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fidelity {
    pub pods_planned: u32,
    /// Pods that kube-scheduler bound to the node the plan named.
    pub pods_as_planned: u32,
    pub nodes_planned: u32,
    /// Nodes that came up with the instance type, zone and capacity type of the plan.
    pub nodes_as_planned: u32,
    /// US dollars per hour of the new nodes.
    pub price_planned: String,
    pub price_launched: String,
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

fn any_objects(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": any_object(generator) })
}
