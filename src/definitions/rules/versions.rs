//! CL0211 to CL0219: what the version of Karpenter that is installed does not know. Which one that is `--karpenter-version` or
//! `spec.lint.karpenterVersion` say; without them there is none of these but CL0215.

use super::Rule;
use crate::definitions::diagnostic::Severity::{Error, Warning};

pub static FIELD: Rule =
    Rule::pass("CL0211", "newer-field", Error, "The version of Karpenter that is installed has every field.");
pub static VALUE: Rule = Rule::pass(
    "CL0212",
    "newer-value",
    Error,
    "The version of Karpenter that is installed takes every word and every key of a label.",
);
pub static KIND: Rule =
    Rule::pass("CL0213", "newer-kind", Error, "The version of Karpenter that is installed serves every kind.");
pub static CHANGE: Rule = Rule::pass(
    "CL0214",
    "change-too-early",
    Error,
    "The version of Karpenter that is installed lets every field be changed that is changed.",
);

pub static UNRELEASED: Rule =
    Rule::pass("CL0215", "unreleased-field", Warning, "Some release of Karpenter has every field.");

pub static RULES: &[&Rule] = &[&FIELD, &VALUE, &KIND, &CHANGE, &UNRELEASED];
