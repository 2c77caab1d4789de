//! A plan in figures.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::HourlyPrice;

use super::is_zero;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub nodes_before: usize,
    /// When the plan is carried out, and what is leaving anyway has left.
    pub nodes_after: usize,
    /// On their way out before this plan: in `nodesBefore` and `pricePerHourBefore`, not in what is after.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nodes_leaving: usize,
    pub nodes_created: usize,
    pub nodes_replaced: usize,
    pub nodes_removed: usize,
    /// Of the instances, as is the one after.
    pub price_per_hour_before: HourlyPrice,
    pub price_per_hour_after: HourlyPrice,
    /// What all nodes cost after the plan, apart, as the choice of nodes counts it. Absent where it goes by other prices than these
    /// (`packing: karpenter`), or by those of instances alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub costs_per_hour: Option<CostsPerHour>,
    /// The same pods on fewer nodes, where much fewer would do for little more; absent otherwise, and where few nodes are bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewer_nodes: Option<FewerNodes>,
    /// No fleet for the same pods can cost less, while nodes that may not go stay; absent when it was not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound_price_per_hour: Option<HourlyPrice>,
    /// What concentration of pods counts after the plan, by the penalties of `cutlist.yaml`; not in the prices. Absent where it counts
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalties_per_hour: Option<PenaltiesPerHour>,
    /// Pending pods that got a place.
    pub pods_placed: usize,
    pub pods_pending: usize,
    /// Pods of CapacityBuffers that there is room for, and those that there is none for; not among the pods above.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub buffer_pods_placed: usize,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub buffer_pods_pending: usize,
    /// Running pods that must move.
    pub pods_disrupted: usize,
    /// Absent where no running pod must move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_drain: Option<LongestDrain>,
    /// Nodes looked at as candidates, of those there are.
    pub candidates: usize,
    pub candidates_examined: usize,
    /// What moving pods to save money came to; absent where no node may go for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation: Option<Outlook>,
}

/// Dollars per hour, for all nodes after the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostsPerHour {
    /// The same as `pricePerHourAfter`.
    pub instances: HourlyPrice,
    /// Root and data volumes, by the EC2NodeClass of each node; of nodes without one nothing is known.
    pub volumes: HourlyPrice,
    /// Public IPv4 addresses.
    pub addresses: HourlyPrice,
    /// Detailed monitoring.
    pub monitoring: HourlyPrice,
    /// `penalties.perNodePerHour` of `cutlist.yaml`.
    pub per_node: HourlyPrice,
    /// What all of it comes to at least for the same pods, while nodes that may not go stay; absent when it was not computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<HourlyPrice>,
}

impl CostsPerHour {
    /// Everything that a node costs beside its instance.
    pub fn beside_instances(&self) -> HourlyPrice {
        self.volumes + self.addresses + self.monitoring + self.per_node
    }

    pub fn total(&self) -> HourlyPrice {
        self.instances + self.beside_instances()
    }
}

/// Another point of the curve of nodes against money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FewerNodes {
    /// So many new nodes for pending pods would do.
    pub nodes: usize,
    /// Of those that the plan buys for them.
    pub instead: usize,
    /// What they cost more in dollars per hour: instances, volumes, addresses and monitoring, without the amount for each node.
    pub per_hour: HourlyPrice,
}

/// What consolidation found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outlook {
    /// Nodes that may go to save money.
    pub nodes_open: usize,
    /// What the moves of this plan that are made for money save.
    pub saving_per_hour: HourlyPrice,
    /// What the nodes that may go, or replace those that go, cost after this plan.
    pub price_per_hour_after: HourlyPrice,
}

/// The longest that the drain of one of the nodes that go is expected to take: what its pods may take to end, one round after the
/// other where a PodDisruptionBudget lets few go at a time. How long the pods in their places take to become ready is not in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LongestDrain {
    pub node: String,
    /// Absent where the drain never ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Why it takes so long.
    pub text: String,
}

/// Dollars per hour of what no price list has, for all pods after the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PenaltiesPerHour {
    pub blast_radius: HourlyPrice,
    pub spot_concentration: HourlyPrice,
}
