//! Why a pool has nothing to buy: its requirements, prices that are not known, its class, its zones.

use crate::catalog::matching::{Entry, Matching, UnmatchedRequirements};
use crate::catalog::node_class::NodeClassSettings;
use crate::catalog::regions::SaidBy;
use crate::catalog::vcpu_quotas::VcpuQuota;
use crate::catalog::{InstanceType, Offering};
use crate::inputs::Inputs;
use crate::model::{HourlyPrice, Requirements};
use cutlist_api::keys;
use cutlist_api::node_pool::NodePool;

use super::images::Images;
use super::quotas::Quotas;
use super::subnets::Subnets;

/// Why a pool can launch nothing.
#[derive(Debug)]
pub struct NothingOffered {
    pub text: String,
    /// The requirements, where it is them.
    pub unmatched: Option<UnmatchedRequirements>,
    /// The instance types that would do and have no price in the catalog, where it is that.
    pub without_price: Vec<String>,
    /// Whether it asks for capacity reservations alone.
    pub is_left_to_reservations: bool,
}

/// So many instance types are named.
const TYPES_NAMED_MAX: usize = 5;

impl NothingOffered {
    /// `types`: the catalog as the class of the pool leaves it. O(requirements^2 x types).
    pub fn of(inputs: &Inputs<'_>, pool: &NodePool, types: &[InstanceType]) -> Self {
        let entries = Entry::of_pool(pool);
        let matching = Matching::new(types, &inputs.catalog.region);
        if let Some(unmatched) = matching.unmatched(&entries) {
            let assumed = names_other_regions(inputs, &unmatched).then(|| region_text(inputs)).flatten();
            let text = format!("{}{}", unmatched.text(), assumed.unwrap_or_default());
            return Self { unmatched: Some(unmatched), ..Self::said(text) };
        }
        if let Some(key) = label_without_value(pool) {
            return Self::said(format!("no value of label {key} meets all that it requires of it"));
        }
        if let Some(text) = build_of_no_image(pool, types, &entries) {
            return Self::said(text);
        }
        if let Some(text) = reservations_alone(pool, &entries) {
            return Self { is_left_to_reservations: true, ..Self::said(text) };
        }
        let relevant = matching.relevant(&entries);
        let found: Vec<&InstanceType> = matching.types(&relevant).iter().collect();
        let allowed = |it: &&Offering| relevant.iter().all(|entry| entry.allows_offering(it).unwrap_or(true));
        let offered = |it: &InstanceType| it.offerings.iter().filter(allowed).any(|offering| offering.available);
        let sold = |name: &str| inputs.catalog.instance_types.iter().find(|it| it.name == name);
        let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
        // What has no price is not available, as in the reference.
        let unpriced = |it: &InstanceType| {
            it.offerings.iter().filter(allowed).all(|it| !it.available && it.price == HourlyPrice::ZERO)
        };
        let (text, without_price) = if found.iter().any(|it| offered(it)) {
            let with_room = if has_full_zone(inputs, pool) { " with free addresses" } else { "" };
            (format!("{} match, but in no zone that has a subnet{with_room}", named_types(&names)), Vec::new())
        } else if !names.is_empty() && names.iter().filter_map(|name| sold(name)).all(unpriced) {
            let text = format!(
                "only {} match, which have no price in the catalog of {}: what it costs is not known, so it is not chosen",
                named_types(&names),
                inputs.catalog.date
            );
            (text, names.iter().map(|name| (*name).to_owned()).collect())
        } else if names.is_empty() {
            ("its requirements match no instance type that is offered".to_owned(), Vec::new())
        } else if !launchable(inputs, pool, &names) {
            let class = &pool.spec.template.spec.node_class_ref.name;
            (format!("only {} match, which its EC2NodeClass {class} can not launch", named_types(&names)), Vec::new())
        } else if let Some(class) = class_without_image(inputs, pool, &found) {
            (format!("only {} match, which EC2NodeClass {class} has no image for", named_types(&names)), Vec::new())
        } else if let Some(quota) = quota_in_the_way(inputs, &found, allowed) {
            let text = format!(
                "only {} match, for which the quota {} {} is too small",
                named_types(&names),
                quota.name,
                quota.code
            );
            (text, Vec::new())
        } else {
            (format!("only {} match, for which EC2 has no capacity now", named_types(&names)), Vec::new())
        };
        Self { without_price, ..Self::said(text) }
    }

    fn said(text: String) -> Self {
        Self { text, unmatched: None, without_price: Vec::new(), is_left_to_reservations: false }
    }
}

/// A label of which the requirements and labels of the pool leave no value that a node could have.
fn label_without_value(pool: &NodePool) -> Option<String> {
    let template = &pool.spec.template;
    let mut requirements = Requirements::from_entries(&template.spec.requirements);
    requirements.extend(&Requirements::from_labels(&template.metadata.labels));
    requirements.iter().find(|(_, requirement)| !requirement.can_be_met()).map(|(key, _)| key.to_owned())
}

/// A build of Windows, which no instance type has by itself, and which is none of the images of the class.
fn build_of_no_image(pool: &NodePool, types: &[InstanceType], entries: &[Entry]) -> Option<String> {
    let class = &pool.spec.template.spec.node_class_ref.name;
    let is_of_no_image = |entry: &&Entry| {
        entry.key == keys::WINDOWS_BUILD && !types.iter().any(|instance_type| entry.allows_type(instance_type))
    };
    let entry = entries.iter().find(is_of_no_image)?;
    Some(format!("its requirement {} matches nothing: EC2NodeClass {class} has no such images", entry.text()))
}

/// Capacity reservations, which the class has to select. Nodes for those are offered apart.
fn reservations_alone(pool: &NodePool, entries: &[Entry]) -> Option<String> {
    let class = &pool.spec.template.spec.node_class_ref.name;
    let text = entries.iter().find(|entry| entry.is_of_reservations())?.text();
    Some(format!(
        "its requirement {text} matches nothing but capacity reservations that EC2NodeClass {class} selects, and nothing can be launched into those"
    ))
}

/// Whether the class of the pool has a zone that is left out because its subnets are full.
fn has_full_zone(inputs: &Inputs<'_>, pool: &NodePool) -> bool {
    let name = Some(&pool.spec.template.spec.node_class_ref.name);
    let class = inputs.node_classes.iter().find(|it| it.metadata.name.as_ref() == name);
    class.is_some_and(|class| !Subnets::of(inputs, class).full().is_empty())
}

/// Whether the class leaves any of these types as the catalog offers it.
fn launchable(inputs: &Inputs<'_>, pool: &NodePool, names: &[&str]) -> bool {
    let name = Some(&pool.spec.template.spec.node_class_ref.name);
    let Some(class) = inputs.node_classes.iter().find(|it| it.metadata.name.as_ref() == name) else { return false };
    let settings = NodeClassSettings::read(&class.spec).0;
    let mut sold = inputs.catalog.instance_types.iter().filter(|it| names.contains(&it.name.as_str()));
    sold.any(|it| settings.apply(it).offerings.iter().any(|offering| offering.available))
}

/// The class of the pool, where it is known which images it has, and that none of them is for any of these types.
fn class_without_image<'p>(inputs: &Inputs<'_>, pool: &'p NodePool, found: &[&InstanceType]) -> Option<&'p str> {
    let name = &pool.spec.template.spec.node_class_ref.name;
    let class = inputs.node_classes.iter().find(|it| it.metadata.name.as_ref() == Some(name))?;
    (Images::of(inputs, class).lacking(found.iter().copied()).len() == found.len()).then_some(name)
}

fn names_other_regions(inputs: &Inputs<'_>, unmatched: &UnmatchedRequirements) -> bool {
    let of_place = |key: &str| matches!(key, keys::ZONE | keys::ZONE_ID | keys::REGION);
    let named = unmatched.match_nothing.iter().filter(|it| of_place(&it.key)).flat_map(|it| &it.values);
    let mut regions = named.map(|value| crate::catalog::regions::of_zone(value).unwrap_or(value));
    regions.any(|region| region != inputs.catalog.region)
}

/// Who says that the plan is for this region.
fn region_text(inputs: &Inputs<'_>) -> Option<String> {
    let region = &inputs.catalog.region;
    match inputs.policy.region_said_by {
        SaidBy::Nobody => Some(format!("; {region} is only assumed: set spec.region in cutlist.yaml")),
        SaidBy::Nodes => Some(format!("; {region} is where the nodes of the cluster are")),
        SaidBy::NodePools => Some(format!("; {region} is where the zones of other NodePools are")),
        SaidBy::Settings => None,
    }
}

/// The quota of which too little is left for what would do. What is sold, and not what the class leaves, since nothing is left there.
fn quota_in_the_way(
    inputs: &Inputs<'_>,
    found: &[&InstanceType],
    allowed: impl Fn(&&Offering) -> bool,
) -> Option<&'static VcpuQuota> {
    let quotas = Quotas::new(inputs);
    let mut offerings = found.iter().flat_map(|it| it.offerings.iter().filter(&allowed).map(move |sold| (it, sold)));
    offerings.find_map(|(it, sold)| quotas.too_small_for(it, &sold.capacity_type))
}

/// `m5.large`, or the first of many.
pub fn named_types(names: &[&str]) -> String {
    let mut shown: Vec<String> = names.iter().take(TYPES_NAMED_MAX).map(|name| (*name).to_owned()).collect();
    let rest = names.len().saturating_sub(TYPES_NAMED_MAX);
    if rest > 0 {
        shown.push(format!("and {rest} more"));
    }
    shown.join(", ")
}
