//! Which Events are worth a write: the same one is not written again for a while, and of pods' good news only some.
//! Source: the reference, section 7.3.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::api::event_reason::EventReason;
use crate::ports::Notice;

/// How long the same words on the same object are kept back.
const REPEATED_AFTER: Duration = Duration::from_secs(120);
/// The same for a pod that finds no place, which many planners say at every look.
const FAILED_SCHEDULING_AFTER: Duration = Duration::from_secs(300);
/// The same for a node that consolidation leaves alone, which is nobody's trouble.
const UNCONSOLIDATABLE_AFTER: Duration = Duration::from_secs(900);
/// The same for what a pool does not allow or have, which can be another every minute.
const OF_POOL_AFTER: Duration = Duration::from_secs(60);
/// `Nominated`, in a second and at once.
const NOMINATED_PER_SECOND: u32 = 5;
const NOMINATED_AT_ONCE: u32 = 10;
/// Events that are remembered; beyond that the oldest are forgotten, and may be written again.
const REMEMBERED_MAX: usize = 10_000;

/// Object, reason and words.
type Key = (&'static str, Option<String>, String, EventReason, String);

/// What was written lately.
pub(super) struct EventLimits {
    written: HashMap<Key, Instant>,
    nominations: u32,
    refilled: Instant,
}

impl EventLimits {
    pub(super) fn new(now: Instant) -> Self {
        Self { written: HashMap::new(), nominations: NOMINATED_AT_ONCE, refilled: now }
    }

    /// Whether to write it; then it counts as written.
    pub(super) fn allow(&mut self, notice: &Notice, now: Instant) -> bool {
        let key = (notice.kind, notice.namespace.clone(), notice.name.clone(), notice.reason, notice.note.clone());
        let again_after = match (notice.reason, notice.kind) {
            (EventReason::FailedScheduling, _) => FAILED_SCHEDULING_AFTER,
            (EventReason::Unconsolidatable | EventReason::NodeRepairBlocked, _) => UNCONSOLIDATABLE_AFTER,
            (EventReason::DisruptionBlocked | EventReason::NoCompatibleInstanceTypes, "NodePool") => OF_POOL_AFTER,
            _ => REPEATED_AFTER,
        };
        if self.written.get(&key).is_some_and(|written| now.duration_since(*written) < again_after) {
            return false;
        }
        if notice.reason == EventReason::Nominated && !self.nominate(now) {
            return false;
        }
        if self.written.len() >= REMEMBERED_MAX {
            self.forget(now);
        }
        self.written.insert(key, now);
        true
    }

    fn nominate(&mut self, now: Instant) -> bool {
        let seconds = now.duration_since(self.refilled).as_secs();
        if seconds > 0 {
            let refill = u32::try_from(seconds).unwrap_or(u32::MAX).saturating_mul(NOMINATED_PER_SECOND);
            self.nominations = self.nominations.saturating_add(refill).min(NOMINATED_AT_ONCE);
            self.refilled += Duration::from_secs(seconds);
        }
        let allowed = self.nominations > 0;
        self.nominations = self.nominations.saturating_sub(1);
        allowed
    }

    /// What no longer matters, and if that is too little everything.
    fn forget(&mut self, now: Instant) {
        self.written.retain(|_, written| now.duration_since(*written) < UNCONSOLIDATABLE_AFTER);
        if self.written.len() >= REMEMBERED_MAX {
            self.written.clear();
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test starts somewhere in time")]
mod tests {
    use super::*;

    fn notice(name: &str, reason: EventReason, note: &str) -> Notice {
        Notice {
            api_version: "v1",
            kind: "Pod",
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
            uid: None,
            is_warning: false,
            reason,
            note: note.to_owned(),
        }
    }

    #[test]
    fn the_same_is_not_written_again_for_a_while() {
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        let mut limits = EventLimits::new(begin);
        let blocked = notice("a", EventReason::DisruptionBlocked, "busy");
        assert!(limits.allow(&blocked, begin));
        assert!(!limits.allow(&blocked, after(119)));
        assert!(limits.allow(&blocked, after(120)));
        assert!(limits.allow(&notice("a", EventReason::DisruptionBlocked, "another reason"), after(120)));
        assert!(limits.allow(&notice("b", EventReason::DisruptionBlocked, "busy"), after(120)));
        let failed = notice("a", EventReason::FailedScheduling, "no room");
        assert!(limits.allow(&failed, begin));
        assert!(!limits.allow(&failed, after(299)));
        assert!(limits.allow(&failed, after(300)));
        let waits = notice("a", EventReason::Unconsolidatable, "nothing cheaper");
        assert!(limits.allow(&waits, begin));
        assert!(!limits.allow(&waits, after(899)));
        assert!(limits.allow(&waits, after(900)));
    }

    #[test]
    fn of_many_nominations_some_are_written() {
        let begin = Instant::now();
        let mut limits = EventLimits::new(begin);
        let mut written = |seconds: u64| {
            let now = begin + Duration::from_secs(seconds);
            let names = (0..100).map(|number| format!("pod-{seconds}-{number}"));
            names.filter(|name| limits.allow(&notice(name, EventReason::Nominated, "there"), now)).count()
        };
        assert_eq!([written(0), written(1), written(60)], [10, 5, 10]);
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let begin = Instant::now();
        let mut limits = EventLimits::new(begin);
        for number in 0..=REMEMBERED_MAX {
            assert!(limits.allow(&notice(&number.to_string(), EventReason::DisruptionBlocked, "busy"), begin));
        }
        assert!(limits.written.len() <= REMEMBERED_MAX);
    }
}
