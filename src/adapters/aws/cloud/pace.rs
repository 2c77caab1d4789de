//! Calls that change something, at a pace that EC2 takes: each waits for its bucket, and one that is refused for its rate, or that nobody
//! answered, is made again, the very same.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::adapters::aws::api::{Action, ApiError};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::throttle::Throttle;
use crate::ports::{Clock, is_to_come};

/// How long somebody waits for a call before others get their turn; who asks again goes on where this ended.
pub const PATIENCE: SignedDuration = SignedDuration::from_secs(20);
/// After a fault of AWS's own, or an answer that did not come; each further one doubles that.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The code of a call that was not made: its turn did not come in time.
pub const WAITED: &str = "Waited";
/// Calls that are not answered are made so often.
const ATTEMPTS: u32 = 3;

/// The buckets of all calls that are made here.
#[derive(Debug)]
pub struct Pace<C> {
    clock: C,
    throttle: Mutex<Throttle>,
}

impl<C: Clock> Pace<C> {
    pub fn new(clock: C) -> Self {
        Self { clock, throttle: Mutex::default() }
    }

    pub fn clock(&self) -> &C {
        &self.clock
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether a call may be made at this moment; takes its token.
    pub fn may_now(&self, action: Action) -> bool {
        self.take(action, 1).is_ok()
    }

    /// How many instances a call may change without waiting for that.
    pub fn room(&self, action: Action) -> u32 {
        let now = self.now();
        let room = self.throttle.lock().unwrap_or_else(PoisonError::into_inner).room(action, now);
        room.unwrap_or(u32::MAX)
    }

    /// Makes a call that changes so many instances; it must be one that may be repeated. The error is that of the last attempt; where that was
    /// turned away, for its rate or its credentials, and one before it was not answered, it is that one's: AWS may have done what was asked for.
    pub async fn call<T>(
        &self,
        action: Action,
        resources: u32,
        call: impl AsyncFnMut() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        self.call_until(u32::MAX, action, resources, call).await
    }

    /// As [`Self::call`], and not again after so many refusals for its rate: who can ask for less does.
    pub async fn call_until<T>(
        &self,
        refusals_max: u32,
        action: Action,
        resources: u32,
        mut call: impl AsyncFnMut() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let mut refusals = 0;
        let began = self.now();
        let is_late = |now: Timestamp| now.duration_since(began) >= PATIENCE || is_to_come(began, now);
        let (mut unanswered, mut wait) = (0, FIRST_WAIT);
        let mut lost: Option<ApiError> = None;
        loop {
            while let Err(wait) = self.take(action, resources) {
                // A wait alone may be longer: for the tokens of a thousand instances it is ten minutes, in which nothing else would be done.
                let until = self.now().saturating_add(wait).unwrap_or(Timestamp::MAX);
                if is_late(until) {
                    let message = "it was not this call's turn in time";
                    return Err(lost.unwrap_or_else(|| ApiError::of(action, WAITED, message)));
                }
                tokio::time::sleep(wait.unsigned_abs()).await;
            }
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match error.class {
                FailureClass::Throttled if !is_late(self.now()) => {
                    let now = self.now();
                    self.throttle.lock().unwrap_or_else(PoisonError::into_inner).refused(action, resources, now);
                    refusals += 1;
                    if refusals >= refusals_max {
                        return Err(lost.unwrap_or(error));
                    }
                }
                FailureClass::Server if unanswered + 1 < ATTEMPTS && !is_late(self.now()) => {
                    unanswered += 1;
                    lost = Some(error);
                    tokio::time::sleep(wait).await;
                    wait = wait.saturating_mul(2);
                }
                FailureClass::Throttled | FailureClass::Denied => return Err(lost.unwrap_or(error)),
                _ => return Err(error),
            }
        }
    }

    fn take(&self, action: Action, resources: u32) -> Result<(), SignedDuration> {
        let now = self.now();
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner).take(action, resources, now)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// What tokio takes for the time.
    struct Passing(Instant);

    impl Clock for Passing {
        fn now(&self) -> Timestamp {
            let passed = SignedDuration::try_from(self.0.elapsed()).unwrap();
            Timestamp::UNIX_EPOCH.saturating_add(passed).unwrap()
        }
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "the test's own time, which it lets pass")]
    async fn nobody_is_kept_longer_than_the_patience_and_who_asks_again_gets_there() {
        let began = Instant::now();
        let pace = Pace::new(Passing(began));
        let launch = || pace.call(Action::CreateFleet, 1_000, async || Ok(()));
        launch().await.unwrap();
        let mut refused = 0_u64;
        while let Err(error) = launch().await {
            assert_eq!((error.class, error.code.as_str()), (FailureClass::Throttled, "Waited"));
            refused += 1;
            assert!(refused < 100, "it never is its turn");
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        assert!(refused > 50, "{refused}: a thousand more take ten minutes");
        let longest = Duration::from_secs(10 * (refused + 1)) + PATIENCE.unsigned_abs();
        assert!(began.elapsed() <= longest, "each call is answered soon: {:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "the test's own time, which it lets pass")]
    async fn an_answer_that_did_not_come_is_not_forgotten_for_a_refusal_behind_it() {
        for behind_it in ["RequestLimitExceeded", "ExpiredToken", "InvalidParameterValue"] {
            let pace = Pace::new(Passing(Instant::now()));
            let mut codes = ["Timeout"].into_iter().chain(std::iter::repeat(behind_it));
            let call = async || Err::<(), _>(ApiError::of(Action::CreateFleet, codes.next().unwrap_or_default(), ""));
            let error = pace.call(Action::CreateFleet, 1, call).await.unwrap_err();
            let expected = if behind_it == "InvalidParameterValue" { behind_it } else { "Timeout" };
            assert_eq!(error.code, expected);
        }
    }
}
