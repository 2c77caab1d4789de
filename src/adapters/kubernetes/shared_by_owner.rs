//! One object of each owner, for the next one to share with: the replicas of a workload come one by one, and are much the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::core::snapshot::kinds::Stored;

/// By the UID of their owner. An object that nobody else keeps is not kept here.
pub(super) struct SharedByOwner<T> {
    of_owner: BTreeMap<String, Weak<T>>,
    /// How many there were when the dead ones were looked for last.
    alive: usize,
}

impl<T: Stored> SharedByOwner<T> {
    pub(super) fn new() -> Self {
        Self { of_owner: BTreeMap::new(), alive: 0 }
    }

    /// The object, with what it has in common with another one of its owner.
    pub(super) fn sharing(&mut self, mut object: T) -> Arc<T> {
        if object.owner().is_empty() {
            return Arc::new(object);
        }
        if let Some(sibling) = self.of_owner.get(object.owner()).and_then(Weak::upgrade) {
            object.share_with(&sibling);
            return Arc::new(object);
        }
        let owner = object.owner().to_owned();
        let object = Arc::new(object);
        self.of_owner.insert(owner, Arc::downgrade(&object));
        // Each rollout leaves one behind.
        if self.of_owner.len() > self.alive.saturating_mul(2).saturating_add(100) {
            self.forget_the_dead();
        }
        object
    }

    pub(super) fn forget_the_dead(&mut self) {
        self.of_owner.retain(|_, object| object.strong_count() > 0);
        self.alive = self.of_owner.len();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::snapshot::Pod;

    fn pod(owner: &str, name: &str) -> Pod {
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true });
        let container = json!({ "name": "main", "resources": { "requests": { "cpu": "1" } } });
        serde_json::from_value(json!({
            "metadata": { "name": name, "ownerReferences": [owner] },
            "spec": { "containers": [container] },
        }))
        .unwrap()
    }

    fn place(pod: &Pod) -> *const crate::core::snapshot::pod::Container {
        pod.spec.containers.as_ptr()
    }

    #[test]
    fn those_of_one_maker_share_and_the_dead_are_forgotten() {
        let mut shared = SharedByOwner::new();
        let (one, two) = (shared.sharing(pod("web", "web-1")), shared.sharing(pod("web", "web-2")));
        assert_eq!(place(&one), place(&two));
        assert_ne!(place(&one), place(&shared.sharing(pod("api", "api-1"))));
        for number in 0..1000 {
            shared.sharing(pod(&format!("rollout-{number}"), "web-1"));
        }
        assert!(shared.of_owner.len() < 200, "{}", shared.of_owner.len());
        assert_eq!(place(&shared.sharing(pod("web", "web-3"))), place(&one));
    }
}
