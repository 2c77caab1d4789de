//! Which domain each of many pods goes to, before it is known on which node.

use super::Engine;
use crate::core::scheduler::Problem;
use crate::core::scheduler::class::{ClassIndex, VariantIndex};
use crate::core::scheduler::topology::{Counters, Domain, GroupIndex, KeyIndex};

/// Which groups are over a key.
fn is_over(problem: &Problem<'_>, key: KeyIndex) -> impl Fn(&GroupIndex) -> bool {
    move |group| problem.groups[*group].key == key
}

impl Engine<'_, '_> {
    /// Whether topology over this key has a say in where pods of the class go.
    pub fn is_divided(&self, key: KeyIndex, class: ClassIndex, variant: VariantIndex) -> bool {
        let over_key = is_over(self.problem, key);
        self.problem.variants[variant].constraints.iter().any(&over_key)
            || self.forbidden_by_others(class).any(|group| over_key(&group))
    }

    /// Sends pods to domains of a key, one after the other: each to the first of `preferred(class)` that topology leaves it, when
    /// those before it are where they were sent. `None` for a pod that may go nowhere. The engine is as before afterwards.
    /// O(pods x groups of each x domains).
    pub fn divided<'d>(
        &mut self,
        key: KeyIndex,
        pods: &[(ClassIndex, VariantIndex)],
        preferred: impl Fn(ClassIndex) -> &'d [Domain],
    ) -> Vec<Option<Domain>> {
        let over_key = is_over(self.problem, key);
        let groups: Vec<GroupIndex> = (0..self.problem.groups.len()).filter(over_key).collect();
        let before: Vec<Counters> = groups.iter().map(|group| self.counters[*group].clone()).collect();
        let mut destinations = Vec::with_capacity(pods.len());
        for (class, variant) in pods {
            let destination = self.destination(key, *class, *variant, preferred(*class));
            if let Some(domain) = destination {
                self.count_in_domain(key, *class, domain);
            }
            destinations.push(destination);
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
        preferred: &[Domain],
    ) -> Option<Domain> {
        let over_key = is_over(self.problem, key);
        let mut allowed = preferred.to_vec();
        for group in self.problem.variants[variant].constraints.iter().filter(|group| over_key(group)) {
            allowed = self.allowed_domains(*group, class, &allowed, 0);
        }
        let forbidding: Vec<GroupIndex> = self.forbidden_by_others(class).filter(over_key).collect();
        allowed.into_iter().find(|domain| forbidding.iter().all(|group| self.counters[*group].owners(*domain) == 0))
    }

    fn count_in_domain(&mut self, key: KeyIndex, class: ClassIndex, domain: Domain) {
        let problem = self.problem;
        let over_key = is_over(problem, key);
        for group in problem.classes[class].counted_in.iter().filter(|group| over_key(group)) {
            self.counters[*group].count_matching(domain, 1, 1);
        }
        for group in problem.classes[class].anti_affinity.iter().filter(|group| over_key(group)) {
            self.counters[*group].count_owners(domain, 1, 1);
        }
    }
}
