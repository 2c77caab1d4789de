//! House rules that no compiler checks. Each rule is a function from a file to its complaints; the last test shows
//! every one of them a file that breaks it.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test reads files")]

mod source;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use source::SourceFile;

/// More than this usually holds two things. Comments, blank lines and unit tests do not count.
const CODE_LINES_MAX: usize = 600;

/// Files that may be longer, and why.
const LONG_FILES: &[(&str, &str)] = &[];

/// What a visitor sees first. Dot files do not count.
const TOP_LEVEL: &[&str] = &[
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "deploy",
    "examples",
    "schemas",
    "src",
    "tests",
];

#[test]
fn files_hold_one_thing() {
    report(source::files("src", "rs").iter().flat_map(too_long));
}

#[test]
fn every_file_says_what_it_is() {
    report(source::files("src", "rs").iter().flat_map(undocumented));
}

#[test]
fn queues_are_bounded() {
    report(source::files("src", "rs").iter().flat_map(unbounded));
}

/// The room solves programs for anybody: whoever reads it needs no Kubernetes.
#[test]
fn programs_know_no_kubernetes() {
    report(source::files("src/core/programs", "rs").iter().flat_map(of_kubernetes));
}

#[test]
fn no_test_is_skipped() {
    report(["src", "tests"].iter().flat_map(|folder| source::files(folder, "rs")).flat_map(|file| skipped(&file)));
}

#[test]
fn text_is_clean() {
    let code = ["src", "tests"].iter().flat_map(|folder| source::files(folder, "rs"));
    let github = ["md", "yml", "yaml"].iter().flat_map(|extension| source::files(".github", extension));
    let top = ["Cargo.toml", "Makefile", "README.md", "CHANGELOG.md", ".clippy.toml", ".deny.toml", ".ci/run"];
    report(code.chain(github).chain(top.map(read)).flat_map(|file| unclean(&file)));
}

#[test]
fn dependencies_have_reasons() {
    report(source::MANIFESTS.iter().flat_map(|path| without_reason(&read(path))));
}

#[test]
fn every_test_program_is_declared() {
    let manifest = read("Cargo.toml").text;
    let programs = source::files("tests", "rs").into_iter().filter(|file| file.path.matches('/').count() == 1);
    report(programs.filter(|file| !manifest.contains(&format!("path = \"{}\"", file.path))).map(|file| {
        format!("{}: Cargo.toml has no [[test]] with this path (autotests = false), so it never runs", file.path)
    }));
}

#[test]
fn nothing_is_left_for_later() {
    report(source::files("src", "rs").iter().flat_map(left_for_later));
    report(source::files("tests", "rs").iter().filter(|file| file.path != "tests/tidy.rs").flat_map(left_for_later));
}

#[test]
fn invariants_are_tested() {
    report(untested_invariants(&read("src/lib.rs"), &|path| read_if_there(path)));
}

#[test]
fn promises_are_tested() {
    report(untested_promises(&read(".github/SECURITY.md"), &|path| read_if_there(path)));
}

#[test]
fn documents_name_files_that_exist() {
    let github = source::files(".github", "md");
    let code = source::files("src", "rs");
    report(
        ["README.md", "examples/README.md", "deploy/README.md", "tests/bench/README.md", "CHANGELOG.md"]
            .map(read)
            .into_iter()
            .chain(github)
            .chain(code)
            .flat_map(|file| {
                let exists = |path: &str| source::root().join(path).exists();
                [dead_links(&file, &exists), dead_rows(&file, &exists)].concat()
            }),
    );
}

#[test]
fn the_top_level_is_small() {
    let listed = Command::new("git").args(["ls-files", "--cached", "-z"]).current_dir(source::root()).output().unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8_lossy(&listed.stdout);
    let found: BTreeSet<&str> =
        listed.split('\0').filter_map(|path| path.split('/').next()).filter(|name| !name.is_empty()).collect();
    report(
        found
            .into_iter()
            .filter(|name| !name.starts_with('.') && !TOP_LEVEL.contains(name))
            .map(|name| format!("{name}: the top level holds {TOP_LEVEL:?} and nothing else")),
    );
}

/// When commits began to be held to [`SUBJECT_MAX`].
const SUBJECTS_SINCE: &str = "2026-11-30T14:49:00Z";
/// What `git log --oneline` and forges show on one line.
const SUBJECT_MAX: usize = 72;

/// Of a shallow clone those commits that it has.
#[test]
fn subjects_of_commits_are_short() {
    let since = format!("--since={SUBJECTS_SINCE}");
    let arguments = ["log", "--no-merges", "--format=%h %s", &since];
    let listed = Command::new("git").args(arguments).current_dir(source::root()).output().unwrap();
    assert!(listed.status.success(), "git log: {}", String::from_utf8_lossy(&listed.stderr));
    report(String::from_utf8_lossy(&listed.stdout).lines().filter_map(long_subject));
}

fn long_subject(commit: &str) -> Option<String> {
    let (hash, subject) = commit.split_once(' ')?;
    let length = subject.chars().count();
    (length > SUBJECT_MAX)
        .then(|| format!("commit {hash}: its subject has {length} characters, at most {SUBJECT_MAX}: {subject}"))
}

fn report(complaints: impl IntoIterator<Item = String>) {
    let complaints: Vec<String> = complaints.into_iter().collect();
    assert!(complaints.is_empty(), "\n\n{}\n", complaints.join("\n"));
}

fn read(path: &str) -> SourceFile {
    read_if_there(path).unwrap_or_else(|| panic!("{path} cannot be read"))
}

fn read_if_there(path: &str) -> Option<SourceFile> {
    let text = std::fs::read_to_string(source::root().join(path)).ok()?;
    Some(SourceFile { path: path.to_owned(), text })
}

fn too_long(file: &SourceFile) -> Option<String> {
    if file.is_test() {
        return None;
    }
    let mut lines = BTreeSet::new();
    code_lines(source::without_tests(file.tokens()), &mut lines);
    let excused = LONG_FILES.iter().any(|(path, _)| *path == file.path);
    match (lines.len() > CODE_LINES_MAX, excused) {
        (true, false) => Some(format!(
            "{}: {} lines of code (at most {CODE_LINES_MAX}): split it, or give a reason in LONG_FILES",
            file.path,
            lines.len()
        )),
        (false, true) => Some(format!("{}: is short again: take it out of LONG_FILES", file.path)),
        _ => None,
    }
}

fn code_lines(stream: TokenStream, lines: &mut BTreeSet<usize>) {
    for (token, _) in without_doc_comments(stream) {
        lines.insert(token.span().start().line);
        lines.insert(token.span().end().line);
        if let TokenTree::Group(group) = token {
            code_lines(group.stream(), lines);
        }
    }
}

/// Each token with the one behind it. A doc comment is the tokens `#[doc = "..."]`.
fn without_doc_comments(stream: TokenStream) -> Vec<(TokenTree, Option<TokenTree>)> {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let is_doc = |token: Option<&TokenTree>| {
        matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket
            && group.stream().to_string().starts_with("doc ="))
    };
    let mut kept = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let before_doc = is_doc(tokens.get(index + 1)) || is_doc(tokens.get(index + 2));
        let is_mark = matches!(token, TokenTree::Punct(mark) if matches!(mark.as_char(), '#' | '!'));
        let is_part_of_doc = is_doc(Some(token)) || (is_mark && before_doc);
        if !is_part_of_doc {
            kept.push((token.clone(), tokens.get(index + 1).cloned()));
        }
    }
    kept
}

fn left_for_later(file: &SourceFile) -> Vec<String> {
    let words = ["todo!", "unimplemented!", "FIXME", "TODO", "XXX"];
    on_lines(file, |line| {
        let word = words.iter().find(|word| has_word(line, word))?;
        Some(format!("`{word}`: finish it, or open an issue and say here what is not supported"))
    })
}

/// Whether the word stands in the line on its own.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        let (before, rest) = line.split_at(at);
        !before.ends_with(is_letter) && !rest.trim_start_matches(word).starts_with(is_letter)
    })
}

fn on_lines(file: &SourceFile, complaint: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let numbered = file.text.lines().enumerate();
    numbered
        .filter_map(|(index, line)| complaint(line).map(|text| format!("{}:{}: {text}", file.path, index + 1)))
        .collect()
}

fn undocumented(file: &SourceFile) -> Option<String> {
    let starts_with_comment = file.text.starts_with("//! ");
    (!starts_with_comment).then(|| format!("{}:1: begin with `//!` and say what the file holds, and why", file.path))
}

fn unbounded(file: &SourceFile) -> Vec<String> {
    fn search(stream: TokenStream, found: &mut Vec<usize>) {
        for (token, next) in without_doc_comments(stream) {
            match token {
                TokenTree::Ident(word) => {
                    let name = word.to_string();
                    // std's channel() has no limit; tokio's takes one.
                    let takes_nothing = matches!(&next, Some(TokenTree::Group(group))
                        if group.delimiter() == Delimiter::Parenthesis && group.stream().is_empty());
                    if name.to_lowercase().starts_with("unbounded") || (name == "channel" && takes_nothing) {
                        found.push(word.span().start().line);
                    }
                }
                TokenTree::Group(group) => search(group.stream(), found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    search(file.tokens(), &mut found);
    found
        .into_iter()
        .map(|line| format!("{}:{line}: a queue without a limit: bound it and count what is dropped", file.path))
        .collect()
}

fn of_kubernetes(file: &SourceFile) -> Vec<String> {
    const WORDS: [&str; 8] = ["pod", "node", "claim", "taint", "toleration", "deployment", "kubelet", "kube"];
    let is_of_word = |part: &str, word: &str| part == word || part.strip_suffix('s') == Some(word);
    on_lines(file, |line| {
        let line = line.to_lowercase();
        let mut parts = line.split(|character: char| !character.is_alphanumeric());
        let part = parts.find(|part| WORDS.iter().any(|word| is_of_word(part, word)))?;
        Some(format!("{part} is a word of Kubernetes, of which core/programs knows nothing"))
    })
}

fn skipped(file: &SourceFile) -> Vec<String> {
    on_lines(file, |line| {
        line.trim_start()
            .starts_with("#[ignore")
            .then(|| "a test that cannot run says so and fails; none is skipped".to_owned())
    })
}

fn unclean(file: &SourceFile) -> Vec<String> {
    let mut complaints = on_lines(file, |line| {
        let is_recipe = file.path.ends_with("Makefile") && line.starts_with('\t');
        if line.ends_with([' ', '\t', '\r']) {
            Some("space at the end of the line".to_owned())
        } else if line.contains('\t') && !is_recipe {
            Some("tab".to_owned())
        } else {
            None
        }
    });
    if !file.text.ends_with('\n') || file.text.ends_with("\n\n") {
        complaints.push(format!("{}: end with one newline", file.path));
    }
    complaints
}

/// A dependency's reason stands behind it, or on the lines just above it.
fn without_reason(manifest: &SourceFile) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut inside = false;
    let mut reason_above = false;
    for (index, line) in manifest.text.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.contains("dependencies]");
        } else if line.starts_with('#') {
            reason_above = true;
            continue;
        } else if let Some((name, rest)) = line.split_once(" = ").filter(|_| inside)
            && !reason_above
            && !rest.contains(" # ")
            // The manifest of the whole says why.
            && !name.ends_with(".workspace")
        {
            complaints.push(format!("{}:{}: why do we need {name}?", manifest.path, index + 1));
        }
        reason_above = false;
    }
    complaints
}

/// Invariants are the numbered list in the documentation of the crate. Each names, in backticks, a test that holds it:
/// `tests/rings.rs::each_ring_uses_only_what_it_may`.
fn untested_invariants(file: &SourceFile, read: &dyn Fn(&str) -> Option<SourceFile>) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    let mut inside = false;
    for line in file.text.lines().map_while(|line| line.strip_prefix("//!")) {
        let text = line.trim();
        let number: String = text.chars().take_while(char::is_ascii_digit).collect();
        if !number.is_empty() && text.trim_start_matches(&number).starts_with(". ") {
            items.push(text.to_owned());
            inside = true;
        } else if text.is_empty() || text.starts_with('#') {
            inside = false;
        } else if let Some(item) = items.last_mut().filter(|_| inside) {
            item.push(' ');
            item.push_str(text);
        }
    }
    if items.is_empty() {
        return vec![format!("{}: no numbered invariants", file.path)];
    }
    items.iter().filter_map(|item| broken_invariant(item, read).map(|text| format!("{}: {text}", file.path))).collect()
}

/// The same for the numbered promises of a page.
fn untested_promises(file: &SourceFile, read: &dyn Fn(&str) -> Option<SourceFile>) -> Vec<String> {
    let lines = file.text.lines().map(|line| format!("//! {line}\n"));
    untested_invariants(&SourceFile { path: file.path.clone(), text: lines.collect() }, read)
}

fn broken_invariant(item: &str, read: &dyn Fn(&str) -> Option<SourceFile>) -> Option<String> {
    let mut tests = item.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains(".rs::")).peekable();
    if tests.peek().is_none() {
        return Some(format!("no test named in: {item}"));
    }
    tests.find_map(|name| {
        let (path, rest) = name.split_once("::")?;
        let function = rest.rsplit("::").next()?;
        let Some(file) = read(path) else { return Some(format!("`{name}`: no such file")) };
        let position = file.text.find(&format!("fn {function}("));
        let is_test = position.is_some_and(|at| {
            let before: Vec<&str> = file.text.split_at(at).0.lines().rev().take(4).collect();
            before.iter().any(|line| line.contains("test]") || line.contains("test("))
                || file.text.contains("proptest!")
        });
        // A case on a real control plane is a function that a table names.
        let is_case = path.starts_with("tests/e2e/")
            && position.is_some()
            && read("tests/e2e/main.rs").is_some_and(|table| table.text.contains(&format!("case(\"{function}\",")));
        (!is_test && !is_case).then(|| format!("`{name}`: no such test"))
    })
}

/// Links, and paths in backticks that begin at one of our folders. Of code the comments are read, which may leave out `src/`.
fn dead_links(file: &SourceFile, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut complaints = Vec::new();
    let is_code = file.path.ends_with(".rs");
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        let comment = line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']));
        let Some(line) = (if is_code { comment } else { Some(line) }) else { continue };
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        let mut check = |written: &str, path: String| {
            if !exists(&path) {
                complaints.push(format!("{}:{}: {written} does not exist", file.path, index + 1));
            }
        };
        for (_, rest) in line.match_indices("](").map(|(at, mark)| line.split_at(at + mark.len())) {
            let target = rest.split([')', '#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains(':') && !is_code {
                check(target, folder.join(target).to_string_lossy().into_owned());
            }
        }
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_ours = ["src/", "tests/", "examples/", "schemas/", "deploy/", ".github/"];
            let is_pattern = quoted.contains(['<', '*', ' ', '{']) || quoted.contains("NAME");
            if is_ours.iter().any(|prefix| quoted.starts_with(prefix)) && !is_pattern {
                check(quoted, quoted.split("::").next().unwrap_or(quoted).to_owned());
            }
            let rings = ["adapters/", "api/", "cli/", "controller/", "core/", "definitions/", "render/"];
            if is_code && quoted.ends_with(".rs") && rings.iter().any(|ring| quoted.starts_with(ring)) && !is_pattern {
                check(quoted, format!("src/{quoted}"));
            }
        }
    }
    complaints
}

/// The table at the top of a module names its files and folders. A bare name is looked for in the folder that its cell
/// named before.
fn dead_rows(file: &SourceFile, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let Some(module) = file.path.strip_suffix(".rs") else { return Vec::new() };
    let folder = match module.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder,
        _ => module,
    };
    let mut complaints = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for cell in line.strip_prefix("//! |").into_iter().flat_map(|row| row.split('|')) {
            let mut place = folder.to_owned();
            for name in cell.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") || name.ends_with('/')) {
                if let Some((below, _)) = name.rsplit_once('/') {
                    place = format!("{folder}/{below}");
                }
                let path = format!("{place}/{}", name.rsplit('/').next().unwrap_or_default());
                if !exists(path.trim_end_matches('/')) {
                    complaints.push(format!("{}:{}: {path} does not exist", file.path, index + 1));
                }
            }
        }
    }
    complaints
}

#[test]
fn every_rule_finds_what_it_is_for() {
    let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
    let rust = |text: &str| file("src/core/x.rs", text);

    let long = "fn f() {}\n".repeat(CODE_LINES_MAX);
    assert_eq!(too_long(&rust(&format!("//! X.\n\n// X.\n{long}#[cfg(test)]\nmod tests {{\n{long}}}\n"))), None);
    assert!(too_long(&rust(&format!("{long}fn g() {{}}\n"))).is_some());
    assert_eq!(too_long(&rust(&format!("/// A comment.\n/// More.\n{long}"))), None);

    for text in ["fn f() { todo!() }", "// FIXME: later", "let x = 1; // TODO", "unimplemented!(\"\")"] {
        assert_eq!(left_for_later(&rust(text)).len(), 1, "{text}");
    }
    assert_eq!(left_for_later(&rust("let autodo = TODOS; // methodology")), Vec::<String>::new());

    assert!(undocumented(&rust("use std::fmt;\n//! Late.")).is_some());
    assert_eq!(undocumented(&rust("//! Early.")), None);

    for text in ["use tokio::sync::mpsc::unbounded_channel;", "fn f() { std::sync::mpsc::channel() }"] {
        assert_eq!(unbounded(&rust(text)).len(), 1, "{text}");
    }
    assert_eq!(unbounded(&rust("/// Never unbounded.\nfn f() { mpsc::channel(8) }")), Vec::<String>::new());

    for text in ["/// Pods of a size.", "let node_prices = 1;", "struct Taint;"] {
        assert_eq!(of_kubernetes(&rust(text)).len(), 1, "{text}");
    }
    assert_eq!(of_kubernetes(&rust("let coded = 1; // A piece in a bin.")), Vec::<String>::new());
    assert_eq!(skipped(&rust("    #[ignore = \"slow\"]")).len(), 1);
    assert_eq!(unclean(&rust("a \nb\t\n\tc\n\n")).len(), 4);
    assert_eq!(unclean(&file("Makefile", "all:\n\tcargo build\n")), Vec::<String>::new());

    assert_eq!(long_subject(&format!("0ef405a {}", "é".repeat(SUBJECT_MAX))), None);
    assert!(long_subject(&format!("0ef405a {}", "e".repeat(SUBJECT_MAX + 1))).is_some());

    let manifest = "[dependencies]\na = \"1\"\n# Why.\nb = \"1\"\nc = \"1\" # why\n[lints]\nd = \"warn\"\n";
    assert_eq!(without_reason(&file("Cargo.toml", manifest)), ["Cargo.toml:2: why do we need a?"]);

    let read = |path: &str| (path == "tests/a.rs").then(|| file(path, "#[test]\nfn real() {}\nfn helper() {}\n"));
    let invariants = "//! 1. One: `tests/a.rs::real`.\n//! 2. Two,\n//!    `tests/a.rs::gone`.\n//! 3. Three.\n\
                      //! 4. Four: `tests/b.rs::real`.\n";
    assert_eq!(
        untested_invariants(&file("src/lib.rs", invariants), &read),
        [
            "src/lib.rs: `tests/a.rs::gone`: no such test",
            "src/lib.rs: no test named in: 3. Three.",
            "src/lib.rs: `tests/b.rs::real`: no such file",
        ]
    );
    assert_eq!(untested_promises(&file("SECURITY.md", "1. Nothing.\n2. `tests/e2e/a.rs::b`"), &read).len(), 2);
    assert_eq!(untested_invariants(&file("src/lib.rs", "//! Nothing."), &read).len(), 1);

    let links = "[a](there.md#x) [b](gone.md) `src/there.rs::f` `src/gone.rs` `src/<room>/` [c](https://c.example)\n\
                 ```\n[d](gone.md)\n```\n";
    let exists = |path: &str| path.contains("there");
    let comments = "//! `core/there.rs`, `core/gone.rs`\nlet a = 1; // `src/gone.rs`\n    // `tests/gone/`\n";
    assert_eq!(
        dead_links(&rust(comments), &exists),
        ["src/core/x.rs:1: core/gone.rs does not exist", "src/core/x.rs:3: tests/gone/ does not exist"]
    );
    let table =
        "//! | what | where |\n//! | a | `there/`: `mod.rs`, `gone.rs`; `core::gone` |\n//! | b | `gone.rs` |\n";
    let is_there = |path: &str| ["src/core/there", "src/core/there/mod.rs"].contains(&path);
    let rows = [
        "src/core/mod.rs:2: src/core/there/gone.rs does not exist",
        "src/core/mod.rs:3: src/core/gone.rs does not exist",
    ];
    assert_eq!(dead_rows(&file("src/core/mod.rs", table), &is_there), rows);
    assert_eq!(
        dead_links(&file(".github/X.md", links), &exists),
        [".github/X.md:1: gone.md does not exist", ".github/X.md:1: src/gone.rs does not exist"]
    );
}
