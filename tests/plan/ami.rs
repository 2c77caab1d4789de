//! `cutlist ami`: what is locked, what is refused, and what is committed.

use std::path::Path;

use crate::program::{self, NOW, Ran, cutlist};

/// A clone with the definitions of a case, and its cluster beside it.
fn clone_of(case: &str) -> (tempfile::TempDir, git2::Repository) {
    let folder = tempfile::tempdir().unwrap();
    program::copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan").join(case), folder.path());
    let repository = git2::Repository::init(folder.path().join("definitions")).unwrap();
    repository.set_head("refs/heads/main").unwrap();
    let mut config = repository.config().unwrap();
    config.set_str("user.name", "Grace").unwrap();
    config.set_str("user.email", "grace@example.com").unwrap();
    super::commit(&repository, "Begin with these pools", 1_763_000_000);
    (folder, repository)
}

fn ami(folder: &Path, action: &str, further: &[&str]) -> Ran {
    let mut arguments = vec!["ami", action, "definitions", "--snapshot", "cluster.yaml", "--now", NOW];
    arguments.extend(further);
    cutlist(folder, arguments)
}

fn lock_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("definitions/cutlist.lock")).unwrap()
}

const REPLACES: &str = "default image amd64: ami-0a0a0a0a0a0a0a0a0 -> ami-0c0c0c0c0c0c0c0c0 \
                        (amazon-eks-node-al2023-x86_64-standard-1.34-v20251118), replaces 1 of 2 nodes: default 1";

#[test]
fn a_lock_holds_what_the_classes_select_and_is_written_once() {
    let (folder, _) = clone_of("image-locked");
    let before = lock_of(folder.path());
    let dry = ami(folder.path(), "lock", &["--dry-run"]);
    assert_eq!((dry.code, lock_of(folder.path())), (0, before), "{}", dry.transcript());
    let ran = ami(folder.path(), "lock", &[]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert!(ran.stdout.starts_with("1 image of 1 EC2NodeClass\n") && ran.stdout.contains(REPLACES), "{}", ran.stdout);
    let written = lock_of(folder.path());
    assert!(written.contains("    - id: ami-0c0c0c0c0c0c0c0c0\n"), "{written}");
    assert!(written.contains("    - alias: al2023@latest\n"), "{written}");
    let again = ami(folder.path(), "lock", &[]);
    assert_eq!(again.stdout.lines().next(), Some("1 image of 1 EC2NodeClass, as they are locked already"));
    assert!(again.stderr.is_empty(), "{}", again.stderr);
    // What was written is read.
    let plan = cutlist(folder.path(), ["plan", "definitions", "--snapshot", "cluster.yaml", "--now", NOW]);
    assert!(plan.stdout.contains("AMIDrift: cutlist.lock has ami-0c0c0c0c0c0c0c0c0"), "{}", plan.stdout);
    assert_eq!(cutlist(folder.path(), ["lint", "definitions"]).code, 0);
}

#[test]
fn what_is_not_known_is_not_locked() {
    let (folder, _) = clone_of("image-locked");
    let before = lock_of(folder.path());
    let ran = cutlist(folder.path(), ["ami", "lock", "definitions"]);
    assert!(ran.code == 2 && ran.stderr.contains("nobody says which images there are"), "{}", ran.transcript());
    let ran = ami(folder.path(), "lock", &["--class", "other"]);
    assert!(ran.code == 1 && ran.stderr.contains("there is no EC2NodeClass other"), "{}", ran.transcript());
    let cluster = folder.path().join("cluster.yaml");
    let text = std::fs::read_to_string(&cluster).unwrap();
    std::fs::write(&cluster, text.replace("al2023@latest", "al2023@v20251001")).unwrap();
    let ran = ami(folder.path(), "lock", &[]);
    let why = "EC2NodeClass default has other amiSelectorTerms in the cluster than in the definitions";
    assert!(ran.code == 1 && ran.stderr.contains(why), "{}", ran.transcript());
    let denied =
        "  - type: AMIsReady\n    status: 'False'\n    reason: AMINotFound\n    message: ssm:GetParameters denied\n";
    let text = text.replace(
        "  conditions:\n  - type: Ready\n    status: 'True'\n    reason: Ready\n    message: ''\n    lastTransitionTime: '2026-11-20T09:00:00Z'\n",
        &format!("  conditions:\n{denied}    lastTransitionTime: '2026-11-20T09:00:00Z'\n"),
    );
    std::fs::write(&cluster, text).unwrap();
    let ran = ami(folder.path(), "lock", &[]);
    assert!(ran.code == 1 && ran.stderr.contains("ssm:GetParameters denied"), "{}", ran.transcript());
    // Some are found and some are not: a snapshot that is written to be shown says so, too, although its messages are empty.
    let text = std::fs::read_to_string(&cluster).unwrap();
    let partly =
        text.replace("status: 'False'\n    reason: AMINotFound", "status: 'True'\n    reason: SomeAMIsUnknown");
    std::fs::write(&cluster, partly).unwrap();
    let written = cutlist(folder.path(), ["snapshot", "--from", "cluster.yaml"]);
    for text in [std::fs::read_to_string(&cluster).unwrap(), written.stdout] {
        std::fs::write(&cluster, text).unwrap();
        let ran = ami(folder.path(), "lock", &[]);
        let why = "AMIsReady is True (SomeAMIsUnknown)";
        assert!(ran.code == 1 && ran.stderr.contains(why), "{}", ran.transcript());
    }
    assert_eq!(lock_of(folder.path()), before, "nothing was written");
}

/// A lock that a merge left broken can be written anew.
#[test]
fn a_broken_lock_is_refused_by_plans_and_mended_by_lock() {
    let (folder, _) = clone_of("image-locked");
    std::fs::write(folder.path().join("definitions/cutlist.lock"), "<<<<<<< ours\n- a\n=======\n").unwrap();
    let plan = ["plan", "definitions", "--snapshot", "cluster.yaml", "--now", NOW];
    assert_eq!(cutlist(folder.path(), plan).code, 1);
    assert_eq!(ami(folder.path(), "lock", &[]).code, 0);
    assert_eq!(cutlist(folder.path(), plan).code, 0);
}

#[test]
fn a_bump_commits_the_lock_alone() {
    let (folder, repository) = clone_of("image-locked");
    let before = repository.head().unwrap().peel_to_commit().unwrap();
    // Other work, staged and not, stays as it is.
    let settings = folder.path().join("definitions/cutlist.yaml");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, format!("{text}# more\n")).unwrap();
    let mut index = repository.index().unwrap();
    index.add_path(Path::new("cutlist.yaml")).unwrap();
    index.write().unwrap();
    let ran = ami(folder.path(), "bump", &[]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let head = repository.head().unwrap().peel_to_commit().unwrap();
    assert_eq!(head.parent_id(0).unwrap(), before.id());
    assert_eq!(head.author().email().unwrap(), "grace@example.com");
    let message = head.message().unwrap();
    assert!(message.starts_with("Lock images, which replaces 1 node\n\n- ") && message.contains(REPLACES), "{message}");
    let diff = repository.diff_tree_to_tree(Some(&before.tree().unwrap()), Some(&head.tree().unwrap()), None).unwrap();
    let files: Vec<_> = diff.deltas().map(|it| it.new_file().path().unwrap().to_owned()).collect();
    assert_eq!(files, [Path::new("cutlist.lock")]);
    assert_eq!(repository.status_file(Path::new("cutlist.lock")).unwrap(), git2::Status::CURRENT);
    assert_eq!(repository.status_file(Path::new("cutlist.yaml")).unwrap(), git2::Status::INDEX_MODIFIED);
    // There is nothing more to commit.
    assert_eq!(ami(folder.path(), "bump", &[]).code, 0);
    assert_eq!(repository.head().unwrap().peel_to_commit().unwrap().id(), head.id());
}

#[test]
fn a_bump_refuses_what_it_can_not_commit() {
    let (folder, repository) = clone_of("image-locked");
    let file = folder.path().join("definitions/cutlist.lock");
    let text = lock_of(folder.path());
    std::fs::write(&file, format!("{text}# mine\n")).unwrap();
    let ran = ami(folder.path(), "bump", &[]);
    let why = "cutlist.lock has changes that are not committed";
    assert!(ran.code == 1 && ran.stderr.contains(why), "{}", ran.transcript());
    std::fs::write(&file, &text).unwrap();
    repository.config().unwrap().remove("user.email").unwrap();
    let ran = ami(folder.path(), "bump", &[]);
    let why = "the repository's configuration has no author";
    assert!(ran.code == 1 && ran.stderr.contains(why), "{}", ran.transcript());
    assert_eq!(lock_of(folder.path()), text, "nothing was written");
    let plain = tempfile::tempdir().unwrap();
    program::copy(&folder.path().join("definitions"), &plain.path().join("definitions"));
    std::fs::remove_dir_all(plain.path().join("definitions/.git")).unwrap();
    std::fs::copy(folder.path().join("cluster.yaml"), plain.path().join("cluster.yaml")).unwrap();
    let ran = ami(plain.path(), "bump", &[]);
    assert!(ran.code == 1 && ran.stderr.contains("is not in a Git repository"), "{}", ran.transcript());
}
