//! What AWS answered last, how old that is, and what went wrong since. A failure never changes what is known: it stands beside it.

use jiff::{SignedDuration, Timestamp};

use super::super::api::ApiError;
use super::super::failures::FailureClass;
use crate::ports::is_to_come;

/// After the first failure it is asked again so much later; each further one doubles that.
const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(15);
/// And never later than that.
const RETRY_LAST: SignedDuration = SignedDuration::from_mins(5);

/// The last answer to a question, and the trouble since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastAnswer<T> {
    pub answer: Option<DatedAnswer<T>>,
    pub trouble: Option<Trouble>,
}

/// An answer, and when it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatedAnswer<T> {
    pub value: T,
    pub at: Timestamp,
}

/// Failures in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The last one.
    pub error: ApiError,
    /// When the first of them was.
    pub since: Timestamp,
    /// When the last of them was.
    pub at: Timestamp,
    pub failures: u32,
}

impl<T> Default for LastAnswer<T> {
    fn default() -> Self {
        Self { answer: None, trouble: None }
    }
}

impl Trouble {
    fn after(before: Option<Self>, error: ApiError, now: Timestamp) -> Self {
        let (since, failures) = before.map_or((now, 0), |before| (before.since, before.failures));
        Self { error, since, at: now, failures: failures.saturating_add(1) }
    }

    /// When it may be tried again.
    pub fn retry_at(&self) -> Timestamp {
        let doublings = self.failures.saturating_sub(1).min(10);
        let wait = RETRY_FIRST.saturating_mul(1 << doublings).min(RETRY_LAST);
        self.at.saturating_add(wait).unwrap_or(self.at)
    }

    /// Whether it is time for that, also by a clock that was set back since.
    pub fn may_try(&self, now: Timestamp) -> bool {
        now >= self.retry_at() || is_to_come(self.at, now)
    }
}

impl<T> LastAnswer<T> {
    /// An answer of that moment.
    pub fn answered(value: T, at: Timestamp) -> Self {
        Self { answer: Some(DatedAnswer { value, at }), trouble: None }
    }

    /// A failure, and nothing known.
    pub fn failed(error: ApiError, now: Timestamp) -> Self {
        Self { answer: None, trouble: Some(Trouble::after(None, error, now)) }
    }

    pub fn value(&self) -> Option<&T> {
        self.answer.as_ref().map(|answer| &answer.value)
    }

    /// Whether it should be asked: nothing is known, or the answer is older than its lifetime, and no failure says to wait. What came at a
    /// moment that is to come says nothing: the clock was set back since.
    pub fn is_due(&self, lifetime: SignedDuration, now: Timestamp) -> bool {
        if let Some(trouble) = &self.trouble {
            return trouble.may_try(now);
        }
        self.answer
            .as_ref()
            .is_none_or(|answer| now.duration_since(answer.at) >= lifetime || is_to_come(answer.at, now))
    }

    /// Takes what came of asking.
    pub fn record(&mut self, result: Result<T, ApiError>, now: Timestamp) {
        match result {
            Ok(value) => *self = Self::answered(value, now),
            Err(error) => self.trouble = Some(Trouble::after(self.trouble.take(), error, now)),
        }
    }

    /// The same of a part of the value.
    pub fn map<U>(&self, part: impl FnOnce(&T) -> U) -> LastAnswer<U> {
        let answer = self.answer.as_ref().map(|answer| DatedAnswer { value: part(&answer.value), at: answer.at });
        LastAnswer { answer, trouble: self.trouble.clone() }
    }

    /// How old the answer is and why there is no newer one, for people; nothing while all is well.
    /// It names the moment and not the age, so that the text stays the same while the trouble does.
    pub fn trouble_text(&self) -> Option<String> {
        let error = self.trouble.as_ref()?.error.text();
        Some(match &self.answer {
            Some(answer) => format!("as of {}; since then {error}", whole_seconds(answer.at)),
            None => error,
        })
    }

    /// Whether it is unknown because somebody forbids asking.
    pub fn is_denied(&self) -> bool {
        self.trouble.as_ref().is_some_and(|trouble| trouble.error.class == FailureClass::Denied)
    }

    /// The same, and not for want of credentials: it stays so until somebody gives the permission.
    pub fn lacks_permission(&self) -> bool {
        self.is_denied() && self.trouble.as_ref().is_some_and(|trouble| !trouble.error.is_of_credentials())
    }
}

/// A moment as people read it.
pub fn whole_seconds(moment: Timestamp) -> String {
    jiff::fmt::temporal::DateTimePrinter::new().precision(Some(0)).timestamp_to_string(&moment)
}

#[cfg(test)]
mod tests {
    use super::super::super::api::Action;
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + second).unwrap()
    }

    fn throttled() -> ApiError {
        ApiError::of(Action::DescribeSubnets, "RequestLimitExceeded", "slow down")
    }

    #[test]
    fn a_failure_changes_nothing_that_is_known() {
        let lifetime = SignedDuration::from_mins(1);
        let mut known = LastAnswer::default();
        assert!(known.is_due(lifetime, at(0)));
        known.record(Ok(7), at(0));
        assert!(!known.is_due(lifetime, at(59)) && known.is_due(lifetime, at(60)));
        known.record(Err(throttled()), at(60));
        assert_eq!(known.value(), Some(&7));
        assert!(!known.is_due(lifetime, at(74)) && known.is_due(lifetime, at(75)), "asked again before its lifetime");
        let text = known.trouble_text().unwrap();
        assert_eq!(
            text,
            "as of 2026-09-21T14:13:20Z; since then ec2:DescribeSubnets is throttled by AWS (RequestLimitExceeded)"
        );
        known.record(Err(throttled()), at(75));
        assert_eq!(known.trouble_text(), Some(text), "the text stays while the trouble does");
        assert!(!known.is_due(lifetime, at(104)) && known.is_due(lifetime, at(105)), "the wait doubles");
        known.record(Ok(8), at(200));
        assert_eq!((known.value(), &known.trouble), (Some(&8), &None));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nobody_wait() {
        let lifetime = SignedDuration::from_mins(1);
        let mut known = LastAnswer::answered(7, at(3600));
        assert!(known.is_due(lifetime, at(0)) && !known.is_due(lifetime, at(3590)));
        known.record(Err(throttled()), at(3600));
        assert!(known.is_due(lifetime, at(0)) && !known.is_due(lifetime, at(3590)));
    }

    #[test]
    fn the_wait_has_an_end() {
        let mut known = LastAnswer::<i32>::default();
        for _ in 0..100 {
            known.record(Err(throttled()), at(0));
        }
        assert!(!known.is_due(SignedDuration::ZERO, at(299)) && known.is_due(SignedDuration::ZERO, at(300)));
    }
}
