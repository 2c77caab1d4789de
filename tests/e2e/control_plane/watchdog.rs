//! A shell that outlives the test, and ends its processes and removes their data when the test has ended in any way.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::Pid;

const SCRIPT: &str = include_str!("watchdog.sh");

/// Told of each process group by [`Watchdog::guard`]; dropping it ends them all and removes the folder, and waits for that.
pub struct Watchdog {
    shell: Child,
    /// `None` only while dropping: closing it is the signal.
    orders: Option<ChildStdin>,
}

impl Watchdog {
    /// Watches over `folder`, which it removes in the end.
    pub fn start(folder: &Path) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", SCRIPT, "watchdog"])
            .arg(folder)
            .stdin(Stdio::piped())
            // Ctrl-C goes to every process of the terminal's group, and must not end the one that cleans up.
            .process_group(0)
            .spawn()
            .unwrap();
        let orders = shell.stdin.take();
        Self { shell, orders }
    }

    pub fn guard(&mut self, group: Pid) {
        self.order("start", group);
    }

    /// The group has ended; its number may be given to others.
    pub fn release(&mut self, group: Pid) {
        self.order("end", group);
    }

    fn order(&mut self, word: &str, group: Pid) {
        let orders = self.orders.as_mut().unwrap();
        writeln!(orders, "{word} {}", group.as_raw_nonzero()).unwrap();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Err(error) = self.shell.wait() {
            eprintln!("the watchdog cannot be waited for: {error}");
        }
    }
}
