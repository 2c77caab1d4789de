//! Conditions: of any object, and those of a NodeClaim.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use cutlist_api::node_claim::NodeClaim;

pub const LAUNCHED: &str = "Launched";
pub const REGISTERED: &str = "Registered";
pub const INITIALIZED: &str = "Initialized";
pub const READY: &str = "Ready";
pub const CONSOLIDATABLE: &str = "Consolidatable";
pub const CONSISTENT_STATE_FOUND: &str = "ConsistentStateFound";
pub const DRAINED: &str = "Drained";
pub const VOLUMES_DETACHED: &str = "VolumesDetached";
pub const INSTANCE_TERMINATING: &str = "InstanceTerminating";
pub const DISRUPTION_REASON: &str = "DisruptionReason";
pub const DRIFTED: &str = "Drifted";

/// The reason of `Registered` where the instance ended before its node joined.
pub const INSTANCE_ENDED: &str = "InstanceEnded";

/// A condition that is written, and what it says where it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenCondition {
    pub kind: &'static str,
    pub type_: &'static str,
    pub meaning: &'static str,
}

const fn row(kind: &'static str, type_: &'static str, meaning: &'static str) -> WrittenCondition {
    WrittenCondition { kind, type_, meaning }
}

/// All of them, by kind and type. Those that Karpenter has too mean what Karpenter's mean.
pub const WRITTEN: &[WrittenCondition] = &[
    row(
        "EC2NodeClass",
        "AMIsReady",
        "Its terms select images. The reason `SomeAMIsUnknown`: some of them could not be found out.",
    ),
    row("EC2NodeClass", "CapacityReservationsReady", "Its terms select capacity reservations."),
    row("EC2NodeClass", "InstanceProfileReady", "Its instance profile is there, or was made of its role."),
    row("EC2NodeClass", "PlacementGroupReady", "Its placement group is there."),
    row("EC2NodeClass", "Ready", "Nodes can be made of it: all others of these are true."),
    row("EC2NodeClass", "SecurityGroupsReady", "Its terms select security groups."),
    row("EC2NodeClass", "SubnetsReady", "Its terms select subnets."),
    row("EC2NodeClass", "ValidationSucceeded", "EC2 takes a launch with it, as far as a trial tells."),
    row("NodeClaim", "ConsistentStateFound", "The node is what its instance type promises."),
    row("NodeClaim", "Consolidatable", "No pod came or went for `consolidateAfter`."),
    row("NodeClaim", "DisruptionReason", "A plan removes it: the reason is the code, the message the sentence."),
    row("NodeClaim", "Drained", "It goes, and all of its pods that must leave have left."),
    row(
        "NodeClaim",
        "Drifted",
        "It is not as its NodePool or EC2NodeClass wants it now; the reason says what differs.",
    ),
    row("NodeClaim", "Initialized", "Its node is ready for pods."),
    row("NodeClaim", "InstanceTerminating", "It goes, and EC2 ends its instance."),
    row("NodeClaim", "Interrupted", "EC2 announced that it takes the instance away; the reason says how."),
    row("NodeClaim", "Launched", "EC2 gave an instance for it."),
    row("NodeClaim", "Ready", "Launched, registered and initialized."),
    row("NodeClaim", "Registered", "Its node joined. The reason `InstanceEnded`: its instance ended before."),
    row("NodeClaim", "VolumesDetached", "It goes, and no volume is attached to it any more."),
    row("NodePlan", "Approved", "It waits for nobody's approval, and is not superseded."),
    row("NodePlan", "Ready", "It is at its end, carried out or not; the reason is its phase."),
    row("NodePlan", "Reconciling", "It is being carried out; while it waits for an approval it is not."),
    row("NodePool", "NodeClassReady", "Its EC2NodeClass is there."),
    row("NodePool", "NodeRegistrationHealthy", "Its nodes become ready, those of it as it is now."),
    row("NodePool", "Ready", "Nodes can be made of it."),
    row("NodePool", "Reconciling", "Its nodes are starting, or are being replaced; the message counts them."),
    row(
        "NodePool",
        "Stalled",
        "Something has to be done: the definitions are refused, its rollout is halted, or it has no EC2NodeClass.",
    ),
    row("NodePool", "ValidationSucceeded", "It can be used as it is written."),
];

/// Sets a condition; the time of transition stays when the status does. `Ready` follows the three stages.
pub fn set(claim: &mut NodeClaim, type_: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
    let generation = claim.metadata.generation;
    let conditions = &mut claim.status.get_or_insert_default().conditions;
    write(conditions, type_, status, reason, message, generation, now);
    if [LAUNCHED, REGISTERED, INITIALIZED].contains(&type_) {
        let is_true = |stage: &str| conditions.iter().any(|one| one.type_ == stage && one.status == "True");
        let ready = [LAUNCHED, REGISTERED, INITIALIZED].into_iter().all(is_true);
        let (status, reason) = if ready { ("True", "Ready") } else { ("Unknown", "ReconcilingDependents") };
        write(conditions, READY, status, reason, "", generation, now);
    }
}

/// Takes a condition away. `true` when it was there.
pub fn remove(claim: &mut NodeClaim, type_: &str) -> bool {
    let Some(status) = &mut claim.status else { return false };
    let before = status.conditions.len();
    status.conditions.retain(|condition| condition.type_ != type_);
    status.conditions.len() != before
}

/// When a condition got the status it has.
pub fn transition(claim: &NodeClaim, type_: &str) -> Option<Timestamp> {
    claim.condition(type_).map(|condition| condition.last_transition_time.0)
}

/// Sets a condition of an object of that generation; the time of transition stays when the status does.
pub fn write(
    conditions: &mut Vec<Condition>,
    type_: &str,
    status: &str,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) {
    debug_assert!(WRITTEN.iter().any(|row| row.type_ == type_), "{type_} is not in the table of conditions");
    let existing = conditions.iter_mut().find(|condition| condition.type_ == type_);
    let since = existing.as_ref().filter(|condition| condition.status == status);
    let condition = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: since.map_or(Time(now), |condition| condition.last_transition_time.clone()),
    };
    match existing {
        Some(existing) => *existing = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [`write`] looks in every other test whether a type is in the table at all.
    #[test]
    fn each_condition_is_in_the_table_once_and_in_order() {
        let keys: Vec<(&str, &str)> = WRITTEN.iter().map(|row| (row.kind, row.type_)).collect();
        assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
        let claim = [LAUNCHED, REGISTERED, INITIALIZED, READY, CONSOLIDATABLE, CONSISTENT_STATE_FOUND, DRAINED];
        let further = [VOLUMES_DETACHED, INSTANCE_TERMINATING, DISRUPTION_REASON, DRIFTED];
        for type_ in claim.into_iter().chain(further) {
            assert!(keys.contains(&("NodeClaim", type_)), "{type_}");
        }
    }
}
