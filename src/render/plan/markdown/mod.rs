//! The plan as a comment on a pull request: the verdict on the first screen, the nodes of each pool folded below, never
//! longer than a forge takes.

pub(in crate::render) mod details;
pub(in crate::render) mod escape;
pub(in crate::render) mod facts;

use serde_json::json;

use crate::core::plan::Plan;

use super::text::{budget, counts, longest_drain};
use super::units::{change, costs, count, difference, distance_of, fewer_nodes, money, thousands};
use super::{PLAN_DIGITS, revision, short};
use details::Detail;
use escape::{code, comment, prose};

/// GitHub refuses comments of more characters. (GitLab takes 1,000,000.)
pub const CHARACTERS_MAX: usize = 65_536;
/// GitHub counts bytes in some places, and a character outside of ASCII takes up to four.
pub(in crate::render) const BYTES_MAX: usize = 200_000;

/// What stands behind the first screen, in the order of the page.
const PARTS: [fn(&Plan, Detail, &mut String); 7] = [
    facts::by_class,
    details::pools,
    |plan, detail, text| details::placements(&plan.placements, detail, text),
    |plan, detail, text| details::pending(&plan.pending, "pending", detail, text),
    |plan, detail, text| details::held_back(&plan.held_back, "held back", detail, text),
    |plan, detail, text| details::risks(&plan.risks, detail, text),
    notes,
];

/// The plan as Markdown. The first line marks the comment of this cluster, so that it can be found and edited in place.
/// The second line holds data for machines. Where the whole does not fit, the longest part is shortened, again and
/// again: what the change does not cause goes first, then nodes are folded, then lists are cut, then only counts are
/// left. The JSON form always has everything.
pub fn markdown(plan: &Plan) -> String {
    let head = head(plan);
    let mut parts: Vec<PagePart> = PARTS.iter().map(|write| PagePart::of(plan, *write)).collect();
    loop {
        let text = page(&head, &parts);
        if text.chars().count() <= CHARACTERS_MAX && text.len() <= BYTES_MAX {
            return text;
        }
        match parts.iter_mut().filter(|part| !part.text.is_empty()).max_by_key(|part| part.text.len()) {
            Some(longest) => longest.shorten(plan),
            None => break,
        }
    }
    format!("{head}\nThe plan is too long for a comment: see the output of `cutlist plan -o json`.\n")
}

fn page(head: &str, parts: &[PagePart]) -> String {
    let mut text = head.to_owned();
    parts.iter().for_each(|part| text.push_str(&part.text));
    if parts.iter().any(|part| part.detail != Some(Detail::Everything)) {
        text.push_str("\nShortened to fit a comment; `cutlist plan -o json` has every step.\n");
    }
    text
}

/// One part of the page, at the length for which there is room.
struct PagePart {
    write: fn(&Plan, Detail, &mut String),
    /// `None`: the part is left out.
    detail: Option<Detail>,
    text: String,
}

impl PagePart {
    fn of(plan: &Plan, write: fn(&Plan, Detail, &mut String)) -> Self {
        let mut text = String::new();
        write(plan, Detail::Everything, &mut text);
        Self { write, detail: Some(Detail::Everything), text }
    }

    /// Goes on to the next detail that is shorter.
    fn shorten(&mut self, plan: &Plan) {
        let before = self.text.len();
        while self.text.len() >= before
            && let Some(detail) = self.detail
        {
            self.text.clear();
            self.detail = detail.next();
            if let Some(detail) = self.detail {
                (self.write)(plan, detail, &mut self.text);
            }
        }
    }
}

fn notes(plan: &Plan, detail: Detail, text: &mut String) {
    let shown = if detail == Detail::CountsOnly { 1 } else { detail.rows(plan.notes.len()) };
    for note in plan.notes.iter().take(shown) {
        text.push_str(&format!("\n> {}\n", prose(&note.sentence())));
    }
    let rest = plan.notes.len().saturating_sub(shown);
    if rest > 0 {
        text.push_str(&format!("\n> and {}\n", count(rest, "more note")));
    }
}

/// The marker, the data, and the first screen.
fn head(plan: &Plan) -> String {
    let summary = &plan.summary;
    let mut text = format!("<!-- cutlist:plan:v{} id={} -->\n", plan.version, comment(&plan.cluster));
    let data = json!({
        "plan": plan.id,
        "head": plan.revision.id,
        "base": plan.against.as_ref().map(|against| &against.revision.id),
        "steps": plan.steps.len(),
        "generatedFor": plan.generated_for,
    });
    // A string of JSON may have `-` and `>` as escapes, and then nothing in it can end the comment.
    text.push_str(&format!(
        "<!-- cutlist:data {} -->\n",
        data.to_string().replace('-', "\\u002d").replace('>', "\\u003e")
    ));
    text.push_str(&format!("### {}\n\n", verdict(plan)));
    let distance = distance_of(summary, &plan.held_back).map_or_else(String::new, |distance| format!(", {distance}"));
    text.push_str(&format!("**{}**{distance}\n", money(change(summary))));
    if let Some(against) = &plan.against {
        let difference = difference(summary.price_per_hour_after - against.summary.price_per_hour_after);
        text.push_str(&format!("The change alone: **{difference}**\n"));
    }
    text.push_str(&format!(
        "\n| | nodes | per hour | pods |\n|---|---:|---:|---|\n| before | {} | {} | {} pending |\n| after | {} | {} | {} placed, {} disrupted, {} pending |\n",
        thousands(&summary.nodes_before.to_string()),
        summary.price_per_hour_before,
        thousands(&(summary.pods_placed + summary.pods_pending).to_string()),
        thousands(&summary.nodes_after.to_string()),
        summary.price_per_hour_after,
        thousands(&summary.pods_placed.to_string()),
        thousands(&summary.pods_disrupted.to_string()),
        thousands(&summary.pods_pending.to_string()),
    ));
    if let Some(costs) = costs(summary) {
        text.push_str(&format!("\nAfter: {costs}\n"));
    }
    if let Some(fewer) = fewer_nodes(summary) {
        text.push_str(&format!("\nThe next point of the curve: {fewer}\n"));
    }
    if let Some(drain) = &summary.longest_drain {
        text.push_str(&format!("\nLongest drain: {}\n", prose(&longest_drain(drain))));
    }
    let active: Vec<String> = plan.budgets.iter().filter(|it| it.active).take(8).map(|it| prose(&budget(it))).collect();
    if !active.is_empty() {
        text.push_str(&format!("\nBudgets: {}\n", active.join("; ")));
    }
    let against =
        plan.against.as_ref().map_or_else(String::new, |it| format!(" against {}", code(&revision(&it.revision))));
    text.push_str(&format!(
        "\n<sub>plan {} · revision {}{against} · cluster {} · prices {}</sub>\n",
        code(&short(&plan.id, PLAN_DIGITS)),
        code(&revision(&plan.revision)),
        code(&plan.cluster),
        prose(&plan.catalog_date),
    ));
    text
}

/// What a reviewer must know even when reading nothing else.
fn verdict(plan: &Plan) -> String {
    let summary = &plan.summary;
    let mut verdict = if plan.steps.is_empty() { "Nothing to do".to_owned() } else { counts(plan) };
    if summary.pods_pending > 0 {
        verdict.push_str(&format!(", {} pending", count(summary.pods_pending, "pod")));
    }
    verdict
}
