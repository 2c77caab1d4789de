//! What each minor version of Karpenter knows of its kinds, read from the custom resource definitions that it installs, and written as
//! the table that lint goes by. `make karpenter-versions` runs it; `cargo test` does not.
//!
//! ```text
//! cargo test --test karpenter-versions -- CLONE [LAST]
//! ```
//!
//! CLONE is a clone of github.com/aws/karpenter-provider-aws with its tags: the definitions of both groups are in it. LAST is the newest
//! minor version that is read; without it, the newest that is in the table already, so that the table only changes where
//! what was released did. Nothing is judged here: a rule of a definition that this can not read is printed, for people to look at.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "this reads a clone by git, and writes a file")]

mod definition;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use definition::{Fact, facts};

const TABLE: &str = "src/definitions/versions/karpenter.txt";
const FOLDER: &str = "pkg/apis/crds";

/// Kinds that are not read from definitions.
const OTHERS: [&str; 1] = ["NodeClaim"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let clone = words.first().expect("a clone of github.com/aws/karpenter-provider-aws with its tags");
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    let last = match words.get(1) {
        Some(last) => minor(last).expect("the newest version, such as 1.14"),
        None => newest_of(&std::fs::read_to_string(&table).unwrap()).expect("the table names its versions"),
    };
    let tags = tags(clone, last);
    assert!(!tags.is_empty(), "{clone} has no tags of versions: git fetch --tags");
    let mut seen: BTreeMap<Fact, BTreeSet<u32>> = BTreeMap::new();
    let mut unread: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (minor, tag) in &tags {
        for text in definitions(clone, tag) {
            let (known, rules) = facts(&text, &OTHERS);
            for fact in known {
                seen.entry(fact).or_default().insert(*minor);
            }
            for rule in rules {
                unread.entry(rule).or_default().insert(*minor);
            }
        }
    }
    // Kinds that are no longer served are told apart from mistakes anyway.
    let newest = tags.keys().max().copied().unwrap_or_default();
    let served: BTreeSet<String> = seen
        .iter()
        .filter(|(fact, minors)| fact.is_kind() && minors.contains(&newest))
        .map(|(fact, _)| fact.kind.clone())
        .collect();
    seen.retain(|fact, _| served.contains(&fact.kind));
    unread.retain(|rule, _| served.iter().any(|kind| rule.starts_with(kind.as_str())));
    std::fs::write(&table, written(&tags, &seen)).unwrap();
    println!("wrote {} facts of {} versions to {TABLE}", seen.len(), tags.len());
    let all: BTreeSet<u32> = tags.keys().copied().collect();
    for (rule, minors) in unread.iter().filter(|(_, minors)| **minors != all) {
        println!("not read, and not in all versions: {} {rule}", spans(minors, &all).join(" "));
    }
}

/// `1.14`, `v1.14.1` and the like.
fn minor(text: &str) -> Option<u32> {
    let rest = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.")?;
    rest.split('.').next()?.parse().ok()
}

fn newest_of(table: &str) -> Option<u32> {
    let versions = table.lines().find_map(|line| line.strip_prefix("versions "))?;
    versions.split(' ').filter_map(|version| minor(version.split('=').next()?)).max()
}

/// The last release of each minor version: what a definition gained within one counts.
fn tags(clone: &str, last: u32) -> BTreeMap<u32, String> {
    let mut newest: BTreeMap<u32, (u32, String)> = BTreeMap::new();
    for tag in git(clone, &["tag"]).lines() {
        let patch = tag.rsplit('.').next().and_then(|patch| patch.parse::<u32>().ok());
        let Some((minor, patch)) = minor(tag).filter(|_| tag.matches('.').count() == 2).zip(patch) else { continue };
        if minor <= last && newest.get(&minor).is_none_or(|(known, _)| *known < patch) {
            newest.insert(minor, (patch, tag.to_owned()));
        }
    }
    newest.into_iter().map(|(minor, (_, tag))| (minor, tag)).collect()
}

fn definitions(clone: &str, tag: &str) -> Vec<String> {
    let files = git(clone, &["ls-tree", "--name-only", tag, &format!("{FOLDER}/")]);
    files
        .lines()
        .filter(|file| file.ends_with(".yaml"))
        .map(|file| git(clone, &["show", &format!("{tag}:{file}")]))
        .collect()
}

fn git(clone: &str, arguments: &[&str]) -> String {
    let ran = Command::new("git").arg("-C").arg(clone).args(arguments).output().unwrap();
    assert!(ran.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

fn written(tags: &BTreeMap<u32, String>, seen: &BTreeMap<Fact, BTreeSet<u32>>) -> String {
    let all: BTreeSet<u32> = tags.keys().copied().collect();
    let mut text = String::from(
        "# What each minor version of Karpenter knows of the kinds that lint reads. Written by `make karpenter-versions` from the custom\n\
         # resource definitions of its AWS provider; not to be edited.\n\
         # Of each fact: since when it holds, until when (`-`: it still does), the kind, the pointer into its schema, what it is, and a name.\n",
    );
    let versions: Vec<String> = tags.iter().map(|(minor, tag)| format!("1.{minor}={tag}")).collect();
    writeln!(text, "versions {}", versions.join(" ")).unwrap();
    for (fact, minors) in seen {
        for span in spans(minors, &all) {
            writeln!(text, "{span} {fact}").unwrap();
        }
    }
    text
}

/// `1.3 -` for from then on, `1.0 1.8` for what went.
fn spans(minors: &BTreeSet<u32>, all: &BTreeSet<u32>) -> Vec<String> {
    let mut spans = Vec::new();
    let mut begun = None;
    let mut before = None;
    for minor in all {
        match (minors.contains(minor), begun) {
            (true, None) => begun = Some(*minor),
            (false, Some(begin)) => {
                spans.push(format!("1.{begin} 1.{}", before.unwrap_or(begin)));
                begun = None;
            }
            _ => {}
        }
        before = Some(*minor);
    }
    spans.extend(begun.map(|begin| format!("1.{begin} -")));
    spans
}
