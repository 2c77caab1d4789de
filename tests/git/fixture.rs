//! Repositories made by the `git` program, in folders that go with the test. Nothing of the machine's Git configuration
//! is used, so that a home directory without an identity is enough.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use cutlist::core::plan::NoteCode;
use cutlist::ports::RevisionContent;
use tempfile::TempDir;

/// A clone with a work tree and one branch, `main`.
pub struct Fixture {
    folder: TempDir,
}

impl Fixture {
    /// No commit yet.
    pub fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(fixture.path()).unwrap();
        fixture.git(&["init", "--quiet", "--initial-branch=main"]);
        fixture
    }

    /// The work tree.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("definitions")
    }

    /// A place beside the work tree.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, path: &str, content: &str) {
        let file = self.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    /// Writes the files and commits everything; gives the hash.
    pub fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            self.write(path, content);
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs git in the work tree; gives what it printed.
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.path(), arguments)
    }

    /// A bare repository with everything that was committed; `git push` from here goes there.
    pub fn bare(&self, name: &str) -> PathBuf {
        let bare = self.beside(name);
        self.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
        self.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
        bare
    }
}

pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = clean(&mut Command::new("git"), folder).args(arguments).current_dir(folder).output();
    let output = output.expect("these tests need the git program");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// When the next commit is made: the time of a later one is never that of an earlier one.
static COMMIT_SECONDS: AtomicU64 = AtomicU64::new(1_790_000_000);

/// Takes the machine's and the caller's Git configuration away from a command.
pub fn clean<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "A Carpenter")
        .env("GIT_AUTHOR_EMAIL", "carpenter@example.com")
        .env("GIT_COMMITTER_NAME", "A Carpenter")
        .env("GIT_COMMITTER_EMAIL", "carpenter@example.com")
        .env("GIT_COMMITTER_DATE", format!("{} +0000", COMMIT_SECONDS.fetch_add(1, Ordering::Relaxed)))
        .stdin(Stdio::null())
}

/// Paths with contents, for comparison.
pub fn files(content: &RevisionContent) -> Vec<(&str, &str)> {
    content
        .files
        .iter()
        .filter(|file| file.has_content())
        .map(|file| (file.path.as_str(), str::from_utf8(&file.content).unwrap()))
        .collect()
}

pub fn notes(content: &RevisionContent) -> Vec<(NoteCode, &str)> {
    content.notes.iter().map(|note| (note.code, note.text.as_str())).collect()
}
