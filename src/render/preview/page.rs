//! All clusters of a preview in one Markdown document, for a job's summary or a comment made by hand. Never longer than a forge takes.

use crate::api::preview::{Preview, PreviewTarget, PreviewVerdict};
use crate::render::plan::markdown::escape::{code, prose};
use crate::render::plan::markdown::{BYTES_MAX, CHARACTERS_MAX};
use crate::render::plan::{REVISION_DIGITS, short};

use super::sentences::{dated, of_signatures};

/// Rows of the table; nobody reads more, and the JSON form has all.
const ROWS_MAX: usize = 100;

/// A table of the clusters first, then each of them, folded where there are several. What does not fit is shortened, last cluster and
/// last section first, and then left out; the document says so.
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
    let mut text = head(preview);
    for target in &preview.targets {
        let piece = folded(target, &target.markdown.summary, preview.targets.len() > 1);
        if fits(&format!("{text}{piece}{SHORTENED}")) {
            text.push_str(&piece);
        }
    }
    text + SHORTENED
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
    let mut text = head(preview);
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
        of_signatures(signatures).iter().map(|sentence| format!("> - {}\n", prose(sentence))).collect();
    Some(format!(
        "> [!WARNING]\n> Not signed by who must have: merged as it is, it would not be used.\n{}\n",
        lines.concat()
    ))
}

fn head(preview: &Preview) -> String {
    let mut text = String::from("### Cutlist: what this does to the nodes\n\n");
    let revision = |id: &str, reference: &str| match reference {
        "" => code(&short(id, REVISION_DIGITS)),
        reference => format!("{} ({})", code(&short(id, REVISION_DIGITS)), prose(reference)),
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
        for target in preview.targets.iter().take(ROWS_MAX) {
            text.push_str(&format!("| {} | {} | {} |\n", name(target), word(target), prose(&dated(target))));
        }
        if preview.targets.len() > ROWS_MAX {
            text.push_str(&format!("| and {} more | | |\n", preview.targets.len() - ROWS_MAX));
        }
        text.push('\n');
    }
    text
}

fn name(target: &PreviewTarget) -> String {
    match target.environment.as_str() {
        "" => code(&target.cluster),
        environment => format!("{} {}", code(&target.cluster), prose(environment)),
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
    format!("<details><summary>{}: {}</summary>\n\n{body}\n</details>\n\n", name(target), prose(&target.headline))
}

pub(super) fn verdict(target: &PreviewTarget) -> &'static str {
    word(target)
}
