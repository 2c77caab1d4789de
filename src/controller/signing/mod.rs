//! Which revisions may be used: who signed the commits that came since the one in force, and who must have.
//!
//! | what | where |
//! |---|---|
//! | the operator's rules, checked | `policy.rs` |
//! | what a commit changes that a rule may be about | `items.rs` |
//! | the commits, held against the rules | `judge.rs` |

mod items;
mod judge;
mod policy;

pub use items::{Item, Side, changed};
pub use judge::{JudgedCommit, Question, Signer, judge};
pub use policy::{Policy, PolicyError};

#[cfg(test)]
mod tests;
