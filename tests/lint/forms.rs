//! The other forms of a report: `forms/expected.FORM` is what `cutlist lint input -o FORM` prints. `make e2e` has them read by the
//! programs that they are for (`tests/ci-formats`).

use std::path::Path;

use super::{folder, lint, program};

const FORMS: [&str; 9] =
    ["jsonl", "sarif", "junit", "github", "gitlab", "azuredevops", "tap", "markdown", "checkstyle"];

/// The definitions of the case, outside of every repository: forges know files from the root of theirs.
fn copied() -> tempfile::TempDir {
    let target = tempfile::tempdir().unwrap();
    program::copy(&folder().join("forms/input"), &target.path().join("input"));
    target
}

#[test]
fn forms_are_what_is_expected() {
    let (case, copied) = (folder().join("forms"), copied());
    let mut differences = Vec::new();
    for form in FORMS {
        let (found, code) = lint(copied.path(), &["input", "-o", form]);
        assert_eq!(code, 1, "{form}: {found}");
        assert_eq!(lint(copied.path(), &["input", "-o", form]).0, found, "{form}: the same input gives the same bytes");
        // The version of the program is in one of them.
        let found = found.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        differences.extend(program::differs(&case.join(format!("expected.{form}")), &found));
    }
    assert!(differences.is_empty(), "{}\nUPDATE=1 rewrites the files", differences.join("\n"));
}

#[test]
fn several_forms_at_once_go_to_files() {
    let target = tempfile::tempdir().unwrap();
    let copied = copied();
    let case = copied.path();
    let to = |form: &str| format!("{form}={}", target.path().join(form).display());
    let outputs: Vec<String> = FORMS.iter().flat_map(|form| ["-o".to_owned(), to(form)]).collect();
    let mut arguments = vec!["input", "-o", "text"];
    arguments.extend(outputs.iter().map(String::as_str));
    let (text, code) = lint(case, &arguments);
    assert_eq!((text.as_str(), code), (lint(case, &["input"]).0.as_str(), 1));
    for form in FORMS {
        let written = std::fs::read_to_string(target.path().join(form)).unwrap();
        assert_eq!(written, lint(case, &["input", "-o", form]).0, "{form}");
    }
    // One form has standard output.
    let (text, code) = lint(case, &["input", "-o", "text", "-o", "json"]);
    assert!(code == 2 && text.contains("-o sarif=cutlist.sarif -o text"), "{text}");
    let (text, code) = lint(case, &["input", "-o", "sarif=absent/folder/x.sarif"]);
    assert!(code == 2 && text.contains("absent/folder/x.sarif can not be written"), "{text}");
    let (text, code) = lint(case, &["input", "-o", "html"]);
    assert!(code == 2 && text.contains("sarif, junit, github"), "{text}");
}

/// Where nothing is found, every form is still whole.
#[test]
fn a_clean_report_is_whole_in_every_form() {
    let target = tempfile::tempdir().unwrap();
    std::fs::copy(folder().join("forms/input/class.yaml"), target.path().join("class.yaml")).unwrap();
    let run = |form: &str| {
        let (text, code) = lint(target.path(), &["class.yaml", "-o", form]);
        assert_eq!(code, 0, "{form}: {text}");
        text
    };
    let json = |form: &str| serde_json::from_str::<serde_json::Value>(&run(form)).unwrap();
    assert_eq!(json("gitlab"), serde_json::json!([]));
    assert_eq!(json("sarif")["runs"][0]["results"].as_array().unwrap().len(), 1, "what is suppressed");
    assert_eq!(run("tap"), "TAP version 14\n1..1\nok 1 - class.yaml\n");
    assert!(run("junit").contains("skipped=\"1\" errors=\"0\" failures=\"0\""), "{}", run("junit"));
    assert!(run("checkstyle").contains("<file name=\"class.yaml\"/>"), "{}", run("checkstyle"));
    assert_eq!((run("github"), run("azuredevops")), (String::new(), String::new()));
    assert!(run("markdown").contains("1 file, 1 definition: clean, 1 suppressed"), "{}", run("markdown"));
}

/// Fingerprints are the same when lines are moved, and differ from each other.
#[test]
fn fingerprints_survive_a_moved_line() {
    let fingerprints = |folder: &Path| -> Vec<String> {
        let (text, _) = lint(folder, &["pool.yaml", "-o", "gitlab"]);
        let issues: serde_json::Value = serde_json::from_str(&text).unwrap();
        issues.as_array().unwrap().iter().map(|it| it["fingerprint"].as_str().unwrap().to_owned()).collect()
    };
    let target = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(folder().join("forms/input/pool.yaml")).unwrap();
    std::fs::write(target.path().join("pool.yaml"), &text).unwrap();
    let before = fingerprints(target.path());
    std::fs::write(target.path().join("pool.yaml"), format!("# One line more.\n\n{text}")).unwrap();
    assert_eq!(fingerprints(target.path()), before);
    let twice = text.replace("values: [amd64, aarch64]", "values: [aarch64, amd64, aarch64]");
    std::fs::write(target.path().join("pool.yaml"), twice).unwrap();
    let found = fingerprints(target.path());
    let distinct: std::collections::BTreeSet<&String> = found.iter().collect();
    assert_eq!((found.len(), distinct.len()), (before.len() + 1, before.len() + 1));
}

/// A forge knows files by their path in the repository, and a finding again by its fingerprint, however the path was typed.
#[test]
fn paths_are_the_same_however_they_are_typed() {
    let target = tempfile::tempdir().unwrap();
    let target = target.path().canonicalize().unwrap();
    std::fs::create_dir(target.join("pools")).unwrap();
    std::fs::copy(folder().join("forms/input/pool.yaml"), target.join("pools/pool.yaml")).unwrap();
    let absolute = target.join("pools");
    for form in ["gitlab", "sarif"] {
        let typed = |path: &str| lint(&target, &[path, "-o", form]).0;
        let expected = typed("pools");
        assert!(expected.contains("\"pools/pool.yaml\""), "{expected}");
        assert_eq!(typed("./pools"), expected, "{form}");
        assert_eq!(typed(absolute.to_str().unwrap()), expected, "{form}");
    }
    // From elsewhere it is known by the repository that it is in.
    std::fs::create_dir(target.join(".git")).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let (found, _) = lint(elsewhere.path(), &[absolute.join("pool.yaml").to_str().unwrap(), "-o", "gitlab"]);
    assert!(found.contains("\"pools/pool.yaml\""), "{found}");
    // From a folder in it, too.
    for form in ["gitlab", "sarif", "github"] {
        let (expected, _) = lint(&target, &["pools", "-o", form]);
        assert!(expected.contains("pools/pool.yaml"), "{expected}");
        assert_eq!(lint(&absolute, &[".", "-o", form]).0, expected, "{form}");
        assert_eq!(lint(&absolute, &["../pools", "-o", form]).0, expected, "{form}");
    }
}

/// Viewers know a test again by its name.
#[test]
fn tests_of_junit_have_names_of_their_own() {
    let target = tempfile::tempdir().unwrap();
    let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n      requirements: []\n      nodeClassRef:\n        name: default\n";
    std::fs::write(target.path().join("pool.yaml"), pool).unwrap();
    let names = || {
        let (text, _) = lint(target.path(), &["pool.yaml", "-o", "junit"]);
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("<testcase name=\"")?.split('"').next());
        names.map(str::to_owned).collect::<Vec<String>>()
    };
    let before = names();
    let distinct: std::collections::BTreeSet<&String> = before.iter().collect();
    assert!(before.len() > 1 && distinct.len() == before.len(), "{before:?}");
    std::fs::write(target.path().join("pool.yaml"), format!("# One line more.\n{pool}")).unwrap();
    assert_eq!(names(), before);
}
