//! Reading a catalog from a file, and refusing one that no plan should be made from.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::model::HourlyPrice;
use cutlist_api::keys;

use super::{Catalog, FORMAT_VERSION, Offering};

#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("the catalog is not JSON of the published form (schemas/catalog.json)")]
    Syntax(#[source] serde_json::Error),
    #[error("the catalog is of version {found}, and this program reads version {FORMAT_VERSION}")]
    Version { found: u64 },
    #[error("the catalog has no instance types")]
    NoInstanceTypes,
    #[error("the catalog has an instance type without a name: entry {number} of instanceTypes")]
    NoName { number: usize },
    #[error("the catalog has instance type `{name}` twice")]
    Duplicate { name: String },
    #[error("instance type `{instance_type}`: offering {number} has no {field}")]
    IncompleteOffering { instance_type: String, number: usize, field: &'static str },
    #[error("instance type `{instance_type}`: offering {number} ({zone}, {capacity_type}) is there twice")]
    DuplicateOffering { instance_type: String, number: usize, zone: String, capacity_type: String },
    #[error("instance type `{instance_type}`: offering {number} has the negative price {price}")]
    NegativePrice { instance_type: String, number: usize, price: HourlyPrice },
    #[error("instance type `{instance_type}` has the negative {resource} {amount}")]
    NegativeAmount { instance_type: String, resource: String, amount: i64 },
    #[error("the catalog's date `{0}` is not a date such as 2026-11-20")]
    Date(String),
    #[error("the catalog's pricesAsked has `{0}`, which is not a time such as 2026-11-20T09:00:00Z")]
    PricesAsked(String),
}

impl Catalog {
    /// Reads a catalog in the published form. Instance types are sorted by name, offerings by zone and capacity type.
    pub fn parse(bytes: impl AsRef<[u8]>) -> Result<Self, CatalogError> {
        let bytes = bytes.as_ref();
        // The version comes first: a later one may not have the fields of this one.
        #[derive(Deserialize)]
        struct Versioned {
            version: u64,
        }
        let Versioned { version } = serde_json::from_slice(bytes).map_err(CatalogError::Syntax)?;
        if version != u64::from(FORMAT_VERSION) {
            return Err(CatalogError::Version { found: version });
        }
        let mut catalog: Self = serde_json::from_slice(bytes).map_err(CatalogError::Syntax)?;
        catalog.check()?;
        catalog.instance_types.sort_by(|one, other| one.name.cmp(&other.name));
        for instance_type in &mut catalog.instance_types {
            let order = |it: &Offering| (it.zone.clone(), it.capacity_type.clone(), it.reservation_id.clone());
            instance_type.offerings.sort_by_cached_key(order);
        }
        Ok(catalog)
    }

    fn check(&self) -> Result<(), CatalogError> {
        if self.date.parse::<jiff::civil::Date>().is_err() {
            return Err(CatalogError::Date(self.date.clone()));
        }
        let asked = self.prices_asked.iter().flat_map(|asked| asked.on_demand.iter().chain(&asked.spot));
        for text in asked {
            if text.parse::<jiff::Timestamp>().is_err() {
                return Err(CatalogError::PricesAsked(text.clone()));
            }
        }
        if self.instance_types.is_empty() {
            return Err(CatalogError::NoInstanceTypes);
        }
        let mut names = BTreeSet::new();
        for (index, instance_type) in self.instance_types.iter().enumerate() {
            if instance_type.name.is_empty() {
                return Err(CatalogError::NoName { number: index + 1 });
            }
            if !names.insert(&instance_type.name) {
                return Err(CatalogError::Duplicate { name: instance_type.name.clone() });
            }
            instance_type.check_amounts()?;
            instance_type.check_offerings()?;
        }
        Ok(())
    }
}

impl super::InstanceType {
    fn check_amounts(&self) -> Result<(), CatalogError> {
        match self.capacity.iter().chain(self.overhead.iter()).find(|(_, amount)| *amount < 0) {
            None => Ok(()),
            Some((resource, amount)) => Err(CatalogError::NegativeAmount {
                instance_type: self.name.clone(),
                resource: resource.to_owned(),
                amount,
            }),
        }
    }

    fn check_offerings(&self) -> Result<(), CatalogError> {
        let mut seen = BTreeSet::new();
        for (index, offering) in self.offerings.iter().enumerate() {
            let (instance_type, number) = (self.name.clone(), index + 1);
            for (field, value) in [("zone", &offering.zone), ("capacityType", &offering.capacity_type)] {
                if value.is_empty() {
                    return Err(CatalogError::IncompleteOffering { instance_type, number, field });
                }
            }
            if offering.price < HourlyPrice::ZERO {
                return Err(CatalogError::NegativePrice { instance_type, number, price: offering.price });
            }
            if offering.capacity_type == keys::RESERVED && offering.reservation_id.is_none() {
                return Err(CatalogError::IncompleteOffering { instance_type, number, field: "reservationId" });
            }
            let (zone, capacity_type) = (offering.zone.clone(), offering.capacity_type.clone());
            if !seen.insert((&offering.zone, &offering.capacity_type, &offering.reservation_id)) {
                return Err(CatalogError::DuplicateOffering { instance_type, number, zone, capacity_type });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn catalog() -> Value {
        let instance_type = |name: &str| {
            json!({ "name": name, "requirements": {}, "capacity": { "cpu": "2" }, "overhead": { "cpu": "70m" },
                "offerings": [{ "zone": "b", "capacityType": "spot", "price": 0.1 },
                    { "zone": "a", "capacityType": "on-demand", "price": 0.2, "available": false }] })
        };
        json!({ "version": 1, "region": "r", "date": "2026-11-20",
            "instanceTypes": [instance_type("z.large"), instance_type("a.large")] })
    }

    fn error(change: impl FnOnce(&mut Value)) -> String {
        let mut value = catalog();
        change(&mut value);
        Catalog::parse(value.to_string()).unwrap_err().to_string()
    }

    #[test]
    fn sorts_by_name_and_zone() {
        let catalog = Catalog::parse(catalog().to_string()).unwrap();
        let names: Vec<&str> = catalog.instance_types.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["a.large", "z.large"]);
        let [first, second] = catalog.instance_types[0].offerings.as_slice() else { panic!("two offerings") };
        assert_eq!((first.zone.as_str(), first.available), ("a", false));
        assert_eq!((second.zone.as_str(), second.available), ("b", true), "available unless it says otherwise");
    }

    #[test]
    fn says_what_is_wrong() {
        let offering =
            |value: &mut Value, field: &str, new: Value| value["instanceTypes"][0]["offerings"][0][field] = new;
        let version = error(|value| value["version"] = json!(2));
        assert_eq!(version, "the catalog is of version 2, and this program reads version 1");
        assert_eq!(error(|value| value["instanceTypes"] = json!([])), "the catalog has no instance types");
        let twice = error(|value| value["instanceTypes"][1]["name"] = json!("z.large"));
        assert_eq!(twice, "the catalog has instance type `z.large` twice");
        let price = error(|value| offering(value, "price", json!(-0.1)));
        assert_eq!(price, "instance type `z.large`: offering 1 has the negative price -$0.1000/h");
        let zone = error(|value| offering(value, "zone", json!("")));
        assert_eq!(zone, "instance type `z.large`: offering 1 has no zone");
        let date = error(|value| value["date"] = json!("yesterday"));
        assert_eq!(date, "the catalog's date `yesterday` is not a date such as 2026-11-20");
        let asked = error(|value| value["pricesAsked"] = json!({ "spot": "lately" }));
        assert_eq!(asked, "the catalog's pricesAsked has `lately`, which is not a time such as 2026-11-20T09:00:00Z");
        let amount = error(|value| value["instanceTypes"][0]["overhead"]["cpu"] = json!("-1"));
        assert_eq!(amount, "instance type `z.large` has the negative cpu -1000");
        let offerings = error(|value| {
            let first = value["instanceTypes"][0]["offerings"][0].clone();
            value["instanceTypes"][0]["offerings"][1] = first;
        });
        assert_eq!(offerings, "instance type `z.large`: offering 2 (b, spot) is there twice");
        let reserved = error(|value| offering(value, "capacityType", json!("reserved")));
        assert_eq!(reserved, "instance type `z.large`: offering 1 has no reservationId");
    }

    #[test]
    fn a_zone_may_have_several_reservations() {
        let mut value = catalog();
        let reserved = |id: &str| json!({ "zone": "a", "capacityType": "reserved", "price": 0, "reservationId": id, "availableInstanceCount": 2 });
        value["instanceTypes"][0]["offerings"] = json!([reserved("cr-2"), reserved("cr-1")]);
        let catalog = Catalog::parse(value.to_string()).unwrap();
        let ids = catalog.instance_types[1].offerings.iter().map(|offering| offering.reservation_id.as_deref());
        assert_eq!(ids.collect::<Vec<_>>(), [Some("cr-1"), Some("cr-2")]);
    }

    #[test]
    fn hostile_text_is_an_error() {
        for text in ["", "null", "[]", "{\"version\":1}", "{\"version\":-1}", "\u{0}", "{\"version\":1e400}"] {
            assert!(matches!(Catalog::parse(text), Err(CatalogError::Syntax(_))), "{text}");
        }
        let infinite = catalog().to_string().replace("0.1", "1e999");
        assert!(matches!(Catalog::parse(infinite), Err(CatalogError::Syntax(_))));
        let nested = "[".repeat(100_000);
        assert!(matches!(Catalog::parse(nested), Err(CatalogError::Syntax(_))));
    }

    #[test]
    fn the_built_in_catalog_survives_its_own_form() {
        let built_in = Catalog::built_in("ap-northeast-2").unwrap();
        let text = serde_json::to_string(&built_in).unwrap();
        assert_eq!(Catalog::parse(text).unwrap(), built_in);
    }
}
