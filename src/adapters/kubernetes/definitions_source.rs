//! Definitions that somebody else applies to the cluster, such as Argo CD or Flux: read as if they were files.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::ListParams;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::api::source::SourceFile;
use crate::core::model::hexadecimal;
use crate::core::plan::{Note, NoteCode, Revision};
use crate::core::snapshot::kinds::Stored;
use crate::ports::{PortError, PortErrorKind, Repository, RevisionContent};

use super::failure::port_error;
use super::watched::all;
use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_pool::NodePool;

/// The cluster as a repository of definitions: its revision is a hash over them.
pub struct ClusterDefinitions {
    client: Client,
    interval: Duration,
    /// Files that come from elsewhere, such as `cutlist.yaml`.
    settings: Vec<SourceFile>,
    last: Option<String>,
}

impl ClusterDefinitions {
    pub fn new(client: Client, interval: Duration, settings: Vec<SourceFile>) -> Self {
        Self { client, interval, settings, last: None }
    }

    /// With notes on those that can not be read. They are left out; what they speak for is held, as the snapshot says the same of them.
    async fn files(&self) -> Result<(Vec<SourceFile>, Vec<Note>), PortError> {
        let (mut files, mut notes) = (self.settings.clone(), Vec::new());
        files.extend(files_of::<EC2NodeClass>(&self.client, &mut notes).await?);
        files.extend(files_of::<NodePool>(&self.client, &mut notes).await?);
        files.extend(files_of::<NodeOverlay>(&self.client, &mut notes).await?);
        files.extend(files_of::<CapacityBuffer>(&self.client, &mut notes).await?);
        files.extend(files_of::<DisruptionBudget>(&self.client, &mut notes).await?);
        Ok((files, notes))
    }
}

impl Repository for ClusterDefinitions {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        let (files, notes) = self.files().await?;
        let mut hash = Sha256::new();
        for file in &files {
            hash.update(file.path.as_bytes());
            hash.update([0]);
            hash.update(&file.content);
            hash.update([0]);
        }
        let id: String = hexadecimal(hash.finalize()).chars().take(40).collect();
        if self.last.as_ref() == Some(&id) {
            return Ok(None);
        }
        self.last = Some(id.clone());
        let revision = Revision { id, reference: "cluster".to_owned() };
        Ok(Some(RevisionContent::without_history(revision, "definitions in the cluster", files, notes)))
    }

    async fn changed(&mut self) {
        tokio::time::sleep(self.interval).await;
    }
}

/// One file for each object, `nodepools/default.yaml`; none where the kind is not installed.
async fn files_of<T: Stored>(client: &Client, notes: &mut Vec<Note>) -> Result<Vec<SourceFile>, PortError> {
    let operation = || format!("list {}", T::RESOURCE);
    let listed = match all::<T>(client).list(&ListParams::default()).await {
        Ok(listed) => listed.items,
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(port_error(operation(), error)),
    };
    let mut files = Vec::new();
    for watched in listed {
        let object = match watched.object {
            Ok(object) => object,
            Err(unreadable) => {
                let text = format!("{} can not be read, and is left out: {}", unreadable.object(), unreadable.why);
                notes.push(Note::new(NoteCode::ObjectUnreadable, text));
                continue;
            }
        };
        let content = text_of(&object, &watched.metadata).map_err(|source| PortError {
            operation: operation(),
            kind: PortErrorKind::Permanent,
            source: Some(source),
        })?;
        let name = watched.metadata.name.unwrap_or_default();
        files.push(SourceFile::applied(format!("{}/{name}.yaml", T::RESOURCE), content));
    }
    files.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(files)
}

/// The object as somebody wrote it: without status, and without what the API server adds.
fn text_of<T: Stored>(object: &T, metadata: &ObjectMeta) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let mut value = serde_json::to_value(object)?;
    let mut document = serde_json::Map::new();
    document.insert("apiVersion".to_owned(), T::API_VERSION.into());
    document.insert("kind".to_owned(), T::KIND.into());
    let mut written = serde_json::json!({ "name": metadata.name });
    for field in ["namespace", "labels", "annotations"] {
        let content = value.pointer(&format!("/metadata/{field}")).filter(|content| !content.is_null());
        if let (Some(content), Some(written)) = (content, written.as_object_mut()) {
            written.insert(field.to_owned(), content.clone());
        }
    }
    document.insert("metadata".to_owned(), written);
    if let Some(spec) = value.get_mut("spec") {
        document.insert("spec".to_owned(), spec.take());
    }
    Ok(serde_yaml::to_string(&Value::Object(document))?)
}
