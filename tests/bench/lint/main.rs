//! How long `cutlist lint` takes for many manifests, beside kubeconform and kube-linter on the same files, and the language server for one
//! change among them. `make bench-lint` runs it.
//!
//! Seconds are those of the whole process, the least of some runs: other work on the machine only adds. Memory is the most that it had
//! resident. kubeconform has the schemas that `cutlist schema export` writes, and passes over kinds that are not among them; kube-linter
//! knows workloads only. Neither holds objects against each other or against what EC2 sells.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark runs programs, writes files and looks at the clock")]

mod editor;
#[path = "../growth.rs"]
mod growth;
#[path = "../machine.rs"]
mod machine;
mod manifests;
#[path = "../random.rs"]
mod random;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Parser;

use editor::Editor;

const SIZES: [usize; 4] = [1_000, 2_000, 5_000, 20_000];
const CHANGES: usize = 40;

#[derive(Debug, Parser)]
struct Arguments {
    /// A release build of cutlist
    #[arg(long)]
    cutlist: PathBuf,
    /// The folder that has kubeconform and kube-linter, or one of them
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Where the manifests go
    #[arg(long, default_value = "target/bench/lint")]
    folder: PathBuf,
    /// Times that each is run
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Only the smallest size
    #[arg(long)]
    quick: bool,
    /// Put the tables into the marked block of this document
    #[arg(long)]
    readme: Option<PathBuf>,
    /// `cargo bench` says that it is one
    #[arg(long, hide = true)]
    bench: bool,
}

/// The best of some runs.
#[derive(Clone, Copy, Debug)]
struct Measured {
    seconds: f64,
    mebibytes: f64,
}

fn main() {
    let arguments = Arguments::parse();
    assert!(arguments.bench, "run it with `make bench-lint`, or `cargo bench`: a test it is not");
    let sizes = if arguments.quick { &SIZES[..1] } else { &SIZES[..] };
    let cutlist = std::path::absolute(&arguments.cutlist).unwrap();
    let folder = std::path::absolute(&arguments.folder).unwrap();
    let schemas = folder.join("schemas");
    assert!(
        Command::new(&cutlist)
            .args(["schema", "export"])
            .arg(&schemas)
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let location =
        format!("{}/{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json", schemas.display());
    let mut text = String::from(
        "| manifests | `cutlist lint` s | MiB | kubeconform s | MiB | kube-linter s | MiB |\n|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let mut points = Vec::new();
    for size in sizes {
        let manifests = folder.join(format!("{size}"));
        if !manifests.is_dir() {
            manifests::write(&manifests, *size);
        }
        let of = |program: &Path, words: &[&str]| {
            measure(program, &words.iter().chain(&["."]).copied().collect::<Vec<_>>(), &manifests, arguments.runs)
        };
        let ours = of(&cutlist, &["lint"]);
        write!(text, "| {size} {}", cells(Some(ours))).unwrap();
        let peer = |name: &str| {
            arguments
                .peers
                .as_ref()
                .map(|peers| std::path::absolute(peers.join(name)).unwrap())
                .filter(|it| it.is_file())
        };
        let kubeconform = peer("kubeconform")
            .map(|it| of(&it, &["-strict", "-schema-location", &location, "-ignore-missing-schemas"]));
        let kube_linter = peer("kube-linter").map(|it| of(&it, &["lint"]));
        writeln!(text, "{}{}|", cells(kubeconform), cells(kube_linter)).unwrap();
        points.push((f64::from(u32::try_from(*size).unwrap()), ours.seconds));
        eprintln!("{size}: {ours:?}, kubeconform {kubeconform:?}, kube-linter {kube_linter:?}");
    }
    if let Some(exponent) = growth::exponent(&points) {
        write!(text, "\nTime grows with manifests to the power of {exponent:.2}.").unwrap();
    }
    let (median, worst) = one_change(&cutlist, &folder.join(format!("{}", SIZES[0])));
    writeln!(
        text,
        "\nOne change in an editor, with {} manifests in its folder: {median:.1} ms until the findings are there, {worst:.1} ms at worst, of \
         {CHANGES} changes.",
        SIZES[0]
    )
    .unwrap();
    print!("{text}");
    if let Some(readme) = &arguments.readme {
        const COMMAND: &str = "make bench-lint";
        machine::replace_block(readme, COMMAND, &(machine::preamble(COMMAND) + &text));
    }
}

fn cells(measured: Option<Measured>) -> String {
    measured.map_or_else(|| "| | ".to_owned(), |it| format!("| {:.3} | {:.0} ", it.seconds, it.mebibytes))
}

/// The least seconds, and the most memory, of some runs.
fn measure(program: &Path, words: &[&str], folder: &Path, runs: usize) -> Measured {
    let measured = (0..runs).map(|_| run(program, words, folder));
    let best = |one: Measured, other: Measured| Measured {
        seconds: one.seconds.min(other.seconds),
        mebibytes: one.mebibytes.max(other.mebibytes),
    };
    measured.reduce(best).unwrap()
}

fn run(program: &Path, words: &[&str], folder: &Path) -> Measured {
    let start = Instant::now();
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut mebibytes: f64 = 0.0;
    loop {
        mebibytes = mebibytes.max(resident(child.id()));
        // What it found is no matter here; kube-linter finds much.
        if child.try_wait().unwrap().is_some() {
            return Measured { seconds: start.elapsed().as_secs_f64(), mebibytes };
        }
        sleep(Duration::from_micros(500));
    }
}

/// The most that a process had in memory so far; 0 when it has gone.
fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kibibytes.unwrap_or_default() / 1024.0
}

/// Median and worst of the milliseconds for one change.
fn one_change(cutlist: &Path, folder: &Path) -> (f64, f64) {
    let (file, text) = manifests::first();
    let broken = text.replace("weight:", "wieght:");
    let mut editor = Editor::open(cutlist, folder, &file, &text);
    let mut milliseconds: Vec<f64> =
        (0..CHANGES).map(|number| editor.change(if number % 2 == 0 { &broken } else { &text })).collect();
    milliseconds.sort_by(f64::total_cmp);
    (milliseconds[CHANGES / 2], milliseconds[CHANGES - 1])
}
