//! Runs the program on a copy of a folder, outside every Git repository, so that its output depends on the files alone.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The moment every plan of the tests is made for.
pub const NOW: &str = "2026-11-20T09:00:00Z";

/// What a run of the program came to.
pub struct Ran {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

impl Ran {
    /// As a golden file holds it: what was printed, then what was complained about, then the exit code.
    pub fn transcript(&self) -> String {
        format!("{}{}exit {}\n", self.stdout, self.stderr, self.code)
    }
}

/// Runs `cutlist` in a folder, without an environment.
pub fn cutlist<'a>(folder: &Path, arguments: impl IntoIterator<Item = &'a str>) -> Ran {
    let output =
        Command::new(env!("CARGO_BIN_EXE_cutlist")).args(arguments).current_dir(folder).env_clear().output().unwrap();
    Ran {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

/// The folders in a folder, by name.
pub fn folders(parent: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

pub fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// Copies files and folders below `from` into `to`, over what is there.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Compares with a golden file, or writes it under `UPDATE=1`. Gives the complaint.
pub fn differs(golden: &Path, found: &str) -> Option<String> {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(golden, found).unwrap();
        return None;
    }
    let expected = std::fs::read_to_string(golden).unwrap_or_default();
    (expected != found).then(|| format!("{} expects\n{expected}\nbut there is\n{found}", golden.display()))
}
