//! What goes wrong again and again: tried more and more seldom, and said once and not in each round.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::ports::pull_requests::PullRequest;

/// Failures of one pull request that are followed by another try in the next round: what passes by itself passed by then.
const AT_ONCE: u32 = 2;
/// Before the try after those; twice as long each time.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// As often as one is planned again of which nothing changed: permissions are rarely given within minutes, and each try plans, and asks the
/// forge, which limits how often.
const PAUSE_MAX: SignedDuration = SignedDuration::from_mins(15);
/// The same is said again after so long, so that it is in what people read of a log.
const SAID_AGAIN_AFTER: SignedDuration = SignedDuration::from_mins(15);
/// Things of which it is known what was said; of more, some are said more often.
const SAID_MAX: usize = 500;

/// Pull requests that could not be posted, by number.
#[derive(Default)]
pub struct PutOff(BTreeMap<u64, Failed>);

struct Failed {
    head: String,
    base: String,
    updated: String,
    times: u32,
    last: Timestamp,
}

impl PutOff {
    /// Whether it is too soon for another try. A push, a base that moved, and what people write are something new.
    pub fn waits(&self, pull_request: &PullRequest, base: &str, now: Timestamp) -> bool {
        let failed = self.0.get(&pull_request.number);
        failed.filter(|it| it.is_of(pull_request, base)).is_some_and(|it| now.duration_since(it.last) < it.pause())
    }

    /// Notes how a try ended.
    pub fn note(&mut self, pull_request: &PullRequest, base: &str, is_done: bool, now: Timestamp) {
        if is_done {
            self.forget(pull_request.number);
            return;
        }
        let before =
            self.0.get(&pull_request.number).filter(|it| it.is_of(pull_request, base)).map_or(0, |it| it.times);
        let PullRequest { head, updated, .. } = pull_request.clone();
        let failed = Failed { head, base: base.to_owned(), updated, times: before.saturating_add(1), last: now };
        self.0.insert(pull_request.number, failed);
    }

    pub fn forget(&mut self, number: u64) {
        self.0.remove(&number);
    }
}

impl Failed {
    fn is_of(&self, pull_request: &PullRequest, base: &str) -> bool {
        self.head == pull_request.head && self.base == base && self.updated == pull_request.updated
    }

    fn pause(&self) -> SignedDuration {
        let Some(further) = self.times.checked_sub(AT_ONCE + 1) else { return SignedDuration::ZERO };
        let factor = 1_i32.checked_shl(further).filter(|it| *it > 0).unwrap_or(i32::MAX);
        FIRST_PAUSE.checked_mul(factor).unwrap_or(PAUSE_MAX).min(PAUSE_MAX)
    }
}

/// What was said of each thing, and when.
#[derive(Default)]
pub struct Said(Mutex<BTreeMap<String, (String, Timestamp)>>);

impl Said {
    /// Whether it was not said lately that this went wrong for this reason. Then it is taken for said.
    pub fn is_news(&self, what: &str, why: &str, now: Timestamp) -> bool {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known =
            said.get(what).is_some_and(|(before, at)| before == why && now.duration_since(*at) < SAID_AGAIN_AFTER);
        if is_known {
            return false;
        }
        if said.len() >= SAID_MAX && !said.contains_key(what) {
            said.pop_first();
        }
        said.insert(what.to_owned(), (why.to_owned(), now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(head: &str) -> PullRequest {
        PullRequest { number: 7, head: head.to_owned(), ..PullRequest::default() }
    }

    #[test]
    fn what_fails_again_is_tried_less_and_less_often() {
        let mut put_off = PutOff::default();
        let begin = Timestamp::UNIX_EPOCH;
        let pauses: Vec<i64> = (0..9)
            .map(|_| {
                put_off.note(&at("a"), "b", false, begin);
                let waits = |seconds: &i64| put_off.waits(&at("a"), "b", begin + SignedDuration::from_secs(*seconds));
                (0..2_000).find(|seconds| !waits(seconds)).unwrap()
            })
            .collect();
        assert_eq!(pauses, [0, 0, 30, 60, 120, 240, 480, 900, 900]);
        assert!(!put_off.waits(&at("pushed"), "b", begin) && !put_off.waits(&at("a"), "moved", begin));
        let commented = PullRequest { updated: "later".to_owned(), ..at("a") };
        assert!(!put_off.waits(&commented, "b", begin));
        put_off.note(&at("a"), "b", true, begin);
        assert!(!put_off.waits(&at("a"), "b", begin));
    }

    #[test]
    fn the_same_is_said_once_in_a_while() {
        let said = Said::default();
        let begin = Timestamp::UNIX_EPOCH;
        assert!(said.is_news("a comment", "403", begin) && !said.is_news("a comment", "403", begin));
        assert!(said.is_news("another comment", "403", begin) && said.is_news("a comment", "502", begin));
        assert!(said.is_news("a comment", "502", begin + SAID_AGAIN_AFTER));
    }
}
