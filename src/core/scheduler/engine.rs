//! Places classes on hosts, and goes back to a mark.
//!
//! Trying a pod on a node that exists costs a lookup, a comparison of vectors and one lookup for each topology
//! constraint; on a node to be created, also one comparison of vectors for each type it may still become.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::keys;
use crate::core::model::{Requirement, Requirements, Resources};

use super::class::{ClassIndex, VariantIndex};
use super::host::{Host, HostIndex, OpenNode};
use super::offerings::OfferingSet;
use super::problem::Problem;
use super::refusal::Refusal;
use super::template::{Template, TemplateIndex};
use super::topology::{Counters, Domain, GroupIndex, GroupKind, NO_DOMAIN, OPEN_DOMAIN, Spread};
use super::vectors;

/// A point to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    changes: usize,
    hosts: usize,
}

impl Mark {
    /// Hosts there were at the mark; those opened since have this number or a higher one.
    pub fn hosts(self) -> HostIndex {
        self.hosts
    }
}

/// One change, with what is needed to take it back.
#[derive(Debug)]
enum Change {
    Placed { class: ClassIndex, host: HostIndex, open_before: Option<Box<OpenNode>> },
    Removed { class: ClassIndex, host: HostIndex },
    Closed { host: HostIndex },
    Planned { template: TemplateIndex, capacity: Resources, sign: i8 },
    Settled { host: HostIndex, before: Option<Box<OpenNode>> },
}

/// The cluster while a plan is made.
pub struct Engine<'p, 'a> {
    pub problem: &'p Problem<'a>,
    hosts: Vec<Host>,
    counters: Vec<Counters>,
    /// By template: capacity of the nodes that would be created.
    planned: Vec<Resources>,
    changes: Vec<Change>,
    /// Nodes that exist, in the order in which they are tried.
    node_order: Vec<HostIndex>,
    /// Nodes to be created, fewest pods first.
    open_order: BTreeSet<(usize, HostIndex)>,
}

impl<'p, 'a> Engine<'p, 'a> {
    pub fn new(problem: &'p Problem<'a>) -> Self {
        let mut node_order: Vec<HostIndex> = (0..problem.nodes.len()).collect();
        node_order.sort_by(|one, two| problem.nodes[*one].order.cmp(&problem.nodes[*two].order));
        let mut engine = Self {
            problem,
            hosts: Vec::with_capacity(problem.nodes.len()),
            counters: problem
                .groups
                .iter()
                .map(|group| Counters::with_domains(problem.domains.count(group.key)))
                .collect(),
            planned: vec![Resources::new(); problem.templates.len()],
            changes: Vec::new(),
            node_order,
            open_order: BTreeSet::new(),
        };
        for position in 0..problem.nodes.len() {
            engine.add_existing(position);
        }
        engine
    }

    fn add_existing(&mut self, position: usize) {
        let node = &self.problem.nodes[position];
        let domains = &self.problem.domains;
        let domain_of = |key| domains.of_labels(key, &node.labels, position);
        let mut host = Host {
            free: node.free.clone(),
            pods: BTreeMap::new(),
            pod_count: 0,
            host_ports: node.host_ports.clone(),
            attachments: BTreeMap::new(),
            domains: (0..domains.key_count()).map(domain_of).collect(),
            closed: node.being_removed,
            open: None,
        };
        let mut counted: BTreeMap<ClassIndex, u32> = BTreeMap::new();
        for (pod, class) in &node.pods {
            *host.pods.entry(*class).or_default() += 1;
            host.pod_count += 1;
            for attachment in &self.problem.classes[*class].attachments {
                let volumes = host.attachments.entry(attachment.driver.clone()).or_default();
                *volumes.entry(attachment.volume.clone()).or_default() += 1;
            }
            // Pods on their way out, and pods of nodes on their way out, are nobody's neighbours any more.
            if !self.problem.snapshot.pods[*pod].is_terminating() && !node.being_removed {
                *counted.entry(*class).or_default() += 1;
            }
        }
        self.hosts.push(host);
        for (class, pods) in counted {
            self.count(position, class, pods, 1);
        }
    }

    pub fn host(&self, host: HostIndex) -> &Host {
        &self.hosts[host]
    }

    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Hosts that would be created, in the order in which they were opened.
    pub fn open_hosts(&self) -> impl Iterator<Item = HostIndex> + use<> {
        self.problem.nodes.len()..self.hosts.len()
    }

    pub fn open_node(&self, host: HostIndex) -> Option<&OpenNode> {
        self.hosts[host].open.as_deref()
    }

    /// Nodes that exist and take pods, in the order in which they are tried.
    pub fn node_order(&self) -> &[HostIndex] {
        &self.node_order
    }

    /// Open nodes, fewest pods first.
    pub fn open_by_fewest_pods(&self) -> impl Iterator<Item = HostIndex> {
        self.open_order.iter().map(|(_, host)| *host)
    }

    pub fn planned(&self, template: TemplateIndex) -> &Resources {
        &self.planned[template]
    }

    // --- placing -----------------------------------------------------------------------------------------------------

    /// Whether a node that exists takes one more pod of the class. O(dimensions + constraints).
    pub fn fits_existing(&self, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> bool {
        self.refusal_of_existing(class, variant, host).is_none()
    }

    /// Why a node that exists does not take one more pod of the class.
    pub fn refusal_of_existing(&self, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> Option<Refusal> {
        let state = &self.hosts[host];
        let pods = &self.problem.classes[class];
        if !self.problem.fits_node(variant, host) {
            return Some(self.node_refusal(variant, host));
        }
        if let Some(dimension) = vectors::shortage(&pods.request, &state.free) {
            return Some(Refusal::Resource {
                name: self.problem.dimensions.name(dimension).to_owned(),
                requested: pods.request[dimension],
                available: state.free[dimension].max(0),
            });
        }
        if self.ports_conflict(class, state) {
            return Some(Refusal::HostPort);
        }
        if !self.volumes_fit(class, host) {
            return Some(Refusal::Volume);
        }
        self.constraint_that_fails(class, variant, host).map(|group| self.constraint_refusal(group))
    }

    fn node_refusal(&self, variant: VariantIndex, host: HostIndex) -> Refusal {
        let node = &self.problem.nodes[host];
        let variant = &self.problem.variants[variant];
        if let Some(taint) = super::taints::repelling(&node.taints, &variant.tolerations, variant.soft_taints_repel) {
            return Refusal::Taint(taint.to_string());
        }
        let unmet = variant.requirements.iter().find(|(key, requirement)| {
            let value = crate::core::model::requirements::label(&node.labels, key);
            !value.map_or(requirement.allows_absence(), |value| requirement.allows(value))
        });
        Refusal::Requirement { key: unmet.map(|(key, _)| key.to_owned()).unwrap_or_default() }
    }

    fn ports_conflict(&self, class: ClassIndex, host: &Host) -> bool {
        let ports = &self.problem.classes[class].host_ports;
        !ports.is_empty() && ports.iter().any(|port| host.host_ports.iter().any(|taken| taken.conflicts_with(port)))
    }

    fn volumes_fit(&self, class: ClassIndex, host: HostIndex) -> bool {
        let pods = &self.problem.classes[class];
        let node = &self.problem.nodes[host];
        let reachable = pods.volume_alternatives.is_empty()
            || pods.volume_alternatives.iter().any(|requirements| requirements.allow_labels(&node.labels));
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

    /// Anti-affinity terms of other pods that select this class.
    fn forbidden_by_others(&self, class: ClassIndex) -> impl Iterator<Item = GroupIndex> {
        let counted_in = self.problem.classes[class].counted_in.iter().copied();
        counted_in.filter(|group| matches!(self.problem.groups[*group].kind, GroupKind::AntiAffinity))
    }

    fn constraint_refusal(&self, group: GroupIndex) -> Refusal {
        let key = self.problem.domains.name(self.problem.groups[group].key).to_owned();
        match self.problem.groups[group].kind {
            GroupKind::Spread(_) => Refusal::Spread { key },
            GroupKind::Affinity => Refusal::Affinity { key },
            GroupKind::AntiAffinity => Refusal::AntiAffinity { key },
        }
    }

    /// Whether a constraint lets one more pod of the class into a domain.
    fn allows(&self, group: GroupIndex, class: ClassIndex, domain: Domain) -> bool {
        let counters = &self.counters[group];
        match &self.problem.groups[group].kind {
            GroupKind::Spread(spread) => {
                domain < OPEN_DOMAIN
                    && self.skew_after(group, spread, class, domain).is_some_and(|skew| skew <= spread.max_skew)
            }
            GroupKind::Affinity => {
                domain < OPEN_DOMAIN
                    && (counters.matching(domain) > 0 || (!counters.any_matching() && self.is_counted(group, class)))
            }
            GroupKind::AntiAffinity => domain == NO_DOMAIN || counters.matching(domain) == 0,
        }
    }

    fn is_counted(&self, group: GroupIndex, class: ClassIndex) -> bool {
        self.problem.classes[class].counted_in.binary_search(&group).is_ok()
    }

    /// The skew with one more pod in the domain; `None` where the domain is not one to spread over.
    fn skew_after(&self, group: GroupIndex, spread: &Spread, class: ClassIndex, domain: Domain) -> Option<u32> {
        let count = self.counters[group].matching(domain) + u32::from(self.is_counted(group, class));
        if self.problem.domains.is_hostname(self.problem.groups[group].key) {
            // A new host is always possible, so the emptiest holds none.
            return Some(count);
        }
        self.problem.is_eligible(group, domain).then(|| count.saturating_sub(self.fewest(group, spread)))
    }

    /// Pods in the emptiest domain that counts; none while there are fewer domains than the constraint wants.
    fn fewest(&self, group: GroupIndex, spread: &Spread) -> u32 {
        let mut domains = 0;
        let mut fewest = u32::MAX;
        for domain in self.problem.eligible_domains(group) {
            domains += 1;
            fewest = fewest.min(self.counters[group].matching(domain));
        }
        if domains == 0 || domains < spread.min_domains { 0 } else { fewest }
    }

    /// Puts one pod of the class on a node that exists. The caller has asked [`Self::fits_existing`].
    pub fn place_on_existing(&mut self, class: ClassIndex, host: HostIndex) {
        self.add_pod(class, host);
        self.changes.push(Change::Placed { class, host, open_before: None });
    }

    /// Puts one pod of the class on an open node, which thereby becomes `narrowed`.
    pub fn place_on_open(&mut self, class: ClassIndex, host: HostIndex, narrowed: OpenNode) {
        let before = self.settle(host, narrowed);
        self.add_pod(class, host);
        self.changes.push(Change::Placed { class, host, open_before: before });
    }

    /// Replaces the state of an open node; counts of its pods follow the domains it has settled on.
    fn settle(&mut self, host: HostIndex, open: OpenNode) -> Option<Box<OpenNode>> {
        let domains = self.domains_of_open(&open, host);
        if domains == self.hosts[host].domains {
            return self.hosts[host].open.replace(Box::new(open));
        }
        let pods: Vec<(ClassIndex, u32)> =
            self.hosts[host].pods.iter().map(|(class, count)| (*class, *count)).collect();
        for (class, count) in &pods {
            self.count(host, *class, *count, -1);
        }
        let before = self.hosts[host].open.replace(Box::new(open));
        self.hosts[host].domains = domains;
        for (class, count) in &pods {
            self.count(host, *class, *count, 1);
        }
        before
    }

    fn add_pod(&mut self, class: ClassIndex, host: HostIndex) {
        self.count(host, class, 1, 1);
        self.change_pod(class, host, 1);
    }

    fn take_pod(&mut self, class: ClassIndex, host: HostIndex) {
        self.count(host, class, 1, -1);
        self.change_pod(class, host, -1);
    }

    fn change_pod(&mut self, class: ClassIndex, host: HostIndex, sign: i8) {
        let pods = &self.problem.classes[class];
        let state = &mut self.hosts[host];
        let is_open = state.open.is_some() && !state.closed;
        if is_open {
            self.open_order.remove(&(state.pod_count, host));
        }
        vectors::add(&mut state.free, &pods.request, -i64::from(sign));
        if sign > 0 {
            *state.pods.entry(class).or_default() += 1;
            state.pod_count += 1;
            state.host_ports.extend(pods.host_ports.iter().cloned());
        } else {
            if let Some(count) = state.pods.get_mut(&class) {
                *count -= 1;
                if *count == 0 {
                    state.pods.remove(&class);
                }
            }
            state.pod_count = state.pod_count.saturating_sub(1);
            for port in &pods.host_ports {
                if let Some(position) = state.host_ports.iter().rposition(|taken| taken == port) {
                    state.host_ports.remove(position);
                }
            }
        }
        for attachment in &pods.attachments {
            let volumes = state.attachments.entry(attachment.driver.clone()).or_default();
            let users = volumes.entry(attachment.volume.clone()).or_default();
            *users = if sign > 0 { *users + 1 } else { users.saturating_sub(1) };
            if *users == 0 {
                volumes.remove(&attachment.volume);
            }
        }
        if is_open {
            self.open_order.insert((state.pod_count, host));
        }
    }

    /// Counts pods of a class on a host in every group that looks at them.
    fn count(&mut self, host: HostIndex, class: ClassIndex, pods: u32, sign: i8) {
        let problem = self.problem;
        for group in &problem.classes[class].counted_in {
            if self.counts_host(*group, host) {
                self.each_domain(host, *group, |counters, domain| counters.count_matching(domain, pods, sign));
            }
        }
        for group in &problem.classes[class].anti_affinity {
            self.each_domain(host, *group, |counters, domain| counters.count_owners(domain, pods, sign));
        }
    }

    fn counts_host(&self, group: GroupIndex, host: HostIndex) -> bool {
        match &self.hosts[host].open {
            Some(open) => self.problem.counts_template(group, open.template),
            None => self.problem.counts_node(group, host),
        }
    }

    /// The domain of a host; for anti-affinity, every domain that an open node may still come to be in.
    fn each_domain(&mut self, host: HostIndex, group: GroupIndex, mut apply: impl FnMut(&mut Counters, Domain)) {
        let key = self.problem.groups[group].key;
        match self.hosts[host].domains[key] {
            NO_DOMAIN => {}
            OPEN_DOMAIN if matches!(self.problem.groups[group].kind, GroupKind::AntiAffinity) => {
                let possible =
                    self.hosts[host].open.as_deref().map(|open| self.possible_domains(open, key)).unwrap_or_default();
                for domain in possible {
                    apply(&mut self.counters[group], domain);
                }
            }
            OPEN_DOMAIN => {}
            domain => apply(&mut self.counters[group], domain),
        }
    }

    // --- nodes to be created -----------------------------------------------------------------------------------------

    /// The domains that an open node has settled on, by topology key.
    fn domains_of_open(&self, open: &OpenNode, host: HostIndex) -> Box<[Domain]> {
        let settled = |key| {
            if self.problem.domains.is_hostname(key) {
                return Domain::try_from(host).unwrap_or(NO_DOMAIN);
            }
            match self.possible_domains(open, key).as_slice() {
                [] => NO_DOMAIN,
                [domain] => *domain,
                _ => OPEN_DOMAIN,
            }
        };
        (0..self.problem.domains.key_count()).map(settled).collect()
    }

    /// The domains that an open node may come to be in, by value.
    fn possible_domains(&self, open: &OpenNode, key: usize) -> Vec<Domain> {
        let template = &self.problem.templates[open.template];
        let name = self.problem.domains.name(key);
        if template.offerings.defines(name) {
            let values = template.offerings.values_of(&open.set, name);
            return values.into_iter().filter_map(|value| self.problem.domains.get(key, value)).collect();
        }
        let requirement = open.custom.get(name).or_else(|| template.requirements.get(name));
        let values = requirement.and_then(Requirement::values).into_iter().flatten();
        values.filter_map(|value| self.problem.domains.get(key, value)).collect()
    }

    /// What an open node becomes when it takes one more pod of the class, or why it does not.
    pub fn narrowed(&self, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> Result<OpenNode, Refusal> {
        let state = &self.hosts[host];
        let Some(open) = state.open.as_deref() else { return Err(Refusal::Offering) };
        let allowed = self.problem.fit_of_template(variant, open.template).as_ref().map_err(Clone::clone)?;
        let pods = &self.problem.classes[class];
        let mut requested = open.requested.clone();
        vectors::add(&mut requested, &pods.request, 1);
        if let Some(dimension) = vectors::shortage(&requested, &open.room_most) {
            return Err(self.shortage(
                dimension,
                pods.request[dimension],
                open.room_most[dimension] - open.requested[dimension],
            ));
        }
        if self.ports_conflict(class, state) {
            return Err(Refusal::HostPort);
        }
        let mut next = OpenNode { requested, ..open.clone() };
        next.variants.insert(variant);
        self.narrow(next, allowed, class, variant, host)
    }

    /// A new node of a template that takes one pod of the class, or why there is none. The node is not yet among the hosts.
    /// `wanted` restricts it further to some types and slots.
    pub fn opened(
        &self,
        class: ClassIndex,
        variant: VariantIndex,
        template: TemplateIndex,
        wanted: Option<&OfferingSet>,
    ) -> Result<OpenNode, Refusal> {
        let allowed = self.problem.fit_of_template(variant, template).as_ref().map_err(Clone::clone)?;
        let mut set = allowed.clone();
        if let Some(wanted) = wanted {
            set.intersect(wanted);
        }
        let open = OpenNode {
            template,
            set,
            custom: Requirements::new(),
            requested: self.problem.classes[class].request.clone(),
            room_most: vec![0; self.problem.dimensions.count()].into_boxed_slice(),
            variants: BTreeSet::from([variant]),
            limit_capacity: Resources::new(),
        };
        let mut open = self.narrow(open, allowed, class, variant, self.hosts.len())?;
        if !self.problem.templates[template].limits.is_empty() {
            open.set = self.within_limits(template, &open.set)?;
            self.narrow_to_room(&mut open, class)?;
        }
        Ok(open)
    }

    /// The offerings whose capacity the limits of the pool still allow.
    fn within_limits(&self, template: TemplateIndex, allowed: &OfferingSet) -> Result<OfferingSet, Refusal> {
        let compiled = &self.problem.templates[template];
        let mut set = allowed.clone();
        let mut nearest: Option<Refusal> = None;
        for (position, entry) in compiled.offerings.offered(allowed) {
            if let Some(resource) = compiled.limit_exceeded(&self.planned[template], &entry.capacity) {
                set.types.remove(position);
                let used = compiled.used.get(resource).saturating_add(self.planned[template].get(resource));
                let needed = entry.capacity.get(resource);
                let is_nearer = !matches!(&nearest, Some(Refusal::Limit { needed: least, .. }) if *least <= needed);
                if is_nearer {
                    nearest = Some(Refusal::Limit {
                        resource: resource.to_owned(),
                        limit: compiled.limits.get(resource),
                        used,
                        needed,
                    });
                }
            }
        }
        if compiled.offerings.offered(&set).next().is_some() {
            Ok(set)
        } else {
            Err(nearest.unwrap_or(Refusal::Offering))
        }
    }

    fn narrow(
        &self,
        mut open: OpenNode,
        allowed: &OfferingSet,
        class: ClassIndex,
        variant: VariantIndex,
        host: HostIndex,
    ) -> Result<OpenNode, Refusal> {
        open.set.intersect(allowed);
        self.narrow_custom(&mut open, &self.problem.variants[variant].requirements)?;
        let alternatives = &self.problem.classes[class].volume_alternatives;
        if alternatives.is_empty() {
            return self.narrow_topology(open, class, variant, host);
        }
        let mut refusal = Refusal::Volume;
        for requirements in alternatives {
            let mut candidate = open.clone();
            if self.narrow_to(&mut candidate, requirements).is_err() {
                continue;
            }
            match self.narrow_topology(candidate, class, variant, host) {
                Ok(narrowed) => return Ok(narrowed),
                Err(error) => refusal = error,
            }
        }
        Err(refusal)
    }

    /// Labels of the pool that have several values take those the pod asks for.
    fn narrow_custom(&self, open: &mut OpenNode, requirements: &Requirements) -> Result<(), Refusal> {
        let template = &self.problem.templates[open.template];
        for (key, requirement) in requirements.iter().filter(|(key, _)| !template.offerings.defines(key)) {
            let Some(mine) = open.custom.get(key).or_else(|| template.requirements.get(key)) else { continue };
            let both = mine.intersection(requirement);
            if both.allows_nothing() && !(mine.allows_absence() && requirement.allows_absence()) {
                return Err(Refusal::Requirement { key: key.to_owned() });
            }
            if both != *mine {
                open.custom.add(key, both);
            }
        }
        Ok(())
    }

    fn narrow_to(&self, open: &mut OpenNode, requirements: &Requirements) -> Result<(), Refusal> {
        let template = &self.problem.templates[open.template];
        if let Some(key) = template.requirements.refusal(requirements) {
            return Err(Refusal::Requirement { key: key.to_owned() });
        }
        for (key, requirement) in requirements.iter().filter(|(key, _)| template.offerings.defines(key)) {
            template.offerings.restrict(&mut open.set, key, requirement);
        }
        self.narrow_custom(open, requirements)
    }

    fn narrow_topology(
        &self,
        mut open: OpenNode,
        class: ClassIndex,
        variant: VariantIndex,
        host: HostIndex,
    ) -> Result<OpenNode, Refusal> {
        // Only types with room may lend their domains.
        self.narrow_to_room(&mut open, class)?;
        for group in &self.problem.variants[variant].constraints {
            self.narrow_to_constraint(&mut open, *group, class, host)?;
        }
        for group in self.forbidden_by_others(class) {
            self.narrow_away_from_owners(&mut open, group, host)?;
        }
        self.narrow_to_room(&mut open, class)?;
        self.check_min_values(&open)?;
        Ok(open)
    }

    /// Keeps the types that have room for everything requested and are offered in a slot that is left.
    fn narrow_to_room(&self, open: &mut OpenNode, class: ClassIndex) -> Result<(), Refusal> {
        let template = &self.problem.templates[open.template];
        let dimensions = self.problem.dimensions.count();
        let mut most = vec![i64::MIN; dimensions].into_boxed_slice();
        let mut kept = open.set.types.clone();
        let mut roomiest = vec![0; dimensions].into_boxed_slice();
        let mut any_offered = false;
        for position in open.set.types.ones() {
            let entry = &template.offerings.types[position];
            if entry.available & open.set.slots == 0 {
                kept.remove(position);
                continue;
            }
            any_offered = true;
            let overhead = &template.daemon_overhead[position];
            let room = |dimension: usize| entry.allocatable[dimension].saturating_sub(overhead[dimension]);
            let fits = (0..dimensions)
                .all(|dimension| open.requested[dimension] <= room(dimension) || open.requested[dimension] <= 0);
            for dimension in 0..dimensions {
                roomiest[dimension] = room(dimension).max(roomiest[dimension]);
                if fits {
                    most[dimension] = most[dimension].max(room(dimension));
                }
            }
            kept.set(position, fits);
        }
        if kept.is_clear() {
            let request = &self.problem.classes[class].request;
            return Err(match vectors::shortage(&open.requested, &roomiest) {
                Some(dimension) if any_offered => self.shortage(dimension, request[dimension], roomiest[dimension]),
                // Each resource fits some type, but no type has room for all of them together.
                None if any_offered => self.shortage(
                    vectors::CPU_DIMENSION,
                    request[vectors::CPU_DIMENSION],
                    roomiest[vectors::CPU_DIMENSION],
                ),
                _ => Refusal::Offering,
            });
        }
        open.set.types = kept;
        open.room_most = most;
        Ok(())
    }

    fn shortage(&self, dimension: usize, requested: i64, available: i64) -> Refusal {
        Refusal::Resource {
            name: self.problem.dimensions.name(dimension).to_owned(),
            requested,
            available: available.max(0),
        }
    }

    fn narrow_to_constraint(
        &self,
        open: &mut OpenNode,
        group: GroupIndex,
        class: ClassIndex,
        host: HostIndex,
    ) -> Result<(), Refusal> {
        let key = self.problem.groups[group].key;
        if self.problem.domains.is_hostname(key) {
            let domain = Domain::try_from(host).unwrap_or(NO_DOMAIN);
            return if self.allows(group, class, domain) { Ok(()) } else { Err(self.constraint_refusal(group)) };
        }
        let possible = self.possible_domains(open, key);
        let allowed: Vec<Domain> =
            possible.iter().copied().filter(|domain| self.allows(group, class, *domain)).collect();
        let counters = &self.counters[group];
        let chosen: Vec<Domain> = match &self.problem.groups[group].kind {
            // The emptiest domain; of equals the first by name.
            GroupKind::Spread(_) => {
                allowed.into_iter().min_by_key(|domain| counters.matching(*domain)).into_iter().collect()
            }
            GroupKind::Affinity if counters.any_matching() => allowed,
            GroupKind::Affinity => allowed.into_iter().take(1).collect(),
            GroupKind::AntiAffinity if possible.is_empty() => return Ok(()),
            GroupKind::AntiAffinity => allowed,
        };
        if chosen.is_empty() {
            return Err(self.constraint_refusal(group));
        }
        if chosen.len() < possible.len() {
            self.narrow_to_domains(open, key, &chosen)?;
        }
        Ok(())
    }

    fn narrow_away_from_owners(&self, open: &mut OpenNode, group: GroupIndex, host: HostIndex) -> Result<(), Refusal> {
        let key = self.problem.groups[group].key;
        if self.problem.domains.is_hostname(key) {
            let domain = Domain::try_from(host).unwrap_or(NO_DOMAIN);
            return if self.counters[group].owners(domain) == 0 { Ok(()) } else { Err(self.constraint_refusal(group)) };
        }
        let possible = self.possible_domains(open, key);
        let free: Vec<Domain> =
            possible.iter().copied().filter(|domain| self.counters[group].owners(*domain) == 0).collect();
        if free.is_empty() && !possible.is_empty() {
            return Err(self.constraint_refusal(group));
        }
        if free.len() < possible.len() {
            self.narrow_to_domains(open, key, &free)?;
        }
        Ok(())
    }

    fn narrow_to_domains(&self, open: &mut OpenNode, key: usize, domains: &[Domain]) -> Result<(), Refusal> {
        let name = self.problem.domains.name(key).to_owned();
        let named = self.problem.domains.values(key).filter(|(_, domain)| domains.contains(domain));
        let requirement = Requirement::is_in(named.map(|(value, _)| value));
        let mut requirements = Requirements::new();
        requirements.add(&name, requirement);
        self.narrow_to(open, &requirements)
    }

    /// The types that are left must still offer as many different values as the pool asks for.
    fn check_min_values(&self, open: &OpenNode) -> Result<(), Refusal> {
        let template = &self.problem.templates[open.template];
        for (key, least) in &template.min_values {
            if template.offerings.values_of(&open.set, key).len() < *least {
                return Err(Refusal::MinValues { key: key.clone() });
            }
        }
        Ok(())
    }

    /// Adds a node to be created, with its first pod. `capacity` is what it takes of the pool's limits.
    pub fn open(&mut self, class: ClassIndex, mut open: OpenNode, capacity: Resources) -> HostIndex {
        open.limit_capacity = capacity.clone();
        let host = self.hosts.len();
        let template = open.template;
        let domains = self.domains_of_open(&open, host);
        self.hosts.push(Host {
            free: vec![0; self.problem.dimensions.count()].into_boxed_slice(),
            pods: BTreeMap::new(),
            pod_count: 0,
            host_ports: self.daemon_ports(template),
            attachments: BTreeMap::new(),
            domains,
            closed: false,
            open: Some(Box::new(open)),
        });
        self.open_order.insert((0, host));
        self.plan_capacity(template, capacity, 1);
        self.add_pod(class, host);
        self.changes.push(Change::Placed { class, host, open_before: None });
        host
    }

    fn daemon_ports(&self, template: TemplateIndex) -> Vec<super::class::HostPort> {
        let template: &Template = &self.problem.templates[template];
        let any = |_: &str, _: &Requirement| true;
        let running =
            self.problem.daemons.iter().filter(|daemon| daemon.runs_on(&template.requirements, &template.taints, &any));
        running.flat_map(|daemon| daemon.host_ports.iter().cloned()).collect()
    }

    /// Fixes what an open node may become, and what it takes of the limits.
    pub fn fix(&mut self, host: HostIndex, set: OfferingSet, capacity: Resources) {
        let Some(open) = self.hosts[host].open.as_deref() else { return };
        let (template, before) = (open.template, open.limit_capacity.clone());
        let fixed = OpenNode { set, limit_capacity: capacity.clone(), ..open.clone() };
        let before_state = self.settle(host, fixed);
        self.changes.push(Change::Settled { host, before: before_state });
        self.plan_capacity(template, before, -1);
        self.plan_capacity(template, capacity, 1);
    }

    /// Gives up a node that would have been created; its pods are without a place again.
    pub fn discard(&mut self, host: HostIndex) -> Vec<(ClassIndex, u32)> {
        let pods: Vec<(ClassIndex, u32)> =
            self.hosts[host].pods.iter().map(|(class, count)| (*class, *count)).collect();
        for (class, count) in &pods {
            for _ in 0..*count {
                self.remove_pod(*class, host);
            }
        }
        self.close(host);
        self.open_order.remove(&(0, host));
        if let Some(open) = self.hosts[host].open.as_deref() {
            let (template, capacity) = (open.template, open.limit_capacity.clone());
            self.plan_capacity(template, capacity, -1);
        }
        pods
    }

    /// Takes (or, with sign -1, gives back) capacity of a pool's limits.
    fn plan_capacity(&mut self, template: TemplateIndex, capacity: Resources, sign: i8) {
        if sign > 0 {
            self.planned[template].add(&capacity);
        } else {
            self.planned[template].subtract(&capacity);
        }
        self.changes.push(Change::Planned { template, capacity, sign });
    }

    // --- trying removals ---------------------------------------------------------------------------------------------

    /// Takes one pod of a class off a host.
    pub fn remove_pod(&mut self, class: ClassIndex, host: HostIndex) {
        self.take_pod(class, host);
        self.changes.push(Change::Removed { class, host });
    }

    /// The host takes no more pods.
    pub fn close(&mut self, host: HostIndex) {
        if !self.hosts[host].closed {
            self.hosts[host].closed = true;
            self.changes.push(Change::Closed { host });
        }
    }

    pub fn is_closed(&self, host: HostIndex) -> bool {
        self.hosts[host].closed
    }

    // --- going back --------------------------------------------------------------------------------------------------

    pub fn mark(&self) -> Mark {
        Mark { changes: self.changes.len(), hosts: self.hosts.len() }
    }

    /// Undoes everything since the mark. O(changes since).
    pub fn revert(&mut self, mark: Mark) {
        while self.changes.len() > mark.changes {
            let Some(change) = self.changes.pop() else { break };
            match change {
                Change::Placed { class, host, open_before } => {
                    self.take_pod(class, host);
                    if let Some(before) = open_before {
                        self.settle(host, *before);
                    }
                }
                Change::Removed { class, host } => self.add_pod(class, host),
                Change::Closed { host } => {
                    self.hosts[host].closed = false;
                    if self.hosts[host].open.is_some() {
                        self.open_order.insert((self.hosts[host].pod_count, host));
                    }
                }
                Change::Settled { host, before } => {
                    if let Some(before) = before {
                        self.settle(host, *before);
                    }
                }
                Change::Planned { template, capacity, sign } => {
                    if sign > 0 {
                        self.planned[template].subtract(&capacity);
                    } else {
                        self.planned[template].add(&capacity);
                    }
                }
            }
        }
        for host in mark.hosts..self.hosts.len() {
            self.open_order.remove(&(self.hosts[host].pod_count, host));
        }
        self.hosts.truncate(mark.hosts);
    }

    /// Pods placed since the mark, in the order in which they were placed.
    pub fn placed_since(&self, mark: Mark) -> impl Iterator<Item = (ClassIndex, HostIndex)> {
        self.changes[mark.changes..].iter().filter_map(|change| match change {
            Change::Placed { class, host, .. } => Some((*class, *host)),
            _ => None,
        })
    }

    /// The zone of a host that exists, for messages.
    pub fn zone(&self, host: HostIndex) -> Option<&str> {
        self.problem.nodes.get(host).and_then(|node| self.problem.machines[node.machine].label(keys::ZONE))
    }
}
