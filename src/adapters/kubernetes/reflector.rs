//! What a watch says of one kind, kept until somebody looks.
//!
//! A reflector remembers of every object only its version: that is enough to drop an event that is older than what was written
//! through this process, and to find out after a relist what has gone meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kube::Client;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubts::{KindInDoubt, Unreadable};
use crate::core::snapshot::kinds::{Stored, is_in_every_cluster, place};
use crate::core::snapshot::resource_version::version_number;
use crate::ports::PortErrorKind;

use super::following::{Followed, Trouble, follow};
use super::shared_by_owner::SharedByOwner;
use super::watched::Watched;

/// Namespace and name.
pub(super) type Key = (String, String);

/// A kind of which nothing was heard for so long, not even that nothing happened, may have changed. A watch that is silent is
/// replaced by a list before ([`super::following::SILENT`]).
const LAGGING: Duration = Duration::from_secs(180);
/// Objects of which it is remembered that they ended: an answer that is older than their end must not bring them back.
const ENDED_MAX: usize = 4096;

/// Goes up with every change of any reflector.
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

/// Where a reflector stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The first list is not complete. With what went wrong last, if something did.
    Waiting(Option<Trouble>),
    /// The kind is not installed: there are none.
    Absent,
    /// There was a list. With what goes wrong since, if something does.
    Synced(Option<Trouble>),
}

/// A reflector of some kind.
pub(super) trait AnyReflector: Send + Sync {
    fn standing(&self) -> Standing;
    fn has_news(&self) -> bool;
    /// Why it is not known how the kind is now, by its name.
    fn doubt(&self) -> Option<(String, KindInDoubt)>;
    fn unreadable(&self) -> Vec<Unreadable>;
    /// Brings the kind's objects in the snapshot up to date. O(objects + changes log changes) when objects come or go,
    /// O(changes log objects) when they only change.
    fn drain_into(&self, snapshot: &mut Snapshot);
}

pub(super) struct Reflector<T> {
    state: Mutex<State<T>>,
    changes: Arc<Changes>,
}

struct State<T> {
    known: BTreeMap<Key, Version>,
    /// UIDs of objects that this process saw go before their watch said so.
    gone: BTreeSet<String>,
    /// UIDs of those whose end the watch has said, the latest at the back.
    ended: VecDeque<String>,
    /// Not looked at yet; `None`: it went.
    news: BTreeMap<Key, Option<Arc<T>>>,
    /// Objects that do not have the shape of their kind.
    unreadable: BTreeMap<Key, Unreadable>,
    shared: SharedByOwner<T>,
    listing: Option<Listing>,
    standing: Standing,
    whole: Heard,
}

/// What came since the list under way was asked for. All that was answered before is in the list, as the API server gives the newest there
/// is where no version is asked for.
#[derive(Debug, Default)]
struct Listing {
    /// What is there, by the list or by an answer beside it.
    there: BTreeSet<Key>,
    /// Of what an answer came beside the list, which may be older.
    beside: BTreeSet<Key>,
    /// Whether the list has an object as it was before it was seen last.
    is_older: bool,
}

/// When all of the kind was known last: the last list that was complete, else event or bookmark that came.
#[derive(Clone, Copy, Debug)]
struct Heard {
    at: Timestamp,
    instant: Instant,
}

impl Heard {
    #[expect(
        clippy::disallowed_methods,
        reason = "when the API server was heard last is for people to compare with its log"
    )]
    fn now() -> Self {
        Self { at: Timestamp::now(), instant: Instant::now() }
    }
}

#[derive(Clone, Debug, Default)]
struct Version {
    uid: String,
    resource_version: String,
}

impl Version {
    fn of<T>(watched: &Watched<T>) -> Self {
        let metadata = &watched.metadata;
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self { uid: text(&metadata.uid), resource_version: text(&metadata.resource_version) }
    }

    fn number(&self) -> u64 {
        version_number(&self.resource_version)
    }
}

impl<T: Stored> Reflector<T> {
    pub(super) fn new(changes: Arc<Changes>) -> Self {
        let state = State {
            known: BTreeMap::new(),
            gone: BTreeSet::new(),
            ended: VecDeque::new(),
            news: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            shared: SharedByOwner::new(),
            listing: None,
            standing: Standing::Waiting(None),
            whole: Heard::now(),
        };
        Self { state: Mutex::new(state), changes }
    }

    /// Watches until the runtime ends: lists, follows, and lists again after every gap.
    pub(super) async fn follow(self: Arc<Self>, client: Client) {
        follow(client, self.as_ref()).await;
    }

    /// An object as the API server gave it in answer to a write.
    pub(super) fn wrote(&self, object: T) {
        self.saw(Watched::new(object));
    }

    /// One that was read beside the watch.
    pub(super) fn saw(&self, watched: Watched<T>) {
        let key = key_of(&watched);
        let mut state = self.lock();
        // The list under way may be older than this.
        if state.put(watched)
            && let Some(listing) = &mut state.listing
        {
            listing.there.insert(key.clone());
            listing.beside.insert(key);
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
        if let Some(listing) = &mut state.listing {
            listing.beside.insert(key.clone());
        }
        state.unreadable.remove(&key);
        state.news.insert(key, None);
        drop(state);
        self.changes.announce();
    }

    /// The newest version that is known of an object.
    pub(super) fn resource_version(&self, namespace: &str, name: &str) -> Option<String> {
        let state = self.lock();
        state.known.get(&(namespace.to_owned(), name.to_owned())).map(|version| version.resource_version.clone())
    }

    /// Whether the object does not have the shape of its kind: what is known of it is how it was before.
    pub(super) fn is_unreadable(&self, namespace: &str, name: &str) -> bool {
        self.lock().unreadable.contains_key(&(namespace.to_owned(), name.to_owned()))
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

impl<T: Stored> Followed<T> for Reflector<T> {
    fn list_begins(&self) {
        self.lock().listing = Some(Listing::default());
    }

    fn listed(&self, object: Watched<T>) {
        self.lock().put_listed(object);
    }

    fn list_ends(&self) {
        self.lock().finish_list();
        self.changes.announce();
    }

    fn changed(&self, object: Watched<T>) {
        let mut state = self.lock();
        state.put(object);
        state.heard();
        drop(state);
        self.changes.announce();
    }

    fn deleted(&self, object: &Watched<T>) {
        let mut state = self.lock();
        state.remove(object);
        state.heard();
        drop(state);
        self.changes.announce();
    }

    fn nothing_happened(&self) {
        self.lock().heard();
    }

    fn stumbled(&self, trouble: Trouble) {
        tracing::debug!(operation = trouble.operation, text = trouble.text, "watch");
        let mut state = self.lock();
        // What was known of all objects once is known, whatever comes after: it is in doubt, and keeps nobody waiting.
        let was_whole = matches!(state.standing, Standing::Synced(_) | Standing::Absent);
        // The definition of a kind that had objects may be made anew a moment later, and its objects with it.
        let had_objects = was_whole && !(state.known.is_empty() && state.unreadable.is_empty());
        let standing = if trouble.kind == PortErrorKind::NotFound && !had_objects && may_be_absent::<T>() {
            Standing::Absent
        } else if was_whole {
            Standing::Synced(Some(trouble))
        } else {
            Standing::Waiting(Some(trouble))
        };
        let is_news = state.standing != standing;
        if standing == Standing::Absent {
            state.whole = Heard::now();
        }
        state.standing = standing;
        state.listing = None;
        drop(state);
        if is_news {
            self.changes.announce();
        }
    }
}

impl<T: Stored> State<T> {
    fn heard(&mut self) {
        if matches!(self.standing, Standing::Synced(None)) {
            self.whole = Heard::now();
        }
    }

    /// `false` when what is known of the object is newer.
    fn put(&mut self, watched: Watched<T>) -> bool {
        let key = key_of(&watched);
        let version = Version::of(&watched);
        let has_ended = || !version.uid.is_empty() && self.ended.contains(&version.uid);
        if self.is_older(&key, &version) || self.gone.contains(&version.uid) || has_ended() {
            return false;
        }
        self.keep(key, version, watched);
        true
    }

    /// What a list says is so, also where the store was put back to versions before those that are known. Only what came beside the list may
    /// be newer.
    fn put_listed(&mut self, watched: Watched<T>) {
        let key = key_of(&watched);
        if self.listing.as_ref().is_some_and(|listing| listing.beside.contains(&key)) {
            self.put(watched);
        } else {
            let version = Version::of(&watched);
            let is_older = self.is_older(&key, &version);
            if !self.known.contains_key(&key) {
                self.gone.remove(&version.uid);
                self.ended.retain(|uid| *uid != version.uid);
            }
            self.keep(key.clone(), version, watched);
            if let Some(listing) = &mut self.listing {
                listing.is_older |= is_older;
            }
        }
        if let Some(listing) = &mut self.listing {
            listing.there.insert(key);
        }
    }

    fn is_older(&self, key: &Key, version: &Version) -> bool {
        self.known.get(key).is_some_and(|known| known.uid == version.uid && known.number() > version.number())
    }

    fn keep(&mut self, key: Key, version: Version, watched: Watched<T>) {
        self.known.insert(key.clone(), version);
        match watched.object {
            Ok(object) => {
                self.unreadable.remove(&key);
                let object = self.shared.sharing(object);
                self.news.insert(key, Some(object));
            }
            // What was known of it before is kept: it is there, whatever it is now.
            Err(unreadable) => {
                self.unreadable.insert(key, *unreadable);
            }
        }
    }

    fn remove(&mut self, watched: &Watched<T>) {
        let key = key_of(watched);
        let uid = watched.metadata.uid.as_deref().unwrap_or_default();
        self.gone.remove(uid);
        self.ended.push_back(uid.to_owned());
        if self.ended.len() > ENDED_MAX {
            self.ended.pop_front();
        }
        // Another object may have taken the name already.
        if self.known.get(&key).is_some_and(|known| known.uid == uid) {
            self.known.remove(&key);
            self.unreadable.remove(&key);
            self.news.insert(key, None);
        }
    }

    fn finish_list(&mut self) {
        let listing = self.listing.take().unwrap_or_default();
        if listing.is_older {
            let text = "objects are as they were before they were seen last: the API server's store was put back";
            tracing::warn!(resource = T::RESOURCE, "{text}");
        }
        let missing: Vec<Key> = self.known.keys().filter(|key| !listing.there.contains(*key)).cloned().collect();
        for key in missing {
            self.known.remove(&key);
            self.unreadable.remove(&key);
            self.news.insert(key, None);
        }
        self.gone.clear();
        self.shared.forget_the_dead();
        self.standing = Standing::Synced(None);
        self.whole = Heard::now();
    }
}

/// Whether a cluster may be without the kind.
fn may_be_absent<T: Stored>() -> bool {
    !is_in_every_cluster(T::API_VERSION)
}

fn key_of<T>(watched: &Watched<T>) -> Key {
    let metadata = &watched.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

impl<T: Stored> AnyReflector for Reflector<T> {
    fn standing(&self) -> Standing {
        self.lock().standing.clone()
    }

    fn has_news(&self) -> bool {
        !self.lock().news.is_empty()
    }

    fn doubt(&self) -> Option<(String, KindInDoubt)> {
        let state = self.lock();
        let why = match &state.standing {
            Standing::Absent => return None,
            Standing::Waiting(None) => format!("list {}: the first one is not complete yet", T::RESOURCE),
            Standing::Waiting(Some(trouble)) => format!("{}: {}", trouble.operation, trouble.text),
            Standing::Synced(Some(trouble)) if trouble.kind == PortErrorKind::NotFound && may_be_absent::<T>() => {
                format!(
                    "{}: the kind is gone, although there were objects of it; if that is meant, start again",
                    trouble.operation
                )
            }
            Standing::Synced(Some(trouble)) => format!("{}: {}", trouble.operation, trouble.text),
            Standing::Synced(None) if state.whole.instant.elapsed() > LAGGING => {
                format!("watch {}: nothing was heard since", T::RESOURCE)
            }
            Standing::Synced(None) => return None,
        };
        Some((T::RESOURCE.to_owned(), KindInDoubt { whole_at: state.whole.at, why }))
    }

    fn unreadable(&self) -> Vec<Unreadable> {
        self.lock().unreadable.values().cloned().collect()
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
    use k8s_openapi::api::resource::v1::DeviceClass;
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

    fn reflector() -> Reflector<Pod> {
        let reflector = Reflector::new(Arc::new(Changes::default()));
        reflector.list_begins();
        reflector.listed(pod("a", "1", 10, None));
        reflector.listed(pod("b", "2", 11, None));
        reflector.list_ends();
        reflector
    }

    /// Name and node of every pod.
    fn seen(reflector: &Reflector<Pod>, snapshot: &mut Snapshot) -> Vec<(String, Option<String>)> {
        reflector.drain_into(snapshot);
        snapshot.pods.iter().map(|pod| (pod.metadata.name.clone(), pod.spec.node_name.clone())).collect()
    }

    fn on(name: &str, node: Option<&str>) -> (String, Option<String>) {
        (name.to_owned(), node.map(str::to_owned))
    }

    #[test]
    fn lists_and_follows() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        assert_eq!(reflector.standing(), Standing::Synced(None));
        assert_eq!(seen(&reflector, &mut snapshot), [on("a", None), on("b", None)]);
        reflector.changed(pod("aa", "3", 12, Some("n")));
        reflector.deleted(&pod("a", "1", 13, None));
        assert_eq!(seen(&reflector, &mut snapshot), [on("aa", Some("n")), on("b", None)]);
        assert!(!reflector.has_news());
    }

    #[test]
    fn what_was_written_is_not_undone_by_an_older_event() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        reflector.saw(pod("a", "1", 20, Some("n")));
        reflector.changed(pod("a", "1", 15, None));
        assert_eq!(seen(&reflector, &mut snapshot), [on("a", Some("n")), on("b", None)]);
        reflector.changed(pod("a", "1", 21, Some("m")));
        assert_eq!(seen(&reflector, &mut snapshot), [on("a", Some("m")), on("b", None)]);
    }

    /// Somebody restored a backup of the store.
    #[test]
    fn a_list_that_is_older_than_what_is_known_is_how_it_is() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        reflector.changed(pod("a", "1", 50, Some("n")));
        reflector.deleted(&pod("b", "2", 51, None));
        reflector.list_begins();
        reflector.listed(pod("a", "1", 10, None));
        reflector.listed(pod("b", "2", 11, None));
        reflector.list_ends();
        assert_eq!(seen(&reflector, &mut snapshot), [on("a", None), on("b", None)]);
        reflector.saw(pod("a", "1", 12, Some("m")));
        reflector.changed(pod("b", "2", 13, Some("m")));
        assert_eq!(seen(&reflector, &mut snapshot), [on("a", Some("m")), on("b", Some("m"))], "nor is what follows");
    }

    #[test]
    fn a_list_does_not_undo_what_was_written_while_it_was_under_way() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        reflector.list_begins();
        reflector.saw(pod("a", "1", 20, Some("n")));
        reflector.saw_go("shop", "b");
        reflector.listed(pod("a", "1", 10, None));
        reflector.listed(pod("b", "2", 11, None));
        reflector.list_ends();
        assert_eq!(seen(&reflector, &mut snapshot), [on("a", Some("n"))]);
    }

    #[test]
    fn what_was_seen_to_go_does_not_come_back_with_an_older_event() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        reflector.saw_go("shop", "a");
        reflector.changed(pod("a", "1", 15, None));
        assert_eq!(seen(&reflector, &mut snapshot), [on("b", None)]);
        reflector.changed(pod("a", "9", 30, None));
        reflector.deleted(&pod("a", "1", 16, None));
        assert_eq!(seen(&reflector, &mut snapshot), [on("a", None), on("b", None)], "another object of that name");
    }

    #[test]
    fn a_relist_takes_away_what_went_in_the_gap_and_keeps_what_was_written_meanwhile() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        seen(&reflector, &mut snapshot);
        reflector.list_begins();
        reflector.listed(pod("b", "2", 11, None));
        reflector.saw(pod("c", "4", 40, None));
        reflector.list_ends();
        assert_eq!(seen(&reflector, &mut snapshot), [on("b", None), on("c", None)]);
    }

    fn trouble(kind: PortErrorKind) -> Trouble {
        Trouble { operation: "list pods".to_owned(), kind, text: "etcdserver: request timed out".to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_feed_in_trouble_is_in_doubt_until_a_list_is_complete() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        assert!(reflector.doubt().is_none());
        reflector.stumbled(trouble(PortErrorKind::Temporary));
        let (resource, doubt) = reflector.doubt().unwrap();
        assert_eq!((resource.as_str(), doubt.why.as_str()), ("pods", "list pods: etcdserver: request timed out"));
        assert_eq!(seen(&reflector, &mut snapshot).len(), 2, "what was seen stays");
        reflector.list_begins();
        reflector.listed(pod("b", "2", 11, None));
        assert!(reflector.doubt().is_some(), "a page is not all");
        reflector.list_ends();
        assert!(reflector.doubt().is_none());
        assert_eq!(seen(&reflector, &mut snapshot), [on("b", None)]);
    }

    fn is_in_doubt_whatever_comes<T: Stored>(reflector: &Reflector<T>) {
        use PortErrorKind::{Denied, Internal, Temporary};
        for kind in [Denied, Temporary, Internal, Denied] {
            reflector.stumbled(trouble(kind));
            assert!(matches!(reflector.standing(), Standing::Synced(Some(_))), "{kind:?}");
            assert!(reflector.doubt().is_some(), "{kind:?}");
        }
    }

    /// A right that was taken away is no reason to wait for, nor to believe that all is well.
    #[test]
    fn a_kind_that_was_whole_once_is_in_doubt_whatever_comes_after() {
        is_in_doubt_whatever_comes(&reflector());
        let absent: Reflector<DeviceClass> = Reflector::new(Arc::new(Changes::default()));
        absent.stumbled(trouble(PortErrorKind::NotFound));
        is_in_doubt_whatever_comes(&absent);
        let new: Reflector<Pod> = Reflector::new(Arc::new(Changes::default()));
        new.stumbled(trouble(PortErrorKind::Denied));
        assert!(matches!(new.standing(), Standing::Waiting(Some(_))), "nothing is known of it");
        assert_eq!(new.doubt().unwrap().1.why, "list pods: etcdserver: request timed out");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_watch_is_in_doubt_and_a_bookmark_is_enough() {
        let reflector = reflector();
        tokio::time::advance(LAGGING).await;
        assert!(reflector.doubt().is_none());
        reflector.nothing_happened();
        tokio::time::advance(LAGGING).await;
        assert!(reflector.doubt().is_none());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(reflector.doubt().unwrap().1.why.contains("nothing was heard"));
        reflector.changed(pod("c", "3", 12, None));
        assert!(reflector.doubt().is_none());
    }

    #[test]
    fn a_kind_that_goes_with_its_objects_is_in_doubt_and_one_that_had_none_is_absent() {
        let class = json!({ "metadata": { "name": "gpu", "uid": "1", "resourceVersion": "10" }, "spec": {} });
        let reflector: Reflector<DeviceClass> = Reflector::new(Arc::new(Changes::default()));
        reflector.list_begins();
        reflector.listed(serde_json::from_value(class).unwrap());
        reflector.list_ends();
        reflector.stumbled(trouble(PortErrorKind::NotFound));
        assert!(reflector.doubt().unwrap().1.why.contains("start again"));
        let empty: Reflector<DeviceClass> = Reflector::new(Arc::new(Changes::default()));
        empty.stumbled(trouble(PortErrorKind::NotFound));
        assert_eq!((empty.standing(), empty.doubt()), (Standing::Absent, None));
    }

    /// It is another address, or a gateway that answers for the API server: pods would seem to be none.
    #[test]
    fn a_kind_of_every_cluster_is_never_absent() {
        let new: Reflector<Pod> = Reflector::new(Arc::new(Changes::default()));
        new.stumbled(trouble(PortErrorKind::NotFound));
        assert!(matches!(new.standing(), Standing::Waiting(Some(_))));
        let empty: Reflector<Pod> = Reflector::new(Arc::new(Changes::default()));
        empty.list_begins();
        empty.list_ends();
        empty.stumbled(trouble(PortErrorKind::NotFound));
        assert_eq!(empty.doubt().unwrap().1.why, "list pods: etcdserver: request timed out");
    }

    #[test]
    fn an_object_that_can_not_be_read_is_set_aside_alone() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        seen(&reflector, &mut snapshot);
        let broken = |name: &str, uid: &str, version: u32| -> Watched<Pod> {
            let metadata =
                json!({"name": name, "namespace": "shop", "uid": uid, "resourceVersion": version.to_string()});
            serde_json::from_value(json!({"metadata": metadata, "spec": {"nodeName": "n", "containers": 7}})).unwrap()
        };
        reflector.changed(broken("a", "1", 20));
        reflector.changed(broken("c", "3", 21));
        reflector.changed(pod("b", "2", 22, Some("n")));
        assert_eq!(seen(&reflector, &mut snapshot), [on("a", None), on("b", Some("n"))], "as it was known last");
        let aside: Vec<String> = reflector.unreadable().iter().map(Unreadable::object).collect();
        assert_eq!(aside, ["Pod shop/a", "Pod shop/c"]);
        assert_eq!(reflector.unreadable()[0].node, "n");
        assert!(reflector.unreadable()[0].why.contains("spec.containers"), "{}", reflector.unreadable()[0].why);
        reflector.changed(pod("a", "1", 30, None));
        reflector.deleted(&broken("c", "3", 31));
        assert!(reflector.unreadable().is_empty());
    }

    #[test]
    fn what_ended_does_not_come_back_with_an_older_answer() {
        let (reflector, mut snapshot) = (reflector(), Snapshot::default());
        reflector.deleted(&pod("a", "1", 20, None));
        reflector.saw(pod("a", "1", 15, Some("n")));
        assert_eq!(seen(&reflector, &mut snapshot), [on("b", None)]);
    }
}
