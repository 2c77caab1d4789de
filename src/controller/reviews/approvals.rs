//! Who approved which plan of a pull request. The record is the command of whoever approved, and this program's answer to it: two
//! comments, neither of them edited. A status only says what comes of it, for everybody who may write can set one.

use std::collections::{BTreeMap, BTreeSet};

use super::ReviewPorts;
use super::commands::approved_digits;
use super::digests::{digest_of, short};
use super::repository::ReviewedRepository;
use super::rights::{self, Wish};
use super::two_people::TwoPeople;
use crate::api::preview::{Preview, PreviewTarget, PreviewVerdict};
use crate::core::preview::DIGEST_DIGITS;
use crate::ports::PortError;
use crate::ports::pull_requests::{Comment, PullRequest, PullRequests, State, Status, Table, TargetPosting};
use crate::render::posting::{ApprovedPlans, answer_marker, approved_in, fitted_line, plans_shown};

/// One approval that stands on a pull request: what was approved, and the number of who did.
pub struct Given {
    pub plans: ApprovedPlans,
    pub author_id: u64,
}

/// The approvals that comments hold, oldest first: of an answer of ours and the command that it names, both as they were written.
/// `is_ours`: whether a comment is by this program. `name`: whose answers.
pub fn given(comments: &[Comment], name: &str, is_ours: impl Fn(&Comment) -> bool) -> Vec<Given> {
    let commands: BTreeMap<String, (&Comment, String)> = comments
        .iter()
        .filter(|comment| !comment.is_edited && !is_ours(comment))
        .filter_map(|comment| Some((answer_marker(comment.id, name), (comment, approved_digits(&comment.body)?))))
        .collect();
    let of_answer = |answer: &Comment| {
        let plans = approved_in(&answer.body, name)?;
        let (command, digits) = commands.get(answer.body.lines().next()?.trim_end())?;
        let is_meant =
            digits.len() >= DIGEST_DIGITS && plans.digests.iter().all(|digest| digest.starts_with(digits.as_str()));
        (plans.by == command.author && is_meant).then_some(Given { plans, author_id: command.author_id })
    };
    comments.iter().filter(|comment| !comment.is_edited && is_ours(comment)).filter_map(of_answer).collect()
}

/// Whether there may be an approval among them; who this program is need not be asked otherwise.
fn may_hold_any(comments: &[Comment], name: &str) -> bool {
    comments.iter().any(|comment| approved_in(&comment.body, name).is_some())
}

/// Whether it may be one of the two comments of an approval.
pub fn is_of_approvals(comment: &Comment, name: &str) -> bool {
    approved_digits(&comment.body).is_some() || approved_in(&comment.body, name).is_some()
}

/// Approvals that count now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approvals {
    /// By digest: who gave them.
    by: BTreeMap<String, String>,
    /// Digests of the plans that comments show, also those that another process wrote. Whoever writes such a comment makes no more of it than
    /// that all digits of another plan are asked for.
    pub shown_before: Vec<String>,
}

impl Approvals {
    /// Those of the plans of this preview, given for this very head by people who still may, and where two people are asked for by none who
    /// made it. `made`: comments that were written a moment ago, which the forge's list may lack.
    pub async fn read<P: ReviewPorts>(
        repository: &ReviewedRepository<P>,
        pull_request: &PullRequest,
        preview: &Preview,
        made: &[Comment],
    ) -> Result<Self, PortError> {
        let wanted: BTreeSet<&str> = preview.targets.iter().filter_map(digest_of).collect();
        let mut approvals = Self::default();
        if wanted.is_empty() {
            return Ok(approvals);
        }
        let mut comments = repository.forge().comments(pull_request.number).await?;
        let missing =
            made.iter().filter(|made| comments.iter().all(|it| it.id != made.id)).cloned().collect::<Vec<_>>();
        comments.extend(missing);
        let is_digest = |text: &String| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        approvals.shown_before =
            comments.iter().flat_map(|comment| plans_shown(&comment.body)).filter(is_digest).collect();
        if !may_hold_any(&comments, repository.name()) {
            return Ok(approvals);
        }
        repository.forge().tell_edits(&mut comments, |comment| is_of_approvals(comment, repository.name())).await?;
        let account = &repository.forge().account().await?;
        let mut two_people = TwoPeople::new(repository.rules());
        for given in given(&comments, repository.name(), |comment| repository.forge().is_by(comment, account)) {
            let by = given.plans.by;
            let news = given.plans.digests.into_iter().filter(|digest| wanted.contains(digest.as_str()));
            let news: Vec<String> = news.filter(|digest| !approvals.by.contains_key(digest)).collect();
            // Who looked at one head did not look at what was pushed after it.
            if news.is_empty() || given.plans.head != pull_request.head {
                continue;
            }
            if two_people.refusal(repository.forge(), pull_request, &by).await?.is_some() {
                continue;
            }
            let may =
                rights::refusal(repository.forge(), repository.rules(), (&by, given.author_id), Wish::Approve).await?;
            if may.is_none() {
                approvals.by.extend(news.into_iter().map(|digest| (digest, by.clone())));
            }
        }
        Ok(approvals)
    }

    /// A status for each target, beside those that are posted.
    pub fn statuses(&self, preview: &Preview, posted: &[TargetPosting], table: &Table) -> Vec<TargetPosting> {
        self.each(preview, posted, table, None)
    }

    /// The same for a commit of a merge queue. Nobody can approve there: what is not the plan that was approved leaves the queue.
    pub fn statuses_in_queue(
        &self,
        number: u64,
        preview: &Preview,
        posted: &[TargetPosting],
        table: &Table,
    ) -> Vec<TargetPosting> {
        self.each(preview, posted, table, Some(number))
    }

    fn each(
        &self,
        preview: &Preview,
        posted: &[TargetPosting],
        table: &Table,
        queued: Option<u64>,
    ) -> Vec<TargetPosting> {
        let status = |(target, posted): (&PreviewTarget, &TargetPosting)| {
            self.status(target, format!("{}/approval", posted.status.context), table, queued)
        };
        preview.targets.iter().zip(posted).map(status).collect()
    }

    fn status(&self, target: &PreviewTarget, context: String, table: &Table, queued: Option<u64>) -> TargetPosting {
        let (state, description) = match (digest_of(target), target.verdict) {
            (Some(digest), _) => match (self.by.get(digest), queued) {
                (Some(by), _) => (State::Success, format!("approved by {by}: plan {}", short(digest))),
                (None, None) => (State::Pending, format!("waits for: /cutlist approve {}", short(digest))),
                (None, Some(number)) => {
                    let plan = short(digest);
                    (
                        State::Failure,
                        format!("plan {plan} of the merge queue is not one approved on pull request {number}"),
                    )
                }
            },
            (None, PreviewVerdict::Untouched | PreviewVerdict::NoEffect | PreviewVerdict::NotKnown)
                if target.not_known.is_none() =>
            {
                (State::Success, "nothing to approve".to_owned())
            }
            (None, _) => (State::Pending, "there is no plan to approve".to_owned()),
        };
        let description = fitted_line(&description, table.status_characters);
        let status = table.fitted(Status { context, state, description, link: None });
        TargetPosting { status, comment: None, check: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::posting::answer;

    const BOT: &str = "cutlist-bot";

    fn comment(id: u64, author: &str, body: &str) -> Comment {
        Comment {
            id,
            hidden_by: String::new(),
            author: author.to_owned(),
            author_id: id,
            body: body.to_owned(),
            created: None,
            is_edited: false,
        }
    }

    fn approval(of: u64, by: &str, digest: &str) -> String {
        let plans = ApprovedPlans { by: by.to_owned(), head: "ef".repeat(20), digests: vec![digest.to_owned()] };
        answer(of, "cutlist", "Approved", "", Some(&plans))
    }

    fn approvers(comments: &[Comment]) -> Vec<String> {
        given(comments, "cutlist", |comment| comment.author == BOT).into_iter().map(|it| it.plans.by).collect()
    }

    #[test]
    fn an_approval_is_a_command_and_our_answer_to_it() {
        let digest = "ab".repeat(32);
        let command = comment(1, "bob", "/cutlist approve ABABABABABAB");
        let answered = comment(2, BOT, &approval(1, "bob", &digest));
        assert_eq!(approvers(&[command.clone(), answered.clone()]), ["bob"]);
        // Of a command nothing comes before it was answered, and of an answer nothing without its command.
        assert!(approvers(std::slice::from_ref(&command)).is_empty());
        assert!(approvers(std::slice::from_ref(&answered)).is_empty());
        let edited = |it: &Comment| Comment { is_edited: true, ..it.clone() };
        assert!(approvers(&[edited(&command), answered.clone()]).is_empty());
        assert!(approvers(&[command.clone(), edited(&answered)]).is_empty());
        for other in [
            comment(2, "ada", &answered.body),
            comment(2, BOT, &format!("> {}", answered.body)),
            comment(2, BOT, &approval(1, "ada", &digest)),
            comment(2, BOT, &approval(1, "bob", &"cd".repeat(32))),
            comment(2, BOT, &approval(3, "bob", &digest)),
        ] {
            assert!(approvers(&[command.clone(), other.clone()]).is_empty(), "{other:?}");
        }
        for said in [
            "/cutlist plan",
            "/cutlist approve",
            // Who may push finds another plan that begins with so few.
            "/cutlist approve ababababa",
            "> /cutlist approve abababababab",
        ] {
            assert!(approvers(&[comment(1, "bob", said), answered.clone()]).is_empty(), "{said}");
        }
    }
}
