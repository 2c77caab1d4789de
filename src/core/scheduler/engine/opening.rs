//! Nodes to be created: what they may still become, and how each pod narrows that.

use std::collections::BTreeSet;

use super::Engine;
use crate::core::model::{Requirement, Requirements, Resources};
use crate::core::scheduler::class::{ClassIndex, VariantIndex};
use crate::core::scheduler::host::{HostIndex, OpenNode};
use crate::core::scheduler::offerings::OfferingSet;
use crate::core::scheduler::refusal::Refusal;
use crate::core::scheduler::template::TemplateIndex;
use crate::core::scheduler::topology::{Domain, GroupIndex, GroupKind, NO_DOMAIN, OPEN_DOMAIN};
use crate::core::scheduler::vectors;

impl Engine<'_, '_> {
    /// The domains that an open node has settled on, by topology key.
    pub(super) fn domains_of_open(&self, open: &OpenNode, host: HostIndex) -> Box<[Domain]> {
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
    pub(super) fn possible_domains(&self, open: &OpenNode, key: usize) -> Vec<Domain> {
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
        let narrowed = self.narrow(next, allowed, class, variant, host)?;
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
    ) -> Result<OpenNode, Refusal> {
        let allowed = self.problem.fit_of_template(variant, template).as_ref().map_err(Clone::clone)?;
        let daemon_ports = self.daemon_ports(template);
        let ports = &self.problem.classes[class].host_ports;
        if ports.iter().any(|port| daemon_ports.iter().any(|taken| taken.conflicts_with(port))) {
            return Err(Refusal::HostPort);
        }
        let mut set = allowed.clone();
        if let Some(wanted) = wanted {
            set.intersect(wanted);
        }
        let open = OpenNode {
            template,
            set,
            allowed: allowed.clone(),
            custom: Requirements::new(),
            requested: self.problem.classes[class].request.clone(),
            room_most: vec![0; self.problem.dimensions.count()].into_boxed_slice(),
            variants: BTreeSet::from([variant]),
            limit_capacity: Resources::new(),
            min_values: Vec::new(),
        };
        let mut open = self.narrow(open, allowed, class, variant, self.hosts.len())?;
        if self.lowers_min_values {
            // Of a set that the caller cut down nobody knows whether the pool could do better.
            match wanted {
                None => open.min_values = self.attainable_min_values(&open),
                Some(_) => self.check_min_values(&open)?,
            }
        }
        if self.problem.templates[template].is_limited() {
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
        let nothing = Resources::new();
        for (position, entry) in compiled.offerings.offered(allowed) {
            if let Some((quota, resource)) = self.limit_exceeded(template, &nothing, &entry.capacity) {
                set.types.remove(position);
                let limited = &self.problem.quotas[quota];
                let used = limited.used.get(resource).saturating_add(self.planned[quota].get(resource));
                let needed = entry.capacity.get(resource);
                let is_nearer = !matches!(&nearest, Some(Refusal::Limit { needed: least, .. }) if *least <= needed);
                if is_nearer {
                    nearest = Some(Refusal::Limit {
                        scope: limited.scope.clone(),
                        resource: resource.to_owned(),
                        limit: limited.limits.get(resource),
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
        open.allowed.intersect(allowed);
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
            let template = &self.problem.templates[candidate.template];
            for (key, requirement) in requirements.iter().filter(|(key, _)| template.offerings.defines(key)) {
                template.offerings.restrict(&mut candidate.allowed, key, requirement);
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
        if !self.lowers_min_values {
            self.check_min_values(&open)?;
        }
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
            let room = &template.room[position];
            let fits = vectors::fits(&open.requested, room);
            for dimension in 0..dimensions {
                roomiest[dimension] = room[dimension].max(roomiest[dimension]);
                if fits {
                    most[dimension] = most[dimension].max(room[dimension]);
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
        template.offerings.prune(&mut open.set);
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
            // A node that may still come to be anywhere keeps the next one from being somewhere.
            GroupKind::AntiAffinity if self.settles => allowed.into_iter().take(1).collect(),
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

    /// The types that are left must still offer as many different values as the pool asks for, or as was lowered to.
    fn check_min_values(&self, open: &OpenNode) -> Result<(), Refusal> {
        let template = &self.problem.templates[open.template];
        for (position, (key, least)) in template.min_values.iter().enumerate() {
            let least = open.min_values.get(position).unwrap_or(least);
            if template.offerings.values_of(&open.set, key).len() < *least {
                return Err(Refusal::MinValues { key: key.clone() });
            }
        }
        Ok(())
    }

    /// By key of the template's `minValues`, what is asked for or, if that is less, what there is; empty if all is there.
    fn attainable_min_values(&self, open: &OpenNode) -> Vec<usize> {
        let template = &self.problem.templates[open.template];
        let attainable =
            |(key, least): &(String, usize)| template.offerings.values_of(&open.set, key).len().min(*least);
        let values: Vec<usize> = template.min_values.iter().map(attainable).collect();
        let is_lower = values.iter().zip(&template.min_values).any(|(value, (_, least))| value < least);
        if is_lower { values } else { Vec::new() }
    }
}
