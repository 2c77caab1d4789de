//! How often AWS is asked, and what comes of pages and of reads that are stale.

use std::collections::{BTreeMap, BTreeSet};

use cutlist::adapters::aws::api::account::InstanceProfile;
use cutlist::adapters::aws::facts;
use cutlist::adapters::aws::instances::{by_ids, list, of_launches};
use cutlist::adapters::aws::resolution::Resolver;
use cutlist::adapters::aws::resolution::instance_profile::{Wanted, wanted};
use cutlist::api::ec2_node_class::EC2NodeClass;
use serde_json::{Value, json};

use super::account::{Account, Things};
use super::{at, block_on, identity};

fn class(name: &str, spec: Value) -> EC2NodeClass {
    let mut all = json!({ "role": "nodes", "amiSelectorTerms": [{ "alias": "al2023@latest" }],
        "subnetSelectorTerms": [{ "tags": { "team": name } }], "securityGroupSelectorTerms": [{ "tags": { "team": name } }] });
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let value = json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": { "name": name, "generation": 1 }, "spec": all });
    serde_json::from_value(value).unwrap()
}

/// Two families of images, and selectors that differ from class to class.
fn ten_classes() -> Vec<EC2NodeClass> {
    (0..10)
        .map(|number: u32| {
            let family = if number.is_multiple_of(2) { "al2023@latest" } else { "bottlerocket@v1.46.0" };
            class(&format!("class-{number}"), json!({ "amiSelectorTerms": [{ "alias": family }] }))
        })
        .collect()
}

fn account() -> Account {
    let parameters = |path: &str| -> BTreeMap<String, String> {
        ["x86_64", "arm64"]
            .iter()
            .flat_map(|architecture| {
                ["standard", "nvidia", "neuron"].map(|variant| {
                    let name = format!("{path}/{architecture}/{variant}/recommended/image_id");
                    (name, format!("ami-{architecture}-{variant}"))
                })
            })
            .collect()
    };
    let cluster = json!({ "endpoint": "https://demo", "certificateAuthority": "Y2E=", "version": "1.34",
        "serviceIpv4Cidr": "172.20.0.0/16" });
    Account::new(Things {
        cluster: serde_json::from_value(cluster).unwrap(),
        parameters: parameters("/aws/service/eks/optimized-ami/1.34/amazon-linux-2023"),
        ..Things::default()
    })
}

#[test]
fn ten_idle_classes_cost_few_calls() {
    let (account, classes) = (account(), ten_classes());
    let mut resolver = Resolver::new(identity());
    block_on(async {
        // The first look asks for everything.
        resolver.refresh(&account, &classes, true, at(0)).await;
        account.take_calls();
        let mut by_minute = Vec::new();
        for minute in 0..60 {
            for second in (10..=60).step_by(10) {
                resolver.refresh(&account, &classes, true, at(minute * 60 + second)).await;
            }
            by_minute.push(account.take_calls().len());
        }
        let total: usize = by_minute.iter().sum();
        // Beside these are the list of instances, and their statuses: 3.5 a minute.
        assert!(total <= 60 * 4, "{total} calls in an hour: {by_minute:?}");
    });
}

#[test]
fn a_further_class_of_a_known_kind_costs_its_profile_alone() {
    let account = account();
    let mut classes = ten_classes();
    let mut resolver = Resolver::new(identity());
    block_on(async {
        resolver.refresh(&account, &classes, true, at(0)).await;
        account.take_calls();
        classes.push(class("further", json!({ "role": "others" })));
        resolver.refresh(&account, &classes, true, at(1)).await;
        let calls = account.take_calls();
        assert!(calls.len() == 3 && calls.iter().all(|call| call.starts_with("iam:")), "{calls:?}");
    });
}

#[test]
fn stale_reads_of_iam_make_one_profile() {
    let (account, classes) = (account(), [class("default", json!({}))]);
    account.iam_is_stale.set(true);
    block_on(async {
        let mut resolver = Resolver::new(identity());
        for look in 0..1_000 {
            // Every hundredth look is that of another process.
            if look % 100 == 0 {
                resolver = Resolver::new(identity());
            }
            resolver.refresh(&account, &classes, true, at(look * 901)).await;
            let facts = resolver.facts(&classes[0], at(look * 901));
            assert!(facts.instance_profile.value().unwrap().is_some(), "look {look}");
        }
        let profiles = account.profiles.borrow();
        let made: Vec<&InstanceProfile> = profiles.values().collect();
        assert_eq!((made.len(), made[0].roles.as_slice()), (1, ["nodes".to_owned()].as_slice()));
    });
}

#[test]
fn a_profile_gets_its_role_back_and_one_of_somebody_else_is_left_alone() {
    let (account, class) = (account(), class("default", json!({})));
    let Wanted::Managed(managed) = wanted(&identity(), &class) else { panic!("it has a role") };
    let name = managed.profile.name.clone();
    let put = |tags: BTreeMap<String, String>| {
        let profile = InstanceProfile {
            name: name.clone(),
            path: "/".to_owned(),
            roles: vec!["other".to_owned()],
            tags,
            created_at: None,
        };
        account.profiles.borrow_mut().insert(name.clone(), profile);
    };
    let classes = [class];
    block_on(async {
        put(managed.profile.tags.clone());
        let mut resolver = Resolver::new(identity());
        resolver.refresh(&account, &classes, true, at(0)).await;
        assert_eq!(account.profiles.borrow()[&name].roles, ["nodes"]);
        put(BTreeMap::new());
        let mut resolver = Resolver::new(identity());
        resolver.refresh(&account, &classes, true, at(0)).await;
        assert_eq!(account.profiles.borrow()[&name].roles, ["other"]);
        let facts = resolver.facts(&classes[0], at(0));
        assert_eq!(facts.instance_profile.value(), None);
        assert!(facts.instance_profile.trouble_text().unwrap().contains("belongs to somebody else"));
    });
}

#[test]
fn nothing_is_made_by_who_may_only_look() {
    let (account, classes) = (account(), [class("default", json!({}))]);
    let mut resolver = Resolver::new(identity());
    block_on(resolver.refresh(&account, &classes, false, at(0)));
    assert!(account.profiles.borrow().is_empty());
    assert_eq!(resolver.facts(&classes[0], at(0)).instance_profile.value(), Some(&None));
}

fn instances(number: usize) -> Vec<Value> {
    let instance = |number: usize| {
        json!({ "id": format!("i-{number:04}"), "state": if number.is_multiple_of(10) { "terminated" } else { "running" },
            "instanceType": "m5.large", "zone": "us-east-1a", "imageId": "ami-1", "launchedAt": at(0).to_string(),
            "tags": { "karpenter.sh/nodepool": "general", "karpenter.k8s.aws/ec2nodeclass": "default",
                "eks:eks-cluster-name": if number.is_multiple_of(2) { "demo" } else { "other" }, "cutlist.dev/launch": format!("l-{}", number % 500) } })
    };
    (0..number).map(instance).collect()
}

#[test]
fn every_page_of_instances_is_followed() {
    let things = Things { instances: serde_json::from_value(instances(1_000).into()).unwrap(), ..Things::default() };
    let account = Account::new(things);
    for page in [(100, false), (100, true), (7, true), (1_000, false)] {
        account.page.set(page);
        let found = block_on(list(&account, &identity())).unwrap();
        assert_eq!(found.len(), 400, "half of them, without those that have ended; pages of {page:?}");
    }
    account.page.set((100, false));
    account.take_calls();
    let ids: BTreeSet<String> = (0..500).map(|number| format!("i-{number:04}")).chain(["i-gone".to_owned()]).collect();
    assert_eq!(block_on(by_ids(&account, &ids)).unwrap().len(), 500, "also those that have ended");
    assert_eq!(account.take_calls().len(), 2 + 2 + 1, "200 ids a call, 100 instances a page");
    let launches = BTreeSet::from(["l-3".to_owned(), "l-4".to_owned()]);
    assert_eq!(block_on(of_launches(&account, &launches)).unwrap().len(), 4);
    account.failures.borrow_mut().insert("ec2:DescribeInstances".to_owned(), "RequestLimitExceeded".to_owned());
    assert!(block_on(list(&account, &identity())).is_err(), "a list that breaks off is no list");
}

#[test]
fn the_catalog_of_a_region_is_read_page_by_page_without_zones_to_opt_in_to() {
    let types = ["m5.large", "m5.xlarge", "c5.large"].map(|name| json!({ "name": name, "vcpus": 2, "memoryMebibytes": 8_192,
        "architectures": ["x86_64"], "usageClasses": ["on-demand"], "network": { "interfacesPerCard": [3], "ipv4AddressesPerInterface": 10 } }));
    let things = json!({
        "zones": [{ "name": "us-east-1a", "id": "use1-az6", "isOrdinary": true }, { "name": "us-east-1-bos-1a", "id": "use1-bos1-az1", "isOrdinary": false }],
        "instanceTypes": types, "offerings": { "m5.large": ["us-east-1a", "us-east-1-bos-1a"], "c5.large": ["us-east-1-bos-1a"] } });
    let account = Account::new(serde_json::from_value(things).unwrap());
    account.page.set((1, true));
    let connect = async |_: &str| {
        let again = Account::new(account.things.borrow().clone());
        again.page.set((1, true));
        again
    };
    let facts = block_on(facts::read(&account, connect, |_| {})).unwrap();
    let zones: Vec<&str> = facts.zones.iter().map(|zone| zone.name.as_str()).collect();
    assert_eq!(zones, ["us-east-1a"]);
    let offered: Vec<(&str, usize)> =
        facts.instance_types.iter().map(|it| (it.name.as_str(), it.zones.len())).collect();
    assert_eq!(offered, [("c5.large", 0), ("m5.large", 1), ("m5.xlarge", 0)]);
}
