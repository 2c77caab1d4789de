//! One program of the control plane, in a process group of its own.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::shared::Shared;

/// A running program. Dropping it ends it.
pub struct Process {
    name: String,
    child: Child,
    group: Pid,
    log: PathBuf,
    shared: Shared,
}

impl Process {
    /// Starts `command` with its output in `NAME.log`, which is written on where it is there already.
    pub fn start(name: &str, mut command: Command, shared: &Shared) -> Self {
        let log = shared.folder().join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} cannot be started: {error}\n  {command:?}"));
        let group = Pid::from_child(&child);
        shared.watchdog().guard(group);
        Self { name: name.to_owned(), child, group, log, shared: shared.clone() }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Panics with the end of the log when the program has ended.
    pub fn must_run(&mut self) {
        if let Some(status) = self.ended() {
            panic!("{} ended by itself, {status}; its last lines:\n{}", self.name, self.last_lines());
        }
    }

    /// Waits until the program has ended by itself with an error, having said this.
    pub fn must_end(&mut self, words: &str) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{} goes on:\n{}", self.name, self.last_lines());
            std::thread::sleep(Duration::from_millis(100));
        };
        assert_eq!(status.code(), Some(1), "{}", self.last_lines());
        assert!(self.log().contains(words), "{} does not say {words:?}:\n{}", self.name, self.last_lines());
    }

    /// The program does nothing until it is resumed; its connections stay open.
    pub fn suspend(&self) {
        kill_process_group(self.group, Signal::STOP).unwrap();
    }

    pub fn resume(&self) {
        kill_process_group(self.group, Signal::CONT).unwrap();
    }

    /// Ends it at once, as a node that loses its power would.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn last_lines(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn signal(&mut self, signal: Signal) {
        // What has been waited for has no number any more.
        if self.ended().is_none() {
            kill_process_group(self.group, signal).unwrap();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        self.shared.watchdog().release(self.group);
    }
}
