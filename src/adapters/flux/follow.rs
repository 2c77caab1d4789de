//! The object of a source is watched; each artifact is handed over once, when all of it is here and right.

use std::time::Duration;

use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::artifact::{SourceName, Told};
use super::download::{DownloadError, Downloads};
use crate::core::plan::Revision;
use crate::ports::{PortError, PortErrorKind};

/// How long a new process waits until the API server says what there is.
const FIRST_WITHIN: Duration = Duration::from_secs(20);
/// A download that fails is tried again after so long. It doubles.
const RETRY: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_mins(2);

/// What is known of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Nobody has said anything yet; why, where something was said.
    Unknown(String, PortErrorKind),
    Gone,
    There(Told),
}

/// One source of Flux.
pub struct FluxSource {
    name: SourceName,
    state: watch::Receiver<State>,
    task: JoinHandle<()>,
    downloads: Downloads,
    /// Digest and revision of the artifact that was taken last: a commit that changes nothing of what Flux packs has the digest of the one
    /// before, and is the revision all the same.
    taken: Option<(String, String)>,
    /// How long a failure is left alone; `None`: there is none.
    retry: Option<Duration>,
}

/// All of an artifact.
pub struct Downloaded {
    pub revision: Revision,
    /// As the object says it: `main@sha1:…`.
    pub title: String,
    digest: String,
    /// `tar.gz`
    pub archive: Vec<u8>,
}

impl FluxSource {
    /// Begins to watch. Needs a runtime.
    pub fn follow(client: &Client, name: SourceName) -> Result<Self, DownloadError> {
        let downloads = Downloads::new()?;
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &name.namespace, &name.kind.api());
        let only = watcher::Config::default().fields(&format!("metadata.name={}", name.name));
        let (tell, state) =
            watch::channel(State::Unknown("the API server has not answered yet".to_owned(), PortErrorKind::Temporary));
        let mut events = Box::pin(watcher(api, only).default_backoff());
        let watched = name.name.clone();
        let task = tokio::spawn(async move {
            let mut was_listed = false;
            while let Some(event) = events.next().await {
                let is_it = |object: &DynamicObject| object.metadata.name.as_deref() == Some(watched.as_str());
                match event {
                    Ok(Event::Init) => was_listed = false,
                    Ok(Event::InitApply(object) | Event::Apply(object)) if is_it(&object) => {
                        was_listed = true;
                        let now = State::There(Told::of(&object));
                        tell.send_if_modified(|state| std::mem::replace(state, now.clone()) != now);
                    }
                    Ok(Event::InitDone) if !was_listed => drop(tell.send_replace(State::Gone)),
                    Ok(Event::Delete(object)) if is_it(&object) => drop(tell.send_replace(State::Gone)),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "the source can not be watched");
                        // What was known stays: silence is no news.
                        let now = State::Unknown(error.to_string(), kind_of(&error));
                        tell.send_if_modified(|state| {
                            matches!(state, State::Unknown(..)) && std::mem::replace(state, now.clone()) != now
                        });
                    }
                }
            }
        });
        Ok(Self { name, state, task, downloads, taken: None, retry: None })
    }

    pub fn name(&self) -> &SourceName {
        &self.name
    }

    /// Whether somebody has suspended it, as far as is known.
    pub fn is_suspended(&self) -> bool {
        matches!(&*self.state.borrow(), State::There(told) if told.is_suspended)
    }

    /// The artifact, if it is another one than was taken last. What fails is tried again, and says why; what was taken stays what it is.
    pub async fn next(&mut self) -> Result<Option<Downloaded>, PortError> {
        let told = match self.said().await {
            State::There(told) => told,
            State::Gone => return Err(self.error("is not there", PortErrorKind::NotFound, None)),
            State::Unknown(why, kind) => return Err(self.error("can not be read", kind, Some(why.into()))),
        };
        let Told { artifact, trouble, .. } = told;
        let trouble = |kind, what: &str| self.error(what, kind, trouble.clone().map(Into::into));
        let Some(artifact) = artifact else {
            return Err(trouble(PortErrorKind::NotFound, "has no artifact yet"));
        };
        let is_taken =
            |(digest, revision): &(String, String)| *digest == artifact.digest && *revision == artifact.revision;
        if self.taken.as_ref().is_some_and(is_taken) {
            // It says itself that it can not get anything newer.
            return if told_trouble(&self.state.borrow()) {
                Err(trouble(PortErrorKind::Temporary, "is not ready, and its last artifact stays in use"))
            } else {
                Ok(None)
            };
        }
        match self.downloads.get(&artifact).await {
            Ok(archive) => {
                let (revision, digest) = (artifact.revision(), artifact.digest.clone());
                Ok(Some(Downloaded { revision, title: artifact.revision, digest, archive }))
            }
            Err(error) => {
                let kind = if error.stays() { PortErrorKind::Permanent } else { PortErrorKind::Temporary };
                self.failed();
                Err(self.error("has an artifact that can not be had", kind, Some(Box::new(error))))
            }
        }
    }

    /// It was of use: from now on it is what is there.
    pub fn took(&mut self, downloaded: &Downloaded) {
        self.taken = Some((downloaded.digest.clone(), downloaded.title.clone()));
        self.retry = None;
    }

    /// What was handed over, or could not be, was of no use.
    pub fn failed(&mut self) {
        self.retry = Some(self.retry.map_or(RETRY, |retry| retry.saturating_mul(2).min(RETRY_MAX)));
    }

    /// Waits until there may be something new, or what failed is tried again.
    pub async fn changed(&mut self) {
        let retry = self.retry;
        let later = async {
            match retry {
                Some(retry) => tokio::time::sleep(retry).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.state.changed() => {
                if changed.is_err() {
                    // The watch never ends by itself.
                    std::future::pending::<()>().await;
                }
                self.retry = None;
            }
            () = later => {}
        }
    }

    async fn said(&mut self) -> State {
        let is_said = |state: &State| !matches!(state, State::Unknown(_, PortErrorKind::Temporary));
        // An answer that does not come is the one that is there.
        drop(tokio::time::timeout(FIRST_WITHIN, self.state.wait_for(is_said)).await);
        self.state.borrow_and_update().clone()
    }

    /// What is wrong with the object.
    pub fn error(
        &self,
        what: &str,
        kind: PortErrorKind,
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    ) -> PortError {
        PortError { operation: format!("{} {what}", self.name), kind, source }
    }
}

fn kind_of(error: &watcher::Error) -> PortErrorKind {
    let cause = match error {
        watcher::Error::InitialListFailed(cause) | watcher::Error::WatchStartFailed(cause) => cause,
        watcher::Error::WatchError(status) if status.code == 403 => return PortErrorKind::Denied,
        _ => return PortErrorKind::Temporary,
    };
    match cause {
        kube::Error::Api(status) if status.code == 401 || status.code == 403 => PortErrorKind::Denied,
        kube::Error::Api(status) if status.code == 404 => PortErrorKind::NotFound,
        _ => PortErrorKind::Temporary,
    }
}

fn told_trouble(state: &State) -> bool {
    matches!(state, State::There(Told { trouble: Some(_), .. }))
}

impl Drop for FluxSource {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests;
