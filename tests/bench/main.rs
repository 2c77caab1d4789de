//! The benchmark: our planner and the reference's scheduler on the same files, in one table. `make bench` runs it.
//!
//! What the numbers are. For the reference: seconds of its `Solve`; then those before it (copying its state, listing pods,
//! building topology and scheduler) and after it (the ordering of each new node's types by price, which its limit does not
//! cover). For ours: seconds of the phases `snapshot` (compiling parsed objects) and `provision` of
//! `cutlist plan --timings`. Both start from parsed objects, and each number is the least of several runs. How much faster
//! is pods placed in a second against pods placed in a second of `Solve` alone. Nodes and price are those that would be
//! bought; the reference's runs differ, and the one with the fewest pods left, then the lowest price, counts. Memory is the
//! most that each process held, with its files.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads its arguments, files and the clock")]

mod arguments;
mod files;
mod growth;
mod machine;
mod market;
mod objects;
mod ours;
mod parity;
mod peer;
mod program;
mod random;
mod report;
mod scenarios;
mod trace;
mod workloads;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use arguments::Arguments;
use files::Files;
use market::Market;
use ours::Planned;
use report::Row;
use scenarios::Scenario;

fn main() {
    let arguments = Arguments::read();
    if let Some(count) = arguments.parity {
        let text = parity::compare(&arguments, count);
        std::fs::write(arguments.folder.join("parity.md"), text).unwrap();
        return;
    }
    let mut bench = Bench { arguments: &arguments, catalogs: BTreeMap::new() };
    let mut text = machine::preamble(if arguments.quick { "make bench-quick" } else { "make bench" });
    text.push_str(report::head());
    print!("{text}");
    let chosen = |scenario: &Scenario| (scenario.quick || !arguments.quick) && arguments.chooses(&scenario.title());
    for scenario in scenarios::table().into_iter().filter(chosen) {
        let line = report::row(&bench.row(&scenario));
        print!("{line}");
        text.push_str(&line);
    }
    for (what, scenarios) in
        [("pods", scenarios::growing_pods(arguments.quick)), ("nodes", scenarios::growing_nodes(arguments.quick))]
    {
        if arguments.chooses(&format!("growth over {what}")) {
            let paragraph = bench.growth(what, &scenarios);
            print!("{paragraph}");
            text.push_str(&paragraph);
        }
    }
    let path = arguments.folder.join("scheduling.md");
    std::fs::write(&path, &text).unwrap();
    println!("\nwritten to {}", path.display());
    if let Some(document) = &arguments.readme {
        machine::replace_block(document, "make bench", &text);
    }
}

struct Bench<'a> {
    arguments: &'a Arguments,
    catalogs: BTreeMap<&'static str, Value>,
}

impl Bench<'_> {
    fn files(&mut self, scenario: &Scenario) -> Files {
        let cutlist = &self.arguments.cutlist;
        let market: Market = scenario.market;
        let catalog = self.catalogs.entry(market.title()).or_insert_with(|| market.catalog(cutlist));
        files::write(scenario, catalog, &self.arguments.folder)
    }

    fn row(&mut self, scenario: &Scenario) -> Row {
        let arguments = self.arguments;
        let files = self.files(scenario);
        let plan = |packing: &str| {
            ours::plan(&arguments.cutlist, &files, packing, arguments.runs, arguments.our_limit_seconds)
        };
        let reference = |peer: &Path| peer::solve(peer, &files, scenario, arguments.peer_limits);
        Row {
            title: scenario.title(),
            pods: scenario.pending.len(),
            reference: arguments.peer.as_deref().map(reference),
            karpenter: plan("karpenter"),
            cheapest: plan("cheapest"),
        }
    }

    /// Our own seconds at each size, and the exponent of the power that fits them.
    fn growth(&mut self, what: &str, scenarios: &[Scenario]) -> String {
        let mut text = format!("\n| {what} | snapshot + provision s | read s | MiB |\n|--:|--:|--:|--:|\n");
        let mut points = Vec::new();
        for scenario in scenarios {
            let files = self.files(scenario);
            let (runs, limit) = (self.arguments.runs, self.arguments.our_limit_seconds);
            let size = if what == "nodes" { scenario.nodes.count } else { scenario.pending.len() };
            match ours::plan(&self.arguments.cutlist, &files, "karpenter", runs, limit) {
                Ok(Planned { decide_seconds, read_seconds, peak_memory_bytes, .. }) => {
                    let memory = peak_memory_bytes / (1 << 20);
                    writeln!(text, "| {size} | {decide_seconds:.4} | {read_seconds:.4} | {memory} |").unwrap();
                    points.push((f64::from(u32::try_from(size).unwrap()), decide_seconds));
                }
                Err(failure) => writeln!(text, "| {size} | {failure:?} | | |").unwrap(),
            }
        }
        if let Some(exponent) = growth::exponent(&points) {
            writeln!(text, "\nTime grows with {what} to the power of {exponent:.2}.").unwrap();
        }
        text
    }
}
