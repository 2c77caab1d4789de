//! Requests of pods, worked out once for all that say the same: reading quantities takes longer than recognizing them.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use crate::model::Resources;
use crate::snapshot::Pod;
use crate::snapshot::requests::{RequestError, effective_requests};
use cutlist_api::node_pool::IntOrString;

#[derive(Debug, Default)]
pub struct KnownRequests {
    known: HashMap<Vec<u8>, Rc<Resources>>,
    bytes: Vec<u8>,
}

impl KnownRequests {
    /// What [`effective_requests`] says. O(bytes of the quantities).
    pub fn of(&mut self, pod: &Pod) -> Result<Rc<Resources>, RequestError> {
        let is_known = is_plain(pod).then(|| self.write(pod)).and_then(|()| self.known.get(&self.bytes));
        if let Some(requests) = is_known {
            return Ok(Rc::clone(requests));
        }
        let requests = Rc::new(effective_requests(pod)?);
        if is_plain(pod) {
            self.known.insert(self.bytes.clone(), Rc::clone(&requests));
        }
        Ok(requests)
    }

    /// Everything that requests of a plain pod depend on, as bytes that differ when it differs.
    fn write(&mut self, pod: &Pod) {
        self.bytes.clear();
        for container in &pod.spec.containers {
            self.quantities(&container.resources.limits);
            self.quantities(&container.resources.requests);
        }
    }

    fn quantities(&mut self, quantities: &BTreeMap<String, IntOrString>) {
        self.bytes.extend(quantities.len().to_le_bytes());
        for (name, quantity) in quantities {
            self.text(name);
            self.text(&quantity.text());
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend(text.len().to_le_bytes());
        self.bytes.extend(text.as_bytes());
    }
}

/// Whether containers that run side by side are all there is, and have what they ask for.
fn is_plain(pod: &Pod) -> bool {
    let spec = &pod.spec;
    spec.init_containers.is_empty()
        && spec.overhead.is_empty()
        && spec.resources.is_none()
        && pod.status.container_statuses.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(containers: serde_json::Value) -> Pod {
        serde_json::from_value(serde_json::json!({ "spec": { "containers": containers } })).unwrap()
    }

    #[test]
    fn what_is_known_is_what_it_would_be() {
        let pods = [
            pod(serde_json::json!([{ "resources": { "requests": { "cpu": "1", "memory": "1Gi" } } }])),
            pod(serde_json::json!([{ "resources": { "requests": { "cpu": 1, "memory": "1Gi" } } }])),
            pod(serde_json::json!([{ "resources": { "limits": { "cpu": "1", "memory": "1Gi" } } }])),
            pod(
                serde_json::json!([{ "resources": { "requests": { "cpu": "1" } } }, { "resources": { "requests": { "memory": "1Gi" } } }]),
            ),
            pod(serde_json::json!([{ "resources": { "requests": { "cpu": "-1" } } }])),
        ];
        let mut known = KnownRequests::default();
        for pod in pods.iter().chain(&pods) {
            assert_eq!(known.of(pod).map(|it| (*it).clone()), effective_requests(pod));
        }
        assert_eq!(known.known.len(), 3);
    }
}
