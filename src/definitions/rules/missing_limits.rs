//! CL0323: a pool that nothing bounds, beside others that have limits.

use super::Rule;
use super::one_pool::{is_at_rest, is_open, is_static, weight};
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

const LIMITS: &str = "/spec/limits";

pub static MISSING: Rule =
    Rule::revision("CL0323", "limits-missing", Note, "Where pools have limits, each of them has.", missing);

pub static RULES: &[&Rule] = &[&MISSING];

fn has_limits(document: &Document, pointer: &str) -> bool {
    document.members(pointer).next().is_some()
}

/// Where no pool has limits, nobody meant to have them, and there is nothing to say.
fn missing(revision: &Revision<'_>) -> Vec<Finding> {
    // Limits of the settings hold for all pools together.
    if revision.of(Kind::Settings).any(|settings| has_limits(&settings.document, LIMITS)) {
        return Vec::new();
    }
    let pools = || revision.of(Kind::NodePool).filter(|pool| !is_static(&pool.document));
    let is_bound = |pool: &&Object| has_limits(&pool.document, LIMITS) && !is_at_rest(&pool.document);
    // A pool that comes after pools with limits is there for when these limits are reached.
    let limited = pools().filter(is_bound).min_by_key(|pool| weight(&pool.document));
    let is_unbound = |pool: &&Object| pool.document.value.pointer(LIMITS).is_none() && !is_open(&pool.document);
    let finding = |pool: &Object| {
        let other = limited.filter(|other| weight(&other.document) <= weight(&pool.document))?;
        let name = other.name().unwrap_or_default();
        let message = format!("NodePool `{name}` has limits, and this one has none: nothing bounds what it launches");
        let finding = Finding::at(&MISSING, &pool.document, "/metadata/name", FindingPlace::Value, message);
        let finding = finding.related(&other.document, LIMITS, "limits of the other one");
        Some(finding.hint(
            "give it limits, such as `limits: { cpu: \"1000\" }`: they end what a mistake in a workload can cost",
        ))
    };
    pools().filter(is_unbound).filter_map(finding).collect()
}
