//! Which nodes and templates each group counts, and the domains that they span.

use std::collections::BTreeSet;

use crate::model::{IndexVec, Requirements};
use crate::scheduler::domains::template_values;
use crate::scheduler::host::{ExistingNode, HostIndex};
use crate::scheduler::offerings::OfferingSet;
use crate::scheduler::taints::repelling;
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::topology::{Domain, Group, GroupKind, KeyIndex, Spread};

use super::Problem;
use super::fits::offering_set;

/// By domain, whether a spread is over it.
#[derive(Default)]
struct Eligible {
    all: Vec<bool>,
    /// Those of nodes that exist.
    there: Vec<bool>,
    /// Those of static pools and of nothing else.
    static_alone: Vec<bool>,
}

impl Problem<'_> {
    pub(super) fn compile_groups(&mut self) {
        let group_count = self.nodes.iter().map(|node| node.group + 1).max().unwrap_or(0);
        // The domains of each key in which each group of nodes has some.
        let mut domains: IndexVec<KeyIndex, BTreeSet<(usize, Domain)>> =
            IndexVec::repeat(BTreeSet::new(), self.domains.key_count());
        for (key, domains) in domains.enumerated_mut().filter(|(key, _)| !self.domains.is_hostname(*key)) {
            let domain_of = |(host, node): (HostIndex, &ExistingNode)| {
                (node.group, self.domains.of_labels(key, &node.labels, host))
            };
            domains.extend(self.nodes.enumerated().map(domain_of));
        }
        let mut representative: Vec<HostIndex> = vec![HostIndex::default(); group_count];
        for (position, node) in self.nodes.enumerated() {
            representative[node.group] = position;
        }
        for group in &self.groups {
            let (counts_template, counts_node_group, eligible) = match &group.kind {
                GroupKind::Spread(spread) => self.spread_scope(group, spread, &representative, &domains[group.key]),
                GroupKind::Affinity | GroupKind::AntiAffinity => {
                    (IndexVec::repeat(true, self.templates.len()), vec![true; group_count], Eligible::default())
                }
            };
            self.counts_template.push(counts_template);
            self.counts_node_group.push(counts_node_group);
            self.eligible.push(eligible.all);
            self.there.push(eligible.there);
            self.static_alone.push(eligible.static_alone);
        }
    }

    /// Which templates and nodes a spread counts, and the domains that they span.
    /// `representative` is a node of each group of nodes, which agree on all that a filter looks at.
    fn spread_scope(
        &self,
        group: &Group,
        spread: &Spread,
        representative: &[HostIndex],
        domains: &BTreeSet<(usize, Domain)>,
    ) -> (IndexVec<TemplateIndex, bool>, Vec<bool>, Eligible) {
        let mut eligible = vec![false; self.domains.count(group.key)];
        let counts =
            |position: &HostIndex| spread.counts_node(&self.nodes[*position].labels, &self.nodes[*position].taints);
        let counts_node_group: Vec<bool> = representative.iter().map(counts).collect();
        for (_, domain) in domains.iter().filter(|(node_group, _)| counts_node_group[*node_group]) {
            if let Some(flag) = eligible.get_mut(domain.position()) {
                *flag = true;
            }
        }
        let there = eligible.clone();
        let mut of_static = vec![false; eligible.len()];
        let no_filter = [Requirements::new()];
        let filters = if spread.node_filter.is_empty() { &no_filter[..] } else { &spread.node_filter };
        let mut counts_template = IndexVec::new();
        for template in &self.templates {
            let tolerated = spread
                .tolerations
                .as_ref()
                .is_none_or(|tolerations| repelling(&template.taints, tolerations, false).is_none());
            let sets: Vec<OfferingSet> =
                filters.iter().filter(|_| tolerated).filter_map(|filter| offering_set(filter, template).ok()).collect();
            counts_template.push(!sets.is_empty());
            let reached = if template.is_static() { &mut of_static } else { &mut eligible };
            for (set, filter) in sets.iter().zip(filters) {
                for value in template_values(template, set, filter, self.domains.name(group.key)) {
                    let domain = self.domains.get(group.key, &value);
                    if let Some(flag) = domain.and_then(|domain| reached.get_mut(domain.position())) {
                        *flag = true;
                    }
                }
            }
        }
        let static_alone: Vec<bool> =
            of_static.iter().zip(&eligible).map(|(of_static, all)| *of_static && !all).collect();
        let all = eligible.iter().zip(&of_static).map(|(all, of_static)| *all || *of_static).collect();
        (counts_template, counts_node_group, Eligible { all, there, static_alone })
    }
}
