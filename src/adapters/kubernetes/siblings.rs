//! One object of each maker, for the next one to share with: the replicas of a workload come one by one, and are much the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use crate::core::snapshot::kinds::Stored;

/// By the UID of their maker. An object that nobody else keeps is not kept here.
pub(super) struct Siblings<T> {
    of_maker: BTreeMap<String, Weak<T>>,
    /// How many there were when the dead ones were looked for last.
    alive: usize,
}

impl<T: Stored> Siblings<T> {
    pub(super) fn new() -> Self {
        Self { of_maker: BTreeMap::new(), alive: 0 }
    }

    /// The object, with what it has in common with another one of its maker.
    pub(super) fn sharing(&mut self, mut object: T) -> Arc<T> {
        if object.maker().is_empty() {
            return Arc::new(object);
        }
        if let Some(sibling) = self.of_maker.get(object.maker()).and_then(Weak::upgrade) {
            object.share_with(&sibling);
            return Arc::new(object);
        }
        let maker = object.maker().to_owned();
        let object = Arc::new(object);
        self.of_maker.insert(maker, Arc::downgrade(&object));
        // Each rollout leaves one behind.
        if self.of_maker.len() > self.alive.saturating_mul(2).saturating_add(100) {
            self.forget_the_dead();
        }
        object
    }

    pub(super) fn forget_the_dead(&mut self) {
        self.of_maker.retain(|_, object| object.strong_count() > 0);
        self.alive = self.of_maker.len();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::snapshot::Pod;

    fn pod(maker: &str, name: &str) -> Pod {
        let owner =
            json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": maker, "uid": maker, "controller": true });
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
        let mut siblings = Siblings::new();
        let (one, two) = (siblings.sharing(pod("web", "web-1")), siblings.sharing(pod("web", "web-2")));
        assert_eq!(place(&one), place(&two));
        assert_ne!(place(&one), place(&siblings.sharing(pod("api", "api-1"))));
        for number in 0..1000 {
            siblings.sharing(pod(&format!("rollout-{number}"), "web-1"));
        }
        assert!(siblings.of_maker.len() < 200, "{}", siblings.of_maker.len());
        assert_eq!(place(&siblings.sharing(pod("web", "web-3"))), place(&one));
    }
}
