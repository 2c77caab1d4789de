//! What is in `deploy/`, as far as no cluster is needed: health as Argo CD and Flux see it, roles, the policy for AWS, the
//! action for GitHub. `make e2e` tries the chart and the Kustomize base on a real API server.

#![cfg(test)]
#![expect(clippy::disallowed_methods, reason = "a test reads files and runs programs")]

mod action;
mod argocd;
mod flux;
mod gitlab;
mod iam;
mod recipes;
mod roles;

use serde::Deserialize;
use serde_json::Value;

/// An object, and the health that it has.
struct Sample {
    health: String,
    object: Value,
}

impl Sample {
    fn all() -> Vec<Self> {
        let documents = documents(include_str!("health.yaml"));
        let sample = |document: &Value| Self {
            health: document["health"].as_str().unwrap().to_owned(),
            object: document["object"].clone(),
        };
        documents.iter().map(sample).collect()
    }

    /// `karpenter.sh` and `NodePool`.
    fn group_and_kind(&self) -> (&str, &str) {
        let version = self.object["apiVersion"].as_str().unwrap();
        (version.split('/').next().unwrap(), self.object["kind"].as_str().unwrap())
    }
}

/// The documents of a YAML text.
fn documents(text: &str) -> Vec<Value> {
    let all = serde_yaml::Deserializer::from_str(text).map(|document| Value::deserialize(document).unwrap());
    all.filter(|document| !document.is_null()).collect()
}

/// A file of `deploy/`.
fn read(path: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
