//! CL0331: places that are none: a region where a zone is meant, a zone's id where its name is.

use super::Rule;
use super::requirements::{objects, region};
use crate::api::keys;
use crate::api::node_pool::Operator;
use crate::core::catalog::regions::{self, Locality as Meant};
use crate::core::model::requirements::normalized;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::findings::{Finding, Place};
use crate::definitions::fixes::Instead;
use crate::definitions::revision::Revision;
use crate::definitions::suggest;

pub static NO_PLACE: Rule = Rule::revision(
    "CL0331",
    "no-such-place",
    Warning,
    "A zone is required by its name, a zone id by its id, and a region by its name.",
    no_place,
);

pub static RULES: &[&Rule] = &[&NO_PLACE];

fn no_place(revision: &Revision<'_>) -> Vec<Finding> {
    let region = region(revision).name;
    let mut findings = Vec::new();
    for object in objects(revision) {
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
