//! Moves that are under way: what a plan replaces goes when its replacements are up, and stays when one of them never comes.
//!
//! Of a plan in waves, all replacements are launched and all nodes that go are marked at once: a restart finds the rest of the
//! plan in the cluster. What waits for its wave is the removal.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::node_claim::NodeClaim;
use crate::core::lifecycle::conditions;
use crate::core::lifecycle::interruption::INTERRUPTED;
use crate::core::lifecycle::termination::{TERMINATION_TIMESTAMP, undisrupted_taint_patch};
use crate::ports::{Cluster, PortError};

use super::events::Event;
use super::journal::Journal;
use super::marks;
use super::view::{View, name_of, node_name};

/// Looks at every claim that a plan removes. `true` when something was written.
pub async fn go_on<K: Cluster>(
    cluster: &K,
    view: &View<'_>,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<bool, PortError> {
    let mut wrote = false;
    let first_waves = first_waves(view);
    for claim in &view.snapshot.node_claims {
        if claim.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let Some(replacements) = marks::replacements(claim) else { continue };
        let missing: Vec<String> = replacements.iter().filter(|name| !is_coming(view, name)).cloned().collect();
        if !missing.is_empty() {
            roll_back(cluster, view, claim, missing, now, journal).await?;
            wrote = true;
        } else if replacements.iter().all(|name| is_up(view, name)) && is_its_turn(claim, &first_waves) {
            cluster.delete_node_claim(name_of(claim)).await?;
            wrote = true;
            let node = view.node_of(claim).map(|node| node_name(node).to_owned()).unwrap_or_default();
            let because = claim.condition(conditions::DISRUPTION_REASON);
            let (reason, text) = because.map(|it| (it.reason.clone(), it.message.clone())).unwrap_or_default();
            journal.say(now, &Event::TerminatingNode { node, node_claim: name_of(claim).to_owned(), reason, text });
        }
    }
    Ok(wrote)
}

/// By plan, the first wave of which a node is still there. One that was rolled back does not go any more.
fn first_waves<'a>(view: &View<'a>) -> BTreeMap<&'a str, u32> {
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    for claim in view.snapshot.node_claims.iter().filter(|claim| marks::replacements(claim).is_some()) {
        if let Some(plan) = marks::plan(claim) {
            let wave = marks::wave(claim);
            first.entry(plan).and_modify(|first| *first = wave.min(*first)).or_insert(wave);
        }
    }
    first
}

/// What goes by force has its deadline already, and so has what EC2 takes away: it waits for no wave.
fn is_its_turn(claim: &NodeClaim, first_waves: &BTreeMap<&str, u32>) -> bool {
    if claim.annotation(TERMINATION_TIMESTAMP).is_some() || claim.is_true(INTERRUPTED) {
        return true;
    }
    let first = marks::plan(claim).and_then(|plan| first_waves.get(plan));
    first.is_none_or(|first| marks::wave(claim) <= *first)
}

fn is_coming(view: &View<'_>, name: &str) -> bool {
    view.claim(name).is_some_and(|claim| claim.metadata.deletion_timestamp.is_none())
}

fn is_up(view: &View<'_>, name: &str) -> bool {
    view.claim(name).is_some_and(|claim| claim.is_true(conditions::INITIALIZED))
}

/// A replacement is gone: the node stays, and takes pods again.
async fn roll_back<K: Cluster>(
    cluster: &K,
    view: &View<'_>,
    claim: &NodeClaim,
    missing: Vec<String>,
    now: Timestamp,
    journal: &mut Journal,
) -> Result<(), PortError> {
    let node = view.node_of(claim);
    if let Some((node, patch)) = node.and_then(|node| Some((node, undisrupted_taint_patch(node)?))) {
        cluster.patch_node(node_name(node), &patch).await?;
    }
    // The note goes last: until it is gone, a restart rolls back again.
    let mut unmarked = marks::unmarked(claim);
    conditions::remove(&mut unmarked, conditions::DISRUPTION_REASON);
    cluster.update_node_claim(&unmarked).await?;
    let node = node.map(|node| node_name(node).to_owned()).unwrap_or_default();
    journal.say(now, &Event::CommandFailed { node, node_claim: name_of(claim).to_owned(), missing });
    Ok(())
}
