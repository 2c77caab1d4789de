//! The repository that is reviewed: how it is reached, how it is reviewed, and what is known of its pull requests.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use super::digests::ShownDigests;
use super::posting::{Shown, pending, room, what_was_done};
use super::trouble::Said;
use super::{ReviewPorts, ReviewRules};
use crate::api::node_plan::NodePlan;
use crate::api::preview::Preview;
use crate::ports::pull_requests::{
    Posted, Posting, Previews, PullRequest, PullRequests, Question, State, Status, Table, TargetPosting,
};
use crate::ports::{Clock, PortError, chain};
use crate::render::posting::Room;

/// A plan that is known sooner is not announced: a status that is replaced within a second says nothing, and costs a request.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(1);
/// Clusters of one preview that are announced; behind them there is a status when there is a plan.
const ANNOUNCED_MAX: usize = 100;

/// So long after a moment was first heard of nothing more happens in its second.
pub const SECOND_IS_OVER: SignedDuration = SignedDuration::from_secs(2);
/// A moment before this is over whatever the two clocks are apart.
const LONG_AGO: SignedDuration = SignedDuration::from_mins(10);

/// One repository whose pull requests are reviewed.
pub struct ReviewedRepository<P> {
    ports: P,
    rules: ReviewRules,
    shown: Shown,
    /// Pull requests that were open at the last look.
    pub open: Vec<PullRequest>,
    pub seen: BTreeMap<u64, Seen>,
    /// By number, which commit each was at when it was looked at last.
    pub heads: BTreeMap<u64, KnownHead>,
    /// What was shown on open pull requests, by number.
    pub digests: BTreeMap<u64, ShownDigests>,
    /// What is new from now on is new to everybody: no process before this one has set its status.
    pub has_looked: bool,
    said: Said,
}

/// What is known of a pull request.
pub struct Seen {
    pub head: String,
    /// The commit that it goes into.
    pub base: String,
    pub planned: Timestamp,
    pub preview: Preview,
    pub told: Vec<Told>,
    /// Whether its comments are those that were posted: else they are of another commit, or were left as they were.
    pub is_shown: bool,
    /// Other pull requests at the same commit.
    pub at_same_commit: Vec<u64>,
    /// How the forge called its state when its comments were read.
    pub updated: Updated,
}

/// A commit, and the branch that it is to go into.
#[derive(Clone, Copy)]
pub struct Change<'c> {
    /// `None`: it is of no pull request.
    pub number: Option<u64>,
    pub head: &'c str,
    pub base: &'c str,
    /// Whether it is said of the commit that it is being planned, where that takes a while.
    pub is_new: bool,
}

/// The commit that a pull request is at.
pub struct KnownHead {
    pub commit: String,
    /// The comments were not read since it was shown: those that are there may be older. `None`: they were.
    pub unread: Option<Unread>,
}

/// How this process came to know a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It was there at the first look. A process before this one may have shown it.
    Found,
    /// It was pushed while this process looked.
    Pushed,
}

impl KnownHead {
    /// After the one before.
    pub fn after(before: Option<&Self>, commit: &str) -> Self {
        let unread = match before {
            None => Some(Unread::Found),
            Some(before) if before.commit != commit => Some(Unread::Pushed),
            Some(before) => before.unread,
        };
        Self { commit: commit.to_owned(), unread }
    }
}

/// The moment at which a pull request was last touched, by the forge's word, which has whole seconds: what happens later in the same
/// second does not change it.
#[derive(Clone, Debug, Default)]
pub struct Updated {
    text: String,
    since: Option<Timestamp>,
    /// Whether comments were read when its second was surely over.
    pub is_over: bool,
}

impl Updated {
    /// Of what the forge says now, after what it said before.
    pub fn next(&self, text: &str, now: Timestamp) -> Self {
        if self.text == text && self.since.is_some() {
            return self.clone();
        }
        Self { text: text.to_owned(), since: Some(now), is_over: false }
    }

    /// After comments were read that were asked for at `asked`.
    pub fn read(self, asked: Timestamp, now: Timestamp) -> Self {
        let is_long_ago = self.text.parse::<Timestamp>().is_ok_and(|at| now.duration_since(at) > LONG_AGO);
        let was_seen_before = self.since.is_some_and(|since| asked.duration_since(since) >= SECOND_IS_OVER);
        Self { is_over: is_long_ago || was_seen_before, ..self }
    }
}

/// What of a posting tells whether it must be done again.
#[derive(PartialEq, Eq)]
pub struct Told(TargetPosting);

impl Told {
    pub fn of(posting: &Posting) -> Vec<Self> {
        let without_body = |target: &TargetPosting| {
            let mut target = target.clone();
            if let Some(comment) = &mut target.comment {
                comment.body.clear();
            }
            target.check = None;
            Self(target)
        };
        posting.targets.iter().map(without_body).collect()
    }
}

impl Seen {
    /// Under which its commit has statuses.
    pub fn contexts(&self) -> Vec<String> {
        self.told.iter().map(|Told(target)| target.status.context.clone()).collect()
    }

    /// The first two lines of each comment that was left on the pull request.
    pub fn left(&self) -> impl Iterator<Item = (&str, &str)> {
        let comments = self.told.iter().filter(|_| self.is_shown).filter_map(|Told(target)| target.comment.as_ref());
        comments.map(|comment| (comment.marker.as_str(), comment.data.as_str()))
    }
}

impl<P: ReviewPorts> ReviewedRepository<P> {
    /// Asks nothing yet.
    pub fn new(ports: P, rules: ReviewRules, shown: Shown) -> Self {
        Self {
            ports,
            rules,
            shown,
            open: Vec::new(),
            seen: BTreeMap::new(),
            heads: BTreeMap::new(),
            digests: BTreeMap::new(),
            has_looked: false,
            said: Said::default(),
        }
    }

    pub fn forge(&self) -> &P::Forge {
        self.ports.forge()
    }

    pub fn history(&self) -> &P::History {
        self.ports.history()
    }

    pub fn rules(&self) -> &ReviewRules {
        &self.rules
    }

    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// How much the forge takes.
    pub fn table(&self) -> &'static Table {
        self.forge().table()
    }

    /// By which statuses and comments are told apart from those of other installations.
    pub fn name(&self) -> &str {
        &self.shown.name
    }

    pub fn now(&self) -> Timestamp {
        self.ports.clock().now()
    }

    pub fn say(&self, text: &str) {
        self.ports.say(text);
    }

    /// Says of something that went wrong, which the next look may not meet.
    pub fn complain(&self, what: &str, error: &PortError) {
        self.say_trouble(what, &chain(error));
    }

    /// The same of what has no error of its own. What was said lately is not said again.
    pub fn say_trouble(&self, what: &str, why: &str) {
        if self.said.is_news(what, why, self.now()) {
            self.say(&format!("{what}: {why}"));
        }
    }

    /// Whether comments are written and read.
    pub const fn has_comments(&self) -> bool {
        self.shown.comment.is_some()
    }

    /// Other open pull requests at the same commit.
    pub fn at_same_commit(&self, pull_request: &PullRequest) -> Vec<u64> {
        let is_other = |it: &&PullRequest| it.head == pull_request.head && it.number != pull_request.number;
        let mut others: Vec<u64> = self.open.iter().filter(is_other).map(|it| it.number).collect();
        others.sort_unstable();
        others
    }

    /// A plan may take seconds, and then the commit says so. With the statuses that say it.
    pub async fn planned(&self, change: Change<'_>) -> (Result<Preview, PortError>, Vec<Status>) {
        let Change { number, head, base, is_new } = change;
        let (begins, mut beginning) = mpsc::channel(ANNOUNCED_MAX);
        let told = move |cluster: &str, environment: &str| {
            let _nobody_waits = begins.try_send((cluster.to_owned(), environment.to_owned()));
        };
        let mut made = pin!(self.ports.previews().preview(base, head, told));
        let mut begun = Vec::new();
        // Asked where a process before this one, or another pull request, may have said something of the commit.
        let is_shared = self.open.iter().filter(|it| it.head == head).count() > 1;
        let mut known = (self.has_looked && !is_shared).then(Vec::new);
        let early = tokio::time::timeout(ANNOUNCED_AFTER, made.as_mut()).await;
        let planned = match early {
            Ok(made) => made,
            Err(_late) => loop {
                tokio::select! {
                    biased;
                    made = made.as_mut() => break made,
                    Some((cluster, environment)) = beginning.recv(), if is_new => {
                        let status = pending(&cluster, &environment, &self.shown, self.table());
                        if self.announce(number, head, &status, &mut known).await {
                            begun.push(status);
                        }
                    }
                }
            },
        };
        (planned, begun)
    }

    /// Sets a status where nothing was said before of its context; says whether it did.
    async fn announce(
        &self,
        number: Option<u64>,
        head: &str,
        status: &Status,
        known: &mut Option<Vec<Status>>,
    ) -> bool {
        if let Some(number) = number.filter(|_| self.forge().lacks_place(head))
            && let Err(error) = self.forge().pull_request(number).await
        {
            self.complain(&format!("pull request {number} can not be read"), &error);
        }
        self.forge().announce(head, status, known).await.unwrap_or_else(|error| {
            self.complain(&format!("{} can not be set to pending", status.context), &error);
            false
        })
    }

    /// What was announced does not come for now.
    pub async fn take_back(&self, head: &str, begun: Vec<Status>) {
        for status in begun {
            let description = "could not be planned; it is tried again".to_owned();
            let status = Status { state: State::Error, description, ..status };
            if let Err(error) = self.forge().set_status(head, &status).await {
                self.complain(&format!("{} can not be set", status.context), &error);
            }
        }
    }

    /// What comments and statuses call this set of definitions.
    pub fn environment(&self) -> &str {
        self.ports.previews().environment()
    }

    /// Says what was done `of` something, where that `is_news`, and what failed; whether nothing did.
    pub fn tell(&self, of: &str, posted: &Posted, is_news: bool) -> bool {
        for (context, done) in posted.done.iter().filter(|_| is_news) {
            self.say(&format!("{context}: {}", what_was_done(*done)));
        }
        for (context, what, error) in &posted.failed {
            self.complain(&format!("{of}, {context}: can not {what}"), error);
        }
        posted.failed.is_empty()
    }

    /// How long a comment may be.
    pub fn room(&self) -> Room {
        room(self.table())
    }

    /// The plans that were posted in each cluster.
    pub async fn node_plans(&self) -> Result<Vec<(String, Vec<NodePlan>)>, PortError> {
        self.ports.previews().node_plans().await
    }

    /// The answer for each cluster, as if the pull request were merged.
    pub async fn answered(
        &self,
        pull_request: &PullRequest,
        question: Question,
    ) -> Result<Vec<(String, String)>, PortError> {
        self.ports.previews().answer(&pull_request.base_reference, &pull_request.head, question).await
    }

    /// Approves a plan in the living cluster, in the name of this process. `on`: where it was approved, and by whom.
    pub async fn approve(&self, plan: &str, on: &str) -> Result<(), PortError> {
        self.ports.previews().approve(plan, self.name(), on).await
    }

    pub fn shown_digests(&self, number: u64) -> &ShownDigests {
        static NONE: ShownDigests = ShownDigests::none();
        self.digests.get(&number).unwrap_or(&NONE)
    }
}
