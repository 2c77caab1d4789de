//! CL0332: `minValues` that no launch can satisfy, held against the catalog in this binary.

use std::collections::BTreeSet;

use super::Rule;
use super::types_left::{OF_CLASS, TypesLeft};
use crate::core::catalog::matching::Matching;
use crate::core::model::requirements::normalized;
use crate::definitions::asked::PLACES;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};

pub static TOO_FEW: Rule = Rule::pass(
    "CL0332",
    "min-values-too-many",
    Warning,
    "The instance types that match all requirements have as many values as minValues asks for.",
);

pub static RULES: &[&Rule] = &[&TOO_FEW];

/// At most this many of the values that are left are named.
const NAMED_MAX: usize = 4;

pub(super) fn too_few(document: &Document, types: &TypesLeft<'_>, matching: &Matching<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for written in &types.list.written {
        let Some(least) = written.entry.min_values.and_then(|least| usize::try_from(least).ok()) else { continue };
        let key = normalized(&written.entry.key);
        let Some(left) = values_left(types, matching, key) else { continue };
        // Other rules speak of requirements that leave no type at all, and of a list that is too short itself.
        let is_listed = !written.entry.values.is_empty() && written.entry.values.len() < least;
        if left.is_empty() || left.len() >= least || is_listed {
            continue;
        }
        let named: Vec<&str> = left.iter().take(NAMED_MAX).copied().collect();
        let more = if left.len() > NAMED_MAX { ", ..." } else { "" };
        let message = format!(
            "minValues asks for {least} values of `{key}`, and the instance types that match have {}: {}{more}",
            left.len(),
            named.join(", ")
        );
        let place = format!("{}/minValues", written.pointer);
        let finding = Finding::at(&TOO_FEW, document, &place, FindingPlace::Value, message);
        findings.push(finding.hint(
            "lower it, or let more instance types in: the pool makes no node, unless minValuesPolicy is BestEffort",
        ));
    }
    findings
}

/// The values of a label that instance types have; `None` for other labels.
fn values_left<'m>(types: &TypesLeft<'_>, matching: &Matching<'m>, key: &str) -> Option<BTreeSet<&'m str>> {
    let is_of_types = !OF_CLASS.contains(&key) && !PLACES.contains(&key) && matching.values.defines(key);
    if !is_of_types || key == crate::api::keys::CAPACITY_TYPE {
        return None;
    }
    let allowed = |value: &&str| types.entries.iter().filter(|entry| entry.key == key).all(|it| it.allows(value));
    Some(matching.values_in(key, &types.types).filter(allowed).collect())
}
