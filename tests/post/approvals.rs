//! Who approved what on a pull request: never whom somebody else names, and never forgotten.

use serde_json::json;

use super::forges::{FORGES, Forge, GITEA, GITHUB};
use super::previews::ended;
use super::review::{Desk, answers, stage, stopped, until};
use super::server::{Answer, Harm, Status};

const ASKS: &[&str] = &["--require-approval", "--require-two-people"];

/// What the plan that waits is called.
fn waiting(desk: &Desk) -> String {
    let (state, description) = desk.status("cutlist/blue/approval").unwrap();
    assert_eq!(state, "pending", "{}: {description}", desk.forge.name);
    description.strip_prefix("waits for: /cutlist approve ").unwrap().to_owned()
}

fn approved(by: &str, digest: &str) -> (String, String) {
    ("success".to_owned(), format!("approved by {by}: plan {digest}"))
}

/// The same status, set by somebody else who may write.
fn forge_approval(desk: &Desk, digest: &str) {
    let (state, description) = approved("writer", digest);
    let (commit, context, by) = (desk.head.clone(), "cutlist/blue/approval".to_owned(), "writer".to_owned());
    let mut world = desk.server.world();
    let at = world.id();
    world.statuses.push(Status { commit, context, state, description, by, at });
}

#[test]
fn a_status_that_anybody_may_set_approves_nothing() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        desk.look(ASKS);
        let digest = waiting(&desk);
        forge_approval(&desk, &digest);
        desk.says("author", "/cutlist plan");
        desk.look(ASKS);
        assert_eq!(waiting(&desk), digest, "{}", forge.name);

        // Nor while the same process runs, which has posted the truth already.
        let child = desk.command(&[ASKS, &["--interval", "5s"]].concat()).spawn().unwrap();
        until("a look at what is merged", || {
            desk.server.world().requests.last().is_some_and(|it| it.query.get("state").is_some_and(|it| it != "open"))
        });
        forge_approval(&desk, &digest);
        desk.says("author", "/cutlist plan");
        until("the truth again", || desk.status("cutlist/blue/approval").unwrap().0 == "pending");
        stopped(child);
        assert!(desk.bodies().iter().all(|it| !it.contains("cutlist:approved")), "{}", forge.name);
    }
}

#[test]
fn an_approval_is_lost_with_its_command_and_with_the_right_to_give_it() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        let one_person = &ASKS[..1];
        desk.look(one_person);
        let digest = waiting(&desk);
        desk.says("author", &format!("/cutlist approve {digest}"));
        desk.look(one_person);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("author", &digest), "{}", forge.name);
        // Whoever starts it now asks for two people.
        desk.look(ASKS);
        assert_eq!(waiting(&desk), digest, "{}", forge.name);

        desk.says("writer", &format!("/cutlist approve {digest}"));
        desk.look(ASKS);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
        let command = desk.server.world().comments.iter().rfind(|it| it.author == "writer").unwrap().id;
        desk.server.world().edited.insert(command);
        desk.look(ASKS);
        assert_eq!(waiting(&desk), digest, "{}", forge.name);
    }
}

#[test]
fn an_approval_outlives_a_forge_that_is_away_and_a_process_that_ends() {
    for forge in FORGES {
        for is_same_process in [false, true] {
            let desk = stage(forge, "a-change");
            desk.look(ASKS);
            let digest = waiting(&desk);
            let child = is_same_process.then(|| {
                let child = desk.command(&[ASKS, &["--interval", "5s", "--max-wait", "1s"]].concat()).spawn().unwrap();
                until("a look", || {
                    desk.server
                        .world()
                        .requests
                        .iter()
                        .filter(|it| it.path.contains("pulls") || it.path.ends_with("merge_requests"))
                        .count()
                        > 2
                });
                child
            });
            desk.server.harm(
                "POST",
                forge.statuses,
                9_999,
                Harm::Answer(Answer::of(503, json!({ "message": "busy" }))),
            );
            desk.says("writer", &format!("/cutlist approve {digest}"));
            match child {
                None => {
                    let ran = ended(desk.command(&[ASKS, &["--once", "--max-wait", "1s"]].concat()).spawn().unwrap());
                    assert!(ran.stderr.contains("can not set the status"), "{}", ran.stderr);
                    desk.server.world().faults.clear();
                    desk.look(ASKS);
                }
                Some(child) => {
                    until("the answer", || answers(&desk).len() == 1);
                    desk.server.world().faults.clear();
                    until("approved", || desk.status("cutlist/blue/approval").unwrap().0 == "success");
                    stopped(child);
                }
            }
            assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
            assert_eq!(answers(&desk).len(), 1, "{}: answered once", forge.name);
        }
    }
}

/// The list of what is open is older than the base that is fetched after it.
#[test]
fn a_merge_during_a_look_approves_nothing() {
    for forge in FORGES {
        for is_shown_before in [true, false] {
            let desk = stage(forge, "a-change");
            if is_shown_before {
                desk.look(ASKS);
            }
            let before = ["cutlist/blue", "cutlist/blue/approval"].map(|context| desk.status(context));
            let open = json!([desk.server.world().pull_requests[0].clone()]);
            desk.merges();
            let lists = if forge.name == "gitlab" { "merge_requests" } else { "pulls" };
            desk.server.harm("GET", lists, 1, Harm::Answer(Answer::of(200, open)));
            desk.look(ASKS);
            let [plan, approval] = ["cutlist/blue", "cutlist/blue/approval"].map(|context| desk.status(context));
            assert_eq!(approval, before[1], "{}: nobody approved it", forge.name);
            match is_shown_before {
                true => assert_eq!(plan, before[0], "{}: what it was merged with", forge.name),
                false => assert_eq!(plan.map(|it| it.0), Some("success".to_owned()), "{}: it has one", forge.name),
            }
        }
    }
}

/// Somebody pushes a commit that changes no file.
fn push(desk: &mut Desk) {
    commit(desk);
    desk.opens();
}

/// It is in the repository, and the forge does not say so yet.
fn commit(desk: &mut Desk) {
    let repository = git2::Repository::open(desk.remote()).unwrap();
    let before = repository.find_commit(git2::Oid::from_str(&desk.head).unwrap()).unwrap();
    let (author, tree) = (before.author(), before.tree().unwrap());
    let head = repository.commit(None, &author, &author, "Once more", &tree, &[&before]).unwrap();
    repository.reference(desk.forge.head, head, true, "pushed").unwrap();
    desk.head = head.to_string();
}

/// Whoever waits for it could else have anything approved that makes the same plan.
#[test]
fn an_approval_does_not_count_for_what_is_pushed_before_it_is_heard() {
    for forge in FORGES {
        let mut desk = stage(forge, "a-change");
        let child = desk.command(&[ASKS, &["--interval", "5s"]].concat()).spawn().unwrap();
        until("posted", || desk.status("cutlist/blue/approval").is_some());
        let digest = waiting(&desk);
        let approve = format!("/cutlist approve {digest}");
        // A look may fall between the approval and what the forge then says of the head: it is for the head before.
        let is_refused = (1..=5).any(|answered| {
            let before = desk.head.clone();
            commit(&mut desk);
            desk.says("writer", &approve);
            desk.opens();
            until("an answer", || answers(&desk).len() == answered);
            let answer = answers(&desk).pop().unwrap();
            let is_refused = answer.contains("was pushed since");
            assert!(is_refused || answer.contains(&before), "{}: {answer}", forge.name);
            is_refused
        });
        assert!(is_refused, "{}: {:?}", forge.name, answers(&desk));
        assert_eq!(waiting(&desk), digest, "{}", forge.name);
        desk.says("writer", &approve);
        until("approved", || desk.status("cutlist/blue/approval") == Some(approved("writer", &digest)));
        stopped(child);
    }
}

/// The same where nobody looked when it was pushed: a process that begins has not seen what stood there before.
#[test]
fn an_approval_does_not_count_for_what_was_pushed_before_a_process_began() {
    for forge in FORGES {
        let mut desk = stage(forge, "a-change");
        desk.look(ASKS);
        let digest = waiting(&desk);
        let approve = format!("/cutlist approve {digest}");
        push(&mut desk);
        // Whoever pushed may set a status before, too.
        forge_approval(&desk, &digest);
        desk.says("writer", &approve);
        desk.look(ASKS);
        assert!(answers(&desk)[0].contains("was pushed since, or at the same time"), "{:?}", answers(&desk));
        assert_eq!(waiting(&desk), digest, "{}", forge.name);
        desk.says("writer", &approve);
        desk.look(ASKS);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
    }
}

#[test]
fn an_approval_does_not_count_where_nobody_knows_when_its_head_was_shown() {
    for forge in [GITHUB, GITEA] {
        let desk = stage(forge, "a-change");
        desk.look(ASKS);
        let digest = waiting(&desk);
        desk.server.harm("GET", "/statuses", 9, Harm::Answer(Answer::of(403, json!({ "message": "no" }))));
        desk.says("writer", &format!("/cutlist approve {digest}"));
        desk.look(ASKS);
        assert!(answers(&desk)[0].contains("nobody knows whether"), "{}: {:?}", forge.name, answers(&desk));
        assert_eq!(waiting(&desk), digest, "{}", forge.name);
    }
}

#[test]
fn an_approval_is_for_the_head_that_it_was_given_for() {
    for forge in FORGES {
        let mut desk = stage(forge, "a-change");
        desk.look(ASKS);
        let digest = waiting(&desk);
        desk.says("writer", &format!("/cutlist approve {digest}"));
        desk.look(ASKS);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
        push(&mut desk);
        desk.look(ASKS);
        assert_eq!(waiting(&desk), digest, "{}: the same plan, and another head", forge.name);
        desk.says("writer", &format!("/cutlist approve {digest}"));
        desk.look(ASKS);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
    }
}

/// Author and committer of each commit, who pushed, and why the approval does not count.
type Makers = (&'static [[Option<&'static str>; 2]], &'static [&'static str], &'static str);

/// Whoever opened it is not the only one who may have made it.
#[test]
fn who_made_a_commit_or_pushed_one_does_not_approve_it() {
    const AUTHOR: Option<&str> = Some("author");
    const WRITER: Option<&str> = Some("writer");
    let cases: [Makers; 5] = [
        (&[[AUTHOR; 2], [WRITER; 2]], &[], "has no commit in it"),
        (&[[AUTHOR; 2], [AUTHOR, WRITER], [WRITER, AUTHOR]], &[], "has no commit in it"),
        (&[[AUTHOR; 2]], &["writer"], "has no commit in it"),
        (&[[AUTHOR; 2], [None, AUTHOR]], &[], "is no address of an account"),
        (&[[AUTHOR; 2], [AUTHOR, None]], &[], "is no address of an account"),
    ];
    for forge in FORGES {
        for (commits, pushers, why) in cases {
            let mut desk = stage(forge, "a-change");
            {
                let mut world = desk.server.world();
                (world.commits, world.pushers) = (commits.to_vec(), pushers.to_vec());
            }
            desk.look(ASKS);
            let digest = waiting(&desk);
            desk.says("writer", &format!("/cutlist approve {digest}"));
            desk.look(ASKS);
            assert_eq!(waiting(&desk), digest, "{}: {commits:?} {pushers:?}", forge.name);
            assert!(answers(&desk)[0].contains(why), "{}: {:?}", forge.name, answers(&desk));
            if forge.name == "github" {
                assert_eq!(super::described::complaints_of(&desk.server), Vec::<String>::new());
            }

            // One who made nothing of it, whoever else did.
            desk.server.world().commits = vec![[AUTHOR; 2]];
            desk.server.world().pushers.clear();
            push(&mut desk);
            desk.look(ASKS);
            desk.says("writer", &format!("/cutlist approve {digest}"));
            desk.look(ASKS);
            assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
        }
    }
}

/// Forge, part of the address that is asked, what it answers, who pushed, and what is said of it.
type Asked<'c> = (Forge, &'c str, Option<Harm>, &'c [&'c str], &'c str);

/// What nobody could ask nobody knows: neither an old forge nor a token without the right lets who pushed it approve.
#[test]
fn an_approval_does_not_count_where_it_is_not_told_who_pushed() {
    let refused = |status: u16| Some(Harm::Answer(Answer::of(status, json!({ "message": "no" }))));
    let many: &[&str] = &["author"; 101];
    let cases: [Asked<'_>; 6] = [
        (GITHUB, "/activity", refused(404), &[], "answered 404"),
        (GITHUB, "/activity", refused(403), &[], "answered 403"),
        (GITHUB, "/activity", None, many, "more pushes than are listed"),
        (GITHUB, "/activity", None, &[""], "no account for who pushed"),
        (GITEA, "/timeline", refused(404), &[], "1.17 or newer"),
        (GITEA, "/timeline", refused(403), &[], "read:issue"),
    ];
    for (forge, part, harm, pushers, why) in cases {
        let desk = stage(forge, "a-change");
        desk.server.world().pushers = pushers.to_vec();
        if let Some(harm) = harm {
            desk.server.harm("GET", part, 9_999, harm);
        }
        desk.look(ASKS);
        let digest = waiting(&desk);
        desk.says("writer", &format!("/cutlist approve {digest}"));
        desk.look(ASKS);
        assert_eq!(waiting(&desk), digest, "{}: {why}", forge.name);
        let answer = answers(&desk).remove(0);
        assert!(answer.contains("who pushed") && answer.contains(why), "{}: {answer}", forge.name);
        assert!(answer.contains("--allow-unknown-pushers"), "{}: {answer}", forge.name);

        // The operator may say otherwise.
        let open = &[ASKS, &["--allow-unknown-pushers"]].concat();
        desk.says("author", &format!("/cutlist approve {digest}"));
        desk.look(open);
        assert_eq!(waiting(&desk), digest, "{}: who opened it is known", forge.name);
        desk.says("writer", &format!("/cutlist approve {digest}"));
        desk.look(open);
        assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
    }
}

/// Two processes that review one repository.
#[test]
fn two_reviewers_answer_once() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        desk.look(ASKS);
        let digest = waiting(&desk);
        for command in ["/cutlist plan", "/cutlist approve", &format!("/cutlist approve {digest}")] {
            desk.says("writer", command);
        }
        let both = [0, 1].map(|_| desk.command(&[ASKS, &["--once"]].concat()).spawn().unwrap());
        for child in both {
            let ran = ended(child);
            assert_eq!(ran.code, 0, "{}: {}", forge.name, ran.stderr);
        }
        assert_eq!(answers(&desk).len(), 3, "{}: {:?}", forge.name, answers(&desk));
        assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
    }
}

/// Forges count in seconds: a comment may come behind a look, in the second that the look has seen.
#[test]
fn a_command_in_the_second_of_the_last_look_is_obeyed() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        let child = desk.command(&["--interval", "5s"]).spawn().unwrap();
        until("posted", || desk.bodies().len() == 1);
        desk.says("writer", "/cutlist plan");
        until("the first answer", || answers(&desk).len() == 1);
        // The pull request is as it was when the first one was seen.
        desk.server.world().comment_by("writer", "/cutlist plan");
        until("the second answer", || answers(&desk).len() == 2);
        stopped(child);
    }
}

/// Of some forges a thumb moves the moment of a change, as an edit does.
#[test]
fn a_reaction_takes_no_approval_back() {
    for forge in FORGES {
        let desk = stage(forge, "a-change");
        desk.look(ASKS);
        let digest = waiting(&desk);
        desk.says("writer", &format!("/cutlist approve {digest}"));
        let react = || {
            let mut world = desk.server.world();
            let all: Vec<u64> = world.comments.iter().map(|it| it.id).collect();
            world.reacted.extend(all);
        };
        // Before the command is seen, and when it is answered.
        for _ in 0..2 {
            react();
            desk.look(ASKS);
            assert_eq!(desk.status("cutlist/blue/approval").unwrap(), approved("writer", &digest), "{}", forge.name);
        }
        assert_eq!(answers(&desk).len(), 1, "{}", forge.name);
    }
}
