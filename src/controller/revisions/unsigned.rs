//! A revision that somebody else should have signed: it is held and said, and what is in force goes on.

use jiff::Timestamp;

use crate::controller::Controller;
use crate::controller::events::Event;
use crate::core::plan::Revision;
use crate::ports::{Clock, Cloud, Cluster, Forge, PortError, Repository, RevisionContent, Unsigned, chain};
use crate::render::plan::fenced;
use crate::render::terminal::clean_lines;

/// Commits that are named; the rest is counted.
const NAMED_MAX: usize = 20;
/// Pools on which it is told: who looks at one of them should see it, and a cluster may have hundreds.
const POOLS_MAX: usize = 20;

impl<R: Repository, K: Cluster, E: Cloud, F: Forge, C: Clock> Controller<R, K, E, F, C> {
    /// Which commits of the revision somebody else should have signed. `None`: that could not be found out, as with a file of the operator
    /// that can not be read; it is said, what is in force goes on, and the next poll asks again.
    pub(super) async fn unsigned(&mut self, revision: &Revision, now: Timestamp) -> Option<Vec<Unsigned>> {
        let in_force = self.revisions.revision();
        match self.ports.repository.unsigned(revision, in_force.as_ref()).await {
            Ok(unsigned) => Some(unsigned),
            Err(error) => {
                self.say_trouble(chain(&error), now);
                None
            }
        }
    }

    /// Nothing new came. One that was held is used where who may sign, or who must, is another meanwhile.
    pub(super) async fn judge_again(&mut self, now: Timestamp) -> Result<(), PortError> {
        let Some(revision) = self.revisions.unsigned.as_ref().map(|held| held.revision.clone()) else { return Ok(()) };
        let is_signed = self.unsigned(&revision, now).await.is_some_and(|unsigned| unsigned.is_empty());
        match self.revisions.unsigned.take() {
            Some(content) if is_signed => self.receive(content, now).await,
            held => {
                self.revisions.unsigned = held;
                Ok(())
            }
        }
    }

    pub(super) async fn hold_unsigned(
        &mut self,
        content: RevisionContent,
        mut unsigned: Vec<Unsigned>,
        mut node_pools: Vec<String>,
        now: Timestamp,
    ) -> Result<(), PortError> {
        let (revision, in_force) = (content.revision.clone(), self.revisions.revision());
        self.revisions.received = Some(revision.clone());
        // What they wrote is in the next revision as well.
        self.revisions.authors_with(content.authors.clone());
        self.revisions.unsigned = Some(content);
        node_pools.truncate(POOLS_MAX);
        let further = unsigned.len().saturating_sub(NAMED_MAX);
        unsigned.truncate(NAMED_MAX);
        let is_one_in_force = in_force.is_some();
        let (headline, text) = told(&unsigned, further, is_one_in_force);
        self.journal
            .say(now, &Event::RevisionUnsigned { revision: revision.clone(), in_force, unsigned, further, node_pools });
        self.ports.forge.post_failure(&revision, &headline, &text).await
    }
}

/// One line, and all of it in Markdown.
fn told(unsigned: &[Unsigned], further: usize, is_one_in_force: bool) -> (String, String) {
    let mut lines: Vec<String> = unsigned.iter().map(ToString::to_string).collect();
    if further > 0 {
        lines.push(format!("and {further} more"));
    }
    let instead =
        if is_one_in_force { "the one before stays in force" } else { "none is in force until one comes that is" };
    let text = format!(
        "This revision is not signed by who must have. It is not used, and {instead}.\n\n{}\nWho may sign it commits the change anew \
         (`git commit -S`), or reverts it and pushes that alone; then the next revision is used. Whoever operates Cutlist decides who may.\n",
        fenced("", &clean_lines(&lines.join("\n")))
    );
    let first = unsigned.first().map(ToString::to_string).unwrap_or_default();
    (format!("not used: {first}"), text)
}
