//! What a forge is asked for and how it answers, without asking: each forge is one implementation of [`Dialect`], in a folder of its
//! own. No forge's word is outside of that folder.

use hyper::StatusCode;
use hyper::header::HeaderName;
use jiff::Timestamp;
use serde_json::Value;

use super::http::{Credential, HttpError, Request, Secret, SecretError, SecretSource};

/// The words in which dialects speak to the rest.
pub use crate::ports::pull_requests::{
    Annotation, Check, CheckTable, Comment, Conclusion, Level, PullRequest, RepositoryName, Right, State, Status,
    Table, Team,
};

/// How this program proves who it is.
#[derive(Clone, Debug)]
pub enum Access {
    Token(SecretSource),
    /// With a key that signs requests for tokens, which are good for an hour.
    Key {
        issuer: String,
        key: SecretSource,
    },
}

/// A token, and until when it is good.
#[derive(Clone, Debug)]
pub struct Token {
    pub value: Secret,
    pub until: Timestamp,
}

/// What comes next on the way from a key to a token.
pub enum TokenStep {
    Ask(Box<Request>, Credential),
    Have(Token),
    /// The forge has no such thing, or answered something else.
    Nothing(&'static str),
}

/// One commit as a forge lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeCommit {
    pub commit: String,
    /// Of author and committer.
    pub makers: Vec<Maker>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    Account(String),
    /// An address that is no account's.
    Stranger(String),
    /// The forge itself, for somebody who is the other of the two.
    Forge,
}

/// One status that was set, which another of the same context may have followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetStatus {
    pub context: String,
    pub by: String,
    pub at: Timestamp,
}

/// What comes next on the way to whether somebody is in a team.
#[derive(Debug)]
pub enum TeamStep {
    Ask(Request),
    Is(bool),
    /// It is not told to this account, or there is none; with what the account needs.
    NotTold(&'static str),
    /// No team of this forge can have that name; with the form that one has.
    NoName(&'static str),
}

/// Requests and answers of one forge. Methods named `read_` give `None` for what they do not understand.
pub trait Dialect: Send + Sync {
    fn table(&self) -> &'static Table;
    fn headers(&self) -> Vec<(HeaderName, &'static str)> {
        Vec::new()
    }
    fn credential(&self, token: &Secret) -> Credential;
    /// Given the answers so far.
    fn token_step(
        &self,
        _issuer: &str,
        _key: &Secret,
        _now: Timestamp,
        _answers: &[Value],
    ) -> Result<TokenStep, SecretError> {
        Ok(TokenStep::Nothing("this forge knows tokens only"))
    }

    fn account(&self) -> Request;
    fn read_account(&self, answer: &Value) -> Option<String>;
    /// Whether an author is this account.
    fn is_account(&self, author: &str, account: &str) -> bool {
        author == account
    }

    fn pull_request(&self, number: u64) -> Request;
    fn open_pull_requests(&self, page: u32) -> Request;
    /// Those that were merged, or closed where a forge tells no difference, on one page: the ones touched last.
    fn merged_pull_requests(&self) -> Request;
    fn read_pull_request(&self, answer: &Value) -> Option<PullRequest>;

    /// Where Git finds the head, also of a fork.
    fn head_reference(&self, number: u64) -> String;

    /// How references of the merge queue into a branch begin; `None`: this forge has none. Behind it stands no further slash.
    fn queue(&self, _base: &str) -> Option<String> {
        None
    }
    /// The pull request that such a reference was made for, by what stands behind its beginning.
    fn read_queued(&self, _rest: &str) -> Option<u64> {
        None
    }

    /// The commits of a pull request, with who made each.
    fn commits(&self, number: u64, page: u32) -> Request;
    fn read_commits(&self, answer: &Value) -> Option<Vec<MadeCommit>>;
    /// As many are listed at most.
    fn commits_max(&self) -> usize;
    /// What was pushed to it, and by whom; `None`: that page, or the repository that it is from, can not be asked for.
    fn pushes(&self, pull_request: &PullRequest, page: u32) -> Option<Request>;
    /// Of one item of that list, if it is a push; empty where it is no account's.
    fn read_pusher(&self, item: &Value) -> Option<String>;
    /// What it takes to be told who made and pushed commits: a right, or a version.
    fn makers_need(&self) -> &'static str;

    fn comments(&self, number: u64, page: u32) -> Request;
    fn read_comment(&self, answer: &Value) -> Option<Comment>;
    fn create_comment(&self, number: u64, body: &str) -> Request;
    fn edit_comment(&self, number: u64, id: u64, body: &str) -> Request;
    fn remove_comment(&self, number: u64, id: u64) -> Request;
    /// Asks of these comments, which changed in some way, whether somebody edited them. `None`: a comment says so itself.
    fn edits(&self, _comments: &[u64]) -> Option<Request> {
        None
    }
    /// Those of them that nobody edited, by the answer to it.
    fn read_unedited(&self, _answer: &Value, _comments: &[u64]) -> Vec<u64> {
        Vec::new()
    }
    /// `None`: this forge hides nothing.
    fn hide_comment(&self, _comment: &Comment) -> Option<Request> {
        None
    }

    fn statuses(&self, commit: &str, page: u32) -> Request;
    /// The newest of each context.
    fn read_statuses(&self, answer: &Value) -> Vec<Status>;
    /// All that were set, also those that others of the same context followed.
    fn all_statuses(&self, commit: &str, page: u32) -> Request;
    /// Of one item of that list.
    fn read_set_status(&self, item: &Value) -> Option<SetStatus>;
    /// `place`: that of [`Dialect::read_status_place`], where it is known.
    fn set_status(&self, commit: &str, status: &Status, place: Option<&Value>) -> Request;
    /// Whether a status has a place beside its commit, which a pull request tells.
    fn has_status_places(&self) -> bool {
        false
    }
    /// Where statuses of the head of a pull request go.
    fn read_status_place(&self, _answer: &Value) -> Option<Value> {
        None
    }
    /// Whether the refusal of a status says that nothing of the repository has its commit.
    fn has_no_place(&self, _error: &HttpError) -> bool {
        false
    }
    /// Who set it, by the answer to it.
    fn read_status_creator(&self, answer: &Value) -> Option<String>;
    /// Whether the refusal of a status says that it stands already.
    fn has_status_already(&self, _error: &HttpError) -> bool {
        false
    }

    /// The checks of that name, and whether one has the key.
    fn checks(&self, _commit: &str, _name: &str) -> Option<Request> {
        None
    }
    fn has_check(&self, _answer: &Value, _key: &str) -> bool {
        false
    }
    /// With the first annotations.
    fn create_check(&self, _commit: &str, _check: &Check, _annotations: &[Annotation]) -> Option<Request> {
        None
    }
    /// More annotations for the check of that answer.
    fn append_to_check(&self, _answer: &Value, _check: &Check, _annotations: &[Annotation]) -> Option<Request> {
        None
    }

    fn permission(&self, comment_author: &str, author_id: u64) -> Request;
    fn read_permission(&self, answer: &Value) -> Right;

    /// Whether somebody is in a team, given the answers so far: `None` where there was nothing (404).
    fn team_step(&self, team: &Team, member: (&str, u64), answers: &[Option<Value>]) -> TeamStep;
    /// What an account needs that is to be told who is in a team.
    fn team_rights(&self) -> &'static str;

    /// What a webhook's headers say of it.
    fn hook<'a>(&self, header: &dyn Fn(&str) -> Option<&'a str>) -> HookHeaders<'a>;

    /// Whether a refusal may come from a push that the API has not heard of yet.
    fn is_unknown_yet(&self, status: StatusCode, _message: &str) -> bool {
        status == StatusCode::NOT_FOUND
    }
}

/// What a webhook's headers say of it; nothing of it is true before the proof is.
#[derive(Clone, Copy, Debug, Default)]
pub struct HookHeaders<'a> {
    pub proof: HookProof<'a>,
    /// Another one for each delivery.
    pub delivery: &'a str,
    /// Whether it tells of commits, pull requests or comments.
    pub is_about_changes: bool,
}

/// How a webhook proves whom it is from.
#[derive(Clone, Copy, Debug, Default)]
pub enum HookProof<'a> {
    #[default]
    Missing,
    /// HMAC-SHA256 over the body, in hexadecimal digits.
    Signature(&'a str),
    /// The secret itself.
    Secret(&'a str),
    /// HMAC-SHA256 over the delivery, the moment and the body, as Standard Webhooks have it: the signatures, in Base64, each behind `v1,`.
    Dated { moment: &'a str, signatures: &'a str },
}

/// Text of an answer; empty where there is none.
pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A moment of an answer.
pub(super) fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// What a CI system says of the pull request that it runs for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobContext {
    pub url: Option<String>,
    pub repository: Option<String>,
    pub pull_request: Option<u64>,
    /// The commit is that of a merge queue: it is of no pull request, and must have the statuses that pull requests must have.
    pub is_merge_queue: bool,
    /// Where the job can be read.
    pub link: Option<String>,
    /// The merge that the forge made to try the change, where the job has checked that out instead of the head.
    pub tried_merge: Option<String>,
    /// The head that it was made of.
    pub head: Option<String>,
}

/// Reads variables of the environment.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;
