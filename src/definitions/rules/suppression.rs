//! CL0900 to CL0949: suppressions of findings.

use super::Rule;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};

pub static UNUSED: Rule =
    Rule::pass("CL0901", "unused-suppression", Warning, "A suppression suppresses a finding that is there.");
pub static MALFORMED: Rule = Rule::pass(
    "CL0902",
    "suppression-without-reason",
    Warning,
    "A suppression names rules that exist, and gives a reason.",
);
pub static OUTDATED_BASELINE: Rule = Rule::pass(
    "CL0903",
    "outdated-baseline",
    Note,
    "The findings of a baseline are still there; it is written anew when some are gone.",
);

pub static UNUSABLE_BASELINE: Rule = Rule::pass(
    "CL0904",
    "unusable-baseline",
    Error,
    "The baseline that cutlist.yaml names is a file of the repository that `--write-baseline` wrote.",
);

pub static RULES: &[&Rule] = &[&UNUSED, &MALFORMED, &OUTDATED_BASELINE, &UNUSABLE_BASELINE];
