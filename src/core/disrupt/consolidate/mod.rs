//! Consolidation: nodes whose pods fit elsewhere for less money.
//! Behaviour: reference, section 4.4; under `packing: cheapest` sets of nodes are replaced by sets of nodes, and a move must
//! repay what it costs.
//!
//! [`dual_prices`] says what pods would cost on new nodes, [`keeping`] which nodes to keep when all are looked at together,
//! [`trial`] does without some nodes in the engine, [`rules`] says whether that is worth it.
//! [`search`] and [`mod@reference`] decide which nodes to try; [`left_over`] are those that drifted and may not go for that.

pub mod bound;
mod dual_prices;
mod first_room;
mod keeping;
mod left_over;
mod nowhere;
pub mod obstacle;
mod partners;
mod reference;
pub(super) mod rules;
pub(super) mod saving;
mod search;
pub(super) mod totals;
mod trial;

use crate::model::{HourlyPrice, IndexVec};
use crate::plan::Outlook;
use crate::provision::bound::OpenNode;
use crate::scheduler::{Engine, HostIndex};
use cutlist_api::settings::Packing;

use super::candidate::Candidate;
use super::pass::Pass;
use super::refused::Refused;
use obstacle::NotSaved;

/// A node that may go to save money.
#[derive(Clone, Copy, Debug)]
struct Source<'c> {
    candidate: &'c Candidate,
    /// Of its instance.
    price: HourlyPrice,
}

impl Source<'_> {
    /// With what it costs beside its instance: what is saved without it.
    fn cost(&self) -> HourlyPrice {
        self.price + self.candidate.cost_beside
    }
}

/// Looks at every candidate that is left.
pub(super) fn look(pass: &mut Pass<'_, '_>, engine: &mut Engine<'_, '_>, candidates: &[Candidate]) {
    // Money is no reason to be less varied.
    engine.lower_min_values(false);
    let mut sources = Vec::new();
    for candidate in pass.open(candidates) {
        match pass.source(candidate) {
            Ok(source) => sources.push(source),
            Err(refused) => pass.hold_back(candidate.host, refused),
        }
    }
    if sources.is_empty() {
        return;
    }
    let open = |source: &Source<'_>| OpenNode {
        host: source.candidate.host,
        price: source.price,
        pods: source.candidate.displaced().collect(),
    };
    pass.disruption.open = sources.iter().filter(|source| pass.may_be_bought_for(source)).map(open).collect();
    let before: HourlyPrice = sources.iter().map(|source| source.price).sum();
    let first_move = pass.disruption.removals.len();
    let is_cheapest = pass.inputs.policy.packing == Packing::Cheapest;
    if is_cheapest && pass.inputs.policy.moves_under_way {
        pass.only_wait(&sources);
    } else {
        let (left_over, others) = pass.without_left_over(&sources);
        if is_cheapest {
            pass.search(engine, &others);
        } else {
            pass.as_reference(engine, &others);
        }
        pass.try_left_over(engine, left_over);
    }
    let saving = pass.saving_since(engine, &sources, first_move);
    pass.disruption.consolidation =
        Some(Outlook { nodes_open: sources.len(), saving_per_hour: saving, price_per_hour_after: before - saving });
}

impl Pass<'_, '_> {
    fn saving_since(&self, engine: &Engine<'_, '_>, sources: &[Source<'_>], first_move: usize) -> HourlyPrice {
        let mut prices = IndexVec::<HostIndex, _>::repeat(HourlyPrice::ZERO, engine.problem.machines.len());
        for source in sources {
            prices[source.candidate.host] = source.price;
        }
        let moves = self.disruption.removals.iter().skip(first_move);
        let saving = moves.map(|removal| {
            let gone: HourlyPrice = removal.nodes.iter().map(|going| prices[going.host]).sum();
            gone - removal.purchases.iter().map(|purchase| purchase.price).sum()
        });
        saving.sum()
    }

    /// What can be said of a candidate before anything is tried.
    fn source<'c>(&self, candidate: &'c Candidate) -> Result<Source<'c>, Refused> {
        candidate.consolidatable_at(self.inputs.now)?;
        candidate.may_be_consolidated()?;
        self.is_not_receiving(candidate)?;
        let price = candidate.price.ok_or(NotSaved::NoPrice)?;
        Ok(Source { candidate, price })
    }
}
