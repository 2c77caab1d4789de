//! Nodes to be created: what they may still become, and how each pod narrows that.

use super::Engine;
use super::refused::Refused;
use crate::model::tenancy;
use crate::model::{HourlyPrice, IndexVec, Requirement, Requirements};
use crate::scheduler::class::{ClassIndex, VariantIndex};
use crate::scheduler::daemons::Daemon;
use crate::scheduler::host::{HostIndex, OpenNode};
use crate::scheduler::offerings::{OfferingSet, Slots};
use crate::scheduler::reach::{Reach, only};
use crate::scheduler::refusal::Refusal;
use crate::scheduler::template::{DaemonPorts, Neighbour, TemplateIndex};
use crate::scheduler::topology::{Domain, GroupIndex, GroupKind, KeyIndex};
use crate::scheduler::vectors;
use cutlist_api::keys;

/// One pod on its way to a node that would be created.
#[derive(Clone, Copy)]
struct Arrival {
    class: ClassIndex,
    variant: VariantIndex,
    host: HostIndex,
    /// Whether a refusal should say how much there would have been.
    explained: bool,
}

impl<'p> Engine<'p, '_> {
    /// The domains that an open node has settled on, by topology key.
    pub(super) fn domains_of_open(&self, open: &OpenNode, host: HostIndex) -> IndexVec<KeyIndex, Domain> {
        let settled = |key| {
            if self.problem.domains.is_hostname(key) {
                return host.domain();
            }
            let reach = &self.problem.templates[open.template].reach[key];
            let settled = if self.settles { reach.settled(&open.set) } else { reach.settled(&named(open)) };
            let own = || self.own_domain(open, key, host);
            settled.or_else(own).unwrap_or_else(|| only(self.domains_of_pool(open, key).into_iter()))
        };
        self.problem.domains.keys().map(settled).collect()
    }

    /// The domains that an open node may come to be in, by value.
    pub(super) fn possible_domains(&self, open: &OpenNode, key: KeyIndex) -> Vec<Domain> {
        let reach = &self.problem.templates[open.template].reach[key];
        let possible = if self.settles { reach.possible(&open.set) } else { reach.possible(&named(open)) };
        possible.unwrap_or_else(|| self.domains_of_pool(open, key))
    }

    /// The same with the one that is its own alone.
    fn possible_domains_of(&self, open: &OpenNode, key: KeyIndex, host: HostIndex) -> Vec<Domain> {
        self.own_domain(open, key, host).map_or_else(|| self.possible_domains(open, key), |own| vec![own])
    }

    /// What a label that is left open may still be.
    fn requirement_on<'o>(&'o self, open: &'o OpenNode, label: &str) -> Option<&'o Requirement> {
        open.custom.get(label).or_else(|| self.problem.templates[open.template].requirements.get(label))
    }

    /// The domain of an open node that gets a value of the key which no other node has: where the pool, and the pods so far, leave so
    /// much open that none can be named. The claim is given such a value when it is written.
    fn own_domain(&self, open: &OpenNode, key: KeyIndex, host: HostIndex) -> Option<Domain> {
        let (template, domains) = (&self.problem.templates[open.template], &self.problem.domains);
        if domains.is_hostname(key) || !matches!(template.reach[key], Reach::Pool) {
            return None;
        }
        let requirement = self.requirement_on(open, domains.name(key))?;
        requirement.listed().is_none().then(|| domains.own(key, host))
    }

    /// The domains that the labels of the pool leave, first the one that a launch prefers.
    fn domains_of_pool(&self, open: &OpenNode, key: KeyIndex) -> Vec<Domain> {
        let template = &self.problem.templates[open.template];
        let name = self.problem.domains.name(key);
        let Some(listed) = self.requirement_on(open, name).and_then(Requirement::listed) else { return Vec::new() };
        let offered = listed.iter().filter(|value| template.offerings.may_have(&open.set, name, value));
        let mut values: Vec<&String> = offered.collect();
        if name == keys::TENANCY {
            values.sort_by_key(|value| tenancy::order(value));
        }
        values.into_iter().filter_map(|value| self.problem.domains.get(key, value)).collect()
    }

    /// What an open node becomes when it takes one more pod of the class, or why it does not.
    pub fn narrowed(&self, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> Result<OpenNode, Refused<'p>> {
        let state = &self.hosts[host];
        let Some(open) = state.open.as_deref() else { return Err(Refused::Offering) };
        let Ok(allowed) = self.problem.fit_of_template(variant, open.template) else {
            return Err(Refused::Pool(variant, open.template));
        };
        if allowed.slots & open.set.slots == 0 {
            return Err(Refused::Offering);
        }
        if self.is_concentrated(class, host) {
            return Err(Refused::Concentration);
        }
        let pods = &self.problem.classes[class];
        if let Some(dimension) = vectors::shortage(&pods.request, self.headroom(host)) {
            let (requested, available) = (pods.request[dimension], self.headroom(host)[dimension]);
            return Err(Refused::Resource { dimension, requested, available });
        }
        if let Some(group) = self.hostname_constraint_that_fails(class, variant, host) {
            return Err(Refused::Constraint(group));
        }
        if self.ports_conflict(class, state) {
            return Err(Refused::HostPort);
        }
        let mut next = open.clone();
        vectors::add(&mut next.requested, &pods.request, 1);
        let narrowed = self.narrow(next, allowed, Arrival { class, variant, host, explained: false })?;
        if self.lowers_min_values {
            self.check_min_values(&narrowed)?;
        }
        Ok(narrowed)
    }

    /// A new node of a template that takes one pod of the class, or why there is none. The node is not yet among the hosts.
    /// `wanted` restricts it further to some types and slots.
    pub fn opened(
        &self,
        class: ClassIndex,
        variant: VariantIndex,
        template: TemplateIndex,
        wanted: Option<&OfferingSet>,
    ) -> Result<OpenNode, Refused<'p>> {
        self.open_for(Arrival { class, variant, host: self.hosts.end(), explained: false }, template, wanted)
    }

    /// Whether some template opens a new node for one pod of the class. O(templates x types) at worst.
    pub fn opens(&self, class: ClassIndex, variant: VariantIndex) -> bool {
        self.problem.templates.indices().any(|template| self.opened(class, variant, template, None).is_ok())
    }

    /// Why a template opens no node for one pod of the class; `None` when it would. O(types), so not for searching.
    pub fn refusal_to_open(
        &self,
        class: ClassIndex,
        variant: VariantIndex,
        template: TemplateIndex,
    ) -> Option<Refusal> {
        let arrival = Arrival { class, variant, host: self.hosts.end(), explained: true };
        self.open_for(arrival, template, None).err().map(|refused| self.refusal(refused))
    }

    fn open_for(
        &self,
        arrival: Arrival,
        template: TemplateIndex,
        wanted: Option<&OfferingSet>,
    ) -> Result<OpenNode, Refused<'p>> {
        let Ok(allowed) = self.problem.purchasable(arrival.variant, template) else {
            return Err(Refused::Pool(arrival.variant, template));
        };
        let compiled = &self.problem.templates[template];
        let class = &self.problem.classes[arrival.class];
        let mut set = allowed.clone();
        if let Some(wanted) = wanted {
            set.intersect(wanted);
        }
        let open = OpenNode {
            template,
            set,
            named: Slots::MAX,
            allowed: allowed.clone(),
            custom: Requirements::new(),
            requested: class.request.clone(),
            room_most: compiled.room_most.clone(),
            limit_capacity: self.problem.limited.nothing(),
            own_values: Vec::new(),
            min_values: Vec::new(),
            is_cut: wanted.is_some(),
        };
        let mut open = self.narrow(open, allowed, arrival)?;
        if self.lowers_min_values {
            open.min_values = self.attainable_min_values(&open);
        }
        if compiled.is_limited() {
            open.set = self.within_limits(template, &open.set)?;
            self.narrow_to_room(&mut open, arrival)?;
        }
        open.room_most = compiled.rooms.most(open.set.types());
        Ok(open)
    }

    /// A new node of a static pool, without pods, or the limit that forbids it. The node is not yet among the hosts.
    pub fn opened_empty(&self, template: TemplateIndex) -> Result<OpenNode, Refusal> {
        let compiled = &self.problem.templates[template];
        let mut set = compiled.set.clone();
        if compiled.is_limited() {
            set = self.within_limits(template, &set).map_err(|refused| self.refusal(refused))?;
        }
        // Where DaemonSets have room on some, the others are no use.
        if !compiled.without_room.is_empty() {
            let mut with_room = set.clone();
            compiled.without_room.keys().for_each(|position| with_room.remove_type(*position));
            set = if compiled.offerings.prune(&mut with_room) { with_room } else { set };
        }
        Ok(OpenNode {
            template,
            named: set.slots,
            allowed: set.clone(),
            room_most: compiled.rooms.most(set.types()),
            set,
            custom: Requirements::new(),
            requested: vec![0; self.problem.dimensions.count()].into(),
            own_values: Vec::new(),
            min_values: Vec::new(),
            is_cut: false,
            limit_capacity: self.problem.limited.nothing(),
        })
    }

    /// The offerings whose capacity the limits of the pool still allow.
    fn within_limits(&self, template: TemplateIndex, allowed: &OfferingSet) -> Result<OfferingSet, Refused<'p>> {
        let compiled = &self.problem.templates[template];
        let mut set = allowed.clone();
        if self.limit_exceeded(template, &self.problem.limited.nothing(), &compiled.limited_capacity_most).is_none() {
            return Ok(set);
        }
        // Resources have different units: what a type takes too much of is compared as a part of the limits.
        let mut nearest: Option<((usize, i128), Refused<'p>)> = None;
        let nothing = self.problem.limited.nothing();
        for (position, _) in compiled.offerings.offered(allowed) {
            let capacity = &compiled.limited_capacity[position];
            if let Some((quota, resource)) = self.limit_exceeded(template, &nothing, capacity) {
                set.remove_type(position);
                let needed = capacity[resource];
                let excess = self.excess(template, capacity);
                if nearest.is_none_or(|(least, _)| excess < least) {
                    nearest = Some((
                        excess,
                        Refused::Limit { quota, resource, planned: self.planned[quota][resource], needed },
                    ));
                }
            }
        }
        if compiled.offerings.offered(&set).next().is_some() {
            Ok(set)
        } else {
            Err(nearest.map_or(Refused::Offering, |(_, refused)| refused))
        }
    }

    /// Of how many limits a node of this capacity takes more than is left, and by what part of them.
    fn excess(&self, template: TemplateIndex, capacity: &[i64]) -> (usize, i128) {
        let quotas = self.problem.templates[template].quotas.iter();
        let excesses = quotas.map(|quota| self.problem.quotas[*quota].excess(&self.planned[*quota], capacity));
        excesses.fold((0, 0), |(count, sum), (more, by)| (count + more, sum + by))
    }

    fn narrow(&self, mut open: OpenNode, allowed: &OfferingSet, arrival: Arrival) -> Result<OpenNode, Refused<'p>> {
        open.set.intersect(allowed);
        open.named &= self.problem.named_slots(arrival.variant, open.template);
        open.allowed.intersect(allowed);
        self.narrow_away_from_daemon_ports(&mut open, arrival.class)?;
        if self.problem.names_pool_labels(arrival.variant) {
            self.narrow_custom(&mut open, &self.problem.variants[arrival.variant].requirements)?;
        }
        let alternatives = &self.problem.classes[arrival.class].volume_alternatives;
        if alternatives.is_empty() {
            return self.narrow_topology(open, arrival);
        }
        let mut refused = Refused::Volume;
        for requirements in alternatives {
            let mut candidate = open.clone();
            let template = &self.problem.templates[candidate.template];
            if self.narrow_to(&mut candidate, requirements).is_err() || !template.offerings.prune(&mut candidate.set) {
                continue;
            }
            for (key, requirement) in requirements.iter().filter(|(key, _)| template.offerings.defines(key)) {
                template.offerings.restrict(&mut candidate.allowed, key, requirement);
            }
            match self.narrow_topology(candidate, arrival) {
                Ok(narrowed) => return Ok(narrowed),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// Leaves out the nodes on which DaemonSets take ports that the pod asks for.
    fn narrow_away_from_daemon_ports(&self, open: &mut OpenNode, class: ClassIndex) -> Result<(), Refused<'p>> {
        let ports = &self.problem.classes[class].host_ports;
        if ports.is_empty() {
            return Ok(());
        }
        let template = &self.problem.templates[open.template];
        let conflicts =
            |taken: &&DaemonPorts| taken.ports.iter().any(|taken| ports.iter().any(|port| taken.conflicts_with(port)));
        for taken in template.daemon_ports.iter().filter(conflicts).flat_map(|taken| &taken.on) {
            open.set.remove(taken);
            open.allowed.remove(taken);
            if !template.offerings.prune(&mut open.set) {
                return Err(Refused::HostPort);
            }
        }
        Ok(())
    }

    /// Labels of the pool that have several values take those the pod asks for.
    fn narrow_custom<'r>(&self, open: &mut OpenNode, requirements: &'r Requirements) -> Result<(), Refused<'r>> {
        let template = &self.problem.templates[open.template];
        for (key, requirement) in requirements.iter().filter(|(key, _)| template.chooses(key)) {
            let Some(mine) = open.custom.get(key).or_else(|| template.requirements.get(key)) else { continue };
            let both = mine.intersection(requirement);
            let is_own = || self.problem.domains.find(key).is_some_and(|key| open.own_values.contains(&key));
            if !both.can_be_met() || (both.listed().is_some() && is_own()) {
                return Err(Refused::Requirement(key));
            }
            if both != *mine {
                open.custom.add(key, both);
            }
        }
        Ok(())
    }

    fn narrow_to<'r>(&self, open: &mut OpenNode, requirements: &'r Requirements) -> Result<(), Refused<'r>> {
        let template = &self.problem.templates[open.template];
        if let Some(key) = template.requirements.refusal(requirements) {
            return Err(Refused::Requirement(key));
        }
        let mut named = named(open);
        for (key, requirement) in requirements.iter().filter(|(key, _)| template.offerings.defines(key)) {
            template.offerings.restrict(&mut open.set, key, requirement);
            template.offerings.restrict(&mut named, key, requirement);
        }
        open.named = named.slots;
        self.narrow_custom(open, requirements)
    }

    fn narrow_topology(&self, mut open: OpenNode, arrival: Arrival) -> Result<OpenNode, Refused<'p>> {
        // Only types with room may lend their domains.
        self.narrow_to_room(&mut open, arrival)?;
        let with_room = open.set.clone();
        let constraints = &self.problem.variants[arrival.variant].constraints;
        // The reference lets each constraint choose for itself, and then asks whether they chose the same.
        let chosen_apart = !self.settles && constraints.len() > 1;
        let before = if chosen_apart { self.possible_of_each(&open, constraints, arrival.host) } else { Vec::new() };
        for (position, group) in constraints.iter().enumerate() {
            match before.get(position) {
                Some(possible) => self.narrow_to_constraint(&mut open, *group, arrival, possible)?,
                None => {
                    let possible = self.possible_for(&open, *group, arrival.host);
                    self.narrow_to_constraint(&mut open, *group, arrival, &possible)?;
                }
            }
        }
        for group in self.forbidden_by_others(arrival.class) {
            self.narrow_away_from_owners(&mut open, group, arrival.host)?;
        }
        for group in self.spreads_of_others(arrival.class) {
            self.narrow_to_spread_of_others(&mut open, *group)?;
        }
        self.narrow_to_domains_that_may_appear(&mut open)?;
        self.settle_meetings(&mut open, arrival.class);
        if open.set != with_room {
            self.narrow_to_room(&mut open, arrival)?;
        }
        if !self.lowers_min_values {
            self.check_min_values(&open)?;
        }
        Ok(open)
    }

    fn possible_of_each(&self, open: &OpenNode, groups: &[GroupIndex], host: HostIndex) -> Vec<Vec<Domain>> {
        groups.iter().map(|group| self.possible_for(open, *group, host)).collect()
    }

    /// The domains that a constraint is about; of host names the node has its own and no other.
    fn possible_for(&self, open: &OpenNode, group: GroupIndex, host: HostIndex) -> Vec<Domain> {
        let key = self.problem.groups[group].key;
        if self.problem.domains.is_hostname(key) { Vec::new() } else { self.possible_domains_of(open, key, host) }
    }

    /// Keeps the types that have room for everything requested and are offered in a slot that is left.
    fn narrow_to_room(&self, open: &mut OpenNode, arrival: Arrival) -> Result<(), Refused<'p>> {
        let template = &self.problem.templates[open.template];
        if !template.rooms.all_fit(&open.requested, open.set.types()) {
            let fitting = template.rooms.fitting(&open.requested, open.set.types());
            if fitting.is_clear() {
                return Err(self.shortage(open, arrival));
            }
            open.set.keep_types(&fitting);
        }
        if template.offerings.prune(&mut open.set) { Ok(()) } else { Err(Refused::Offering) }
    }

    /// What is short on the roomiest type that is offered. Each resource may fit some type, with no type that has room for all
    /// of them together; then it is the cores that are named.
    fn shortage(&self, open: &OpenNode, arrival: Arrival) -> Refused<'p> {
        let request = &self.problem.classes[arrival.class].request;
        if !arrival.explained {
            return Refused::Resource { dimension: vectors::CPU_DIMENSION, requested: 0, available: 0 };
        }
        let template = &self.problem.templates[open.template];
        let mut offered = open.set.clone();
        if !template.offerings.prune(&mut offered) {
            return Refused::Offering;
        }
        let roomiest = template.rooms.most(offered.types());
        let dimension = vectors::shortage(&open.requested, &roomiest).unwrap_or(vectors::CPU_DIMENSION);
        Refused::Resource { dimension, requested: request[dimension], available: roomiest[dimension] }
    }

    fn narrow_to_constraint(
        &self,
        open: &mut OpenNode,
        group: GroupIndex,
        arrival: Arrival,
        possible: &[Domain],
    ) -> Result<(), Refused<'p>> {
        let key = self.problem.groups[group].key;
        let is_hostname = self.problem.domains.is_hostname(key);
        if (is_hostname || !possible.is_empty()) && self.neighbours_decide(open, group, arrival, possible)? {
            return Ok(());
        }
        let coming = self.coming_with(open, group, arrival.host);
        if is_hostname {
            let domain = arrival.host.domain();
            let is_allowed = self.allows_beside(group, arrival.class, domain, coming);
            return if is_allowed { Ok(()) } else { Err(Refused::Constraint(group)) };
        }
        let allowed = self.allowed_domains(group, arrival.class, possible, coming);
        let counters = &self.counters[group];
        // The reference draws lots among equals; those that nothing is sold in would lose.
        let is_unsold = |domain: Domain| {
            let reach = &self.problem.templates[open.template].reach[key];
            !self.settles && reach.slots_in(&[domain]).is_some_and(|slots| slots & open.set.slots == 0)
        };
        let chosen: Vec<Domain> = match &self.problem.groups[group].kind {
            // The emptiest domain; of equals the cheapest, then the first by name.
            GroupKind::Spread(_) if self.settles => {
                let least = allowed.iter().map(|domain| counters.matching(*domain)).min();
                let mut emptiest = allowed.into_iter().filter(|domain| Some(counters.matching(*domain)) == least);
                self.cheapest_domain(open, key, &mut emptiest).into_iter().collect()
            }
            GroupKind::Spread(_) => {
                let key = |domain: &Domain| (counters.matching(*domain), is_unsold(*domain));
                allowed.into_iter().min_by_key(key).into_iter().collect()
            }
            GroupKind::Affinity if counters.any_matching() => allowed,
            // The first of its own: see `settle_meetings`.
            GroupKind::Affinity if self.settles && self.problem.meetings.has(group) => self.common_of(group, allowed),
            GroupKind::Affinity => allowed.into_iter().min_by_key(|domain| is_unsold(*domain)).into_iter().collect(),
            GroupKind::AntiAffinity if possible.is_empty() => return Ok(()),
            // A node that may still come to be anywhere keeps the next one from being somewhere.
            GroupKind::AntiAffinity if self.settles => allowed.into_iter().take(1).collect(),
            GroupKind::AntiAffinity => allowed,
        };
        if chosen.is_empty() {
            return Err(Refused::Constraint(group));
        }
        if chosen.len() < possible.len() {
            self.narrow_to_domains(open, group, &chosen)?;
        }
        self.keep_own_value(open, key, &chosen);
        Ok(())
    }

    /// A pod that is there because no other node has the value must not find itself where another pod wants to be.
    fn keep_own_value(&self, open: &mut OpenNode, key: KeyIndex, chosen: &[Domain]) {
        let is_own = chosen.iter().any(|domain| self.problem.domains.is_own(key, *domain));
        if is_own && !open.own_values.contains(&key) {
            open.own_values.push(key);
        }
    }

    /// Of some domains that an open node may come to be in, the one where it costs least; of equals the first.
    pub(super) fn cheapest_domain(
        &self,
        open: &OpenNode,
        key: KeyIndex,
        domains: &mut dyn Iterator<Item = Domain>,
    ) -> Option<Domain> {
        let (first, second) = (domains.next()?, domains.next());
        let Some(second) = second else { return Some(first) };
        let template = &self.problem.templates[open.template];
        let price = |domain: &Domain| {
            let mut there = open.set.clone();
            let is_priced = template.reach[key].restrict(&mut there, &[*domain]);
            let price = template.offerings.cheapest(&there).map(|(_, _, price)| price);
            is_priced.then_some(price.map_or((true, HourlyPrice::ZERO), |price| (false, price)))
        };
        [first, second].into_iter().chain(domains).min_by_key(price)
    }

    /// The DaemonSets on nodes of a template that others look at in this way.
    fn neighbours_with(
        &self,
        template: TemplateIndex,
        wanted: impl Fn(&Daemon) -> bool,
    ) -> impl Iterator<Item = &'p Neighbour> {
        let problem = self.problem;
        let neighbours = problem.templates[template].neighbours.iter().filter(|_| self.settles);
        neighbours.filter(move |neighbour| wanted(&problem.daemons[neighbour.daemon]))
    }

    /// How many pods of DaemonSets a group will count on a node that is not among the hosts yet.
    fn coming_with(&self, open: &OpenNode, group: GroupIndex, host: HostIndex) -> u32 {
        if host < self.hosts.end() || !self.problem.counts_template(group, open.template) {
            return 0;
        }
        let counted = self.neighbours_with(open.template, |daemon| daemon.counted_in.binary_search(&group).is_ok());
        u32::try_from(counted.filter(|neighbour| neighbour.runs_on_all(&open.set)).count()).unwrap_or(u32::MAX)
    }

    /// Whether the pods of DaemonSets settle what an affinity asks for: they bring what it wants to be near, wherever the node comes
    /// to be. What an anti-affinity keeps away from is no node for it.
    fn neighbours_decide(
        &self,
        open: &mut OpenNode,
        group: GroupIndex,
        arrival: Arrival,
        possible: &[Domain],
    ) -> Result<bool, Refused<'p>> {
        let counted = |daemon: &Daemon| daemon.counted_in.binary_search(&group).is_ok();
        match &self.problem.groups[group].kind {
            GroupKind::Spread(_) => Ok(false),
            GroupKind::AntiAffinity => self.leave_neighbours(open, group, counted).map(|()| false),
            GroupKind::Affinity => {
                if self.neighbours_with(open.template, counted).any(|neighbour| neighbour.runs_on_all(&open.set)) {
                    return Ok(true);
                }
                // With others there already, or as the first of its own, a pod needs no DaemonSet.
                let is_met = if self.problem.domains.is_hostname(self.problem.groups[group].key) {
                    self.allows(group, arrival.class, arrival.host.domain())
                } else {
                    !self.allowed_domains(group, arrival.class, possible, 0).is_empty()
                };
                let mut some =
                    self.neighbours_with(open.template, counted).filter(|it| !is_met && it.runs_on_some(&open.set));
                let near = some.find_map(|it| it.on.iter().find_map(|on| self.narrowed_to(open, on)));
                let is_near = near.is_some();
                near.into_iter().for_each(|set| open.set = set);
                Ok(is_near)
            }
        }
    }

    /// The types and slots of an open node that are among these; `None` where nothing is left.
    fn narrowed_to(&self, open: &OpenNode, wanted: &OfferingSet) -> Option<OfferingSet> {
        let mut set = open.set.clone();
        set.intersect(wanted);
        self.problem.templates[open.template].offerings.prune(&mut set).then_some(set)
    }

    /// Whether the pods of a host look at a DaemonSet, or it keeps away from them.
    fn matters_on(&self, daemon: &Daemon, host: HostIndex) -> bool {
        let problem = self.problem;
        let counts = |groups: &[GroupIndex]| groups.iter().any(|group| daemon.counted_in.binary_search(group).is_ok());
        self.hosts[host].pods.keys().map(|class| &problem.classes[*class]).any(|class| {
            let first = class.variants.first();
            first.is_some_and(|variant| counts(&problem.variants[*variant].constraints))
                || counts(&class.anti_affinity)
                || daemon.anti_affinity.iter().any(|group| class.counted_in.binary_search(group).is_ok())
        })
    }

    /// Of a set that holds what an open node may become, what gets the same DaemonSets of those that matter to its pods: they came for
    /// their sake, or because they were not there.
    pub fn with_same_neighbours(&self, host: HostIndex, open: &OpenNode, mut set: OfferingSet) -> OfferingSet {
        for neighbour in self.neighbours_with(open.template, |daemon| self.matters_on(daemon, host)) {
            if neighbour.runs_on_all(&open.set) && !neighbour.runs_on_all(&set) {
                return open.set.clone();
            }
            if neighbour.runs_on_some(&open.set) {
                continue;
            }
            for on in &neighbour.on {
                if open.set.types().is_disjoint(on.types()) {
                    let mut others = set.types().clone();
                    others.difference_with(on.types());
                    set.keep_types(&others);
                } else {
                    set.slots &= !on.slots;
                }
            }
        }
        set
    }

    /// Leaves out the types, or the slots, on which a DaemonSet runs.
    fn leave_neighbours(
        &self,
        open: &mut OpenNode,
        group: GroupIndex,
        unwanted: impl Fn(&Daemon) -> bool,
    ) -> Result<(), Refused<'p>> {
        let offerings = &self.problem.templates[open.template].offerings;
        for on in self.neighbours_with(open.template, unwanted).flat_map(|neighbour| &neighbour.on) {
            if open.set.types().is_disjoint(on.types()) || open.set.slots & on.slots == 0 {
                continue;
            }
            let mut set = open.set.clone();
            if set.types().is_subset(on.types()) {
                set.slots &= !on.slots;
            } else {
                let mut others = set.types().clone();
                others.difference_with(on.types());
                set.keep_types(&others);
            }
            if !offerings.prune(&mut set) {
                return Err(Refused::Constraint(group));
            }
            open.set = set;
        }
        Ok(())
    }

    fn narrow_away_from_owners(
        &self,
        open: &mut OpenNode,
        group: GroupIndex,
        host: HostIndex,
    ) -> Result<(), Refused<'p>> {
        let key = self.problem.groups[group].key;
        if self.problem.domains.is_hostname(key) || !self.possible_domains_of(open, key, host).is_empty() {
            self.leave_neighbours(open, group, |daemon| daemon.anti_affinity.binary_search(&group).is_ok())?;
        }
        let counters = &self.counters[group];
        if self.problem.domains.is_hostname(key) {
            let domain = host.domain();
            return if counters.owners(domain) == 0 { Ok(()) } else { Err(Refused::Constraint(group)) };
        }
        if !counters.any_owners() {
            return Ok(());
        }
        let possible = self.possible_domains_of(open, key, host);
        let free: Vec<Domain> = possible.iter().copied().filter(|domain| counters.owners(*domain) == 0).collect();
        if free.is_empty() && !possible.is_empty() {
            return Err(Refused::Constraint(group));
        }
        if free.len() < possible.len() {
            self.narrow_to_domains(open, group, &free)?;
        }
        self.keep_own_value(open, key, &free);
        Ok(())
    }

    pub(super) fn narrow_to_domains(
        &self,
        open: &mut OpenNode,
        group: GroupIndex,
        domains: &[Domain],
    ) -> Result<(), Refused<'p>> {
        let key = self.problem.groups[group].key;
        let reach = &self.problem.templates[open.template].reach[key];
        if reach.restrict(&mut open.set, domains) {
            open.named &= reach.slots_in(domains).unwrap_or(Slots::MAX);
            return if open.set.slots == 0 { Err(Refused::Constraint(group)) } else { Ok(()) };
        }
        let named = self.problem.domains.values(key).filter(|(_, domain)| domains.contains(domain));
        let requirement = Requirement::is_in(named.map(|(value, _)| value));
        let mut requirements = Requirements::new();
        requirements.add(self.problem.domains.name(key), requirement);
        self.narrow_to(open, &requirements).map_err(|_| Refused::Constraint(group))
    }
}

/// The node with the slots that are named, for asking what domains it could be in as far as its requirements say.
fn named(open: &OpenNode) -> OfferingSet {
    open.set.in_slots(open.named)
}
