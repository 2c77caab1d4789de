//! The time by the API server's clock, by which all times in the cluster are written. The clock of this machine may be wrong, or be set:
//! between two answers of the server time passes as it is measured here, whatever any clock shows.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

use crate::ports::Clock;

/// Answers say seconds, and take a moment to come: a smaller difference is none.
const AGREES: SignedDuration = SignedDuration::from_millis(2500);
/// In the middle of the second that was said.
const HALF_A_SECOND: SignedDuration = SignedDuration::from_millis(500);

/// Cheap to clone; clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct ServerTime(Arc<Mutex<Option<TimeSaid>>>);

#[derive(Clone, Copy, Debug)]
struct TimeSaid {
    time: Timestamp,
    at: Instant,
}

impl TimeSaid {
    fn time_at(self, at: Instant) -> Timestamp {
        let passed = SignedDuration::try_from(at.saturating_duration_since(self.at)).unwrap_or(SignedDuration::MAX);
        self.time.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }
}

impl ServerTime {
    /// The header `Date` of an answer that came now.
    pub fn hear(&self, date: &str) {
        self.hear_at(date, instant());
    }

    fn hear_at(&self, date: &str, at: Instant) {
        let Ok(said) = DateTimeParser::new().parse_timestamp(date) else { return };
        let said = said.saturating_add(HALF_A_SECOND).unwrap_or(Timestamp::MAX);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let agrees = known.is_some_and(|known| known.time_at(at).duration_since(said).abs() < AGREES);
        if !agrees {
            *known = Some(TimeSaid { time: said, at });
        }
    }

    fn time_at(&self, at: Instant, here: impl FnOnce() -> Timestamp) -> Timestamp {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.map_or_else(here, |known| known.time_at(at))
    }
}

impl Clock for ServerTime {
    /// By the clock of this machine until the server has said something.
    fn now(&self) -> Timestamp {
        self.time_at(instant(), here)
    }
}

#[expect(clippy::disallowed_methods, reason = "this adapter is a clock")]
fn instant() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "this adapter is a clock")]
fn here() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The clock of the machine is five hours ahead, then a month behind: nobody asks it.
    #[test]
    fn time_is_the_servers_and_passes_by_itself() {
        let (time, begin) = (ServerTime::default(), instant());
        let after = |seconds: u64| begin + Duration::from_secs(seconds);
        let wrong = || at("2026-11-20T14:00:00Z");
        assert_eq!(time.time_at(begin, wrong), wrong());
        time.hear_at("Fri, 20 Nov 2026 09:00:00 GMT", begin);
        assert_eq!(time.time_at(after(60), wrong), at("2026-11-20T09:01:00.5Z"));
        // What is said to the second does not make time go to and fro.
        time.hear_at("Fri, 20 Nov 2026 09:01:59 GMT", after(120));
        assert_eq!(time.time_at(after(120), wrong), at("2026-11-20T09:02:00.5Z"));
        // The server's own clock was set, or this machine slept.
        time.hear_at("Fri, 20 Nov 2026 11:00:00 GMT", after(180));
        assert_eq!(time.time_at(after(181), wrong), at("2026-11-20T11:00:01.5Z"));
        time.hear_at("yesterday", after(182));
        assert_eq!(time.time_at(after(182), wrong), at("2026-11-20T11:00:02.5Z"));
    }
}
