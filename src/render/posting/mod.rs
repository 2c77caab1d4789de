//! A preview as forges show it: a comment for each cluster and environment, or one for all where there are too many;
//! the line of a status; the text of a check. None is longer than the forge takes: whole sections are shortened or left
//! out, and none is cut in its middle.

mod answers;
mod clusters;
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
pub use clusters::{FleetText, comment_of_all, fleet, markers_stood_for, page};
pub use outcome::{OUTCOME_CHARACTERS, Outcome, approved_by, is_settled, plans_shown, previewed, with_outcome};
pub use status::{context, description, fitted_line, is_stale};
pub use summary::summary;

/// The version of the marker and of the data behind it.
const VERSION: u32 = 1;
/// The most characters of a first screen. The preview promises to keep within it, and a longer screen is made anew from
/// the data.
const SUMMARY_CHARACTERS_MAX: usize = 8_000;
/// Digits of the hash over what is said. It tells two texts of one pull request apart, and protects nothing.
const SAID_DIGITS: usize = 16;
/// Codes in the data, and the letters of one. Whoever made the preview may have written anything into it.
const CODES_MAX: usize = 40;
const CODE_CHARACTERS_MAX: usize = 60;
/// Assumptions in the data.
const ASSUMPTIONS_MAX: usize = 10;
/// The most characters of a sentence in the data, and of one in the place of a first screen that is too long.
const SENTENCE_CHARACTERS_MAX: usize = 200;
/// The most characters of a digest, which is SHA-256.
const DIGEST_CHARACTERS_MAX: usize = 64;
/// The most characters of a name that people read, or by which a comment is known.
const NAME_CHARACTERS_MAX: usize = 100;
/// The most characters of a moment, with time zone and fractions.
const MOMENT_CHARACTERS_MAX: usize = 40;

/// Digits of a commit, or of a snapshot's digest, that people read.
const COMMIT_DIGITS: usize = 7;
/// What is said of a preview that others could change.
const UNCHECKED: &str = "made by a job that the author of the change could change, and not checked";

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

    /// The room that these texts leave.
    fn without(self, texts: &[&str]) -> Self {
        let characters: usize = texts.iter().map(|text| text.chars().count()).sum();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        Self { characters: self.characters.saturating_sub(characters), bytes: self.bytes.saturating_sub(bytes) }
    }
}

/// How a preview is shown.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'a> {
    /// Tells apart what several installations post to one repository.
    pub name: &'a str,
    /// Whether the preview was made where others could change it, as in a job of a fork. Then its data is shown, and
    /// none of its Markdown.
    pub is_untrusted: bool,
    /// Where the job can be read.
    pub link: Option<&'a str>,
}

/// A comment. `marker` and `data` are the first two lines of `body`.
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

/// The name, or for a very long one its beginning and a hash that tells it from others.
fn known_by(name: &str) -> String {
    if name.chars().count() <= NAME_CHARACTERS_MAX {
        return name.to_owned();
    }
    format!("{}-{}", bounded(name, NAME_CHARACTERS_MAX / 2), short(&hash_of_texts([name]), SAID_DIGITS))
}

fn bounded(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// The hidden line of data. It differs where a reader should look again. It holds neither moments nor revisions, so
/// that a push that changes nothing else edits no comment.
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

/// A hash over what is read first: the causes with their places, and the first screen without what only tells of the
/// moment.
fn said(target: &PreviewTarget, manner: Manner<'_>) -> String {
    let screen = first_screen(target, manner);
    let screen = screen.lines().filter(|line| !super::preview::tells_of_the_moment(line));
    let causes = target.causes.iter().map(|cause| format!("{}:{}: {}", cause.path, cause.line, cause.text));
    let causes: Vec<String> = causes.collect();
    short(&hash_of_texts(causes.iter().map(String::as_str).chain(screen)), SAID_DIGITS)
}

/// JSON for a hidden comment. A string of JSON may have `-` and `>` as escapes, and then nothing in it can end the
/// comment. Outside of strings `-` stands only before numbers, and no number here is below zero.
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

/// The first screen and the sections between a head and an end, all within the room. Where the screen as it was given
/// does not fit, it is made from the data, and where that does not fit, only the headline is shown.
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
    let mut words = Vec::new();
    if let Some(plan) = &target.plan {
        words.push(format!("plan {}", code(&short(&plan.digest, DIGEST_DIGITS))));
    }
    words.push(planned_for(preview));
    if let Some(snapshot) = &target.snapshot {
        let taken = snapshot
            .taken_at
            .as_deref()
            .map_or_else(String::new, |at| format!(" of {}", prose(&bounded(at, MOMENT_CHARACTERS_MAX))));
        let digest = snapshot.digest.strip_prefix("sha256:").unwrap_or(&snapshot.digest);
        words.push(format!("snapshot {}{taken}", code(&short(digest, COMMIT_DIGITS))));
    }
    words.extend(manner.is_untrusted.then(|| UNCHECKED.to_owned()));
    format!("\n<sub>{}</sub>\n", words.join(" · "))
}

fn planned_for(preview: &Preview) -> String {
    let (head, base) = (code(&short(&preview.head.id, COMMIT_DIGITS)), code(&short(&preview.base.id, COMMIT_DIGITS)));
    let planned = if preview.merge.is_some() { format!("{head} merged into {base}") } else { head };
    format!("first planned for {planned}; the status of a commit says what holds for it")
}

/// The title and the text of a check. The text is that of the comment, in at most so many characters.
pub fn check(target: &PreviewTarget, manner: Manner<'_>, characters: usize) -> (String, String) {
    const TITLE_CHARACTERS: usize = 200;
    let title = status::cut(&super::terminal::clean(&target.headline), TITLE_CHARACTERS);
    let room = Room { characters, bytes: characters };
    (title, within(target, manner, ("", ""), room))
}
