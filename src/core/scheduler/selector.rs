//! Label selectors. Source: `k8s.io/apimachinery/pkg/apis/meta/v1` (LabelSelectorAsSelector).

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// Whether labels satisfy the selector. An absent selector selects nothing, an empty one everything; an operator that
/// Kubernetes does not know selects nothing.
pub fn matches(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    let Some(selector) = selector else { return false };
    let all_labels = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    all_labels
        && selector.match_expressions.iter().flatten().all(|expression| {
            let value = labels.get(&expression.key);
            let listed =
                || value.is_some_and(|value| expression.values.iter().flatten().any(|allowed| allowed == value));
            match expression.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// The label keys that a selector looks at.
pub fn keys(selector: Option<&LabelSelector>) -> impl Iterator<Item = &str> {
    let labels =
        selector.into_iter().flat_map(|selector| selector.match_labels.iter().flatten()).map(|(key, _)| key.as_str());
    let expressions = selector.into_iter().flat_map(|selector| selector.match_expressions.iter().flatten());
    labels.chain(expressions.map(|expression| expression.key.as_str()))
}
