//! What nodes cost beside their instances, as one figure: everything that compares nodes by money goes by it, so that consolidation does
//! not undo what was bought.

use crate::catalog::NodeCosts;
use crate::inputs::Inputs;
use crate::model::HourlyPrice;
use cutlist_api::settings::Packing;

/// What the class of a node says, and the amount of the settings for every node; nothing under `packing: karpenter`.
pub(super) fn cost_beside(inputs: &Inputs<'_>, of_class: NodeCosts) -> HourlyPrice {
    match inputs.policy.packing {
        Packing::Cheapest => of_class.total() + inputs.policy.price_per_node(),
        Packing::Karpenter => HourlyPrice::ZERO,
    }
}
