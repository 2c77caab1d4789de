//! The adapter for EC2 with the real SDK over HTTP, against moto's server, with a proxy between them that has faults. `make e2e` runs it;
//! `cargo test` does not, since it needs the Cargo feature `aws`.
//!
//! ```text
//! tests/aws/install FOLDER
//! cargo test --features aws --test aws -- --moto FOLDER [--programs FOLDER] [PART OF A NAME]...
//! ```
//!
//! With `--readme FILE` it plays nothing but the figures, and puts them into the document. With `--programs`, as `tests/control-plane/build` fills it, the whole way is tried as well: from a commit to pods.
//!
//! Each case has an account of its own in one server. A case that panics has failed; the others go on.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test starts processes, waits for them and asks what time it is")]

mod cases;
#[path = "../ec2/claims.rs"]
mod claims;
#[path = "../e2e/cluster.rs"]
#[expect(dead_code, reason = "other tests ask for more")]
mod cluster;
#[path = "../e2e/control_plane/mod.rs"]
#[expect(dead_code, reason = "other tests stop and suspend parts of it")]
mod control_plane;
mod deviations;
mod facts;
mod figures;
mod labs;
#[path = "../bench/machine.rs"]
mod machine;
mod machines;
mod moto;
mod permissions;
mod proxy;
mod whole;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::time::Instant;

use moto::Moto;

type Case = (&'static str, fn(&Moto));

const CASES: &[Case] = &[
    ("moto_deviates_as_is_known", deviations::moto_deviates_as_is_known),
    ("the_catalog_is_read", cases::the_catalog_is_read),
    ("a_class_is_resolved", cases::a_class_is_resolved),
    ("claims_get_instances_that_are_found_and_ended", cases::claims_get_instances_that_are_found_and_ended),
    ("lost_answers_launch_nothing_twice", cases::lost_answers_launch_nothing_twice),
    ("what_there_is_none_of_is_passed_over", cases::what_there_is_none_of_is_passed_over),
    ("throttled_calls_are_made_again", cases::throttled_calls_are_made_again),
    ("what_is_denied_is_a_condition", cases::what_is_denied_is_a_condition),
    ("an_outage_changes_nothing_that_is_known", cases::an_outage_changes_nothing_that_is_known),
    ("what_is_announced_is_heard", cases::what_is_announced_is_heard),
    ("facts_are_pulled_from_an_account_with_something_in_it", facts::facts_are_pulled),
    ("the_policy_names_every_action_that_is_called", permissions::the_policy_names_every_action_that_is_called),
    ("figures_over_http_keep_their_bounds", figures::keep_their_bounds),
];

static INSTALLED: OnceLock<PathBuf> = OnceLock::new();

/// Where moto is installed.
fn installed() -> PathBuf {
    INSTALLED.get().expect("the program has read its arguments").clone()
}

/// The images of every account.
fn images() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/aws/images.json")
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, url, actions @ ..] = arguments.as_slice()
        && word == permissions::AS_USER
    {
        permissions::make_calls(url, actions);
        return ExitCode::SUCCESS;
    }
    // The SDK reads credentials from the environment, which only a new process can be given.
    if std::env::var("AWS_ACCESS_KEY_ID").as_deref() != Ok("any") {
        let again = Command::new(std::env::current_exe().unwrap())
            .args(&arguments)
            .envs([("AWS_ACCESS_KEY_ID", "any"), ("AWS_SECRET_ACCESS_KEY", "any"), ("AWS_REGION", moto::REGION)])
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .status();
        return if again.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut words = arguments.into_iter();
    let (mut installed, mut programs, mut readme, mut names) = (None, None, None, Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--moto" => installed = words.next().map(PathBuf::from),
            "--readme" => readme = words.next().map(PathBuf::from),
            "--programs" => programs = words.next().map(PathBuf::from),
            _ => names.push(word),
        }
    }
    let installed = installed.expect("--moto FOLDER, as tests/aws/install makes it; `make e2e` does both");
    INSTALLED.set(installed.clone()).unwrap();
    let moto = Moto::start(&installed, &images());
    if let Some(readme) = readme {
        figures::write(&moto, &readme);
        return ExitCode::SUCCESS;
    }
    let mut cases: Vec<(&str, Box<dyn Fn()>)> = Vec::new();
    for (name, run) in CASES {
        cases.push((name, Box::new(|| run(&moto))));
    }
    if let Some(programs) = programs {
        let programs = programs.canonicalize().expect("the folder of --programs exists");
        let moto = &moto;
        cases.push((
            "a_commit_becomes_pods_that_run",
            Box::new({
                let programs = programs.clone();
                move || whole::a_commit_becomes_pods_that_run(moto, &programs)
            }),
        ));
        cases.push((
            "the_first_labs_show_what_they_promise",
            Box::new(move || labs::the_first_labs_show_what_they_promise(moto, &programs)),
        ));
    }
    let mut failed = Vec::new();
    for (name, run) in
        cases.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|it| name.contains(it.as_str())))
    {
        let began = Instant::now();
        let is_fine = catch_unwind(AssertUnwindSafe(run)).is_ok();
        println!("{} {name} ({:.1} s)", if is_fine { "ok    " } else { "FAILED" }, began.elapsed().as_secs_f64());
        if !is_fine {
            failed.push(*name);
        }
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
