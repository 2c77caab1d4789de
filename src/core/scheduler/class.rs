//! Pods that scheduling can not tell apart are one class, solved once.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelector, PodAffinityTerm, PreferredSchedulingTerm, Toleration, TopologySpreadConstraint,
    WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::model::requirements::normalized;
use crate::model::{IndexVec, Requirement, Requirements, Resources};
use crate::snapshot::{Pod, Snapshot};
use cutlist_api::keys;
use cutlist_api::settings::{Packing, PreferencePolicy};

use super::devices::DeviceDemand;
use super::host_ports::{HostPort, host_ports};
use super::topology::{Domains, Group, GroupIndex, GroupKind, Spread};
use super::vectors::Vector;
use super::volumes::{Attachment, NODE_NAME, VolumeDemand, selector_requirements, term_requirements};
use crate::snapshot::selector;

pub use super::indices::{ClassIndex, VariantIndex};

/// How many pods of each class are to be placed, or found no place.
pub type Demand = BTreeMap<ClassIndex, usize>;

/// Pods that are interchangeable for scheduling.
#[derive(Debug)]
pub struct PodClass {
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub requests: Resources,
    pub request: Vector,
    pub host_ports: Vec<HostPort>,
    /// How many volumes of EBS each of them alone has attached.
    pub own_ebs_volumes: i64,
    pub attachments: Vec<Attachment>,
    /// Node requirements of the volumes, any of which will do; empty: none.
    pub volume_alternatives: Vec<Requirements>,
    /// Devices of the node that the pods ask for; most ask for none.
    pub devices: Option<Box<DeviceDemand>>,
    /// In the order in which preferences are given up; the first has all of them.
    pub variants: Vec<VariantIndex>,
    /// So many of the first variants have all preferences, each with another of the required terms, of which any will do.
    pub alternatives: usize,
    /// So many of the last variants have no preferences left, each with another of the required terms.
    pub without_preferences: usize,
    /// Groups that count these pods.
    pub counted_in: Vec<GroupIndex>,
    /// Required anti-affinity terms of these pods.
    pub anti_affinity: Vec<GroupIndex>,
    /// Spreads of these pods that must hold when all preferences were given up, ascending.
    pub spreads: Vec<GroupIndex>,
    pub priority: i32,
    /// Whether kube-scheduler may evict pods of lower priority for these.
    pub preempts: bool,
}

/// What a class asks for after some of its preferences were given up.
#[derive(Debug)]
pub struct Variant {
    pub requirements: Requirements,
    pub tolerations: Vec<Toleration>,
    /// Whether PreferNoSchedule taints repel.
    pub soft_taints_repel: bool,
    /// Constraints of the pods themselves.
    pub constraints: Vec<GroupIndex>,
    /// Whether only nodes that exist are known to have what the pods ask for.
    pub needs_existing: bool,
}

/// Collects groups, domains and variants while classes are made.
pub struct ClassBuilder {
    pub groups: IndexVec<GroupIndex, Group>,
    pub domains: Domains,
    pub variants: IndexVec<VariantIndex, Variant>,
    group_positions: BTreeMap<String, GroupIndex>,
    namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// Whether a taint with effect PreferNoSchedule exists anywhere; only then is tolerating it a step.
    soft_taints_exist: bool,
    preferences: PreferencePolicy,
    packing: Packing,
}

impl ClassBuilder {
    pub fn new(snapshot: &Snapshot, soft_taints_exist: bool, preferences: PreferencePolicy, packing: Packing) -> Self {
        Self {
            groups: IndexVec::new(),
            domains: Domains::default(),
            variants: IndexVec::new(),
            group_positions: BTreeMap::new(),
            namespaces: labels_of_namespaces(snapshot),
            soft_taints_exist,
            preferences,
            packing,
        }
    }

    /// Makes the class of a pod. `labels` are those of its labels that some selector looks at. Which groups count it by its labels is
    /// filled in when all groups are known.
    pub fn class(
        &mut self,
        pod: &Pod,
        labels: BTreeMap<String, String>,
        requests: Resources,
        volumes: VolumeDemand,
        devices: Option<Box<DeviceDemand>>,
    ) -> PodClass {
        let wishes = Wishes::of(pod, self.preferences);
        let mut wishes = self.wishes_in_groups(pod, wishes);
        let namespace = &pod.metadata.namespace;
        let sharing: Vec<GroupIndex> =
            volumes.shared_claims.iter().map(|claim| self.claim_group(namespace, claim)).collect();
        wishes.required_affinity.extend(&sharing);
        let (alternatives, without_preferences, variants) = self.in_order_of_preference(pod, &mut wishes);
        let needs_existing = devices.is_some();
        let variants = variants.into_iter().map(|variant| self.variants.push(Variant { needs_existing, ..variant }));
        let variants: Vec<VariantIndex> = variants.collect();
        let anti_affinity = wishes.required_anti_affinity;
        let strictest = self.variants.last().map(|variant| variant.constraints.as_slice()).unwrap_or_default();
        let is_spread = |group: &&GroupIndex| matches!(self.groups[**group].kind, GroupKind::Spread(_));
        let spreads = strictest.iter().filter(is_spread).copied().collect();
        PodClass {
            namespace: pod.metadata.namespace.clone(),
            labels,
            requests,
            request: Vector::default(),
            host_ports: host_ports(pod),
            own_ebs_volumes: volumes.own_ebs_volumes(),
            attachments: volumes.attachments,
            volume_alternatives: volumes.alternatives,
            devices,
            variants,
            alternatives,
            without_preferences,
            counted_in: sharing,
            anti_affinity,
            spreads,
            priority: pod.spec.priority.unwrap_or(0),
            preempts: pod.spec.preemption_policy.as_deref() != Some("Never"),
        }
    }

    /// What is left of the wishes as one thing after the other is given up, with how many of the first and of the last differ in
    /// nothing but the required term. The reference gives up all required terms but one before the first preference, so no variant
    /// of it has another term and no preference: a pod stays pending beside a node that kube-scheduler binds it to.
    fn in_order_of_preference(
        &self,
        pod: &Pod,
        wishes: &mut Wishes<GroupIndex, GroupIndex, GroupIndex>,
    ) -> (usize, usize, Vec<Variant>) {
        let mut terms = wishes.required_nodes.clone();
        let alternatives = terms.len().max(1);
        let mut variants = vec![wishes.variant(pod)];
        while wishes.give_up_one(self.soft_taints_exist) {
            variants.push(wishes.variant(pod));
        }
        if self.packing == Packing::Karpenter || variants.len() == alternatives {
            let without_preferences = if variants.len() == alternatives { alternatives } else { 1 };
            return (alternatives, without_preferences, variants);
        }
        // The last of the terms is that of the last variant, which stays the last.
        terms.pop();
        let last = variants.pop();
        for term in terms {
            wishes.required_nodes = vec![term];
            variants.push(wishes.variant(pod));
        }
        variants.extend(last);
        (alternatives, alternatives, variants)
    }

    /// The groups of each term, made once: no preference that is given up changes those of the others.
    fn wishes_in_groups(&mut self, pod: &Pod, wishes: Wishes) -> Wishes<GroupIndex, GroupIndex, GroupIndex> {
        let required_anti_affinity = wishes.required_anti_affinity.iter();
        let required_anti_affinity =
            required_anti_affinity.map(|term| self.affinity_group(pod, term, GroupKind::AntiAffinity)).collect();
        // A spread counts nodes that any of the required terms allows, also when all but one have been given up: the pod
        // still has them when kube-scheduler looks at it. The reference forgets them, and lets one zone take too many.
        let strict = wishes.strict_requirements(pod);
        let mut spreads = |spreads: &[TopologySpreadConstraint]| {
            spreads.iter().map(|it| self.spread_group(pod, it, &strict)).collect()
        };
        let (hard_spreads, soft_spreads) = (spreads(&wishes.hard_spreads), spreads(&wishes.soft_spreads));
        let required_affinity = self.required_affinity_groups(pod, &wishes.required_affinity);
        let mut preferred = |terms: &[WeightedPodAffinityTerm], kind: &GroupKind| {
            terms.iter().map(|term| self.affinity_group(pod, &term.pod_affinity_term, kind.clone())).collect()
        };
        Wishes {
            required_nodes: wishes.required_nodes,
            preferred_nodes: wishes.preferred_nodes,
            required_affinity,
            required_anti_affinity,
            preferred_affinity: preferred(&wishes.preferred_affinity, &GroupKind::Affinity),
            preferred_anti_affinity: preferred(&wishes.preferred_anti_affinity, &GroupKind::AntiAffinity),
            hard_spreads,
            soft_spreads,
            soft_taints_repel: wishes.soft_taints_repel,
        }
    }

    fn spread_group(&mut self, pod: &Pod, spread: &TopologySpreadConstraint, strict: &[Requirements]) -> GroupIndex {
        let honors_affinity = spread.node_affinity_policy.as_deref() != Some("Ignore");
        let honors_taints = spread.node_taints_policy.as_deref() == Some("Honor");
        let restricts = strict.iter().any(|requirements| !requirements.is_empty());
        let kind = GroupKind::Spread(Spread {
            max_skew: u32::try_from(spread.max_skew).unwrap_or(1).max(1),
            min_domains: spread.min_domains.and_then(|count| u32::try_from(count).ok()).unwrap_or(0),
            node_filter: if honors_affinity && restricts { strict.to_vec() } else { Vec::new() },
            tolerations: honors_taints.then(|| pod.spec.tolerations.to_vec()),
        });
        let selector =
            with_pod_labels(spread.label_selector.clone(), pod, spread.match_label_keys.iter().flatten(), "In");
        let namespaces = BTreeSet::from([pod.metadata.namespace.clone()]);
        self.group(&spread.topology_key, kind, selector, namespaces)
    }

    /// Of several required terms kube-scheduler counts only pods that satisfy all of them; the reference counts each term
    /// alone, and buys nodes on which such a pod never runs.
    fn required_affinity_groups(&mut self, pod: &Pod, terms: &[PodAffinityTerm]) -> Vec<GroupIndex> {
        let resolved: Vec<(Option<LabelSelector>, BTreeSet<String>)> =
            terms.iter().map(|term| (selector_of(pod, term), self.namespaces_of(pod, term))).collect();
        let selector = resolved.iter().map(|(selector, _)| selector.clone()).reduce(both).flatten();
        let namespaces = resolved.into_iter().map(|(_, namespaces)| namespaces).reduce(|one, two| &one & &two);
        let namespaces = namespaces.unwrap_or_default();
        let group = |term: &PodAffinityTerm| {
            self.group(&term.topology_key, GroupKind::Affinity, selector.clone(), namespaces.clone())
        };
        terms.iter().map(group).collect()
    }

    fn affinity_group(&mut self, pod: &Pod, term: &PodAffinityTerm, kind: GroupKind) -> GroupIndex {
        let namespaces = self.namespaces_of(pod, term);
        self.group(&term.topology_key, kind, selector_of(pod, term), namespaces)
    }

    /// The groups of the terms with which a pod keeps others away.
    pub fn anti_affinity_groups(&mut self, pod: &Pod) -> Vec<GroupIndex> {
        let mut groups: Vec<GroupIndex> = required_anti_affinity(pod)
            .iter()
            .map(|term| self.affinity_group(pod, term, GroupKind::AntiAffinity))
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    fn namespaces_of(&self, pod: &Pod, term: &PodAffinityTerm) -> BTreeSet<String> {
        let mut namespaces: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        if let Some(namespace_selector) = &term.namespace_selector {
            let selected =
                self.namespaces.iter().filter(|(_, labels)| selector::matches(Some(namespace_selector), labels));
            namespaces.extend(selected.map(|(name, _)| name.clone()));
        } else if namespaces.is_empty() {
            namespaces.insert(pod.metadata.namespace.clone());
        }
        namespaces
    }

    fn group(
        &mut self,
        key: &str,
        kind: GroupKind,
        selector: Option<LabelSelector>,
        namespaces: BTreeSet<String>,
    ) -> GroupIndex {
        let key = self.domains.key(normalized(key));
        self.known_or_new(Group { kind, key, selector, namespaces, claim: None })
    }

    /// What keeps pods on one node that use a claim which is attached to one node at a time.
    fn claim_group(&mut self, namespace: &str, claim: &str) -> GroupIndex {
        let (key, namespaces) = (self.domains.key(keys::HOSTNAME), BTreeSet::from([namespace.to_owned()]));
        let claim = Some(claim.to_owned());
        self.known_or_new(Group { kind: GroupKind::Affinity, key, selector: None, namespaces, claim })
    }

    fn known_or_new(&mut self, group: Group) -> GroupIndex {
        let identity = format!("{group:?}");
        if let Some(position) = self.group_positions.get(&identity) {
            return *position;
        }
        let group = self.groups.push(group);
        self.group_positions.insert(identity, group);
        group
    }
}

/// Every API server sets the name of a namespace as a label of it, so that is known also where the object is not.
fn labels_of_namespaces(snapshot: &Snapshot) -> BTreeMap<String, BTreeMap<String, String>> {
    let known = snapshot.namespaces.iter().filter_map(|namespace| {
        Some((namespace.metadata.name.clone()?, namespace.metadata.labels.clone().unwrap_or_default()))
    });
    let mut namespaces: BTreeMap<String, BTreeMap<String, String>> = known.collect();
    let of_pods = snapshot.pods.iter().map(|pod| pod.metadata.namespace.as_str());
    // Of a DaemonSet there may be no pod yet, and its nodes are still to come.
    let of_sets = snapshot.daemon_sets.iter().filter_map(|set| set.metadata.namespace.as_deref());
    for namespace in of_pods.chain(of_sets) {
        if !namespaces.contains_key(namespace) {
            namespaces.insert(namespace.to_owned(), BTreeMap::new());
        }
    }
    for (name, labels) in &mut namespaces {
        labels.entry(NAMESPACE_NAME.to_owned()).or_insert_with(|| name.clone());
    }
    namespaces
}

/// The label of a namespace that is its name.
pub const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The selector of a term, with the labels of the pod itself that it refers to.
fn selector_of(pod: &Pod, term: &PodAffinityTerm) -> Option<LabelSelector> {
    let selector = with_pod_labels(term.label_selector.clone(), pod, term.match_label_keys.iter().flatten(), "In");
    with_pod_labels(selector, pod, term.mismatch_label_keys.iter().flatten(), "NotIn")
}

/// What both select; nothing when one of them selects nothing.
fn both(one: Option<LabelSelector>, two: Option<LabelSelector>) -> Option<LabelSelector> {
    let (mut one, two) = (one?, two?);
    let expressions = one.match_expressions.get_or_insert_with(Vec::new);
    for (key, value) in two.match_labels.into_iter().flatten() {
        expressions.push(LabelSelectorRequirement { key, operator: "In".to_owned(), values: Some(vec![value]) });
    }
    expressions.extend(two.match_expressions.into_iter().flatten());
    Some(one)
}

/// The selector narrowed to pods whose values of these keys are (or are not) those of the pod itself.
fn with_pod_labels<'a>(
    selector: Option<LabelSelector>,
    pod: &Pod,
    keys: impl Iterator<Item = &'a String>,
    operator: &str,
) -> Option<LabelSelector> {
    let mut selector = selector?;
    for key in keys {
        if let Some(value) = pod.metadata.labels.get(key) {
            selector.match_expressions.get_or_insert_with(Vec::new).push(LabelSelectorRequirement {
                key: key.clone(),
                operator: operator.to_owned(),
                values: Some(vec![value.clone()]),
            });
        }
    }
    Some(selector)
}

fn is_hard(spread: &TopologySpreadConstraint) -> bool {
    spread.when_unsatisfiable != "ScheduleAnyway"
}

/// What a pod asks for, and what of it is left while preferences are given up one by one: first as its terms, then as their groups.
struct Wishes<Term = PodAffinityTerm, Weighted = WeightedPodAffinityTerm, Spread = TopologySpreadConstraint> {
    required_nodes: Vec<Requirements>,
    /// Ascending by weight; the last is the heaviest, of equals the first named.
    preferred_nodes: Vec<PreferredSchedulingTerm>,
    required_affinity: Vec<Term>,
    required_anti_affinity: Vec<Term>,
    preferred_affinity: Vec<Weighted>,
    preferred_anti_affinity: Vec<Weighted>,
    hard_spreads: Vec<Spread>,
    soft_spreads: Vec<Spread>,
    soft_taints_repel: bool,
}

impl Wishes {
    fn of(pod: &Pod, preferences: PreferencePolicy) -> Self {
        let none = Affinity::default();
        let affinity = pod.spec.affinity.as_deref().unwrap_or(&none);
        let node = affinity.node_affinity.as_ref();
        let required = node.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
        let mut wishes = Self {
            required_nodes: required.map(required_nodes).unwrap_or_default(),
            preferred_nodes: node
                .and_then(|node| node.preferred_during_scheduling_ignored_during_execution.clone())
                .unwrap_or_default(),
            required_affinity: Vec::new(),
            required_anti_affinity: Vec::new(),
            preferred_affinity: Vec::new(),
            preferred_anti_affinity: Vec::new(),
            hard_spreads: Vec::new(),
            soft_spreads: Vec::new(),
            soft_taints_repel: true,
        };
        if let Some(pods) = &affinity.pod_affinity {
            wishes.required_affinity =
                pods.required_during_scheduling_ignored_during_execution.clone().unwrap_or_default();
            wishes.preferred_affinity =
                pods.preferred_during_scheduling_ignored_during_execution.clone().unwrap_or_default();
        }
        if let Some(pods) = &affinity.pod_anti_affinity {
            wishes.required_anti_affinity =
                pods.required_during_scheduling_ignored_during_execution.clone().unwrap_or_default();
            wishes.preferred_anti_affinity =
                pods.preferred_during_scheduling_ignored_during_execution.clone().unwrap_or_default();
        }
        (wishes.hard_spreads, wishes.soft_spreads) =
            pod.spec.topology_spread_constraints.iter().cloned().partition(is_hard);
        if preferences == PreferencePolicy::Ignore {
            wishes.preferred_nodes.clear();
            wishes.preferred_affinity.clear();
            wishes.preferred_anti_affinity.clear();
            wishes.soft_spreads.clear();
        }
        heaviest_last(&mut wishes.preferred_nodes, |term| term.weight);
        heaviest_last(&mut wishes.preferred_affinity, |term| term.weight);
        heaviest_last(&mut wishes.preferred_anti_affinity, |term| term.weight);
        wishes
    }
}

impl<Term, Weighted, Spread> Wishes<Term, Weighted, Spread> {
    /// Node selector with each of the required terms; one entry without terms.
    fn strict_requirements(&self, pod: &Pod) -> Vec<Requirements> {
        if self.required_nodes.is_empty() {
            return vec![Requirements::from_labels(&pod.spec.node_selector)];
        }
        self.required_nodes.iter().map(|term| with_selector(pod, term)).collect()
    }

    /// Gives up one thing, in the reference's order. False when nothing is left to give up.
    fn give_up_one(&mut self, soft_taints_exist: bool) -> bool {
        if self.required_nodes.len() > 1 {
            self.required_nodes.remove(0);
            return true;
        }
        if self.preferred_affinity.pop().is_some()
            || self.preferred_anti_affinity.pop().is_some()
            || self.preferred_nodes.pop().is_some()
        {
            return true;
        }
        if !self.soft_spreads.is_empty() {
            self.soft_spreads.swap_remove(0);
            return true;
        }
        if soft_taints_exist && self.soft_taints_repel {
            self.soft_taints_repel = false;
            return true;
        }
        false
    }
}

impl Wishes<GroupIndex, GroupIndex, GroupIndex> {
    /// With all that is left.
    fn variant(&self, pod: &Pod) -> Variant {
        let mut requirements = match self.required_nodes.first() {
            Some(term) => with_selector(pod, term),
            None => Requirements::from_labels(&pod.spec.node_selector),
        };
        if let Some(preferred) = self.preferred_nodes.last() {
            requirements.extend(&term_requirements(&preferred.preference));
        }
        // kube-scheduler would bind it to a node of another system, whose kubelet refuses it.
        if let Some(os) = pod.spec.os.as_ref().filter(|os| !os.name.is_empty()) {
            requirements.add(keys::OPERATING_SYSTEM, Requirement::is_in([os.name.as_str()]));
        }
        let groups = [&self.hard_spreads, &self.soft_spreads, &self.required_affinity, &self.required_anti_affinity];
        let preferred = [&self.preferred_affinity, &self.preferred_anti_affinity];
        let mut constraints: Vec<GroupIndex> = groups.into_iter().chain(preferred).flatten().copied().collect();
        constraints.sort_unstable();
        constraints.dedup();
        Variant {
            requirements,
            tolerations: pod.spec.tolerations.to_vec(),
            soft_taints_repel: self.soft_taints_repel,
            constraints,
            needs_existing: false,
        }
    }
}

/// The node selector of a pod, and a term.
fn with_selector(pod: &Pod, term: &Requirements) -> Requirements {
    let mut both = Requirements::from_labels(&pod.spec.node_selector);
    both.extend(term);
    both
}

/// Any of these will do. Where no term matches any node, one that no node satisfies: a pod that runs stays where it is all the same.
fn required_nodes(selector: &NodeSelector) -> Vec<Requirements> {
    let mut terms = selector_requirements(selector);
    if terms.is_empty() {
        let mut nowhere = Requirements::new();
        nowhere.add(NODE_NAME, Requirement::is_in([""; 0]));
        terms.push(nowhere);
    }
    terms
}

/// Whether no node there is, or could be, matches the required node affinity of a pod.
pub fn matches_no_node(pod: &Pod) -> bool {
    let affinity = pod.spec.affinity.as_deref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    required.is_some_and(|selector| selector_requirements(selector).is_empty())
}

/// Of equals the one that the pod names first comes last too: the reference wants it first, and gives it up first.
fn heaviest_last<T>(terms: &mut [T], weight: impl Fn(&T) -> i32) {
    terms.reverse();
    terms.sort_by_key(weight);
}

fn required_anti_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    let pods = pod.spec.affinity.as_deref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    pods.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

/// Whether a pod keeps others away.
pub fn repels(pod: &Pod) -> bool {
    !required_anti_affinity(pod).is_empty()
}

/// Label keys that some selector of this pod looks at.
pub fn selector_keys(pod: &Pod, keys: &mut BTreeSet<String>) {
    for spread in &pod.spec.topology_spread_constraints {
        keys.extend(selector::keys(spread.label_selector.as_ref()).map(str::to_owned));
        keys.extend(spread.match_label_keys.iter().flatten().cloned());
    }
    let Some(affinity) = pod.spec.affinity.as_deref() else { return };
    let affinity_terms = affinity.pod_affinity.iter().flat_map(|pods| {
        let required = pods.required_during_scheduling_ignored_during_execution.iter().flatten();
        let preferred = pods.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        required.chain(preferred.map(|term| &term.pod_affinity_term))
    });
    let anti_affinity_terms = affinity.pod_anti_affinity.iter().flat_map(|pods| {
        let required = pods.required_during_scheduling_ignored_during_execution.iter().flatten();
        let preferred = pods.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        required.chain(preferred.map(|term| &term.pod_affinity_term))
    });
    for term in affinity_terms.chain(anti_affinity_terms) {
        keys.extend(selector::keys(term.label_selector.as_ref()).map(str::to_owned));
        keys.extend(term.match_label_keys.iter().flatten().cloned());
        keys.extend(term.mismatch_label_keys.iter().flatten().cloned());
    }
}
