//! Places classes on hosts, and goes back to a mark.
//!
//! Trying a pod on a node that exists costs a lookup, a comparison of vectors and one lookup for each topology
//! constraint; on a node to be created, also one comparison of vectors for each type it may still become.

mod any_order;
mod concentration;
mod devices;
mod division;
mod existing;
mod given_back;
mod meetings;
mod min_values;
mod opening;
mod refused;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::daemons::DaemonIndex;
use crate::model::index::range;
use crate::model::resources::NODES;
use crate::model::{IndexVec, Resources};
use cutlist_api::settings::Packing;

use super::class::ClassIndex;
use super::concentration::SpotPool;
use super::host::{Host, HostIndex, OpenNode};
use super::offerings::{OfferingSet, TypeIndex};
use super::problem::Problem;
use super::quota::{LimitScope, LimitedCapacity, QuotaIndex};
use super::template::TemplateIndex;
use super::topology::{Counters, Domain, GroupIndex, GroupKind, NO_DOMAIN, OPEN_DOMAIN};
use super::vectors;
use concentration::Concentrations;
use table::HostTable;

pub use given_back::GivesBack;
pub use refused::Refused;

/// A point to go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    changes: usize,
    hosts: HostIndex,
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
    Planned { template: TemplateIndex, capacity: LimitedCapacity, sign: i8 },
    Settled { host: HostIndex, before: Option<Box<OpenNode>> },
}

/// The cluster while a plan is made.
pub struct Engine<'p, 'a> {
    pub problem: &'p Problem<'a>,
    hosts: IndexVec<HostIndex, Host>,
    counters: IndexVec<GroupIndex, Counters>,
    /// Capacity of the nodes that would be created.
    planned: IndexVec<QuotaIndex, Vec<i64>>,
    changes: Vec<Change>,
    table: HostTable,
    /// Whether a pod with anti-affinity settles its new node on one domain. The reference leaves it open, so that of such
    /// pods it places one in each pass.
    settles: bool,
    /// Whether a pod waits when the reservations that it could use are all held, as in the reference.
    waits_for_reservations: bool,
    /// Which limits no longer count nodes that go: those of pools in the reference.
    gives_back: GivesBack,
    /// Whether a new node may be less varied than its pool's `minValues` ask for.
    lowers_min_values: bool,
    /// Whether limits of pools and of the cluster are left out of account, to find out what they cost.
    ignores_limits: bool,
    concentrations: Concentrations,
    /// Whether pods go only where they make no concentration that counts.
    avoids_concentration: bool,
    /// Whether spreads are over domains that have a node, or get one by this plan, and over no others.
    counts_nodes_alone: bool,
    /// Whether that was so at some time.
    counted_nodes_alone: bool,
    /// Whether pods go only where nobody's spread is violated, in whichever order kube-scheduler takes them.
    holds_in_any_order: bool,
}

impl<'p, 'a> Engine<'p, 'a> {
    pub fn new(problem: &'p Problem<'a>, packing: Packing) -> Self {
        let settles = packing == Packing::Cheapest;
        let mut engine = Self {
            problem,
            hosts: IndexVec::with_capacity(problem.nodes.len()),
            counters: problem.groups.iter().map(|group| Counters::new(group, &problem.domains)).collect(),
            planned: IndexVec::repeat(problem.limited.nothing().to_vec(), problem.quotas.len()),
            changes: Vec::new(),
            table: HostTable::new(problem.nodes.end(), problem.dimensions.count(), problem.domains.key_count()),
            settles,
            waits_for_reservations: packing == Packing::Karpenter,
            gives_back: GivesBack { of_pool: packing == Packing::Karpenter, of_cluster: false },
            lowers_min_values: false,
            ignores_limits: false,
            concentrations: Concentrations::new(problem.concentration.as_ref()),
            avoids_concentration: false,
            counts_nodes_alone: false,
            counted_nodes_alone: false,
            holds_in_any_order: false,
        };
        for position in problem.nodes.indices() {
            engine.add_existing(position);
        }
        engine
    }

    fn add_existing(&mut self, position: HostIndex) {
        let node = &self.problem.nodes[position];
        let domains = &self.problem.domains;
        let domain_of = |key| domains.of_labels(key, &node.labels, position);
        let mut host = Host {
            pods: BTreeMap::new(),
            pod_count: 0,
            host_ports: node.host_ports.clone(),
            attachments: BTreeMap::new(),
            devices: Vec::new(),
            spot_pool: self
                .problem
                .concentration
                .as_ref()
                .and_then(|concentration| concentration.spot_pool_of_labels(&node.labels)),
            neighbours: if self.settles && !node.being_removed { node.neighbours.clone() } else { Vec::new() },
            domains: domains.keys().map(domain_of).collect(),
            closed: node.being_removed,
            open: None,
        };
        let mut counted: BTreeMap<ClassIndex, u32> = BTreeMap::new();
        for (pod, class) in node.pods.iter().chain(&node.nominated) {
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
        self.table.push(node.free.iter().copied());
        self.table.set_accepting(position, !node.being_removed);
        self.hosts.push(host);
        self.set_places(position, true);
        for (class, pods) in counted {
            self.count(position, class, pods, 1);
        }
        self.count_neighbours(position, 1);
    }

    pub fn host(&self, host: HostIndex) -> &Host {
        &self.hosts[host]
    }

    pub fn all_hosts(&self) -> impl Iterator<Item = HostIndex> + use<> {
        self.hosts.indices()
    }

    /// Hosts that would be created, in the order in which they were opened.
    pub fn open_hosts(&self) -> impl DoubleEndedIterator<Item = HostIndex> + use<> {
        range(self.problem.nodes.end(), self.hosts.end())
    }

    /// Those opened since the mark.
    pub fn open_hosts_since(&self, mark: Mark) -> impl Iterator<Item = HostIndex> + use<> {
        range(mark.hosts.max(self.problem.nodes.end()), self.hosts.end())
    }

    pub fn open_node(&self, host: HostIndex) -> Option<&OpenNode> {
        self.hosts[host].open.as_deref()
    }

    /// Nodes that exist, in the order in which they are tried.
    pub fn existing_hosts(&self) -> impl DoubleEndedIterator<Item = HostIndex> + ExactSizeIterator + Clone + use<> {
        range(HostIndex::default(), self.problem.nodes.end())
    }

    /// By dimension what is free, or for an open node more than any of its types has left.
    pub fn headroom(&self, host: HostIndex) -> &[i64] {
        self.table.headroom(host)
    }

    /// Takes away types of which the limits do not allow the node to become one, but for those that are spared. O(types x limits).
    pub fn keep_within_limits(&self, open: &OpenNode, set: &mut OfferingSet, is_spared: impl Fn(TypeIndex) -> bool) {
        let template = &self.problem.templates[open.template];
        if !template.is_limited() {
            return;
        }
        let exceeds = |position: &TypeIndex| {
            let capacity = &template.limited_capacity[*position];
            !is_spared(*position) && self.limit_exceeded(open.template, &open.limit_capacity, capacity).is_some()
        };
        let exceeding: Vec<TypeIndex> = set.each_type().filter(exceeds).collect();
        exceeding.into_iter().for_each(|position| set.remove_type(position));
    }

    /// The first limit that a node of this capacity would exceed, when `given_back` is taken off what is planned: the
    /// quota, and the resource. O(limits).
    pub fn limit_exceeded(
        &self,
        template: TemplateIndex,
        given_back: &[i64],
        capacity: &[i64],
    ) -> Option<(QuotaIndex, usize)> {
        let quotas = self.problem.templates[template].quotas.iter().copied();
        let exceeded = |quota: QuotaIndex| {
            let limits = &self.problem.quotas[quota];
            if self.ignores_limits && matches!(limits.scope, LimitScope::NodePool | LimitScope::Cluster) {
                return None;
            }
            let resource = limits.exceeded(&self.planned[quota], given_back, capacity)?;
            Some((quota, resource))
        };
        quotas.into_iter().find_map(exceeded)
    }

    /// From now on a new node may, or may not, have fewer values than `minValues` ask for.
    pub fn lower_min_values(&mut self, lowers: bool) {
        self.lowers_min_values = lowers;
    }

    pub fn lowers_min_values(&self) -> bool {
        self.lowers_min_values
    }

    /// From now on limits of pools and of the cluster do not, or do, count.
    pub fn ignore_limits(&mut self, ignores: bool) {
        self.ignores_limits = ignores;
    }

    pub fn waits_for_reservations(&self) -> bool {
        self.waits_for_reservations
    }

    /// What the nodes that would be created take of a quota.
    pub fn planned(&self, quota: QuotaIndex) -> &[i64] {
        &self.planned[quota]
    }

    // --- placing -----------------------------------------------------------------------------------------------------

    /// Puts one pod of the class on a node that exists. The caller has asked [`Self::fits_existing`].
    pub fn place_on_existing(&mut self, class: ClassIndex, host: HostIndex) {
        self.add_pod(class, host);
        self.changes.push(Change::Placed { class, host, open_before: None });
        self.keep_empty_domains_away(class);
    }

    /// Puts one pod of the class on an open node, which thereby becomes `narrowed`.
    pub fn place_on_open(&mut self, class: ClassIndex, host: HostIndex, narrowed: OpenNode) {
        let before = self.settle(host, narrowed);
        self.add_pod(class, host);
        self.changes.push(Change::Placed { class, host, open_before: before });
        self.keep_empty_domains_away(class);
    }

    /// Replaces the state of an open node; counts of its pods follow the domains it has settled on. The reference counts a pod
    /// where its node could be at that time, and never again.
    fn settle(&mut self, host: HostIndex, open: OpenNode) -> Option<Box<OpenNode>> {
        self.table.set_headroom(host, left(&open));
        let domains = self.domains_of_open(&open, host);
        let spot_pool = self.spot_pool_of_open(&open);
        let neighbours = if self.hosts[host].closed { Vec::new() } else { self.neighbours_of_open(&open) };
        let is_where_it_was = domains == self.hosts[host].domains && spot_pool == self.hosts[host].spot_pool;
        if is_where_it_was && neighbours == self.hosts[host].neighbours {
            return self.hosts[host].open.replace(Box::new(open));
        }
        let pods: Vec<(ClassIndex, u32)> = match self.settles {
            true => self.hosts[host].pods.iter().map(|(class, count)| (*class, *count)).collect(),
            false => Vec::new(),
        };
        for (class, count) in &pods {
            self.count_arriving(host, *class, *count, -1);
        }
        self.count_neighbours(host, -1);
        let before = self.hosts[host].open.replace(Box::new(open));
        self.set_places(host, false);
        self.hosts[host].domains = domains;
        self.hosts[host].spot_pool = spot_pool;
        self.hosts[host].neighbours = neighbours;
        self.set_places(host, true);
        for (class, count) in &pods {
            self.count_arriving(host, *class, *count, 1);
        }
        self.count_neighbours(host, 1);
        before
    }

    fn spot_pool_of_open(&self, open: &OpenNode) -> Option<SpotPool> {
        self.problem.concentration.as_ref().and_then(|concentration| concentration.settled(open.template, &open.set))
    }

    /// Enters a host where its domains are, or takes it out there.
    fn set_places(&mut self, host: HostIndex, is_there: bool) {
        for (key, domain) in self.hosts[host].domains.enumerated() {
            if !self.problem.domains.is_hostname(key) {
                // In a domain of its own it is found by no other; whoever asks for it is asked about it alone.
                let is_own = self.problem.domains.is_own(key, *domain);
                self.table.set_place(host, key, if is_own { OPEN_DOMAIN } else { *domain }, is_there);
            }
        }
    }

    fn add_pod(&mut self, class: ClassIndex, host: HostIndex) {
        self.count_arriving(host, class, 1, 1);
        self.change_pod(class, host, 1);
    }

    fn take_pod(&mut self, class: ClassIndex, host: HostIndex) {
        self.count_arriving(host, class, 1, -1);
        self.change_pod(class, host, -1);
    }

    fn change_pod(&mut self, class: ClassIndex, host: HostIndex, sign: i8) {
        let pods = &self.problem.classes[class];
        if pods.devices.is_some() {
            self.change_devices(class, host, sign);
        }
        let state = &mut self.hosts[host];
        let is_open = state.open.is_some();
        if is_open && !state.closed {
            self.table.set_open(host, state.pod_count, false);
        }
        if !is_open {
            self.table.add_headroom(host, &pods.request, -i64::from(sign));
        }
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
        if is_open && !state.closed {
            self.table.set_open(host, state.pod_count, true);
        }
    }

    /// Counts pods of a class on a host in every group that looks at them, and in concentration.
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
        if let Some(concentration) = &problem.concentration
            && let Some(workload) = concentration.workload_of(class)
        {
            self.concentrations.count(concentration, workload, (host, self.hosts[host].spot_pool), pods, sign);
        }
    }

    /// The DaemonSets that run on an open node whatever it becomes. The reference knows only what they take.
    fn neighbours_of_open(&self, open: &OpenNode) -> Vec<DaemonIndex> {
        let neighbours = self.problem.templates[open.template].neighbours.iter().filter(|_| self.settles);
        neighbours.filter(|neighbour| neighbour.runs_on_all(&open.set)).map(|neighbour| neighbour.daemon).collect()
    }

    /// Counts the pods that DaemonSets will run on a host as if they ran there already.
    fn count_neighbours(&mut self, host: HostIndex, sign: i8) {
        let problem = self.problem;
        for daemon in 0..self.hosts[host].neighbours.len() {
            let daemon = &problem.daemons[self.hosts[host].neighbours[daemon]];
            for group in &daemon.counted_in {
                // Of a spread over hosts the emptiest counts as empty; with what each host has anyway, none would be empty enough.
                let kind = &problem.groups[*group].kind;
                let is_of_hosts = problem.domains.is_hostname(problem.groups[*group].key);
                if self.counts_host(*group, host) && !(is_of_hosts && matches!(kind, GroupKind::Spread(_))) {
                    self.each_domain(host, *group, |counters, domain| counters.count_matching(domain, 1, sign));
                }
            }
            for group in &daemon.anti_affinity {
                self.each_domain(host, *group, |counters, domain| counters.count_owners(domain, 1, sign));
            }
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

    /// Adds a node to be created, with its first pod. `capacity` is what it takes of limits.
    pub fn open(&mut self, class: ClassIndex, open: OpenNode, capacity: LimitedCapacity) -> HostIndex {
        let host = self.open_empty(open, capacity);
        self.add_pod(class, host);
        self.changes.push(Change::Placed { class, host, open_before: None });
        self.keep_empty_domains_away(class);
        host
    }

    /// The same without a pod.
    pub fn open_empty(&mut self, mut open: OpenNode, capacity: LimitedCapacity) -> HostIndex {
        open.limit_capacity = Rc::clone(&capacity);
        let host = self.hosts.end();
        let template = open.template;
        let domains = self.domains_of_open(&open, host);
        let neighbours = self.neighbours_of_open(&open);
        self.table.push(left(&open));
        self.hosts.push(Host {
            pods: BTreeMap::new(),
            pod_count: 0,
            host_ports: Vec::new(),
            attachments: BTreeMap::new(),
            devices: Vec::new(),
            spot_pool: self.spot_pool_of_open(&open),
            neighbours,
            domains,
            closed: false,
            open: Some(Box::new(open)),
        });
        self.set_places(host, true);
        self.count_neighbours(host, 1);
        self.table.set_open(host, 0, true);
        self.plan_capacity(template, capacity, 1);
        host
    }

    /// Fixes what an open node may become, and what it takes of the limits.
    pub fn fix(&mut self, host: HostIndex, set: OfferingSet, capacity: LimitedCapacity) {
        let Some(open) = self.hosts[host].open.as_deref() else { return };
        let (template, before) = (open.template, Rc::clone(&open.limit_capacity));
        let room_most = self.problem.templates[template].rooms.most(set.types());
        let limit_capacity = Rc::clone(&capacity);
        let fixed = OpenNode { set, room_most, limit_capacity, is_cut: true, ..open.clone() };
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
        if let Some(open) = self.hosts[host].open.as_deref() {
            let (template, capacity) = (open.template, Rc::clone(&open.limit_capacity));
            self.plan_capacity(template, capacity, -1);
        }
        pods
    }

    /// Takes (or, with sign -1, gives back) capacity of a pool's limits.
    fn plan_capacity(&mut self, template: TemplateIndex, capacity: LimitedCapacity, sign: i8) {
        // Without limits nothing is counted.
        if !self.problem.templates[template].is_limited() {
            return;
        }
        self.count_capacity(template, &capacity, sign);
        self.changes.push(Change::Planned { template, capacity, sign });
    }

    /// Counts a machine that exists among those of the template's pool from now on, for good: `false`, and nothing is counted,
    /// where a limit of the pool does not allow it. Those of the cluster count it already.
    pub fn take_over(&mut self, template: TemplateIndex, capacity: &Resources) -> bool {
        let mut capacity = capacity.clone();
        capacity.set(NODES, 1);
        let problem = self.problem;
        let (capacity, nothing) = (problem.limited.capacity(&capacity), problem.limited.nothing());
        let quotas = problem.templates[template].quotas.iter().copied();
        let of_pool: Vec<QuotaIndex> = quotas.filter(|it| problem.quotas[*it].scope == LimitScope::NodePool).collect();
        let exceeds = |it: &QuotaIndex| problem.quotas[*it].exceeded(&self.planned[*it], &nothing, &capacity).is_some();
        if of_pool.iter().any(exceeds) {
            return false;
        }
        for quota in of_pool {
            vectors::add(&mut self.planned[quota], &capacity, 1);
        }
        true
    }

    fn count_capacity(&mut self, template: TemplateIndex, capacity: &[i64], sign: i8) {
        for quota in &self.problem.templates[template].quotas {
            vectors::add(&mut self.planned[*quota], capacity, i64::from(sign));
        }
    }

    // --- trying removals ---------------------------------------------------------------------------------------------

    /// Takes one pod of a class off a host.
    pub fn remove_pod(&mut self, class: ClassIndex, host: HostIndex) {
        self.leave(class, host, -1);
        self.changes.push(Change::Removed { class, host });
    }

    /// Of nodes that exist those leave that run there: what this plan places on them is not taken off again.
    fn leave(&mut self, class: ClassIndex, host: HostIndex, sign: i8) {
        match self.hosts[host].open {
            Some(_) => self.count_arriving(host, class, 1, sign),
            None => self.count(host, class, 1, sign),
        }
        self.change_pod(class, host, sign);
    }

    /// The host takes no more pods.
    pub fn close(&mut self, host: HostIndex) {
        if !self.hosts[host].closed {
            // An open node that is given up never runs anything.
            if self.hosts[host].open.is_some() {
                self.count_neighbours(host, -1);
                self.hosts[host].neighbours.clear();
            }
            self.hosts[host].closed = true;
            self.give_back(host, 1);
            self.set_taking_pods(host, false);
            self.changes.push(Change::Closed { host });
        }
    }

    /// A host that exists takes no pods from the beginning, and what it has counts against limits as before.
    pub fn withhold(&mut self, host: HostIndex) {
        self.hosts[host].closed = true;
        self.set_taking_pods(host, false);
    }

    fn set_taking_pods(&mut self, host: HostIndex, takes_pods: bool) {
        let state = &self.hosts[host];
        match state.open {
            Some(_) => self.table.set_open(host, state.pod_count, takes_pods),
            None => self.table.set_accepting(host, takes_pods),
        }
    }

    pub fn is_closed(&self, host: HostIndex) -> bool {
        self.hosts[host].closed
    }

    // --- going back --------------------------------------------------------------------------------------------------

    pub fn mark(&self) -> Mark {
        Mark { changes: self.changes.len(), hosts: self.hosts.end() }
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
                Change::Removed { class, host } => self.leave(class, host, 1),
                Change::Closed { host } => {
                    self.hosts[host].closed = false;
                    self.give_back(host, -1);
                    self.set_taking_pods(host, true);
                    if let Some(open) = self.hosts[host].open.as_deref() {
                        self.hosts[host].neighbours = self.neighbours_of_open(open);
                        self.count_neighbours(host, 1);
                    }
                }
                Change::Settled { host, before } => {
                    if let Some(before) = before {
                        self.settle(host, *before);
                    }
                }
                Change::Planned { template, capacity, sign } => {
                    self.count_capacity(template, &capacity, -sign);
                }
            }
        }
        for host in range(mark.hosts, self.hosts.end()) {
            self.count_neighbours(host, -1);
            self.set_taking_pods(host, false);
            self.set_places(host, false);
        }
        self.hosts.truncate(mark.hosts);
        self.table.truncate(mark.hosts);
    }

    /// Pods placed since the mark, in the order in which they were placed.
    pub fn placed_since(&self, mark: Mark) -> impl Iterator<Item = (ClassIndex, HostIndex)> {
        self.changes[mark.changes..].iter().filter_map(|change| match change {
            Change::Placed { class, host, .. } => Some((*class, *host)),
            _ => None,
        })
    }
}

/// By dimension, more than any type that the node may become has left.
fn left(open: &OpenNode) -> impl Iterator<Item = i64> {
    open.room_most.iter().zip(&open.requested).map(|(room, requested)| room.saturating_sub(*requested))
}
