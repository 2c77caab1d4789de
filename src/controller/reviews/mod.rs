//! Pull requests that are reviewed: planned as if they were merged, posted, and answered. `cutlist review` does it from the outside, and
//! `cutlist run` beside the controller.
//!
//! Nothing is kept but on the forge: what a process before this one posted is found again, and nothing is posted twice.
//!
//! Its files in their order: each uses those before it.
//!
//! | what | where |
//! |---|---|
//! | what is posted of a preview, for the forge's limits | `posting.rs` |
//! | who may command; of two people, who is the other | `rights.rs`, `two_people.rs` |
//! | what people write: the commands, and which plans they mean | `commands.rs`, `digests.rs` |
//! | what goes wrong again and again | `trouble.rs` |
//! | which of too many are looked at | `turns.rs` |
//! | the repository, and what is known of its pull requests | `repository.rs` |
//! | other processes that post by the same name | `namesakes.rs` |
//! | who approved which plan | `approvals.rs` |
//! | commands obeyed and answered | `answers.rs` |
//! | pull requests at one commit, and commits of merge queues | `same_commit.rs`, `queue.rs` |
//! | what came of those that were merged | `merged.rs` |
//! | one look after the other | `rounds.rs` |

mod answers;
mod approvals;
mod commands;
mod digests;
mod merged;
mod namesakes;
mod posting;
mod queue;
mod repository;
mod rights;
mod rounds;
mod same_commit;
mod trouble;
mod turns;
mod two_people;

use crate::ports::Clock;
use crate::ports::pull_requests::{History, Previews, PullRequests, Team};

pub use posting::{Shown, posting, told_together, what_was_done};
pub use rounds::Rounds;

/// The ports that reviews need, chosen in one place.
pub trait ReviewPorts {
    type Forge: PullRequests;
    type History: History;
    type Previews: Previews;
    type Clock: Clock;

    fn forge(&self) -> &Self::Forge;
    fn history(&self) -> &Self::History;
    fn previews(&self) -> &Self::Previews;
    fn clock(&self) -> &Self::Clock;
    /// Tells whoever runs this program.
    fn say(&self, text: &str);
}

/// What is asked of an approval, and of whom.
#[derive(Clone, Debug, Default)]
pub struct ReviewRules {
    /// A status waits until somebody approves the plan.
    pub require_approval: bool,
    /// Somebody else than whoever made the change.
    pub require_two_people: bool,
    /// Who pushed may be unknown: the operator says so.
    pub allow_unknown_pushers: bool,
    /// Teams whose members may approve and ask as those may who may write.
    pub approvers: Vec<Team>,
    /// And nobody else may approve.
    pub approvers_only: bool,
    /// What was approved before the merge is approved in the cluster after it.
    pub approve_merged: bool,
}
