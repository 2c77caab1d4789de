//! New nodes that did not become ready: noted on their pool before they are given up, so that a rollout can be halted.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::view::{View, label, name_of};
use crate::controller::revisions::InForce;
use crate::controller::set_aside::SetAside;
use crate::core::lifecycle::expiry::is_of_other_template;
use crate::core::lifecycle::rollout_failures::Failures;
use crate::core::lifecycle::rollout_failures::GivenUp;
use crate::core::lifecycle::{DeletionCause, conditions, given_up};
use crate::ports::{Cluster, PortError};

/// So long it may take until what was written is seen.
const SEEN_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// What was noted a moment ago, by pool. Lost with the process: it stands in for events that have not come yet.
#[derive(Debug, Default)]
pub struct Noted(BTreeMap<String, Failures>);

impl Noted {
    /// Notes every claim that is to be given up at this look. `true` when something was written.
    pub async fn note<K: Cluster>(
        &mut self,
        cluster: &K,
        view: &View<'_>,
        in_force: &InForce,
        aside: &mut SetAside,
        (now, journal): (Timestamp, &mut Journal),
    ) -> Result<bool, PortError> {
        let most = in_force.definitions.settings.disruption.rollout.halt_after_failures;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if most == 0 {
            return Ok(false);
        }
        let (mut wrote, mut notes) = (false, aside.purpose());
        let awaited = view.awaited_claims();
        for (pool, applied) in in_force.node_pools(view.snapshot) {
            let failing = failing(view, pool, &awaited, now);
            if failing.is_empty() {
                continue;
            }
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            let before = self.latest(applied, name, now);
            let class = in_force.class_of(pool, view.snapshot);
            let became_ready = became_ready(view, pool);
            let revision = in_force.revision.id.as_str();
            let after = failing.iter().fold(before.clone(), |before, claim| {
                let (name, uid) = (name_of(claim), claim.metadata.uid.as_deref().unwrap_or_default());
                Some(Failures::with(before, &GivenUp { name, uid, pool, class, revision, became_ready, most, now }))
            });
            let Some(after) =
                after.filter(|after| before.as_ref().map(Failures::node_claims) != Some(after.node_claims()))
            else {
                continue;
            };
            let patch = json!({ "metadata": { "annotations": { keys::ROLLOUT_FAILURES: after.to_annotation() } } });
            let object = format!("failures on NodePool {name}");
            if notes.attempt(&object, now, cluster.patch_node_pool(name, &patch)).await?.is_none() {
                continue;
            }
            wrote = true;
            let was_halted = before.is_some_and(|before| before.count() >= most && before.are_of(pool, class));
            if after.count() >= most && !was_halted {
                journal.say(now, &Event::RolloutHalted { node_pool: name.to_owned(), because: after.text() });
            }
            self.0.insert(name.to_owned(), after);
        }
        if wrote { Ok(true) } else { notes.told(false) }
    }

    fn latest(&self, applied: &NodePool, name: &str, now: Timestamp) -> Option<Failures> {
        let unseen = self.0.get(name).filter(|noted| now.duration_since(noted.last()) < SEEN_AFTER);
        unseen.cloned().or_else(|| Failures::noted_on(applied))
    }
}

/// Claims of the pool as it is now that are given up because their nodes did not become ready.
fn failing<'a>(view: &View<'a>, pool: &NodePool, awaited: &BTreeSet<String>, now: Timestamp) -> Vec<&'a NodeClaim> {
    let fails = |claim: &&NodeClaim| {
        given_up(claim, view.node_of(claim), awaited.contains(name_of(claim)), now)
            .is_some_and(DeletionCause::is_failure)
    };
    claims_of(view, pool).filter(fails).collect()
}

/// When a node of the pool as it is now became ready last.
fn became_ready(view: &View<'_>, pool: &NodePool) -> Option<Timestamp> {
    let ready = claims_of(view, pool).filter(|claim| claim.is_true(conditions::INITIALIZED));
    ready.filter_map(|claim| conditions::transition(claim, conditions::INITIALIZED)).max()
}

fn claims_of<'a>(view: &View<'a>, pool: &NodePool) -> impl Iterator<Item = &'a NodeClaim> {
    let name = pool.metadata.name.as_deref().unwrap_or_default();
    let claims = view.snapshot.node_claims.iter().filter(move |claim| label(claim, keys::NODE_POOL) == name);
    claims.filter(|claim| !is_of_other_template(claim, pool))
}
