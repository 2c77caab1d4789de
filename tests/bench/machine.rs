//! When, where and how it was measured, and the place in the README that says it.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a benchmark asks the machine what it is")]

use std::path::Path;
use std::process::Command;

use crate::arguments::Arguments;

const BEGIN: &str = "<!-- begin: written by make bench -->";
const END: &str = "<!-- end: written by make bench -->";

pub fn preamble(arguments: &Arguments) -> String {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let cores = std::thread::available_parallelism().unwrap();
    let command = if arguments.quick { "make bench-quick" } else { "make bench" };
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

/// Writes the text between the two marks of the document.
pub fn replace_block(document: &Path, text: &str) {
    let old = std::fs::read_to_string(document).unwrap();
    let (before, rest) = old.split_once(BEGIN).expect("the document has no place for the table");
    let (_, after) = rest.split_once(END).expect("the place for the table has no end");
    std::fs::write(document, format!("{before}{BEGIN}\n{text}{END}{after}")).unwrap();
}
