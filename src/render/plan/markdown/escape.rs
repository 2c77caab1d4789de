//! Names and sentences of a cluster as Markdown: nobody is mentioned, nothing is linked, no HTML gets through.

use crate::render::terminal::clean;

/// Text outside of code. Forges look for `@name`, `#123`, `!123` and `GH-123` after entities are resolved, so a space without
/// width is put behind the sign. A backslash stands before the signs of Markdown.
pub(in crate::render) fn prose(text: &str) -> String {
    let mut escaped = String::new();
    for character in clean(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '@' | '#' => {
                escaped.push(character);
                escaped.push('\u{200b}');
            }
            // Gitea and GitLab take `!123` for a pull request, also behind a backslash.
            '!' => escaped.push_str("\\!\u{200b}"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '0'..='9' if ends_with_gh(&escaped) => {
                escaped.push('\u{200b}');
                escaped.push(character);
            }
            other => escaped.push(other),
        }
    }
    // A bare address becomes a link, and so a way to lead reviewers somewhere.
    escaped.replace("://", ":\u{200b}//").replace("www.", "www\u{200b}.")
}

/// Whether a number behind the text would name an issue: the text ends in `GH-`, in capitals or not, which begins a
/// word.
fn ends_with_gh(text: &str) -> bool {
    let mut back = text.chars().rev().map(|character| character.to_ascii_lowercase());
    let sign = [back.next(), back.next(), back.next()];
    sign == [Some('-'), Some('h'), Some('g')] && back.next().is_none_or(|before| !before.is_alphanumeric())
}

/// Text as code within a line. It is HTML, because a name may hold back quotes. Forges mention and link nothing in it.
pub(in crate::render) fn code(text: &str) -> String {
    let mut escaped = String::from("<code>");
    for character in clean(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Markdown is still read inside of inline HTML.
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '@' | '#' | ':' => {
                escaped.push_str(&format!("&#{};", u32::from(character)));
            }
            other => escaped.push(other),
        }
    }
    escaped + "</code>"
}

/// The text in a fence that it can not close.
pub fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{text}{fence}\n")
}

/// Text for a line inside of a fence. A space without width cuts what looks like a mention or the number of an issue,
/// since not every forge leaves fences alone. Callers clean the text before, since cleaning takes such a space away.
pub(in crate::render) fn in_fence(text: &str) -> String {
    text.replace('@', "@\u{200b}").replace('#', "#\u{200b}")
}

/// Text for the inside of an HTML comment on one line: whatever could end it is percent-encoded.
pub(in crate::render) fn comment(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'-' if escaped.ends_with('-') => escaped.push_str("%2D"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'/' | b'-' => escaped.push(char::from(byte)),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_mentioned_and_no_html_gets_through() {
        assert_eq!(prose("ask @ops, see #12"), "ask @\u{200b}ops, see #\u{200b}12");
        assert_eq!(prose("<img src=x>&*a*"), "&lt;img src=x&gt;&amp;\\*a\\*");
        assert_eq!(prose("GH-26 (gh-7), high-5, GH-x"), "GH-\u{200b}26 (gh-\u{200b}7), high-5, GH-x");
        assert_eq!(prose("http://a.b"), "http:\u{200b}//a.b");
        assert_eq!(code("</code>`@a#1"), "<code>&lt;/code&gt;&#96;&#64;a&#35;1</code>");
    }

    #[test]
    fn a_fence_is_longer_than_any_inside() {
        assert_eq!(fenced("diff", "a\n"), "```diff\na\n```\n");
        assert_eq!(fenced("diff", "````\n"), "`````diff\n````\n`````\n");
    }

    #[test]
    fn nothing_ends_a_comment() {
        assert_eq!(comment("prod/eu-west-1"), "prod/eu-west-1");
        assert_eq!(comment("a-->b"), "a-%2D%3Eb");
    }
}
