//! One look after the other at the open pull requests: those whose head or base moved are planned and posted.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use super::approvals::{Approvals, ShownDigests};
use super::commands::Obeyed;
use super::merged::Merged;
use super::queue::Queued;
use super::trouble::{PutOff, Said};
use super::{commands, comments, merged, queue, twins};
use crate::adapters::forge::{
    Comment, Done, ForgeError, HostedRepository, Posting, PullRequest, State, Status, TargetPosting, announce, post,
};
use crate::adapters::git::Histories;
use crate::adapters::kubernetes::{Approval, approve, user_name};
use crate::api::node_plan::NodePlan;
use crate::api::preview::Preview;
use crate::cli::arguments::{PreviewArguments, ReviewManner};
use crate::cli::cluster::{connected, unreadable};
use crate::cli::exit::Failure;
use crate::cli::post::{Resolved, Shown, assembled, pending, room, tell};
use crate::cli::why::Question;
use crate::cli::{output, preview};
use crate::render::posting::Room;

/// Pull requests that are looked at; of more, those opened last.
const PULL_REQUESTS_MAX: usize = 200;
/// A cluster changes under a pull request that does not. It is planned again after so long, and posted if something differs.
const AGAIN_AFTER: Duration = Duration::from_mins(15);

/// A plan that is known sooner is not announced: a status that is replaced within a second says nothing, and costs a request.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(1);
/// Clusters of one preview that are announced; behind them there is a status when there is a plan.
const ANNOUNCED_MAX: usize = 100;

/// So long after a moment was first heard of nothing more happens in its second.
const SECOND_IS_OVER: Duration = Duration::from_secs(2);
/// A moment before this is over whatever the two clocks are apart.
const LONG_AGO: SignedDuration = SignedDuration::from_mins(10);

/// Looks at the open pull requests of one repository.
pub struct Rounds {
    forge: HostedRepository,
    resolved: Resolved,
    histories: Histories,
    preview: PreviewArguments,
    shown: Shown,
    manner: ReviewManner,
    open: Vec<PullRequest>,
    seen: BTreeMap<u64, Seen>,
    /// What was shown on open pull requests, by number.
    digests: BTreeMap<u64, ShownDigests>,
    merged: Merged,
    /// Commits of merge queues that have their statuses, by reference.
    queued: BTreeMap<String, String>,
    put_off: PutOff,
    said: Said,
    /// What is new from now on is new to everybody: no process before this one has set its status.
    has_looked: bool,
}

/// What is known of a pull request.
pub(super) struct Seen {
    pub head: String,
    base: String,
    planned: Instant,
    pub preview: Preview,
    posted: Vec<Posted>,
    /// Whether its comments are those that were posted: else they are of another commit, or were left as they were.
    is_shown: bool,
    /// Other pull requests at the same commit.
    twins: Vec<u64>,
    /// How the forge called its state when its comments were read.
    updated: Updated,
}

/// A commit, and the branch that it is to go into.
#[derive(Clone, Copy)]
pub(super) struct Change<'c> {
    /// `None`: it is of no pull request.
    pub number: Option<u64>,
    pub head: &'c str,
    pub base: &'c str,
    /// Whether it is said of the commit that it is being planned, where that takes a while.
    pub is_new: bool,
}

/// The moment at which a pull request was last touched, by the forge's word, which has whole seconds: what happens later in the same
/// second does not change it.
#[derive(Clone, Debug, Default)]
struct Updated {
    text: String,
    since: Option<Instant>,
    /// Whether comments were read when its second was surely over.
    is_over: bool,
}

impl Updated {
    /// Of what the forge says now, after what it said before.
    fn next(&self, text: &str) -> Self {
        if self.text == text && self.since.is_some() {
            return self.clone();
        }
        Self { text: text.to_owned(), since: Some(Instant::now()), is_over: false }
    }

    /// After comments were read that were asked for at `asked`.
    fn read(self, asked: Instant) -> Self {
        let is_long_ago = self.text.parse::<Timestamp>().is_ok_and(|at| Timestamp::now().duration_since(at) > LONG_AGO);
        let was_seen_before = self.since.is_some_and(|since| asked.duration_since(since) >= SECOND_IS_OVER);
        Self { is_over: is_long_ago || was_seen_before, ..self }
    }
}

/// What of a posting tells whether it must be done again.
#[derive(PartialEq, Eq)]
struct Posted(TargetPosting);

impl Posted {
    fn of(posting: &Posting) -> Vec<Self> {
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
    /// The first two lines of each comment that was left on the pull request.
    pub fn left(&self) -> impl Iterator<Item = (&str, &str)> {
        let comments =
            self.posted.iter().filter(|_| self.is_shown).filter_map(|Posted(target)| target.comment.as_ref());
        comments.map(|comment| (comment.marker.as_str(), comment.data.as_str()))
    }
}

impl Rounds {
    pub fn new(
        forge: HostedRepository,
        resolved: Resolved,
        histories: Histories,
        preview: PreviewArguments,
        shown: Shown,
        manner: ReviewManner,
    ) -> Self {
        let (open, seen, merged, queued) = (Vec::new(), BTreeMap::new(), Merged::default(), BTreeMap::new());
        let (digests, has_looked) = (BTreeMap::new(), false);
        let (put_off, said) = (PutOff::default(), Said::default());
        Self {
            forge,
            resolved,
            histories,
            preview,
            shown,
            manner,
            open,
            seen,
            digests,
            merged,
            queued,
            put_off,
            said,
            has_looked,
        }
    }

    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    pub(super) fn forge(&self) -> &HostedRepository {
        &self.forge
    }

    pub(super) fn name(&self) -> &str {
        &self.shown.name
    }

    pub(super) fn manner(&self) -> &ReviewManner {
        &self.manner
    }

    pub(super) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Pull requests that were open at the last look.
    pub(super) fn open(&self) -> &[PullRequest] {
        &self.open
    }

    pub(super) fn said(&self) -> &Said {
        &self.said
    }

    pub(super) fn queued(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.queued
    }

    /// Other open pull requests at the same commit.
    pub(super) fn twins(&self, pull_request: &PullRequest) -> Vec<u64> {
        let is_twin = |it: &&PullRequest| it.head == pull_request.head && it.number != pull_request.number;
        let mut twins: Vec<u64> = self.open.iter().filter(is_twin).map(|it| it.number).collect();
        twins.sort_unstable();
        twins
    }

    /// Says whether all of it could be done; what could not is tried in the next round.
    pub async fn look(&mut self) -> bool {
        let mut closed = Vec::new();
        match self.forge.open_pull_requests().await {
            Ok(Some(open)) => {
                let gone =
                    self.open.iter().map(|it| it.number).filter(|number| open.iter().all(|it| it.number != *number));
                closed = gone.collect();
                self.open = open;
            }
            Ok(None) => {}
            Err(error) => {
                self.said.complain("the open pull requests can not be read", &error);
                return false;
            }
        }
        self.forget(&closed);
        let mut open = self.open.clone();
        open.sort_by_key(|it| std::cmp::Reverse(it.number));
        open.truncate(PULL_REQUESTS_MAX);
        let mut bases: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut queued = Vec::new();
        for branch in open.iter().map(|it| it.base_reference.clone()) {
            if bases.contains_key(&branch) {
                continue;
            }
            let reference = format!("refs/heads/{branch}");
            let fetched = self.histories.fetch_and_list(&reference, self.forge.queue(&branch)).await;
            let fetched = fetched.inspect_err(|error| self.said.complain("a base can not be fetched", error)).ok();
            let commit = fetched.map(|(commit, listed)| {
                queued.extend(Queued::among(&self.forge, &branch, listed));
                commit
            });
            bases.insert(branch, commit);
        }
        // What is queued was reviewed, and whoever merges waits for it.
        let mut is_complete = queue::look(self, &queued).await;
        for pull_request in open {
            let Some(Some(base)) = bases.get(&pull_request.base_reference) else {
                is_complete = false;
                continue;
            };
            is_complete &= self.look_at(&pull_request, base).await;
        }
        if comments(&self.manner) {
            is_complete &= merged::look(self, &closed).await;
        }
        self.has_looked |= is_complete;
        is_complete
    }

    /// How soon it is to be looked again, where something may have happened in the second of what was seen last.
    pub fn again_after(&self) -> Option<Duration> {
        let may_miss = comments(&self.manner) && self.seen.values().any(|seen| !seen.updated.is_over);
        may_miss.then_some(SECOND_IS_OVER)
    }

    /// Those that are not open any more.
    fn forget(&mut self, closed: &[u64]) {
        for number in closed {
            self.seen.remove(number);
            self.digests.remove(number);
            self.put_off.forget(*number);
            self.histories.forget(&self.forge.head_reference(*number));
        }
    }

    async fn look_at(&mut self, pull_request: &PullRequest, base: &str) -> bool {
        let number = pull_request.number;
        let is_known = self.seen.get(&number).is_some_and(|seen| {
            let is_same = seen.head == pull_request.head && seen.base == base;
            is_same && seen.twins == self.twins(pull_request) && seen.planned.elapsed() < AGAIN_AFTER
        });
        if !is_known {
            if self.put_off.waits(pull_request, base, Instant::now()) {
                return false;
            }
            let is_done = self.plan_and_post(pull_request, base, &[]).await;
            self.put_off.note(pull_request, base, is_done, Instant::now());
            if !is_done {
                return false;
            }
        }
        let Some(updated) = self.seen.get(&number).map(|seen| seen.updated.next(&pull_request.updated)) else {
            return true;
        };
        if updated.is_over || !comments(&self.manner) {
            return true;
        }
        let asked = Instant::now();
        match commands::obey(self, pull_request).await {
            Ok(Obeyed { wants_plan, answers }) => {
                let is_done = !wants_plan || self.plan_and_post(pull_request, base, &answers).await;
                match self.seen.get_mut(&number) {
                    Some(seen) if is_done => seen.updated = updated.read(asked),
                    // Planned again in the next round: what was asked for is answered, and nobody asks once more.
                    _ => drop(self.seen.remove(&number)),
                }
                is_done
            }
            Err(error) => {
                self.said.complain(&format!("the comments on pull request {number} can not be answered"), &error);
                // What was answered before that may ask for a plan.
                self.seen.remove(&number);
                false
            }
        }
    }

    /// `answers`: comments that this process has just written.
    async fn plan_and_post(&mut self, pull_request: &PullRequest, base: &str, answers: &[Comment]) -> bool {
        let number = pull_request.number;
        match self.histories.fetch(&self.forge.head_reference(number)).await {
            Ok(head) if head == pull_request.head => {}
            // Pushed between the list and now: the next list has it.
            Ok(_) => return true,
            Err(error) => {
                self.said.complain(&format!("pull request {number} can not be fetched"), &error);
                return false;
            }
        }
        let is_new = self.seen.get(&number).is_none_or(|seen| seen.head != pull_request.head);
        let PullRequest { head, base_reference, .. } = pull_request;
        let (planned, begun) = self.planned(Change { number: Some(number), head, base: base_reference, is_new }).await;
        let preview = match planned {
            Ok(preview) => preview,
            Err(failure) => {
                self.said.say(&format!("pull request {number} can not be planned"), &format!("{:#}", failure.error));
                self.take_back(&pull_request.head, begun).await;
                return false;
            }
        };
        self.digests.entry(number).or_default().add(&preview);
        let mut posting = assembled(&preview, Some(number), &self.shown, self.resolved.table());
        posting.begun = begun.into_iter().map(|status| status.context).collect();
        let without_approvals = posting.targets.len();
        match self.add_approvals(pull_request, &preview, answers, &mut posting.targets).await {
            Ok(shown_before) => {
                let shown = self.digests.entry(number).or_default();
                shown.extend(shown_before.iter().map(String::as_str));
            }
            Err(error) => {
                self.said.complain(&format!("the approvals of pull request {number} can not be read"), &error);
                self.seen.remove(&number);
                return false;
            }
        }
        // What fails is planned and posted again in the next round.
        let before = self.seen.remove(&number);
        let posted = Posted::of(&posting);
        let is_same = before.as_ref().is_some_and(|it| it.head == pull_request.head && it.posted == posted);
        if is_same {
            // Everybody who may write can set a status: those of approvals are looked at again.
            posting.targets.drain(..without_approvals);
        } else {
            output::say(&format!("pull request {number} at {}", pull_request.head));
        }
        let mut is_shown = before.as_ref().is_some_and(|it| it.is_shown);
        if !posting.targets.is_empty() {
            let done = post(&self.forge, &posting).await;
            if !is_same {
                tell(&done);
                is_shown = !done.done.iter().any(|(_, it)| matches!(it, Done::CommentIsOfAnother | Done::IsClosed));
            }
            for (context, what, error) in &done.failed {
                self.said.complain(&format!("pull request {number}, {context}: can not {what}"), error);
            }
            if !done.failed.is_empty() {
                return false;
            }
        }
        let seen = Seen {
            head: pull_request.head.clone(),
            base: base.to_owned(),
            planned: Instant::now(),
            preview,
            posted,
            is_shown,
            twins: self.twins(pull_request),
            updated: before.map(|seen| seen.updated).unwrap_or_default(),
        };
        self.seen.insert(number, seen);
        true
    }

    /// The statuses of approvals, and of all of them what holds for every pull request at the commit. Gives the digests that comments show.
    async fn add_approvals(
        &self,
        pull_request: &PullRequest,
        preview: &Preview,
        answers: &[Comment],
        targets: &mut Vec<TargetPosting>,
    ) -> Result<Vec<String>, ForgeError> {
        let mut shown_before = Vec::new();
        if self.manner.require_approval {
            let approvals = Approvals::read(self, pull_request, preview, answers).await?;
            targets.extend(approvals.statuses(preview, targets, self.forge.table()));
            shown_before = approvals.shown_before;
        }
        let others = twins::statuses(self, pull_request).await?;
        twins::put_together(targets, pull_request.number, &others, self.forge.table());
        Ok(shown_before)
    }

    /// Beside this thread: a plan may take seconds, and then the commit says so. With the statuses that say it.
    pub(super) async fn planned(&self, change: Change<'_>) -> (Result<Preview, Failure>, Vec<Status>) {
        let Change { number, head, is_new, .. } = change;
        let arguments = self.preview_of(change);
        let (begins, mut beginning) = mpsc::channel(ANNOUNCED_MAX);
        let mut made = tokio::task::spawn_blocking(move || {
            let told = |cluster: &str, environment: &str| {
                let _nobody_waits = begins.try_send((cluster.to_owned(), environment.to_owned()));
            };
            preview::made(&arguments, &told).map(|(preview, _)| preview)
        });
        let mut begun = Vec::new();
        // Asked where a process before this one, or another pull request, may have said something of the commit.
        let is_shared = self.open.iter().filter(|it| it.head == head).count() > 1;
        let mut known = (self.has_looked && !is_shared).then(Vec::new);
        let early = tokio::time::timeout(ANNOUNCED_AFTER, &mut made).await;
        let made = match early {
            Ok(made) => made,
            Err(_late) => loop {
                tokio::select! {
                    biased;
                    made = &mut made => break made,
                    Some((cluster, environment)) = beginning.recv(), if is_new => {
                        let status = pending(&cluster, &environment, &self.shown, self.resolved.table());
                        if let Some(number) = number.filter(|_| self.forge.lacks_place(head))
                            && let Err(error) = self.forge.pull_request(number).await
                        {
                            self.said.complain(&format!("pull request {number} can not be read"), &error);
                        }
                        let (set, failed) = announce(&self.forge, head, std::slice::from_ref(&status), &mut known).await;
                        if let Some(error) = failed {
                            self.said.complain(&format!("{} can not be set to pending", status.context), &error);
                        }
                        if !set.is_empty() {
                            begun.push(status);
                        }
                    }
                }
            },
        };
        let planned = made.map_err(Failure::failed).and_then(|made| made);
        (planned, begun)
    }

    /// What was announced does not come for now.
    pub(super) async fn take_back(&self, head: &str, begun: Vec<Status>) {
        for status in begun {
            let description = "could not be planned; it is tried again".to_owned();
            let status = Status { state: State::Error, description, ..status };
            if let Err(error) = self.forge.set_status(head, &status).await {
                self.said.complain(&format!("{} can not be set", status.context), &error);
            }
        }
    }

    pub(super) fn merged(&mut self) -> &mut Merged {
        &mut self.merged
    }

    pub(super) fn histories(&self) -> &Histories {
        &self.histories
    }

    pub(super) fn environment(&self) -> &str {
        &self.preview.environment
    }

    /// How long a comment may be.
    pub(super) fn room(&self) -> Room {
        room(self.resolved.table())
    }

    /// Of each cluster, beside this thread: a snapshot may be large.
    pub(super) async fn node_plans(&self) -> Result<Vec<(String, Vec<NodePlan>)>, Failure> {
        let arguments = PreviewArguments { path: self.histories.folder().to_owned(), ..self.preview.clone() };
        let read = tokio::task::spawn_blocking(move || preview::node_plans(&arguments));
        read.await.map_err(Failure::failed)?
    }

    /// The answer for each cluster, as if the pull request were merged.
    pub(super) async fn answered(
        &self,
        pull_request: &PullRequest,
        question: Question,
    ) -> Result<Vec<(String, String)>, Failure> {
        let PullRequest { head, base_reference, .. } = pull_request;
        let change = Change { number: Some(pull_request.number), head, base: base_reference, is_new: false };
        let arguments = self.preview_of(change);
        let answered = tokio::task::spawn_blocking(move || preview::answered(&arguments, &question));
        answered.await.map_err(Failure::failed)?
    }

    fn preview_of(&self, change: Change<'_>) -> PreviewArguments {
        PreviewArguments { base: change.base.to_owned(), head: change.head.to_owned(), ..self.preview.clone() }
    }

    /// Approves a plan in the living cluster, in the name of this process. `on`: where it was approved, and by whom.
    pub(super) async fn approve(&self, plan: &str, on: &str) -> Result<(), Failure> {
        let connection = connected(&self.preview.live).await?;
        let refused = |error| unreadable(error, &connection.address);
        let name = user_name(&connection.client).await.map_err(refused)?;
        let by = name.unwrap_or_else(|| self.shown.name.clone());
        match approve(&connection.client, plan, &by, Some(on)).await.map_err(refused)? {
            // One that does not wait any more was approved by somebody else, or another took its place.
            Approval::Given { .. } | Approval::NotWaiting { .. } | Approval::NoSuchPlan => Ok(()),
            Approval::Ambiguous { names } => Err(Failure::failed(anyhow!("{plan} may be any of {}", names.join(", ")))),
        }
    }

    pub(super) fn seen(&self, number: u64) -> Option<&Seen> {
        self.seen.get(&number)
    }

    pub(super) fn shown_digests(&self, number: u64) -> &ShownDigests {
        static NONE: ShownDigests = ShownDigests::none();
        self.digests.get(&number).unwrap_or(&NONE)
    }
}
