//! Carries out what the life cycle of a NodeClaim asks for: for several claims at a time, which share what is remembered.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;

use crate::api::node_claim::NodeClaim;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::afresh::{self, NodesNow};
use crate::controller::observed::view::{name_of, provider_id, uid_of};
use crate::controller::pace::RETRY;
use crate::core::lifecycle::termination::TERMINATION_TIMESTAMP;
use crate::core::lifecycle::{Effect, Milestone, conditions};
use crate::core::model::Resources;
use crate::core::snapshot::Pod;
use crate::ports::{Cloud, Cluster, PortError, PortErrorKind, chain};

use super::{Claims, Progress, Surroundings};

/// What failed in one look and is said; of more, the first.
const TROUBLES_MAX: usize = 16;

/// So often the server may fail or give no answer in one look, before nothing else is asked of it.
const FAILED_MAX: usize = 8;

/// So much may be refused of claims in one look, before nothing else is tried for claims in it. Some dozens are tried at a time, and where it
/// is a webhook of which no answer comes, each time takes half a minute.
const REFUSED_MAX: usize = 16;

/// A call that failed.
pub enum Failed {
    /// Of the API server, which all that comes after needs as well, or that refused this one object.
    Cluster(PortError),
    /// Of the cloud: what the cluster needs goes on without it.
    Cloud(PortError),
    /// It was not made, as another one like it got no answer, or was refused.
    Spared,
}

impl From<PortError> for Failed {
    fn from(error: PortError) -> Self {
        Self::Cluster(error)
    }
}

/// The ports, and what all claims of one look share. Nothing of it is held while a call is under way.
pub struct Effects<'s, K, E> {
    pub around: &'s Surroundings<'s, K, E>,
    memory: RefCell<&'s mut Claims>,
    journal: RefCell<&'s mut Journal>,
    progress: RefCell<Progress>,
    /// Pods to evict when all claims were looked at, by `namespace/name`.
    evictions: RefCell<BTreeSet<String>>,
    /// NodeClaims that nodes wait for before they go.
    pub(in crate::controller) awaited: BTreeSet<String>,
    /// The cloud did not answer when an instance was to end: each attempt may take as long as a call may.
    ends_nothing: Cell<bool>,
    nodes_now: NodesNow,
    /// Calls at which the server failed, or to which it gave no answer.
    failures: Cell<usize>,
    /// Calls for claims that somebody refused, or that came to nothing for another reason.
    refused: Cell<usize>,
}

impl<'s, K: Cluster, E: Cloud> Effects<'s, K, E> {
    /// `awaited`: NodeClaims that nodes wait for before they go.
    pub fn new(
        memory: &'s mut Claims,
        journal: &'s mut Journal,
        around: &'s Surroundings<'s, K, E>,
        awaited: BTreeSet<String>,
    ) -> Self {
        let (memory, journal) = (RefCell::new(memory), RefCell::new(journal));
        let (progress, evictions, ends_nothing) = (RefCell::default(), RefCell::default(), Cell::new(false));
        Self {
            around,
            memory,
            journal,
            progress,
            evictions,
            awaited,
            ends_nothing,
            nodes_now: NodesNow::default(),
            failures: Cell::default(),
            refused: Cell::default(),
        }
    }

    /// What came of it all.
    pub fn progress(self) -> Progress {
        self.progress.into_inner()
    }

    /// For as long as no call is made.
    pub fn memory(&self) -> RefMut<'_, &'s mut Claims> {
        self.memory.borrow_mut()
    }

    pub fn look_again(&self, moment: Option<jiff::Timestamp>) {
        self.progress.borrow_mut().look_again(moment);
    }

    /// EC2 ran out of something.
    pub fn catalog_changed(&self) {
        self.progress.borrow_mut().catalog_changed = true;
    }

    pub fn wrote(&self) {
        self.progress.borrow_mut().wrote = true;
    }

    pub fn say(&self, event: &Event) {
        self.journal.borrow_mut().say(self.around.now, event);
    }

    /// A call of the API server for one object failed. Somebody may have changed it meanwhile; where somebody forbids it, that is said and
    /// tried again, and keeps nobody from what the others need: a policy may refuse what is written to one of them for ever, or a webhook of it
    /// give no answer. `Err`: it is the server that fails.
    pub fn failed(&self, error: PortError) -> Result<(), PortError> {
        match error.kind {
            PortErrorKind::Conflict => self.overtaken(),
            PortErrorKind::NotFound | PortErrorKind::Denied | PortErrorKind::Refused | PortErrorKind::Permanent => {
                self.trouble(error);
            }
            // Of one object or another it may be that; of many it is the server.
            PortErrorKind::Internal | PortErrorKind::Temporary if self.failures.get() < FAILED_MAX => {
                self.failures.set(self.failures.get() + 1);
                self.trouble(error);
            }
            PortErrorKind::Internal | PortErrorKind::Temporary | PortErrorKind::InsufficientCapacity => {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The same, of something that was to be done for this claim: it is left alone for a while, unless somebody changed it meanwhile. A part
    /// of it may not be found though the claim is there, such as its status.
    pub fn failed_for(&self, claim: &NodeClaim, error: PortError) -> Result<(), PortError> {
        if error.kind != PortErrorKind::Conflict {
            self.refused.set(self.refused.get() + 1);
            self.memory().set_aside.refused(name_of(claim), self.around.now);
        }
        self.failed(error)
    }

    /// Whether anything is tried for the claim in this look.
    pub fn may_try(&self, claim: &NodeClaim) -> bool {
        let now = self.around.now;
        if self.memory().set_aside.is_aside(name_of(claim), now) {
            return false;
        }
        let is_full = self.refused.get() >= REFUSED_MAX;
        if is_full {
            self.look_again(now.checked_add(RETRY).ok());
        }
        !is_full
    }

    /// To be said, and tried again.
    pub fn trouble(&self, error: PortError) {
        let troubles = &mut self.progress.borrow_mut().troubles;
        if troubles.len() < TROUBLES_MAX {
            troubles.push(error);
        }
    }

    /// After a write: what was seen is no longer how it is. Where it came to nothing, what else there is to do goes by what was seen: whether
    /// one without an answer was carried out, nobody knows, and the watch says it.
    pub fn tried_to_write(&self, outcome: &Result<(), PortError>) {
        if outcome.is_ok() {
            self.wrote();
        }
    }

    /// Says where a pod should land. Where that is not allowed, kube-scheduler chooses by itself: said once, and no reason to
    /// leave a node closed. A pod of which it can not be said is left alone for a while.
    pub async fn nominate(&self, pod: &Pod, node: &str) -> Result<(), PortError> {
        match self.around.cluster.nominate(&pod.metadata.namespace, &pod.metadata.name, node).await {
            Err(error) if error.kind == PortErrorKind::Denied => {
                let is_new = !std::mem::replace(&mut self.memory().may_not_nominate, true);
                if is_new {
                    self.say(&Event::CallFailed { error: chain(&error) });
                }
                Ok(())
            }
            Err(error) => {
                if error.kind != PortErrorKind::Conflict {
                    self.memory().set_aside.refused(&place_of(&pod.key()), self.around.now);
                }
                self.failed(error)
            }
            Ok(()) => Ok(()),
        }
    }

    pub async fn write_claim(&self, claim: &NodeClaim) -> Result<(), PortError> {
        let written = self.around.cluster.update_node_claim(claim).await;
        self.tried_to_write(&written);
        written
    }

    pub async fn carry_out(&self, effect: Effect, claim: &NodeClaim, node: Option<&Node>) -> Result<(), Failed> {
        let name = name_of(claim);
        let cluster = self.around.cluster;
        match effect {
            // Together with those of other claims: see `launches.rs`.
            Effect::Launch => {}
            Effect::WriteClaim(written) => {
                if written.is_true(conditions::DRAINED) && !claim.is_true(conditions::DRAINED) {
                    self.is_drained(claim, node).await?;
                }
                self.write_claim(&written).await?;
            }
            Effect::PatchNode(patch) => {
                let Some(node) = node else { return Ok(()) };
                let written = unless_gone(cluster.patch_node(node, &patch).await);
                self.tried_to_write(&written);
                written?;
            }
            Effect::DeleteClaim(cause) => {
                let looked = afresh::is_given_up(cluster, &self.nodes_now, claim, node, cause).await;
                self.looked(claim, looked)?;
                cluster.delete_node_claim(name, uid_of(claim)).await?;
                self.wrote();
                self.say(&Event::GaveUp { node_claim: name.to_owned(), cause });
            }
            Effect::DeleteNode { node: name } => {
                let uid = node.and_then(|node| node.metadata.uid.as_deref()).unwrap_or_default();
                unless_gone(cluster.delete_node(&name, uid).await)?;
                self.wrote();
            }
            Effect::Evict { namespace, name } => {
                self.evictions.borrow_mut().insert(format!("{namespace}/{name}"));
            }
            Effect::DeletePod { namespace, name, uid, grace_seconds, own_grace_seconds } => {
                unless_gone(cluster.delete_pod(&namespace, &name, &uid, grace_seconds).await)?;
                self.wrote();
                let termination_time = claim.annotation(TERMINATION_TIMESTAMP).unwrap_or_default().to_owned();
                let pod = format!("{namespace}/{name}");
                self.say(&Event::DeletedPod { pod, termination_time, grace_seconds, own_grace_seconds });
            }
            Effect::TerminateInstance { provider_id } => {
                if self.ends_nothing.get() {
                    return Err(Failed::Spared);
                }
                // Once it was asked for, it ends: from then on it is only waited for. That the claim says so is not enough, as others write
                // its status, too.
                let was_asked_for = self.memory().ending.contains(&provider_id);
                if !was_asked_for {
                    self.is_drained(claim, node).await?;
                }
                match self.around.cloud.terminate(&provider_id).await {
                    Err(error) if error.kind == PortErrorKind::NotFound => {
                        self.memory().gone.insert(provider_id);
                        self.look_again(Some(self.around.now));
                    }
                    Err(error) => {
                        self.ends_nothing.set(error.kind == PortErrorKind::Temporary);
                        return Err(Failed::Cloud(error));
                    }
                    Ok(()) => drop(self.memory().ending.insert(provider_id)),
                }
            }
            Effect::Reached(milestone) => {
                self.progress.borrow_mut().plan_now |= milestone == Milestone::Consolidatable;
                if let Some(event) = milestone_event(milestone, claim, node) {
                    self.say(&event);
                }
            }
        }
        Ok(())
    }

    async fn is_drained(&self, claim: &NodeClaim, node: Option<&Node>) -> Result<(), PortError> {
        let looked = afresh::is_drained(self.around.cluster, &self.nodes_now, claim, node, self.around.now).await;
        self.looked(claim, looked)
    }

    /// What a fresh look contradicts is not asked for at every look: each time lists of nodes and pods are.
    fn looked(&self, claim: &NodeClaim, looked: Result<(), PortError>) -> Result<(), PortError> {
        if looked.as_ref().is_err_and(|error| error.kind == PortErrorKind::Conflict) {
            self.memory().set_aside.refused(name_of(claim), self.around.now);
        }
        looked
    }

    /// The pods that claims asked to evict since this was called last.
    pub fn take_evictions(&self) -> BTreeSet<String> {
        self.evictions.take()
    }

    /// Somebody changed the object meanwhile: what is to be done follows from how it is now. Nothing that was to come after
    /// this write is done, since it would say that the write was.
    pub fn overtaken(&self) {
        self.wrote();
        self.look_again(self.around.now.checked_add(RETRY).ok());
    }
}

/// What is left alone where the place of a pod, `namespace/name`, can not be told.
pub fn place_of(pod: &str) -> String {
    format!("place of pod {pod}")
}

/// What was to be changed is gone: that is as good.
pub fn unless_gone(result: Result<(), PortError>) -> Result<(), PortError> {
    match result {
        Err(error) if error.kind == PortErrorKind::NotFound => Ok(()),
        result => result,
    }
}

pub fn allocatable(claim: &NodeClaim) -> Resources {
    claim.status.as_ref().and_then(|status| Resources::of(&status.allocatable).ok()).unwrap_or_default()
}

fn milestone_event(milestone: Milestone, claim: &NodeClaim, node: Option<&Node>) -> Option<Event> {
    let node_claim = name_of(claim).to_owned();
    let provider_id = provider_id(claim).unwrap_or_default().to_owned();
    Some(match milestone {
        Milestone::Registered { node } => Event::RegisteredNodeClaim { node_claim, provider_id, node },
        Milestone::Initialized { node } => {
            Event::InitializedNodeClaim { node_claim, provider_id, node, allocatable: allocatable(claim) }
        }
        Milestone::Tainted { node } => Event::TaintedNode { node, node_claim },
        Milestone::NodeDeleted { node } => Event::DeletedNode { node, node_claim },
        Milestone::ClaimDeleted => {
            let known = claim.status.as_ref().and_then(|status| status.node_name.clone());
            let node = node.and_then(|node| node.metadata.name.clone()).or(known).unwrap_or_default();
            Event::DeletedNodeClaim { node_claim, provider_id, node }
        }
        Milestone::Inconsistent { fault } => Event::InconsistentNodeClaim { node_claim, fault },
        Milestone::AwaitsDetachment { node, volumes } => Event::AwaitingDetachment { node_claim, node, volumes },
        Milestone::DeadlineSet { termination_time } => {
            let known = claim.status.as_ref().and_then(|status| status.node_name.clone());
            Event::AnnotatedNodeClaim { node_claim, node: known.unwrap_or_default(), termination_time }
        }
        Milestone::Consolidatable => return None,
    })
}
