//! GitLab: below `/api/v4`.

use serde_json::{Value, json};

use super::super::server::{
    Answer, Comment, Request, Status, World, listed, moment, newest, pull_request, pull_requests,
};
use super::{GITLAB, account, change, found, may_write};

pub fn answer(world: &mut World, request: &Request) -> Option<Answer> {
    let token = request.headers.get("private-token").map(String::as_str).unwrap_or_default();
    let Some(account) = account(token, GITLAB.bot) else {
        return Some(Answer::of(401, json!({ "message": "401 Unauthorized" })));
    };
    if request.path == "/api/graphql" {
        let query = request.body["query"].as_str()?;
        return if query.contains("gid://gitlab/Note/") { edits(world, query) } else { commits(world, request) };
    }
    let path = request.path.strip_prefix("/api/v4")?;
    if path == "/user" {
        return Some(Answer::of(200, json!({ "id": 5, "username": account })));
    }
    if let Some(group) = path.strip_prefix("/groups/acme%2Fplatform") {
        let is_seen = !world.hides_team;
        return Some(match group.strip_prefix("/members/all/") {
            Some(id) => {
                let is_in = world.team.iter().any(|name| user_id(name).to_string() == id);
                found((is_seen && is_in).then(|| json!({ "state": "active", "access_level": 20 })))
            }
            None => found(is_seen.then(|| json!({ "id": 9, "full_path": "acme/platform" }))),
        });
    }
    let path = path.strip_prefix("/projects/acme%2Fnodes/")?;
    let parts: Vec<&str> = path.split('/').collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["merge_requests"]) => Some(pull_requests(world, request)),
        ("GET", ["merge_requests", "7"]) => {
            let mut answer = pull_request(world)?;
            if answer.body["state"] == "open" {
                answer.body["state"] = json!("opened");
            }
            Some(answer)
        }
        // Users are known by numbers.
        ("GET", ["members", "all", id]) => {
            let name =
                world.comments.iter().map(|it| it.author.clone()).find(|author| user_id(author).to_string() == *id)?;
            let level = if may_write(&name) { 30 } else { 20 };
            Some(Answer::of(200, json!({ "access_level": level, "state": "active" })))
        }
        ("GET", ["merge_requests", "7", "notes"]) => {
            let pushes = world.pushers.iter().map(|name| {
                json!({ "id": 900_000, "system": true, "body": "added 1 commit", "author": { "username": name, "id": 1 } })
            });
            let notes = pushes.chain(world.comments.iter().map(|it| comment(world, it)));
            Some(listed(notes.collect(), request, "per_page", 100))
        }
        ("POST", ["merge_requests", "7", "notes"]) => {
            let body = request.body["body"].as_str()?;
            if body.chars().count() > 1_000_000 {
                return Some(Answer::of(
                    400,
                    json!({ "message": { "note": ["is too long (maximum is 1000000 characters)"] } }),
                ));
            }
            let id = world.comment_by(&account, body);
            world.comments.iter().find(|it| it.id == id).map(|it| Answer::of(201, comment(world, it)))
        }
        ("PUT" | "DELETE", ["merge_requests", "7", "notes", id]) => {
            change(world, request, (id, &account), "403 Forbidden", comment)
        }
        ("GET", ["repository", "commits", commit, "statuses"]) => {
            let is_all = request.query.get("all").is_some_and(|it| it == "true");
            let shown = if is_all { world.all_of(commit).collect() } else { newest(world, commit) };
            let status = |it: &&Status| {
                json!({ "name": it.context, "status": it.state, "description": it.description, "target_url": null,
                        "author": { "username": it.by }, "created_at": moment(it.at) })
            };
            Some(listed(shown.iter().map(status).collect(), request, "per_page", 100))
        }
        ("POST", ["statuses", commit]) => set_status(world, request, commit, &account),
        _ => None,
    }
}

fn commits(world: &World, request: &Request) -> Option<Answer> {
    if request.body["variables"] != json!({ "path": "acme/nodes", "number": "7" }) {
        return None;
    }
    let address = |name: Option<&str>| format!("{}@example.com", name.unwrap_or("stranger"));
    let commit = |[author, committer]: [Option<&str>; 2]| {
        json!({ "sha": "c0ffee0000", "author": author.map(|name| json!({ "username": name })),
                "authorEmail": address(author), "committerEmail": address(committer).to_uppercase() })
    };
    let nodes: Vec<Value> = world.makers().into_iter().map(commit).collect();
    let commits = json!({ "commits": { "nodes": nodes } });
    Some(Answer::of(200, json!({ "data": { "project": { "mergeRequest": commits } } })))
}

/// Of each comment that is asked about, when its text was edited.
fn edits(world: &World, query: &str) -> Option<Answer> {
    let mut notes = serde_json::Map::new();
    for part in query.split("gid://gitlab/Note/").skip(1) {
        let id: u64 = part.split('"').next()?.parse().ok()?;
        let comment = world.comments.iter().find(|it| it.id == id)?;
        let edited = world.is_edited(comment).then_some("t1");
        notes.insert(format!("n{id}"), json!({ "lastEditedAt": edited }));
    }
    Some(Answer::of(200, json!({ "data": notes })))
}

fn set_status(world: &mut World, request: &Request, commit: &str, account: &str) -> Option<Answer> {
    let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_owned();
    let (context, state) = (text("name"), text("state"));
    if !["pending", "running", "success", "failed", "canceled", "skipped"].contains(&state.as_str()) {
        return Some(Answer::of(400, json!({ "error": "state does not have a valid value" })));
    }
    // Of a fork no branch has it, so it must be said where the status goes.
    let head = world.pull_requests.first().map_or(world.head.as_str(), |it| it["sha"].as_str().unwrap_or_default());
    if commit == head && request.body.get("ref").is_none() && request.body.get("pipeline_id").is_none() {
        return Some(Answer::of(404, json!({ "message": "404 References for commit Not Found" })));
    }
    if text("description").chars().count() > 255 {
        return Some(Answer::of(
            400,
            json!({ "message": { "description": ["is too long (maximum is 255 characters)"] } }),
        ));
    }
    if newest(world, commit).iter().any(|it| it.context == context && it.state == state) {
        let message = "Cannot transition status via :success from :success (Reason(s): Status cannot transition)";
        return Some(Answer::of(400, json!({ "message": message })));
    }
    let (description, at) = (text("description"), world.id());
    world.statuses.push(Status { commit: commit.to_owned(), context, state, description, by: account.to_owned(), at });
    Some(Answer::of(201, json!({ "id": at, "author": { "username": account } })))
}

fn comment(world: &World, comment: &Comment) -> Value {
    let [created, mut updated] = world.moments(comment);
    if world.reacted.contains(&comment.id) {
        updated = json!("t2");
    }
    json!({ "id": comment.id, "body": comment.body, "author": { "username": comment.author, "id": user_id(&comment.author) },
            "created_at": created, "updated_at": updated })
}

/// Another number for each name of these tests.
fn user_id(name: &str) -> u32 {
    name.bytes().fold(100, |id, byte| id.wrapping_mul(3).wrapping_add(u32::from(byte)))
}
