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
