//! Classes that no offer can tell apart, as one.
//!
//! Thousands of workloads ask for some dozens of sizes. For the price of a fleet only size, requirements and what may share
//! a node count; labels matter when a pod is placed, not when a node is chosen.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Requirements;
use crate::scheduler::class::VariantIndex;
use crate::scheduler::topology::{Domain, GroupIndex, GroupKind, KeyIndex};
use crate::scheduler::vectors::{self, Vector};
use crate::scheduler::{ClassIndex, Demand, Problem};

/// Anti-affinity terms and ports that several classes share; beyond these the bound gets weaker, not wrong.
const EXCLUSIVE_PLACES_MAX: usize = 16;

#[derive(Clone, Debug)]
pub struct SizeClass {
    /// Ascending.
    pub classes: Vec<ClassIndex>,
    /// Pods of all classes together.
    pub count: usize,
    pub request: Vector,
    /// What its pods may ask for: any of these will do.
    pub variants: Vec<VariantIndex>,
    /// A number that kinds share which offers can not tell apart but by size.
    pub compatibility: usize,
    /// The most of it that one node can hold by its own rules: host ports, anti-affinity and spread over host names.
    pub most_per_node: usize,
    /// Numbers of the places of which a node has one, and each pod of this kind takes.
    pub exclusive: Vec<usize>,
    /// What its pods are meant for, as a zone or a capacity type, where that was decided.
    pub place: DomainChoice,
}

/// By topology key the domain that was decided on; empty: anywhere.
pub type DomainChoice = Vec<(KeyIndex, Domain)>;

/// What classes of one kind have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Identity<'p> {
    request: &'p Vector,
    profiles: Vec<usize>,
    exclusive: Vec<usize>,
    /// A bound on how many fit on one node means nothing beside pods without one.
    has_most_per_node: bool,
    volume_alternatives: &'p [Requirements],
}

/// Kinds of a demand, largest request first; with the number of exclusive places. `variants` by class.
/// O(classes x constraints).
pub fn kinds(
    problem: &Problem<'_>,
    demand: &Demand,
    variants: &BTreeMap<ClassIndex, Vec<VariantIndex>>,
) -> (Vec<SizeClass>, usize) {
    let exclusive = exclusive_places(problem, demand.keys().copied());
    let mut by_identity: BTreeMap<Identity<'_>, SizeClass> = BTreeMap::new();
    for (class, count) in demand.iter().filter(|(class, _)| variants.contains_key(class)) {
        let pods = &problem.classes[*class];
        let places = exclusive.iter().enumerate().filter(|(_, classes)| classes.contains(class));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        let profiles: Vec<usize> = variants[class].iter().map(|variant| problem.profile(*variant)).collect();
        let most = variants[class].iter().map(|variant| most_per_node(problem, *class, *variant)).max().unwrap_or(0);
        let identity = Identity {
            request: &pods.request,
            profiles,
            exclusive: places.clone(),
            has_most_per_node: most < usize::MAX,
            volume_alternatives: &pods.volume_alternatives,
        };
        let kind = by_identity.entry(identity).or_insert_with(|| SizeClass {
            classes: Vec::new(),
            count: 0,
            request: pods.request.clone(),
            variants: variants[class].clone(),
            compatibility: 0,
            most_per_node: 0,
            exclusive: places,
            place: DomainChoice::new(),
        });
        kind.classes.push(*class);
        kind.count += count;
        kind.most_per_node = kind.most_per_node.saturating_add(most);
    }
    let mut compatibilities: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    let with_compatibility = |(identity, kind): (Identity<'_>, SizeClass)| {
        let next = compatibilities.len();
        SizeClass { compatibility: *compatibilities.entry(identity.profiles).or_insert(next), ..kind }
    };
    let mut kinds: Vec<SizeClass> = by_identity.into_iter().map(with_compatibility).collect();
    for kind in kinds.iter_mut().filter(|kind| !kind.exclusive.is_empty()) {
        kind.most_per_node = 1;
    }
    kinds.sort_by_cached_key(|kind| {
        let request = &kind.request;
        (std::cmp::Reverse((request[vectors::CPU_DIMENSION], request[vectors::MEMORY_DIMENSION])), kind.classes.clone())
    });
    (kinds, exclusive.len())
}

/// What one node may hold of a class by the class's own rules.
fn most_per_node(problem: &Problem<'_>, class: ClassIndex, variant: VariantIndex) -> usize {
    let pods = &problem.classes[class];
    let mut most = if pods.host_ports.is_empty() { usize::MAX } else { 1 };
    for group in &problem.variants[variant].constraints {
        let compiled = &problem.groups[*group];
        let counts_itself = pods.counted_in.binary_search(group).is_ok();
        match &compiled.kind {
            GroupKind::AntiAffinity if counts_itself => most = 1,
            GroupKind::Spread(spread) if counts_itself && problem.domains.is_hostname(compiled.key) => {
                most = most.min(usize::try_from(spread.max_skew).unwrap_or(usize::MAX));
            }
            _ => {}
        }
    }
    most
}

/// Sets of classes of which one node can hold a single pod: they own the same anti-affinity term that selects them all, or
/// listen on the same port of the host. In the linear program each is a resource that a node has one of.
fn exclusive_places(problem: &Problem<'_>, classes: impl Iterator<Item = ClassIndex>) -> Vec<BTreeSet<ClassIndex>> {
    let mut by_term: BTreeMap<GroupIndex, BTreeSet<ClassIndex>> = BTreeMap::new();
    let mut by_port: BTreeMap<(i32, &str), BTreeSet<ClassIndex>> = BTreeMap::new();
    for class in classes {
        let pods = &problem.classes[class];
        for term in pods.anti_affinity.iter().filter(|term| pods.counted_in.binary_search(term).is_ok()) {
            by_term.entry(*term).or_default().insert(class);
        }
        for port in pods.host_ports.iter().filter(|port| port.address.is_empty()) {
            by_port.entry((port.port, &port.protocol)).or_default().insert(class);
        }
    }
    let distinct: BTreeSet<BTreeSet<ClassIndex>> = by_term.into_values().chain(by_port.into_values()).collect();
    // A class alone has its own bound on how many fit.
    let mut places: Vec<BTreeSet<ClassIndex>> = distinct.into_iter().filter(|classes| classes.len() > 1).collect();
    places.sort_by_key(|classes| std::cmp::Reverse(classes.len()));
    places.truncate(EXCLUSIVE_PLACES_MAX);
    places
}
