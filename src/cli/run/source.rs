//! What `run` was given: a folder with a scenario, a folder to watch, or a repository to poll.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;

use crate::adapters::git::{Beside, Earlier, FetchLimits, GitRepository, RemoteSettings, WatchedFolder, redacted};
use crate::api::scenario;
use crate::api::source::SourceFile;
use crate::cli::arguments::RunArguments;
use crate::cli::exit::Failure;
use crate::cli::settings;
use crate::core::catalog::regions::Region;
use crate::ports::{PortError, PortErrorKind, Repository, RevisionContent};

use super::FAILURE;
use super::flux::{self, FluxRepository};

pub enum Source {
    Scenario(PathBuf),
    Follow(Follow),
}

pub enum Follow {
    Watched(Box<WatchedFolder>),
    Remote(Box<GitRepository>),
    Flux(Box<FluxRepository>),
}

/// Finds out what was meant; a path that is not there is an error now. `earlier`: the commit that was used last, by another process.
pub fn find(arguments: &RunArguments, earlier: Option<Earlier>) -> Result<Source, Failure> {
    if let Some(folder) = &arguments.watch {
        return watched(folder);
    }
    let Some(text) = &arguments.repository else {
        return Err(Failure::usage(2, anyhow!("nothing to run")).with_hint(
            "name a folder, a repository URL, or --watch DIR: `cutlist run --embedded examples/quickstart`",
        ));
    };
    let path = Path::new(text);
    if path.is_dir() {
        if path.join(scenario::FILE_NAME).is_file() {
            return Ok(Source::Scenario(path.to_owned()));
        }
        let is_bare = path.join("HEAD").is_file() && path.join("objects").is_dir();
        let is_followed = is_bare || arguments.branch.is_some();
        return if is_followed { remote(text, arguments, earlier) } else { watched(path) };
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

fn watched(folder: &Path) -> Result<Source, Failure> {
    watched_folder(folder).map(Source::Follow)
}

pub fn watched_folder(folder: &Path) -> Result<Follow, Failure> {
    let watched = WatchedFolder::open(folder).map_err(|error| Failure::of_repository(FAILURE, error))?;
    Ok(Follow::Watched(Box::new(watched)))
}

fn remote(url: &str, arguments: &RunArguments, earlier: Option<Earlier>) -> Result<Source, Failure> {
    let Some(seconds) = arguments.interval.seconds() else {
        return Err(Failure::usage(2, anyhow!("--interval must be a duration, not Never")));
    };
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
    };
    let repository = GitRepository::open(&settings).map_err(|error| Failure::usage(FAILURE, error))?;
    Ok(Source::Follow(Follow::Remote(Box::new(repository))))
}

/// A repository whose first revision was read already, to learn the region from it. Nobody waits for what comes later.
pub struct Followed {
    first: Option<RevisionContent>,
    later: Beside,
}

/// Reads the first revision. What can not be read at the start is an error; later it would be tried again.
pub async fn first_look(follow: Follow, arguments: &RunArguments) -> Result<(Followed, Region), Failure> {
    let (content, later) = match follow {
        Follow::Watched(mut folder) => (folder.poll().await.map_err(unreadable)?, Beside::start(*folder)),
        Follow::Remote(mut repository) => (repository.poll().await.map_err(unreadable)?, Beside::start(*repository)),
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
    Ok((Followed { first: content, later }, region))
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
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        self.later.poll().await
    }

    async fn changed(&mut self) {
        self.later.changed().await;
    }

    fn is_asking(&self) -> bool {
        self.first.is_some() || self.later.is_asking()
    }
}
