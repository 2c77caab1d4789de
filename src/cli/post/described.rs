//! What `cutlist post --dry-run` prints.

use std::fmt::Write;

use super::forge::Resolved;
use crate::ports::pull_requests::Posting;

/// What would be posted, for people.
pub fn described(posting: &Posting, resolved: &Resolved) -> String {
    let of = posting.number.map_or_else(|| "no pull request".to_owned(), |number| format!("pull request {number}"));
    let mut text = format!("{of} of {} at {}\n", resolved.repository, resolved.address);
    for target in &posting.targets {
        let status = &target.status;
        // Writing to a string does not fail.
        let _written = writeln!(
            text,
            "\nstatus {} of {}: {:?}\n  {}",
            status.context, posting.head, status.state, status.description
        );
        match target.comment.as_ref().filter(|_| posting.number.is_some()) {
            Some(comment) => {
                let begun = if comment.is_worth_beginning { "" } else { ", if there is one already" };
                let _written = writeln!(text, "\ncomment{begun}:\n\n{}", comment.body);
            }
            None => text.push_str("\nno comment\n"),
        }
        if let Some(check) = &target.check {
            let _written = writeln!(text, "check {}: {:?}, {}", check.name, check.conclusion, check.title);
            for it in &check.annotations {
                let _written = writeln!(text, "  {}:{}: {:?}: {}", it.path, it.line, it.level, it.text);
            }
        }
    }
    text
}
