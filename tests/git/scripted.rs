//! `ScriptedRepository`: real Git must agree with what was written.

use std::collections::BTreeMap;

use cutlist::adapters::git::{Changes, ScriptError, ScriptedRepository, read_folder};
use jiff::Timestamp;

use crate::fixture::{files, git};

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn create() -> ScriptedRepository {
    let files = [("a.yaml", "a"), ("pools/b.yaml", "b")];
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into();
    ScriptedRepository::create(&files, "Add the pools", time("2026-11-20T09:00:00Z")).unwrap()
}

fn changes() -> Changes {
    Changes::from([
        ("a.yaml".to_owned(), None),
        ("pools/b.yaml".to_owned(), Some(b"changed".to_vec())),
        ("c.json".to_owned(), Some(b"{}".to_vec())),
    ])
}

#[test]
fn the_same_script_gives_the_same_commits() {
    let ids = || {
        let repository = create();
        repository.commit(&changes(), "Allow Graviton", time("2026-11-20T10:00:00Z")).unwrap();
        git(repository.path(), &["rev-list", "main"])
    };
    // What the git program makes of the same files, message, author and date.
    let expected = "f7b2be05871e130cc2e00bbe0e53c06205cc1ed2";
    assert_eq!(ids(), ids());
    assert_eq!(ids().lines().last(), Some(expected));
}

#[test]
fn git_reads_what_was_written() {
    let repository = create();
    let commit = repository.commit(&changes(), "Allow Graviton", time("2026-11-20T10:00:00Z")).unwrap();
    git(repository.path(), &["fsck", "--strict"]);
    let log = git(repository.path(), &["log", "--format=%s|%an <%ae>|%ai|%ci"]);
    assert_eq!(
        log,
        "Allow Graviton|Cutlist <cutlist@localhost>|2026-11-20 10:00:00 +0000|2026-11-20 10:00:00 +0000\n\
         Add the pools|Cutlist <cutlist@localhost>|2026-11-20 09:00:00 +0000|2026-11-20 09:00:00 +0000"
    );
    let content = read_folder(repository.path()).unwrap();
    assert_eq!((&content.revision.id, content.revision.reference.as_str()), (&commit, "main"));
    assert_eq!(files(&content), [("c.json", "{}"), ("pools/b.yaml", "changed")]);
}

#[test]
fn refuses_what_git_could_not_hold() {
    let repository = create();
    let commit = |path: &str, content: Option<Vec<u8>>| {
        let changes = Changes::from([(path.to_owned(), content)]);
        repository.commit(&changes, "No", time("2026-11-20T10:00:00Z")).unwrap_err()
    };
    for path in ["", "/a", "a/", "../a", "a/./b", ".git/config", "a/.GIT/hooks", "a\0b"] {
        assert!(matches!(commit(path, Some(Vec::new())), ScriptError::Path(_)), "{path:?}");
    }
    assert!(matches!(commit("missing.yaml", None), ScriptError::NotThere(_)));
    assert_eq!(git(repository.path(), &["rev-list", "--count", "main"]), "1");
    let none = ScriptedRepository::create(&BTreeMap::new(), "Nothing", time("2026-11-20T10:00:00Z")).unwrap();
    assert_eq!(files(&read_folder(none.path()).unwrap()), []);
}
