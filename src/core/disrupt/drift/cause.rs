//! Why a node drifts, as the condition `Drifted` of its NodeClaim says it.

use std::fmt;

use crate::plan::kind;

use super::selected::Selector;

/// What a node is not as it should be by, and the sentence about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    pub cause: DriftCause,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriftCause {
    /// The pool's template has another hash.
    Template,
    /// A label, and the position of its requirement in the pool; `None` where no single entry refuses the node.
    Requirement {
        key: String,
        position: Option<usize>,
    },
    /// The catalog does not have the instance type.
    Catalog,
    NodeClass,
    Selector(Selector),
    /// The reason that the NodeClaim reports; it could not be compared here.
    Reported(String),
}

/// Karpenter asks EC2 whether an instance type is there, and gives its answer this reason.
pub(super) const INSTANCE_TYPE_NOT_FOUND: &str = "InstanceTypeNotFound";
/// What was said by the catalog, the catalog takes back, so its reason is another than Karpenter's.
pub(super) const INSTANCE_TYPE_NOT_IN_CATALOG: &str = "InstanceTypeNotInCatalog";

impl DriftCause {
    /// The reason of the condition: Karpenter's, where it has one.
    pub fn reason(&self) -> &str {
        match self {
            Self::Template => "NodePoolDrifted",
            Self::Requirement { .. } => "RequirementsDrifted",
            Self::Catalog => INSTANCE_TYPE_NOT_IN_CATALOG,
            Self::NodeClass => "NodeClassDrift",
            Self::Selector(selector) => selector.reason(),
            Self::Reported(reason) => reason,
        }
    }
}

impl Drift {
    /// The reason, and the label where it is about one.
    pub fn kind(&self) -> Vec<String> {
        let reason = self.cause.reason();
        match &self.cause {
            DriftCause::Requirement { key, .. } => kind([reason, key]),
            _ => kind([reason]),
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.cause.reason(), self.message)
    }
}
