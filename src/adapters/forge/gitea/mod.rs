//! Gitea, and Forgejo, which has the same API: version 1 below `/api/v1`. Tried against Gitea 1.26.
//!
//! Source: the description that every Gitea serves at `/swagger.v1.json`.

use hyper::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::dialect::{
    Comment, Dialect, HookHeaders, HookProof, JobContext, MadeCommit, PullRequest, RepositoryName, Right, SetStatus,
    Status, Table, Team, TeamStep, Variables, text,
};
use super::github;
use super::hosted::PAGES_MAX;
use super::http::{Address, Credential, Request, Secret, segment};
use super::issues::{self, Paths};
use super::makers::read_commits;

const TABLE: Table = Table {
    // Comments of 5 MB were taken; people read no more than this, and its page renders no more in reasonable time.
    comment_characters: 250_000,
    comment_bytes: 1_000_000,
    // 1,000 were taken; lines of a page are shorter.
    status_characters: 255,
    context_characters: 255,
    status_takes_all_characters: true,
    check: None,
};

pub struct Gitea {
    paths: Paths,
}

impl Gitea {
    pub fn new(repository: &RepositoryName) -> Self {
        Self { paths: Paths::of(repository) }
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
        self.paths.pull_request(number)
    }

    /// 50 on a page are the most.
    fn open_pull_requests(&self, page: u32) -> Request {
        Request::get(format!("{}/pulls?state=open&limit=50&page={page}", self.paths.root()))
    }

    fn merged_pull_requests(&self) -> Request {
        Request::get(format!("{}/pulls?state=closed&sort=recentupdate&limit=30", self.paths.root()))
    }

    fn read_pull_request(&self, answer: &Value) -> Option<PullRequest> {
        issues::read_pull_request(answer)
    }

    fn head_reference(&self, number: u64) -> String {
        issues::head_reference(number)
    }

    fn commits(&self, number: u64, page: u32) -> Request {
        self.paths.commits(number, &format!("verification=false&files=false&limit=50&page={page}"))
    }

    fn read_commits(&self, answer: &Value) -> Option<Vec<MadeCommit>> {
        // What people edit on its pages it commits in their names.
        read_commits(answer, "")
    }

    fn commits_max(&self) -> usize {
        50 * PAGES_MAX as usize
    }

    /// All of it at once. A page of it does not say whether another follows, and may be empty in the middle.
    fn pushes(&self, pull_request: &PullRequest, page: u32) -> Option<Request> {
        let number = pull_request.number;
        (page == 1).then(|| Request::get(format!("{}/issues/{number}/timeline", self.paths.root())))
    }

    fn read_pusher(&self, item: &Value) -> Option<String> {
        (item["type"] == "pull_push").then(|| text(&item["user"]["login"]))
    }

    fn makers_need(&self) -> &'static str {
        "the token must be allowed to read the repository and its issues (read:repository, read:issue), and Gitea be of version 1.17 or newer"
    }

    fn comments(&self, number: u64, page: u32) -> Request {
        self.paths.comments(number, &format!("limit=50&page={page}"))
    }

    fn read_comment(&self, answer: &Value) -> Option<Comment> {
        issues::read_comment(answer, String::new())
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

    fn statuses(&self, commit: &str, page: u32) -> Request {
        self.paths.statuses(commit, &format!("limit=50&page={page}"))
    }

    fn read_statuses(&self, answer: &Value) -> Vec<Status> {
        let known = |status: &Value| {
            Some(Status {
                context: text(&status["context"]),
                state: issues::state_of(status["status"].as_str()?),
                description: text(&status["description"]),
                link: status["target_url"].as_str().filter(|link| !link.is_empty()).map(str::to_owned),
            })
        };
        answer["statuses"].as_array().into_iter().flatten().filter_map(known).collect()
    }

    fn all_statuses(&self, commit: &str, page: u32) -> Request {
        self.paths.all_statuses(commit, &format!("limit=50&page={page}"))
    }

    fn read_set_status(&self, item: &Value) -> Option<SetStatus> {
        issues::read_set_status(item)
    }

    fn read_status_creator(&self, answer: &Value) -> Option<String> {
        issues::read_status_creator(answer)
    }

    fn set_status(&self, commit: &str, status: &Status, _place: Option<&Value>) -> Request {
        self.paths.set_status(
            commit,
            json!({
                "state": issues::state_word(status.state),
                "context": status.context,
                "description": status.description,
                "target_url": status.link.as_deref().unwrap_or_default(),
            }),
        )
    }

    fn permission(&self, comment_author: &str, _author_id: u64) -> Request {
        self.paths.permission(comment_author)
    }

    fn read_permission(&self, answer: &Value) -> Right {
        match answer["permission"].as_str() {
            Some("admin" | "owner") => Right::Admin,
            Some("write") => Right::Write,
            Some("read") => Right::Read,
            _ => Right::None,
        }
    }

    /// Teams are known by numbers.
    fn team_step(&self, team: &Team, (user, _): (&str, u64), answers: &[Option<Value>]) -> TeamStep {
        let parts = team.parts();
        let [organization, name] = parts.as_slice() else { return TeamStep::NoName("ORGANIZATION/TEAM") };
        match answers {
            [] => {
                let query = format!("q={}&limit=50", segment(name));
                TeamStep::Ask(Request::get(format!("/orgs/{}/teams/search?{query}", segment(organization))))
            }
            [Some(found)] => {
                let is_it = |it: &&Value| it["name"].as_str().is_some_and(|it| it.eq_ignore_ascii_case(name));
                match found["data"].as_array().into_iter().flatten().find(is_it).and_then(|it| it["id"].as_u64()) {
                    Some(id) => TeamStep::Ask(Request::get(format!("/teams/{id}/members/{}", segment(user)))),
                    None => TeamStep::NotTold(self.team_rights()),
                }
            }
            [None] => TeamStep::NotTold(self.team_rights()),
            [_, member, ..] => TeamStep::Is(member.is_some()),
        }
    }

    fn team_rights(&self) -> &'static str {
        "the token needs read:organization, and must be of an owner of the organization or of somebody in the team"
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
pub fn found(variable: Variables<'_>) -> Option<JobContext> {
    let is_ours = ["GITEA_ACTIONS", "FORGEJO_ACTIONS"].iter().any(|name| variable(name).as_deref() == Some("true"));
    is_ours.then(|| github::of_actions(variable))
}
