//! Runs a program with its output in files, and ends it when it takes too long.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark runs programs, writes files and looks at the clock")]

use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Took longer than this many seconds.
    TooLong(u64),
    /// Ended with an error; the line that says which.
    Ended(String),
}

/// Seconds of the whole process. Standard output and standard error are then in the two files.
pub fn run(command: &mut Command, output: &Path, errors: &Path, limit_seconds: u64) -> Result<f64, Failure> {
    let start = Instant::now();
    let mut child =
        command.stdout(File::create(output).unwrap()).stderr(File::create(errors).unwrap()).spawn().unwrap();
    let limit = Duration::from_secs(limit_seconds);
    let status: ExitStatus = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(Failure::TooLong(limit_seconds));
        }
        sleep(Duration::from_millis(2));
    };
    let seconds = start.elapsed().as_secs_f64();
    if status.success() {
        return Ok(seconds);
    }
    let said = std::fs::read_to_string(errors).unwrap();
    let error = said.lines().find(|line| line.starts_with("error")).or(said.lines().last());
    Err(Failure::Ended(error.unwrap_or("nothing was said").to_owned()))
}
