//! Time of the embedded world: tokio's clock, counted from a fixed moment.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::ports::Clock;

/// A fixed epoch plus what has passed on tokio's clock, which may be paused.
#[derive(Clone, Debug)]
pub struct EmbeddedClock {
    started: Instant,
    epoch: Timestamp,
}

impl EmbeddedClock {
    #[expect(clippy::disallowed_methods, reason = "this adapter is the clock")]
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { started: Instant::now(), epoch }
    }

    /// The moment on tokio's clock at which this one shows `moment`; for sleeping until then.
    pub fn instant_of(&self, moment: Timestamp) -> Instant {
        let passed = moment.duration_since(self.epoch);
        self.started + std::time::Duration::try_from(passed).unwrap_or_default()
    }
}

impl Clock for EmbeddedClock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }
}
