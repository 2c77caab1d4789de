//! GitHub, and GitHub Enterprise Server: REST of version 2022-11-28, and GraphQL for what REST has not.
//!
//! Source: `https://docs.github.com/en/rest`, and the published description, of which `tests/post/github` has what is used here.

mod app;
mod environment;
mod statuses;

use hyper::header::HeaderName;
use hyper::{Method, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::dialect::{
    Annotation, Check, CheckTable, Comment, Dialect, HookHeaders, HookProof, MadeCommit, PullRequest, RepositoryName,
    Right, SetStatus, Status, Table, Team, TeamStep, TokenStep, text,
};
use super::http::{Address, Credential, Request, Secret, SecretError, segment};
use super::issues::{self, Paths};
use super::makers::read_commits;

pub use environment::{found, of_actions};

const TABLE: Table = Table {
    // 422 `Body is too long (maximum is 65536 characters)`; the description does not say it.
    comment_characters: 65_536,
    // Bytes count in places, other signs than ASCII take up to four.
    comment_bytes: 200_000,
    // 422 `description is too long (maximum is 140 characters)`.
    status_characters: 140,
    context_characters: 255,
    // 422 `description doesn't accept 4-byte Unicode`, and the same of the context; the description does not say it.
    status_takes_all_characters: false,
    // The published description of check runs.
    check: Some(CheckTable { summary_characters: 65_535, annotations_in_a_request: 50, annotation_bytes: 64 << 10 }),
};

pub struct GitHub {
    paths: Paths,
    is_enterprise: bool,
}

impl GitHub {
    pub const URL: &str = "https://github.com";

    pub fn new(repository: &RepositoryName, address: &Address) -> Self {
        Self { paths: Paths::of(repository), is_enterprise: address.path().ends_with("/api/v3") }
    }

    /// The address of the API: of github.com another host, of Enterprise a path.
    pub fn api(address: &Address) -> Address {
        match address.host() {
            "github.com" | "www.github.com" => address.at("api.github.com", ""),
            host if host.starts_with("api.") => address.clone(),
            host if host.ends_with(".ghe.com") => address.at(&format!("api.{host}"), ""),
            _ => address.below("/api/v3"),
        }
    }

    fn graphql(&self, query: &str, variables: &Value) -> Request {
        let path = if self.is_enterprise { "/api/graphql" } else { "/graphql" };
        let body = json!({ "query": query, "variables": variables });
        // Neither of our two does anything twice.
        Request { from_root: true, ..Request::change(Method::POST, path, Some(body)) }
    }

    fn output(check: &Check, annotations: &[Annotation]) -> Value {
        let annotations: Vec<Value> = annotations.iter().map(statuses::annotation).collect();
        json!({ "title": check.title, "summary": check.summary, "annotations": annotations })
    }
}

impl Dialect for GitHub {
    fn table(&self) -> &'static Table {
        &TABLE
    }

    fn headers(&self) -> Vec<(HeaderName, &'static str)> {
        vec![(HeaderName::from_static("x-github-api-version"), "2022-11-28")]
    }

    fn credential(&self, token: &Secret) -> Credential {
        Credential::bearer(token.expose())
    }

    fn token_step(
        &self,
        issuer: &str,
        key: &Secret,
        now: Timestamp,
        answers: &[Value],
    ) -> Result<TokenStep, SecretError> {
        app::token_step(self.paths.root(), issuer, key, now, answers)
    }

    /// Tokens of Apps and of jobs may not ask `/user`.
    fn account(&self) -> Request {
        self.graphql("query { viewer { login } }", &json!({}))
    }

    fn read_account(&self, answer: &Value) -> Option<String> {
        answer["data"]["viewer"]["login"].as_str().map(str::to_owned)
    }

    /// GraphQL leaves `[bot]` out in places; no user's name can have it.
    fn is_account(&self, author: &str, account: &str) -> bool {
        author == account || author.strip_suffix("[bot]") == Some(account)
    }

    fn pull_request(&self, number: u64) -> Request {
        self.paths.pull_request(number)
    }

    fn open_pull_requests(&self, page: u32) -> Request {
        Request::get(format!("{}/pulls?state=open&per_page=100&page={page}", self.paths.root()))
    }

    fn merged_pull_requests(&self) -> Request {
        Request::get(format!("{}/pulls?state=closed&sort=updated&direction=desc&per_page=30", self.paths.root()))
    }

    fn read_pull_request(&self, answer: &Value) -> Option<PullRequest> {
        issues::read_pull_request(answer)
    }

    fn head_reference(&self, number: u64) -> String {
        issues::head_reference(number)
    }

    fn queue(&self, base: &str) -> Option<String> {
        Some(format!("refs/heads/gh-readonly-queue/{base}/"))
    }

    /// `pr-7-0123…`, with the commit that it is put on.
    fn read_queued(&self, rest: &str) -> Option<u64> {
        rest.strip_prefix("pr-")?.split_once('-')?.0.parse().ok()
    }

    fn commits(&self, number: u64, page: u32) -> Request {
        self.paths.commits(number, &format!("per_page=100&page={page}"))
    }

    fn read_commits(&self, answer: &Value) -> Option<Vec<MadeCommit>> {
        read_commits(answer, "web-flow")
    }

    /// "Lists a maximum of 250 commits for a pull request."
    fn commits_max(&self) -> usize {
        250
    }

    /// Of a branch the last hundred. What is pushed to a fork the fork tells.
    fn pushes(&self, pull_request: &PullRequest, page: u32) -> Option<Request> {
        let (owner, name) = pull_request.head_repository.split_once('/').filter(|_| page == 1)?;
        let (owner, name, branch) = (segment(owner), segment(name), segment(&pull_request.head_reference));
        Some(Request::get(format!("/repos/{owner}/{name}/activity?ref={branch}&per_page=100")))
    }

    fn read_pusher(&self, item: &Value) -> Option<String> {
        pusher(item)
    }

    fn makers_need(&self) -> &'static str {
        "the token must be allowed to read contents and pull requests, also of a private fork, and GitHub Enterprise must know /repos/OWNER/NAME/activity"
    }

    fn comments(&self, number: u64, page: u32) -> Request {
        self.paths.comments(number, &format!("per_page=100&page={page}"))
    }

    fn read_comment(&self, answer: &Value) -> Option<Comment> {
        issues::read_comment(answer, text(&answer["node_id"]))
    }

    fn create_comment(&self, number: u64, body: &str) -> Request {
        self.paths.create_comment(number, body)
    }

    fn edit_comment(&self, _number: u64, id: u64, body: &str) -> Request {
        self.paths.edit_comment(id, body)
    }

    fn remove_comment(&self, _number: u64, id: u64) -> Request {
        self.paths.remove_comment(id)
    }

    fn hide_comment(&self, comment: &Comment) -> Option<Request> {
        const HIDE: &str = "mutation($id: ID!) { minimizeComment(input: { subjectId: $id, classifier: OUTDATED }) \
                            { minimizedComment { isMinimized } } }";
        (!comment.hidden_by.is_empty()).then(|| self.graphql(HIDE, &json!({ "id": comment.hidden_by })))
    }

    fn statuses(&self, commit: &str, page: u32) -> Request {
        self.paths.statuses(commit, &format!("per_page=100&page={page}"))
    }

    fn read_statuses(&self, answer: &Value) -> Vec<Status> {
        statuses::read(answer)
    }

    fn all_statuses(&self, commit: &str, page: u32) -> Request {
        self.paths.all_statuses(commit, &format!("per_page=100&page={page}"))
    }

    fn read_set_status(&self, item: &Value) -> Option<SetStatus> {
        issues::read_set_status(item)
    }

    fn read_status_creator(&self, answer: &Value) -> Option<String> {
        issues::read_status_creator(answer)
    }

    fn set_status(&self, commit: &str, status: &Status, _place: Option<&Value>) -> Request {
        self.paths.set_status(commit, statuses::written(status))
    }

    fn checks(&self, commit: &str, name: &str) -> Option<Request> {
        let (commit, name) = (segment(commit), segment(name));
        Some(Request::get(format!("{}/commits/{commit}/check-runs?check_name={name}&per_page=100", self.paths.root())))
    }

    fn has_check(&self, answer: &Value, key: &str) -> bool {
        answer["check_runs"].as_array().into_iter().flatten().any(|run| run["external_id"] == key)
    }

    fn create_check(&self, commit: &str, check: &Check, annotations: &[Annotation]) -> Option<Request> {
        let mut body = json!({
            "name": check.name,
            "head_sha": commit,
            "external_id": check.key,
            "status": "completed",
            "conclusion": statuses::conclusion(check.conclusion),
            "output": Self::output(check, annotations),
        });
        if let (Some(link), Some(body)) = (&check.link, body.as_object_mut()) {
            body.insert("details_url".to_owned(), json!(link));
        }
        Some(Request::create(format!("{}/check-runs", self.paths.root()), body))
    }

    fn append_to_check(&self, answer: &Value, check: &Check, annotations: &[Annotation]) -> Option<Request> {
        let path = format!("{}/check-runs/{}", self.paths.root(), answer["id"].as_u64()?);
        let body = json!({ "output": Self::output(check, annotations) });
        // Arriving twice it would show them twice, and to leave them out is the smaller harm.
        Some(Request { method: Method::PATCH, ..Request::create(path, body) })
    }

    fn permission(&self, comment_author: &str, _author_id: u64) -> Request {
        self.paths.permission(comment_author)
    }

    fn read_permission(&self, answer: &Value) -> Right {
        match answer["permission"].as_str() {
            Some("admin") => Right::Admin,
            Some("write" | "maintain") => Right::Write,
            Some("read" | "triage") => Right::Read,
            _ => Right::None,
        }
    }

    /// A team that this account does not see answers as somebody does who is not in it: then it is asked for itself.
    fn team_step(&self, team: &Team, (name, _): (&str, u64), answers: &[Option<Value>]) -> TeamStep {
        let parts = team.parts();
        let [organization, slug] = parts.as_slice() else { return TeamStep::NoName("ORGANIZATION/TEAM") };
        let path = format!("/orgs/{}/teams/{}", segment(organization), segment(slug));
        match answers {
            [] => TeamStep::Ask(Request::get(format!("{path}/memberships/{}", segment(name)))),
            [Some(membership)] => TeamStep::Is(membership["state"] == "active"),
            [None] => TeamStep::Ask(Request::get(path)),
            [_, Some(_), ..] => TeamStep::Is(false),
            [_, None, ..] => TeamStep::NotTold(self.team_rights()),
        }
    }

    fn team_rights(&self) -> &'static str {
        "an App needs the organization permission Members: read; a token needs read:org, and an owner who sees the team"
    }

    fn hook<'a>(&self, header: &dyn Fn(&str) -> Option<&'a str>) -> HookHeaders<'a> {
        let signature = header("x-hub-signature-256").and_then(|it| it.strip_prefix("sha256="));
        let event = header("x-github-event").unwrap_or_default();
        HookHeaders {
            proof: signature.map_or(HookProof::Missing, HookProof::Signature),
            delivery: header("x-github-delivery").unwrap_or_default(),
            is_about_changes: ["pull_request", "issue_comment", "push", "merge_group"].contains(&event),
        }
    }

    fn is_unknown_yet(&self, status: StatusCode, message: &str) -> bool {
        status == StatusCode::NOT_FOUND
            || (status == StatusCode::UNPROCESSABLE_ENTITY && message.contains("No commit found"))
    }
}

/// Who changed what a branch is by one of its activities; empty where the forge does not say. Nothing is in a branch by the only one that
/// takes it away: whatever else there is, also what is not known yet, such as the merge of another pull request, put something there.
fn pusher(activity: &Value) -> Option<String> {
    (activity["activity_type"] != "branch_deletion").then(|| text(&activity["actor"]["login"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_changed_a_branch_in_any_way_pushed_to_it() {
        let by = |kind: &str| pusher(&json!({ "activity_type": kind, "actor": { "login": "eve" } }));
        for kind in ["push", "force_push", "branch_creation", "pr_merge", "merge_queue_merge", "of_next_year"] {
            assert_eq!(by(kind).as_deref(), Some("eve"), "{kind}");
        }
        assert_eq!(by("branch_deletion"), None);
        assert_eq!(pusher(&json!({})).as_deref(), Some(""), "nobody knows who");
    }

    #[test]
    fn knows_where_the_api_is() {
        let api = |url: &str| GitHub::api(&Address::parse(url, false).unwrap()).to_string();
        assert_eq!(api("https://github.com"), "https://api.github.com");
        assert_eq!(api("https://api.github.com/"), "https://api.github.com");
        assert_eq!(api("https://ghe.example.com"), "https://ghe.example.com/api/v3");
        assert_eq!(api("https://ghe.example.com/api/v3"), "https://ghe.example.com/api/v3");
        assert_eq!(api("https://acme.ghe.com"), "https://api.acme.ghe.com");
    }

    #[test]
    fn a_user_is_not_taken_for_a_bot() {
        let address = Address::parse("https://api.github.com", false).unwrap();
        let github = GitHub::new(&"a/b".parse().unwrap(), &address);
        assert!(github.is_account("cutlist[bot]", "cutlist[bot]"));
        assert!(github.is_account("cutlist[bot]", "cutlist"));
        assert!(!github.is_account("cutlist", "cutlist[bot]"));
    }
}
