//! Whether a document may hold a definition, before it is known what it is: what is wrong with the YAML of another tool's file is that
//! tool's business, and CloudFormation's tags or the template of a chart's values are not even wrong.

use serde_json::{Map, Value, json};

use super::spans::SpanIndex;
use crate::definitions::kinds::{self, Class, classify};

/// Workloads say which nodes are needed, so their mistakes are said as well.
const WORKLOADS: [&str; 8] =
    ["Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob", "Pod", "PodDisruptionBudget"];

/// Whether the value is ours, or nearly, or a workload.
pub fn may_be(value: &Value) -> bool {
    match classify(value) {
        Class::Read(_) | Class::Old(_) | Class::Unread { .. } | Class::Unknown { .. } | Class::Incomplete { .. } => {
            true
        }
        Class::NoObject => false,
        Class::Foreign => {
            let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
            let items = value.get("items").and_then(Value::as_array).filter(|_| kind.ends_with("List"));
            is_workload(value) || items.is_some_and(|items| items.iter().any(may_be))
        }
    }
}

/// Whether it is an object that makes pods, or speaks of them.
pub fn is_workload(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str).is_some_and(|kind| WORKLOADS.contains(&kind.trim()))
}

/// The same of a document whose values could not be read, but their places.
pub fn may_be_at(spans: &SpanIndex, file_text: &str) -> bool {
    let scalar = |name: &str| {
        let span = spans.get(&format!("/{name}"))?.value;
        let text = file_text.get(span.start_byte..span.end_byte)?;
        Some((name.to_owned(), json!(text.trim_matches(['"', '\'']))))
    };
    let mut head: Map<String, Value> = ["apiVersion", "kind"].into_iter().filter_map(scalar).collect();
    if spans.get("/metadata").is_some() {
        head.insert("metadata".to_owned(), json!({}));
    }
    // Items of a list stand deeper, and nobody knows what is in them.
    let is_list = head.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
    is_list || may_be(&Value::Object(head))
}

/// The same of text that is no YAML, so that anything may be in it.
pub fn may_be_in(text: &str) -> bool {
    let folded = text.to_lowercase();
    folded.contains("cutlist.dev") || is_of_karpenter(&folded) || {
        // Before a key may stand what opens a mapping or a list, quotes, and the mark of UTF-16.
        let starts = text.lines().map(|line| line.trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && c != '#'));
        let kinds = starts.filter_map(|line| line.strip_prefix("kind"));
        let mut kinds = kinds.filter_map(|rest| rest.trim_start_matches(['"', ' ']).strip_prefix(':')).map(|rest| {
            rest.trim_matches([' ', '"', '\'', ',', '\r', '}']).split([' ', '"', '\'', '#']).next().unwrap_or_default()
        });
        kinds.any(|kind| WORKLOADS.contains(&kind) || kinds::named_alike(kind).is_some())
    }
}

/// Whether an apiVersion in the text, which is in lower case, is one of Karpenter. Its labels stand in files of all tools.
fn is_of_karpenter(text: &str) -> bool {
    let is_version =
        |before: &str| before.trim_end_matches([' ', '\t', '\r', '\n', ':', '"', '\'']).ends_with("apiversion");
    let is_named = |word: &str| text.match_indices(word).any(|(at, _)| text.get(..at).is_some_and(is_version));
    ["karpenter.sh", "karpenter.k8s"].into_iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_text_may_be_ours_by_its_words() {
        for text in [
            "apiVersion: karpenter.sh/v1\nkind: [",
            "kind: NodePool\n\t",
            "- kind: EC2NodeClass # ours\n %",
            "{\"kind\": \"Deployment\",",
            "x: cutlist.dev/ignore\n{",
            "{\"apiVersion\": \"karpenter.k8s.aws/v1\",",
            "  kind: nodepool\r\n\t",
        ] {
            assert!(may_be_in(text), "{text}");
        }
        for text in [
            "service:\n%{ if ipv6 ~}\n  ip: 6\n",
            "kind: ConfigMap\n\t",
            "kinds: NodePool\n\t",
            "# karpenter\n\t",
            "kind: NodeConfig\nspec: %s\n- --register-with-taints=karpenter.sh/unregistered:NoExecute\n",
            "mankind: Pod\n\t",
            "",
        ] {
            assert!(!may_be_in(text), "{text}");
        }
    }

    #[test]
    fn a_document_is_ours_by_its_head() {
        for (value, ours) in [
            (json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool" }), true),
            (json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePol" }), true),
            (json!({ "apiVersion": "apps/v1", "kind": "Deployment" }), true),
            (json!({ "apiVersion": "v1", "kind": "ConfigMap" }), false),
            (json!({ "apiVersion": "v1", "kind": "List", "items": [{ "apiVersion": "v1", "kind": "Pod" }] }), true),
            (json!({ "kind": "NodePool" }), true),
            (json!({ "kind": "DaemonSet", "replicas": 2 }), false),
            (json!({ "kind": "DaemonSet", "metadata": {} }), true),
            (json!({ "Resources": {} }), false),
        ] {
            assert_eq!(may_be(&value), ours, "{value}");
        }
    }
}
