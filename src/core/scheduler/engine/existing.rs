//! Whether a node that exists takes one more pod, and what its constraints have to say.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use fixedbitset::FixedBitSet;

use super::Engine;
use super::table::Filter;
use crate::model::IndexVec;
use crate::scheduler::class::{ClassIndex, VariantIndex};
use crate::scheduler::host::{Host, HostIndex, OpenNode};
use crate::scheduler::refusal::Refusal;
use crate::scheduler::taints::repelling;
use crate::scheduler::topology::{Domain, GroupIndex, GroupKind, NO_DOMAIN, Spread};
use crate::scheduler::vectors;

impl Engine<'_, '_> {
    /// Whether a node that exists takes one more pod of the class; one that is closed takes none. O(dimensions + constraints).
    pub fn fits_existing(&self, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> bool {
        !self.is_closed(host)
            && vectors::fits(&self.problem.classes[class].request, self.headroom(host))
            && self.accepts(class, variant, host)
            && self.constraint_that_fails(class, variant, host).is_none()
    }

    /// The same for the class as it is, or with as many preferences given up as it takes.
    pub fn takes(&self, class: ClassIndex, host: HostIndex) -> bool {
        self.problem.classes[class].variants.iter().any(|variant| self.fits_existing(class, *variant, host))
    }

    /// Everything about a node that exists but its resources and topology.
    fn accepts(&self, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> bool {
        self.problem.fits_node(variant, host)
            && !self.ports_conflict(class, &self.hosts[host])
            && self.volumes_fit(class, host)
            && self.devices_fit(class, host)
            && !self.is_concentrated(class, host)
            && self.spread_of_others_that_fails(class, host).is_none()
    }

    /// The first node that exists, from `first` on and of those in `among`, that takes one more pod of the class.
    /// O(nodes / 64 x constraints) for those that topology or resources rule out.
    pub fn find_existing(
        &self,
        class: ClassIndex,
        variant: VariantIndex,
        first: HostIndex,
        among: Option<&FixedBitSet>,
    ) -> Option<HostIndex> {
        if first >= self.problem.nodes.end() {
            return None;
        }
        let request = &self.problem.classes[class].request;
        let filter = self.filter(class, variant)?;
        self.table.find_existing(first, request, &filter, among, |host| self.accepts(class, variant, host))
    }

    /// The open node with the fewest pods, of those from `first` on, that takes one more pod of the class, and what it becomes.
    pub fn find_open(
        &self,
        class: ClassIndex,
        variant: VariantIndex,
        first: HostIndex,
    ) -> Option<(HostIndex, OpenNode)> {
        let request = &self.problem.classes[class].request;
        let filter = self.filter(class, variant)?;
        self.table.find_open(first, request, &filter, |host| self.narrowed(class, variant, host).ok())
    }

    /// The same among all open nodes, which `order` has in the order of their `place`. O(tried) where one of the first takes
    /// it; else O(open nodes / 64 x constraints + those that are left x log of them).
    pub fn find_open_in_order<P: Ord>(
        &self,
        class: ClassIndex,
        variant: VariantIndex,
        order: impl Iterator<Item = HostIndex>,
        place: impl Fn(HostIndex) -> P,
    ) -> Option<(HostIndex, OpenNode)> {
        let request = &self.problem.classes[class].request;
        let filter = self.filter(class, variant)?;
        self.table.find_open_in_order(order, place, request, &filter, |host| self.narrowed(class, variant, host).ok())
    }

    /// The hosts that topology leaves to one more pod of the class; `None` when it leaves none. Exact for nodes that exist; an
    /// open node that has not settled may still refuse.
    fn filter(&self, class: ClassIndex, variant: VariantIndex) -> Option<Filter<'_>> {
        let mut filter = Filter::default();
        for group in &self.problem.variants[variant].constraints {
            let compiled = &self.problem.groups[*group];
            let counters = &self.counters[*group];
            if !self.problem.domains.is_hostname(compiled.key) {
                filter.each_of.push(self.places_allowed(*group, class));
                continue;
            }
            let counts_itself = self.is_counted(*group, class);
            match &compiled.kind {
                GroupKind::Spread(spread) if self.counts_nodes_alone => {
                    filter.none_of.push(Cow::Owned(self.hosts_out_of_balance(*group, spread, counts_itself)));
                }
                GroupKind::Spread(_) if counts_itself => filter.none_of.push(Cow::Borrowed(&counters.hosts.full)),
                GroupKind::Spread(_) => filter.none_of.push(Cow::Borrowed(&counters.hosts.over)),
                GroupKind::AntiAffinity => filter.none_of.push(Cow::Borrowed(&counters.hosts.present)),
                GroupKind::Affinity if counters.any_matching() => filter.each_of.push(vec![&counters.hosts.present]),
                GroupKind::Affinity if counts_itself => {}
                GroupKind::Affinity => return None,
            }
        }
        for group in self.forbidden_by_others(class).filter(|group| self.counters[*group].any_owners()) {
            let key = self.problem.groups[group].key;
            let counters = &self.counters[group];
            if self.problem.domains.is_hostname(key) {
                filter.none_of.push(Cow::Borrowed(&counters.hosts.owned));
                continue;
            }
            let by_domain = self.table.places(key).by_domain.iter().enumerate();
            let owned = by_domain.filter(|(domain, _)| counters.owners_at(*domain) > 0);
            filter.none_of.extend(owned.map(|(_, hosts)| Cow::Borrowed(hosts)));
        }
        let concentration = self.problem.concentration.as_ref().filter(|_| self.avoids_concentration);
        if let Some(workload) = concentration.and_then(|concentration| concentration.workload_of(class)) {
            filter.none_of.push(Cow::Borrowed(&self.concentrations.on_node[workload].hosts.full));
        }
        let leaves_some = filter.each_of.iter().all(|union| !union.is_empty());
        leaves_some.then_some(filter)
    }

    /// Hosts in the domains that a constraint allows, and those that may still come to be in one.
    fn places_allowed(&self, group: GroupIndex, class: ClassIndex) -> Vec<&FixedBitSet> {
        let places = self.table.places(self.problem.groups[group].key);
        let domains: Vec<Domain> = (0..places.by_domain.len()).map(Domain::at).collect();
        let allowed = self.allowed_domains(group, class, &domains, 0);
        let mut union: Vec<&FixedBitSet> =
            allowed.into_iter().filter_map(|domain| places.by_domain.get(domain.position())).collect();
        union.push(&places.unsettled);
        if matches!(self.problem.groups[group].kind, GroupKind::AntiAffinity) {
            union.push(&places.without);
        }
        union
    }

    /// Those of the domains that a constraint lets one more pod of the class into, with so many that come with it. O(domains).
    pub(super) fn allowed_domains(
        &self,
        group: GroupIndex,
        class: ClassIndex,
        domains: &[Domain],
        coming: u32,
    ) -> Vec<Domain> {
        let counters = &self.counters[group];
        let allowed = domains.iter().copied();
        match &self.problem.groups[group].kind {
            GroupKind::Spread(spread) => {
                let most = self.fewest(group, spread, class).saturating_add(spread.max_skew);
                let added = u32::from(self.is_counted(group, class)).saturating_add(coming);
                let fits = |domain: &Domain| counters.matching(*domain) + added <= most;
                allowed.filter(|domain| self.problem.is_eligible(group, *domain) && fits(domain)).collect()
            }
            GroupKind::Affinity | GroupKind::AntiAffinity => {
                allowed.filter(|domain| self.allows(group, class, *domain)).collect()
            }
        }
    }

    /// Why a node that exists does not take one more pod of the class.
    pub fn refusal_of_existing(&self, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> Option<Refusal> {
        let state = &self.hosts[host];
        let pods = &self.problem.classes[class];
        if !self.problem.fits_node(variant, host) {
            return Some(self.node_refusal(variant, host));
        }
        if let Some(dimension) = vectors::shortage(&pods.request, self.headroom(host)) {
            return Some(Refusal::Resource {
                name: self.problem.dimensions.name(dimension).to_owned(),
                requested: pods.request[dimension],
                available: self.headroom(host)[dimension].max(0),
            });
        }
        if self.ports_conflict(class, state) {
            return Some(Refusal::HostPort);
        }
        if !self.volumes_fit(class, host) {
            return Some(Refusal::Volume);
        }
        if !self.devices_fit(class, host) {
            return Some(Refusal::Devices);
        }
        self.constraint_that_fails(class, variant, host).map(|group| self.constraint_refusal(group))
    }

    fn node_refusal(&self, variant: VariantIndex, host: HostIndex) -> Refusal {
        let node = &self.problem.nodes[host];
        let variant = &self.problem.variants[variant];
        if let Some(taint) = repelling(&node.taints, &variant.tolerations, variant.soft_taints_repel) {
            return Refusal::Taint(taint.to_string());
        }
        let unmet = variant.requirements.iter().find(|(key, requirement)| {
            let value = crate::model::requirements::label(&node.labels, key);
            !value.map_or(requirement.allows_absence(), |value| requirement.allows(value))
        });
        Refusal::Requirement { key: unmet.map(|(key, _)| key.to_owned()).unwrap_or_default() }
    }

    pub(super) fn ports_conflict(&self, class: ClassIndex, host: &Host) -> bool {
        let ports = &self.problem.classes[class].host_ports;
        !ports.is_empty() && ports.iter().any(|port| host.host_ports.iter().any(|taken| taken.conflicts_with(port)))
    }

    fn volumes_fit(&self, class: ClassIndex, host: HostIndex) -> bool {
        let pods = &self.problem.classes[class];
        let node = &self.problem.nodes[host];
        let reachable = pods.volume_alternatives.is_empty()
            || pods.volume_alternatives.iter().any(|requirements| requirements.allow_labels(&node.labels));
        if pods.attachments.is_empty() {
            return reachable;
        }
        let attached = &self.hosts[host].attachments;
        reachable
            && node.attachment_limits.iter().all(|(driver, limit)| {
                let volumes = attached.get(driver);
                let is_new = |volume: &String| volumes.is_none_or(|volumes| !volumes.contains_key(volume));
                let more = pods
                    .attachments
                    .iter()
                    .filter(|attachment| attachment.driver == *driver && is_new(&attachment.volume))
                    .count();
                more == 0 || volumes.map_or(0, BTreeMap::len) + more <= *limit
            })
    }

    /// The first constraint, of the class or of pods already there, that a host with settled domains does not satisfy.
    fn constraint_that_fails(&self, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> Option<GroupIndex> {
        let domains = &self.hosts[host].domains;
        let own = self.problem.variants[variant].constraints.iter().copied();
        let failed = own.filter(|group| !self.allows(*group, class, domains[self.problem.groups[*group].key])).min();
        failed.or_else(|| {
            self.forbidden_by_others(class)
                .find(|group| self.counters[*group].owners(domains[self.problem.groups[*group].key]) > 0)
        })
    }

    /// The same for what is counted by host alone, which needs no look at what an open node could become.
    pub(super) fn hostname_constraint_that_fails(
        &self,
        class: ClassIndex,
        variant: VariantIndex,
        host: HostIndex,
    ) -> Option<GroupIndex> {
        let domain = host.domain();
        let by_host = |group: &GroupIndex| self.problem.domains.is_hostname(self.problem.groups[*group].key);
        let own = self.problem.variants[variant].constraints.iter().copied().filter(by_host);
        let of_others = || self.spreads_of_others(class).iter().copied().filter(by_host);
        own.into_iter()
            .find(|group| !self.allows(*group, class, domain))
            .or_else(|| {
                self.forbidden_by_others(class).filter(by_host).find(|group| self.counters[*group].owners(domain) > 0)
            })
            .or_else(|| of_others().find(|group| !self.lets_in(*group, host, domain)))
    }

    /// Anti-affinity terms of other pods that select this class.
    pub(super) fn forbidden_by_others(&self, class: ClassIndex) -> impl Iterator<Item = GroupIndex> {
        let counted_in = self.problem.classes[class].counted_in.iter().copied();
        counted_in.filter(|group| matches!(self.problem.groups[*group].kind, GroupKind::AntiAffinity))
    }

    /// Whether a constraint lets one more pod of the class into a domain.
    pub(super) fn allows(&self, group: GroupIndex, class: ClassIndex, domain: Domain) -> bool {
        let counters = &self.counters[group];
        match &self.problem.groups[group].kind {
            GroupKind::Spread(spread) => {
                domain.is_settled()
                    && self.skew_after(group, spread, class, domain).is_some_and(|skew| skew <= spread.max_skew)
            }
            GroupKind::Affinity => {
                domain.is_settled()
                    && (counters.matching(domain) > 0 || (!counters.any_matching() && self.is_counted(group, class)))
            }
            GroupKind::AntiAffinity => domain == NO_DOMAIN || counters.matching(domain) == 0,
        }
    }

    /// The same on a new host, on which so many pods count that come with it.
    pub(super) fn allows_beside(&self, group: GroupIndex, class: ClassIndex, domain: Domain, coming: u32) -> bool {
        match &self.problem.groups[group].kind {
            // The emptiest host is not empty where each gets as many pods of DaemonSets.
            GroupKind::Spread(spread) if coming > 0 => {
                let added = u32::from(self.is_counted(group, class));
                let counted = self.existing_hosts().filter(|host| !self.is_closed(*host));
                let counted = counted.filter(|host| self.problem.counts_node(group, *host));
                let hosts = counted.map(|host| Domain::at(host.into()));
                let fewest = hosts.map(|host| self.counters[group].matching(host)).min();
                coming + added <= spread.max_skew.saturating_add(fewest.unwrap_or(coming).min(coming))
            }
            GroupKind::Spread(_) => self.allows(group, class, domain),
            GroupKind::Affinity | GroupKind::AntiAffinity => self.allows(group, class, domain),
        }
    }

    fn is_counted(&self, group: GroupIndex, class: ClassIndex) -> bool {
        self.problem.classes[class].counted_in.binary_search(&group).is_ok()
    }

    /// The skew with one more pod in the domain; `None` where the domain is not one to spread over.
    fn skew_after(&self, group: GroupIndex, spread: &Spread, class: ClassIndex, domain: Domain) -> Option<u32> {
        let count = self.counters[group].matching(domain) + u32::from(self.is_counted(group, class));
        if self.problem.domains.is_hostname(self.problem.groups[group].key) {
            return Some(count.saturating_sub(self.fewest_on_hosts(group, spread, self.counts_nodes_alone)));
        }
        self.problem.is_eligible(group, domain).then(|| count.saturating_sub(self.fewest(group, spread, class)))
    }

    /// Pods on the emptiest host of a spread over hosts: a new one is always possible, and holds none. Where nodes alone count it is the
    /// emptiest of those that are there or are to come. O(hosts) then, and O(1) else.
    pub(super) fn fewest_on_hosts(&self, group: GroupIndex, spread: &Spread, nodes_alone: bool) -> u32 {
        if !nodes_alone {
            return 0;
        }
        let counted = self.all_hosts().filter(|host| !self.is_closed(*host) && self.counts_host(group, *host));
        let (mut hosts, mut fewest) = (0, u32::MAX);
        for host in counted {
            hosts += 1;
            fewest = fewest.min(self.counters[group].matching(host.domain()));
        }
        if hosts == 0 || hosts < spread.min_domains { 0 } else { fewest }
    }

    /// The hosts that one more pod would bring further from the emptiest than the spread allows, while nodes alone count. O(hosts).
    fn hosts_out_of_balance(&self, group: GroupIndex, spread: &Spread, counts_itself: bool) -> FixedBitSet {
        let most = self.fewest_on_hosts(group, spread, true).saturating_add(spread.max_skew);
        let after = |host: &HostIndex| self.counters[group].matching(host.domain()) + u32::from(counts_itself);
        self.all_hosts().filter(|host| after(host) > most).map(usize::from).collect()
    }

    /// How far apart the fullest and the emptiest domain are; 0 for groups that are no spread over domains.
    /// O(groups x domains).
    pub fn skews(&self) -> IndexVec<GroupIndex, u32> {
        self.problem.groups.indices().map(|group| self.skew(group)).collect()
    }

    /// The same of those groups only that pods on these hosts count in: moving these pods changes no other.
    /// O(classes on them x groups of each x domains).
    pub fn skews_around(&self, hosts: &[HostIndex]) -> BTreeMap<GroupIndex, u32> {
        let classes = hosts.iter().flat_map(|host| self.hosts[*host].pods.keys());
        let groups: BTreeSet<GroupIndex> =
            classes.flat_map(|class| &self.problem.classes[*class].counted_in).copied().collect();
        groups.into_iter().map(|group| (group, self.skew(group))).collect()
    }

    fn skew(&self, group: GroupIndex) -> u32 {
        let compiled = &self.problem.groups[group];
        match &compiled.kind {
            GroupKind::Spread(spread) if !self.problem.domains.is_hostname(compiled.key) => {
                let domains = self.problem.eligible_domains(group);
                let fullest = domains.map(|domain| self.counters[group].matching(domain)).max().unwrap_or(0);
                fullest.saturating_sub(self.fewest_of(group, spread, |_| true))
            }
            _ => 0,
        }
    }

    /// An open node in the fullest domain of a spread that is exceeded more than before.
    pub fn open_node_too_many(&self, before: &IndexVec<GroupIndex, u32>) -> Option<HostIndex> {
        let skews = self.skews();
        let (group, compiled) = self.problem.groups.enumerated().find(|(group, compiled)| match &compiled.kind {
            GroupKind::Spread(spread) => skews[*group] > spread.max_skew.max(before[*group]),
            GroupKind::Affinity | GroupKind::AntiAffinity => false,
        })?;
        let fullest =
            self.problem.eligible_domains(group).max_by_key(|domain| self.counters[group].matching(*domain))?;
        self.open_hosts().filter(|host| !self.is_closed(*host)).find(|host| {
            let counted = |class: &ClassIndex| self.problem.classes[*class].counted_in.binary_search(&group).is_ok();
            self.hosts[*host].domains[compiled.key] == fullest && self.hosts[*host].pods.keys().any(counted)
        })
    }

    /// Whether no spread of these is exceeded that was not exceeded as much before: taking pods from one domain makes every other
    /// one fuller, also for pods that are not asked again.
    pub fn keeps_spreads(&self, before: &BTreeMap<GroupIndex, u32>) -> bool {
        before.iter().all(|(group, before)| match &self.problem.groups[*group].kind {
            GroupKind::Spread(spread) => self.skew(*group) <= spread.max_skew.max(*before),
            GroupKind::Affinity | GroupKind::AntiAffinity => true,
        })
    }

    /// Pods in the emptiest domain that counts for the class; none while there are fewer domains than the constraint wants.
    pub(super) fn fewest(&self, group: GroupIndex, spread: &Spread, class: ClassIndex) -> u32 {
        if self.problem.spreading.reaches_all(class) && !self.counts_nodes_alone {
            return self.fewest_of(group, spread, |_| true);
        }
        self.fewest_of(group, spread, |domain| self.counts_for(group, class, domain))
    }

    /// The domains that a spread of pods of the class is over.
    pub(super) fn counted_domains(&self, group: GroupIndex, class: ClassIndex) -> Vec<Domain> {
        self.problem.eligible_domains(group).filter(|domain| self.counts_for(group, class, *domain)).collect()
    }

    /// Whether there is a node in the domain, or could be one for a pod of the class.
    fn counts_for(&self, group: GroupIndex, class: ClassIndex, domain: Domain) -> bool {
        let key = self.problem.groups[group].key;
        (!self.counts_nodes_alone && self.problem.spreading.reaches(class, key, domain)) || self.has_node(group, domain)
    }

    /// The same among those of the domains that the spread is over.
    pub(super) fn fewest_of(&self, group: GroupIndex, spread: &Spread, counts: impl Fn(Domain) -> bool) -> u32 {
        let mut domains = 0;
        let mut fewest = u32::MAX;
        // Where a static pool has no node, no pod can make it have one.
        let is_one =
            |domain: &Domain| !self.problem.is_of_static_pools_alone(group, *domain) || self.has_node(group, *domain);
        for domain in self.problem.eligible_domains(group).filter(is_one).filter(|domain| counts(*domain)) {
            domains += 1;
            fewest = fewest.min(self.counters[group].matching(domain));
        }
        if domains == 0 || domains < spread.min_domains { 0 } else { fewest }
    }
}
