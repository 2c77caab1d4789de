//! How far a simulation is, for those who wait for it.

#![expect(clippy::disallowed_methods, reason = "how long somebody waits is measured by a clock that runs")]

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::render::terminal::{clean, clean_lines};

/// Before this nobody wonders, and as often it is said anew.
const EVERY: Duration = Duration::from_secs(1);

/// One line on standard error that is written over; none where that is no terminal.
pub struct Progress {
    said_at: Instant,
    is_shown: bool,
    was_shown: bool,
}

impl Progress {
    /// `is_busy`: something else is shown meanwhile.
    pub fn new(is_busy: bool) -> Self {
        Self { said_at: Instant::now(), is_shown: !is_busy && std::io::stderr().is_terminal(), was_shown: false }
    }

    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if !self.is_shown || self.said_at.elapsed() < EVERY {
            return;
        }
        (self.said_at, self.was_shown) = (Instant::now(), true);
        write(&format!("\r\x1b[K{}", clean(&text())));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.was_shown {
            write("\r\x1b[K");
        }
    }
}

/// A line on standard error.
pub fn say(line: &str) {
    write(&format!("{}\n", clean_lines(line)));
}

fn write(text: &str) {
    let mut out = std::io::stderr().lock();
    let _closed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
