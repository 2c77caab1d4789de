//! The embedded cloud behind a real cluster: its instances "boot" as Node objects of the API server.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::join_all;
use kube::Client;

use crate::adapters::embedded::{EmbeddedCloud, EmbeddedWorld, SavedMachine, World};
use crate::adapters::kubernetes::nodes;
use crate::cli::exit::Failure;
use crate::controller::Shutdown;
use crate::core::catalog::Catalog;
use crate::ports::{Cloud, Instance, LaunchRequest, Message, PortError, PortErrorKind};

use super::FAILURE;

/// How often instances are looked at.
const TICK: Duration = Duration::from_millis(200);
/// How often all claims are read while instances boot: no small answer, and needed before the first of them joins.
const LEARN: Duration = Duration::from_millis(500);
/// Nodes that are written at the same time.
const NODES_TOGETHER: usize = 16;

/// Writes a Node for every instance that has joined, and removes those of instances that ended by themselves. Until stopped.
pub async fn nodes(world: &EmbeddedWorld, client: &Client, shutdown: &Shutdown) {
    let mut written: BTreeSet<String> = BTreeSet::new();
    let mut learnt_at: Option<Instant> = None;
    while !shutdown.is_requested() {
        if let Err(error) = boot(world, client, &mut written, &mut learnt_at).await {
            tracing::warn!(error = %crate::ports::chain(&error), "nodes of the embedded cloud");
        }
        tokio::time::sleep(TICK).await;
    }
    // The controller ends by itself, after the call that is under way.
    std::future::pending::<()>().await;
}

async fn boot(
    world: &EmbeddedWorld,
    client: &Client,
    written: &mut BTreeSet<String>,
    learnt_at: &mut Option<Instant>,
) -> Result<(), PortError> {
    let is_due = learnt_at.is_none_or(|at| at.elapsed() >= LEARN);
    if is_due && world.with(|world| world.awaits_nodes()) {
        let (claims, classes) = nodes::claims_and_classes(client).await?;
        world.with(|world| world.learn(claims, classes));
        *learnt_at = Some(Instant::now());
    }
    let mut joined = world.with(|world| world.joined_nodes());
    joined.retain(|node| !written.contains(node.metadata.name.as_deref().unwrap_or_default()));
    for together in joined.chunks(NODES_TOGETHER) {
        let registered = join_all(together.iter().map(|node| nodes::register(client, node))).await;
        for (node, outcome) in together.iter().zip(registered) {
            outcome?;
            written.extend(node.metadata.name.clone());
        }
    }
    for name in world.with(World::forget_ended_nodes) {
        nodes::remove(client, &name).await?;
        written.remove(&name);
    }
    Ok(())
}

/// The embedded cloud, whose instances may be kept in a file: then they outlive the controller, as those of EC2 do.
pub struct SavedCloud {
    world: EmbeddedWorld,
    cloud: EmbeddedCloud,
    file: Option<PathBuf>,
}

impl SavedCloud {
    pub fn open(world: &EmbeddedWorld, file: Option<&Path>) -> Result<Self, Failure> {
        if let Some(file) = file.filter(|file| file.exists()) {
            let saved: anyhow::Result<Vec<SavedMachine>> = std::fs::read(file)
                .map_err(anyhow::Error::new)
                .and_then(|bytes| serde_json::from_slice(&bytes).map_err(anyhow::Error::new))
                .with_context(|| format!("instances in {}", file.display()));
            let saved =
                saved.map_err(|error| Failure::usage(FAILURE, error).with_hint("remove the file to begin anew"))?;
            world.with(|world| world.restore_machines(saved));
        }
        Ok(Self { world: world.clone(), cloud: world.cloud(), file: file.map(Path::to_owned) })
    }

    /// Without a file, what the cluster's claims say of their instances is all that is left of an earlier process.
    pub async fn learn(&self, client: &Client) -> Result<(), PortError> {
        if self.file.is_none() {
            // A cluster without the kinds has no claims.
            match nodes::claims_and_classes(client).await {
                Ok((claims, _)) => self.world.with(|world| world.restore_machines_of(&claims)),
                Err(error) if error.kind == PortErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
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

    async fn zones_with_subnet(&self, node_class: &str) -> Result<Vec<String>, PortError> {
        self.cloud.zones_with_subnet(node_class).await
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Instance, PortError> {
        let instance = self.cloud.launch(request).await?;
        self.save()?;
        Ok(instance)
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
