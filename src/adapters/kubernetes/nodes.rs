//! Node objects for a cloud that has no kubelets: what a kubelet and a cloud controller would write.

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::core::snapshot::kinds::Stored;
use crate::ports::{NodeObjects, PortError};

use super::failure::port_error;
use super::watched::all;

/// Those of the API server.
pub struct ClusterNodes(pub Client);

impl NodeObjects for ClusterNodes {
    async fn claims_and_classes(&self) -> Result<(Vec<NodeClaim>, Vec<EC2NodeClass>), PortError> {
        Ok((readable(&self.0).await?, readable(&self.0).await?))
    }

    async fn register(&self, node: &Node) -> Result<(), PortError> {
        let nodes: Api<Node> = Api::all(self.0.clone());
        let operation = format!("create node {}", node.metadata.name.as_deref().unwrap_or_default());
        match nodes.create(&PostParams::default(), node).await {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            result => result.map(|_| ()).map_err(|error| port_error(operation, error)),
        }
    }

    async fn remove(&self, name: &str) -> Result<(), PortError> {
        let nodes: Api<Node> = Api::all(self.0.clone());
        match nodes.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            result => result.map(|_| ()).map_err(|error| port_error(format!("delete node {name}"), error)),
        }
    }
}

/// Those that can be read: the others concern other instances, or none.
async fn readable<T: Stored>(client: &Client) -> Result<Vec<T>, PortError> {
    let listed = all::<T>(client).list(&ListParams::default()).await;
    let listed = listed.map_err(|error| port_error(format!("list {}", T::RESOURCE), error))?;
    Ok(listed.items.into_iter().filter_map(|watched| watched.object.ok()).collect())
}
