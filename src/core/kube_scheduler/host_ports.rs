//! NodePorts: two pods of one node can not listen on the same address, protocol and port of the host.

use k8s_openapi::api::core::v1::Node;

use crate::snapshot::Pod;

use super::context::FilterContext;
use super::objects::node_name;
use super::{Filter, FilterRefusal};

/// Listens on every address.
const ANY_ADDRESS: &str = "0.0.0.0";

struct HostPort<'p> {
    address: &'p str,
    protocol: &'p str,
    port: i32,
}

pub(super) fn refusal(pod: &Pod, node: &Node, context: &FilterContext<'_>) -> Option<FilterRefusal> {
    let wanted = host_ports(pod);
    if wanted.is_empty() {
        return None;
    }
    context.pods_on(node_name(node)).find_map(|other| {
        let taken = host_ports(other);
        let port = wanted.iter().find(|port| taken.iter().any(|other| port.conflicts(other)))?;
        Some(FilterRefusal::new(
            Filter::NodePorts,
            format!("host port {}/{} is taken by {}", port.port, port.protocol, other.key()),
        ))
    })
}

impl HostPort<'_> {
    fn conflicts(&self, other: &Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address || self.address == ANY_ADDRESS || other.address == ANY_ADDRESS)
    }
}

/// Of the containers and sidecars; init containers that end leave their ports.
fn host_ports(pod: &Pod) -> Vec<HostPort<'_>> {
    let sidecars =
        pod.spec.init_containers.iter().filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let ports = pod.spec.containers.iter().chain(sidecars).flat_map(|container| &container.ports);
    ports
        .filter_map(|port| {
            // The API server fills the host port of pods on the host's network; templates may not have been through it.
            let number =
                port.host_port.filter(|port| *port > 0).or(pod.spec.host_network.then_some(port.container_port));
            Some(HostPort {
                address: port.host_ip.as_deref().filter(|address| !address.is_empty()).unwrap_or(ANY_ADDRESS),
                protocol: port.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP"),
                port: number.filter(|port| *port > 0)?,
            })
        })
        .collect()
}
