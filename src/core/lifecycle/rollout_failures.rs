//! New nodes of a pool that did not become ready: noted on the pool, so that a restart knows of them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::hexadecimal;
use crate::model::shown_hash::is_same;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;

use super::noted_claims::{self, NAMES_SHOWN, NotedClaim};

/// Characters of a hash that tell templates of one pool apart.
const HASH_CHARACTERS: usize = 16;
/// Characters of a commit's hash that people read.
const COMMIT_CHARACTERS: usize = 7;

/// Nodes in a row, of one template, that did not become ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Failures {
    /// Of the pool and its class.
    template_hash: String,
    /// The revision of the definitions when the last of them was given up.
    revision: String,
    /// Oldest first.
    node_claims: Vec<NotedClaim>,
    /// When the last of them was given up.
    last: Timestamp,
}

/// A new node that did not become ready, and what it was made from.
#[derive(Clone, Copy, Debug)]
pub struct GivenUp<'a> {
    pub name: &'a str,
    pub uid: &'a str,
    pub pool: &'a NodePool,
    pub class: Option<&'a EC2NodeClass>,
    pub revision: &'a str,
    /// When a node of the pool as it is now became ready last.
    pub became_ready: Option<Timestamp>,
    /// How many are remembered: what halts a rollout.
    pub most: usize,
    pub now: Timestamp,
}

impl Failures {
    /// What the annotation of a pool says; `None` where there is none, or nothing that can be read.
    pub fn noted_on(pool: &NodePool) -> Option<Self> {
        serde_json::from_str(pool.metadata.annotations.as_ref()?.get(keys::ROLLOUT_FAILURES)?).ok()
    }

    /// Those that halt the rollout of a pool; `None` while it may go on. `applied`: the pool as it is in the cluster. `most`:
    /// `haltAfterFailures`.
    pub fn halting(applied: &NodePool, pool: &NodePool, class: Option<&EC2NodeClass>, most: u32) -> Option<Self> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let failures = Self::noted_on(applied)?;
        (most > 0 && failures.count() >= most && failures.are_of(pool, class)).then_some(failures)
    }

    /// With one more. A node of the template that became ready since the last one, or another template, begins the count anew. A
    /// halt stays, whatever became ready after it.
    pub fn with(before: Option<Self>, given_up: &GivenUp<'_>) -> Self {
        let GivenUp { name, uid, pool, class, most, .. } = *given_up;
        let is_in_row = |before: &Self| {
            let is_halted = before.count() >= most;
            before.are_of(pool, class) && (is_halted || given_up.became_ready.is_none_or(|ready| ready <= before.last))
        };
        let mut node_claims = before.filter(is_in_row).map(|before| before.node_claims).unwrap_or_default();
        noted_claims::add(&mut node_claims, name, uid, most.max(1));
        let revision = given_up.revision.to_owned();
        Self { template_hash: template_hash(pool, class), revision, node_claims, last: given_up.now }
    }

    /// As the annotation has it.
    pub fn to_annotation(&self) -> String {
        // Plain data; it always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn count(&self) -> usize {
        self.node_claims.len()
    }

    pub fn node_claims(&self) -> &[NotedClaim] {
        &self.node_claims
    }

    /// When the last of them was given up.
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// Whether they were nodes as this pool and class would have them now.
    pub fn are_of(&self, pool: &NodePool, class: Option<&EC2NodeClass>) -> bool {
        is_same(&self.template_hash, &template_hash(pool, class))
    }

    /// `3 nodes of revision 698653a did not become ready (a, b, c)`
    pub fn text(&self) -> String {
        let count = self.count();
        let revision = self.revision.get(..COMMIT_CHARACTERS).unwrap_or(&self.revision);
        let mut known: Vec<&str> = Vec::new();
        for failed in &self.node_claims {
            if !known.contains(&failed.name.as_str()) {
                known.push(&failed.name);
            }
        }
        let mut names = known.iter().take(NAMES_SHOWN).copied().collect::<Vec<_>>().join(", ");
        if known.len() > NAMES_SHOWN {
            names.push_str(&format!(" and {} more", known.len() - NAMES_SHOWN));
        }
        let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        format!("{nodes} of revision {revision} did not become ready ({names})")
    }
}

/// Over everything that a new node is made from. Budgets, limits and weights are not.
pub fn template_hash(pool: &NodePool, class: Option<&EC2NodeClass>) -> String {
    let template = serde_json::to_vec(&pool.spec.template).unwrap_or_default();
    let class = class.and_then(|class| serde_json::to_vec(&class.spec).ok()).unwrap_or_default();
    let digest = Sha256::new().chain_update(template).chain_update([0]).chain_update(class).finalize();
    hexadecimal(digest).chars().take(HASH_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::testing;

    const BEGIN: &str = "2026-11-20T09:00:00Z";

    fn at(minutes: i64) -> Timestamp {
        BEGIN.parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
    }

    fn with(before: Option<Failures>, name: &str, pool: &NodePool, ready: Option<i64>, minutes: i64) -> Failures {
        let (revision, became_ready, now) = ("abc1234def", ready.map(at), at(minutes));
        Failures::with(before, &GivenUp { name, uid: name, pool, class: None, revision, became_ready, most: 3, now })
    }

    fn names(failures: &Failures) -> Vec<&str> {
        failures.node_claims().iter().map(|failed| failed.name.as_str()).collect()
    }

    #[test]
    fn a_row_of_failures_is_counted_until_one_comes_or_the_template_changes() {
        let pool = testing::pool_with_budgets(serde_json::json!([]));
        let one = with(None, "a", &pool, None, 15);
        // The process ended between the note and the deletion, and notes it again.
        let again = with(Some(one), "a", &pool, Some(10), 16);
        assert_eq!(again.count(), 1);
        let two = with(Some(again), "b", &pool, Some(10), 30);
        assert_eq!(two.text(), "2 nodes of revision abc1234 did not become ready (a, b)");
        let after_success = with(Some(two.clone()), "c", &pool, Some(31), 45);
        assert_eq!(names(&after_success), ["c"]);
        let three = with(Some(two), "c", &pool, None, 45);
        assert_eq!(three.count(), 3);
        let still_halted = with(Some(three.clone()), "d", &pool, Some(50), 60);
        assert_eq!(names(&still_halted), ["b", "c", "d"]);
        let mut other = pool.clone();
        other.spec.template.metadata.labels.insert("generation".to_owned(), "second".to_owned());
        assert!(three.are_of(&pool, None) && !three.are_of(&other, None));
        assert_eq!(with(Some(three), "e", &other, None, 75).count(), 1);
    }

    #[test]
    fn what_halts_is_read_from_the_pool() {
        let pool = testing::pool_with_budgets(serde_json::json!([]));
        let halting = |annotation: &str, most: u32| {
            let mut applied = pool.clone();
            let annotations = applied.metadata.annotations.get_or_insert_default();
            annotations.insert(keys::ROLLOUT_FAILURES.to_owned(), annotation.to_owned());
            Failures::halting(&applied, &pool, None, most).map(|failures| failures.count())
        };
        let two = with(Some(with(None, "a", &pool, None, 15)), "b", &pool, None, 30).to_annotation();
        assert_eq!((halting(&two, 3), halting(&two, 2), halting(&two, 0)), (None, Some(2), None));
        assert_eq!((halting("", 1), halting("{}", 1)), (None, None));
        assert_eq!(Failures::halting(&pool, &pool, None, 1), None);
    }
}
