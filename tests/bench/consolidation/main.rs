//! Consolidation to its fixed point: plan, carry out, plan again, until a plan has nothing to do. Price, pods moved, seconds.
//! `make bench-consolidation` runs it, with `--peer` against the reference (`against.rs`); `make bench-consolidation-ours`
//! without.
//!
//! A start is what the reference's packing buys for twice the pods, of which every other one is then taken away. Everything is
//! drawn from fixed seeds. Seconds are those of `core::planner::decide`, from parsed objects to the plan, in this very process,
//! which is built for use. The bound is that of the linear program for the same pods and no nodes.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod against;
#[path = "../../carried_out/mod.rs"]
mod carried_out;
mod frontier;
#[path = "../machine.rs"]
mod machine;
#[expect(dead_code, reason = "the other benchmark uses the rest")]
#[path = "../market.rs"]
mod market;
#[expect(dead_code, reason = "the other benchmark uses the rest")]
#[path = "../objects.rs"]
mod objects;
#[path = "../program.rs"]
mod program;
#[path = "../random.rs"]
mod random;
mod starts;
#[expect(dead_code, reason = "the other benchmark uses the rest")]
#[path = "../workloads.rs"]
mod workloads;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;
use cutlist::api::settings::Packing;
use cutlist::core::check::check;
use cutlist::core::plan::{Plan, Summary};
use cutlist::core::planner::{Phase, decide_in_phases};
use jiff::{SignedDuration, Timestamp};
use mimalloc::MiMalloc;

use starts::Start;

/// The program's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Debug, Parser)]
struct Arguments {
    /// Only rows whose title contains this
    #[arg(long)]
    only: Option<String>,
    /// Only clusters of at most 100 nodes
    #[arg(long)]
    quick: bool,
    /// Judge every plan independently, which takes minutes for large clusters
    #[arg(long)]
    check: bool,
    /// Write each start as a snapshot and definitions below this folder
    #[arg(long)]
    write: Option<PathBuf>,
    /// Print what each plan does
    #[arg(long)]
    verbose: bool,
    /// A release build of cutlist, to be measured against the reference
    #[arg(long, requires = "peer")]
    cutlist: Option<PathBuf>,
    /// The built program of tests/peers/karpenter
    #[arg(long, requires = "cutlist")]
    peer: Option<PathBuf>,
    /// Where the files of the starts that both get, their results and the table go
    #[arg(long, default_value = "target/bench/consolidation")]
    folder: PathBuf,
    /// Seconds for all commands of the reference together, and for all plans of ours
    #[arg(long, default_value_t = 1800)]
    limit: u64,
    /// What the pods of the starts are drawn with; spread over hosts they are always the same
    #[arg(long, default_value_t = 3)]
    seed: u64,
    /// Take what the reference came to from the files of an earlier run in that folder, where there are some
    #[arg(long)]
    known: bool,
    /// Put the table into the marked block of this document
    #[arg(long)]
    readme: Option<PathBuf>,
    /// `cargo bench` says that it is one
    #[arg(long, hide = true)]
    bench: bool,
}

impl Arguments {
    fn chooses(&self, title: &str) -> bool {
        self.only.as_ref().is_none_or(|only| title.contains(only.as_str()))
    }
}

/// More plans than this are a loop that does not end.
const PLANS_MAX: usize = 200;

fn main() {
    let arguments = Arguments::parse();
    assert!(arguments.bench, "run it with `make bench-consolidation`, or `cargo bench`: a test it is not");
    if let (Some(cutlist), Some(peer)) = (&arguments.cutlist, &arguments.peer) {
        against::compare(cutlist, peer, &arguments);
        return;
    }
    println!(
        "| start | packing | pods | nodes | $/h | -> nodes | $/h | bound | over | pods moved | per $/h | plans | first plan s | all s | slowest s | examined |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for start in starts::table() {
        if !arguments.chooses(&start.title) || (arguments.quick && start.pods > 6_000) {
            continue;
        }
        let start = start.build(arguments.seed);
        if let Some(folder) = &arguments.write {
            start.write(&folder.join(start.title.replace(' ', "-")));
        }
        let (fresh, bound) = start.fresh_and_bound();
        println!("new nodes for {}: {fresh:.2}, {:.1} % over the bound", start.title, (fresh / bound - 1.0) * 100.0);
        for packing in [Packing::Cheapest, Packing::Karpenter] {
            println!("{}", to_the_end(&start, packing, bound, &arguments));
        }
    }
}

fn to_the_end(start: &Start, packing: Packing, bound: f64, arguments: &Arguments) -> String {
    let mut snapshot = start.snapshot.clone();
    let mut now: Timestamp = objects::NOW.parse().unwrap();
    let mut seconds: Vec<f64> = Vec::new();
    let mut first: Option<Summary> = None;
    let mut moved = 0;
    let mut moves_of_pod: BTreeMap<String, usize> = BTreeMap::new();
    let last = loop {
        let inputs = start.inputs(&snapshot, packing, now);
        let begin = Instant::now();
        let mut phases: Vec<(Phase, f64)> = Vec::new();
        let plan = decide_in_phases(&inputs, &mut |phase| phases.push((phase, begin.elapsed().as_secs_f64())));
        seconds.push(begin.elapsed().as_secs_f64());
        if arguments.check {
            let violations = check(&plan, &inputs);
            assert!(violations.is_empty(), "{violations:?}");
        }
        if arguments.verbose {
            println!("  until {phases:?}");
            describe(&plan, seconds.len(), *seconds.last().unwrap());
        }
        first.get_or_insert_with(|| plan.summary.clone());
        if plan.steps.is_empty() {
            break plan;
        }
        assert!(seconds.len() < PLANS_MAX, "does not end");
        let removed = plan.steps.iter().filter(|step| step.node.is_some());
        for pod in removed.flat_map(|step| &step.pods) {
            *moves_of_pod.entry(pod.clone()).or_default() += 1;
        }
        moved += carried_out::carry_out(&plan, &mut snapshot, &start.catalog, &start.classes, now);
        now += SignedDuration::from_mins(10);
    };
    let first = first.unwrap();
    let (before, after) = (first.price_per_hour_before.dollars(), last.summary.price_per_hour_after.dollars());
    let saved = before - after;
    format!(
        "| {} | {packing:?} | {} | {} | {before:.2} | {} | {after:.2} | {bound:.2} | {:.1} % | {moved} | {:.0} | {} | {:.3} | {:.2} | {:.3} | {} of {} |",
        start.title,
        snapshot.pods.len(),
        first.nodes_before,
        last.summary.nodes_after,
        (after / bound - 1.0) * 100.0,
        f64::from(u32::try_from(moved).unwrap()) / saved.max(0.01),
        seconds.len(),
        seconds[0],
        seconds.iter().sum::<f64>(),
        seconds.iter().copied().fold(0.0, f64::max),
        first.candidates_examined,
        first.candidates,
    )
}

fn describe(plan: &Plan, number: usize, seconds: f64) {
    let summary = &plan.summary;
    println!(
        "  plan {number}: {seconds:.3} s, +{} nodes, {} replaced, -{}, {} -> {}, {} pods",
        summary.nodes_created,
        summary.nodes_replaced,
        summary.nodes_removed,
        summary.price_per_hour_before,
        summary.price_per_hour_after,
        summary.pods_disrupted
    );
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for held in &plan.held_back {
        let text: String = held.text.chars().filter(|it| !it.is_ascii_digit()).collect();
        *reasons.entry(format!("{:?}: {text}", held.code)).or_default() += 1;
    }
    for (reason, count) in reasons {
        println!("    {count} {reason}");
    }
    let mut moves: Vec<&str> = plan.steps.iter().map(|step| step.reason.text.as_str()).collect();
    moves.dedup();
    for text in moves.iter().take(12) {
        println!("    {text}");
    }
}
