//! An in-memory cluster and cloud behind the ports.
//!
//! [`EmbeddedWorld`] is one state with several faces: [`EmbeddedCluster`] is its Kubernetes API, [`EmbeddedCloud`] its EC2,
//! [`EmbeddedForge`] the place where plans are posted, [`EmbeddedClock`] its time. Nothing runs in the background: each face
//! first lets the world catch up with tokio's clock, event by event, and waiting means sleeping until the next event is due.
//! So with a paused clock days pass in milliseconds, and the same seed gives the same history.
//!
//! | what | where |
//! |---|---|
//! | the state, and the records that it is made of | `state.rs` |
//! | timers, catching up | `world.rs` |
//! | Deployments and ReplicaSets | `workloads.rs` |
//! | a cluster that was found elsewhere and goes on here | `imported_cluster.rs` |
//! | DaemonSets | `daemons.rs` |
//! | pods by owner, node and budget | `pods.rs` |
//! | binding pods to nodes | `scheduler.rs` |
//! | pods starting and ending | `kubelet.rs` |
//! | disruption budgets of pods, evictions | `budgets.rs` |
//! | instances: booting, joining, ending, being reclaimed | `machines.rs` |
//! | instances that outlive the process, nodes for another cluster | `saved.rs`, `saved_cloud.rs`, `hosted.rs` |
//! | the file that keeps such instances | `saved_file.rs` |
//! | definitions that nobody changes | `one_revision.rs` |
//! | machines that are not what they are said to be | `disagreements.rs` |
//! | what is left of capacity reservations | `reservations.rs` |
//! | observations that do not show what is | `visibility.rs` |
//! | pods that do not end, zones that are lost, webhooks | `adversity.rs` |

mod admission;
mod adversity;
mod budgets;
mod clock;
mod cloud;
mod cluster;
mod daemons;
mod disagreements;
mod forge;
mod hosted;
mod imported_cluster;
mod kubelet;
mod machines;
mod merge;
mod names;
mod objects;
mod one_revision;
mod pods;
mod preemption;
mod random;
mod reservations;
mod saved;
mod saved_cloud;
mod saved_file;
mod scheduler;
mod selection;
mod state;
mod store;
mod visibility;
mod workloads;
mod world;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;

use crate::core::catalog::Catalog;

pub use clock::EmbeddedClock;
pub use cloud::EmbeddedCloud;
pub use cluster::EmbeddedCluster;
pub use forge::{EmbeddedForge, Post};
pub use hosted::Hosted;
pub use imported_cluster::ScaleError;
pub use one_revision::OneRevision;
pub use saved::SavedMachine;
pub use saved_cloud::SavedCloud;
pub use saved_file::{FileAccess, SavedFile};
pub use state::{Disagreement, NodeFault, Webhook, World};

/// What differs between one world and another.
#[derive(Clone, Debug)]
pub struct WorldSettings {
    /// Names, delays and ties come from it; the same seed gives the same history.
    pub seed: u64,
    /// The moment the world begins.
    pub epoch: Timestamp,
    /// From launch until the kubelet registers: least and most.
    pub seconds_to_join: (u64, u64),
}

impl WorldSettings {
    /// A world whose instances take as long to boot as those of EC2 do.
    pub fn new(seed: u64, epoch: Timestamp) -> Self {
        Self { seed, epoch, seconds_to_join: (22, 28) }
    }
}

/// The world and its clock; cheap to clone, for one thread.
#[derive(Clone)]
pub struct EmbeddedWorld {
    world: Rc<RefCell<World>>,
    clock: EmbeddedClock,
}

impl EmbeddedWorld {
    /// A world that sells what `catalog` says. Begins now on tokio's clock: call it inside a runtime.
    pub fn new(settings: WorldSettings, catalog: impl Into<Arc<Catalog>>) -> Self {
        let clock = EmbeddedClock::starting_at(settings.epoch);
        Self { world: Rc::new(RefCell::new(World::new(settings, catalog.into()))), clock }
    }

    pub fn clock(&self) -> EmbeddedClock {
        self.clock.clone()
    }

    pub fn cluster(&self) -> EmbeddedCluster {
        EmbeddedCluster::new(self.clone())
    }

    pub fn cloud(&self) -> EmbeddedCloud {
        EmbeddedCloud::new(self.clone())
    }

    /// How many pods were evicted so far; those of DaemonSets do not count.
    pub fn pods_evicted(&self) -> usize {
        self.world.borrow().evicted
    }

    /// Looks at or changes the world at this moment, after it caught up; then it reacts.
    pub fn with<T>(&self, action: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world.borrow_mut();
        world.advance(crate::ports::Clock::now(&self.clock));
        world.reconcile();
        let result = action(&mut world);
        world.reconcile();
        result
    }

    /// Changes the world at this moment. Where pods go is found out when somebody looks: a drain is many changes, and one
    /// round of scheduling after them is enough.
    fn act<T>(&self, action: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.world.borrow_mut();
        world.advance(crate::ports::Clock::now(&self.clock));
        let result = action(&mut world);
        world.reconcile_pods();
        result
    }
}
