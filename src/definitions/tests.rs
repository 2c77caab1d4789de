//! The reader on whole files.

use std::collections::BTreeMap;

use super::*;

fn read_text(text: &str) -> Definitions {
    read(&[SourceFile { path: "a.yaml".to_owned(), content: text.as_bytes().to_vec() }], &BTreeMap::new())
}

fn shown(definitions: &Definitions) -> Vec<String> {
    let line = |d: &Diagnostic| {
        format!(
            "{}:{}:{} {} {} [{}]",
            d.file,
            d.span.line,
            d.span.column,
            d.rule,
            d.message,
            d.hint.as_deref().unwrap_or("")
        )
    };
    definitions.diagnostics.iter().map(line).collect()
}

const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: default
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements:
        - key: kubernetes.io/arch
          operator: In
          values: [amd64]
";

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: default
spec:
  role: node-${CLUSTER_NAME}
  amiSelectorTerms: [{ alias: al2023@v20240807 }]
  subnetSelectorTerms: [{ tags: { a: b } }]
  securityGroupSelectorTerms: [{ tags: { a: b } }]
";

#[test]
fn every_schema_compiles() {
    for kind in kinds::Kind::ALL {
        assert_eq!(schema::error(kind), None, "{}", kind.name());
    }
}

#[test]
fn reads_typed_values() {
    let variables = BTreeMap::from([("CLUSTER_NAME".to_owned(), "demo".to_owned())]);
    let content = format!("{POOL}---\n{CLASS}").into_bytes();
    let definitions = read(&[SourceFile { path: "a.yaml".to_owned(), content }], &variables);
    assert_eq!(shown(&definitions), Vec::<String>::new());
    assert_eq!(definitions.node_pools[0].value.metadata.name.as_deref(), Some("default"));
    assert_eq!(definitions.node_classes[0].value.spec.role.as_deref(), Some("node-demo"));
    assert_eq!(definitions.node_classes[0].line, 14);
}

#[test]
fn a_broken_document_does_not_take_the_others_along() {
    let definitions = read_text(&format!("a: [1, 2\n---\n{CLASS}---\nkind: {{\n---\n{POOL}"));
    assert_eq!(definitions.node_pools.len(), 1, "{:?}", shown(&definitions));
    assert_eq!(definitions.node_classes.len(), 1);
    assert!(!definitions.revision_usable());
    assert_eq!(definitions.count(Severity::Error), 2, "{:?}", shown(&definitions));
}

#[test]
fn every_cel_rule_of_a_schema_is_in_the_registry() {
    fn search(schema: &serde_json::Value, found: &mut Vec<(String, String)>) {
        if let Some(rules) = schema.get("x-kubernetes-validations").and_then(serde_json::Value::as_array) {
            let text = |rule: &serde_json::Value, name: &str| rule[name].as_str().unwrap().to_owned();
            found.extend(rules.iter().map(|rule| (text(rule, "rule"), text(rule, "message"))));
        }
        match schema {
            serde_json::Value::Object(map) => map.values().for_each(|inner| search(inner, found)),
            serde_json::Value::Array(items) => items.iter().for_each(|inner| search(inner, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    kinds::Kind::ALL.into_iter().for_each(|kind| search(&schema::published(kind), &mut found));
    assert!(found.len() > 50, "{}", found.len());
    for (rule, message) in found {
        assert!(rules::of_cel(&rule, &message).is_some(), "{rule}: {message}");
    }
}

#[test]
fn codes_are_unique_and_in_order() {
    let rules = rules::all();
    for pair in rules.windows(2) {
        assert!(pair[0].code < pair[1].code, "{:?} {:?}", pair[0], pair[1]);
    }
    for rule in rules {
        assert!(rule.summary.ends_with('.') && !rule.name.contains(' '), "{rule:?}");
    }
}
