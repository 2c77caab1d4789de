//! A preview as what forges show: one comment for each cluster and environment, the line of a status, the text of a check. Never longer
//! than the forge takes; what is too long goes section by section, never within one.

mod answers;
mod outcome;
mod pieces;
mod status;
mod summary;

use serde_json::{Value, json};

use crate::api::preview::{Preview, PreviewSection, PreviewTarget, PreviewVerdict};
use crate::core::preview::{DIGEST_DIGITS, hash_of_texts};

use super::plan::markdown::escape::{code, comment as hidden, prose};
use super::plan::short;
use pieces::is_closed;

pub use answers::{ApprovedPlans, answer, answer_marker, approved_in};
pub use outcome::{OUTCOME_CHARACTERS, Outcome, approved_by, is_settled, previewed, with_outcome};
pub use status::{context, description, fitted_line, is_stale};
pub use summary::summary;

/// The version of the marker and of the data behind it.
const VERSION: u32 = 1;
/// A summary is promised to be shorter than this; one that is not is replaced by the headline.
const SUMMARY_CHARACTERS_MAX: usize = 8_000;
/// Of the hash over what is said; it tells two texts of one pull request apart, and protects nothing.
const SAID_DIGITS: usize = 16;
/// Codes in the data; more are counted.
const CODES_MAX: usize = 40;

/// How long a comment may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub characters: usize,
    pub bytes: usize,
}

impl Room {
    fn holds(self, characters: usize, bytes: usize) -> bool {
        characters <= self.characters && bytes <= self.bytes
    }
}

/// How a preview is shown.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'a> {
    /// Tells apart what several installations post to one repository.
    pub name: &'a str,
    /// The preview was made where others could change it, as in a job of a fork: nothing of its Markdown is shown, only its data.
    pub is_untrusted: bool,
    /// Where the job can be read.
    pub link: Option<&'a str>,
}

/// A comment, and its first two lines once more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentText {
    pub marker: String,
    pub data: String,
    pub body: String,
}

/// The comment of one target.
pub fn comment(preview: &Preview, target: &PreviewTarget, manner: Manner<'_>, room: Room) -> CommentText {
    let marker = marker(&target.cluster, &target.environment, manner.name);
    let data = data(preview, target, manner);
    let unsigned = super::preview::unsigned(preview).filter(|_| !manner.is_untrusted).unwrap_or_default();
    let top = format!("{marker}\n{data}\n### {}\n\n{unsigned}{}\n", heading(target), first_screen(target, manner));
    let end = footer(preview, target, manner);
    let sections: &[PreviewSection] = if manner.is_untrusted { &[] } else { &target.markdown.sections };
    let body = pieces::fitted(&top, sections, &end, room);
    CommentText { marker, data, body }
}

/// `<!-- cutlist:preview:v1 id=CLUSTER/ENVIRONMENT by=NAME -->`: the first line of the comment about a cluster.
pub fn marker(cluster: &str, environment: &str, name: &str) -> String {
    let (cluster, environment) = (hidden(cluster), hidden(environment));
    format!("<!-- cutlist:preview:v{VERSION} id={cluster}/{environment} by={} -->", hidden(name))
}

/// What would make a reader look again. Neither moments nor revisions: a push that changes nothing else edits nothing.
fn data(preview: &Preview, target: &PreviewTarget, manner: Manner<'_>) -> String {
    let codes = |counts: &[crate::api::preview::PreviewCount]| -> Vec<String> {
        counts.iter().take(CODES_MAX).map(|it| format!("{}={}", it.code, it.count)).collect()
    };
    let planned = matches!(target.verdict, PreviewVerdict::Changes | PreviewVerdict::NoEffect);
    let mut data = json!({
        "verdict": target.verdict,
        "plan": target.plan.as_ref().map(|plan| &plan.digest),
        "figures": target.figures.as_ref().filter(|_| planned),
        "risks": codes(&target.risks),
        "heldBack": codes(&target.held_back),
        "pending": codes(&target.pending),
        "headline": (!planned).then_some(&target.headline),
        "stale": is_stale(target),
        "said": said(target, manner),
    });
    if let (Some(signatures), Some(fields)) = (&preview.signatures, data.as_object_mut()) {
        fields.insert("unsigned".to_owned(), json!(signatures.unsigned.len()));
    }
    format!("<!-- cutlist:data {} -->", hidden_json(&data))
}

/// A hash over what is read first: the causes with their places, and the first screen without what only tells of the moment.
fn said(target: &PreviewTarget, manner: Manner<'_>) -> String {
    let screen = first_screen(target, manner);
    let screen = screen.lines().filter(|line| !super::preview::tells_of_the_moment(line));
    let causes = target.causes.iter().map(|cause| format!("{}:{}: {}", cause.path, cause.line, cause.text));
    let causes: Vec<String> = causes.collect();
    short(&hash_of_texts(causes.iter().map(String::as_str).chain(screen)), SAID_DIGITS)
}

/// For a comment of Markdown. Within JSON's strings both signs may be written as escapes, and then nothing can end the comment; outside of
/// them a `-` stands before a number only, and no number here is below zero.
fn hidden_json(data: &Value) -> String {
    data.to_string().replace('-', "\\u002d").replace('>', "\\u003e")
}

fn heading(target: &PreviewTarget) -> String {
    match target.environment.as_str() {
        "" => format!("Nodes of {}", code(&target.cluster)),
        environment => format!("Nodes of {} ({})", code(&target.cluster), code(environment)),
    }
}

fn first_screen(target: &PreviewTarget, manner: Manner<'_>) -> String {
    let given = target.markdown.summary.trim_end();
    let usable = !manner.is_untrusted
        && !given.is_empty()
        && given.chars().count() <= SUMMARY_CHARACTERS_MAX
        && is_closed(given);
    if usable { given.to_owned() } else { summary(target) }
}

fn footer(preview: &Preview, target: &PreviewTarget, manner: Manner<'_>) -> String {
    const DIGITS: usize = 7;
    let mut words = Vec::new();
    if let Some(plan) = &target.plan {
        words.push(format!("plan {}", code(&short(&plan.digest, DIGEST_DIGITS))));
    }
    let planned = match &preview.merge {
        Some(_) => {
            format!("{} merged into {}", code(&short(&preview.head.id, DIGITS)), code(&short(&preview.base.id, DIGITS)))
        }
        None => code(&short(&preview.head.id, DIGITS)),
    };
    words.push(format!("first planned for {planned}; the status of a commit says what holds for it"));
    if let Some(snapshot) = &target.snapshot {
        let taken = snapshot.taken_at.as_deref().map_or_else(String::new, |at| format!(" of {}", prose(at)));
        let digest = snapshot.digest.strip_prefix("sha256:").unwrap_or(&snapshot.digest);
        words.push(format!("snapshot {}{taken}", code(&short(digest, DIGITS))));
    }
    if manner.is_untrusted {
        words.push("made by a job that the author of the change could change, and not checked".to_owned());
    }
    format!("\n<sub>{}</sub>\n", words.join(" · "))
}

/// The title and the summary of a check: the summary of the comment, at most so many characters.
pub fn check(target: &PreviewTarget, manner: Manner<'_>, characters: usize) -> (String, String) {
    const TITLE_CHARACTERS: usize = 200;
    let title = status::cut(&super::terminal::clean(&target.headline), TITLE_CHARACTERS);
    let room = Room { characters, bytes: characters };
    let sections: &[PreviewSection] = if manner.is_untrusted { &[] } else { &target.markdown.sections };
    (title, pieces::fitted(&format!("{}\n", first_screen(target, manner)), sections, "", room))
}

/// What the summary of a job shows: all targets, one after the other, under their headings.
pub fn page(preview: &Preview, manner: Manner<'_>, room: Room) -> String {
    let mut sections = Vec::new();
    for target in &preview.targets {
        let title = heading(target);
        let mut whole = format!("### {title}\n\n{}\n", first_screen(target, manner));
        let short = whole.clone();
        if !manner.is_untrusted {
            target
                .markdown
                .sections
                .iter()
                .filter(|it| is_closed(&it.markdown))
                .for_each(|it| whole.push_str(&it.markdown));
        }
        sections.push(PreviewSection { title: target.cluster.clone(), markdown: whole, shorter: vec![short] });
    }
    let top = match preview.targets.len() {
        0 => "Nothing that Cutlist reads differs.\n".to_owned(),
        1 => String::new(),
        _ => table(preview),
    };
    pieces::fitted(&top, &sections, "", room)
}

fn table(preview: &Preview) -> String {
    const ROWS_MAX: usize = 100;
    let mut text = "| cluster | environment | |\n|---|---|---|\n".to_owned();
    for target in preview.targets.iter().take(ROWS_MAX) {
        let row = [code(&target.cluster), code(&target.environment), prose(&super::preview::dated(target))];
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    let rest = preview.targets.len().saturating_sub(ROWS_MAX);
    if rest > 0 {
        text.push_str(&format!("\nand {rest} more\n"));
    }
    text
}
