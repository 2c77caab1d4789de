//! The embedded cloud, whose instances may be kept in a file: then they outlive the controller, as those of EC2 do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::core::catalog::Catalog;
use crate::ports::{ClassFacts, Cloud, Instance, LaunchFailure, LaunchRequest, Message, PortError, PortErrorKind};

use super::{EmbeddedCloud, EmbeddedWorld, SavedMachine};

pub struct SavedCloud {
    world: EmbeddedWorld,
    cloud: EmbeddedCloud,
    file: Option<PathBuf>,
}

impl SavedCloud {
    /// `file`: where the instances of an earlier process are, and those of this one are kept. A file that can not be read is an error,
    /// since its instances would be forgotten.
    pub fn open(world: &EmbeddedWorld, file: Option<&Path>) -> Result<Self, PortError> {
        if let Some(file) = file.filter(|file| file.exists()) {
            let saved: Result<Vec<SavedMachine>, std::io::Error> =
                std::fs::read(file).and_then(|bytes| serde_json::from_slice(&bytes).map_err(std::io::Error::other));
            let saved = saved.map_err(|error| PortError {
                operation: format!("read the instances in {}", file.display()),
                kind: PortErrorKind::Permanent,
                source: Some(Box::new(error)),
            })?;
            world.with(|world| world.restore_machines(saved));
        }
        Ok(Self { world: world.clone(), cloud: world.cloud(), file: file.map(Path::to_owned) })
    }

    /// Whether nothing but the cluster's claims is left of the instances of an earlier process.
    pub fn is_kept_nowhere(&self) -> bool {
        self.file.is_none()
    }

    /// Takes what claims say of their instances for all that is left of an earlier process.
    pub fn learn(&self, claims: &[NodeClaim]) {
        self.world.with(|world| world.restore_machines_of(claims));
    }

    /// Written whole beside the file, then renamed: a crash leaves the old one.
    fn save(&self) -> Result<(), PortError> {
        let Some(file) = &self.file else { return Ok(()) };
        let machines = self.world.with(|world| world.saved_machines());
        let beside = file.with_extension("new");
        let saved = serde_json::to_vec(&machines)
            .map_err(std::io::Error::other)
            .and_then(|bytes| std::fs::write(&beside, bytes))
            .and_then(|()| std::fs::rename(&beside, file));
        saved.map_err(|error| PortError {
            operation: format!("save the instances in {}", file.display()),
            kind: PortErrorKind::Temporary,
            source: Some(Box::new(error)),
        })
    }
}

impl Cloud for SavedCloud {
    async fn catalog(&self) -> Result<Arc<Catalog>, PortError> {
        self.cloud.catalog().await
    }

    async fn describe(&self, class: &EC2NodeClass) -> Result<ClassFacts, PortError> {
        self.cloud.describe(class).await
    }

    async fn launch(&self, request: &LaunchRequest<'_>) -> Vec<Result<Instance, LaunchFailure>> {
        let answers = self.cloud.launch(request).await;
        match self.save() {
            Ok(()) => answers,
            // Those that were launched run, and are found by the next call for the same claims.
            Err(error) => {
                let failed = |_| LaunchFailure { error: error.again(), exhausted: Vec::new() };
                answers.into_iter().map(|answer| answer.and_then(|instance| Err(failed(instance)))).collect()
            }
        }
    }

    async fn terminate(&self, provider_id: &str) -> Result<(), PortError> {
        self.cloud.terminate(provider_id).await?;
        self.save()
    }

    async fn instances(&self) -> Result<Vec<Instance>, PortError> {
        self.cloud.instances().await
    }

    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        self.cloud.messages().await
    }

    async fn forget_message(&self, receipt: &str) -> Result<(), PortError> {
        self.cloud.forget_message(receipt).await
    }
}
