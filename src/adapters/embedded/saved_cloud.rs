//! The embedded cloud, whose instances may be kept in a file: then they outlive the controller, as those of EC2 do.

use std::sync::Arc;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_claim::NodeClaim;
use crate::core::catalog::Catalog;
use crate::ports::{
    ClassFacts, Cloud, Instance, InstanceEnd, LaunchFailure, LaunchRequest, Message, PortError, PortErrorKind,
};

use super::saved_file::{SavedFile, UnreadableInstances};
use super::{EmbeddedCloud, EmbeddedWorld};

pub struct SavedCloud {
    world: EmbeddedWorld,
    cloud: EmbeddedCloud,
    file: Option<SavedFile>,
}

impl SavedCloud {
    /// `file`: where the instances are kept, if they are.
    pub fn new(world: &EmbeddedWorld, file: Option<SavedFile>) -> Self {
        Self { world: world.clone(), cloud: world.cloud(), file }
    }

    /// Takes up the instances that an earlier process kept, if it did.
    pub fn restore(&self) -> Result<(), UnreadableInstances> {
        let Some(file) = &self.file else { return Ok(()) };
        if let Some(machines) = file.read()? {
            self.world.with(|world| world.restore_machines(machines));
        }
        Ok(())
    }

    /// Takes what claims say of their instances for all that is left of an earlier process.
    pub fn learn(&self, claims: &[NodeClaim]) {
        self.world.with(|world| world.restore_machines_of(claims));
    }

    fn save(&self) -> Result<(), PortError> {
        let Some(file) = &self.file else { return Ok(()) };
        let machines = self.world.with(|world| world.saved_machines());
        file.write(&machines).map_err(|error| PortError {
            operation: "keep the instances of the embedded cloud".to_owned(),
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

    async fn ended(&self, provider_ids: &[&str]) -> Result<Vec<InstanceEnd>, PortError> {
        self.cloud.ended(provider_ids).await
    }

    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        self.cloud.messages().await
    }

    async fn forget_message(&self, receipt: &str) -> Result<(), PortError> {
        self.cloud.forget_message(receipt).await
    }
}
