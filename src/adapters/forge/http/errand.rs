//! What requests that belong together know of each other.

use std::collections::VecDeque;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Client;

/// Writes in a minute. GitHub takes 80 that make something, and whoever else uses the account makes some as well.
const WRITES_A_MINUTE: usize = 60;
const MINUTE: Duration = Duration::from_secs(60);

/// What was found out on one errand, such as the posting of one preview: what one request waited for in vain, no other waits for again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errand {
    /// How long requests waited that got nothing by it.
    waited: Duration,
    /// Something was not there, and no push explains it any more.
    is_missed: bool,
    /// How long requests waited for their turn.
    paced: Duration,
}

/// When the last requests were sent that change something, the oldest first: at most [`WRITES_A_MINUTE`].
#[derive(Debug, Default)]
pub(super) struct Writes(VecDeque<Instant>);

impl Writes {
    /// How long the next one has to wait.
    fn wait(&self, now: Instant) -> Duration {
        let oldest = self.0.front().filter(|_| self.0.len() >= WRITES_A_MINUTE);
        oldest.map_or(Duration::ZERO, |oldest| MINUTE.saturating_sub(now.saturating_duration_since(*oldest)))
    }

    fn sent(&mut self, now: Instant) {
        if self.0.len() >= WRITES_A_MINUTE {
            self.0.pop_front();
        }
        self.0.push_back(now);
    }
}

/// Ends the errand when it is dropped.
#[must_use]
pub struct OnErrand<'c>(&'c Client);

impl Drop for OnErrand<'_> {
    fn drop(&mut self) {
        *self.0.errand() = None;
    }
}

impl Client {
    /// All requests until the end of what is given are of one errand.
    pub fn begin_errand(&self) -> OnErrand<'_> {
        *self.errand() = Some(Errand::default());
        OnErrand(self)
    }

    fn errand(&self) -> MutexGuard<'_, Option<Errand>> {
        self.errand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the forge takes another request that changes something, as long as the errand may: whoever sends more at once is
    /// refused for longer. What belongs to no errand is for people who wait.
    #[expect(clippy::disallowed_methods, reason = "what is waited for is measured")]
    pub(super) async fn pace(&self) {
        let wait = self.writes.lock().unwrap_or_else(PoisonError::into_inner).wait(Instant::now());
        let wait = self.turn(wait);
        if !wait.is_zero() {
            tracing::debug!(seconds = wait.as_secs_f64(), "waiting, for the forge takes so many requests in a minute");
            tokio::time::sleep(wait).await;
        }
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).sent(Instant::now());
    }

    /// How much of the wait the errand has time for. A minute is kept for what the forge refuses all the same; of little time, half.
    fn turn(&self, wait: Duration) -> Duration {
        let whole = self.limits.whole;
        let mut errand = self.errand();
        let Some(errand) = errand.as_mut() else { return Duration::ZERO };
        let most = whole.saturating_sub(MINUTE).max(whole / 2);
        let wait = wait.min(most.saturating_sub(errand.paced));
        errand.paced = errand.paced.saturating_add(wait);
        wait
    }

    /// How long one request may wait.
    pub fn allowance(&self) -> Duration {
        let waited = self.errand().map(|errand| errand.waited).unwrap_or_default();
        self.limits.whole.saturating_sub(waited)
    }

    /// How long an answer may take: not as long as usual where less is given in all, or others were waited for in vain.
    pub(super) fn answer_within(&self) -> Duration {
        self.limits.answer.min(self.allowance().max(self.limits.hurried_answer))
    }

    /// Tells that one request waited so long for nothing.
    pub fn waited_in_vain(&self, how_long: Duration) {
        if let Some(errand) = self.errand().as_mut() {
            errand.waited = errand.waited.saturating_add(how_long);
        }
    }

    /// Whether something was missed for longer than a push explains.
    pub fn has_missed(&self) -> bool {
        self.errand().is_some_and(|errand| errand.is_missed)
    }

    /// Tells that something was.
    pub fn missed(&self) {
        if let Some(errand) = self.errand().as_mut() {
            errand.is_missed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::super::{Address, Limits};
    use super::*;
    use crate::ports::Clock;

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    fn client(seconds: u64) -> Client {
        let limits = Limits::default().waiting_at_most(Duration::from_secs(seconds));
        let address = Address::parse("http://127.0.0.1:1", false).unwrap();
        Client::new(address, limits, Arc::new(Still), Vec::new()).unwrap()
    }

    #[test]
    fn an_answer_takes_no_longer_than_all_may_take() {
        assert_eq!([300, 30, 12, 5, 0].map(|seconds| client(seconds).answer_within().as_secs()), [30, 30, 12, 5, 5]);
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "what is waited for is measured")]
    async fn no_more_is_written_in_a_minute_than_a_forge_takes() {
        let client = client(300);
        let begun = Instant::now();
        let mut after = Vec::new();
        {
            let _errand = client.begin_errand();
            for _ in 0..6 {
                for _ in 0..WRITES_A_MINUTE {
                    client.pace().await;
                }
                after.push(begun.elapsed().as_secs());
            }
        }
        // The last minute of the five is kept.
        assert_eq!(after, [0, 60, 120, 180, 240, 240]);
        client.pace().await;
        assert_eq!(begun.elapsed().as_secs(), 240, "nobody waits without an errand");
    }

    #[test]
    fn what_was_waited_for_in_vain_is_not_waited_for_again() {
        let client = client(300);
        let _errand = client.begin_errand();
        client.waited_in_vain(Duration::from_secs(288));
        assert_eq!(client.answer_within().as_secs(), 12);
        client.waited_in_vain(Duration::from_secs(288));
        assert_eq!(client.answer_within().as_secs(), 5);
    }
}
