//! Token buckets below EC2's own, one for each action: it is better to wait here than to be refused, since a refused call costs a token,
//! too, and the account's other users share the bucket.
//!
//! Figures: `https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html`, of which four fifths are taken, unless it is said. A refusal all the same
//! says that others call as well: the rate is halved, and recovers.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::api::Action;
use crate::ports::is_to_come;

/// A token in the unit of the buckets: so a rate in thousandths a second fills whole units each millisecond.
const TOKEN: u64 = 1_000_000;
/// The rate of a bucket is never below this part of the full one.
const SLOWEST_DIVISOR: u64 = 16;
/// After so long without a refusal the rate doubles, up to the full one.
const RECOVERY: SignedDuration = SignedDuration::from_secs(30);

/// How much fits into a bucket, and how fast it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    tokens: u64,
    /// Thousandths of a token in a second.
    refill: u64,
}

/// What is counted of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Calls,
    /// Instances that it launches or ends.
    Resources,
}

impl Limit {
    const fn of(tokens: u64, refill: u64) -> Self {
        Self { tokens, refill }
    }

    /// Four fifths of what EC2 allows; `None`: not known to be limited.
    fn of_action(action: Action, counted: Counted) -> Option<Self> {
        match (action, counted) {
            // 1,000 and 2 a second; 1,000 and 20 a second. Launches may take all that EC2 gives at once, or a plan of 1,000 nodes would wait
            // two minutes for the last of them: what others took meanwhile is refused, and asked for again.
            (Action::CreateFleet, Counted::Resources) => Some(Self::of(1_000, 1_600)),
            (Action::TerminateInstances, Counted::Resources) => Some(Self::of(800, 16_000)),
            (_, Counted::Resources) => None,
            // 5 and 2 a second, as for RunInstances.
            (Action::CreateFleet | Action::RunInstances, Counted::Calls) => Some(Self::of(4, 1_600)),
            (Action::CreateLaunchTemplate | Action::DeleteLaunchTemplate, Counted::Calls) => Some(Self::of(40, 4_000)),
            (Action::CreateTags | Action::TerminateInstances, Counted::Calls) => Some(Self::of(80, 4_000)),
            (Action::DescribeSpotPriceHistory, Counted::Calls) => Some(Self::of(80, 8_000)),
            (action, Counted::Calls) => match action.service() {
                "ec2" => Some(Self::of(80, 16_000)),
                // Neither service says its figures; 40 a second have been seen of the one, and IAM is slow to show things anyway.
                "ssm" => Some(Self::of(20, 10_000)),
                "iam" => Some(Self::of(10, 4_000)),
                _ => None,
            },
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// In millionths.
    level: u64,
    filled_at: Timestamp,
    /// The rate is the full one divided by this.
    divisor: u64,
    /// When it was refused last, or recovered by half.
    changed_at: Timestamp,
    limit: Limit,
}

impl Bucket {
    fn full(limit: Limit, now: Timestamp) -> Self {
        Self { level: limit.tokens * TOKEN, filled_at: now, divisor: 1, changed_at: now, limit }
    }

    fn rate(&self) -> u64 {
        (self.limit.refill / self.divisor).max(1)
    }

    fn fill(&mut self, now: Timestamp) {
        while self.divisor > 1 && now.duration_since(self.changed_at) >= RECOVERY {
            self.divisor /= 2;
            self.changed_at = self.changed_at.saturating_add(RECOVERY).unwrap_or(now);
        }
        // A clock that goes back fills nothing. One that was set back fills from where it is now, or nothing would be asked for as long.
        if is_to_come(self.filled_at, now) {
            self.filled_at = now;
            self.changed_at = self.changed_at.min(now);
        }
        let elapsed = u64::try_from(now.duration_since(self.filled_at).as_millis()).unwrap_or(0);
        let gained = elapsed.saturating_mul(self.rate());
        self.level = self.level.saturating_add(gained).min(self.limit.tokens * TOKEN);
        self.filled_at = self.filled_at.max(now);
    }

    /// How long until so much is in it. More than fits is there when it is full.
    fn wait(&self, wanted: u64) -> SignedDuration {
        let missing = wanted.min(self.limit.tokens * TOKEN).saturating_sub(self.level);
        let milliseconds = missing.div_ceil(self.rate());
        SignedDuration::from_millis(i64::try_from(milliseconds).unwrap_or(i64::MAX))
    }
}

/// The buckets of one account and region.
#[derive(Debug, Default)]
pub struct Throttle {
    buckets: BTreeMap<(Action, Counted), Bucket>,
    /// Refusals since the start, by action.
    refused: BTreeMap<Action, u64>,
}

impl Throttle {
    /// Takes what a call costs that changes so many instances; or says how long to wait, and takes nothing.
    pub fn take(&mut self, action: Action, resources: u32, now: Timestamp) -> Result<(), SignedDuration> {
        let costs = [(Counted::Calls, TOKEN), (Counted::Resources, u64::from(resources) * TOKEN)];
        let mut wait = SignedDuration::ZERO;
        for (counted, cost) in costs {
            if let Some(bucket) = self.bucket(action, counted, now) {
                bucket.fill(now);
                wait = wait.max(bucket.wait(cost));
            }
        }
        if wait > SignedDuration::ZERO {
            return Err(wait);
        }
        for (counted, cost) in costs {
            if let Some(bucket) = self.bucket(action, counted, now) {
                bucket.level = bucket.level.saturating_sub(cost);
            }
        }
        Ok(())
    }

    /// How many instances a call may change at this moment; `None`: that is not known to be limited.
    pub fn room(&mut self, action: Action, now: Timestamp) -> Option<u32> {
        let bucket = self.bucket(action, Counted::Resources, now)?;
        bucket.fill(now);
        Some(u32::try_from(bucket.level / TOKEN).unwrap_or(u32::MAX))
    }

    /// AWS refused a call for its rate: the bucket there is empty, so it is here, and fills at half the rate. The instances that it was to
    /// change were not counted there.
    pub fn refused(&mut self, action: Action, resources: u32, now: Timestamp) {
        if let Some(bucket) = self.bucket(action, Counted::Resources, now) {
            let level = bucket.level.saturating_add(u64::from(resources) * TOKEN);
            bucket.level = level.min(bucket.limit.tokens * TOKEN);
        }
        *self.refused.entry(action).or_default() += 1;
        if let Some(bucket) = self.bucket(action, Counted::Calls, now) {
            bucket.fill(now);
            bucket.level = 0;
            bucket.divisor = (bucket.divisor * 2).min(SLOWEST_DIVISOR);
            bucket.changed_at = now;
        }
    }

    /// Refusals since the start, by action.
    pub fn refusals(&self) -> &BTreeMap<Action, u64> {
        &self.refused
    }

    fn bucket(&mut self, action: Action, counted: Counted, now: Timestamp) -> Option<&mut Bucket> {
        let limit = Limit::of_action(action, counted)?;
        Some(self.buckets.entry((action, counted)).or_insert_with(|| Bucket::full(limit, now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millisecond: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + millisecond).unwrap()
    }

    /// Calls that go through in so many milliseconds, asking each ten.
    fn calls(throttle: &mut Throttle, action: Action, from: i64, milliseconds: i64) -> usize {
        (from..from + milliseconds).step_by(10).filter(|now| throttle.take(action, 1, at(*now)).is_ok()).count()
    }

    #[test]
    fn it_stays_below_what_ec2_allows() {
        let mut throttle = Throttle::default();
        let done = calls(&mut throttle, Action::CreateFleet, 0, 60_000);
        // EC2: a bucket of 5 and 2 a second.
        assert!((95..=5 + 120).contains(&done), "{done}");
        let described = calls(&mut throttle, Action::DescribeInstances, 0, 10_000);
        assert!((230..=100 + 200).contains(&described), "{described}");
    }

    #[test]
    fn the_wait_is_what_it_takes() {
        let mut throttle = Throttle::default();
        (0..4).for_each(|_| throttle.take(Action::CreateFleet, 1, at(0)).unwrap());
        let wait = throttle.take(Action::CreateFleet, 1, at(0)).unwrap_err();
        assert_eq!(wait, SignedDuration::from_millis(625));
        assert_eq!(throttle.take(Action::CreateFleet, 1, at(624)).unwrap_err(), SignedDuration::from_millis(1));
        assert_eq!(throttle.take(Action::CreateFleet, 1, at(625)), Ok(()));
    }

    #[test]
    fn instances_count_beside_calls() {
        let mut throttle = Throttle::default();
        assert_eq!(throttle.take(Action::CreateFleet, 900, at(0)), Ok(()));
        // 200 of 100 that are left: 100 more at 1.6 a second.
        assert_eq!(throttle.take(Action::CreateFleet, 200, at(0)), Err(SignedDuration::from_millis(62_500)));
        assert_eq!(throttle.take(Action::CreateFleet, 100, at(0)), Ok(()));
        throttle.refused(Action::CreateFleet, 100, at(0));
        assert_eq!(throttle.room(Action::CreateFleet, at(0)), Some(100), "a refused call launched nothing");
        assert_eq!(throttle.room(Action::CreateTags, at(0)), None);
        // More than there ever is goes when the bucket is full.
        assert!(throttle.take(Action::TerminateInstances, 5_000, at(0)).is_ok());
        assert_eq!(throttle.take(Action::TerminateInstances, 5_000, at(0)), Err(SignedDuration::from_secs(50)));
    }

    #[test]
    fn a_refusal_halves_the_rate_for_a_while() {
        let mut throttle = Throttle::default();
        throttle.refused(Action::CreateFleet, 1, at(0));
        assert_eq!(throttle.take(Action::CreateFleet, 1, at(0)), Err(SignedDuration::from_millis(1_250)));
        for second in 0..100 {
            throttle.refused(Action::CreateFleet, 1, at(second * 10));
        }
        let slow = calls(&mut throttle, Action::CreateFleet, 1_000, 29_000);
        assert!((2..=4).contains(&slow), "a sixteenth of 1.6 a second: {slow}");
        let recovered = calls(&mut throttle, Action::CreateFleet, 151_000, 60_000);
        assert!(recovered >= 95, "{recovered}");
        assert_eq!(throttle.refusals()[&Action::CreateFleet], 101);
    }

    #[test]
    fn a_clock_that_goes_back_fills_nothing() {
        let mut throttle = Throttle::default();
        (0..4).for_each(|_| throttle.take(Action::CreateFleet, 1, at(10_000)).unwrap());
        assert!(throttle.take(Action::CreateFleet, 1, at(0)).is_err());
        assert!(throttle.take(Action::CreateFleet, 1, at(10_100)).is_err());
        assert!(throttle.take(Action::CreateFleet, 1, at(10_625)).is_ok());
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up() {
        let mut throttle = Throttle::default();
        (0..4).for_each(|_| throttle.take(Action::CreateFleet, 1, at(3_600_000)).unwrap());
        assert!(throttle.take(Action::CreateFleet, 1, at(0)).is_err());
        assert!(throttle.take(Action::CreateFleet, 1, at(625)).is_ok());
    }
}
