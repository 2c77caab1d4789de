//! What Gitea took over from GitHub: paths below `/repos/OWNER/NAME`, and the words of their answers.

use hyper::Method;
use serde_json::{Value, json};

use super::dialect::{Comment, PullRequest, RepositoryName, SetStatus, State, moment, text};
use super::http::{Request, segment};

/// `/repos/OWNER/NAME`
pub(super) struct Paths(String);

impl Paths {
    pub fn of(repository: &RepositoryName) -> Self {
        Self(format!("/repos/{}/{}", segment(&repository.owner), segment(&repository.name)))
    }

    pub fn root(&self) -> &str {
        &self.0
    }

    pub fn pull_request(&self, number: u64) -> Request {
        Request::get(format!("{}/pulls/{number}", self.0))
    }

    /// Comments on a pull request are those of the issue that it is, too. `query`: how pages are asked for.
    pub fn comments(&self, number: u64, query: &str) -> Request {
        Request::get(format!("{}/issues/{number}/comments?{query}", self.0))
    }

    pub fn commits(&self, number: u64, query: &str) -> Request {
        Request::get(format!("{}/pulls/{number}/commits?{query}", self.0))
    }

    pub fn create_comment(&self, number: u64, body: &str) -> Request {
        Request::create(format!("{}/issues/{number}/comments", self.0), json!({ "body": body }))
    }

    pub fn edit_comment(&self, id: u64, body: &str) -> Request {
        Request::change(Method::PATCH, format!("{}/issues/comments/{id}", self.0), Some(json!({ "body": body })))
    }

    pub fn remove_comment(&self, id: u64) -> Request {
        Request::change(Method::DELETE, format!("{}/issues/comments/{id}", self.0), None)
    }

    pub fn statuses(&self, commit: &str, query: &str) -> Request {
        Request::get(format!("{}/commits/{}/status?{query}", self.0, segment(commit)))
    }

    pub fn all_statuses(&self, commit: &str, query: &str) -> Request {
        Request::get(format!("{}/commits/{}/statuses?{query}", self.0, segment(commit)))
    }

    pub fn set_status(&self, commit: &str, body: Value) -> Request {
        Request::create(format!("{}/statuses/{}", self.0, segment(commit)), body)
    }

    pub fn permission(&self, user: &str) -> Request {
        Request::get(format!("{}/collaborators/{}/permission", self.0, segment(user)))
    }
}

pub(super) fn head_reference(number: u64) -> String {
    format!("refs/pull/{number}/head")
}

pub(super) fn read_pull_request(answer: &Value) -> Option<PullRequest> {
    let [head, base] = [&answer["head"], &answer["base"]];
    Some(PullRequest {
        number: answer["number"].as_u64()?,
        author: text(&answer["user"]["login"]),
        is_open: answer["state"] == "open",
        head: head["sha"].as_str()?.to_owned(),
        head_reference: text(&head["ref"]),
        head_repository: text(&head["repo"]["full_name"]),
        base_reference: text(&base["ref"]),
        merged_as: answer["merged_at"].as_str().and(answer["merge_commit_sha"].as_str()).map(str::to_owned),
        tried_as: answer["merged_at"]
            .is_null()
            .then(|| answer["merge_commit_sha"].as_str())
            .flatten()
            .map(str::to_owned),
        merged_at: moment(&answer["merged_at"]),
        comments: answer["comments"].as_u64(),
        is_locked: ["locked", "is_locked"].iter().any(|name| answer[*name] == true),
        updated: text(&answer["updated_at"]),
    })
}

/// `hidden_by`: by what it can be hidden; empty where it can not.
pub(super) fn read_comment(answer: &Value, hidden_by: String) -> Option<Comment> {
    Some(Comment {
        id: answer["id"].as_u64()?,
        hidden_by,
        author: text(&answer["user"]["login"]),
        author_id: answer["user"]["id"].as_u64().unwrap_or_default(),
        body: text(&answer["body"]),
        created: moment(&answer["created_at"]),
        is_edited: answer["created_at"] != answer["updated_at"],
    })
}

pub(super) fn read_set_status(item: &Value) -> Option<SetStatus> {
    let (context, by) = (text(&item["context"]), read_status_creator(item)?);
    Some(SetStatus { context, by, at: moment(&item["created_at"])? })
}

/// Who set a status, by the answer to it.
pub(super) fn read_status_creator(answer: &Value) -> Option<String> {
    answer["creator"]["login"].as_str().filter(|it| !it.is_empty()).map(str::to_owned)
}

pub(super) fn state_word(state: State) -> &'static str {
    match state {
        State::Pending => "pending",
        State::Success => "success",
        State::Failure => "failure",
        State::Error => "error",
    }
}

/// Of a word that this program does not know nothing good is believed.
pub(super) fn state_of(word: &str) -> State {
    match word {
        "pending" => State::Pending,
        "success" => State::Success,
        "failure" => State::Failure,
        _ => State::Error,
    }
}
