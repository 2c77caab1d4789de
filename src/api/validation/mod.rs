//! What the schemas of the kinds demand beyond types: forms of texts, and rules in CEL. Kept as data, so that the
//! definitions in `schemas/` and the linter have one source, and the linter can tell which rule spoke.
//!
//! The demands are those of the reference's custom resource definitions. Where those put a rule on a whole list, ours
//! is on the entry, so that the API server names the entry too.

pub mod capacity_buffer;
pub mod ec2_node_class;
pub mod forms;
pub mod node_overlay;
pub mod node_plan;
pub mod node_pool;

use serde::Serialize;

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CelRule {
    pub rule: &'static str,
    pub message: &'static str,
    /// The member at fault, for a rule that compares several: `.weight`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<&'static str>,
}

impl CelRule {
    const fn new(rule: &'static str, message: &'static str) -> Self {
        Self { rule, message, field_path: None }
    }

    const fn at(self, field_path: &'static str) -> Self {
        Self { field_path: Some(field_path), ..self }
    }
}
