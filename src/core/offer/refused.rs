//! Offerings that EC2 lately refused for want of capacity: asking again at once would only fail again.
//! Behaviour: reference, section 6.8.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::catalog::InstanceType;
use crate::inputs::{Inputs, RefusedOffering};
use crate::lifecycle::conditions::LAUNCHED;
use crate::lifecycle::interruption;
use crate::model::Requirements;
use crate::model::time::seconds_between;
use crate::plan::{Note, NoteCode};
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;

/// How long an offering counts as unavailable after a refusal.
pub const REFUSED_SECONDS: i64 = 180;

/// How the reasons of a launch that found no capacity begin.
const REASON: &str = "InsufficientCapacity";

/// Those that count now: type, zone and capacity type, with the moment of the last refusal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusals(BTreeMap<(String, String, String), Timestamp>);

impl Refusals {
    /// What the caller remembers, and what the claims of the snapshot show. O(refusals).
    pub(super) fn new(inputs: &Inputs<'_>) -> Self {
        let shown = inputs.snapshot.node_claims.iter().flat_map(of_claim);
        let mut refusals = BTreeMap::new();
        for refused in inputs.policy.refused.iter().cloned().chain(shown) {
            let age = seconds_between(refused.at, inputs.now);
            if (0..REFUSED_SECONDS).contains(&age) {
                let key = (refused.instance_type, refused.zone, refused.capacity_type);
                let last = refusals.entry(key).or_insert(refused.at);
                *last = refused.at.max(*last);
            }
        }
        Self(refusals)
    }

    /// Marks them as not available.
    pub(super) fn leave_out(&self, types: &mut [InstanceType]) {
        if self.0.is_empty() {
            return;
        }
        let names: BTreeSet<&str> = self.0.keys().map(|(name, ..)| name.as_str()).collect();
        for instance_type in types.iter_mut().filter(|instance_type| names.contains(instance_type.name.as_str())) {
            for offering in &mut instance_type.offerings {
                let key = (instance_type.name.clone(), offering.zone.clone(), offering.capacity_type.clone());
                offering.available &= !self.0.contains_key(&key);
            }
        }
    }

    /// One for each instance type and capacity type.
    pub(super) fn notes(&self, now: Timestamp) -> Vec<Note> {
        let mut zones: BTreeMap<(&str, &str), (Vec<&str>, Timestamp)> = BTreeMap::new();
        for ((name, zone, capacity_type), at) in &self.0 {
            let entry = zones.entry((name, capacity_type)).or_insert((Vec::new(), *at));
            entry.0.push(zone);
            entry.1 = entry.1.max(*at);
        }
        let note = |((name, capacity_type), (zones, at)): ((&str, &str), (Vec<&str>, Timestamp))| {
            Note::new(
                NoteCode::InsufficientCapacity,
                format!(
                    "{name} {capacity_type} in {} is left out: EC2 had no capacity {}s ago, asked again after {REFUSED_SECONDS}s",
                    zones.join(", "),
                    seconds_between(at, now)
                ),
            )
        };
        zones.into_iter().map(note).collect()
    }
}

/// What EC2 takes back from a claim, since it has too little of it.
pub fn taken_back(claim: &NodeClaim) -> Option<RefusedOffering> {
    let at = interruption::short_of_capacity_since(claim)?;
    let label = |key: &str| claim.metadata.labels.as_ref()?.get(key).cloned();
    Some(RefusedOffering {
        instance_type: label(keys::INSTANCE_TYPE)?,
        zone: label(keys::ZONE)?,
        capacity_type: label(keys::CAPACITY_TYPE)?,
        at,
    })
}

/// What is taken back from a claim, or everything that it asked for, if its launch was refused: EC2 refuses only when it has none of it.
fn of_claim(claim: &NodeClaim) -> Vec<RefusedOffering> {
    if let Some(taken_back) = taken_back(claim) {
        return vec![taken_back];
    }
    let condition = claim.condition(LAUNCHED);
    let refused = condition.filter(|it| it.status != "True" && it.reason.starts_with(REASON));
    let Some(condition) = refused else { return Vec::new() };
    let at = condition.last_transition_time.0;
    let requirements = Requirements::from_entries(&claim.spec.requirements);
    let values = |key: &str| requirements.get(key).and_then(|it| it.values()).into_iter().flatten();
    let mut refused = Vec::new();
    for instance_type in values(keys::INSTANCE_TYPE) {
        for zone in values(keys::ZONE) {
            for capacity_type in values(keys::CAPACITY_TYPE) {
                refused.push(RefusedOffering {
                    instance_type: instance_type.clone(),
                    zone: zone.clone(),
                    capacity_type: capacity_type.clone(),
                    at,
                });
            }
        }
    }
    refused
}
