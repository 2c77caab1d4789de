//! Drift by what an EC2NodeClass selects in EC2: images, security groups, subnets, capacity reservations. None of it can be asked
//! here. What the class's status says of it, and the cloud of the instances, is compared; without that, what the selectors say is enough
//! for some changes, and of the others it is said that they are not foreseen.
//! Behaviour: reference, sections 5 (order), 6.2 and 6.7.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::Value;

use crate::catalog::node_class::{image_for, says_answered_earlier};
use crate::inputs::{Inputs, LiveInstance};
use crate::lifecycle::selectors::Selectors;
use crate::offer::{Images, Subnets};
use crate::plan::{Note, NoteCode};
use crate::snapshot::nodes::Machine;
use cutlist_api::ec2_node_class::{Ami, AmiSelectorTerm, EC2NodeClass, EC2NodeClassStatus, SecurityGroup};
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::node_pool::NodePool;

use super::live::{self, Groups};

/// How many terms of a selector a note names.
const TERMS_NAMED_MAX: usize = 3;
/// How many security groups a note names.
const GROUPS_NAMED_MAX: usize = 5;

/// What a selector of the definitions means for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has what is selected.
    AsSelected,
    /// Nothing here speaks for or against it.
    NotCompared,
    /// The sentence.
    Drifts(String),
    /// The selector has changed, and what it finds is not known here.
    MayDrift,
}

/// A selector, in the reference's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selector {
    Images,
    SecurityGroups,
    Subnets,
    CapacityReservations,
}

impl Selector {
    pub const ALL: [Self; 4] = [Self::Images, Self::SecurityGroups, Self::Subnets, Self::CapacityReservations];

    /// The reference's reason for drift.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Images => "AMIDrift",
            Self::SecurityGroups => "SecurityGroupDrift",
            Self::Subnets => "SubnetDrift",
            Self::CapacityReservations => "CapacityReservationDrift",
        }
    }

    /// Whether the terms are the same, in any order.
    pub fn is_same(self, one: &Selectors, other: &Selectors) -> bool {
        let is_identical = match self {
            Self::Images => one.ami_selector_terms == other.ami_selector_terms,
            Self::SecurityGroups => one.security_group_selector_terms == other.security_group_selector_terms,
            Self::Subnets => one.subnet_selector_terms == other.subnet_selector_terms,
            Self::CapacityReservations => {
                one.capacity_reservation_selector_terms == other.capacity_reservation_selector_terms
            }
        };
        is_identical || self.terms(one) == self.terms(other)
    }

    /// The condition of a class that says whether its terms find anything.
    fn condition(self) -> &'static str {
        match self {
            Self::Images => "AMIsReady",
            Self::SecurityGroups => "SecurityGroupsReady",
            Self::Subnets => "SubnetsReady",
            Self::CapacityReservations => "CapacityReservationsReady",
        }
    }

    /// Whether somebody can change it of an instance that runs, or of what the terms find, while the terms stay as they are.
    fn changes_outside(self) -> bool {
        matches!(self, Self::SecurityGroups | Self::Subnets)
    }

    /// In sentences.
    pub fn word(self) -> &'static str {
        match self {
            Self::Images => "image",
            Self::SecurityGroups => "security groups",
            Self::Subnets => "subnets",
            Self::CapacityReservations => "capacity reservations",
        }
    }

    pub fn field(self) -> &'static str {
        match self {
            Self::Images => "amiSelectorTerms",
            Self::SecurityGroups => "securityGroupSelectorTerms",
            Self::Subnets => "subnetSelectorTerms",
            Self::CapacityReservations => "capacityReservationSelectorTerms",
        }
    }

    fn terms(self, selectors: &Selectors) -> Terms {
        match self {
            Self::Images => Terms::of(&selectors.ami_selector_terms),
            Self::SecurityGroups => Terms::of(&selectors.security_group_selector_terms),
            Self::Subnets => Terms::of(&selectors.subnet_selector_terms),
            Self::CapacityReservations => Terms::of(&selectors.capacity_reservation_selector_terms),
        }
    }

    /// What the terms of a class were found to be, by its status.
    fn found(self, status: &EC2NodeClassStatus, zone: Option<&str>) -> BTreeSet<String> {
        let in_zone = |of: &str| zone.is_none_or(|zone| zone == of);
        match self {
            Self::Images => status.amis.iter().map(|image| image.id.clone()).collect(),
            Self::SecurityGroups => status.security_groups.iter().map(|group| group.id.clone()).collect(),
            Self::Subnets => {
                status.subnets.iter().filter(|it| in_zone(&it.zone)).map(|subnet| subnet.id.clone()).collect()
            }
            Self::CapacityReservations => status.capacity_reservations.iter().map(|it| it.id.clone()).collect(),
        }
    }
}

/// The terms of a selector, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Terms(BTreeSet<String>);

impl Terms {
    fn of<T: Serialize>(terms: &[T]) -> Self {
        Self(terms.iter().map(|term| serde_json::to_string(term).unwrap_or_default()).collect())
    }

    fn parsed(&self) -> impl Iterator<Item = serde_json::Map<String, Value>> {
        self.0.iter().filter_map(|term| serde_json::from_str(term).ok())
    }

    /// The ids, where all terms are ids. No term selects nothing, which only of reservations can be meant.
    fn ids(&self) -> Option<BTreeSet<String>> {
        if self.0.is_empty() {
            return None;
        }
        self.parsed().map(|term| term.get("id")?.as_str().map(str::to_owned)).collect()
    }

    /// For a sentence: `al2023@latest`, `sg-1, sg-2`, `team=shop and tier=web`.
    fn text(&self) -> String {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let part = |(key, value): (&String, &Value)| match (key.as_str(), value) {
            ("tags", Value::Object(tags)) => {
                let tags = tags.iter().map(|(key, value)| format!("{key}={}", word(value)));
                tags.collect::<Vec<_>>().join(" and ")
            }
            ("alias" | "id", value) => word(value),
            (key, value) => format!("{key} {}", word(value)),
        };
        let mut texts: Vec<String> =
            self.parsed().map(|term| term.iter().map(part).collect::<Vec<_>>().join(" and ")).collect();
        let further = texts.len().saturating_sub(TERMS_NAMED_MAX);
        texts.truncate(TERMS_NAMED_MAX);
        if further > 0 {
            texts.push(format!("{further} more"));
        }
        if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
    }
}

/// The class of a machine as it is defined, as it is applied, and as it was when the machine was launched.
pub struct Classes<'a> {
    name: &'a str,
    class: &'a EC2NodeClass,
    defined: Selectors,
    subnets: Subnets<'a>,
    applied: Option<(Selectors, &'a EC2NodeClass)>,
    launched: Option<Selectors>,
}

impl<'a> Classes<'a> {
    fn of(inputs: &Inputs<'a>, claim: &NodeClaim, name: &'a str, class: &'a EC2NodeClass) -> Self {
        let applied = inputs.snapshot.node_classes.iter().find(|class| class.metadata.name.as_deref() == Some(name));
        let applied = applied.map(|class| (Selectors::of(&class.spec), class));
        let (subnets, defined) = (Subnets::of(inputs, class), Selectors::of(&class.spec));
        Self { name, class, defined, subnets, applied, launched: Selectors::launched_with(claim) }
    }

    /// What the machine was launched with, as far as anybody can tell.
    fn before(&self) -> Option<&Selectors> {
        self.launched.as_ref().or_else(|| self.applied.as_ref().map(|(selectors, _)| selectors))
    }

    /// The status of the applied class, where it says what these terms find: the terms are the same, and it was found for them.
    fn status_for(&self, selector: Selector, terms: &Selectors) -> Option<&'a EC2NodeClassStatus> {
        let (_, applied) = self.applied.as_ref().filter(|(selectors, _)| selector.is_same(selectors, terms))?;
        applied.status_now()
    }

    /// What the terms of the definitions find; `None` where that is not known, and where it is nothing: such a class is not ready, and
    /// nothing can be compared with it.
    pub fn selected_now(&self, selector: Selector) -> Option<BTreeSet<String>> {
        if let Some(status) = self.status_for(selector, &self.defined) {
            let is_not_ready = |it: &Condition| it.type_ == selector.condition() && it.status != "True";
            if status.conditions.iter().any(is_not_ready) {
                return None;
            }
            // What was found a while ago may have changed since, and unknown is no reason to remove a node.
            let is_old = |it: &Condition| it.type_ == selector.condition() && says_answered_earlier(it);
            let found = selector.found(status, None);
            if !found.is_empty() && !status.conditions.iter().any(is_old) {
                return Some(found);
            }
        }
        selector.terms(&self.defined).ids()
    }

    /// What the terms that the machine was launched with find, as far as that is known.
    pub fn selected_before(&self, selector: Selector) -> Option<BTreeSet<String>> {
        let before = self.before()?;
        selector.terms(before).ids().or_else(|| Some(selector.found(self.status_for(selector, before)?, None)))
    }

    /// The security groups of a machine by those that are selected.
    fn groups<'i>(&self, inputs: &'i Inputs<'_>, machine: &Machine<'_>) -> Option<Groups<'i>> {
        let now = self.selected_now(Selector::SecurityGroups);
        Groups::of(now.as_ref(), self.selected_before(Selector::SecurityGroups), inputs, machine)
    }

    pub fn verdict(&self, selector: Selector, inputs: &Inputs<'_>, machine: &Machine<'_>) -> Verdict {
        let said = |result: Result<(), String>| match result {
            Ok(()) => Verdict::AsSelected,
            Err(text) => Verdict::Drifts(text),
        };
        if selector == Selector::Images && inputs.policy.images.is_missing(self.name) {
            return Verdict::NotCompared;
        }
        let by_facts = match selector {
            Selector::Images => self.by_image(inputs, machine),
            Selector::SecurityGroups => {
                self.groups(inputs, machine).map(|groups| groups.verdict(self.name, live::is_strict(inputs)))
            }
            Selector::Subnets => live::by_subnet(self.name, self.selected_now(selector).as_ref(), inputs, machine)
                .or_else(|| self.by_zone(machine)),
            Selector::CapacityReservations => self.by_reservation(inputs, machine),
        };
        if let Some(result) = by_facts {
            return said(result);
        }
        if selector == Selector::Images && inputs.policy.images.of_class(self.name).is_some() {
            return Verdict::NotCompared;
        }
        let Some(before) = self.before() else { return Verdict::NotCompared };
        if selector.is_same(before, &self.defined) {
            // What a claim says of it was then seen under these terms, and counts until it is looked at again.
            let may_be_reported = selector.changes_outside() && self.is_applied(selector);
            let is_known = self.launched.is_some() && !may_be_reported;
            return if is_known { Verdict::AsSelected } else { Verdict::NotCompared };
        }
        self.by_change(selector, machine, before).map_or(Verdict::MayDrift, said)
    }

    /// Whether the terms of the definitions are in the cluster.
    fn is_applied(&self, selector: Selector) -> bool {
        self.applied.as_ref().is_some_and(|(applied, _)| selector.is_same(applied, &self.defined))
    }

    /// The image that is locked for the machine; `None` where none is, or nobody knows its instance type.
    pub fn locked_image<'i>(&self, inputs: &'i Inputs<'_>, machine: &Machine<'_>) -> Option<&'i Ami> {
        let locked = inputs.policy.images.of_class(self.name)?;
        let name = machine.label(keys::INSTANCE_TYPE)?;
        let instance_type = inputs.catalog.instance_types.iter().find(|it| it.name == name)?;
        image_for(instance_type, &machine.labels, locked)
    }

    /// By the image that it runs, as the cloud or the claim says. Where images are locked, they alone count: nobody reviewed another.
    fn by_image(&self, inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<Result<(), String>> {
        let image = live::image_of(inputs, machine)?;
        let class = self.name;
        let (images, all) = match Images::of(inputs, self.class) {
            Images::Locked(_) => {
                let locked = self.locked_image(inputs, machine)?;
                let text = || format!("cutlist.lock has {} for EC2NodeClass {class}, the node runs {image}", locked.id);
                return Some(if locked.id == image { Ok(()) } else { Err(text()) });
            }
            Images::Found { images, all } => (images, all),
            Images::Unknown => {
                let now = Selector::Images.terms(&self.defined);
                let text = || format!("EC2NodeClass {class} names {}, the node runs {image}", now.text());
                return Some(if now.ids()?.contains(image) { Ok(()) } else { Err(text()) });
            }
        };
        let name = machine.label(keys::INSTANCE_TYPE)?;
        let instance_type = inputs.catalog.instance_types.iter().find(|it| it.name == name)?;
        match image_for(instance_type, &machine.labels, images) {
            Some(selected) if selected.id == image => Some(Ok(())),
            Some(selected) => {
                Some(Err(format!("EC2NodeClass {class} selects {} now, the node runs {image}", selected.id)))
            }
            // What is not known may be the one for this type.
            None => all.then(|| {
                Err(format!("EC2NodeClass {class} selects no image for this instance type, the node runs {image}"))
            }),
        }
    }

    /// A subnet is in one zone: where none is selected in the node's, its own is not among them.
    fn by_zone(&self, machine: &Machine<'_>) -> Option<Result<(), String>> {
        let zone = machine.label(keys::ZONE)?;
        let zones = self.subnets.zones_found()?;
        let text = || format!("EC2NodeClass {} selects no subnet in {zone}, where the node is", self.name);
        (!zones.contains(zone)).then(|| Err(text()))
    }

    /// Only instances that were launched into a reservation can lose it.
    fn by_reservation(&self, inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<Result<(), String>> {
        let of_instance = live::of(inputs, machine).and_then(|instance| instance.reservation_id.as_deref());
        let Some(id) = of_instance.or_else(|| machine.label(keys::CAPACITY_RESERVATION_ID)) else {
            return Some(Ok(()));
        };
        let selector = Selector::CapacityReservations;
        let found = self.status_for(selector, &self.defined).map(|status| selector.found(status, None));
        let has_none = self.defined.capacity_reservation_selector_terms.is_empty();
        let now = || if has_none { Some(BTreeSet::new()) } else { selector.terms(&self.defined).ids() };
        let selected = found.filter(|found| !found.is_empty()).or_else(now)?;
        let text = || format!("EC2NodeClass {} no longer selects {id}, which the node was launched into", self.name);
        Some(if selected.contains(id) { Ok(()) } else { Err(text()) })
    }

    /// By the selectors alone, and what those before were found to be.
    fn by_change(&self, selector: Selector, machine: &Machine<'_>, launched: &Selectors) -> Option<Result<(), String>> {
        let (before, now) = (selector.terms(launched), selector.terms(&self.defined));
        let text =
            |what: &str| format!("EC2NodeClass {} names {} instead of {}{what}", self.name, now.text(), before.text());
        if selector == Selector::Images {
            return is_another_version(&before, &now).then(|| Err(text(", another image")));
        }
        let found = || {
            let status = self.status_for(selector, launched)?;
            Some(selector.found(status, machine.label(keys::ZONE))).filter(|found| !found.is_empty())
        };
        let (of_before, of_now) = (before.ids().or_else(found)?, now.ids()?);
        if selector == Selector::SecurityGroups {
            return Some(if of_before == of_now { Ok(()) } else { Err(text("")) });
        }
        if of_before.is_subset(&of_now) {
            return Some(Ok(()));
        }
        of_before.is_disjoint(&of_now).then(|| Err(text("")))
    }
}

/// Whether both are pinned, and not to the same: `al2023@v20251112` and `al2023@v20260101` are two images.
fn is_another_version(before: &Terms, now: &Terms) -> bool {
    let pinned = |terms: &Terms| {
        let terms: Vec<AmiSelectorTerm> = terms.0.iter().filter_map(|term| serde_json::from_str(term).ok()).collect();
        let [AmiSelectorTerm { alias: Some(alias), .. }] = terms.as_slice() else { return None };
        alias.split_once('@').is_some_and(|(_, version)| version != "latest").then(|| alias.clone())
    };
    match (pinned(before), pinned(now)) {
        (Some(before), Some(now)) => before != now,
        _ => false,
    }
}

/// Changes of selectors whose effect on nodes that stay by this plan nobody here can know, and security groups that others attached to
/// such nodes.
pub fn notes(inputs: &Inputs<'_>, machines: &[Machine<'_>]) -> Vec<Note> {
    let mut may_drift: BTreeMap<(&str, Selector), Unforeseen> = BTreeMap::new();
    let mut extra: BTreeMap<&str, Extra> = BTreeMap::new();
    for machine in machines.iter().filter(|machine| !machine.is_being_removed()) {
        let pool = inputs.node_pools.iter().find(|pool| pool.metadata.name.as_deref() == machine.node_pool());
        let Some((claim, pool)) = machine.claim.zip(pool) else { continue };
        let Some(classes) = classes(inputs, claim, pool) else { continue };
        let unknown = Selector::ALL.map(|it| (classes.verdict(it, inputs, machine) == Verdict::MayDrift).then_some(it));
        let is_open = || super::defined_class(inputs, pool).is_some_and(super::has_open_variable);
        let groups = classes.groups(inputs, machine).map(|groups| groups.extra).unwrap_or_default();
        let is_plain = unknown.iter().all(Option::is_none) && groups.is_empty();
        if is_plain || is_open() || super::drift(inputs, machine, pool).is_some() {
            continue;
        }
        if !groups.is_empty() {
            extra.entry(classes.name).or_default().see(&groups);
        }
        for selector in unknown.into_iter().flatten() {
            let before = classes.before().map(|it| selector.terms(it).text()).unwrap_or_default();
            let change = format!("{before} -> {}", selector.terms(&classes.defined).text());
            let unforeseen =
                may_drift.entry((classes.name, selector)).or_insert(Unforeseen { nodes: 0, change, live: true });
            unforeseen.nodes += 1;
            unforeseen.live &= live::of(inputs, machine).is_some_and(|it| has_live(selector, it));
        }
    }
    let may_drift = may_drift.into_iter().map(|((class, selector), it)| it.note(class, selector));
    may_drift.chain(extra.into_iter().map(|(class, extra)| extra.note(class))).collect()
}

/// A change of a selector whose effect nobody here can know.
struct Unforeseen {
    nodes: usize,
    change: String,
    /// Whether the cloud said what all of these nodes have.
    live: bool,
}

impl Unforeseen {
    fn note(&self, class: &str, selector: Selector) -> Note {
        let (what, by_id) = match selector {
            Selector::Images => ("which image that is", true),
            _ if self.live => ("which ones those are", true),
            _ => ("which ones the nodes have", false),
        };
        let text = format!(
            "EC2NodeClass {class}: {} {}: {} may drift ({}) once that is applied, which is not in this plan, since the \
             snapshot does not say {what}; a snapshot taken after that does{}",
            selector.field(),
            self.change,
            nodes_text(self.nodes),
            selector.reason(),
            if by_id { ", and of ids (`id:`) this one would" } else { "" },
        );
        Note::new(NoteCode::DriftNotForeseen, text).about("EC2NodeClass", class)
    }
}

fn has_live(selector: Selector, instance: &LiveInstance) -> bool {
    match selector {
        Selector::SecurityGroups => !instance.security_groups.is_empty(),
        Selector::Subnets => instance.subnet_id.is_some(),
        Selector::Images | Selector::CapacityReservations => false,
    }
}

/// Security groups that somebody attached to nodes of a class.
#[derive(Default)]
struct Extra {
    nodes: usize,
    /// By the group, how many nodes have it.
    groups: BTreeMap<String, usize>,
}

impl Extra {
    fn see(&mut self, groups: &[&SecurityGroup]) {
        self.nodes += 1;
        for group in groups {
            *self.groups.entry(live::named(group)).or_default() += 1;
        }
    }

    fn note(&self, class: &str) -> Note {
        let mut named: Vec<String> =
            self.groups.iter().take(GROUPS_NAMED_MAX).map(|(group, nodes)| format!("{group} on {nodes}")).collect();
        let further = self.groups.len().saturating_sub(GROUPS_NAMED_MAX);
        if further > 0 {
            named.push(format!("{further} more"));
        }
        let text = format!(
            "EC2NodeClass {class}: {} {} security groups that it does not select and somebody attached: {}; that is no drift unless \
             `disruption.extraSecurityGroupsDrift` of `cutlist.yaml` is true",
            nodes_text(self.nodes),
            if self.nodes == 1 { "has" } else { "have" },
            named.join(", "),
        );
        Note::new(NoteCode::ExtraSecurityGroups, text).about("EC2NodeClass", class)
    }
}

/// The terms of a class for a sentence: `al2023@latest`.
pub fn terms_text(selector: Selector, class: &EC2NodeClass) -> String {
    selector.terms(&Selectors::of(&class.spec)).text()
}

/// `1 node`
pub fn nodes_text(nodes: usize) -> String {
    if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") }
}

/// The class of a claim's pool; `None` where it is not defined.
pub fn classes<'a>(inputs: &Inputs<'a>, claim: &NodeClaim, pool: &NodePool) -> Option<Classes<'a>> {
    let defined = super::defined_class(inputs, pool)?;
    Some(Classes::of(inputs, claim, defined.metadata.name.as_deref()?, defined))
}
