//! Instances that end before their nodes join: noted on their pool, so that a restart knows of them, and the breaker that this is.
//!
//! Whatever ends the first ones will mostly end the next: a key that may not be used, a quota, user data that shuts the machine down. After
//! three in a row none of the pool is launched for a while, then one alone. The wait doubles with each that ends, too; a node of the pool that
//! joins, or another template, ends it. What EC2 had too little of says nothing about the pool and is not counted here.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::inputs::Inputs;
use crate::model::shown_hash::is_same;
use crate::plan::{EndCause, EndedInstances, Note, NoteCode};
use cutlist_api::ec2_node_class::EC2NodeClass;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::NodePool;

use super::conditions::{REGISTERED, transition};
use super::expiry::is_of_other_template;
use super::noted_claims::{self, NAMES_SHOWN, NotedClaim};
use super::rollout_failures::template_hash;

/// So many in a row open the breaker.
pub const IN_A_ROW: u32 = 3;
/// How long none is launched at first; twice as long after each further attempt.
const FIRST_WAIT: SignedDuration = SignedDuration::from_mins(5);
/// No wait is longer.
const WAIT_MAX: SignedDuration = SignedDuration::from_hours(2);
/// So long after the last of them, or after the wait is over, the next one is the first again.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);
/// More are not told apart from those that end next: hundreds may end at once.
const REMEMBERED_CLAIMS: usize = 20;

/// Instances in a row, of one template, that ended before their nodes joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EarlyEnds {
    /// Of the pool and its class.
    template_hash: String,
    /// The last of them, oldest first.
    node_claims: Vec<NotedClaim>,
    count: u32,
    cause: EndCause,
    code: String,
    because: String,
    /// When the last of them was noted.
    last: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<Pause>,
}

/// That none is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pause {
    /// How often it began.
    times: u32,
    since: Timestamp,
}

/// An instance that ended, and what it was made from.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    pub claim: &'a NodeClaim,
    pub cause: EndCause,
    pub code: &'a str,
    pub text: &'a str,
    pub now: Timestamp,
}

/// What may be launched of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Some ended, too few to tell.
    Closed,
    /// Nothing before this.
    Open(Timestamp),
    /// One, until it has joined.
    OneAlone,
}

impl EarlyEnds {
    /// What the annotation of a pool says; `None` where there is none, or nothing that can be read.
    pub fn noted_on(pool: &NodePool) -> Option<Self> {
        serde_json::from_str(pool.metadata.annotations.as_ref()?.get(keys::EARLY_ENDS)?).ok()
    }

    /// With one more. `joined`: when a node of the pool as it is now joined last.
    pub fn with(
        before: Option<Self>,
        end: &End<'_>,
        pool: &NodePool,
        class: Option<&EC2NodeClass>,
        joined: Option<Timestamp>,
    ) -> Self {
        let before = before.filter(|before| before.are_in_row(pool, class, joined, end.now));
        let mut ends = before.unwrap_or_else(|| Self {
            template_hash: template_hash(pool, class),
            node_claims: Vec::new(),
            count: 0,
            cause: end.cause,
            code: String::new(),
            because: String::new(),
            last: end.now,
            paused: None,
        });
        let metadata = &end.claim.metadata;
        let [name, uid] = [&metadata.name, &metadata.uid].map(|it| it.as_deref().unwrap_or_default());
        if !noted_claims::add(&mut ends.node_claims, name, uid, REMEMBERED_CLAIMS) {
            return ends;
        }
        ends.count = ends.count.saturating_add(1);
        ends.cause = end.cause;
        end.code.clone_into(&mut ends.code);
        end.text.clone_into(&mut ends.because);
        ends.last = ends.last.max(end.now);
        let made = metadata.creation_timestamp.as_ref().map(|time| time.0);
        ends.paused = match ends.paused {
            None if ends.count >= IN_A_ROW => Some(Pause { times: 1, since: end.now }),
            // One that was made before the pause says nothing that is new.
            Some(pause) if made.is_none_or(|made| made > pause.since) => {
                Some(Pause { times: pause.times.saturating_add(1), since: end.now })
            }
            paused => paused,
        };
        ends
    }

    /// As the annotation has it.
    pub fn to_annotation(&self) -> String {
        // Plain data; it always has a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether they still say what the next one will come to.
    pub fn are_in_row(
        &self,
        pool: &NodePool,
        class: Option<&EC2NodeClass>,
        joined: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        let since = self.next().unwrap_or(self.last);
        let is_fresh = since.saturating_add(REMEMBERED).map_or(true, |end| now < end);
        is_fresh
            && joined.is_none_or(|joined| joined <= self.last)
            && is_same(&self.template_hash, &template_hash(pool, class))
    }

    /// Until when none is launched, or was.
    pub fn next(&self) -> Option<Timestamp> {
        let pause = self.paused?;
        let doublings = pause.times.saturating_sub(1).min(16);
        let wait = FIRST_WAIT.saturating_mul(1 << doublings).min(WAIT_MAX);
        Some(pause.since.saturating_add(wait).unwrap_or(Timestamp::MAX))
    }

    pub fn breaker(&self, now: Timestamp) -> Breaker {
        match self.next() {
            None => Breaker::Closed,
            Some(next) if now < next => Breaker::Open(next),
            Some(_) => Breaker::OneAlone,
        }
    }

    /// `3 instances in a row ended before their nodes joined (a, b, c): the key of an encrypted volume can not be used ...`
    pub fn text(&self) -> String {
        let names: Vec<&str> = self.node_claims.iter().rev().take(NAMES_SHOWN).map(|it| it.name.as_str()).collect();
        let mut names = names.into_iter().rev().collect::<Vec<_>>().join(", ");
        let further = usize::try_from(self.count).unwrap_or(usize::MAX).saturating_sub(NAMES_SHOWN);
        if further > 0 {
            names.push_str(&format!(" and {further} before"));
        }
        match self.count {
            1 => format!("1 instance ended before its node joined ({names}): {}", self.because),
            count => format!("{count} instances in a row ended before their nodes joined ({names}): {}", self.because),
        }
    }

    fn for_plan(&self, node_pool: &str) -> EndedInstances {
        EndedInstances {
            node_pool: node_pool.to_owned(),
            node_claims: self.node_claims.iter().map(|ended| ended.name.clone()).collect(),
            cause: self.cause,
            code: self.code.clone(),
            text: self.because.clone(),
            count: self.count,
            last_ended_at: self.last.to_string(),
            next_attempt_at: self.next().map(|next| next.to_string()),
        }
    }
}

/// When a node of the pool as it is now joined last.
pub fn joined<'c>(claims: impl Iterator<Item = &'c NodeClaim>, pool: &NodePool) -> Option<Timestamp> {
    let of_pool = claims.filter(|claim| is_of(claim, pool) && claim.is_true(REGISTERED));
    of_pool.filter_map(|claim| transition(claim, REGISTERED)).max()
}

fn is_of(claim: &NodeClaim, pool: &NodePool) -> bool {
    let named = claim.metadata.labels.as_ref().and_then(|labels| labels.get(keys::NODE_POOL));
    named.is_some() && named == pool.metadata.name.as_ref() && !is_of_other_template(claim, pool)
}

/// What is noted on a pool of the definitions and still counts. O(pools) where nothing is noted, else O(claims) too.
pub fn of_pool(inputs: &Inputs<'_>, pool: &NodePool) -> Option<EarlyEnds> {
    let applied = inputs.snapshot.node_pools.iter().find(|applied| applied.metadata.name == pool.metadata.name)?;
    let ends = EarlyEnds::noted_on(applied)?;
    let class_name = &pool.spec.template.spec.node_class_ref.name;
    let class = inputs.node_classes.iter().find(|class| class.metadata.name.as_ref() == Some(class_name));
    let joined = joined(inputs.snapshot.node_claims.iter(), pool);
    ends.are_in_row(pool, class, joined, inputs.now).then_some(ends)
}

/// For the plan: those of all pools, and a note for each.
pub fn in_plan(inputs: &Inputs<'_>) -> (Vec<EndedInstances>, Vec<Note>) {
    let of_pools = inputs.node_pools.iter().filter_map(|pool| {
        let name = pool.metadata.name.as_deref().unwrap_or_default();
        let ends = of_pool(inputs, pool)?;
        let then = match ends.breaker(inputs.now) {
            Breaker::Closed => format!("after {IN_A_ROW} in a row none of the pool is launched for a while"),
            Breaker::Open(next) => format!("none of the pool is launched before {next}, then one alone; {}", lifted()),
            Breaker::OneAlone => format!("one is launched alone until it has joined; {}", lifted()),
        };
        let note = Note::new(NoteCode::InstancesEndedEarly, format!("NodePool {name}: {}; {then}", ends.text()))
            .about_pool(name);
        Some((ends.for_plan(name), note))
    });
    of_pools.unzip()
}

/// How people end the wait.
fn lifted() -> String {
    format!("a change of its template or class, or the removal of its annotation {}, ends that", keys::EARLY_ENDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    const BEGIN: &str = "2026-11-20T09:00:00Z";

    fn at(minutes: i64) -> Timestamp {
        BEGIN.parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
    }

    /// One more, of a claim that was made as the minute began.
    fn with(before: Option<EarlyEnds>, name: &str, pool: &NodePool, joined: Option<i64>, minutes: i64) -> EarlyEnds {
        let claim: NodeClaim = serde_json::from_value(serde_json::json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": { "name": name, "uid": name, "creationTimestamp": at(minutes).to_string() },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [],
            },
        }))
        .unwrap();
        let now = at(minutes);
        let end = End { claim: &claim, cause: EndCause::Encryption, code: "Client.Error", text: "it ended", now };
        EarlyEnds::with(before, &end, pool, None, joined.map(at))
    }

    #[test]
    fn three_in_a_row_open_the_breaker_and_each_further_one_doubles_the_wait() {
        let pool = testing::pool_with_budgets(serde_json::json!([]));
        let one = with(None, "a", &pool, None, 0);
        let again = with(Some(one.clone()), "a", &pool, None, 1);
        assert_eq!(again.count, 1, "the process ended between two notes");
        assert_eq!(one.text(), "1 instance ended before its node joined (a): it ended");
        let three = with(Some(with(Some(one), "b", &pool, None, 1)), "c", &pool, None, 2);
        assert_eq!((three.breaker(at(3)), three.next()), (Breaker::Open(at(7)), Some(at(7))));
        assert_eq!(three.breaker(at(7)), Breaker::OneAlone);
        let four = with(Some(three.clone()), "d", &pool, None, 8);
        assert_eq!(four.next(), Some(at(18)));
        assert_eq!(
            four.text(),
            "4 instances in a row ended before their nodes joined (b, c, d and 1 before): it ended"
        );
        let made_before_the_pause = with(Some(three), "e", &pool, None, 2);
        assert_eq!(made_before_the_pause.next(), Some(at(7)));
        let read: EarlyEnds = serde_json::from_str(&four.to_annotation()).unwrap();
        assert_eq!(read, four);
    }

    #[test]
    fn one_that_joins_another_template_and_time_begin_anew() {
        let pool = testing::pool_with_budgets(serde_json::json!([]));
        let two = with(Some(with(None, "a", &pool, None, 0)), "b", &pool, None, 1);
        let mut other = pool.clone();
        other.spec.template.spec.termination_grace_period = Some("1h".parse().unwrap());
        assert!(two.are_in_row(&pool, None, Some(at(0)), at(30)));
        assert!(!two.are_in_row(&pool, None, Some(at(2)), at(30)), "one joined");
        assert!(!two.are_in_row(&other, None, None, at(30)), "it is another template");
        assert!(!two.are_in_row(&pool, None, None, at(61)), "that was long ago");
        assert_eq!(with(Some(two), "c", &pool, Some(2), 30).count, 1);
    }
}
