//! Label selectors and node selector terms, as the API defines them.

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::objects::{Labels, node_labels, node_name};

/// An absent selector matches nothing, an empty one everything; what the API would not admit matches nothing.
pub(crate) fn matches(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    let Some(selector) = selector else { return false };
    selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().flatten().all(|expression| expression_matches(expression, labels))
}

fn expression_matches(expression: &LabelSelectorRequirement, labels: &Labels) -> bool {
    let values = expression.values.as_deref().unwrap_or_default();
    let value = labels.get(&expression.key);
    match expression.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => !values.is_empty() && value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// The selector with `matchLabelKeys` and `mismatchLabelKeys` written out for a pod with these labels. The API server
/// does the same when it admits a pod; doing it twice changes nothing. Keys that the pod does not have are ignored.
pub(super) fn with_label_keys(
    selector: Option<&LabelSelector>,
    pod_labels: &Labels,
    match_keys: Option<&[String]>,
    mismatch_keys: Option<&[String]>,
) -> Option<LabelSelector> {
    let mut selector = selector?.clone();
    let entries = [("In", match_keys), ("NotIn", mismatch_keys)];
    for (operator, keys) in entries {
        for key in keys.unwrap_or_default() {
            let Some(value) = pod_labels.get(key) else { continue };
            selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
                key: key.clone(),
                operator: operator.to_owned(),
                values: Some(vec![value.clone()]),
            });
        }
    }
    Some(selector)
}

/// Terms are alternatives; no term and an empty term match nothing.
pub(super) fn node_selector_matches(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| node_term_matches(term, node))
}

fn node_term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let labels = node_labels(node);
    expressions.iter().all(|expression| node_expression_matches(expression, labels.get(&expression.key)))
        && fields.iter().all(|field| field_matches(field, node))
}

/// The one field there is: the node's name, In or NotIn.
fn field_matches(field: &NodeSelectorRequirement, node: &Node) -> bool {
    let name = node_name(node).to_owned();
    field.key == "metadata.name"
        && matches!(field.operator.as_str(), "In" | "NotIn")
        && node_expression_matches(field, Some(&name))
}

fn node_expression_matches(expression: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = expression.values.as_deref().unwrap_or_default();
    let numbers = || {
        let [bound] = values else { return None };
        Some((value?.parse::<i64>().ok()?, bound.parse::<i64>().ok()?))
    };
    match expression.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => !values.is_empty() && value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => numbers().is_some_and(|(value, bound)| value > bound),
        "Lt" => numbers().is_some_and(|(value, bound)| value < bound),
        _ => false,
    }
}
