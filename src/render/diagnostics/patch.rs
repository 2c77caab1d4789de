//! What `lint --fix` writes, as a patch that `git apply` takes.

use similar::TextDiff;

use super::place::relative;

/// A unified diff of one file.
pub fn patch(path: &str, before: &str, after: &str) -> String {
    let path = relative(path);
    let diff = TextDiff::from_lines(before, after);
    diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}
