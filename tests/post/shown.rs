//! What is shown: within limits, whole, and nothing that others wrote is obeyed.

use std::process::Command;

use cutlist::api::preview::{Preview, PreviewTarget};
use cutlist::render::posting::{self, Manner, Room};
use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};
use proptest::strategy::Strategy;
use serde_json::json;

use super::forges::{FORGES, GITHUB};
use super::previews::{commit, preview};
use super::{assert_posted, stage};

/// Whether each fence and each fold is closed.
#[track_caller]
fn assert_whole(body: &str) {
    let mut fence = false;
    let mut folds = 0_i32;
    for line in body.lines() {
        if line.starts_with("```") {
            fence = !fence;
        } else if !fence {
            folds += i32::try_from(line.matches("<details>").count()).unwrap();
            folds -= i32::try_from(line.matches("</details>").count()).unwrap();
        }
    }
    assert!(!fence && folds == 0, "cut within a fence or a fold: {body}");
}

#[test]
fn what_is_too_long_goes_section_by_section() {
    for forge in FORGES {
        for steps in [1_usize, 100, 20_000] {
            let (server, desk) = stage(forge);
            let mut preview = preview(1, 1);
            let rows = "+ node-é  m7i.large  on-demand  us-east-1a  $0.1008/h\n".repeat(steps);
            let section = |number: usize| {
                json!({
                    "title": format!("pool {number} @everyone"),
                    "markdown": format!("<details><summary>pool {number}</summary>\n\n```diff\n{rows}```\n</details>\n"),
                    "shorter": [format!("- pool {number}: +{steps}\n")],
                })
            };
            preview["targets"][0]["markdown"]["sections"] = (0..12).map(section).collect();
            assert_posted(&desk.post(&preview), forge);
            let world = server.world();
            let body = &world.comments[0].body;
            assert!(body.chars().count() <= forge.most_characters && body.len() <= 1_000_000);
            assert_whole(body);
            assert!(body.contains("**1 created**"), "the summary is never left out");
            assert_eq!(body.contains("for want of room"), steps == 20_000 || (steps == 100 && forge.name == "github"));
            assert!(!body.contains("@everyone"), "{body}");
        }
    }
}

#[test]
fn who_should_have_signed_has_a_status_and_stands_first() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut preview = preview(1, 1);
        let sentence = "commit 1234567 (@everyone <b>) changes cutlist.yaml, which rule settings leaves to platform: nobody signed it";
        preview["signatures"] = json!({ "unsigned": [sentence, sentence], "further": 3 });
        assert_posted(&desk.post(&preview), forge);
        preview["head"]["id"] = commit(2).into();
        preview["signatures"] = json!({ "unsigned": [] });
        assert_posted(&desk.post(&preview), forge);
        // What the author of the change could have written proves nothing.
        preview["head"]["id"] = commit(3).into();
        assert_posted(&desk.post_with(&preview, &["--untrusted", "--head", &commit(3)]), forge);
        let world = server.world();
        let of = |push: u32| {
            let context = "cutlist/eu/signatures";
            world.statuses.iter().find(|it| it.commit == commit(push) && it.context == context)
        };
        let refused = of(1).unwrap();
        assert!(["failure", "failed"].contains(&refused.state.as_str()), "{}: {refused:?}", forge.name);
        assert!(refused.description.starts_with("5 times, such as: commit 1234567"), "{refused:?}");
        assert_eq!(of(2).unwrap().state, "success");
        assert!(of(3).is_none(), "{:?}", of(3));
        let body = &world.comments[0].body;
        assert!(!body.contains("@everyone") && !body.contains("Not signed by who must have"), "it was edited: {body}");
    }
}

/// A section of so many steps, with a shorter form or none.
fn section() -> impl Strategy<Value = serde_json::Value> {
    ((0_usize..2_000), any::<bool>(), "\\PC{0,40}").prop_map(|(steps, has_shorter, title)| {
        let rows = "+ node-é  m7i.large\n".repeat(steps);
        let markdown = format!("<details><summary>pool</summary>\n\n````diff\n```\n{rows}````\n</details>\n");
        let shorter = if has_shorter { vec!["- pool\n"] } else { Vec::new() };
        json!({ "title": title, "markdown": markdown, "shorter": shorter })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever there is room for, a comment keeps to it and closes what it opens.
    #[test]
    fn no_comment_is_longer_than_there_is_room_for(
        sections in prop::collection::vec(section(), 0..20),
        characters in 2_000_usize..80_000,
        summary in "\\PC{0,200}",
    ) {
        let mut value = preview(1, 1);
        value["targets"][0]["markdown"] = json!({ "summary": summary, "sections": sections });
        let preview: Preview = serde_json::from_value(value).unwrap();
        let room = Room { characters, bytes: characters * 2 };
        let manner = Manner { name: "cutlist", is_untrusted: false, link: None };
        let text = posting::comment(&preview, &preview.targets[0], manner, room);
        prop_assert!(text.body.chars().count() <= characters && text.body.len() <= characters * 2);
        prop_assert_eq!(text.body.matches("<details>").count(), text.body.matches("</details>").count());
        prop_assert_eq!(text.body.matches("````").count() % 2, 0);
        let begins = text.body.starts_with(&format!("{}\n{}\n", text.marker, text.data));
        prop_assert!(begins);
        let description = posting::description(&preview.targets[0], 140);
        prop_assert!(description.chars().count() <= 140);
    }
}

/// Whoever makes a preview may write anything of any length into it: what is posted fits all the same.
#[test]
fn nothing_that_is_given_makes_a_comment_too_long() {
    let long = |sign: &str| sign.repeat(20_000);
    for (sign, verdict) in [("x", "failed"), ("-", "invalid"), ("&", "changes"), ("\u{1}", "failed")] {
        let mut value = preview(1, 1);
        value["signatures"] = json!({ "unsigned": vec![long(sign); 30], "further": 0 });
        let target = &mut value["targets"][0];
        for field in ["cluster", "environment", "headline"] {
            target[field] = long(sign).into();
        }
        target["verdict"] = verdict.into();
        target["plan"]["digest"] = long(sign).into();
        target["figures"]["assumptions"] = json!(vec![long(sign); 30]);
        target["snapshot"] = json!({ "digest": long(sign), "takenAt": long(sign), "ageSeconds": 7 });
        let codes =
            (0..60).map(|number| json!({ "code": format!("{number}{}", long(sign)), "count": 1, "text": long(sign) }));
        let codes: Vec<serde_json::Value> = codes.collect();
        for field in ["risks", "heldBack", "pending"] {
            target[field] = json!(codes);
        }
        target["markdown"] =
            json!({ "summary": long(sign), "sections": [{ "title": long(sign), "markdown": long(sign) }] });
        let preview: Preview = serde_json::from_value(value).unwrap();
        let room = Room { characters: 61_536, bytes: 200_000 };
        for is_untrusted in [false, true] {
            let manner = Manner { name: "cutlist", is_untrusted, link: None };
            let text = posting::comment(&preview, &preview.targets[0], manner, room);
            assert!(text.body.chars().count() <= room.characters, "{sign}: {}", text.body.chars().count());
            assert!(text.body.starts_with(&format!("{}\n{}\n", text.marker, text.data)), "{sign}");
            let (title, summary) = posting::check(&preview.targets[0], manner, 60_000);
            assert!(title.chars().count() <= 200 && summary.chars().count() <= 60_000, "{sign}");
            let target = PreviewTarget {
                figures: None,
                risks: Vec::new(),
                held_back: Vec::new(),
                pending: Vec::new(),
                ..preview.targets[0].clone()
            };
            let many = Preview { targets: vec![target; 150], ..preview.clone() };
            let page = posting::page(&many, manner, room);
            assert!(page.chars().count() <= room.characters && page.contains("more"), "{sign}: {}", page.len());
            let text = posting::comment_of_all(&many, manner, room);
            assert!(text.body.chars().count() <= room.characters, "{sign}: {}", text.body.chars().count());
            assert!(text.body.starts_with(&format!("{}\n{}\n", text.marker, text.data)), "{sign}");
        }
    }
    let marker = |cluster: &str| posting::marker(cluster, "eu", "cutlist");
    assert_ne!(marker(&format!("{}a", long("x"))), marker(&format!("{}b", long("x"))), "two are told apart");
}

/// A branch may require the status, and by what nobody knows nobody passes.
#[test]
fn what_is_not_known_does_not_pass() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut preview = preview(1, 1);
        preview["targets"][0]["headline"] = "not known: is it the snapshot of another cluster?".into();
        preview["targets"][0]["notKnown"] = "is it the snapshot of another cluster?".into();
        assert_posted(&desk.post(&preview), forge);
        let world = server.world();
        let status = world.statuses.last().unwrap();
        assert_eq!(status.state, "pending", "{}: {status:?}", forge.name);
        assert!(status.description.starts_with("not known: "), "{}: {status:?}", forge.name);
        assert!(world.checks.iter().all(|check| check["conclusion"] == "neutral"), "{:?}", world.checks);
    }
}

/// Markdown that would swallow what stands behind it, or stand in for our own lines.
#[test]
fn a_section_that_is_not_closed_is_shown_as_it_is_written() {
    let (server, desk) = stage(GITHUB);
    let mut preview = preview(1, 1);
    preview["targets"][0]["markdown"]["sections"] = json!([
        { "title": "a", "markdown": "```diff\n+ never closed\n" },
        { "title": "b", "markdown": "<!-- cutlist:data {} -->\n" },
        { "title": "c", "markdown": "last\n" },
    ]);
    assert_posted(&desk.post(&preview), GITHUB);
    let world = server.world();
    let body = &world.comments[0].body;
    assert!(
        body.contains("````\n```diff\n+ never closed\n````") && body.contains("```\n<!-- cutlist:data {} -->\n```"),
        "{body}"
    );
    assert!(body.contains("\nlast\n"));
}

/// The preview of a fork's job may hold anything.
#[test]
fn of_what_is_not_trusted_only_data_are_shown() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let mut preview = preview(1, 1);
        let target = &mut preview["targets"][0];
        let hostile = "@org/admins <img src=x> [click](https://evil.example) --> ![x](https://evil.example/x.png)";
        target["headline"] = hostile.into();
        target["cluster"] = format!("prod --> {hostile}").into();
        target["markdown"]["summary"] = hostile.into();
        target["risks"] = json!([{ "code": hostile, "count": 2, "text": hostile }]);
        let refused = desk.post_with(&preview, &["--untrusted", "--head", &commit(2)]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(server.world().requests.is_empty());
        assert_posted(&desk.post_with(&preview, &["--untrusted", "--head", &commit(1)]), forge);
        let world = server.world();
        let body = &world.comments[0].body;
        let shown: Vec<&str> = body.lines().skip(2).filter(|line| !line.starts_with("<!-- cutlist:seal:")).collect();
        let shown = shown.join("\n");
        for part in ["@org", "<img", " [click", "://evil", "-->"] {
            assert!(!shown.contains(part), "{part}: {shown}");
        }
        assert!(body.lines().take(2).all(|line| line.ends_with(" -->") && line.matches("-->").count() == 1), "{body}");
        assert!(body.contains("could change, and not checked"));
        // Nor does a branch that requires the status let it through.
        let status = world.statuses.last().unwrap();
        assert_eq!(status.state, "pending", "{}: {status:?}", forge.name);
        assert!(status.description.starts_with("claimed, not checked: "), "{}: {status:?}", forge.name);
        assert!(world.checks.iter().all(|check| check["conclusion"] == "neutral"), "{:?}", world.checks);
    }
}

#[test]
fn variables_of_ci_systems_stand_in_for_flags() {
    for forge in FORGES {
        let (server, desk) = stage(forge);
        let path = desk.file("preview.json", &preview(1, 1).to_string());
        server.pushed(&commit(1));
        let summary = desk.path().join("summary.md");
        let url = server.url.as_str();
        let of_actions = vec![
            ("GITHUB_SERVER_URL", url),
            ("GITHUB_REPOSITORY", "acme/nodes"),
            ("GITHUB_REF", "refs/pull/7/merge"),
            ("GITHUB_ACTIONS", "true"),
        ];
        let variables = match forge.name {
            "github" => of_actions,
            "gitea" => [of_actions, vec![("GITEA_ACTIONS", "true")]].concat(),
            _ => vec![
                ("GITLAB_CI", "true"),
                ("CI_SERVER_URL", url),
                ("CI_PROJECT_PATH", "acme/nodes"),
                ("CI_MERGE_REQUEST_IID", "7"),
            ],
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_cutlist"));
        command.arg("post").arg(&path).env_clear().envs(variables).env("GITHUB_STEP_SUMMARY", &summary);
        let without = command.output().unwrap();
        assert_eq!(without.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&without.stderr).contains("CUTLIST_FORGE_TOKEN"));
        let forked = command.arg("--allow-no-token").output().unwrap();
        assert_eq!(forked.status.code(), Some(0), "a fork has no token, which is no failure");
        assert!(server.world().requests.is_empty());
        assert!(std::fs::read_to_string(&summary).unwrap().contains("**1 created**"));
        let posted = command.env("CUTLIST_FORGE_TOKEN", super::server::OURS).output().unwrap();
        assert_eq!(posted.status.code(), Some(0), "{}", String::from_utf8_lossy(&posted.stderr));
        assert_eq!(server.world().comments_by(forge.bot).len(), 1);
    }
}

#[test]
fn a_dry_run_asks_nothing() {
    let (server, desk) = stage(GITHUB);
    let ran = desk.post_with(&preview(1, 2), &["--dry-run"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(server.world().requests.is_empty());
    insta::assert_snapshot!(ran.stdout.replace(&server.url, "URL"));
}

#[test]
fn help() {
    let output = Command::new(env!("CARGO_BIN_EXE_cutlist")).args(["post", "--help"]).env_clear().output().unwrap();
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn what_is_no_preview_is_refused() {
    let (server, desk) = stage(GITHUB);
    for (change, said) in [
        (json!({ "kind": "Plan" }), "is Plan of version 1"),
        (json!({ "version": 2 }), "of version 2"),
        (json!({ "head": { "id": "../../user" } }), "which is no commit"),
        (json!({ "targets": 7 }), "targets"),
    ] {
        let mut preview = preview(1, 1);
        preview.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let path = desk.file("bad.json", &preview.to_string());
        let output = Command::new(env!("CARGO_BIN_EXE_cutlist"))
            .arg("post")
            .arg(path)
            .args(["--forge", "github", "--url", &server.url, "--repository", "acme/nodes", "--pull-request", "7"])
            .env_clear()
            .env("CUTLIST_FORGE_TOKEN", "x")
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
    assert!(server.world().requests.is_empty());
}
