//! Evicts the pods of nodes that go: those for the nodes whose turn it is (`eviction_order.rs`), as many as their budgets allow
//! (`core::disrupt::evictions`).

use std::collections::BTreeSet;

use crate::api::node_claim::NodeClaim;
use crate::controller::annotations::of_claims;
use crate::controller::events::Event;
use crate::controller::observed::view::View;
use crate::core::disrupt::evictions::{Allowances, Permission};
use crate::core::lifecycle::pod_disruption_budgets::PodDisruptionBudgets;
use crate::core::lifecycle::{conditions, drain};
use crate::core::snapshot::Pod;
use crate::ports::{Cloud, Cluster, PortError, PortErrorKind};

use super::effects::Effects;
use super::eviction_order::{self, Evictable};
use super::together;

/// Why pods of a node are evicted that no plan removes. Source: the reference's word for it.
const NO_PLAN: &str = "Forceful Termination";

/// In an order in which those that come in their place find room: first those that new nodes were bought for, while the new nodes are
/// empty and kube-scheduler prefers them.
pub async fn evict_in_order<K: Cluster, E: Cloud>(
    view: &View<'_>,
    effects: &Effects<'_, K, E>,
) -> Result<(), PortError> {
    let mut due = effects.take_evictions();
    let ending = view.snapshot.node_claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_some());
    let leaving = ending.flat_map(|claim| view.pods_on(view.node_of(claim)).iter().map(move |pod| (*pod, claim)));
    let (pods, claims): (Vec<&Pod>, Vec<&NodeClaim>) = leaving.filter(|(pod, _)| due.remove(&pod.key())).unzip();
    let mut allowances = allowances(view, &pods, effects);
    let evictable = pods.iter().zip(&claims).enumerate();
    let evictable: Vec<Evictable<'_>> = evictable
        .map(|(position, (pod, claim))| Evictable { pod, claim, permission: allowances.permission(position) })
        .collect();
    let turn: BTreeSet<usize> = eviction_order::take(view, &evictable, effects).await?.into_iter().collect();
    let staying = view.snapshot.node_claims.iter().filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let of_new_nodes: BTreeSet<&str> = staying.flat_map(of_claims::pods).collect();
    let mut order = drain::order_of_eviction(&pods);
    order.sort_by_key(|position| !of_new_nodes.contains(pods[*position].key().as_str()));
    order.retain(|position| turn.contains(position) && allowances.take(*position));
    let evicted = together(&order, |position| {
        let because = claims[*position].condition(conditions::DISRUPTION_REASON);
        let because = because.map_or(NO_PLAN, |because| because.reason.as_str());
        evict(pods[*position], because, &allowances, *position, effects)
    });
    evicted.await?;
    effects.look_again(effects.memory().refusals.retry_at());
    Ok(())
}

/// How many may be asked for; says of the others why they are not.
fn allowances<K: Cluster, E: Cloud>(view: &View<'_>, pods: &[&Pod], effects: &Effects<'_, K, E>) -> Allowances {
    let budgets = PodDisruptionBudgets::new(view.snapshot);
    let allowances = effects.memory().refusals.allowances(pods, &budgets, effects.around.now);
    for (position, pod) in pods.iter().enumerate() {
        let is_refused = allowances.permission(position) == Permission::Refused;
        if let Some(obstacle) = is_refused.then(|| budgets.obstacle(pod)).flatten() {
            say_blocked(pod, obstacle.to_string(), effects);
        }
    }
    allowances
}

/// A refusal is said once; the eviction is tried again later.
async fn evict<K: Cluster, E: Cloud>(
    pod: &Pod,
    because: &str,
    allowances: &Allowances,
    position: usize,
    effects: &Effects<'_, K, E>,
) -> Result<(), PortError> {
    let now = effects.around.now;
    match effects.around.cluster.evict(&pod.metadata.namespace, &pod.metadata.name, &pod.metadata.uid).await {
        Err(error) if error.kind == PortErrorKind::Conflict => {
            effects.memory().refusals.refused(allowances, position, now);
            say_blocked(pod, error.to_string(), effects);
            Ok(())
        }
        Err(error) if error.kind != PortErrorKind::NotFound => {
            // A webhook may forbid it for ever. The pods of others are not to wait for that.
            effects.memory().refusals.refused(allowances, position, now);
            let refused = Err(error);
            effects.tried_to_write(&refused);
            refused.or_else(|error| effects.failed(error))
        }
        Err(_gone) => Ok(()),
        Ok(()) => {
            effects.memory().refusals.accepted(allowances, position);
            effects.memory().eviction_order.note(pod);
            effects.wrote();
            effects.say(&Event::EvictedPod { pod: pod.key(), reason: because.to_owned() });
            Ok(())
        }
    }
}

fn say_blocked<K: Cluster, E: Cloud>(pod: &Pod, error: String, effects: &Effects<'_, K, E>) {
    if effects.memory().blocked.insert(pod.metadata.uid.clone()) {
        let node = pod.spec.node_name.clone().unwrap_or_default();
        effects.say(&Event::EvictionBlocked { pod: pod.key(), node, error });
    }
}
