//! Follows one kind: lists it, watches what changes, and lists it again after every gap.
//!
//! The client's own watcher keeps to itself what is needed here: the bookmarks that say that nothing happened, without which a
//! watch that is broken in silence looks like a quiet one.

use futures::{StreamExt, pin_mut};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use kube::{Api, Client, Error};
use tokio::time::{Duration, Instant, sleep, timeout};

use crate::core::snapshot::kinds::Stored;
use crate::core::snapshot::resource_version::version_number;
use crate::ports::PortErrorKind;

use super::failure::{kind_of_status, sentence};
use super::watched::{PAGE, SAME_PAGE, Watched, all};

/// A page of a list, or the beginning of a watch, that is not there by then.
const PATIENCE: Duration = Duration::from_secs(60);
/// After which the server ends a watch.
const WATCH_SECONDS: u32 = 290;
/// A watch of which neither event nor bookmark came for so long is given up. Servers send a bookmark about once a minute.
pub(super) const SILENT: Duration = Duration::from_secs(120);
/// How long is waited after a failure at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A watch that lasts so long is none that fails at once again and again.
const LASTS: Duration = Duration::from_secs(30);

/// What keeps a watch from what is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// `list nodes`
    pub(super) operation: String,
    pub(super) kind: PortErrorKind,
    pub(super) text: String,
}

/// Who is told.
pub(super) trait Followed<T> {
    fn list_begins(&self);
    fn listed(&self, object: Watched<T>);
    /// All of it: what was not listed is gone.
    fn list_ends(&self);
    fn changed(&self, object: Watched<T>);
    fn deleted(&self, object: &Watched<T>);
    /// The server says that there is nothing else.
    fn nothing_happened(&self);
    fn stumbled(&self, trouble: Trouble);
}

/// Why following stopped.
enum Gap {
    /// Nothing is missing: go on from this version.
    None(String),
    /// Versions in between are not kept any more, or nobody knows whether there were any.
    Unknown,
    Failed(Trouble),
}

/// Until the runtime ends.
#[expect(clippy::disallowed_methods, reason = "how long a watch lasted is for this adapter alone")]
pub(super) async fn follow<T: Stored>(client: Client, reflector: &impl Followed<T>) {
    let api = all::<T>(&client);
    let mut version: Option<String> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        let gap = match version.take() {
            None => list(&api, reflector).await,
            Some(version) => {
                let gap = watch(&api, version, reflector).await;
                if began.elapsed() >= LASTS {
                    pause = FIRST_PAUSE;
                } else if matches!(gap, Gap::None(_)) {
                    // Whatever it says: not again at once. Nor much later, since nobody knows that anything is missed.
                    sleep(FIRST_PAUSE).await;
                }
                gap
            }
        };
        match gap {
            Gap::None(from) => version = Some(from),
            // Once is no trouble: the list that follows has it all.
            Gap::Unknown if began.elapsed() >= LASTS => {}
            Gap::Unknown => {
                if pause > FIRST_PAUSE {
                    reflector.stumbled(no_versions(format!("watch {}", T::RESOURCE)));
                }
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            Gap::Failed(trouble) => {
                reflector.stumbled(trouble);
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

async fn list<T: Stored>(api: &Api<Watched<T>>, reflector: &impl Followed<T>) -> Gap {
    let operation = || format!("list {}", T::RESOURCE);
    reflector.list_begins();
    let mut parameters = ListParams::default().limit(PAGE);
    loop {
        let page = match timeout(PATIENCE, api.list(&parameters)).await {
            Err(_) => return Gap::Failed(no_answer(operation())),
            Ok(Err(error)) => return Gap::Failed(trouble(operation(), &error)),
            Ok(Ok(page)) => page,
        };
        for object in page.items {
            reflector.listed(object);
        }
        let Some(token) = page.metadata.continue_.filter(|token| !token.is_empty()) else {
            reflector.list_ends();
            return Gap::None(page.metadata.resource_version.unwrap_or_default());
        };
        if parameters.continue_token.as_ref() == Some(&token) {
            return Gap::Failed(Trouble {
                operation: operation(),
                kind: PortErrorKind::Temporary,
                text: SAME_PAGE.to_owned(),
            });
        }
        parameters.continue_token = Some(token);
    }
}

async fn watch<T: Stored>(api: &Api<Watched<T>>, mut version: String, reflector: &impl Followed<T>) -> Gap {
    let operation = || format!("watch {}", T::RESOURCE);
    let parameters = WatchParams::default().timeout(WATCH_SECONDS);
    let events = match timeout(PATIENCE, api.watch(&parameters, &version)).await {
        Err(_) => return Gap::Failed(no_answer(operation())),
        Ok(Err(Error::Api(status))) if is_expired(&status) => return Gap::Unknown,
        Ok(Err(error)) => return Gap::Failed(trouble(operation(), &error)),
        Ok(Ok(events)) => events,
    };
    pin_mut!(events);
    let began = version_number(&version);
    // Before the watch began there is nothing to tell of, unless the store was put back.
    let is_before = |metadata: Option<&str>| metadata.is_some_and(|told| (1..began).contains(&version_number(told)));
    loop {
        let event = match timeout(SILENT, events.next()).await {
            Err(_) => return Gap::Unknown,
            Ok(None) => return Gap::None(version),
            Ok(Some(Err(error))) => return Gap::Failed(trouble(operation(), &error)),
            Ok(Some(Ok(event))) => event,
        };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)
                if is_before(object.metadata.resource_version.as_deref()) =>
            {
                return Gap::Unknown;
            }
            WatchEvent::Bookmark(bookmark) if is_before(Some(&bookmark.metadata.resource_version)) => {
                return Gap::Unknown;
            }
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                version = object.metadata.resource_version.clone().unwrap_or(version);
                reflector.changed(object);
            }
            WatchEvent::Deleted(object) => {
                version = object.metadata.resource_version.clone().unwrap_or(version);
                reflector.deleted(&object);
            }
            WatchEvent::Bookmark(bookmark) => {
                version = bookmark.metadata.resource_version;
                reflector.nothing_happened();
            }
            WatchEvent::Error(status) if is_expired(&status) => return Gap::Unknown,
            WatchEvent::Error(status) => return Gap::Failed(trouble(operation(), &Error::Api(status))),
        }
    }
}

fn is_expired(status: &Status) -> bool {
    status.code == 410
}

fn no_versions(operation: String) -> Trouble {
    let text = "the API server does not go on from what it has just listed, again and again".to_owned();
    Trouble { operation, kind: PortErrorKind::Temporary, text }
}

fn no_answer(operation: String) -> Trouble {
    let text = format!("no answer for {} seconds", PATIENCE.as_secs());
    Trouble { operation, kind: PortErrorKind::Temporary, text }
}

fn trouble(operation: String, error: &Error) -> Trouble {
    let (kind, text) = match error {
        Error::Api(status) => (kind_of_status(status), sentence(status.message.clone())),
        other => (PortErrorKind::Temporary, sentence(crate::ports::chain(other))),
    };
    Trouble { operation, kind, text }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::client::Body;

    use super::super::reflector::{Changes, Reflector};
    use super::*;
    use crate::core::snapshot::Pod;

    /// Lists say that they are of version 100, and each watch tells of one change before it ends.
    fn server(lists: &Arc<AtomicUsize>, told: &'static str) -> Client {
        let lists = Arc::clone(lists);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let answer = if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                let metadata = format!(r#"{{"name":"a","namespace":"shop","uid":"1","resourceVersion":"{told}"}}"#);
                format!(r#"{{"type":"MODIFIED","object":{{"metadata":{metadata},"spec":{{"containers":[]}}}}}}"#) + "\n"
            } else {
                lists.fetch_add(1, Ordering::SeqCst);
                r#"{"metadata":{"resourceVersion":"100"},"items":[]}"#.to_owned()
            };
            let response = http::Response::builder().header("content-type", "application/json");
            let response = response.body(Body::from(answer.into_bytes())).unwrap();
            async move { Ok::<_, Infallible>(response) }
        });
        Client::new(service, "default")
    }

    /// Somebody restored a backup of the store: the watch goes on in it, and says nothing of what else was put back.
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_tells_of_versions_before_its_own_is_replaced_by_a_list() {
        for (told, is_put_back) in [("101", false), ("7", true)] {
            let lists = Arc::new(AtomicUsize::new(0));
            let reflector: Reflector<Pod> = Reflector::new(Arc::new(Changes::default()));
            let follows = follow(server(&lists, told), &reflector);
            assert!(timeout(Duration::from_secs(10), follows).await.is_err(), "it goes on for ever");
            assert_eq!(lists.load(Ordering::SeqCst) > 1, is_put_back, "{told}");
        }
    }
}
