//! The catalog of the region as it is now: what is sold, for what, how old that is, and what stands in where it may not be asked for.

use std::sync::Arc;

use cutlist::adapters::aws::catalog::{About, LiveCatalog, pull};
use cutlist::core::catalog::{Catalog, Offering};
use serde_json::json;

use super::account::Account;
use super::{at, block_on};

fn account() -> Account {
    let instance_type = |name: &str| {
        json!({ "name": name, "vcpus": 2, "memoryMebibytes": 8_192, "architectures": ["x86_64"],
            "usageClasses": ["on-demand", "spot"], "network": { "interfacesPerCard": [3], "ipv4AddressesPerInterface": 10 } })
    };
    let product = |name: &str, dollars: &str| {
        json!({ "product": { "attributes": { "instanceType": name } }, "terms": { "OnDemand": { "t": { "priceDimensions": {
            "d": { "unit": "Hrs", "pricePerUnit": { "USD": dollars } } } } } } })
    };
    let zones = ["us-east-1a", "us-east-1b"];
    let things = json!({
        "zones": [{ "name": "us-east-1a", "id": "use1-az2", "isOrdinary": true }, { "name": "us-east-1b", "id": "use1-az4", "isOrdinary": true }],
        "instanceTypes": (["m99.large", "m99.metal", "m99.free"].map(instance_type)),
        "offerings": { "m99.large": zones, "m99.metal": ["us-east-1a"], "m99.free": zones },
        "products": [product("m99.large", "0.1"), product("m99.metal", "5"), product("m99.free", "0")],
        "spotPrices": [["m99.large", "us-east-1a", 0.03], ["m99.metal", "us-east-1a", 2.0]],
    });
    let account = Account::new(serde_json::from_value(things).unwrap());
    account.page.set((1, false));
    account
}

fn offerings(catalog: &Catalog, name: &str) -> Vec<String> {
    let one = catalog.instance_types.iter().find(|one| one.name == name).unwrap();
    let text = |it: &Offering| {
        let price = if it.available { it.price.dollars().to_string() } else { "not available".to_owned() };
        format!("{} {} {}", it.zone_id.as_deref().unwrap_or_default(), it.capacity_type, price)
    };
    one.offerings.iter().map(text).collect()
}

fn doubts(live: &LiveCatalog) -> Vec<(About, bool)> {
    live.doubts().into_iter().map(|doubt| (doubt.about, doubt.is_old)).collect()
}

/// When on-demand and spot prices were asked for.
fn asked(catalog: &Catalog) -> [Option<&str>; 2] {
    let asked = catalog.prices_asked.as_ref();
    [asked.and_then(|it| it.on_demand.as_deref()), asked.and_then(|it| it.spot.as_deref())]
}

const ALL: [About; 3] = [About::InstanceTypes, About::OnDemandPrices, About::SpotPrices];

#[test]
fn what_is_sold_has_the_price_of_its_zone() {
    let (account, mut live) = (account(), LiveCatalog::new("us-east-1", "one"));
    block_on(live.refresh(&account, at(0)));
    let catalog = live.catalog().unwrap();
    assert_eq!(catalog.instance_types.len(), 3);
    assert_eq!(catalog.date, "2026-09-01");
    let expected =
        ["use1-az2 on-demand 0.1", "use1-az2 spot 0.03", "use1-az4 on-demand 0.1", "use1-az4 spot not available"];
    assert_eq!(offerings(&catalog, "m99.large"), expected);
    assert_eq!(offerings(&catalog, "m99.metal"), ["use1-az2 on-demand 5", "use1-az2 spot 2"]);
    assert!(
        offerings(&catalog, "m99.free").iter().all(|text| text.ends_with("not available")),
        "nobody says its price"
    );
    assert_eq!(doubts(&live), []);
    assert_eq!(asked(&catalog), [Some("2026-09-01T12:00:00Z"), Some("2026-09-01T12:00:00Z")]);
    assert!(Arc::ptr_eq(&catalog, &live.catalog().unwrap()), "the same one while nothing changed");
}

#[test]
fn spot_prices_are_asked_for_more_often_than_the_rest() {
    let (account, mut live) = (account(), LiveCatalog::new("us-east-1", "one"));
    block_on(live.refresh(&account, at(0)));
    account.take_calls();
    block_on(live.refresh(&account, at(29 * 60)));
    assert!(account.take_calls().is_empty());
    let before = live.catalog().unwrap();
    block_on(live.refresh(&account, at(33 * 60)));
    let calls = account.take_calls();
    assert!(!calls.is_empty() && calls.iter().all(|call| call == "ec2:DescribeSpotPriceHistory"), "{calls:?}");
    let after = live.catalog().unwrap();
    assert!(!Arc::ptr_eq(&before, &after));
    assert_eq!(asked(&after), [Some("2026-09-01T12:00:00Z"), Some("2026-09-01T12:33:00Z")]);
}

#[test]
fn what_may_not_be_asked_for_is_taken_from_the_program_and_said() {
    let (account, mut live) = (account(), LiveCatalog::new("us-east-1", "one"));
    for action in ["pricing:GetProducts", "ec2:DescribeInstanceTypes", "ec2:DescribeSpotPriceHistory"] {
        account.failures.borrow_mut().insert(action.to_owned(), "AccessDenied".to_owned());
    }
    block_on(live.refresh(&account, at(0)));
    assert_eq!(doubts(&live), ALL.map(|about| (about, false)));
    assert!(live.doubts()[1].text.contains("pricing:GetProducts is denied"), "{:?}", live.doubts());
    assert_eq!(*live.catalog().unwrap(), Catalog::built_in("us-east-1").unwrap());
}

#[test]
fn a_failure_or_an_empty_answer_takes_nothing_off_the_market() {
    let (account, mut live) = (account(), LiveCatalog::new("us-east-1", "one"));
    block_on(live.refresh(&account, at(0)));
    let before = live.catalog().unwrap();
    account.things.borrow_mut().instance_types.clear();
    account.things.borrow_mut().products.clear();
    account.failures.borrow_mut().insert("ec2:DescribeSpotPriceHistory".to_owned(), "RequestLimitExceeded".to_owned());
    block_on(live.refresh(&account, at(24 * 3_600)));
    assert_eq!(doubts(&live), ALL.map(|about| (about, true)));
    assert!(Arc::ptr_eq(&before, &live.catalog().unwrap()));
}

/// What is pulled into a file is what EC2 sells; where it does not say that, there is no file, and a price that is taken from the program is
/// named.
#[test]
fn a_pulled_catalog_is_what_ec2_sells() {
    let account = account();
    let (catalog, doubts) = block_on(pull(&account, "us-east-1", at(0))).unwrap();
    assert_eq!((catalog.instance_types.len(), doubts.len()), (3, 0));
    let text = serde_json::to_vec(catalog.as_ref()).unwrap();
    let read = Catalog::parse(text).unwrap();
    assert_eq!(offerings(&read, "m99.large"), offerings(&catalog, "m99.large"), "a plan reads it as it was written");
    account.failures.borrow_mut().insert("pricing:GetProducts".to_owned(), "AccessDenied".to_owned());
    let (_, doubts) = block_on(pull(&account, "us-east-1", at(0))).unwrap();
    assert!(doubts.len() == 1 && doubts[0].contains("pricing:GetProducts is denied"), "{doubts:?}");
    account.failures.borrow_mut().insert("ec2:DescribeInstanceTypes".to_owned(), "UnauthorizedOperation".to_owned());
    let error = block_on(pull(&account, "us-east-1", at(0))).unwrap_err().to_string();
    assert!(error.starts_with("ec2:DescribeInstanceTypes is denied"), "{error}");
}

/// Where the Price List is not served, nobody is asked, and no key is called a wrong one.
#[test]
fn a_partition_without_a_price_list_is_not_asked_for_one() {
    for region in ["us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "eusc-de-east-1"] {
        let (account, mut live) = (account(), LiveCatalog::new(region, "one"));
        block_on(live.refresh(&account, at(0)));
        assert!(!account.take_calls().iter().any(|call| call.starts_with("pricing:")), "{region}");
        assert_eq!(doubts(&live), [(About::OnDemandPrices, false)], "{region}");
        assert!(live.doubts()[0].text.contains("no Price List"), "{:?}", live.doubts());
        assert!(account.tally.denied().is_empty());
    }
}

/// Seven yuan are a dollar: with prices of both, nothing would be bought as spot.
#[test]
fn yuan_are_not_compared_with_dollars() {
    let (account, mut live) = (account(), LiveCatalog::new("cn-north-1", "one"));
    account.things.borrow_mut().zones.iter_mut().for_each(|zone| zone.name = zone.name.replace("us-east", "cn-north"));
    let zones = vec!["cn-north-1a".to_owned(), "cn-north-1b".to_owned()];
    account.things.borrow_mut().offerings.insert("m5.large".to_owned(), zones);
    account.things.borrow_mut().instance_types[0].name = "m5.large".to_owned();
    account.things.borrow_mut().spot_prices = vec![("m5.large".to_owned(), "cn-north-1a".to_owned(), 0.3)];
    account.failures.borrow_mut().insert("pricing:GetProducts".to_owned(), "AccessDenied".to_owned());
    block_on(live.refresh(&account, at(0)));
    let sold = offerings(&live.catalog().unwrap(), "m5.large");
    assert_eq!(
        sold,
        ["use1-az2 on-demand 0.096", "use1-az2 spot 0.0384", "use1-az4 on-demand 0.096", "use1-az4 spot 0.0384"]
    );
    assert_eq!(doubts(&live), [(About::OnDemandPrices, false), (About::SpotPrices, false)]);
    assert!(live.doubts()[1].text.contains("yuan"), "{:?}", live.doubts());
    account.failures.borrow_mut().clear();
    block_on(live.refresh(&account, at(24 * 3_600)));
    assert_eq!(doubts(&live), [(About::OnDemandPrices, false)]);
    assert!(live.doubts()[0].text.starts_with("prices are yuan"), "{:?}", live.doubts());
}
