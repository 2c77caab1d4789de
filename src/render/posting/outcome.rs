//! What came of a pull request after it was merged: the plans that were posted for it, in the comment that had shown
//! them beforehand.

use jiff::Timestamp;
use serde_json::Value;

use super::Room;
use super::answers::ApprovedPlans;
use super::status::cut;
use crate::api::node_plan::{Fidelity, NodePlan, NodePlanPhase, NodePlanStatus};
use crate::core::plan::Plan;
use crate::core::preview::{DIGEST_DIGITS, digest};
use crate::render::plan::markdown::escape::{code, prose};
use crate::render::plan::{count, short};
use crate::render::terminal::clean;

/// The lines around the outcome, by which it is found again. Only this program writes between them.
const BEGIN: &str = "<!-- cutlist:outcome:v1 -->";
const END: &str = "<!-- cutlist:outcome:end -->";
/// Characters that a comment leaves free, so that the outcome has room in it.
pub const OUTCOME_CHARACTERS: usize = 4_000;
/// Plans in the table. A busy cluster gets a new plan every minute.
const ROWS_MAX: usize = 6;
const MESSAGE_CHARACTERS_MAX: usize = 200;
/// Characters of a plan's identity and of a commit that people read.
const DIGITS: usize = 7;

/// A merge, and the plans that were posted for it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The commit that the pull request became.
    pub merged_as: &'a str,
    /// Plans of one revision: of that commit, or of the first after it that has a plan. Oldest first, at least one.
    pub plans: &'a [&'a NodePlan],
    /// The digest of the plan that the comment shows ([`previewed()`]).
    pub previewed: Option<&'a str>,
    /// What was approved on the pull request.
    pub approved: &'a [ApprovedPlans],
}

/// The identity of the plan that a comment shows, from its second line.
pub fn previewed(body: &str) -> Option<String> {
    data_of(body)?["plan"].as_str().map(str::to_owned)
}

/// The identities of all plans that a comment shows, be it about one cluster or about many.
pub fn plans_shown(body: &str) -> Vec<String> {
    let Some(data) = data_of(body) else { return Vec::new() };
    let of_many = data["plans"].as_array().into_iter().flatten();
    of_many.chain([&data["plan"]]).filter_map(Value::as_str).map(str::to_owned).collect()
}

fn data_of(body: &str) -> Option<Value> {
    let data = body.lines().nth(1)?.trim_end().strip_prefix("<!-- cutlist:data ")?.strip_suffix(" -->")?;
    serde_json::from_str(data).ok()
}

/// Whether nothing more is to be expected of these plans. Where there is none, one is to be expected.
pub fn is_settled(plans: &[&NodePlan]) -> bool {
    !plans.is_empty() && plans.iter().all(|plan| plan.status.as_ref().is_some_and(|status| status.phase.is_final()))
}

impl Outcome<'_> {
    /// Markdown, without the lines around it.
    pub fn text(&self) -> String {
        let revision = self.plans.first().map_or("", |plan| plan.spec.revision.id.as_str());
        let merged = code(&short(&clean(self.merged_as), DIGITS));
        let with = if revision == self.merged_as {
            String::new()
        } else {
            format!(", and planned with what came after it as {}", code(&short(&clean(revision), DIGITS)))
        };
        let mut text = format!("#### After the merge\n\nMerged as {merged}{with}. {}\n\n", self.compared());
        text.push_str("| plan | for | created | removed | price | |\n|---|---|---:|---:|---:|---|\n");
        let earlier = self.plans.len().saturating_sub(ROWS_MAX);
        self.plans.iter().skip(earlier).for_each(|plan| text.push_str(&self.row(plan)));
        if earlier > 0 {
            text.push_str(&format!("\n{} before these.\n", count(earlier, "plan")));
        }
        text
    }

    /// Whether the first plan is the one that was shown.
    fn compared(&self) -> &'static str {
        match (self.previewed, self.plans.first().and_then(|first| digest_of(first))) {
            (Some(previewed), Some(first)) if first == previewed => "The first plan is the one shown below.",
            (Some(_), Some(_)) => "The first plan is another one than the one shown below: the cluster had changed.",
            _ => "The first plan can not be compared with what is shown below.",
        }
    }

    fn row(&self, plan: &NodePlan) -> String {
        let spec = &plan.spec;
        let status = plan.status.clone().unwrap_or_default();
        let mut became = became(&spec.plan_id, &status);
        if status.phase == NodePlanPhase::WaitsForApproval {
            became.push_str(&self.approved_before(plan));
        }
        let cells = [
            code(&short(&clean(&spec.plan_id), DIGITS)),
            moment(&spec.generated_for),
            spec.nodes_created.to_string(),
            spec.nodes_removed.to_string(),
            prose(&clean(&spec.price_change)),
            became,
        ];
        format!("| {} |\n", cells.join(" | "))
    }

    /// What approvals on the pull request say of a plan that waits for one.
    fn approved_before(&self, plan: &NodePlan) -> String {
        match (approved_by(plan, self.approved), self.approved.last()) {
            (Some(by), _) => format!("; on this pull request {} approved it", prose(&clean(by))),
            (None, Some(last)) => {
                format!("; what {} approved on this pull request was another plan", prose(&clean(&last.by)))
            }
            (None, None) => String::new(),
        }
    }
}

/// What identifies what a plan decides; `None` where its object does not hold the plan.
fn digest_of(plan: &NodePlan) -> Option<String> {
    let plan: Plan = serde_json::from_value(plan.spec.plan.clone()?).ok()?;
    Some(digest(&plan))
}

/// Who approved exactly this plan on the pull request.
pub fn approved_by<'a>(plan: &NodePlan, approved: &'a [ApprovedPlans]) -> Option<&'a str> {
    // Without approvals the plan is not parsed: one of thousands of nodes takes a while.
    let digest = if approved.is_empty() { None } else { digest_of(plan) }?;
    approved.iter().find(|it| it.digests.contains(&digest)).map(|it| it.by.as_str())
}

/// What became of a plan.
fn became(plan_id: &str, status: &NodePlanStatus) -> String {
    let mut words = match status.phase {
        NodePlanPhase::Posted => "posted: nothing of it is done yet".to_owned(),
        NodePlanPhase::WaitsForApproval => {
            format!(
                "**waits for an approval**: {}",
                code(&format!("cutlist approve {}", short(&clean(plan_id), DIGEST_DIGITS)))
            )
        }
        NodePlanPhase::Applying => "**under way**".to_owned(),
        NodePlanPhase::Applied => "**done**".to_owned(),
        NodePlanPhase::Superseded => "given up".to_owned(),
    };
    // The message of a plan that waits would say how to approve it, and that of one that is done repeats what was said.
    let message = cut(&clean(&status.message), MESSAGE_CHARACTERS_MAX);
    if status.phase == NodePlanPhase::Superseded && !message.is_empty() {
        words.push_str(&format!(": {}", prose(&message)));
    }
    if let Some(fidelity) = &status.fidelity {
        words.push_str(&format!("; {}", as_planned(fidelity)));
    }
    words
}

/// `11 of 12 pods and 2 of 2 nodes as planned, $0.19/h`
fn as_planned(fidelity: &Fidelity) -> String {
    let Fidelity { pods_planned, pods_as_planned, nodes_planned, nodes_as_planned, price_launched, .. } = fidelity;
    let of = |some: &u32, all: &u32, what: &str| (*all > 0).then(|| format!("{some} of {all} {what}"));
    let parts = [of(pods_as_planned, pods_planned, "pods"), of(nodes_as_planned, nodes_planned, "nodes")];
    let price = if price_launched.is_empty() { String::new() } else { format!(", {}", prose(&clean(price_launched))) };
    format!("{} as planned{price}", parts.into_iter().flatten().collect::<Vec<_>>().join(" and "))
}

/// The moment to the minute, which is as exact as anybody reads it.
fn moment(text: &str) -> String {
    let parsed: Result<Timestamp, _> = text.parse();
    parsed.map_or_else(|_| prose(&clean(text)), |moment| moment.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// The comment with the outcome behind its two hidden lines, in the place of an earlier outcome. Where there is no room
/// for both, the outcome stays and the preview goes.
pub fn with_outcome(body: &str, outcome: &Outcome<'_>, room: Room) -> String {
    let body = without_outcome(body);
    let mut lines = body.splitn(3, '\n');
    let (marker, data) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let preview = lines.next().unwrap_or_default();
    let top = format!("{marker}\n{data}\n{BEGIN}\n{}{END}\n", outcome.text());
    let whole = format!("{top}\n{}", preview.trim_start_matches('\n'));
    if room.holds(whole.chars().count(), whole.len()) {
        return whole;
    }
    format!("{top}\nThe preview that stood here is left out for want of room.\n")
}

/// The comment as it was before the outcome. Forges may have changed the ends of its lines.
fn without_outcome(body: &str) -> String {
    let body = body.replace("\r\n", "\n");
    let parts = body.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    match parts {
        Some((before, after)) => format!("{before}{}", after.trim_start_matches('\n')),
        None => body,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROOM: Room = Room { characters: 4_000, bytes: 8_000 };
    const BODY: &str = "<!-- cutlist:preview:v1 id=prod/ by=cutlist -->\r\n<!-- cutlist:data {\"plan\":\"aa\"} -->\r\n### Nodes of `prod`\r\n\r\nthree\r\n";

    fn plan(id: &str, revision: &str, status: Value) -> NodePlan {
        let spec = json!({
            "planId": id, "revision": { "id": revision, "reference": "main" }, "generatedFor": "2026-11-20T09:00:00Z",
            "nodesCreated": 2, "nodesRemoved": 1, "priceChange": "+$0.1000/h",
        });
        let kind = json!({ "apiVersion": "cutlist.dev/v1alpha1", "kind": "NodePlan" });
        let mut object = kind.as_object().unwrap().clone();
        object.extend([("metadata".to_owned(), json!({})), ("spec".to_owned(), spec), ("status".to_owned(), status)]);
        serde_json::from_value(Value::Object(object)).unwrap()
    }

    fn shown(plans: &[NodePlan], body: &str) -> String {
        let plans: Vec<&NodePlan> = plans.iter().collect();
        with_outcome(
            body,
            &Outcome { merged_as: "0123456789", plans: &plans, previewed: Some("aa"), approved: &[] },
            ROOM,
        )
    }

    #[test]
    fn a_merge_is_settled_when_its_plans_are() {
        let done = plan("6e4f22aa", "0123456789", json!({ "phase": "Applied" }));
        let waits = plan("7e4f22aa", "0123456789", json!({ "phase": "WaitsForApproval" }));
        assert!(is_settled(&[&done]));
        assert!(!is_settled(&[&done, &waits]));
        assert!(!is_settled(&[]), "a plan is still to come");
    }

    #[test]
    fn an_outcome_takes_the_place_of_the_one_before() {
        let waits = plan("6e4f22aa", "0123456789", json!({ "phase": "WaitsForApproval", "message": "move 1 waits" }));
        let once = shown(&[waits], BODY);
        assert!(once.contains("<code>cutlist approve 6e4f22aa</code>") && once.ends_with("three\n"), "{once}");
        assert_eq!(previewed(&once).as_deref(), Some("aa"));
        let fidelity = json!({ "podsPlanned": 12, "podsAsPlanned": 11, "nodesPlanned": 2, "nodesAsPlanned": 2,
                               "pricePlanned": "$0.1/h", "priceLaunched": "$0.2/h" });
        let done = plan("6e4f22aa", "0123456789", json!({ "phase": "Applied", "fidelity": fidelity }));
        let twice = shown(std::slice::from_ref(&done), &once);
        assert_eq!(twice, shown(&[done], BODY));
        assert!(twice.contains("11 of 12 pods and 2 of 2 nodes as planned") && !twice.contains("approve"), "{twice}");
    }

    #[test]
    fn what_has_no_room_is_left_out_and_said() {
        let long = format!("{BODY}{}", "x".repeat(ROOM.characters));
        let text = shown(&[plan("6e4f22aa", "fedcba9876", json!({ "phase": "Applied" }))], &long);
        assert!(text.chars().count() < 1_000 && text.contains("want of room"), "{text}");
        assert!(text.contains("as <code>fedcba9</code>"), "{text}");
        let many: Vec<NodePlan> =
            (0..ROWS_MAX + 3).map(|_| plan("6e4f22aa", "0123456789", json!({ "phase": "Superseded" }))).collect();
        assert!(shown(&many, BODY).contains("3 plans before these"));
    }

    #[test]
    fn markup_of_messages_stays_text() {
        let message = "<!-- cutlist:outcome:end --> | @everyone `x`\n# y";
        let text = shown(&[plan("6e4f22aa", "0123456789", json!({ "phase": "Superseded", "message": message }))], BODY);
        assert_eq!(text.matches("<!-- cutlist:outcome:end -->").count(), 1, "{text}");
        assert!(!text.contains("\n# y") && !text.contains(" @everyone"), "{text}");
    }
}
