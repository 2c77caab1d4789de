//! Each folder of `tests/preview` with a `base/` is a case: `base/` is the first commit, `head/` what a branch makes of it, and `moved/`,
//! where it is there, what main has become meanwhile. What `cutlist preview` says of the merge is in `expected.txt`, `expected.md` and
//! `expected.json`; further `arguments` are in a file. `clusters/` has the snapshots. `UPDATE=1 cargo test --test preview` rewrites what
//! is expected; read the difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the cases are files, and the program is run on them")]

#[path = "../program/at_once.rs"]
mod at_once;
mod canaries;
mod doubtful;
mod drift;
mod fleet;
mod gitops;
mod kept;
mod laid_out;
mod limits;
mod overlays;
#[path = "../program/mod.rs"]
mod program;
mod registry;
mod removals;
mod sums;
mod variables;

use std::path::{Path, PathBuf};

use at_once::{complaints, for_all};
use cutlist::api::preview::Preview;
use laid_out::laid_out;
use program::{NOW, Ran, cutlist, name};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preview")
}

fn cases() -> Vec<PathBuf> {
    let mut cases = program::folders(&root());
    cases.retain(|folder| folder.join("base").is_dir());
    assert!(cases.len() > 8, "the cases are missing");
    cases
}

/// What most of them begin with.
const MERGE: [&str; 6] = ["preview", "repository", "--base", "main", "--head", "change"];

/// As it is typed: with the only cluster, and the moment of all tests, where the case names no other.
fn preview(folder: &Path, further: &[&str]) -> Ran {
    let typed = std::fs::read_to_string(folder.join("arguments")).unwrap_or_default();
    let mut arguments = MERGE.to_vec();
    if !typed.contains("--cluster ") {
        arguments.extend(["--cluster", "blue=clusters/blue.yaml"]);
    }
    if !typed.contains("--now ") {
        arguments.extend(["--now", NOW]);
    }
    arguments.extend(typed.split_whitespace());
    arguments.extend(further);
    cutlist(folder, arguments)
}

#[test]
fn cases_read_as_expected() {
    let complaints = complaints(&cases(), |case| {
        let folder = laid_out(case);
        let text = preview(folder.path(), &[]).transcript();
        let markdown = preview(folder.path(), &["-o", "markdown"]).stdout;
        [program::differs(&case.join("expected.txt"), &text), program::differs(&case.join("expected.md"), &markdown)]
    });
    assert!(complaints.is_empty(), "{}\nUPDATE=1 rewrites the files", complaints.join("\n"));
}

/// And the document that is read back is the one that was written. Looking at a change leaves no trace of it: no object, no branch, no file.
#[test]
fn cases_give_the_expected_data() {
    let complaints = for_all(&cases(), |case| {
        let folder = laid_out(case);
        let repository = folder.path().join("repository");
        let before = laid_out::everything_below(&repository);
        let text = preview(folder.path(), &["-o", "json"]).stdout;
        assert_eq!(laid_out::everything_below(&repository), before, "{}", name(case));
        let read: Preview = serde_json::from_str(&text).unwrap();
        // As values: what is invisible is written by its number at the door.
        let written: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written, "{}", name(case));
        program::differs(&case.join("expected.json"), &text)
    });
    let complaints: Vec<String> = complaints.into_iter().flatten().collect();
    assert!(complaints.is_empty(), "{}\nUPDATE=1 rewrites the files", complaints.join("\n"));
}

#[test]
fn clusters_are_named() {
    let folder = laid_out(&root().join("a-change"));
    let ran = cutlist(folder.path(), MERGE);
    assert!(ran.code == 2 && ran.stderr.contains("--cluster NAME=SNAPSHOT"), "{}", ran.transcript());
    // Where 2 means changes, a mistake is none.
    let detailed = cutlist(folder.path(), MERGE.into_iter().chain(["--detailed-exitcode"]));
    assert!(detailed.code == 1 && detailed.stderr.contains("--cluster NAME=SNAPSHOT"), "{}", detailed.transcript());
    let misspelt = preview(folder.path(), &["--detailed-exitcode", "--definitons", "blue=."]);
    assert_eq!(misspelt.code, 1, "{}", misspelt.transcript());
    let unknown = preview(folder.path(), &["--definitions", "bleu=."]);
    assert!(unknown.code == 2 && unknown.stderr.contains("did you mean blue?"), "{}", unknown.transcript());
    let outside = preview(folder.path(), &["--definitions", "blue=../.."]);
    assert!(outside.code == 2 && outside.stderr.contains("is not in revision"), "{}", outside.transcript());
}

/// As some CI systems check out: a commit, and neither branch nor tag.
#[test]
fn a_checkout_without_a_branch_is_no_empty_repository() {
    let folder = laid_out(&root().join("a-change"));
    let checkout = folder.path().join("checkout");
    std::fs::create_dir(&checkout).unwrap();
    let from = folder.path().join("repository");
    let main = git2::Repository::open(&from).unwrap().revparse_single("main").unwrap().id().to_string();
    let from = format!("file://{}", from.display());
    for arguments in
        [&["init", "--quiet"][..], &["fetch", "--quiet", &from, "change"], &["checkout", "--quiet", "FETCH_HEAD"]]
    {
        let ran = std::process::Command::new("git").args(arguments).current_dir(&checkout).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
    let cluster = ["--cluster", "blue=clusters/blue.yaml", "--now", NOW, "--without-simulation"];
    let ran = cutlist(folder.path(), ["preview", "checkout", "--base", &main].into_iter().chain(cluster));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
}

#[test]
fn what_is_not_committed_is_said_to_be_left_out() {
    let folder = laid_out(&root().join("a-change"));
    let arguments = ["preview", "repository", "--base", "main", "--cluster", "blue=clusters/blue.yaml", "--now", NOW];
    let said = |folder: &Path| cutlist(folder, arguments.into_iter().chain(["--without-simulation"])).stderr;
    assert_eq!(said(folder.path()), "");
    let file = folder.path().join("repository/nodepools.yaml");
    let changed = std::fs::read_to_string(&file).unwrap().replace("m6i", "m7i");
    std::fs::write(&file, changed).unwrap();
    let expected = "nodepools.yaml; what is not committed is not in this preview";
    assert!(said(folder.path()).contains(expected), "{}", said(folder.path()));
}

/// What is fetched when it is needed is not there, and nothing is fetched here.
#[test]
fn a_partial_clone_and_a_pointer_say_what_is_missing() {
    let folder = laid_out(&root().join("a-change"));
    let from = folder.path().join("repository");
    let git = |arguments: &[&str], at: &Path| {
        let ran = std::process::Command::new("git").args(arguments).current_dir(at).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["config", "uploadpack.allowFilter", "true"], &from);
    let address = format!("file://{}", from.display());
    let cluster = ["--cluster", "blue=clusters/blue.yaml", "--now", NOW, "--without-simulation"];
    for filter in ["--filter=blob:none", "--filter=tree:0"] {
        git(&["clone", "--quiet", filter, "--branch=change", &address, filter.trim_start_matches('-')], folder.path());
        let at = filter.trim_start_matches('-');
        let ran = cutlist(folder.path(), ["preview", at, "--base", "origin/main"].into_iter().chain(cluster));
        assert!(ran.code == 1 && ran.stderr.contains("clone it whole"), "{}", ran.transcript());
    }
    std::fs::write(folder.path().join("lfs"), "version https://git-lfs.github.com/spec/v1\noid sha256:aa\n").unwrap();
    let ran = cutlist(folder.path(), MERGE.into_iter().chain(["--cluster", "blue=lfs", "--now", NOW, "-o", "json"]));
    assert!(ran.code == 1 && ran.stdout.contains("git lfs pull"), "{}", ran.transcript());
}

/// A clone without its history can not say what both sides changed.
#[test]
fn a_shallow_clone_says_what_it_lacks() {
    let folder = laid_out(&root().join("base-moved"));
    let shallow = folder.path().join("shallow");
    let from = format!("file://{}", folder.path().join("repository").display());
    let git = |arguments: &[&str]| {
        let ran = std::process::Command::new("git").args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["clone", "--quiet", "--depth=1", "--no-single-branch", "--branch=main", &from, shallow.to_str().unwrap()]);
    let arguments = MERGE.map(|argument| if argument == "repository" { "shallow" } else { argument });
    let cluster = ["--cluster", "blue=clusters/blue.yaml", "--now", NOW];
    let ran = cutlist(folder.path(), arguments.into_iter().chain(cluster));
    assert!(ran.code == 1 && ran.stderr.contains("git fetch --unshallow"), "{}", ran.transcript());
}
