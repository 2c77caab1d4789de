//! End to end: the program against a real control plane on loopback. `make e2e` runs it; `cargo test` does not.
//!
//! ```text
//! cargo test --test e2e -- --programs FOLDER [PART OF A NAME]...
//! ```
//!
//! Each case has a control plane of its own, which takes some five seconds. A case that panics has failed; the others go on.
//! The logs of its programs are then in `target/e2e/logs`.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test starts processes, waits for them and reads their files")]

mod cluster;
mod control_plane;
mod definitions;
mod deploy;
mod self_tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use control_plane::ControlPlane;

/// One thing that is tried, with a control plane that nothing else uses.
struct Case {
    name: &'static str,
    run: fn(&mut ControlPlane),
}

const CASES: &[Case] = &[
    Case { name: "control_plane_runs_pods", run: self_tests::control_plane_runs_pods },
    Case { name: "nothing_outlives_the_test", run: self_tests::nothing_outlives_the_test },
    Case { name: "api_server_takes_our_definitions", run: definitions::api_server_takes_our_definitions },
    Case { name: "chart_and_kustomize_base_apply", run: deploy::chart_and_kustomize_base_apply },
    Case { name: "observe_may_write_nothing_but_its_own", run: deploy::observe_may_write_nothing_but_its_own },
];

/// What was asked for on the command line.
struct Arguments {
    programs: PathBuf,
    names: Vec<String>,
}

impl Arguments {
    fn read() -> Self {
        let (mut programs, mut names) = (None, Vec::new());
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--programs" => programs = words.next().map(PathBuf::from),
                _ => names.push(word),
            }
        }
        let programs =
            programs.expect("--programs FOLDER, as tests/control-plane/build fills it; `make e2e` does both");
        Self { programs: programs.canonicalize().expect("the folder of --programs exists"), names }
    }

    fn chooses(&self, case: &Case) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| case.name.contains(name.as_str()))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::read();
    if arguments.names == [self_tests::HOLD] {
        self_tests::hold(&arguments.programs);
    }
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/e2e/logs");
    let mut failed = Vec::new();
    for case in CASES.iter().filter(|case| arguments.chooses(case)) {
        let begin = Instant::now();
        println!("---- {}", case.name);
        let passed = run(case, &arguments.programs, &logs.join(case.name));
        println!("{} in {:.1} s", if passed { "passed" } else { "FAILED" }, begin.elapsed().as_secs_f64());
        if !passed {
            failed.push(case.name);
        }
    }
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("\nfailed: {}\nlogs of their programs: {}", failed.join(", "), logs.display());
    ExitCode::FAILURE
}

/// Whether the case passed, and left nothing behind.
fn run(case: &Case, programs: &Path, logs: &Path) -> bool {
    let mut folder = PathBuf::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut plane = ControlPlane::start(programs);
        folder = plane.folder().to_owned();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            (case.run)(&mut plane);
            plane.must_run();
        }));
        if outcome.is_err() {
            plane.keep_logs(logs);
        }
        outcome.is_ok()
    }));
    outcome.unwrap_or(false) && catch_unwind(|| self_tests::assert_nothing_is_left(&folder)).is_ok()
}
