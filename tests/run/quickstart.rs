//! `cutlist run --embedded` on the examples that are played, as a stranger sees it.

use std::path::Path;
use std::process::{Command, Output};

fn run(example: &str, seed: &str) -> Output {
    run_with(example, seed, &[])
}

fn run_with(example: &str, seed: &str, further: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example);
    Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(["run", "--embedded", "--seed", seed])
        .args(further)
        .arg(folder)
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The identity of a plan is a hash over all of it, also over what is not shown; it would make the file another one for
/// changes that nobody sees.
fn without_plan_ids(text: &str) -> String {
    let mut masked = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for marker in ["Plan ", "command="] {
            if let Some((before, after)) = line.split_once(marker)
                && after.len() > 6
                && after.chars().take(6).all(|digit| digit.is_ascii_hexdigit())
            {
                let rest: String = after.chars().skip(6).collect();
                line = format!("{before}{marker}000000{rest}");
            }
        }
        masked.push_str(&line);
        masked.push('\n');
    }
    masked
}

#[test]
fn the_output_is_the_golden_file_each_time() {
    for example in ["quickstart", "spot-interruption"] {
        is_golden(example);
    }
}

fn is_golden(example: &str) {
    let (first, second) = (text(&run(example, "0")), text(&run(example, "0")));
    assert_eq!(first, second, "the same seed gives the same bytes");
    let first = without_plan_ids(&first);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/run/{example}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &first).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert!(
        first == expected,
        "the output is another one than {}; if that is meant, run again with UPDATE=1:\n{first}",
        golden.display()
    );
}

/// The quickstart takes another type where the cloud sells no other.
#[test]
fn the_cloud_sells_what_a_file_says() {
    let catalog = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(["catalog", "--filter", "instance-type=m6i.2xlarge", "--output", "json"])
        .output()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.json");
    std::fs::write(&file, text(&catalog)).unwrap();
    let file = file.to_str().unwrap();
    let launched = |text: &str| text.lines().filter(|line| line.contains("m6i.2xlarge")).count();
    assert_eq!(launched(&text(&run("quickstart", "0"))), 0);
    assert!(launched(&text(&run_with("quickstart", "0", &["--catalog", file]))) > 0);
}

#[test]
fn another_seed_gives_other_names_and_the_same_course() {
    let (first, other) = (text(&run("quickstart", "0")), text(&run("quickstart", "1")));
    assert_ne!(first, other);
    let totals = |text: &str| text.lines().rev().find(|line| line.starts_with("plans")).map(str::to_owned);
    assert_eq!(totals(&first), totals(&other));
}

#[test]
fn every_change_shows_revision_lint_plan_and_then_what_was_done() {
    let text = text(&run("quickstart", "0"));
    let order = [
        "revision ",
        "definitions: clean",
        "Plan ",
        "created NodePool/default",
        "found provisionable pod(s)",
        "1 to create, 0 to replace, 0 to remove, 5 pods placed",
        "computed new nodeclaim(s) to fit pod(s)",
        "created nodeclaim",
        "launched nodeclaim",
        "registered nodeclaim",
        "initialized nodeclaim",
        "limits.cpu 10 reached",
        "would help: limits.cpu",
        "because  Empty for 30s (consolidateAfter 30s)",
        "disrupting node(s)",
        "deleted node ",
        "deleted nodeclaim",
        "Allow Graviton",
        "replace 1 node with 1, saves",
        "changed NodePool/default",
        "disrupting node(s)",
        "created nodeclaim",
        "initialized nodeclaim",
        "deleted nodeclaim",
        "price of the fleet",
    ];
    let mut rest = text.as_str();
    for expected in order {
        let Some((_, after)) = rest.split_once(expected) else { panic!("`{expected}` does not follow in\n{rest}") };
        rest = after;
    }
    // A finding and its help stand on one line each however long they are, as compilers print them.
    let is_of_finding = |line: &str| line.starts_with("note[") || line.starts_with("  = help: ");
    let wide = |line: &&str| line.chars().count() > 100 && !is_of_finding(line);
    assert_eq!(text.lines().find(wide), None, "nothing else is wider than 100 columns");
}
