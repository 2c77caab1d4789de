//! The resources a pod takes on its node.
//! Source: `k8s.io/component-helpers/resource` (PodRequests), with the reference's rule that limits stand in for missing requests.

use std::collections::BTreeMap;

use crate::api::node_pool::IntOrString;
use crate::core::model::resources::PODS;
use crate::core::model::{QuantityError, Resources};

use super::pod::{Container, ContainerResources, Pod};

/// Why the requests of a pod can not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("{place}: {resource} is not a quantity")]
    Quantity { place: String, resource: String, source: QuantityError },
    #[error("{place}: {resource} is negative")]
    Negative { place: String, resource: String },
}

/// Effective requests of a pod: the larger of what its containers and sidecars ask for together and what each init
/// container asks for beside the sidecars before it; pod-level requests replace that sum; overhead is added; one pod is
/// counted. Fails when a quantity can not be read or is negative.
pub fn effective_requests(pod: &Pod) -> Result<Resources, RequestError> {
    let mut running = Resources::new();
    for container in &pod.spec.containers {
        running.add(&container_requests(pod, container)?);
    }
    let mut sidecars = Resources::new();
    let mut peak_while_starting = Resources::new();
    for container in &pod.spec.init_containers {
        let requests = container_requests(pod, container)?;
        let mut now = sidecars.clone();
        now.add(&requests);
        peak_while_starting.maximum(&now);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = now;
        }
    }
    running.add(&sidecars);
    running.maximum(&peak_while_starting);
    if let Some(resources) = &pod.spec.resources {
        for (name, amount) in with_limits(resources, "the pod's resources")?.iter() {
            running.set(name, amount);
        }
    }
    running.add(&parse(&pod.spec.overhead, "overhead")?);
    running.set(PODS, 1);
    Ok(running)
}

/// Requests of one container, limits where requests are missing; while a resize is under way, not less than is allocated.
fn container_requests(pod: &Pod, container: &Container) -> Result<Resources, RequestError> {
    let place = format!("container {}", container.name);
    let mut requests = with_limits(&container.resources, &place)?;
    let status = pod.status.container_statuses.iter().find(|status| status.name == container.name);
    if let Some(status) = status.filter(|status| !status.allocated_resources.is_empty()) {
        requests.maximum(&parse(&status.allocated_resources, &place)?);
    }
    Ok(requests)
}

fn with_limits(resources: &ContainerResources, place: &str) -> Result<Resources, RequestError> {
    let mut requests = parse(&resources.limits, place)?;
    for (name, amount) in parse(&resources.requests, place)?.iter() {
        requests.set(name, amount);
    }
    Ok(requests)
}

fn parse(quantities: &BTreeMap<String, IntOrString>, place: &str) -> Result<Resources, RequestError> {
    let texts = quantities.iter().map(|(name, quantity)| (name.as_str(), quantity.to_string()));
    let resources = Resources::parse(texts).map_err(|(resource, source)| RequestError::Quantity {
        place: place.to_owned(),
        resource,
        source,
    })?;
    if let Some((resource, _)) = resources.iter().find(|(_, amount)| *amount < 0) {
        return Err(RequestError::Negative { place: place.to_owned(), resource: resource.to_owned() });
    }
    Ok(resources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(pod: serde_json::Value) -> Result<String, RequestError> {
        let pod: Pod = serde_json::from_value(serde_json::json!({ "spec": pod })).unwrap();
        effective_requests(&pod).map(|resources| serde_json::to_string(&resources).unwrap())
    }

    fn container(cpu: &str) -> serde_json::Value {
        serde_json::json!({ "name": "c", "resources": { "requests": { "cpu": cpu } } })
    }

    #[test]
    fn containers_add_up_and_init_containers_peak() {
        let sidecar = serde_json::json!({ "name": "s", "restartPolicy": "Always", "resources": { "requests": { "cpu": "100m" } } });
        let pod = |init: Vec<serde_json::Value>| serde_json::json!({ "containers": [container("1"), container("500m")], "initContainers": init });
        assert_eq!(requests(pod(vec![])).unwrap(), r#"{"cpu":"1500m","pods":"1"}"#);
        assert_eq!(requests(pod(vec![container("2")])).unwrap(), r#"{"cpu":"2","pods":"1"}"#);
        assert_eq!(requests(pod(vec![sidecar.clone(), container("2")])).unwrap(), r#"{"cpu":"2100m","pods":"1"}"#);
        assert_eq!(requests(pod(vec![container("1"), sidecar])).unwrap(), r#"{"cpu":"1600m","pods":"1"}"#);
    }

    #[test]
    fn limits_stand_in_and_pod_level_resources_replace() {
        let pod = serde_json::json!({
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" }, "limits": { "cpu": "2", "memory": "1Gi" } } }],
            "overhead": { "memory": "64Mi" },
        });
        assert_eq!(requests(pod.clone()).unwrap(), r#"{"cpu":"1","memory":"1088Mi","pods":"1"}"#);
        let mut with_pod_level = pod;
        with_pod_level["resources"] = serde_json::json!({ "requests": { "cpu": "3" } });
        assert_eq!(requests(with_pod_level).unwrap(), r#"{"cpu":"3","memory":"1088Mi","pods":"1"}"#);
    }

    #[test]
    fn absurd_requests_are_errors_that_say_where() {
        let error =
            |cpu: &str| requests(serde_json::json!({ "containers": [container(cpu)] })).unwrap_err().to_string();
        assert_eq!(error("-1"), "container c: cpu is negative");
        assert_eq!(error("1e30"), "container c: cpu is not a quantity");
        assert_eq!(error("two"), "container c: cpu is not a quantity");
    }
}
