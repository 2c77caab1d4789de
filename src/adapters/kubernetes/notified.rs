//! What people elsewhere were told of the cluster: it is noted in the cluster, so that the next leader does not say it again.

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Error};
use serde_json::json;

use crate::api::keys::FIELD_MANAGER;
use crate::api::node_plan::{NOTIFIED, NodePlan};
use crate::ports::PortError;
use crate::ports::notifications::{NotificationLedger, Notified};

use super::failure::port_error;

/// Where that is noted: on the first page of the history.
#[derive(Clone)]
pub struct NotedInCluster(pub Client);

impl NotificationLedger for NotedInCluster {
    async fn read(&self) -> Result<Notified, PortError> {
        notified(&self.0).await
    }

    async fn note(&self, all: &Notified) -> Result<(), PortError> {
        note_notified(&self.0, all).await
    }
}

/// What is noted; nothing where there is no note, or none that can be read.
async fn notified(client: &Client) -> Result<Notified, PortError> {
    let page = NodePlan::page(0);
    let name = page.metadata.name.as_deref().unwrap_or_default();
    let api: Api<NodePlan> = Api::all(client.clone());
    let found = api.get_metadata_opt(name).await.map_err(|error| port_error(format!("get nodeplan {name}"), error))?;
    let annotations = found.and_then(|found| found.metadata.annotations).unwrap_or_default();
    Ok(annotations.get(NOTIFIED).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default())
}

/// Notes all of it.
async fn note_notified(client: &Client, notified: &Notified) -> Result<(), PortError> {
    let page = NodePlan::page(0);
    let name = page.metadata.name.clone().unwrap_or_default();
    let api: Api<NodePlan> = Api::all(client.clone());
    let failed = |error| port_error(format!("patch nodeplan {name}"), error);
    let patch = json!({ "metadata": { "annotations": { NOTIFIED: json!(notified).to_string() } } });
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    match api.patch_metadata(&name, &parameters, &Patch::Merge(&patch)).await {
        Ok(_) => return Ok(()),
        Err(Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(failed(error)),
    }
    // The history has not begun yet.
    let creation = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    match api.create(&creation, &page).await {
        Ok(_) => {
            let status = json!({ "status": page.status });
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await.map_err(failed)?;
        }
        Err(Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(failed(error)),
    }
    api.patch_metadata(&name, &parameters, &Patch::Merge(&patch)).await.map(drop).map_err(failed)
}
