//! Plans that wait for an approval: what an approval is of, whose it is, and what makes it void.

use serde_json::{Map, Value, json};

use crate::api::approval_rules::ApprovalRules;
use crate::api::node_plan::{NodePlan, NodePlanPhase, NodePlanSpec};
use crate::controller::annotations::of_definitions::Seen;
use crate::controller::moves::gate::Gated;
use crate::core::plan::{Note, NoteCode, Plan};
use crate::core::snapshot::Snapshot;
use crate::definitions::Masks;
use crate::render::{self, plan::Style};

use super::records::{self, Gate, name_of, shown};
use super::shown::signature;

/// A plan of which some is only done when somebody approves, as it was shown.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub plan: Plan,
    /// By the rules that were in force when it was shown.
    pub moves: Vec<u32>,
    /// What approving it makes the rules.
    pub rules: Option<ApprovalRules>,
    pub not_approved_by: Vec<String>,
    /// Nobody can be held to be the second of two people.
    pub has_unknown_authors: bool,
    /// The pools of the cluster when it was planned.
    pub seen: Seen,
}

impl Waiting {
    /// The plan with what of it waits; `None` where nothing does.
    pub fn of(plan: &Plan, gated: &Gated, gate: Gate, seen: &Seen) -> Option<Self> {
        let Gate { approval_becomes: rules, not_approved_by, has_unknown_authors, .. } = gate;
        let waits = !gated.waiting.is_empty() || rules.is_some();
        let (plan, moves, seen) = (plan.clone(), gated.waiting.clone(), seen.clone());
        waits.then(|| Self { plan, moves, rules, not_approved_by, has_unknown_authors, seen })
    }
}

impl Waiting {
    /// Why the approval of this user does not count, whatever was approved. `further`: people who may not approve either.
    pub fn refusal(&self, by: &str, further: &[String]) -> Option<&'static str> {
        if self.has_unknown_authors {
            return Some(UNKNOWN_AUTHORS);
        }
        let is_author = is_one_of(by, &self.not_approved_by) || is_one_of(by, further);
        is_author.then_some("an author of the revision, of whom somebody else is asked")
    }
}

/// Why nobody can approve where two people are asked for and the source of the definitions does not say who wrote them.
pub const UNKNOWN_AUTHORS: &str = "twoPeople asks for somebody else than the author, and the source of the definitions does not say who \
                                   wrote them; follow the Git repository itself, or take twoPeople out and start anew";

/// Somebody approved the plan that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approved {
    /// Nobody, where it was not said on the plan's object.
    pub by: Option<String>,
    /// A call failed when it was carried out: once more, with the next plan.
    pub failed: bool,
}

/// The object of a plan.
pub fn object_of<'a>(snapshot: &'a Snapshot, plan_id: &str) -> Option<&'a NodePlan> {
    snapshot.node_plans.iter().find(|plan| plan.metadata.name.as_deref() == Some(name_of(plan_id)))
}

/// Whether the user is one of these people. An API server may put a prefix before what the identity provider says: `oidc:ada@example.com`.
pub fn is_one_of(user: &str, people: &[String]) -> bool {
    let user = user.to_lowercase();
    people.iter().any(|person| {
        let before = user.strip_suffix(&person.to_lowercase());
        before.is_some_and(|before| before.is_empty() || before.ends_with([':', '#', '/']))
    })
}

/// What of a plan's object is not as it was written, if anything: then what was read is not what would be done.
pub fn difference(written: &NodePlan, found: &NodePlan) -> Option<&'static str> {
    let (before, now) = (&written.spec, &found.spec);
    if !is_same(&json!(before.plan), &json!(now.plan)) {
        return Some("spec.plan");
    }
    if !is_same(&json!(before), &json!(now)) {
        return Some("spec");
    }
    let status = |plan: &NodePlan| plan.status.clone().unwrap_or_default();
    let (before, now) = (status(written), status(found));
    if before.text != now.text {
        return Some("status.text");
    }
    (before.message != now.message || before.phase != now.phase).then_some("status")
}

/// Whether two values say the same. An API server writes `1.0` as `1`, and may leave out what is null.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let field = |fields: &Map<String, Value>, name: &str| fields.get(name).cloned().unwrap_or(Value::Null);
            one.keys().chain(other.keys()).all(|name| is_same(&field(one, name), &field(other, name)))
        }
        _ => one == other,
    }
}

/// The object of an earlier leader's plan for the same revision that asks for the same, and waits: an approval of it is one of this plan.
pub fn of_earlier_leader<'a>(snapshot: &'a Snapshot, waiting: &Waiting) -> Option<&'a NodePlan> {
    let asks_the_same = |object: &&NodePlan| {
        let spec = &object.spec;
        let plan: Option<Plan> = spec.plan.clone().and_then(|plan| serde_json::from_value(plan).ok());
        let phase = object.status.as_ref().map(|status| status.phase);
        spec.plan_id != waiting.plan.id
            && phase == Some(NodePlanPhase::WaitsForApproval)
            && spec.revision.id == waiting.plan.revision.id
            && spec.approval_becomes == waiting.rules
            && !records::is_unreadable(snapshot, &spec.plan_id)
            && plan.is_some_and(|plan| signature(&plan) == signature(&waiting.plan))
    };
    snapshot.node_plans.iter().filter(asks_the_same).find(|object| object.approver().is_some())
}

/// Whether an object is what was written for the plan in it, and what was said of it last: somebody may have made it, changed it, or taken
/// back that its approval was refused. Of an object that this process did not write nothing else is known.
pub fn is_as_written(object: &NodePlan, masks: &Masks) -> bool {
    let spec = &object.spec;
    let plan: Option<Plan> = spec.plan.clone().and_then(|plan| serde_json::from_value(plan).ok());
    // With names in the place of what is hidden its number can not be found again.
    let is_numbered = |plan: &Plan| !masks.is_empty() || plan.id == plan.content_hash();
    let Some(plan) = plan.filter(is_numbered) else { return false };
    let gate = Gate {
        approval: spec.approval.clone(),
        approval_becomes: spec.approval_becomes.clone(),
        not_approved_by: spec.not_approved_by.clone(),
        has_unknown_authors: false,
    };
    let written = records::object_of(&plan, "", spec.lease_transitions, gate);
    let written_spec = NodePlanSpec { plan: spec.plan.clone(), ..written.spec };
    let status = object.status.clone().unwrap_or_default();
    let said = format!("{:?}", status.phase);
    object.metadata.name == written.metadata.name
        && is_same(&json!(written_spec), &json!(spec))
        && status.conditions.iter().any(|condition| condition.type_ == "Approved" && condition.reason == said)
}

/// Whether the text that people read is the plan's own.
pub fn text_is_of_plan(object: &NodePlan, masks: &Masks) -> bool {
    let plan: Option<Plan> = object.spec.plan.clone().and_then(|plan| serde_json::from_value(plan).ok());
    let text = object.status.as_ref().map(|status| status.text.as_str()).unwrap_or_default();
    plan.is_some_and(|plan| shown(&masks.text(&render::plan::text(&plan, Style::Plain))) == text)
}

/// The rules that were in force when a plan was posted last, by whichever process.
pub fn rules_before(snapshot: &Snapshot) -> Option<ApprovalRules> {
    let plans = snapshot.node_plans.iter().filter(|plan| plan.page_number().is_none() && plan.spec.approval.is_some());
    let newest = plans.max_by_key(|plan| (plan.metadata.creation_timestamp.clone(), plan.spec.generated_for.clone()));
    newest.and_then(|plan| plan.spec.approval.clone())
}

/// What the reader of a plan should know of rules that would become looser.
pub fn note_of(loosened: &[String]) -> Note {
    Note::new(
        NoteCode::ApprovalRulesLoosened,
        format!(
            "the revision asks for fewer approvals ({}): the rules before it stay in force until a plan of it is approved",
            loosened.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_known_behind_prefixes() {
        let people = ["ada@example.com".to_owned()];
        for user in ["ada@example.com", "oidc:Ada@example.com", "https://issuer.example.com#ada@example.com"] {
            assert!(is_one_of(user, &people), "{user}");
        }
        for user in ["canada@example.com", "ada@example.com.evil", "ada", ""] {
            assert!(!is_one_of(user, &people), "{user}");
        }
    }
}
