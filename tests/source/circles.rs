//! Files that use each other in a circle: none of them can be read, moved or tested without the others.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{self, SourceFile};
use super::uses::{Use, dependencies, uses};

/// The files of circles that stay, each with its reason. No other file may join one.
const KEPT: &[&[&str]] = &[&[
    // What is wrong with the text itself is found where it is taken apart, by `stream`, `events` and `document`.
    "src/definitions/document/events.rs",
    "src/definitions/document/mod.rs",
    "src/definitions/document/stream.rs",
    // A finding is at a place of a document, and names its rule.
    "src/definitions/findings.rs",
    // What a finding lets be written is what stands in the document at its place.
    "src/definitions/fixes.rs",
    // A rule finds, in one document or in all of a revision.
    "src/definitions/revision.rs",
    "src/definitions/rule.rs",
    // The rules about text that can not be read: a document names them.
    "src/definitions/rules/reading.rs",
]];

/// So many times a name may be handed on from room to room.
const HANDED_ON_MAX: usize = 8;

/// By the path of a module, what its file uses.
struct Tree(BTreeMap<String, Module>);

struct Module {
    file: String,
    uses: Vec<Use>,
    /// Whether it has files below it.
    is_face: bool,
}

impl Tree {
    fn new(files: &[SourceFile], crates: &BTreeSet<String>) -> Self {
        let files = files.iter().filter(|file| !file.is_test());
        let module = |file: &SourceFile| Module { file: file.path.clone(), uses: uses(file, crates), is_face: false };
        let mut modules: BTreeMap<String, Module> = files.map(|file| (path_of(&file.path), module(file))).collect();
        let all: BTreeSet<String> = modules.keys().cloned().collect();
        for (path, module) in &mut modules {
            let below = format!("{path}::");
            module.is_face = all.range(below.clone()..).next().is_some_and(|other| other.starts_with(&below));
        }
        Self(modules)
    }

    /// The module that answers for what a path names: a face hands on what its files define.
    fn definer(&self, path: &str, handed_on: usize) -> Option<&str> {
        let mut module = path;
        let found = loop {
            match self.0.get_key_value(module) {
                Some(found) => break found,
                None => module = module.rsplit_once("::")?.0,
            }
        };
        let below = path.strip_prefix(module).unwrap_or_default();
        let name = below.trim_start_matches("::").split("::").next().unwrap_or_default();
        let further = found.1.uses.iter().filter(|it| found.1.is_face && it.handed_on_as.as_deref() == Some(name));
        let further = further.filter(|_| handed_on < HANDED_ON_MAX).find_map(|it| {
            let definer = self.definer(&it.resolved, handed_on + 1)?;
            (definer != found.0).then_some(definer)
        });
        further.or(Some(found.0))
    }

    /// What a module uses of others, each with the first place where it does.
    fn arrows_of<'t>(&'t self, path: &str, module: &'t Module) -> BTreeMap<&'t str, &'t Use> {
        let mut arrows = BTreeMap::new();
        // What a face hands on ties only those who take it.
        for used in module.uses.iter().filter(|it| !(module.is_face && it.handed_on_as.is_some())) {
            let other = |definer: &&str| *definer != path && !is_below(path, definer);
            if let Some(definer) = self.definer(&used.resolved, 0).filter(other) {
                arrows.entry(definer).or_insert(used);
            }
        }
        arrows
    }

    /// Each as the modules that all reach each other. O(modules x arrows).
    fn circles(&self) -> Vec<Circle<'_>> {
        let arrows: BTreeMap<&str, BTreeMap<&str, &Use>> =
            self.0.iter().map(|(path, module)| (path.as_str(), self.arrows_of(path, module))).collect();
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            arrows.keys().map(|from| (*from, reached(&arrows, from))).collect();
        let mut circles: BTreeMap<BTreeSet<&str>, Circle<'_>> = BTreeMap::new();
        for (path, reached_by_it) in &reached {
            let circle: BTreeSet<&str> =
                reached_by_it.iter().copied().filter(|it| reached[it].contains(path)).collect();
            if circle.len() < 2 {
                continue;
            }
            let tie = |(other, used): (&&str, &&Use)| {
                format!("{}:{} uses {}: `{}`", self.0[*path].file, used.line, self.0[*other].file, used.written)
            };
            let ties: Vec<String> = arrows[path].iter().filter(|(other, _)| circle.contains(*other)).map(tie).collect();
            let files = circle.iter().map(|path| self.0[*path].file.as_str()).collect();
            circles.entry(circle).or_insert_with(|| Circle { files, ties: Vec::new() }).ties.extend(ties);
        }
        circles.into_values().collect()
    }
}

fn is_below(path: &str, face: &str) -> bool {
    path.strip_prefix(face).is_some_and(|rest| rest.starts_with("::"))
}

struct Circle<'t> {
    files: Vec<&'t str>,
    ties: Vec<String>,
}

fn reached<'t>(arrows: &BTreeMap<&'t str, BTreeMap<&'t str, &'t Use>>, from: &str) -> BTreeSet<&'t str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = arrows[from].keys().copied().collect();
    while let Some(path) = next.pop() {
        if reached.insert(path) {
            next.extend(arrows[path].keys());
        }
    }
    reached
}

/// Of a file below `src/`: `crate::core::plan` for `src/core/plan/mod.rs`.
fn path_of(file: &str) -> String {
    let parts = file.trim_start_matches("src/").trim_end_matches(".rs").split('/');
    let named = parts.filter(|part| !matches!(*part, "mod" | "lib" | "main"));
    std::iter::once("crate").chain(named).collect::<Vec<_>>().join("::")
}

fn unexpected(files: &[SourceFile]) -> Vec<String> {
    let tree = Tree::new(files, &dependencies());
    let circles = tree.circles().into_iter();
    let is_kept = |circle: &Circle<'_>| KEPT.iter().any(|kept| circle.files.iter().all(|file| kept.contains(file)));
    circles
        .filter(|circle| !is_kept(circle))
        .map(|circle| format!("{} files in a circle:\n  {}", circle.files.len(), circle.ties.join("\n  ")))
        .collect()
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let found = unexpected(&source::files("src", "rs"));
    assert!(found.is_empty(), "\n\n{}\n", found.join("\n"));
}

/// The test of the test.
#[test]
fn circles_are_found() {
    let file = |(path, text): &(&str, &str)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() };
    let found = |files: &[(&str, &str)]| unexpected(&files.iter().map(file).collect::<Vec<_>>());
    let face = ("src/core/room/mod.rs", "mod one; mod two; pub use one::{One, make as make_one};");
    assert_eq!(
        found(&[
            face,
            ("src/core/room/one.rs", "use super::two::Two;\npub struct One(Two);"),
            ("src/core/room/two.rs", "pub struct Two;\nfn f() { super::make_one(); }"),
        ]),
        ["2 files in a circle:\n  src/core/room/one.rs:1 uses src/core/room/two.rs: `super::two::Two`\n  \
          src/core/room/two.rs:2 uses src/core/room/one.rs: `super::make_one`"]
    );
    let fine = [
        face,
        ("src/core/room/one.rs", "use super::two::Two;\npub struct One(Two);"),
        ("src/core/room/two.rs", "pub struct Two;\n#[cfg(test)] mod tests { use super::super::One; }"),
    ];
    assert_eq!(found(&fine), Vec::<String>::new());
}
