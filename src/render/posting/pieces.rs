//! Sections that fit into a comment.

use super::Room;
use crate::api::preview::PreviewSection;
use crate::render::plan::fenced;
use crate::render::plan::markdown::escape::prose;

/// Titles of shortened sections that the note names.
const TITLES_MAX: usize = 8;

/// Top, sections and end, with the last sections shortened or left out where there is no room, and a sentence that says
/// so.
pub(super) fn fitted(top: &str, sections: &[PreviewSection], end: &str, room: Room) -> String {
    let forms: Vec<Vec<String>> = sections.iter().map(forms).collect();
    // The form of each section. A level behind the last form leaves the section out.
    let mut levels = vec![0; forms.len()];
    let size = |text: &str| (text.chars().count(), text.len());
    let sizes: Vec<Vec<(usize, usize)>> =
        forms.iter().map(|forms| forms.iter().map(|form| size(form)).collect()).collect();
    let mut last = forms.len();
    loop {
        let note = note(sections, &levels, &forms);
        let parts = [size(top), size(&note), size(end)].into_iter();
        let chosen = sizes.iter().zip(&levels).filter_map(|(sizes, level)| sizes.get(*level).copied());
        let (characters, bytes) =
            parts.chain(chosen).fold((0, 0), |sum: (usize, usize), it| (sum.0 + it.0, sum.1 + it.1));
        if room.holds(characters, bytes) || last == 0 {
            let chosen = forms.iter().zip(&levels).filter_map(|(forms, level)| forms.get(*level));
            return format!("{top}{}{note}{end}", chosen.map(String::as_str).collect::<String>());
        }
        let (Some(level), Some(forms)) = (levels.get_mut(last - 1), forms.get(last - 1)) else {
            last -= 1;
            continue;
        };
        if *level < forms.len() {
            *level += 1;
        }
        if *level >= forms.len() {
            last -= 1;
        }
    }
}

/// The forms of a section, best first, each on lines of its own. Markdown that would swallow what stands behind it is
/// shown as it is written.
fn forms(section: &PreviewSection) -> Vec<String> {
    std::iter::once(&section.markdown)
        .chain(&section.shorter)
        .filter(|text| !text.trim().is_empty())
        .map(|text| if is_closed(text) { text.clone() } else { fenced("", &on_lines(text)) })
        .map(|text| format!("\n{}", on_lines(text.trim_start_matches('\n'))))
        .collect()
}

fn on_lines(text: &str) -> String {
    format!("{}\n", text.trim_end_matches('\n'))
}

fn note(sections: &[PreviewSection], levels: &[usize], forms: &[Vec<String>]) -> String {
    let cut: Vec<&str> = sections
        .iter()
        .zip(levels.iter().zip(forms))
        .filter(|(_, (level, forms))| **level > 0 && !forms.is_empty())
        .map(|(section, _)| section.title.as_str())
        .collect();
    if cut.is_empty() {
        return String::new();
    }
    let mut named: Vec<String> = cut.iter().take(TITLES_MAX).map(|title| short_title(title)).collect();
    let rest = cut.len().saturating_sub(TITLES_MAX);
    if rest > 0 {
        named.push(format!("{rest} more"));
    }
    format!(
        "\nShortened or left out for want of room: {}. `cutlist preview -o json` has everything.\n",
        named.join(", ")
    )
}

fn short_title(title: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    prose(&title.chars().take(CHARACTERS_MAX).collect::<String>())
}

/// Whether every fence and every fold that the Markdown opens is closed in it, and it holds no hidden line that could
/// be taken for ours.
pub(super) fn is_closed(markdown: &str) -> bool {
    let mut fence: Option<String> = None;
    let mut folds = 0_i64;
    for line in markdown.lines() {
        let line = line.trim_start();
        let ticks: String = line.chars().take_while(|it| *it == '`').collect();
        match &fence {
            None if ticks.len() >= 3 => fence = Some(ticks),
            None => {
                folds += count(line, "<details") - count(line, "</details");
                if folds < 0 || line.contains("<!--") {
                    return false;
                }
            }
            Some(open) => {
                if ticks.len() >= open.len() && line.trim_end() == ticks {
                    fence = None;
                }
            }
        }
    }
    fence.is_none() && folds == 0
}

fn count(line: &str, word: &str) -> i64 {
    i64::try_from(line.matches(word).count()).unwrap_or(i64::MAX)
}
