//! What nodes cost beside their instances, as one figure: everything that compares nodes by money goes by it, so that consolidation does
//! not undo what was bought.

use crate::catalog::NodeCosts;
use crate::inputs::Inputs;
use crate::model::HourlyPrice;
use cutlist_api::settings::Packing;

use super::Problem;
use super::template::TemplateIndex;

/// What the class of a node says, and the amount of the settings for every node; nothing under `packing: karpenter`.
pub(super) fn cost_beside(inputs: &Inputs<'_>, of_class: NodeCosts) -> HourlyPrice {
    match inputs.policy.packing {
        Packing::Cheapest => of_class.total() + inputs.policy.price_per_node(),
        Packing::Karpenter => HourlyPrice::ZERO,
    }
}

impl Problem<'_> {
    /// Of new nodes together, one of each template that is named.
    pub fn cost_beside_new(&self, templates: impl Iterator<Item = TemplateIndex>) -> HourlyPrice {
        templates.map(|template| self.templates[template].cost_beside).sum()
    }

    /// The same problem where nothing counts but the prices of instances.
    pub fn at_prices_of_instances(mut self) -> Self {
        self.templates.iter_mut().for_each(|template| template.cost_beside = HourlyPrice::ZERO);
        self.nodes.iter_mut().for_each(|node| node.cost_beside = HourlyPrice::ZERO);
        self
    }
}
