//! All clusters of a preview in one Markdown document, for a job's summary or a comment made by hand. Never longer than
//! a forge takes.

use crate::api::preview::{Preview, PreviewTarget, PreviewVerdict};
use crate::render::plan::markdown::escape::{code, prose};
use crate::render::plan::markdown::{BYTES_MAX, CHARACTERS_MAX};
use crate::render::plan::{REVISION_DIGITS, count, reference_beside, short};

use super::pieces::cut_to;
use super::sentences::{dated, of_signatures, worst_first};

/// Rows of the table; nobody reads more, and the JSON form has all.
const ROWS_MAX: usize = 100;
/// The most characters of a headline that stands for a cluster. The cluster's own part has the whole.
const HEADLINE_CHARACTERS_MAX: usize = 300;
/// The most characters of the name of a cluster or of a branch.
const NAME_CHARACTERS_MAX: usize = 100;
/// The most characters of a sentence about a signature.
const SIGNATURE_CHARACTERS_MAX: usize = 200;

/// A table of the clusters, and then each cluster, folded where there are several. Clusters that do not fit are
/// shortened, those of which there is most to say first, and each from its last section on. What still does not fit is
/// left out, and the document says so. The table always fits: names are cut in it, and where it is still too long it
/// has fewer rows.
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
    // Only first screens are left, as many as there is room for.
    let clusters = preview.targets.len();
    let longest_end = end(clusters);
    let mut rows = ROWS_MAX;
    let mut text = head(preview, rows);
    while rows > 0 && !fits(&format!("{text}{longest_end}")) {
        rows /= 2;
        text = head(preview, rows);
    }
    let mut left_out = 0;
    for target in worst_first(&preview.targets) {
        let piece = folded(target, &target.markdown.summary, clusters > 1);
        if fits(&format!("{text}{piece}{longest_end}")) {
            text.push_str(&piece);
        } else {
            left_out += 1;
        }
    }
    text + &end(left_out)
}

/// The sentences at the end of a document that is not whole.
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

/// Makes targets shorter by one step, each from its last section on: those that take more than their share of the room,
/// or all where none does. Gives whether anything got shorter.
fn shorten(preview: &Preview, lengths: &mut [Vec<usize>]) -> bool {
    let share = CHARACTERS_MAX / preview.targets.len().max(1);
    let is_long = |target: &PreviewTarget, lengths: &[usize]| body(target, lengths).chars().count() > share;
    let mut changed = false;
    for (target, lengths) in preview.targets.iter().zip(lengths.iter_mut()) {
        changed |= is_long(target, lengths) && shorten_one(target, lengths);
    }
    if changed {
        return true;
    }
    for (target, lengths) in preview.targets.iter().zip(lengths) {
        changed |= shorten_one(target, lengths);
    }
    changed
}

fn shorten_one(target: &PreviewTarget, lengths: &mut [usize]) -> bool {
    // A length behind the last form leaves the section out.
    let mut sections = target.markdown.sections.iter().zip(lengths).rev();
    match sections.find(|(section, length)| **length <= section.shorter.len()) {
        Some((_, length)) => {
            *length += 1;
            true
        }
        None => false,
    }
}

fn body(target: &PreviewTarget, lengths: &[usize]) -> String {
    let mut body = target.markdown.summary.clone();
    for (section, length) in target.markdown.sections.iter().zip(lengths) {
        match length {
            0 => body.push_str(&section.markdown),
            length => body.push_str(section.shorter.get(length - 1).map_or("", String::as_str)),
        }
    }
    body
}

fn page(preview: &Preview, lengths: &[Vec<usize>]) -> String {
    let mut text = head(preview, ROWS_MAX);
    for (target, lengths) in preview.targets.iter().zip(lengths) {
        text.push_str(&folded(target, &body(target, lengths), preview.targets.len() > 1));
    }
    if lengths.iter().flatten().any(|length| *length > 0) {
        text.push_str(SHORTENED);
    }
    text
}

/// A warning that the controller would not use the change as it is, where signatures are missing.
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
    let revision = |id: &str, reference: &str| match reference_beside(id, reference) {
        None => code(&short(id, REVISION_DIGITS)),
        Some(reference) => {
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
        let shown =
            if preview.targets.len() > rows { worst_first(&preview.targets) } else { preview.targets.iter().collect() };
        for target in shown.into_iter().take(rows) {
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
        PreviewVerdict::Invalid => "invalid",
        PreviewVerdict::Failed => "failed",
        // Whoever made it may have given it another verdict as well.
        _ if target.not_known.is_some() => "not known",
        PreviewVerdict::NotKnown => "not known",
        PreviewVerdict::Untouched => "untouched",
        PreviewVerdict::NoEffect => "no effect",
        PreviewVerdict::Changes => "changes",
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
