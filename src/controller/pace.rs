//! How often the controller looks. A look costs reading everything, and what it finds to do costs calls, so looks that follow each other
//! without end would be a storm of calls, whatever mistake makes them do so. Here is a limit to that, for mistakes that nobody knows of.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::ports::{PortError, PortErrorKind, is_to_come};

/// How often disruption is looked for when nothing happens.
pub const POLL: SignedDuration = SignedDuration::from_secs(10);
/// How often, while moves are under way, it is searched for more than nodes that can simply go.
pub const SEARCH_UNDER_WAY: SignedDuration = SignedDuration::from_mins(1);
/// A look that nothing but time asks for is later than the one that asked for it, or time would never pass.
pub const PAUSE_MIN: SignedDuration = SignedDuration::from_millis(1);
/// How long a failed call is left alone at first. It doubles, since most of what fails twice fails again.
pub const RETRY: SignedDuration = SignedDuration::from_secs(1);
/// How long that gets where the answer was that it can not be done, which only somebody's change makes better.
pub const RETRY_REFUSED_MAX: SignedDuration = SignedDuration::from_mins(5);
/// How often trouble that goes on is said.
pub const TROUBLE_SAID_AGAIN: SignedDuration = SignedDuration::from_mins(1);
/// How many different troubles are said in that time.
const TROUBLES_MAX: usize = 30;
/// How old the catalog may get.
pub const CATALOG_AGE: SignedDuration = SignedDuration::from_secs(60);

/// So many looks may follow each other at once: each write wakes another one, and a fleet comes up in a few dozen.
const BURST: i32 = 200;
/// In the long run there is one look in this time.
const INTERVAL: SignedDuration = SignedDuration::from_millis(50);

/// Counts looks. At most `BURST + t / INTERVAL` of them begin within a time `t`.
#[derive(Debug, Default)]
pub struct Pace {
    /// Until when the looks so far would have taken, one in each interval.
    taken_until: Option<Timestamp>,
    /// Since when the limit holds looks up.
    limited_since: Option<Timestamp>,
    /// When the last look began.
    looked_at: Option<Timestamp>,
}

impl Pace {
    /// A look begins.
    pub fn look(&mut self, now: Timestamp) {
        let burst = INTERVAL.saturating_mul(BURST);
        // Where a clock was set back, what was counted by it counts no more.
        let known = self.taken_until.filter(|until| until.duration_since(now) <= burst.saturating_add(INTERVAL));
        let from = known.map_or(now, |until| until.max(now));
        self.taken_until = from.checked_add(INTERVAL).ok();
        self.looked_at = Some(now);
        let is_limited = self.pause(now).is_positive();
        self.limited_since =
            self.limited_since.filter(|since| is_limited && *since <= now).or(is_limited.then_some(now));
    }

    /// Whether the clock was set back since the last look began: what was noted by it may be a moment to come, maybe for weeks.
    pub fn was_set_back(&self, now: Timestamp) -> bool {
        self.looked_at.is_some_and(|looked_at| is_to_come(looked_at, now))
    }

    /// How long the next look has to wait. No longer than looks can be ahead by one clock, since it may have been set back meanwhile.
    pub fn pause(&self, now: Timestamp) -> SignedDuration {
        let burst = INTERVAL.saturating_mul(BURST);
        let ahead = self.taken_until.map_or(SignedDuration::ZERO, |until| until.duration_since(now));
        ahead.saturating_sub(burst).max(SignedDuration::ZERO).min(INTERVAL.saturating_mul(2))
    }

    /// How long to wait for a moment that the last look chose. No longer than it was away then, since the clock may have been set back
    /// meanwhile.
    pub fn wait_for(&self, moment: Timestamp, now: Timestamp) -> SignedDuration {
        let now = self.looked_at.map_or(now, |looked_at| looked_at.max(now));
        moment.duration_since(now).max(PAUSE_MIN)
    }

    /// Since when each look had to wait for the one before.
    pub fn limited_since(&self) -> Option<Timestamp> {
        self.limited_since
    }
}

/// What failed lately.
#[derive(Debug)]
pub struct Troubles {
    /// When each was said.
    said: BTreeMap<String, Timestamp>,
    /// Whether something failed for one object or another in this look.
    pub some_failed: bool,
    /// How long a look that failed, or of which some did, is left alone.
    pub look_again_in: SignedDuration,
}

impl Default for Troubles {
    fn default() -> Self {
        Self { said: BTreeMap::new(), some_failed: false, look_again_in: RETRY }
    }
}

impl Troubles {
    /// Whether a trouble is to be said now; it then counts as said.
    pub fn is_news(&mut self, error: &str, now: Timestamp) -> bool {
        self.said.retain(|_, said_at| now.duration_since(*said_at) < TROUBLE_SAID_AGAIN);
        let is_news = !self.said.contains_key(error) && self.said.len() < TROUBLES_MAX;
        if is_news {
            self.said.insert(error.to_owned(), now);
        }
        is_news
    }

    /// When to look again after this failure; after the next one later.
    pub fn look_again_at(&mut self, error: &PortError, now: Timestamp) -> Option<Timestamp> {
        let again_at = now.saturating_add(self.look_again_in).ok();
        self.look_again_in = longer(self.look_again_in, error);
        again_at
    }

    /// Forgets what was said, and when.
    pub fn forget(&mut self) {
        self.said.clear();
    }
}

/// How long is waited after another failure.
pub fn longer(wait: SignedDuration, error: &PortError) -> SignedDuration {
    let longest = match error.kind {
        PortErrorKind::Permanent | PortErrorKind::Denied | PortErrorKind::Refused | PortErrorKind::Conflict => {
            RETRY_REFUSED_MAX
        }
        _ => POLL,
    };
    wait.saturating_mul(2).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(1_795_165_200_000 + millisecond).unwrap()
    }

    /// How many looks begin before `end`, when each is followed by another `apart` later, or when it may.
    fn looks(pace: &mut Pace, apart: i64, end: i64) -> usize {
        let (mut now, mut count) = (0, 0);
        while now < end {
            pace.look(at(now));
            count += 1;
            now += i64::try_from(pace.pause(at(now)).as_millis()).unwrap().max(apart);
        }
        count
    }

    #[test]
    fn looks_without_end_are_as_many_as_time_passes() {
        let mut pace = Pace::default();
        assert_eq!(looks(&mut pace, 0, 60_000), 200 + 1_200);
        assert!(pace.limited_since().is_some_and(|since| since < at(1_000)));
    }

    #[test]
    fn looks_now_and_then_wait_for_nothing() {
        let mut pace = Pace::default();
        assert_eq!(looks(&mut pace, 60, 60_000), 1_000);
        assert_eq!(pace.limited_since(), None);
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up() {
        let mut pace = Pace::default();
        pace.look(at(3_600_000));
        pace.look(at(0));
        assert_eq!((pace.pause(at(0)), pace.limited_since()), (SignedDuration::ZERO, None));
    }

    #[test]
    fn a_clock_that_is_set_back_after_a_look_makes_nothing_wait_longer() {
        let mut pace = Pace::default();
        pace.look(at(3_600_000));
        assert!(pace.pause(at(0)) <= SignedDuration::from_millis(100), "{:?}", pace.pause(at(0)));
        assert_eq!(pace.wait_for(at(3_610_000), at(0)), SignedDuration::from_secs(10));
        assert_eq!(pace.wait_for(at(3_610_000), at(3_604_000)), SignedDuration::from_secs(6));
        assert_eq!(pace.wait_for(at(3_590_000), at(3_600_000)), PAUSE_MIN);
        assert!(pace.was_set_back(at(0)) && !pace.was_set_back(at(3_595_000)) && !pace.was_set_back(at(9_000_000)));
    }
}
