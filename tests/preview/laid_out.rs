//! A case as a repository with two branches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::program;

/// The case and the clusters copied to where no repository is, and `repository` beside them.
pub fn laid_out(case: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let clusters = case.parent().unwrap().join("clusters");
    program::copy(&clusters, &folder.path().join("clusters"));
    if let Ok(arguments) = std::fs::read(case.join("arguments")) {
        std::fs::write(folder.path().join("arguments"), arguments).unwrap();
    }
    let repository = in_folder(&folder.path().join("repository"), &case.join("base"), &case.join("head"));
    if case.join("moved").is_dir() {
        repository.set_head("refs/heads/main").unwrap();
        become_of(&repository, &case.join("moved"));
        commit(&repository, "Go on", 1_763_700_000);
    }
    folder
}

/// `base` on main, `head` on the branch `change` of it.
pub fn in_folder(folder: &Path, base: &Path, head: &Path) -> git2::Repository {
    let repository = git2::Repository::init(folder).unwrap();
    repository.set_head("refs/heads/main").unwrap();
    become_of(&repository, base);
    commit(&repository, "Begin with these pools", 1_763_000_000);
    {
        let commit = repository.head().unwrap().peel_to_commit().unwrap();
        repository.branch("change", &commit, false).unwrap();
    }
    repository.set_head("refs/heads/change").unwrap();
    become_of(&repository, head);
    commit(&repository, "Change the pools", 1_763_600_000);
    repository
}

/// The work tree has these files and no others.
fn become_of(repository: &git2::Repository, files: &Path) {
    let work_tree = repository.workdir().unwrap();
    for entry in std::fs::read_dir(work_tree).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with(".git") {
            std::fs::remove_dir_all(&path).unwrap();
        } else if path.is_file() {
            std::fs::remove_file(&path).unwrap();
        }
    }
    program::copy(files, work_tree);
}

/// Commits everything, with dates and people that give the same hashes everywhere.
fn commit(repository: &git2::Repository, message: &str, seconds: i64) {
    let mut index = repository.index().unwrap();
    index.clear().unwrap();
    index.add_all(["."], git2::IndexAddOption::DEFAULT, None).unwrap();
    index.write().unwrap();
    let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
    let who = git2::Signature::new("Ada", "ada@example.com", &git2::Time::new(seconds, 0)).unwrap();
    let parent = repository.head().ok().map(|head| head.peel_to_commit().unwrap());
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    repository.commit(Some("HEAD"), &who, &who, message, &tree, &parents).unwrap();
}

/// Paths and contents of all files.
pub fn everything_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(everything_below(&path));
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    files
}
