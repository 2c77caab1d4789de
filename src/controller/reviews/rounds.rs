//! One look after the other at the open pull requests: those whose head or base moved are planned and posted.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;

use super::answers::{self, Obeyed};
use super::approvals::Approvals;
use super::merged::{self, Merged};
use super::posting::{Shown, posting, told_together};
use super::queue::{self, Queue, Queued};
use super::repository::{Change, KnownHead, ReviewedRepository, SECOND_IS_OVER, Seen, Told};
use super::trouble::PutOff;
use super::turns::{Round, Turns};
use super::{ReviewPorts, ReviewRules, same_commit};
use crate::api::preview::Preview;
use crate::ports::PortError;
use crate::ports::pull_requests::{Comment, Done, History, PullRequest, PullRequests, TargetPosting};

/// A cluster changes under a pull request that does not. It is planned again after so long, and posted if something differs.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// Looks at the open pull requests of one repository.
pub struct Rounds<P> {
    repository: ReviewedRepository<P>,
    merged: Merged,
    queue: Queue,
    put_off: PutOff,
    turns: Turns,
}

impl<P: ReviewPorts> Rounds<P> {
    /// Asks nothing yet.
    pub fn new(ports: P, rules: ReviewRules, shown: Shown) -> Self {
        let repository = ReviewedRepository::new(ports, rules, shown);
        let (merged, queue, put_off) = (Merged::default(), Queue::default(), PutOff::default());
        Self { repository, merged, queue, put_off, turns: Turns::default() }
    }

    /// Says whether all of it could be done; what could not is tried in the next round.
    pub async fn look(&mut self) -> bool {
        let mut closed = Vec::new();
        match self.repository.forge().open_pull_requests().await {
            Ok(Some(open)) => {
                let before = self.repository.open.iter().map(|it| it.number);
                closed = before.filter(|number| open.iter().all(|it| it.number != *number)).collect();
                self.repository.open = open;
            }
            Ok(None) => {}
            Err(error) => {
                self.repository.complain("the open pull requests can not be read", &error);
                return false;
            }
        }
        self.forget(&closed);
        let Round { looked_at: open, left_out, told } = self.turns.next(self.repository.open.clone());
        if let Some(told) = told {
            self.repository.say(&told);
        }
        // What is planned anew at its turn may have its statuses from the turn before.
        self.repository.has_looked &= left_out.is_empty();
        for number in &left_out {
            self.repository.seen.remove(number);
        }
        let mut bases: BTreeMap<String, Option<String>> = BTreeMap::new();
        let mut queued = Vec::new();
        for branch in open.iter().map(|it| it.base_reference.clone()) {
            if bases.contains_key(&branch) {
                continue;
            }
            let reference = format!("refs/heads/{branch}");
            let forge = self.repository.forge();
            let fetched = self.repository.history().fetch_and_list(&reference, forge.queue(&branch)).await;
            let fetched =
                fetched.inspect_err(|error| self.repository.complain("a base can not be fetched", error)).ok();
            let commit = fetched.map(|(commit, listed)| {
                queued.extend(Queued::among(forge, &branch, listed));
                commit
            });
            bases.insert(branch, commit);
        }
        // What is queued was reviewed, and whoever merges waits for it.
        let mut is_complete = queue::look(&mut self.queue, &self.repository, &queued).await;
        for pull_request in open {
            let Some(Some(base)) = bases.get(&pull_request.base_reference) else {
                is_complete = false;
                continue;
            };
            is_complete &= self.look_at(&pull_request, base).await;
        }
        if self.repository.has_comments() {
            is_complete &= merged::look(&mut self.merged, &self.repository, &closed).await;
        }
        self.repository.has_looked |= is_complete && left_out.is_empty();
        is_complete
    }

    /// How soon it is to be looked again, where something may have happened in the second of what was seen last.
    pub fn again_after(&self) -> Option<Duration> {
        let repository = &self.repository;
        let may_miss = repository.has_comments() && repository.seen.values().any(|seen| !seen.updated.is_over);
        may_miss.then_some(SECOND_IS_OVER.unsigned_abs())
    }

    /// Those that are not open any more.
    fn forget(&mut self, closed: &[u64]) {
        for number in closed {
            self.repository.seen.remove(number);
            self.repository.heads.remove(number);
            self.repository.digests.remove(number);
            self.put_off.forget(*number);
            self.repository.history().forget(&self.repository.forge().head_reference(*number));
        }
    }

    async fn look_at(&mut self, pull_request: &PullRequest, base: &str) -> bool {
        let number = pull_request.number;
        let head = KnownHead::after(self.repository.heads.get(&number), &pull_request.head);
        self.repository.heads.insert(number, head);
        let now = self.repository.now();
        let is_known = self.repository.seen.get(&number).is_some_and(|seen| {
            let is_same = seen.head == pull_request.head && seen.base == base;
            let with_same = seen.at_same_commit == self.repository.at_same_commit(pull_request);
            is_same && with_same && now.duration_since(seen.planned) < AGAIN_AFTER
        });
        if !is_known {
            if self.put_off.waits(pull_request, base, now) {
                return false;
            }
            let is_done = self.plan_and_post(pull_request, base, &[]).await;
            self.put_off.note(pull_request, base, is_done, self.repository.now());
            if !is_done {
                return false;
            }
        }
        let now = self.repository.now();
        let Some(updated) = self.repository.seen.get(&number).map(|seen| seen.updated.next(&pull_request.updated, now))
        else {
            return true;
        };
        if updated.is_over || !self.repository.has_comments() {
            self.comments_are_read(number);
            return true;
        }
        let asked = self.repository.now();
        match answers::obey(&self.repository, pull_request).await {
            Ok(Obeyed { wants_plan, answers, are_all }) => {
                if are_all {
                    self.comments_are_read(number);
                }
                let is_done = !wants_plan || self.plan_and_post(pull_request, base, &answers).await;
                let now = self.repository.now();
                match self.repository.seen.get_mut(&number) {
                    Some(seen) if is_done => seen.updated = updated.read(asked, now),
                    // Planned again in the next round: what was asked for is answered, and nobody asks once more.
                    _ => drop(self.repository.seen.remove(&number)),
                }
                is_done
            }
            Err(error) => {
                let what = format!("the comments on pull request {number} can not be answered");
                self.repository.complain(&what, &error);
                // What was answered before that may ask for a plan.
                self.repository.seen.remove(&number);
                false
            }
        }
    }

    fn comments_are_read(&mut self, number: u64) {
        self.repository.heads.entry(number).and_modify(|head| head.unread = None);
    }

    /// `answers`: comments that this process has just written.
    async fn plan_and_post(&mut self, pull_request: &PullRequest, base: &str, answers: &[Comment]) -> bool {
        let number = pull_request.number;
        let reference = self.repository.forge().head_reference(number);
        match self.repository.history().fetch(&reference).await {
            Ok(head) if head == pull_request.head => {}
            // Pushed between the list and now: the next list has it.
            Ok(_) => return true,
            Err(error) => {
                self.repository.complain(&format!("pull request {number} can not be fetched"), &error);
                return false;
            }
        }
        let is_new = self.repository.seen.get(&number).is_none_or(|seen| seen.head != pull_request.head);
        let PullRequest { head, base_reference, .. } = pull_request;
        let change = Change { number: Some(number), head, base: base_reference, is_new };
        let (planned, begun) = self.repository.planned(change).await;
        let preview = match planned {
            Ok(preview) => preview,
            Err(error) => {
                self.repository.complain(&format!("pull request {number} can not be planned"), &error);
                self.repository.take_back(&pull_request.head, begun).await;
                return false;
            }
        };
        self.repository.digests.entry(number).or_default().add(&preview);
        let mut posting = posting(&preview, Some(number), self.repository.shown(), self.repository.table());
        posting.begun = begun.into_iter().map(|status| status.context).collect();
        let without_approvals = posting.targets.len();
        match self.add_approvals(pull_request, &preview, answers, &mut posting.targets).await {
            Ok(shown_before) => {
                let shown = self.repository.digests.entry(number).or_default();
                shown.extend(shown_before.iter().map(String::as_str));
            }
            Err(error) => {
                self.repository.complain(&format!("the approvals of pull request {number} can not be read"), &error);
                self.repository.seen.remove(&number);
                return false;
            }
        }
        let approvals = posting.targets.iter().skip(without_approvals);
        posting.only_while_open = approvals.map(|target| target.status.context.clone()).collect();
        // What fails is planned and posted again in the next round.
        let before = self.repository.seen.remove(&number);
        let told = Told::of(&posting);
        let is_same = before.as_ref().is_some_and(|it| it.head == pull_request.head && it.told == told);
        if is_same {
            // Everybody who may write can set a status: those of approvals are looked at again.
            posting.targets.drain(..without_approvals);
        } else {
            self.repository.say(&format!("pull request {number} at {}", pull_request.head));
            if let Some(told) = told_together(&preview, self.repository.shown()) {
                self.repository.say(&format!("pull request {number}: {told}"));
            }
        }
        let mut is_shown = before.as_ref().is_some_and(|it| it.is_shown);
        if !posting.targets.is_empty() {
            let posted = self.repository.forge().post(&posting).await;
            if !is_same {
                let is_left = |done: &Done| matches!(done, Done::CommentIsOfAnother | Done::IsClosed);
                is_shown = !posted.done.iter().any(|(_, done)| is_left(done));
            }
            if !self.repository.tell(&format!("pull request {number}"), &posted, !is_same) {
                return false;
            }
        }
        let seen = Seen {
            head: pull_request.head.clone(),
            base: base.to_owned(),
            planned: self.repository.now(),
            preview,
            told,
            is_shown,
            at_same_commit: self.repository.at_same_commit(pull_request),
            updated: before.map(|seen| seen.updated).unwrap_or_default(),
        };
        self.repository.seen.insert(number, seen);
        true
    }

    /// The statuses of approvals, and of all of them what holds for every pull request at the commit. Gives the digests that comments show.
    async fn add_approvals(
        &self,
        pull_request: &PullRequest,
        preview: &Preview,
        answers: &[Comment],
        targets: &mut Vec<TargetPosting>,
    ) -> Result<Vec<String>, PortError> {
        let mut shown_before = Vec::new();
        let repository = &self.repository;
        if repository.rules().require_approval {
            let approvals = Approvals::read(repository, pull_request, preview, answers).await?;
            targets.extend(approvals.statuses(preview, targets, repository.table()));
            shown_before = approvals.shown_before;
        }
        let others = same_commit::statuses(repository, pull_request).await?;
        same_commit::put_together(targets, pull_request.number, &others, repository.table());
        Ok(shown_before)
    }
}
