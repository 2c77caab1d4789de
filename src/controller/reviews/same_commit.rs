//! Pull requests at one commit, such as one branch proposed for two others. A status is of a commit, so it must hold for each of them: the
//! worst is set, with the number of the pull request that it is of, and the check is of the same one. Comments are of one pull request each.

use std::cmp::Reverse;

use super::ReviewPorts;
use super::approvals::Approvals;
use super::posting::posting;
use super::repository::{Change, ReviewedRepository};
use crate::ports::PortError;
use crate::ports::pull_requests::{Check, PullRequest, Status, Table, TargetPosting};
use crate::render::posting::fitted_line;

/// The statuses that the other pull requests at this commit have, by their numbers. One that can not be planned has none.
pub async fn statuses<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    pull_request: &PullRequest,
) -> Result<Vec<(u64, Vec<Status>)>, PortError> {
    let mut found = Vec::new();
    for number in repository.at_same_commit(pull_request) {
        let Some(other) = repository.open.iter().find(|it| it.number == number) else { continue };
        let preview = match repository.seen.get(&number).filter(|seen| seen.head == other.head) {
            Some(seen) => seen.preview.clone(),
            None => {
                let (head, base) = (&other.head, &other.base_reference);
                match repository.planned(Change { number: Some(number), head, base, is_new: false }).await.0 {
                    Ok(preview) => preview,
                    Err(error) => {
                        let of = pull_request.number;
                        let what = format!("pull request {number}, at the same commit as {of}, can not be planned");
                        repository.complain(&what, &error);
                        continue;
                    }
                }
            }
        };
        let mut targets = posting(&preview, Some(number), repository.shown(), repository.table()).targets;
        if repository.rules().require_approval {
            let approvals = Approvals::read(repository, other, &preview, &[]).await?;
            targets.extend(approvals.statuses(&preview, &targets, repository.table()));
        }
        found.push((number, targets.into_iter().map(|target| target.status).collect()));
    }
    Ok(found)
}

/// Sets each status to the worst that any of them has. Whichever pull request is posted, it is the same. A forge shows the check that was
/// made last of several by one name: that of another pull request than the status is left to that one.
pub fn put_together(targets: &mut [TargetPosting], own: u64, others: &[(u64, Vec<Status>)], table: &Table) {
    for target in targets {
        let of_others = others.iter().flat_map(|(number, statuses)| statuses.iter().map(|status| (*number, status)));
        let same = of_others.filter(|(_, status)| status.context == target.status.context);
        let all: Vec<(u64, &Status)> = std::iter::once((own, &target.status)).chain(same).collect();
        let says = |status: &Status| (status.state, status.description.clone());
        if all.iter().all(|(_, status)| says(status) == says(&target.status)) {
            continue;
        }
        let Some((number, worst)) =
            all.iter().max_by_key(|(number, status)| (status.state.badness(), Reverse(*number)))
        else {
            continue;
        };
        let description = of_pull_request(*number, &worst.description, table.status_characters);
        target.check = target.check.take().filter(|_| *number == own).map(|check| of_own(own, check));
        target.status = table.fitted(Status { description, ..(*worst).clone() });
    }
}

fn of_own(number: u64, check: Check) -> Check {
    const TITLE_CHARACTERS: usize = 200;
    Check { title: fitted_line(&format!("pull request {number}: {}", check.title), TITLE_CHARACTERS), ..check }
}

/// With the number before it. What stands behind the last dot, the plan's digest, stays where there is no room for all of it.
fn of_pull_request(number: u64, description: &str, characters: usize) -> String {
    const DOT: &str = " · ";
    let (before, behind) = match description.rsplit_once(DOT) {
        Some((before, plan)) => (before, format!("{DOT}{plan}")),
        None => (description, String::new()),
    };
    let room = characters.saturating_sub(behind.chars().count());
    format!("{}{behind}", fitted_line(&format!("pull request {number}: {before}"), room))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::pull_requests::{Conclusion, State};

    const TABLE: Table = Table {
        comment_characters: 1,
        comment_bytes: 1,
        status_characters: 140,
        context_characters: 255,
        status_takes_all_characters: true,
        check: None,
    };

    fn status(state: State, description: &str) -> Status {
        Status { context: "cutlist/blue".to_owned(), state, description: description.to_owned(), link: None }
    }

    fn together(own: (u64, Status), other: (u64, Status)) -> (State, String) {
        let mut targets = [TargetPosting { status: own.1, comment: None, check: None }];
        put_together(&mut targets, own.0, &[(other.0, vec![other.1])], &TABLE);
        let [TargetPosting { status, .. }] = targets;
        (status.state, status.description)
    }

    #[test]
    fn a_status_holds_for_each_pull_request_at_its_commit() {
        let one = || (7, status(State::Success, "3 created"));
        for (other, state, description) in [
            ((8, status(State::Success, "3 created")), State::Success, "3 created"),
            ((8, status(State::Success, "5 created")), State::Success, "pull request 7: 3 created"),
            ((8, status(State::Pending, "waits")), State::Pending, "pull request 8: waits"),
            ((8, status(State::Failure, "1 error")), State::Failure, "pull request 8: 1 error"),
        ] {
            assert_eq!(together(one(), other.clone()), (state, description.to_owned()));
            // Whichever of the two is posted.
            assert_eq!(together(other, one()), (state, description.to_owned()));
        }
    }

    #[test]
    fn the_check_is_that_of_the_pull_request_that_the_status_is_of() {
        let check = Check {
            name: "cutlist/blue lines".to_owned(),
            key: "key".to_owned(),
            conclusion: Conclusion::Success,
            title: "3 created".to_owned(),
            summary: String::new(),
            link: None,
            annotations: Vec::new(),
        };
        let title = |own: (u64, Status), other: (u64, Status)| {
            let mut targets = [TargetPosting { status: own.1, comment: None, check: Some(check.clone()) }];
            put_together(&mut targets, own.0, &[(other.0, vec![other.1])], &TABLE);
            let [TargetPosting { check, .. }] = targets;
            check.map(|check| check.title)
        };
        let (good, bad) = (|| status(State::Success, "3 created"), || status(State::Failure, "1 error"));
        assert_eq!(title((7, good()), (8, bad())), None);
        assert_eq!(title((8, bad()), (7, good())).as_deref(), Some("pull request 8: 3 created"));
        assert_eq!(title((7, good()), (8, good())).as_deref(), Some("3 created"), "they are the same");
    }

    #[test]
    fn the_plan_stays_in_what_is_too_long() {
        let description = format!("{} · plan 0123456", "1 node created, ".repeat(8));
        let said = of_pull_request(7, &description, 140);
        assert!(said.chars().count() <= 140 && said.ends_with("… · plan 0123456"), "{said}");
    }

    #[test]
    fn what_another_cluster_has_does_not_matter() {
        let other = Status { context: "cutlist/red".to_owned(), ..status(State::Failure, "1 error") };
        assert_eq!(together((7, status(State::Success, "x")), (8, other)), (State::Success, "x".to_owned()));
    }
}
