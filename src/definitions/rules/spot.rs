//! CL0336: spot pools with few instance types to choose from, held against the catalog in this binary.

use serde_json::Value;

use super::Rule;
use super::one_pool::{is_open, is_static};
use super::types_left::TypesLeft;
use crate::api::keys;
use crate::core::catalog::InstanceType;
use crate::core::model::requirements::normalized;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::providers::is_of_auto_mode;

pub static FEW_TYPES: Rule = Rule::pass(
    "CL0336",
    "few-spot-types",
    Note,
    "A pool that makes spot nodes has 15 instance types or more to choose from.",
);

pub static RULES: &[&Rule] = &[&FEW_TYPES];

/// With fewer types than this, Karpenter replaces no single spot node by a cheaper spot node.
const ENOUGH: usize = 15;
/// At most this many types are named.
const NAMED_MAX: usize = 4;

/// Few families have accelerators, so nobody can choose among many types.
const ACCELERATORS: [&str; 4] = ["nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi"];

/// The place that says which capacity types the pool takes, or where that would stand. `None` for a pool that makes no
/// spot nodes.
fn asked(document: &Document, types: &TypesLeft<'_>) -> Option<(String, FindingPlace)> {
    let is_of_key = |key: &str| normalized(key) == keys::CAPACITY_TYPE;
    if is_static(document) || !types.entries.iter().filter(|it| is_of_key(&it.key)).all(|it| it.allows(keys::SPOT)) {
        return None;
    }
    let mut written = types.list.written.iter().filter(|it| is_of_key(&it.entry.key)).peekable();
    if written.peek().is_none() {
        // A requirement with a variable in it, or a mistake, is among those that are written all the same.
        let mut entries = document.items(&types.list.pointer).map(|(_, entry)| entry);
        let is_named = entries.any(|it| it.get("key").and_then(Value::as_str).is_none_or(is_of_key));
        // Karpenter takes spot before on-demand where both are allowed. What EKS Auto Mode does is not published.
        let is_known = !is_named && !is_open(document) && !is_of_auto_mode(document);
        return is_known.then(|| (types.list.pointer.clone(), FindingPlace::Key));
    }
    let places = written.map(|it| (it, it.entry.values.iter().position(|value| value == keys::SPOT)));
    // The requirement that names spot comes first, and then the first one that leaves it in.
    let (written, value) = places.min_by_key(|(_, value)| value.is_none())?;
    Some((written.place(value), FindingPlace::Value))
}

pub(super) fn few_types(document: &Document, types: &TypesLeft<'_>) -> Option<Finding> {
    let (at, place) = asked(document, types)?;
    let left: Vec<&InstanceType> = types.types.iter().take(ENOUGH).collect();
    let is_accelerated = |it: &InstanceType| ACCELERATORS.iter().any(|resource| it.capacity.get(resource) > 0);
    // Other rules speak of a pool with no type at all.
    if left.is_empty() || left.len() >= ENOUGH || left.iter().all(|it| is_accelerated(it)) {
        return None;
    }
    let named: Vec<&str> = left.iter().take(NAMED_MAX).map(|it| it.name.as_str()).collect();
    let more = if left.len() > NAMED_MAX { ", ..." } else { "" };
    let (named, are) = (named.join(", "), if left.len() == 1 { "type matches" } else { "types match" });
    let unasked =
        if place == FindingPlace::Key { "the pool names no capacity type, so it makes spot nodes first; " } else { "" };
    let message = format!(
        "{unasked}only {} instance {are} ({named}{more}): the fewer there are, the more often EC2 takes spot nodes back, or has none",
        left.len()
    );
    let finding = Finding::at(&FEW_TYPES, document, &at, place, message);
    let or_none = if unasked.is_empty() { "" } else { ", or require `karpenter.sh/capacity-type: on-demand`" };
    Some(finding.hint(format!(
        "let in more families, generations or sizes{or_none}: Karpenter replaces a spot node by a cheaper one only where {ENOUGH} types are cheaper"
    )))
}
