//! Ports of the host, of which two pods of one node can not take the same.

use crate::snapshot::Pod;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    pub port: i32,
    pub protocol: String,
    /// Empty: every address.
    pub address: String,
}

impl HostPort {
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let any_address = |port: &Self| port.address.is_empty();
        self.port == other.port
            && self.protocol == other.protocol
            && (any_address(self) || any_address(other) || self.address == other.address)
    }
}

/// The ports of the host that a pod takes for as long as it runs: those of its containers and sidecars.
pub fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let sidecars =
        pod.spec.init_containers.iter().filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let containers = pod.spec.containers.iter().chain(sidecars);
    let mut ports: Vec<HostPort> = containers
        .flat_map(|container| &container.ports)
        .filter_map(|port| {
            let number = port.host_port.or_else(|| pod.spec.host_network.then_some(port.container_port))?;
            let address =
                port.host_ip.clone().filter(|address| address != "0.0.0.0" && address != "::").unwrap_or_default();
            let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
            (number > 0).then_some(HostPort { port: number, protocol, address })
        })
        .collect();
    ports.sort();
    ports.dedup();
    ports
}
