//! Figures that EC2 does not describe, in small tables of our own (`data/*.tsv`): prices, network bandwidth, branch
//! interfaces. Lines that start with `#` are remarks; `# date:` says when the figures were valid.
//!
//! To refresh them, read the tables of a newer release of the Go module named in each file's head, replace the rows,
//! keep them sorted by name, and set the date.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::model::HourlyPrice;

const NETWORK: &str = include_str!("data/network.tsv");

/// The region whose prices stand in for those of regions without a table, as in the reference.
pub const FALLBACK_PRICE_REGION: &str = "us-east-1";

const ON_DEMAND_PRICES: [(&str, &str); 1] =
    [(FALLBACK_PRICE_REGION, include_str!("data/on-demand-prices/us-east-1.tsv"))];

/// Spot prices change by the hour and are not in this binary. Where no live price is known, spot is taken to cost
/// this share of on-demand. AWS advertises savings of up to 90 % and most types save less: 40 % keeps spot the
/// cheaper choice, as it nearly always is, without promising the best case.
pub const SPOT_PERCENT_OF_ON_DEMAND: i64 = 40;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkFigures {
    pub bandwidth_megabits: Option<i64>,
    /// Branch interfaces of a type that supports trunking (`vpc.amazonaws.com/pod-eni`).
    pub branch_interfaces: Option<i64>,
    /// Interfaces of the default network card, where the published number is another than the one of the facts.
    pub default_card_interfaces: Option<i64>,
}

/// On-demand prices of one region.
#[derive(Debug)]
pub struct OnDemandPrices {
    /// The region they were published for.
    pub region: &'static str,
    /// `2026-07-06`
    pub date: &'static str,
    prices: BTreeMap<&'static str, HourlyPrice>,
}

impl OnDemandPrices {
    /// The prices of this region, or of [`FALLBACK_PRICE_REGION`] where there is no table.
    pub fn of_region(region: &str) -> &'static Self {
        static TABLES: OnceLock<Vec<OnDemandPrices>> = OnceLock::new();
        static NONE: OnDemandPrices = OnDemandPrices { region: "", date: "", prices: BTreeMap::new() };
        let tables = TABLES.get_or_init(|| ON_DEMAND_PRICES.iter().map(|(region, text)| parse(region, text)).collect());
        let table = |name: &str| tables.iter().find(|table| table.region == name);
        table(region).or_else(|| table(FALLBACK_PRICE_REGION)).unwrap_or(&NONE)
    }

    pub fn get(&self, instance_type: &str) -> Option<HourlyPrice> {
        self.prices.get(instance_type).copied()
    }
}

/// The spot price that is assumed for an on-demand price.
pub fn assumed_spot_price(on_demand: HourlyPrice) -> HourlyPrice {
    HourlyPrice::from_nanodollars(on_demand.nanodollars() / 100 * SPOT_PERCENT_OF_ON_DEMAND)
}

pub fn network(instance_type: &str) -> NetworkFigures {
    static FIGURES: OnceLock<BTreeMap<&'static str, NetworkFigures>> = OnceLock::new();
    let figures = FIGURES.get_or_init(|| {
        rows(NETWORK)
            .map(|row| {
                let number = |column: usize| row.get(column).and_then(|text| text.parse().ok());
                let figures = NetworkFigures {
                    bandwidth_megabits: number(1),
                    branch_interfaces: number(2),
                    default_card_interfaces: number(3),
                };
                (row.first().copied().unwrap_or_default(), figures)
            })
            .collect()
    });
    figures.get(instance_type).copied().unwrap_or_default()
}

fn parse(region: &'static str, text: &'static str) -> OnDemandPrices {
    let date = text.lines().find_map(|line| line.strip_prefix("# date: ")).unwrap_or_default();
    let prices = rows(text)
        .filter_map(|row| {
            let price = row.get(1)?.parse().ok().and_then(HourlyPrice::from_dollars)?;
            Some((*row.first()?, price))
        })
        .collect();
    OnDemandPrices { region, date, prices }
}

pub(super) fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_price_tables_is_read() {
        for (region, text) in ON_DEMAND_PRICES {
            let table = OnDemandPrices::of_region(region);
            assert_eq!(table.region, region);
            assert_eq!(table.prices.len(), rows(text).count(), "{region}: a row is malformed or there twice");
            assert!(table.prices.values().all(|price| *price > HourlyPrice::ZERO));
            assert!(table.date.parse::<jiff::civil::Date>().is_ok(), "{region}: {}", table.date);
        }
    }

    #[test]
    fn every_row_of_the_network_table_is_read() {
        for row in rows(NETWORK) {
            assert!(matches!(row.len(), 3 | 4), "{row:?}");
            let figures = network(row[0]);
            assert_eq!(figures.bandwidth_megabits.map(|number| number.to_string()).unwrap_or_default(), row[1]);
            assert_eq!(figures.branch_interfaces.map(|number| number.to_string()).unwrap_or_default(), row[2]);
            assert_eq!(
                figures.default_card_interfaces.map(|number| number.to_string()).as_deref(),
                row.get(3).copied()
            );
        }
    }

    #[test]
    fn a_region_without_a_table_has_the_prices_of_the_fallback() {
        assert_eq!(OnDemandPrices::of_region("eu-west-1").region, FALLBACK_PRICE_REGION);
    }

    #[test]
    fn spot_is_a_share_of_on_demand() {
        let price = HourlyPrice::from_dollars(0.308).unwrap();
        assert_eq!(assumed_spot_price(price), HourlyPrice::from_dollars(0.1232).unwrap());
    }
}
