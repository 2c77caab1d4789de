//! Answers to commands: comments of their own, each of which names the comment that it answers. An answer that approves
//! also says so in a form for programs. Later runs go by that form, and not by a status, which everybody who may write
//! can set.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::status::cut;
use super::{VERSION, hidden_json};
use crate::render::plan::fenced;
use crate::render::plan::markdown::escape::{comment as hidden, in_fence, prose};
use crate::render::terminal::clean_lines;

/// Plans that somebody approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedPlans {
    pub by: String,
    /// The commit that they were shown for. It is empty in answers of older versions, which approve nothing.
    #[serde(default)]
    pub head: String,
    /// Their digests with all digits ([`crate::core::preview::digest`]).
    pub digests: Vec<String>,
}

const APPROVED: &str = "<!-- cutlist:approved ";
const END: &str = " -->";

/// The most characters of a block. A comment takes more, but nobody reads it.
const BLOCK_CHARACTERS_MAX: usize = 12_000;

/// The most characters of a text. It may repeat what somebody asked for, and escaped text is several times as long.
const TEXT_CHARACTERS_MAX: usize = 1_000;

/// The answer to a command. `command`: the number of the comment that it answers. `block`: what is shown below the text
/// as it is; may be empty. `approved`: the plans that the answer approves, if any.
pub fn answer(command: u64, name: &str, text: &str, block: &str, approved: Option<&ApprovedPlans>) -> String {
    let approved = approved.map_or_else(String::new, |it| format!("{APPROVED}{}{END}\n", hidden_json(&json!(it))));
    let block = match in_fence(&clean_lines(block)) {
        block if block.is_empty() => block,
        block => {
            let kept: String = block.chars().take(BLOCK_CHARACTERS_MAX).collect();
            let cut = if kept.len() < block.len() { "\n(cut)" } else { "" };
            format!("\n{}", fenced("", &format!("{}{cut}\n", kept.trim_end())))
        }
    };
    let text = prose(&cut(text, TEXT_CHARACTERS_MAX));
    format!("{}\n{approved}{text}\n{block}", answer_marker(command, name))
}

/// The first line of an answer.
pub fn answer_marker(command: u64, name: &str) -> String {
    format!("<!-- cutlist:answer:v{VERSION} to={command} by={} -->", hidden(name))
}

/// What a comment approves; `None` where it is no answer of this program, or approves nothing.
pub fn approved_in(body: &str, name: &str) -> Option<ApprovedPlans> {
    let mut lines = body.lines().map(str::trim_end);
    let command = lines.next()?.strip_prefix(&format!("<!-- cutlist:answer:v{VERSION} to="))?;
    let command: u64 = command.split(' ').next()?.parse().ok()?;
    let is_ours = body.lines().next().map(str::trim_end) == Some(answer_marker(command, name).as_str());
    let data = lines.next()?.strip_prefix(APPROVED)?.strip_suffix(END)?;
    is_ours.then(|| serde_json::from_str(data).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approved() -> ApprovedPlans {
        ApprovedPlans { by: "--> ada".to_owned(), head: "cd".repeat(20), digests: vec!["ab".repeat(32)] }
    }

    #[test]
    fn an_approval_is_read_as_it_was_written_and_by_its_own_program() {
        let approved = approved();
        let body = answer(7, "cutlist", "Approved", "", Some(&approved));
        assert_eq!(body.matches("-->").count(), 2, "{body}");
        assert_eq!(approved_in(&body.replace('\n', "\r\n"), "cutlist"), Some(approved));
        assert_eq!(approved_in(&body, "another"), None);
        assert_eq!(approved_in(&answer(7, "cutlist", "<!-- cutlist:approved {} -->", "", None), "cutlist"), None);
        assert_eq!(approved_in(&format!("> {body}"), "cutlist"), None);
    }

    #[test]
    fn what_was_asked_for_is_not_said_after_somebody_without_end() {
        let asked = "<".repeat(20_000);
        let body = answer(7, "cutlist", &format!("there is no pod {asked}"), &asked, Some(&approved()));
        assert!(body.chars().count() < 20_000, "{}", body.chars().count());
        assert_eq!(approved_in(&body, "cutlist"), Some(approved()));
    }
}
