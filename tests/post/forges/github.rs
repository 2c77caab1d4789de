//! GitHub, or GitHub Enterprise: below `/api/v3`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::super::server::{
    Answer, Comment, Request, Status, World, commits, listed, moment, newest, pull_request, pull_requests,
};
use super::{GITHUB, account, change, found, may_write};

pub fn answer(world: &mut World, request: &Request) -> Option<Answer> {
    let token = request.headers.get("authorization").and_then(|it| it.strip_prefix("Bearer ")).unwrap_or_default();
    let is_app = is_signed_by_the_app(world, token);
    let Some(account) = account(token, GITHUB.bot).or_else(|| is_app.then(String::new)) else {
        return Some(Answer::of(401, json!({ "message": "Bad credentials" })));
    };
    if !request.headers.contains_key("user-agent") || !request.headers.contains_key("x-github-api-version") {
        return Some(Answer::of(400, json!({ "message": "headers are missing" })));
    }
    if request.path == "/api/graphql" {
        return graphql(world, request, &account);
    }
    let path = request.path.strip_prefix("/api/v3")?;
    if let Some(made) = path.strip_prefix("/app/installations/42/") {
        return (is_app && made == "access_tokens").then(|| {
            world.tokens_made += 1;
            let body = json!({ "token": format!("made-by-the-app-{}", world.tokens_made), "expires_at": "2099-01-01T00:00:00Z" });
            Answer::of(201, body)
        });
    }
    // What is pushed to a fork is the fork's.
    if request.method == "GET" && ["/repos/acme/nodes/activity", "/repos/author/fork/activity"].contains(&path) {
        return Some(activity(world, request));
    }
    let Some(path) = path.strip_prefix("/repos/acme/nodes/") else { return of_team(world, path) };
    if path == "installation" {
        return is_app.then(|| Answer::of(200, json!({ "id": 42, "app_id": 1 })));
    }
    if is_app {
        return Some(Answer::of(401, json!({ "message": "a token of an App itself" })));
    }
    let parts: Vec<&str> = path.split('/').collect();
    match (request.method.as_str(), parts.as_slice()) {
        ("GET", ["pulls"]) => Some(pull_requests(world, request)),
        ("GET", ["pulls", "7"]) => pull_request(world),
        ("GET", ["pulls", "7", "commits"]) => Some(listed(commits(world), request, "per_page", 100)),
        ("GET", ["collaborators", user, "permission"]) => {
            Some(Answer::of(200, json!({ "permission": if may_write(user) { "write" } else { "read" } })))
        }
        ("GET", ["issues", "7", "comments"]) => {
            let items = world.comments.iter().map(|it| comment(world, it)).collect();
            Some(listed(items, request, "per_page", 100))
        }
        ("POST", ["issues", "7", "comments"]) => {
            let body = request.body["body"].as_str()?;
            if is_too_long(request) {
                return Some(too_long());
            }
            let id = world.comment_by(&account, body);
            world.comments.iter().find(|it| it.id == id).map(|it| Answer::of(201, comment(world, it)))
        }
        ("PATCH", ["issues", "comments", _]) if is_too_long(request) => Some(too_long()),
        ("PATCH" | "DELETE", ["issues", "comments", id]) => {
            change(world, request, (id, &account), "Resource not accessible by integration", comment)
        }
        ("GET", ["commits", commit, "status"]) => {
            let statuses: Vec<Value> = newest(world, commit)
                .iter()
                .map(|it| json!({ "context": it.context, "state": it.state, "description": it.description, "target_url": null }))
                .collect();
            Some(Answer::of(200, json!({ "sha": commit, "statuses": statuses })))
        }
        ("GET", ["commits", commit, "statuses"]) => {
            let set = world
                .all_of(commit)
                .map(|it| json!({ "context": it.context, "creator": { "login": it.by }, "created_at": moment(it.at) }));
            Some(listed(set.collect(), request, "per_page", 100))
        }
        ("POST", ["statuses", commit]) => set_status(world, request, commit, &account),
        _ => checks(world, request, &parts),
    }
}

/// A push by a deploy key is nobody's.
fn activity(world: &World, request: &Request) -> Answer {
    let actor = |name: &str| if name.is_empty() { Value::Null } else { json!({ "login": name }) };
    let item = |kind: &str, name: &str| json!({ "activity_type": kind, "actor": actor(name) });
    let pushes = world.pushers.iter().map(|name| item("push", name));
    listed(pushes.chain([item("branch_deletion", "writer")]).collect(), request, "per_page", 100)
}

fn checks(world: &mut World, request: &Request, parts: &[&str]) -> Option<Answer> {
    match (request.method.as_str(), parts) {
        ("GET", ["commits", commit, "check-runs"]) => {
            let name = request.query.get("check_name")?;
            let runs: Vec<&Value> =
                world.checks.iter().filter(|run| run["head_sha"] == **commit && run["name"] == name.as_str()).collect();
            Some(Answer::of(200, json!({ "total_count": runs.len(), "check_runs": runs })))
        }
        ("POST", ["check-runs"]) => {
            let mut run = request.body.clone();
            run["id"] = json!(world.id());
            world.checks.push(run.clone());
            Some(Answer::of(201, run))
        }
        ("PATCH", ["check-runs", id]) => {
            let id: u64 = id.parse().ok()?;
            let run = world.checks.iter_mut().find(|run| run["id"] == id)?;
            let more = request.body["output"]["annotations"].as_array()?.clone();
            run["output"]["annotations"].as_array_mut()?.extend(more);
            Some(Answer::of(200, run.clone()))
        }
        _ => None,
    }
}

/// Whether it is not seen, or somebody is not in it, answers alike.
fn of_team(world: &World, path: &str) -> Option<Answer> {
    let rest = path.strip_prefix("/orgs/acme/teams/platform")?;
    let is_seen = !world.hides_team;
    Some(match rest.strip_prefix("/memberships/") {
        Some(user) => {
            found((is_seen && world.team.contains(user)).then(|| json!({ "state": "active", "role": "member" })))
        }
        None => found(is_seen.then(|| json!({ "id": 9, "slug": "platform" }))),
    })
}

fn graphql(world: &mut World, request: &Request, account: &str) -> Option<Answer> {
    if request.body["query"].as_str()?.starts_with("query") {
        return Some(Answer::of(200, json!({ "data": { "viewer": { "login": account } } })));
    }
    let id: u64 = request.body["variables"]["id"].as_str()?.strip_prefix("node-")?.parse().ok()?;
    world.comments.iter_mut().find(|it| it.id == id)?.is_hidden = true;
    Some(Answer::of(200, json!({ "data": {} })))
}

fn comment(world: &World, comment: &Comment) -> Value {
    let [created, updated] = world.moments(comment);
    json!({ "id": comment.id, "node_id": format!("node-{}", comment.id), "body": comment.body,
            "user": { "login": comment.author, "id": 5 },
            "created_at": created, "updated_at": updated })
}

fn is_too_long(request: &Request) -> bool {
    request.body["body"].as_str().is_some_and(|body| body.chars().count() > 65_536)
}

fn too_long() -> Answer {
    Answer::of(
        422,
        json!({ "message": "Validation Failed", "errors": ["Body is too long (maximum is 65536 characters)"] }),
    )
}

fn set_status(world: &mut World, request: &Request, commit: &str, account: &str) -> Option<Answer> {
    let text = |name: &str| request.body[name].as_str().unwrap_or_default().to_owned();
    if text("description").chars().count() > 140 || text("context").chars().count() > 255 {
        return Some(Answer::of(422, json!({ "message": "description is too long (maximum is 140 characters)" })));
    }
    if [text("description"), text("context")].iter().any(|it| it.chars().any(|it| u32::from(it) > 0xffff)) {
        let message = "Validation Failed: description doesn't accept 4-byte Unicode";
        return Some(Answer::of(422, json!({ "message": message })));
    }
    if !["error", "failure", "pending", "success"].contains(&text("state").as_str()) {
        return Some(Answer::of(422, json!({ "message": "state is not included in the list" })));
    }
    let at = world.id();
    let status = Status {
        commit: commit.to_owned(),
        context: text("context"),
        state: text("state"),
        description: text("description"),
        by: account.to_owned(),
        at,
    };
    world.statuses.push(status);
    Some(Answer::of(201, json!({ "id": at, "creator": { "login": account } })))
}

/// Whether it is a JSON Web Token that one of the App's keys signed.
fn is_signed_by_the_app(world: &World, token: &str) -> bool {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    let Some((message, signature)) = token.rsplit_once('.') else { return false };
    let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else { return false };
    world.app_keys.iter().any(|key| {
        UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(message.as_bytes(), &signature).is_ok()
    })
}
