//! Other processes that post by the name of this one, as those of two clusters with the same settings: whichever ends last is what people
//! read, and nothing on the forge tells them apart.

use super::rounds::Rounds;
use crate::adapters::forge::{Comment, ForgeError, Seal, seal_of};

/// Says so where a comment by this account, as this program writes them, is not the one that this process left there. `comments`: all of the
/// pull request, oldest first.
pub async fn tell(rounds: &Rounds, number: u64, comments: &[Comment]) -> Result<(), ForgeError> {
    let Some(seen) = rounds.seen(number) else { return Ok(()) };
    for (marker, data) in seen.left() {
        let is_marked = |it: &&Comment| lines(it).0 == marker && seal_of(&it.body) == Seal::Whole;
        let marked: Vec<&Comment> = comments.iter().filter(is_marked).collect();
        if marked.is_empty() {
            continue;
        }
        let account = rounds.forge().account().await?;
        let newest = marked.into_iter().rfind(|comment| rounds.forge().is_by(comment, account));
        if newest.is_some_and(|comment| lines(comment).1 != data) {
            let name = rounds.name();
            rounds.said().say(
                &format!("another process posts as {name} to pull request {number}"),
                "what people read is what was posted last; where it is not one that this one took over from, give each \
                 a name of its own with --name, or its cluster one in cutlist.yaml",
            );
        }
    }
    Ok(())
}

/// The first two: whose comment it is, and what it says.
fn lines(comment: &Comment) -> (&str, &str) {
    let mut lines = comment.body.lines().map(str::trim_end);
    (lines.next().unwrap_or_default(), lines.next().unwrap_or_default())
}
