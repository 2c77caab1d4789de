//! What EC2 had none of lately: remembered by offering for all pools, with a wait that doubles each time it is tried in vain. So nobody
//! runs into the same shortage every three minutes, and a plan can say what was tried and when it will be again.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::resolution::known::whole_seconds;
use crate::core::catalog::{self, Catalog};
use crate::ports::{Offering, is_to_come};

/// After the first shortage; the reference's only wait.
const FIRST_WAIT: SignedDuration = SignedDuration::from_mins(3);
const WAIT_MAX: SignedDuration = SignedDuration::from_hours(1);
/// Without another failure for so long after its wait, the next one is a first one again.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(2);
/// All offerings of a region are some 8,000. What is dropped is the one that is over soonest.
const REMEMBERED_MAX: usize = 10_000;

/// Who asked remembers a refusal itself for so long, and says it.
const SAID_BY_OTHERS: SignedDuration = SignedDuration::from_mins(3);
/// Of more it is only said how many there are.
const SAID_MAX: usize = 20;

/// What there was none of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scarce {
    /// One type in one zone, paid in one way.
    Offering(Offering),
    /// All of a capacity type: the account may have no spot instances.
    CapacityType(String),
    /// All types under a quota of the account, by its code: `L-1216C47A`.
    Quota(String),
    /// A placement group takes no more in a zone.
    PlacementGroup { group: String, zone: String },
    /// A capacity reservation.
    Reservation(String),
}

impl std::fmt::Display for Scarce {
    /// `m5.large/us-east-1b spot`
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Offering(Offering { instance_type, zone, capacity_type }) => {
                write!(formatter, "{instance_type}/{zone} {capacity_type}")
            }
            Self::CapacityType(capacity_type) => write!(formatter, "all {capacity_type}"),
            Self::Quota(code) => write!(formatter, "quota {code}"),
            Self::PlacementGroup { group, zone } => write!(formatter, "placement group {group}/{zone}"),
            Self::Reservation(id) => write!(formatter, "reservation {id}"),
        }
    }
}

/// One shortage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// EC2's word: `InsufficientInstanceCapacity`.
    pub code: String,
    /// When it was met last.
    pub at: Timestamp,
    /// From when on it may be tried again.
    pub retry_at: Timestamp,
    /// In a row.
    pub failures: u32,
}

impl Shortage {
    /// Whether it is not tried now. What a clock noted that was set back since would be waited for as long as that went back.
    fn is_waited_for(&self, now: Timestamp) -> bool {
        now < self.retry_at && !is_to_come(self.at, now)
    }
}

/// The memory of all shortages.
#[derive(Debug, Default)]
pub struct Shortages {
    met: BTreeMap<Scarce, Shortage>,
    dropped: u64,
}

impl Shortages {
    /// There was none. A failure before the wait is over is of a launch that was under way, and does not make it longer.
    pub fn met(&mut self, what: Scarce, code: &str, now: Timestamp) {
        let before = self.met.get(&what);
        let failures = match before {
            Some(before) if before.is_waited_for(now) => before.failures,
            Some(before) if is_remembered(before, now) => before.failures.saturating_add(1),
            Some(_) | None => 1,
        };
        let wait = FIRST_WAIT.saturating_mul(1 << (failures.saturating_sub(1)).min(10)).min(WAIT_MAX);
        let retry_at = match before {
            Some(before) if before.is_waited_for(now) => before.retry_at,
            Some(_) | None => now.saturating_add(wait).unwrap_or(now),
        };
        self.met.insert(what, Shortage { code: code.to_owned(), at: now, retry_at, failures });
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.met.len() > REMEMBERED_MAX {
            let soonest = self.met.iter().min_by_key(|(_, shortage)| shortage.retry_at).map(|(what, _)| what.clone());
            let Some(soonest) = soonest else { return };
            self.met.remove(&soonest);
            self.dropped += 1;
        }
    }

    /// It was launched: there is some again.
    pub fn launched(&mut self, what: &Scarce) {
        self.met.remove(what);
    }

    /// The shortage for which an offering is not tried now; also that of its capacity type or of its quota.
    pub fn of_offering(&self, offering: &Offering, quota: Option<&str>, now: Timestamp) -> Option<&Shortage> {
        let of_quota = || self.of(&Scarce::Quota(quota?.to_owned()), now);
        let of_capacity_type = || self.of(&Scarce::CapacityType(offering.capacity_type.clone()), now);
        self.of(&Scarce::Offering(offering.clone()), now).or_else(of_capacity_type).or_else(of_quota)
    }

    /// The shortage for which it is not tried now.
    pub fn of(&self, what: &Scarce, now: Timestamp) -> Option<&Shortage> {
        self.met.get(what).filter(|shortage| shortage.is_waited_for(now))
    }

    /// Takes what is not to be tried now off the market. `true` when that changed anything. `quota_of`: the code of the quota that a
    /// type in a capacity type counts against.
    pub fn apply<'q>(
        &self,
        catalog: &mut Catalog,
        quota_of: impl Fn(&str, &str) -> Option<&'q str>,
        now: Timestamp,
    ) -> bool {
        let mut changed = false;
        if self.lately(now).next().is_none() {
            return changed;
        }
        for instance_type in &mut catalog.instance_types {
            let name = instance_type.name.clone();
            let is_out = |sold: &catalog::Offering| {
                let of_reservation = sold.reservation_id.as_ref().map(|id| Scarce::Reservation(id.clone()));
                let offering = Offering {
                    instance_type: name.clone(),
                    zone: sold.zone.clone(),
                    capacity_type: sold.capacity_type.clone(),
                };
                let quota = quota_of(&name, &sold.capacity_type);
                self.of_offering(&offering, quota, now).is_some()
                    || of_reservation.is_some_and(|what| self.of(&what, now).is_some())
            };
            // A shared list is only copied where it changes.
            if !instance_type.offerings.iter().any(|offering| offering.available && is_out(offering)) {
                continue;
            }
            for offering in &mut instance_type.offerings {
                offering.available &= !is_out(offering);
            }
            changed = true;
        }
        changed
    }

    /// What is waited for at this moment, in order.
    pub fn lately(&self, now: Timestamp) -> impl Iterator<Item = (&Scarce, &Shortage)> {
        self.met.iter().filter(move |(_, shortage)| shortage.is_waited_for(now))
    }

    /// The same in words, for a plan: what was short a while ago, and when it is tried again. They stay as long as it is so.
    pub fn texts(&self, now: Timestamp) -> Vec<String> {
        let text = |(what, shortage): (&Scarce, &Shortage)| {
            let Shortage { code, at, retry_at, failures } = shortage;
            let times = if *failures > 1 { format!(", {failures} times in a row") } else { String::new() };
            let (at, retry_at) = (whole_seconds(*at), whole_seconds(*retry_at));
            format!("EC2 had none of {what} at {at} ({code}{times}); it is tried again at {retry_at}")
        };
        let is_old = |(_, shortage): &(&Scarce, &Shortage)| now.duration_since(shortage.at) >= SAID_BY_OTHERS;
        let mut texts: Vec<String> = self.lately(now).filter(is_old).map(text).collect();
        let more = texts.len().saturating_sub(SAID_MAX);
        if more > 0 {
            texts.truncate(SAID_MAX);
            texts.push(format!("EC2 had none of {more} more, which are tried again within an hour"));
        }
        texts
    }

    /// When the next of them may be tried again: until then [`Shortages::apply`] says the same.
    pub fn next_retry(&self, now: Timestamp) -> Option<Timestamp> {
        self.lately(now).map(|(_, shortage)| shortage.retry_at).min()
    }

    /// Forgets what is long over.
    pub fn sweep(&mut self, now: Timestamp) {
        self.met.retain(|_, shortage| is_remembered(shortage, now));
    }

    /// How many were dropped because there were too many.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

fn is_remembered(shortage: &Shortage, now: Timestamp) -> bool {
    now.duration_since(shortage.retry_at) < FORGOTTEN_AFTER && !is_to_come(shortage.at, now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::keys;
    use crate::core::catalog::InstanceType;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + minute * 60).unwrap()
    }

    fn offering(instance_type: &str) -> Scarce {
        Scarce::Offering(Offering {
            instance_type: instance_type.to_owned(),
            zone: "us-east-1a".to_owned(),
            capacity_type: keys::SPOT.to_owned(),
        })
    }

    const CODE: &str = "InsufficientInstanceCapacity";

    #[test]
    fn the_wait_doubles_up_to_an_hour() {
        let mut shortages = Shortages::default();
        let mut now = at(0);
        let mut waits = Vec::new();
        for _ in 0..7 {
            shortages.met(offering("m5.large"), CODE, now);
            let shortage = shortages.of(&offering("m5.large"), now).unwrap();
            waits.push(shortage.retry_at.duration_since(now).as_mins());
            now = shortage.retry_at;
        }
        assert_eq!(waits, [3, 6, 12, 24, 48, 60, 60]);
    }

    #[test]
    fn a_plan_says_what_is_not_tried() {
        let mut shortages = Shortages::default();
        shortages.met(offering("m5.large"), CODE, at(0));
        assert_eq!(shortages.texts(at(1)), [""; 0], "who asked says it");
        shortages.met(offering("m5.large"), CODE, at(3));
        assert_eq!(
            shortages.texts(at(6)),
            [
                "EC2 had none of m5.large/us-east-1a spot at 2026-09-21T14:16:20Z (InsufficientInstanceCapacity, 2 times in a row); it is \
              tried again at 2026-09-21T14:22:20Z"
            ]
        );
        assert_eq!(shortages.texts(at(6)), shortages.texts(at(8)), "in the same words");
        assert_eq!(shortages.texts(at(9)), [""; 0]);
        for turn in [0, 3] {
            (0..30).for_each(|number| shortages.met(offering(&format!("type-{number}")), CODE, at(20 + turn)));
        }
        let texts = shortages.texts(at(26));
        assert!(texts.len() == 21 && texts[20].contains("10 more"), "{texts:?}");
    }

    #[test]
    fn failures_of_launches_under_way_are_one() {
        let mut shortages = Shortages::default();
        (0..50).for_each(|_| shortages.met(offering("m5.large"), CODE, at(0)));
        let shortage = shortages.of(&offering("m5.large"), at(1)).unwrap();
        assert_eq!((shortage.failures, shortage.retry_at), (1, at(3)));
        assert_eq!(shortages.of(&offering("m5.large"), at(3)), None);
    }

    #[test]
    fn success_and_time_begin_anew() {
        let mut shortages = Shortages::default();
        shortages.met(offering("m5.large"), CODE, at(0));
        shortages.launched(&offering("m5.large"));
        shortages.met(offering("m5.large"), CODE, at(4));
        assert_eq!(shortages.of(&offering("m5.large"), at(4)).unwrap().failures, 1);
        shortages.met(offering("m5.large"), CODE, at(7 + 120));
        assert_eq!(shortages.of(&offering("m5.large"), at(7 + 120)).unwrap().failures, 1);
        shortages.sweep(at(10_000));
        assert!(shortages.met.is_empty());
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nobody_wait() {
        let mut shortages = Shortages::default();
        shortages.met(offering("m5.large"), CODE, at(3600));
        assert!(shortages.of(&offering("m5.large"), at(3600)).is_some());
        assert_eq!(shortages.of(&offering("m5.large"), at(0)), None);
        assert_eq!((shortages.next_retry(at(0)), shortages.texts(at(0)).len()), (None, 0));
        shortages.met(offering("m5.large"), CODE, at(0));
        let shortage = shortages.of(&offering("m5.large"), at(1)).unwrap();
        assert_eq!((shortage.failures, shortage.retry_at), (1, at(3)));
        shortages.met(offering("c5.large"), CODE, at(3600));
        shortages.sweep(at(0));
        assert_eq!(shortages.met.len(), 1);
    }

    #[test]
    fn what_is_short_is_not_for_sale() {
        let mut shortages = Shortages::default();
        let before = Catalog::built_in("us-east-1").unwrap();
        let mut catalog = before.clone();
        let quota = |name: &str, _: &str| name.starts_with('p').then_some("L-417A185B");
        assert!(!shortages.apply(&mut catalog, quota, at(0)) && catalog == before);
        shortages.met(offering("m5.large"), CODE, at(0));
        assert!(shortages.apply(&mut catalog, quota, at(1)));
        // What went off the market: some has no price, and never was on it.
        let unavailable = |catalog: &Catalog| -> Vec<(String, String, String)> {
            let types = catalog.instance_types.iter().zip(&before.instance_types);
            let of_type = |(it, was): (&InstanceType, &InstanceType)| {
                let pairs = it.offerings.iter().zip(was.offerings.iter());
                let gone = pairs.filter(|(one, was)| was.available && !one.available);
                gone.map(|(one, _)| (it.name.clone(), one.zone.clone(), one.capacity_type.clone())).collect::<Vec<_>>()
            };
            types.flat_map(of_type).collect()
        };
        let one = ("m5.large".to_owned(), "us-east-1a".to_owned(), "spot".to_owned());
        assert_eq!(unavailable(&catalog), [one]);
        shortages.met(Scarce::CapacityType(keys::SPOT.to_owned()), "MaxSpotInstanceCountExceeded", at(0));
        let mut catalog = before.clone();
        shortages.apply(&mut catalog, quota, at(1));
        let of_spot = before.instance_types.iter().flat_map(|it| it.offerings.iter());
        let of_spot = of_spot.filter(|one| one.available && one.capacity_type == keys::SPOT).count();
        assert_eq!(unavailable(&catalog).len(), of_spot);
        assert_eq!(shortages.next_retry(at(1)), Some(at(3)));
        shortages.met(Scarce::Quota("L-417A185B".to_owned()), "VcpuLimitExceeded", at(3));
        let mut catalog = before.clone();
        shortages.apply(&mut catalog, quota, at(4));
        assert!(
            !unavailable(&catalog).is_empty() && unavailable(&catalog).iter().all(|(name, ..)| name.starts_with('p'))
        );
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_what_lasts_longest() {
        let mut shortages = Shortages::default();
        shortages.met(offering("first"), CODE, at(-1));
        (0..REMEMBERED_MAX).for_each(|number| shortages.met(offering(&format!("type-{number}")), CODE, at(0)));
        assert_eq!((shortages.met.len(), shortages.dropped()), (REMEMBERED_MAX, 1));
        assert_eq!(shortages.of(&offering("first"), at(0)), None);
    }
}
