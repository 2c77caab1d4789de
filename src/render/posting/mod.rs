//! A preview as what forges show: one comment for each cluster and environment, the line of a status, the text of a check. Never longer
//! than the forge takes; what is too long goes section by section, never within one.

mod answers;
mod outcome;
mod pieces;
mod status;
mod summary;

use serde_json::{Value, json};

use crate::api::preview::{Preview, PreviewCount, PreviewSection, PreviewTarget, PreviewVerdict};
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
/// Codes in the data, and the letters of one; whose preview it is may have written anything into it.
const CODES_MAX: usize = 40;
const CODE_CHARACTERS_MAX: usize = 60;
/// Assumptions in the data.
const ASSUMPTIONS_MAX: usize = 10;
/// Of one sentence in the data, or in the place of a first screen that is too long.
const SENTENCE_CHARACTERS_MAX: usize = 200;
/// Of a digest, which is SHA-256.
const DIGEST_CHARACTERS_MAX: usize = 64;
/// Of a name that people read, or that a comment is known by.
const NAME_CHARACTERS_MAX: usize = 100;
/// Of a moment, with time zone and fractions.
const MOMENT_CHARACTERS_MAX: usize = 40;

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
    let head = format!("{marker}\n{data}\n### {}\n\n{unsigned}", heading(target));
    let end = footer(preview, target, manner);
    let body = within(target, manner, (&head, &end), room);
    CommentText { marker, data, body }
}

/// `<!-- cutlist:preview:v1 id=CLUSTER/ENVIRONMENT by=NAME -->`: the first line of the comment about a cluster.
pub fn marker(cluster: &str, environment: &str, name: &str) -> String {
    let (cluster, environment) = (hidden(&known_by(cluster)), hidden(&known_by(environment)));
    format!("<!-- cutlist:preview:v{VERSION} id={cluster}/{environment} by={} -->", hidden(name))
}

/// The name, or what tells a very long one from others.
fn known_by(name: &str) -> String {
    if name.chars().count() <= NAME_CHARACTERS_MAX {
        return name.to_owned();
    }
    format!("{}-{}", bounded(name, NAME_CHARACTERS_MAX / 2), short(&hash_of_texts([name]), SAID_DIGITS))
}

fn bounded(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// What would make a reader look again. Neither moments nor revisions: a push that changes nothing else edits nothing.
fn data(preview: &Preview, target: &PreviewTarget, manner: Manner<'_>) -> String {
    let codes = |counts: &[PreviewCount]| -> Vec<String> {
        // A code has nothing but letters and digits, of which none becomes longer by being hidden.
        let code = |it: &PreviewCount| -> String {
            it.code.chars().filter(char::is_ascii_alphanumeric).take(CODE_CHARACTERS_MAX).collect()
        };
        counts.iter().take(CODES_MAX).map(|it| format!("{}={}", code(it), it.count)).collect()
    };
    let planned = matches!(target.verdict, PreviewVerdict::Changes | PreviewVerdict::NoEffect);
    let mut figures = target.figures.clone().filter(|_| planned);
    if let Some(figures) = &mut figures {
        figures.assumptions.truncate(ASSUMPTIONS_MAX);
        figures.assumptions.iter_mut().for_each(|it| *it = bounded(it, SENTENCE_CHARACTERS_MAX));
    }
    let mut data = json!({
        "verdict": target.verdict,
        "plan": target.plan.as_ref().map(|plan| bounded(&plan.digest, DIGEST_CHARACTERS_MAX)),
        "figures": figures,
        "risks": codes(&target.risks),
        "heldBack": codes(&target.held_back),
        "pending": codes(&target.pending),
        "headline": (!planned).then(|| bounded(&target.headline, SENTENCE_CHARACTERS_MAX)),
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
    let name = |name: &str| code(&status::cut(name, NAME_CHARACTERS_MAX));
    match target.environment.as_str() {
        "" => format!("Nodes of {}", name(&target.cluster)),
        environment => format!("Nodes of {} ({})", name(&target.cluster), name(environment)),
    }
}

/// The first screen and the sections between a head and an end, all within the room: the screen as it was given, else
/// from the data, else the headline alone.
fn within(target: &PreviewTarget, manner: Manner<'_>, (head, end): (&str, &str), room: Room) -> String {
    let sections: &[PreviewSection] = if manner.is_untrusted { &[] } else { &target.markdown.sections };
    let whole = |screen: String| pieces::fitted(&format!("{head}{screen}\n"), sections, end, room);
    let holds = |text: &String| room.holds(text.chars().count(), text.len());
    let alone = || format!("**{}**\n", prose(&status::cut(&target.headline, SENTENCE_CHARACTERS_MAX)));
    let screens = [first_screen(target, manner), summary(target)];
    screens.into_iter().map(whole).find(holds).unwrap_or_else(|| whole(alone()))
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
        let taken = snapshot
            .taken_at
            .as_deref()
            .map_or_else(String::new, |at| format!(" of {}", prose(&bounded(at, MOMENT_CHARACTERS_MAX))));
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
    (title, within(target, manner, ("", ""), room))
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
        _ => table(preview, room),
    };
    pieces::fitted(&top, &sections, "", room)
}

/// At most half of the room, so that there is some for the clusters.
fn table(preview: &Preview, room: Room) -> String {
    const ROWS_MAX: usize = 100;
    let half = Room { characters: room.characters / 2, bytes: room.bytes / 2 };
    let mut rows = ROWS_MAX;
    let mut text = table_of(preview, rows);
    while rows > 0 && !half.holds(text.chars().count(), text.len()) {
        rows /= 2;
        text = table_of(preview, rows);
    }
    text
}

fn table_of(preview: &Preview, rows: usize) -> String {
    let name = |name: &str| code(&status::cut(name, NAME_CHARACTERS_MAX));
    let mut text = "| cluster | environment | |\n|---|---|---|\n".to_owned();
    for target in preview.targets.iter().take(rows) {
        let headline = status::cut(&super::preview::dated(target), SENTENCE_CHARACTERS_MAX);
        let row = [name(&target.cluster), name(&target.environment), prose(&headline)];
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    let rest = preview.targets.len().saturating_sub(rows);
    if rest > 0 {
        text.push_str(&format!("\nand {rest} more\n"));
    }
    text
}
