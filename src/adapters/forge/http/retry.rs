//! When to ask again, and how long to wait: by what a forge says, and where it says nothing by what is known of it.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use jiff::Timestamp;
use serde_json::Value;

use crate::adapters::http::without_secrets;

/// How long, how often and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connect: Duration,
    /// For the head of an answer, and again for its body.
    pub answer: Duration,
    /// The same where nobody believes in an answer any more.
    pub hurried_answer: Duration,
    /// All attempts and all waiting together.
    pub whole: Duration,
    pub attempts: u32,
    /// Of an answer: 100 comments of the longest there are.
    pub bytes: usize,
    pub idle: Duration,
    first_pause: Duration,
    longest_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            hurried_answer: Duration::from_secs(5),
            // A rate limit of an hour is not waited for by a job that people wait for.
            whole: Duration::from_mins(5),
            attempts: 8,
            bytes: 64 << 20,
            idle: Duration::from_secs(20),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Before the next attempt, at least: twice as long each time.
    pub fn pause(&self, attempts: u32) -> Duration {
        let factor = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first_pause.saturating_mul(factor).min(self.longest_pause)
    }

    #[must_use]
    pub fn waiting_at_most(self, whole: Duration) -> Self {
        Self { whole, ..self }
    }
}

/// Whether a request may be sent again when nobody knows whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    Repeat,
    OnlyIfRefused,
}

/// GitHub's advice for refusals that do not say how long: "wait for at least one minute".
const WITHOUT_A_WORD: Duration = Duration::from_secs(60);
/// Longer messages are for logs of the forge.
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// How long to wait before asking again; `None`: asking again does not help.
pub(super) fn wait(status: StatusCode, headers: &HeaderMap, message: &str, now: Timestamp) -> Option<Duration> {
    let is_limited = match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::FORBIDDEN => said(headers, now).is_some() || speaks_of_limits(message),
        // GitHub takes content that comes too fast for invalid.
        StatusCode::UNPROCESSABLE_ENTITY => speaks_of_limits(message),
        _ => false,
    };
    if is_limited {
        return Some(said(headers, now).unwrap_or(WITHOUT_A_WORD));
    }
    let passes = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    let passes = passes || status == StatusCode::REQUEST_TIMEOUT || status == StatusCode::LOCKED;
    passes.then(|| said(headers, now).unwrap_or(Duration::ZERO))
}

/// Whether it is known that nothing was done: the request was counted, and not looked at.
pub(super) fn was_not_done(status: StatusCode) -> bool {
    status.is_client_error()
}

fn speaks_of_limits(message: &str) -> bool {
    const WORDS: [&str; 6] = [
        "rate limit",
        "abuse detection",
        "temporarily blocked",
        "submitted too quickly",
        "\"code\":\"abuse\"",
        "too many requests",
    ];
    let message = message.to_ascii_lowercase();
    WORDS.iter().any(|words| message.contains(words))
}

/// What the headers say: seconds, or the moment at which the limit is new.
fn said(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    if let Some(seconds) = number(RETRY_AFTER.as_str()) {
        return Some(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
    }
    let is_used_up = ["x-ratelimit-remaining", "ratelimit-remaining"].iter().any(|name| number(name) == Some(0));
    let reset = ["x-ratelimit-reset", "ratelimit-reset"].iter().find_map(|name| number(name))?;
    // The moment is rounded down.
    let seconds = reset.saturating_sub(now.as_second()).saturating_add(1);
    is_used_up.then(|| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()))
}

/// What a forge says of a refusal, in one line and without control characters.
pub(super) fn message(body: &Value) -> String {
    let words = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut text =
        [&body["message"], &body["error"]].into_iter().map(words).find(|it| !it.is_empty()).unwrap_or_default();
    for error in body["errors"].as_array().into_iter().flatten().take(5) {
        let detail = if error["message"].is_string() { words(&error["message"]) } else { words(error) };
        text = format!("{text}; {detail}");
    }
    let line = without_secrets(&text).split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|it| !it.is_control()).take(MESSAGE_CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn wait_for(status: u16, pairs: &[(&'static str, &str)], message: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        wait(status, &headers, message, Timestamp::from_second(NOW).unwrap()).map(|it| it.as_secs())
    }

    #[test]
    fn waits_as_long_as_it_is_told() {
        let reset = (NOW + 90).to_string();
        assert_eq!(wait_for(429, &[("retry-after", "7")], ""), Some(7));
        assert_eq!(wait_for(429, &[], ""), Some(60));
        assert_eq!(wait_for(403, &[("retry-after", "5")], "secondary"), Some(5));
        assert_eq!(wait_for(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", &reset)], ""), Some(91));
        assert_eq!(wait_for(429, &[("ratelimit-remaining", "0"), ("ratelimit-reset", &reset)], ""), Some(91));
        assert_eq!(wait_for(403, &[], "You have exceeded a secondary rate limit"), Some(60));
        assert_eq!(wait_for(403, &[], "You have been temporarily blocked from content creation"), Some(60));
        let refused = json!({ "message": "Validation Failed", "errors": [{ "code": "abuse", "field": "base" }] });
        assert_eq!(wait_for(422, &[], &message(&refused)), Some(60));
        assert_eq!(wait_for(422, &[], "Validation Failed; was submitted too quickly"), Some(60));
        assert_eq!(wait_for(503, &[("retry-after", "3")], ""), Some(3));
        assert_eq!(wait_for(502, &[], ""), Some(0));
        for (status, message) in [(403, "Resource not accessible by integration"), (401, ""), (404, ""), (422, "")] {
            assert_eq!(wait_for(status, &[("x-ratelimit-remaining", "17")], message), None, "{status}");
        }
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        let limits = Limits::default();
        let pauses: Vec<u64> =
            (1..9).map(|attempts| u64::try_from(limits.pause(attempts).as_millis()).unwrap()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!(limits.pause(u32::MAX), Duration::from_secs(30));
    }

    #[test]
    fn messages_are_one_line() {
        let body = json!({ "message": "Validation\nFailed", "errors": [{ "message": "too long" }, "x"] });
        assert_eq!(message(&body), "Validation Failed; too long; x");
        assert_eq!(message(&json!({ "error": "no" })), "no");
        assert_eq!(message(&json!({ "message": { "base": ["taken"] } })), r#"{"base":["taken"]}"#);
        assert_eq!(message(&json!(null)), "");
    }
}
