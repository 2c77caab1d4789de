//! Which domain each of many pods goes to, before it is known on which node.

use std::collections::BTreeMap;

use super::Engine;
use crate::model::HourlyPrice;
use crate::scheduler::Problem;
use crate::scheduler::class::{ClassIndex, VariantIndex};
use crate::scheduler::topology::{Counters, Domain, GroupIndex, GroupKind, KeyIndex};

/// Domains where a pod can be, with what it costs there, cheapest first.
type Preferred = [(HourlyPrice, Domain)];

/// Of pods that are alike, how many go to each domain.
type Shares = BTreeMap<Domain, u32>;

/// Which groups are over a key.
fn is_over(problem: &Problem<'_>, key: KeyIndex) -> impl Fn(&GroupIndex) -> bool {
    move |group| problem.groups[*group].key == key
}

impl Engine<'_, '_> {
    /// Whether topology over this key has a say in where pods of the class go.
    pub fn is_divided(&self, key: KeyIndex, class: ClassIndex, variant: VariantIndex) -> bool {
        let over_key = is_over(self.problem, key);
        self.problem.variants[variant].constraints.iter().any(&over_key)
            || self.spreads_of_others(class).iter().any(&over_key)
            || self.forbidden_by_others(class).any(|group| over_key(&group))
    }

    /// Sends pods to domains of a key, one after the other: each to the first of `preferred(position)` that topology leaves it, when
    /// those before it are where they were sent; pods that are alike so that together they cost least. `None` for a pod that may go
    /// nowhere. The engine is as before afterwards. O(pods x groups of each x domains).
    pub fn divided<'d>(
        &mut self,
        key: KeyIndex,
        pods: &[(ClassIndex, VariantIndex)],
        preferred: impl Fn(usize) -> &'d Preferred,
    ) -> Vec<Option<Domain>> {
        let over_key = is_over(self.problem, key);
        let groups: Vec<GroupIndex> = self.problem.groups.indices().filter(over_key).collect();
        let before: Vec<Counters> = groups.iter().map(|group| self.counters[*group].clone()).collect();
        let mut destinations = Vec::with_capacity(pods.len());
        while let Some((class, variant)) = pods.get(destinations.len()) {
            let first = destinations.len();
            let domains = preferred(first);
            let is_alike = |position: &usize| pods[*position].0 == *class && preferred(*position) == domains;
            let alike = (first..pods.len()).take_while(is_alike).count();
            let mut shares = self.cheapest_shares(key, (*class, *variant), alike, domains);
            for _ in 0..alike {
                let shared = shares.as_mut().and_then(|shares| self.next_of(key, (*class, *variant), shares));
                let destination = shared.or_else(|| self.destination(key, *class, *variant, domains));
                if let Some(domain) = destination {
                    self.count_in_domain(key, *class, domain);
                }
                destinations.push(destination);
            }
        }
        for (group, counters) in groups.into_iter().zip(before) {
            self.counters[group] = counters;
        }
        destinations
    }

    fn destination(
        &self,
        key: KeyIndex,
        class: ClassIndex,
        variant: VariantIndex,
        preferred: &Preferred,
    ) -> Option<Domain> {
        let over_key = is_over(self.problem, key);
        let constraints: Vec<GroupIndex> =
            self.problem.variants[variant].constraints.iter().copied().filter(&over_key).collect();
        let mut allowed: Vec<Domain> = preferred.iter().map(|(_, domain)| *domain).collect();
        for group in &constraints {
            allowed = self.allowed_domains(*group, class, &allowed, 0);
        }
        let forbidding: Vec<GroupIndex> = self.forbidden_by_others(class).filter(&over_key).collect();
        let of_others: Vec<GroupIndex> = self.spreads_of_others(class).iter().copied().filter(over_key).collect();
        allowed.retain(|domain| {
            forbidding.iter().all(|group| self.counters[*group].owners(*domain) == 0)
                && of_others.iter().all(|group| self.has_room_for_others(*group, *domain))
        });
        let at_once = |domain: &Domain| {
            constraints.iter().all(|group| {
                let added = u32::from(self.problem.classes[class].counted_in.binary_search(group).is_ok());
                self.is_allowed_at_once(*group, *domain, added)
            }) && of_others
                .iter()
                .all(|group| self.counters[*group].owners(*domain) == 0 || self.is_allowed_at_once(*group, *domain, 1))
        };
        allowed.iter().copied().find(at_once).or_else(|| allowed.first().copied())
    }

    /// Of the domains that pods which are alike are yet to go to, the emptiest that is allowed, which is taken off.
    fn next_of(
        &self,
        key: KeyIndex,
        (class, variant): (ClassIndex, VariantIndex),
        shares: &mut Shares,
    ) -> Option<Domain> {
        let group = self.only_spread(key, class, variant)?;
        let wanted: Vec<Domain> = shares.iter().filter(|(_, left)| **left > 0).map(|(domain, _)| *domain).collect();
        let allowed = self.allowed_domains(group, class, &wanted, 0).into_iter();
        let domain = allowed.min_by_key(|domain| self.counters[group].matching(*domain))?;
        shares.entry(domain).and_modify(|left| *left -= 1);
        Some(domain)
    }

    /// The spread over a key that pods of a class count in themselves, if nothing else over the key concerns them.
    fn only_spread(&self, key: KeyIndex, class: ClassIndex, variant: VariantIndex) -> Option<GroupIndex> {
        let over_key = is_over(self.problem, key);
        let mut constraints = self.problem.variants[variant].constraints.iter().filter(|group| over_key(group));
        let group = *constraints.next()?;
        let counts_itself = self.problem.classes[class].counted_in.binary_search(&group).is_ok();
        let is_alone = constraints.next().is_none()
            && counts_itself
            && !self.problem.spreading.mixed().contains(&group)
            && !self.forbidden_by_others(class).any(|group| over_key(&group))
            && !self.spreads_of_others(class).iter().any(&over_key);
        is_alone.then_some(group)
    }

    /// How many pods that are alike go to each domain, where another division than filling the cheapest first costs less: with one more
    /// in the emptiest, all others may have one more, and the cheapest of all as many as the skew allows. O(pods x domains).
    fn cheapest_shares(
        &self,
        key: KeyIndex,
        (class, variant): (ClassIndex, VariantIndex),
        pods: usize,
        preferred: &Preferred,
    ) -> Option<Shares> {
        let is_priced = preferred.first().zip(preferred.last()).is_some_and(|(first, last)| first.0 < last.0);
        let group = self.only_spread(key, class, variant).filter(|_| pods > 1 && is_priced)?;
        let GroupKind::Spread(spread) = &self.problem.groups[group].kind else { return None };
        let counters = &self.counters[group];
        let counted = self.counted_domains(group, class);
        if counted.len() < usize::try_from(spread.min_domains).unwrap_or(usize::MAX) || spread.max_skew < 2 {
            return None;
        }
        let elsewhere = counted.iter().filter(|domain| preferred.iter().all(|(_, known)| known != *domain));
        let most_of_emptiest = elsewhere.map(|domain| counters.matching(*domain)).min().unwrap_or(u32::MAX);
        let preferred: Vec<(HourlyPrice, Domain)> =
            preferred.iter().filter(|(_, domain)| counted.contains(domain)).copied().collect();
        let pods = u32::try_from(pods).ok()?;
        let divisions = (0..=most_of_emptiest).map_while(|emptiest| {
            let missing = |domain: Domain| emptiest.saturating_sub(counters.matching(domain));
            let needed: u32 = preferred.iter().map(|(_, domain)| missing(*domain)).sum();
            let mut left = pods.checked_sub(needed)?;
            let mut shares = Shares::new();
            for (_, domain) in &preferred {
                let most = emptiest.saturating_add(spread.max_skew).saturating_sub(counters.matching(*domain));
                let more = left.min(most.saturating_sub(missing(*domain)));
                shares.insert(*domain, missing(*domain) + more);
                left -= more;
            }
            Some((left == 0).then_some(shares))
        });
        let cost = |shares: &Shares| -> HourlyPrice {
            let priced = preferred.iter().map(|(price, domain)| price.times(shares[domain] as usize));
            priced.sum()
        };
        divisions.flatten().min_by_key(cost)
    }

    fn count_in_domain(&mut self, key: KeyIndex, class: ClassIndex, domain: Domain) {
        let problem = self.problem;
        let over_key = is_over(problem, key);
        let pods = &problem.classes[class];
        for group in pods.counted_in.iter().filter(|group| over_key(group)) {
            self.counters[*group].count_matching(domain, 1, 1);
        }
        for group in pods.anti_affinity.iter().chain(&pods.spreads).filter(|group| over_key(group)) {
            self.counters[*group].count_owners(domain, 1, 1);
        }
    }
}
