//! What EC2 is asked for, and how fast: the figures of `tests/ec2/figures.rs` at their full size, in virtual time, and two that pass in this
//! machine's time. `make bench-ec2` runs it; it needs neither the SDK nor a network. The account is played in this process: it loses
//! answers, refuses, throttles, and shows things late. What costs time with the SDK over HTTP is `make bench-ec2-sdk`.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and what the system says of this process")]

#[path = "../../ec2/account.rs"]
mod account;
#[path = "../../ec2/claims.rs"]
mod claims;
#[path = "../../ec2/controller.rs"]
mod controller;
#[path = "../../ec2/figures.rs"]
mod figures;
#[path = "../../ec2/fleets.rs"]
mod fleets;
#[path = "../machine.rs"]
mod machine;
#[path = "../random.rs"]
#[expect(dead_code, reason = "the other benchmarks use the rest")]
mod random;
#[path = "../../ec2/scene.rs"]
mod scene;
mod timed;

use std::path::PathBuf;

use clap::Parser;

use figures::Figure;
use scene::{at, identity};

const COMMAND: &str = "make bench-ec2";

#[derive(Debug, Parser)]
struct Arguments {
    /// Put the table into the marked block of this document
    #[arg(long)]
    readme: Option<PathBuf>,
    /// `cargo bench` says that it is one
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    assert!(arguments.bench, "run it with `make bench-ec2`, or `cargo bench`: a test it is not");
    let mut text = String::from("| scenario | target | found | |\n|---|---|---|---|\n");
    let mut figures = figures::all(10_000);
    figures.push(timed::pending_pod_to_fleet());
    figures.push(timed::memory_of_an_hour());
    for Figure { scenario, target, found, is_met } in figures {
        let met = if is_met { "kept" } else { "**missed**" };
        text.push_str(&format!("| {scenario} | {target} | {found} | {met} |\n"));
    }
    print!("{text}");
    if let Some(readme) = &arguments.readme {
        machine::replace_block(readme, COMMAND, &(machine::preamble(COMMAND) + &text));
    }
}
