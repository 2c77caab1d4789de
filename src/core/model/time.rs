//! Spans of time.

use jiff::Timestamp;

/// `45s`, `12m`, `3h`, `2d`: the largest unit that leaves no more than two digits to read.
pub fn duration_text(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Seconds from one moment to another.
pub fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    to.as_second() - from.as_second()
}
