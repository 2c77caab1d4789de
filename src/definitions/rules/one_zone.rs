//! CL0337: pools whose nodes are all in one zone.

use std::collections::{BTreeMap, BTreeSet};

use super::Rule;
use super::one_pool::{is_open, is_static};
use super::references::{REFERENCE, classes};
use super::told_apart::{Taint, own_labels, requirements, taints};
use crate::api::keys;
use crate::core::model::Requirements;
use crate::core::model::requirements::normalized;
use crate::definitions::asked::Written;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

pub static ONE_ZONE: Rule =
    Rule::revision("CL0337", "one-zone", Note, "The pools for some pods make nodes in several zones.", one_zone);

pub static RULES: &[&Rule] = &[&ONE_ZONE];

/// Key and value of a zone.
type Zone<'p> = (&'static str, &'p str);

/// Where pools with the same taints make nodes.
#[derive(Default)]
struct Group<'p> {
    zones: BTreeSet<Zone<'p>>,
    /// The labels of those that are in several zones.
    in_several: BTreeSet<BTreeSet<(&'p str, String)>>,
}

fn one_zone(revision: &Revision<'_>) -> Vec<Finding> {
    let dynamic = |pool: &&Object| !is_static(&pool.document) && !is_open(&pool.document);
    let pools: Vec<(&Object, Requirements)> =
        revision.of(Kind::NodePool).filter(dynamic).map(|pool| (pool, requirements(pool))).collect();
    let mut groups: BTreeMap<BTreeSet<Taint<'_>>, Group<'_>> = BTreeMap::new();
    for (pool, asked) in &pools {
        let group = groups.entry(taints(&pool.document)).or_default();
        match zone_of(asked) {
            Some(zone) => drop(group.zones.insert(zone)),
            None => drop(group.in_several.insert(own_labels(pool))),
        }
    }
    let classes = classes(revision);
    let mut findings = Vec::new();
    for (pool, asked) in &pools {
        let class = pool.document.str(&format!("{REFERENCE}/name")).and_then(|name| classes.get(name));
        let Some((key, zone)) = zone_of(asked).filter(|_| !is_bound_otherwise(class.copied(), asked)) else { continue };
        // Another pool is for the same pods, as far as anybody can tell: one of a set with a pool for each zone, or one
        // that stands in for this pool.
        let goes_elsewhere = |group: &Group<'_>| group.zones.len() > 1 || group.in_several.contains(&own_labels(pool));
        if groups.get(&taints(&pool.document)).is_some_and(goes_elsewhere) {
            continue;
        }
        let Some(written) = written(pool, key) else { continue };
        let place = if written.is_label { written.pointer.clone() } else { format!("{}/key", written.pointer) };
        let message = format!(
            "all nodes of the pool are in {zone}: when the zone fails, or has none left of what is asked for, the pods wait"
        );
        let finding = Finding::at(&ONE_ZONE, &pool.document, &place, FindingPlace::Value, message);
        findings.push(finding.hint(
            "let in more zones, or add a pool for each; right for pods that are bound to one zone, as by a volume",
        ));
    }
    findings
}

/// The only zone that is allowed, by its name or by its id.
fn zone_of(asked: &Requirements) -> Option<Zone<'_>> {
    [keys::ZONE, keys::ZONE_ID].into_iter().find_map(|key| Some((key, asked.get(key)?.single_value()?)))
}

fn written<'p>(pool: &'p Object, key: &str) -> Option<&'p Written> {
    let mut written = pool.asked.lists.iter().flat_map(|list| &list.written);
    written.find(|written| normalized(&written.entry.key) == key)
}

/// Whether reserved capacity, or a placement group, binds the pool to a zone.
fn is_bound_otherwise(class: Option<&Object>, asked: &Requirements) -> bool {
    let allows = |value: &str| asked.get(keys::CAPACITY_TYPE).is_none_or(|it| it.allows(value));
    let of_class = class.is_some_and(|class| {
        let spec = |field: &str| class.document.value.pointer(&format!("/spec/{field}"));
        spec("placementGroupSelector").is_some() || spec("capacityReservationSelectorTerms").is_some()
    });
    of_class || !(allows(keys::ON_DEMAND) || allows(keys::SPOT))
}
