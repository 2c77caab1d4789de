//! Which region a zone is in, by its name.

use std::collections::BTreeMap;

use crate::model::requirements::normalized;
use cutlist_api::keys;
use cutlist_api::node_pool::{NodePool, NodeSelectorRequirement, Operator};

use super::facts::{self, Facts};

/// The region that plans are made for when nothing says another one.
pub const DEFAULT_REGION: &str = "us-east-1";

/// A region, and who says that it is the one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub name: String,
    pub said_by: SaidBy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaidBy {
    /// `spec.region` of `cutlist.yaml`, or a catalog or facts of EC2 that were given.
    #[default]
    Settings,
    /// The labels of nodes.
    Nodes,
    /// The zones that NodePools name.
    NodePools,
    /// Nobody: it is the default.
    Nobody,
}

/// The region of the settings, else that of most nodes, else the one that all NodePools with zones agree on, else the default.
pub fn find<'n>(
    settings: Option<&str>,
    nodes: impl IntoIterator<Item = &'n BTreeMap<String, String>>,
    pools: impl IntoIterator<Item = &'n NodePool>,
) -> Region {
    let region = |name: &str, said_by| Region { name: name.to_owned(), said_by };
    if let Some(name) = settings {
        return region(name, SaidBy::Settings);
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for labels in nodes {
        let of_zone = || labels.get(keys::ZONE).and_then(|zone| of_zone(zone));
        if let Some(name) = labels.get(keys::REGION).map(String::as_str).or_else(of_zone) {
            *counts.entry(name).or_default() += 1;
        }
    }
    if let Some((name, _)) = counts.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name))) {
        return region(name, SaidBy::Nodes);
    }
    let named = pools.into_iter().flat_map(|pool| {
        let template = &pool.spec.template;
        let requirements = template.spec.requirements.iter().filter_map(named_by).flatten();
        requirements.chain(template.metadata.labels.iter().filter_map(|(key, value)| named_by_label(key, value)))
    });
    match in_common(named.collect::<Vec<_>>()) {
        Some(name) if is_known(name) => region(name, SaidBy::NodePools),
        _ => region(DEFAULT_REGION, SaidBy::Nobody),
    }
}

/// The regions of the zones that a requirement names, and those that it names itself. `None` in the list for what is no zone.
pub fn named_by(requirement: &NodeSelectorRequirement) -> Option<impl Iterator<Item = Option<&str>>> {
    let key = normalized(&requirement.key);
    let is_place = requirement.operator == Operator::In && matches!(key, keys::ZONE | keys::ZONE_ID | keys::REGION);
    let of_value = move |value| if key == keys::REGION { Some(value) } else { of_zone(value) };
    is_place.then(|| requirement.values.iter().map(String::as_str).map(of_value))
}

fn named_by_label<'l>(key: &str, value: &'l str) -> Option<Option<&'l str>> {
    match normalized(key) {
        keys::ZONE | keys::ZONE_ID => Some(of_zone(value)),
        keys::REGION => Some(Some(value)),
        _ => None,
    }
}

/// The region of a zone: of `eu-west-1a`, of the local zone `us-west-2-lax-1a`, of the Wavelength Zone `us-east-1-wl1-bos-wlz-1`, or of
/// the zone id `euw1-az1` of a region in this binary. `None` for what is no name of a zone.
pub fn of_zone(zone: &str) -> Option<&str> {
    of_zone_id(zone).or_else(|| of_zone_name(zone))
}

/// Words of small letters, then a number: `us-gov-west-1`; behind it one letter, or the rest of a local zone's name.
fn of_zone_name(zone: &str) -> Option<&str> {
    let mut end = 0;
    for (index, part) in zone.split('-').enumerate() {
        let separator = usize::from(index > 0);
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_lowercase()) {
                return None;
            }
            end += separator + part.len();
            continue;
        }
        end += separator + digits;
        let (region, rest) = zone.split_at_checked(end)?;
        let is_letter = rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_zone = is_letter || rest.strip_prefix('-').is_some_and(|rest| !rest.is_empty());
        return (index >= 2 && is_zone).then_some(region);
    }
    None
}

fn of_zone_id(id: &str) -> Option<&'static str> {
    let facts: &'static Facts = facts::embedded().ok()?;
    facts.zones.iter().find(|zone| zone.id.as_deref() == Some(id)).map(|zone| zone.region.as_str())
}

/// What a name can be the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    Zone,
    ZoneId,
    Region,
}

/// What the name is that of, by its form; of a region, if the built-in catalog has it.
pub fn place(name: &str) -> Option<Locality> {
    if of_zone_name(name).is_some() {
        Some(Locality::Zone)
    } else if is_known(name) {
        Some(Locality::Region)
    } else {
        is_zone_id(name).then_some(Locality::ZoneId)
    }
}

/// `us-east-1`, whether or not there is such a region.
pub fn has_form_of_region(name: &str) -> bool {
    of_zone_name(&format!("{name}a")) == Some(name)
}

/// `use1-az6`, and `usw2-lax1-az1` of a local zone.
fn is_zone_id(name: &str) -> bool {
    let Some((region, number)) = name.rsplit_once("-az") else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let has_form = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let short = region.split('-').next().unwrap_or_default();
    is_number(number)
        && region.bytes().all(has_form)
        && short.len() >= 4
        && short.ends_with(|it: char| it.is_ascii_digit())
}

/// The names of a kind in a region of the built-in catalog; of regions all.
pub fn names(place: Locality, region: &str) -> Vec<&'static str> {
    let Ok(facts) = facts::embedded() else { return Vec::new() };
    let facts: &'static Facts = facts;
    let there = facts.zones.iter().filter(|zone| zone.region == region);
    match place {
        Locality::Zone => there.map(|zone| zone.name.as_str()).collect(),
        Locality::ZoneId => there.filter_map(|zone| zone.id.as_deref()).collect(),
        Locality::Region => facts.regions(),
    }
}

/// Whether the name is that of a local zone or a Wavelength Zone, which no catalog in this binary has.
pub fn is_local(zone: &str) -> bool {
    of_zone_name(zone).is_some_and(|region| zone.len() > region.len() + 1)
}

/// Whether the built-in catalog has its region, and not the zone itself.
pub fn is_unknown_zone(zone: &str) -> bool {
    let Ok(facts) = facts::embedded() else { return false };
    let is_it = |known: &facts::Zone| known.name == zone || known.id.as_deref() == Some(zone);
    of_zone(zone).is_some_and(is_known) && !facts.zones.iter().any(is_it)
}

/// Whether the built-in catalog has this region.
pub fn is_known(region: &str) -> bool {
    facts::embedded().is_ok_and(|facts| facts.regions().contains(&region))
}

/// The one region that all these are; `None` when they are several, or some are not known, or there is none.
pub fn in_common<'z>(regions: impl IntoIterator<Item = Option<&'z str>>) -> Option<&'z str> {
    let mut regions = regions.into_iter();
    let first = regions.next()??;
    regions.all(|region| region == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn zones_name_their_region() {
        for (zone, region) in [
            ("us-east-1a", Some("us-east-1")),
            ("ap-southeast-1b", Some("ap-southeast-1")),
            ("us-gov-west-1a", Some("us-gov-west-1")),
            ("us-west-2-lax-1a", Some("us-west-2")),
            ("us-east-1-wl1-bos-wlz-1", Some("us-east-1")),
            ("use1-az6", Some("us-east-1")),
            ("us-east-1", None),
            ("us-east-1ab", None),
            ("us-east-", None),
            ("zone-1a", None),
            ("rack-7", None),
            ("", None),
            ("1a", None),
            ("é-é-1a", None),
        ] {
            assert_eq!(of_zone(zone), region, "{zone}");
        }
        assert!(is_local("us-west-2-lax-1a") && !is_local("us-west-2a") && !is_local("rack"));
    }

    #[test]
    fn what_a_name_is_the_name_of() {
        for (name, place_of) in [
            ("us-east-1a", Some(Locality::Zone)),
            ("us-west-2-lax-1a", Some(Locality::Zone)),
            ("us-east-1", Some(Locality::Region)),
            ("use1-az1", Some(Locality::ZoneId)),
            ("usw2-lax1-az1", Some(Locality::ZoneId)),
            ("use1-az", None),
            ("use1-azx", None),
            ("az1", None),
            ("us-east-1A", None),
            ("eu-west-9", None),
            ("zone-1", None),
        ] {
            assert_eq!(place(name), place_of, "{name}");
        }
        assert!(names(Locality::Zone, "us-east-1").contains(&"us-east-1a"));
    }

    #[test]
    fn who_knows_best_is_asked_first() {
        let pool = |zones: &[&str]| -> NodePool {
            serde_json::from_value(json!({ "metadata": { "name": "p" }, "spec": { "template": { "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c" },
                "requirements": [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": zones }],
            } } } }))
            .unwrap()
        };
        let labels = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let found = |settings, nodes: &[BTreeMap<String, String>], pools: &[NodePool]| {
            let found = find(settings, nodes, pools);
            (found.name, found.said_by)
        };
        let of_ireland = [pool(&["eu-west-1a", "eu-west-1b"])];
        let node = [labels(keys::ZONE, "eu-north-1a")];
        assert_eq!(found(Some("us-west-2"), &node, &of_ireland), ("us-west-2".to_owned(), SaidBy::Settings));
        assert_eq!(found(None, &node, &of_ireland), ("eu-north-1".to_owned(), SaidBy::Nodes));
        let node = [labels(keys::REGION, "eu-south-1")];
        assert_eq!(found(None, &node, &of_ireland), ("eu-south-1".to_owned(), SaidBy::Nodes));
        assert_eq!(found(None, &[], &of_ireland), ("eu-west-1".to_owned(), SaidBy::NodePools));
        assert_eq!(found(None, &[], &[pool(&["euw1-az1"])]), ("eu-west-1".to_owned(), SaidBy::NodePools), "by its id");
        let two = [pool(&["eu-west-1a"]), pool(&["eu-west-2a"])];
        assert_eq!(found(None, &[], &two), ("us-east-1".to_owned(), SaidBy::Nobody));
        assert_eq!(found(None, &[], &[pool(&["us-gov-west-1a"])]), ("us-east-1".to_owned(), SaidBy::Nobody));
        assert_eq!(found(None, &[], &[]), ("us-east-1".to_owned(), SaidBy::Nobody));
    }
}
