//! CL0325 to CL0349: what requirements say of instance types, held against the catalog in this binary. It may be older than what EC2
//! sells, so nothing here is an error.

use super::types_left::{CATALOG, MATCHING, OF_CLASS, TypesLeft};
use super::{Rule, limits, min_values, near_labels, node_pool, spot, zones};
use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::catalog::labels::AWS_PREFIX;
use crate::core::catalog::matching::Matching;
use crate::core::catalog::values::Fault;
use crate::core::model::Requirement;
use crate::core::model::requirements::normalized;
use crate::definitions::asked::{Asked, KINDS, List, PLACES, Written, lists_of_pod, pods_of};
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

pub static VALUE: Rule = Rule::pass(
    "CL0325",
    "value-of-no-instance-type",
    Warning,
    "Values that requirements and selectors name are those of some instance type.",
);
pub static BOUND: Rule = Rule::pass(
    "CL0326",
    "bound-beyond-instance-types",
    Warning,
    "Gt, Lt, Gte, Lte and DoesNotExist leave some instance type.",
);
pub static UNIT: Rule = Rule::pass(
    "CL0327",
    "bound-in-another-unit",
    Warning,
    "Bounds are in the unit of the label, and leave out some instance type.",
);
pub static TOGETHER: Rule =
    Rule::pass("CL0328", "no-instance-type-for-all", Warning, "Some instance type matches all requirements together.");
pub static PRICE: Rule = Rule::pass(
    "CL0330",
    "instance-types-without-price",
    Note,
    "Some instance type that matches the requirements of a pool has a price in the catalog.",
);

pub static RULES: &[&Rule] = &[&VALUE, &BOUND, &UNIT, &TOGETHER];
/// By its code, this rule comes behind those about places.
pub static MORE_RULES: &[&Rule] = &[&PRICE];

/// Labels of which [`super::node_pool::UNKNOWN_VALUE`] speaks in pools.
const SAID_OF_POOLS: [&str; 2] = [keys::ARCHITECTURE, keys::CAPACITY_TYPE];

fn is_list(operator: Operator) -> bool {
    matches!(operator, Operator::In | Operator::NotIn)
}

/// What one object asks of instance types, held against the catalog. Its requirements are read once for all rules about them.
/// What of that depends on the catalog alone is worked out at the first object: for each further one O(requirements x (values that they name
/// + instance types / 64)), and a few looks at types where limits or `minValues` ask for more.
pub fn check(kind: Kind, document: &Document, asked: &Asked) -> Vec<Finding> {
    let Some(matching) = MATCHING.as_ref().filter(|_| KINDS.contains(&kind)) else { return Vec::new() };
    let lists = &asked.lists;
    let written = lists.iter().flat_map(|list| &list.written);
    let mut findings: Vec<Finding> = written.flat_map(|written| faults(document, kind, written, matching)).collect();
    let types: Vec<TypesLeft<'_>> = lists.iter().map(|list| TypesLeft::of(list, matching)).collect();
    findings.extend(types.iter().filter_map(|types| together(document, kind, types, matching)));
    if kind == Kind::NodePool {
        for types in &types {
            findings.extend(without_price(document, types));
            findings.extend(min_values::too_few(document, types, matching));
            findings.extend(limits::below_all(document, types, matching));
            findings.extend(spot::few_types(document, types));
        }
    }
    findings
}

/// What a single requirement gets wrong.
fn faults(document: &Document, kind: Kind, written: &Written, matching: &Matching<'_>) -> Vec<Finding> {
    let key = normalized(&written.entry.key);
    let said_elsewhere = OF_CLASS.contains(&key)
        || PLACES.contains(&key)
        || (kind == Kind::NodePool && !written.is_label && SAID_OF_POOLS.contains(&key));
    if said_elsewhere {
        return Vec::new();
    }
    // The capacity type `reserved` is in no catalog, but in the account.
    let is_reserved = |fault: &Fault| {
        let value = fault.value.and_then(|index| written.entry.values.get(index));
        key == keys::CAPACITY_TYPE && value.is_some_and(|value| value == keys::RESERVED)
    };
    let faults = matching.values.faults(key, written.entry.operator, &written.entry.values);
    let finding = |fault: Fault| {
        let rule: &'static Rule = match (is_list(written.entry.operator), fault.matches_nothing) {
            (true, _) => fault.value.map(|_| &VALUE)?,
            (false, true) => &BOUND,
            (false, false) => &UNIT,
        };
        let place = written.place(fault.value);
        Some(Finding::at(rule, document, &place, FindingPlace::Value, fault.message).maybe_hint(fault.hint))
    };
    faults.into_iter().filter(|fault| !is_reserved(fault)).filter_map(finding).collect()
}

/// Findings in a workload beside the definitions: what its pods ask for on labels that only nodes of EC2 have, and what
/// no node of any provider has.
pub fn of_workload(document: &Document) -> Vec<Finding> {
    let Some((spec, matching)) = pods_of(document).zip(MATCHING.as_ref()) else { return Vec::new() };
    let is_of_ec2 = |written: &&Written| {
        let key = normalized(&written.entry.key);
        key.starts_with(AWS_PREFIX) || matches!(key, keys::INSTANCE_TYPE | keys::CAPACITY_TYPE)
    };
    let lists = lists_of_pod(document, spec);
    let written = || lists.iter().flat_map(|list| &list.written);
    let of_ec2 = written().filter(is_of_ec2);
    let mut findings: Vec<Finding> =
        of_ec2.flat_map(|written| faults(document, Kind::PodTemplate, written, matching)).collect();
    findings.retain(|finding| finding.rule.code != UNIT.code);
    for written in written() {
        findings.extend(near_labels::of_pod(document, written));
        findings.extend(node_pool::unknown_of_pod(document, written));
        findings.extend(zones::of_pod(document, written));
    }
    findings
}

/// Requirements that no type meets together, where some type meets each alone. Other rules speak of a requirement that
/// no type meets alone.
fn together(document: &Document, kind: Kind, types: &TypesLeft<'_>, matching: &Matching<'_>) -> Option<Finding> {
    let TypesLeft { list, entries, types } = types;
    if !types.is_empty() {
        return None;
    }
    let unmatched = matching.unmatched(entries).filter(|it| it.match_nothing.is_empty())?;
    let keys: Vec<&str> = unmatched.exclude_each_other.iter().map(|it| it.key.as_str()).collect();
    let last = list.written.iter().rfind(|it| keys.contains(&normalized(&it.entry.key)))?;
    // Another rule speaks of requirements on one key that exclude each other.
    let is_error = || keys.windows(2).all(|pair| pair[0] == pair[1]) && excludes_all(list, keys[0]);
    if kind == Kind::NodePool && is_error() {
        return None;
    }
    let place = if last.is_label { last.pointer.clone() } else { format!("{}/key", last.pointer) };
    let finding = Finding::at(&TOGETHER, document, &place, FindingPlace::Value, unmatched.together_text());
    Some(finding.hint(match kind {
        Kind::NodePool => "the pool makes no node, unless the catalog is older than the type that is meant",
        Kind::NodeOverlay => "the overlay changes nothing, unless the catalog is older than the type that is meant",
        _ => "no new node takes the pod, unless the catalog is older than the type that is meant",
    }))
}

/// Whether what a list says of one key leaves no value, whichever types there are.
fn excludes_all(list: &List, key: &str) -> bool {
    let of_key = list.written.iter().map(|it| &it.entry).filter(|entry| normalized(&entry.key) == key);
    let allowed = of_key.map(|entry| Requirement::new(entry.operator, entry.values.clone()));
    allowed.reduce(|one, other| one.intersection(&other)).is_some_and(|allowed| allowed.is_contradiction())
}

/// A pool that only types without a price would serve.
fn without_price(document: &Document, types: &TypesLeft<'_>) -> Option<Finding> {
    let TypesLeft { list, types, .. } = types;
    let catalog = CATALOG.as_ref().filter(|_| !list.written.is_empty())?;
    let first = &types.iter().next()?.name;
    if !types.iter().all(|it| it.offerings.iter().all(|offering| !offering.available)) {
        return None;
    }
    let message =
        format!("only instance types without a price in the catalog of {} match, such as `{first}`", catalog.date);
    let finding = Finding::at(&PRICE, document, &list.pointer, FindingPlace::Key, message);
    Some(finding.hint("no plan chooses them: give a catalog that has their prices with --catalog"))
}
