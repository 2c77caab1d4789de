//! How pods are divided over zones: kinds by zone, and what a spread makes certain before anything is placed.

use std::collections::{BTreeMap, BTreeSet};

use crate::scheduler::template::TemplateIndex;
use crate::scheduler::topology::{Domain, GroupIndex, GroupKind};
use crate::scheduler::{ClassIndex, Problem};
use cutlist_api::keys;

use super::kinds::{DomainChoice, SizeClass};

/// Of kinds by position and place, how many pods; no place where they may be in any.
pub type Counts = BTreeMap<(usize, DomainChoice), usize>;

/// A kind for each count, in their order.
pub fn divided<'c>(kinds: &[SizeClass], counts: &'c Counts) -> Vec<SizeClass> {
    let mut compatibilities: BTreeMap<(usize, &DomainChoice), usize> = BTreeMap::new();
    let of_place = |((position, place), count): (&'c (usize, DomainChoice), &usize)| {
        let kind = &kinds[*position];
        let next = compatibilities.len();
        let compatibility = *compatibilities.entry((kind.compatibility, place)).or_insert(next);
        SizeClass { count: *count, compatibility, place: place.clone(), ..kind.clone() }
    };
    counts.iter().map(of_place).collect()
}

/// How many pods of each kind are in each zone at least, however they are placed, and how many may be in any. `None` where a spread
/// makes nothing certain. O(classes x groups + pods of existing nodes).
pub fn certain(problem: &Problem<'_>, kinds: &[SizeClass], demand: &BTreeMap<ClassIndex, usize>) -> Option<Counts> {
    let fewest = fewest_by_class(problem, demand);
    if fewest.is_empty() {
        return None;
    }
    let key = problem.domains.find(keys::ZONE)?;
    let mut counts = Counts::new();
    for (position, kind) in kinds.iter().enumerate() {
        let mut anywhere = kind.count;
        for (zones, fewest) in kind.classes.iter().filter_map(|class| fewest.get(class)) {
            anywhere -= zones.len() * fewest;
            zones.iter().for_each(|zone| *counts.entry((position, vec![(key, *zone)])).or_default() += fewest);
        }
        if anywhere > 0 {
            counts.insert((position, DomainChoice::new()), anywhere);
        }
    }
    Some(counts)
}

/// By class the zones that it is spread over, and how many of its pods each has at least.
fn fewest_by_class(
    problem: &Problem<'_>,
    demand: &BTreeMap<ClassIndex, usize>,
) -> BTreeMap<ClassIndex, (Vec<Domain>, usize)> {
    let on_nodes =
        problem.nodes.iter().flat_map(|node| node.pods.iter().chain(&node.nominated)).map(|(_, class)| *class);
    let on_nodes: BTreeSet<ClassIndex> = on_nodes.collect();
    // Whom a spread counts beside its own pods may be anywhere, and on nodes that exist pods may be as uneven as they like.
    let mut counted: BTreeMap<GroupIndex, usize> = BTreeMap::new();
    for class in on_nodes.iter().chain(demand.keys().filter(|class| !on_nodes.contains(class))) {
        problem.classes[*class].counted_in.iter().for_each(|group| *counted.entry(*group).or_default() += 1);
    }
    let of_class = |(class, pods): (&ClassIndex, &usize)| {
        let groups = problem.classes[*class].counted_in.iter().filter(|group| counted[*group] == 1);
        let fewest = groups.filter_map(|group| fewest(problem, *class, *pods, *group));
        Some((*class, fewest.max_by_key(|(_, fewest)| *fewest)?))
    };
    demand.iter().filter(|(class, _)| !on_nodes.contains(class)).filter_map(of_class).collect()
}

/// Zones, and how many of so many pods each has at least when all of them obey this spread over zones and it counts no others: with
/// `m` in the emptiest, the others have `m + maxSkew` at most.
fn fewest(problem: &Problem<'_>, class: ClassIndex, pods: usize, group: GroupIndex) -> Option<(Vec<Domain>, usize)> {
    let compiled = &problem.groups[group];
    let GroupKind::Spread(spread) = &compiled.kind else { return None };
    let variants = &problem.classes[class].variants;
    let all_obey = variants.iter().all(|variant| problem.variants[*variant].constraints.contains(&group));
    let is_counted = |template: TemplateIndex| {
        variants.iter().all(|variant| problem.purchasable(*variant, template).is_err())
            || problem.counts_template(group, template)
    };
    let is_everywhere = problem.spreading.reaches_all(class);
    if problem.domains.name(compiled.key) != keys::ZONE
        || !all_obey
        || !is_everywhere
        || !problem.templates.indices().all(is_counted)
    {
        return None;
    }
    let zones: Vec<Domain> = problem.eligible_domains(group).collect();
    let others = zones.len().checked_sub(1)?;
    let skew = usize::try_from(spread.max_skew).unwrap_or(usize::MAX).max(1);
    let fewest = pods.checked_sub(others.saturating_mul(skew))?.div_ceil(zones.len());
    (fewest > 0).then_some((zones, fewest))
}
