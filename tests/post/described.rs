//! Each request to GitHub is held to its published description, of which `github/requests.json` has what is asked here.

use serde_json::{Value, json};

use super::forges::GITHUB;
use super::previews::{Desk, commit, preview};
use super::server::{Request, Server, decoded};
use super::{assert_posted, stage};

fn description() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/post/github/requests.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What the description has against a request.
fn complaints(description: &Value, request: &Request) -> Vec<String> {
    let path = request.path.strip_prefix("/api/v3").unwrap_or(&request.path);
    let parts: Vec<&str> = path.split('/').collect();
    let requests = description["requests"].as_object().unwrap();
    let found = requests.iter().find_map(|(name, operation)| {
        let (method, template) = name.split_once(' ').unwrap();
        let template: Vec<&str> = template.split('/').collect();
        let fits = method == request.method
            && template.len() == parts.len()
            && template.iter().zip(&parts).all(|(wanted, part)| wanted.starts_with('{') || wanted == part);
        fits.then_some((template, operation))
    });
    let Some((template, operation)) = found else { return vec![format!("{} {path} is not described", request.method)] };
    let in_path = template.iter().zip(&parts).filter_map(|(wanted, part)| {
        Some((format!("path {}", wanted.strip_prefix('{')?.strip_suffix('}')?), decoded(part)))
    });
    let in_query = request.query.iter().map(|(name, value)| (format!("query {name}"), value.clone()));
    let mut complaints = Vec::new();
    for (name, value) in in_path.chain(in_query) {
        let Some(parameter) = operation["parameters"].get(&name) else {
            complaints.push(format!("{path}: no parameter {name}"));
            continue;
        };
        let value = match parameter["schema"]["type"].as_str() {
            Some("integer") => value.parse::<i64>().map_or(json!(value), |it| json!(it)),
            _ => json!(value),
        };
        complaints.extend(against(&parameter["schema"], &value).map(|it| format!("{path}: {name}: {it}")));
    }
    match &operation["body"] {
        Value::Null if !request.body.is_null() => complaints.push(format!("{path}: takes no body")),
        Value::Null => {}
        schema => complaints.extend(against(schema, &request.body).map(|it| format!("{path}: {it}"))),
    }
    complaints
}

fn against(schema: &Value, value: &Value) -> Option<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(value).next().map(|error| error.to_string())
}

pub fn complaints_of(server: &Server) -> Vec<String> {
    let description = description();
    let world = server.world();
    // GraphQL has a description of its own.
    let rest = world.requests.iter().filter(|it| it.path != "/api/graphql");
    rest.flat_map(|request| complaints(&description, request)).collect()
}

#[test]
fn every_request_is_as_github_describes_it() {
    let (server, desk) = stage(GITHUB);
    let mut long = preview(1, 1);
    let cause = |line: u32| json!({ "path": "a.yaml", "line": line, "severity": "error", "text": "é".repeat(70_000) });
    long["targets"][0]["causes"] = (1..=60).map(cause).collect();
    long["targets"][0]["headline"] = "long ".repeat(400).into();
    let section = json!({ "title": "a", "markdown": "é".repeat(70_000), "shorter": ["é".repeat(65_000)] });
    long["targets"][0]["markdown"]["sections"] = json!([section]);
    for (preview, manner) in [(long, "edit"), (preview(2, 2), "edit"), (preview(2, 2), "edit"), (preview(3, 3), "new")]
    {
        assert_posted(
            &desk.post_with(&preview, &["--comment", manner, "--details-url", "https://ci.example/1"]),
            GITHUB,
        );
    }
    let body = server.world().comments[0].body.clone();
    server.world().comment_by(GITHUB.bot, &body);
    assert_posted(&desk.post(&preview(4, 4)), GITHUB);
    assert_eq!(complaints_of(&server), [""; 0]);
    let methods: Vec<String> = server.world().requests.iter().map(|it| it.method.clone()).collect();
    assert!(
        ["GET", "POST", "PATCH", "DELETE"].iter().all(|it| methods.iter().any(|method| method == it)),
        "{methods:?}"
    );
}

/// The description is what complains, and not this test.
#[test]
fn the_description_refuses_what_github_refuses() {
    let request = |path: &str, body: Value| Request {
        method: "POST".to_owned(),
        path: format!("/repos/acme/nodes{path}"),
        query: std::collections::BTreeMap::new(),
        headers: std::collections::BTreeMap::new(),
        body,
    };
    let description = description();
    let annotation =
        json!({ "path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "x" });
    let check = |annotations: usize, summary: usize| {
        json!({ "name": "a", "head_sha": commit(1), "status": "completed", "conclusion": "success",
                "output": { "title": "a", "summary": "x".repeat(summary), "annotations": vec![annotation.clone(); annotations] } })
    };
    let complains = |path: &str, body: Value| !complaints(&description, &request(path, body)).is_empty();
    assert!(!complains("/check-runs", check(50, 65_535)));
    assert!(complains("/check-runs", check(51, 1)));
    assert!(complains("/check-runs", check(1, 65_536)));
    assert!(complains("/statuses/abc", json!({ "state": "warning" })));
    assert!(complains("/issues/7/comments", json!({ "text": "a" })));
    assert!(complains("/issues/7/reactions", json!({})));
}

#[test]
fn requests_of_an_app_are_described_as_well() {
    let description = description();
    let (server, desk): (Server, Desk) = stage(GITHUB);
    let refused = desk.post_with(&preview(1, 1), &["--app-id", "1", "--app-key-file", "/nowhere"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(server.world().requests.is_empty());
    for name in ["GET /repos/{owner}/{repo}/installation", "POST /app/installations/{installation_id}/access_tokens"] {
        assert!(description["requests"].get(name).is_some());
    }
}
