//! The embedded cloud behind a real cluster: its instances "boot" as Node objects of the API server.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::Instant;

use crate::ports::{NodeObjects, PortError};

use super::{EmbeddedWorld, World};

/// How often instances are looked at.
const TICK: Duration = Duration::from_millis(200);
/// How often all claims are read while instances boot: no small answer, and needed before the first of them joins.
const LEARN: Duration = Duration::from_millis(500);
/// Nodes that are written at the same time.
const NODES_TOGETHER_MAX: usize = 16;

/// Nodes of the world as another cluster has them.
pub struct Hosted<N> {
    world: EmbeddedWorld,
    nodes: N,
    written: BTreeSet<String>,
    learnt_at: Option<Instant>,
}

impl<N: NodeObjects> Hosted<N> {
    pub fn new(world: &EmbeddedWorld, nodes: N) -> Self {
        Self { world: world.clone(), nodes, written: BTreeSet::new(), learnt_at: None }
    }

    /// Writes a Node for every instance that has joined, and removes those of instances that ended by themselves. Until it is dropped, or
    /// stopped: then it waits, since what is under way elsewhere ends by itself.
    pub async fn run(mut self, is_stopped: impl Fn() -> bool) {
        while !is_stopped() {
            if let Err(error) = self.look().await {
                tracing::warn!(error = %crate::ports::chain(&error), "nodes of the embedded cloud");
            }
            tokio::time::sleep(TICK).await;
        }
        std::future::pending::<()>().await;
    }

    async fn look(&mut self) -> Result<(), PortError> {
        let is_due = self.learnt_at.is_none_or(|at| at.elapsed() >= LEARN);
        if is_due && self.world.with(|world| world.awaits_nodes()) {
            let (claims, classes) = self.nodes.claims_and_classes().await?;
            self.world.with(|world| world.learn(claims, classes));
            self.learnt_at = Some(now());
        }
        let mut joined = self.world.with(|world| world.joined_nodes());
        joined.retain(|node| !self.written.contains(node.metadata.name.as_deref().unwrap_or_default()));
        for together in joined.chunks(NODES_TOGETHER_MAX) {
            let registered = join_all(together.iter().map(|node| self.nodes.register(node))).await;
            for (node, outcome) in together.iter().zip(registered) {
                outcome?;
                self.written.extend(node.metadata.name.clone());
            }
        }
        for name in self.world.with(World::forget_ended_nodes) {
            self.nodes.remove(&name).await?;
            self.written.remove(&name);
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "only how long ago claims were read last")]
fn now() -> Instant {
    Instant::now()
}
