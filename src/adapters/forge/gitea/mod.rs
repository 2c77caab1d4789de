//! Gitea, and Forgejo, which has the same API: version 1 below `/api/v1`. Tried against Gitea 1.26.
//!
//! Source: the description that every Gitea serves at `/swagger.v1.json`.

use hyper::Method;
use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::dialect::{
    Comment, Dialect, Found, HookHeaders, HookProof, PullRequest, RepositoryName, Right, State, Status, Table,
    Variables, text,
};
use super::github;
use super::http::{Address, Credential, Request, Secret, segment};

const TABLE: Table = Table {
    // Comments of 5 MB were taken; people read no more than this, and its page renders no more in reasonable time.
    comment_characters: 250_000,
    comment_bytes: 1_000_000,
    // 1,000 were taken; lines of a page are shorter.
    status_characters: 255,
    context_characters: 255,
    check: None,
};

pub struct Gitea {
    /// `/repos/OWNER/NAME`
    repository: String,
}

impl Gitea {
    pub fn new(repository: &RepositoryName) -> Self {
        Self { repository: format!("/repos/{}/{}", segment(&repository.owner), segment(&repository.name)) }
    }

    pub fn api(address: &Address) -> Address {
        address.below("/api/v1")
    }
}

impl Dialect for Gitea {
    fn table(&self) -> &'static Table {
        &TABLE
    }

    fn credential(&self, token: &Secret) -> Credential {
        Credential { header: AUTHORIZATION, value: Secret::new(format!("token {}", token.expose())) }
    }

    fn account(&self) -> Request {
        Request::get("/user")
    }

    fn read_account(&self, answer: &Value) -> Option<String> {
        answer["login"].as_str().map(str::to_owned)
    }

    fn pull_request(&self, number: u64) -> Request {
        Request::get(format!("{}/pulls/{number}", self.repository))
    }

    /// 50 on a page are the most.
    fn open_pull_requests(&self, page: u32) -> Request {
        Request::get(format!("{}/pulls?state=open&limit=50&page={page}", self.repository))
    }

    fn read_pull_request(&self, answer: &Value) -> Option<PullRequest> {
        let [head, base] = [&answer["head"], &answer["base"]];
        Some(PullRequest {
            number: answer["number"].as_u64()?,
            author: text(&answer["user"]["login"]),
            is_open: answer["state"] == "open",
            head: head["sha"].as_str()?.to_owned(),
            head_reference: text(&head["ref"]),
            is_fork: head["repo_id"] != base["repo_id"],
            base_reference: text(&base["ref"]),
            merged_as: answer["merged_at"].as_str().and(answer["merge_commit_sha"].as_str()).map(str::to_owned),
            updated: text(&answer["updated_at"]),
        })
    }

    fn head_reference(&self, number: u64) -> String {
        format!("refs/pull/{number}/head")
    }

    fn comments(&self, number: u64, page: u32) -> Request {
        Request::get(format!("{}/issues/{number}/comments?limit=50&page={page}", self.repository))
    }

    fn read_comment(&self, answer: &Value) -> Option<Comment> {
        Some(Comment {
            id: answer["id"].as_u64()?,
            hidden_by: String::new(),
            author: text(&answer["user"]["login"]),
            author_id: answer["user"]["id"].as_u64().unwrap_or_default(),
            body: text(&answer["body"]),
            is_edited: answer["created_at"] != answer["updated_at"],
        })
    }

    fn create_comment(&self, number: u64, body: &str) -> Request {
        Request::create(format!("{}/issues/{number}/comments", self.repository), json!({ "body": body }))
    }

    fn edit_comment(&self, _number: u64, id: u64, body: &str) -> Request {
        let path = format!("{}/issues/comments/{id}", self.repository);
        Request::change(Method::PATCH, path, Some(json!({ "body": body })))
    }

    fn remove_comment(&self, _number: u64, id: u64) -> Request {
        Request::change(Method::DELETE, format!("{}/issues/comments/{id}", self.repository), None)
    }

    fn statuses(&self, commit: &str, page: u32) -> Request {
        Request::get(format!("{}/commits/{}/status?limit=50&page={page}", self.repository, segment(commit)))
    }

    fn read_statuses(&self, answer: &Value) -> Vec<Status> {
        let known = |status: &Value| {
            Some(Status {
                context: text(&status["context"]),
                state: match status["status"].as_str()? {
                    "pending" => State::Pending,
                    "success" => State::Success,
                    "failure" => State::Failure,
                    _ => State::Error,
                },
                description: text(&status["description"]),
                link: status["target_url"].as_str().filter(|link| !link.is_empty()).map(str::to_owned),
            })
        };
        answer["statuses"].as_array().into_iter().flatten().filter_map(known).collect()
    }

    fn set_status(&self, commit: &str, status: &Status) -> Request {
        let state = match status.state {
            State::Pending => "pending",
            State::Success => "success",
            State::Failure => "failure",
            State::Error => "error",
        };
        let link = status.link.as_deref().unwrap_or_default();
        let body =
            json!({ "state": state, "context": status.context, "description": status.description, "target_url": link });
        Request::create(format!("{}/statuses/{}", self.repository, segment(commit)), body)
    }

    fn permission(&self, comment_author: &str, _author_id: u64) -> Request {
        Request::get(format!("{}/collaborators/{}/permission", self.repository, segment(comment_author)))
    }

    fn read_permission(&self, answer: &Value) -> Right {
        match answer["permission"].as_str() {
            Some("admin" | "owner") => Right::Admin,
            Some("write") => Right::Write,
            Some("read") => Right::Read,
            _ => Right::None,
        }
    }

    /// Gitea sends headers by GitHub's names as well; its own are what counts.
    fn hook<'a>(&self, header: &dyn Fn(&str) -> Option<&'a str>) -> HookHeaders<'a> {
        let event = header("x-gitea-event").unwrap_or_default();
        HookHeaders {
            proof: header("x-gitea-signature").map_or(HookProof::Missing, HookProof::Signature),
            delivery: header("x-gitea-delivery").unwrap_or_default(),
            is_about_changes: event == "push" || event.starts_with("pull_request") || event == "issue_comment",
        }
    }
}

/// What Gitea's and Forgejo's runners say of their job: the variables of GitHub Actions, and their own name.
pub fn found(variable: Variables<'_>) -> Option<Found> {
    let is_ours = ["GITEA_ACTIONS", "FORGEJO_ACTIONS"].iter().any(|name| variable(name).as_deref() == Some("true"));
    is_ours.then(|| github::of_actions(variable))
}
