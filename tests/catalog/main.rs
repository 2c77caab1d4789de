//! `cutlist catalog` as it is typed: each folder of `cases/` holds `arguments`, one a line, and `expected.txt`, what
//! the program answers: exit code, standard output, standard error. `UPDATE=1` rewrites the latter.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test starts the program and reads files")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Width of a terminal that people still use.
const COLUMNS_MAX: usize = 100;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/catalog/cases");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn run(arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .arg("catalog")
        .args(arguments.lines())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    format!("exit code {code}\n== output\n{}== errors\n{}", text(output.stdout), text(output.stderr))
}

#[test]
fn answers_are_as_expected() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut different = Vec::new();
    for case in cases() {
        let found = run(&std::fs::read_to_string(case.join("arguments")).unwrap());
        let file = case.join("expected.txt");
        if update {
            std::fs::write(&file, &found).unwrap();
        } else if std::fs::read_to_string(&file).unwrap_or_default() != found {
            different.push(format!("{}\n{found}", file.display()));
        }
    }
    assert!(different.is_empty(), "other answers than expected:\n{}", different.join("\n"));
}

#[test]
fn the_whole_table_fits_a_terminal() {
    for region in ["us-east-1", "ap-northeast-2"] {
        let answer = run(&format!("--region\n{region}"));
        let widest = answer.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= COLUMNS_MAX, "{}: {widest}", widest.chars().count());
    }
}
