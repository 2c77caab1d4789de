//! Carries out one move of a plan. Nothing is decided here: what the plan says is checked against what is, and done or refused.
//!
//! ```text
//! check preconditions -> mark and taint what goes -> write new NodeClaims -> (claims.rs launches) -> (moves.rs removes)
//! ```
//!
//! A crash after any of these calls is taken up from the marks: see `of_claims.rs` and `moves.rs`.

use std::collections::BTreeSet;

use futures::future::{join_all, join3};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::json;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::controller::annotations::of_claims;
use crate::controller::annotations::of_definitions::{self, Seen};
use crate::controller::events::journal::Journal;
use crate::controller::events::refusal::MoveRefusal;
use crate::controller::events::{Disrupted, Event, Replacement};
use crate::controller::observed::afresh;
use crate::controller::observed::look::Eyes;
use crate::controller::observed::others::Others;
use crate::controller::observed::view::{View, must_move, name_of, node_name};
use crate::core::lifecycle::conditions;
use crate::core::lifecycle::interruption::INTERRUPTED;
use crate::core::lifecycle::termination::{TERMINATION_TIMESTAMP, disrupted_taint_patch};
use crate::core::model::{HourlyPrice, Resources};
use crate::core::plan::{Plan, Precondition, ReasonCode, RemovalMode, Step, StepKind, buffer_of};
use crate::core::planner::build::hash_of_pods;
use crate::core::snapshot::Pod;
use crate::core::snapshot::kinds::Stored;
use crate::ports::{Cluster, PortError, PortErrorKind};

/// Moves that only create are begun so many at a time: their preconditions are looked at once, their claims written together.
const CREATED_TOGETHER_MAX: usize = 32;
/// Nodes that are asked for at the same time, with their pods.
const LOOKED_AT_TOGETHER_MAX: usize = 16;

/// Why a move was not carried out.
#[derive(Debug)]
pub enum ApplyError {
    /// The inputs changed; a new plan is needed.
    Refused { move_number: u32, refusal: MoveRefusal },
    /// A call failed; the next look goes on.
    Port(PortError),
    /// Some of the new NodeClaims were refused, each as one object; the others are written.
    NotCreated { node_pools: BTreeSet<String>, first: PortError },
}

impl From<PortError> for ApplyError {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

/// The steps of one move, in the plan's order.
pub fn steps_of(plan: &Plan, move_number: u32) -> Vec<&Step> {
    plan.steps.iter().filter(|step| step.move_number == move_number).collect()
}

/// Moves that may be begun together, in order: one that removes stands alone.
pub fn in_groups<'m>(plan: &Plan, moves: &'m [u32]) -> Vec<&'m [u32]> {
    let only_creates = |number: &u32| steps_of(plan, *number).iter().all(|step| step.kind == StepKind::Create);
    let alike = moves.chunk_by(|one, two| only_creates(one) && only_creates(two));
    alike.flat_map(|group| group.chunks(CREATED_TOGETHER_MAX)).collect()
}

/// Observes again, checks every precondition of the moves, and begins them. Gives why kube-scheduler was not told of pods, on which nothing
/// depends. `seen`: the pools of the cluster when they were planned; `eyes`: those with which it was planned, since what came into doubt
/// after a plan was made, such as while it waited for an approval, is in doubt.
pub async fn begin<K: Cluster>(
    cluster: &K,
    plan: &Plan,
    moves: &[u32],
    (eyes, seen): (Eyes<'_>, &Seen),
    now: Timestamp,
    journal: &mut Journal,
) -> Result<Vec<PortError>, ApplyError> {
    let (snapshot, others) = eyes.look(cluster).await?;
    let view = View::new(&snapshot);
    let steps: Vec<&Step> = moves.iter().flat_map(|number| steps_of(plan, *number)).collect();
    for step in &steps {
        check_owner(step, &others)
            .and_then(|()| check(step, plan, &view, seen))
            .map_err(|refusal| ApplyError::Refused { move_number: step.move_number, refusal })?;
    }
    let creations: Vec<&Step> = steps.iter().copied().filter(|step| step.kind == StepKind::Create).collect();
    let removals: Vec<&Step> = steps.iter().copied().filter(|step| step.kind == StepKind::Remove).collect();
    look_afresh(cluster, &removals, &view).await?;
    if let Some(first) = removals.first() {
        journal.say(now, &disrupting(plan, first, &creations, &removals));
        let replacements: Vec<String> = creations.iter().map(|step| step.node_claim.clone()).collect();
        for step in &removals {
            // What goes at once waits for none of them.
            let replacements = if step.mode.waits_for_nothing() { &[][..] } else { &replacements };
            mark(cluster, plan, step, replacements, &view, now, journal).await?;
        }
    }
    for step in steps.iter().filter(|step| step.kind == StepKind::Adopt) {
        adopt(cluster, step, &view, now, journal).await?;
    }
    drop(view);
    drop(snapshot);
    let outcomes = join_all(creations.iter().map(|step| create(cluster, plan, step, (eyes.installation, now)))).await;
    let (mut node_pools, mut first, mut untold) = (BTreeSet::new(), None, Vec::new());
    for (step, outcome) in creations.into_iter().zip(outcomes) {
        match outcome {
            Err(ApplyError::Port(error)) if error.is_of_one_object() => {
                node_pools.insert(step.node_pool.clone());
                first.get_or_insert(error);
            }
            outcome => {
                let written = outcome?;
                if written.is_new {
                    journal.say(now, &created(plan, step)?);
                }
                untold.extend(written.untold);
            }
        }
    }
    first.map_or(Ok(untold), |first| Err(ApplyError::NotCreated { node_pools, first }))
}

/// Whether the nodes that would go, their NodeClaims and the pods on them are as they are seen: asked of the API server once more. The plan is
/// made again a little later where they are not, since nobody knows when that will be seen.
async fn look_afresh<K: Cluster>(cluster: &K, removals: &[&Step], view: &View<'_>) -> Result<(), PortError> {
    for together in removals.chunks(LOOKED_AT_TOGETHER_MAX) {
        let looked = join_all(together.iter().map(|step| unlike_seen(cluster, step, view))).await;
        for (step, because) in together.iter().zip(looked) {
            if let Some(because) = because? {
                let node = step.node.as_deref().unwrap_or(&step.node_claim);
                let operation = format!("remove node {node}: {because}");
                return Err(PortError { operation, kind: PortErrorKind::Conflict, source: None });
            }
        }
    }
    Ok(())
}

/// What of a node that is to go is not as it is seen.
async fn unlike_seen<K: Cluster>(cluster: &K, step: &Step, view: &View<'_>) -> Result<Option<&'static str>, PortError> {
    // What EC2 takes away goes whoever would keep it.
    let may_be_kept = !matches!(step.mode, RemovalMode::AtOnce { .. });
    let claim_now = cluster.node_claim_now(&step.node_claim);
    let Some(name) = &step.node else {
        let found = claim_now.await?;
        return Ok(view
            .claim(&step.node_claim)
            .and_then(|seen| afresh::claim_unlike(seen, found.as_ref(), may_be_kept)));
    };
    let (claim, node, pods) = join3(claim_now, cluster.node_now(name), cluster.pods_on_now(name)).await;
    let (claim, node, pods) = (claim?, node?, pods?);
    let seen = view.claim(&step.node_claim);
    let because = seen.and_then(|seen| afresh::claim_unlike(seen, claim.as_ref(), may_be_kept));
    let seen = view.node(name);
    let because = because.or_else(|| seen.and_then(|seen| afresh::node_unlike(seen, node.as_ref(), may_be_kept)));
    let is_well = node.as_ref().is_some_and(|node| !has_condition(step, node));
    let because = because.or(is_well.then_some("it is well again"));
    // By what the plan's hash of them is made of. One that has gone meanwhile takes nothing with it.
    let lines = |pods: &[&Pod]| -> BTreeSet<(String, Option<String>)> {
        let kept = |pod: &Pod| pod.metadata.annotations.get(keys::DO_NOT_DISRUPT).cloned().filter(|_| may_be_kept);
        pods.iter().filter(|pod| must_move(pod)).map(|pod| (pod.metadata.uid.clone(), kept(pod))).collect()
    };
    let (found, seen) = (lines(&pods.iter().collect::<Vec<_>>()), lines(view.pods_on(seen)));
    Ok(because.or((!found.is_subset(&seen)).then_some("pods run there that are not seen yet as they are")))
}

/// Nothing is made for a pool that is another installation's by now.
fn check_owner(step: &Step, others: &Others) -> Result<(), MoveRefusal> {
    let is_anothers = others.contains_key(&(NodePool::KIND, step.node_pool.clone()));
    if is_anothers && matches!(step.kind, StepKind::Create | StepKind::Adopt) {
        return Err(MoveRefusal::NodePoolChanged { name: step.node_pool.clone() });
    }
    Ok(())
}

/// Nothing is removed on the word of what is in doubt, unless EC2 takes it away.
fn check_doubt(step: &Step, view: &View<'_>) -> Result<(), MoveRefusal> {
    if step.kind == StepKind::Create || matches!(step.mode, RemovalMode::AtOnce { .. }) {
        return Ok(());
    }
    let because = match view.claim(&step.node_claim) {
        Some(claim) => view.doubt(claim),
        None => view.snapshot.doubts.of_kinds(),
    };
    because.map_or(Ok(()), |because| Err(MoveRefusal::InDoubt { because }))
}

/// What takes a node without waiting for anything must still be so.
fn check_mode(step: &Step, view: &View<'_>) -> Result<(), MoveRefusal> {
    let node = || step.node.clone().unwrap_or_default();
    let holds = match &step.mode {
        RemovalMode::Graceful => true,
        RemovalMode::AtOnce { .. } => view.claim(&step.node_claim).is_some_and(|claim| claim.is_true(INTERRUPTED)),
        RemovalMode::ByForce { .. } => {
            let object = view.node(&node()).ok_or_else(|| MoveRefusal::NodeGone { node: node() })?;
            has_condition(step, object)
        }
    };
    if holds { Ok(()) } else { Err(MoveRefusal::NodeWell { node: node() }) }
}

/// Whether a node is as broken as it has to be for this step, if it has to be.
fn has_condition(step: &Step, node: &Node) -> bool {
    let RemovalMode::ByForce { condition, status } = &step.mode else { return true };
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|it| it.type_ == *condition && it.status == *status)
}

fn check(step: &Step, plan: &Plan, view: &View<'_>, seen: &Seen) -> Result<(), MoveRefusal> {
    check_doubt(step, view)?;
    check_mode(step, view)?;
    for precondition in &step.preconditions {
        match precondition {
            Precondition::NodePoolUnchanged { name, hash } => {
                of_definitions::check_pool(view.snapshot, name, hash, seen)?;
            }
            Precondition::NodeHoldsOnly { node, pods, pods_hash } => {
                let object = view.node(node).ok_or_else(|| MoveRefusal::NodeGone { node: node.clone() })?;
                let found = || view.pods_on(Some(object)).iter().copied().filter(|pod| must_move(pod));
                let is_planned = match pods_hash {
                    Some(planned) => hash_of_pods(found()) == *planned,
                    None => are_named(step, found()),
                };
                if !is_planned || found().count() != *pods {
                    let found = found().count();
                    return Err(MoveRefusal::NodeHoldsOtherPods { node: node.clone(), planned: *pods, found });
                }
            }
            // Held by `gate.rs`.
            Precondition::RemovalConfirmed { .. } => {}
            // Held by `moves.rs`: nothing is deleted before its replacements are up.
            Precondition::ReplacementsInitialized => {}
        }
    }
    match step.kind {
        StepKind::Create => match view.claim(&step.node_claim) {
            Some(claim) if !is_of(claim, plan) => Err(MoveRefusal::NodeClaimExists { name: step.node_claim.clone() }),
            _ => of_claims::planned_claim(plan, step).map(|_| ()),
        },
        StepKind::Remove => {
            let node = step.node.clone().unwrap_or_else(|| step.node_claim.clone());
            let Some(claim) = view.claim(&step.node_claim) else { return Err(MoveRefusal::NodeGone { node }) };
            let is_marked = of_claims::goes(claim) && !is_of(claim, plan);
            if claim.metadata.deletion_timestamp.is_some() || is_marked {
                return Err(MoveRefusal::NodeBeingRemoved { node });
            }
            Ok(())
        }
        StepKind::Adopt => match view.claim(&step.node_claim) {
            Some(claim) if claim.metadata.deletion_timestamp.is_none() => Ok(()),
            _ => Err(MoveRefusal::NodeGone { node: step.node.clone().unwrap_or_default() }),
        },
        StepKind::Hold => Err(MoveRefusal::NotSupported { code: step.reason.code }),
    }
}

/// Whether a step names just these pods.
fn are_named<'p>(step: &Step, pods: impl Iterator<Item = &'p Pod>) -> bool {
    let named: BTreeSet<&str> = step.pods.iter().map(String::as_str).collect();
    let mut found = 0;
    let all_are = pods.inspect(|_| found += 1).all(|pod| named.contains(pod.key().as_str()));
    all_are && found == named.len()
}

fn is_of(claim: &NodeClaim, plan: &Plan) -> bool {
    claim.metadata.annotations.as_ref().and_then(|annotations| annotations.get(keys::PLAN)) == Some(&plan.id)
}

/// Notes on a claim what replaces it, and keeps new pods from its node.
async fn mark<K: Cluster>(
    cluster: &K,
    plan: &Plan,
    step: &Step,
    replacements: &[String],
    view: &View<'_>,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<(), ApplyError> {
    let Some(claim) = view.claim(&step.node_claim) else { return Ok(()) };
    let mut marked = of_claims::marked(claim, plan, step, replacements);
    let mut deadline = None;
    if matches!(step.mode, RemovalMode::ByForce { .. }) {
        let annotations = marked.metadata.annotations.get_or_insert_default();
        let termination_time = annotations.entry(TERMINATION_TIMESTAMP.to_owned()).or_insert_with(|| now.to_string());
        let (node_claim, node) = (step.node_claim.clone(), step.node.clone().unwrap_or_default());
        deadline = Some(Event::AnnotatedNodeClaim { node_claim, node, termination_time: termination_time.clone() });
    }
    let reason = step.reason.code.word();
    conditions::set(&mut marked, conditions::DISRUPTION_REASON, "True", &reason, &step.reason.text, now);
    cluster.update_node_claim(&marked).await?;
    if let Some(event) = deadline {
        journal.say(now, &event);
    }
    let Some(node) = view.node_of(claim) else { return Ok(()) };
    if let Some(patch) = disrupted_taint_patch(node) {
        cluster.patch_node(node, &patch).await?;
        let event = Event::TaintedNode { node: node_name(node).to_owned(), node_claim: name_of(claim).to_owned() };
        journal.say(now, &event);
    }
    Ok(())
}

/// Gives a node to another pool. The claim comes last: until it says so, a restart begins again.
async fn adopt<K: Cluster>(
    cluster: &K,
    step: &Step,
    view: &View<'_>,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<(), ApplyError> {
    let Some(claim) = view.claim(&step.node_claim) else { return Ok(()) };
    let pool = step.node_pool.as_str();
    if let Some(node) = view.node_of(claim) {
        let patch = json!({ "metadata": { "labels": { keys::NODE_POOL: pool } } });
        cluster.patch_node(node, &patch).await?;
    }
    let mut adopted = claim.clone();
    adopted.metadata.labels.get_or_insert_default().insert(keys::NODE_POOL.to_owned(), pool.to_owned());
    let mut pools = view.snapshot.node_pools.iter();
    let uid = pools.find(|it| it.metadata.name.as_deref() == Some(pool)).and_then(|pool| pool.metadata.uid.clone());
    // The end of an owner is the end of what it owns.
    for owner in adopted.metadata.owner_references.iter_mut().flatten().filter(|owner| owner.kind == "NodePool") {
        pool.clone_into(&mut owner.name);
        owner.uid = uid.clone().unwrap_or_default();
    }
    cluster.update_node_claim(&adopted).await?;
    let (node, node_claim) = (step.node.clone().unwrap_or_default(), step.node_claim.clone());
    journal.say(now, &Event::AdoptedNode { node, node_claim, node_pool: pool.to_owned() });
    Ok(())
}

/// A NodeClaim that stands.
struct Written {
    /// `false` when this plan wrote it before, which is as good.
    is_new: bool,
    /// Why kube-scheduler was not told of all its pods.
    untold: Option<PortError>,
}

async fn create<K: Cluster>(
    cluster: &K,
    plan: &Plan,
    step: &Step,
    (installation, now): (&str, Timestamp),
) -> Result<Written, ApplyError> {
    let claim = of_claims::of_launch(planned_claim(plan, step)?, plan, now);
    let claim = of_claims::of_installation(claim, installation);
    match cluster.create_node_claim(&claim).await {
        Ok(_) => {}
        Err(error) if error.kind == PortErrorKind::Conflict => return written_before(cluster, plan, step).await,
        Err(error) => return Err(error.into()),
    }
    let first = plan.pods_to_bind_first();
    // Where some are to be first, the others are told when the node opens.
    let pods = step.pods.iter().filter(|pod| first.is_empty() || first.contains(pod.as_str()));
    let untold = match nominate(cluster, pods, &step.node_claim).await {
        Ok(()) => None,
        // Then it chooses by itself.
        Err(error) if error.is_of_one_object() => Some(error),
        Err(error) => return Err(error.into()),
    };
    Ok(Written { is_new: true, untold })
}

/// There is a claim of that name. This plan wrote it, and the answer was lost; or the process before this one did, whose call came late: then
/// it was made for other needs, whatever its name.
async fn written_before<K: Cluster>(cluster: &K, plan: &Plan, step: &Step) -> Result<Written, ApplyError> {
    let claims = cluster.node_claims_now().await?;
    if claims.iter().any(|claim| name_of(claim) == step.node_claim && is_of(claim, plan)) {
        return Ok(Written { is_new: false, untold: None });
    }
    let refusal = MoveRefusal::NodeClaimExists { name: step.node_claim.clone() };
    Err(ApplyError::Refused { move_number: step.move_number, refusal })
}

fn planned_claim(plan: &Plan, step: &Step) -> Result<NodeClaim, ApplyError> {
    of_claims::planned_claim(plan, step)
        .map_err(|refusal| ApplyError::Refused { move_number: step.move_number, refusal })
}

fn created(plan: &Plan, step: &Step) -> Result<Event, ApplyError> {
    let claim = planned_claim(plan, step)?;
    let requests = Resources::of(&claim.spec.resources.requests);
    Ok(Event::CreatedNodeClaim {
        node_pool: step.node_pool.clone(),
        node_claim: step.node_claim.clone(),
        requests: requests.unwrap_or_default(),
        instance_types: instance_types(step),
    })
}

/// What a creation may become, best first, each once.
fn instance_types(step: &Step) -> Vec<String> {
    let mut instance_types: Vec<String> = Vec::new();
    for alternative in step.launch.iter().flat_map(|launch| &launch.alternatives) {
        if !instance_types.contains(&alternative.instance_type) {
            instance_types.push(alternative.instance_type.clone());
        }
    }
    instance_types
}

/// Says where pods are expected to land.
async fn nominate<K: Cluster>(cluster: &K, pods: impl Iterator<Item = &String>, node: &str) -> Result<(), PortError> {
    // Nobody runs the pods of a buffer.
    for pod in pods.filter(|pod| buffer_of(pod).is_none()) {
        let Some((namespace, name)) = pod.split_once('/') else { continue };
        cluster.nominate(namespace, name, node).await?;
    }
    Ok(())
}

fn disrupting(plan: &Plan, first: &Step, creations: &[&Step], removals: &[&Step]) -> Event {
    let replacements = creations.iter().map(|step| Replacement {
        node_claim: step.node_claim.clone(),
        capacity_type: step.capacity_type.clone(),
        instance_types: instance_types(step),
    });
    Event::DisruptingNodes {
        plan_id: plan.id.clone(),
        move_number: first.move_number,
        reason: first.reason.clone(),
        pods: removals.iter().map(|step| step.pods.len()).sum(),
        disrupted: removals.iter().map(|step| disrupted(step)).collect(),
        replacements: replacements.collect(),
    }
}

fn disrupted(step: &Step) -> Disrupted {
    Disrupted {
        node: step.node.clone().unwrap_or_default(),
        node_claim: step.node_claim.clone(),
        instance_type: step.instance_type.clone(),
        capacity_type: step.capacity_type.clone(),
    }
}

/// What to say of a move that was refused; `None` where it was not to save money.
pub fn rejected(plan: &Plan, move_number: u32, refusal: &MoveRefusal) -> Option<Event> {
    let steps = steps_of(plan, move_number);
    let of_kind = |kind| steps.iter().copied().filter(move |step| step.kind == kind);
    let saves = |step: &&Step| step.reason.code.saves_money();
    let removals: Vec<&Step> = of_kind(StepKind::Remove).filter(saves).collect();
    let price = |step: &Step| step.price_per_hour;
    let before: HourlyPrice = removals.iter().map(|step| price(step)).sum();
    (!removals.is_empty()).then(|| Event::ConsolidationRejected {
        disrupted: removals.iter().map(|step| disrupted(step)).collect(),
        replacements: of_kind(StepKind::Create).count(),
        savings: before - of_kind(StepKind::Create).map(price).sum::<HourlyPrice>(),
        because: refusal.to_string(),
    })
}

/// Whether a step is one that only a confirmation can release.
pub fn is_held(step: &Step) -> bool {
    step.kind == StepKind::Hold || step.reason.code == ReasonCode::ConfirmationNeeded
}
