//! Commands that are obeyed and answered.
//!
//! Each command gets one answer, a comment that names the command's: by that a later process knows that it was obeyed. Comments that
//! were edited, that are by this program, or in which the command is not the first thing, are no commands.

use super::ReviewPorts;
use super::commands::{Command, parse};
use super::digests::{ambiguity, meant, short, short_commit};
use super::namesakes;
use super::repository::{ReviewedRepository, Seen, Unread};
use super::rights::{self, Wish};
use super::two_people::TwoPeople;
use crate::core::preview::DIGEST_DIGITS;
use crate::ports::pull_requests::{Comment, PullRequest, PullRequests};
use crate::ports::{PortError, chain};
use crate::render::posting::{ApprovedPlans, answer, answer_marker};

/// Answers in one round to one pull request: nobody types more, and a script should not make this program do so.
const ANSWERS_MAX: usize = 10;

/// What was answered.
#[derive(Default)]
pub struct Obeyed {
    /// Whether the pull request is to be planned again.
    pub wants_plan: bool,
    /// The answers, as comments.
    pub answers: Vec<Comment>,
    /// Whether none is left for another round.
    pub are_all: bool,
}

/// What is answered, and what comes of it.
#[derive(Default)]
struct Reply {
    text: String,
    /// Shown as it is, below the text.
    block: String,
    approved: Option<ApprovedPlans>,
    wants_plan: bool,
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Obeys what was not answered yet.
pub async fn obey<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    pull_request: &PullRequest,
) -> Result<Obeyed, PortError> {
    let mut all = repository.forge().comments(pull_request.number).await?;
    namesakes::tell(repository, pull_request.number, &all).await?;
    repository.forge().tell_edits(&mut all, |comment| parse(&comment.body).is_some()).await?;
    let open = unanswered(repository, &all).await?;
    let mut obeyed = Obeyed { are_all: open.len() <= ANSWERS_MAX, ..Obeyed::default() };
    for (comment, command) in open.into_iter().take(ANSWERS_MAX) {
        let reply = match refusal(repository, pull_request, &comment, &command).await? {
            Some(refusal) => refusal.into(),
            None => reply(repository, pull_request, &comment, command).await,
        };
        obeyed.wants_plan |= reply.wants_plan;
        let body = answer(comment.id, repository.name(), &reply.text, &reply.block, reply.approved.as_ref());
        obeyed.answers.push(repository.forge().create_comment(pull_request.number, &body).await?);
    }
    if !obeyed.answers.is_empty() {
        remove_further(repository, pull_request.number, &obeyed.answers).await?;
    }
    Ok(obeyed)
}

/// Somebody else may have answered at the same time, or an answer arrived of which nobody knew: the oldest of each command stays, and all
/// who look agree on which one that is.
async fn remove_further<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    number: u64,
    answers: &[Comment],
) -> Result<(), PortError> {
    let all = repository.forge().comments(number).await?;
    let account = &repository.forge().account().await?;
    let first_line = |comment: &Comment| comment.body.lines().next().unwrap_or_default().trim_end().to_owned();
    for answer in answers {
        let line = first_line(answer);
        let same = all.iter().filter(|it| first_line(it) == line && repository.forge().is_by(it, account));
        for further in same.skip(1) {
            repository.forge().remove_comment(number, further.id).await?;
        }
    }
    Ok(())
}

/// Why a command is not obeyed, whoever is right about it.
async fn refusal<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    pull_request: &PullRequest,
    comment: &Comment,
    command: &Command,
) -> Result<Option<String>, PortError> {
    if *command == Command::Unknown {
        let known =
            "I know /cutlist plan, /cutlist why pod NAMESPACE/NAME, /cutlist why node NAME and /cutlist approve DIGEST";
        return Ok(Some(known.to_owned()));
    }
    if *command == Command::Several {
        return Ok(Some("I obey one command in a comment, and there are several: nothing was done".to_owned()));
    }
    let wish = if matches!(command, Command::Approve(_)) { Wish::Approve } else { Wish::Ask };
    let refusal =
        rights::refusal(repository.forge(), repository.rules(), (&comment.author, comment.author_id), wish).await?;
    if refusal.is_some() || wish != Wish::Approve {
        return Ok(refusal);
    }
    let refusal = match of_an_older_head(repository, pull_request, comment).await? {
        Some(why) => Some(why),
        None => {
            let mut two_people = TwoPeople::new(repository.rules());
            two_people.refusal(repository.forge(), pull_request, &comment.author).await?
        }
    };
    Ok(refusal.map(|why| format!("{}: {why}", comment.author)))
}

/// Why an approval may be meant for what was there before the head, if it may. Of a head that was there when this process began its first
/// status tells since when people could look at it.
async fn of_an_older_head<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    pull_request: &PullRequest,
    comment: &Comment,
) -> Result<Option<String>, PortError> {
    let PullRequest { number, head, .. } = pull_request;
    let Some(unread) = repository.heads.get(number).and_then(|head| head.unread) else { return Ok(None) };
    let commit = short_commit(head);
    if unread == Unread::Found {
        let contexts = repository.seen.get(number).map(Seen::contexts).unwrap_or_default();
        match (repository.forge().first_status(head, &contexts).await?, comment.created) {
            (Some(first), Some(created)) if created > first => return Ok(None),
            (Some(_), Some(_)) => {}
            _ => {
                let why = "was pushed since, for the forge does not say when its first status or this comment came";
                return Ok(Some(format!("nobody knows whether {commit} {why}: look at it, and approve it again")));
            }
        }
    }
    Ok(Some(format!("{commit} was pushed since, or at the same time: look at it, and approve it again")))
}

async fn reply<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    pull_request: &PullRequest,
    comment: &Comment,
    command: Command,
) -> Reply {
    match command {
        Command::Approve(digits) => match approve(repository, pull_request, comment, &digits) {
            Ok((text, approved)) => Reply { text, approved: Some(approved), wants_plan: true, ..Reply::default() },
            Err(refusal) => refusal.into(),
        },
        Command::Why(question) => match repository.answered(pull_request, question).await {
            Ok(answers) => Reply {
                text: format!(
                    "{}, as {} would be once it is merged:",
                    comment.author,
                    short_commit(&pull_request.head)
                ),
                block: answers
                    .into_iter()
                    .map(|(cluster, text)| format!("{cluster}: {text}"))
                    .collect::<Vec<_>>()
                    .join("\n"),
                ..Reply::default()
            },
            Err(error) => format!("{}: {}", comment.author, chain(&error)).into(),
        },
        Command::Plan | Command::Several | Command::Unknown => Reply {
            text: format!("Planned again for {}", short_commit(&pull_request.head)),
            wants_plan: true,
            ..Reply::default()
        },
    }
}

async fn unanswered<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    all: &[Comment],
) -> Result<Vec<(Comment, Command)>, PortError> {
    let commands: Vec<(Comment, Command)> = all
        .iter()
        .filter(|comment| !comment.is_edited)
        .filter_map(|comment| Some((comment.clone(), parse(&comment.body)?)))
        .collect();
    if commands.is_empty() {
        return Ok(commands);
    }
    let account = repository.forge().account().await?;
    let ours: Vec<&Comment> = all.iter().filter(|comment| repository.forge().is_by(comment, &account)).collect();
    let is_answered = |comment: &Comment| {
        let marker = answer_marker(comment.id, repository.name());
        ours.iter().any(|it| it.body.lines().next().is_some_and(|line| line.trim_end() == marker))
    };
    let is_open =
        |(comment, _): &(Comment, Command)| !repository.forge().is_by(comment, &account) && !is_answered(comment);
    Ok(commands.into_iter().filter(is_open).collect())
}

/// What is answered: an approval, or why there is none.
fn approve<P: ReviewPorts>(
    repository: &ReviewedRepository<P>,
    pull_request: &PullRequest,
    comment: &Comment,
    digits: &str,
) -> Result<(String, ApprovedPlans), String> {
    let seen = repository.seen.get(&pull_request.number).filter(|seen| seen.head == pull_request.head);
    let Some(seen) = seen else { return Err("there is no plan of this commit yet".to_owned()) };
    let asked = if digits.len() < DIGEST_DIGITS { "" } else { digits };
    let meant = meant(&seen.preview, asked);
    if let Some(why) =
        ambiguity(repository.shown_digests(pull_request.number), asked, &meant).filter(|_| !asked.is_empty())
    {
        return Err(format!("{}: {why}", comment.author));
    }
    let meant: Vec<(String, String)> =
        meant.into_iter().map(|(target, digest)| (target.cluster.clone(), digest.to_owned())).collect();
    let listed: Vec<String> =
        meant.iter().map(|(cluster, digest)| format!("{} for {cluster}", short(digest))).collect();
    if asked.is_empty() {
        return Err(match listed.as_slice() {
            [] => "there is nothing to approve".to_owned(),
            listed => format!("say which plan: /cutlist approve DIGEST, where DIGEST is {}", listed.join(", or ")),
        });
    }
    if meant.is_empty() {
        return Err(format!(
            "{}: no plan of this commit is {}; plans change with the cluster, so look again",
            comment.author,
            short(digits)
        ));
    }
    let digests = meant.into_iter().map(|(_, digest)| digest).collect();
    let approved = ApprovedPlans { by: comment.author.clone(), head: seen.head.clone(), digests };
    let of = short_commit(&seen.head);
    Ok((format!("Approved by {}, for commit {of}: {}", comment.author, listed.join(", ")), approved))
}
