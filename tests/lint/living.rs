//! Living with the linter: what does not count and why, what is known, what a change is answerable for, and what is mended by itself.

use std::path::Path;
use std::process::Command;

use super::{lint, program};

const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: general }
spec:
  weight: 10
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements:
        - { key: kubernetes.io/arch, operator: In, values: [amd64, aarch64] }
";
const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec:
  role: KarpenterNodeRole
  amiSelectorTerms: [{ alias: al2023@v20240807 }]
  subnetSelectorTerms: [{ tags: { karpenter.sh/discovery: blue } }]
  securityGroupSelectorTerms: [{ tags: { karpenter.sh/discovery: blue } }]
";
const SETTINGS: &str = "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nmetadata: { name: base }\nspec:\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

/// The last line of the report on the pool, with the line of its warning written as `line`.
fn with_line(line: &str, before: &str) -> (String, i32) {
    let pool =
        POOL.replace("        - { key: kubernetes.io/arch", &format!("{before}        - {{ key: kubernetes.io/arch"));
    let pool = pool.replace("[amd64, aarch64] }", &format!("[amd64, aarch64] }}{line}"));
    let folder = folder(&[("pool.yaml", &pool), ("class.yaml", CLASS)]);
    lint(folder.path(), &["."])
}

#[test]
fn comments_say_what_does_not_count() {
    const CLEAN: &str = "2 files, 2 definitions: clean, 1 suppressed";
    assert_eq!(last_line(&with_line("", "").0), "2 files, 2 definitions: 1 warning");
    for (line, before) in [
        (" # cutlist:ignore CL0312 ours are called so", ""),
        (" # cutlist:ignore unknown-value ours are called so", ""),
        ("", "        # cutlist:ignore CL0312 ours are called so\n"),
        ("", "        # cutlist:ignore CL0312 ours are called so\n        # and more is said\n"),
    ] {
        let (text, code) = with_line(line, before);
        assert_eq!((last_line(&text), code), (CLEAN, 0), "{line}{before}: {text}");
    }
    let of_file = format!("# cutlist:ignore CL0312 ours are called so\n{POOL}");
    let whole = folder(&[("pool.yaml", &of_file), ("class.yaml", CLASS)]);
    assert_eq!(lint(whole.path(), &["."]), (format!("{CLEAN}\n"), 0));
    // Another line, another rule, and no comment.
    let (text, code) = with_line("", "        # cutlist:ignore CL0311 another\n");
    assert!(code == 1 && text.contains("CL0901 unused-suppression") && text.contains("CL0312"), "{text}");
    let (text, code) = with_line(" # cutlist:ignore CL0312", "");
    assert!(code == 1 && text.contains("gives no reason: it has no effect"), "{text}");
    let (text, code) = with_line(" # cutlist:ignore CL312 ours", "");
    assert!(code == 1 && text.contains("there is no `CL312`") && text.contains("there is `CL0312`"), "{text}");
    let (text, _) = with_line(" # cutlist:ignore", "");
    assert!(text.contains("the suppression names no rule"), "{text}");
}

#[test]
fn annotations_are_for_their_object() {
    let with = |annotation: &str| {
        let metadata =
            format!("metadata: {{ name: general, annotations: {{ cutlist.dev/ignore: \"{annotation}\" }} }}");
        let pool = POOL.replace("metadata: { name: general }", &metadata);
        let other = POOL.replace("name: general", "name: other").replace("weight: 10", "weight: 20");
        let folder = folder(&[("pools.yaml", &format!("{pool}---\n{other}")), ("class.yaml", CLASS)]);
        lint(folder.path(), &["."])
    };
    let (text, code) = with("CL0312 ours are called so");
    assert_eq!((last_line(&text), code), ("2 files, 3 definitions: 1 warning, 1 suppressed", 1));
    assert!(text.contains("NodePool/other") && !text.contains("NodePool/general"), "{text}");
    let (text, _) = with("CL0312 ours are called so; CL0464 another");
    assert!(text.contains("nothing here is CL0464 unpinned-alias"), "{text}");
}

/// A suppression is the linter's: nothing unusable comes into a plan by it.
#[test]
fn what_is_suppressed_is_still_refused_by_a_plan() {
    let broken = POOL.replace("weight: 10", "wieght: 10 # cutlist:ignore CL0201 it works on my machine");
    let settings = format!("{SETTINGS}  lint: {{ ignoredPaths: ['**'], failOn: never }}\n");
    let folder = folder(&[("pool.yaml", &broken), ("class.yaml", CLASS), ("cutlist.yaml", &settings)]);
    assert_eq!(lint(folder.path(), &["."]).1, 0);
    let plan = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(["plan", "."])
        .current_dir(folder.path())
        .env_clear()
        .output()
        .unwrap();
    let said = String::from_utf8(plan.stderr).unwrap();
    assert!(plan.status.code() == Some(1) && said.contains("CL0201 unknown-field"), "{said}");
}

#[test]
fn settings_choose_severities_paths_and_what_fails() {
    let with = |lint_settings: &str, arguments: &[&str]| {
        let settings = format!("{SETTINGS}  lint: {lint_settings}\n");
        let folder = folder(&[("a/pool.yaml", POOL), ("class.yaml", CLASS), ("cutlist.yaml", &settings)]);
        lint(folder.path(), &[&["."], arguments].concat())
    };
    let end = |lint_settings: &str| {
        let (text, code) = with(lint_settings, &[]);
        (last_line(&text).split_once(": ").unwrap().1.to_owned(), code)
    };
    let is = |text: &str, code: i32| (text.to_owned(), code);
    assert_eq!(end("{}"), is("1 warning", 1));
    assert_eq!(end("{ rules: [{ rule: CL0312, severity: error }] }"), is("1 error", 1));
    assert_eq!(end("{ rules: [{ rule: unknown-value, severity: note }] }"), is("clean, 1 note", 0));
    assert_eq!(end("{ rules: [{ rule: CL0312, severity: 'off' }] }"), is("clean, 1 suppressed", 0));
    assert_eq!(end("{ rules: [{ rule: CL0312, severity: 'off', paths: [b/**] }] }"), is("1 warning", 1));
    assert_eq!(
        end("{ rules: [{ rule: CL0312, severity: 'off' }, { rule: CL0312, severity: note, paths: [a] }] }"),
        is("clean, 1 note", 0),
        "the last that fits"
    );
    assert_eq!(end("{ ignoredPaths: [a] }"), is("clean, 1 suppressed", 0));
    assert_eq!(end("{ failOn: error }"), is("1 warning", 0));
    assert_eq!(end("{ failOn: never }"), is("1 warning", 0));
    assert_eq!(end("{ failOn: sometimes }").1, 1);
    // What was typed comes before the settings.
    assert_eq!(with("{ failOn: never }", &["--fail-on", "warning"]).1, 1);
    assert_eq!(with("{ rules: [{ rule: CL0312, severity: note }] }", &["--fail-on", "note"]).1, 1);
    assert_eq!(with("{}", &["--fail-on", "error"]).1, 0);
    // What is wrong in the settings is said at its place.
    let (text, code) = with("{ rules: [{ rule: unknown-vlaue, severity: note }], ignoredPaths: ['['] }", &[]);
    assert!(code == 1 && text.contains("did you mean `unknown-value`?") && text.contains("CL0654 lint-path"), "{text}");
}

#[test]
fn a_baseline_holds_what_is_known() {
    let folder = folder(&[("pool.yaml", POOL), ("class.yaml", CLASS)]);
    let run = |arguments: &[&str]| lint(folder.path(), arguments);
    let (text, code) = run(&[".", "--baseline", "known.json"]);
    assert!(code == 2 && text.contains("--write-baseline"), "{text}");
    let (text, code) = run(&[".", "--baseline", "known.json", "--write-baseline"]);
    assert_eq!((text.as_str(), code), ("wrote 1 findings to known.json\n", 0));
    let (text, code) = run(&[".", "--baseline", "known.json"]);
    assert_eq!((text.as_str(), code), ("2 files, 2 definitions: clean, 1 suppressed\n", 0));
    // The line moves, another finding comes.
    write(folder.path(), "pool.yaml", &format!("# moved\n{}", POOL.replace("weight: 10", "wieght: 10")));
    let (text, code) = run(&[".", "--baseline", "known.json"]);
    assert!(code == 1 && last_line(&text).ends_with("1 error, 1 suppressed"), "{text}");
    // By another path it is the same file.
    let (text, _) = run(&["./pool.yaml", "class.yaml", "--baseline", "known.json"]);
    assert!(last_line(&text).ends_with("1 error, 1 suppressed"), "{text}");
    // What was mended is said, and only by who looks at the file.
    write(folder.path(), "pool.yaml", &POOL.replace(", aarch64", ""));
    let (text, code) = run(&[".", "--baseline", "known.json"]);
    assert!(code == 0 && text.contains("CL0903 outdated-baseline") && text.contains("known.json"), "{text}");
    assert_eq!(run(&["class.yaml", "--baseline", "known.json"]).0, "1 file, 1 definition: clean\n");
    for broken in ["{", "{\"version\": 2, \"findings\": []}", "[]"] {
        write(folder.path(), "known.json", broken);
        assert_eq!(run(&[".", "--baseline", "known.json"]).1, 2, "{broken}");
    }
}

#[test]
fn a_baseline_of_other_files_says_so() {
    let folder = folder(&[("pools/pool.yaml", POOL), ("pools/class.yaml", CLASS)]);
    let run = |path: &str, more: &[&str]| lint(folder.path(), &[more, &[path, "--baseline", "known.json"]].concat());
    assert_eq!(run("pools", &["--write-baseline"]).1, 0);
    std::fs::rename(folder.path().join("pools"), folder.path().join("nodes")).unwrap();
    let (text, code) = run("nodes", &[]);
    assert!(code == 1 && text.contains("the one finding of the baseline is not in these files"), "{text}");
    assert_eq!(last_line(&text), "2 files, 2 definitions: 1 warning, 1 note");
    // Of some of the files it may have no finding.
    assert_eq!(run("nodes/class.yaml", &[]).0, "1 file, 1 definition: clean\n");
}

/// One knows findings by paths from the root of the repository, wherever it is written and used.
#[test]
fn a_baseline_counts_in_every_folder_of_a_repository() {
    const SETTINGS: &str =
        "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: { lint: { baseline: known.json } }\n";
    let folder = folder(&[("nodes/a/pool.yaml", POOL), ("nodes/a/class.yaml", CLASS)]);
    std::fs::create_dir(folder.path().join(".git")).unwrap();
    let (root, below) = (folder.path(), folder.path().join("nodes"));
    let written = |from: &Path, path: &str, baseline: &str| {
        let (text, code) = lint(from, &[path, "--baseline", baseline, "--write-baseline"]);
        assert_eq!(code, 0, "{text}");
        std::fs::read_to_string(from.join(baseline)).unwrap()
    };
    let of_root = written(root, "nodes", "nodes/known.json");
    assert!(of_root.contains("\"nodes/a/pool.yaml\""), "{of_root}");
    assert_eq!(written(&below, ".", "known.json"), of_root);
    for (from, path, baseline) in [(root, ".", "nodes/known.json"), (&below.join("a"), ".", "../known.json")] {
        let (text, code) = lint(from, &[path, "--baseline", baseline]);
        assert!(code == 0 && last_line(&text).ends_with("clean, 1 suppressed"), "{path}: {text}");
    }
    // The one that the settings name is written in the same way.
    write(&below, "cutlist.yaml", SETTINGS);
    for (from, path) in [(root, "nodes"), (&below, ".")] {
        let (text, code) = lint(from, &[path]);
        assert_eq!((last_line(&text), code), ("3 files, 3 definitions: clean, 1 suppressed", 0), "{text}");
    }
}

/// The one that the settings name is known by paths from the root, from wherever lint is called.
#[test]
fn a_baseline_of_the_settings_counts_for_everybody() {
    const SETTINGS: &str =
        "apiVersion: cutlist.dev/v1alpha1\nkind: Settings\nspec: { lint: { baseline: known.json } }\n";
    let folder =
        folder(&[("nodes/cutlist.yaml", SETTINGS), ("nodes/a/pool.yaml", POOL), ("nodes/a/class.yaml", CLASS)]);
    let (text, code) = lint(folder.path(), &["nodes"]);
    assert!(code == 1 && text.contains("CL0904 unusable-baseline") && text.contains("--write-baseline"), "{text}");
    let root = folder.path().join("nodes");
    let (text, code) = lint(&root, &[".", "--baseline", "known.json", "--write-baseline"]);
    assert_eq!((text.as_str(), code), ("wrote 1 findings to known.json\n", 0));
    for (from, path) in [(folder.path(), "nodes"), (&root, ".")] {
        let (text, code) = lint(from, &[path]);
        assert_eq!((last_line(&text), code), ("3 files, 3 definitions: clean, 1 suppressed", 0), "{text}");
    }
    // Another one takes its place.
    write(&root, "none.json", "{ \"version\": 1, \"findings\": [] }");
    let (text, code) = lint(&root, &[".", "--baseline", "none.json"]);
    assert_eq!((last_line(&text), code), ("3 files, 3 definitions: 1 warning", 1), "{text}");
    // What was mended is said.
    write(&root, "a/pool.yaml", &POOL.replace(", aarch64", ""));
    let (text, code) = lint(folder.path(), &["nodes"]);
    assert!(code == 0 && text.contains("CL0903 outdated-baseline") && text.contains("nodes/known.json"), "{text}");
}

/// Everything that is mended by itself, with its comments.
#[test]
fn fixes_are_written_and_nothing_else() {
    let before = "# The pools of the team.\r
apiVersion: karpenter.sh/v1 # served by Karpenter 1\r
kind: Nodepool\r
metadata:\r
  name: general # stays\r
  labels: { spot: yes }\r
spec:\r
  wieght: \"10\" # one of a hundred\r
  limits: { memory: 16GiB }\r
  disruption: { consolidationPolicy: WhenUnderutilized, consolidateAfter: 1min }\r
  template:\r
    spec:\r
      expireAfter: 30d\r
      nodeClassRef: { apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: 'defualt' }\r
      requirements:\r
        - { key: beta.kubernetes.io/arch, operator: In, values: [amd64, aarch64] }\r
        - { key: karpenter.k8s.aws/instance-generation, operator: Gt, values: [5] }\r
";
    let after = before
        .replace("kind: Nodepool", "kind: NodePool")
        .replace("spot: yes", "spot: \"yes\"")
        .replace("wieght: \"10\"", "weight: 10")
        .replace("16GiB", "16Gi")
        .replace("WhenUnderutilized", "WhenEmptyOrUnderutilized")
        .replace("1min", "1m")
        .replace("30d", "720h")
        .replace("apiVersion: karpenter.k8s.aws/v1beta1", "group: karpenter.k8s.aws")
        .replace("'defualt'", "'default'")
        .replace("beta.kubernetes.io/arch", "kubernetes.io/arch")
        .replace("aarch64", "arm64")
        .replace("values: [5]", "values: [\"5\"]");
    let folder = folder(&[("pool.yaml", before), ("class.yaml", CLASS)]);
    let (patch, code) = lint(folder.path(), &[".", "--diff"]);
    assert_eq!((code, read(folder.path(), "pool.yaml").as_str()), (1, before), "--diff writes nothing");
    assert!(patch.ends_with("with this patch: 2 files, 2 definitions: clean\n"), "{patch}");
    let (text, code) = lint(folder.path(), &[".", "--fix"]);
    assert_eq!(read(folder.path(), "pool.yaml"), after, "{text}");
    assert_eq!(read(folder.path(), "class.yaml"), CLASS);
    assert_eq!((text.as_str(), code), ("2 files, 2 definitions: clean\nfixed: pool.yaml\n", 0));
    assert_eq!(lint(folder.path(), &[".", "--fix"]).0, "2 files, 2 definitions: clean\n", "nothing is left");
    // The patch is what was written.
    assert!(
        patch.contains("--- a/pool.yaml\n+++ b/pool.yaml\n") && patch.contains("+  limits: { memory: 16Gi }"),
        "{patch}"
    );
}

/// What programs make of a patch is what `--fix` writes, whatever line ends and names the files have, and however they were called.
#[test]
fn a_patch_applies_byte_for_byte() {
    let pool = format!("\u{feff}# one\u{202e}\n{POOL}").replace('\n', "\r\n");
    let other = POOL.replace("general", "other");
    let files = [("pools/a pool.yaml", pool.as_str()), ("other.yaml", other.trim_end()), ("class.yaml", CLASS)];
    let fixed = folder(&files);
    lint(fixed.path(), &[".", "--fix"]);
    for name in ["pools/a pool.yaml", "other.yaml"] {
        assert!(read(fixed.path(), name).contains("arm64"), "{name}");
    }
    let programs: [(&str, &[&str]); 2] = [("git", &["apply", "-"]), ("patch", &["-p1"])];
    for (program, arguments) in programs {
        for from in ["", "pools"] {
            let folder = folder(&files);
            git(folder.path());
            let typed = if from.is_empty() { folder.path().to_str().unwrap() } else { ".." };
            let patch = program::cutlist(&folder.path().join(from), ["lint", typed, "--diff"]).stdout;
            assert!(patch.contains("--- a/other.yaml\n") && patch.contains("--- a/pools/a pool.yaml\t\n"), "{patch}");
            write(folder.path(), "fix.patch", &patch);
            let mut applying = Command::new(program);
            applying.args(arguments).current_dir(folder.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
            let patch_file = std::fs::File::open(folder.path().join("fix.patch")).unwrap();
            let applied = applying.stdin(patch_file).output().unwrap();
            assert!(applied.status.success(), "{program}: {applied:?}\n{patch}");
            for (name, _) in files {
                assert_eq!(read(folder.path(), name), read(fixed.path(), name), "{program} from `{from}`: {name}");
            }
        }
    }
}

#[test]
fn a_fix_never_makes_it_worse() {
    // The key that was meant is there already; a variable, an alias and a patch are not what stands in the file.
    let pool = POOL.replace("  weight: 10\n", "  weight: 10\n  wieght: &w \"${WEIGHT:=20}\"\n");
    let folder = folder(&[("pool.yaml", &pool), ("class.yaml", CLASS)]);
    lint(folder.path(), &[".", "--fix"]);
    assert_eq!(read(folder.path(), "pool.yaml"), pool.replace("aarch64", "arm64"));
    // What is left is said where nothing is written, too.
    assert_eq!(
        lint(folder.path(), &[".", "--diff"]),
        ("with this patch: 2 files, 2 definitions: 1 error, 1 note\n".to_owned(), 1)
    );
    // Standard input is nobody's file.
    let (text, code) = lint(folder.path(), &["-", "--fix"]);
    assert!(code == 2 && text.contains("name the files"), "{text}");
    let (text, code) = lint(folder.path(), &["class.yaml", "--fix", "--write-baseline", "--baseline", "x"]);
    assert!(code == 2 && text.contains("cannot be used with"), "{text}");
}

fn git(folder: &Path) -> git2::Repository {
    let repository = git2::Repository::init(folder).unwrap();
    commit(&repository);
    repository
}

fn commit(repository: &git2::Repository) {
    let mut index = repository.index().unwrap();
    index.add_all(["."], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::new("Ada", "ada@example.com", &git2::Time::new(1_763_600_000, 0)).unwrap();
    let parent = repository.head().ok().and_then(|head| head.peel_to_commit().ok());
    repository.commit(Some("HEAD"), &who, &who, "change", &tree, &parent.iter().collect::<Vec<_>>()).unwrap();
}

#[test]
fn folders_that_are_not_in_a_clone_are_named() {
    let flux = |name: &str, path: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{ name: {name} }}\nspec:\n  path: {path}\n  sourceRef: {{ kind: GitRepository, name: flux-system }}\n"
        )
    };
    let told = format!("{}---\n{}", flux("pools", "./nodes"), flux("others", "./nods"));
    let folder = folder(&[("nodes/pool.yaml", POOL), ("nodes/class.yaml", CLASS), ("clusters/told.yaml", &told)]);
    assert!(!lint(folder.path(), &["."]).0.contains("CL0625"), "it is no clone");
    git(folder.path());
    let (text, code) = lint(folder.path(), &["."]);
    assert!(text.contains("note[CL0625 path-missing]") && text.contains("--> clusters/told.yaml:12:9"), "{text}");
    assert_eq!((last_line(&text), code), ("3 files, 2 definitions: 1 warning, 1 note", 1), "{text}");
    assert!(!lint(folder.path(), &["clusters"]).0.contains("CL0625"), "it is a part of one");
}

#[test]
fn a_change_is_answerable_for_what_it_touches_and_what_depends_on_it() {
    let other = POOL.replace("name: general", "name: other").replace("weight: 10", "wieght: 10");
    let folder = folder(&[("pool.yaml", POOL), ("class.yaml", CLASS), ("old/other.yaml", &other)]);
    git(folder.path());
    let run = |arguments: &[&str]| lint(folder.path(), arguments);
    // Nothing changed; what was wrong before is not said.
    let (text, code) = run(&[".", "--changed-since", "HEAD"]);
    assert_eq!((text.as_str(), code), ("3 files, 3 definitions: clean\n", 0));
    // The class is renamed: the pools that refer to it are answerable, their old mistakes are not.
    write(folder.path(), "class.yaml", &CLASS.replace("name: default", "name: renamed"));
    let (text, code) = run(&[".", "--changed-since", "HEAD"]);
    assert!(code == 1 && text.contains("pool.yaml:8") && text.contains("CL0601 class-missing"), "{text}");
    assert!(!text.contains("CL0312") && !text.contains("wieght"), "{text}");
    // A new file is all new.
    write(folder.path(), "class.yaml", CLASS);
    let new = POOL.replace("name: general", "name: new").replace("weight: 10", "weight: 20");
    write(folder.path(), "new/pool.yaml", &new);
    let (text, _) = run(&[".", "--changed-since", "HEAD"]);
    assert!(text.contains("new/pool.yaml:10") && last_line(&text).ends_with("1 warning"), "{text}");
    let (text, _) = run(&["new", "--changed-since", "HEAD"]);
    assert!(text.contains("new/pool.yaml:10"), "{text}");
    // So is all of a file that was touched.
    write(folder.path(), "old/other.yaml", &format!("{other}# touched\n"));
    let (text, _) = run(&["old", "--changed-since", "HEAD"]);
    assert!(text.contains("wieght"), "{text}");
    let (text, code) = run(&[".", "--changed-since", "no-such-branch"]);
    assert!(code == 2 && text.contains("has no revision `no-such-branch`"), "{text}");
}

#[test]
fn a_change_that_the_api_server_refuses_is_found_before_it_is_merged() {
    let folder = folder(&[("pool.yaml", POOL), ("class.yaml", CLASS)]);
    git(folder.path());
    let run = |arguments: &[&str]| lint(folder.path(), arguments);
    let changed = POOL.replace("  weight: 10\n", "  replicas: 3\n").replace("kind: EC2NodeClass", "kind: NodeClass");
    // In another file: a pool is known by its name.
    std::fs::remove_file(folder.path().join("pool.yaml")).unwrap();
    write(folder.path(), "pools/general.yaml", &changed);
    let codes = ["CL0308 static-for-ever", "CL0309 immutable"];
    let (text, _) = run(&["."]);
    assert!(codes.iter().all(|code| !text.contains(code)), "nothing to hold it against: {text}");
    for flag in ["--against", "--changed-since"] {
        let (text, code) = run(&[".", flag, "HEAD"]);
        assert!(code == 1 && codes.iter().all(|code| text.contains(code)), "{flag}: {text}");
        assert!(text.contains("pools/general.yaml:8:55"), "{text}");
    }
    // With another name it is another pool.
    write(folder.path(), "pools/general.yaml", &changed.replace("name: general", "name: static"));
    let (text, _) = run(&[".", "--against", "HEAD"]);
    assert!(codes.iter().all(|code| !text.contains(code)), "{text}");
    let (text, code) = run(&[".", "--against", "no-such-branch"]);
    assert!(code == 2 && text.contains("has no revision `no-such-branch`"), "{text}");
}

#[test]
fn a_pool_that_is_gone_is_said_with_what_becomes_of_its_nodes() {
    let other = POOL.replace("name: general", "name: batch").replace("weight: 10", "weight: 20");
    let folder = folder(&[("pools/general.yaml", POOL), ("pools/batch.yaml", &other), ("class.yaml", CLASS)]);
    git(folder.path());
    let run = |arguments: &[&str]| lint(folder.path(), arguments);
    let is_silent = |text: &str| !text.contains("CL0621") && !text.contains("CL0622");
    let (text, _) = run(&[".", "--against", "HEAD"]);
    assert!(is_silent(&text), "{text}");
    // With its file.
    std::fs::remove_file(folder.path().join("pools/batch.yaml")).unwrap();
    let (text, _) = run(&["."]);
    assert!(is_silent(&text), "nothing to hold it against: {text}");
    for flag in ["--against", "--changed-since"] {
        let (text, _) = run(&[".", flag, "HEAD"]);
        assert!(text.contains("note[CL0621 pool-removed]: NodePool `batch` is not in these files any more"), "{text}");
        assert!(text.contains("--> pools/batch.yaml:1:1") && !text.contains("CL0622"), "{text}");
    }
    let (text, _) = run(&["pools", "--against", "HEAD"]);
    assert!(text.contains("--> pools/batch.yaml:1:1"), "called as the user calls it: {text}");
    let (text, _) = run(&["pools/general.yaml", "--against", "HEAD"]);
    assert!(is_silent(&text), "its file was not asked about: {text}");
    // It has moved, beside another one.
    write(folder.path(), "pools/general.yaml", &format!("{POOL}---\n{other}"));
    let (text, _) = run(&[".", "--against", "HEAD"]);
    assert!(is_silent(&text), "{text}");
    // What can not be read may be it.
    write(folder.path(), "pools/general.yaml", &format!("{POOL}---\n{other}  a: [\n"));
    let (text, _) = run(&[".", "--against", "HEAD"]);
    assert!(text.contains("CL0003 syntax") && is_silent(&text), "{text}");
    // The same under another name.
    write(folder.path(), "pools/general.yaml", POOL);
    write(folder.path(), "pools/batch.yaml", &other.replace("name: batch", "name: jobs"));
    let (text, code) = run(&[".", "--against", "HEAD"]);
    assert!(text.contains("warning[CL0622 pool-renamed]: NodePool `batch` has got another name"), "{text}");
    assert!(text.contains("--> pools/batch.yaml:3") && !text.contains("CL0621") && code == 1, "{text}");
    // What is meant is suppressed, and that is no finding where nothing is held against another revision.
    let meant = other.replace("{ name: batch }", "{ name: jobs } # cutlist:ignore CL0622 the nodes may go");
    write(folder.path(), "pools/batch.yaml", &meant);
    let (text, _) = run(&[".", "--against", "HEAD"]);
    assert!(is_silent(&text) && last_line(&text).ends_with("1 suppressed"), "{text}");
    let (text, _) = run(&["."]);
    assert!(!text.contains("CL0901"), "{text}");
    // One that makes other nodes is another pool.
    let elsewhere = other.replace("name: batch", "name: jobs").replace("name: default", "name: another");
    write(folder.path(), "pools/batch.yaml", &elsewhere);
    let (text, _) = run(&[".", "--against", "HEAD"]);
    assert!(text.contains("CL0621") && !text.contains("CL0622"), "{text}");
}

/// A hook names the files that changed.
#[test]
fn a_suppression_is_not_unused_where_the_pools_are_in_other_files() {
    let workload = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec:\n  replicas: 1 # cutlist:ignore CL0342 may be away\n  selector: { matchLabels: { app: web } }\n  template:\n    metadata: { labels: { app: web } }\n    spec: { containers: [{ name: web, image: web }] }\n";
    let folder = folder(&[("pool.yaml", POOL), ("class.yaml", CLASS), ("web.yaml", workload)]);
    let (text, code) = lint(folder.path(), &["web.yaml"]);
    assert!(!text.contains("CL0901") && code == 0, "{text}");
    let (text, _) = lint(folder.path(), &["."]);
    assert!(!text.contains("CL0342") && last_line(&text).ends_with("1 suppressed"), "{text}");
}

/// As kustomizations build them: what each cluster has is held against what it had.
#[test]
fn what_may_not_change_is_asked_of_what_is_built() {
    let overlay = |replicas: &str| {
        format!(
            "resources: [../base]\npatches:\n  - patch: |\n      apiVersion: karpenter.sh/v1\n      kind: NodePool\n      metadata: {{ name: general }}\n      spec: {{ {replicas} }}\n"
        )
    };
    let base = "resources: [pool.yaml, class.yaml]\n";
    let folder = folder(&[
        ("base/pool.yaml", POOL),
        ("base/class.yaml", CLASS),
        ("base/kustomization.yaml", base),
        ("one/kustomization.yaml", &overlay("weight: 1")),
        ("two/kustomization.yaml", &overlay("weight: null, replicas: 2")),
    ]);
    git(folder.path());
    let run = || lint(folder.path(), &[".", "--against", "HEAD"]).0;
    assert!(!run().contains("CL0308"), "{}", run());
    write(folder.path(), "two/kustomization.yaml", &overlay("weight: 2"));
    assert!(run().contains("CL0308"), "{}", run());
    write(folder.path(), "two/kustomization.yaml", &overlay("weight: null, replicas: 5"));
    assert!(!run().contains("CL0308"), "{}", run());
}

/// On cases full of mistakes: what is fixed stays YAML, comments stay, and a second time there is nothing to do.
#[test]
fn fixes_of_many_mistakes_come_to_rest() {
    for case in
        ["types", "one-document", "lab-of-2023", "merge-keys", "requirements", "kustomize-mistakes", "yaml", "exported"]
    {
        let target = tempfile::tempdir().unwrap();
        let input = super::folder().join(case).join("input");
        program::copy(&input, target.path());
        let broken = |text: &str| ["CL0003", "CL0004", "CL0009", "CL0010"].map(|code| text.matches(code).count());
        let comments = |folder: &Path| -> usize { texts(folder).iter().map(|text| text.matches('#').count()).sum() };
        let (before, _) = lint(target.path(), &["."]);
        let (after, _) = lint(target.path(), &[".", "--fix"]);
        assert!(after.contains("\nfixed: "), "{case}: {after}");
        assert_eq!(broken(&after), broken(&before), "{case}: {after}");
        assert_eq!(comments(target.path()), comments(&input), "{case}");
        let fixed = texts(target.path());
        let (again, _) = lint(target.path(), &[".", "--fix"]);
        assert!(!again.contains("\nfixed: ") && texts(target.path()) == fixed, "{case}: {again}");
    }
}

fn texts(folder: &Path) -> Vec<String> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let text = |path: &std::path::PathBuf| {
        if path.is_dir() { texts(path) } else { vec![std::fs::read_to_string(path).unwrap()] }
    };
    paths.iter().flat_map(text).collect()
}

/// In blocks, braces and lists; what somebody wrote stays as it is.
#[test]
fn what_a_cluster_sets_is_taken_out() {
    let target = tempfile::tempdir().unwrap();
    let case = super::folder().join("exported");
    program::copy(&case.join("input"), target.path());
    let (text, code) = lint(target.path(), &[".", "--fix"]);
    assert!(code == 0 && !text.contains("CL0112"), "{code}: {text}");
    let differs = |name: &&str| program::differs(&case.join("fixed").join(name), &read(target.path(), name));
    let differences: Vec<String> = ["more.yaml", "pool.yaml"].iter().filter_map(differs).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// What is a guess is left to people, in pools and classes, and what differs only in its look is written.
#[test]
fn fixes_are_no_guesses() {
    let target = tempfile::tempdir().unwrap();
    program::copy(&super::folder().join("guesses").join("input"), target.path());
    let before = std::fs::read_to_string(target.path().join("pools.yaml")).unwrap();
    lint(target.path(), &[".", "--fix"]);
    let after = std::fs::read_to_string(target.path().join("pools.yaml")).unwrap();
    let changed: Vec<&str> =
        before.lines().zip(after.lines()).filter(|(old, new)| old != new).map(|(_, new)| new.trim()).collect();
    let expected = [
        "- { key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r] }",
        "- { key: node.kubernetes.io/instance-type, operator: In, values: [c7g.xlarge, m6i.large] }",
    ];
    assert_eq!(changed, expected);
    // What a replacement wrote stands elsewhere: nothing is written there.
    let target = tempfile::tempdir().unwrap();
    program::copy(&super::folder().join("replacements").join("input"), target.path());
    let (text, _) = lint(target.path(), &[".", "--fix"]);
    assert!(text.contains("`weight`") && !text.contains("\nfixed: "), "{text}");
}
