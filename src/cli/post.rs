//! `cutlist post`

mod described;
mod forge;

use std::io::Write;
use std::path::Path;

use anyhow::{Context, anyhow};

use super::arguments::PostArguments;
use super::exit::{Failure, Outcome};
use super::inputs::{FileKind, is_stdin, read_text};
use super::output;
use crate::adapters::forge::{ForgeError, JobContext, post};
use crate::api::preview::{self, Preview};
use crate::controller::reviews::{self, Shown, what_was_done};
use crate::ports::chain;
use crate::ports::pull_requests::Posted;
use crate::render::posting;

pub(super) use forge::{Resolved, resolve};

/// Of a job's summary on GitHub, less than the 1 MiB that it takes, since other steps write there as well.
const SUMMARY_ROOM: posting::Room = posting::Room { characters: 500_000, bytes: 900_000 };

pub fn run(arguments: &PostArguments) -> Result<Outcome, Failure> {
    let name = shown_name(&arguments.preview);
    let text = read_text(&arguments.preview, FileKind::Preview)
        .map_err(|error| Failure::of_file(format!("{name} can not be read"), error))?;
    let preview = parsed(&name, &text).map_err(Failure::failed)?;
    refuse_another_head(arguments, &preview)?;
    let resolved = resolve(&arguments.forge, arguments.details_url.as_deref())?;
    let number = number_of(arguments, &resolved)?;
    let shown = shown(arguments, &resolved);
    let posting = reviews::posting(&preview, number, &shown, resolved.table());
    if let Some(told) = reviews::told_together(&preview, &shown) {
        output::say(&format!("note: {told}"));
    }
    if let Some(file) = &arguments.summary_file
        && !arguments.dry_run
    {
        append(file, &posting::page(&preview, shown.manner(), SUMMARY_ROOM)).map_err(Failure::failed)?;
    }
    let posts = !arguments.allow_no_token || resolved.has_token();
    if posts {
        refuse_tried_merge(&preview, &resolved.found)?;
    }
    if arguments.dry_run {
        output::document(&described::described(&posting, &resolved))?;
        return Ok(Outcome::Clean);
    }
    if !posts {
        output::say("there is no token: nothing is posted");
        return Ok(Outcome::Clean);
    }
    let forge = resolved.connect()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::failed)?;
    let posted = runtime.block_on(post(&forge, &posting));
    tell(&posted);
    outcome(&posted, &resolved)
}

/// The pull request to comment on; `None` where the commit is of none.
fn number_of(arguments: &PostArguments, resolved: &Resolved) -> Result<Option<u64>, Failure> {
    if arguments.commit_only {
        return Ok(None);
    }
    match arguments.pull_request.or(resolved.found.pull_request) {
        Some(number) => Ok(Some(number)),
        None if resolved.found.is_merge_queue => Ok(None),
        None => Err(Failure::usage(anyhow!("nothing says which pull request the preview is for")).with_hint(
            "add --pull-request NUMBER, or run this in a job for a pull request; --commit-only sets the status alone",
        )),
    }
}

fn shown_name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn parsed(name: &str, text: &str) -> anyhow::Result<Preview> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let preview: Preview = serde_path_to_error::deserialize(&mut deserializer)
        .with_context(|| format!("{name} is no preview; `cutlist preview -o json` writes one"))?;
    if preview.kind != preview::KIND || preview.version != preview::FORMAT_VERSION {
        anyhow::bail!(
            "{name} is {} of version {}, and this program reads {} of version {}",
            preview.kind,
            preview.version,
            preview::KIND,
            preview::FORMAT_VERSION
        );
    }
    // It becomes part of an address.
    if preview.head.id.len() < 7 || !preview.head.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        anyhow::bail!(
            "{name} was made for {:?}, which is no commit, so there is nothing to give a status",
            preview.head.id
        );
    }
    Ok(preview)
}

fn refuse_another_head(arguments: &PostArguments, preview: &Preview) -> Result<(), Failure> {
    match &arguments.head {
        Some(head) if *head != preview.head.id => {
            let error = anyhow!("the preview is for commit {}, and not for {head}", preview.head.id);
            Err(Failure::failed(error).with_hint("make a preview of that commit"))
        }
        _ => Ok(()),
    }
}

/// Nobody looks at the merge that a forge makes to try a change, and that many jobs check out: what is posted for it is shown nowhere.
fn refuse_tried_merge(preview: &Preview, job: &JobContext) -> Result<(), Failure> {
    let made_for = &preview.head.id;
    if job.tried_merge.as_ref() != Some(made_for) || job.head.as_ref() == Some(made_for) {
        return Ok(());
    }
    let error = anyhow!(
        "the preview is for {made_for}, the merge that the forge made to try the change: no status of it is shown"
    );
    let head = job.head.as_deref().unwrap_or("HEAD^2");
    Err(Failure::failed(error).with_hint(format!("make the preview with --head {head}, which is what was pushed")))
}

fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(output::shown(text).as_bytes()));
    written.with_context(|| format!("{} can not be written", path.display()))
}

/// How the preview is shown.
fn shown(arguments: &PostArguments, resolved: &Resolved) -> Shown {
    Shown {
        name: arguments.forge.forge_name.clone(),
        is_untrusted: arguments.untrusted,
        link: resolved.found.link.clone(),
        comment: arguments.comment.manner(),
        checks: !arguments.no_checks,
    }
}

/// What was done, on standard error.
fn tell(posted: &Posted<ForgeError>) {
    for (context, done) in &posted.done {
        output::say(&format!("{context}: {}", what_was_done(*done)));
    }
}

/// What failed alike is said once: with many clusters it would be all that there is to see.
fn failures(posted: &Posted<ForgeError>) -> Vec<String> {
    let mut alike: Vec<(&str, String, Vec<&str>)> = Vec::new();
    for (context, what, error) in &posted.failed {
        let why = chain(error);
        match alike.iter_mut().find(|it| it.0 == *what && it.1 == why) {
            Some((_, _, contexts)) => contexts.push(context),
            None => alike.push((what, why, vec![context])),
        }
    }
    let sentence = |(what, why, contexts): (&str, String, Vec<&str>)| {
        let first = contexts.first().copied().unwrap_or_default();
        let more = match contexts.len() {
            0 | 1 => String::new(),
            several => format!(" and {} more", several - 1),
        };
        format!("{first}{more}: can not {what}: {why}")
    };
    alike.into_iter().map(sentence).collect()
}

fn outcome(posted: &Posted<ForgeError>, resolved: &Resolved) -> Result<Outcome, Failure> {
    let Some((_, _, error)) = posted.failed.first() else { return Ok(Outcome::Clean) };
    let mut sentences = failures(posted).into_iter();
    let first = sentences.next().unwrap_or_default();
    for sentence in sentences {
        output::say(&format!("error: {sentence}"));
    }
    let failure = Failure::failed(anyhow!(first));
    Err(match resolved.hint(error) {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    })
}
