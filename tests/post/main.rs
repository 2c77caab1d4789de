//! `cutlist post` against forges of ours on loopback: whatever happens on the way, each thing is there once in the end.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "the program is run, and files are made for it")]

mod approvals;
mod described;
mod faults;
mod fleets;
mod forges;
mod jobs;
#[path = "../preview/laid_out.rs"]
mod laid_out;
mod previews;
#[expect(dead_code, reason = "shared with tests that need more of it")]
#[path = "../program/mod.rs"]
mod program;
mod proxies;
mod review;
mod server;
mod shared_commits;
mod shown;
mod slack;

use forges::{FORGES, Forge, GITHUB};
use previews::{Desk, commit, ended, preview, target};
use server::{Answer, Harm, Server, World};

fn stage(forge: Forge) -> (Server, Desk) {
    let server = Server::start(forge.router);
    let desk = Desk::new(forge, &server);
    (server, desk)
}

#[track_caller]
fn assert_posted(ran: &previews::Ran, forge: Forge) {
    assert_eq!(ran.code, 0, "{}: {}", forge.name, ran.stderr);
}

/// One comment of ours for what was pushed last, and a status on its commit.
#[track_caller]
fn assert_once(world: &World, forge: Forge, created: u64, head: &str) {
    let ours = world.comments_by(forge.bot);
    assert_eq!(ours.len(), 1, "{}: {ours:?}", forge.name);
    assert!(ours[0].body.contains(&format!("**{created} created**")), "{}: {}", forge.name, ours[0].body);
    let status = world.status_of(head).unwrap_or_else(|| panic!("{}: no status", forge.name));
    assert_eq!((status.context.as_str(), status.state.as_str()), ("cutlist/prod/eu", "success"));
    assert!(status.description.starts_with(&format!("{created} created, +$0.1000/h · plan 0000000")), "{status:?}");
}

#[test]
fn one_comment_after_twenty_pushes() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        // Every other push changes nothing that a reader would look at again.
        for push in 1..=20 {
            assert_posted(&desk.post(&preview(push, u64::from(push / 2))), forge);
        }
        let world = server.world();
        assert_once(&world, forge, 10, &commit(20));
        assert_eq!(world.comments[0].edits, 10, "{}: edited where the data differ", forge.name);
        assert_eq!(world.statuses.len(), 20, "{}", forge.name);
        assert!(world.checks.len() == if forge.name == "github" { 20 } else { 0 });
    }
}

#[test]
fn the_same_again_changes_nothing() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        assert_posted(&desk.post(&preview(1, 2)), forge);
        let writes = server.world().writes().len();
        assert_posted(&desk.post(&preview(1, 2)), forge);
        assert_eq!(server.world().writes().len(), writes, "{}", forge.name);
    }
}

#[test]
fn six_requests_are_enough() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        for push in 1..=3 {
            let before = server.world().requests.len();
            assert_posted(&desk.post(&preview(push, u64::from(push))), forge);
            let asked = server.world().requests.len() - before;
            assert!(asked <= 6, "{}: {asked} requests for push {push}", forge.name);
        }
    }
}

#[test]
fn statuses_come_first() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut preview = preview(1, 2);
        preview["targets"].as_array_mut().unwrap().push(target("test", 3));
        assert_posted(&desk.post(&preview), forge);
        let world = server.world();
        let paths: Vec<&str> = world.writes().iter().map(|it| it.path.as_str()).collect();
        assert!(paths[..2].iter().all(|path| path.contains(forge.statuses)), "{}: {paths:?}", forge.name);
        assert_eq!(world.comments_by(forge.bot).len(), 2, "one for each cluster");
        assert_eq!(world.statuses.len(), 2);
    }
}

#[test]
fn five_at_once_leave_one_comment() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let desks: Vec<Desk> = (0..5).map(|_| Desk::new(forge, &server)).collect();
        let running: Vec<_> = desks.iter().map(|desk| desk.begin(&preview(1, 4), &[])).collect();
        for child in running {
            assert_posted(&ended(child), forge);
        }
        assert_once(&server.world(), forge, 4, &commit(1));
        drop(desk);
    }
}

/// Two were made by processes that ended before they looked again.
#[test]
fn comments_that_a_crash_left_become_one() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        assert_posted(&desk.post(&preview(1, 1)), forge);
        let oldest = server.world().comments[0].clone();
        server.world().comment_by(forge.bot, &oldest.body);
        assert_posted(&desk.post(&preview(2, 3)), forge);
        assert_once(&server.world(), forge, 3, &commit(2));
        assert_eq!(server.world().comments[0].id, oldest.id, "the oldest stays");
    }
}

#[test]
fn what_others_wrote_is_not_touched() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        assert_posted(&desk.post(&preview(1, 1)), forge);
        let body = server.world().comments[0].body.clone();
        server.world().comments.clear();
        server.world().comment_by("mallory", &body);
        for _ in 0..250 {
            server.world().comment_by("reviewer", "hm");
        }
        assert_posted(&desk.post(&preview(2, 2)), forge);
        assert_once(&server.world(), forge, 2, &commit(2));
        // Behind several pages of others.
        assert_posted(&desk.post(&preview(3, 3)), forge);
        let world = server.world();
        assert_once(&world, forge, 3, &commit(3));
        assert_eq!(world.comments[0].body, body);
    }
}

#[test]
fn nothing_is_said_where_nothing_of_ours_changed() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut untouched = preview(1, 0);
        untouched["targets"][0]["verdict"] = "untouched".into();
        untouched["targets"][0]["headline"] = "no definition differs".into();
        assert_posted(&desk.post(&untouched), forge);
        assert!(server.world().comments.is_empty());
        assert_eq!(server.world().status_of(&commit(1)).unwrap().state, "success", "a required status is there");
        // Something was said before: then that it is no longer so.
        assert_posted(&desk.post(&preview(2, 2)), forge);
        untouched["head"]["id"] = commit(3).into();
        untouched["targets"][0]["markdown"]["summary"] = "**No longer changes anything**".into();
        assert_posted(&desk.post(&untouched), forge);
        let world = server.world();
        assert_eq!(world.comments.len(), 1);
        assert!(world.comments[0].body.contains("No longer changes anything"));
    }
}

/// Jobs of two pushes overlap, and that of the older one may end last.
#[test]
fn the_comment_is_that_of_the_newest_commit() {
    std::thread::scope(|scope| {
        for forge in FORGES {
            for manner in ["edit", "new"] {
                scope.spawn(move || {
                    let (server, desk) = stage(forge);
                    assert_posted(&desk.post_with(&preview(2, 2), &["--comment", manner]), forge);
                    server.world().is_head_held = true;
                    let late = desk.post_with(&preview(1, 1), &["--comment", manner]);
                    assert_posted(&late, forge);
                    assert!(late.stderr.contains("at another commit than the preview"), "{}", late.stderr);
                    let world = server.world();
                    assert_once(&world, forge, 2, &commit(2));
                    assert_eq!(world.comments_by(forge.bot).len(), world.comments.len(), "{}", forge.name);
                    assert_eq!(world.status_of(&commit(1)).unwrap().state, "success", "the status is of its commit");
                });
            }
        }
    });
}

/// Many jobs check that merge out, and nobody sees what is posted for it.
#[test]
fn a_preview_of_the_merge_that_was_tried_is_told() {
    let (server, desk) = stage(GITHUB);
    server.pushed(&commit(2));
    server.world().is_head_held = true;
    server.world().tried_as = Some(commit(1));
    let ran = desk.post(&preview(1, 1));
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains(&format!("with --head {}", commit(2))), "{}", ran.stderr);
    assert!(server.world().comments.is_empty());
}

/// The API of a forge hears of a push later than the job.
#[test]
fn a_head_that_the_forge_does_not_know_yet_is_waited_for() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        server.pushed(&commit(1));
        server.world().is_head_held = true;
        let child = desk.begin(&preview(2, 2), &[]);
        std::thread::sleep(std::time::Duration::from_secs(2));
        server.world().head = commit(2);
        assert_posted(&ended(child), forge);
        assert_once(&server.world(), forge, 2, &commit(2));
    }
}

#[test]
fn a_comment_says_what_the_newest_push_says() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut preview = preview(1, 1);
        assert_posted(&desk.post(&preview), forge);
        let said = |server: &Server| server.world().comments[0].clone();
        // Another line of a file, another limit, another text: the digest and the figures are the same.
        for (edits, pointer, value) in [
            (1, "/targets/0/causes/0/line", serde_json::json!(9)),
            (2, "/targets/0/causes/0/text", serde_json::json!("spec.limits.cpu 5 is new")),
            (3, "/targets/0/markdown/summary", serde_json::json!("**1 created**\n\nBudgets: default allows 0 of 3\n")),
        ] {
            *preview.pointer_mut(pointer).unwrap() = value;
            assert_posted(&desk.post(&preview), forge);
            assert_eq!(said(&server).edits, edits, "{}: {pointer}", forge.name);
        }
        assert!(said(&server).body.contains("allows 0 of 3"));
        // The moment alone is no news.
        for age in ["10s", "20s"] {
            let small = format!("**1 created**\n\nBudgets: default allows 0 of 3\n\n<sub>snapshot ({age} old)</sub>\n");
            preview["targets"][0]["markdown"]["summary"] = small.into();
            preview["targets"][0]["plan"]["id"] = age.into();
            assert_posted(&desk.post(&preview), forge);
            assert!(said(&server).edits <= 4, "{}: {age}", forge.name);
        }
    }
}

#[test]
fn a_new_comment_hides_the_old() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        for push in 1..=3 {
            assert_posted(&desk.post_with(&preview(push, u64::from(push)), &["--comment", "new"]), forge);
        }
        let world = server.world();
        assert_once(&world, forge, 3, &commit(3));
        let made_before_hidden = world.writes().iter().map(|it| it.method.clone() + &it.path).collect::<Vec<_>>();
        let created = made_before_hidden.iter().position(|it| it.contains(forge.comments)).unwrap();
        let hidden =
            made_before_hidden.iter().position(|it| it.contains("graphql") || it.starts_with("DELETE")).unwrap();
        assert!(created < hidden);
    }
}

#[test]
fn an_app_makes_its_own_tokens() {
    use aws_lc_rs::encoding::AsDer;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{KeyPair, RsaKeyPair};
    use base64::Engine;
    let (server, desk) = stage(GITHUB);
    let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der = key.as_der().unwrap();
    let pem = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
    let path = desk.file("key.pem", &format!("-----BEGIN PRIVATE KEY-----\n{pem}\n-----END PRIVATE KEY-----\n"));
    let arguments = ["--app-id", "Iv23", "--app-key-file", path.to_str().unwrap()];
    let refused = desk.post_with(&preview(1, 1), &arguments);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("401") && !refused.stderr.contains("eyJ"), "{}", refused.stderr);
    server.world().app_keys.push(key.public_key().as_ref().to_vec());
    assert_posted(&desk.post_with(&preview(1, 1), &arguments), GITHUB);
    assert_posted(&desk.post_with(&preview(2, 2), &arguments), GITHUB);
    assert_once(&server.world(), GITHUB, 2, &commit(2));
    assert_eq!(server.world().tokens_made, 2, "one for each run");
}

/// Of a commit that can not be planned there is no plan that tells two checks apart.
#[test]
fn a_check_that_says_something_else_is_another() {
    let (server, desk) = stage(GITHUB);
    let mut preview = preview(1, 1);
    preview["targets"][0]["verdict"] = "invalid".into();
    preview["targets"][0]["plan"] = serde_json::Value::Null;
    for (said, checks) in [("both changed this", 1), ("both changed this", 1), ("unknown field", 2)] {
        preview["targets"][0]["causes"][0]["text"] = said.into();
        assert_posted(&desk.post(&preview), GITHUB);
        let world = server.world();
        assert_eq!(world.checks.len(), checks, "{said}");
        let last = &world.checks[checks - 1]["output"]["annotations"][0]["message"];
        assert_eq!(last.as_str(), Some(said));
    }
}

#[test]
fn annotations_go_fifty_at_a_time() {
    let (server, desk) = stage(GITHUB);
    let mut preview = preview(1, 1);
    let cause = |line: u32| serde_json::json!({ "path": "a.yaml", "line": line, "severity": if line == 130 { "error" } else { "notice" }, "text": "x" });
    preview["targets"][0]["causes"] = (1..=130).map(cause).collect();
    assert_posted(&desk.post(&preview), GITHUB);
    let world = server.world();
    let annotations = world.checks[0]["output"]["annotations"].as_array().unwrap();
    assert_eq!(annotations.len(), 130);
    assert_eq!(
        (annotations[0]["annotation_level"].as_str(), annotations[0]["start_line"].as_u64()),
        (Some("failure"), Some(130))
    );
    let most = world.requests.iter().filter_map(|it| it.body["output"]["annotations"].as_array()).map(Vec::len).max();
    assert_eq!(most, Some(50));
}

/// Whoever may write on a forge may edit what stands there in our name.
#[test]
fn what_somebody_wrote_in_our_comment_does_not_stay() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        assert_posted(&desk.post(&preview(1, 2)), forge);
        let written = server.world().comments[0].body.clone();
        for edited in [
            written.replace("**2 created**", "### All fine, approved"),
            written.lines().take(2).chain(["### All fine, approved"]).collect::<Vec<_>>().join("\n"),
        ] {
            assert_ne!(edited, written);
            server.world().comments[0].body = edited;
            assert_posted(&desk.post(&preview(1, 2)), forge);
            assert_eq!(server.world().comments[0].body, written, "{}", forge.name);
        }
        let writes = server.world().writes().len();
        server.world().comments[0].body = written.replace('\n', "\r\n");
        assert_posted(&desk.post(&preview(1, 2)), forge);
        assert_eq!(server.world().writes().len(), writes, "{}: it is as it was", forge.name);
    }
}

/// A status says in other characters what a forge does not take.
#[test]
fn names_with_emoji_have_a_status() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut preview = preview(1, 1);
        preview["targets"][0]["environment"] = "\u{1f7e2} eu".into();
        preview["targets"][0]["headline"] = "pools/\u{1f389}.yaml is wrong".into();
        assert_posted(&desk.post(&preview), forge);
        assert_posted(&desk.post(&preview), forge);
        let world = server.world();
        assert_eq!(world.statuses.len(), 1, "{}: it stands already", forge.name);
        let expected = if forge.name == "github" { "cutlist/prod/U+1F7E2 eu" } else { "cutlist/prod/\u{1f7e2} eu" };
        assert_eq!(world.statuses[0].context, expected);
    }
}

/// What a change would do is of no use below one that was merged.
#[test]
fn a_late_job_says_nothing_below_what_is_closed() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        server.world().is_closed = true;
        let ran = desk.post(&preview(1, 1));
        assert_posted(&ran, forge);
        assert!(ran.stderr.contains("the pull request is closed"), "{}: {}", forge.name, ran.stderr);
        let world = server.world();
        assert!(world.comments.is_empty() && world.statuses.len() == 1, "{}: the commit has its status", forge.name);
    }
}

/// A preview after the merge has the change in its base already.
#[test]
fn what_was_said_of_a_commit_stays_when_it_is_merged() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        assert_posted(&desk.post(&preview(1, 1)), forge);
        server.world().is_closed = true;
        let said = |server: &Server| {
            let world = server.world();
            (world.statuses.clone(), world.checks.len())
        };
        let before = said(&server);
        let mut late = preview(1, 0);
        late["targets"][0]["headline"] = "no definition differs".into();
        for manner in ["edit", "none"] {
            let ran = desk.post_with(&late, &["--comment", manner]);
            assert_posted(&ran, forge);
            assert!(ran.stderr.contains("the status is left as it is"), "{}: {}", forge.name, ran.stderr);
            assert_eq!(said(&server), before, "{} {manner}", forge.name);
        }
    }
}

/// Somebody removes our comment between the list and the change of it.
#[test]
fn a_comment_that_is_gone_is_begun_again() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        assert_posted(&desk.post(&preview(1, 1)), forge);
        for method in ["PATCH", "PUT"] {
            let gone = Answer::of(404, serde_json::json!({ "message": "Not Found" }));
            server.harm(method, "", 1, Harm::Answer(gone));
        }
        assert_posted(&desk.post(&preview(2, 2)), forge);
        assert_once(&server.world(), forge, 2, &commit(2));
    }
}

/// Nobody reads hundreds of comments, and no forge takes as many at once.
#[test]
fn many_clusters_have_a_status_each_and_one_comment() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut preview = preview(1, 1);
        let cluster = |number: usize| {
            let mut target = target(&format!("c{number:02}"), 1);
            if !number.is_multiple_of(10) {
                target["verdict"] = "untouched".into();
                target["causes"] = serde_json::json!([]);
            }
            target
        };
        preview["targets"] = (0..40).map(cluster).collect();
        let ran = desk.post(&preview);
        assert_posted(&ran, forge);
        assert!(ran.stderr.contains("there are 40 clusters, more than 20"), "{}", ran.stderr);
        {
            let world = server.world();
            assert_eq!((world.statuses.len(), world.checks.len()), (40, 0), "{}", forge.name);
            let [comment] = world.comments.as_slice() else { panic!("{:?}", world.comments) };
            assert!(comment.body.contains("### Nodes of 40 clusters"), "{}", comment.body);
            for cluster in ["c00", "c10", "c20", "c30"] {
                let said = format!("<code>{cluster}</code>");
                assert_eq!(comment.body.matches(&said).count(), 2, "in the table and below it: {}", comment.body);
            }
            assert!(!comment.body.contains("<code>c01</code>"), "{}", comment.body);
            assert!(comment.body.contains("36 clusters: nothing changed that decides about nodes"), "{}", comment.body);
        }
        let writes = server.world().writes().len();
        assert_posted(&desk.post(&preview), forge);
        assert_eq!(server.world().writes().len(), writes, "{}: the same again changes nothing", forge.name);
        preview["targets"][30]["headline"] = "2 created, +$0.2000/h".into();
        assert_posted(&desk.post(&preview), forge);
        let world = server.world();
        assert_eq!((world.comments.len(), world.comments[0].edits), (1, 1), "{}", forge.name);
    }
}

#[test]
fn statuses_of_many_clusters_are_listed_once() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut preview = preview(1, 1);
        let clusters = ["a", "b", "c", "d", "e"];
        preview["targets"].as_array_mut().unwrap().extend(clusters.map(|cluster| target(cluster, 1)));
        for _ in 0..2 {
            let before = server.world().requests.len();
            assert_posted(&desk.post(&preview), forge);
            let world = server.world();
            let is_list = |it: &&server::Request| it.method == "GET" && it.path.contains("/commits/");
            let lists = world.requests[before..].iter().filter(is_list).filter(|it| !it.path.contains("check-runs"));
            assert_eq!((lists.count(), world.statuses.len()), (1, 6), "{}", forge.name);
        }
    }
}
