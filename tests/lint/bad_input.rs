//! Files that are none, that can not be read, or that are far too large: they are named, in time, and hide nothing of the others.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// One finding that is always to be found.
const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: general }
spec:
  wieght: 10
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements: []
";
const FOUND: &str = "error[CL0201 unknown-field]";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pool.yaml"), POOL).unwrap();
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    command_of(Path::new(env!("CARGO_BIN_EXE_cutlist")), folder, arguments)
}

fn command_of(program: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("lint").args(arguments).current_dir(folder).env_clear();
    command
}

/// What is said, and the exit code.
fn ran(mut command: Command, stdin: &[u8]) -> (String, i32) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut writing = child.stdin.take().unwrap();
    let bytes = stdin.to_vec();
    // Who has read enough does not read the rest.
    let writer = std::thread::spawn(move || writing.write_all(&bytes));
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    (String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap(), status.code().unwrap())
}

fn lint(folder: &Path, arguments: &[&str]) -> (String, i32) {
    ran(command(folder, arguments), b"")
}

#[test]
fn pipes_and_folders_called_as_files_hide_nothing() {
    let folder = folder();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe.yaml")).status().unwrap();
    assert!(made.success());
    std::fs::create_dir(folder.path().join("folder.yaml")).unwrap();
    std::fs::write(folder.path().join("folder.yaml/more.yaml"), POOL.replace("general", "more")).unwrap();
    let (text, code) = lint(folder.path(), &["."]);
    assert!(code == 1 && text.matches(FOUND).count() == 2, "{code}: {text}");
    assert!(text.contains("--> folder.yaml/more.yaml:5:3"), "{text}");
    let (text, code) = lint(folder.path(), &["folder.yaml"]);
    assert!(code == 1 && text.contains("--> folder.yaml/more.yaml:5:3"), "{code}: {text}");
    // Nobody writes into it, so nobody waits for it either.
    let (text, code) = lint(folder.path(), &["pipe.yaml"]);
    assert!(code == 2 && text.contains("pipe.yaml is neither a folder nor"), "{code}: {text}");
}

#[test]
fn a_file_that_can_not_be_read_is_a_finding_beside_the_others() {
    let folder = folder();
    let closed = folder.path().join("closed.yaml");
    std::fs::write(&closed, POOL.replace("general", "closed")).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // The user root reads everything, so that somebody else is asked, who may not get at the program where it stands.
    let is_root = closed.metadata().unwrap().uid() == 0;
    let program = folder.path().join("cutlist");
    let built = env!("CARGO_BIN_EXE_cutlist");
    std::fs::hard_link(built, &program).or_else(|_| std::fs::copy(built, &program).map(drop)).unwrap();
    let as_somebody = |arguments: &[&str]| {
        let mut command = command_of(&program, folder.path(), arguments);
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        ran(command, b"")
    };
    for arguments in [&["."][..], &["closed.yaml", "pool.yaml"]] {
        let (text, code) = as_somebody(arguments);
        assert!(code == 1 && text.contains(FOUND), "{arguments:?}: {code}: {text}");
        assert!(text.contains("error[CL0042 unreadable-file]: the file can not be read: Permission denied"), "{text}");
        assert!(text.contains("--> closed.yaml:1:1") && text.contains("--> pool.yaml:5:3"), "{text}");
    }
    let (text, _) = as_somebody(&[".", "-o", "sarif"]);
    assert!(text.contains("CL0042"), "{text}");
}

#[test]
fn what_is_far_too_large_is_named() {
    const BYTES: usize = 100 << 20;
    let folder = folder();
    // It takes no room on the disk.
    std::fs::File::create(folder.path().join("large.yaml")).unwrap().set_len(BYTES as u64).unwrap();
    let (text, code) = lint(folder.path(), &["."]);
    assert!(code == 1 && text.contains(FOUND) && text.contains("larger than the 8 MiB"), "{code}: {text}");
    let (text, code) = ran(command(folder.path(), &["-"]), &vec![b' '; 10 << 20]);
    assert!(code == 1 && text.contains("CL0002 file-too-large"), "{code}: {text}");
}

#[test]
fn brackets_in_brackets_come_to_an_end() {
    let folder = folder();
    for (name, sign) in [("brackets.yaml", "["), ("braces.yaml", "{"), ("brackets.json", "["), ("dashes.yaml", "- ")] {
        std::fs::write(folder.path().join(name), format!("a: {}", sign.repeat(10_000))).unwrap();
    }
    let (text, code) = lint(folder.path(), &["."]);
    assert!(code == 1 && text.contains(FOUND), "{code}: {text}");
    let (text, code) = ran(command(folder.path(), &["-"]), "[".repeat(10_000).as_bytes());
    assert!(code == 1 || code == 0, "{code}: {text}");
}
