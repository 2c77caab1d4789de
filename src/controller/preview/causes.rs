//! Which line of which file makes what happen.

use std::collections::BTreeSet;

use super::Proposal;
use crate::api::node_pool::NodePool;
use crate::api::preview::{PreviewCause, PreviewSeverity};
use crate::controller::revisions::inputs::from_root;
use crate::core::plan::{IMAGE_LOCK, Plan, Step};
use crate::core::preview::{Effect, caused_steps, pending, steps_taken_away};
use crate::definitions::changes::{Change, ChangeKind};
use crate::definitions::{Definition, Definitions};
use crate::render::preview::{cause, effect};

/// Each definition that differs, with what comes of it. What several of them cause is said of each.
pub fn of(changes: &[Change], proposal: &Proposal<'_>, plan: &Plan, base: Option<&Plan>) -> Vec<PreviewCause> {
    let pods_wait = !pending(plan, base).caused.is_empty();
    let mut causes: Vec<PreviewCause> = changes
        .iter()
        .map(|change| {
            let pools = pools_of(change, proposal);
            let of_pools = |step: &&Step| pools.as_ref().is_none_or(|pools| pools.contains(&step.node_pool));
            let moves: BTreeSet<u32> = caused_steps(plan).filter(of_pools).map(|step| step.move_number).collect();
            let mut sum = Effect::of(caused_steps(plan).filter(|step| moves.contains(&step.move_number)));
            // What is bought instead of something else costs the difference.
            sum.price_per_hour -= Effect::of(steps_taken_away(plan).iter().filter(of_pools)).price_per_hour;
            let result = effect(&sum);
            let result = if result.is_empty() { String::new() } else { format!("; {result}") };
            let goes = sum.removed + sum.held > 0;
            PreviewCause {
                path: from_root(proposal.merged.prefix, &change.file),
                line: u32::try_from(change.line).unwrap_or(u32::MAX),
                severity: if goes || pods_wait { PreviewSeverity::Warning } else { PreviewSeverity::Notice },
                text: format!("{}{result}", cause(change)),
            }
        })
        .collect();
    // What matters most is read first, and may be all that fits.
    causes.sort_by(|one, two| (one.severity, &one.path, one.line).cmp(&(two.severity, &two.path, two.line)));
    causes
}

/// The pools that the change reaches; `None`: any.
fn pools_of(change: &Change, proposal: &Proposal<'_>) -> Option<BTreeSet<String>> {
    match change.kind {
        "NodePool" => {
            let mut pools = BTreeSet::from([change.name.clone()]);
            if let ChangeKind::Renamed { from } = &change.what {
                pools.insert(from.clone());
            }
            Some(pools)
        }
        "EC2NodeClass" | IMAGE_LOCK => {
            let of = |definitions: &Definitions| -> Vec<String> {
                let uses =
                    |pool: &&Definition<NodePool>| pool.value.spec.template.spec.node_class_ref.name == change.name;
                let pools = definitions.node_pools.iter().filter(uses);
                pools.filter_map(|pool| pool.value.metadata.name.clone()).collect()
            };
            Some([proposal.base, proposal.merged].into_iter().flat_map(|reading| of(reading.definitions)).collect())
        }
        _ => None,
    }
}
