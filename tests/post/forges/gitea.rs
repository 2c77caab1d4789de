//! Gitea: below `/api/v1`.

use serde_json::{Value, json};

use super::super::server::{
    Answer, Comment, Request, Status, World, commits, listed, moment, newest, page, pull_request, pull_requests,
};
use super::{GITEA, account, change, found, may_write};

pub fn answer(world: &mut World, request: &Request) -> Option<Answer> {
    let token = request.headers.get("authorization").and_then(|it| it.strip_prefix("token ")).unwrap_or_default();
    let Some(account) = account(token, GITEA.bot) else {
        return Some(Answer::of(401, json!({ "message": "user does not exist [uid: 0, name: ]" })));
    };
    let path = request.path.strip_prefix("/api/v1")?;
    if path == "/user" {
        return Some(Answer::of(200, json!({ "id": 5, "login": account })));
    }
    if path == "/orgs/acme/teams/search" {
        // More than was asked for: names that have the text in them.
        let named = |id: u32, name: &str| json!({ "id": id, "name": name });
        let teams =
            if world.hides_team { Vec::new() } else { vec![named(8, "platform-readers"), named(9, "Platform")] };
        return Some(Answer::of(200, json!({ "ok": true, "data": teams })));
    }
    if let Some(user) = path.strip_prefix("/teams/9/members/") {
        return Some(found(world.team.contains(user).then(|| json!({ "login": user }))));
    }
    let path = path.strip_prefix("/repos/acme/nodes/")?;
    let parts: Vec<&str> = path.split('/').collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["pulls"]) => Some(pull_requests(world, request)),
        ("GET", ["pulls", "7"]) => pull_request(world),
        ("GET", ["pulls", "7", "commits"]) => Some(listed(commits(world), request, "limit", 50)),
        ("GET", ["issues", "7", "timeline"]) => {
            let pushes = world.pushers.iter().map(|name| json!({ "type": "pull_push", "user": { "login": name } }));
            let said = json!({ "type": "comment", "user": { "login": "writer" } });
            let items = vec![said; 60].into_iter().chain(pushes).collect();
            // Whole where no page is asked for; and a page does not say whether another follows.
            let shown = if request.query.contains_key("page") { page(items, request, "limit", 50).0 } else { items };
            Some(Answer::of(200, Value::Array(shown)))
        }
        ("GET", ["collaborators", user, "permission"]) => {
            Some(Answer::of(200, json!({ "permission": if may_write(user) { "write" } else { "read" } })))
        }
        ("GET", ["issues", "7", "comments"]) => {
            Some(listed(world.comments.iter().map(|it| comment(world, it)).collect(), request, "limit", 50))
        }
        ("POST", ["issues", "7", "comments"]) => {
            let id = world.comment_by(&account, request.body["body"].as_str()?);
            world.comments.iter().find(|it| it.id == id).map(|it| Answer::of(201, comment(world, it)))
        }
        ("PATCH" | "DELETE", ["issues", "comments", id]) => {
            change(world, request, (id, &account), "user should have permission to edit", comment)
        }
        ("GET", ["commits", commit, "status"]) => {
            let statuses: Vec<Value> = newest(world, commit)
                .iter()
                .map(|it| json!({ "context": it.context, "status": it.state, "description": it.description, "target_url": "" }))
                .collect();
            // Nothing at all where there is no status.
            let statuses = if statuses.is_empty() { Value::Null } else { Value::Array(statuses) };
            Some(Answer::of(200, json!({ "sha": commit, "statuses": statuses })))
        }
        ("GET", ["commits", commit, "statuses"]) => {
            let set = world
                .all_of(commit)
                .map(|it| json!({ "context": it.context, "creator": { "login": it.by }, "created_at": moment(it.at) }));
            Some(listed(set.collect(), request, "limit", 50))
        }
        ("POST", ["statuses", commit]) => {
            let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_owned();
            let state = text("state");
            if !["pending", "success", "error", "failure", "warning", "skipped"].contains(&state.as_str()) {
                return Some(Answer::of(422, json!({ "message": "no such state" })));
            }
            let at = world.id();
            let status = Status {
                commit: (*commit).to_owned(),
                context: text("context"),
                state,
                description: text("description"),
                by: account.clone(),
                at,
            };
            world.statuses.push(status);
            Some(Answer::of(201, json!({ "id": at, "creator": { "login": account } })))
        }
        _ => None,
    }
}

fn comment(world: &World, comment: &Comment) -> Value {
    let [created, updated] = world.moments(comment);
    json!({ "id": comment.id, "body": comment.body, "user": { "login": comment.author, "id": 5 },
            "created_at": created, "updated_at": updated })
}
