//! What is being asked, and answers that nobody has taken yet.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// An answer that nobody takes for so long is forgotten: what it was about is gone.
const KEPT: Duration = Duration::from_mins(10);

/// What is asked about.
pub trait Key: Ord + Clone + 'static {}

impl<K: Ord + Clone + 'static> Key for K {}

/// Calls of one kind, by what they ask about: each is asked about once at a time.
pub struct Asked<K, T> {
    /// And whether nobody waits for it any more.
    under_way: BTreeMap<K, bool>,
    answers: BTreeMap<K, (Instant, T)>,
}

impl<K, T> Default for Asked<K, T> {
    fn default() -> Self {
        Self { under_way: BTreeMap::new(), answers: BTreeMap::new() }
    }
}

impl<K: Key, T> Asked<K, T> {
    pub fn take(&mut self, key: &K) -> Option<T> {
        self.answers.remove(key).map(|(_, answer)| answer)
    }

    pub fn is_under_way(&self, key: &K) -> bool {
        self.under_way.contains_key(key)
    }

    /// Whether it is under way, or its answer was not taken yet.
    pub fn knows(&self, key: &K) -> bool {
        self.is_under_way(key) || self.answers.contains_key(key)
    }

    pub fn begins(&mut self, key: K) {
        self.under_way.insert(key, false);
    }

    /// Nobody waits for it any more.
    pub fn leave(&mut self, key: &K) {
        if let Some(is_left) = self.under_way.get_mut(key) {
            *is_left = true;
        }
    }

    /// Whether nobody waits any more for some that is under way.
    pub fn is_left(&self) -> bool {
        self.under_way.values().any(|is_left| *is_left)
    }

    /// Whether nobody waited for it any more.
    pub fn answered(&mut self, key: K, answer: T, now: Instant) -> bool {
        self.forget_older(now, KEPT);
        let was_left = self.under_way.remove(&key) == Some(true);
        self.answers.insert(key, (now, answer));
        was_left
    }

    pub fn forget_older(&mut self, now: Instant, than: Duration) {
        self.answers.retain(|_, (came_at, _)| now.saturating_duration_since(*came_at) <= than);
    }
}
