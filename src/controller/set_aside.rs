//! Calls that fail for one object each: it is set aside for a while, and what is done for the others goes on.
//!
//! A webhook of which no answer comes takes half a minute to refuse one write, and it may be asked about every object. So what was refused is
//! not asked again at each look, and after a few refusals no further object is tried before the next look: that one begins with others.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::ports::{PortError, PortErrorKind};

use super::pace::{RETRY, RETRY_REFUSED_MAX};

/// So many refusals are waited for in one look, where calls follow each other: the time of each is the time of the look.
const ONE_BY_ONE: usize = 2;
/// How long an object is left alone at most. It doubles until then: who mends a policy does not want to wait for long.
const PAUSE_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Objects that somebody refuses, from look to look. It may be lost: then each is tried once more.
#[derive(Debug)]
pub struct SetAside {
    most: usize,
    aside: BTreeMap<String, Aside>,
    /// Of this look.
    refused: usize,
    was_full: bool,
}

/// Calls that serve one purpose.
#[derive(Debug)]
pub struct Purpose<'a> {
    aside: &'a mut SetAside,
    left: Left,
    /// How long an object is left alone at most that is refused for what it is.
    longest_as_it_is: SignedDuration,
}

/// What of a purpose was not done in a look.
#[derive(Debug, Default)]
pub struct Left {
    /// What was refused in it.
    pub refused: Vec<PortError>,
    /// Whether something was not tried, since it was refused in an earlier look or since others were in this one.
    pub untried: bool,
}

#[derive(Debug)]
struct Aside {
    until: Timestamp,
    wait: SignedDuration,
}

impl Default for SetAside {
    fn default() -> Self {
        Self::after(ONE_BY_ONE)
    }
}

impl SetAside {
    fn after(most: usize) -> Self {
        Self { most, aside: BTreeMap::new(), refused: 0, was_full: false }
    }

    /// Another look begins.
    pub fn look(&mut self, now: Timestamp) {
        (self.refused, self.was_full) = (0, false);
        // One whose clock was set back counts anew.
        self.aside
            .retain(|_, aside| now.duration_since(aside.until).abs() < aside.wait.max(PAUSE_MAX).saturating_mul(2));
    }

    /// Whether something may be tried for the object now.
    pub fn may_try(&mut self, object: &str, now: Timestamp) -> bool {
        if self.is_aside(object, now) {
            return false;
        }
        let is_full = self.refused >= self.most;
        self.was_full |= is_full;
        !is_full
    }

    /// Whether the object is left alone now, however many refusals there were.
    pub fn is_aside(&self, object: &str, now: Timestamp) -> bool {
        self.aside.get(object).is_some_and(|aside| now < aside.until)
    }

    /// When something was refused for the object last; `None` where nothing was lately. So ordered, each object has its turn, also where the
    /// refusals of one look take longer than any object is left alone.
    pub fn refused_at(&self, object: &str) -> Option<Timestamp> {
        let aside = self.aside.get(object)?;
        Some(aside.until.saturating_sub(aside.wait).unwrap_or(aside.until))
    }

    /// Something was refused for the object.
    pub fn refused(&mut self, object: &str, now: Timestamp) {
        self.refused_up_to(PAUSE_MAX, object, now);
    }

    fn refused_up_to(&mut self, longest: SignedDuration, object: &str, now: Timestamp) {
        self.refused += 1;
        let before = self.aside.get(object).map(|aside| aside.wait);
        let wait = before.map_or(RETRY, |before| before.saturating_mul(2).min(longest));
        let until = now.saturating_add(wait).unwrap_or(now);
        self.aside.insert(object.to_owned(), Aside { until, wait });
    }

    /// Something was done for the object.
    pub fn done(&mut self, object: &str) {
        self.aside.remove(object);
    }

    /// Calls for objects of these names, which stand for what is to be done with them.
    pub fn purpose(&mut self) -> Purpose<'_> {
        Purpose { aside: self, left: Left::default(), longest_as_it_is: PAUSE_MAX }
    }

    /// When something that was left in this look may be tried again; `None` where nothing was.
    pub fn again_at(&self, now: Timestamp) -> Option<Timestamp> {
        let spared = self.was_full.then(|| now.saturating_add(RETRY).unwrap_or(now));
        self.aside.values().map(|aside| aside.until).filter(|until| *until > now).chain(spared).min()
    }
}

impl Purpose<'_> {
    /// What is refused for what it is, and by nobody's policy, has longer waits: another commit is another object here, and comes at once.
    pub fn of_commits(mut self) -> Self {
        self.longest_as_it_is = RETRY_REFUSED_MAX;
        self
    }

    /// Makes the call, where something may be tried for its object. `None`: it may not, was refused, or got no answer. `Err`: it is gone, was
    /// changed meanwhile, or is not to be had.
    pub async fn attempt<T>(
        &mut self,
        object: &str,
        now: Timestamp,
        call: impl Future<Output = Result<T, PortError>>,
    ) -> Result<Option<T>, PortError> {
        if !self.aside.may_try(object, now) {
            self.left.untried = true;
            return Ok(None);
        }
        match call.await {
            Err(error) if error.is_of_one_object() => {
                let is_as_it_is = error.kind == PortErrorKind::Permanent;
                let longest = if is_as_it_is { self.longest_as_it_is } else { PAUSE_MAX };
                self.aside.refused_up_to(longest, object, now);
                self.left.refused.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
            Ok(value) => {
                self.aside.done(object);
                Ok(Some(value))
            }
        }
    }

    /// When all was tried: the first refusal.
    pub fn told<T>(self, value: T) -> Result<T, PortError> {
        self.left.refused.into_iter().next().map_or(Ok(value), Err)
    }

    pub fn left(self) -> Left {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::PortErrorKind;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_795_165_200 + second).unwrap()
    }

    fn refusal(kind: PortErrorKind) -> Result<u8, PortError> {
        Err(PortError { operation: format!("{kind:?}"), kind, source: None })
    }

    #[tokio::test]
    async fn one_object_is_set_aside_and_what_is_of_none_is_not() {
        let mut aside = SetAside::after(4);
        let mut purpose = aside.purpose();
        assert!(matches!(purpose.attempt("a", at(0), async { Ok(7) }).await, Ok(Some(7))));
        for kind in [PortErrorKind::Refused, PortErrorKind::Denied, PortErrorKind::Internal, PortErrorKind::Temporary] {
            let refused = purpose.attempt(&format!("{kind:?}"), at(0), async { refusal(kind) }).await;
            assert!(matches!(refused, Ok(None)), "{kind:?}");
        }
        assert_eq!(purpose.told(()).unwrap_err().operation, "Refused");
        aside.look(at(0));
        let mut purpose = aside.purpose();
        assert!(purpose.attempt("a", at(0), async { refusal(PortErrorKind::InsufficientCapacity) }).await.is_err());
        assert!(matches!(purpose.attempt("Refused", at(0), async { Ok(7) }).await, Ok(None)), "it is left alone");
        let left = purpose.left();
        assert!(left.refused.is_empty() && left.untried, "what was refused for another purpose is not told: {left:?}");
    }

    #[tokio::test]
    async fn what_is_refused_is_left_alone_ever_longer_and_keeps_nobody_waiting() {
        let mut aside = SetAside::default();
        let objects = ["a", "b", "c", "d", "e"];
        let (mut calls, mut most, mut done) = (0, 0, 0);
        for second in 0..600 {
            aside.look(at(second));
            let before = calls;
            for object in objects {
                let is_refused = object != "e";
                if !aside.may_try(object, at(second)) {
                    continue;
                }
                calls += usize::from(is_refused);
                let outcome = async move { if is_refused { refusal(PortErrorKind::Refused) } else { Ok(1) } };
                let outcome = aside.purpose().attempt(object, at(second), outcome).await.unwrap();
                done += usize::from(outcome.unwrap_or_default());
            }
            most = most.max(calls - before);
        }
        assert!(calls < 80 && most == 2, "{calls} calls, at most {most} in one look");
        assert!(done > 500, "the last of them had {done} turns");
        assert!(aside.again_at(at(599)).is_some_and(|again| again > at(599)));
        aside.look(at(2000));
        assert_eq!(aside.again_at(at(2000)), None, "long ago");
    }
}
