//! The port: one snapshot fed by watches.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Client;

use crate::api::node_claim::NodeClaim;
use crate::api::node_plan::NodePlan;
use crate::core::snapshot::kinds::{ForEachKind, Stored, for_each_kind};
use crate::core::snapshot::{Doubts, Pod, Snapshot};
use crate::ports::{PortError, PortErrorKind};

use super::connection::Connection;
use super::leadership::Leadership;
use super::reflector::{AnyReflector, Changes, Reflector, Standing};

/// So long is waited for the first lists before it is said which are missing. Those of a large cluster take longer, and go on meanwhile.
const FIRST_LISTS: Duration = Duration::from_secs(10);
/// Many events come at once: they wake somebody when none has come for so long,
const QUIET: Duration = Duration::from_millis(25);
/// or when they have been coming for so long. A look at five thousand pods takes some milliseconds, and so do those of the control
/// plane that it competes with.
const COLLECTED_MAX: Duration = Duration::from_millis(200);

/// A cluster that is watched. For one thread; the watches run on the runtime.
pub struct KubernetesCluster {
    pub(super) client: Client,
    /// Writes are refused as soon as somebody else leads.
    pub(super) leadership: Leadership,
    changes: Arc<Changes>,
    reflectors: Vec<Arc<dyn AnyReflector>>,
    pub(super) node_claims: Arc<Reflector<NodeClaim>>,
    pub(super) nodes: Arc<Reflector<Node>>,
    pub(super) pods: Arc<Reflector<Pod>>,
    pub(super) node_plans: Arc<Reflector<NodePlan>>,
    snapshot: RefCell<Arc<Snapshot>>,
    observed: Cell<u64>,
}

impl KubernetesCluster {
    /// Begins to watch. Call it inside a runtime.
    pub fn watch(connection: &Connection, leadership: Leadership) -> Self {
        let changes = Arc::new(Changes::default());
        let mut start =
            Start { client: connection.watching.clone(), changes: Arc::clone(&changes), reflectors: Vec::new() };
        // Kinds that are also written through get their reflector here; the others need no name.
        let node_claims = start.reflector::<NodeClaim>();
        let nodes = start.reflector::<Node>();
        let pods = start.reflector::<Pod>();
        let node_plans = start.reflector::<NodePlan>();
        for_each_kind(&mut start);
        Self {
            client: connection.acting.clone(),
            leadership,
            changes,
            reflectors: start.reflectors,
            node_claims,
            nodes,
            pods,
            node_plans,
            snapshot: RefCell::default(),
            observed: Cell::new(0),
        }
    }

    pub(super) async fn observe_now(&self) -> Result<Arc<Snapshot>, PortError> {
        let is_late = tokio::time::timeout(FIRST_LISTS, self.synced()).await.is_err();
        self.observed.set(self.changes.generation());
        if is_late {
            return Err(self.trouble());
        }
        self.denied()?;
        let doubts = self.doubts();
        let mut current = self.snapshot.borrow_mut();
        if current.doubts != doubts {
            Arc::make_mut(&mut current).doubts = doubts;
        }
        if self.reflectors.iter().any(|reflector| reflector.has_news()) {
            // Copied only while somebody still holds the last one.
            let snapshot = Arc::make_mut(&mut current);
            for reflector in &self.reflectors {
                reflector.drain_into(snapshot);
            }
        }
        Ok(Arc::clone(&current))
    }

    pub(super) fn never_read_now(&self) -> Doubts {
        let waits = |reflector: &&Arc<dyn AnyReflector>| matches!(reflector.standing(), Standing::Waiting(_));
        let kinds = self.reflectors.iter().filter(waits).filter_map(|reflector| reflector.doubt()).collect();
        Doubts { kinds, ..Doubts::default() }
    }

    /// What is not to be relied on. Asked before the news are taken: what comes in between is seen too early, and no harm.
    fn doubts(&self) -> Doubts {
        Doubts {
            kinds: self.reflectors.iter().filter_map(|reflector| reflector.doubt()).collect(),
            unreadable: self
                .reflectors
                .iter()
                .flat_map(|reflector| reflector.unreadable())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            doubled: Vec::new(),
        }
    }

    /// Until every reflector has had its first list, or was denied it.
    async fn synced(&self) {
        loop {
            let announced = self.changes.announced();
            let waits = |reflector: &Arc<dyn AnyReflector>| match reflector.standing() {
                Standing::Waiting(Some(trouble)) => trouble.kind != PortErrorKind::Denied,
                Standing::Waiting(None) => true,
                Standing::Absent | Standing::Synced(_) => false,
            };
            if !self.reflectors.iter().any(waits) {
                return;
            }
            announced.await;
        }
    }

    /// A kind that may not be read would be taken for one that has no objects, and its pods or budgets for none.
    fn denied(&self) -> Result<(), PortError> {
        let denied = self.reflectors.iter().find_map(|reflector| match reflector.standing() {
            Standing::Waiting(Some(trouble)) => Some(trouble),
            _ => None,
        });
        denied.map_or(Ok(()), |trouble| {
            Err(PortError { operation: trouble.operation, kind: trouble.kind, source: Some(trouble.text.into()) })
        })
    }

    fn trouble(&self) -> PortError {
        self.denied().err().unwrap_or_else(|| PortError {
            operation: "list what is in the cluster".to_owned(),
            kind: PortErrorKind::Temporary,
            source: Some(format!("not complete after {} seconds", FIRST_LISTS.as_secs()).into()),
        })
    }

    pub(super) async fn changed_since_observed(&self) {
        while self.changes.generation() == self.observed.get() {
            self.changes.announced().await;
        }
        // Events come in bursts: one look sees them all.
        let quiet = async {
            loop {
                let before = self.changes.generation();
                tokio::time::sleep(QUIET).await;
                if self.changes.generation() == before {
                    return;
                }
            }
        };
        _ = tokio::time::timeout(COLLECTED_MAX, quiet).await;
    }

    /// The object of that name, of a kind without namespaces, with everything that was written to it, as far as it is known. O(objects).
    pub(super) fn latest<T: Stored>(&self, reflector: &Reflector<T>, name: &str) -> Option<T> {
        reflector.unseen("", name).unwrap_or_else(|| {
            let snapshot = self.snapshot.borrow();
            T::all(&snapshot).iter().find(|object| object.key().1 == name).cloned()
        })
    }

    /// The cluster as it was observed last.
    pub(super) fn observed(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.borrow())
    }

    /// Whether there is such a plan, as far as it is known.
    pub(super) fn has_plan(&self, name: &str) -> bool {
        self.node_plans.resource_version("", name).is_some()
    }
}

/// Starts one watch for each kind.
struct Start {
    client: Client,
    changes: Arc<Changes>,
    reflectors: Vec<Arc<dyn AnyReflector>>,
}

impl Start {
    fn reflector<T: Stored>(&mut self) -> Arc<Reflector<T>> {
        let reflector = Arc::new(Reflector::<T>::new(Arc::clone(&self.changes)));
        tokio::spawn(Arc::clone(&reflector).follow(self.client.clone()));
        self.reflectors.push(Arc::<Reflector<T>>::clone(&reflector));
        reflector
    }
}

impl ForEachKind for Start {
    fn kind<T: Stored>(&mut self) {
        if !["NodeClaim", "Node", "Pod", "NodePlan"].contains(&T::KIND) {
            self.reflector::<T>();
        }
    }
}
