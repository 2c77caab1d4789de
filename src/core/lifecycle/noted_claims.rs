//! Claims that are noted on their pool. Names come again, UIDs do not.

use serde::{Deserialize, Serialize};

/// More names than these nobody reads.
pub const NAMES_SHOWN: usize = 3;

/// A claim that is noted, and that may be gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotedClaim {
    pub name: String,
    pub uid: String,
}

/// Adds a claim that is not noted yet, and lets the oldest go where there would be more than `most`. `false`: it was noted before.
pub fn add(claims: &mut Vec<NotedClaim>, name: &str, uid: &str, most: usize) -> bool {
    let is_new = claims.iter().all(|known| known.uid != uid);
    if is_new {
        claims.push(NotedClaim { name: name.to_owned(), uid: uid.to_owned() });
    }
    let surplus = claims.len().saturating_sub(most);
    claims.drain(..surplus);
    is_new
}
