//! Counts pods of one workload on each node and in each spot pool, and what is beyond what they may be for nothing.

use std::collections::{BTreeMap, HashMap};

use super::{Engine, HostIndex};
use crate::model::{HourlyPrice, IndexVec};
use crate::scheduler::class::ClassIndex;
use crate::scheduler::concentration::{ConcentrationPenalties, SpotPool, WorkloadIndex};
use crate::scheduler::offerings::{OfferingSet, SlotIndex, TypeIndex, bits};
use crate::scheduler::topology::Counters;

/// The pods of each workload, as they are together.
#[derive(Debug, Default)]
pub(super) struct Concentrations {
    /// Counted by host.
    pub on_node: IndexVec<WorkloadIndex, Counters>,
    in_spot_pool: HashMap<(WorkloadIndex, SpotPool), u32>,
    /// Pods beyond what is free, on nodes and in pools.
    beyond_on_node: usize,
    beyond_in_spot_pool: usize,
}

impl Concentrations {
    pub fn new(concentration: Option<&ConcentrationPenalties>) -> Self {
        let free = concentration.iter().flat_map(|concentration| &concentration.on_node.pods);
        Self { on_node: free.map(|free| Counters::of_hosts(*free)).collect(), ..Self::default() }
    }

    fn pods_in(&self, workload: WorkloadIndex, pool: SpotPool) -> u32 {
        self.in_spot_pool.get(&(workload, pool)).copied().unwrap_or(0)
    }

    pub fn count(
        &mut self,
        concentration: &ConcentrationPenalties,
        workload: WorkloadIndex,
        (host, pool): (HostIndex, Option<SpotPool>),
        pods: u32,
        sign: i8,
    ) {
        let domain = host.domain();
        let on_node = &mut self.on_node[workload];
        let before = concentration.on_node.beyond(workload, on_node.matching(domain));
        on_node.count_matching(domain, pods, sign);
        let after = concentration.on_node.beyond(workload, on_node.matching(domain));
        self.beyond_on_node = (self.beyond_on_node + after as usize).saturating_sub(before as usize);
        let Some(pool) = pool else { return };
        let count = self.in_spot_pool.entry((workload, pool)).or_default();
        let before = concentration.in_spot_pool.beyond(workload, *count);
        *count = if sign > 0 { count.saturating_add(pods) } else { count.saturating_sub(pods) };
        let after = concentration.in_spot_pool.beyond(workload, *count);
        self.beyond_in_spot_pool = (self.beyond_in_spot_pool + after as usize).saturating_sub(before as usize);
    }
}

impl Engine<'_, '_> {
    /// From now on pods go only where they make no concentration that counts, or wherever they fit.
    pub fn avoid_concentration(&mut self, avoids: bool) {
        self.avoids_concentration = avoids && self.problem.concentration.is_some();
    }

    pub fn avoids_concentration(&self) -> bool {
        self.avoids_concentration
    }

    /// What all concentration together counts.
    pub fn price_of_concentration(&self) -> HourlyPrice {
        let Some(concentration) = &self.problem.concentration else { return HourlyPrice::ZERO };
        concentration.on_node.per_pod.times(self.concentrations.beyond_on_node)
            + concentration.in_spot_pool.per_pod.times(self.concentrations.beyond_in_spot_pool)
    }

    /// Whether one more pod of the class on the host would count.
    pub(super) fn is_concentrated(&self, class: ClassIndex, host: HostIndex) -> bool {
        let Some(concentration) = self.problem.concentration.as_ref().filter(|_| self.avoids_concentration) else {
            return false;
        };
        let Some(workload) = concentration.workload_of(class) else { return false };
        let domain = host.domain();
        let here = self.concentrations.on_node[workload].matching(domain);
        let counts_in_pool = |pods: u32| concentration.in_spot_pool.beyond(workload, pods + 1) > 0;
        concentration.on_node.beyond(workload, here + 1) > 0
            || match (self.hosts[host].spot_pool, self.hosts[host].open.as_deref()) {
                (Some(pool), _) => counts_in_pool(self.concentrations.pods_in(workload, pool)),
                // In whatever pool it ends, these are there together.
                (None, Some(open)) => concentration.is_spot_only(open.template, &open.set) && counts_in_pool(here),
                (None, None) => false,
            }
    }

    /// The cheapest type and slot of a set for the pods of an open node, with what they count in the spot pool; then its price
    /// without. `None` when nothing is left, or spot pools do not matter. O(types that are no dearer x slots x workloads).
    pub fn cheapest_for_concentration(
        &self,
        host: HostIndex,
        set: &OfferingSet,
    ) -> Option<(TypeIndex, SlotIndex, HourlyPrice)> {
        let concentration =
            self.problem.concentration.as_ref().filter(|concentration| concentration.looks_at_spot_pools())?;
        let state = &self.hosts[host];
        let template = state.open.as_deref()?.template;
        let mut pods: BTreeMap<WorkloadIndex, u32> = BTreeMap::new();
        for (class, count) in &state.pods {
            if let Some(workload) = concentration.workload_of(*class) {
                *pods.entry(workload).or_default() += count;
            }
        }
        let added = |pool: SpotPool| {
            let beyond = |(workload, own): (&WorkloadIndex, &u32)| {
                let all = self.concentrations.pods_in(*workload, pool);
                let others = if state.spot_pool == Some(pool) { all.saturating_sub(*own) } else { all };
                let beyond = |pods| concentration.in_spot_pool.beyond(*workload, pods) as usize;
                beyond(others + own) - beyond(others)
            };
            concentration.in_spot_pool.per_pod.times(pods.iter().map(beyond).sum())
        };
        let offerings = &self.problem.templates[template].offerings;
        let mut best: Option<(HourlyPrice, TypeIndex, SlotIndex, HourlyPrice)> = None;
        for (position, entry) in offerings.offered(set) {
            if best.is_some_and(|(least, ..)| entry.cheapest(set.slots).is_none_or(|(_, price)| price >= least)) {
                continue;
            }
            for slot in bits(set.slots & entry.available) {
                let extra = concentration.spot_pool(template, position, slot).map_or(HourlyPrice::ZERO, added);
                let cost = entry.price(slot) + extra;
                if best.is_none_or(|(least, ..)| cost < least) {
                    best = Some((cost, position, slot, entry.price(slot)));
                }
            }
        }
        best.map(|(_, position, slot, price)| (position, slot, price))
    }
}
