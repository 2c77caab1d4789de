//! Pods that run only if kube-scheduler binds them before others.
//!
//! A spread is looked at when a pod that has it is bound. Others that it counts, and that do not have it, may be bound before: then the pod
//! finds its domain too full.

use std::collections::BTreeSet;

use crate::scheduler::topology::GroupIndex;
use crate::scheduler::{ClassIndex, Engine, HostIndex};
use crate::snapshot::PodIndex;

use super::Purchase;

/// Pods with a spread whose domain others may have filled when kube-scheduler takes them: positions in the snapshot.
pub(super) fn order_matters(
    engine: &Engine<'_, '_>,
    purchases: &[(HostIndex, Purchase)],
    placements: &[(PodIndex, HostIndex)],
) -> Vec<PodIndex> {
    let mut too_full = engine.domains_that_may_be_too_full();
    if too_full.is_empty() {
        return Vec::new();
    }
    let problem = engine.problem;
    let bought = purchases.iter().flat_map(|(host, purchase)| purchase.pods.iter().map(|pod| (*pod, *host)));
    let arriving: Vec<(PodIndex, HostIndex)> = bought.chain(placements.iter().copied()).collect();
    let classes: BTreeSet<ClassIndex> = arriving.iter().filter_map(|(pod, _)| problem.class_of_pod[*pod]).collect();
    let daemons = || purchases.iter().flat_map(|(host, _)| &engine.host(*host).neighbours);
    // Pods that run already are where they are, whenever kube-scheduler comes to these.
    too_full.retain(|(group, _)| {
        let comes_before = |class: &ClassIndex| {
            let pods = &problem.classes[*class];
            pods.counted_in.contains(group) && !pods.spreads.contains(group)
        };
        classes.iter().any(comes_before) || daemons().any(|daemon| problem.daemons[*daemon].counted_in.contains(group))
    });
    let affected = arriving.into_iter().filter(|(pod, host)| {
        let class = problem.class_of_pod[*pod];
        let owns = |group: &GroupIndex| class.is_some_and(|class| problem.classes[class].spreads.contains(group));
        too_full
            .iter()
            .any(|(group, domain)| owns(group) && engine.host(*host).domains[problem.groups[*group].key] == *domain)
    });
    affected.map(|(pod, _)| pod).collect()
}
