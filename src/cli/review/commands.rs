//! What people write on a pull request: `/cutlist plan`, `/cutlist why pod NAME` and `/cutlist approve DIGEST`.
//!
//! Each command gets one answer, a comment that names the command's: by that a later process knows that it was obeyed. Comments that
//! were edited, that are by this program, or in which the command is not the first thing, are no commands.

use super::approvals::{ambiguity, meant, short, short_commit};
use super::namesakes;
use super::rights::{self, Wish};
use super::rounds::Rounds;
use super::two_people::TwoPeople;
use crate::adapters::forge::{Comment, ForgeError, PullRequest};
use crate::cli::output;
use crate::cli::why::Question;
use crate::core::preview::DIGEST_DIGITS;
use crate::render::posting::{ApprovedPlans, answer, answer_marker};

const PREFIX: &str = "/cutlist";
/// Answers in one round to one pull request: nobody types more, and a script should not make this program do so.
const ANSWERS_MAX: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Command {
    Plan,
    Why(Question),
    Approve(String),
    Unknown,
}

fn parse(body: &str) -> Option<Command> {
    let mut words = body.lines().next()?.split_whitespace();
    // Telephones begin a sentence with a capital letter.
    if !words.next()?.eq_ignore_ascii_case(PREFIX) {
        return None;
    }
    let rest: Vec<&str> = words.collect();
    Some(match rest.as_slice() {
        ["plan"] => Command::Plan,
        ["why", "pod", name] => Command::Why(Question::Pod((*name).to_owned())),
        ["why", "node", name] => Command::Why(Question::Node((*name).to_owned())),
        ["approve"] => Command::Approve(String::new()),
        // As it stands in a sentence, or as code.
        ["approve", digits] => {
            Command::Approve(digits.trim_matches(|it: char| !it.is_ascii_alphanumeric()).to_ascii_lowercase())
        }
        _ => Command::Unknown,
    })
}

/// The digits of the plan that a comment would approve, if it is a command to do that.
pub fn approved_digits(body: &str) -> Option<String> {
    match parse(body)? {
        Command::Approve(digits) => Some(digits),
        Command::Plan | Command::Why(_) | Command::Unknown => None,
    }
}

/// What was answered.
#[derive(Default)]
pub struct Obeyed {
    /// Whether the pull request is to be planned again.
    pub wants_plan: bool,
    /// The answers, as comments.
    pub answers: Vec<Comment>,
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
pub async fn obey(rounds: &mut Rounds, pull_request: &PullRequest) -> Result<Obeyed, ForgeError> {
    let mut all = rounds.forge().comments(pull_request.number).await?;
    namesakes::tell(rounds, pull_request.number, &all).await?;
    rounds.forge().tell_edits(&mut all, |comment| parse(&comment.body).is_some()).await?;
    let open = unanswered(rounds, &all).await?;
    let mut obeyed = Obeyed::default();
    for (comment, command) in open.into_iter().take(ANSWERS_MAX) {
        let reply = match refusal(rounds, pull_request, &comment, &command).await? {
            Some(refusal) => refusal.into(),
            None => reply(rounds, pull_request, &comment, command).await,
        };
        obeyed.wants_plan |= reply.wants_plan;
        let body = answer(comment.id, rounds.name(), &reply.text, &reply.block, reply.approved.as_ref());
        obeyed.answers.push(rounds.forge().create_comment(pull_request.number, &body).await?);
    }
    if !obeyed.answers.is_empty() {
        remove_further(rounds, pull_request.number, &obeyed.answers).await?;
    }
    Ok(obeyed)
}

/// Somebody else may have answered at the same time, or an answer arrived of which nobody knew: the oldest of each command stays, and all
/// who look agree on which one that is.
async fn remove_further(rounds: &Rounds, number: u64, answers: &[Comment]) -> Result<(), ForgeError> {
    let all = rounds.forge().comments(number).await?;
    let account = rounds.forge().account().await?;
    let first_line = |comment: &Comment| comment.body.lines().next().unwrap_or_default().trim_end().to_owned();
    for answer in answers {
        let line = first_line(answer);
        let same = all.iter().filter(|it| first_line(it) == line && rounds.forge().is_by(it, account));
        for further in same.skip(1) {
            rounds.forge().remove_comment(number, further.id).await?;
        }
    }
    Ok(())
}

/// Why a command is not obeyed, whoever is right about it.
async fn refusal(
    rounds: &Rounds,
    pull_request: &PullRequest,
    comment: &Comment,
    command: &Command,
) -> Result<Option<String>, ForgeError> {
    if *command == Command::Unknown {
        let known =
            "I know /cutlist plan, /cutlist why pod NAMESPACE/NAME, /cutlist why node NAME and /cutlist approve DIGEST";
        return Ok(Some(known.to_owned()));
    }
    let wish = if matches!(command, Command::Approve(_)) { Wish::Approve } else { Wish::Ask };
    let refusal = rights::refusal(rounds.forge(), rounds.manner(), (&comment.author, comment.author_id), wish).await?;
    if refusal.is_some() || wish != Wish::Approve {
        return Ok(refusal);
    }
    let mut two_people = TwoPeople::new(rounds.manner());
    let refusal = two_people.refusal(rounds.forge(), pull_request, &comment.author).await?;
    Ok(refusal.map(|why| format!("{}: {why}", comment.author)))
}

async fn reply(rounds: &mut Rounds, pull_request: &PullRequest, comment: &Comment, command: Command) -> Reply {
    match command {
        Command::Approve(digits) => match approve(rounds, pull_request, comment, &digits) {
            Ok((text, approved)) => Reply { text, approved: Some(approved), wants_plan: true, ..Reply::default() },
            Err(refusal) => refusal.into(),
        },
        Command::Why(question) => match rounds.answered(pull_request, question).await {
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
            Err(failure) => {
                let hint = failure.hint.map_or_else(String::new, |hint| format!("; {hint}"));
                format!("{}: {}", comment.author, output::shown(&format!("{:#}{hint}", failure.error))).into()
            }
        },
        Command::Plan | Command::Unknown => Reply {
            text: format!("Planned again for {}", short_commit(&pull_request.head)),
            wants_plan: true,
            ..Reply::default()
        },
    }
}

async fn unanswered(rounds: &Rounds, all: &[Comment]) -> Result<Vec<(Comment, Command)>, ForgeError> {
    let commands: Vec<(Comment, Command)> = all
        .iter()
        .filter(|comment| !comment.is_edited)
        .filter_map(|comment| Some((comment.clone(), parse(&comment.body)?)))
        .collect();
    if commands.is_empty() {
        return Ok(commands);
    }
    let account = rounds.forge().account().await?.to_owned();
    let ours: Vec<&Comment> = all.iter().filter(|comment| rounds.forge().is_by(comment, &account)).collect();
    let is_answered = |comment: &Comment| {
        let marker = answer_marker(comment.id, rounds.name());
        ours.iter().any(|it| it.body.lines().next().is_some_and(|line| line.trim_end() == marker))
    };
    let is_open = |(comment, _): &(Comment, Command)| !rounds.forge().is_by(comment, &account) && !is_answered(comment);
    Ok(commands.into_iter().filter(is_open).collect())
}

/// What is answered: an approval, or why there is none.
fn approve(
    rounds: &Rounds,
    pull_request: &PullRequest,
    comment: &Comment,
    digits: &str,
) -> Result<(String, ApprovedPlans), String> {
    let seen = rounds.seen(pull_request.number).filter(|seen| seen.head == pull_request.head);
    let Some(seen) = seen else { return Err("there is no plan of this commit yet".to_owned()) };
    let asked = if digits.len() < DIGEST_DIGITS { "" } else { digits };
    let meant = meant(&seen.preview, asked);
    if let Some(why) = ambiguity(rounds.shown_digests(pull_request.number), asked, &meant).filter(|_| !asked.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_first_thing_in_a_comment() {
        assert_eq!(parse("/cutlist plan"), Some(Command::Plan));
        assert_eq!(parse("/cutlist  approve 3F2A91C\r\n\nlooks good"), Some(Command::Approve("3f2a91c".to_owned())));
        for text in ["/Cutlist approve 3f2a91c.", "/cutlist approve `3f2a91c`", "/cutlist approve \"3f2a91c\""] {
            assert_eq!(parse(text), Some(Command::Approve("3f2a91c".to_owned())), "{text}");
        }
        assert_eq!(parse("/cutlist approve"), Some(Command::Approve(String::new())));
        assert_eq!(parse("/cutlist why pod shop/web"), Some(Command::Why(Question::Pod("shop/web".to_owned()))));
        assert_eq!(parse("/cutlist why node a"), Some(Command::Why(Question::Node("a".to_owned()))));
        for text in ["/cutlist destroy all", "/cutlist why", "/cutlist why pod a b"] {
            assert_eq!(parse(text), Some(Command::Unknown), "{text}");
        }
        for text in [
            "",
            "> /cutlist approve 3f2a91c",
            "please /cutlist plan",
            "\n/cutlist plan",
            "/cutlistplan",
            "« /cutlist plan »",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
