//! Carries out the turns in which nodes get the pods of nodes that go (`core::lifecycle::turns`).

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use serde_json::Value;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::core::lifecycle::conditions;
use crate::core::lifecycle::interruption::INTERRUPTED;
use crate::core::lifecycle::termination::TERMINATION_TIMESTAMP;
use crate::core::lifecycle::turns::{Destination, Leaving, Turns, has_room, least_request, taint_patch};
use crate::core::snapshot::Pod;
use crate::ports::{Cloud, Cluster, PortError, PortErrorKind};

use super::effects::{Effects, unless_gone};
use super::marks;
use super::view::{View, must_move, node_name};

/// Nodes that are patched at the same time.
const NODES_TOGETHER: usize = 32;

/// What EC2 takes away, and what has less time than that until its pods are deleted, waits for no turn.
const HURRY: SignedDuration = SignedDuration::from_mins(5);

/// The reason of claims that go to save money.
const UNDERUTILIZED: &str = "Underutilized";

/// A pod that may leave its node now, and the claim of the node.
pub type Evictable<'v> = (&'v Pod, &'v NodeClaim);

/// Those whose turn it is, once the nodes are tainted accordingly.
pub async fn take<'v, K: Cluster, E: Cloud>(
    view: &View<'v>,
    evictable: Vec<Evictable<'v>>,
    effects: &Effects<'_, K, E>,
) -> Result<Vec<Evictable<'v>>, PortError> {
    let destinations = destinations(&evictable);
    let now = effects.around.now;
    let leaving: Vec<Leaving<'_>> = evictable.iter().map(|it| leaving(view, *it, &destinations, now)).collect();
    let (taken, patches) = {
        let turns = &mut effects.memory().turns;
        let before = turns.nodes().cloned();
        let taken = turns.take(&leaving, view.snapshot.pods.iter(), now);
        let is_another = turns.nodes() != before.as_ref();
        (taken, patches(view, &leaving, turns.nodes(), is_another))
    };
    let tainted = taint_all(&patches, effects).await;
    if tainted.is_err() {
        // Another turn begins, with its own taints.
        effects.memory().turns = Turns::default();
    }
    tainted?;
    let end = effects.memory().turns.end();
    effects.look_again(end);
    Ok(taken.into_iter().map(|position| evictable[position]).collect())
}

/// Where the plans that remove their nodes send pods, by `namespace/name`: a node, or the claim of one.
fn destinations<'v>(evictable: &[Evictable<'v>]) -> BTreeMap<&'v str, &'v str> {
    let claims: BTreeMap<Option<&str>, &NodeClaim> =
        evictable.iter().map(|(_, claim)| (claim.metadata.name.as_deref(), *claim)).collect();
    claims
        .into_values()
        .flat_map(|claim| claim.listed(keys::DESTINATIONS).filter_map(|it| it.split_once('=')))
        .collect()
}

fn leaving<'v>(
    view: &View<'v>,
    (pod, claim): Evictable<'v>,
    destinations: &BTreeMap<&str, &'v str>,
    now: Timestamp,
) -> Leaving<'v> {
    let because = claim.condition(conditions::DISRUPTION_REASON);
    let named = destinations.get(pod.key().as_str());
    let destination = match named.and_then(|name| open_node(view, name)) {
        _ if is_in_a_hurry(claim, now) || !must_move(pod) => Destination::None,
        Some(node) => Destination::Node(node),
        None => Destination::Any,
    };
    Leaving { pod, destination, is_consolidated: because.is_some_and(|because| because.reason == UNDERUTILIZED) }
}

fn is_in_a_hurry(claim: &NodeClaim, now: Timestamp) -> bool {
    let deadline = claim.annotation(TERMINATION_TIMESTAMP).and_then(|text| text.parse::<Timestamp>().ok());
    claim.is_true(INTERRUPTED) || deadline.is_some_and(|deadline| deadline.duration_since(now) < HURRY)
}

/// The node of that name, or of the claim of that name, where it stays.
fn open_node<'v>(view: &View<'v>, name: &str) -> Option<&'v str> {
    let node = view.node(name).or_else(|| view.node_of(view.claim(name)?))?;
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let stays =
        node.metadata.deletion_timestamp.is_none() && !taints.iter().any(|taint| taint.key == keys::DISRUPTED_TAINT);
    stays.then(|| node_name(node))
}

/// Of nodes that are not tainted as they should be: those whose turn it is are not, others with room are, the rest stays as it is
/// until nobody takes turns. O(pods) when another turn begins, else O(nodes).
fn patches<'v>(
    view: &View<'v>,
    leaving: &[Leaving<'_>],
    turn: Option<&BTreeSet<String>>,
    is_another: bool,
) -> Vec<(&'v str, Value)> {
    let asked = is_another.then(|| least_request(leaving.iter().map(|it| it.pod)));
    let is_tainted = |node: &Node| match turn {
        None => Some(false),
        Some(nodes) => match asked? {
            _ if nodes.contains(node_name(node)) => Some(false),
            least => has_room(node, view.pods_on(Some(node)), least).then_some(true),
        },
    };
    let claims = view.snapshot.node_claims.iter().filter(|claim| marks::replacements(claim).is_none());
    let nodes = claims.filter_map(|claim| view.node_of(claim));
    nodes.filter_map(|node| Some((node_name(node), taint_patch(node, is_tainted(node)?)?))).collect()
}

async fn taint_all<K: Cluster, E: Cloud>(
    patches: &[(&str, Value)],
    effects: &Effects<'_, K, E>,
) -> Result<(), PortError> {
    for together in patches.chunks(NODES_TOGETHER) {
        for outcome in join_all(together.iter().map(|(node, patch)| taint(node, patch, effects))).await {
            outcome?;
        }
    }
    Ok(())
}

/// A node that changed meanwhile is tainted at another turn.
async fn taint<K: Cluster, E: Cloud>(node: &str, patch: &Value, effects: &Effects<'_, K, E>) -> Result<(), PortError> {
    effects.wrote();
    match effects.around.cluster.patch_node(node, patch).await {
        Err(error) if error.kind == PortErrorKind::Conflict => Ok(()),
        outcome => unless_gone(outcome),
    }
}
