//! Words from outside that are too long to be repeated. Nobody reads a sentence with one, and some forms of a report take no such text.

use super::diagnostic::Diagnostic;

/// Letters of a word that is repeated whole. Names of Kubernetes have 253 at most, and ARNs hardly more.
const WORD: usize = 300;
/// Letters of a longer one that stay, in front and behind.
const FRONT: usize = 60;
const BEHIND: usize = 20;
/// Letters of a sentence, for words that are many.
const SENTENCE: usize = 4_000;
const LEFT_OUT: &str = "...";

/// After values are hidden that nobody is shown: a part of one would not be known for one.
pub fn shorten<'d>(diagnostics: impl Iterator<Item = &'d mut Diagnostic>) {
    for Diagnostic { message, hint, object, related, .. } in diagnostics {
        let of_related = related.iter_mut().map(|it| &mut it.message);
        let texts = [Some(message), hint.as_mut(), object.as_mut()].into_iter().flatten().chain(of_related);
        for text in texts {
            if let Some(shorter) = shorter(text) {
                *text = shorter;
            }
        }
    }
}

fn shorter(text: &str) -> Option<String> {
    if text.len() <= WORD {
        return None;
    }
    let mut words = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        let letters = word.chars().count();
        if letters > WORD {
            words.extend(word.chars().take(FRONT));
            words.push_str(LEFT_OUT);
            words.extend(word.chars().skip(letters.saturating_sub(BEHIND)));
        } else {
            words.push_str(word);
        }
    }
    if words.chars().count() > SENTENCE {
        words = words.chars().take(SENTENCE).collect();
        words.push_str(LEFT_OUT);
    }
    (words != text).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::source::SourceFile;
    use crate::definitions::{GivenVariables, lint};

    #[test]
    fn a_word_keeps_its_ends_and_a_sentence_its_beginning() {
        let name = "é".repeat(200_000);
        let ends = format!("`{}...{}", "é".repeat(FRONT - 1), "é".repeat(BEHIND - 2));
        assert_eq!(shorter(&format!("no `{name}` here")), Some(format!("no {ends}` here")));
        assert_eq!(shorter(&"a ".repeat(SENTENCE)), Some("a ".repeat(SENTENCE / 2) + LEFT_OUT));
        assert_eq!((shorter("short"), shorter(&"long ".repeat(WORD))), (None, None));
    }

    #[test]
    fn what_is_long_in_a_file_is_not_repeated_whole() {
        // YAML has no longer keys without a `?` in front.
        let (name, key) = ("n".repeat(200_000), "k".repeat(1_000));
        let text =
            format!("apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{ name: {name} }}\nspec:\n  {key}: 1\n");
        let definitions = lint(&[SourceFile::new("pool.yaml", text.as_str())], &GivenVariables::default());
        let has = |code: &str| definitions.diagnostics.iter().any(|found| found.code == code);
        assert!(has("CL0107") && has("CL0201"), "{:?}", definitions.diagnostics.len());
        for found in &definitions.diagnostics {
            let texts = [Some(&found.message), found.hint.as_ref(), found.object.as_ref()];
            assert!(texts.into_iter().flatten().all(|it| it.len() < 2_000), "{}", found.code);
        }
    }
}
