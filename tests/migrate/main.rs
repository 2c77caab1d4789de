//! Each folder of `tests/migrate` holds definitions of Karpenter before version 1 in `input/`, what `cutlist migrate input` prints
//! (`expected.txt`, exit code in the last line), and the files that change as `--write` leaves them (`expected/`).
//! `UPDATE=1 cargo test --test migrate` rewrites what is expected; read the difference before it is committed.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the cases are files, and the program is run on them")]

#[expect(dead_code, reason = "shared with tests that need more of it")]
#[path = "../program/mod.rs"]
mod program;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cutlist::api::source::SourceFile;
use cutlist::definitions::{self, GivenVariables, Severity, migration};
use program::{Ran, cutlist};

fn cases() -> Vec<PathBuf> {
    let cases = program::folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/migrate"));
    assert!(cases.len() > 25, "the cases are missing");
    cases
}

/// A copy of the case outside of every repository.
fn copied(case: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    program::copy(&case.join("input"), &folder.path().join("input"));
    folder
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn migrate(folder: &Path, arguments: &[&str]) -> Ran {
    cutlist(folder, std::iter::once("migrate").chain(arguments.iter().copied()))
}

#[test]
fn cases_give_what_is_expected() {
    let mut differences = Vec::new();
    for case in cases() {
        let folder = copied(&case);
        let input = folder.path().join("input");
        let before = files(&input);
        let shown = migrate(folder.path(), &["input"]);
        differences.extend(program::differs(&case.join("expected.txt"), &shown.transcript()));
        assert_eq!(files(&input), before, "{}: nothing is written without --write", case.display());
        let written = migrate(folder.path(), &["input", "--write"]);
        assert_eq!((written.stdout.as_str(), written.code), ("", shown.code), "{}", case.display());
        let changed: BTreeMap<PathBuf, Vec<u8>> =
            files(&input).into_iter().filter(|(path, bytes)| before.get(path) != Some(bytes)).collect();
        let expected = case.join("expected");
        if std::env::var_os("UPDATE").is_some() {
            let _absent = std::fs::remove_dir_all(&expected);
            for (path, bytes) in &changed {
                std::fs::create_dir_all(expected.join(path).parent().unwrap()).unwrap();
                std::fs::write(expected.join(path), bytes).unwrap();
            }
        }
        if files(&expected) != changed {
            differences.push(format!("{}: other files than those in expected/", case.display()));
        }
    }
    assert!(differences.is_empty(), "{}\nUPDATE=1 rewrites the files", differences.join("\n"));
}

/// What is migrated is of version 1, and lint finds no error in it unless something is left to do by hand.
#[test]
fn what_comes_out_is_clean_and_stays_as_it_is() {
    for case in cases() {
        let folder = copied(&case);
        let written = migrate(folder.path(), &["input", "--write"]);
        let once = files(&folder.path().join("input"));
        let again = migrate(folder.path(), &["input", "--write"]);
        assert_eq!(files(&folder.path().join("input")), once, "{}: {}", case.display(), again.stderr);
        assert!(
            !again.stderr.contains(" migrated") || again.stderr.contains("0 definitions in 0 files"),
            "{}",
            again.stderr
        );
        let lint = cutlist(folder.path(), ["lint", "input", "--fail-on", "error"]);
        assert!(written.code == 1 || lint.code == 0, "{}: {}{}", case.display(), lint.stdout, lint.stderr);
        assert!(written.code == 1 || again.code == 0, "{}: {}", case.display(), again.stderr);
    }
}

/// Lines that are no field that moves or changes are there still, in their order.
#[test]
fn comments_are_kept() {
    let comments = |files: &BTreeMap<PathBuf, Vec<u8>>| {
        let texts = files.values().filter_map(|bytes| str::from_utf8(bytes).ok());
        let words =
            texts.flat_map(str::lines).filter_map(|line| line.split_once("# kept ")).map(|(_, word)| word.trim());
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        words.sort();
        words
    };
    let mut count = 0;
    for case in cases() {
        let folder = copied(&case);
        let input = folder.path().join("input");
        let before = comments(&files(&input));
        migrate(folder.path(), &["input", "--write"]);
        assert_eq!(comments(&files(&input)), before, "{}", case.display());
        count += before.len();
    }
    assert!(count > 20, "no case has comments");
}

/// The same of texts that nobody meant to write: each case with lines left out, and cut off anywhere.
#[test]
fn whatever_is_read_is_whole_or_named() {
    let mut tried = 0;
    for case in cases() {
        let input = files(&case.join("input"));
        for (path, bytes) in &input {
            let Ok(text) = str::from_utf8(bytes) else { continue };
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let without = |line: usize| {
                let kept = lines.iter().enumerate().filter(|(index, _)| *index != line).map(|(_, line)| *line);
                kept.collect::<String>()
            };
            let step = lines.len() / 4 + 1;
            let left_out = (0..lines.len()).step_by(step).map(without);
            let cut_off =
                (1..4).map(|part| text.get(..text.floor_char_boundary(text.len() * part / 4)).unwrap().to_owned());
            for text in left_out.chain(cut_off) {
                let others = input.iter().filter(|(other, _)| *other != path);
                let mut sources: Vec<SourceFile> =
                    others.map(|(path, bytes)| SourceFile::new(path.to_string_lossy(), bytes.clone())).collect();
                sources.push(SourceFile::new(path.to_string_lossy(), text.clone()));
                is_whole_or_named(&sources, &text);
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

fn is_whole_or_named(sources: &[SourceFile], text: &str) {
    let migration = migration::migrate(sources);
    let mut after = sources.to_vec();
    for changed in &migration.changed {
        let source = after.iter_mut().find(|it| it.path == changed.path).unwrap();
        assert_eq!(source.content, changed.before.as_bytes());
        source.content = changed.after.clone().into_bytes();
    }
    let again = migration::migrate(&after);
    assert!(again.changed.is_empty(), "{text}\n{:?}", again.changed);
    if migration.by_hand.is_empty() && !migration.changed.is_empty() {
        let is_changed = |path: &str| migration.changed.iter().any(|it| it.path == path);
        let found = definitions::lint(&after, &GivenVariables::default()).diagnostics;
        let errors = found.iter().filter(|it| it.severity == Severity::Error && is_changed(&it.file));
        assert_eq!(errors.map(|it| &it.message).collect::<Vec<_>>(), Vec::<&String>::new(), "{text}");
    }
}

fn of_stdin(text: &[u8]) -> (Vec<u8>, String, i32) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cutlist"))
        .args(["migrate", "-"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.stdout, String::from_utf8(output.stderr).unwrap(), output.status.code().unwrap())
}

#[test]
fn standard_input_goes_to_standard_output() {
    let mut tried = 0;
    for case in cases() {
        let input = files(&case.join("input"));
        let expected = files(&case.join("expected"));
        let [(path, bytes)] = input.iter().collect::<Vec<_>>()[..] else { continue };
        // A file that is another tool's by its name is not when it is a stream.
        if path.extension().is_none_or(|it| it != "yaml") {
            continue;
        }
        let (stdout, stderr, _) = of_stdin(bytes);
        let expected = String::from_utf8_lossy(expected.get(path).unwrap_or(bytes));
        assert_eq!(String::from_utf8_lossy(&stdout), expected, "{}: {stderr}", case.display());
        tried += 1;
    }
    assert!(tried > 10, "no case is one file");
    for (text, code) in [(&b"\xff\xfe"[..], 0), (b"", 0), (b"apiVersion: karpenter.sh/v1beta1\nx: \xff\n", 1)] {
        let (stdout, stderr, found) = of_stdin(text);
        assert_eq!((stdout.as_slice(), found), (text, code), "{stderr}");
    }
    let deep = format!("apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nspec: {}", "[".repeat(10_000));
    let (stdout, stderr, code) = of_stdin(deep.as_bytes());
    assert!(stdout == deep.as_bytes() && code == 1 && stderr.contains("the file is left as it is"), "{stderr}");
}

#[test]
fn usage_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["-", "--write"][..], &["-", "."], &["absent"], &[], &[".", "--nonsense"]] {
        let ran = migrate(folder.path(), arguments);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", 2), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn a_file_that_is_given_twice_is_changed_once() {
    let case = cases().into_iter().find(|case| case.ends_with("consolidation")).unwrap();
    let folder = copied(&case);
    let once = migrate(folder.path(), &["input/pool.yaml"]);
    let absolute = folder.path().join("input/pool.yaml");
    let twice = migrate(folder.path(), &["input/pool.yaml", "./input/../input/pool.yaml", absolute.to_str().unwrap()]);
    assert_eq!(twice.transcript(), once.transcript());
}

/// As lint has it: what a link leads to is read by its own path, and a link stays one.
#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let case = cases().into_iter().find(|case| case.ends_with("consolidation")).unwrap();
    let folder = copied(&case);
    let link = folder.path().join("link.yaml");
    std::os::unix::fs::symlink("input/pool.yaml", &link).unwrap();
    let ran = migrate(folder.path(), &["--write", "."]);
    assert!(ran.stderr.contains(" in 1 file migrated"), "{}", ran.stderr);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let expected = std::fs::read(case.join("expected/pool.yaml")).unwrap();
    assert_eq!(std::fs::read(&link).unwrap(), expected);
    // Named itself.
    let folder = copied(&case);
    let link = folder.path().join("link.yaml");
    std::os::unix::fs::symlink("input/pool.yaml", &link).unwrap();
    let ran = migrate(folder.path(), &["--write", "link.yaml"]);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "{}", ran.stderr);
    assert_eq!(std::fs::read(folder.path().join("input/pool.yaml")).unwrap(), expected, "{}", ran.stderr);
}

/// A file that can not be written is a failure that names it.
#[cfg(unix)]
#[test]
fn permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let case = cases().into_iter().find(|case| case.ends_with("consolidation")).unwrap();
    let folder = copied(&case);
    let pool = folder.path().join("input/pool.yaml");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&pool, std::fs::Permissions::from_mode(0o640)).unwrap();
    migrate(folder.path(), &["--write", "input"]);
    assert_eq!(mode(&pool), 0o640);
    let folder = copied(&case);
    let pool = folder.path().join("input/pool.yaml");
    std::fs::set_permissions(&pool, std::fs::Permissions::from_mode(0o444)).unwrap();
    let ran = migrate(folder.path(), &["--write", "input"]);
    assert!(ran.code == 2 && ran.stderr.contains("pool.yaml can not be written"), "{}", ran.stderr);
}
