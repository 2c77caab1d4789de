//! Many clusters in one text: the summary of a job, and one comment about all clusters where there are too many for a
//! comment each.

use std::collections::BTreeSet;

use serde_json::json;

use super::pieces::{self, is_closed};
use super::{
    CommentText, DIGEST_CHARACTERS_MAX, Manner, NAME_CHARACTERS_MAX, Room, SAID_DIGITS, SENTENCE_CHARACTERS_MAX,
    UNCHECKED, bounded, first_screen, heading, hidden_json, marker, planned_for, said, status,
};
use crate::api::preview::{Preview, PreviewSection, PreviewTarget, PreviewVerdict};
use crate::core::preview::hash_of_texts;
use crate::render::plan::markdown::escape::{code, prose};
use crate::render::plan::{count, short};
use crate::render::preview::{dated, unsigned, worst_first};

/// Plans in the data of the comment about all clusters.
const PLANS_MAX: usize = 200;
/// Clusters in the data of that comment, and the digits that each has there.
const KEYS_MAX: usize = 500;
const KEY_DIGITS: usize = 8;
/// What stands before them.
const KEYS_BEGIN: &str = "\"of\":\"";
/// Behind the first cluster's name in the marker.
const AND_OTHERS: &str = " and others";
/// Rows of a table. Nobody reads more.
const ROWS_MAX: usize = 100;

/// The summary of a job: all targets, one after the other, under their headings.
pub fn page(preview: &Preview, manner: Manner<'_>, room: Room) -> String {
    let section = |target: &PreviewTarget| {
        let forms = forms(target, manner).map(|text| format!("### {}\n\n{text}", heading(target)));
        of_forms(target, forms)
    };
    let sections: Vec<PreviewSection> = preview.targets.iter().map(section).collect();
    let top = match preview.targets.len() {
        0 => "Nothing that Cutlist reads differs.\n".to_owned(),
        1 => String::new(),
        _ => table(&preview.targets.iter().collect::<Vec<_>>(), room),
    };
    pieces::fitted(&top, &sections, "", room)
}

/// The comment about all clusters. Those that are not untouched stand in a table and folded below it, worst first.
pub fn comment_of_all(preview: &Preview, manner: Manner<'_>, room: Room) -> CommentText {
    let told = worst_first(&preview.targets).into_iter().filter(|it| it.verdict != PreviewVerdict::Untouched);
    let told: Vec<&PreviewTarget> = told.collect();
    let marker = marker_of_all(preview, manner.name);
    let data = data_of_all(preview, &told, manner);
    let unsigned = unsigned(preview).filter(|_| !manner.is_untrusted).unwrap_or_default();
    let clusters = count(preview.targets.len(), "cluster");
    let untouched = match preview.targets.len() - told.len() {
        0 => String::new(),
        untouched => format!("\n{}: nothing changed that decides about nodes\n", count(untouched, "cluster")),
    };
    let head = format!("{marker}\n{data}\n### Nodes of {clusters}\n\n{unsigned}");
    let unchecked = if manner.is_untrusted { format!(" · {UNCHECKED}") } else { String::new() };
    let end = format!("\n<sub>{}{unchecked}</sub>\n", planned_for(preview));
    let left = room.without(&[&head, &untouched, &end]);
    let table = if told.is_empty() { String::new() } else { table(&told, left) };
    let top = format!("{head}{table}{untouched}");
    let section = |target: &&PreviewTarget| {
        let forms = forms(target, manner)
            .map(|text| format!("<details><summary>{}</summary>\n\n{text}\n</details>\n", heading(target)));
        of_forms(target, forms)
    };
    let sections: Vec<PreviewSection> = told.iter().map(section).collect();
    let body = pieces::fitted(&top, &sections, &end, room);
    CommentText { marker, data, body }
}

/// The marker names the first cluster, so that jobs for other clusters keep comments of their own.
fn marker_of_all(preview: &Preview, name: &str) -> String {
    let first = preview.targets.first();
    let (cluster, environment) = first.map_or(("", ""), |it| (it.cluster.as_str(), it.environment.as_str()));
    marker(&format!("{cluster}{AND_OTHERS}"), environment, name)
}

/// By what a comment about many clusters is known, whichever of them is the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetText {
    /// How its marker ends.
    pub marker_end: String,
    /// What stands in its data before the keys of its clusters, which end with a quotation mark and have spaces between them.
    pub keys_begin: &'static str,
    /// The keys of the clusters of a preview.
    pub keys: BTreeSet<String>,
}

pub fn fleet(preview: &Preview, name: &str) -> FleetText {
    let environment = preview.targets.first().map_or("", |it| it.environment.as_str());
    let marker = marker(AND_OTHERS, environment, name);
    let marker_end = marker.split_once("id=").map_or("", |(_, end)| end).to_owned();
    FleetText { marker_end, keys_begin: KEYS_BEGIN, keys: keys(preview).into_iter().collect() }
}

fn keys(preview: &Preview) -> Vec<String> {
    let key = |target: &PreviewTarget| short(&hash_of_texts([target.cluster.as_str()]), KEY_DIGITS);
    preview.targets.iter().take(KEYS_MAX).map(key).collect()
}

/// Markers of comments that the comment about all clusters stands for now, or that those of each cluster stand for: a fleet grows and
/// shrinks. Only clusters of the preview count, since jobs for others keep comments of their own.
pub fn markers_stood_for(preview: &Preview, name: &str, is_of_all: bool) -> impl Iterator<Item = String> {
    preview.targets.iter().flat_map(move |target| {
        // Another cluster may have been the first of all.
        let of_all = marker(&format!("{}{AND_OTHERS}", target.cluster), &target.environment, name);
        let of_each = is_of_all.then(|| marker(&target.cluster, &target.environment, name));
        std::iter::once(of_all).chain(of_each)
    })
}

/// The hidden line of data. It differs where a reader should look again.
fn data_of_all(preview: &Preview, told: &[&PreviewTarget], manner: Manner<'_>) -> String {
    let texts = told.iter().flat_map(|target| {
        let headline = bounded(&target.headline, SENTENCE_CHARACTERS_MAX);
        [target.cluster.clone(), format!("{:?}", target.verdict), headline, said(target, manner)]
    });
    let texts: Vec<String> = texts.collect();
    // A digest has nothing but digits, of which none becomes longer by being hidden.
    let digits = |digest: &str| -> String {
        digest.chars().filter(char::is_ascii_hexdigit).take(DIGEST_CHARACTERS_MAX).collect()
    };
    let plans = told.iter().filter_map(|target| target.plan.as_ref());
    let plans: Vec<String> = plans.map(|plan| digits(&plan.digest)).take(PLANS_MAX).collect();
    let unsigned = preview.signatures.as_ref().map(|signatures| signatures.unsigned.len());
    let data = json!({
        "clusters": preview.targets.len(),
        "of": keys(preview).join(" "),
        "plans": plans,
        "unsigned": unsigned,
        "said": short(&hash_of_texts(texts.iter().map(String::as_str)), SAID_DIGITS),
    });
    format!("<!-- cutlist:data {} -->", hidden_json(&data))
}

/// Three forms of a target: its first screen with all sections, with the shortest form of each section, and alone.
fn forms(target: &PreviewTarget, manner: Manner<'_>) -> [String; 3] {
    let screen = first_screen(target, manner);
    let sections: &[PreviewSection] = if manner.is_untrusted { &[] } else { &target.markdown.sections };
    let with = |form: fn(&PreviewSection) -> &String| {
        let texts: String = sections.iter().map(form).filter(|text| is_closed(text)).cloned().collect();
        format!("{screen}\n{texts}")
    };
    [
        with(|section| &section.markdown),
        with(|section| section.shorter.last().unwrap_or(&section.markdown)),
        format!("{screen}\n"),
    ]
}

fn of_forms(target: &PreviewTarget, [whole, shorter, screen]: [String; 3]) -> PreviewSection {
    PreviewSection { title: target.cluster.clone(), markdown: whole, shorter: vec![shorter, screen] }
}

/// The table takes at most half of the room, so that some is left for the clusters.
fn table(targets: &[&PreviewTarget], room: Room) -> String {
    let half = Room { characters: room.characters / 2, bytes: room.bytes / 2 };
    let mut rows = ROWS_MAX;
    let mut text = table_of(targets, rows);
    while rows > 0 && !half.holds(text.chars().count(), text.len()) {
        rows /= 2;
        text = table_of(targets, rows);
    }
    text
}

fn table_of(targets: &[&PreviewTarget], rows: usize) -> String {
    let name = |name: &str| code(&status::cut(name, NAME_CHARACTERS_MAX));
    let mut text = "| cluster | environment | |\n|---|---|---|\n".to_owned();
    for target in targets.iter().take(rows) {
        let headline = status::cut(&dated(target), SENTENCE_CHARACTERS_MAX);
        let row = [name(&target.cluster), name(&target.environment), prose(&headline)];
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    let rest = targets.len().saturating_sub(rows);
    if rest > 0 {
        text.push_str(&format!("\nand {rest} more\n"));
    }
    text
}
