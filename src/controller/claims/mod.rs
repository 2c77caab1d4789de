//! Every NodeClaim at every look: what its life cycle asks for (`core::lifecycle`) is carried out (`effects.rs`).

mod adoption;
mod binding_order;
pub mod early_ends;
pub mod effects;
mod eviction_order;
mod evictions;
pub mod garbage;
pub mod interruptions;
mod launches;
mod live_instances;
pub mod opening;
mod queue;
pub mod refused_nodes;
pub mod rollouts;
mod self_affinity;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;

use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::controller::events::journal::Journal;
use crate::controller::observed::view::{View, label, name_of, node_name, provider_id};
use crate::controller::set_aside::SetAside;
use crate::core::catalog::Catalog;
use crate::core::disrupt::evictions::Refusals;
use crate::core::inputs::{LockedImages, RefusedOffering};
use crate::core::lifecycle::eviction_order::EvictionOrder;
use crate::core::lifecycle::{self, Effect, Observation};
use crate::core::offer::{OverlaidOffer, REFUSED_SECONDS};
use crate::core::snapshot::{Objects, Pod};
use crate::ports::{Cloud, Cluster, LaunchRules, PortError, PortErrorKind};

use effects::{Effects, Failed, place_of};
use live_instances::LiveInstances;
use opening::{Nominations, Opening};

/// Claims whose calls are under way at the same time.
pub(in crate::controller) const CLAIMS_TOGETHER_MAX: usize = 32;

/// Pods that come or go within this time of each other are noted once. Source: the reference, section 5.
const POD_EVENTS_APART: SignedDuration = SignedDuration::from_secs(10);

/// What is remembered between two looks. All of it may be lost: it saves work and repeated messages, and decides nothing.
#[derive(Debug, Default)]
pub struct Claims {
    /// UIDs of the pods of each claim's node, in the snapshot's order, and whether they had ended: to notice that one came or went.
    pods_seen: BTreeMap<String, Vec<(String, bool)>>,
    /// Provider IDs that EC2 said are gone.
    pub(in crate::controller) gone: BTreeSet<String>,
    /// Provider IDs of instances whose end was asked for, once their nodes were found drained.
    pub(in crate::controller) ending: BTreeSet<String>,
    /// Evictions that were refused lately.
    pub(in crate::controller) refusals: Refusals,
    /// UIDs of pods whose eviction a budget forbade, so that it is said once.
    pub(in crate::controller) blocked: BTreeSet<String>,
    /// What EC2 had no capacity for, while that counts.
    pub(in crate::controller) refused: Vec<RefusedOffering>,
    nominations: Nominations,
    pub(in crate::controller) eviction_order: EvictionOrder,
    /// It was tried, refused and said.
    pub(in crate::controller) may_not_nominate: bool,
    /// Claims for which something was refused lately.
    pub(in crate::controller) set_aside: SetAside,
}

/// What came of looking at every claim.
#[derive(Debug, Default)]
pub struct Progress {
    pub look_again_at: Option<Timestamp>,
    /// A node became a candidate for consolidation: worth planning at once.
    pub plan_now: bool,
    /// An object was written: what was seen is no longer how it is.
    pub wrote: bool,
    /// EC2 ran out of something: the catalog changed.
    pub catalog_changed: bool,
    /// Calls that failed, each for one object: the rest went on without them.
    pub troubles: Vec<PortError>,
}

/// The ports and facts that effects are carried out with.
pub struct Surroundings<'a, K, E> {
    pub cluster: &'a K,
    pub cloud: &'a E,
    pub catalog: &'a Catalog,
    pub node_pools: &'a [NodePool],
    pub node_classes: &'a [EC2NodeClass],
    pub images: &'a LockedImages,
    pub overlaid: &'a OverlaidOffer,
    /// `keeps_order`: where prices of a launch are others than the catalog's.
    pub launch_rules: LaunchRules,
    pub installation: &'a str,
    /// What the cloud said last of the instances that run.
    pub live: &'a LiveInstances,
    pub now: Timestamp,
}

impl Claims {
    /// What launches were lately refused.
    pub fn refused(&self) -> &[RefusedOffering] {
        &self.refused
    }

    /// Looks at every claim and does what it needs, several at a time. Where something is forbidden, or the cloud gives no answer, that ends
    /// what is done for its claim; what was not done is asked for again. Fails where the API server gives none.
    pub async fn advance<K: Cluster, E: Cloud>(
        &mut self,
        view: &View<'_>,
        around: &Surroundings<'_, K, E>,
        journal: &mut Journal,
    ) -> Result<Progress, PortError> {
        self.forget(view);
        self.set_aside.look(around.now);
        self.refused.retain(|refused| around.now.duration_since(refused.at).as_secs() < REFUSED_SECONDS);
        let opening = Opening::new(view, &mut self.nominations, around.now);
        let awaited = view.awaited_claims();
        let effects = Effects::new(self, journal, around, awaited.clone());
        let opening = say_places(view, opening, &effects).await?;
        let due = |claim| due(claim, view, &opening, awaited.contains(name_of(claim)), &effects);
        let mut due: Vec<Due<'_>> = view.snapshot.node_claims.iter().map(due).collect();
        due.sort_by_cached_key(|due| opening.turn(due.claim));
        in_step(due, &view.snapshot.node_claims, &effects).await?;
        evictions::evict_in_order(view, &effects).await?;
        effects.look_again(effects.memory().set_aside.again_at(around.now));
        Ok(effects.progress())
    }

    fn forget(&mut self, view: &View<'_>) {
        let names: BTreeSet<&str> = view.snapshot.node_claims.iter().map(name_of).collect();
        self.pods_seen.retain(|name, _| names.contains(name.as_str()));
        let ids: BTreeSet<&str> = view.snapshot.node_claims.iter().filter_map(provider_id).collect();
        self.gone.retain(|id| ids.contains(id.as_str()));
        self.ending.retain(|id| ids.contains(id.as_str()));
        // Some that are gone may stay, as long as there are fewer than pods.
        if self.blocked.len() + self.nominations.len() > view.snapshot.pods.len() {
            let uids: HashSet<&str> = view.snapshot.pods.iter().map(|pod| pod.metadata.uid.as_str()).collect();
            self.blocked.retain(|uid| uids.contains(uid.as_str()));
            self.nominations.forget(&uids);
        }
    }

    /// Whether a pod of the claim's node came, ended or went since the last look.
    fn see_pods(&mut self, view: &View<'_>, claim: &NodeClaim) -> bool {
        let counted = |pod: &&&Pod| !pod.is_owned_by("DaemonSet") && !pod.is_owned_by("Node");
        let pods = || view.pods_on(view.node_of(claim)).iter().filter(counted);
        let has_ended = |pod: &Pod| pod.is_terminal() || pod.is_terminating();
        let seen = self.pods_seen.get(name_of(claim));
        let is_as_seen = |seen: &Vec<(String, bool)>| {
            let seen = seen.iter().map(|(uid, has_ended)| (uid.as_str(), *has_ended));
            seen.eq(pods().map(|pod| (pod.metadata.uid.as_str(), has_ended(pod))))
        };
        if seen.is_some_and(is_as_seen) {
            return false;
        }
        let is_first_look = seen.is_none();
        let state = pods().map(|pod| (pod.metadata.uid.clone(), has_ended(pod))).collect();
        self.pods_seen.insert(name_of(claim).to_owned(), state);
        !is_first_look && claim.metadata.deletion_timestamp.is_none()
    }
}

/// Makes the calls in their order, several at a time. After one that fails no other is begun, and those under way end.
pub(in crate::controller) async fn together<T, F: Future<Output = Result<(), PortError>>>(
    what: impl IntoIterator<Item = T>,
    call: impl Fn(T) -> F,
) -> Result<(), PortError> {
    let (mut rest, mut under_way) = (what.into_iter(), FuturesUnordered::new());
    let mut done = Ok(());
    loop {
        while done.is_ok() && under_way.len() < CLAIMS_TOGETHER_MAX {
            let Some(next) = rest.next() else { break };
            under_way.push(call(next));
        }
        let Some(outcome) = under_way.next().await else { return done };
        done = done.and(outcome);
    }
}

/// Before a start-up taint goes: from then on kube-scheduler takes the node for any pod. For all nodes that open now, so that
/// none is open while the pods of another one have not been told.
async fn say_places<'v, K: Cluster, E: Cloud>(
    view: &View<'v>,
    opening: Opening<'v>,
    effects: &Effects<'_, K, E>,
) -> Result<Opening<'v>, PortError> {
    let mut due = Vec::new();
    for claim in &view.snapshot.node_claims {
        let Some(node) = view.node_of(claim).filter(|node| opening.waits_to_tell(claim, node).is_none()) else {
            continue;
        };
        let mut memory = effects.memory();
        let Claims { nominations, set_aside, .. } = &mut **memory;
        let is_aside = |pod: &Pod| set_aside.is_aside(&place_of(&pod.key()), effects.around.now);
        let pods = nominations.due(&opening, claim, node_name(node), is_aside);
        due.extend(pods.into_iter().map(|pod| (pod, node_name(node))));
    }
    together(&due, |(pod, node)| effects.nominate(pod, node)).await?;
    let are_told = !due.is_empty() && !effects.memory().may_not_nominate;
    Ok(if are_told { opening.after_telling() } else { opening })
}

/// What there is to do for a claim.
struct Due<'v> {
    claim: &'v NodeClaim,
    node: Option<&'v Node>,
    effects: VecDeque<Effect>,
}

/// What the claim needs now.
fn due<'v, K: Cluster, E: Cloud>(
    claim: &'v NodeClaim,
    view: &View<'v>,
    opening: &Opening<'_>,
    is_awaited: bool,
    effects: &Effects<'_, K, E>,
) -> Due<'v> {
    let around = effects.around;
    let node = view.node_of(claim);
    let since_noted = since_noted(claim, around.now);
    let is_due = effects.memory().see_pods(view, claim) && since_noted.is_none_or(|since| since >= POD_EVENTS_APART);
    // A clock was set back: what was noted then would be a moment to come, maybe for weeks.
    let is_ahead = since_noted.is_some_and(|since| since.is_negative());
    if is_due || is_ahead {
        let mut written = claim.clone();
        written.status.get_or_insert_default().last_pod_event_time = Some(around.now.to_string());
        // What else the claim needs is seen at the next look.
        return Due { claim, node, effects: [Effect::WriteClaim(Box::new(written))].into() };
    }
    if let Some(moment) = node.and_then(|node| opening.waits(claim, node)) {
        effects.look_again(Some(moment));
        return Due { claim, node, effects: VecDeque::new() };
    }
    let instance_gone = provider_id(claim).is_some_and(|id| effects.memory().gone.contains(id));
    let is_ending = claim.metadata.deletion_timestamp.is_some();
    let attached_volumes = if is_ending { view.attached_volumes(node, around.now) } else { Vec::new() };
    let reaction = lifecycle::react(&Observation {
        claim,
        node,
        pods: view.pods_on(node),
        attached_volumes: &attached_volumes,
        is_awaited,
        instance_gone,
        consolidate_after_seconds: consolidate_after(claim, around.node_pools),
        now: around.now,
    });
    effects.look_again(reaction.look_again_at);
    let mut asked: VecDeque<Effect> = reaction.effects.into();
    if view.doubt(claim).is_some() {
        asked.retain(|effect| is_safe_in_doubt(effect, is_ending));
    }
    // Its instance would run without it.
    if is_ending && around.cloud.is_launching(claim) {
        asked = [Effect::Launch].into();
    }
    if let Some(owner) = around.live.owner(claim, view).filter(|_| is_ending && !asked.is_empty()) {
        effects.trouble(of_another(claim, owner));
        asked.clear();
    }
    Due { claim, node, effects: asked }
}

/// Why neither the node nor the instance of a claim that was deleted ends on its word.
fn of_another(claim: &NodeClaim, owner: &str) -> PortError {
    let (name, id) = (name_of(claim), provider_id(claim).unwrap_or_default());
    let operation = format!("end nodeclaim {name}");
    let because = format!(
        "its status has instance {id}, which the cloud says was given to nodeclaim {owner}: correct status.providerID of both, or, where \
         {owner} is the one that should go, delete it, too"
    );
    PortError { operation, kind: PortErrorKind::Conflict, source: Some(because.into()) }
}

/// What may be done for a claim while it is not known how its surroundings are. A drain goes on, as each eviction is allowed by the API
/// server, but nothing says that it is complete.
fn is_safe_in_doubt(effect: &Effect, is_ending: bool) -> bool {
    match effect {
        Effect::Evict { .. } => true,
        // One that joins gets a finalizer; one that goes loses it.
        Effect::PatchNode(patch) => !is_ending || patch.pointer("/metadata/finalizers").is_none(),
        Effect::DeleteClaim(_)
        | Effect::DeleteNode { .. }
        | Effect::DeletePod { .. }
        | Effect::TerminateInstance { .. } => false,
        Effect::Launch | Effect::WriteClaim(_) | Effect::Reached(_) => !is_ending,
    }
}

/// Does for all claims what each needs first, then what each needs next: nodes that open together are all open before it is written
/// of any that it is, since whatever is open meanwhile draws pods that are to go to the others.
async fn in_step<K: Cluster, E: Cloud>(
    mut due: Vec<Due<'_>>,
    all: &Objects<NodeClaim>,
    effects: &Effects<'_, K, E>,
) -> Result<(), PortError> {
    loop {
        due.retain(|due| !due.effects.is_empty());
        if due.is_empty() {
            return Ok(());
        }
        let is_next = |due: &&mut Due<'_>| matches!(due.effects.front(), Some(Effect::Launch));
        let next: Vec<&mut Due<'_>> = due.iter_mut().filter(is_next).collect();
        let mut launched: Vec<&NodeClaim> = next
            .into_iter()
            .map(|due| {
                due.effects.pop_front();
                due.claim
            })
            .collect();
        // Where what came of it can not be written, it is not asked for again and again.
        launched.retain(|claim| effects.may_try(claim));
        if !launched.is_empty() {
            launches::launch(&launched, all, effects).await?;
            continue;
        }
        let is_of_node = |due: &&mut Due<'_>| matches!(due.effects.front(), Some(Effect::PatchNode(_)));
        let (of_nodes, others): (Vec<_>, Vec<_>) = due.iter_mut().partition(is_of_node);
        together(of_nodes, |due| one_step(due, effects)).await?;
        together(others, |due| one_step(due, effects)).await?;
    }
}

async fn one_step<K: Cluster, E: Cloud>(due: &mut Due<'_>, effects: &Effects<'_, K, E>) -> Result<(), PortError> {
    let Some(effect) = due.effects.pop_front() else { return Ok(()) };
    let outcome = match effects.may_try(due.claim) {
        true => effects.carry_out(effect, due.claim, due.node).await,
        false => Err(Failed::Spared),
    };
    match outcome {
        Ok(()) => return Ok(()),
        Err(Failed::Cluster(error)) => effects.failed_for(due.claim, error)?,
        Err(Failed::Cloud(error)) => effects.trouble(error),
        Err(Failed::Spared) => {}
    }
    // What was to come after it would say that it was done.
    due.effects.clear();
    Ok(())
}

/// How long ago a pod's coming or going was noted: many come at once, and each note is a write.
fn since_noted(claim: &NodeClaim, now: Timestamp) -> Option<SignedDuration> {
    claim.last_pod_event().map(|noted| now.duration_since(noted))
}

fn consolidate_after(claim: &NodeClaim, node_pools: &[NodePool]) -> Option<u64> {
    let name = label(claim, keys::NODE_POOL);
    let pool = node_pools.iter().find(|pool| pool.metadata.name.as_deref() == Some(name))?;
    pool.spec.disruption.consolidate_after.seconds()
}

impl Progress {
    pub fn look_again(&mut self, moment: Option<Timestamp>) {
        self.look_again_at = [self.look_again_at, moment].into_iter().flatten().min();
    }
}
