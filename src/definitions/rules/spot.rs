//! CL0336: spot pools with few instance types to choose from, held against the catalog in this binary.

use super::Rule;
use super::one_pool::is_static;
use super::requirements::TypesLeft;
use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::catalog::InstanceType;
use crate::core::model::requirements::normalized;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, Place};

pub static FEW_TYPES: Rule = Rule::pass(
    "CL0336",
    "few-spot-types",
    Note,
    "A pool that asks for spot nodes has 15 instance types or more to choose from.",
);

pub static RULES: &[&Rule] = &[&FEW_TYPES];

/// With fewer, Karpenter replaces no single spot node by a cheaper spot node.
const ENOUGH: usize = 15;
/// So many are named.
const NAMED_MAX: usize = 4;

/// Few families have them, so nobody can choose among many.
const ACCELERATORS: [&str; 4] = ["nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi"];

pub(super) fn few_types(document: &Document, types: &TypesLeft<'_>) -> Option<Finding> {
    let is_spot = |value: &String| value == keys::SPOT;
    // Who names no capacity type has not asked for spot.
    let asked = types.list.written.iter().find(|written| {
        let entry = &written.entry;
        normalized(&entry.key) == keys::CAPACITY_TYPE
            && entry.operator == Operator::In
            && entry.values.iter().any(is_spot)
    })?;
    let of_key = |key: &str| key == keys::CAPACITY_TYPE;
    if is_static(document) || !types.entries.iter().filter(|it| of_key(&it.key)).all(|it| it.allows(keys::SPOT)) {
        return None;
    }
    let left: Vec<&InstanceType> = types.types.iter().copied().take(ENOUGH).collect();
    let is_accelerated = |it: &InstanceType| ACCELERATORS.iter().any(|resource| it.capacity.get(resource) > 0);
    // That there is none at all has rules of its own.
    if left.is_empty() || left.len() >= ENOUGH || left.iter().all(|it| is_accelerated(it)) {
        return None;
    }
    let named: Vec<&str> = left.iter().take(NAMED_MAX).map(|it| it.name.as_str()).collect();
    let more = if left.len() > NAMED_MAX { ", ..." } else { "" };
    let (named, are) = (named.join(", "), if left.len() == 1 { "type matches" } else { "types match" });
    let message = format!(
        "only {} instance {are} ({named}{more}): the fewer there are, the more often EC2 takes spot nodes back, or has none",
        left.len()
    );
    let place = asked.place(asked.entry.values.iter().position(is_spot));
    let finding = Finding::at(&FEW_TYPES, document, &place, Place::Value, message);
    Some(finding.hint(format!(
        "let in more families, generations or sizes: Karpenter replaces a spot node by a cheaper one only where {ENOUGH} types are cheaper"
    )))
}
