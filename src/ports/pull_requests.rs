//! Pull requests of one repository, as their review needs them: what a forge tells of them and takes, what Git has of them, and what would
//! come of them. No forge's word is here: the adapter of each turns its answers into these.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use jiff::Timestamp;

use super::PortError;
use crate::api::node_plan::NodePlan;
use crate::api::preview::Preview;

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
    /// When it was written, where the forge tells.
    pub created: Option<Timestamp>,
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

impl State {
    /// The worst has the most.
    pub const fn badness(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Pending => 1,
            Self::Error => 2,
            Self::Failure => 3,
        }
    }
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
    /// Not everybody who could may comment on it.
    pub is_locked: bool,
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

/// Who had a hand in the commits of a pull request, as far as the forge tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Makers {
    /// Accounts of authors, of committers, and of those who pushed.
    pub accounts: BTreeSet<String>,
    /// A commit, and the address of its author or committer, for which the forge knows no account.
    pub stranger: Option<(String, String)>,
    /// Why not all of them are known.
    pub not_told: Option<String>,
    /// Why not all who pushed are known, which the operator may leave open.
    pub pushers_not_told: Option<String>,
}

impl Makers {
    /// Why an account may have made some of it; `None`: it is known not to have. `may_be_unknown`: who pushed, where the forge does not tell.
    pub fn refusal(&self, account: &str, may_be_unknown: bool) -> Option<String> {
        if self.accounts.iter().any(|it| it.eq_ignore_ascii_case(account)) {
            return Some("an approval must come from somebody who has no commit in it, and pushed none".to_owned());
        }
        if let Some((commit, address)) = &self.stranger {
            let digits: String = commit.chars().take(7).collect();
            return Some(format!(
                "nobody can tell who made commit {digits}, so none is known to be another: {address} is no address of an account here; \
                 add it to one, or make the commit again"
            ));
        }
        self.not_told.clone().or_else(|| self.pushers_not_told.clone().filter(|_| !may_be_unknown))
    }
}

/// More annotations than this are counted in the check's summary: nobody looks at them one by one.
pub const ANNOTATIONS_MAX: usize = 200;

/// What to post for one revision of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    /// `None`: the commit is of none, as that of a merge queue, and has statuses and checks only.
    pub number: Option<u64>,
    /// The commit that statuses and checks are of.
    pub head: String,
    pub targets: Vec<TargetPosting>,
    /// Contexts that this process set to pending a moment ago: what stands there need not be asked.
    pub begun: Vec<String>,
    /// Markers of comments that say what those of the targets say now. They go when those are there.
    pub stands_for: BTreeSet<String>,
    /// And comments about many clusters that are most of these, by whichever of them it is called; `None`: comments are not wanted.
    pub fleet: Option<Fleet>,
    /// Contexts that are set only where the forge says that the pull request is open, as those of approvals: of what is merged already
    /// nothing is left to approve, which would read as an approval.
    pub only_while_open: BTreeSet<String>,
    /// Contexts that others set as well at this commit, as jobs for other clusters do: the worst is set. Each with the context of this
    /// one's part, which tells what this one has found and stands where that is or was bad. Those of others begin alike, up to [`PART`].
    pub shared: BTreeMap<String, String>,
}

/// By what a comment about many clusters is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// How its marker ends.
    pub marker_end: String,
    /// What stands in its data before the keys of its clusters, which end with a quotation mark and have spaces between them.
    pub keys_begin: &'static str,
    /// The keys of the clusters that are posted.
    pub keys: BTreeSet<String>,
}

impl Fleet {
    /// Whether a comment is about these clusters, or most of those that it is about are among them.
    pub fn is_of(&self, marker: &str, data: &str) -> bool {
        let Some((_, behind)) = data.split_once(self.keys_begin) else { return false };
        let told: Vec<&str> = behind.split('"').next().unwrap_or_default().split(' ').collect();
        let same = told.iter().filter(|key| self.keys.contains(**key)).count();
        marker.ends_with(&self.marker_end) && 2 * same > told.len()
    }
}

/// Between a shared context and whose part it is.
pub const PART: &str = " of ";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetPosting {
    pub status: Status,
    /// `None`: comments are not wanted.
    pub comment: Option<CommentPosting>,
    pub check: Option<Check>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentPosting {
    /// The comment's first line, by which it is found.
    pub marker: String,
    /// Its second line: what a reader would want to know about when it changes.
    pub data: String,
    /// Whether there should be a comment where there is none yet.
    pub is_worth_beginning: bool,
    pub manner: Manner,
    /// All of it, with both lines.
    pub body: String,
}

/// What becomes of the comment of an earlier revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Edit,
    /// A new one, and the old ones are hidden.
    Anew,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    StatusSet,
    StatusStands,
    /// The forge takes none: no branch has the commit, as that of a fork, and no job ran for it.
    NoStatus,
    /// The pull request was merged or closed meanwhile: what stands there is what it was merged with.
    StatusLeft,
    CommentCreated,
    CommentEdited,
    CommentStands,
    /// The pull request is at another commit: its comment is left to whoever posts for that one.
    CommentIsOfAnother,
    /// The pull request was merged or closed meanwhile: what it would do is of no use any more.
    IsClosed,
    /// Nothing of ours changed, and nothing was said before.
    NoComment,
    CheckCreated,
    CheckStands,
    /// The credentials do not allow checks, or the forge has none; statuses are there all the same.
    NoCheck,
}

/// What was done for each target, in their order, and what failed.
#[derive(Debug)]
pub struct Posted<E = PortError> {
    /// Status context, and what was done.
    pub done: Vec<(String, Done)>,
    /// What was tried for which status context.
    pub failed: Vec<(String, &'static str, E)>,
}

/// What the last line of a comment of ours says of it: a hash over the lines before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    Whole,
    /// Something else stands before it than when it was made.
    Broken,
    Missing,
}

/// A body with its seal is longer than without by at most so many characters.
pub const SEAL_CHARACTERS: usize = 64;

/// Whether somebody is in a team, as far as the forge tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Membership {
    Member,
    NoMember,
    /// It is not told to this account; with why, and what the account needs.
    NotTold(String),
}

/// What somebody asks on a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// `NAMESPACE/NAME`, or `NAME`.
    Pod(String),
    Node(String),
}

/// The pull requests of one repository, where people review them. An error's text is the whole sentence, with its causes.
pub trait PullRequests {
    /// How much the forge takes.
    fn table(&self) -> &'static Table;
    /// `None` when the list is the one that was given last.
    fn open_pull_requests(&self) -> impl Future<Output = Result<Option<Vec<PullRequest>>, PortError>>;
    fn pull_request(&self, number: u64) -> impl Future<Output = Result<PullRequest, PortError>>;
    /// Those that were merged lately.
    fn merged_pull_requests(&self) -> impl Future<Output = Result<Vec<PullRequest>, PortError>>;
    /// Where Git finds the head of a pull request.
    fn head_reference(&self, number: u64) -> String;
    /// How Git's references of the merge queue into a branch begin, where the forge has one.
    fn queue(&self, base: &str) -> Option<String>;
    /// The pull request that a reference of such a queue was made for.
    fn queued(&self, base: &str, reference: &str) -> Option<u64>;

    /// All of a pull request, oldest first.
    fn comments(&self, number: u64) -> impl Future<Output = Result<Vec<Comment>, PortError>>;
    /// Takes comments that changed in some way for unedited where nobody edited them. Asks of those that `matter`.
    fn tell_edits(
        &self,
        comments: &mut [Comment],
        matters: impl Fn(&Comment) -> bool,
    ) -> impl Future<Output = Result<(), PortError>>;
    /// Whom comments of this program are by.
    fn account(&self) -> impl Future<Output = Result<String, PortError>>;
    fn is_by(&self, comment: &Comment, account: &str) -> bool;
    fn create_comment(&self, number: u64, body: &str) -> impl Future<Output = Result<Comment, PortError>>;
    fn edit_comment(&self, number: u64, id: u64, body: &str) -> impl Future<Output = Result<(), PortError>>;
    /// One that is gone is gone.
    fn remove_comment(&self, number: u64, id: u64) -> impl Future<Output = Result<(), PortError>>;
    /// What the seal of a body says of it.
    fn seal_of(&self, body: &str) -> Seal;
    /// The body with its seal.
    fn sealed(&self, body: &str) -> String;
    /// The body without it.
    fn unsealed(&self, body: &str) -> String;

    /// What a comment's author may do in the repository; `None`: it is not told to this account.
    fn permission(&self, author: &str, author_id: u64) -> impl Future<Output = Result<Option<Right>, PortError>>;
    /// Whether a comment's author is in a team, as the forge told within minutes.
    fn membership(
        &self,
        team: &Team,
        author: &str,
        author_id: u64,
    ) -> impl Future<Output = Result<Membership, PortError>>;
    /// Who made the commits of a pull request. What this account is not told is part of the answer.
    fn makers(&self, pull_request: &PullRequest) -> impl Future<Output = Result<Makers, PortError>>;

    fn set_status(&self, commit: &str, status: &Status) -> impl Future<Output = Result<(), PortError>>;
    /// When this program set the first status of a commit that has one of these contexts, by the forge's clock; `None`: it is not told, or
    /// there is none.
    fn first_status(
        &self,
        commit: &str,
        contexts: &[String],
    ) -> impl Future<Output = Result<Option<Timestamp>, PortError>>;
    /// Whether the pull request must be read before a status of this commit is set: it tells where that goes.
    fn lacks_place(&self, commit: &str) -> bool;
    /// Sets a status where nothing was said before of its context; says whether it did. `known`: the statuses of the commit, once they were
    /// asked for.
    fn announce(
        &self,
        commit: &str,
        status: &Status,
        known: &mut Option<Vec<Status>>,
    ) -> impl Future<Output = Result<bool, PortError>>;
    /// Posts all of it, each once, and goes on after what fails.
    fn post(&self, posting: &Posting) -> impl Future<Output = Posted>;
}

/// References of one remote with their histories, in one clone.
pub trait History {
    /// Fetches a reference by its whole name, such as `refs/heads/main`, if it is another commit than the clone has; gives the commit.
    fn fetch(&self, reference: &str) -> impl Future<Output = Result<String, PortError>>;
    /// The same, and the commits of all references whose names begin with `listed`, which the remote tells at the same look.
    fn fetch_and_list(
        &self,
        reference: &str,
        listed: Option<String>,
    ) -> impl Future<Output = Result<(String, Vec<(String, String)>), PortError>>;
    /// Whether a commit is another one, or comes after it. `false` also where the clone does not have both.
    fn contains(&self, commit: &str, other: &str) -> bool;
    /// Forgets a reference that nobody follows any more.
    fn forget(&self, reference: &str);
}

/// What would come of a commit that is merged into a branch, in each cluster, and what came of those that were. `base` and `head` are in the
/// clone. An error's text is for people, with what to do.
pub trait Previews {
    /// What comments and statuses call this set of definitions.
    fn environment(&self) -> &str;
    /// Plans beside this thread. `begins` is told that a cluster and its environment are going to be planned for, which may take a while.
    fn preview(
        &self,
        base: &str,
        head: &str,
        begins: impl Fn(&str, &str) + Send + 'static,
    ) -> impl Future<Output = Result<Preview, PortError>>;
    /// The answer for each cluster, as if it were merged.
    fn answer(
        &self,
        base: &str,
        head: &str,
        question: Question,
    ) -> impl Future<Output = Result<Vec<(String, String)>, PortError>>;
    /// The plans that were posted in each cluster, by its name: empty for the living one.
    fn node_plans(&self) -> impl Future<Output = Result<Vec<(String, Vec<NodePlan>)>, PortError>>;
    /// Approves a plan in the living cluster, in the name of this process. `on`: where it was approved, and by whom. `name`: who this process
    /// is where the cluster does not say.
    fn approve(&self, plan: &str, name: &str, on: &str) -> impl Future<Output = Result<(), PortError>>;
}

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
