//! `WatchedFolder`: real files and a real clock. A change must be seen within a second; the limits of these tests are
//! wider, for machines that are busy.

use std::path::Path;
use std::time::Duration;

use cutlist::adapters::git::{ReadError, WatchedFolder};
use cutlist::core::plan::NoteCode;
use cutlist::ports::{PortErrorKind, Repository, RevisionContent};
use tokio::time::{Instant, timeout};

use crate::fixture::{Fixture, files, notes};

const PATIENCE: Duration = Duration::from_secs(20);

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), "1").unwrap();
    folder
}

async fn first(path: &Path) -> WatchedFolder {
    let mut watched = WatchedFolder::open(path).unwrap();
    assert!(watched.poll().await.unwrap().is_some());
    watched
}

/// Waits until a poll gives something new.
async fn next(watched: &mut WatchedFolder) -> RevisionContent {
    let found = timeout(PATIENCE, async {
        loop {
            watched.changed().await;
            // While a folder is being replaced it may be gone.
            if let Ok(Some(content)) = watched.poll().await {
                return content;
            }
        }
    });
    found.await.expect("the change is seen")
}

#[tokio::test]
async fn sees_a_file_that_is_written_renamed_over_added_and_removed() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let mut watched = first(folder.path()).await;
    assert_eq!(watched.poll().await.unwrap(), None);

    std::fs::write(path("a.yaml"), "2").unwrap();
    let started = Instant::now();
    let content = next(&mut watched).await;
    assert_eq!(files(&content), [("a.yaml", "2")]);
    assert_eq!(content.revision.reference, folder.path().display().to_string());
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());

    // As editors save: beside it, then renamed over it.
    for text in ["3", "4"] {
        std::fs::write(path(".a.yaml.tmp"), text).unwrap();
        std::fs::rename(path(".a.yaml.tmp"), path("a.yaml")).unwrap();
        assert_eq!(files(&next(&mut watched).await), [("a.yaml", text)]);
    }
    // With a backup: the old file is renamed away first.
    std::fs::rename(path("a.yaml"), path("a.yaml~")).unwrap();
    std::fs::write(path("a.yaml"), "5").unwrap();
    assert_eq!(files(&next(&mut watched).await), [("a.yaml", "5")]);

    std::fs::create_dir_all(path("new/folder")).unwrap();
    std::fs::write(path("new/folder/b.yaml"), "b").unwrap();
    assert_eq!(files(&next(&mut watched).await), [("a.yaml", "5"), ("new/folder/b.yaml", "b")]);
    std::fs::write(path("new/folder/b.yaml"), "c").unwrap();
    assert_eq!(files(&next(&mut watched).await), [("a.yaml", "5"), ("new/folder/b.yaml", "c")]);

    std::fs::remove_dir_all(path("new")).unwrap();
    assert_eq!(files(&next(&mut watched).await), [("a.yaml", "5")]);
}

#[tokio::test]
async fn what_changes_no_definition_is_no_revision() {
    let folder = folder();
    let mut watched = first(folder.path()).await;
    std::fs::write(folder.path().join("README.md"), "text").unwrap();
    std::fs::write(folder.path().join("a.yaml"), "1").unwrap();
    timeout(PATIENCE, watched.changed()).await.expect("the write is seen");
    assert_eq!(watched.poll().await.unwrap(), None);
    // Reading is not taken for a change, or it would go on for ever.
    assert!(timeout(Duration::from_secs(2), watched.changed()).await.is_err());
}

#[tokio::test]
async fn a_change_is_not_lost_when_waiting_is_given_up() {
    let folder = folder();
    let mut watched = first(folder.path()).await;
    std::fs::write(folder.path().join("a.yaml"), "2").unwrap();
    // Long enough to see the event, too short for the burst to end.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(timeout(Duration::from_millis(50), watched.changed()).await.is_err());
    timeout(Duration::from_secs(5), watched.changed()).await.expect("the change is still there");
    assert!(watched.poll().await.unwrap().is_some());
}

#[tokio::test]
async fn a_folder_that_never_rests_is_read() {
    let folder = folder();
    let mut watched = first(folder.path()).await;
    let path = folder.path().join("a.yaml");
    let writer = tokio::spawn(async move {
        for count in 0.. {
            std::fs::write(&path, format!("{count}")).unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    timeout(Duration::from_secs(5), watched.changed()).await.expect("a burst without end is cut");
    writer.abort();
}

#[tokio::test]
async fn a_folder_may_go_and_come_back() {
    let outer = tempfile::tempdir().unwrap();
    let path = outer.path().join("definitions");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("a.yaml"), "1").unwrap();
    let mut watched = first(&path).await;

    std::fs::remove_dir_all(&path).unwrap();
    let error = timeout(PATIENCE, async {
        loop {
            watched.changed().await;
            if let Err(error) = watched.poll().await {
                return error;
            }
        }
    });
    let error = error.await.expect("the loss is seen");
    assert_eq!((error.kind, error.to_string()), (PortErrorKind::NotFound, format!("read {}", path.display())));

    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("a.yaml"), "2").unwrap();
    assert_eq!(files(&next(&mut watched).await), [("a.yaml", "2")]);
    std::fs::write(path.join("a.yaml"), "3").unwrap();
    assert_eq!(files(&next(&mut watched).await), [("a.yaml", "3")], "the new folder is watched");

    // Deleted and made again before anybody looks; the new one may well get the old one's number.
    for text in ["3a", "3b", "3c"] {
        std::fs::remove_dir_all(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("a.yaml"), text).unwrap();
        assert_eq!(files(&next(&mut watched).await), [("a.yaml", text)]);
    }

    // Replaced by another one in a moment.
    let other = outer.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("a.yaml"), "4").unwrap();
    std::fs::rename(&path, outer.path().join("old")).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(files(&next(&mut watched).await), [("a.yaml", "4")]);

    assert!(matches!(WatchedFolder::open(&outer.path().join("missing")), Err(ReadError::PathNotThere(_))));
}

#[tokio::test]
async fn a_clone_gives_its_commits_and_what_is_not_committed() {
    let fixture = Fixture::new();
    fixture.commit("One", &[("pools/a.yaml", "1")]);
    // Of the sub folder only: `.git` is not below what is watched.
    let mut watched = first(&fixture.path().join("pools")).await;

    fixture.write("pools/a.yaml", "2");
    let edited = next(&mut watched).await;
    assert!(edited.revision.id.contains("-dirty-"), "{}", edited.revision.id);
    assert_eq!(notes(&edited)[0].0, NoteCode::UncommittedChanges);

    let second = fixture.commit("Two", &[]);
    let committed = next(&mut watched).await;
    assert_eq!((committed.revision.id.as_str(), committed.title.as_str()), (second.as_str(), "Two"));
    assert!(!committed.rewritten);

    fixture.git(&["commit", "--quiet", "--amend", "--message", "Two, again"]);
    let amended = next(&mut watched).await;
    assert_eq!((amended.title.as_str(), amended.rewritten), ("Two, again", true));
}
