//! Other processes that post by the name of this one, as those of two clusters with the same settings: whichever ends last is what people
//! read, and nothing on the forge tells them apart.

use super::ReviewPorts;
use super::repository::ReviewedRepository;
use crate::ports::PortError;
use crate::ports::pull_requests::{Comment, PullRequests, Seal};

/// Says so where a comment by this account, as this program writes them, is not the one that this process left there. `comments`: all of the
/// pull request, oldest first.
pub async fn tell<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    number: u64,
    comments: &[Comment],
) -> Result<(), PortError> {
    let Some(seen) = repository.seen.get(&number) else { return Ok(()) };
    for (marker, data) in seen.left() {
        let is_marked = |it: &&Comment| lines(it).0 == marker && repository.forge().seal_of(&it.body) == Seal::Whole;
        let marked: Vec<&Comment> = comments.iter().filter(is_marked).collect();
        if marked.is_empty() {
            continue;
        }
        let account = repository.forge().account().await?;
        let newest = marked.into_iter().rfind(|comment| repository.forge().is_by(comment, &account));
        if newest.is_some_and(|comment| lines(comment).1 != data) {
            let name = repository.name();
            repository.say_trouble(
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
