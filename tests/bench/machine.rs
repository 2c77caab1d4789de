//! When, where and how it was measured, and the place in the README that says it.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark asks the machine what it is")]

use std::path::Path;
use std::process::Command;

/// The command is what a reader types to get the same.
pub fn preamble(command: &str) -> String {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let cores = std::thread::available_parallelism().unwrap();
    format!("{date}, {}, {cores} cores, revision {}, `{command}`.\n\n", processor(), revision())
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |model| model.trim().to_owned())
}

fn revision() -> String {
    let output = Command::new("git").args(["describe", "--always", "--dirty"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Writes the text between the two marks of the document that name the command.
pub fn replace_block(document: &Path, command: &str, text: &str) {
    let (begin, end) = (format!("<!-- begin: written by {command} -->"), format!("<!-- end: written by {command} -->"));
    let old = std::fs::read_to_string(document).unwrap();
    let (before, rest) = old.split_once(&begin).expect("the document has no place for the table");
    let (_, after) = rest.split_once(&end).expect("the place for the table has no end");
    std::fs::write(document, format!("{before}{begin}\n{text}{end}{after}")).unwrap();
}
