//! Who leads: one of several replicas acts, and knows when it no longer may.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube_lease_manager::{LeaseCreateMode, LeaseManagerBuilder, LeaseManagerError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::api::keys::FIELD_MANAGER;
use crate::ports::{PortError, PortErrorKind};

use super::connection::Connection;
use super::failure::port_error;

/// The name of our lease.
pub(super) const LEASE: &str = "cutlist-leader-election";
/// A leader that has not renewed for so long has lost; it renews `GRACE_SECONDS` before. Together below the 20 seconds within
/// which another one should have taken over.
const LEASE_SECONDS: u64 = 12;
const GRACE_SECONDS: u64 = 4;
/// How long giving the lease back may take.
const GIVE_BACK: Duration = Duration::from_secs(5);

/// Whether this process leads. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Leadership {
    leads: watch::Receiver<bool>,
    transitions: Arc<AtomicI64>,
    /// Of one who stands for election: ends that, and tells when it has ended.
    standing: Option<Arc<Standing>>,
}

#[derive(Debug, Default)]
pub(super) struct Standing {
    pub stop: Notify,
    manager: Mutex<Option<JoinHandle<()>>>,
}

impl Standing {
    /// The task that gives the lease back when it is told to stop.
    pub fn wait_for(&self, task: JoinHandle<()>) {
        *self.manager.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }
}

impl Leadership {
    /// For a process that asked nobody.
    pub fn alone() -> Self {
        let (_, leads) = watch::channel(true);
        Self { leads, transitions: Arc::new(AtomicI64::new(0)), standing: None }
    }

    /// Of one who holds the lease.
    pub(super) fn of(leads: watch::Receiver<bool>, standing: Arc<Standing>) -> Self {
        Self { leads, transitions: Arc::new(AtomicI64::new(0)), standing: Some(standing) }
    }

    /// Stands for election, and goes on to do so. `identity` must be another one in each process.
    pub async fn stand(connection: &Connection, namespace: &str, identity: &str) -> Result<Self, PortError> {
        let operation = format!("stand for election with lease {namespace}/{LEASE}");
        let failure = |error: LeaseManagerError| match error {
            LeaseManagerError::KubeError(error) => {
                PortError { kind: PortErrorKind::Denied, ..port_error(operation, error) }
            }
            error => PortError { operation, kind: PortErrorKind::Denied, source: Some(Box::new(error)) },
        };
        let manager = LeaseManagerBuilder::new(connection.electing.clone(), LEASE)
            .with_namespace(namespace)
            .with_identity(identity)
            .with_field_manager(FIELD_MANAGER)
            .with_duration(LEASE_SECONDS)
            .with_grace(GRACE_SECONDS)
            .with_create_mode(LeaseCreateMode::AutoCreate)
            .build()
            .await
            .map_err(failure)?;
        let (mut elected, task) = manager.watch().await;
        let task = tokio::spawn(async move { drop(task.await) });
        let standing = Arc::new(Standing::default());
        standing.wait_for(task);
        let stopped = Arc::clone(&standing);
        let transitions = Arc::new(AtomicI64::new(0));
        let (tell, leads) = watch::channel(false);
        let api: Api<Lease> = Api::namespaced(connection.electing.clone(), namespace);
        let (seen, identity) = (Arc::clone(&transitions), identity.to_owned());
        tokio::spawn(async move {
            loop {
                let elected_now = *elected.borrow_and_update();
                // The number of changes of hands orders the leaders: it is known before anything is done as one.
                let confirmed = elected_now && confirm(&api, &identity, &seen).await;
                let goes_on = tell.send(confirmed).is_ok()
                    && tokio::select! {
                        changed = elected.changed() => changed.is_ok(),
                        () = stopped.stop.notified() => false,
                    };
                if !goes_on {
                    // The manager gives the lease back when nobody listens to it any more.
                    drop(elected);
                    let _nobody_listens = tell.send(false);
                    return;
                }
            }
        });
        Ok(Self { leads, transitions, standing: Some(standing) })
    }

    /// Gives the lease back, so that another one need not wait until it has expired. Ends in any case.
    pub async fn give_back(&self) {
        let Some(standing) = &self.standing else { return };
        standing.stop.notify_one();
        let manager = standing.manager.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(manager) = manager
            && timeout(GIVE_BACK, manager).await.is_err()
        {
            tracing::warn!("the lease could not be given back: it expires");
        }
    }

    pub fn leads(&self) -> bool {
        *self.leads.borrow()
    }

    /// How often the lease had changed hands when this process got it: grows with every leader.
    pub fn transitions(&self) -> i64 {
        self.transitions.load(Ordering::SeqCst)
    }

    /// Waits until this process leads (`true`) or no longer does (`false`).
    pub async fn becomes(&mut self, leads: bool) {
        // The sender ends with the runtime, when nobody waits any more; one that led alone leads for ever.
        if self.leads.wait_for(|now| *now == leads).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn confirm(api: &Api<Lease>, identity: &str, transitions: &AtomicI64) -> bool {
    match api.get(LEASE).await {
        Ok(lease) => {
            let spec = lease.spec.unwrap_or_default();
            transitions.store(i64::from(spec.lease_transitions.unwrap_or_default()), Ordering::SeqCst);
            spec.holder_identity.as_deref() == Some(identity)
        }
        Err(error) => {
            tracing::warn!(error = %error, "the lease can not be read back");
            false
        }
    }
}
