//! READ. Text of a repository to validated definitions. Pure: files come in as bytes.

pub mod diagnostic;

use std::collections::BTreeMap;

use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_pool::NodePool;
use crate::api::settings::Settings;
use crate::api::source::SourceFile;

pub use diagnostic::{Diagnostic, Severity};

/// One parsed, validated document and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition<T> {
    pub value: T,
    pub file: String,
    /// From 1.
    pub line: usize,
}

/// What a revision defines, as far as it could be read; and everything that was found on the way.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    pub settings: Settings,
    pub node_pools: Vec<Definition<NodePool>>,
    pub node_classes: Vec<Definition<EC2NodeClass>>,
    pub disruption_budgets: Vec<Definition<DisruptionBudget>>,
    /// In the order file, line, column, code.
    pub diagnostics: Vec<Diagnostic>,
    /// Files and documents that were looked at.
    pub files_read: usize,
    pub documents_read: usize,
}

impl Definitions {
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Reads every `*.yaml`, `*.yml` and `*.json` among `files`. Never stops at the first mistake.
/// `variables` override those of `cutlist.yaml`.
pub fn read(_files: &[SourceFile], _variables: &BTreeMap<String, String>) -> Definitions {
    todo!()
}
