//! Each folder of `tests/lint` holds definitions in `input/` and what `cutlist lint` says of them, as people
//! (`expected.txt`, exit code in the last line) and as programs read it (`expected.json`).
//! `UPDATE=1 cargo test --test lint` rewrites what is expected; read the difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the cases are files, and the program is run on them")]

mod again;
mod bad_input;
mod examples;
mod explain;
mod forms;
mod living;
mod made_large;
#[expect(dead_code, reason = "shared with tests that need more of it")]
#[path = "../program/mod.rs"]
mod program;
mod verdicts;
mod versions;

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint")
}

/// Standard output and exit code of `cutlist lint` in the folder of the case, without an environment.
fn lint(folder: &Path, arguments: &[&str]) -> (String, i32) {
    let ran = program::cutlist(folder, std::iter::once("lint").chain(arguments.iter().copied()));
    (ran.stdout + &ran.stderr, ran.code)
}

#[test]
fn cases_give_what_is_expected() {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.join("input").is_dir());
    cases.sort();
    assert!(cases.len() > 10, "the cases are missing");
    let mut differences = Vec::new();
    for case in cases {
        let (text, code) = lint(&case, &["input"]);
        let (json, json_code) = lint(&case, &["input", "-o", "json"]);
        assert_eq!(code, json_code, "{}", case.display());
        assert_eq!(lint(&case, &["input"]).0, text, "{}: the same input gives the same bytes", case.display());
        for (file, found) in [("expected.txt", format!("{text}exit {code}\n")), ("expected.json", json)] {
            differences.extend(program::differs(&case.join(file), &found));
        }
    }
    assert!(differences.is_empty(), "{}\nUPDATE=1 rewrites the files", differences.join("\n"));
}

#[test]
fn every_code_has_a_case() {
    let mut texts = String::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        texts += &std::fs::read_to_string(entry.unwrap().path().join("expected.txt")).unwrap_or_default();
    }
    // Found by unit tests, since the files would be huge, or not be text; or only by comparing with what is installed.
    // CL0019 is no matter of lint, where kustomizations stand side by side; CL0903 needs a baseline, CL0621 and CL0622 another revision,
    // CL0625 a clone.
    let elsewhere = [
        "CL0019", "CL0903", "CL0001", "CL0002", "CL0007", "CL0010", "CL0013", "CL0209", "CL0214", "CL0308", "CL0309",
        "CL0621", "CL0622", "CL0625", "CL0042",
    ];
    let missing: Vec<&str> = cutlist::definitions::rules::all()
        .iter()
        .map(|rule| rule.code)
        .filter(|code| !texts.contains(code) && !elsewhere.contains(code))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn a_path_that_is_not_there_is_a_mistake_of_usage() {
    let (text, code) = lint(&folder(), &["absent"]);
    assert_eq!((text.lines().next(), code), (Some("error: absent does not exist"), 2));
    let (text, code) = lint(&folder(), &["main.rs"]);
    assert!(code == 2 && text.contains("neither a folder nor"), "{code}: {text}");
    assert_eq!(lint(&folder(), &[]).1, 2);
    assert_eq!(lint(&folder(), &["quickstart", "--nonsense"]).1, 2);
    let (text, code) = lint(&folder(), &["quickstart", "-o", "json=/dev/null", "-o", "junit=/dev/null"]);
    assert_eq!((text.lines().next(), code), (Some("error: two forms can not both go to /dev/null"), 2));
}

#[test]
fn paths_are_shown_as_they_were_typed_and_read_together() {
    let (text, code) = lint(&folder(), &["references/input/classes", "./references/input/pools/one.yaml"]);
    assert!(text.contains("--> references/input/classes/unused.yaml:4:9"), "{text}");
    assert!(text.contains("--> ./references/input/pools/one.yaml:"), "{text}");
    assert!(!text.contains("EC2NodeClass `used` is not in"), "{text}");
    assert_eq!(code, 1, "{text}");
}

/// What is to be typed next is named from where the user stands.
#[test]
fn a_folder_to_plan_is_called_as_the_user_calls_it() {
    let outer = tempfile::tempdir().unwrap();
    let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: default }\n";
    for cluster in ["blue", "green"] {
        let folder = outer.path().join("infra").join(cluster);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("pool.yaml"), pool).unwrap();
    }
    for (typed, blue, green) in [
        (&["infra"][..], "infra/blue", "infra/green"),
        (&["./infra/"], "./infra/blue", "./infra/green"),
        (&["infra/blue", "infra/green"], "infra/blue", "infra/green"),
    ] {
        let (text, _) = lint(outer.path(), typed);
        let message = format!("is defined in `{blue}` as well: each folder is judged alone");
        assert!(text.contains(&message) && text.contains(&format!("`cutlist plan {green}`")), "{typed:?}: {text}");
    }
    let (text, _) = lint(&outer.path().join("infra"), &["."]);
    assert!(text.contains("is defined in `blue` as well") && text.contains("`cutlist plan green`"), "{text}");
}

/// Where no shell does it: in quotes, and in the arguments of a program that starts this one.
#[test]
fn a_pattern_stands_for_the_paths_that_it_matches() {
    let (text, code) = lint(&folder(), &["references/input/*/*.yaml"]);
    let by_shell = ["classes/unused", "classes/used", "pools/one", "pools/three", "pools/two"];
    let by_shell = by_shell.map(|name| format!("references/input/{name}.yaml"));
    assert_eq!((text.clone(), code), lint(&folder(), &by_shell.each_ref().map(String::as_str)));
    let (everywhere, _) = lint(&folder(), &["references/**/*.yaml"]);
    assert_eq!(everywhere, text);
    for pattern in ["references/input/*.toml", "absent/**/*.yaml", "referen?"] {
        let (text, code) = lint(&folder(), &[pattern]);
        let message = format!("error: {pattern} matches no file and no folder");
        assert_eq!((text.lines().next(), code), (Some(message.as_str()), 2));
    }
    let (text, code) = lint(&folder(), &["references/[.yaml"]);
    assert!(code == 2 && text.contains("is no pattern of paths"), "{text}");
    // A file of that name is meant itself.
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.yaml", "[a].yaml"] {
        std::fs::write(folder.path().join(name), format!("kind: NodePool\n# {name}\n")).unwrap();
    }
    let (text, _) = lint(folder.path(), &["[a].yaml"]);
    assert!(text.contains("--> [a].yaml:1") && !text.contains("--> a.yaml"), "{text}");
}

/// The same with a secret in the environment.
fn lint_with_secret(arguments: &[&str], name: &str) -> (String, i32) {
    let mut all = vec!["lint", "environment/input"];
    all.extend(arguments);
    let output = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(all)
        .current_dir(folder())
        .env_clear()
        .env(name, "wJalr-SECRET")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("wJalr"), "{text}");
    (text, output.status.code().unwrap())
}

#[test]
fn the_environment_is_the_operators() {
    const NAME: &str = "AWS_SECRET_ACCESS_KEY";
    // Nobody named it: it has no value, and is said to be there.
    let (text, _) = lint_with_secret(&[], NAME);
    assert!(text.contains("note[CL0011 undefined-variable]: `${AWS_SECRET_ACCESS_KEY}` has no value"), "{text}");
    assert!(text.contains("name it with --variable-from-environment AWS_SECRET_ACCESS_KEY"), "{text}");
    // Named, it is used, and not shown.
    for output in ["text", "json"] {
        let (text, code) = lint_with_secret(&["--variable-from-environment", NAME, "-o", output], NAME);
        assert!(code == 1 && text.contains("${AWS_SECRET_ACCESS_KEY}"), "{code}: {text}");
        assert!(text.contains("must be one of"), "{text}");
    }
    // So it is with the prefix.
    let (text, code) = lint_with_secret(&[], "CUTLIST_VAR_AWS_SECRET_ACCESS_KEY");
    assert!(code == 1 && text.contains("must be one of"), "{code}: {text}");
    // One that is not there is a mistake of usage.
    let (text, code) = lint_with_secret(&["--variable-from-environment", "ABSENT"], NAME);
    assert!(code == 2 && text.contains("the environment has no variable of this name"), "{code}: {text}");
    // A value that was typed comes before both.
    let typed = format!("{NAME}=In");
    let (text, _) = lint_with_secret(&["--variable-from-environment", NAME, "--variable", &typed], NAME);
    assert!(!text.contains("must be one of"), "{text}");
}

/// As lists of changed files and hooks give them.
#[test]
fn a_file_that_is_typed_twice_is_one_file() {
    let absolute = folder().join("merge-keys/input").canonicalize().unwrap();
    let (once, code) = lint(&folder(), &["merge-keys/input/all.yaml"]);
    for other in ["merge-keys/input/all.yaml", "./merge-keys/../merge-keys/input/all.yaml"] {
        assert_eq!(lint(&folder(), &["merge-keys/input/all.yaml", other]), (once.clone(), code), "{other}");
    }
    let arguments = ["merge-keys/input/all.yaml", "merge-keys/input", absolute.to_str().unwrap()];
    let (text, _) = lint(&folder(), &arguments);
    let (folder_alone, _) = lint(&folder(), &["merge-keys/input"]);
    assert!(!text.contains("defined twice"), "{text}");
    assert_eq!(text.lines().last(), folder_alone.lines().last());
    // A link and the file that it leads to.
    let (text, code) =
        lint(&folder(), &["kustomize-links/input/pools.yaml", "kustomize-links/input/shared/pools.yaml"]);
    assert_eq!((text.as_str(), code), ("1 file, 2 definitions: clean\n", 0));
}

/// A patch that is typed alone is still a patch: the kustomization beside it says so.
#[test]
fn a_patch_alone_is_no_definition() {
    let (text, code) = lint(&folder(), &["kustomize/input/overlays/prod/limits.yaml"]);
    assert_eq!((text.as_str(), code), ("1 file: no definitions found\n", 0));
    let (text, code) = lint(&folder(), &["kustomize/input/overlays/prod"]);
    assert_eq!((text.as_str(), code), ("4 files, 2 definitions: clean\n", 0));
}

/// The chart is above what was typed.
#[test]
fn a_template_of_a_chart_is_none_when_it_is_typed() {
    for path in ["kinds/input/chart/templates/pool.yaml", "kinds/input/chart/templates"] {
        let (text, code) = lint(&folder(), &[path]);
        assert!(text.starts_with("note[CL0014 template]: templates of a Helm chart are not read"), "{path}: {text}");
        assert_eq!((text.matches("note[").count(), code), (1, 0), "{path}: {text}");
    }
}

/// A folder for each cluster, named one by one.
#[test]
fn folders_that_are_typed_may_define_the_same() {
    let (text, code) = lint(&folder(), &["folders/input/clusters/use1", "folders/input/clusters/euw1"]);
    assert!(text.contains("note[CL0022 several-folders]") && !text.contains("defined twice"), "{text}");
    assert_eq!(code, 0, "{text}");
}

/// One that is vendored is nobody's definition, and settings may say so.
#[test]
fn a_file_that_is_too_large_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &str| std::fs::write(folder.path().join(path), content).unwrap();
    std::fs::create_dir(folder.path().join("pools")).unwrap();
    let pool = std::fs::read_to_string(self::folder().join("other-tools/input/pool.yaml")).unwrap();
    let class = std::fs::read_to_string(self::folder().join("other-tools/input/class.yaml")).unwrap();
    write("pools/all.yaml", &format!("{pool}---\n{class}"));
    write("openapi.yaml", &"#".repeat((8 << 20) + 1));
    let (text, code) = lint(folder.path(), &["."]);
    assert!(text.starts_with("error[CL0002 file-too-large]: the file is larger than the 8 MiB"), "{text}");
    assert!(text.contains("--> openapi.yaml:1:1") && text.contains("`spec.paths` of cutlist.yaml"), "{text}");
    assert_eq!(code, 1, "{text}");
    write("cutlist.yaml", "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: { paths: [pools] }\n");
    let (text, code) = lint(folder.path(), &["."]);
    assert_eq!((text.as_str(), code), ("2 files, 3 definitions: clean\n", 0));
    // What a kustomization needs can not be left out.
    write("pools/kustomization.yaml", "resources: [all.yaml, ../openapi.yaml]\n");
    let (text, code) = lint(folder.path(), &["."]);
    assert!(text.contains("error[CL0002 file-too-large]") && code == 1, "{text}");
}

#[test]
fn definitions_may_come_from_standard_input() {
    let case = folder().join("merge-keys");
    let output = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(["lint", "-"])
        .stdin(std::fs::File::open(case.join("input/all.yaml")).unwrap())
        .env_clear()
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = lint(&case, &["input/all.yaml"]).0;
    assert!(text.contains("--> <stdin>:14:5"), "{text}");
    assert_eq!(text, expected.replace("input/all.yaml", "<stdin>"));
}

/// Each folder of `built/` has an overlay, and what the real `kustomize build` (5.7) makes of it.
#[test]
fn kustomizations_are_built_as_kustomize_builds_them() {
    let mut cases = 0;
    for entry in std::fs::read_dir(folder().join("built")).unwrap() {
        let case = entry.unwrap().path();
        let read = |path: &Path| {
            let content = cutlist::adapters::git::read_folder(path).unwrap();
            let definitions = cutlist::definitions::read(&content.files, &Default::default());
            assert!(!definitions.has_errors(), "{}: {:?}", path.display(), definitions.diagnostics);
            let mut pools: Vec<_> = definitions.node_pools.into_iter().map(|it| it.value).collect();
            let mut classes: Vec<_> = definitions.node_classes.into_iter().map(|it| it.value).collect();
            pools.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
            classes.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
            assert!(pools.len() > 1 && !classes.is_empty(), "{}", path.display());
            (pools, classes, definitions.pod_templates.into_iter().map(|it| it.value).collect::<Vec<_>>())
        };
        assert_eq!(read(&case.join("overlay")), read(&case.join("built.yaml")), "{}", case.display());
        cases += 1;
    }
    assert!(cases > 2, "the cases are missing");
}

#[test]
fn variables_come_from_the_command_line() {
    let (text, _) = lint(&folder(), &["substitution/input", "--variable", "NOWHERE=x", "-o", "json"]);
    assert!(!text.contains("`${NOWHERE}` has no value"), "{text}");
}
