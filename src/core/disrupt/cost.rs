//! What a disruption costs: in the reference's units to rank candidates, in dollars to see whether it pays.

use crate::inputs::Inputs;
use crate::model::HourlyPrice;
use crate::programs::number;
use crate::provision::backlog::is_reschedulable;
use crate::provision::cheapest::kinds::kinds;
use crate::provision::cheapest::weights::weights;
use crate::scheduler::{Demand, HostIndex, Problem, vectors};
use crate::snapshot::{Pod, PodIndex};
use cutlist_api::duration::NillableDuration;
use cutlist_api::settings::Packing;

/// Annotation that says how dear the deletion of a pod is, compared with others.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// One for the node and for each pod between 0 and 10, by its deletion cost and priority.
/// Source: reference, section 4.3.
pub fn of_pods<'a>(pods: impl Iterator<Item = &'a Pod>) -> f64 {
    1.0 + pods.map(|pod| of_pod(pod).max(0.0)).sum::<f64>()
}

fn of_pod(pod: &Pod) -> f64 {
    let deletion_cost = pod
        .metadata
        .annotations
        .get(DELETION_COST)
        .and_then(|text| text.parse::<f64>().ok())
        .filter(|cost| cost.is_finite());
    let priority = f64::from(pod.spec.priority.unwrap_or(0));
    (1.0 + deletion_cost.unwrap_or(0.0) / 2_f64.powi(27) + priority / 2_f64.powi(25)).clamp(-10.0, 10.0)
}

/// What moves are taken to cost, in billionths of a dollar and seconds.
#[derive(Clone, Copy, Debug)]
pub struct MoveCosts {
    /// How long a new node and the one that it replaces are both paid for.
    overlap_seconds: i64,
    warm_up_seconds: i64,
    per_pod: i64,
    per_crossing: i64,
}

impl MoveCosts {
    pub fn new(inputs: &Inputs<'_>, problem: &Problem<'_>) -> Self {
        let settings = &inputs.policy.disruption.costs;
        // Beyond what can be counted is very much.
        let beyond = |dollars: f64| if dollars > 0.0 { i64::MAX } else { 0 };
        let nanodollars =
            |dollars: f64| HourlyPrice::from_dollars(dollars).map_or_else(|| beyond(dollars), HourlyPrice::nanodollars);
        let seconds = |duration: &NillableDuration| duration.seconds().and_then(|seconds| i64::try_from(seconds).ok());
        let restart_seconds = seconds(&settings.restart).unwrap_or(0);
        // Under `packing: karpenter` nobody asks what a move costs.
        let is_asked = inputs.policy.packing == Packing::Cheapest && restart_seconds > 0;
        let average_pod = if is_asked { average_pod(problem) } else { HourlyPrice::ZERO };
        Self {
            overlap_seconds: seconds(&settings.node_overlap).unwrap_or(0),
            warm_up_seconds: seconds(&settings.warm_up).unwrap_or(0),
            per_pod: nanodollars(settings.image_pull_per_pod)
                .saturating_add(nanodollars(settings.warm_up_per_pod))
                .saturating_add(price_for(average_pod, restart_seconds)),
            per_crossing: nanodollars(settings.cross_zone_per_pod),
        }
    }

    /// Moving these pods: each by how dear its eviction is compared with a pod that says nothing of it.
    #[expect(clippy::cast_possible_truncation, reason = "a price times a number from 0 to 10, and saturating")]
    fn of_pods<'a>(&self, pods: impl Iterator<Item = &'a Pod>) -> i64 {
        pods.map(|pod| (self.per_pod as f64 * of_pod(pod).max(0.0)).round() as i64).fold(0, i64::saturating_add)
    }

    /// These pods leaving a node of this price: moving them, and their part of its price while they warm up elsewhere.
    pub fn of_leaving(&self, problem: &Problem<'_>, host: HostIndex, price: HourlyPrice, pods: &[PodIndex]) -> i64 {
        let used = i128::from(used_thousandths(problem, host, pods.iter().copied()));
        let part = i64::try_from(i128::from(price.nanodollars()) * used / 1_000).unwrap_or(i64::MAX);
        let warm_up = price_for(HourlyPrice::from_nanodollars(part), self.warm_up_seconds);
        self.of_pods(pods.iter().map(|pod| &problem.snapshot.pods[*pod])).saturating_add(warm_up)
    }

    /// A move, once: the price of its new nodes while both run, its pods, and those that come to another zone.
    pub fn of_move(&self, bought: HourlyPrice, pods: i64, crossing: usize) -> i64 {
        let crossing = self.per_crossing.saturating_mul(i64::try_from(crossing).unwrap_or(i64::MAX));
        price_for(bought, self.overlap_seconds).saturating_add(pods).saturating_add(crossing)
    }
}

/// Billionths of a dollar that a price comes to in this time.
fn price_for(price: HourlyPrice, seconds: i64) -> i64 {
    i64::try_from(i128::from(price.nanodollars()) * i128::from(seconds) / 3_600).unwrap_or(i64::MAX)
}

/// The least that the pods which could move would cost on new nodes, each among its own kind, divided by their number. Unlike what
/// is paid for them now it does not fall while nodes are given back. Complexity as of [`weights`].
fn average_pod(problem: &Problem<'_>) -> HourlyPrice {
    let mut demand = Demand::new();
    let pods = problem.nodes.iter().flat_map(|node| &node.pods).map(|(pod, _)| *pod);
    let moving = pods.filter(|pod| is_reschedulable(&problem.snapshot.pods[*pod]));
    for class in moving.filter_map(|pod| problem.class_of_pod[pod]) {
        *demand.entry(class).or_default() += 1;
    }
    let variants = demand.keys().map(|class| (*class, problem.classes[*class].variants.clone())).collect();
    let (mut dollars, mut pods) = (0.0, 0);
    let (kinds, _) = kinds(problem, &demand, &variants);
    for (kind, weight) in kinds.iter().zip(weights(problem, &kinds)) {
        if let Some(weight) = weight {
            dollars += weight * number(kind.count);
            pods += kind.count;
        }
    }
    HourlyPrice::from_dollars(dollars / number(pods.max(1))).unwrap_or_default()
}

/// Seconds after which a saving has repaid what the move cost; `None` when it never does.
pub fn payback_seconds(saving: HourlyPrice, cost_nanodollars: i64) -> Option<i64> {
    let per_hour = saving.nanodollars();
    (per_hour > 0)
        .then(|| i64::try_from(i128::from(cost_nanodollars) * 3_600 / i128::from(per_hour)).unwrap_or(i64::MAX))
}

/// Of the resource of a node that these pods on it take most of, in thousandths.
pub fn used_thousandths(problem: &Problem<'_>, host: HostIndex, pods: impl Iterator<Item = PodIndex>) -> i64 {
    let free = &problem.nodes[host].free;
    let mut used = vec![0; free.len()];
    for class in pods.filter_map(|pod| problem.class_of_pod[pod]) {
        vectors::add(&mut used, &problem.classes[class].request, 1);
    }
    let share = |(used, free): (&i64, &i64)| used.saturating_mul(1_000) / used.saturating_add(*free).max(1);
    used.iter().zip(free).map(share).max().unwrap_or(0)
}
