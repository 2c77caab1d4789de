//! A world, a repository and a controller, with ports that can fail at a chosen call.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cutlist::adapters::aws::beside::Beside;
use cutlist::adapters::embedded::{
    EmbeddedClock, EmbeddedCloud, EmbeddedCluster, EmbeddedForge, EmbeddedWorld, WorldSettings,
};
use cutlist::api::approval_rules::ApprovalRules;
use cutlist::api::cloud_facts::VcpuQuotaUse;
use cutlist::api::ec2_node_class::EC2NodeClass;
use cutlist::api::keys;
use cutlist::api::node_claim::NodeClaim;
use cutlist::api::node_plan::NodePlan;
use cutlist::api::source::SourceFile;
use cutlist::controller::events::Event;
use cutlist::controller::{Controller, Journal, Mode, Options, Ports, Shutdown};
use cutlist::core::catalog::Catalog;
use cutlist::core::inputs::Inputs;
use cutlist::core::plan::{Plan, Revision};
use cutlist::core::planner::decide;
use cutlist::core::snapshot::{Doubts, Pod, Snapshot};
use cutlist::definitions::GivenVariables;
use cutlist::ports::{
    ClassFacts, Clock, Cloud, Cluster, Instance, InstanceEnd, LaunchFailure, LaunchRequest, Message, PortError,
    PortErrorKind, Repository, RevisionContent, SeenDefinition, Unsigned,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

pub const POOL: &str = include_str!("pool.yaml");
pub const SETTINGS: &str = include_str!("settings.yaml");

/// Revisions that are waiting to be seen; clones share them.
#[derive(Clone, Default)]
pub struct Script {
    coming: Rc<RefCell<VecDeque<Result<RevisionContent, PortErrorKind>>>>,
    last: Rc<RefCell<Option<RevisionContent>>>,
    authors: Rc<RefCell<Vec<String>>>,
    is_older: Rc<Cell<bool>>,
    is_asking: Rc<Cell<bool>>,
    unsigned: Rc<RefCell<Vec<Unsigned>>>,
    is_due: Rc<Cell<bool>>,
    can_not_judge: Rc<Cell<bool>>,
}

impl Script {
    /// A commit with these files.
    pub fn commit(&self, id: &str, files: &[(&str, &str)]) {
        self.commit_with(id, files, Vec::new());
    }

    /// The same, with files that are none.
    pub fn commit_with(&self, id: &str, files: &[(&str, &str)], more: Vec<SourceFile>) {
        let files = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).chain(more);
        self.coming.borrow_mut().push_back(Ok(RevisionContent {
            revision: Revision { id: id.to_owned(), reference: "main".to_owned() },
            title: format!("commit {id}"),
            files: files.collect(),
            rewritten: false,
            is_older: self.is_older.get(),
            committed_at: None,
            authors: self.authors.borrow().clone(),
            notes: Vec::new(),
        }));
    }

    /// Who writes the commits that come.
    pub fn authors(&self, authors: &[&str]) {
        *self.authors.borrow_mut() = authors.iter().map(|author| (*author).to_owned()).collect();
    }

    /// Whether the commits that come are in the history of those before.
    pub fn older(&self, older: bool) {
        self.is_older.set(older);
    }

    /// Which commits of the revisions that come somebody else should have signed.
    pub fn unsigned(&self, unsigned: &[Unsigned]) {
        *self.unsigned.borrow_mut() = unsigned.to_vec();
    }

    /// Whether nobody can tell who signed what comes.
    pub fn can_not_judge(&self, can_not: bool) {
        self.can_not_judge.set(can_not);
    }

    /// The repository is asked once more.
    pub fn wake(&self) {
        self.is_due.set(true);
    }

    /// Whether a fetch is under way.
    pub fn asks(&self, asks: bool) {
        self.is_asking.set(asks);
    }

    /// The next poll fails.
    pub fn fail(&self) {
        self.coming.borrow_mut().push_back(Err(PortErrorKind::Temporary));
    }

    /// What a new controller sees first: the head.
    pub fn reread(&self) {
        if let Some(last) = self.last.borrow().clone() {
            self.coming.borrow_mut().push_front(Ok(last));
        }
    }
}

impl Repository for Script {
    async fn poll(&mut self) -> Result<Option<RevisionContent>, PortError> {
        self.is_due.set(false);
        match self.coming.borrow_mut().pop_front() {
            None => Ok(None),
            Some(Ok(content)) => {
                *self.last.borrow_mut() = Some(content.clone());
                Ok(Some(content))
            }
            Some(Err(kind)) => Err(PortError { operation: "fetch main".to_owned(), kind, source: None }),
        }
    }

    async fn changed(&mut self) {
        if self.coming.borrow().is_empty() && !self.is_due.get() {
            std::future::pending::<()>().await;
        }
    }

    async fn unsigned(&mut self, revision: &Revision, in_force: Option<&Revision>) -> Result<Vec<Unsigned>, PortError> {
        if self.can_not_judge.get() {
            let operation = "look who signed main".to_owned();
            return Err(PortError { operation, kind: PortErrorKind::Temporary, source: None });
        }
        let is_same = in_force.is_some_and(|in_force| in_force.id == revision.id);
        Ok(if is_same { Vec::new() } else { self.unsigned.borrow().clone() })
    }

    fn is_asking(&self) -> bool {
        self.is_asking.get() || !self.coming.borrow().is_empty()
    }
}

/// What happens at the chosen call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process ends before it: neither this call nor any later one is made. That is the same as an end after the call
    /// before it, since all that a process remembers is gone.
    Crash,
    /// It takes effect, its answer is lost, and the process goes on.
    LostAnswer,
}

/// Counts the calls that change something and spoils one of them.
#[derive(Clone, Default)]
pub struct Fuse {
    calls: Rc<Cell<usize>>,
    blows_at: Rc<Cell<Option<(usize, Fault)>>>,
    crashed: Rc<Cell<bool>>,
    overtaken: Rc<RefCell<Vec<String>>>,
    frozen: Rc<Cell<Option<PortErrorKind>>>,
    refused: Rc<Cell<usize>>,
    always_changed: Rc<Cell<bool>>,
    lists: Rc<Cell<usize>>,
    /// Names of objects to which nothing is written, and why: a webhook of somebody refuses it, or it is not among the rights.
    forbidden: Rc<RefCell<BTreeMap<String, PortErrorKind>>>,
    /// How long it takes to refuse something for a NodeClaim.
    refusal_takes: Rc<Cell<Duration>>,
    between: Rc<RefCell<Option<(usize, Happening)>>>,
    never_read: Rc<RefCell<Doubts>>,
    /// Actions of the cloud whose calls are taken and not answered.
    hung: Rc<RefCell<BTreeSet<&'static str>>>,
    lost_lease: Rc<Cell<bool>>,
}

/// So many seconds a call waits for its answer before it is given up.
const CALL_SECONDS: u32 = 75;

/// What happens between two calls.
type Happening = Box<dyn FnOnce()>;

impl Fuse {
    /// Something happens before the call of this number, between it and the one before.
    pub fn before(&self, call: usize, happens: impl FnOnce() + 'static) {
        *self.between.borrow_mut() = Some((call, Box::new(happens)));
    }

    /// Whether that is still to come.
    pub fn is_to_come(&self) -> bool {
        self.between.borrow().is_some()
    }

    pub fn arm(&self, call: usize, fault: Fault) {
        self.blows_at.set(Some((call, fault)));
    }

    pub fn disarm(&self) {
        self.blows_at.set(None);
        self.crashed.set(false);
    }

    /// Kinds that were never read: without them nothing is observed.
    pub fn never_read(&self, kinds: Doubts) {
        *self.never_read.borrow_mut() = kinds;
    }

    /// Somebody else changes the node first, once: its next patch is refused.
    pub fn overtake(&self, node: &str) {
        self.overtaken.borrow_mut().push(node.to_owned());
    }

    /// Whether the cluster says from now on that something changed, whenever it is asked.
    pub fn always_changed(&self, always: bool) {
        self.always_changed.set(always);
    }

    /// Whether definitions are refused from now on, as by a webhook.
    pub fn freeze_definitions(&self, frozen: bool) {
        self.frozen.set(frozen.then_some(PortErrorKind::Refused));
    }

    /// The same, for another reason.
    pub fn freeze_definitions_as(&self, kind: PortErrorKind) {
        self.frozen.set(Some(kind));
    }

    /// How often one was.
    pub fn refused(&self) -> usize {
        self.refused.get()
    }

    fn refuses(&self, operation: &str) -> Result<(), PortError> {
        let Some(kind) = self.frozen.get() else { return Ok(()) };
        self.refused.set(self.refused.get() + 1);
        Err(PortError { operation: operation.to_owned(), kind, source: None })
    }

    /// From now on a webhook refuses what is written to objects of this name.
    pub fn forbid(&self, name: &str) {
        self.forbid_as(name, PortErrorKind::Refused);
    }

    /// The same, where it is for another reason.
    pub fn forbid_as(&self, name: &str, kind: PortErrorKind) {
        self.forbidden.borrow_mut().insert(name.to_owned(), kind);
    }

    /// A webhook of which no answer comes: what is refused for NodeClaims is so after this time.
    pub fn refuse_after(&self, takes: Duration) {
        self.refusal_takes.set(takes);
    }

    pub fn allow_all(&self) {
        self.forbidden.borrow_mut().clear();
    }

    /// The same of an action of the cloud, which gives no answer.
    fn is_silent(&self, action: &str) -> Result<(), PortError> {
        let kind = PortErrorKind::Temporary;
        self.is_allowed(action).map_err(|_| PortError {
            operation: format!("no answer to {action}"),
            kind,
            source: None,
        })
    }

    /// From now on calls of these actions have no answer, for as long as a call is waited for. `CreateFleet answered` hangs once it was done.
    pub fn hang(&self, actions: &[&'static str]) {
        *self.hung.borrow_mut() = actions.iter().copied().collect();
    }

    /// Whether this process leads no longer.
    pub fn lose_lease(&self, lost: bool) {
        self.lost_lease.set(lost);
    }

    /// Waits for the answer to an action.
    async fn answers(&self, action: &str) -> Result<(), PortError> {
        for _ in 0..CALL_SECONDS {
            if !self.hung.borrow().contains(action) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let operation = format!("no answer to {action}");
        Err(PortError { operation, kind: PortErrorKind::Temporary, source: None })
    }

    fn is_allowed(&self, name: &str) -> Result<(), PortError> {
        let Some(kind) = self.forbidden.borrow().get(name).copied() else { return Ok(()) };
        self.refused.set(self.refused.get() + 1);
        let source = Some("admission webhook \"policy.example.com\" denied the request".into());
        Err(PortError { operation: format!("write {name}"), kind, source })
    }

    async fn is_allowed_in_time(&self, name: &str) -> Result<(), PortError> {
        let answer = self.is_allowed(name);
        if answer.is_err() {
            tokio::time::sleep(self.refusal_takes.get()).await;
        }
        answer
    }

    /// Whether that patch is still to come.
    pub fn overtakes(&self) -> bool {
        !self.overtaken.borrow().is_empty()
    }

    fn is_overtaken(&self, node: &str) -> bool {
        let mut overtaken = self.overtaken.borrow_mut();
        let place = overtaken.iter().position(|name| name == node);
        place.is_some_and(|place| overtaken.remove(place) == node)
    }

    /// How often all nodes were asked for.
    pub fn lists(&self) -> usize {
        self.lists.get()
    }

    pub fn calls(&self) -> usize {
        self.calls.get()
    }

    pub fn is_crashed(&self) -> bool {
        self.crashed.get()
    }

    async fn call<T>(&self, action: impl Future<Output = Result<T, PortError>>) -> Result<T, PortError> {
        let number = self.calls.get();
        self.calls.set(number + 1);
        let happens = self.between.borrow_mut().take_if(|(call, _)| *call <= number);
        if let Some((_, happens)) = happens {
            happens();
        }
        let failure = || PortError { operation: "crash".to_owned(), kind: PortErrorKind::Temporary, source: None };
        if self.crashed.get() {
            return Err(failure());
        }
        match self.blows_at.get().filter(|(call, _)| *call == number) {
            None => action.await,
            Some((_, Fault::Crash)) => {
                self.crashed.set(true);
                Err(failure())
            }
            Some((_, Fault::LostAnswer)) => {
                action.await?;
                Err(failure())
            }
        }
    }
}

#[derive(Clone)]
pub struct FusedCluster(pub EmbeddedCluster, pub Fuse);

impl Cluster for FusedCluster {
    async fn observe(&self) -> Result<Arc<Snapshot>, PortError> {
        if !self.1.never_read.borrow().is_empty() {
            let operation = "list what is in the cluster".to_owned();
            return Err(PortError { operation, kind: PortErrorKind::Temporary, source: None });
        }
        self.0.observe().await
    }
    fn never_read(&self) -> Doubts {
        self.1.never_read.borrow().clone()
    }
    async fn changed(&self) {
        if !self.1.never_read.borrow().is_empty() {
            std::future::pending::<()>().await;
        }
        if !self.1.always_changed.get() {
            self.0.changed().await;
        }
    }
    async fn apply(&self, object: &Value) -> Result<(), PortError> {
        self.1.refuses("apply")?;
        self.1.call(self.0.apply(object)).await
    }
    async fn prune(&self, definition: &SeenDefinition) -> Result<(), PortError> {
        self.1.refuses("prune")?;
        self.1.is_allowed(&definition.name)?;
        self.1.call(self.0.prune(definition)).await
    }
    async fn patch_node_pool(&self, name: &str, patch: &Value) -> Result<(), PortError> {
        self.1.is_allowed(name)?;
        self.1.call(self.0.patch_node_pool(name, patch)).await
    }
    async fn create_node_claim(&self, claim: &NodeClaim) -> Result<NodeClaim, PortError> {
        let labels = claim.metadata.labels.as_ref();
        let pool = labels.and_then(|labels| labels.get(keys::NODE_POOL)).map_or("", String::as_str);
        self.1.is_allowed_in_time(&format!("a claim of {pool}")).await?;
        self.1.call(self.0.create_node_claim(claim)).await
    }
    async fn update_node_claim(&self, claim: &NodeClaim) -> Result<(), PortError> {
        self.1.is_allowed_in_time(claim.metadata.name.as_deref().unwrap_or_default()).await?;
        self.1.call(self.0.update_node_claim(claim)).await
    }
    async fn delete_node_claim(&self, name: &str, uid: &str) -> Result<(), PortError> {
        self.1.is_allowed(name)?;
        self.1.call(self.0.delete_node_claim(name, uid)).await
    }
    async fn patch_node(&self, node: &Node, patch: &Value) -> Result<(), PortError> {
        let name = node.metadata.name.as_deref().unwrap();
        self.1.is_allowed(name)?;
        if self.1.is_overtaken(name) {
            return Err(PortError {
                operation: format!("patch node {name}"),
                kind: PortErrorKind::Conflict,
                source: None,
            });
        }
        self.1.call(self.0.patch_node(node, patch)).await
    }
    async fn delete_node(&self, name: &str, uid: &str) -> Result<(), PortError> {
        self.1.is_allowed(name)?;
        self.1.call(self.0.delete_node(name, uid)).await
    }
    async fn pods_on_now(&self, node: &str) -> Result<Vec<Pod>, PortError> {
        self.0.pods_on_now(node).await
    }
    async fn nodes_now(&self) -> Result<Vec<Node>, PortError> {
        self.1.lists.set(self.1.lists.get() + 1);
        self.0.nodes_now().await
    }
    async fn node_claims_now(&self) -> Result<Vec<NodeClaim>, PortError> {
        self.0.node_claims_now().await
    }
    async fn node_now(&self, name: &str) -> Result<Option<Node>, PortError> {
        self.0.node_now(name).await
    }
    async fn node_claim_now(&self, name: &str) -> Result<Option<NodeClaim>, PortError> {
        self.0.node_claim_now(name).await
    }
    async fn evict(&self, namespace: &str, name: &str, uid: &str) -> Result<(), PortError> {
        self.1.is_allowed(name)?;
        self.1.call(self.0.evict(namespace, name, uid)).await
    }
    async fn delete_pod(&self, namespace: &str, name: &str, uid: &str, grace_seconds: u64) -> Result<(), PortError> {
        self.1.is_allowed(name)?;
        self.1.call(self.0.delete_pod(namespace, name, uid, grace_seconds)).await
    }
    async fn nominate(&self, namespace: &str, pod: &str, node: &str) -> Result<(), PortError> {
        self.1.is_allowed(pod)?;
        self.1.call(self.0.nominate(namespace, pod, node)).await
    }
    async fn rehearse(&self, object: &Value) -> Result<(), PortError> {
        self.0.rehearse(object).await
    }
    async fn write_status(&self, object: &Value) -> Result<(), PortError> {
        self.1.is_allowed(object["metadata"]["name"].as_str().unwrap_or_default())?;
        self.1.call(self.0.write_status(object)).await
    }
    async fn forget_plan(&self, name: &str, uid: &str) -> Result<(), PortError> {
        self.1.is_allowed("nodeplans")?;
        self.1.call(self.0.forget_plan(name, uid)).await
    }
    async fn record_plan(&self, plan: &NodePlan) -> Result<(), PortError> {
        self.1.is_allowed("record_plan")?;
        self.1.call(self.0.record_plan(plan)).await
    }
}

/// Also remembers every launch.
#[derive(Clone)]
pub struct FusedCloud(pub EmbeddedCloud, pub Fuse, pub Rc<RefCell<Launches>>);

/// What was asked of the cloud.
#[derive(Default)]
pub struct Launches {
    pub calls: usize,
    /// How often it was asked which instances there are.
    pub lists: usize,
    /// Provider IDs by UID of the claim.
    pub by_claim: BTreeMap<String, Vec<String>>,
}

impl Cloud for FusedCloud {
    async fn catalog(&self) -> Result<Arc<Catalog>, PortError> {
        let _none = self.1.answers("DescribeInstanceTypes").await;
        self.0.catalog().await
    }
    async fn describe(&self, class: &EC2NodeClass) -> Result<ClassFacts, PortError> {
        let _none = self.1.answers("DescribeSubnets").await;
        self.0.describe(class).await
    }
    async fn vcpu_quotas(&self) -> Vec<VcpuQuotaUse> {
        let _none = self.1.answers("GetServiceQuota").await;
        self.0.vcpu_quotas().await
    }
    async fn failing(&self) -> Result<Vec<Message>, PortError> {
        self.1.answers("DescribeInstanceStatus").await?;
        self.0.failing().await
    }
    async fn launch(&self, request: &LaunchRequest<'_>) -> Vec<Result<Instance, LaunchFailure>> {
        let launch = async {
            let answers = self.0.launch(request).await;
            let mut launches = self.2.borrow_mut();
            launches.calls += 1;
            for (claim, instance) in request.claims.iter().zip(&answers) {
                let Ok(instance) = instance else { continue };
                let ids = launches.by_claim.entry(claim.metadata.uid.clone().unwrap()).or_default();
                if !ids.contains(&instance.provider_id) {
                    ids.push(instance.provider_id.clone());
                }
            }
            Ok(answers)
        };
        let failed = |error: &PortError| LaunchFailure { error: error.again(), exhausted: Vec::new() };
        let done = async {
            self.1.is_silent("CreateFleet")?;
            self.1.answers("CreateFleet").await?;
            let answers = self.1.call(launch).await?;
            self.1.answers("CreateFleet answered").await?;
            Ok::<_, PortError>(answers)
        };
        match done.await {
            Ok(answers) => answers,
            Err(error) => request.claims.iter().map(|_| Err(failed(&error))).collect(),
        }
    }
    async fn terminate(&self, provider_id: &str) -> Result<(), PortError> {
        self.1.is_silent("TerminateInstances")?;
        self.1.answers("TerminateInstances").await?;
        self.1.call(self.0.terminate(provider_id)).await
    }
    async fn instances(&self) -> Result<Vec<Instance>, PortError> {
        self.2.borrow_mut().lists += 1;
        self.1.answers("DescribeInstances").await?;
        self.0.instances().await
    }

    async fn ended(&self, provider_ids: &[&str]) -> Result<Vec<InstanceEnd>, PortError> {
        self.1.answers("DescribeInstances").await?;
        self.0.ended(provider_ids).await
    }

    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        self.1.answers("ReceiveMessage").await?;
        self.0.messages().await
    }

    async fn forget_message(&self, receipt: &str) -> Result<(), PortError> {
        self.1.call(self.0.forget_message(receipt)).await
    }
}

/// The clock of the controller's machine, which may be wrong.
#[derive(Clone)]
pub struct WrongClock(EmbeddedClock, Rc<Cell<SignedDuration>>);

impl WrongClock {
    /// It is set ahead by so much, compared with the cluster's; back, where that is negative.
    pub fn set(&self, ahead: SignedDuration) {
        self.1.set(ahead);
    }
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        self.0.now().saturating_add(self.1.get()).unwrap()
    }
}

/// One on this cloud.
pub type On<E> = Controller<Script, FusedCluster, E, EmbeddedForge, WrongClock>;
pub type TestController = On<FusedCloud>;

pub struct Stage {
    pub world: EmbeddedWorld,
    pub script: Script,
    pub forge: EmbeddedForge,
    pub fuse: Fuse,
    pub clock: WrongClock,
    pub launches: Rc<RefCell<Launches>>,
    pub events: Rc<RefCell<Vec<Event>>>,
    pub controller: TestController,
    floor: ApprovalRules,
}

/// A part of what is sold in us-east-1, so that a plan takes milliseconds and hundreds of crashes can be played.
fn catalog() -> Catalog {
    const FAMILIES: [&str; 6] = ["c6a.", "c6i.", "c6g.", "m6i.", "m7g.", "r6i."];
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    let part = CATALOG.get_or_init(|| {
        let mut catalog = Catalog::built_in("us-east-1").unwrap();
        catalog.instance_types.retain(|it| {
            let is_small = ["xlarge", "2xlarge", "4xlarge"].iter().any(|size| it.name.ends_with(&format!(".{size}")));
            is_small && FAMILIES.iter().any(|family| it.name.starts_with(family))
        });
        assert_eq!(catalog.instance_types.len(), 18);
        catalog
    });
    part.clone()
}

impl Stage {
    /// A cluster of one Deployment `default/web` without pods, and a repository with one pool.
    pub fn new(settings: &str) -> Self {
        Self::with_floor(settings, ApprovalRules::default())
    }

    /// The same, where the operator asks for approvals.
    pub fn with_floor(settings: &str, floor: ApprovalRules) -> Self {
        let world = EmbeddedWorld::new(WorldSettings::new(0, "2026-11-20T09:00:00Z".parse().unwrap()), catalog());
        world.with(|world| world.load(without_pods(&["web"])));
        let script = Script::default();
        script.commit("revision-1", &[("pool.yaml", POOL), ("cutlist.yaml", settings)]);
        let (forge, fuse) = (EmbeddedForge::default(), Fuse::default());
        let (launches, events) = (Rc::default(), Rc::default());
        let clock = WrongClock(world.clock(), Rc::default());
        let ports = ports(&world, &script, &forge, &fuse, &clock, &launches);
        let controller = controller((decide, &floor), ports, &events);
        Self { world, script, forge, fuse, clock, launches, events, controller, floor }
    }

    pub fn scale(&self, replicas: u32) {
        assert!(self.world.with(|world| world.scale("default/web", replicas)));
    }

    /// One that plays this pool, with four nodes and a pod on each, which never share one; nothing has been said yet.
    pub async fn of_four_nodes(pool: &str) -> Self {
        let mut stage = Self::new(SETTINGS);
        stage.script.commit("begin", &[("pool.yaml", pool), ("cutlist.yaml", SETTINGS)]);
        stage.world.with(|world| world.load(apart(4)));
        assert!(stage.settle().await);
        assert_eq!(stage.snapshot().nodes.len(), 4);
        stage.events.borrow_mut().clear();
        stage
    }

    /// Plans that asked for an approval, oldest first.
    pub fn waiting(&self) -> Vec<String> {
        let events = self.events.borrow();
        let waiting = events.iter().filter_map(|event| match event {
            Event::WaitsForApproval { plan_id, .. } => Some(plan_id.clone()),
            _ => None,
        });
        waiting.collect()
    }

    /// The process ends and another one starts.
    pub fn restart(&mut self) {
        self.fuse.disarm();
        self.script.reread();
        self.restart_as(decide);
    }

    /// The same, where the repository shows it what comes next, and not what was seen last.
    pub fn restart_at_what_comes(&mut self) {
        self.fuse.disarm();
        self.restart_as(decide);
    }

    /// The same, with another planner from now on.
    pub fn restart_with(&mut self, planner: fn(&Inputs<'_>) -> Plan) {
        self.script.reread();
        self.restart_as(planner);
    }

    fn restart_as(&mut self, planner: fn(&Inputs<'_>) -> Plan) {
        let ports = ports(&self.world, &self.script, &self.forge, &self.fuse, &self.clock, &self.launches);
        self.controller = controller((planner, &self.floor), ports, &self.events);
    }

    /// Another process, which does not wait for the cloud; and what carries out its calls.
    pub fn beside(&self) -> (On<Beside<FusedCloud>>, impl Future<Output = ()> + use<>) {
        self.script.reread();
        let ports = ports(&self.world, &self.script, &self.forge, &self.fuse, &self.clock, &self.launches);
        let Ports { repository, cluster, cloud, forge, clock } = ports;
        let lost_lease = self.fuse.lost_lease.clone();
        let (cloud, calls) = Beside::start(cloud, Arc::new(catalog()), move || !lost_lease.get());
        let ports = Ports { repository, cluster, cloud, forge, clock };
        (controller((decide, &self.floor), ports, &self.events), calls)
    }

    /// Runs until nothing more happens; `false` when the process crashed first or it never settles.
    pub async fn settle(&mut self) -> bool {
        self.settle_watched(|_| ()).await
    }

    /// The same, with a look at the stage after each pass.
    pub async fn settle_watched(&mut self, mut look: impl FnMut(&Self)) -> bool {
        for _ in 0..5000 {
            Box::pin(self.controller.pass()).await;
            if self.fuse.is_crashed() {
                return false;
            }
            look(self);
            let nothing_to_read = self.script.coming.borrow().is_empty();
            if self.controller.is_settled() && nothing_to_read && self.world.with(|world| world.is_still()) {
                return true;
            }
            self.controller.wait().await;
        }
        false
    }

    /// Runs for so many seconds.
    pub async fn run_for(&mut self, seconds: u64) {
        let pause = tokio::time::sleep(Duration::from_secs(seconds));
        tokio::pin!(pause);
        loop {
            Box::pin(self.controller.pass()).await;
            tokio::select! {
                () = &mut pause => return,
                () = self.controller.wait() => {}
            }
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        self.world.with(|world| world.snapshot())
    }

    pub fn count(&self, is_it: impl Fn(&Event) -> bool) -> usize {
        self.events.borrow().iter().filter(|event| is_it(event)).count()
    }

    /// Instances, claims and nodes belong together one by one, and no claim launched twice.
    pub fn assert_consistent(&self, context: &str) {
        let snapshot = self.snapshot();
        let instances = self.world.with(|world| world.instances());
        let of_claim = |claim: &NodeClaim| claim.status.as_ref().and_then(|status| status.provider_id.clone());
        let claims: Vec<_> = snapshot.node_claims.iter().filter_map(of_claim).collect();
        for instance in &instances {
            assert!(claims.contains(&instance.provider_id), "{context}: {instance:?} leaked");
        }
        assert_eq!(instances.len(), claims.len(), "{context}");
        assert_eq!(snapshot.nodes.len(), claims.len(), "{context}");
        for (claim, ids) in &self.launches.borrow().by_claim {
            assert_eq!(ids.len(), 1, "{context}: {claim} launched {ids:?}");
        }
    }
}

type TestPorts = Ports<Script, FusedCluster, FusedCloud, EmbeddedForge, WrongClock>;

fn ports(
    world: &EmbeddedWorld,
    script: &Script,
    forge: &EmbeddedForge,
    fuse: &Fuse,
    clock: &WrongClock,
    launches: &Rc<RefCell<Launches>>,
) -> TestPorts {
    Ports {
        repository: script.clone(),
        cluster: FusedCluster(world.cluster(), fuse.clone()),
        cloud: FusedCloud(world.cloud(), fuse.clone(), launches.clone()),
        forge: forge.clone(),
        clock: clock.clone(),
    }
}

fn controller<E: Cloud>(
    (planner, floor): (fn(&Inputs<'_>) -> Plan, &ApprovalRules),
    ports: Ports<Script, FusedCluster, E, EmbeddedForge, WrongClock>,
    events: &Rc<RefCell<Vec<Event>>>,
) -> On<E> {
    let options = Options {
        mode: Mode::Enforce,
        applies_definitions: true,
        lease_transitions: None,
        installation: "test".to_owned(),
        cluster_name: Some("test".to_owned()),
        region: Some("us-east-1".to_owned()),
        approval_floor: floor.clone(),
        allows_older_revisions: false,
        read: Box::new(|files| cutlist::definitions::read(files, &given())),
        seed: 0,
        planner: Box::new(planner),
    };
    let events = events.clone();
    let journal = Journal::new(move |_, event| events.borrow_mut().push(event.clone()));
    Controller::new(ports, options, journal, Shutdown::default())
}

/// Value of the variable `CANARY`, which the environment has and nobody is to see.
pub const ENVIRONMENT_CANARY: &str = "hidden0of0environment";

thread_local! {
    static CANARY: Cell<&str> = const { Cell::new(ENVIRONMENT_CANARY) };
}

/// From now on it has this value, for processes of this test.
pub fn set_canary(value: &'static str) {
    CANARY.set(value);
}

fn given() -> GivenVariables {
    let from_environment = [("CANARY".to_owned(), CANARY.get().to_owned())].into();
    GivenVariables { from_environment, ..GivenVariables::default() }
}

/// Deployments without pods, each of whose pods asks for a processor.
pub fn without_pods(names: &[&str]) -> Snapshot {
    let deployment = |name: &&str| {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
            }},
        }))
    };
    let deployments: Vec<_> = names.iter().map(|name| deployment(name).unwrap()).collect();
    Snapshot { deployments: deployments.into(), ..Snapshot::default() }
}

/// A Deployment of so many replicas that never share a node.
pub fn apart(replicas: u32) -> Snapshot {
    let deployment = json!({
        "metadata": {"name": "spread", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "spread"}}, "template": {
            "metadata": {"labels": {"app": "spread"}},
            "spec": {
                "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "spread"}}},
                ]}},
            },
        }},
    });
    Snapshot { deployments: vec![serde_json::from_value(deployment).unwrap()].into(), ..Snapshot::default() }
}
