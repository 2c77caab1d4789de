//! CL0200 to CL0299: the form that the schema of a kind gives its fields.

use super::Rule;
use crate::definitions::diagnostic::Severity::{Error, Warning};

pub static UNKNOWN_FIELD: Rule =
    Rule::pass("CL0201", "unknown-field", Error, "A kind has only the fields of its schema.");
pub static MISSING_FIELD: Rule = Rule::pass("CL0202", "missing-field", Error, "Required fields are there.");
pub static WRONG_TYPE: Rule = Rule::pass("CL0203", "wrong-type", Error, "A field has the type of its schema.");
pub static UNQUOTED: Rule =
    Rule::pass("CL0204", "unquoted", Error, "Text that looks like a number or a boolean is quoted.");
pub static NOT_ONE_OF: Rule =
    Rule::pass("CL0205", "not-one-of", Error, "A field that takes certain words has one of them.");
pub static PATTERN: Rule = Rule::pass("CL0206", "malformed", Error, "Text has the form that its field asks for.");
pub static OUT_OF_RANGE: Rule = Rule::pass("CL0207", "out-of-range", Error, "A number is within its bounds.");
pub static COUNT: Rule = Rule::pass("CL0208", "length", Error, "Texts, lists and mappings have an allowed length.");
pub static OTHER: Rule = Rule::pass("CL0209", "schema", Error, "A document satisfies every other part of its schema.");
pub static FOREIGN_FIELD: Rule = Rule::pass(
    "CL0210",
    "unknown-field-of-workload",
    Warning,
    "Workloads beside the definitions have only the fields that Kubernetes knows; others are dropped in silence.",
);

pub static FOREIGN_TYPE: Rule = Rule::pass(
    "CL0217",
    "type-in-workload",
    Warning,
    "Fields, labels and annotations of workloads beside the definitions have the types that the API server reads.",
);

pub static NO_VALUE: Rule = Rule::pass("CL0216", "no-value", Warning, "A field or label that is written has a value.");

pub static RULES: &[&Rule] = &[
    &UNKNOWN_FIELD,
    &MISSING_FIELD,
    &WRONG_TYPE,
    &UNQUOTED,
    &NOT_ONE_OF,
    &PATTERN,
    &OUT_OF_RANGE,
    &COUNT,
    &OTHER,
    &FOREIGN_FIELD,
];

/// By their codes, these rules come behind those about versions.
pub static MORE_RULES: &[&Rule] = &[&NO_VALUE, &FOREIGN_TYPE];
