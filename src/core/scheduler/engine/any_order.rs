//! Plans that hold in whichever order kube-scheduler takes the pods that wait.
//!
//! A spread is looked at when a pod that has it is bound, and never again. On paper such a pod may come first and others that the
//! spread counts, but who do not have it, may follow; kube-scheduler may take those first, and then the pod finds its place too
//! full. So a domain that waits for a pod with a spread takes no more of what the spread counts than the spread allows, whoever it
//! is; elsewhere they may be as many as they like. The other way round a domain without a node, which only counts when it has one, must
//! not get one where a pod could then not go any more.

use std::collections::BTreeMap;

use super::Engine;
use super::refused::Refused;
use crate::scheduler::class::ClassIndex;
use crate::scheduler::host::{Host, HostIndex, OpenNode};
use crate::scheduler::topology::{Domain, GroupIndex, GroupKind, Spread};

impl<'p> Engine<'p, '_> {
    /// From now on plans are, or are not, to hold in any order. Whether they were before.
    pub fn hold_in_any_order(&mut self, holds: bool) -> bool {
        std::mem::replace(&mut self.holds_in_any_order, holds && self.settles)
    }

    /// Does something while spreads are over domains alone that have a node or get one: kube-scheduler's rule, for pods that the
    /// reference's leaves without a place.
    pub fn counting_nodes_alone(&mut self, mut places: impl FnMut(&mut Self)) {
        let mark = self.mark();
        self.counts_nodes_alone = true;
        places(self);
        self.counts_nodes_alone = false;
        let some = self.placed_since(mark).next().is_some();
        self.counted_nodes_alone |= some;
    }

    /// Whether a pod may be where it is because spreads were over domains alone that have a node.
    pub fn counted_nodes_alone(&self) -> bool {
        self.counted_nodes_alone
    }

    /// Spreads of others that pods of the class must keep from being violated.
    pub(super) fn spreads_of_others(&self, class: ClassIndex) -> &'p [GroupIndex] {
        match self.holds_in_any_order {
            true => self.problem.spreading.of_others(class),
            false => &[],
        }
    }

    /// The first of them that does not let one more pod of the class onto a node that exists.
    pub(super) fn spread_of_others_that_fails(&self, class: ClassIndex, host: HostIndex) -> Option<GroupIndex> {
        let domains = &self.hosts[host].domains;
        let of_others = self.spreads_of_others(class).iter().copied();
        of_others.into_iter().find(|group| !self.lets_in(*group, host, domains[self.problem.groups[*group].key]))
    }

    pub(super) fn lets_in(&self, group: GroupIndex, host: HostIndex, domain: Domain) -> bool {
        !domain.is_settled()
            || (self.is_host(host) && !self.counts_host(group, host))
            || self.has_room_for_others(group, domain)
    }

    /// Not yet while a new node is asked about.
    fn is_host(&self, host: HostIndex) -> bool {
        host < self.hosts.end()
    }

    /// Whether one more pod that a spread counts leaves room for those that have it and are to come to the domain.
    pub(super) fn has_room_for_others(&self, group: GroupIndex, domain: Domain) -> bool {
        let counters = &self.counters[group];
        if counters.owners(domain) == 0 {
            return true;
        }
        let GroupKind::Spread(spread) = &self.problem.groups[group].kind else { return true };
        counters.matching(domain) < self.most_anywhere(group, spread, self.counts_nodes_alone)
    }

    /// The most pods that a domain may have while pods are to come there.
    fn most_anywhere(&self, group: GroupIndex, spread: &Spread, nodes_alone: bool) -> u32 {
        let fewest = match self.problem.domains.is_hostname(self.problem.groups[group].key) {
            true => self.fewest_on_hosts(group, spread, nodes_alone),
            false => self.fewest_of(group, spread, |_| true),
        };
        fewest.saturating_add(spread.max_skew)
    }

    /// Sends a new node to one of the domains that a spread of others lets a pod into; it must be known which.
    pub(super) fn narrow_to_spread_of_others(&self, open: &mut OpenNode, group: GroupIndex) -> Result<(), Refused<'p>> {
        let key = self.problem.groups[group].key;
        if self.problem.domains.is_hostname(key) || !self.problem.counts_template(group, open.template) {
            return Ok(());
        }
        let possible = self.possible_domains(open, key);
        let mut allowed = possible.iter().copied().filter(|domain| self.has_room_for_others(group, *domain));
        match self.cheapest_domain(open, key, &mut allowed) {
            Some(domain) if possible.len() > 1 => self.narrow_to_domains(open, group, &[domain]),
            None if !possible.is_empty() => Err(Refused::Constraint(group)),
            _ => Ok(()),
        }
    }

    /// How many pods of a domain a group counts.
    pub fn counted(&self, group: GroupIndex, domain: Domain) -> u32 {
        self.counters[group].matching(domain)
    }

    /// Domains that a pod is to come to and may find too full, if kube-scheduler takes others first. A new node that may still come to be in
    /// several domains may be in any of them. O(mixed spreads x (domains + new nodes)).
    pub fn domains_that_may_be_too_full(&self) -> Vec<(GroupIndex, Domain)> {
        let mixed = self.problem.spreading.mixed().iter().copied();
        let too_full = mixed.flat_map(|group| {
            let GroupKind::Spread(spread) = &self.problem.groups[group].kind else { return Vec::new() };
            let most = self.most_anywhere(group, spread, self.counted_nodes_alone);
            let (counters, anywhere) = (&self.counters[group], self.counted_anywhere(group));
            let counted = |domain: &Domain| counters.matching(*domain) + anywhere.get(domain).copied().unwrap_or(0);
            counters.owned().filter(|domain| counted(domain) > most).map(|domain| (group, domain)).collect()
        });
        too_full.collect()
    }

    /// By domain: pods that a group counts, on new nodes that may come to be there or elsewhere.
    fn counted_anywhere(&self, group: GroupIndex) -> BTreeMap<Domain, u32> {
        let key = self.problem.groups[group].key;
        let mut anywhere: BTreeMap<Domain, u32> = BTreeMap::new();
        for host in self.open_hosts().filter(|host| !self.is_closed(*host) && self.counts_host(group, *host)) {
            let Host { pods, neighbours, domains, .. } = &self.hosts[host];
            let Some(open) = self.open_node(host).filter(|_| !domains[key].is_settled()) else { continue };
            let is_counted = |class: &ClassIndex| self.problem.classes[*class].counted_in.contains(&group);
            let counted: u32 = pods.iter().filter(|(class, _)| is_counted(class)).map(|(_, count)| *count).sum();
            let daemons = neighbours.iter().filter(|it| self.problem.daemons[**it].counted_in.contains(&group)).count();
            let counted = counted.saturating_add(u32::try_from(daemons).unwrap_or(u32::MAX));
            if counted > 0 {
                for domain in self.possible_domains(open, key) {
                    *anywhere.entry(domain).or_default() += counted;
                }
            }
        }
        anywhere
    }

    /// Whether a domain stays within what a spread that counts others, too, allows even where no other domain has any pod: then
    /// nobody is sent away who comes before those that will fill the others.
    pub(super) fn is_allowed_at_once(&self, group: GroupIndex, domain: Domain, added: u32) -> bool {
        let GroupKind::Spread(spread) = &self.problem.groups[group].kind else { return true };
        !self.problem.spreading.mixed().contains(&group)
            || self.counters[group].matching(domain) + added <= spread.max_skew
    }

    // --- domains that have no node -----------------------------------------------------------------------------------

    /// Whether a domain has a node that the group counts, or gets one.
    pub(super) fn has_node(&self, group: GroupIndex, domain: Domain) -> bool {
        if self.problem.is_there(group, domain) {
            return true;
        }
        let places = self.table.places(self.problem.groups[group].key);
        let hosts = places.by_domain.get(domain.position()).into_iter().flat_map(|hosts| hosts.ones());
        let hosts = hosts.map(HostIndex::from);
        let mut new = hosts.filter(|host| *host >= self.problem.nodes.end() && !self.hosts[*host].closed);
        new.any(|host| self.counts_host(group, host))
    }

    /// Spreads of pods that wait which some domain does not count for yet: what the spread is over changes with its first node.
    fn spreads_without_some_domain(&self) -> &'p [GroupIndex] {
        match self.counted_nodes_alone || self.counts_nodes_alone {
            true => self.problem.spreading.of_waiting(),
            false => self.problem.spreading.partly_reached(),
        }
    }

    /// Whether a pod that is to come to some domain could not, if this one had a node.
    fn must_not_appear(&self, group: GroupIndex, domain: Domain) -> bool {
        let counters = &self.counters[group];
        let GroupKind::Spread(spread) = &self.problem.groups[group].kind else { return false };
        let most = counters.matching(domain).saturating_add(spread.max_skew);
        let is_too_full = |full: Domain| counters.owners(full) > 0 && counters.matching(full) > most;
        counters.any_owners() && !self.has_node(group, domain) && self.problem.eligible_domains(group).any(is_too_full)
    }

    pub(super) fn narrow_to_domains_that_may_appear(&self, open: &mut OpenNode) -> Result<(), Refused<'p>> {
        for group in self.spreads_without_some_domain() {
            if !self.problem.counts_template(*group, open.template) || !self.counters[*group].any_owners() {
                continue;
            }
            let possible = self.possible_domains(open, self.problem.groups[*group].key);
            let (away, left): (Vec<Domain>, Vec<Domain>) =
                possible.into_iter().partition(|domain| self.must_not_appear(*group, *domain));
            if left.is_empty() && !away.is_empty() {
                return Err(Refused::Constraint(*group));
            }
            if !away.is_empty() {
                self.narrow_to_domains(open, *group, &left)?;
            }
        }
        Ok(())
    }

    /// New nodes that could still come to be in a domain where they would keep a pod of the class, just placed, from its place, go
    /// elsewhere. O(new nodes x spreads) for such pods, O(1) for all others.
    pub(super) fn keep_empty_domains_away(&mut self, class: ClassIndex) {
        let affected = self.spreads_without_some_domain();
        if affected.is_empty() || !self.problem.classes[class].spreads.iter().any(|group| affected.contains(group)) {
            return;
        }
        for host in self.open_hosts() {
            let Some(open) = self.hosts[host].open.as_deref().filter(|_| !self.is_closed(host)) else { continue };
            let mut narrowed = open.clone();
            if self.narrow_to_domains_that_may_appear(&mut narrowed).is_ok() && narrowed.set != open.set {
                let before = self.settle(host, narrowed);
                self.changes.push(super::Change::Settled { host, before });
            }
        }
    }

    // --- counting ----------------------------------------------------------------------------------------------------

    /// Counts pods that this plan places.
    pub(super) fn count_arriving(&mut self, host: HostIndex, class: ClassIndex, pods: u32, sign: i8) {
        self.count(host, class, pods, sign);
        for group in &self.problem.classes[class].spreads {
            self.each_domain(host, *group, |counters, domain| counters.count_owners(domain, pods, sign));
        }
    }
}
