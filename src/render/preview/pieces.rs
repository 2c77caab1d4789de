//! One cluster of a preview as Markdown: a first screen by which a reviewer can decide, and folded parts, each in
//! several lengths.

use std::cmp::Reverse;

use crate::api::preview::{
    PreviewCause, PreviewCount, PreviewMarkdown, PreviewSection, PreviewSeverity, PreviewTarget,
};
use crate::core::plan::{Note, NoteCode, Pending, Plan, Step};
use crate::core::preview::{DIGEST_DIGITS, caused_steps, held_back, pending, risks, steps_anyway, steps_taken_away};
use crate::render::plan::markdown::details::{self, Detail};
use crate::render::plan::markdown::escape::{code, prose};
use crate::render::plan::markdown::facts;
use crate::render::plan::units::{count, thousands};
use crate::render::plan::{budget, short};

use super::sentences::{of_snapshot, warning};

/// The most characters of the first screen. For some forges that is still too long.
const SUMMARY_CHARACTERS_MAX: usize = 4_000;
/// The most characters of a sentence on the first screen: names may be long, and there are other things to say.
const SENTENCE_CHARACTERS_MAX: usize = 400;
/// The most characters of a sentence that stands for others of its kind.
const EXAMPLE_CHARACTERS_MAX: usize = 200;
const CAUSES_MAX: usize = 6;
/// The most characters of all causes: what may go wrong must have room behind them.
const CAUSES_CHARACTERS_MAX: usize = 1_600;
const BUDGETS_MAX: usize = 4;
/// Kinds that are shown: so many of risks, of pods that wait, and of nodes that are held back.
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
        if piece.chars().count() <= self.room() {
            self.text.push_str(piece);
        }
    }

    fn room(&self) -> usize {
        let taken = self.text.chars().count() + self.last.chars().count();
        SUMMARY_CHARACTERS_MAX.saturating_sub(taken)
    }

    /// Adds the list in at most so many characters: as many of its rows as there is room for, and how many more there
    /// are.
    fn add_rows(&mut self, rows: &Rows<'_>, characters: usize) {
        let room = self.room().min(characters);
        let mut texts = (0..=rows.rows.len()).rev().map(|shown| rows.text(shown));
        if let Some(text) = texts.find(|text| text.chars().count() <= room) {
            self.text.push_str(&text);
        }
    }

    fn finish(self) -> String {
        self.text + &self.last
    }
}

/// A list on the first screen.
struct Rows<'t> {
    title: &'t str,
    /// The rows, with those that matter most first.
    rows: Vec<String>,
    /// How many more there are, which are only counted.
    further: usize,
    noun: &'t str,
    /// Rows that stand at the end, however few of the others are shown.
    last: Vec<String>,
}

impl Rows<'_> {
    fn text(&self, shown: usize) -> String {
        let more = self.rows.len().saturating_sub(shown) + self.further;
        let more = (more > 0).then(|| format!("and {}", count(more, self.noun)));
        let rows = self.rows.iter().take(shown).chain(&more).chain(&self.last);
        let lines: String = rows.map(|row| format!("- {row}\n")).collect();
        format!("{}{lines}", self.title)
    }
}

/// The Markdown of a target without a plan: untouched, invalid, failed or not known.
pub fn short_pieces(target: &PreviewTarget) -> PreviewMarkdown {
    let mut screen = Screen::new(target.snapshot.as_ref().map_or_else(String::new, |_| footer(target)));
    if let Some(warning) = target.snapshot.as_ref().and_then(warning) {
        screen.add(&format!("> **{}**\n\n", prose(&warning)));
    }
    screen.add(&format!("**{}**\n", prose(&cut(&target.headline))));
    causes(target, &mut screen);
    PreviewMarkdown { summary: screen.finish(), sections: Vec::new() }
}

/// The Markdown of a target with a plan, which was compared with that of the base where there is one.
pub fn pieces(target: &PreviewTarget, plan: &Plan, base: Option<&Plan>) -> PreviewMarkdown {
    PreviewMarkdown { summary: summary(target, plan, base), sections: sections(target, plan, base) }
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
    alike("Risks", &target.risks, &mut screen);
    alike("Waiting pods", &target.pending, &mut screen);
    alike("Held back", &target.held_back, &mut screen);
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
    let (placed, placeless): (Vec<&PreviewCause>, Vec<&PreviewCause>) =
        target.causes.iter().partition(|cause| !cause.path.is_empty());
    let row = |cause: &&PreviewCause| {
        let mark = if cause.severity == PreviewSeverity::Error { "error: " } else { "" };
        format!("{}: {mark}{}", code(&format!("{}:{}", cause.path, cause.line)), prose(&cut(&cause.text)))
    };
    let rows = Rows {
        title: "\n",
        rows: placed.iter().take(CAUSES_MAX).map(row).collect(),
        further: placed.len().saturating_sub(CAUSES_MAX),
        noun: "more place",
        last: placeless.into_iter().map(|cause| prose(&cut(&cause.text))).collect(),
    };
    screen.add_rows(&rows, CAUSES_CHARACTERS_MAX);
}

/// Adds what the change causes: a line for each kind, with the sentence of one of that kind. What is so anyway is
/// counted.
fn alike(title: &str, counts: &[PreviewCount], screen: &mut Screen) {
    let caused = |it: &PreviewCount| it.count.saturating_sub(it.anyway);
    let mut kinds: Vec<&PreviewCount> = counts.iter().filter(|it| caused(it) > 0).collect();
    kinds.sort_by_key(|it| Reverse(caused(it)));
    let anyway: u64 = counts.iter().map(|it| it.anyway.min(it.count)).sum();
    let since = counts.iter().filter(|it| it.anyway > 0).filter_map(|it| it.since.as_deref()).min();
    let since = since.map(|since| format!(", the longest since {since}")).unwrap_or_default();
    let anyway = (anyway > 0).then(|| format!("{} as without this change{since}", thousands(&anyway.to_string())));
    if kinds.is_empty() {
        if let Some(anyway) = anyway {
            screen.add(&format!("\n{title}: {anyway}\n"));
        }
        return;
    }
    let rows = Rows {
        title: &format!("\n{title}:\n\n"),
        rows: kinds.iter().take(KINDS_MAX).map(|it| kind(it, caused(it))).collect(),
        further: kinds.len().saturating_sub(KINDS_MAX),
        noun: "more kind",
        last: anyway.into_iter().collect(),
    };
    screen.add_rows(&rows, SUMMARY_CHARACTERS_MAX);
}

/// `5 SingleReplica, such as shop/ReplicaSet/api: the only replica moves`.
fn kind(it: &PreviewCount, caused: u64) -> String {
    let such_as = if caused > 1 { ", such as " } else { ": " };
    let (code, text) = (prose(&it.code), prose(&cut_to(&it.text, EXAMPLE_CHARACTERS_MAX)));
    format!("{} {code}{such_as}{text}", thousands(&caused.to_string()))
}

fn footer(target: &PreviewTarget) -> String {
    // People approve by the digest. The plan's own id is another one at each moment.
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

fn sections(target: &PreviewTarget, plan: &Plan, base: Option<&Plan>) -> Vec<PreviewSection> {
    let caused: Vec<&Step> = caused_steps(plan).collect();
    let gone: Vec<&Step> = steps_taken_away(plan).iter().collect();
    let anyway = steps_anyway(plan);
    let (pending, held_back, risks) = (pending(plan, base), held_back(plan, base), risks(plan, base));
    let mut sections = Vec::new();
    // Without a base nobody knows whether the change is the cause.
    let wait = if pods_of(&pending.caused) == 1 { "waits" } else { "wait" };
    let (title, wait, stay) = match base {
        Some(_) => ("Because of this change", format!("{wait} because of it"), "held back because of it"),
        None => ("Nodes", wait.to_owned(), "held back"),
    };
    let wait_anyway = if pods_of(&pending.anyway) == 1 { "waits anyway" } else { "wait anyway" };
    let mut add = |title: &str, write: &dyn Fn(Detail, &mut String)| sections.extend(section(title, write));
    add("because of this change", &|detail, text| details::titled(title, &caused, detail, text));
    // Risks stand below the title of the nodes that they are about.
    add("risks", &|detail, text| details::risks(&risks.caused, detail, text));
    add("pods that wait", &|detail, text| details::pending(&pending.caused, &wait, detail, text));
    add("nodes held back", &|detail, text| {
        details::held_back(&held_back.caused, stay, detail, text);
    });
    add("no longer planned", &|detail, text| details::titled("No longer planned", &gone, detail, text));
    add("EC2", &|detail, text| facts::by_class(plan, detail, text));
    add("what would happen anyway", &|detail, text| details::titled("Would happen anyway", &anyway, detail, text));
    add("pods placed", &|detail, text| details::placements(&plan.placements, detail, text));
    add("pods that wait anyway", &|detail, text| details::pending(&pending.anyway, wait_anyway, detail, text));
    add("nodes held back anyway", &|detail, text| {
        details::held_back(&held_back.anyway, "held back anyway", detail, text);
    });
    // The small print of the first screen has what is to be known of the prices.
    let is_said = |note: &&Note| target.figures.iter().any(|figures| figures.assumptions.contains(&note.text));
    let others: Vec<&Note> = plan.notes.iter().filter(|note| !is_said(note)).collect();
    add("notes", &|detail, text| notes(&others, detail, text));
    sections
}

fn pods_of(groups: &[Pending]) -> usize {
    groups.iter().map(|group| group.pods.len()).sum()
}

fn notes(notes: &[&Note], detail: Detail, text: &mut String) {
    if notes.is_empty() || detail == Detail::CountsOnly {
        return;
    }
    let shown = detail.rows(notes.len());
    text.push('\n');
    notes.iter().take(shown).for_each(|note| text.push_str(&format!("> - {}\n", prose(&note.sentence()))));
    let rest = notes.len().saturating_sub(shown);
    if rest > 0 {
        text.push_str(&format!("> - and {}\n", count(rest, "more note")));
    }
}

/// A section in every length, without those that are no shorter than the one before.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn risk(code: &str, count: u64, characters: usize) -> PreviewCount {
        PreviewCount { code: code.to_owned(), count, text: "y".repeat(characters), ..PreviewCount::default() }
    }

    #[test]
    fn a_list_keeps_as_many_rows_as_there_is_room_for() {
        let mut screen = Screen::new("x".repeat(SUMMARY_CHARACTERS_MAX - 500));
        alike("Risks", &[risk("A", 1, 190), risk("B", 9, 190), risk("C", 3, 190)], &mut screen);
        let text = screen.finish();
        assert!(text.contains("- 9 B, such as y") && text.contains("- 3 C, such as y"), "{text}");
        assert!(!text.contains("1 A") && text.contains("- and 1 more kind\n"), "{text}");
        assert!(text.chars().count() <= SUMMARY_CHARACTERS_MAX, "{text}");
    }

    /// What the change causes was not so before: the moment is that of the nodes that are held back anyway.
    #[test]
    fn the_moment_is_that_of_what_is_held_back_anyway() {
        let mut screen = Screen::new(String::new());
        let held = PreviewCount { anyway: 2, since: Some("2026-11-19T09:00:00Z".to_owned()), ..risk("A", 3, 1) };
        alike("Held back", &[held], &mut screen);
        assert_eq!(
            screen.finish(),
            "\nHeld back:\n\n- 1 A: y\n- 2 as without this change, the longest since 2026-11-19T09:00:00Z\n"
        );
    }

    #[test]
    fn long_causes_leave_room_for_risks() {
        let cause = |line: u32| PreviewCause {
            path: "a.yaml".to_owned(),
            line,
            text: "y".repeat(500),
            ..PreviewCause::default()
        };
        let together = PreviewCause { text: "several of these".to_owned(), ..PreviewCause::default() };
        let target = PreviewTarget {
            causes: (1..=7).map(cause).chain([together]).collect(),
            risks: ["A", "B", "C", "D"].map(|code| risk(code, 1, 300)).into(),
            ..PreviewTarget::default()
        };
        let mut screen = Screen::new(String::new());
        causes(&target, &mut screen);
        alike("Risks", &target.risks, &mut screen);
        let text = screen.finish();
        assert!(text.contains("- and 4 more places\n- several of these\n"), "{text}");
        assert!(text.contains("1 D: y"), "{text}");
    }
}
