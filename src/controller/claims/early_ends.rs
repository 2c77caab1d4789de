//! Instances that end before their nodes join: why stands on the NodeClaim, and how many did in a row on its NodePool
//! (`core::lifecycle::early_ends`), so that neither a restart nor the end of the claims lets the same be launched without end.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::api::keys;
use crate::api::node_claim::NodeClaim;
use crate::api::node_pool::NodePool;
use crate::controller::events::Event;
use crate::controller::events::journal::Journal;
use crate::controller::observed::view::{View, label, name_of, provider_id};
use crate::controller::revisions::InForce;
use crate::controller::set_aside::SetAside;
use crate::core::inputs::RefusedOffering;
use crate::core::lifecycle::claims::instance_ended;
use crate::core::lifecycle::early_ends::{EarlyEnds, End, joined};
use crate::core::lifecycle::{conditions, instance_has_ended};
use crate::ports::{Cloud, Cluster, InstanceEnd, PortError};

use super::Claims;
use super::effects::unless_gone;

/// How often is asked at most, and how long nobody asks about an instance that was just launched. One that can not have its volume ends
/// within seconds, and a node takes longer to join.
const APART: SignedDuration = SignedDuration::from_secs(20);
/// So long it may take until what was written is seen.
const SEEN_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// What is remembered between two looks. It may be lost: it saves calls, and stands in for events that have not come yet.
#[derive(Debug, Default)]
pub struct Watch {
    asked_at: Option<Timestamp>,
    noted: BTreeMap<String, (Timestamp, EarlyEnds)>,
}

/// What came of a look.
#[derive(Debug, Default)]
pub struct Seen {
    pub wrote: bool,
    pub look_again_at: Option<Timestamp>,
}

/// What ends are judged by.
pub struct Around<'a, K, E> {
    pub cluster: &'a K,
    pub cloud: &'a E,
    pub view: &'a View<'a>,
    pub in_force: &'a InForce,
    pub now: Timestamp,
}

impl Watch {
    /// Looks at claims that were launched a while ago and whose nodes have not joined.
    pub async fn look<K: Cluster, E: Cloud>(
        &mut self,
        around: &Around<'_, K, E>,
        claims: &mut Claims,
        aside: &mut SetAside,
        journal: &mut Journal,
    ) -> Result<Seen, PortError> {
        let (view, now) = (around.view, around.now);
        let wrote = self.forget_where_one_joined(around).await?;
        let awaited: Vec<&NodeClaim> =
            view.snapshot.node_claims.iter().filter(|claim| is_awaited(claim, view)).collect();
        let asks_at = |claim: &&NodeClaim| {
            let launched = conditions::transition(claim, conditions::LAUNCHED).unwrap_or(now);
            launched.saturating_add(APART).unwrap_or(now)
        };
        let Some(first) = awaited.iter().map(asks_at).min() else { return Ok(Seen { wrote, look_again_at: None }) };
        let again = self.asked_at.and_then(|at| at.checked_add(APART).ok());
        let due = again.map_or(first, |again| again.max(first));
        if now < due {
            return Ok(Seen { wrote, look_again_at: Some(due) });
        }
        // Where the call fails, it is not made again at once.
        self.asked_at = Some(now);
        let ids: Vec<&str> = awaited.iter().filter(|it| asks_at(it) <= now).filter_map(|it| provider_id(it)).collect();
        let ended = around.cloud.ended(&ids).await?;
        let of_claim = |end: InstanceEnd| {
            let claim = awaited.iter().find(|claim| provider_id(claim) == Some(end.provider_id.as_str()))?;
            Some((*claim, end))
        };
        let ended: Vec<(&NodeClaim, InstanceEnd)> = ended.into_iter().filter_map(of_claim).collect();
        self.note_on_pools(around, &ended, journal).await?;
        let mut notes = aside.purpose();
        for (claim, end) in &ended {
            claims.refused.extend(refused(claim, end, now));
            let written = instance_ended(claim, &end.text, now);
            let noted = async { unless_gone(around.cluster.update_node_claim(&written).await) };
            if notes.attempt(&format!("end on NodeClaim {}", name_of(claim)), now, noted).await?.is_none() {
                continue;
            }
            journal.say(
                now,
                &Event::InstanceEnded {
                    node_claim: name_of(claim).to_owned(),
                    node_pool: label(claim, keys::NODE_POOL).to_owned(),
                    provider_id: end.provider_id.clone(),
                    code: end.code.clone(),
                    text: end.text.clone(),
                },
            );
        }
        notes.told(Seen { wrote: wrote || !ended.is_empty(), look_again_at: now.checked_add(APART).ok() })
    }

    /// Before the claims say so themselves: what is noted twice counts once, and what is not noted would not count at all.
    async fn note_on_pools<K: Cluster, E: Cloud>(
        &mut self,
        around: &Around<'_, K, E>,
        ended: &[(&NodeClaim, InstanceEnd)],
        journal: &mut Journal,
    ) -> Result<(), PortError> {
        let now = around.now;
        for (pool, applied) in around.in_force.node_pools(around.view.snapshot) {
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            let of_pool = ended.iter().filter(|(claim, _)| label(claim, keys::NODE_POOL) == name);
            let counted: Vec<_> = of_pool.filter(|(_, end)| !end.cause.is_shortage()).collect();
            if counted.is_empty() {
                continue;
            }
            let class = around.in_force.class_of(pool, around.view.snapshot);
            let joined = joined(around.view.snapshot.node_claims.iter(), pool);
            let before = self.latest(applied, name, now);
            let after = counted.iter().fold(before.clone(), |before, (claim, end)| {
                let end = End { claim, cause: end.cause, code: &end.code, text: &end.text, now };
                Some(EarlyEnds::with(before, &end, pool, class, joined))
            });
            let Some(after) = after.filter(|after| before.as_ref() != Some(after)) else { continue };
            match patch(around.cluster, name, json!(after.to_annotation())).await {
                // Then a process that comes after this one does not know.
                Err(error) if error.is_of_one_object() => {
                    journal.say(now, &Event::CallFailed { error: crate::ports::chain(&error) });
                }
                result => result?,
            }
            let until = after.next();
            if let Some(until) = until.filter(|_| before.and_then(|before| before.next()) != until) {
                journal.say(
                    now,
                    &Event::LaunchesPaused {
                        node_pool: name.to_owned(),
                        because: after.text(),
                        until: until.to_string(),
                    },
                );
            }
            self.noted.insert(name.to_owned(), (now, after));
        }
        Ok(())
    }

    /// What is noted on pools of which a node has joined since, or that are other pools now.
    async fn forget_where_one_joined<K: Cluster, E: Cloud>(
        &mut self,
        around: &Around<'_, K, E>,
    ) -> Result<bool, PortError> {
        let mut wrote = false;
        for (pool, applied) in around.in_force.node_pools(around.view.snapshot) {
            let Some(noted) = EarlyEnds::noted_on(applied) else { continue };
            let joined = joined(around.view.snapshot.node_claims.iter(), pool);
            let name = pool.metadata.name.as_deref().unwrap_or_default();
            let class = around.in_force.class_of(pool, around.view.snapshot);
            if noted.are_in_row(pool, class, joined, around.now) {
                continue;
            }
            self.noted.remove(name);
            match patch(around.cluster, name, json!(null)).await {
                Err(error) if error.is_of_one_object() => {}
                result => {
                    result?;
                    wrote = true;
                }
            }
        }
        Ok(wrote)
    }

    fn latest(&self, applied: &NodePool, name: &str, now: Timestamp) -> Option<EarlyEnds> {
        let unseen = self.noted.get(name).filter(|(at, _)| now.duration_since(*at) < SEEN_AFTER);
        unseen.map(|(_, noted)| noted.clone()).or_else(|| EarlyEnds::noted_on(applied))
    }
}

async fn patch<K: Cluster>(cluster: &K, name: &str, value: serde_json::Value) -> Result<(), PortError> {
    let patch = json!({ "metadata": { "annotations": { keys::EARLY_ENDS: value } } });
    unless_gone(cluster.patch_node_pool(name, &patch).await)
}

/// Whether the claim has an instance, and no node yet.
fn is_awaited(claim: &NodeClaim, view: &View<'_>) -> bool {
    claim.is_true(conditions::LAUNCHED)
        && !claim.is_true(conditions::REGISTERED)
        && claim.metadata.deletion_timestamp.is_none()
        && !instance_has_ended(claim)
        && view.node_of(claim).is_none()
}

/// What EC2 had too little of is left alone for a while.
fn refused(claim: &NodeClaim, end: &InstanceEnd, now: Timestamp) -> Option<RefusedOffering> {
    end.cause.is_shortage().then(|| RefusedOffering {
        instance_type: label(claim, keys::INSTANCE_TYPE).to_owned(),
        zone: label(claim, keys::ZONE).to_owned(),
        capacity_type: label(claim, keys::CAPACITY_TYPE).to_owned(),
        at: now,
    })
}
