//! Topology: who must be spread over, near to, or away from whom.
//!
//! Each combination of selector, namespaces, topology key and kind that some pod names is one [`Group`]. A group keeps
//! one counter for each domain of its key, so that every question (skew, affinity, anti-affinity in both directions) is
//! a lookup, and placing a pod changes a few integers.

use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::model::requirements::label;
use crate::model::{IndexVec, Requirements};
use cutlist_api::keys;

use super::indices::HostIndex;
use super::taints::{EffectiveTaint, repelling};
use crate::snapshot::selector;

pub use super::indices::{GroupIndex, KeyIndex};

/// A value of a topology key, numbered; for the host name key, the number of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Domain(u32);

/// The node has no such label.
pub const NO_DOMAIN: Domain = Domain(u32::MAX);
/// A node to be created has not settled on one value yet.
pub const OPEN_DOMAIN: Domain = Domain(u32::MAX - 1);

impl Domain {
    /// The largest number that stands for a value.
    const LAST: Self = Self(OPEN_DOMAIN.0 - 1);

    /// As many domains of one key as this have a number each; those beyond share the last.
    pub fn at(position: usize) -> Self {
        u32::try_from(position).map_or(Self::LAST, |number| Self(number).min(Self::LAST))
    }

    /// Where it is counted; beyond all counters for a node without a value, or without one yet.
    pub fn position(self) -> usize {
        self.0 as usize
    }

    /// Whether it stands for a value.
    pub fn is_settled(self) -> bool {
        self < OPEN_DOMAIN
    }
}

#[derive(Clone, Debug)]
pub struct Group {
    pub kind: GroupKind,
    pub key: KeyIndex,
    pub selector: Option<LabelSelector>,
    pub namespaces: BTreeSet<String>,
    /// The PersistentVolumeClaim whose pods must be on one node, where it is about those and not about labels.
    pub claim: Option<String>,
}

#[derive(Clone, Debug)]
pub enum GroupKind {
    Spread(Spread),
    Affinity,
    AntiAffinity,
}

#[derive(Clone, Debug)]
pub struct Spread {
    pub max_skew: u32,
    pub min_domains: u32,
    /// Nodes that count: labels must satisfy one of these; empty means all nodes.
    pub node_filter: Vec<Requirements>,
    /// Nodes that count must not repel these tolerations; `None` when taints are not looked at.
    pub tolerations: Option<Vec<Toleration>>,
}

impl Group {
    /// Whether a pod with these labels is counted.
    pub fn selects(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        self.namespaces.contains(namespace) && selector::matches(self.selector.as_ref(), labels)
    }
}

impl Spread {
    /// Whether pods on a node with these labels and taints are counted, and its domain is one to spread over.
    pub fn counts_node(&self, labels: &BTreeMap<String, String>, taints: &[EffectiveTaint]) -> bool {
        let affine = self.node_filter.is_empty() || self.node_filter.iter().any(|filter| filter.allow_labels(labels));
        affine && self.tolerations.as_ref().is_none_or(|tolerations| repelling(taints, tolerations, false).is_none())
    }
}

/// The topology keys in use and the values each was seen with.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    keys: IndexVec<KeyIndex, String>,
    hostname: Option<KeyIndex>,
    values: IndexVec<KeyIndex, BTreeMap<String, Domain>>,
}

impl Domains {
    pub fn key(&mut self, key: &str) -> KeyIndex {
        if let Some(position) = self.find(key) {
            return position;
        }
        if key == keys::HOSTNAME {
            self.hostname = Some(self.keys.end());
        }
        self.values.push(BTreeMap::new());
        self.keys.push(key.to_owned())
    }

    /// Where some pod looks at this key.
    pub fn find(&self, key: &str) -> Option<KeyIndex> {
        self.keys.position(|known| known == key)
    }

    pub fn name(&self, key: KeyIndex) -> &str {
        &self.keys[key]
    }

    pub fn keys(&self) -> impl Iterator<Item = KeyIndex> + Clone + use<> {
        self.keys.indices()
    }

    pub fn key_count(&self) -> usize {
        self.keys.len()
    }

    pub fn is_hostname(&self, key: KeyIndex) -> bool {
        self.hostname == Some(key)
    }

    pub fn intern(&mut self, key: KeyIndex, value: &str) -> Domain {
        let next = Domain::at(self.count(key));
        *self.values[key].entry(value.to_owned()).or_insert(next)
    }

    pub fn get(&self, key: KeyIndex, value: &str) -> Option<Domain> {
        self.values[key].get(value).copied()
    }

    pub fn count(&self, key: KeyIndex) -> usize {
        self.values[key].len()
    }

    /// The domain of a host whose value of the key no other host has: beyond those that have a number by their value.
    pub fn own(&self, key: KeyIndex, host: HostIndex) -> Domain {
        Domain::at(usize::from(host) + self.count(key))
    }

    /// Whether it is one of these.
    pub fn is_own(&self, key: KeyIndex, domain: Domain) -> bool {
        domain.is_settled() && domain.position() >= self.count(key)
    }

    /// Value and number of each domain of the key, by value.
    pub fn values(&self, key: KeyIndex) -> impl Iterator<Item = (&str, Domain)> {
        self.values[key].iter().map(|(value, domain)| (value.as_str(), *domain))
    }

    /// The domain of a node with these labels; its host number for the host name key.
    pub fn of_labels(&self, key: KeyIndex, labels: &BTreeMap<String, String>, host: HostIndex) -> Domain {
        if self.is_hostname(key) {
            return host.domain();
        }
        label(labels, &self.keys[key]).and_then(|value| self.get(key, value)).unwrap_or(NO_DOMAIN)
    }
}

/// Hosts by what a group counts on them, for groups over host names: whole words of hosts are passed over at once.
#[derive(Clone, Debug, Default)]
pub struct HostSets {
    /// At least one pod that the selector selects.
    pub present: FixedBitSet,
    /// As many as the constraint allows: one for anti-affinity, the skew for a spread.
    pub full: FixedBitSet,
    /// More than that.
    pub over: FixedBitSet,
    /// A pod that has the term itself.
    pub owned: FixedBitSet,
}

/// Counters of one group.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// For groups over host names: how many make a host full.
    full_at: Option<u32>,
    pub hosts: HostSets,
    /// By domain: pods that the selector selects.
    matching: Vec<u32>,
    /// By domain: pods that have this term themselves; for anti-affinity, which works in both directions, and for spreads, of
    /// the pods that this plan places alone, which kube-scheduler has yet to find in order.
    owners: Vec<u32>,
    total_matching: u32,
    total_owners: u32,
}

impl Counters {
    pub fn new(group: &Group, domains: &Domains) -> Self {
        let full_at = domains.is_hostname(group.key).then_some(match &group.kind {
            GroupKind::Spread(spread) => spread.max_skew,
            GroupKind::Affinity | GroupKind::AntiAffinity => 1,
        });
        Self { full_at, matching: vec![0; domains.count(group.key)], ..Self::default() }
    }

    /// Counters by host, of which one is full with so many.
    pub fn of_hosts(full_at: u32) -> Self {
        Self { full_at: Some(full_at), ..Self::default() }
    }

    pub fn matching(&self, domain: Domain) -> u32 {
        self.matching.get(domain.position()).copied().unwrap_or(0)
    }

    pub fn owners(&self, domain: Domain) -> u32 {
        self.owners.get(domain.position()).copied().unwrap_or(0)
    }

    pub fn owners_at(&self, domain: usize) -> u32 {
        self.owners.get(domain).copied().unwrap_or(0)
    }

    /// Domains with pods that have the term themselves.
    pub fn owned(&self) -> impl Iterator<Item = Domain> {
        let owned = self.owners.iter().enumerate().filter(|(_, owners)| **owners > 0);
        owned.map(|(domain, _)| Domain::at(domain))
    }

    pub fn any_owners(&self) -> bool {
        self.total_owners > 0
    }

    pub fn any_matching(&self) -> bool {
        self.total_matching > 0
    }

    /// `sign` is 1 to count, -1 to take back.
    pub fn count_matching(&mut self, domain: Domain, pods: u32, sign: i8) {
        let count = change(&mut self.matching, domain, pods, sign);
        if let Some(full_at) = self.full_at {
            let host = domain.position();
            set(&mut self.hosts.present, host, count > 0);
            set(&mut self.hosts.full, host, count >= full_at);
            set(&mut self.hosts.over, host, count > full_at);
        }
        self.total_matching =
            if sign > 0 { self.total_matching + pods } else { self.total_matching.saturating_sub(pods) };
    }

    pub fn count_owners(&mut self, domain: Domain, pods: u32, sign: i8) {
        let count = change(&mut self.owners, domain, pods, sign);
        self.total_owners = if sign > 0 { self.total_owners + pods } else { self.total_owners.saturating_sub(pods) };
        if self.full_at.is_some() {
            set(&mut self.hosts.owned, domain.position(), count > 0);
        }
    }
}

/// Sets or clears a bit, growing the set where it must.
pub fn set(bits: &mut FixedBitSet, position: usize, value: bool) {
    if value {
        bits.grow_and_insert(position);
    } else if position < bits.len() {
        bits.remove(position);
    }
}

/// The count after the change.
fn change(counts: &mut Vec<u32>, domain: Domain, pods: u32, sign: i8) -> u32 {
    let position = domain.position();
    if position >= counts.len() {
        counts.resize(position + 1, 0);
    }
    counts[position] = if sign > 0 { counts[position] + pods } else { counts[position].saturating_sub(pods) };
    counts[position]
}
