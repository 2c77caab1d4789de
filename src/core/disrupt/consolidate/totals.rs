//! Figures of pools and kinds of nodes that moves are compared with.

use crate::model::HourlyPrice;

/// Instance type, zone, capacity type.
pub(in crate::disrupt) type Likeness = (String, String, String);

/// All nodes of a pool together, as `Balanced` compares with.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::disrupt) struct PoolTotals {
    pub price: HourlyPrice,
    /// The reference's number ([`crate::disrupt::cost::of_pods`]): 1 for each node, and for each pod 0 to 10.
    pub disruption_cost: f64,
}
