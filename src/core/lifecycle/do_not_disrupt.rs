//! The annotation `karpenter.sh/do-not-disrupt` of pods: `true`, or for how long since the pod started.
//! Behaviour: reference, section 2.2.

use jiff::{SignedDuration, Timestamp};

use crate::snapshot::Pod;
use cutlist_api::duration::go_nanoseconds;
use cutlist_api::keys;

/// What the annotation of a pod comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nobody asks for any.
    Unasked,
    /// What is written protects nothing: it can not be read, or is no time at all.
    Unreadable,
    /// As long as it is written there, or nobody knows since when the pod runs.
    Lasting,
    Until(Timestamp),
}

pub fn protection(pod: &Pod) -> Protection {
    let text = match pod.metadata.annotations.get(keys::DO_NOT_DISRUPT).map(String::as_str) {
        None | Some("false") => return Protection::Unasked,
        Some("true") => return Protection::Lasting,
        Some(text) => text,
    };
    let Some(nanoseconds) = go_nanoseconds(text).filter(|nanoseconds| *nanoseconds > 0) else {
        return Protection::Unreadable;
    };
    let start = pod.status.start_time.as_ref().and_then(|text| text.parse::<Timestamp>().ok());
    start.map_or(Protection::Lasting, |start| {
        Protection::Until(start.saturating_add(SignedDuration::from_nanos(nanoseconds)).unwrap_or(Timestamp::MAX))
    })
}

/// Whether the pod may not be disrupted at this moment.
pub fn is_protected(pod: &Pod, now: Timestamp) -> bool {
    match protection(pod) {
        Protection::Unasked | Protection::Unreadable => false,
        Protection::Lasting => true,
        Protection::Until(end) => now < end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BuildPod, Merge, pod};

    #[test]
    fn durations_are_those_of_go() {
        let now: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
        let annotated = |text: &str, start: &str| {
            let annotations = serde_json::json!({ "annotations": { keys::DO_NOT_DISRUPT: text } });
            pod("a").cpu("1").merge(serde_json::json!({ "metadata": annotations, "status": { "startTime": start } }))
        };
        for (text, start, expected) in [
            ("true", "2026-11-19T09:00:00Z", true),
            ("1.5h", "2026-11-20T07:45:00Z", true),
            ("1.5h", "2026-11-20T07:30:00Z", false),
            ("500ms", "2026-11-20T08:59:59.8Z", true),
            ("500ms", "2026-11-20T08:59:59.4Z", false),
            ("1us", "2026-11-20T01:00:00Z", false),
            ("2562047h", "1970-01-01T00:00:00Z", true),
            ("false", "2026-11-20T08:59:59Z", false),
            ("-1h", "2026-11-20T08:59:59Z", false),
            ("1d", "2026-11-20T08:59:59Z", false),
        ] {
            assert_eq!(is_protected(&annotated(text, start), now), expected, "{text}");
        }
        let protections =
            ["false", "0s", "True", "Never"].map(|text| protection(&annotated(text, "2026-11-20T08:00:00Z")));
        assert_eq!(
            protections,
            [Protection::Unasked, Protection::Unreadable, Protection::Unreadable, Protection::Unreadable]
        );
    }
}
