//! Which pods a selector is for.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::core::snapshot::Pod;

/// Whether a budget counts it as one that serves.
pub(super) fn is_healthy(pod: &Pod) -> bool {
    pod.is_ready()
}

/// Whether a budget is for this pod, by namespace and labels.
pub(super) fn covers(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    budget.metadata.namespace.as_deref().unwrap_or("default") == pod.metadata.namespace
        && budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()).is_some_and(|selector| selects(selector, pod))
}

/// Whether labels satisfy a selector; an empty one selects everything.
pub(super) fn selects(selector: &LabelSelector, pod: &Pod) -> bool {
    let labels = &pod.metadata.labels;
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    equal
        && selector.match_expressions.iter().flatten().all(|expression| {
            let value = labels.get(&expression.key);
            let listed = value.is_some_and(|value| expression.values.iter().flatten().any(|one| one == value));
            match expression.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}
