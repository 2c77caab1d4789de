//! What EC2 sells: instance types, offerings, prices; and the arithmetic from capacity to allocatable.
//!
//! [`Catalog::built_in`] is the catalog in this binary, [`Catalog::parse`] reads one from a file, and
//! [`for_node_class`] says what a node class makes of an instance type; [`user_data`] is what an instance of the class is told when it boots, which
//! lint asks as well as a launch. To add an attribute of instance types: the
//! fact goes to `facts.rs` (and `adapters/aws/facts.rs`, which asks EC2), the label to `labels.rs`, the resource to
//! `arithmetic.rs`.

pub mod arithmetic;
pub mod attachments;
pub mod built_in;
pub mod facts;
pub mod filter;
mod kubelet;
pub mod labels;
pub mod matching;
pub mod node_class;
mod node_class_problem;
mod node_costs;
mod parse;
pub mod regions;
pub mod tables;
pub mod type_sets;
pub mod user_data;
pub mod values;
pub mod vcpu_quotas;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::resources::MEMORY;
use crate::model::shared::Shared;
use crate::model::tenancy;
use crate::model::{HourlyPrice, Resources};
use cutlist_api::keys;

pub use built_in::{Assumed, Assumption, BuiltInError, assumptions};
pub use node_class::{NodeClassSettings, default_volumes, for_node_class, volume_of_pods};
pub use node_class_problem::NodeClassProblem;
pub use node_costs::NodeCosts;
pub use parse::CatalogError;

/// The version of the exchange format that this program writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// The catalog of one region, in the form in which catalogs are exchanged (`schemas/catalog.json`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Catalog {
    pub version: u32,
    pub region: String,
    /// The day the prices were valid, `2026-11-20`. Every plan shows it.
    pub date: String,
    /// When these prices were asked for, where that is known to the minute: those of spot change all day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices_asked: Option<PricesAsked>,
    /// The classes whose nodes these are, such as KWOKNodeClasses of Karpenter's provider for tests; without it EC2NodeClasses. Plans then
    /// are for pools of such classes alone, and take types as they are sold: nothing is known of what such a class makes of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class: Option<ClassKind>,
    pub instance_types: Vec<InstanceType>,
}

/// When EC2 and the Price List were asked for prices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PricesAsked {
    /// RFC 3339. Absent where those on demand are of no such answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_demand: Option<String>,
    /// The same of spot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot: Option<String>,
}

/// The group and the kind of classes, as a `nodeClassRef` names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassKind {
    pub group: String,
    pub kind: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceType {
    pub name: String,
    /// The values of each label that a node of this type may have. Labels absent here do not exist on its nodes.
    // Shared like the offerings, since each plan makes its own list of types, and hardly changes these.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub requirements: Shared<BTreeMap<String, Vec<String>>>,
    pub capacity: Resources,
    /// What the kubelet, the system and the eviction threshold keep; allocatable is capacity less this.
    pub overhead: Resources,
    #[schemars(with = "Vec<Offering>")]
    pub offerings: Shared<Vec<Offering>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Offering {
    pub zone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    pub capacity_type: String,
    /// US dollars per hour.
    pub price: HourlyPrice,
    #[serde(default = "available_by_default")]
    pub available: bool,
    /// The capacity reservation that is launched into; every `reserved` offering has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// Instances that can still be launched into the reservation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_instance_count: Option<u32>,
}

impl InstanceType {
    /// The tenancy that a node of this type gets, of those that are allowed.
    pub fn tenancy(&self, is_allowed: impl Fn(&str) -> bool) -> Option<&str> {
        tenancy::preferred(self.requirements.get(keys::TENANCY)?.iter().map(String::as_str), is_allowed)
    }
}

fn available_by_default() -> bool {
    true
}

impl Catalog {
    /// With these prices, by instance type, for what is sold on demand and has none.
    pub fn priced(&self, prices: &BTreeMap<&str, HourlyPrice>) -> Self {
        let mut priced = self.clone();
        for instance_type in &mut priced.instance_types {
            let Some(price) = prices.get(instance_type.name.as_str()) else { continue };
            for offering in instance_type.offerings.iter_mut().filter(|offering| offering.lacks_price()) {
                offering.price = *price;
                offering.available = true;
            }
        }
        priced
    }
}

impl Offering {
    /// Whether it is sold on demand and nobody knows at what price: then it is not available, as in the reference.
    pub fn lacks_price(&self) -> bool {
        self.capacity_type == keys::ON_DEMAND && !self.available && self.price == HourlyPrice::ZERO
    }
}

impl InstanceType {
    /// Memory as EC2 states it, before anything is kept from it; the capacity where the catalog has no such label.
    pub fn sold_memory_bytes(&self) -> i64 {
        let mebibytes = self.requirements.get(keys::INSTANCE_MEMORY).and_then(|values| values.first()?.parse().ok());
        mebibytes.map_or_else(|| self.capacity.get(MEMORY), |number: i64| number.saturating_mul(arithmetic::MEBIBYTE))
    }

    /// The lowest price of an available offering of this capacity type, over all zones.
    pub fn lowest_price(&self, capacity_type: &str) -> Option<HourlyPrice> {
        let fits = |offering: &&Offering| offering.available && offering.capacity_type == capacity_type;
        self.offerings.iter().filter(fits).map(|offering| offering.price).min()
    }

    /// Capacity less overhead, never below zero.
    pub fn allocatable(&self) -> Resources {
        self.capacity
            .iter()
            .map(|(name, amount)| (name.to_owned(), (amount - self.overhead.get(name)).max(0)))
            .collect()
    }
}
