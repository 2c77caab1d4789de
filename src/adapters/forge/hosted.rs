//! A repository on a forge: what can be asked of it and done there, with tokens, pages, tags and patience, the same for every forge.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use hyper::header::LINK;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::dialect::{
    Access, Check, Comment, Dialect, PullRequest, Right, Status, Table, Team, TeamStep, Token, TokenStep,
};
use super::http::{Client, Credential, ForgeAnswer, HttpError, OnErrand, Request, tag};

/// Pages of a list; behind them nothing is looked for. A pull request with 5,000 comments is no longer read by anybody.
pub(super) const PAGES_MAX: u32 = 50;
/// A forge hears of a push up to some seconds later than those it tells of it.
const UNKNOWN_FOR: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];
/// A token is replaced so long before it ends.
const TOKEN_MARGIN: SignedDuration = SignedDuration::from_mins(5);
/// Answers that are kept to be asked for by their tags. One for each list that is polled.
const TAGS_MAX: usize = 64;
/// So long it is believed who is in a team, and who is not: somebody who was just added asks again.
const MEMBER_FOR: SignedDuration = SignedDuration::from_mins(5);
const NO_MEMBER_FOR: SignedDuration = SignedDuration::from_secs(30);
const MEMBERS_MAX: usize = 1_000;
/// Comments of which one request asks whether they were edited.
const EDITS_AT_ONCE: usize = 50;
/// Commits of which it is known where their statuses go.
const PLACES_MAX: usize = 1_000;
/// Requests on the way to whether somebody is in a team.
const TEAM_STEPS_MAX: usize = 4;

#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("the forge's answer to {0} is not what its documentation says")]
    Answer(&'static str),
    /// GraphQL says what is wrong in an answer that looks like any other.
    #[error("the forge refused {what}: {message}")]
    Refused { what: &'static str, message: String, may_pass: bool },
    #[error("there is no pull request {0} here that this account sees")]
    NoPullRequest(u64),
    /// What is posted for it is shown nowhere.
    #[error(
        "{commit} is the merge that the forge made to try pull request {number}, and what is pushed is {head}: make the preview of that one, with --head {head}"
    )]
    TriedMerge { commit: String, number: u64, head: String },
    /// Forges answer as they do where a right is missing.
    #[error(
        "the conversation of pull request {number} is locked, and this account may not write there: unlock it, or let the account write to the repository"
    )]
    Locked { number: u64, source: Box<ForgeError> },
    #[error("no token can be made: {0}")]
    NoToken(&'static str),
    #[error("who is in {team} is not told to this account: {needs}")]
    TeamNotTold { team: String, needs: &'static str },
    #[error("{team} is no name of a team here: write {form}")]
    NoTeamName { team: String, form: &'static str },
}

impl ForgeError {
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Http(error) => error.status(),
            Self::Answer(_)
            | Self::Refused { .. }
            | Self::NoPullRequest(_)
            | Self::TriedMerge { .. }
            | Self::Locked { .. }
            | Self::NoToken(_)
            | Self::TeamNotTold { .. }
            | Self::NoTeamName { .. } => None,
        }
    }

    /// Whether it may get better by itself, with time.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Http(error) => error.may_pass(),
            Self::Refused { may_pass, .. } => *may_pass,
            _ => false,
        }
    }

    /// Whether it will not get better without somebody who changes a permission. A rate limit looks alike and passes, and a token that
    /// ran out is no lack of a permission.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Locked { .. }) || (self.status() == Some(StatusCode::FORBIDDEN) && !self.may_pass())
    }
}

impl From<super::http::SecretError> for ForgeError {
    fn from(error: super::http::SecretError) -> Self {
        Self::Http(error.into())
    }
}

/// How often it was looked what became of one thing, and how long was waited between.
#[derive(Debug, Default)]
pub struct Looks {
    pub number: u32,
    waited: Duration,
}

pub struct HostedRepository {
    client: Client,
    pub(super) dialect: Box<dyn Dialect>,
    access: Access,
    token: tokio::sync::Mutex<Option<Token>>,
    account: OnceCell<String>,
    /// Tags of lists, by path.
    known: Mutex<BTreeMap<String, String>>,
    /// Who is in which team, and when that was told.
    members: Mutex<BTreeMap<(Team, String), (bool, Timestamp)>>,
    /// Where statuses of a commit go. What is known first stays: all statuses of a commit go to one place.
    places: Mutex<BTreeMap<String, Value>>,
}

impl HostedRepository {
    pub fn new(client: Client, dialect: Box<dyn Dialect>, access: Access) -> Self {
        let (known, members, places) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (token, account) = (tokio::sync::Mutex::default(), OnceCell::new());
        Self { client, dialect, access, token, account, known, members, places }
    }

    pub fn table(&self) -> &'static Table {
        self.dialect.table()
    }

    /// What is asked and done until the end of what is given belongs together: what was waited for in vain is not waited for again.
    pub fn begin_errand(&self) -> OnErrand<'_> {
        self.client.begin_errand()
    }

    /// Whom comments of this program are by. Asked once, and not at all where the caller knows.
    pub async fn account(&self) -> Result<&str, ForgeError> {
        let ask = || async {
            let answer = self.ask(&self.dialect.account()).await?;
            refused_in(&answer, "to say who we are")?;
            self.dialect.read_account(&answer.body).ok_or(ForgeError::Answer("who we are"))
        };
        self.account.get_or_try_init(ask).await.map(String::as_str)
    }

    /// Says who wrote what this program has just written, so that it need not be asked.
    pub fn is_known_as(&self, author: &str) {
        // Whoever was first is the same.
        let _known = self.account.set(author.to_owned());
    }

    pub fn is_by(&self, comment: &Comment, account: &str) -> bool {
        self.dialect.is_account(&comment.author, account)
    }

    pub async fn pull_request(&self, number: u64) -> Result<PullRequest, ForgeError> {
        let outcome = self.ask_for_what_is_new(&self.dialect.pull_request(number)).await;
        self.read_pull_request(number, outcome)
    }

    /// The same, where nobody waits for one that the forge does not know yet.
    pub async fn known_pull_request(&self, number: u64) -> Result<PullRequest, ForgeError> {
        let outcome = self.ask(&self.dialect.pull_request(number)).await;
        self.read_pull_request(number, outcome)
    }

    fn read_pull_request(
        &self,
        number: u64,
        outcome: Result<ForgeAnswer, ForgeError>,
    ) -> Result<PullRequest, ForgeError> {
        let answer = match outcome {
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => {
                return Err(ForgeError::NoPullRequest(number));
            }
            answer => answer?,
        };
        let read = self.dialect.read_pull_request(&answer.body).ok_or(ForgeError::Answer("a pull request"))?;
        if let Some(place) = self.dialect.read_status_place(&answer.body) {
            let mut places = self.places();
            if places.len() >= PLACES_MAX {
                places.pop_first();
            }
            places.entry(read.head.clone()).or_insert(place);
        }
        Ok(read)
    }

    /// Whether the pull request must be read before a status of this commit is set: it tells where that goes.
    pub fn lacks_place(&self, commit: &str) -> bool {
        self.dialect.has_status_places() && !self.places().contains_key(commit)
    }

    /// Whether a status was refused since neither a branch nor a job of the repository has its commit.
    pub fn has_no_place(&self, error: &ForgeError) -> bool {
        matches!(error, ForgeError::Http(error) if self.dialect.has_no_place(error))
    }

    fn places(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Value>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` when the list is the one that was given last.
    pub async fn open_pull_requests(&self) -> Result<Option<Vec<PullRequest>>, ForgeError> {
        let Some(items) = self.pages_if_changed(|page| self.dialect.open_pull_requests(page)).await? else {
            return Ok(None);
        };
        Ok(Some(items.iter().filter_map(|item| self.dialect.read_pull_request(item)).collect()))
    }

    /// Those that were merged lately.
    pub async fn merged_pull_requests(&self) -> Result<Vec<PullRequest>, ForgeError> {
        let answer = self.ask(&self.dialect.merged_pull_requests()).await?;
        let read = list(answer.body)?.into_iter().filter_map(|item| self.dialect.read_pull_request(&item));
        Ok(read.filter(|pull_request| pull_request.merged_as.is_some()).collect())
    }

    /// Where Git finds the head of a pull request.
    pub fn head_reference(&self, number: u64) -> String {
        self.dialect.head_reference(number)
    }

    /// How Git's references of the merge queue into a branch begin, where the forge has one.
    pub fn queue(&self, base: &str) -> Option<String> {
        self.dialect.queue(base)
    }

    /// The pull request that a reference of such a queue was made for.
    pub fn queued(&self, base: &str, reference: &str) -> Option<u64> {
        self.dialect.read_queued(reference.strip_prefix(&self.dialect.queue(base)?)?)
    }

    /// All of them, oldest first.
    pub async fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let items = self.pages(|page| self.dialect.comments(number, page)).await?;
        let mut comments: Vec<Comment> = items.iter().filter_map(|item| self.dialect.read_comment(item)).collect();
        comments.sort_by_key(|comment| comment.id);
        comments.dedup_by_key(|comment| comment.id);
        Ok(comments)
    }

    /// Takes comments that changed in some way for unedited where nobody edited them: a reaction of anybody moves the same moment on some
    /// forges. Asks of those that `matter`; what the forge does not tell may have been edited.
    pub async fn tell_edits(
        &self,
        comments: &mut [Comment],
        matters: impl Fn(&Comment) -> bool,
    ) -> Result<(), ForgeError> {
        let in_question: Vec<u64> =
            comments.iter().filter(|it| it.is_edited && matters(it)).map(|comment| comment.id).collect();
        for ids in in_question.chunks(EDITS_AT_ONCE) {
            let Some(request) = self.dialect.edits(ids) else { return Ok(()) };
            let unedited = match self.ask(&request).await {
                Ok(answer) => self.dialect.read_unedited(&answer.body, ids),
                Err(error) if error.may_pass() => return Err(error),
                // A forge that knows no such question.
                Err(_) => Vec::new(),
            };
            comments.iter_mut().filter(|it| unedited.contains(&it.id)).for_each(|it| it.is_edited = false);
        }
        Ok(())
    }

    pub async fn create_comment(&self, number: u64, body: &str) -> Result<Comment, ForgeError> {
        let answer = self.unless_locked(number, self.ask(&self.dialect.create_comment(number, body)).await).await?;
        self.dialect.read_comment(&answer.body).ok_or(ForgeError::Answer("a new comment"))
    }

    pub async fn edit_comment(&self, number: u64, id: u64, body: &str) -> Result<(), ForgeError> {
        self.unless_locked(number, self.ask(&self.dialect.edit_comment(number, id, body)).await).await.map(drop)
    }

    /// Names the lock where that is why a comment was refused.
    async fn unless_locked(
        &self,
        number: u64,
        outcome: Result<ForgeAnswer, ForgeError>,
    ) -> Result<ForgeAnswer, ForgeError> {
        match outcome {
            Err(error) if error.is_denied() && self.known_pull_request(number).await.is_ok_and(|it| it.is_locked) => {
                Err(ForgeError::Locked { number, source: Box::new(error) })
            }
            outcome => outcome,
        }
    }

    /// One that is gone is gone.
    pub async fn remove_comment(&self, number: u64, id: u64) -> Result<(), ForgeError> {
        match self.ask(&self.dialect.remove_comment(number, id)).await {
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Folds it away; where a forge can not, removes it.
    pub async fn hide_comment(&self, number: u64, comment: &Comment) -> Result<(), ForgeError> {
        match self.dialect.hide_comment(comment) {
            Some(request) => refused_in(&self.ask(&request).await?, "to hide a comment"),
            None => self.remove_comment(number, comment.id).await,
        }
    }

    /// The newest of each context.
    pub async fn statuses(&self, commit: &str) -> Result<Vec<Status>, ForgeError> {
        let mut all = Vec::new();
        for page in 1..=PAGES_MAX {
            let answer = self.ask_for_what_is_new(&self.dialect.statuses(commit, page)).await?;
            all.extend(self.dialect.read_statuses(&answer.body));
            if !has_next(&answer) {
                break;
            }
        }
        Ok(all)
    }

    /// When this account set the first status of a commit that has one of these contexts; `None`: there is none, or that is not told.
    pub async fn first_status(&self, commit: &str, contexts: &[String]) -> Result<Option<Timestamp>, ForgeError> {
        let items = match self.pages(|page| self.dialect.all_statuses(commit, page)).await {
            Err(error) if error.may_pass() => return Err(error),
            items => items.unwrap_or_default(),
        };
        let account = self.account().await?;
        let set = items.iter().filter_map(|item| self.dialect.read_set_status(item));
        let own = set.filter(|it| contexts.contains(&it.context) && self.dialect.is_account(&it.by, account));
        Ok(own.map(|it| it.at).min())
    }

    pub async fn set_status(&self, commit: &str, status: &Status) -> Result<(), ForgeError> {
        let place = self.places().get(commit).cloned();
        match self.ask_for_what_is_new(&self.dialect.set_status(commit, status, place.as_ref())).await {
            Err(ForgeError::Http(error)) if self.dialect.has_status_already(&error) => Ok(()),
            outcome => {
                if let Some(creator) = self.dialect.read_status_creator(&outcome?.body) {
                    self.is_known_as(&creator);
                }
                Ok(())
            }
        }
    }

    /// Waits before it is looked again what became of a request that nobody knows the end of, as long as the forge asked for, and longer
    /// each time. `false`: that was often and long enough.
    pub async fn pause(&self, looks: &mut Looks, error: &ForgeError) -> bool {
        let ForgeError::Http(HttpError::Uncertain { wait, .. }) = error else { return false };
        let limits = self.client.limits();
        looks.number += 1;
        let wait = limits.pause(looks.number).max(*wait);
        if looks.number >= limits.attempts || looks.waited.saturating_add(wait) > self.client.allowance() {
            self.client.waited_in_vain(looks.waited);
            return false;
        }
        looks.waited += wait;
        tokio::time::sleep(wait).await;
        true
    }

    /// Whether there is a check with that key; `None` where the forge has no checks.
    pub async fn has_check(&self, commit: &str, check: &Check) -> Result<Option<bool>, ForgeError> {
        let Some(request) = self.dialect.checks(commit, &check.name) else { return Ok(None) };
        let answer = self.ask_for_what_is_new(&request).await?;
        Ok(Some(self.dialect.has_check(&answer.body, &check.key)))
    }

    /// With as many requests as its annotations need; says whether the forge has checks.
    pub async fn create_check(&self, commit: &str, check: &Check) -> Result<bool, ForgeError> {
        let at_once = self.table().check.map_or(0, |table| table.annotations_in_a_request);
        let (first, rest) = check.annotations.split_at(check.annotations.len().min(at_once));
        let Some(request) = self.dialect.create_check(commit, check, first) else { return Ok(false) };
        let created = self.ask_for_what_is_new(&request).await?;
        for annotations in rest.chunks(at_once.max(1)) {
            if let Some(request) = self.dialect.append_to_check(&created.body, check, annotations) {
                self.ask(&request).await?;
            }
        }
        Ok(true)
    }

    /// What a comment's author may do in the repository.
    pub async fn permission(&self, author: &str, author_id: u64) -> Result<Right, ForgeError> {
        match self.ask(&self.dialect.permission(author, author_id)).await {
            Ok(answer) => Ok(self.dialect.read_permission(&answer.body)),
            Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => Ok(Right::None),
            Err(error) => Err(error),
        }
    }

    /// Refuses what can be the name of no team; asks nothing.
    pub fn check_team(&self, team: &Team) -> Result<(), ForgeError> {
        match self.dialect.team_step(team, ("", 0), &[]) {
            TeamStep::NoName(form) => Err(ForgeError::NoTeamName { team: team.to_string(), form }),
            TeamStep::Ask(_) | TeamStep::Is(_) | TeamStep::NotTold(_) => Ok(()),
        }
    }

    /// Whether a comment's author is in a team, as the forge told within minutes.
    pub async fn is_in_team(&self, team: &Team, author: &str, author_id: u64) -> Result<bool, ForgeError> {
        let key = (team.clone(), author.to_owned());
        let now = self.client.clock().now();
        let is_fresh =
            |(is_in, at): (bool, Timestamp)| now.duration_since(at) < if is_in { MEMBER_FOR } else { NO_MEMBER_FOR };
        let known = self.members().get(&key).copied().filter(|known| is_fresh(*known));
        if let Some((is_in, _)) = known {
            return Ok(is_in);
        }
        let is_in = self.ask_team(team, (author, author_id)).await?;
        let mut members = self.members();
        members.retain(|_, known| is_fresh(*known));
        if members.len() >= MEMBERS_MAX {
            members.pop_first();
        }
        members.insert(key, (is_in, now));
        Ok(is_in)
    }

    async fn ask_team(&self, team: &Team, member: (&str, u64)) -> Result<bool, ForgeError> {
        let not_told = |needs| ForgeError::TeamNotTold { team: team.to_string(), needs };
        let mut answers = Vec::new();
        while answers.len() < TEAM_STEPS_MAX {
            let request = match self.dialect.team_step(team, member, &answers) {
                TeamStep::Is(is_in) => return Ok(is_in),
                TeamStep::NotTold(needs) => return Err(not_told(needs)),
                TeamStep::NoName(form) => return Err(ForgeError::NoTeamName { team: team.to_string(), form }),
                TeamStep::Ask(request) => request,
            };
            answers.push(match self.ask(&request).await {
                Ok(answer) => Some(answer.body),
                Err(error) if error.status() == Some(StatusCode::NOT_FOUND) => None,
                Err(error) if error.status() == Some(StatusCode::FORBIDDEN) => {
                    return Err(not_told(self.dialect.team_rights()));
                }
                Err(error) => return Err(error),
            });
        }
        Err(ForgeError::Answer("who is in a team"))
    }

    fn members(&self) -> std::sync::MutexGuard<'_, BTreeMap<(Team, String), (bool, Timestamp)>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pages(&self, request: impl Fn(u32) -> Request) -> Result<Vec<Value>, ForgeError> {
        let mut items = Vec::new();
        for page in 1..=PAGES_MAX {
            let answer = self.ask_for_what_is_new(&request(page)).await?;
            let is_last = !has_next(&answer);
            items.extend(list(answer.body)?);
            if is_last {
                break;
            }
        }
        Ok(items)
    }

    /// A list of one page is asked for by its tag. Of longer ones the first page does not tell what is new in the others.
    async fn pages_if_changed(&self, request: impl Fn(u32) -> Request) -> Result<Option<Vec<Value>>, ForgeError> {
        let first = request(1);
        let tagged = self.known().get(&first.path).cloned();
        let credential = self.credential().await?;
        let Some(answer) = self.client.ask_if_changed(&first, Some(&credential), tagged.as_deref()).await? else {
            return Ok(None);
        };
        if has_next(&answer) {
            self.known().remove(&first.path);
            let mut items = list(answer.body)?;
            items.extend(self.pages(|page| request(page.saturating_add(1))).await?);
            return Ok(Some(items));
        }
        if let Some(tag) = tag(&answer) {
            let mut known = self.known();
            if known.len() >= TAGS_MAX && !known.contains_key(&first.path) {
                known.pop_first();
            }
            known.insert(first.path, tag);
        }
        Ok(Some(list(answer.body)?))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for what a push may have made a moment ago.
    async fn ask_for_what_is_new(&self, request: &Request) -> Result<ForgeAnswer, ForgeError> {
        let is_unknown_yet = |outcome: &Result<ForgeAnswer, ForgeError>| {
            let Err(ForgeError::Http(error)) = outcome else { return false };
            error.status().is_some_and(|it| self.dialect.is_unknown_yet(it, error.message()))
        };
        for pause in UNKNOWN_FOR {
            let outcome = self.ask(request).await;
            if !is_unknown_yet(&outcome) || self.client.has_missed() {
                return outcome;
            }
            tokio::time::sleep(pause).await;
        }
        let outcome = self.ask(request).await;
        if is_unknown_yet(&outcome) {
            self.client.missed();
        }
        outcome
    }

    pub(super) async fn ask(&self, request: &Request) -> Result<ForgeAnswer, ForgeError> {
        let credential = self.credential().await?;
        match self.client.ask(request, Some(&credential)).await {
            // Taken back before its time, or the clocks differ.
            Err(error)
                if error.status() == Some(StatusCode::UNAUTHORIZED) && matches!(self.access, Access::Key { .. }) =>
            {
                *self.token.lock().await = None;
                let credential = self.credential().await?;
                Ok(self.client.ask(request, Some(&credential)).await?)
            }
            outcome => Ok(outcome?),
        }
    }

    async fn credential(&self) -> Result<Credential, ForgeError> {
        let (issuer, key) = match &self.access {
            Access::Token(source) => return Ok(self.dialect.credential(&source.read()?)),
            Access::Key { issuer, key } => (issuer, key),
        };
        let mut kept = self.token.lock().await;
        let now = self.client.clock().now();
        let is_good = |token: &&Token| token.until.saturating_sub(TOKEN_MARGIN).is_ok_and(|end| now < end);
        if let Some(token) = kept.as_ref().filter(is_good) {
            return Ok(self.dialect.credential(&token.value));
        }
        let mut answers = Vec::new();
        loop {
            match self.dialect.token_step(issuer, &key.read()?, now, &answers)? {
                TokenStep::Ask(request, credential) => {
                    answers.push(self.client.ask(&request, Some(&credential)).await?.body);
                }
                TokenStep::Have(token) => {
                    let credential = self.dialect.credential(&token.value);
                    *kept = Some(token);
                    return Ok(credential);
                }
                TokenStep::Nothing(why) => return Err(ForgeError::NoToken(why)),
            }
        }
    }
}

/// What GraphQL refused, which REST says by its status.
fn refused_in(answer: &ForgeAnswer, what: &'static str) -> Result<(), ForgeError> {
    let Some(first) = answer.body["errors"].as_array().and_then(|errors| errors.first()) else { return Ok(()) };
    let message = first["message"].as_str().unwrap_or("it does not say why").to_owned();
    Err(ForgeError::Refused { what, message, may_pass: first["type"] == "RATE_LIMITED" })
}

fn list(body: Value) -> Result<Vec<Value>, ForgeError> {
    match body {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        _ => Err(ForgeError::Answer("a list")),
    }
}

/// `Link: <…>; rel="next"`, which all forges send.
pub(super) fn has_next(answer: &ForgeAnswer) -> bool {
    let links = answer.headers.get_all(LINK).iter().filter_map(|it| it.to_str().ok());
    links.flat_map(|line| line.split(',')).any(|link| link.contains("rel=\"next\""))
}
