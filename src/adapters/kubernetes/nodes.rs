//! Node objects for a cloud that has no kubelets: what a kubelet and a cloud controller would write.

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::core::snapshot::kinds::Stored;
use crate::ports::PortError;

use super::failure::port_error;
use super::watched::all;

/// Every NodeClaim and every class: what the user data of an instance would say.
pub async fn claims_and_classes(client: &Client) -> Result<(Vec<NodeClaim>, Vec<EC2NodeClass>), PortError> {
    Ok((readable(client).await?, readable(client).await?))
}

/// Those that can be read: the others concern other instances, or none.
async fn readable<T: Stored>(client: &Client) -> Result<Vec<T>, PortError> {
    let listed = all::<T>(client).list(&ListParams::default()).await;
    let listed = listed.map_err(|error| port_error(format!("list {}", T::RESOURCE), error))?;
    Ok(listed.items.into_iter().filter_map(|watched| watched.object.ok()).collect())
}

/// A node registers. One that is there already is as good.
pub async fn register(client: &Client, node: &Node) -> Result<(), PortError> {
    let nodes: Api<Node> = Api::all(client.clone());
    let operation = format!("create node {}", node.metadata.name.as_deref().unwrap_or_default());
    match nodes.create(&PostParams::default(), node).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        result => result.map(|_| ()).map_err(|error| port_error(operation, error)),
    }
}

/// The instance behind a node is gone: its object goes, as the cloud controller would have it.
pub async fn remove(client: &Client, name: &str) -> Result<(), PortError> {
    let nodes: Api<Node> = Api::all(client.clone());
    match nodes.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        result => result.map(|_| ()).map_err(|error| port_error(format!("delete node {name}"), error)),
    }
}
