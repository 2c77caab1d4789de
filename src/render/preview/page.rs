//! All clusters of a preview in one Markdown document, for a job's summary or a comment made by hand. Never longer than a forge takes.

use crate::api::preview::{Preview, PreviewTarget, PreviewVerdict};
use crate::render::plan::markdown::escape::{code, prose};
use crate::render::plan::markdown::{BYTES_MAX, CHARACTERS_MAX};
use crate::render::plan::{REVISION_DIGITS, count, short};

use super::pieces::cut_to;
use super::sentences::{dated, of_signatures};

/// Rows of the table; nobody reads more, and the JSON form has all.
const ROWS_MAX: usize = 100;
/// Of a headline that stands for a cluster: the whole is in what is said of it.
const HEADLINE_CHARACTERS_MAX: usize = 300;
/// Of a name, of a cluster or of a branch.
const NAME_CHARACTERS_MAX: usize = 100;
/// Of a sentence about a signature.
const SIGNATURE_CHARACTERS_MAX: usize = 200;

/// A table of the clusters first, then each of them, folded where there are several. What does not fit is shortened, last cluster and
/// last section first, and then left out; the document says so. There is room for the table: what others name is cut in it, and it has
/// fewer rows where even that is too long.
pub fn markdown(preview: &Preview) -> String {
    let mut lengths: Vec<Vec<usize>> =
        preview.targets.iter().map(|target| vec![0; target.markdown.sections.len()]).collect();
    let mut text = page(preview, &lengths);
    while !fits(&text) && shorten(preview, &mut lengths) {
        text = page(preview, &lengths);
    }
    if fits(&text) {
        return text;
    }
    // The first screens alone, as many as there is room for.
    let clusters = preview.targets.len();
    let longest_end = end(clusters);
    let mut rows = ROWS_MAX;
    let mut text = head(preview, rows);
    while rows > 0 && !fits(&format!("{text}{longest_end}")) {
        rows /= 2;
        text = head(preview, rows);
    }
    let mut left_out = 0;
    for target in &preview.targets {
        let piece = folded(target, &target.markdown.summary, clusters > 1);
        if fits(&format!("{text}{piece}{longest_end}")) {
            text.push_str(&piece);
        } else {
            left_out += 1;
        }
    }
    text + &end(left_out)
}

/// What is said behind a document that is not whole.
fn end(left_out: usize) -> String {
    match left_out {
        0 => SHORTENED.to_owned(),
        clusters => format!("\n{} left out for want of room.\n{SHORTENED}", count(clusters, "cluster")),
    }
}

const SHORTENED: &str = "\nShortened to fit a comment; `cutlist plan` has every step.\n";

fn fits(text: &str) -> bool {
    text.chars().count() <= CHARACTERS_MAX && text.len() <= BYTES_MAX
}

/// Takes the next shorter form of as many sections as one step of detail is worth: each call makes every target shorter by one step,
/// from its last section on. Whether anything got shorter.
fn shorten(preview: &Preview, lengths: &mut [Vec<usize>]) -> bool {
    let mut changed = false;
    for (target, lengths) in preview.targets.iter().zip(lengths) {
        let sections = target.markdown.sections.iter().zip(lengths.iter_mut()).rev();
        for (section, length) in sections {
            // One more than there are forms: left out.
            if *length <= section.shorter.len() {
                *length += 1;
                changed = true;
                break;
            }
        }
    }
    changed
}

fn page(preview: &Preview, lengths: &[Vec<usize>]) -> String {
    let mut text = head(preview, ROWS_MAX);
    for (target, lengths) in preview.targets.iter().zip(lengths) {
        let mut body = target.markdown.summary.clone();
        for (section, length) in target.markdown.sections.iter().zip(lengths) {
            match length {
                0 => body.push_str(&section.markdown),
                length => body.push_str(section.shorter.get(length - 1).map_or("", String::as_str)),
            }
        }
        text.push_str(&folded(target, &body, preview.targets.len() > 1));
    }
    if lengths.iter().flatten().any(|length| *length > 0) {
        text.push_str(SHORTENED);
    }
    text
}

/// That the controller will not use it as it is.
pub fn unsigned(preview: &Preview) -> Option<String> {
    let signatures = preview.signatures.as_ref().filter(|signatures| !signatures.unsigned.is_empty())?;
    let lines: Vec<String> =
        of_signatures(signatures).iter().map(|sentence| format!("> - {}\n", signature(sentence))).collect();
    Some(format!(
        "> [!WARNING]\n> Not signed by who must have: merged as it is, it would not be used.\n{}\n",
        lines.concat()
    ))
}

fn signature(sentence: &str) -> String {
    prose(&cut_to(sentence, SIGNATURE_CHARACTERS_MAX))
}

fn head(preview: &Preview, rows: usize) -> String {
    let mut text = String::from("### Cutlist: what this does to the nodes\n\n");
    let revision = |id: &str, reference: &str| match reference {
        "" => code(&short(id, REVISION_DIGITS)),
        reference => {
            format!("{} ({})", code(&short(id, REVISION_DIGITS)), prose(&cut_to(reference, NAME_CHARACTERS_MAX)))
        }
    };
    text.push_str(&format!(
        "{} merged into {}\n\n",
        revision(&preview.head.id, &preview.head.reference),
        revision(&preview.base.id, &preview.base.reference)
    ));
    if let Some(warning) = unsigned(preview) {
        text.push_str(&warning);
    }
    if preview.targets.len() > 1 {
        text.push_str("| cluster | | |\n|---|---|---|\n");
        for target in preview.targets.iter().take(rows) {
            let headline = prose(&cut_to(&dated(target), HEADLINE_CHARACTERS_MAX));
            text.push_str(&format!("| {} | {} | {headline} |\n", name(target), word(target)));
        }
        if preview.targets.len() > rows {
            text.push_str(&format!("| and {} more | | |\n", preview.targets.len() - rows));
        }
        text.push('\n');
    }
    text
}

fn name(target: &PreviewTarget) -> String {
    let cluster = code(&cut_to(&target.cluster, NAME_CHARACTERS_MAX));
    match target.environment.as_str() {
        "" => cluster,
        environment => format!("{cluster} {}", prose(&cut_to(environment, NAME_CHARACTERS_MAX))),
    }
}

/// The verdict in a word or two.
fn word(target: &PreviewTarget) -> &'static str {
    match target.verdict {
        PreviewVerdict::Untouched => "untouched",
        PreviewVerdict::NoEffect => "no effect",
        PreviewVerdict::Changes => "changes",
        PreviewVerdict::Invalid => "invalid",
        PreviewVerdict::Failed => "failed",
    }
}

fn folded(target: &PreviewTarget, body: &str, folds: bool) -> String {
    if !folds {
        return format!("{body}\n");
    }
    let headline = prose(&cut_to(&target.headline, HEADLINE_CHARACTERS_MAX));
    format!("<details><summary>{}: {headline}</summary>\n\n{body}\n</details>\n\n", name(target))
}

pub(super) fn verdict(target: &PreviewTarget) -> &'static str {
    word(target)
}
