//! One cluster of a preview as Markdown: a first screen by which a reviewer can decide, and folded parts, each in several lengths.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::api::preview::{
    PreviewCause, PreviewCount, PreviewMarkdown, PreviewSection, PreviewSeverity, PreviewTarget,
};
use crate::core::plan::{Note, NoteCode, Pending, Plan, Step, StepKind};
use crate::core::preview::{DIGEST_DIGITS, caused_steps, held_back, pending, risks, steps_anyway, steps_taken_away};
use crate::render::plan::markdown::details::{self, Detail};
use crate::render::plan::markdown::escape::{code, prose};
use crate::render::plan::markdown::facts;
use crate::render::plan::units::{count, thousands};
use crate::render::plan::{budget, short};

use super::sentences::{of_snapshot, warning};

/// Of the first screen; a forge may take fewer for all of it.
const SUMMARY_CHARACTERS_MAX: usize = 4_000;
/// Of one sentence in it: names may be long, and there are other things to say.
const SENTENCE_CHARACTERS_MAX: usize = 400;
/// Of one that stands for others of its kind.
const EXAMPLE_CHARACTERS_MAX: usize = 200;
const CAUSES_MAX: usize = 6;
const BUDGETS_MAX: usize = 4;
/// Of risks, of pods that wait and of what is held back, each.
const KINDS_MAX: usize = 4;

/// Lines that fit, and a last piece that always stands there.
struct Screen {
    text: String,
    last: String,
}

impl Screen {
    fn new(last: String) -> Self {
        Self { text: String::new(), last }
    }

    /// Adds the piece where there is room for it.
    fn add(&mut self, piece: &str) {
        let all = [&self.text, &self.last, piece];
        if all.iter().map(|text| text.chars().count()).sum::<usize>() <= SUMMARY_CHARACTERS_MAX {
            self.text.push_str(piece);
        }
    }

    fn finish(self) -> String {
        self.text + &self.last
    }
}

/// For a target for which there is no plan: untouched, invalid, failed.
pub fn short_pieces(target: &PreviewTarget) -> PreviewMarkdown {
    let mut screen = Screen::new(String::new());
    screen.add(&format!("**{}**\n", prose(&cut(&target.headline))));
    causes(target, &mut screen);
    PreviewMarkdown { summary: screen.finish(), sections: Vec::new() }
}

/// For a plan that was compared with that of the base.
pub fn pieces(target: &PreviewTarget, plan: &Plan, base: Option<&Plan>) -> PreviewMarkdown {
    PreviewMarkdown { summary: summary(target, plan, base), sections: sections(plan, base) }
}

fn summary(target: &PreviewTarget, plan: &Plan, base: Option<&Plan>) -> String {
    let mut screen = Screen::new(footer(target));
    if let Some(warning) = target.snapshot.as_ref().and_then(warning) {
        screen.add(&format!("> **{}**\n\n", prose(&warning)));
    }
    screen.add(&format!("**{}**\n", prose(&cut(&target.headline))));
    for note in plan.notes.iter().filter(|note| note.code == NoteCode::BreaksRule) {
        screen.add(&format!("\n> **{}**\n", prose(&cut(&note.text))));
    }
    screen.add(&table(plan, base));
    causes(target, &mut screen);
    screen.add(&alike("Risks", &target.risks));
    screen.add(&alike("Waiting pods", &target.pending));
    screen.add(&alike("Held back", &target.held_back));
    let active =
        plan.budgets.iter().filter(|it| it.active && (it.used > 0 || it.allowed == 0 || it.denied_by.is_some()));
    let active: Vec<String> = active.take(BUDGETS_MAX).map(|it| prose(&cut(&budget(it)))).collect();
    if !active.is_empty() {
        screen.add(&format!("\nBudgets: {}\n", active.join("; ")));
    }
    if !target.next_24_hours.is_empty() {
        let sentences: Vec<String> = target.next_24_hours.iter().map(|it| prose(&cut(it))).collect();
        screen.add(&format!("\nNext 24 hours: {}\n", sentences.join(" ")));
    }
    screen.finish()
}

/// Now, what the base would make of it, and what the change does.
fn table(plan: &Plan, base: Option<&Plan>) -> String {
    let summary = &plan.summary;
    let row = |name: &str, nodes: usize, price: &str, waiting: usize| {
        format!("| {name} | {} | {price} | {} |\n", thousands(&nodes.to_string()), thousands(&waiting.to_string()))
    };
    let waiting_now = summary.pods_placed + summary.pods_pending;
    let mut text = "\n| | nodes | per hour | pods that wait |\n|---|---:|---:|---:|\n".to_owned();
    text.push_str(&row("now", summary.nodes_before, &summary.price_per_hour_before.to_string(), waiting_now));
    if let Some(base) = base.map(|base| &base.summary) {
        text.push_str(&row(
            "without this change",
            base.nodes_after,
            &base.price_per_hour_after.to_string(),
            base.pods_pending,
        ));
    }
    text.push_str(&row(
        "with it",
        summary.nodes_after,
        &summary.price_per_hour_after.to_string(),
        summary.pods_pending,
    ));
    text
}

fn causes(target: &PreviewTarget, screen: &mut Screen) {
    if target.causes.is_empty() {
        return;
    }
    screen.add("\n");
    let (placed, placeless): (Vec<&PreviewCause>, Vec<&PreviewCause>) =
        target.causes.iter().partition(|cause| !cause.path.is_empty());
    for cause in placed.iter().take(CAUSES_MAX) {
        let mark = if cause.severity == PreviewSeverity::Error { "error: " } else { "" };
        screen.add(&format!(
            "- {}: {mark}{}\n",
            code(&format!("{}:{}", cause.path, cause.line)),
            prose(&cut(&cause.text))
        ));
    }
    let more = placed.len().saturating_sub(CAUSES_MAX);
    if more > 0 {
        screen.add(&format!("- and {}\n", count(more, "more place")));
    }
    for cause in placeless {
        screen.add(&format!("- {}\n", prose(&cut(&cause.text))));
    }
}

/// What is so because of the change: a line for each kind, with one of them in words. What is so anyway is counted.
fn alike(title: &str, counts: &[PreviewCount]) -> String {
    let caused = |it: &PreviewCount| it.count.saturating_sub(it.anyway);
    let mut kinds: Vec<&PreviewCount> = counts.iter().filter(|it| caused(it) > 0).collect();
    kinds.sort_by_key(|it| Reverse(caused(it)));
    let anyway: u64 = counts.iter().map(|it| it.anyway.min(it.count)).sum();
    let anyway = (anyway > 0).then(|| format!("{} as without it", thousands(&anyway.to_string())));
    if kinds.is_empty() {
        return anyway.map_or_else(String::new, |anyway| format!("\n{title}: {anyway}\n"));
    }
    let mut lines: Vec<String> = kinds.iter().take(KINDS_MAX).map(|it| kind(it, caused(it))).collect();
    let more = kinds.len().saturating_sub(KINDS_MAX);
    lines.extend((more > 0).then(|| format!("and {}", count(more, "more kind"))));
    lines.extend(anyway);
    format!("\n{title}:\n\n- {}\n", lines.join("\n- "))
}

/// `5 SingleReplica, such as shop/ReplicaSet/api: the only replica moves`.
fn kind(it: &PreviewCount, caused: u64) -> String {
    let since = it.since.as_ref().map_or_else(String::new, |since| format!(" since {since}"));
    let such_as = if caused > 1 { ", such as " } else { ": " };
    let (code, text) = (prose(&it.code), prose(&cut_to(&it.text, EXAMPLE_CHARACTERS_MAX)));
    format!("{} {code}{}{such_as}{text}", thousands(&caused.to_string()), prose(&since))
}

fn footer(target: &PreviewTarget) -> String {
    // That of the digest, which people approve: the plan's own name is another one at each moment.
    let digest = target.plan.iter().map(|plan| format!("plan {}", code(&short(&plan.digest, DIGEST_DIGITS))));
    let mut parts: Vec<String> = digest.collect();
    parts.extend(target.snapshot.as_ref().map(|snapshot| prose(&of_snapshot(snapshot))));
    let assumptions = target.figures.iter().flat_map(|figures| &figures.assumptions);
    parts.extend(assumptions.map(|assumption| prose(&cut(assumption))));
    format!("\n{SMALL}{}</sub>\n", parts.join(" · "))
}

/// What the small print begins with, and a warning about the snapshot's age.
const SMALL: &str = "<sub>";
const WARNING: &str = "> **The snapshot is ";

/// Whether a line of a first screen may be another one only because time has passed.
pub fn tells_of_the_moment(line: &str) -> bool {
    line.starts_with(SMALL) || line.starts_with(WARNING)
}

fn cut(text: &str) -> String {
    cut_to(text, SENTENCE_CHARACTERS_MAX)
}

pub(super) fn cut_to(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn sections(plan: &Plan, base: Option<&Plan>) -> Vec<PreviewSection> {
    let caused: Vec<&Step> = caused_steps(plan).collect();
    let gone: Vec<&Step> = steps_taken_away(plan).iter().collect();
    let as_in_base = as_in_base(plan, base);
    let anyway: Vec<&Step> = as_in_base.iter().collect();
    let (pending, held_back, risks) = (pending(plan, base), held_back(plan, base), risks(plan, base));
    let mut sections = Vec::new();
    // Where nothing is compared, nobody knows why.
    let wait = if pods_of(&pending.caused) == 1 { "waits" } else { "wait" };
    let (title, wait, stay) = match base {
        Some(_) => ("Because of this change", format!("{wait} because of it"), "held back because of it"),
        None => ("Nodes", wait.to_owned(), "held back"),
    };
    let wait_anyway = if pods_of(&pending.anyway) == 1 { "waits anyway" } else { "wait anyway" };
    let mut add = |title: &str, write: &dyn Fn(Detail, &mut String)| sections.extend(section(title, write));
    add("because of this change", &|detail, text| details::titled(title, &caused, detail, text));
    add("no longer planned", &|detail, text| details::titled("No longer planned", &gone, detail, text));
    add("EC2", &|detail, text| facts::by_class(plan, detail, text));
    add("risks", &|detail, text| details::risks(&risks.caused, detail, text));
    add("pods that wait", &|detail, text| details::pending(&pending.caused, &wait, detail, text));
    add("nodes held back", &|detail, text| {
        details::held_back(&held_back.caused, stay, detail, text);
    });
    add("what would happen anyway", &|detail, text| details::titled("Would happen anyway", &anyway, detail, text));
    add("pods placed", &|detail, text| details::placements(&plan.placements, detail, text));
    add("pods that wait anyway", &|detail, text| details::pending(&pending.anyway, wait_anyway, detail, text));
    add("nodes held back anyway", &|detail, text| {
        details::held_back(&held_back.anyway, "held back anyway", detail, text);
    });
    add("notes", &|detail, text| notes(&plan.notes, detail, text));
    sections
}

fn pods_of(groups: &[Pending]) -> usize {
    groups.iter().map(|group| group.pods.len()).sum()
}

/// What would happen anyway, for the reasons of the base: a node that goes in both may go for another one because of the change.
fn as_in_base(plan: &Plan, base: Option<&Plan>) -> Vec<Step> {
    let of_base: BTreeMap<&str, &Step> = base
        .iter()
        .flat_map(|base| &base.steps)
        .filter(|step| step.kind != StepKind::Create)
        .map(|step| (step.node_claim.as_str(), step))
        .collect();
    let as_in_base = |step: &Step| match of_base.get(step.node_claim.as_str()) {
        Some(other) if other.kind == step.kind && !step.node_claim.is_empty() => {
            Step { reason: other.reason.clone(), definition: other.definition.clone(), ..step.clone() }
        }
        _ => step.clone(),
    };
    steps_anyway(plan).into_iter().map(as_in_base).collect()
}

fn notes(notes: &[Note], detail: Detail, text: &mut String) {
    if notes.is_empty() || detail == Detail::CountsOnly {
        return;
    }
    text.push('\n');
    notes.iter().for_each(|note| text.push_str(&format!("> - {}\n", prose(&note.sentence()))));
}

/// The same in every length; those that are no shorter than the one before are left out.
fn section(title: &str, write: &dyn Fn(Detail, &mut String)) -> Option<PreviewSection> {
    let mut lengths: Vec<String> = Vec::new();
    for detail in Detail::ALL {
        let mut text = String::new();
        write(detail, &mut text);
        if lengths.last().is_none_or(|last| text.len() < last.len()) {
            lengths.push(text);
        }
    }
    let mut lengths = lengths.into_iter();
    let markdown = lengths.next().filter(|text| !text.is_empty())?;
    Some(PreviewSection {
        title: title.to_owned(),
        markdown,
        shorter: lengths.filter(|text| !text.is_empty()).collect(),
    })
}
