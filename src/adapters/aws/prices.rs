//! Prices as EC2 and the Price List say them. Source: reference, section 6.4, and Karpenter's `pkg/providers/pricing`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::api::network::SpotPrice;
use super::api::{Action, ApiError, Ec2Api, Filter, pages};
use super::failures::FailureClass;
use crate::core::model::HourlyPrice;

/// Dollars, and what is paid in China.
const CURRENCIES: [&str; 2] = ["USD", "CNY"];

/// How the names of regions begin whose accounts the Price List does not answer: GovCloud, the isolated partitions, and the European sovereign
/// cloud. Source: reference, section 6.4; AWS's list of partitions.
const WITHOUT_PRICE_LIST: [&str; 4] = ["us-gov-", "us-iso", "eu-isoe-", "eusc-"];

/// On demand by instance type.
pub type OnDemand = BTreeMap<String, HourlyPrice>;

/// Spot by instance type and zone.
pub type Spot = BTreeMap<(String, String), HourlyPrice>;

/// On-demand prices of Linux without software: on shared machines, and of bare metal, which is never shared.
pub async fn on_demand(api: &impl Ec2Api, region: &str) -> Result<OnDemand, ApiError> {
    if WITHOUT_PRICE_LIST.iter().any(|begin| region.starts_with(begin)) {
        // Asked elsewhere, it would say that it does not know the key, as if something were wrong with that.
        let message = format!("there is no Price List for accounts of the partition of {region}");
        let (action, class, code) = (Action::GetProducts, FailureClass::NotFound, "NoPriceList".to_owned());
        return Err(ApiError { action, class, code, message });
    }
    let mut prices = OnDemand::new();
    for (tenancy, family) in [("Dedicated", "Compute Instance (bare metal)"), ("Shared", "Compute Instance")] {
        let filters = [
            ("regionCode", region),
            ("operatingSystem", "Linux"),
            ("preInstalledSw", "NA"),
            ("capacitystatus", "Used"),
            ("marketoption", "OnDemand"),
            ("serviceCode", "AmazonEC2"),
            ("tenancy", tenancy),
            ("productFamily", family),
        ];
        let filters = filters.map(|(name, value)| Filter::new(name, [value]));
        let ask = async |page: Option<String>| api.get_products(&filters, page.as_deref()).await;
        for product in pages::all(Action::GetProducts, ask).await? {
            prices.extend(price_of(&product));
        }
    }
    Ok(prices)
}

/// A product of the Price List, as far as it matters.
#[derive(Debug, Deserialize)]
struct Product {
    product: Attributed,
    terms: Terms,
}

#[derive(Debug, Deserialize)]
struct Attributed {
    attributes: Attributes,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attributes {
    instance_type: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Terms {
    on_demand: BTreeMap<String, Term>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    price_dimensions: BTreeMap<String, Dimension>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dimension {
    unit: String,
    price_per_unit: BTreeMap<String, String>,
}

/// The type and its price; nothing of a product that has none for an hour, such as one that is free.
fn price_of(product: &str) -> Option<(String, HourlyPrice)> {
    let Product { product, terms } = serde_json::from_str(product).ok()?;
    let dimensions = terms.on_demand.values().flat_map(|term| term.price_dimensions.values());
    let by_hour = dimensions.filter(|dimension| dimension.unit == "Hrs");
    let price = |dimension: &Dimension| {
        let text = CURRENCIES.iter().find_map(|currency| dimension.price_per_unit.get(*currency))?;
        HourlyPrice::from_dollars(text.parse().ok()?).filter(|price| *price > HourlyPrice::ZERO)
    };
    Some((product.attributes.instance_type, by_hour.filter_map(price).max()?))
}

/// Whether spot prices come in another currency than that of the prices in the binary.
pub fn is_of_another_currency(region: &str) -> bool {
    region.starts_with("cn-")
}

/// Spot prices of this moment; of several for one type and zone the one since last.
pub async fn spot(api: &impl Ec2Api, now: Timestamp) -> Result<Spot, ApiError> {
    let ask = async |page: Option<String>| api.describe_spot_price_history(now, page.as_deref()).await;
    Ok(latest(pages::all(Action::DescribeSpotPriceHistory, ask).await?))
}

fn latest(mut prices: Vec<SpotPrice>) -> Spot {
    prices.sort_by_key(|price| price.since);
    prices.into_iter().map(|price| ((price.instance_type, price.zone), price.price)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_have_prices_in_two_currencies() {
        let product = |unit: &str, prices: &str| {
            format!(
                r#"{{"product":{{"productFamily":"Compute Instance","attributes":{{"instanceType":"m5.large","vcpu":"2"}},"sku":"S"}},
                "serviceCode":"AmazonEC2","terms":{{"OnDemand":{{"S.T":{{"priceDimensions":{{"S.T.D":{{"unit":"{unit}",
                "pricePerUnit":{prices},"description":"x"}}}},"sku":"S"}}}}}},"version":"1"}}"#
            )
        };
        let of =
            |unit: &str, prices: &str| price_of(&product(unit, prices)).map(|(name, price)| (name, price.dollars()));
        assert_eq!(of("Hrs", r#"{"USD":"0.0960000000"}"#), Some(("m5.large".to_owned(), 0.096)));
        assert_eq!(of("Hrs", r#"{"CNY":"0.7"}"#), Some(("m5.large".to_owned(), 0.7)));
        for nothing in [of("Hrs", r#"{"USD":"0.0"}"#), of("Quantity", r#"{"USD":"1"}"#), of("Hrs", r#"{"EUR":"1"}"#)] {
            assert_eq!(nothing, None);
        }
        assert_eq!(price_of("{}"), None);
    }

    #[test]
    fn the_latest_price_counts() {
        let price = |second: i64, nanodollars: i64| SpotPrice {
            instance_type: "m5.large".to_owned(),
            zone: "us-east-1a".to_owned(),
            price: HourlyPrice::from_nanodollars(nanodollars),
            since: Timestamp::from_second(second).unwrap(),
        };
        let found = latest(vec![price(2, 20), price(3, 30), price(1, 10)]);
        assert_eq!(found.into_values().collect::<Vec<_>>(), [HourlyPrice::from_nanodollars(30)]);
    }
}
