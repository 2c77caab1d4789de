//! CL0120 to CL0139: what stands for variables.

use super::Rule;
use crate::definitions::diagnostic::Severity::Note;

pub static SHELL_TEXT: Rule = Rule::pass(
    "CL0120",
    "shell-text",
    Note,
    "In user data only variables with a value are replaced: the rest is left to the instance's shell.",
);
pub static DEFAULT: Rule =
    Rule::pass("CL0121", "default-value", Note, "For a variable without a value its default stands.");

pub static RULES: &[&Rule] = &[&SHELL_TEXT, &DEFAULT];
