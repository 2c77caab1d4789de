//! Whether Cutlist foresees what Karpenter does next, beside it on one real control plane. `make bench-beside` runs it.
//!
//! Karpenter runs with its kwok provider, which makes Node objects in the place of instances. In every step it is paused, something
//! changes, and `cutlist plan --packing karpenter` of a snapshot of the cluster says what comes next. Then Karpenter goes on. A plan was right when the beginning of what Karpenter did, as much of it as was
//! foreseen, is the same: nodes made by pool, type, zone, capacity type and by what pods ask of them, and which nodes go, and why. Then it is
//! paused again, and the next plan says what follows, until nothing does: where nothing is foreseen, Karpenter has to do nothing. A step
//! is foreseen when all of its plans were right.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark starts programs, writes files and waits")]

#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../../e2e/cluster.rs"]
mod cluster;
#[expect(dead_code, reason = "the tests use the rest")]
#[path = "../../e2e/control_plane/mod.rs"]
mod control_plane;
mod deeds;
mod foreseen;
mod karpenter;
#[path = "../machine.rs"]
mod machine;
#[path = "../../e2e/random.rs"]
mod random;
mod sold;
mod steps;
mod world;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use clap::Parser;

use steps::Step;

const COMMAND: &str = "make bench-beside";

#[derive(Debug, Parser)]
struct Arguments {
    /// The program that foresees
    #[arg(long)]
    cutlist: PathBuf,
    /// The folder that tests/control-plane/build and tests/peers/karpenter-kwok/build fill
    #[arg(long)]
    programs: PathBuf,
    /// Where steps that were missed go, with all that they need to be tried again
    #[arg(long, default_value = "target/bench/beside")]
    folder: PathBuf,
    /// Steps, of all control planes together
    #[arg(long, default_value_t = 200)]
    steps: usize,
    /// Of the first control plane; each further one has the next
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Control planes at the same time: they wait more than they compute
    #[arg(long, default_value_t = 2)]
    planes: usize,
    /// Put the table into the marked block of this document
    #[arg(long)]
    readme: Option<PathBuf>,
    /// `cargo bench` says that it is one
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments = Arguments::parse();
    assert!(arguments.bench, "run it with `make bench-beside`, or `cargo bench`: a test it is not");
    let here = |path: &PathBuf| std::path::absolute(path).unwrap();
    let (cutlist, programs, folder) = (here(&arguments.cutlist), here(&arguments.programs), here(&arguments.folder));
    let planes = arguments.planes.max(1);
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..planes {
            let seed = arguments.seed + u64::try_from(number).unwrap();
            let count = arguments.steps / planes + usize::from(number < arguments.steps % planes);
            let (all, cutlist, programs, folder) = (&all, &cutlist, &programs, &folder);
            // One that breaks off leaves the steps of the others.
            scope.spawn(move || {
                steps::play(cutlist, programs, folder, seed, count, &|step| all.lock().unwrap().push(step));
            });
        }
    });
    let all = all.into_inner().unwrap();
    let table = table(&all);
    println!("{table}");
    if let Some(readme) = &arguments.readme {
        let command =
            format!("{COMMAND} BESIDE=\"--steps {} --seed {} --planes {planes}\"", arguments.steps, arguments.seed);
        machine::replace_block(readme, COMMAND, &format!("{}{table}", machine::preamble(&command)));
    }
}

/// By kind of change, then each miss.
fn table(steps: &[Step]) -> String {
    let mut by_kind: BTreeMap<&str, Vec<&Step>> = BTreeMap::new();
    steps.iter().for_each(|step| by_kind.entry(step.kind).or_default().push(step));
    let mut text =
        "| change | steps | foreseen | plans | foreseen | of them not idle | foreseen | nodes made | nodes gone |\n\
                    |---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
            .to_owned();
    let kinds = world::KINDS.iter().chain(&steps::FURTHER);
    kinds
        .filter_map(|kind| Some((kind, by_kind.get(kind)?)))
        .for_each(|(kind, steps)| text.push_str(&row(kind, steps)));
    text.push_str(&row("**all**", &steps.iter().collect::<Vec<_>>()));
    if steps.iter().any(|step| !step.is_foreseen()) {
        text.push_str("\n| seed, step and plan | change | missed |\n|---|---|---|\n");
    }
    for step in steps {
        for look in &step.looks {
            if let Some(missed) = look.missed {
                writeln!(text, "| {}, {}.{} | {} | {missed} |", step.seed, step.number, look.number, step.kind)
                    .unwrap();
            }
        }
    }
    text
}

fn row(name: &str, steps: &[&Step]) -> String {
    let foreseen = steps.iter().filter(|step| step.is_foreseen()).count();
    let looks: Vec<_> = steps.iter().flat_map(|step| &step.looks).collect();
    let busy: Vec<_> = looks.iter().filter(|look| !look.is_idle).collect();
    let foreseen_looks = looks.iter().filter(|look| look.missed.is_none()).count();
    let foreseen_busy = busy.iter().filter(|look| look.missed.is_none()).count();
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        steps.len(),
        share(foreseen, steps.len()),
        looks.len(),
        share(foreseen_looks, looks.len()),
        busy.len(),
        share(foreseen_busy, busy.len()),
        looks.iter().map(|look| look.made).sum::<usize>(),
        looks.iter().map(|look| look.gone).sum::<usize>(),
    )
}

fn share(part: usize, all: usize) -> String {
    if all == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / all as f64) }
}
