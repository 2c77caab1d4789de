//! From NodeClaims to what EC2 is asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cutlist::adapters::aws::fleet::{Order, Surroundings, parts, requests};
use cutlist::adapters::aws::launch_templates::tags::{Owner, of_launch};
use cutlist::adapters::aws::launch_templates::{LaunchTemplate, PlacementGroup, Resolved, group};
use cutlist::api::node_claim::NodeClaim;
use cutlist::core::catalog::Catalog;
use cutlist::core::catalog::user_data::Cluster;
use cutlist::core::plan::Alternative;
use cutlist::ports::{LaunchRequest, LaunchRules, Offering};
use serde::Deserialize;
use serde_json::{Value, json};

const INSTALLATION: &str = "main";
const LAUNCH: &str = "0123456789abcdef0123456789abcdef";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    cluster: Cluster,
    region: String,
    subnets: BTreeMap<String, String>,
    alternatives: Vec<Alternative>,
    #[serde(default)]
    in_the_order_of_the_plan: bool,
    #[serde(default)]
    reserves_capacity: bool,
    #[serde(default)]
    placement_group: Option<String>,
}

fn folders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/user_data/launches");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

fn launched(folder: &Path, turned: bool) -> Value {
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let mut class = super::class_of(folder);
    // An example says nothing of what EC2 has.
    if folder.join("status.json").is_file() {
        class.status = serde_json::from_str(&read("status.json")).unwrap();
    }
    let input: Input = serde_json::from_str(&read("input.json")).unwrap();
    let claims = read("node_claims.yaml");
    let claims = serde_yaml::Deserializer::from_str(&claims).map(|it| NodeClaim::deserialize(it).unwrap());
    let mut claims: Vec<NodeClaim> = claims.collect();
    if turned {
        claims.reverse();
        class.status.as_mut().unwrap().security_groups.reverse();
    }
    let mut resolved = Resolved::of(&class, &input.cluster, &input.region);
    resolved.reserves_capacity = input.reserves_capacity;
    resolved.placement_group = input.placement_group.clone().map(|id| PlacementGroup { id, partition: None });
    let types = Catalog::built_in(&input.region).unwrap().instance_types;
    let mut templates: BTreeMap<String, LaunchTemplate> = BTreeMap::new();
    let mut calls = Vec::new();
    let mut left_out = Vec::new();
    let request = LaunchRequest {
        launch_id: LAUNCH,
        installation: INSTALLATION,
        claims: claims.iter().collect(),
        assigned: Vec::new(),
        class: Some(&class),
        images: None,
        alternatives: &input.alternatives,
        rules: LaunchRules::default(),
    };
    for part in parts(&request) {
        let grouped = group(&resolved, &part.specification, &types).unwrap();
        let owner = Owner {
            cluster: &input.cluster.name,
            installation: INSTALLATION,
            node_pool: &part.specification.node_pool,
            node_class: &part.specification.node_class,
        };
        let tags = of_launch(&class.spec.tags, owner).unwrap();
        let order = if input.in_the_order_of_the_plan { Order::Plan } else { Order::Price };
        let surroundings =
            Surroundings { subnets: &input.subnets, order, tags: &tags, context: class.spec.context.as_deref() };
        let made = requests(&part, &grouped.groups, 0, &surroundings);
        let names: Vec<&str> = part.claims.iter().filter_map(|claim| claim.metadata.name.as_deref()).collect();
        calls.push(json!({ "claims": names, "requests": made.requests }));
        left_out.extend(grouped.left_out.iter().map(|(offering, why)| named(offering, &format!("{why:?}"))));
        left_out.extend(made.not_asked.iter().map(|(offering, why)| named(offering, &format!("{why:?}"))));
        templates.extend(grouped.groups.into_iter().map(|group| (group.name, group.template)));
    }
    json!({ "launchTemplates": templates, "calls": calls, "leftOut": left_out })
}

fn named(offering: &Offering, why: &str) -> String {
    format!("{}/{} {}: {why}", offering.instance_type, offering.zone, offering.capacity_type)
}

#[test]
fn ec2_is_asked_for_what_is_expected() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut different = Vec::new();
    for folder in folders() {
        let found = serde_json::to_string_pretty(&launched(&folder, false)).unwrap() + "\n";
        let file = folder.join("expected.json");
        if update {
            std::fs::write(&file, &found).unwrap();
        } else if std::fs::read_to_string(&file).unwrap_or_default() != found {
            different.push(format!("{}\n{found}", file.display()));
        }
    }
    assert!(different.is_empty(), "other launches than expected:\n{}", different.join("\n"));
}

#[test]
fn the_order_of_claims_and_groups_changes_nothing() {
    for folder in folders() {
        assert_eq!(launched(&folder, true), launched(&folder, false), "{}", folder.display());
    }
}
