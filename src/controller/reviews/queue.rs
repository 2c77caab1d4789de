//! Commits of a merge queue: what the forge makes of pull requests to see whether they still pass together. Such a commit must have the
//! statuses that pull requests must have, and is of none of them, so there is no comment.

use std::collections::BTreeMap;

use super::ReviewPorts;
use super::approvals::Approvals;
use super::posting::posting;
use super::repository::{Change, ReviewedRepository};
use crate::api::preview::Preview;
use crate::ports::pull_requests::{History, PullRequest, PullRequests, TargetPosting};
use crate::ports::{PortError, PortErrorKind};

/// Commits that are looked at. A forge builds fewer at a time.
const QUEUED_MAX: usize = 50;

/// Commits that have their statuses, by reference.
#[derive(Default)]
pub struct Queue(BTreeMap<String, String>);

/// A commit of the queue into a branch.
pub struct Queued {
    /// The pull request that was added last.
    number: u64,
    base: String,
    reference: String,
    commit: String,
}

impl Queued {
    /// Those among the references that were listed with a branch.
    pub fn among<F: PullRequests>(forge: &F, base: &str, listed: Vec<(String, String)>) -> Vec<Self> {
        let queued = |(reference, commit): (String, String)| {
            let number = forge.queued(base, &reference)?;
            Some(Self { number, base: base.to_owned(), reference, commit })
        };
        listed.into_iter().filter_map(queued).collect()
    }
}

/// Plans and posts each commit once. Says whether all of it could be done.
pub async fn look<P: ReviewPorts>(queue: &mut Queue, repository: &ReviewedRepository<P>, queued: &[Queued]) -> bool {
    let is_there = |reference: &str| queued.iter().any(|it| it.reference == reference);
    queue.0.retain(|reference, _| {
        if !is_there(reference) {
            repository.history().forget(reference);
        }
        is_there(reference)
    });
    let mut is_complete = true;
    for it in queued.iter().take(QUEUED_MAX) {
        if queue.0.get(&it.reference) == Some(&it.commit) {
            continue;
        }
        if plan_and_post(repository, it).await {
            queue.0.insert(it.reference.clone(), it.commit.clone());
        } else {
            is_complete = false;
        }
    }
    is_complete
}

async fn plan_and_post<P: ReviewPorts>(repository: &ReviewedRepository<P>, queued: &Queued) -> bool {
    let Queued { number, base, reference, commit } = queued;
    match repository.history().fetch(reference).await {
        Ok(fetched) if fetched == *commit => {}
        // It was made anew between the list and now: the next list has it.
        Ok(_) => return true,
        // It was merged, or left the queue.
        Err(error) if error.kind == PortErrorKind::NotFound => return true,
        Err(error) => {
            repository
                .complain(&format!("the merge queue's commit for pull request {number} can not be fetched"), &error);
            return false;
        }
    }
    let change = Change { number: None, head: commit, base, is_new: true };
    let (planned, begun) = repository.planned(change).await;
    let preview = match planned {
        Ok(preview) => preview,
        Err(error) => {
            let what = format!("the merge queue's commit for pull request {number} can not be planned");
            repository.complain(&what, &error);
            repository.take_back(commit, begun).await;
            return false;
        }
    };
    let mut posting = posting(&preview, None, repository.shown(), repository.table());
    posting.begun = begun.into_iter().map(|status| status.context).collect();
    match approvals(repository, *number, &preview, &posting.targets).await {
        Ok(approvals) => posting.targets.extend(approvals),
        Err(error) => {
            repository.complain(
                &format!("the approvals of pull request {number}, which is in a merge queue, can not be read"),
                &error,
            );
            return false;
        }
    }
    repository.say(&format!("merge queue, pull request {number} at {commit}"));
    repository.tell(&format!("merge queue, pull request {number}"), &repository.forge().post(&posting).await, true)
}

/// What was approved on the pull request counts here where it is the same plan.
async fn approvals<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    number: u64,
    preview: &Preview,
    targets: &[TargetPosting],
) -> Result<Vec<TargetPosting>, PortError> {
    if !repository.rules().require_approval {
        return Ok(Vec::new());
    }
    let pull_request: PullRequest = match repository.open.iter().find(|it| it.number == number) {
        Some(open) => open.clone(),
        None => repository.forge().pull_request(number).await?,
    };
    let approvals = Approvals::read(repository, &pull_request, preview, &[]).await?;
    Ok(approvals.statuses_in_queue(number, preview, targets, repository.table()))
}
