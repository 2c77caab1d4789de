//! The comment that suppresses a finding, where it has that effect and changes nothing else.

use std::sync::Arc;

use serde_json::Value;

use crate::definitions::document;
use crate::definitions::suppression::{MARK, lines_of_comments};

/// What asks for the reason, which only people know.
const REASON: &str = "say why";

/// Text to put in at a byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insertion {
    pub byte: usize,
    pub text: String,
}

/// A comment for the rule of this code and what is found at `byte` of the text: above the line, else behind it. `None` where neither would
/// be a comment for it, as within a block of text.
pub fn comment(text: &str, byte: usize, code: &str) -> Option<Insertion> {
    let byte = text.floor_char_boundary(byte);
    let start = text.get(..byte)?.rfind('\n').map_or(0, |newline| newline + 1);
    let rest = text.get(start..)?;
    let line = rest.split('\n').next().unwrap_or_default();
    let content = line.trim_end_matches('\r');
    let indentation = content.get(..content.len() - content.trim_start_matches(' ').len())?;
    let ending = if line.ends_with('\r') { "\r\n" } else { "\n" };
    let said = format!("# {MARK} {code} {REASON}");
    let above = Insertion { byte: start, text: format!("{indentation}{said}{ending}") };
    let behind = Insertion { byte: start + content.trim_end_matches(' ').len(), text: format!(" {said}") };
    let number = text.get(..start)?.matches('\n').count() + 1;
    let before = values(text);
    let has_effect = |insertion: &Insertion, line: usize| {
        let Some(new) = inserted(text, insertion) else { return false };
        lines_of_comments(&new).contains(&Some(line)) && values(&new) == before
    };
    // A comment above moves the line that it is for.
    [(above, number + 1), (behind, number)].into_iter().find(|(it, line)| has_effect(it, *line)).map(|(it, _)| it)
}

fn inserted(text: &str, insertion: &Insertion) -> Option<String> {
    let (before, behind) = text.split_at_checked(insertion.byte)?;
    Some(format!("{before}{}{behind}", insertion.text))
}

/// What a text says, and how much of it can not be read.
fn values(text: &str) -> (Vec<Value>, usize) {
    let parsed = document::parse(0, &Arc::from(text));
    let count = parsed.all().count();
    (parsed.documents.into_iter().map(|document| document.value.into_value()).collect(), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silenced(text: &str, at: &str) -> Option<String> {
        inserted(text, &comment(text, text.find(at).unwrap(), "CL0464")?)
    }

    #[test]
    fn the_comment_stands_above() {
        assert_eq!(
            silenced("kind: A\nspec:\n  - alias: al2023@latest\n", "al2023").unwrap(),
            "kind: A\nspec:\n  # cutlist:ignore CL0464 say why\n  - alias: al2023@latest\n"
        );
        assert_eq!(
            silenced("kind: A\r\nspec: é\r\n", "spec").unwrap(),
            "kind: A\r\n# cutlist:ignore CL0464 say why\r\nspec: é\r\n"
        );
    }

    /// Above the first line it would be for the whole file.
    #[test]
    fn on_the_first_line_it_stands_behind() {
        assert_eq!(
            silenced("kind: A\nspec: 1\n", "kind").unwrap(),
            "kind: A # cutlist:ignore CL0464 say why\nspec: 1\n"
        );
    }

    #[test]
    fn inside_text_there_is_no_place_for_it() {
        assert_eq!(silenced("kind: A\nuserData: |\n  echo a\n  echo b\n", "echo b"), None);
        assert_eq!(silenced("a: \"b\n  c\n  d\"\n", "c"), None);
    }

    #[test]
    fn several_stand_one_above_the_other() {
        let once = silenced("a: 1\nb: 2\n", "b").unwrap();
        let twice = silenced(&once, "b: 2").unwrap();
        assert_eq!(twice.matches("cutlist:ignore").count(), 2);
    }
}
