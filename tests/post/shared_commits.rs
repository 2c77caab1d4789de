//! Commits that are of no pull request, as those of a merge queue, or of several.

use serde_json::json;

use super::forges::{FORGES, GITHUB};
use super::review::{Desk, stage};

/// What GitHub makes of pull request 7 when it is queued: the merge on a branch of its own.
fn queue(desk: &Desk) -> String {
    let repository = git2::Repository::open(desk.remote()).unwrap();
    let commit = |name: &str| repository.revparse_single(name).unwrap().peel_to_commit().unwrap();
    let (main, change) = (commit("main"), commit("change"));
    let tree = repository.merge_commits(&main, &change, None).unwrap().write_tree_to(&repository).unwrap();
    let (tree, author) = (repository.find_tree(tree).unwrap(), main.author());
    let name = format!("refs/heads/gh-readonly-queue/main/pr-7-{}", main.id());
    let made = repository.commit(Some(&name), &author, &author, "Queue it", &tree, &[&main, &change]).unwrap();
    made.to_string()
}

fn status(desk: &Desk, commit: &str, context: &str) -> Option<(String, String)> {
    let world = desk.server.world();
    let found = world.statuses.iter().rev().find(|it| it.commit == commit && it.context == context)?;
    Some((found.state.clone(), found.description.clone()))
}

#[test]
fn the_commit_of_a_merge_queue_has_the_statuses_that_are_required() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        let queued = queue(&desk);
        desk.look(&[]);
        let (state, description) = desk.status("cutlist/blue").unwrap();
        let expected = (forge.name == "github").then_some((state, description));
        assert_eq!(status(&desk, &queued, "cutlist/blue"), expected, "{}: one forge has queues", forge.name);
        assert_eq!(desk.bodies().len(), 1, "{}: the comment of the pull request, and no other", forge.name);
        let writes = desk.server.world().writes().len();
        desk.look(&[]);
        assert_eq!(desk.server.world().writes().len(), writes, "{}: a later process has nothing to add", forge.name);
    }
}

#[test]
fn what_was_approved_is_what_leaves_the_queue() {
    let desk = stage(GITHUB, "a-change");
    let asks: &[&str] = &["--require-approval"];
    desk.look(asks);
    let waits = desk.status("cutlist/blue/approval").unwrap().1;
    let digest = waits.strip_prefix("waits for: /cutlist approve ").unwrap().to_owned();
    let first = queue(&desk);
    desk.look(asks);
    let refused = format!("plan {digest} of the merge queue is not one approved on pull request 7");
    assert_eq!(status(&desk, &first, "cutlist/blue/approval"), Some(("failure".to_owned(), refused)));
    desk.says("writer", &format!("/cutlist approve {digest}"));
    desk.look(asks);
    // It left the queue, and comes again as another commit.
    let repository = git2::Repository::open(desk.remote()).unwrap();
    let name =
        format!("refs/heads/gh-readonly-queue/main/pr-7-{}", repository.refname_to_id("refs/heads/main").unwrap());
    repository.find_reference(&name).unwrap().delete().unwrap();
    desk.look(asks);
    let commit = repository.find_commit(git2::Oid::from_str(&first).unwrap()).unwrap();
    let parents = [commit.parent(0).unwrap(), commit.parent(1).unwrap()];
    let (author, tree) = (commit.author(), commit.tree().unwrap());
    let again =
        repository.commit(Some(&name), &author, &author, "Queue it again", &tree, &[&parents[0], &parents[1]]).unwrap();
    desk.look(asks);
    let approved = ("success".to_owned(), format!("approved by writer: plan {digest}"));
    assert_eq!(status(&desk, &again.to_string(), "cutlist/blue/approval"), Some(approved));
}

/// A branch that is proposed for two others: its commit has one status for both, and it does not change with each look.
#[test]
fn a_commit_of_two_pull_requests_has_one_status_that_says_whose_it_is() {
    let desk = stage(GITHUB, "a-change");
    let repository = git2::Repository::open(desk.remote()).unwrap();
    let head = git2::Oid::from_str(&desk.head).unwrap();
    // It has the change already.
    repository.reference("refs/heads/release", head, true, "made").unwrap();
    repository.reference("refs/pull/8/head", head, true, "opened").unwrap();
    {
        let mut world = desk.server.world();
        let mut other = world.pull_requests[0].clone();
        other["number"] = json!(8);
        other["base"]["ref"] = json!("release");
        world.pull_requests.push(other);
    }
    let manner: &[&str] = &["--comment", "none", "--no-checks"];
    desk.look(manner);
    let said = || -> Vec<String> {
        let world = desk.server.world();
        // A plan that takes a while is announced.
        let settled = world.statuses.iter().filter(|it| it.state != "pending");
        settled.map(|it| it.description.clone()).collect()
    };
    let first = said();
    let [one] = first.as_slice() else { panic!("{first:?}") };
    assert!(one.starts_with("pull request 7: ") && one.contains(" · plan "), "{one}");
    desk.look(manner);
    assert_eq!(said(), first, "a later process has nothing to add");
}
