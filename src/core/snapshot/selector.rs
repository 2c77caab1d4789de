//! Label selectors. Source: `k8s.io/apimachinery/pkg/apis/meta/v1` (LabelSelectorAsSelector).

use std::collections::{BTreeMap, HashMap};

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

/// Selectors of many namespaced objects, to ask which of them select a pod without trying each.
///
/// A selector that names a label with its value can only select pods that have it, so it is looked up by that label; of several labels
/// by the one that the fewest other selectors name. A selector without such a label is tried for each pod of its namespace.
#[derive(Debug, Default)]
pub struct SelectorIndex<'a> {
    selectors: Vec<Option<&'a LabelSelector>>,
    by_namespace: HashMap<&'a str, OfNamespace<'a>>,
}

/// Positions of selectors, ascending in each list.
#[derive(Debug, Default)]
struct OfNamespace<'a> {
    by_label: HashMap<(&'a str, &'a str), Vec<usize>>,
    others: Vec<usize>,
}

impl<'a> SelectorIndex<'a> {
    /// Of each object its namespace and its selector; positions count from 0. O(labels that the selectors name).
    pub fn new(objects: impl IntoIterator<Item = (&'a str, Option<&'a LabelSelector>)>) -> Self {
        let objects: Vec<_> = objects.into_iter().collect();
        let mut named: HashMap<(&str, &str, &str), usize> = HashMap::new();
        for (namespace, selector) in &objects {
            for (key, value) in labels(*selector) {
                *named.entry((namespace, key, value)).or_default() += 1;
            }
        }
        let mut index = Self::default();
        for (position, (namespace, selector)) in objects.into_iter().enumerate() {
            let rarest = labels(selector).min_by_key(|(key, value)| (named.get(&(namespace, *key, *value)), *key));
            let of_namespace = index.by_namespace.entry(namespace).or_default();
            match rarest {
                Some(label) => of_namespace.by_label.entry(label).or_default().push(position),
                None => of_namespace.others.push(position),
            }
            index.selectors.push(selector);
        }
        index
    }

    /// Positions of the objects of this namespace whose selector selects these labels, ascending. O(labels + selectors that share a
    /// label with them).
    pub fn selecting(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<usize> {
        let Some(of_namespace) = self.by_namespace.get(namespace) else { return Vec::new() };
        let by_label =
            labels.iter().filter_map(|label| of_namespace.by_label.get(&(label.0.as_str(), label.1.as_str())));
        let candidates = by_label.flatten().chain(&of_namespace.others).copied();
        let mut selecting: Vec<usize> =
            candidates.filter(|position| matches(self.selectors[*position], labels)).collect();
        selecting.sort_unstable();
        selecting
    }
}

/// Labels that a selector asks for with their value.
fn labels(selector: Option<&LabelSelector>) -> impl Iterator<Item = (&str, &str)> {
    let labels = selector.into_iter().flat_map(|selector| selector.match_labels.iter().flatten());
    labels.map(|(key, value)| (key.as_str(), value.as_str()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn selector() -> impl Strategy<Value = Option<LabelSelector>> {
        let labels = prop::collection::btree_map("[abc]", "[xy]", 0..3);
        let operator = prop::sample::select(vec!["In", "NotIn", "Exists", "DoesNotExist", "Near"]);
        let expressions = prop::collection::vec(("[abc]", operator, prop::collection::vec("[xy]", 0..2)), 0..2);
        prop::option::of((labels, expressions).prop_map(|(labels, expressions)| {
            let expressions: Vec<_> = expressions
                .into_iter()
                .map(|(key, operator, values)| json!({ "key": key, "operator": operator, "values": values }))
                .collect();
            serde_json::from_value(json!({ "matchLabels": labels, "matchExpressions": expressions })).unwrap()
        }))
    }

    proptest! {
        #[test]
        fn the_index_finds_what_trying_each_finds(
            objects in prop::collection::vec(("[mn]", selector()), 0..8),
            namespace in "[mno]",
            labels in prop::collection::btree_map("[abcd]", "[xyz]", 0..4),
        ) {
            let index = SelectorIndex::new(objects.iter().map(|(namespace, selector)| (namespace.as_str(), selector.as_ref())));
            let tried = objects.iter().enumerate().filter(|(_, (of, selector))| {
                *of == namespace && matches(selector.as_ref(), &labels)
            });
            prop_assert_eq!(index.selecting(&namespace, &labels), tried.map(|(position, _)| position).collect::<Vec<_>>());
        }
    }
}
