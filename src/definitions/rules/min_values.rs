//! CL0332: `minValues` that no launch can satisfy, held against the catalog in this binary.

use std::collections::BTreeSet;

use super::Rule;
use super::requirements::{MATCHING, OF_CLASS, PLACES, entries, lists};
use crate::core::catalog::matching::Matching;
use crate::core::model::requirements::normalized;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::findings::{Finding, Place};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::Revision;

pub static TOO_FEW: Rule = Rule::revision(
    "CL0332",
    "min-values-too-many",
    Warning,
    "The instance types that match all requirements have as many values as minValues asks for.",
    too_few,
);

pub static RULES: &[&Rule] = &[&TOO_FEW];

/// So many of the values that are left are named.
const NAMED_MAX: usize = 4;

fn too_few(revision: &Revision<'_>) -> Vec<Finding> {
    let Some(matching) = MATCHING.as_ref() else { return Vec::new() };
    let mut findings = Vec::new();
    for pool in revision.of(Kind::NodePool) {
        for list in lists(pool) {
            let all = entries(&list, |key| !OF_CLASS.contains(&key) && !PLACES.contains(&key));
            let relevant = matching.relevant(&all);
            for written in &list.written {
                let Some(least) = written.entry.min_values.and_then(|least| usize::try_from(least).ok()) else {
                    continue;
                };
                let key = normalized(&written.entry.key);
                let Some(left) = values_left(matching, &relevant, key) else { continue };
                // That no type is left at all, or that the list itself is too short, has a rule of its own.
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
                let finding = Finding::at(&TOO_FEW, &pool.document, &place, Place::Value, message);
                findings.push(finding.hint("lower it, or let more instance types in: the pool makes no node, unless minValuesPolicy is BestEffort"));
            }
        }
    }
    findings
}

/// The values of a label that instance types have; `None` for other labels.
fn values_left<'a>(
    matching: &'a Matching<'a>,
    relevant: &[&crate::core::catalog::matching::Entry],
    key: &str,
) -> Option<BTreeSet<&'a str>> {
    let is_of_types = !OF_CLASS.contains(&key) && !PLACES.contains(&key) && matching.values.defines(key);
    if !is_of_types || key == crate::api::keys::CAPACITY_TYPE {
        return None;
    }
    let allowed = |value: &&str| relevant.iter().filter(|entry| entry.key == key).all(|entry| entry.allows(value));
    let types = matching.types(relevant);
    let values = types.flat_map(|it| it.requirements.get(key).into_iter().flatten().map(String::as_str));
    Some(values.filter(allowed).collect())
}
