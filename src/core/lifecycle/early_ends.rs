//! Instances that end before their nodes join: noted on their pool, so that a restart knows of them, and the breaker that this is.
//!
//! Whatever ends the first ones will mostly end the next: a key that may not be used, a quota, user data that shuts the machine down. After
//! three in a row none of the pool is launched for a while, then one alone. The wait doubles with each that ends, too; a node of the pool that
//! joins, or another template, ends it. What EC2 had too little of says nothing about the pool and is not counted here.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::core::inputs::Inputs;
use crate::core::plan::{EndCause, EndedInstances, Note, NoteCode};

use super::conditions::{REGISTERED, transition};
use super::expiry::is_of_other_template;
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
/// More names than these nobody reads.
const NAMES_SHOWN: usize = 3;

/// Instances in a row, of one template, that ended before their nodes joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EarlyEnds {
    /// Of the pool and its class.
    template_hash: String,
    /// The last of them, oldest first.
    node_claims: Vec<Ended>,
    count: u32,
    cause: EndCause,
    code: String,
    because: String,
    /// When the last of them was noted.
    last: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<Pause>,
}

/// One of them. Names come again, UIDs do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ended {
    name: String,
    uid: String,
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
        let uid = metadata.uid.as_deref().unwrap_or_default();
        if ends.node_claims.iter().any(|known| known.uid == uid) {
            return ends;
        }
        ends.node_claims.push(Ended { name: metadata.name.clone().unwrap_or_default(), uid: uid.to_owned() });
        let surplus = ends.node_claims.len().saturating_sub(REMEMBERED_CLAIMS);
        ends.node_claims.drain(..surplus);
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
        is_fresh && joined.is_none_or(|joined| joined <= self.last) && self.template_hash == template_hash(pool, class)
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
        let note =
            Note { code: NoteCode::InstancesEndedEarly, text: format!("NodePool {name}: {}; {then}", ends.text()) };
        Some((ends.for_plan(name), note))
    });
    of_pools.unzip()
}

/// How people end the wait.
fn lifted() -> String {
    format!("a change of its template or class, or the removal of its annotation {}, ends that", keys::EARLY_ENDS)
}
