//! Posts what a preview says: statuses first and always, then one comment for each cluster and environment, then checks.
//!
//! Nothing is recorded anywhere but on the forge, so a crash between any two requests, or a second process that does the same, is met
//! by looking again. A comment is found by its first line *and* its author, is created before another one goes, and is edited only when
//! its second line, the data, differs, or somebody else has edited it. Of several the oldest stays: all who look agree on which one that is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hyper::StatusCode;

use super::dialect::{Check, Comment, PullRequest, State, Status};
use super::hosted::{ForgeError, HostedRepository, Looks};
use super::seal::{seal_of, sealed};
use crate::ports::pull_requests::{CommentPosting, Done, Manner, PART, Posted, Posting, Seal, TargetPosting};

/// A forge knows a head up to some seconds later than those it tells of a push: so long a pull request is believed to be at another one.
const HEAD_PAUSES: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Looks after which a comment that was listed, and can not be found, is no longer taken for one that somebody has just removed.
const GONE_MAX: u32 = 3;
/// Looks for what others set meanwhile. Whoever sets a status last looks once more.
const SHARED_MAX: u32 = 3;

/// Says that a commit is being looked at, where nothing was said before of this context; says whether it did.
pub async fn announce(
    forge: &HostedRepository,
    head: &str,
    status: &Status,
    known: &mut Option<Vec<Status>>,
) -> Result<bool, ForgeError> {
    let known = match known {
        Some(known) => known,
        None => known.insert(forge.statuses(head).await?),
    };
    // What was found out before stays until there is something else: it would flicker otherwise whenever a process begins.
    if known.iter().any(|it| it.context == status.context) {
        return Ok(false);
    }
    forge.set_status(head, status).await?;
    Ok(true)
}

/// Posts all of it, and goes on after what fails. A forge that is away, or limits its rate, is waited for once and not for each target.
pub async fn post(forge: &HostedRepository, posting: &Posting) -> Posted<ForgeError> {
    let _errand = forge.begin_errand();
    let mut posted = Posted { done: Vec::new(), failed: Vec::new() };
    let (mut are_new, mut statuses) = (Vec::new(), None);
    let (standing, mut is_open) = standing(forge, posting).await;
    for target in &posting.targets {
        let outcome = set_target(forge, posting, &target.status, &mut is_open, &mut statuses).await;
        are_new.push(matches!(outcome, Ok(Done::StatusSet)));
        posted.note(target, "set the status", outcome);
    }
    set_comments(forge, posting, standing, &mut posted).await;
    for (target, is_new) in posting.targets.iter().zip(are_new) {
        // The check says what the status says.
        if let Some(check) = target.check.as_ref().filter(|_| is_new || is_open != Some(false)) {
            let outcome = set_check(forge, &posting.head, check, is_new).await;
            posted.note(target, "make a check", outcome);
        }
    }
    posted
}

/// The pull request where it need not be read again for the comments, and whether it is open, before anything is written. What can not be
/// read now is read again where it is needed, and said there.
async fn standing(forge: &HostedRepository, posting: &Posting) -> (Option<PullRequest>, Option<bool>) {
    let Some(number) = posting.number else { return (None, None) };
    if forge.lacks_place(&posting.head) {
        let read = at_head(forge, number, &posting.head).await.ok();
        let is_open = read.as_ref().map(|it| it.is_open);
        return (read, is_open);
    }
    let read = forge.known_pull_request(number).await.ok();
    let is_open = read.as_ref().map(|it| it.is_open);
    (read.filter(|it| it.head == posting.head), is_open)
}

/// What may be done where a status stands already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Replace,
    /// This process has set it a moment ago, so that it need not be asked for.
    ReplaceBegun,
    SetMissing,
    Leave,
}

/// A preview that is made after the merge is one of what is in the base already: it says nothing of what was merged.
async fn way(
    forge: &HostedRepository,
    posting: &Posting,
    context: &String,
    is_open: &mut Option<bool>,
) -> Result<Way, ForgeError> {
    let must_be_open = posting.only_while_open.contains(context);
    if let Some(number) = posting.number.filter(|_| must_be_open && is_open.is_none()) {
        *is_open = Some(forge.pull_request(number).await?.is_open);
    }
    Ok(match *is_open {
        Some(false) if must_be_open => Way::Leave,
        _ if posting.begun.contains(context) => Way::ReplaceBegun,
        Some(false) => Way::SetMissing,
        Some(true) | None => Way::Replace,
    })
}

impl Posted<ForgeError> {
    fn note(&mut self, target: &TargetPosting, what: &'static str, outcome: Result<Done, ForgeError>) {
        let context = target.status.context.clone();
        match outcome {
            Ok(done) => self.done.push((context, done)),
            Err(error) => self.failed.push((context, what, error)),
        }
    }
}

/// There is one comment for all revisions: that of the newest stays, whoever ends last.
async fn set_comments(
    forge: &HostedRepository,
    posting: &Posting,
    known: Option<PullRequest>,
    posted: &mut Posted<ForgeError>,
) {
    let wanted = || posting.targets.iter().filter_map(|target| Some((target, target.comment.as_ref()?)));
    let Some(number) = posting.number.filter(|_| wanted().next().is_some()) else { return };
    let standing = match known {
        Some(known) => Ok(known),
        None => at_head(forge, number, &posting.head).await,
    };
    let mut listed = match &standing {
        // Nobody wrote anything yet.
        Ok(PullRequest { comments: Some(0), .. }) => Some(Vec::new()),
        _ => None,
    };
    let mut old = Vec::new();
    if standing.as_ref().is_ok_and(|it| it.is_open && it.head == posting.head) {
        old = stood_for(forge, number, posting, &mut listed).await;
    }
    let hidden_to = old.iter().map(|comment| comment.id).max().unwrap_or_default();
    let (mut are_there, mut all_done) = (false, true);
    for (index, (target, comment)) in wanted().enumerate() {
        // What was said before is not left to be believed.
        let is_worth_beginning = comment.is_worth_beginning || (index == 0 && !old.is_empty());
        let outcome = match &standing {
            Ok(PullRequest { head, .. }) if *head != posting.head => Ok(Done::CommentIsOfAnother),
            Ok(PullRequest { is_open: false, .. }) => Ok(Done::IsClosed),
            Ok(_) => {
                let wanted = Wanted { comment, is_worth_beginning, hidden_to };
                set_comment(forge, number, wanted, &mut listed).await
            }
            Err(_) => break,
        };
        are_there |= matches!(outcome, Ok(Done::CommentCreated | Done::CommentEdited | Done::CommentStands));
        all_done &= outcome.is_ok();
        posted.note(target, "comment", outcome);
    }
    if let Some((target, comment)) = wanted().next().filter(|_| are_there && all_done)
        && let Err(error) = hide_all(forge, number, comment.manner, &old).await
    {
        posted.note(target, "hide what was said before", Err(error));
    }
    if let (Err(error), Some((target, _))) = (standing, wanted().next()) {
        posted.note(target, "comment", Err(error));
    }
}

/// A comment that is to be there.
#[derive(Clone, Copy)]
struct Wanted<'p> {
    comment: &'p CommentPosting,
    is_worth_beginning: bool,
    /// Comments up to this one were hidden when others came for them, and are there for nobody.
    hidden_to: u64,
}

/// Comments that those of the posting stand for, and that are seen. Where they can not be listed none is known, and none goes.
async fn stood_for(
    forge: &HostedRepository,
    number: u64,
    posting: &Posting,
    listed: &mut Option<Vec<Comment>>,
) -> Vec<Comment> {
    let wanted = || posting.targets.iter().filter_map(|target| target.comment.as_ref());
    if posting.stands_for.is_empty() {
        return Vec::new();
    }
    let comments = match listed.take() {
        Some(comments) => comments,
        None => match forge.comments(number).await {
            Ok(comments) => comments,
            Err(_) => return Vec::new(),
        },
    };
    let comments: &[Comment] = listed.insert(comments);
    let markers: BTreeSet<&str> = wanted().map(|comment| comment.marker.as_str()).collect();
    let is_old = |(marker, data): (&str, &str)| {
        let is_of_fleet = || posting.fleet.as_ref().is_some_and(|fleet| fleet.is_of(marker, data));
        posting.stands_for.contains(marker) || (!markers.contains(marker) && is_of_fleet())
    };
    let Ok(old) = ours(forge, comments, is_old).await else { return Vec::new() };
    if old.is_empty() || wanted().all(|comment| comment.manner == Manner::Edit) {
        return old.into_iter().cloned().collect();
    }
    // Those before the newest were hidden when it came, and all that are older than one of ours when that came.
    let Ok(own) = ours(forge, comments, |(marker, _)| markers.contains(marker)).await else { return Vec::new() };
    let own = own.last().map(|comment| comment.id).unwrap_or_default();
    let newest: BTreeMap<&str, &Comment> = old.into_iter().map(|comment| (lines_of(comment).0, comment)).collect();
    newest.into_values().filter(|comment| comment.id > own).cloned().collect()
}

/// As other old comments: those that are edited leave none behind.
async fn hide_all(
    forge: &HostedRepository,
    number: u64,
    manner: Manner,
    comments: &[Comment],
) -> Result<(), ForgeError> {
    for comment in comments {
        match manner {
            Manner::Edit => forge.remove_comment(number, comment.id).await?,
            Manner::Anew => forge.hide_comment(number, comment).await?,
        }
    }
    Ok(())
}

/// The pull request, as soon as it is at the commit of the posting; after a while as it is.
async fn at_head(forge: &HostedRepository, number: u64, head: &str) -> Result<PullRequest, ForgeError> {
    let mut pauses = HEAD_PAUSES.into_iter();
    loop {
        let pull_request = forge.pull_request(number).await?;
        if pull_request.head == head {
            return Ok(pull_request);
        }
        if pull_request.tried_as.as_deref() == Some(head) {
            let (commit, head) = (head.to_owned(), pull_request.head);
            return Err(ForgeError::TriedMerge { commit, number, head });
        }
        match pauses.next() {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Ok(pull_request),
        }
    }
}

async fn set_target(
    forge: &HostedRepository,
    posting: &Posting,
    status: &Status,
    is_open: &mut Option<bool>,
    listed: &mut Option<Vec<Status>>,
) -> Result<Done, ForgeError> {
    let way = way(forge, posting, &status.context, is_open).await?;
    match posting.shared.get(&status.context).filter(|_| way == Way::Replace) {
        Some(part) => set_shared(forge, &posting.head, (status, part.as_str()), listed).await,
        None => set_status(forge, &posting.head, status, way, listed).await,
    }
}

/// A status that others set as well. What is good leaves no part behind, so that there are no more statuses than before where all are.
async fn set_shared(
    forge: &HostedRepository,
    head: &str,
    (status, part): (&Status, &str),
    listed: &mut Option<Vec<Status>>,
) -> Result<Done, ForgeError> {
    let known = known_of(forge, head, listed).await?;
    let is_bad = status.state.badness() > State::Success.badness();
    if is_bad || known.iter().any(|it| it.context == part) {
        let own = Status { context: part.to_owned(), ..status.clone() };
        set_status(forge, head, &own, Way::Replace, listed).await?;
    }
    let mut done = Done::StatusStands;
    for _ in 0..SHARED_MAX {
        let worst = worst_of(status, part, known_of(forge, head, listed).await?);
        match set_status(forge, head, &worst, Way::Replace, listed).await? {
            Done::StatusStands => break,
            outcome => done = outcome,
        }
        // Somebody may have left a part since it was looked.
        *listed = None;
    }
    Ok(done)
}

async fn known_of<'l>(
    forge: &HostedRepository,
    head: &str,
    listed: &'l mut Option<Vec<Status>>,
) -> Result<&'l [Status], ForgeError> {
    let known = match listed.take() {
        Some(known) => known,
        None => forge.statuses(head).await?,
    };
    Ok(listed.insert(known))
}

/// The status, or a part of others that is worse. Of those that are as bad all agree on one.
fn worst_of(status: &Status, part: &str, known: &[Status]) -> Status {
    let beginning = format!("{}{PART}", status.context);
    let others = known.iter().filter(|it| it.context != part && it.context.starts_with(&beginning));
    let all = std::iter::once((part, status)).chain(others.map(|it| (it.context.as_str(), it)));
    let worst = all.max_by_key(|(context, it)| (it.state.badness(), Reverse(*context)));
    let worst = worst.map_or(status, |(_, it)| it);
    Status { context: status.context.clone(), ..worst.clone() }
}

/// `listed`: the statuses of the commit, once they were asked for. One list does for all targets, until something was done that nobody knows
/// the end of.
async fn set_status(
    forge: &HostedRepository,
    head: &str,
    status: &Status,
    way: Way,
    listed: &mut Option<Vec<Status>>,
) -> Result<Done, ForgeError> {
    if way == Way::Leave {
        return Ok(Done::StatusLeft);
    }
    let mut looks = Looks::default();
    loop {
        if way != Way::ReplaceBegun || looks.number > 0 {
            let known = match listed.take().filter(|_| looks.number == 0) {
                Some(known) => known,
                None => forge.statuses(head).await?,
            };
            let stands = known.iter().any(|known| says_the_same(known, status));
            let is_there = known.iter().any(|known| known.context == status.context);
            *listed = Some(known);
            if stands {
                return Ok(if looks.number == 0 { Done::StatusStands } else { Done::StatusSet });
            }
            if is_there && way == Way::SetMissing {
                return Ok(Done::StatusLeft);
            }
        }
        match forge.set_status(head, status).await {
            Err(error) if forge.pause(&mut looks, &error).await => {}
            Err(error) if forge.has_no_place(&error) => return Ok(Done::NoStatus),
            outcome => return outcome.map(|()| Done::StatusSet),
        }
    }
}

/// Not every forge tells apart what is wrong and what could not be found out.
fn says_the_same(known: &Status, status: &Status) -> bool {
    use super::dialect::State::{Error, Failure};
    let both_bad = [known.state, status.state].iter().all(|state| matches!(state, Failure | Error));
    known.context == status.context
        && known.description == status.description
        && (known.state == status.state || both_bad)
}

fn lines_of(comment: &Comment) -> (&str, &str) {
    let mut lines = comment.body.lines().map(str::trim_end);
    (lines.next().unwrap_or_default(), lines.next().unwrap_or_default())
}

/// Those whose first two lines, marker and data, are such, and that are by this program. Who it is, is asked only when there is one.
async fn ours<'a>(
    forge: &HostedRepository,
    comments: &'a [Comment],
    is_such: impl Fn((&str, &str)) -> bool,
) -> Result<Vec<&'a Comment>, ForgeError> {
    let marked: Vec<&Comment> = comments.iter().filter(|comment| is_such(lines_of(comment))).collect();
    if marked.is_empty() {
        return Ok(marked);
    }
    let account = forge.account().await?;
    Ok(marked.into_iter().filter(|comment| forge.is_by(comment, account)).collect())
}

async fn set_comment(
    forge: &HostedRepository,
    number: u64,
    wanted: Wanted<'_>,
    listed: &mut Option<Vec<Comment>>,
) -> Result<Done, ForgeError> {
    let posting = wanted.comment;
    let mut looks = Looks::default();
    loop {
        // One list does for all targets, until something was done that nobody knows the end of.
        let comments = match listed.take() {
            Some(comments) if looks.number == 0 => comments,
            _ => forge.comments(number).await?,
        };
        let mut found = ours(forge, &comments, |(marker, _)| marker == posting.marker).await?;
        found.retain(|comment| posting.manner == Manner::Edit || comment.id > wanted.hidden_to);
        let may_be_gone = !found.is_empty() && looks.number < GONE_MAX;
        let outcome = match (found.as_slice(), posting.manner) {
            ([], _) if !wanted.is_worth_beginning => Ok(Done::NoComment),
            ([], _) => begin(forge, number, posting).await,
            ([.., newest], Manner::Anew) if stands(newest, posting) => Ok(Done::CommentStands),
            (old, Manner::Anew) => anew(forge, number, posting, old).await,
            ([first, others @ ..], Manner::Edit) => {
                for other in others {
                    forge.remove_comment(number, other.id).await?;
                }
                edit(forge, number, posting, first).await
            }
        };
        match outcome {
            Err(error) if forge.pause(&mut looks, &error).await => {}
            // Somebody removed it between the list and the change.
            Err(error) if may_be_gone && error.status() == Some(StatusCode::NOT_FOUND) => looks.number += 1,
            outcome => {
                *listed = Some(comments);
                return outcome;
            }
        }
    }
}

/// A new comment, and a look whether somebody else began one at the same time.
async fn begin(forge: &HostedRepository, number: u64, posting: &CommentPosting) -> Result<Done, ForgeError> {
    let created = forge.create_comment(number, &sealed(&posting.body)).await?;
    forge.is_known_as(&created.author);
    if posting.manner == Manner::Anew {
        return Ok(Done::CommentCreated);
    }
    let comments = forge.comments(number).await?;
    let found = ours(forge, &comments, |(marker, _)| marker == posting.marker).await?;
    let Some((first, others)) = found.split_first() else { return Ok(Done::CommentCreated) };
    if others.is_empty() {
        return Ok(Done::CommentCreated);
    }
    let is_first = first.id == created.id;
    if !is_first {
        edit(forge, number, posting, first).await?;
    }
    for other in others {
        forge.remove_comment(number, other.id).await?;
    }
    Ok(if is_first { Done::CommentCreated } else { Done::CommentEdited })
}

async fn edit(
    forge: &HostedRepository,
    number: u64,
    posting: &CommentPosting,
    comment: &Comment,
) -> Result<Done, ForgeError> {
    if stands(comment, posting) {
        return Ok(Done::CommentStands);
    }
    forge.edit_comment(number, comment.id, &sealed(&posting.body)).await?;
    Ok(Done::CommentEdited)
}

/// Whether it says the same, in the words of this program.
fn stands(comment: &Comment, posting: &CommentPosting) -> bool {
    lines_of(comment).1 == posting.data && seal_of(&comment.body) == Seal::Whole
}

async fn anew(
    forge: &HostedRepository,
    number: u64,
    posting: &CommentPosting,
    old: &[&Comment],
) -> Result<Done, ForgeError> {
    let created = forge.create_comment(number, &sealed(&posting.body)).await?;
    forge.is_known_as(&created.author);
    // Those before the last were hidden when it came, or removed.
    if let Some(last) = old.last() {
        forge.hide_comment(number, last).await?;
    }
    Ok(Done::CommentCreated)
}

/// `is_new`: the status of the same was set just now. Where it was there before, or can not be set, this may be there as well.
async fn set_check(forge: &HostedRepository, head: &str, check: &Check, is_new: bool) -> Result<Done, ForgeError> {
    let mut looks = Looks::default();
    loop {
        if (!is_new || looks.number > 0)
            && let Some(true) = forge.has_check(head, check).await?
        {
            return Ok(Done::CheckStands);
        }
        match forge.create_check(head, check).await {
            Ok(true) => return Ok(Done::CheckCreated),
            Ok(false) => return Ok(Done::NoCheck),
            // Checks are for Apps and jobs; a token of a person may not make them, and the status says the same.
            Err(error) if error.is_denied() => return Ok(Done::NoCheck),
            Err(error) if forge.pause(&mut looks, &error).await => {}
            Err(error) => return Err(error),
        }
    }
}
