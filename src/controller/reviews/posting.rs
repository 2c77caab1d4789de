//! What is posted of a preview: rendered for the forge's limits.

use std::collections::BTreeSet;

use crate::api::preview::{Preview, PreviewCause, PreviewSeverity, PreviewTarget, PreviewVerdict};
use crate::core::preview::hash_of_texts;
use crate::ports::pull_requests::{
    ANNOTATIONS_MAX, Annotation, Check, CheckTable, CommentPosting, Conclusion, Done, Fleet, Level, Manner, PART,
    Posting, State, Status, Table, TargetPosting,
};
use crate::render::posting::{self, FleetText, OUTCOME_CHARACTERS, Room};
use crate::render::terminal::clean;

/// How the status of signatures ends.
const SIGNATURES: &str = "/signatures";
/// How a status begins that says what nobody checked.
const UNTRUSTED: &str = "claimed, not checked: ";

/// Clusters that have a comment and a check each. Of more, one comment tells of all: nobody reads so many, and forges take few at a time, as
/// GitHub 80 in a minute and 500 in an hour.
const APART_MAX: usize = 20;

/// How previews are shown.
#[derive(Clone)]
pub struct Shown {
    pub name: String,
    pub is_untrusted: bool,
    pub link: Option<String>,
    /// What becomes of the comment of an earlier revision; `None`: comments are not wanted.
    pub comment: Option<Manner>,
    pub checks: bool,
}

impl Shown {
    pub fn manner(&self) -> posting::Manner<'_> {
        posting::Manner { name: &self.name, is_untrusted: self.is_untrusted, link: self.link.as_deref() }
    }
}

pub fn posting(preview: &Preview, number: Option<u64>, shown: &Shown, table: &Table) -> Posting {
    let of_all = are_many(preview).then(|| Shown { comment: None, checks: false, ..shown.clone() });
    let of_each = of_all.as_ref().unwrap_or(shown);
    let mut targets: Vec<TargetPosting> =
        preview.targets.iter().map(|target| of_target(preview, target, of_each, table)).collect();
    if let (true, Some(first), Some(manner)) = (are_many(preview), targets.first_mut(), shown.comment) {
        first.comment = Some(comment_of_all(preview, manner, shown, table));
    }
    let signatures = of_signatures(preview, shown, table);
    let shared = signatures.iter().filter_map(|it| part_of(preview, &it.status, table)).collect();
    targets.extend(signatures);
    let stands_for = stood_for(preview, shown, &targets);
    let fleet = shown.comment.filter(|_| !preview.targets.is_empty()).map(|_| {
        let FleetText { marker_end, keys_begin, keys } = posting::fleet(preview, &shown.name);
        Fleet { marker_end, keys_begin, keys }
    });
    let (head, begun, only_while_open) = (preview.head.id.clone(), Vec::new(), BTreeSet::new());
    Posting { number, head, targets, begun, stands_for, fleet, only_while_open, shared }
}

/// Markers of comments that were made when there were fewer clusters, or more. A cluster may be called as a comment about several is.
fn stood_for(preview: &Preview, shown: &Shown, targets: &[TargetPosting]) -> BTreeSet<String> {
    if shown.comment.is_none() {
        return BTreeSet::new();
    }
    let own: BTreeSet<&str> = targets.iter().filter_map(|it| Some(it.comment.as_ref()?.marker.as_str())).collect();
    let markers = posting::markers_stood_for(preview, &shown.name, are_many(preview));
    markers.filter(|marker| !own.contains(marker.as_str())).collect()
}

fn are_many(preview: &Preview) -> bool {
    preview.targets.len() > APART_MAX
}

/// What is left out where there are many clusters, and what stands for it.
pub fn told_together(preview: &Preview, shown: &Shown) -> Option<String> {
    (are_many(preview) && (shown.comment.is_some() || shown.checks)).then(|| {
        format!(
            "there are {} clusters, more than {APART_MAX}: each has its status, one comment tells of all of them, and there are no checks",
            preview.targets.len()
        )
    })
}

fn comment_of_all(preview: &Preview, manner: Manner, shown: &Shown, table: &Table) -> CommentPosting {
    let text = posting::comment_of_all(preview, shown.manner(), room_of_preview(table));
    let is_worth_beginning = preview.targets.iter().any(|target| target.verdict != PreviewVerdict::Untouched);
    CommentPosting { marker: text.marker, data: text.data, is_worth_beginning, manner, body: text.body }
}

/// A status of its own, which a branch may require: whoever operates the cluster asks for signatures whatever the plan is.
fn of_signatures(preview: &Preview, shown: &Shown, table: &Table) -> Option<TargetPosting> {
    // What the author of the change could have written proves nothing.
    let signatures = preview.signatures.as_ref().filter(|_| !shown.is_untrusted)?;
    let environment = preview.targets.first().map(|target| target.environment.clone()).unwrap_or_default();
    let all = PreviewTarget { environment, ..PreviewTarget::default() };
    let room = table.context_characters.saturating_sub(SIGNATURES.len());
    let further = signatures.unsigned.len().saturating_sub(1) as u64 + signatures.further;
    let (state, description) = match signatures.unsigned.first() {
        None => (State::Success, "all commits are signed by who must have".to_owned()),
        Some(first) if further == 0 => (State::Failure, first.clone()),
        Some(first) => (State::Failure, format!("{} times, such as: {first}", further + 1)),
    };
    let status = table.fitted(Status {
        context: format!("{}{SIGNATURES}", posting::context(&all, &shown.name, room)),
        state,
        description: posting::fitted_line(&description, table.status_characters),
        link: shown.link.clone(),
    });
    Some(TargetPosting { status, comment: None, check: None })
}

/// The contexts of a status that names no cluster, and of this preview's part in it: jobs for other clusters of the environment may have
/// other definitions and keys. A job is known by its first cluster. `None`: the forge has no room for the name.
fn part_of(preview: &Preview, status: &Status, table: &Table) -> Option<(String, String)> {
    let context =
        posting::fitted_line(&format!("{}{PART}{}", status.context, preview.targets.first()?.cluster), usize::MAX);
    let part = table.fitted(Status { context, ..status.clone() }).context;
    (part.chars().count() <= table.context_characters).then(|| (status.context.clone(), part))
}

/// What is said of a cluster while its plan is made.
pub fn pending(cluster: &str, environment: &str, shown: &Shown, table: &Table) -> Status {
    let (cluster, environment) = (cluster.to_owned(), environment.to_owned());
    let target = PreviewTarget { cluster, environment, ..PreviewTarget::default() };
    table.fitted(Status {
        context: posting::context(&target, &shown.name, table.context_characters),
        state: State::Pending,
        description: "is being planned".to_owned(),
        link: shown.link.clone(),
    })
}

fn of_target(preview: &Preview, target: &PreviewTarget, shown: &Shown, table: &Table) -> TargetPosting {
    let state = match target.verdict {
        PreviewVerdict::Invalid => State::Failure,
        PreviewVerdict::Failed => State::Error,
        // A branch may require the status, and who wants to pass could have written this.
        _ if shown.is_untrusted || target.not_known.is_some() => State::Pending,
        // What other programs make of files is never known here: who waited for it would wait for ever.
        PreviewVerdict::Untouched | PreviewVerdict::NoEffect | PreviewVerdict::NotKnown | PreviewVerdict::Changes => {
            State::Success
        }
    };
    let claimed = if shown.is_untrusted { UNTRUSTED } else { "" };
    let room = table.status_characters.saturating_sub(claimed.chars().count());
    let status = table.fitted(Status {
        context: posting::context(target, &shown.name, table.context_characters),
        state,
        description: format!("{claimed}{}", posting::description(target, room)),
        link: shown.link.clone(),
    });
    let comment = shown.comment.map(|manner| {
        let room = room_of_preview(table);
        let text = posting::comment(preview, target, shown.manner(), room);
        let is_worth_beginning = target.verdict != PreviewVerdict::Untouched;
        CommentPosting { marker: text.marker, data: text.data, is_worth_beginning, manner, body: text.body }
    });
    let limits = table.check.filter(|_| shown.checks && !target.causes.is_empty());
    let check = limits.map(|limits| check_of(preview, target, shown, &status.context, limits));
    TargetPosting { status, comment, check }
}

fn check_of(preview: &Preview, target: &PreviewTarget, shown: &Shown, context: &str, limits: CheckTable) -> Check {
    let (title, mut summary) = posting::check(target, shown.manner(), limits.summary_characters.saturating_sub(100));
    let rest = target.causes.len().saturating_sub(ANNOTATIONS_MAX);
    if rest > 0 {
        summary.push_str(&format!("\n{rest} more lines have a part in it.\n"));
    }
    let conclusion = match target.verdict {
        PreviewVerdict::Invalid => Conclusion::Failure,
        PreviewVerdict::Failed => Conclusion::Neutral,
        _ if shown.is_untrusted || posting::is_stale(target) => Conclusion::Neutral,
        _ => Conclusion::Success,
    };
    let annotations = annotations(&target.causes, limits.annotation_bytes);
    let plan = target.plan.as_ref().map_or("", |plan| &plan.digest);
    Check {
        name: format!("{context} lines"),
        key: format!("{}:{plan}:{}", preview.head.id, said_by_check(conclusion, &title, &annotations)),
        conclusion,
        title,
        summary,
        link: shown.link.clone(),
        annotations,
    }
}

/// A hash over what a reader of the check sees: without a plan, or with the same one from a newer snapshot, a check may have to say
/// something else of the same commit.
fn said_by_check(conclusion: Conclusion, title: &str, annotations: &[Annotation]) -> String {
    const DIGITS: usize = 16;
    let lines = annotations.iter().map(|it| format!("{}:{}: {:?}: {}", it.path, it.line, it.level, it.text));
    let texts: Vec<String> = [format!("{conclusion:?}"), title.to_owned()].into_iter().chain(lines).collect();
    hash_of_texts(texts.iter().map(String::as_str)).chars().take(DIGITS).collect()
}

/// How long a comment may be.
pub fn room(table: &Table) -> Room {
    Room { characters: table.comment_characters, bytes: table.comment_bytes }
}

/// How long a preview may be, so that the outcome has room in the same comment.
fn room_of_preview(table: &Table) -> Room {
    let Room { characters, bytes } = room(table);
    let less = |size: usize| size.saturating_sub(OUTCOME_CHARACTERS);
    Room { characters: less(characters), bytes: less(bytes) }
}

/// Worst first, and each once.
fn annotations(causes: &[PreviewCause], bytes: usize) -> Vec<Annotation> {
    let mut causes: Vec<&PreviewCause> =
        causes.iter().filter(|cause| cause.line > 0 && !cause.path.is_empty()).collect();
    causes.sort_by_key(|cause| (cause.severity, &cause.path, cause.line, &cause.text));
    causes.dedup();
    let annotation = |cause: &&PreviewCause| Annotation {
        path: cause.path.clone(),
        line: cause.line,
        level: match cause.severity {
            PreviewSeverity::Error => Level::Failure,
            PreviewSeverity::Warning => Level::Warning,
            PreviewSeverity::Notice => Level::Notice,
        },
        // A character takes up to four bytes.
        text: clean(&cause.text).chars().take(bytes / 4).collect(),
    };
    causes.iter().take(ANNOTATIONS_MAX).map(annotation).collect()
}

/// What was done, in words.
pub const fn what_was_done(done: Done) -> &'static str {
    match done {
        Done::StatusSet => "status set",
        Done::StatusStands => "the status stands already",
        Done::NoStatus => {
            "no status: the forge takes none for a commit that is in none of its branches, as that of a fork, before a job ran for it"
        }
        Done::StatusLeft => "the status is left as it is, for the pull request is closed",
        Done::CommentCreated => "commented",
        Done::CommentEdited => "comment edited",
        Done::CommentStands => "the comment stands already",
        Done::CommentIsOfAnother => {
            "no comment, for the pull request is at another commit than the preview: its comment is left to that one. Where nothing was pushed meanwhile, the job checked out a merge: make the preview with --head of what was pushed"
        }
        Done::IsClosed => "no comment, for the pull request is closed",
        Done::NoComment => "nothing to comment on",
        Done::CheckCreated => "check made",
        Done::CheckStands => "the check stands already",
        Done::NoCheck => "no check: the forge has none, or does not allow it with these credentials",
    }
}
