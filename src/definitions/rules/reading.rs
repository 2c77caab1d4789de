//! CL0001 to CL0099: what is wrong with the text, before any kind is known.

use super::Rule;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};

pub static ENCODING: Rule = Rule::pass("CL0001", "not-utf8", Error, "A definition is UTF-8 text.");
pub static TOO_LARGE: Rule = Rule::pass("CL0002", "file-too-large", Error, "A file has at most 8 MiB.");
pub static SYNTAX: Rule = Rule::pass("CL0003", "syntax", Error, "A definition is well-formed YAML or JSON.");
pub static DUPLICATE_KEY: Rule = Rule::pass(
    "CL0004",
    "duplicate-key",
    Error,
    "A mapping gives each key once; programs differ in which of two counts.",
);
pub static MERGE_KEY: Rule =
    Rule::pass("CL0005", "merge-key", Note, "Merge keys (`<<`) mean different things to different programs.");
pub static AMBIGUOUS: Rule = Rule::pass(
    "CL0006",
    "ambiguous-scalar",
    Error,
    "A plain scalar that kubectl and YAML 1.2 read differently (`yes`, `012`, `098`, `1_000`) is quoted or written another way.",
);
pub static LIMIT: Rule = Rule::pass(
    "CL0007",
    "limit",
    Error,
    "A document stays within the limits on depth, aliases, values and documents per file.",
);
pub static TAG: Rule = Rule::pass("CL0008", "tag", Error, "YAML tags mean nothing to Kubernetes.");
pub static COMPLEX_KEY: Rule = Rule::pass("CL0009", "complex-key", Error, "A key is text.");
pub static UNREADABLE: Rule =
    Rule::pass("CL0010", "unreadable", Error, "A document that the parser accepts can also be read as a value.");
pub static UNDEFINED_VARIABLE: Rule =
    Rule::pass("CL0011", "undefined-variable", Note, "A variable without a value is left as it is written.");
pub static SUBSTITUTION: Rule =
    Rule::pass("CL0012", "unsupported-substitution", Warning, "A form of substitution is one that Flux can read.");
pub static TOO_MANY: Rule =
    Rule::pass("CL0013", "too-many-findings", Note, "A file shows its first 200 findings; the rest is counted.");
pub static TEMPLATE: Rule = Rule::pass(
    "CL0014",
    "template",
    Note,
    "Templates, of a Helm chart or of another program, are not read; lint what they render.",
);
pub static LFS_POINTER: Rule =
    Rule::pass("CL0040", "lfs-pointer", Warning, "Definitions are in Git itself, and not in Git LFS.");
pub static NAME_NOT_TEXT: Rule = Rule::pass("CL0041", "name-not-utf8", Warning, "The name of a file is UTF-8 text.");
pub static NOT_LET: Rule =
    Rule::pass("CL0042", "unreadable-file", Error, "The system lets whoever starts this program read the files.");

pub static RULES: &[&Rule] = &[
    &ENCODING,
    &TOO_LARGE,
    &SYNTAX,
    &DUPLICATE_KEY,
    &MERGE_KEY,
    &AMBIGUOUS,
    &LIMIT,
    &TAG,
    &COMPLEX_KEY,
    &UNREADABLE,
    &UNDEFINED_VARIABLE,
    &SUBSTITUTION,
    &TOO_MANY,
    &TEMPLATE,
];

/// By their codes, these rules come behind those about kustomizations.
pub static MORE_RULES: &[&Rule] = &[&LFS_POINTER, &NAME_NOT_TEXT, &NOT_LET];
