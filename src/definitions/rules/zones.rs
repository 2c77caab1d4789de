//! CL0329 and CL0331: places of another region, and places that are none: a region where a zone is meant, a zone's id where its name is.

use std::collections::BTreeMap;

use super::Rule;
use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::catalog::facts;
use crate::core::catalog::regions::{self, Locality as Meant, Region, SaidBy};
use crate::core::model::requirements::normalized;
use crate::definitions::asked::{PLACES, Written};
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::fixes::Instead;
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};
use crate::definitions::suggest::{self, Hint};

pub static ZONE: Rule = Rule::revision(
    "CL0329",
    "zone-of-another-region",
    Warning,
    "Zones are in the region that is planned for.",
    zone_of_another_region,
);
pub static NO_PLACE: Rule = Rule::revision(
    "CL0331",
    "no-such-place",
    Warning,
    "A zone is required by its name, a zone id by its id, and a region by its name.",
    no_place,
);

pub static RULES: &[&Rule] = &[&ZONE];
pub static MORE_RULES: &[&Rule] = &[&NO_PLACE];

/// The region that definitions are for, by what they say themselves.
pub(super) fn region(revision: &Revision<'_>) -> Region {
    region_within(revision, |_| true)
}

fn region_within(revision: &Revision<'_>, is_meant: impl Fn(&Object) -> bool) -> Region {
    let settings = revision.of(Kind::Settings).find_map(|it| it.document.str("/spec/region"));
    let pools = revision.of(Kind::NodePool).filter(|pool| is_meant(pool));
    regions::find(settings, [], pools.filter_map(|pool| pool.asked.places.as_ref()))
}

/// What Flux and Argo CD apply by itself may be for another cluster than the rest, in another region.
fn zone_of_another_region(revision: &Revision<'_>) -> Vec<Finding> {
    let all: Vec<Place<'_>> = places(revision).collect();
    let of_all = region(revision);
    let is_mixed = of_all.said_by == SaidBy::Nobody && several_regions(&all).is_some();
    let mut by_root: BTreeMap<Option<&str>, Vec<Place<'_>>> = BTreeMap::new();
    for (object, written) in all {
        by_root.entry(object.root.as_deref()).or_default().push((object, written));
    }
    let mut findings = Vec::new();
    for (root, places) in by_root {
        let own = region_within(revision, |object| object.root.as_deref() == root);
        let several = if own.said_by == SaidBy::Nobody { several_regions(&places) } else { None };
        // What names no region of its own is held against that of the others.
        let is_of_all = own.said_by == SaidBy::Nobody && several.is_none();
        let (region, is_said) = if is_of_all { (&of_all, is_mixed) } else { (&own, several.is_some()) };
        for (object, written) in places {
            findings.extend(elsewhere(&object.document, written, region, is_said));
        }
        findings.extend(several);
    }
    findings
}

/// An object, and a place that it requires.
type Place<'r> = (&'r Object, &'r Written);

/// Every place that is required.
fn places<'r>(revision: &'r Revision<'_>) -> impl Iterator<Item = Place<'r>> {
    let is_place = |it: &Written| it.entry.operator == Operator::In && PLACES.contains(&normalized(&it.entry.key));
    let lists = revision.asking().flat_map(|object| object.asked.lists.iter().map(move |list| (object, list)));
    lists.flat_map(move |(object, list)| {
        list.written.iter().filter(move |it| is_place(it)).map(move |written| (object, written))
    })
}

/// One finding, where NodePools name places of several regions that the catalog has. Nobody knows which region is
/// meant, so none was assumed.
fn several_regions(places: &[Place<'_>]) -> Option<Finding> {
    // The first place that names each region.
    let mut first: BTreeMap<&str, (&Object, String)> = BTreeMap::new();
    for (object, written) in places.iter().copied().filter(|(object, _)| object.kind == Kind::NodePool) {
        for (index, value) in written.entry.values.iter().enumerate() {
            let name = regions::of_zone(value).or_else(|| regions::is_known(value).then_some(value.as_str()));
            if let Some(name) = name.filter(|name| regions::is_known(name)) {
                first.entry(name).or_insert_with(|| (object, written.place(Some(index))));
            }
        }
    }
    let mut all = first.iter();
    let (_, (one, one_place)) = all.next()?;
    let (_, (other, other_place)) = all.next()?;
    let names: Vec<&str> = first.keys().copied().collect();
    let message = format!("the NodePools name zones of {} regions: {}", names.len(), names.join(", "));
    let finding = Finding::at(&ZONE, &other.document, other_place, FindingPlace::Value, message);
    let hint = "set spec.region in cutlist.yaml to the region of the cluster; the definitions of each cluster go by themselves";
    Some(finding.related(&one.document, one_place, "a zone of another region").hint(hint))
}

/// `is_said` says that one finding about all places together tells of several regions.
fn elsewhere(document: &Document, written: &Written, region: &Region, is_said: bool) -> Vec<Finding> {
    let of_region = normalized(&written.entry.key) == keys::REGION;
    let mut findings = Vec::new();
    let meant = meant_by(normalized(&written.entry.key));
    // Another rule speaks of a value that is no place, or a place of another kind.
    let is_meant = |value: &str| regions::place(value) == meant || of_region && regions::has_form_of_region(value);
    for (index, value) in written.entry.values.iter().enumerate().filter(|(_, value)| is_meant(value)) {
        let place = written.place(Some(index));
        let (name, is_zone) = match regions::of_zone(value) {
            _ if of_region => (value.as_str(), false),
            Some(name) => (name, true),
            None => continue,
        };
        let message = match (name == region.name, region.said_by) {
            (true, _) if is_zone && !of_region && regions::is_unknown_zone(value) => {
                let message = format!("the built-in catalog has no zone {value} in {name}: no plan makes a node there");
                findings.push(Finding::at(&ZONE, document, &place, FindingPlace::Value, message));
                continue;
            }
            (true, _) => continue,
            (false, _) if is_said && regions::is_known(name) => continue,
            (false, SaidBy::Settings) => format!("{value} is not in {}, the region of cutlist.yaml", region.name),
            (false, SaidBy::NodePools) => {
                format!("{value} is not in {}, where the zones of the NodePools are", region.name)
            }
            // NodePools name one region that the catalog does not have, or several.
            (false, SaidBy::Nobody | SaidBy::Nodes) => {
                format!("{value} is not in {}, which is only assumed", region.name)
            }
        };
        let hint = match regions::is_known(name) {
            true => format!("set spec.region in cutlist.yaml to the region of the cluster, such as {name}"),
            false => format!("the built-in catalog has no region {name}: give a catalog of it with --catalog"),
        };
        findings.push(Finding::at(&ZONE, document, &place, FindingPlace::Value, message).hint(hint));
    }
    findings
}

fn no_place(revision: &Revision<'_>) -> Vec<Finding> {
    let region = region(revision).name;
    let mut findings = Vec::new();
    for object in revision.asking() {
        for list in &object.asked.lists {
            let of_values = |operator| matches!(operator, Operator::In | Operator::NotIn);
            for written in list.written.iter().filter(|written| of_values(written.entry.operator)) {
                let Some(wanted) = meant_by(normalized(&written.entry.key)) else { continue };
                for (index, value) in written.entry.values.iter().enumerate() {
                    let Some((message, hint)) = fault(value, wanted, &region) else { continue };
                    let finding = Finding::at(
                        &NO_PLACE,
                        &object.document,
                        &written.place(Some(index)),
                        FindingPlace::Value,
                        message,
                    );
                    // Which region a zone is in is no guess.
                    let instead = regions::of_zone(value).filter(|_| wanted == Meant::Region);
                    let instead = instead.map(|name| Instead::Text(name.to_owned()));
                    findings.push(finding.maybe_hint(hint).instead(instead));
                }
            }
        }
    }
    findings
}

/// What pods beside the definitions ask for. Their nodes may be of another cloud, or of none, where zones have other
/// names. So only what is nearly a zone of AWS, or a place of another kind, is a slip.
pub(super) fn of_pod(document: &Document, written: &Written) -> Vec<Finding> {
    let wanted = meant_by(normalized(&written.entry.key)).filter(|_| written.entry.operator == Operator::In);
    let Some(wanted) = wanted else { return Vec::new() };
    let mut findings = Vec::new();
    for (index, value) in written.entry.values.iter().enumerate() {
        let region = match regions::place(value) {
            Some(_) => Some(""),
            None => nearest_zone(value).filter(|_| wanted == Meant::Zone).and_then(regions::of_zone),
        };
        let Some((message, hint)) = region.and_then(|region| fault(value, wanted, region)) else { continue };
        let place = written.place(Some(index));
        findings.push(Finding::at(&NO_PLACE, document, &place, FindingPlace::Value, message).maybe_hint(hint));
    }
    findings
}

/// The zone of AWS that is nearly this one.
fn nearest_zone(value: &str) -> Option<&'static str> {
    let facts: &'static facts::Facts = facts::embedded().ok()?;
    if is_of_google(value) {
        return None;
    }
    suggest::nearest(value, facts.zones.iter().map(|zone| zone.name.as_str()))
}

/// Whether this is a zone of Google, such as `us-east1-b`, which is no slip of `us-east-1b`.
fn is_of_google(zone: &str) -> bool {
    let Some((region, letter)) = zone.rsplit_once('-') else { return false };
    let direction = region.rsplit('-').next().unwrap_or_default();
    letter.len() == 1
        && direction.starts_with(|first: char| first.is_ascii_lowercase())
        && direction.ends_with(|last: char| last.is_ascii_digit())
}

/// What kind of place the values of a label name, if they name places.
pub(super) fn meant_by(key: &str) -> Option<Meant> {
    match key {
        keys::ZONE => Some(Meant::Zone),
        keys::ZONE_ID => Some(Meant::ZoneId),
        keys::REGION => Some(Meant::Region),
        _ => None,
    }
}

/// What is wrong with a value, and what was probably meant. Another rule says whether a zone is of the right region.
fn fault(value: &str, wanted: Meant, region: &str) -> Option<(String, Option<Hint>)> {
    let found = regions::place(value);
    // Regions that the catalog does not have are no mistake.
    if found == Some(wanted) || wanted == Meant::Region && regions::has_form_of_region(value) {
        return None;
    }
    let key_of = |place: Meant| match place {
        Meant::Zone => keys::ZONE,
        Meant::ZoneId => keys::ZONE_ID,
        Meant::Region => keys::REGION,
    };
    let words = |place: Meant| match place {
        Meant::Zone => "the name of a zone",
        Meant::ZoneId => "the id of a zone",
        Meant::Region => "a region",
    };
    let Some(found) = found else {
        let known = regions::names(wanted, region);
        let there_are = || (!known.is_empty()).then(|| format!("in {region} there are {}", known.join(", ")).into());
        let hint = suggest::did_you_mean(value, known.iter().copied()).or_else(there_are);
        return Some((format!("`{value}` is not {}: no node is there", words(wanted)), hint));
    };
    let hint = match (wanted, found) {
        (Meant::Zone | Meant::ZoneId, Meant::Region) => {
            let names = regions::names(wanted, value);
            (!names.is_empty())
                .then(|| format!("name some of {}, or use the key {}", names.join(", "), keys::REGION).into())
        }
        (Meant::Region, _) => regions::of_zone(value).map(|name| Hint::question(&[name])),
        _ => Some(format!("use the key {}: which zone has which id depends on the account", key_of(found)).into()),
    };
    Some((format!("`{value}` is {}, not {}: no node has it", words(found), words(wanted)), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_of_other_clouds_are_no_slips() {
        for (value, meant) in [
            ("us-east1a", Some("us-east-1a")),
            ("us-east-1-a", Some("us-east-1a")),
            ("us-east1-b", None),
            ("europe-west4-a", None),
            ("westeurope-1", None),
            ("rack-7", None),
            ("zone-a", None),
        ] {
            assert_eq!(nearest_zone(value), meant, "{value}");
        }
    }
}
