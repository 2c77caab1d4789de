//! Custom resource definitions: into the cluster, and whether they are there.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};

use crate::api::definitions;
use crate::api::keys::FIELD_MANAGER;
use crate::ports::{PortError, PortErrorKind};

use super::failure::port_error;
use super::permissions::Mode;
use super::watched::{all, group_and_version};
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::api::node_plan::NodePlan;
use crate::api::node_pool::NodePool;
use crate::core::snapshot::kinds::Stored;

/// An API server serves a new kind within a second or two.
const PATIENCE: Duration = Duration::from_secs(30);

/// Applies the definitions of all kinds that Cutlist uses, and waits until they are served. One that somebody else
/// manages in another form is a conflict with their name.
pub async fn install_definitions(client: &Client) -> Result<Vec<String>, PortError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut installed = Vec::new();
    for definition in definitions::all() {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let operation = format!("apply customresourcedefinition {name}");
        api.patch(&name, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(&definition))
            .await
            .map_err(|error| port_error(operation, error))?;
        installed.push(name);
    }
    for name in &installed {
        let established = await_condition(api.clone(), name, is_crd_established());
        let failure =
            |kind, source| PortError { operation: format!("wait for {name} to be established"), kind, source };
        match tokio::time::timeout(PATIENCE, established).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(failure(PortErrorKind::Temporary, Some(Box::new(error)))),
            Err(elapsed) => return Err(failure(PortErrorKind::Temporary, Some(Box::new(elapsed)))),
        }
    }
    Ok(installed)
}

/// The first kind without which a controller can do nothing, and which the cluster does not have: `nodeplans.cutlist.dev`. Whoever
/// only observes needs a place to post plans.
pub async fn missing_definition(client: &Client, mode: Mode) -> Result<Option<String>, PortError> {
    let mut missing = missing_kind::<NodePlan>(client).await?;
    if mode == Mode::Enforce {
        missing = missing
            .or(missing_kind::<NodePool>(client).await?)
            .or(missing_kind::<NodeClaim>(client).await?)
            .or(missing_kind::<EC2NodeClass>(client).await?);
    }
    Ok(missing)
}

async fn missing_kind<T: Stored>(client: &Client) -> Result<Option<String>, PortError> {
    match all::<T>(client).list(&ListParams::default().limit(1)).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Ok(Some(format!("{}.{}", T::RESOURCE, group_and_version::<T>().0)))
        }
        Err(error) => Err(port_error(format!("list {}", T::RESOURCE), error)),
    }
}
