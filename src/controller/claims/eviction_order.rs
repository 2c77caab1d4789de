//! Carries out the turns in which nodes get the pods of nodes that go (`core::lifecycle::eviction_order`).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use serde_json::Value;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::controller::annotations::of_claims;
use crate::controller::observed::view::{View, must_move, node_name};
use crate::core::disrupt::evictions::Permission;
use crate::core::lifecycle::eviction_order::{Destination, EvictionOrder, Leaving, has_room, least_request};
use crate::core::lifecycle::interruption::INTERRUPTED;
use crate::core::lifecycle::{conditions, eviction_order, taint_patch, termination};
use crate::core::plan::ReasonCode;
use crate::core::snapshot::Pod;
use crate::ports::{Cloud, Cluster, PortError, PortErrorKind};

use super::effects::{Effects, unless_gone};
use super::together;

/// What EC2 takes away, and what has less time than that until its pods are deleted, waits for no turn.
const HURRY: SignedDuration = SignedDuration::from_mins(5);

/// A pod that is to leave its node now.
#[derive(Clone, Copy)]
pub struct Evictable<'v> {
    pub pod: &'v Pod,
    /// The claim of its node.
    pub claim: &'v NodeClaim,
    /// What the eviction API will say, as far as is known.
    pub permission: Permission,
}

/// Positions of those whose turn it is, once the nodes are tainted accordingly.
pub async fn take<'v, K: Cluster, E: Cloud>(
    view: &View<'v>,
    evictable: &[Evictable<'v>],
    effects: &Effects<'_, K, E>,
) -> Result<Vec<usize>, PortError> {
    let destinations = destinations(evictable);
    let now = effects.around.now;
    let leaving: Vec<Leaving<'_>> = evictable.iter().map(|it| leaving(view, it, &destinations, now)).collect();
    let patches = {
        let turns = &mut effects.memory().eviction_order;
        turns.go_on(&leaving, view.snapshot.pods.iter(), now);
        if turns.wants_taints() { patches(view, &leaving, turns.nodes()) } else { Vec::new() }
    };
    let overtaken = Cell::new(false);
    let tainted = together(&patches, |(node, patch)| taint(node, patch, &overtaken, effects)).await;
    if tainted.is_err() {
        // Another turn begins, with its own taints.
        effects.memory().eviction_order = EvictionOrder::default();
    }
    tainted?;
    let turns = &mut effects.memory().eviction_order;
    turns.tainted(!overtaken.get());
    effects.look_again(turns.look_again_at(now));
    Ok(turns.take(&leaving, now))
}

/// Where the plans that remove their nodes send pods, by `namespace/name`: a node, or the claim of one.
fn destinations<'v>(evictable: &[Evictable<'v>]) -> BTreeMap<&'v str, &'v str> {
    let claims: BTreeMap<Option<&str>, &NodeClaim> =
        evictable.iter().map(|it| (it.claim.metadata.name.as_deref(), it.claim)).collect();
    claims
        .into_values()
        .flat_map(|claim| claim.listed(keys::DESTINATIONS).filter_map(|it| it.split_once('=')))
        .collect()
}

fn leaving<'v>(
    view: &View<'v>,
    evictable: &Evictable<'v>,
    destinations: &BTreeMap<&str, &'v str>,
    now: Timestamp,
) -> Leaving<'v> {
    let Evictable { pod, claim, permission } = *evictable;
    let because = claim.condition(conditions::DISRUPTION_REASON);
    let saves_money = ReasonCode::Underutilized.word();
    let named = destinations.get(pod.key().as_str());
    let destination = match named.and_then(|name| open_node(view, name)) {
        _ if is_in_a_hurry(claim, now) || !must_move(pod) => Destination::None,
        // One pod whose eviction is only tried again is not worth tainting nodes.
        _ if permission == Permission::Retry => Destination::None,
        Some(node) => Destination::Node(node),
        None => Destination::Any,
    };
    let is_consolidated = because.is_some_and(|because| because.reason == saves_money);
    Leaving { pod, destination, is_consolidated, is_allowed: permission == Permission::Granted }
}

/// Asked of the claim and not of the mode in which its plan lets it go: what has time when it is planned has none once EC2 announces its end
/// or its deadline comes near.
fn is_in_a_hurry(claim: &NodeClaim, now: Timestamp) -> bool {
    claim.is_true(INTERRUPTED)
        || termination::deadline(claim).is_some_and(|deadline| deadline.duration_since(now) < HURRY)
}

/// The node of that name, or of the claim of that name, where it stays.
fn open_node<'v>(view: &View<'v>, name: &str) -> Option<&'v str> {
    let node = view.node(name).or_else(|| view.node_of(view.claim(name)?))?;
    let stays = node.metadata.deletion_timestamp.is_none() && !taint_patch::has(node, keys::DISRUPTED_TAINT);
    stays.then(|| node_name(node))
}

/// Of nodes that are not tainted as they should be: those whose turn it is are not, others with room are, the rest stays as it is
/// until nobody takes turns. O(pods) for a turn, else O(nodes).
fn patches<'v>(view: &View<'v>, leaving: &[Leaving<'_>], turn: Option<&BTreeSet<String>>) -> Vec<(&'v Node, Value)> {
    let turn = turn.map(|nodes| (nodes, least_request(leaving.iter().map(|it| it.pod))));
    let wanted = |node: &Node| match turn {
        Some((nodes, least)) if !nodes.contains(node_name(node)) => {
            has_room(node, view.pods_on(Some(node)), least).then_some(true)
        }
        _ => Some(false),
    };
    let claims = view.snapshot.node_claims.iter().filter(|claim| !of_claims::goes(claim));
    let nodes = claims.filter_map(|claim| view.node_of(claim));
    nodes.filter_map(|node| Some((node, eviction_order::patch(node, wanted(node)?)?))).collect()
}

/// A node that changed meanwhile is tainted when it is seen as it is.
async fn taint<K: Cluster, E: Cloud>(
    node: &Node,
    patch: &Value,
    overtaken: &Cell<bool>,
    effects: &Effects<'_, K, E>,
) -> Result<(), PortError> {
    let written = unless_gone(effects.around.cluster.patch_node(node, patch).await);
    effects.tried_to_write(&written);
    match written {
        Err(error) if error.kind == PortErrorKind::Conflict => {
            overtaken.set(true);
            Ok(())
        }
        Err(error) => effects.failed(error),
        Ok(()) => Ok(()),
    }
}
