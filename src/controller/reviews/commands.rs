//! What people write on a pull request: `/cutlist plan`, `/cutlist why pod NAME` and `/cutlist approve DIGEST`.

use std::str::SplitWhitespace;

use crate::ports::pull_requests::Question;

const PREFIX: &str = "/cutlist";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Plan,
    Why(Question),
    Approve(String),
    /// More than one in a comment.
    Several,
    Unknown,
}

/// Markdown takes a line for code that begins with so many spaces.
const SPACES_OF_CODE: usize = 4;

/// The command that a comment is, if it is one: in its first line, and with nothing before it.
pub fn parse(body: &str) -> Option<Command> {
    let mut lines = body.lines();
    let words = words_of_command(lines.next()?)?;
    // Whoever wrote two believes that both were obeyed.
    if lines.any(|line| words_of_command(line).is_some()) {
        return Some(Command::Several);
    }
    let rest: Vec<&str> = words.collect();
    Some(match rest.as_slice() {
        ["plan"] => Command::Plan,
        ["why", "pod", name] => Command::Why(Question::Pod((*name).to_owned())),
        ["why", "node", name] => Command::Why(Question::Node((*name).to_owned())),
        ["approve"] => Command::Approve(String::new()),
        // As it stands in a sentence, or as code.
        ["approve", digits] => {
            Command::Approve(digits.trim_matches(|it: char| !it.is_ascii_alphanumeric()).to_ascii_lowercase())
        }
        _ => Command::Unknown,
    })
}

/// What stands behind the name of this program, where a line begins with that.
fn words_of_command(line: &str) -> Option<SplitWhitespace<'_>> {
    let text = line.trim_start_matches(' ');
    let is_code = line.len() - text.len() >= SPACES_OF_CODE || text.starts_with('\t');
    let mut words = text.split_whitespace();
    // Telephones begin a sentence with a capital letter.
    let is_command = !is_code && words.next()?.eq_ignore_ascii_case(PREFIX);
    is_command.then_some(words)
}

/// The digits of the plan that a comment would approve, if it is a command to do that.
pub fn approved_digits(body: &str) -> Option<String> {
    match parse(body)? {
        Command::Approve(digits) => Some(digits),
        Command::Plan | Command::Why(_) | Command::Several | Command::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_first_thing_in_a_comment() {
        assert_eq!(parse("/cutlist plan"), Some(Command::Plan));
        assert_eq!(parse("/cutlist  approve 3F2A91C\r\n\nlooks good"), Some(Command::Approve("3f2a91c".to_owned())));
        for text in ["/Cutlist approve 3f2a91c.", "/cutlist approve `3f2a91c`", "/cutlist approve \"3f2a91c\""] {
            assert_eq!(parse(text), Some(Command::Approve("3f2a91c".to_owned())), "{text}");
        }
        assert_eq!(parse("/cutlist approve"), Some(Command::Approve(String::new())));
        assert_eq!(parse("/cutlist why pod shop/web"), Some(Command::Why(Question::Pod("shop/web".to_owned()))));
        assert_eq!(parse("/cutlist why node a"), Some(Command::Why(Question::Node("a".to_owned()))));
        for text in ["/cutlist destroy all", "/cutlist why", "/cutlist why pod a b"] {
            assert_eq!(parse(text), Some(Command::Unknown), "{text}");
        }
        assert_eq!(parse("   /cutlist plan\nwith a look at    /cutlist approve"), Some(Command::Plan));
        for text in ["/cutlist plan\n/cutlist approve 3f2a91c", "/cutlist approve 3f2a91c\n\n /Cutlist plan"] {
            assert_eq!(parse(text), Some(Command::Several), "{text}");
        }
        for text in [
            "",
            "> /cutlist approve 3f2a91c",
            "please /cutlist plan",
            "\n/cutlist plan",
            "/cutlistplan",
            "« /cutlist plan »",
            "    /cutlist approve 3f2a91c",
            "\t/cutlist why pod shop/web",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
