//! LimitRange defaults, for pods that are not made yet: pods that exist were completed when they were admitted.
//! Source: `k8s.io/kubernetes/plugin/pkg/admission/limitranger`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::snapshot::pod::ContainerResources;
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::node_pool::IntOrString;

/// By namespace, the defaults for containers.
pub struct LimitRanges<'a>(BTreeMap<&'a str, Vec<&'a LimitRangeItem>>);

impl<'a> LimitRanges<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut ranges: Vec<&LimitRange> = snapshot.limit_ranges.iter().collect();
        ranges.sort_by_key(|range| range.metadata.name.as_deref());
        let mut by_namespace: BTreeMap<&str, Vec<&LimitRangeItem>> = BTreeMap::new();
        for range in ranges {
            let items = range.spec.iter().flat_map(|spec| &spec.limits).filter(|item| item.type_ == "Container");
            by_namespace.entry(range.metadata.namespace.as_deref().unwrap_or("default")).or_default().extend(items);
        }
        Self(by_namespace)
    }

    /// Gives the containers of a pod made from a template what its namespace gives them.
    pub fn complete(&self, pod: &mut Pod) {
        for item in self.0.get(pod.metadata.namespace.as_str()).into_iter().flatten() {
            let limits = default_limits(item);
            let requests = default_requests(item, &limits);
            for container in pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers) {
                complete_container(&mut container.resources, &limits, &requests);
            }
        }
    }
}

type Quantities<'a> = BTreeMap<&'a str, &'a Quantity>;

/// `default`; `max` where that says nothing.
fn default_limits(item: &LimitRangeItem) -> Quantities<'_> {
    named(item.max.as_ref()).chain(named(item.default.as_ref())).collect()
}

/// `defaultRequest`; the default limit, then `min`, where that says nothing.
fn default_requests<'a>(item: &'a LimitRangeItem, limits: &Quantities<'a>) -> Quantities<'a> {
    let limits = limits.iter().map(|(name, quantity)| (*name, *quantity));
    named(item.min.as_ref()).chain(limits).chain(named(item.default_request.as_ref())).collect()
}

fn named(quantities: Option<&BTreeMap<String, Quantity>>) -> impl Iterator<Item = (&str, &Quantity)> {
    quantities.into_iter().flatten().map(|(name, quantity)| (name.as_str(), quantity))
}

/// What the container says itself counts, a limit also as a request.
fn complete_container(resources: &mut ContainerResources, limits: &Quantities<'_>, requests: &Quantities<'_>) {
    let text = |quantity: &Quantity| IntOrString::String(quantity.0.clone());
    for (name, quantity) in requests {
        if !resources.limits.contains_key(*name) {
            resources.requests.entry((*name).to_owned()).or_insert_with(|| text(quantity));
        }
    }
    for (name, quantity) in limits {
        resources.limits.entry((*name).to_owned()).or_insert_with(|| text(quantity));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::requests::effective_requests;
    use crate::testing::{BuildPod, object, pod};

    /// Effective requests of a pod in the namespace `default` with this range.
    fn requests(limits: serde_json::Value, pod: Pod) -> String {
        let range = json!({ "metadata": { "name": "range", "namespace": "default" }, "spec": { "limits": [limits] } });
        let snapshot = Snapshot { limit_ranges: vec![object(range)].into(), ..Snapshot::default() };
        let mut pod = pod;
        LimitRanges::new(&snapshot).complete(&mut pod);
        serde_json::to_string(&effective_requests(&pod).unwrap()).unwrap()
    }

    #[test]
    fn what_a_container_does_not_say_comes_from_the_range() {
        let both = json!({ "type": "Container", "default": { "cpu": "2" }, "defaultRequest": { "cpu": "250m" } });
        assert_eq!(requests(both.clone(), pod("web")), r#"{"cpu":"250m","pods":"1"}"#);
        assert_eq!(requests(both.clone(), pod("web").cpu("1")), r#"{"cpu":"1","pods":"1"}"#);
        assert_eq!(requests(both, pod("web").namespace("other")), r#"{"pods":"1"}"#);
        let limit = json!({ "type": "Container", "default": { "memory": "1Gi" } });
        assert_eq!(requests(limit, pod("web")), r#"{"memory":"1Gi","pods":"1"}"#);
        let bounds = json!({ "type": "Container", "max": { "cpu": "3" }, "min": { "memory": "64Mi" } });
        assert_eq!(requests(bounds, pod("web")), r#"{"cpu":"3","memory":"64Mi","pods":"1"}"#);
        let of_pods = json!({ "type": "Pod", "max": { "cpu": "3" } });
        assert_eq!(requests(of_pods, pod("web")), r#"{"pods":"1"}"#);
    }

    #[test]
    fn a_limit_of_its_own_is_the_request() {
        let range = json!({ "type": "Container", "defaultRequest": { "cpu": "250m" } });
        let limited = pod("web");
        let mut limited = limited;
        limited.spec.containers[0].resources.limits.insert("cpu".to_owned(), IntOrString::String("1".to_owned()));
        assert_eq!(requests(range, limited), r#"{"cpu":"1","pods":"1"}"#);
    }
}
