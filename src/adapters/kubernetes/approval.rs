//! Approving a plan, for people: an annotation on its object, which the controller reads.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use serde_json::json;

use crate::api::node_plan::{APPROVED_BY, APPROVED_ON, NodePlan, NodePlanPhase};
use crate::ports::PortError;

use super::failure::port_error;

/// What became of a wish to approve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    Given { name: String, by: String },
    NotWaiting { name: String, phase: NodePlanPhase },
    NoSuchPlan,
    Ambiguous { names: Vec<String> },
}

/// The name by which the API server knows who asks; `None` where it does not say.
pub async fn user_name(client: &Client) -> Result<Option<String>, PortError> {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    match api.create(&PostParams::default(), &SelfSubjectReview::default()).await {
        Ok(review) => Ok(review.status.and_then(|status| status.user_info?.username)),
        Err(Error::Api(status)) if status.code == 404 || status.code == 403 => Ok(None),
        Err(error) => Err(port_error("ask who I am", error)),
    }
}

/// Approves the plan whose name, or identity, begins with `plan`. `on`: on what other people approved it, whom `by` stands in for.
pub async fn approve(client: &Client, plan: &str, by: &str, on: Option<&str>) -> Result<Approval, PortError> {
    let api: Api<NodePlan> = Api::all(client.clone());
    let plans = api.list(&ListParams::default()).await.map_err(|error| port_error("list nodeplans", error))?;
    let is_meant = |object: &&NodePlan| {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        !plan.is_empty() && (name.starts_with(plan) || object.spec.plan_id.starts_with(plan))
    };
    let meant: Vec<&NodePlan> = plans.items.iter().filter(is_meant).collect();
    let name_of = |object: &NodePlan| object.metadata.name.clone().unwrap_or_default();
    match meant.as_slice() {
        [] => Ok(Approval::NoSuchPlan),
        [object] => {
            let (name, phase) = (name_of(object), object.status.as_ref().map(|status| status.phase));
            let phase = phase.unwrap_or_default();
            if phase != NodePlanPhase::WaitsForApproval {
                return Ok(Approval::NotWaiting { name, phase });
            }
            let patch = json!({ "metadata": { "annotations": { APPROVED_BY: by, APPROVED_ON: on } } });
            let operation = format!("patch nodeplan {name}");
            let patched = api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            patched.map_err(|error| port_error(operation, error))?;
            Ok(Approval::Given { name, by: by.to_owned() })
        }
        several => Ok(Approval::Ambiguous { names: several.iter().map(|object| name_of(object)).collect() }),
    }
}
