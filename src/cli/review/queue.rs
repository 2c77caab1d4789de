//! Commits of a merge queue: what the forge makes of pull requests to see whether they still pass together. Such a commit must have the
//! statuses that pull requests must have, and is of none of them, so there is no comment.

use super::approvals::Approvals;
use super::rounds::{Change, Rounds};
use crate::adapters::forge::{ForgeError, HostedRepository, PullRequest, TargetPosting, post};
use crate::api::preview::Preview;
use crate::cli::output;
use crate::cli::post::{assembled, tell};
use crate::ports::PortErrorKind;

/// Commits that are looked at. A forge builds fewer at a time.
const QUEUED_MAX: usize = 50;

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
    pub fn among(forge: &HostedRepository, base: &str, listed: Vec<(String, String)>) -> Vec<Self> {
        let queued = |(reference, commit): (String, String)| {
            let number = forge.queued(base, &reference)?;
            Some(Self { number, base: base.to_owned(), reference, commit })
        };
        listed.into_iter().filter_map(queued).collect()
    }
}

/// Plans and posts each commit once. Says whether all of it could be done.
pub async fn look(rounds: &mut Rounds, queued: &[Queued]) -> bool {
    let is_there = |reference: &str| queued.iter().any(|it| it.reference == reference);
    for reference in rounds.queued().keys().filter(|it| !is_there(it)).cloned().collect::<Vec<_>>() {
        rounds.queued().remove(&reference);
        rounds.histories().forget(&reference);
    }
    let mut is_complete = true;
    for it in queued.iter().take(QUEUED_MAX) {
        if rounds.queued().get(&it.reference) == Some(&it.commit) {
            continue;
        }
        if plan_and_post(rounds, it).await {
            rounds.queued().insert(it.reference.clone(), it.commit.clone());
        } else {
            is_complete = false;
        }
    }
    is_complete
}

async fn plan_and_post(rounds: &Rounds, queued: &Queued) -> bool {
    let Queued { number, base, reference, commit } = queued;
    match rounds.histories().fetch(reference).await {
        Ok(fetched) if fetched == *commit => {}
        // It was made anew between the list and now: the next list has it.
        Ok(_) => return true,
        // It was merged, or left the queue.
        Err(error) if error.kind == PortErrorKind::NotFound => return true,
        Err(error) => {
            rounds
                .said()
                .complain(&format!("the merge queue's commit for pull request {number} can not be fetched"), &error);
            return false;
        }
    }
    let change = Change { number: None, head: commit, base, is_new: true };
    let (planned, begun) = rounds.planned(change).await;
    let preview = match planned {
        Ok(preview) => preview,
        Err(failure) => {
            output::say(&format!(
                "the merge queue's commit for pull request {number} can not be planned: {:#}",
                failure.error
            ));
            rounds.take_back(commit, begun).await;
            return false;
        }
    };
    let mut posting = assembled(&preview, None, rounds.shown(), rounds.resolved().table());
    posting.begun = begun.into_iter().map(|status| status.context).collect();
    match approvals(rounds, *number, &preview, &posting.targets).await {
        Ok(approvals) => posting.targets.extend(approvals),
        Err(error) => {
            rounds.said().complain(
                &format!("the approvals of pull request {number}, which is in a merge queue, can not be read"),
                &error,
            );
            return false;
        }
    }
    output::say(&format!("merge queue, pull request {number} at {commit}"));
    let done = post(rounds.forge(), &posting).await;
    tell(&done);
    for (context, what, error) in &done.failed {
        rounds.said().complain(&format!("{context}: can not {what}"), error);
    }
    done.failed.is_empty()
}

/// What was approved on the pull request counts here where it is the same plan.
async fn approvals(
    rounds: &Rounds,
    number: u64,
    preview: &Preview,
    targets: &[TargetPosting],
) -> Result<Vec<TargetPosting>, ForgeError> {
    if !rounds.manner().require_approval {
        return Ok(Vec::new());
    }
    let pull_request: PullRequest = match rounds.open().iter().find(|it| it.number == number) {
        Some(open) => open.clone(),
        None => rounds.forge().pull_request(number).await?,
    };
    let approvals = Approvals::read(rounds, &pull_request, preview, &[]).await?;
    Ok(approvals.statuses_in_queue(number, preview, targets, rounds.forge().table()))
}
