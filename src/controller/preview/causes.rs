//! Which line of which file makes what happen.

use std::collections::{BTreeMap, BTreeSet};

use super::Proposal;
use super::unplanned::is_out_of_sight;
use crate::api::node_pool::NodePool;
use crate::api::preview::{PreviewCause, PreviewSeverity};
use crate::controller::revisions::inputs::from_root;
use crate::core::plan::{IMAGE_LOCK, Plan, Step};
use crate::core::preview::{Effect, caused_steps, pending, steps_taken_away};
use crate::definitions::changes::{Change, ChangeKind};
use crate::definitions::{Definition, Definitions};
use crate::render::preview::{cause, effect, together, waits};

/// Each definition that differs, with what comes of it alone; and one more, without a place, for what comes of several of them, or of
/// pools that none of them names. Each step is in one of them, so that together they are the headline.
pub fn of(changes: &[Change], proposal: &Proposal<'_>, plan: &Plan, base: Option<&Plan>) -> Vec<PreviewCause> {
    let reach = Reach::new(changes, proposal, plan, base);
    let waiting: usize = pending(plan, base).caused.iter().map(|group| group.pods.len()).sum();
    let pods_wait = waiting > 0;
    let severity = |takes_nodes: bool| {
        if takes_nodes || pods_wait { PreviewSeverity::Warning } else { PreviewSeverity::Notice }
    };
    let mut rest = Effect::of_change(plan);
    let mut causes = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let own = if changes.len() == 1 { rest } else { reach.effect_of(plan, index) };
        rest.price_per_hour -= own.price_per_hour;
        let reached: Vec<&Step> = caused_steps(plan).filter(|step| reach.reaches(index, step)).collect();
        let takes_nodes = own.nodes.takes_nodes() || Effect::of(reached, []).nodes.takes_nodes();
        let said = match is_out_of_sight(change, plan) {
            true => format!("{} {} is not seen any more", change.kind, change.name),
            false => cause(change),
        };
        causes.push(PreviewCause {
            path: from_root(proposal.merged.prefix, &change.file),
            line: u32::try_from(change.line).unwrap_or(u32::MAX),
            severity: severity(takes_nodes),
            // Nodes that do not come save money that nobody wants to save.
            text: with_effect(said, &own, if changes.len() == 1 { waiting } else { 0 }),
        });
    }
    if changes.len() > 1 {
        let shared = Effect { price_per_hour: rest.price_per_hour, ..reach.effect_of_several(plan) };
        if shared != Effect::default() {
            let text = with_effect(together(), &shared, waiting);
            let severity = severity(shared.nodes.takes_nodes());
            causes.push(PreviewCause { path: String::new(), line: 0, severity, text });
        }
    }
    // What matters most is read first, and may be all that fits.
    causes.sort_by(|one, two| (one.severity, &one.path, one.line).cmp(&(two.severity, &two.path, two.line)));
    causes
}

fn with_effect(text: String, of: &Effect, waiting: usize) -> String {
    let waiting = (waiting > 0).then(|| waits(waiting));
    let parts: Vec<String> = waiting.into_iter().chain([effect(of)]).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { text } else { format!("{text}; {}", parts.join(", ")) }
}

/// Which changes have to do with a step: through its pool, or through the pool of another step of its move.
struct Reach {
    /// The pools that each change reaches; `None`: any.
    pools: Vec<Option<BTreeSet<String>>>,
    of_head: BTreeMap<u32, BTreeSet<String>>,
    of_base: BTreeMap<u32, BTreeSet<String>>,
}

impl Reach {
    fn new(changes: &[Change], proposal: &Proposal<'_>, plan: &Plan, base: Option<&Plan>) -> Self {
        let by_move = |steps: &[Step]| {
            let mut pools: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
            for step in steps {
                pools.entry(step.move_number).or_default().insert(step.node_pool.clone());
            }
            pools
        };
        Self {
            pools: changes.iter().map(|change| pools_of(change, proposal)).collect(),
            of_head: by_move(&plan.steps),
            of_base: by_move(base.map_or(&[], |base| &base.steps)),
        }
    }

    fn is_reached(pools: Option<&BTreeSet<String>>, of_move: Option<&BTreeSet<String>>) -> bool {
        pools.is_none_or(|pools| of_move.is_some_and(|of_move| !pools.is_disjoint(of_move)))
    }

    /// Whether the change has to do with the step of the head.
    fn reaches(&self, index: usize, step: &Step) -> bool {
        let pools = self.pools.get(index).and_then(Option::as_ref);
        Self::is_reached(pools, self.of_head.get(&step.move_number))
    }

    /// The only change that has to do with it, where that is one which names pools: what has to do with any pool may have to do with
    /// what another change did first.
    fn only(&self, of_move: Option<&BTreeSet<String>>) -> Option<usize> {
        let mut reaching = self.pools.iter().enumerate().filter(|(_, pools)| Self::is_reached(pools.as_ref(), of_move));
        match (reaching.next(), reaching.next()) {
            (Some((index, Some(_))), None) => Some(index),
            _ => None,
        }
    }

    fn effect_where(&self, plan: &Plan, is_wanted: impl Fn(Option<usize>) -> bool) -> Effect {
        let caused: Vec<&Step> =
            caused_steps(plan).filter(|step| is_wanted(self.only(self.of_head.get(&step.move_number)))).collect();
        let taken = steps_taken_away(plan).iter();
        let taken: Vec<&Step> =
            taken.filter(|step| is_wanted(self.only(self.of_base.get(&step.move_number)))).collect();
        Effect::of(caused, taken)
    }

    fn effect_of(&self, plan: &Plan, index: usize) -> Effect {
        self.effect_where(plan, |only| only == Some(index))
    }

    fn effect_of_several(&self, plan: &Plan) -> Effect {
        self.effect_where(plan, |only| only.is_none())
    }
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
