//! How often nodes were bought in vain for a need: noted on the pool they were of, so that neither a restart nor the removal of an empty
//! node forgets it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::lifecycle::rollout_failures::template_hash;
use crate::model::shown_hash::is_same;
use crate::plan::RefusedNode;
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;

/// How long nothing is bought after the first refusal; twice as long after each further one.
pub const FIRST_WAIT: SignedDuration = SignedDuration::from_mins(1);
/// No wait is longer.
pub const WAIT_MAX: SignedDuration = SignedDuration::from_hours(1);
/// So long after the wait is over, without another refusal, the next one is the first again: a node takes minutes to come.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);
/// An annotation may hold 256 KiB, with all others of its object; so many take a fifth of it.
const NEEDS_MAX: usize = 100;

/// What came of the attempts for one need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempts {
    pub need: String,
    pub node_claim: String,
    pub node: String,
    /// Of kube-scheduler; empty where nobody can tell.
    pub filters: Vec<String>,
    pub because: String,
    pub count: u32,
    /// When the last of them was refused.
    pub last: Timestamp,
}

impl Attempts {
    /// As a plan says it; `None` where its times can not be read.
    pub fn of(refused: &RefusedNode) -> Option<Self> {
        Some(Self {
            need: refused.need.clone(),
            node_claim: refused.node_claim.clone(),
            node: refused.node.clone(),
            filters: refused.filters.clone(),
            because: refused.text.clone(),
            count: refused.attempts,
            last: refused.refused_at.parse().ok()?,
        })
    }

    /// When the next node may be bought.
    pub fn next(&self) -> Timestamp {
        let doublings = self.count.saturating_sub(1).min(16);
        let wait = FIRST_WAIT.saturating_mul(1 << doublings).min(WAIT_MAX);
        self.last.saturating_add(wait).unwrap_or(Timestamp::MAX)
    }

    pub fn are_forgotten(&self, now: Timestamp) -> bool {
        self.next().saturating_add(REMEMBERED).is_ok_and(|end| end < now)
    }

    /// With a node that was refused. One that was bought before the last was refused belongs to the same attempt.
    pub fn with(before: Option<Self>, refused: Self, bought: Timestamp) -> Self {
        let Some(before) = before.filter(|before| !before.are_forgotten(refused.last)) else {
            return Self { count: 1, ..refused };
        };
        if bought > before.last {
            return Self { count: before.count.saturating_add(1), ..refused };
        }
        let last = before.last.max(refused.last);
        if refused.last > before.last { Self { count: before.count, ..refused } } else { Self { last, ..before } }
    }

    /// What two pools say of the same need.
    fn merged(one: Self, two: Self) -> Self {
        let count = one.count.max(two.count);
        if one.last >= two.last { Self { count, ..one } } else { Self { count, ..two } }
    }
}

/// What the annotation of a pool says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Noted {
    /// Of the pool and its class: nodes of another template may be let in.
    template_hash: String,
    needs: Vec<Attempts>,
    /// Needs that there was no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    left_out: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Noted {
    /// As it is on a pool of the cluster, as far as it is about nodes that the pool would still have; empty where it can not be read.
    /// O(needs).
    pub fn on(applied: &NodePool, pool: &NodePool, class: Option<&EC2NodeClass>) -> Self {
        let hash = template_hash(pool, class);
        let annotations = applied.metadata.annotations.as_ref();
        let noted = annotations.and_then(|it| serde_json::from_str::<Self>(it.get(keys::REFUSED_NODES)?).ok());
        noted
            .filter(|noted| is_same(&noted.template_hash, &hash))
            .unwrap_or(Self { template_hash: hash, ..Self::default() })
    }

    pub fn needs(&self) -> &[Attempts] {
        &self.needs
    }

    /// With these in place of what was known of their needs. Those that are forgotten go, and where there are too many the oldest.
    pub fn with(&self, attempts: impl Iterator<Item = Attempts>, now: Timestamp) -> Self {
        let mut needs = self.needs.clone();
        for one in attempts {
            needs.retain(|other| other.need != one.need);
            needs.push(one);
        }
        needs.retain(|one| !one.are_forgotten(now));
        needs.sort_by(|one, two| (two.last, &two.need).cmp(&(one.last, &one.need)));
        let left_out = needs.len().saturating_sub(NEEDS_MAX);
        needs.truncate(NEEDS_MAX);
        Self { template_hash: self.template_hash.clone(), needs, left_out }
    }

    /// As the annotation has it.
    pub fn to_annotation(&self) -> String {
        // Plain data; it always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Adds what another pool says.
pub fn add(known: &mut BTreeMap<String, Attempts>, attempts: &Attempts) {
    let merged = match known.remove(&attempts.need) {
        Some(before) => Attempts::merged(before, attempts.clone()),
        None => attempts.clone(),
    };
    known.insert(merged.need.clone(), merged);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::pool_with_budgets;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_795_165_200 + minutes * 60).unwrap()
    }

    fn refused(need: &str, minute: i64) -> Attempts {
        Attempts {
            need: need.to_owned(),
            node_claim: format!("claim-{minute}"),
            node: format!("node-{minute}"),
            filters: vec!["NodeAffinity".to_owned()],
            because: "NodeAffinity: no".to_owned(),
            count: 1,
            last: at(minute),
        }
    }

    /// One that was bought so many minutes before it was refused.
    fn with(before: Option<Attempts>, minute: i64, earlier: i64) -> Attempts {
        Attempts::with(before, refused("a", minute), at(minute - earlier))
    }

    #[test]
    fn each_wait_is_twice_the_one_before_up_to_an_hour() {
        let (mut attempts, mut minute, mut waits) = (None, 0, Vec::new());
        for _ in 0..9 {
            let now = with(attempts, minute, 1);
            let wait = now.next().duration_since(now.last).as_secs() / 60;
            waits.push(wait);
            minute += wait + 2;
            attempts = Some(now);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let endless = Attempts { count: u32::MAX, ..refused("a", 0) };
        assert_eq!(endless.next(), at(60));
    }

    #[test]
    fn nodes_of_one_attempt_count_once() {
        let first = with(None, 10, 3);
        let both = with(Some(first), 11, 3);
        assert_eq!((both.count, both.last, both.node.as_str()), (1, at(11), "node-11"));
        assert_eq!(with(Some(both.clone()), 10, 3), both, "what is known changes nothing");
        assert_eq!(with(Some(both), 15, 3).count, 2, "bought after the first were refused");
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let attempts = with(Some(with(None, 0, 1)), 5, 1);
        assert_eq!(attempts.count, 2);
        assert!(!attempts.are_forgotten(at(67)) && attempts.are_forgotten(at(68)));
        assert_eq!(with(Some(attempts), 68, 1).count, 1);
    }

    #[test]
    fn a_pool_keeps_the_latest_of_so_many_needs_and_counts_the_others() {
        let pool = pool_with_budgets(json!([]));
        let noted = Noted::on(&pool, &pool, None);
        assert!(noted.needs().is_empty());
        let many =
            (0..i64::try_from(NEEDS_MAX).unwrap() + 5).map(|minute| refused(&format!("{minute:04}"), 60 + minute / 60));
        let noted = noted.with(many, at(62));
        assert_eq!((noted.needs().len(), noted.left_out), (NEEDS_MAX, 5));
        assert_eq!(noted.needs().first().unwrap().need, "0104", "the latest first");
        assert!(noted.to_annotation().len() < 64 * 1024);
        let mut applied = pool.clone();
        let annotations = applied.metadata.annotations.get_or_insert_default();
        annotations.insert(keys::REFUSED_NODES.to_owned(), noted.to_annotation());
        assert_eq!(Noted::on(&applied, &pool, None), noted);
        let mut other = pool.clone();
        other.spec.template.metadata.labels.insert("team".to_owned(), "shop".to_owned());
        assert!(Noted::on(&applied, &other, None).needs().is_empty(), "another template may be let in");
        for odd in ["", "{}", "[]", "{\"templateHash\":1}"] {
            let annotations = applied.metadata.annotations.get_or_insert_default();
            annotations.insert(keys::REFUSED_NODES.to_owned(), odd.to_owned());
            assert!(Noted::on(&applied, &pool, None).needs().is_empty(), "{odd}");
        }
        assert!(noted.with(std::iter::empty(), at(1000)).needs().is_empty(), "what is over goes");
    }
}
