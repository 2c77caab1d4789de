//! The catalog in this binary: facts of EC2, prices and figures of our tables, Karpenter's arithmetic.

use super::super::model::HourlyPrice;
use super::facts::{self, Facts, InstanceFacts, Zone};
use super::tables::{self, OnDemandPrices, SPOT_PERCENT_OF_ON_DEMAND};
use super::{Catalog, FORMAT_VERSION, InstanceType, Offering, arithmetic, labels};
use crate::api::keys;

#[derive(Debug, thiserror::Error)]
pub enum BuiltInError {
    #[error("the built-in catalog has no region `{region}`; it has {}", known.join(", "))]
    UnknownRegion { region: String, known: Vec<String> },
    #[error("the built-in catalog is damaged")]
    Damaged(#[source] &'static facts::FactsError),
}

/// What the built-in catalog takes for granted; plans and tables say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// Stable, such as `SpotPricesAssumed`.
    pub code: &'static str,
    pub text: String,
}

impl Catalog {
    /// What EC2 sells in this region, under Karpenter's default settings and a node class that sets nothing. An
    /// offering is available when its price is known, as in the reference.
    pub fn built_in(region: &str) -> Result<Self, BuiltInError> {
        let facts = facts::embedded().map_err(BuiltInError::Damaged)?;
        if !facts.regions().contains(&region) {
            let known = facts.regions().into_iter().map(str::to_owned).collect();
            return Err(BuiltInError::UnknownRegion { region: region.to_owned(), known });
        }
        let prices = OnDemandPrices::of_region(region);
        Ok(Self {
            version: FORMAT_VERSION,
            region: region.to_owned(),
            date: prices.date.to_owned(),
            instance_types: facts.instance_types.iter().map(|it| instance_type(it, region, facts, prices)).collect(),
        })
    }
}

/// What is not known and had to be assumed for the built-in catalog of this region.
pub fn assumptions(region: &str) -> Vec<Assumption> {
    let prices = OnDemandPrices::of_region(region);
    let mut assumptions = vec![Assumption {
        code: "SpotPricesAssumed",
        text: format!("spot prices are not live: taken as {SPOT_PERCENT_OF_ON_DEMAND} % of on-demand"),
    }];
    if prices.region != region {
        assumptions.push(Assumption {
            code: "PricesOfOtherRegion",
            text: format!("on-demand prices are those of {}: there is no price table for {region}", prices.region),
        });
    }
    assumptions
}

fn instance_type(info: &InstanceFacts, region: &str, facts: &Facts, prices: &OnDemandPrices) -> InstanceType {
    let zones: Vec<&Zone> =
        info.zones.iter().filter_map(|index| facts.zones.get(*index)).filter(|zone| zone.region == region).collect();
    let capacity = arithmetic::capacity(info);
    InstanceType {
        name: info.name.clone(),
        requirements: labels::requirements(info, region, &zones),
        overhead: arithmetic::default_overhead(&capacity),
        capacity,
        offerings: offerings(info, &zones, prices.get(&info.name)),
    }
}

fn offerings(info: &InstanceFacts, zones: &[&Zone], on_demand: Option<HourlyPrice>) -> Vec<Offering> {
    let price = |capacity_type: &str| match capacity_type {
        keys::SPOT => on_demand.map(tables::assumed_spot_price),
        _ => on_demand,
    };
    zones
        .iter()
        .flat_map(|zone| labels::capacity_types(info).map(move |capacity_type| (zone, capacity_type)))
        .map(|(zone, capacity_type)| Offering {
            zone: zone.name.clone(),
            zone_id: zone.id.clone(),
            capacity_type: capacity_type.to_owned(),
            price: price(capacity_type).unwrap_or_default(),
            available: on_demand.is_some(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_region_is_told_the_known_ones() {
        let error = Catalog::built_in("us-east-9").unwrap_err().to_string();
        assert!(error.starts_with("the built-in catalog has no region `us-east-9`; it has af-south-1, "), "{error}");
        assert!(error.contains(" us-east-1, "), "{error}");
    }

    #[test]
    fn offerings_are_available_where_the_price_is_known() {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        let find = |name| catalog.instance_types.iter().find(|candidate| candidate.name == name).unwrap();
        let known = &find("c5a.2xlarge").offerings;
        assert!(known.iter().all(|offering| offering.available && offering.price > HourlyPrice::ZERO));
        let on_demand = known.iter().find(|offering| offering.capacity_type == keys::ON_DEMAND).unwrap();
        assert_eq!(on_demand.price, HourlyPrice::from_dollars(0.308).unwrap());
        let unknown = &find("g7.2xlarge").offerings;
        assert!(!unknown.is_empty() && unknown.iter().all(|offering| !offering.available));
    }

    #[test]
    fn assumptions_name_the_prices_of_another_region() {
        assert_eq!(assumptions("us-east-1").len(), 1);
        assert_eq!(assumptions("ap-northeast-2")[1].code, "PricesOfOtherRegion");
    }
}
