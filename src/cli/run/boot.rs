//! The embedded cloud behind a real cluster: its instances "boot" as Node objects of the API server.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::future::join_all;
use kube::Client;

use crate::adapters::embedded::{EmbeddedWorld, Keep, SavedCloud, World};
use crate::adapters::kubernetes::nodes;
use crate::cli::inputs::{FileKind, read_file};
use crate::controller::Shutdown;
use crate::ports::PortError;

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

/// Keeps instances in a file: written whole beside it, then renamed, so that a crash leaves the old one.
pub fn kept_in(file: &Path) -> Keep {
    let file = file.to_owned();
    Box::new(move |bytes| {
        let beside = file.with_extension("new");
        std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, &file))
    })
}

/// The instances that an earlier process kept in a file, if it did. A file that can not be read is an error, since its instances would
/// be forgotten.
pub fn restore(cloud: &SavedCloud, file: &Path) -> anyhow::Result<()> {
    if !file.exists() {
        return Ok(());
    }
    let place = || format!("instances in {}", file.display());
    let bytes = read_file(file, FileKind::Instances).with_context(place)?;
    cloud.restore(&bytes).with_context(place)
}
