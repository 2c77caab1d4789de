//! The one function that decides.

use jiff::Timestamp;

use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_pool::NodePool;
use crate::api::settings::{DisruptionSettings, Packing};
use crate::core::catalog::Catalog;
use crate::core::snapshot::Snapshot;

use super::{Plan, Revision};

/// Everything a plan depends on. The same inputs give the same bytes.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    pub revision: Revision,
    pub cluster: &'a str,
    pub node_pools: &'a [NodePool],
    pub node_classes: &'a [EC2NodeClass],
    pub disruption_budgets: &'a [DisruptionBudget],
    pub snapshot: &'a Snapshot,
    pub catalog: &'a Catalog,
    pub policy: Policy,
    pub seed: u64,
    pub now: Timestamp,
}

/// How to plan, as far as it is not in the definitions.
#[derive(Clone, Debug)]
pub struct Policy {
    pub packing: Packing,
    pub disruption: DisruptionSettings,
    /// Zones that have a subnet, or `None` where no cloud was asked: then every zone of the catalog counts.
    pub zones_with_subnet: Option<Vec<String>>,
    /// Whether the removal of every pool was confirmed.
    pub removal_confirmed: bool,
}

/// Decides what to create, replace and remove. Pure; O((pods + nodes) log nodes) for provisioning and, for disruption,
/// the sum over candidates of the pods they hold.
pub fn decide(_inputs: &Inputs<'_>) -> Plan {
    todo!()
}
