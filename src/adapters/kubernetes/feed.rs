//! What a watch says of one kind, kept until somebody looks.
//!
//! A feed remembers of every object only its version: that is enough to drop an event that is older than what was written
//! through this process, and to find out after a relist what has gone meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use kube::Client;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::Notify;

use crate::core::snapshot::Snapshot;
use crate::core::snapshot::kinds::{Stored, place};
use crate::ports::PortErrorKind;

use super::failure::{kind_of_code, sentence};
use super::siblings::Siblings;
use super::watched::{Watched, all};

/// Namespace and name.
pub(super) type Key = (String, String);

/// Goes up with every change of any feed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    generation: AtomicU64,
    notify: Notify,
}

impl Changes {
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    pub(super) fn announce(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.notify.notify_waiters();
        self.notify.notify_one();
    }

    pub(super) async fn announced(&self) {
        self.notify.notified().await;
    }
}

/// Where a feed stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The first list is not complete. With what went wrong last, if something did.
    Waiting(Option<Trouble>),
    /// The kind is not installed: there are none.
    Absent,
    Synced,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// `list nodes`
    pub(super) operation: String,
    pub(super) kind: PortErrorKind,
    pub(super) text: String,
}

/// A feed of some kind.
pub(super) trait AnyFeed: Send + Sync {
    fn standing(&self) -> Standing;
    fn has_news(&self) -> bool;
    /// Brings the kind's objects in the snapshot up to date. O(objects + changes log changes) when objects come or go,
    /// O(changes log objects) when they only change.
    fn drain_into(&self, snapshot: &mut Snapshot);
}

pub(super) struct Feed<T> {
    state: Mutex<State<T>>,
    changes: Arc<Changes>,
}

struct State<T> {
    known: BTreeMap<Key, Version>,
    /// UIDs of objects that this process saw go before their watch said so.
    gone: BTreeSet<String>,
    /// Not looked at yet; `None`: it went.
    news: BTreeMap<Key, Option<Arc<T>>>,
    siblings: Siblings<T>,
    /// Keys that the list under way has brought.
    listed: Option<BTreeSet<Key>>,
    standing: Standing,
}

#[derive(Clone, Debug, Default)]
struct Version {
    uid: String,
    resource_version: String,
}

impl Version {
    /// Versions of one kind grow; comparing them as numbers is allowed since Kubernetes 1.35, and has worked since etcd 3.
    fn number(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}

impl<T: Stored> Feed<T> {
    pub(super) fn new(changes: Arc<Changes>) -> Self {
        let state = State {
            known: BTreeMap::new(),
            gone: BTreeSet::new(),
            news: BTreeMap::new(),
            siblings: Siblings::new(),
            listed: None,
            standing: Standing::Waiting(None),
        };
        Self { state: Mutex::new(state), changes }
    }

    /// Watches until the runtime ends: lists, follows, and lists again after every gap.
    pub(super) async fn follow(self: Arc<Self>, client: Client) {
        let mut events = watcher(all::<T>(&client), watcher::Config::default()).default_backoff().boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.take(event),
                Err(error) => self.stumble(&error),
            }
        }
    }

    fn take(&self, event: watcher::Event<Watched<T>>) {
        let mut state = self.lock();
        match event {
            watcher::Event::Init => {
                state.listed = Some(BTreeSet::new());
                return;
            }
            watcher::Event::InitApply(object) => {
                let key = key_of(&object);
                state.put(object);
                if let Some(listed) = &mut state.listed {
                    listed.insert(key);
                }
                return;
            }
            watcher::Event::InitDone => state.finish_list(),
            watcher::Event::Apply(object) => state.put(object),
            watcher::Event::Delete(object) => state.remove(&object),
        }
        drop(state);
        self.changes.announce();
    }

    fn stumble(&self, error: &watcher::Error) {
        let operation = match error {
            watcher::Error::InitialListFailed(_) => format!("list {}", T::RESOURCE),
            _ => format!("watch {}", T::RESOURCE),
        };
        let cause = match error {
            watcher::Error::InitialListFailed(cause)
            | watcher::Error::WatchStartFailed(cause)
            | watcher::Error::WatchFailed(cause) => Some(cause),
            watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => None,
        };
        let (kind, text) = match cause {
            Some(kube::Error::Api(status)) => (kind_of_code(status.code), sentence(status.message.clone())),
            Some(other) => (PortErrorKind::Temporary, other.to_string()),
            None => (PortErrorKind::Temporary, error.to_string()),
        };
        tracing::debug!(operation, text, "watch");
        let mut state = self.lock();
        if state.standing == Standing::Synced && kind != PortErrorKind::Denied {
            return;
        }
        let absent = kind == PortErrorKind::NotFound;
        state.standing =
            if absent { Standing::Absent } else { Standing::Waiting(Some(Trouble { operation, kind, text })) };
        drop(state);
        self.changes.announce();
    }

    /// An object as the API server gave it in answer to a write.
    pub(super) fn wrote(&self, object: T) {
        self.wrote_watched(Watched::new(object));
    }

    /// The same for one that was read in its trimmed form.
    pub(super) fn wrote_watched(&self, watched: Watched<T>) {
        let key = key_of(&watched);
        let mut state = self.lock();
        state.put(watched);
        // The list under way may be older than this write.
        if let Some(listed) = &mut state.listed {
            listed.insert(key);
        }
        drop(state);
        self.changes.announce();
    }

    /// An object that a write made go.
    pub(super) fn saw_go(&self, namespace: &str, name: &str) {
        let mut state = self.lock();
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(version) = state.known.remove(&key) {
            state.gone.insert(version.uid);
        }
        state.news.insert(key, None);
        drop(state);
        self.changes.announce();
    }

    /// The newest version that is known of an object.
    pub(super) fn resource_version(&self, namespace: &str, name: &str) -> Option<String> {
        let state = self.lock();
        state.known.get(&(namespace.to_owned(), name.to_owned())).map(|version| version.resource_version.clone())
    }

    /// The object, if there is news of it that nobody has looked at; inner `None`: it went.
    pub(super) fn unseen(&self, namespace: &str, name: &str) -> Option<Option<T>> {
        let news = self.lock().news.get(&(namespace.to_owned(), name.to_owned())).cloned()?;
        Some(news.as_deref().cloned())
    }

    /// A panic while it was held left at worst a change out, which the next relist brings.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Stored> State<T> {
    fn put(&mut self, watched: Watched<T>) {
        let key = key_of(&watched);
        let version = Version {
            uid: watched.metadata.uid.unwrap_or_default(),
            resource_version: watched.metadata.resource_version.unwrap_or_default(),
        };
        let is_old =
            self.known.get(&key).is_some_and(|known| known.uid == version.uid && known.number() > version.number());
        if is_old || self.gone.contains(&version.uid) {
            return;
        }
        self.known.insert(key.clone(), version);
        let object = self.siblings.sharing(watched.object);
        self.news.insert(key, Some(object));
    }

    fn remove(&mut self, watched: &Watched<T>) {
        let key = key_of(watched);
        let uid = watched.metadata.uid.as_deref().unwrap_or_default();
        self.gone.remove(uid);
        // Another object may have taken the name already.
        if self.known.get(&key).is_some_and(|known| known.uid == uid) {
            self.known.remove(&key);
            self.news.insert(key, None);
        }
    }

    fn finish_list(&mut self) {
        let listed = self.listed.take().unwrap_or_default();
        let missing: Vec<Key> = self.known.keys().filter(|key| !listed.contains(*key)).cloned().collect();
        for key in missing {
            self.known.remove(&key);
            self.news.insert(key, None);
        }
        self.gone.clear();
        self.siblings.forget_the_dead();
        self.standing = Standing::Synced;
    }
}

fn key_of<T>(watched: &Watched<T>) -> Key {
    let metadata = &watched.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

impl<T: Stored> AnyFeed for Feed<T> {
    fn standing(&self) -> Standing {
        self.lock().standing.clone()
    }

    fn has_news(&self) -> bool {
        !self.lock().news.is_empty()
    }

    fn drain_into(&self, snapshot: &mut Snapshot) {
        let news = std::mem::take(&mut self.lock().news);
        let objects = T::all_mut(snapshot).shared_mut();
        let mut added = Vec::new();
        let mut removed = BTreeSet::new();
        for ((namespace, name), change) in news {
            let found =
                objects.binary_search_by(|object| place(object.as_ref()).cmp(&(namespace.as_str(), name.as_str())));
            match (found, change) {
                (Ok(index), Some(object)) => objects[index] = object,
                (Ok(index), None) => {
                    removed.insert(index);
                }
                (Err(_), Some(object)) => added.push(object),
                (Err(_), None) => {}
            }
        }
        if !removed.is_empty() {
            let mut index = 0;
            objects.retain(|_| {
                index += 1;
                !removed.contains(&(index - 1))
            });
        }
        if !added.is_empty() {
            objects.append(&mut added);
            objects.sort_by(|one, two| place(one.as_ref()).cmp(&place(two.as_ref())));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::snapshot::Pod;

    fn pod(name: &str, uid: &str, version: u32, node: Option<&str>) -> Watched<Pod> {
        let object = json!({
            "metadata": {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": version.to_string()},
            "spec": {"nodeName": node, "containers": []},
        });
        serde_json::from_value(object).unwrap()
    }

    fn feed() -> Feed<Pod> {
        let feed = Feed::new(Arc::new(Changes::default()));
        feed.take(watcher::Event::Init);
        feed.take(watcher::Event::InitApply(pod("a", "1", 10, None)));
        feed.take(watcher::Event::InitApply(pod("b", "2", 11, None)));
        feed.take(watcher::Event::InitDone);
        feed
    }

    /// Name and node of every pod.
    fn seen(feed: &Feed<Pod>, snapshot: &mut Snapshot) -> Vec<(String, Option<String>)> {
        feed.drain_into(snapshot);
        snapshot.pods.iter().map(|pod| (pod.metadata.name.clone(), pod.spec.node_name.clone())).collect()
    }

    fn on(name: &str, node: Option<&str>) -> (String, Option<String>) {
        (name.to_owned(), node.map(str::to_owned))
    }

    #[test]
    fn lists_and_follows() {
        let (feed, mut snapshot) = (feed(), Snapshot::default());
        assert_eq!(feed.standing(), Standing::Synced);
        assert_eq!(seen(&feed, &mut snapshot), [on("a", None), on("b", None)]);
        feed.take(watcher::Event::Apply(pod("aa", "3", 12, Some("n"))));
        feed.take(watcher::Event::Delete(pod("a", "1", 13, None)));
        assert_eq!(seen(&feed, &mut snapshot), [on("aa", Some("n")), on("b", None)]);
        assert!(!feed.has_news());
    }

    #[test]
    fn what_was_written_is_not_undone_by_an_older_event() {
        let (feed, mut snapshot) = (feed(), Snapshot::default());
        feed.wrote_watched(pod("a", "1", 20, Some("n")));
        feed.take(watcher::Event::Apply(pod("a", "1", 15, None)));
        assert_eq!(seen(&feed, &mut snapshot), [on("a", Some("n")), on("b", None)]);
        feed.take(watcher::Event::Apply(pod("a", "1", 21, Some("m"))));
        assert_eq!(seen(&feed, &mut snapshot), [on("a", Some("m")), on("b", None)]);
    }

    #[test]
    fn what_was_seen_to_go_does_not_come_back_with_an_older_event() {
        let (feed, mut snapshot) = (feed(), Snapshot::default());
        feed.saw_go("shop", "a");
        feed.take(watcher::Event::Apply(pod("a", "1", 15, None)));
        assert_eq!(seen(&feed, &mut snapshot), [on("b", None)]);
        feed.take(watcher::Event::Apply(pod("a", "9", 30, None)));
        feed.take(watcher::Event::Delete(pod("a", "1", 16, None)));
        assert_eq!(seen(&feed, &mut snapshot), [on("a", None), on("b", None)], "another object of that name");
    }

    #[test]
    fn a_relist_takes_away_what_went_in_the_gap_and_keeps_what_was_written_meanwhile() {
        let (feed, mut snapshot) = (feed(), Snapshot::default());
        seen(&feed, &mut snapshot);
        feed.take(watcher::Event::Init);
        feed.take(watcher::Event::InitApply(pod("b", "2", 11, None)));
        feed.wrote_watched(pod("c", "4", 40, None));
        feed.take(watcher::Event::InitDone);
        assert_eq!(seen(&feed, &mut snapshot), [on("b", None), on("c", None)]);
    }
}
