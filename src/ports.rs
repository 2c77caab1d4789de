//! The traits the controller needs, what fails behind them, and nothing else. Adapters implement them; they speak in `api` types and plain data of `core`.

pub mod notifications;
pub mod operations;
pub mod pull_requests;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::api::cloud_facts::{DeniedPermission, VcpuQuotaUse};
use crate::api::ec2_node_class::{Ami, EC2NodeClass, EC2NodeClassStatus, SecurityGroup};
use crate::api::event_reason::EventReason;
use crate::api::node_claim::NodeClaim;
use crate::api::node_plan::NodePlan;
use crate::api::source::SourceFile;
use crate::core::catalog::Catalog;
use crate::core::plan::{Alternative, EndCause, Note, Plan, Revision};
use crate::core::snapshot::{Doubts, Node, Pod, Snapshot};

/// What went wrong at a port: what was tried, whether trying again may help, and the cause.
#[derive(Debug, thiserror::Error)]
#[error("{operation}")]
pub struct PortError {
    /// What was tried and on what: `fetch main from file:///srv/definitions.git`.
    pub operation: String,
    pub kind: PortErrorKind,
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl PortError {
    /// The same for another one that it concerns, with the causes in its text.
    pub fn again(&self) -> Self {
        Self { operation: chain(self), kind: self.kind, source: None }
    }

    /// Whether it was not done, and will not be while somebody forbids it or it is as it is.
    pub fn is_refused(&self) -> bool {
        matches!(self.kind, PortErrorKind::Denied | PortErrorKind::Refused | PortErrorKind::Permanent)
    }

    /// Whether it may say nothing of what else is asked for: the rest goes on without this object. A call that gets no answer may be about
    /// an object that nobody can write, such as one whose webhook is silent; where it is the server, the next calls say so, too.
    pub fn is_of_one_object(&self) -> bool {
        self.is_refused() || matches!(self.kind, PortErrorKind::Internal | PortErrorKind::Temporary)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortErrorKind {
    /// Passing: network, throttling, a server that restarts.
    Temporary,
    NotFound,
    /// Someone else changed it first.
    Conflict,
    /// It is not among the rights of this program.
    Denied,
    /// Something that looks at each object before it is written refuses this one: a webhook, a policy, a quota. Others it may take.
    Refused,
    /// The server failed at this one request; it answers, and may do so for others.
    Internal,
    /// EC2 has none of what was asked for.
    InsufficientCapacity,
    /// Will not get better by itself.
    Permanent,
}

/// A revision that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionContent {
    pub revision: Revision,
    /// First line of the commit message; empty for a folder.
    pub title: String,
    pub files: Vec<SourceFile>,
    /// The revision before is not an ancestor: history was rewritten.
    pub rewritten: bool,
    /// This one is an ancestor of the revision before, or is taken for one: the server, or the branch, went back.
    pub is_older: bool,
    /// When it was committed, as the commit says; `None` for what is none.
    pub committed_at: Option<Timestamp>,
    /// E-mail addresses of those who wrote it: of all commits since the revision before.
    pub authors: Vec<String>,
    /// What was left out, such as symbolic links, and what else the reader of a plan should know.
    pub notes: Vec<Note>,
}

impl RevisionContent {
    /// Files of which nobody says who wrote them, when, or after which others.
    pub fn without_history(
        revision: Revision,
        title: impl Into<String>,
        files: Vec<SourceFile>,
        notes: Vec<Note>,
    ) -> Self {
        Self {
            revision,
            title: title.into(),
            files,
            rewritten: false,
            is_older: false,
            committed_at: None,
            authors: Vec::new(),
            notes,
        }
    }
}

/// A commit that somebody else should have signed. Its texts are safe to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsigned {
    pub commit: String,
    /// First line of its message.
    pub title: String,
    /// `raises the limit cpu of NodePool/general`; empty where it is about the commit itself.
    pub did: String,
    /// The rule of the operator's policy; `None`: that the head must be signed.
    pub rule: Option<String>,
    /// Who signed it, or why its signature does not count.
    pub signed: String,
    /// The groups of which somebody must have.
    pub wanted: String,
}

impl std::fmt::Display for Unsigned {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { commit, title, did, rule, signed, wanted } = self;
        let short = commit.get(..7).unwrap_or(commit);
        write!(formatter, "commit {short} ({title})")?;
        match rule {
            None => write!(formatter, " must be signed by somebody who may: {signed}"),
            Some(rule) => write!(formatter, " {did}, which rule {rule} leaves to {wanted}: {signed}"),
        }
    }
}

/// Where definitions come from.
pub trait Repository {
    /// The current head, if it is another one than was returned last.
    fn poll(&mut self) -> impl Future<Output = Result<Option<RevisionContent>, PortError>>;
    /// Waits until polling may give something new: the interval passed, or a change was seen.
    fn changed(&mut self) -> impl Future<Output = ()>;
    /// Whether it is being found out at this moment if there is another head: soon [`Repository::changed`] will return. Not of a server that
    /// has let others wait for a while.
    fn is_asking(&self) -> bool {
        false
    }
    /// Which commits since the one in force somebody else should have signed. Nothing: the revision may be used, as always where
    /// the operator asks for no signatures.
    fn unsigned(
        &mut self,
        _revision: &Revision,
        _in_force: Option<&Revision>,
    ) -> impl Future<Output = Result<Vec<Unsigned>, PortError>> {
        async { Ok(Vec::new()) }
    }
}

/// A repository whose polls may run on another thread than the controller's.
pub trait PollsOnAnyThread {
    fn look(&mut self) -> impl Future<Output = Result<Option<RevisionContent>, PortError>> + Send;
    fn wait(&mut self) -> impl Future<Output = ()> + Send;
}

/// A definition as it was seen in the cluster. What is decided of it is of this one as it was, and not of one made anew or changed since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDefinition {
    pub kind: &'static str,
    /// `namespace/name` where it lives in a namespace.
    pub name: String,
    /// Empty where it is not known.
    pub uid: String,
    /// Empty where it is not known.
    pub resource_version: String,
}

/// The Kubernetes API.
pub trait Cluster {
    /// The cluster as it is now, with everything that was written through this port. Shared, because a large one is not
    /// copied for every look: who changes it next waits until nobody holds it, or copies.
    fn observe(&self) -> impl Future<Output = Result<Arc<Snapshot>, PortError>>;
    /// The kinds for which observations wait, since they were never read, each with what keeps them from it.
    fn never_read(&self) -> Doubts {
        Doubts::default()
    }
    /// Waits until something changed since the last observation.
    fn changed(&self) -> impl Future<Output = ()>;
    /// Whether [`Cluster::apply`] of this definition would be accepted; changes nothing.
    fn rehearse(&self, object: &serde_json::Value) -> impl Future<Output = Result<(), PortError>>;
    /// Server-side apply of one definition, as JSON with apiVersion and kind; idempotent. `Conflict` when somebody else manages
    /// one of its fields; the cause names them.
    fn apply(&self, object: &serde_json::Value) -> impl Future<Output = Result<(), PortError>>;
    /// Removes a definition that left Git. `Conflict` where it is another one by now, or was changed since it was seen.
    fn prune(&self, definition: &SeenDefinition) -> impl Future<Output = Result<(), PortError>>;
    /// Writes the `status` of an object that is given as JSON with apiVersion, kind and name.
    fn write_status(&self, object: &serde_json::Value) -> impl Future<Output = Result<(), PortError>>;
    /// Merge patch of a NodePool's metadata.
    fn patch_node_pool(&self, name: &str, patch: &serde_json::Value) -> impl Future<Output = Result<(), PortError>>;
    fn create_node_claim(&self, claim: &NodeClaim) -> impl Future<Output = Result<NodeClaim, PortError>>;
    /// `Conflict` where it is of an older version than the newest that is known.
    fn update_node_claim(&self, claim: &NodeClaim) -> impl Future<Output = Result<(), PortError>>;
    /// Marks for deletion; the object goes when its finalizer does. `uid`: of the one that is meant; empty for whichever has the name.
    /// `Conflict` where another one has it.
    fn delete_node_claim(&self, name: &str, uid: &str) -> impl Future<Output = Result<(), PortError>>;
    /// Merge patch of a node's metadata or taints. It replaces lists as a whole: `Conflict` where one of them is another by now than on
    /// `node`, which the patch was made from.
    fn patch_node(&self, node: &Node, patch: &serde_json::Value) -> impl Future<Output = Result<(), PortError>>;
    /// The same of a node: its name is often its address, which another instance may have by now.
    fn delete_node(&self, name: &str, uid: &str) -> impl Future<Output = Result<(), PortError>>;
    /// The pods on a node, asked of the API server at this moment: an observation may be old without anybody knowing. One that can
    /// not be read is an error.
    fn pods_on_now(&self, node: &str) -> impl Future<Output = Result<Vec<Pod>, PortError>>;
    /// The same for all nodes.
    fn nodes_now(&self) -> impl Future<Output = Result<Vec<Node>, PortError>>;
    /// The same for all NodeClaims.
    fn node_claims_now(&self) -> impl Future<Output = Result<Vec<NodeClaim>, PortError>>;
    /// The same for one node; `None` where there is none of that name.
    fn node_now(&self, name: &str) -> impl Future<Output = Result<Option<Node>, PortError>>;
    /// The same for one NodeClaim.
    fn node_claim_now(&self, name: &str) -> impl Future<Output = Result<Option<NodeClaim>, PortError>>;
    /// The eviction API: `Conflict` when a PodDisruptionBudget forbids it now, `NotFound` when this pod is gone, whether or not
    /// another one has its name.
    fn evict(&self, namespace: &str, name: &str, uid: &str) -> impl Future<Output = Result<(), PortError>>;
    /// Deletes a pod past its budgets, when the node's termination grace period is nearly over; `NotFound` as above.
    fn delete_pod(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
        grace_seconds: u64,
    ) -> impl Future<Output = Result<(), PortError>>;
    /// Says where a pod is expected to land: a node, or a NodeClaim whose node will come. Not every cluster can note the latter.
    fn nominate(&self, namespace: &str, pod: &str, node: &str) -> impl Future<Output = Result<(), PortError>>;
    /// Writes the `NodePlan` object: before anything of the plan is applied, and whenever its status changes.
    fn record_plan(&self, plan: &NodePlan) -> impl Future<Output = Result<(), PortError>>;
    /// Removes a `NodePlan` that is history; with its UID, as [`Cluster::delete_node_claim`].
    fn forget_plan(&self, name: &str, uid: &str) -> impl Future<Output = Result<(), PortError>>;
}

/// What to tell about an object of the cluster, where people look for it: as a Kubernetes Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub namespace: Option<String>,
    pub name: String,
    pub uid: Option<String>,
    pub is_warning: bool,
    pub reason: EventReason,
    pub note: String,
}

/// What EC2 is asked for in one call: instances that are alike, one for each of the claims.
#[derive(Clone, Debug)]
pub struct LaunchRequest<'a> {
    /// Stands on the claims before the first call, and on the instances as a tag: the instances of an answer that was lost are found
    /// by it. At most 64 ASCII characters.
    pub launch_id: &'a str,
    /// Who launches.
    pub installation: &'a str,
    /// Claims without an instance. Their labels, taints and NodePool are the same.
    pub claims: Vec<&'a NodeClaim>,
    /// Provider IDs that other claims of this launch have already.
    pub assigned: Vec<&'a str>,
    /// Their EC2NodeClass; `None` where nobody knows it.
    pub class: Option<&'a EC2NodeClass>,
    /// The images that were reviewed for the class, the first that fits counts; `None`: those of its status.
    pub images: Option<&'a [Ami]>,
    /// The offerings that will do, best first.
    pub alternatives: &'a [Alternative],
    pub rules: LaunchRules,
}

/// What a launch goes by beside its claims and their class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchRules {
    /// The gate ReservedCapacity: a reservation is for those who ask for it. While it is off, EC2 takes open ones as it does by itself.
    pub reserves_capacity: bool,
    /// The prices of the alternatives are others than EC2's, as NodeOverlays say: their order counts, and not what EC2 finds cheapest.
    pub keeps_order: bool,
}

/// Why a claim got no instance.
#[derive(Debug)]
pub struct LaunchFailure {
    pub error: PortError,
    /// The offerings of which there are none for now: those of the alternatives that were tried.
    pub exhausted: Vec<Offering>,
}

/// An instance type in a zone, sold as `on-demand`, `spot` or `reserved`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offering {
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
}

impl From<&Alternative> for Offering {
    fn from(alternative: &Alternative) -> Self {
        let Alternative { instance_type, zone, capacity_type, price_per_hour: _ } = alternative.clone();
        Self { instance_type, zone, capacity_type }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    pub provider_id: String,
    /// That of the [`LaunchRequest`]; empty where its tags do not say.
    pub launch_id: String,
    pub instance_type: String,
    pub zone: String,
    pub capacity_type: String,
    pub image_id: String,
    /// `None` where the cloud does not say.
    pub subnet_id: Option<String>,
    /// Those of its primary interface; empty where the cloud does not say.
    pub security_groups: Vec<SecurityGroup>,
    /// The capacity reservation that it was launched into on purpose, where the cloud says.
    pub reservation_id: Option<String>,
    pub launched_at: Timestamp,
    /// What its tags say of whose it is; empty where they do not.
    pub node_claim: String,
    pub node_pool: String,
    pub node_class: String,
    pub installation: String,
}

/// That an instance ended, or is about to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceEnd {
    pub provider_id: String,
    pub cause: EndCause,
    /// The cloud's own word, such as `Client.InvalidKMSKey.InvalidState`; empty where it gave none.
    pub code: String,
    /// What the cloud said, its word among it, and what to do, for people.
    pub text: String,
}

/// What EC2 answers about an EC2NodeClass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassFacts {
    /// In which its nodes can be launched, sorted.
    pub zones: Vec<String>,
    /// What its selectors found, to stand in the class's status; the conditions are those below. `None` where the status is what is known.
    pub found: Option<EC2NodeClassStatus>,
    /// What was found and what was not, by condition of the class. `Ready` follows from all of them.
    pub conditions: Vec<ClassCondition>,
    /// Addresses that are left, by subnet ID; nothing for one of which that is not known.
    pub free_addresses: BTreeMap<String, u64>,
    /// By id, when the images were made, as far as that is known.
    pub images_created: BTreeMap<String, Timestamp>,
}

/// A condition of an EC2NodeClass, such as `SubnetsReady`. Source: the reference, section 1.3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCondition {
    pub type_: String,
    /// `None` where it could not be found out: then what is known stays.
    pub status: Option<bool>,
    pub reason: String,
    pub message: String,
}

/// A message of the queue to which EventBridge sends what EC2 announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// By which it is taken off the queue.
    pub receipt: String,
    /// The event as JSON, if it is one.
    pub body: String,
    /// When it came into the queue; `None` where nobody says.
    pub sent_at: Option<Timestamp>,
}

/// EC2.
pub trait Cloud {
    /// What is sold now; the same one, not only an equal one, while nothing changed.
    fn catalog(&self) -> impl Future<Output = Result<Arc<Catalog>, PortError>>;
    /// What the class's selectors find, and what is wrong with it. What could not be found out is said in the answer.
    fn describe(&self, class: &EC2NodeClass) -> impl Future<Output = Result<ClassFacts, PortError>>;
    /// Asks for instances: one answer for each claim, in their order. Asked again for the same claims, gives the same instances.
    fn launch(&self, request: &LaunchRequest<'_>) -> impl Future<Output = Vec<Result<Instance, LaunchFailure>>>;
    /// Idempotent: an instance that is gone is `NotFound`.
    fn terminate(&self, provider_id: &str) -> impl Future<Output = Result<(), PortError>>;
    fn instances(&self) -> impl Future<Output = Result<Vec<Instance>, PortError>>;
    /// Which of these instances have ended, and why. One that runs, or that is not known, is not among them.
    fn ended(&self, provider_ids: &[&str]) -> impl Future<Output = Result<Vec<InstanceEnd>, PortError>>;
    /// What was announced and not acted on yet, some at a time; returns at once. A message may come more than once.
    fn messages(&self) -> impl Future<Output = Result<Vec<Message>, PortError>>;
    /// The same of what nobody announces: instances whose checks fail, and what is scheduled for them. Apart, as what is announced can not wait
    /// for an answer to this.
    fn failing(&self) -> impl Future<Output = Result<Vec<Message>, PortError>> {
        async { Ok(Vec::new()) }
    }
    /// What a plan should say of the cloud itself: what could not be asked and why, and what is not as it is now. The same for as long as the
    /// trouble is.
    fn notes(&self) -> impl Future<Output = Vec<Note>> {
        async { Vec::new() }
    }
    /// The account's quotas for instances, and what runs under them; of one that could not be asked nothing, which the notes say.
    fn vcpu_quotas(&self) -> impl Future<Output = Vec<VcpuQuotaUse>> {
        async { Vec::new() }
    }
    /// Actions that were not allowed when they were tried last.
    fn denied(&self) -> impl Future<Output = Vec<DeniedPermission>> {
        async { Vec::new() }
    }
    /// Takes a message that was acted on off the queue; idempotent.
    fn forget_message(&self, receipt: &str) -> impl Future<Output = Result<(), PortError>>;
    /// Waits until an answer came that was not waited for: what was asked in vain may be asked again.
    fn changed(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }
    /// Whether such answers are still to come: what failed or is old may be known soon.
    fn is_asking(&self) -> bool {
        false
    }
    /// Whether an instance may come of a launch of this claim that nobody has heard of yet: the claim stays until that is known.
    fn is_launching(&self, _claim: &NodeClaim) -> bool {
        false
    }
}

/// Where people review.
pub trait Forge {
    /// Posts or replaces the plan of a revision. `markdown`: writes its text, which takes a while for a large one.
    fn post_plan(&self, plan: &Plan, markdown: impl Fn() -> String) -> impl Future<Output = Result<(), PortError>>;
    /// Posts that a revision can not be used: in one line of plain text, and with the findings.
    fn post_failure(
        &self,
        revision: &Revision,
        headline: &str,
        markdown: &str,
    ) -> impl Future<Output = Result<(), PortError>>;
}

pub trait Clock {
    fn now(&self) -> Timestamp;
}

/// A clock that goes back by less makes nobody wait for long, and one that goes by answers that are late does so now and then.
const SET_BACK_MIN: SignedDuration = SignedDuration::from_secs(10);

/// Whether what was noted at a moment was noted by a clock that was set back since.
pub fn is_to_come(moment: Timestamp, now: Timestamp) -> bool {
    moment.duration_since(now) > SET_BACK_MIN
}

/// The moment, or now where it was noted by a clock that was set back since: who waits from then on waits no longer than was meant.
pub fn not_to_come(moment: Timestamp, now: Timestamp) -> Timestamp {
    if is_to_come(moment, now) { now } else { moment }
}

/// The Node objects of a cluster whose cloud has no kubelets: what a kubelet and a cloud controller would write.
pub trait NodeObjects {
    /// Every NodeClaim and every class: what the user data of an instance would say.
    fn claims_and_classes(&self) -> impl Future<Output = Result<(Vec<NodeClaim>, Vec<EC2NodeClass>), PortError>>;
    /// A node registers. One that is there already is as good.
    fn register(&self, node: &Node) -> impl Future<Output = Result<(), PortError>>;
    /// The instance behind a node is gone, and its object goes, too. One that is gone already is as good.
    fn remove(&self, name: &str) -> impl Future<Output = Result<(), PortError>>;
}

/// An error and its causes in one line. Some libraries write the cause into the text of an error as well: it is said once.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let own = error.to_string();
        if !text.contains(&own) {
            text.push_str(": ");
            text.push_str(&own);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{text}")]
        struct Within {
            text: &'static str,
            source: Error,
        }
        let within = |text| chain(&Within { text, source: Error::other("connection refused") });
        assert_eq!(within("connect"), "connect: connection refused");
        assert_eq!(within("connect: connection refused"), "connect: connection refused");
    }
}
