//! GitLab: REST of version 4 below `/api/v4`. Written after its documentation, and tried against a server that behaves as it says;
//! no GitLab was at hand.
//!
//! Source: `https://docs.gitlab.com/api/rest`.

use std::collections::BTreeMap;

use hyper::Method;
use hyper::StatusCode;
use hyper::header::HeaderName;
use serde_json::{Value, json};

use super::dialect::{
    Comment, Dialect, HookHeaders, HookProof, JobContext, MadeCommit, Maker, PullRequest, RepositoryName, Right,
    SetStatus, State, Status, Table, Team, TeamStep, Variables, moment, text,
};
use super::http::{Address, Credential, HttpError, Request, Secret, segment};

const TABLE: Table = Table {
    // `Note is too long (maximum is 1000000 characters)`.
    comment_characters: 1_000_000,
    comment_bytes: 1_000_000,
    status_characters: 255,
    context_characters: 255,
    status_takes_all_characters: true,
    check: None,
};

/// What GitLab says where no branch and no pipeline has the commit of a status.
const NO_REFERENCES: &str = "References for commit";

const TOKEN: HeaderName = HeaderName::from_static("private-token");

/// Access levels: 20 Reporter, 30 Developer, 40 Maintainer, 50 Owner.
const DEVELOPER: u64 = 30;
const MAINTAINER: u64 = 40;

pub struct GitLab {
    /// `/projects/GROUP%2FNAME`
    project: String,
    /// `GROUP/NAME`
    path: String,
    /// From the root of the host.
    graphql: String,
}

/// REST has no accounts of commits.
const COMMITS: &str = "query($path: ID!, $number: String!) { project(fullPath: $path) { mergeRequest(iid: $number) { \
                       commits(first: 100) { nodes { sha author { username } authorEmail committerEmail } } } } }";

impl GitLab {
    pub const URL: &str = "https://gitlab.com";

    /// `address`: that of the API.
    pub fn new(repository: &RepositoryName, address: &Address) -> Self {
        let path = repository.to_string();
        let below = address.path().strip_suffix("/api/v4").unwrap_or_default();
        Self { project: format!("/projects/{}", segment(&path)), path, graphql: format!("{below}/api/graphql") }
    }

    pub fn api(address: &Address) -> Address {
        address.below("/api/v4")
    }

    fn notes(&self, number: u64) -> String {
        format!("{}/merge_requests/{number}/notes", self.project)
    }
}

impl Dialect for GitLab {
    fn table(&self) -> &'static Table {
        &TABLE
    }

    fn credential(&self, token: &Secret) -> Credential {
        Credential { header: TOKEN, value: token.clone() }
    }

    fn account(&self) -> Request {
        Request::get("/user")
    }

    fn read_account(&self, answer: &Value) -> Option<String> {
        answer["username"].as_str().map(str::to_owned)
    }

    fn pull_request(&self, number: u64) -> Request {
        Request::get(format!("{}/merge_requests/{number}", self.project))
    }

    fn open_pull_requests(&self, page: u32) -> Request {
        Request::get(format!("{}/merge_requests?state=opened&per_page=100&page={page}", self.project))
    }

    fn merged_pull_requests(&self) -> Request {
        let query = "state=merged&order_by=updated_at&sort=desc&per_page=30";
        Request::get(format!("{}/merge_requests?{query}", self.project))
    }

    fn read_pull_request(&self, answer: &Value) -> Option<PullRequest> {
        Some(PullRequest {
            number: answer["iid"].as_u64()?,
            author: text(&answer["author"]["username"]),
            is_open: answer["state"] == "opened",
            head: answer["sha"].as_str()?.to_owned(),
            head_reference: text(&answer["source_branch"]),
            head_repository: String::new(),
            base_reference: text(&answer["target_branch"]),
            merged_as: (answer["state"] == "merged")
                .then(|| ["merge_commit_sha", "squash_commit_sha", "sha"].iter().find_map(|it| answer[*it].as_str()))
                .flatten()
                .map(str::to_owned),
            // It does not tell.
            tried_as: None,
            merged_at: moment(&answer["merged_at"]),
            comments: answer["user_notes_count"].as_u64(),
            is_locked: answer["discussion_locked"] == true,
            updated: text(&answer["updated_at"]),
        })
    }

    fn head_reference(&self, number: u64) -> String {
        format!("refs/merge-requests/{number}/head")
    }

    fn commits(&self, number: u64, _page: u32) -> Request {
        let body = json!({ "query": COMMITS, "variables": { "path": self.path, "number": number.to_string() } });
        // It changes nothing.
        Request { from_root: true, ..Request::change(Method::POST, &self.graphql, Some(body)) }
    }

    /// Who committed is an account where the address is that of an author.
    fn read_commits(&self, answer: &Value) -> Option<Vec<MadeCommit>> {
        let commits = answer["data"]["project"]["mergeRequest"]["commits"]["nodes"].as_array()?;
        let authors: BTreeMap<String, &str> = commits
            .iter()
            .filter_map(|commit| Some((address(&commit["authorEmail"]), commit["author"]["username"].as_str()?)))
            .collect();
        let maker = |address: String| match authors.get(&address) {
            Some(account) => Maker::Account((*account).to_owned()),
            None => Maker::Stranger(address),
        };
        let made = |commit: &Value| {
            let makers = ["authorEmail", "committerEmail"].map(|role| maker(address(&commit[role]))).to_vec();
            Some(MadeCommit { commit: commit["sha"].as_str()?.to_owned(), makers })
        };
        commits.iter().map(made).collect()
    }

    fn commits_max(&self) -> usize {
        100
    }

    /// GitLab notes each push beside what people say.
    fn pushes(&self, pull_request: &PullRequest, page: u32) -> Option<Request> {
        Some(self.comments(pull_request.number, page))
    }

    fn read_pusher(&self, item: &Value) -> Option<String> {
        let is_push = item["system"] == true && item["body"].as_str().is_some_and(|body| body.starts_with("added "));
        is_push.then(|| text(&item["author"]["username"]))
    }

    fn makers_need(&self) -> &'static str {
        "the token must be of a member of the project, with the scope api or read_api"
    }

    fn comments(&self, number: u64, page: u32) -> Request {
        Request::get(format!("{}?sort=asc&order_by=created_at&per_page=100&page={page}", self.notes(number)))
    }

    fn read_comment(&self, answer: &Value) -> Option<Comment> {
        Some(Comment {
            id: answer["id"].as_u64()?,
            hidden_by: String::new(),
            author: text(&answer["author"]["username"]),
            author_id: answer["author"]["id"].as_u64().unwrap_or_default(),
            body: text(&answer["body"]),
            created: moment(&answer["created_at"]),
            // Or somebody reacted to it: that is asked for where it matters.
            is_edited: answer["created_at"] != answer["updated_at"],
        })
    }

    /// REST does not tell. Source: `https://docs.gitlab.com/api/graphql/reference/#note`.
    fn edits(&self, comments: &[u64]) -> Option<Request> {
        let fields: Vec<String> = comments
            .iter()
            .map(|id| format!("n{id}: note(id: \"gid://gitlab/Note/{id}\") {{ lastEditedAt }}"))
            .collect();
        let body = json!({ "query": format!("query {{ {} }}", fields.join(" ")) });
        Some(Request { from_root: true, ..Request::change(Method::POST, self.graphql.clone(), Some(body)) })
    }

    fn read_unedited(&self, answer: &Value, comments: &[u64]) -> Vec<u64> {
        // What the answer does not speak of may have been edited.
        let is_unedited = |id: &&u64| {
            let note = answer["data"][format!("n{id}")].as_object();
            note.and_then(|note| note.get("lastEditedAt")).is_some_and(Value::is_null)
        };
        comments.iter().filter(is_unedited).copied().collect()
    }

    fn create_comment(&self, number: u64, body: &str) -> Request {
        Request::create(self.notes(number), json!({ "body": body }))
    }

    fn edit_comment(&self, number: u64, id: u64, body: &str) -> Request {
        Request::change(Method::PUT, format!("{}/{id}", self.notes(number)), Some(json!({ "body": body })))
    }

    fn remove_comment(&self, number: u64, id: u64) -> Request {
        Request::change(Method::DELETE, format!("{}/{id}", self.notes(number)), None)
    }

    fn statuses(&self, commit: &str, page: u32) -> Request {
        let commit = segment(commit);
        Request::get(format!("{}/repository/commits/{commit}/statuses?per_page=100&page={page}", self.project))
    }

    fn read_statuses(&self, answer: &Value) -> Vec<Status> {
        let known = |status: &Value| {
            Some(Status {
                context: text(&status["name"]),
                state: match status["status"].as_str()? {
                    "pending" | "running" | "created" => State::Pending,
                    "success" | "skipped" => State::Success,
                    _ => State::Failure,
                },
                description: text(&status["description"]),
                link: status["target_url"].as_str().map(str::to_owned),
            })
        };
        answer.as_array().into_iter().flatten().filter_map(known).collect()
    }

    fn all_statuses(&self, commit: &str, page: u32) -> Request {
        let commit = segment(commit);
        let query = format!("all=true&per_page=100&page={page}");
        Request::get(format!("{}/repository/commits/{commit}/statuses?{query}", self.project))
    }

    fn read_set_status(&self, item: &Value) -> Option<SetStatus> {
        let (context, by) = (text(&item["name"]), self.read_status_creator(item)?);
        Some(SetStatus { context, by, at: moment(&item["created_at"])? })
    }

    fn read_status_creator(&self, answer: &Value) -> Option<String> {
        answer["author"]["username"].as_str().map(str::to_owned)
    }

    /// It knows no difference between what is wrong and what could not be found out.
    fn set_status(&self, commit: &str, status: &Status, place: Option<&Value>) -> Request {
        let state = match status.state {
            State::Pending => "pending",
            State::Success => "success",
            State::Failure | State::Error => "failed",
        };
        let mut body = json!({ "state": state, "name": status.context, "description": status.description });
        if let (Some(link), Some(body)) = (&status.link, body.as_object_mut()) {
            body.insert("target_url".to_owned(), json!(link));
        }
        if let (Some(place), Some(body)) = (place.and_then(Value::as_object), body.as_object_mut()) {
            body.extend(place.clone());
        }
        Request::create(format!("{}/statuses/{}", self.project, segment(commit)), body)
    }

    fn has_status_places(&self) -> bool {
        true
    }

    /// Without one GitLab takes the first pipeline of the commit, or the first branch that has it: that may be of another merge request,
    /// and of a fork there is none.
    fn read_status_place(&self, answer: &Value) -> Option<Value> {
        let pipeline = &answer["head_pipeline"];
        if let Some(id) = pipeline["id"].as_u64().filter(|_| pipeline["sha"] == answer["sha"]) {
            return Some(json!({ "pipeline_id": id }));
        }
        let is_fork = answer["source_project_id"] != answer["target_project_id"];
        let branch = answer["source_branch"].as_str()?.to_owned();
        Some(json!({ "ref": if is_fork { self.head_reference(answer["iid"].as_u64()?) } else { branch } }))
    }

    fn has_no_place(&self, error: &HttpError) -> bool {
        error.status() == Some(StatusCode::NOT_FOUND) && error.message().contains(NO_REFERENCES)
    }

    fn is_unknown_yet(&self, status: StatusCode, message: &str) -> bool {
        status == StatusCode::NOT_FOUND && !message.contains(NO_REFERENCES)
    }

    /// A status goes from one state to another, and to itself it does not.
    fn has_status_already(&self, error: &HttpError) -> bool {
        error.status() == Some(StatusCode::BAD_REQUEST) && error.message().contains("Cannot transition status")
    }

    fn permission(&self, _comment_author: &str, author_id: u64) -> Request {
        Request::get(format!("{}/members/all/{author_id}", self.project))
    }

    fn read_permission(&self, answer: &Value) -> Right {
        match answer["access_level"].as_u64() {
            Some(level) if answer["state"] != "active" && level > 0 => Right::None,
            Some(level) if level >= MAINTAINER => Right::Admin,
            Some(level) if level >= DEVELOPER => Right::Write,
            Some(level) if level > 0 => Right::Read,
            _ => Right::None,
        }
    }

    /// A group that this account does not see answers as somebody does who is not in it: then it is asked for itself.
    fn team_step(&self, team: &Team, (_, id): (&str, u64), answers: &[Option<Value>]) -> TeamStep {
        let path = format!("/groups/{}", segment(&team.to_string()));
        match answers {
            [] => TeamStep::Ask(Request::get(format!("{path}/members/all/{id}"))),
            [Some(member)] => TeamStep::Is(member["state"] == "active"),
            [None] => TeamStep::Ask(Request::get(format!("{path}?with_projects=false"))),
            [_, Some(_), ..] => TeamStep::Is(false),
            [_, None, ..] => TeamStep::NotTold(self.team_rights()),
        }
    }

    fn team_rights(&self) -> &'static str {
        "the token must be of a member of the group: a project access token knows its project alone, so take one of the group"
    }

    /// With a signing token since 2026, by Standard Webhooks; before, and without one, the secret itself.
    fn hook<'a>(&self, header: &dyn Fn(&str) -> Option<&'a str>) -> HookHeaders<'a> {
        let event = header("x-gitlab-event").unwrap_or_default();
        let proof = match (header("webhook-signature"), header("x-gitlab-token")) {
            (Some(signatures), _) => {
                HookProof::Dated { moment: header("webhook-timestamp").unwrap_or_default(), signatures }
            }
            (None, Some(secret)) => HookProof::Secret(secret),
            (None, None) => HookProof::Missing,
        };
        let delivery = match proof {
            HookProof::Dated { .. } => header("webhook-id"),
            _ => header("x-gitlab-event-uuid"),
        };
        HookHeaders {
            proof,
            delivery: delivery.unwrap_or_default(),
            is_about_changes: ["Push Hook", "Merge Request Hook", "Note Hook"].contains(&event),
        }
    }
}

/// Capitals make no other address.
fn address(value: &Value) -> String {
    text(value).to_lowercase()
}

/// What GitLab CI says of its job.
pub fn found(variable: Variables<'_>) -> Option<JobContext> {
    (variable("GITLAB_CI").as_deref() == Some("true")).then(|| JobContext {
        url: variable("CI_SERVER_URL"),
        // Of a fork's pipeline, the project that it goes into.
        repository: variable("CI_MERGE_REQUEST_PROJECT_PATH").or_else(|| variable("CI_PROJECT_PATH")),
        pull_request: variable("CI_MERGE_REQUEST_IID").and_then(|it| it.parse().ok()),
        // A job of a merge train is one of the merge request.
        is_merge_queue: false,
        link: variable("CI_JOB_URL"),
        // Only a pipeline of merged results has the latter.
        tried_merge: variable("CI_COMMIT_SHA").filter(|_| variable("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA").is_some()),
        head: variable("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"),
    })
}
