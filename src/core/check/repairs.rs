//! Nodes that go because they are broken: long enough, and not too many at once.

use k8s_openapi::api::core::v1::NodeCondition;

use crate::plan::Step;

use super::known::{Existing, Known};
use super::violation::{Findings, ViolationCode, ViolationPlace};

/// Condition, status, and the minutes it may last.
const BROKEN: [(&str, &str, i64); 7] = [
    ("Ready", "False", 30),
    ("Ready", "Unknown", 30),
    ("AcceleratedHardwareReady", "False", 10),
    ("ContainerRuntimeReady", "False", 30),
    ("KernelReady", "False", 30),
    ("NetworkingReady", "False", 30),
    ("StorageReady", "False", 30),
];

pub(super) fn check(step: &Step, known: &Known<'_>, existing: &Existing<'_>, findings: &mut Findings) {
    if !known.inputs.policy.feature_gates.node_repair {
        findings.add(ViolationCode::NotRemovable, ViolationPlace::step(step), "the feature gate NodeRepair is off");
    }
    let now = known.inputs.now.as_second();
    let for_too_long = conditions(existing).iter().any(|condition| {
        let since = condition.last_transition_time.as_ref().map_or(now, |time| time.0.as_second());
        minutes(condition).is_some_and(|minutes| now - since >= minutes * 60)
    });
    if !for_too_long {
        findings.add(
            ViolationCode::NotRemovable,
            ViolationPlace::step(step),
            "it is not broken, or not for long enough",
        );
    }
    let of_pool = |other: &&Existing<'_>| existing.pool.is_none() || other.pool == existing.pool;
    let has_node = |other: &&Existing<'_>| !conditions(other).is_empty();
    let alike: Vec<&Existing<'_>> = known.nodes.values().filter(of_pool).filter(has_node).collect();
    let broken = alike.iter().filter(|other| conditions(other).iter().any(|it| minutes(it).is_some())).count();
    if broken * 5 >= alike.len() + 5 {
        let text = format!("{broken} of {} nodes are broken, which is more than a fifth", alike.len());
        findings.add(ViolationCode::NotRemovable, ViolationPlace::step(step), text);
    }
}

fn conditions<'e>(existing: &'e Existing<'_>) -> &'e [NodeCondition] {
    existing.node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn minutes(condition: &NodeCondition) -> Option<i64> {
    let found = BROKEN.iter().find(|(type_, status, _)| condition.type_ == *type_ && condition.status == *status);
    found.map(|(_, _, minutes)| *minutes)
}
