//! Ours and the reference's disruption controller from the same starts, each to its end, as programs of their own.
//!
//! Ours is `cutlist simulate`: the controller's loop on a cluster in memory, with evictions, nodes that boot and replacements
//! first. Its seconds are those of the whole process, reading included. The reference carries its commands out at once
//! (`tests/peers/karpenter`), and its seconds are those of its controller alone. It does so twice: in the first table the pods that
//! move are where its own simulation wants them, in the second where kube-scheduler puts them, as for ours in both. The bound
//! is that of `cutlist plan` for the same pods without nodes.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark runs programs and reads files")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Arguments;
use crate::machine;
use crate::market::Market;
use crate::objects::NOW;
use crate::program::{Failure, run};
use crate::starts::{self, PATIENT, Start};

const HEAD: &str = "\
| start | pods | nodes | $/h | reference $/h | nodes | moved | per $/h | s | ended | `cutlist` $/h | nodes | moved | per $/h | s | over bound |
|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|
";

const POSSIBLE: &str = "
What is possible: the fewest pods that anybody must move to end at these prices, proven by a linear program; the same for a price within 3 %
of the bound, and per dollar an hour saved by then; and where `cutlist` ends with `payback: Never`.

| start | reference moved | at least | `cutlist` moved | at least | within 3 %: at least | per $/h | `payback: Never` $/h | moved | s | over bound |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

/// Part of the bound that is near enough.
const NEAR: f64 = 1.03;

const AS_SCHEDULED: &str = "\nThe same, where the reference's pods, too, go where kube-scheduler puts them:\n\n";

/// For one plan, and for the reference to read its files and to end what it has begun.
const GRACE_SECONDS: u64 = 300;

/// What one of both came to.
struct End {
    pods: u64,
    nodes_start: u64,
    price_start: f64,
    nodes: u64,
    price: f64,
    moved: u64,
    seconds: f64,
    /// How it ended, where that is not at a fixed point.
    remark: String,
}

impl End {
    /// Of a summary, ours or the reference's, which calls its pods so.
    fn of(summary: &Value, pods: &str, seconds: f64, remark: String) -> Self {
        Self {
            pods: whole(&summary[pods]),
            nodes_start: whole(&summary["nodesStart"]),
            price_start: number(&summary["pricePerHourStart"]),
            nodes: whole(&summary["nodesEnd"]),
            price: number(&summary["pricePerHourEnd"]),
            moved: whole(&summary["podsMoved"]),
            seconds,
            remark,
        }
    }
}

pub fn compare(cutlist: &Path, peer: &Path, arguments: &Arguments) {
    let here = |path: &Path| std::path::absolute(path).unwrap();
    let (cutlist, peer, folder) = (here(cutlist), here(peer), here(&arguments.folder));
    fs::create_dir_all(&folder).unwrap();
    let catalog = folder.join("catalog.json");
    fs::write(&catalog, Market::BuiltIn.catalog(&cutlist).to_string()).unwrap();
    let programs =
        Programs { cutlist, peer, catalog, limit_seconds: arguments.limit, is_reference_known: arguments.known };
    print!("{HEAD}");
    let (mut exact, mut scheduled, mut possible) = (HEAD.to_owned(), HEAD.to_owned(), POSSIBLE.to_owned());
    for start in starts::against_the_reference() {
        if !arguments.chooses(&start.title) || (arguments.quick && start.pods > 1_200) {
            continue;
        }
        let start = start.build(arguments.seed);
        let files = folder.join(start.title.replace([' ', ','], "-"));
        start.write(&files);
        let (ours, bound) = (programs.ours(&files, "definitions"), programs.bound(&files));
        let wanted = programs.reference(&files, World::AsWanted);
        let lines = [
            row(&start.title, &wanted, &ours, &bound),
            row(&start.title, &programs.reference(&files, World::AsScheduled), &ours, &bound),
            what_is_possible(&start, &wanted, &ours, &programs.ours(&files, PATIENT), &bound),
        ];
        for (line, table) in lines.iter().zip([&mut exact, &mut scheduled, &mut possible]) {
            print!("{line}");
            table.push_str(line);
        }
    }
    let text = format!("{}{exact}{AS_SCHEDULED}{scheduled}{possible}", machine::preamble("make bench-consolidation"));
    let path = folder.join("consolidation.md");
    fs::write(&path, &text).unwrap();
    println!("\nwritten to {}", path.display());
    if let Some(document) = &arguments.readme {
        machine::replace_block(document, "make bench-consolidation", &text);
    }
}

/// Who decides where pods go that move.
#[derive(Clone, Copy)]
enum World {
    /// The reference itself.
    AsWanted,
    /// kube-scheduler.
    AsScheduled,
}

struct Programs {
    cutlist: PathBuf,
    peer: PathBuf,
    catalog: PathBuf,
    limit_seconds: u64,
    /// Whether the reference's results are taken from the files of an earlier run.
    is_reference_known: bool,
}

impl Programs {
    fn reference(&self, files: &Path, world: World) -> Result<End, Failure> {
        let mut command = Command::new(&self.peer);
        command.arg("-definitions").arg(files.join("definitions")).arg("-snapshot").arg(files.join("snapshot.json"));
        command.arg("-catalog").arg(&self.catalog).args(["-now", NOW, "-steps", "-summary"]);
        command.args(["-seconds", &format!("{}s", self.limit_seconds)]);
        let name = match world {
            World::AsWanted => "reference-as-wanted",
            World::AsScheduled => {
                command.arg("-kube-scheduler");
                "reference-as-scheduled"
            }
        };
        let output = files.join(format!("{name}.json"));
        if !(self.is_reference_known && output.exists()) {
            let errors = files.join(format!("{name}.errors"));
            run(&mut command, &output, &errors, self.limit_seconds + GRACE_SECONDS)?;
        }
        let lines = fs::read_to_string(output).unwrap();
        let last = lines.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok()).unwrap_or_default();
        let summary = &last["summary"];
        if summary.is_null() {
            return Err(Failure::Ended("no summary at its end".to_owned()));
        }
        let mut remark = String::from(match summary {
            _ if summary["fixedPoint"] == true => "fixed point",
            _ if summary["outOfTime"] == true => "out of time",
            _ => "rejects its own commands",
        });
        if whole(&summary["timeOuts"]) > 0 {
            remark.push_str(&format!(", {} time-outs", whole(&summary["timeOuts"])));
        }
        Ok(End::of(summary, "pods", number(&summary["seconds"]), remark))
    }

    fn ours(&self, files: &Path, definitions: &str) -> Result<End, Failure> {
        let mut command = self.cutlist("simulate", &files.join(definitions), &files.join("snapshot.json"));
        let output = files.join(format!("ours-{definitions}.json"));
        let seconds = run(&mut command, &output, &files.join("ours.errors"), self.limit_seconds)?;
        let simulation: Value = serde_json::from_slice(&fs::read(output).unwrap()).unwrap();
        if simulation["settled"] != true {
            return Err(Failure::Ended("does not settle".to_owned()));
        }
        Ok(End::of(&simulation["summary"], "podsBoundStart", seconds, String::new()))
    }

    /// Dollars per hour that no fleet for these pods costs less than.
    fn bound(&self, files: &Path) -> Result<f64, Failure> {
        let mut command = self.cutlist("plan", &files.join("definitions"), &files.join("pending.json"));
        let output = files.join("pending-plan.json");
        run(&mut command, &output, &files.join("pending-plan.errors"), GRACE_SECONDS)?;
        let plan: Value = serde_json::from_slice(&fs::read(output).unwrap()).unwrap();
        Ok(plan["summary"]["lowerBoundPricePerHour"].as_f64().unwrap_or(0.0))
    }

    fn cutlist(&self, what: &str, definitions: &Path, snapshot: &Path) -> Command {
        let mut command = Command::new(&self.cutlist);
        command.arg(what).arg(definitions).arg("--snapshot").arg(snapshot);
        command.arg("--catalog").arg(&self.catalog).args(["--now", NOW, "--output", "json"]);
        command
    }
}

fn row(
    title: &str,
    reference: &Result<End, Failure>,
    ours: &Result<End, Failure>,
    bound: &Result<f64, Failure>,
) -> String {
    let over_bound = match (ours, bound) {
        (Ok(ours), Ok(bound)) if *bound > 0.0 => format!("{:.1} %", (ours.price / bound - 1.0) * 100.0),
        _ => String::new(),
    };
    let start = ours
        .as_ref()
        .or(reference.as_ref())
        .map_or("| |".to_owned(), |end| format!("{} | {} | {:.2}", end.pods, end.nodes_start, end.price_start));
    let remark = match reference {
        Ok(end) => end.remark.as_str(),
        Err(_) => "",
    };
    format!("| {title} | {start} | {} | {remark} | {} | {over_bound} |\n", columns(reference), columns(ours))
}

fn what_is_possible(
    start: &Start,
    reference: &Result<End, Failure>,
    ours: &Result<End, Failure>,
    patient: &Result<End, Failure>,
    bound: &Result<f64, Failure>,
) -> String {
    let (Some(frontier), Ok(ours), Ok(bound)) = (start.frontier(), ours, bound) else { return String::new() };
    let at_least = |end: &End| format!("{} | {:.0}", end.moved, frontier.fewest_moves(end.price).ceil());
    let of_reference = reference.as_ref().map_or("| ".to_owned(), at_least);
    let near = bound * NEAR;
    let near_moves = frontier.fewest_moves(near).ceil();
    let patient = patient.as_ref().map_or("| | | ".to_owned(), |end| {
        let over = (end.price / bound - 1.0) * 100.0;
        format!("{:.2} | {} | {:.1} | {over:.1} %", end.price, end.moved, end.seconds)
    });
    let per_dollar = near_moves / (ours.price_start - near);
    let title = &start.title;
    format!("| {title} | {of_reference} | {} | {near_moves:.0} | {per_dollar:.1} | {patient} |\n", at_least(ours))
}

/// Price, nodes, pods moved, the same per dollar an hour that is saved, seconds.
fn columns(end: &Result<End, Failure>) -> String {
    match end {
        Err(Failure::TooLong(seconds)) => format!("> {seconds} s | | | |"),
        Err(Failure::Ended(said)) => format!("failed: {} | | | |", said.replace('|', "/")),
        Ok(end) => {
            let saved = end.price_start - end.price;
            let moved = f64::from(u32::try_from(end.moved).unwrap());
            let per_dollar = if saved > 0.005 { format!("{:.1}", moved / saved) } else { String::new() };
            format!("{:.2} | {} | {} | {per_dollar} | {:.1}", end.price, end.nodes, end.moved, end.seconds)
        }
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap()
}
