//! Snapshots that are kept in a folder or on a branch, and previews that read them there.

use std::path::Path;

use crate::laid_out::{everything_below, laid_out};
use crate::program::{NOW, Ran, cutlist};
use crate::{MERGE, root};

fn keep(folder: &Path, further: &[&str]) -> Ran {
    let arguments = ["snapshot", "--from", "clusters/blue.yaml", "--name", "blue"];
    cutlist(folder, arguments.into_iter().chain(further.iter().copied()))
}

fn preview(folder: &Path, cluster: &str) -> Ran {
    let further = ["--now", NOW, "--cluster", cluster, "--without-simulation", "-o", "json"];
    cutlist(folder, MERGE.into_iter().chain(further))
}

/// What was decided, which is the same wherever the snapshot was read.
fn decided(ran: &Ran) -> serde_json::Value {
    let document: serde_json::Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.transcript()));
    assert!(document["targets"][0]["snapshot"]["digest"].as_str().unwrap().starts_with("sha256:"), "{document}");
    document["targets"][0]["plan"]["digest"].clone()
}

#[test]
fn the_newest_in_a_folder_is_read() {
    let folder = laid_out(&root().join("a-change"));
    for _ in 0..3 {
        let ran = keep(folder.path(), &["--to", "kept", "--keep", "2"]);
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        // The names are of seconds.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
    }
    assert_eq!(everything_below(&folder.path().join("kept/blue")).len(), 2);
    let expected = decided(&preview(folder.path(), "blue=clusters/blue.yaml"));
    assert_eq!(decided(&preview(folder.path(), "blue=kept")), expected);
    assert_eq!(decided(&preview(folder.path(), "blue=kept/blue")), expected);
    let none = preview(folder.path(), "green=clusters");
    assert_eq!(none.code, 0, "any snapshot of a folder without the cluster's own: {}", none.transcript());
}

/// Whoever reads it on a pull request does not know the machine that the job ran on.
#[test]
fn files_are_called_as_they_were_typed_and_never_by_whole_paths() {
    let folder = laid_out(&root().join("a-change"));
    std::fs::create_dir(folder.path().join("kept")).unwrap();
    let whole = |name: &str| folder.path().join(name).display().to_string();
    let [file, kept, blue] =
        ["clusters/none.yaml", "kept", "clusters/blue.yaml"].map(|name| format!("blue={}", whole(name)));
    for (cluster, catalog, said) in [
        ("blue=clusters/none.yaml", None, "snapshot clusters/none.yaml"),
        (file.as_str(), None, "snapshot none.yaml"),
        (kept.as_str(), None, "there is none in kept"),
        (blue.as_str(), Some(whole("prices.json")), "catalog prices.json"),
    ] {
        let catalog = catalog.iter().flat_map(|path| ["--catalog", path.as_str()]);
        let further =
            ["--now", NOW, "--cluster", cluster, "--without-simulation", "-o", "json"].into_iter().chain(catalog);
        let ran = cutlist(folder.path(), MERGE.into_iter().chain(further));
        let is_told = ran.stdout.contains(said) && !ran.stdout.contains(&whole(""));
        assert!(ran.code == 1 && is_told, "{}", ran.transcript());
    }
}

#[test]
fn a_branch_holds_the_newest_and_no_history() {
    let folder = laid_out(&root().join("a-change"));
    let server = folder.path().join("server.git");
    let bare = git2::Repository::init_bare(&server).unwrap();
    let to = ["--to", "git:snapshots", "--keep", "2", "--repository", server.to_str().unwrap()];
    for _ in 0..3 {
        let ran = keep(folder.path(), &to);
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        std::thread::sleep(std::time::Duration::from_millis(1_100));
    }
    let commit = bare.find_reference("refs/heads/snapshots").unwrap().peel_to_commit().unwrap();
    assert_eq!(commit.parent_count(), 0);
    let blue = commit.tree().unwrap().get_name("blue").unwrap().id();
    assert_eq!(bare.find_tree(blue).unwrap().len(), 2);
    // The clone knows the branch by the name of its remote.
    let clone = git2::Repository::open(folder.path().join("repository")).unwrap();
    clone.remote("origin", server.to_str().unwrap()).unwrap().fetch(&["snapshots"], None, None).unwrap();
    let expected = decided(&preview(folder.path(), "blue=clusters/blue.yaml"));
    for cluster in ["blue=git:snapshots", "blue=git:origin/snapshots"] {
        assert_eq!(decided(&preview(folder.path(), cluster)), expected);
    }
    let unknown = preview(folder.path(), "blue=git:snapshot");
    assert!(unknown.code == 1 && unknown.stdout.contains("has no revision `snapshot`"), "{}", unknown.transcript());
}

#[test]
fn what_can_not_be_kept_says_why() {
    let folder = laid_out(&root().join("a-change"));
    for (further, code, says) in [
        (vec!["--to", "git:snapshots"], 2, "--repository URL"),
        (vec!["--to", "git:snapshots", "--repository", "nowhere.git"], 1, "nowhere.git"),
        (vec!["--to", "clusters/blue.yaml"], 1, "can not be made"),
    ] {
        let ran = keep(folder.path(), &further);
        assert!(ran.code == code && ran.stderr.contains(says), "{further:?}: {}", ran.transcript());
    }
    let outside =
        cutlist(folder.path(), ["snapshot", "--from", "clusters/blue.yaml", "--to", "kept", "--name", "../blue"]);
    assert!(outside.code == 2 && !folder.path().join("blue").exists(), "{}", outside.transcript());
}
