//! CL0507: what a class reserves on each node, held against the instance types that its pools let in.
//! Source: Karpenter's AWS provider, `pkg/providers/instancetype`: what is left of a type for pods is its capacity without what is reserved.

use std::collections::{BTreeMap, BTreeSet};

use super::Rule;
use super::kubelet_types::KUBELET;
use super::references::references;
use super::types_left::{MATCHING, entries};
use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::catalog::matching::{Entry, Matching};
use crate::core::model::{Quantity, Resources, resources};
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

pub static NOTHING_LEFT: Rule = Rule::revision(
    "CL0507",
    "all-is-reserved",
    Warning,
    "The reservations of a class leave something of an instance type that a pool lets in.",
    nothing_left,
);

pub static RULES: &[&Rule] = &[&NOTHING_LEFT];

const RESERVATIONS: [&str; 2] = ["kubeReserved", "systemReserved"];
/// Labels by which a pool lists what it lets in, from the smallest on.
const LISTING: [&str; 2] = [keys::INSTANCE_TYPE, "karpenter.k8s.aws/instance-size"];
const RESERVED: [&str; 2] = [resources::CPU, resources::MEMORY];

fn nothing_left(revision: &Revision<'_>) -> Vec<Finding> {
    let Some(matching) = MATCHING.as_ref() else { return Vec::new() };
    let mut classes: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for class in revision.of(Kind::EC2NodeClass) {
        classes.entry(class.name().unwrap_or_default()).or_default().push(class);
    }
    let mut findings = Vec::new();
    // One pool for which nothing is left says enough of a class.
    let mut said = BTreeSet::new();
    for (pool, name) in references(revision) {
        // Where two classes have one name, nobody knows which of them is meant.
        let Some([class]) = classes.get(name).map(Vec::as_slice) else { continue };
        for resource in RESERVED {
            let is_new = !said.contains(&(name, resource));
            let Some(finding) = is_new.then(|| of_pool(pool, &class.document, resource, matching)).flatten() else {
                continue;
            };
            said.insert((name, resource));
            findings.push(finding);
        }
    }
    findings
}

fn of_pool(pool: &Object, class: &Document, resource: &str, matching: &Matching<'_>) -> Option<Finding> {
    let (pointer, reserved) = reserved(class, resource)?;
    let asked = entries(pool.asked.lists.first()?);
    let relevant = matching.relevant(&asked);
    let (most, name) = matching.most(resource, &matching.types(&relevant))?;
    if most > reserved {
        return of_smallest(pool, class, (&pointer, resource, reserved), &asked, matching);
    }
    let pool_name = pool.name().unwrap_or_default();
    let message = format!(
        "of no instance type that the pool `{pool_name}` lets in any {resource} is left for pods: the class reserves {}",
        resources::format_amount(resource, reserved)
    );
    let finding = Finding::at(&NOTHING_LEFT, class, &pointer, FindingPlace::Value, message);
    let finding = finding.related(&pool.document, "/metadata/name", "the pool");
    Some(finding.hint(format!("the largest, `{name}`, has {}: reserve less", resources::format_amount(resource, most))))
}

/// Types and sizes that the pool lists, and of which nothing is left. A pool that lists neither lets in small types that nobody meant.
fn of_smallest(
    pool: &Object,
    class: &Document,
    (pointer, resource, reserved): (&str, &str, i64),
    asked: &[Entry],
    matching: &Matching<'_>,
) -> Option<Finding> {
    let lists = |entry: &&Entry| LISTING.contains(&entry.key.as_str()) && entry.operator == Operator::In;
    let listed = asked.iter().filter(lists).flat_map(|entry| entry.values.iter().map(move |value| (entry, value)));
    let is_eaten = |(entry, value): &(&Entry, &String)| {
        let only = Entry::of_label(&entry.key, value);
        let together: Vec<&Entry> = matching.relevant(asked).into_iter().chain([&only]).collect();
        matching.most(resource, &matching.types(&together)).is_some_and(|(most, _)| most <= reserved)
    };
    let eaten: Vec<&str> = listed.filter(is_eaten).map(|(_, value)| value.as_str()).collect();
    let (first, others) = eaten.split_first()?;
    let what = match others.len() {
        0 => format!("`{first}`"),
        count => format!("`{first}` and {count} more"),
    };
    let message = format!(
        "of {what}, which the pool `{}` lists, no {resource} is left for pods: the class reserves {}",
        pool.name().unwrap_or_default(),
        resources::format_amount(resource, reserved)
    );
    let mut finding = Finding::at(&NOTHING_LEFT, class, pointer, FindingPlace::Value, message);
    // The larger ones are bought all the same.
    finding.severity = Note;
    let finding = finding.related(&pool.document, "/metadata/name", "the pool");
    Some(finding.hint("reserve less, or leave them out of the pool: only the larger ones are bought"))
}

/// How much the class reserves of the resource altogether, and where the last part of it stands.
fn reserved(class: &Document, resource: &str) -> Option<(String, i64)> {
    let of = |reservation: &str| {
        let pointer = format!("{KUBELET}/{reservation}/{resource}");
        let value = class.value.pointer(&pointer)?;
        let text = value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))?;
        let quantity = text.parse::<Quantity>().ok().filter(|it| !it.is_negative())?;
        Some((pointer, Resources::amount(resource, quantity)))
    };
    let parts: Vec<(String, i64)> = RESERVATIONS.into_iter().filter_map(of).collect();
    let all = parts.iter().fold(0_i64, |sum, (_, amount)| sum.saturating_add(*amount));
    parts.into_iter().next_back().map(|(pointer, _)| (pointer, all))
}
