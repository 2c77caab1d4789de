//! The catalog in this binary: facts of EC2, prices and figures of our tables, Karpenter's arithmetic.

use crate::model::HourlyPrice;
use cutlist_api::keys;

use super::facts::{self, Facts, InstanceFacts, Zone};
use super::tables::{self, OnDemandPrices, SPOT_PERCENT_OF_ON_DEMAND};
use super::{Catalog, FORMAT_VERSION, InstanceType, Offering, arithmetic, labels, regions};

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
    pub subject: Assumed,
    pub text: String,
}

/// What an assumption is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumed {
    SpotPrices,
    /// On-demand prices, of a region that has no table.
    OnDemandPrices,
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
        let on_demand = |name: &str| prices.get(name);
        let spot = |name: &str, _: &str| prices.get(name).map(tables::assumed_spot_price);
        Ok(Self::of_facts(region, prices.date, facts, on_demand, spot))
    }

    /// What EC2 sells by these facts and prices: on demand by type, spot by type and zone. An offering without a price is not available.
    pub fn of_facts(
        region: &str,
        date: &str,
        facts: &Facts,
        on_demand: impl Fn(&str) -> Option<HourlyPrice>,
        spot: impl Fn(&str, &str) -> Option<HourlyPrice>,
    ) -> Self {
        let types = facts.instance_types.iter();
        let prices = |name: &str, zone: &str, capacity_type: &str| match capacity_type {
            keys::SPOT => spot(name, zone),
            _ => on_demand(name),
        };
        Self {
            version: FORMAT_VERSION,
            region: region.to_owned(),
            date: date.to_owned(),
            prices_asked: None,
            node_class: None,
            instance_types: types.map(|it| instance_type(it, region, facts, &prices)).collect(),
        }
    }
}

impl Catalog {
    /// What EC2 sells anywhere: each type as in the default region, or in the first that has it. For what holds in every region.
    pub fn built_in_anywhere() -> Result<Self, BuiltInError> {
        let facts = facts::embedded().map_err(BuiltInError::Damaged)?;
        let mut catalog = Self::built_in(regions::DEFAULT_REGION)?;
        let prices = OnDemandPrices::of_region(regions::DEFAULT_REGION);
        let types = catalog.instance_types.iter_mut().zip(&facts.instance_types);
        for (sold, info) in types.filter(|(sold, _)| sold.offerings.is_empty()) {
            if let Some(zone) = info.zones.first().and_then(|index| facts.zones.get(*index)) {
                *sold = instance_type(info, &zone.region, facts, &|name, _, capacity_type| match capacity_type {
                    keys::SPOT => prices.get(name).map(tables::assumed_spot_price),
                    _ => prices.get(name),
                });
            }
        }
        Ok(catalog)
    }
}

/// What is not known and had to be assumed for the built-in catalog of this region.
pub fn assumptions(region: &str) -> Vec<Assumption> {
    let prices = OnDemandPrices::of_region(region);
    let mut assumptions = vec![Assumption {
        subject: Assumed::SpotPrices,
        text: format!("spot prices are not live: taken as {SPOT_PERCENT_OF_ON_DEMAND} % of on-demand"),
    }];
    if prices.region != region {
        assumptions.push(Assumption {
            subject: Assumed::OnDemandPrices,
            text: format!("on-demand prices are those of {}: there is no price table for {region}", prices.region),
        });
    }
    assumptions
}

/// The price of a type, in a zone, for a capacity type.
type Prices<'p> = dyn Fn(&str, &str, &str) -> Option<HourlyPrice> + 'p;

fn instance_type(info: &InstanceFacts, region: &str, facts: &Facts, prices: &Prices<'_>) -> InstanceType {
    let zones: Vec<&Zone> =
        info.zones.iter().filter_map(|index| facts.zones.get(*index)).filter(|zone| zone.region == region).collect();
    let capacity = arithmetic::capacity(info);
    InstanceType {
        name: info.name.clone(),
        requirements: labels::requirements(info, region, &zones).into(),
        overhead: arithmetic::default_overhead(&capacity),
        capacity,
        offerings: offerings(info, &zones, prices).into(),
    }
}

fn offerings(info: &InstanceFacts, zones: &[&Zone], prices: &Prices<'_>) -> Vec<Offering> {
    zones
        .iter()
        .flat_map(|zone| labels::capacity_types(info).map(move |capacity_type| (zone, capacity_type)))
        .map(|(zone, capacity_type)| {
            let price = prices(&info.name, &zone.name, capacity_type);
            Offering {
                zone: zone.name.clone(),
                zone_id: zone.id.clone(),
                capacity_type: capacity_type.to_owned(),
                price: price.unwrap_or_default(),
                available: price.is_some(),
                reservation_id: None,
                available_instance_count: None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::arithmetic::{EFA, POD_ENI};
    use crate::model::Resources;

    /// Allocatable under a class that sets nothing, as Karpenter's AWS provider 1.14.1 computes it (in part also
    /// published at karpenter.sh, "Instance Types"): type, cpu, memory, pods, what else it has.
    const PUBLISHED: [Published; 19] = [
        ("a1.medium", "940m", "1392Mi", 8, &[(POD_ENI, 10)]),
        ("a1.metal", "15890m", "27322Mi", 234, &[(POD_ENI, 54)]),
        ("c1.medium", "1930m", "1122Mi", 12, &[]),
        ("c3.8xlarge", "31850m", "53903Mi", 234, &[]),
        ("c4.8xlarge", "35840m", "53903Mi", 234, &[]),
        ("c5.large", "1930m", "3114Mi", 29, &[(POD_ENI, 9)]),
        ("c5a.2xlarge", "7910m", "14162Mi", 58, &[(POD_ENI, 38)]),
        ("g5.48xlarge", "191450m", "723299Mi", 345, &[("nvidia.com/gpu", 8), (EFA, 1), (POD_ENI, 115)]),
        ("i7ie.48xlarge", "191450m", "1446437Mi", 737, &[(EFA, 1), (POD_ENI, 107)]),
        ("i8ge.48xlarge", "191450m", "1441527Mi", 1178, &[(EFA, 1), (POD_ENI, 98)]),
        ("inf2.48xlarge", "191450m", "718987Mi", 737, &[(NEURON, 12), (NEURON_CORE, 24), (POD_ENI, 107)]),
        ("m5.large", "1930m", "6903Mi", 29, &[(POD_ENI, 9)]),
        ("m7g.16xlarge", "63770m", "233962Mi", 737, &[(EFA, 1), (POD_ENI, 107)]),
        ("m7i-flex.large", "1930m", "6903Mi", 29, &[(POD_ENI, 3)]),
        ("p5.48xlarge", "191450m", "1938410Mi", 100, &[("nvidia.com/gpu", 8), (EFA, 32), (POD_ENI, 120)]),
        ("t3.micro", "1930m", "548Mi", 4, &[]),
        ("t4g.nano", "1930m", "15Mi", 4, &[]),
        ("trn1.32xlarge", "127610m", "481894Mi", 247, &[(NEURON, 16), (NEURON_CORE, 32), (EFA, 8), (POD_ENI, 82)]),
        ("u7i-12tb.224xlarge", "893690m", "11630731Mi", 737, &[(EFA, 1), (POD_ENI, 107)]),
    ];

    type Published = (&'static str, &'static str, &'static str, i64, &'static [(&'static str, i64)]);

    const NEURON: &str = "aws.amazon.com/neuron";
    const NEURON_CORE: &str = "aws.amazon.com/neuroncore";

    #[test]
    fn allocatable_is_what_is_published() {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        for (name, cpu, memory, pods, others) in PUBLISHED {
            let expected = [("cpu", cpu), ("memory", memory), ("ephemeral-storage", "17Gi")];
            let mut expected =
                Resources::parse(expected.map(|(resource, amount)| (resource, amount.to_owned()))).unwrap();
            expected.set("pods", pods);
            for (resource, amount) in others {
                expected.set(resource, *amount);
            }
            let found = catalog.instance_types.iter().find(|candidate| candidate.name == name).unwrap().allocatable();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn labels_are_what_is_published() {
        let catalog = Catalog::built_in("us-east-1").unwrap();
        let find = |name: &str| catalog.instance_types.iter().find(|candidate| candidate.name == name).unwrap();
        let labels = |name: &str, prefix: &str| -> Vec<String> {
            let labels = find(name).requirements.iter();
            labels
                .filter_map(|(key, values)| Some(format!("{}={}", key.strip_prefix(prefix)?, values.join(","))))
                .collect()
        };
        let of_inf2 = "instance-accelerator-count=12 instance-accelerator-manufacturer=aws \
             instance-accelerator-name=inferentia2 instance-capability-flex=false instance-category=inf \
             instance-cpu=192 instance-cpu-manufacturer=amd instance-cpu-sustained-clock-speed-mhz=3600 \
             instance-ebs-bandwidth=60000 instance-encryption-in-transit-supported=true instance-family=inf2 \
             instance-generation=2 instance-hypervisor=nitro instance-memory=786432 \
             instance-network-bandwidth=100000 instance-size=48xlarge instance-tenancy=dedicated,default";
        assert_eq!(labels("inf2.48xlarge", "karpenter.k8s.aws/").join(" "), of_inf2);
        let of_g5: Vec<String> = labels("g5.48xlarge", "karpenter.k8s.aws/instance-gpu-");
        assert_eq!(of_g5, ["count=8", "manufacturer=nvidia", "memory=22888", "name=a10g"]);
        let accelerator = labels("dl2q.24xlarge", "karpenter.k8s.aws/instance-accelerator-");
        assert_eq!(accelerator, ["count=8", "manufacturer=qualcomm", "name=qualcomm-ai100"]);
        assert_eq!(find("i7ie.48xlarge").requirements[labels::LOCAL_NVME], ["120000"]);
        assert_eq!(find("a1.metal").requirements[labels::HYPERVISOR], [""], "bare metal");
        assert!(!find("c3.large").requirements.contains_key(labels::NETWORK_BANDWIDTH), "only \"Moderate\" is stated");
        // Of all labels of the 1,358 types that Karpenter's page of 1.14 has as well, it differs in these 66 alone: it has 2800. The facts are
        // EC2's own answer, which a controller is given too.
        let clock =
            |name: &str| find(name).requirements.get("karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz");
        for family in ["c9g", "c9gd", "m9g", "m9gd", "r9g", "r9gd"] {
            assert_eq!(clock(&format!("{family}.large")).unwrap(), &["3300"], "{family}");
        }
        assert_eq!(find("c5.large").requirements[keys::CAPACITY_TYPE], ["on-demand", "spot"]);
        assert_eq!(find("c5.large").requirements[keys::ZONE].len(), 5, "none in us-east-1e");
        assert!(find("c5.large").requirements[keys::ZONE_ID].contains(&"use1-az6".to_owned()));
    }

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
        assert_eq!(assumptions("ap-northeast-2")[1].subject, Assumed::OnDemandPrices);
    }
}
