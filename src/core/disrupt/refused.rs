//! Why a node stays.

use crate::core::plan::{DefinitionPlace, ReasonCode};

/// Why a node stays, in words, and where the definition has what keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub code: ReasonCode,
    pub text: String,
    pub definition: Option<DefinitionPlace>,
}

impl Refused {
    /// With what the node would go for before it.
    pub fn although(self, cause: &str) -> Self {
        Self { text: format!("{cause}, but {}", self.text), ..self }
    }
}

/// By what no definition says.
impl From<(ReasonCode, String)> for Refused {
    fn from((code, text): (ReasonCode, String)) -> Self {
        Self { code, text, definition: None }
    }
}
