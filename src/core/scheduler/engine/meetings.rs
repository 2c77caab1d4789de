//! Where the first pod of an affinity goes, so that the others get there too.

use super::Engine;
use crate::scheduler::class::ClassIndex;
use crate::scheduler::host::OpenNode;
use crate::scheduler::topology::{Domain, GroupIndex};

impl Engine<'_, '_> {
    /// Whether a group counts any pod anywhere.
    pub fn any_matching(&self, group: GroupIndex) -> bool {
        self.counters[group].any_matching()
    }

    /// Of some domains those that all pods with the affinity get to; all where there is none.
    pub(super) fn common_of(&self, group: GroupIndex, domains: Vec<Domain>) -> Vec<Domain> {
        let is_common = |domain: &Domain| self.problem.meetings.is_common(group, *domain);
        let common: Vec<Domain> = domains.iter().copied().filter(is_common).collect();
        if common.is_empty() { domains } else { common }
    }

    /// Others want to be near this pod, and none of its kind is anywhere yet: its node settles on a domain where all of them get to, so
    /// that they find it. Of several the cheapest.
    pub(super) fn settle_meetings(&self, open: &mut OpenNode, class: ClassIndex) {
        for group in self.problem.meetings.of_class(class).iter().filter(|_| self.settles) {
            if self.counters[*group].any_matching() {
                continue;
            }
            let key = self.problem.groups[*group].key;
            let possible = self.possible_domains(open, key);
            if possible.len() < 2 {
                continue;
            }
            let mut common = self.common_of(*group, possible).into_iter();
            let Some(domain) = self.cheapest_domain(open, key, &mut common) else { continue };
            let mut settled = open.clone();
            let offerings = &self.problem.templates[open.template].offerings;
            if self.narrow_to_domains(&mut settled, *group, &[domain]).is_ok() && offerings.prune(&mut settled.set) {
                *open = settled;
            }
        }
    }
}
