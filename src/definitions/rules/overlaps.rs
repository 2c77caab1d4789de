//! CL0620: pools that the same pods go to, and that no weight puts in order.

use std::collections::{BTreeMap, BTreeSet};

use super::Rule;
use super::one_pool::{is_at_rest, is_open, is_static, weight};
use super::references::{REFERENCE, classes};
use super::told_apart::{Taint, own_labels, requirements, taints};
use super::types_left::{MATCHING, entries};
use crate::api::ec2_node_class::EC2NodeClassSpec;
use crate::api::keys;
use crate::core::catalog::matching::Entry;
use crate::core::catalog::node_class::windows_build;
use crate::core::catalog::regions;
use crate::core::model::{Requirement, Requirements};
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::providers::is_of_another_provider;
use crate::definitions::revision::{Object, Revision};

pub static OVERLAP: Rule = Rule::revision(
    "CL0620",
    "overlapping-pools",
    Note,
    "Pools that the same pods can go to have different weights.",
    overlapping,
);

pub static RULES: &[&Rule] = &[&OVERLAP];

/// Each pool is held against at most this many of the pools before it. Pools that overlap are mostly found at the
/// first.
const COMPARED_MAX: usize = 20;

/// What pods choose a pool by, and its weight: pools that differ in it are told apart.
type Choice<'p> = (u64, BTreeSet<Taint<'p>>, BTreeSet<(&'p str, String)>, [Option<&'p str>; 2]);

/// EC2NodeClasses by their names.
type Classes<'c> = BTreeMap<&'c str, &'c Object>;

/// A pool with what it requires.
struct Asking<'p> {
    pool: &'p Object,
    asked: Requirements,
    entries: Vec<Entry>,
}

/// O(pools x [`COMPARED_MAX`] x instance types), where pools with the same choice differ in requirements.
fn overlapping(revision: &Revision<'_>) -> Vec<Finding> {
    let classes = classes(revision);
    let mut by_choice: BTreeMap<Choice<'_>, Vec<Asking<'_>>> = BTreeMap::new();
    let mut findings = Vec::new();
    for pool in revision.of(Kind::NodePool).filter(|pool| is_chosen(pool)) {
        let asking = Asking {
            pool,
            asked: with_region(requirements(pool)),
            entries: pool.asked.lists.iter().flat_map(entries).collect(),
        };
        let alike = by_choice.entry(choice(pool)).or_default();
        let first = alike.iter().take(COMPARED_MAX).find(|other| overlap(&classes, other, &asking));
        findings.extend(first.map(|first| finding(first.pool, pool)));
        alike.push(asking);
    }
    findings
}

/// Adds the region that the zones are in, as another pool may name the region alone.
fn with_region(mut asked: Requirements) -> Requirements {
    let zones = asked.get(keys::ZONE).and_then(Requirement::values).into_iter().flatten();
    let regions: Option<Vec<String>> = zones.map(|zone| Some(regions::of_zone(zone)?.to_owned())).collect();
    if let Some(regions) = regions.filter(|regions| !regions.is_empty()) {
        asked.add(keys::REGION, Requirement::is_in(regions));
    }
    asked
}

/// Whether pods have the pool make nodes.
fn is_chosen(pool: &Object) -> bool {
    let document = &pool.document;
    !(is_static(document) || is_open(document) || is_at_rest(document) || is_of_another_provider(document))
}

fn choice(pool: &Object) -> Choice<'_> {
    let class = ["group", "kind"].map(|field| pool.document.str(&format!("{REFERENCE}/{field}")));
    (weight(&pool.document), taints(&pool.document), own_labels(pool), class)
}

fn overlap(classes: &Classes<'_>, one: &Asking<'_>, other: &Asking<'_>) -> bool {
    // Another rule speaks of two pools with one name.
    if one.pool.name() == other.pool.name() {
        return false;
    }
    if one.asked.conflict(&other.asked).is_some() || !run_the_same(classes, one.pool, other.pool) {
        return false;
    }
    // The keys alone need not tell that both pools together leave no type, as with a family and a size that the family
    // does not have.
    let Some(matching) = MATCHING.as_ref() else { return false };
    let asked = [one, other].into_iter().flat_map(|asking| matching.relevant(&asking.entries));
    let together: Vec<&Entry> = asked.collect();
    !matching.types(&together).is_empty()
}

/// Whether nodes of both have one operating system. Nobody knows the operating system of a class that is not here.
fn run_the_same(classes: &Classes<'_>, one: &Object, other: &Object) -> bool {
    let reference = format!("{REFERENCE}/name");
    let (name, other_name) = (one.document.str(&reference), other.document.str(&reference));
    if name == other_name {
        return true;
    }
    let is_windows = |name: Option<&str>| {
        let spec = classes.get(name?)?.document.value.get("spec")?.clone();
        let spec: EC2NodeClassSpec = serde_json::from_value(spec).ok()?;
        Some(windows_build(spec.resolved_ami_family()).is_some())
    };
    is_windows(name).is_some_and(|windows| is_windows(other_name) == Some(windows))
}

fn finding(first: &Object, pool: &Object) -> Finding {
    let (one, other) = (first.name().unwrap_or_default(), pool.name().unwrap_or_default());
    let message = format!(
        "pods that NodePool `{one}` takes fit this one as well, and no weight says which comes first: Karpenter tries `{}` first, by its name",
        one.max(other)
    );
    Finding::at(&OVERLAP, &pool.document, "/metadata/name", FindingPlace::Value, message)
        .related(&first.document, "/metadata/name", "the other one")
        .hint("give the one that is preferred a higher `weight`, or let them differ in taints, labels or requirements")
}
