//! Calls that change something, at a pace that EC2 takes: each waits for its bucket, and one that is refused for its rate, or that nobody
//! answered, is made again, the very same.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::adapters::aws::api::{Action, ApiError};
use crate::adapters::aws::failures::FailureClass;
use crate::adapters::aws::throttle::Throttle;
use crate::ports::Clock;

/// How long somebody waits for a call before others get their turn; who asks again goes on where this ended.
const PATIENCE: SignedDuration = SignedDuration::from_secs(20);
/// After a fault of AWS's own, or an answer that did not come; each further one doubles that.
const FIRST_WAIT: Duration = Duration::from_millis(500);
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

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether a call may be made at this moment; takes its token.
    pub fn may_now(&self, action: Action) -> bool {
        self.take(action, 1).is_ok()
    }

    /// Makes a call that changes so many instances; it must be one that may be repeated. The error is that of the last attempt.
    pub async fn call<T>(
        &self,
        action: Action,
        resources: u32,
        mut call: impl AsyncFnMut() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let began = self.now();
        let is_late = |now: Timestamp| now.duration_since(began) >= PATIENCE;
        let (mut unanswered, mut wait) = (0, FIRST_WAIT);
        loop {
            while let Err(wait) = self.take(action, resources) {
                if is_late(self.now()) {
                    let message = "it was not this call's turn in time".to_owned();
                    return Err(ApiError {
                        action,
                        class: FailureClass::Throttled,
                        code: "Waited".to_owned(),
                        message,
                    });
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
                    self.throttle.lock().unwrap_or_else(PoisonError::into_inner).refused(action, now);
                }
                FailureClass::Server if unanswered + 1 < ATTEMPTS && !is_late(self.now()) => {
                    unanswered += 1;
                    tokio::time::sleep(wait).await;
                    wait = wait.saturating_mul(2);
                }
                _ => return Err(error),
            }
        }
    }

    fn take(&self, action: Action, resources: u32) -> Result<(), SignedDuration> {
        let now = self.now();
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner).take(action, resources, now)
    }
}
