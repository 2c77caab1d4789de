//! Pending pods are collected for a moment, so that those of one Deployment are planned for together.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::api::settings::Batch;

/// Opens with the first new pod; closes when none came for a while, or after the longest time.
#[derive(Debug, Default)]
pub struct BatchWindow {
    /// UIDs that were seen waiting; one that waits on does not open a window again.
    known: BTreeSet<String>,
    open: Option<OpenBatch>,
}

#[derive(Clone, Copy, Debug)]
struct OpenBatch {
    since: Timestamp,
    last_new_pod: Timestamp,
}

impl BatchWindow {
    /// Pods that wait and are no news, by UID.
    pub fn know<'a>(&mut self, uids: impl Iterator<Item = &'a str>) {
        for uid in uids {
            if !self.known.contains(uid) {
                self.known.insert(uid.to_owned());
            }
        }
    }

    /// Looks at the UIDs of the pods that wait now.
    pub fn see(&mut self, waiting: &BTreeSet<&str>, now: Timestamp) {
        self.known.retain(|uid| waiting.contains(uid.as_str()));
        if self.known.len() < waiting.len() {
            let since = self.open.map_or(now, |open| open.since);
            self.open = Some(OpenBatch { since, last_new_pod: now });
            self.known.extend(waiting.iter().map(|uid| (*uid).to_owned()));
        }
    }

    /// When the open window closes, if no further pod comes.
    pub fn closes_at(&self, settings: &Batch) -> Option<Timestamp> {
        let open = self.open?;
        let after = |moment: Timestamp, duration: &crate::api::duration::NillableDuration| {
            let seconds = duration.seconds().and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(i64::MAX);
            moment.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
        };
        Some(after(open.last_new_pod, &settings.idle).min(after(open.since, &settings.max)))
    }

    /// Closes the window; how long it was open.
    pub fn close(&mut self, now: Timestamp) -> Option<SignedDuration> {
        self.open.take().map(|open| now.duration_since(open.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn see(window: &mut BatchWindow, waiting: &BTreeSet<String>, now: Timestamp) {
        window.see(&waiting.iter().map(String::as_str).collect(), now);
    }

    fn uids(count: usize) -> BTreeSet<String> {
        (0..count).map(|number| format!("{number:03}")).collect()
    }

    #[test]
    fn closes_after_a_second_without_a_new_pod() {
        let mut window = BatchWindow::default();
        see(&mut window, &uids(1), at(0));
        see(&mut window, &uids(2), at(0));
        assert_eq!(window.closes_at(&Batch::default()), Some(at(1)));
        see(&mut window, &uids(2), at(1));
        assert_eq!(window.close(at(1)), Some(SignedDuration::from_secs(1)));
        see(&mut window, &uids(2), at(2));
        assert_eq!(window.closes_at(&Batch::default()), None, "a pod that waits on is not new");
    }

    #[test]
    fn opens_for_no_pod_that_is_known() {
        let mut window = BatchWindow::default();
        let waiting = uids(2);
        window.know(waiting.iter().map(String::as_str));
        see(&mut window, &waiting, at(0));
        assert_eq!(window.closes_at(&Batch::default()), None);
        see(&mut window, &uids(3), at(1));
        assert_eq!(window.closes_at(&Batch::default()), Some(at(2)));
    }

    #[test]
    fn closes_after_ten_seconds_however_many_come() {
        let mut window = BatchWindow::default();
        for second in 0..30 {
            see(&mut window, &uids(usize::try_from(second).unwrap() + 1), at(second));
        }
        assert_eq!(window.closes_at(&Batch::default()), Some(at(10)));
    }
}
