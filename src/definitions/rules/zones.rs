//! CL0329 and CL0331: places of another region, and places that are none: a region where a zone is meant, a zone's id where its name is.

use super::Rule;
use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::catalog::regions::{self, Locality as Meant, Region, SaidBy};
use crate::core::model::requirements::normalized;
use crate::definitions::asked::{PLACES, Written};
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, Place};
use crate::definitions::fixes::Instead;
use crate::definitions::kinds::Kind;
use crate::definitions::revision::Revision;
use crate::definitions::suggest;

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
    let settings = revision.of(Kind::Settings).find_map(|it| it.document.str("/spec/region"));
    let pools = revision.of(Kind::NodePool).filter_map(|pool| pool.asked.places.as_ref());
    regions::find(settings, [], pools)
}

fn zone_of_another_region(revision: &Revision<'_>) -> Vec<Finding> {
    let region = region(revision);
    let mut findings = Vec::new();
    for object in revision.asking() {
        for list in &object.asked.lists {
            let places = list
                .written
                .iter()
                .filter(|it| it.entry.operator == Operator::In && PLACES.contains(&normalized(&it.entry.key)));
            for written in places {
                findings.extend(elsewhere(&object.document, written, &region));
            }
        }
    }
    findings
}

fn elsewhere(document: &Document, written: &Written, region: &Region) -> Vec<Finding> {
    let of_region = normalized(&written.entry.key) == keys::REGION;
    let mut findings = Vec::new();
    let meant = meant_by(normalized(&written.entry.key));
    // What is no place, or one of another kind, has a rule of its own.
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
                findings.push(Finding::at(&ZONE, document, &place, Place::Value, message));
                continue;
            }
            (true, _) => continue,
            (false, SaidBy::Settings) => format!("{value} is not in {}, the region of cutlist.yaml", region.name),
            (false, SaidBy::NodePools) => {
                format!("{value} is not in {}, where the zones of the NodePools are", region.name)
            }
            // One region that the catalog does not have, or several.
            (false, SaidBy::Nobody | SaidBy::Nodes) => {
                format!("{value} is not in {}, which is only assumed", region.name)
            }
        };
        let hint = match regions::is_known(name) {
            true => format!("set spec.region in cutlist.yaml to the region of the cluster, such as {name}"),
            false => format!("the built-in catalog has no region {name}: give a catalog of it with --catalog"),
        };
        findings.push(Finding::at(&ZONE, document, &place, Place::Value, message).hint(hint));
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
                    let finding =
                        Finding::at(&NO_PLACE, &object.document, &written.place(Some(index)), Place::Value, message);
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

/// What the values of a label are the names of, if they are those of places.
pub(super) fn meant_by(key: &str) -> Option<Meant> {
    match key {
        keys::ZONE => Some(Meant::Zone),
        keys::ZONE_ID => Some(Meant::ZoneId),
        keys::REGION => Some(Meant::Region),
        _ => None,
    }
}

/// What is wrong with a value, and what was probably meant. Whether a zone is of the right region another rule says.
fn fault(value: &str, wanted: Meant, region: &str) -> Option<(String, Option<String>)> {
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
        let there_are = || (!known.is_empty()).then(|| format!("in {region} there are {}", known.join(", ")));
        let hint = suggest::did_you_mean(value, known.iter().copied()).or_else(there_are);
        return Some((format!("`{value}` is not {}: no node is there", words(wanted)), hint));
    };
    let hint = match (wanted, found) {
        (Meant::Zone | Meant::ZoneId, Meant::Region) => {
            let names = regions::names(wanted, value);
            (!names.is_empty()).then(|| format!("name some of {}, or use the key {}", names.join(", "), keys::REGION))
        }
        (Meant::Region, _) => regions::of_zone(value).map(|name| format!("did you mean `{name}`?")),
        _ => Some(format!("use the key {}: which zone has which id depends on the account", key_of(found))),
    };
    Some((format!("`{value}` is {}, not {}: no node has it", words(found), words(wanted)), hint))
}
