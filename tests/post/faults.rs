//! Forges that refuse, are away, or cut the connection.

use serde_json::{Value, json};

use super::forges::{FORGES, GITHUB};
use super::previews::{commit, preview, target};
use super::server::{Answer, Harm, Server};
use super::{assert_once, assert_posted, stage};

fn message(status: u16, text: &str) -> Answer {
    Answer::of(status, json!({ "message": text }))
}

fn harms() -> Vec<(&'static str, Harm)> {
    vec![
        ("500", Harm::Answer(message(500, "oops"))),
        ("502", Harm::Answer(Answer::of(502, Value::Null))),
        ("503", Harm::Answer(message(503, "busy").with("retry-after", "1"))),
        ("429", Harm::Answer(message(429, "slow down").with("retry-after", "1"))),
        ("403", Harm::Answer(message(403, "You have exceeded a secondary rate limit").with("retry-after", "1"))),
        ("422", Harm::Answer(message(422, "was submitted too quickly").with("retry-after", "1"))),
        ("404", Harm::Answer(message(404, "Not Found"))),
        ("cut before", Harm::CutBefore),
        ("cut after", Harm::CutAfter),
    ]
}

/// Each kind of harm, once, to every kind of request; then what must be there is there, and nothing twice.
#[test]
fn all_is_posted_in_the_end_and_nothing_twice() {
    std::thread::scope(|scope| {
        for forge in FORGES {
            scope.spawn(move || {
                for (name, harm) in harms() {
                    let (server, desk) = stage(forge);
                    for push in 1..=2 {
                        let parts = [("GET", "commits"), ("POST", forge.statuses), ("GET", forge.comments)];
                        for (method, part) in parts {
                            server.harm(method, part, 1, harm.clone());
                        }
                        if name != "404" {
                            server.harm("POST", forge.comments, 1, harm.clone());
                            server.harm("PATCH", "comments", 1, harm.clone());
                            server.harm("PUT", "notes", 1, harm.clone());
                            server.harm("POST", "check-runs", 1, harm.clone());
                        }
                        let ran = desk.post(&preview(push, u64::from(push)));
                        assert_eq!(ran.code, 0, "{} {name}: {}", forge.name, ran.stderr);
                        server.world().faults.clear();
                    }
                    let world = server.world();
                    assert_once(&world, forge, 2, &commit(2));
                    assert_eq!(world.statuses.len(), 2, "{} {name}: {:?}", forge.name, world.statuses);
                    let checks = if forge.name == "github" { 2 } else { 0 };
                    assert_eq!(world.checks.len(), checks, "{} {name}", forge.name);
                    let first = world.writes()[0].path.clone();
                    assert!(first.contains(forge.statuses), "{} {name}: {first}", forge.name);
                }
            });
        }
    });
}

#[test]
fn a_limit_that_nobody_waits_for_is_said() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let limited = message(403, "You have exceeded a secondary rate limit. Please wait a few minutes.");
        server.harm("POST", forge.comments, 9, Harm::Answer(limited));
        let ran = desk.post_with(&preview(1, 1), &["--max-wait", "1s"]);
        assert_eq!(ran.code, 1);
        assert!(ran.stderr.contains("can not comment: POST") && ran.stderr.contains("rate limit"), "{}", ran.stderr);
        assert!(ran.stderr.contains("it may pass") && !ran.stderr.contains("may not do this"), "{}", ran.stderr);
        assert!(server.world().status_of(&commit(1)).is_some(), "the status was first");
    }
}

#[test]
fn what_is_not_allowed_is_said_and_the_rest_is_posted() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        server.harm("POST", forge.statuses, 9, Harm::Answer(message(403, "Resource not accessible")));
        let ran = desk.post(&preview(1, 1));
        assert_eq!(ran.code, 1);
        assert!(
            ran.stderr.contains("can not set the status") && ran.stderr.contains("write its statuses"),
            "{}",
            ran.stderr
        );
        assert_eq!(server.world().comments_by(forge.bot).len(), 1);
        let checks = server.world().checks.len();
        let again = desk.post(&preview(1, 1));
        assert_eq!(again.code, 1);
        assert_eq!(server.world().checks.len(), checks, "{}: {}", forge.name, again.stderr);
    }
}

/// Forges refuse a comment there as they do where a right is missing.
#[test]
fn a_conversation_that_is_locked_is_said_to_be() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        server.world().is_locked = true;
        let refused = message(403, "Unable to create comment because issue is locked.");
        server.harm("POST", forge.comments, 9, Harm::Answer(refused));
        let ran = desk.post(&preview(1, 1));
        assert_eq!(ran.code, 1);
        let said = "the conversation of pull request 7 is locked";
        assert!(ran.stderr.contains(said) && ran.stderr.contains("unlock it"), "{}: {}", forge.name, ran.stderr);
        assert!(ran.stderr.contains("--comment none") && !ran.stderr.contains("may not do this"), "{}", ran.stderr);
        assert!(server.world().status_of(&commit(1)).is_some(), "{}: the status is there", forge.name);
    }
}

#[test]
fn checks_are_left_out_where_they_are_not_allowed() {
    let (server, desk) = stage(GITHUB);
    server.harm("POST", "check-runs", 9, Harm::Answer(message(403, "You must authenticate via a GitHub App.")));
    assert_posted(&desk.post(&preview(1, 1)), GITHUB);
    assert_once(&server.world(), GITHUB, 1, &commit(1));
}

/// Credentials go nowhere else.
#[test]
fn redirects_are_not_followed() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let elsewhere = Server::start(forge.router);
        let moved = message(301, "Moved Permanently").with("location", &format!("{}/x?token=sekret", elsewhere.url));
        server.harm("GET", "commits", 9, Harm::Answer(moved));
        let ran = desk.post_with(&preview(1, 1), &["--comment", "none", "--no-checks"]);
        assert_eq!(ran.code, 1);
        let named = format!("the address that it names: {}/x", elsewhere.url);
        assert!(ran.stderr.contains("sends elsewhere, which is not followed"), "{}", ran.stderr);
        assert!(ran.stderr.contains(&named) && !ran.stderr.contains("sekret"), "{}", ran.stderr);
        assert!(elsewhere.world().requests.is_empty());
    }
}

/// The same machine has it under another name: nothing is sent there, and it is said what to change.
#[test]
fn a_repository_that_was_renamed_is_said_to_be() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        for place in ["/api/repositories/77", &format!("{}/api/repositories/77", server.url)] {
            let moved = message(301, "Moved Permanently").with("location", &format!("{place}?token=sekret"));
            server.world().faults.clear();
            server.harm("GET", "", 9, Harm::Answer(moved));
            let ran = desk.post_with(&preview(1, 1), &["--comment", "none", "--no-checks"]);
            assert_eq!(ran.code, 1);
            assert!(ran.stderr.contains("was renamed or moved") && !ran.stderr.contains("sekret"), "{}", ran.stderr);
            assert!(ran.stderr.contains("the one of today with --repository"), "{}", ran.stderr);
        }
        let is_followed = server.world().requests.iter().any(|it| it.path.contains("repositories/77"));
        assert!(!is_followed, "{}", forge.name);
    }
}

/// What one cluster waited for in vain, the next ones do not wait for again.
#[test]
fn a_forge_that_is_away_is_waited_for_once() {
    std::thread::scope(|scope| {
        for forge in FORGES {
            scope.spawn(move || {
                let (server, desk) = stage(forge);
                let mut preview = preview(1, 1);
                preview["targets"] = (1..=12).map(|number| target(&format!("c{number}"), number)).collect();
                server.harm("GET", "", 9_999, Harm::CutBefore);
                let begin = std::time::Instant::now();
                let ran = desk.post_with(&preview, &["--max-wait", "4s"]);
                assert_eq!(ran.code, 1);
                assert!(ran.stderr.contains("error: cutlist/c1/eu"), "{}", ran.stderr);
                assert!(ran.stderr.contains("more: can not set the status"), "{}", ran.stderr);
                assert!(begin.elapsed().as_secs() < 15, "{}: {:?}", forge.name, begin.elapsed());
            });
        }
    });
}

/// A commit that the forge has never heard of is believed to come for some seconds, and not for some seconds for each cluster.
#[test]
fn a_commit_that_is_not_there_is_waited_for_once() {
    let (server, desk) = stage(GITHUB);
    let mut preview = preview(1, 1);
    preview["targets"] = (1..=6).map(|number| target(&format!("c{number}"), number)).collect();
    server.harm("GET", "", 9_999, Harm::Answer(message(404, "Not Found")));
    let begin = std::time::Instant::now();
    let ran = desk.post(&preview);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("404") && ran.stderr.contains("was the commit pushed?"), "{}", ran.stderr);
    assert!(ran.stderr.contains("cutlist/c1/eu and 5 more: can not set the status"), "{}", ran.stderr);
    assert!((10..30).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
}

#[test]
fn a_forge_that_is_away_is_given_up() {
    let (server, desk) = stage(GITHUB);
    server.harm("GET", "commits", 99, Harm::CutBefore);
    let ran = desk.post_with(&preview(1, 1), &["--max-wait", "1s", "--comment", "none", "--no-checks"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no answer after") && !ran.stderr.contains('?'), "{}", ran.stderr);
}

#[test]
fn a_token_of_somebody_else_changes_nothing_of_ours() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        assert_posted(&desk.post(&preview(1, 1)), forge);
        let other = desk.file("other", super::server::READER);
        assert_posted(&desk.post_with(&preview(2, 2), &["--token-file", other.to_str().unwrap()]), forge);
        let world = server.world();
        assert_eq!(world.comments_by(forge.bot).len(), 1);
        assert_eq!(world.comments_by("reader").len(), 1, "its own");
    }
}

/// As a restart of a forge is, or two seconds of a load balancer: longer than a moment, and over before anybody looks.
#[test]
fn a_write_waits_as_long_as_it_is_told_and_as_the_forge_is_away() {
    std::thread::scope(|scope| {
        for forge in FORGES {
            scope.spawn(move || {
                let (server, desk) = stage(forge);
                let busy = message(503, "busy").with("retry-after", "2");
                server.harm("POST", forge.statuses, 2, Harm::Answer(busy));
                server.harm("POST", forge.comments, 4, Harm::Answer(Answer::of(502, Value::Null)));
                server.harm("POST", "check-runs", 2, Harm::CutBefore);
                let begin = std::time::Instant::now();
                assert_posted(&desk.post(&preview(1, 1)), forge);
                let took = begin.elapsed().as_secs();
                assert!((4..60).contains(&took), "{}: {took} s", forge.name);
                assert_once(&server.world(), forge, 1, &commit(1));
                assert_eq!(server.world().statuses.len(), 1, "{}", forge.name);
            });
        }
    });
}

#[test]
fn a_write_is_given_up_when_the_time_to_wait_is_over() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let busy = message(503, "busy").with("retry-after", "600");
        server.harm("POST", forge.statuses, 99, Harm::Answer(busy));
        let begin = std::time::Instant::now();
        let ran = desk.post_with(&preview(1, 1), &["--max-wait", "3s"]);
        assert!(begin.elapsed().as_secs() < 20, "{}", forge.name);
        assert_eq!(ran.code, 1);
        assert_eq!(ran.stderr.matches("503").count(), 1, "{}", ran.stderr);
        assert!(
            ran.stderr.contains("can not set the status: nobody knows whether it was done: POST"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("it may pass") && !ran.stderr.contains("may not do this"), "{}", ran.stderr);
    }
}

/// That checks are not allowed is no fault; that a limit was reached, or that the token ran out, is.
#[test]
fn a_check_that_could_not_be_made_is_told_from_one_that_is_not_allowed() {
    let used_up = message(403, "API rate limit exceeded").with("x-ratelimit-remaining", "0");
    for (answer, code) in [
        (message(403, "Resource not accessible by integration"), 0),
        (used_up.with("x-ratelimit-reset", "9999999999"), 1),
        (message(401, "Bad credentials"), 1),
    ] {
        let (server, desk) = stage(GITHUB);
        server.harm("POST", "check-runs", 9, Harm::Answer(answer));
        let ran = desk.post_with(&preview(1, 1), &["--max-wait", "1s"]);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        assert_eq!(ran.stderr.contains("no check"), code == 0, "{}", ran.stderr);
    }
}
