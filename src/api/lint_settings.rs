//! `spec.lint` of `cutlist.yaml`: which findings count in the report of `cutlist lint`. Nothing else goes by it: `plan` and `run`
//! refuse what can not be used, whatever stands here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::validation::forms;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LintSettings {
    /// From which severity on a finding makes `cutlist lint` fail; `--fail-on` says it for one run. Unset: warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<FailOn>,
    /// The Karpenter that is installed, such as `"1.9"`: what is newer than it in a definition is an error. `--karpenter-version` says it for one
    /// run. Unset: the newest that is known, 1.14.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = forms::KARPENTER_VERSION.pattern))]
    pub karpenter_version: Option<String>,
    /// File of findings that are known and do not count, from the folder of this one: `cutlist lint . --baseline FILE --write-baseline`
    /// there makes it. `--baseline` takes its place for one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Files whose findings do not count. Patterns: `*` is part of a name, `**` any number of folders; one without `/` is for the name of
    /// a file or folder anywhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored_paths: Vec<String>,
    /// Other severities for rules. Of several that fit, the last one counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSettings>,
}

impl LintSettings {
    /// Whether nothing is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleSettings {
    /// Code or name of the rule: `CL0464`, `unpinned-alias`.
    pub rule: String,
    pub severity: RuleSeverity,
    /// Files that it is for, as patterns; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleSeverity {
    Error,
    Warning,
    Note,
    /// The finding does not count.
    Off,
}

/// The least severity that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailOn {
    Error,
    Warning,
    Note,
    Never,
}
