//! What a disruption costs: in the reference's units to rank candidates, in dollars to see whether it pays.

use crate::core::model::HourlyPrice;
use crate::core::snapshot::Pod;

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

/// While a replacement starts and the old node drains, both are paid for.
const OVERLAP_SECONDS: i64 = 180;

/// What moving one pod is taken to cost: pulling its image, warming up, and traffic that crosses zones meanwhile.
const POD_MOVE_NANODOLLARS: i64 = 200_000;

/// What a move costs once, in billionths of a dollar: the replacements' price while both run, and every pod moved.
pub fn of_move_nanodollars(replacements: HourlyPrice, pods: usize) -> i64 {
    let overlap = replacements.nanodollars().saturating_mul(OVERLAP_SECONDS) / 3_600;
    overlap.saturating_add(POD_MOVE_NANODOLLARS.saturating_mul(i64::try_from(pods).unwrap_or(i64::MAX)))
}

/// Seconds after which a saving has repaid what the move cost; `None` when it never does.
pub fn payback_seconds(saving: HourlyPrice, cost_nanodollars: i64) -> Option<i64> {
    let per_hour = saving.nanodollars();
    (per_hour > 0)
        .then(|| i64::try_from(i128::from(cost_nanodollars) * 3_600 / i128::from(per_hour)).unwrap_or(i64::MAX))
}
