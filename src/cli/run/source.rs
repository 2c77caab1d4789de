//! What `run` was given: a folder with a scenario, a folder to watch, or a repository to poll.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;

use crate::adapters::git::{Beside, Earlier, FetchLimits, GitRepository, RemoteSettings, WatchedFolder, redacted};
use crate::api::scenario;
use crate::api::source::SourceFile;
use crate::cli::arguments::RunArguments;
use crate::cli::exit::Failure;
use crate::cli::settings;
use crate::cli::signing::Signing;
use crate::core::catalog::regions::Region;
use crate::core::plan::Revision;
use crate::ports::{PortError, PortErrorKind, Repository, RevisionContent, Unsigned};

use super::FAILURE;
use super::flux::{self, FluxRepository};
use super::guard::Guard;

pub enum Source {
    Scenario(PathBuf),
    Follow(Follow),
}

pub enum Follow {
    Watched(Box<WatchedFolder>),
    /// With who may sign, where that is asked.
    Remote(Box<GitRepository>, Option<Box<Guard>>),
    Flux(Box<FluxRepository>),
}

/// Finds out what was meant; a path that is not there is an error now. `earlier`: the commit that was used last, by another process.
pub fn find(arguments: &RunArguments, earlier: Option<Earlier>) -> Result<Source, Failure> {
    if let Some(folder) = &arguments.watch {
        return watched(folder, arguments);
    }
    let Some(text) = &arguments.repository else {
        return Err(Failure::usage(2, anyhow!("nothing to run")).with_hint(
            "name a folder, a repository URL, or --watch DIR: `cutlist run --embedded examples/quickstart`",
        ));
    };
    let path = Path::new(text);
    if path.is_dir() {
        if path.join(scenario::FILE_NAME).is_file() {
            refuse_signatures(arguments, "a scenario")?;
            return Ok(Source::Scenario(path.to_owned()));
        }
        let is_bare = path.join("HEAD").is_file() && path.join("objects").is_dir();
        let is_followed = is_bare || arguments.branch.is_some();
        return if is_followed { remote(text, arguments, earlier) } else { watched(path, arguments) };
    }
    let is_address = text.contains("://") || (text.contains('@') && text.contains(':'));
    if !is_address {
        let error = anyhow!("{} is not there, or is no folder", redacted(text));
        return Err(Failure::usage(FAILURE, error).with_hint(
            "name a folder with definitions, a clone, a bare repository, or a URL such as https://host/repository.git",
        ));
    }
    remote(text, arguments, earlier)
}

fn watched(folder: &Path, arguments: &RunArguments) -> Result<Source, Failure> {
    refuse_signatures(arguments, "a folder that is watched")?;
    watched_folder(folder).map(Source::Follow)
}

pub fn watched_folder(folder: &Path) -> Result<Follow, Failure> {
    let watched = WatchedFolder::open(folder).map_err(|error| Failure::of_repository(FAILURE, error))?;
    Ok(Follow::Watched(Box::new(watched)))
}

/// What is no commit is signed by nobody.
pub fn refuse_signatures(arguments: &RunArguments, what: &str) -> Result<(), Failure> {
    if !arguments.signing.are_given() {
        return Ok(());
    }
    Err(Failure::usage(2, anyhow!("signatures are those of commits, and {what} has none")).with_hint(
        "name the Git repository itself, by its URL or with --branch; what Flux or Argo CD fetch, they can verify themselves",
    ))
}

fn remote(url: &str, arguments: &RunArguments, earlier: Option<Earlier>) -> Result<Source, Failure> {
    let Some(seconds) = arguments.interval.seconds() else {
        return Err(Failure::usage(2, anyhow!("--interval must be a duration, not Never")));
    };
    let signing = Signing::of(&arguments.signing, &arguments.definitions)?;
    let used_last = earlier.as_ref().map(|earlier| earlier.id.clone());
    let settings = RemoteSettings {
        url: url.to_owned(),
        reference: arguments.branch.clone(),
        sub_path: arguments.sub_path.clone().unwrap_or_default(),
        interval: Duration::from_secs(seconds),
        credentials_file: arguments.credentials_file.clone(),
        clone_folder: None,
        program: std::env::current_exe().map_err(|error| Failure::usage(FAILURE, error))?,
        limits: FetchLimits::default(),
        earlier,
        with_history: signing.is_some(),
    };
    let repository = GitRepository::open(&settings).map_err(|error| Failure::usage(FAILURE, error))?;
    let guard = signing.map(|signing| Box::new(Guard::new(signing, &repository, &settings.sub_path, used_last)));
    Ok(Source::Follow(Follow::Remote(Box::new(repository), guard)))
}

/// A repository whose first revision was read already, to learn the region from it. Nobody waits for what comes later.
pub struct Followed {
    first: VecDeque<RevisionContent>,
    later: Beside,
    guard: Option<Box<Guard>>,
}

/// Reads the first revision. What can not be read at the start is an error; later it would be tried again.
pub async fn first_look(follow: Follow, arguments: &RunArguments) -> Result<(Followed, Region), Failure> {
    let mut guard = None;
    let (content, later) = match follow {
        Follow::Watched(mut folder) => (folder.poll().await.map_err(unreadable)?, Beside::start(*folder)),
        Follow::Remote(mut repository, of_remote) => {
            guard = of_remote;
            (repository.poll().await.map_err(unreadable)?, Beside::start(*repository))
        }
        Follow::Flux(mut repository) => {
            let first = repository.next().await.map_err(|error| {
                let hint = flux::hint(&error);
                Failure::usage(FAILURE, error).with_hint(hint)
            })?;
            (first, Beside::start(*repository))
        }
    };
    let files: &[SourceFile] = content.as_ref().map_or(&[], |content| &content.files);
    let region = settings::read_definitions(files, &arguments.definitions).region();
    let first = match (content, &mut guard) {
        (Some(content), Some(guard)) => guard.first(content).await?,
        (content, _) => content.into_iter().collect(),
    };
    Ok((Followed { first: first.into(), later, guard }, region))
}

fn unreadable(error: PortError) -> Failure {
    let hint = match error.kind {
        PortErrorKind::Temporary => "check the address and the network, then start again",
        PortErrorKind::NotFound => "check the address, --branch and --sub-path",
        PortErrorKind::Denied => "check --credentials-file",
        PortErrorKind::Conflict | PortErrorKind::InsufficientCapacity | PortErrorKind::Permanent => {
            "check the address: it must be a Git repository, or a folder with definitions"
        }
    };
    Failure::usage(FAILURE, error).with_hint(hint)
}

impl Repository for Followed {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        if let Some(first) = self.first.pop_front() {
            return Ok(Some(first));
        }
        self.later.poll().await
    }

    async fn changed(&mut self) {
        if self.first.is_empty() {
            self.later.changed().await;
        }
    }

    fn is_asking(&self) -> bool {
        !self.first.is_empty() || self.later.is_asking()
    }

    async fn unsigned(&mut self, revision: &Revision, in_force: Option<&Revision>) -> Result<Vec<Unsigned>, PortError> {
        match &mut self.guard {
            Some(guard) => guard.unsigned(revision, in_force).await,
            None => Ok(Vec::new()),
        }
    }
}
