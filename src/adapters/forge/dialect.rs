//! What a forge is asked for and how it answers, without asking: each forge is one implementation of [`Dialect`], in a folder of its
//! own. No forge's word is outside of that folder.

use hyper::StatusCode;
use hyper::header::HeaderName;
use jiff::Timestamp;
use serde_json::Value;

use super::http::{Credential, HttpError, Request, Secret, SecretError, SecretSource};
use super::makers::MadeCommit;

/// A repository on a forge. Names as they are, not encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryName {
    /// Owner, or the groups that it is in, with slashes between them.
    pub owner: String,
    pub name: String,
}

impl std::str::FromStr for RepositoryName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && !part.contains(|it: char| it.is_whitespace() || it.is_control() || "?#%\\".contains(it))
        };
        let text = text.trim_matches('/');
        match text.strip_suffix(".git").unwrap_or(text).rsplit_once('/') {
            Some((owner, name)) if is_name(name) && owner.split('/').all(is_name) => {
                Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
            }
            _ => Err("write OWNER/NAME".to_owned()),
        }
    }
}

impl std::fmt::Display for RepositoryName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.owner, self.name)
    }
}

/// A comment on a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Grows with each comment of a forge.
    pub id: u64,
    /// Another identity where hiding needs one.
    pub hidden_by: String,
    pub author: String,
    pub author_id: u64,
    pub body: String,
    /// Somebody changed it after it was written.
    pub is_edited: bool,
}

/// Where a commit stands, for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The name that a required status is known by.
    pub context: String,
    pub state: State,
    pub description: String,
    pub link: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Pending,
    Success,
    /// The definitions are wrong, or a gate does not let them through.
    Failure,
    /// It could not be found out.
    Error,
}

/// What is shown at the lines of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    /// The same for what is the same.
    pub key: String,
    pub conclusion: Conclusion,
    pub title: String,
    pub summary: String,
    pub link: Option<String>,
    /// Worst first.
    pub annotations: Vec<Annotation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    Success,
    Neutral,
    Failure,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    pub path: String,
    pub line: u32,
    pub level: Level,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Notice,
    Warning,
    Failure,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    pub author: String,
    pub is_open: bool,
    /// Commit of what is proposed, and the branch.
    pub head: String,
    pub head_reference: String,
    /// The repository that it is from, `OWNER/NAME`; empty where that is gone, or the forge tells nobody apart by it.
    pub head_repository: String,
    /// Branch that it goes into.
    pub base_reference: String,
    /// The commit that it became, and when.
    pub merged_as: Option<String>,
    /// The merge that the forge made to try it, while it is open: a commit that nobody looks at.
    pub tried_as: Option<String>,
    pub merged_at: Option<Timestamp>,
    /// How many comments there are; `None` where the answer does not say.
    pub comments: Option<u64>,
    /// Another text whenever something happened to it, such as a comment.
    pub updated: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    None,
    Read,
    Write,
    Admin,
}

/// How much a forge takes. Each figure has its source beside its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    pub comment_characters: usize,
    pub comment_bytes: usize,
    pub status_characters: usize,
    pub context_characters: usize,
    /// Whether a status may have characters beyond U+FFFF, such as most emoji.
    pub status_takes_all_characters: bool,
    /// `None`: it has no checks.
    pub check: Option<CheckTable>,
}

impl Table {
    /// The status as this forge takes it: characters that it would refuse are written by their numbers, so that two contexts stay two.
    pub fn fitted(&self, status: Status) -> Status {
        if self.status_takes_all_characters {
            return status;
        }
        Status {
            context: by_number(&status.context, self.context_characters),
            description: by_number(&status.description, self.status_characters),
            ..status
        }
    }
}

/// At most so many characters, none of them beyond U+FFFF.
fn by_number(text: &str, characters: usize) -> String {
    if text.chars().all(|it| u32::from(it) <= 0xffff) {
        return text.to_owned();
    }
    let mut written = String::new();
    for character in text.chars() {
        match u32::from(character) {
            number @ 0x1_0000.. => written.push_str(&format!("U+{number:X}")),
            _ => written.push(character),
        }
    }
    written.chars().take(characters).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckTable {
    pub summary_characters: usize,
    pub annotations_in_a_request: usize,
    pub annotation_bytes: usize,
}

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

/// People who may command beside those who may write: `ORGANIZATION/TEAM`, or the path of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Team(String);

impl Team {
    /// Parts of its path.
    pub fn parts(&self) -> Vec<&str> {
        self.0.split('/').collect()
    }
}

impl std::str::FromStr for Team {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim_matches('/').trim_start_matches('@');
        // The same rules hold for the parts of a repository's name.
        match format!("{text}/x").parse::<RepositoryName>() {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err("write ORGANIZATION/TEAM, or the path of a group".to_owned()),
        }
    }
}

impl std::fmt::Display for Team {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
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
    /// Whether a comment's author is this account.
    fn is_account(&self, comment: &Comment, account: &str) -> bool {
        comment.author == account
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_only_characters_that_the_forge_takes() {
        let table = |status_takes_all_characters| Table {
            comment_characters: 1,
            comment_bytes: 1,
            status_characters: 20,
            context_characters: 20,
            status_takes_all_characters,
            check: None,
        };
        let of = |context: &str, description: &str| Status {
            context: context.to_owned(),
            state: State::Success,
            description: description.to_owned(),
            link: None,
        };
        let status = of("cutlist/\u{1f7e2}", "\u{1f389}\u{1f389}\u{1f389} grün · plan");
        assert_eq!(table(true).fitted(status.clone()), status);
        assert_eq!(table(false).fitted(status), of("cutlist/U+1F7E2", "U+1F389U+1F389U+1F38"));
        // Two clusters are two.
        let context = |text: &str| table(false).fitted(of(text, "")).context;
        assert_ne!(context("\u{1f7e2}"), context("\u{1f534}"));
        assert_eq!(context("grün \u{2713}"), "grün \u{2713}");
    }
}
