//! What each version of Karpenter does not know, in the objects of `tests/lint/versions`, beside what a real API server says of them with the
//! custom resource definitions of that version: `verdicts.txt`, which `tests/karpenter-versions/verdicts` asks for.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

use cutlist::definitions::{KarpenterVersion, UnknownVersion};
use serde_json::Value;

use super::{folder, lint, program};

/// From the oldest to the newest.
fn versions() -> Vec<String> {
    let all = (0..).map(|minor| format!("1.{minor}"));
    all.take_while(|version| KarpenterVersion::from_str(version) != Err(UnknownVersion)).collect()
}

/// The errors in the objects with a version, as (object, line).
fn errors(version: &str) -> Vec<(String, String)> {
    let case = folder().join("versions");
    let (json, _) = lint(&case, &["input", "-o", "json", "--karpenter-version", version]);
    let report: Value = serde_json::from_str(&json).unwrap();
    let all = report["diagnostics"].as_array().unwrap().iter();
    let errors = all.filter(|it| it["severity"] == "error").map(|it| {
        let text = |name: &str| it[name].as_str().unwrap();
        let (line, column) = (&it["span"]["line"], &it["span"]["column"]);
        let line = format!("{} {}:{line}:{column} {}", text("code"), text("file"), text("message"));
        (text("object").to_owned(), line)
    });
    errors.collect()
}

#[test]
fn each_version_says_what_it_does_not_know() {
    assert!(versions().len() >= 15, "{:?}", versions());
    let mut found = String::new();
    for version in versions() {
        for (_, line) in errors(&version) {
            writeln!(found, "{version} {line}").unwrap();
        }
    }
    let differs = program::differs(&folder().join("versions/expected.versions.txt"), &found);
    assert!(differs.is_none(), "{}\nUPDATE=1 rewrites the file", differs.unwrap());
}

/// An object is refused by the server if and only if lint finds an error in it.
#[test]
fn the_api_server_refuses_the_same_objects() {
    let recorded = std::fs::read_to_string(folder().join("versions/verdicts.txt")).unwrap();
    let mut verdicts: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (version, verdict, object) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        verdicts.insert((version, object), verdict == "refused");
    }
    let mut differences = Vec::new();
    for version in versions() {
        let errors = errors(&version);
        for ((_, object), is_refused) in verdicts.iter().filter(|((of, _), _)| *of == version) {
            let said: Vec<&str> = errors.iter().filter(|(of, _)| of == object).map(|(_, line)| line.as_str()).collect();
            if said.is_empty() == *is_refused {
                differences.push(format!("{version} {object}: refused {is_refused}, and lint says {said:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(verdicts.len() > 500 && verdicts.values().filter(|it| **it).count() > 100, "{}", verdicts.len());
}

#[test]
fn the_command_line_comes_before_the_settings() {
    let case = folder().join("versions-settings");
    let (text, code) = lint(&case, &["input"]);
    assert!(code == 1 && text.contains("spec.lint.karpenterVersion is 1.10"), "{text}");
    let (text, code) = lint(&case, &["input", "--karpenter-version", "v1.9.1"]);
    assert!(code == 1 && text.contains("--karpenter-version is 1.9") && !text.contains("karpenterVersion"), "{text}");
    let (text, code) = lint(&case, &["input", "--karpenter-version", "1.14"]);
    assert!(code == 0 && !text.contains("CL021"), "{text}");
    for wrong in ["1.99", "0.37", "2", "newest", ""] {
        let (text, code) = lint(&case, &["input", "--karpenter-version", wrong]);
        assert!(code == 2 && text.contains("Karpenter 1.0 to 1.14 are known"), "{wrong}: {code}: {text}");
    }
}

/// What may be changed now could not be changed before.
#[test]
fn a_change_that_comes_too_early_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let class = |by: &str| {
        format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{ name: default }}\nspec:\n  {by}\n  amiSelectorTerms: \
             [{{ alias: al2023@v20240807 }}]\n  subnetSelectorTerms: [{{ tags: {{ a: b }} }}]\n  securityGroupSelectorTerms: [{{ tags: {{ a: b }} }}]\n"
        )
    };
    let path = folder.path().join("class.yaml");
    let git = |arguments: &[&str]| {
        let words = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"].iter().chain(arguments);
        assert!(std::process::Command::new("git").args(words).current_dir(folder.path()).status().unwrap().success());
    };
    std::fs::write(&path, class("role: one")).unwrap();
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    let too_early = |by: &str, version: &str| {
        std::fs::write(&path, class(by)).unwrap();
        let (text, _) = lint(folder.path(), &[".", "--against", "HEAD", "--karpenter-version", version]);
        text.lines().filter(|line| line.contains("CL0214")).map(str::to_owned).collect::<Vec<_>>()
    };
    let role = "error[CL0214 change-too-early]: `spec.role` can be changed since Karpenter 1.7, and --karpenter-version is 1.6";
    assert_eq!(too_early("role: two", "1.6"), [role]);
    let either = "error[CL0214 change-too-early]: role and instanceProfile can take each other's place since Karpenter 1.7, and \
                  --karpenter-version is 1.6";
    assert_eq!(too_early("instanceProfile: two", "1.6"), [either]);
    assert_eq!(too_early("instanceProfile: two", "1.7"), [""; 0]);
    assert_eq!(too_early("role: two", "1.7"), [""; 0]);
    assert_eq!(too_early("role: one", "1.6"), [""; 0]);
}
