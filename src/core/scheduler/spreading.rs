//! What spreads come to beside their counts: which domains pods can get to, and who is counted by spreads of others.
//!
//! kube-scheduler spreads over domains that have a node. The reference also over those in which its pools could have one, which is
//! what people want of it; but a domain that has no node, and in which the pod can not have one, is empty for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::model::{IndexVec, Requirements};

use super::class::{ClassIndex, VariantIndex};
use super::domains::template_values;
use super::offerings::OfferingSet;
use super::problem::Problem;
use super::template::{Template, TemplateIndex};
use super::topology::{Domain, GroupIndex, GroupKind, KeyIndex};

/// By domain, whether a node could be bought there.
type Reached = IndexVec<KeyIndex, Vec<bool>>;

#[derive(Debug, Default)]
pub struct Spreading {
    /// `None` where a class gets to every domain that it is spread over.
    reached: IndexVec<ClassIndex, Option<Rc<Reached>>>,
    /// Spreads that count pods of a class, are no constraint of theirs, and are one of pods that wait.
    of_others: IndexVec<ClassIndex, Vec<GroupIndex>>,
    /// All of these.
    mixed: BTreeSet<GroupIndex>,
    /// Spreads of pods that wait, over something else than hosts.
    of_waiting: Vec<GroupIndex>,
    /// Those of them with domains that have no node and that some of the pods do not get to.
    partly_reached: Vec<GroupIndex>,
}

impl Spreading {
    /// O(pods + classes x groups of each + distinct requirements x templates x keys).
    pub fn new(problem: &Problem<'_>) -> Self {
        let waiting = waiting(problem);
        let owned: BTreeSet<GroupIndex> =
            waiting.iter().flat_map(|class| &problem.classes[*class].spreads).copied().collect();
        let of_others = problem.classes.iter().map(|pods| {
            let foreign = pods.counted_in.iter().filter(|group| owned.contains(group) && !pods.spreads.contains(group));
            foreign.copied().collect()
        });
        let of_others: IndexVec<ClassIndex, Vec<GroupIndex>> = of_others.collect();
        let mut spreading = Self {
            mixed: of_others.iter().flatten().copied().collect(),
            of_others,
            of_waiting: owned.iter().copied().filter(|group| !is_by_host(problem, *group)).collect(),
            reached: IndexVec::repeat(None, problem.classes.len()),
            partly_reached: Vec::new(),
        };
        let mut known: BTreeMap<(Vec<usize>, &[Requirements]), Rc<Reached>> = BTreeMap::new();
        for (class, pods) in problem.classes.enumerated() {
            let spreads = spreads_of(problem, class);
            if spreads.is_empty() {
                continue;
            }
            let profiles: BTreeSet<usize> = pods.variants.iter().map(|variant| problem.profile(*variant)).collect();
            let reached = known.entry((profiles.into_iter().collect(), pods.volume_alternatives.as_slice()));
            let reached = Rc::clone(reached.or_insert_with(|| Rc::new(reached_by(problem, class))));
            let missed = spreads.into_iter().filter(|group| misses_some(problem, *group, &reached));
            let missed: Vec<GroupIndex> = missed.collect();
            if !missed.is_empty() {
                spreading.reached[class] = Some(reached);
                spreading.partly_reached.extend(missed.into_iter().filter(|group| owned.contains(group)));
            }
        }
        spreading.partly_reached.sort_unstable();
        spreading.partly_reached.dedup();
        spreading
    }

    /// Whether a pod of the class could have a node bought in the domain; true as well where nothing depends on it.
    pub fn reaches(&self, class: ClassIndex, key: KeyIndex, domain: Domain) -> bool {
        let reached = self.reached[class].as_ref();
        reached.is_none_or(|reached| reached[key].get(domain as usize).copied().unwrap_or(false))
    }

    /// Whether [`Self::reaches`] is true of every domain.
    pub fn reaches_all(&self, class: ClassIndex) -> bool {
        self.reached[class].is_none()
    }

    pub fn of_others(&self, class: ClassIndex) -> &[GroupIndex] {
        &self.of_others[class]
    }

    /// Spreads of pods that wait, which count others that do not have them.
    pub fn mixed(&self) -> &BTreeSet<GroupIndex> {
        &self.mixed
    }

    pub fn of_waiting(&self) -> &[GroupIndex] {
        &self.of_waiting
    }

    pub fn partly_reached(&self) -> &[GroupIndex] {
        &self.partly_reached
    }
}

fn is_by_host(problem: &Problem<'_>, group: GroupIndex) -> bool {
    problem.domains.is_hostname(problem.groups[group].key)
}

/// Classes of pods that are on no node, or on one that goes.
fn waiting(problem: &Problem<'_>) -> BTreeSet<ClassIndex> {
    let pods = problem.snapshot.pods.iter().zip(&problem.class_of_pod);
    let unbound = pods.filter(|(pod, _)| pod.spec.node_name.is_none() && !pod.is_terminal());
    let going = problem.nodes.iter().filter(|node| node.being_removed);
    let displaced = going.flat_map(|node| &node.pods).map(|(_, class)| *class);
    unbound.filter_map(|(_, class)| *class).chain(displaced).collect()
}

/// Over something else than hosts, with those that are preferences.
fn spreads_of(problem: &Problem<'_>, class: ClassIndex) -> BTreeSet<GroupIndex> {
    let variants = problem.classes[class].variants.iter();
    let constraints = variants.flat_map(|variant| &problem.variants[*variant].constraints).copied();
    let is_spread = |group: &GroupIndex| matches!(problem.groups[*group].kind, GroupKind::Spread(_));
    constraints.filter(is_spread).filter(|group| !is_by_host(problem, *group)).collect()
}

fn misses_some(problem: &Problem<'_>, group: GroupIndex, reached: &Reached) -> bool {
    let of_key = &reached[problem.groups[group].key];
    let is_reached = |domain: Domain| of_key.get(domain as usize).copied().unwrap_or(false);
    problem.eligible_domains(group).any(|domain| !problem.is_there(group, domain) && !is_reached(domain))
}

/// Where nodes could be bought for pods of a class, by key and domain.
pub(super) fn reached_by(problem: &Problem<'_>, class: ClassIndex) -> Reached {
    let keys = problem.domains.keys();
    let mut reached: Reached = keys.clone().map(|key| vec![false; problem.domains.count(key)]).collect();
    let pods = &problem.classes[class];
    for variant in &pods.variants {
        for template in problem.templates.indices() {
            for (set, requirements) in bought_for(problem, class, *variant, template) {
                for key in keys.clone().filter(|key| !problem.domains.is_hostname(*key)) {
                    let name = problem.domains.name(key);
                    let values = template_values(&problem.templates[template], &set, &requirements, name);
                    for domain in values.iter().filter_map(|value| problem.domains.get(key, value)) {
                        reached[key][domain as usize] = true;
                    }
                }
            }
        }
    }
    reached
}

/// What could be bought of a template for one pod, with what is then asked of its labels; once for each place that its volumes can
/// be reached from.
fn bought_for(
    problem: &Problem<'_>,
    class: ClassIndex,
    variant: VariantIndex,
    index: TemplateIndex,
) -> Vec<(OfferingSet, Requirements)> {
    let Ok(set) = problem.purchasable(variant, index) else { return Vec::new() };
    let own = &problem.variants[variant].requirements;
    let alternatives = &problem.classes[class].volume_alternatives;
    if alternatives.is_empty() {
        return vec![(set.clone(), own.clone())];
    }
    let template = &problem.templates[index];
    let within = |volumes: &Requirements| {
        let mut both = own.clone();
        both.extend(volumes);
        Some((restricted(template, set, volumes)?, both))
    };
    alternatives.iter().filter_map(within).collect()
}

fn restricted(template: &Template, set: &OfferingSet, requirements: &Requirements) -> Option<OfferingSet> {
    if template.requirements.refusal(requirements).is_some() {
        return None;
    }
    let mut set = set.clone();
    for (key, requirement) in requirements.iter().filter(|(key, _)| template.offerings.defines(key)) {
        template.offerings.restrict(&mut set, key, requirement);
    }
    template.offerings.prune(&mut set).then_some(set)
}
