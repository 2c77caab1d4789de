//! Many clusters, and several jobs at one commit.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::forges::FORGES;
use super::previews::{Desk, commit, ended, preview, target};
use super::server::{Request, World, newest};
use super::{assert_posted, stage};

/// The preview of a push for so many clusters. Each push creates one node more in each.
fn fleet(push: u32, clusters: usize) -> Value {
    let mut preview = preview(push, 1);
    preview["targets"] = (0..clusters).map(|number| target(&format!("c{number:02}"), u64::from(push))).collect();
    preview
}

/// So many comments of ours are seen, and each is of the push.
#[track_caller]
fn assert_said(world: &World, bot: &str, push: u32, comments: usize) {
    let ours = world.comments_by(bot);
    assert_eq!(ours.len(), comments, "push {push}: {ours:#?}");
    let said = format!("{push} created");
    assert!(ours.iter().all(|comment| comment.body.contains(&said)), "push {push}: {ours:#?}");
}

fn removes_or_hides(request: &&Request) -> bool {
    request.method == "DELETE" || request.path.contains("graphql")
}

#[test]
fn a_fleet_that_grows_and_shrinks_is_told_of_once() {
    for forge in FORGES {
        for manner in ["edit", "new"] {
            let (server, desk) = stage(forge);
            let mut asked = 0;
            for (push, clusters, comments) in [(1, 3, 3), (2, 21, 1), (3, 21, 1), (4, 3, 3), (5, 21, 1), (5, 21, 1)] {
                assert_posted(&desk.post_with(&fleet(push, clusters), &["--comment", manner]), forge);
                let mut world = server.world();
                assert_said(&world, forge.bot, push, comments);
                let writes = world.writes();
                let new = &writes[asked..];
                let first_gone = new.iter().position(removes_or_hides);
                let last_made = new.iter().rposition(|it| it.method == "POST" && it.path.contains(forge.comments));
                assert!(first_gone.is_none() || first_gone > last_made, "{} {manner} {push}: {new:#?}", forge.name);
                asked = writes.len();
                if push == 1 {
                    let body = world.comments[0].body.clone();
                    world.comment_by("mallory", &body);
                }
            }
            let world = server.world();
            assert_eq!(world.comments_by("mallory").len(), 1, "{} {manner}: what others wrote stays", forge.name);
        }
    }
}

/// The comment about all of them is called by the first one.
#[test]
fn a_fleet_whose_first_cluster_goes_is_told_of_once() {
    for forge in FORGES {
        for manner in ["edit", "new"] {
            let (server, desk) = stage(forge);
            let without = |push: u32, first: usize, clusters: usize| {
                let mut fleet = fleet(push, first + clusters);
                fleet["targets"].as_array_mut().unwrap().drain(..first);
                fleet
            };
            for (push, first, clusters, comments) in [(1, 0, 23, 1), (2, 1, 22, 1), (3, 0, 23, 1), (4, 1, 12, 12)] {
                assert_posted(&desk.post_with(&without(push, first, clusters), &["--comment", manner]), forge);
                assert_said(&server.world(), forge.bot, push, comments);
            }
            // Most of these are others.
            assert_posted(&desk.post_with(&fleet(5, 23), &["--comment", manner]), forge);
            assert_posted(&desk.post_with(&without(5, 20, 25), &["--comment", manner]), forge);
            assert_said(&server.world(), forge.bot, 5, 2);
        }
    }
}

/// Comments of each cluster would be believed, though nothing changes any more.
#[test]
fn what_was_said_of_few_clusters_does_not_stand_beside_many() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        assert_posted(&desk.post(&fleet(1, 3)), forge);
        let mut grown = fleet(2, 21);
        for target in grown["targets"].as_array_mut().unwrap() {
            target["verdict"] = "untouched".into();
        }
        assert_posted(&desk.post(&grown), forge);
        let world = server.world();
        let ours = world.comments_by(forge.bot);
        assert_eq!(ours.len(), 1, "{}: {ours:#?}", forge.name);
        assert!(ours[0].body.contains("21 clusters: nothing changed"), "{}: {ours:#?}", forge.name);
    }
}

/// A matrix has a job for each cluster, or for some.
#[test]
fn jobs_at_one_commit_leave_each_other_what_they_said() {
    for forge in FORGES {
        for manner in ["edit", "new"] {
            let (server, _) = stage(forge);
            for push in 1..=2 {
                let of = |cluster: &str, environment: &str| {
                    let mut preview = preview(push, 1);
                    preview["targets"] = json!([target(cluster, u64::from(push))]);
                    preview["targets"][0]["environment"] = environment.into();
                    preview
                };
                let previews = [of("a", "eu"), of("b", "eu"), of("a", "us"), fleet(push, 21)];
                let desks: Vec<Desk> = previews.iter().map(|_| Desk::new(forge, &server)).collect();
                let jobs = || desks.iter().zip(&previews);
                let running: Vec<_> =
                    jobs().map(|(desk, preview)| desk.begin(preview, &["--comment", manner])).collect();
                for job in running {
                    assert_posted(&ended(job), forge);
                }
                let writes = server.world().writes().len();
                for (desk, preview) in jobs() {
                    assert_posted(&desk.post_with(preview, &["--comment", manner]), forge);
                }
                let world = server.world();
                assert_eq!(world.writes().len(), writes, "{} {manner}: the same again changes nothing", forge.name);
                assert_said(&world, forge.bot, push, previews.len());
                let statuses = world.statuses.iter().filter(|it| it.commit == commit(push));
                let contexts: BTreeSet<&str> = statuses.map(|it| it.context.as_str()).collect();
                assert_eq!(contexts.len(), 3 + 21, "{} {manner}: {contexts:?}", forge.name);
            }
        }
    }
}

/// Jobs of one environment may have other definitions and other keys, and the status that a branch requires is one.
#[test]
fn the_status_of_signatures_is_the_worst_of_all_jobs() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let of = |cluster: &str, unsigned: &[&str]| {
            let mut preview = preview(1, 1);
            preview["targets"] = json!([target(cluster, 1)]);
            preview["signatures"] = json!({ "unsigned": unsigned });
            preview
        };
        let unsigned: &[&str] = &["commit 1234567 (more) changes a.yaml: nobody signed it"];
        let steps: [(&str, &[&str], bool); 8] = [
            ("a", &[], true),
            ("b", unsigned, false),
            ("a", &[], false),
            ("c", unsigned, false),
            ("b", &[], false),
            ("a", &[], false),
            ("c", &[], true),
            ("a", &[], true),
        ];
        for (number, (cluster, unsigned, is_good)) in steps.into_iter().enumerate() {
            assert_posted(&desk.post_with(&of(cluster, unsigned), &["--comment", "none"]), forge);
            let world = server.world();
            let shown = newest(&world, &commit(1));
            let signatures = shown.iter().find(|it| it.context == "cutlist/eu/signatures").unwrap();
            assert_eq!(signatures.state == "success", is_good, "{} {number}: {signatures:?}", forge.name);
            let parts = shown.iter().filter(|it| it.context.starts_with("cutlist/eu/signatures of "));
            let parts: BTreeSet<&str> = parts.map(|it| it.context.as_str()).collect();
            assert!(!parts.contains("cutlist/eu/signatures of a"), "{} {number}: {parts:?}", forge.name);
        }
    }
}

/// As long as there is time for it, and statuses come first all the same.
#[test]
fn more_than_a_forge_takes_in_a_minute_is_waited_for() {
    std::thread::scope(|scope| {
        for forge in FORGES {
            scope.spawn(move || {
                let (server, desk) = stage(forge);
                let begun = Instant::now();
                assert_posted(&desk.post_with(&fleet(1, 62), &["--max-wait", "4s"]), forge);
                assert!(begun.elapsed() >= Duration::from_secs(2), "{}: {:?}", forge.name, begun.elapsed());
                let world = server.world();
                assert_eq!((world.statuses.len(), world.comments.len()), (62, 1), "{}", forge.name);
                let are_statuses = world.writes()[..62].iter().all(|it| it.path.contains(forge.statuses));
                assert!(are_statuses, "{}: {:#?}", forge.name, world.writes());
            });
        }
    });
}
