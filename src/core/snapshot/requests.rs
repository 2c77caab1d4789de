//! The resources a pod takes on its node.
//! Source: `k8s.io/component-helpers/resource` (PodRequests), with the reference's rule that limits stand in for missing requests.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::resources::{CPU, MEMORY, PODS};
use crate::model::{QuantityError, Resources};
use cutlist_api::node_pool::IntOrString;

use super::pod::{Container, ContainerResources, ContainerStatus, Pod};

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
        running.add(&running_requests(pod, container, &pod.status.container_statuses)?);
    }
    let mut sidecars = Resources::new();
    let mut peak_while_starting = Resources::new();
    for container in &pod.spec.init_containers {
        let is_sidecar = container.restart_policy.as_deref() == Some("Always");
        let mut now = sidecars.clone();
        now.add(&match is_sidecar {
            true => running_requests(pod, container, &pod.status.init_container_statuses)?,
            false => with_limits(&container.resources, RequestSource::Container(container))?,
        });
        peak_while_starting.maximum(&now);
        if is_sidecar {
            sidecars = now;
        }
    }
    running.add(&sidecars);
    running.maximum(&peak_while_starting);
    set_pod_level(&mut running, pod)?;
    running.add(&parse(&pod.spec.overhead, RequestSource::Overhead)?);
    running.set(PODS, 1);
    Ok(running)
}

/// What the pod as a whole asks for stands for the sum of its containers; a limit only where nobody asks for anything.
fn set_pod_level(running: &mut Resources, pod: &Pod) -> Result<(), RequestError> {
    let Some(resources) = &pod.spec.resources else { return Ok(()) };
    let place = RequestSource::Pod;
    let (requests, limits) = (parse(&resources.requests, place)?, parse(&resources.limits, place)?);
    // Nothing else can be shared by the containers of a pod, and the API server refuses it.
    let is_shared = |name: &str| name == CPU || name == MEMORY || name.starts_with("hugepages-");
    for (name, amount) in limits.iter().filter(|(name, _)| is_shared(name)) {
        if running.get(name) == 0 {
            running.set(name, amount);
        }
    }
    for (name, amount) in requests.iter().filter(|(name, _)| is_shared(name)) {
        running.set(name, amount);
    }
    Ok(())
}

/// Requests of a container that runs as long as the pod. While it is resized it takes the most of what it asks for, what it
/// was promised and what it has; of a resize that is infeasible, not what it asks for.
fn running_requests(pod: &Pod, container: &Container, statuses: &[ContainerStatus]) -> Result<Resources, RequestError> {
    let place = RequestSource::Container(container);
    let requests = with_limits(&container.resources, place)?;
    let status = statuses.iter().find(|status| status.name == container.name);
    let Some(status) = status.filter(|it| it.resources.is_some() || !it.allocated_resources.is_empty()) else {
        return Ok(requests);
    };
    let mut most = if pod.resize_is_infeasible() { Resources::new() } else { requests };
    most.maximum(&parse(&status.allocated_resources, place)?);
    if let Some(resources) = &status.resources {
        most.maximum(&parse(&resources.requests, place)?);
    }
    Ok(most)
}

/// Where requests stand, for who has to mend them.
#[derive(Clone, Copy)]
enum RequestSource<'c> {
    Container(&'c Container),
    Pod,
    Overhead,
}

impl fmt::Display for RequestSource<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container(container) => write!(formatter, "container {}", container.name),
            Self::Pod => formatter.write_str("the pod's resources"),
            Self::Overhead => formatter.write_str("overhead"),
        }
    }
}

fn with_limits(resources: &ContainerResources, place: RequestSource<'_>) -> Result<Resources, RequestError> {
    let mut requests = parse(&resources.limits, place)?;
    for (name, amount) in parse(&resources.requests, place)?.iter() {
        requests.set(name, amount);
    }
    Ok(requests)
}

fn parse(quantities: &BTreeMap<String, IntOrString>, place: RequestSource<'_>) -> Result<Resources, RequestError> {
    let texts = quantities.iter().map(|(name, quantity)| (name.as_str(), quantity.text()));
    let resources = Resources::parse(texts).map_err(|(resource, source)| RequestError::Quantity {
        place: place.to_string(),
        resource,
        source,
    })?;
    if let Some((resource, _)) = resources.iter().find(|(_, amount)| *amount < 0) {
        return Err(RequestError::Negative { place: place.to_string(), resource: resource.to_owned() });
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
    fn limits_of_the_pod_stand_in_where_nobody_asks() {
        let pod = serde_json::json!({
            "containers": [container("1")],
            "resources": { "limits": { "cpu": "3", "memory": "2Gi", "example.com/licence": "1" } },
        });
        assert_eq!(requests(pod).unwrap(), r#"{"cpu":"1","memory":"2Gi","pods":"1"}"#);
    }

    #[test]
    fn while_a_container_is_resized_the_most_of_what_it_asks_for_and_has_counts() {
        let resized = |asked: &str, allocated: &str, running: &str, status: serde_json::Value| {
            let amount = |cpu: &str| serde_json::json!({ "cpu": cpu });
            let mut pod = serde_json::json!({
                "spec": { "containers": [container(asked)] },
                "status": { "containerStatuses": [{
                    "name": "c", "allocatedResources": amount(allocated), "resources": { "requests": amount(running) },
                }] },
            });
            pod["status"].as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
            effective_requests(&serde_json::from_value(pod).unwrap()).unwrap().get(CPU)
        };
        let pending = |reason: &str| serde_json::json!({ "conditions": [{ "type": "PodResizePending", "status": "True", "reason": reason }] });
        assert_eq!(resized("1", "1", "1", serde_json::json!({})), 1000);
        assert_eq!(resized("500m", "500m", "2", serde_json::json!({})), 2000, "it still has what it had");
        assert_eq!(resized("500m", "2", "500m", serde_json::json!({})), 2000);
        assert_eq!(resized("3", "1", "1", pending("Deferred")), 3000, "it gets it as soon as there is room");
        assert_eq!(resized("300", "1", "2", pending("Infeasible")), 2000);
        assert_eq!(resized("300", "1", "1", serde_json::json!({ "resize": "Infeasible" })), 1000);
        let sidecar = serde_json::json!({
            "spec": {
                "containers": [container("1")],
                "initContainers": [{ "name": "s", "restartPolicy": "Always" }, { "name": "i" }],
            },
            "status": { "initContainerStatuses": [
                { "name": "s", "resources": { "requests": { "cpu": "500m" } } },
                { "name": "i", "resources": { "requests": { "cpu": "50" } } },
            ] },
        });
        let requests = effective_requests(&serde_json::from_value(sidecar).unwrap()).unwrap();
        assert_eq!(requests.get(CPU), 1500, "an init container that is over takes nothing");
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
