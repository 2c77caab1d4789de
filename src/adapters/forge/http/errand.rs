//! What requests that belong together know of each other.

use std::sync::MutexGuard;
use std::time::Duration;

use super::Client;

/// What was found out on one errand, such as the posting of one preview: what one request waited for in vain, no other waits for again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Errand {
    /// How long requests waited that got nothing by it.
    waited: Duration,
    /// Something was not there, and no push explains it any more.
    is_missed: bool,
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
        self.errand.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
