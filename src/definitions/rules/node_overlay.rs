//! CL0700 to CL0799: node overlays.

use std::cmp::Reverse;

use serde_json::Value;

use super::types_left::{MATCHING, entries};
use super::{Rule, no_hint};
use crate::api::validation::node_overlay as cel;
use crate::core::catalog::matching::Entry;
use crate::core::model::requirements::normalized;
use crate::definitions::asked::PLACES;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

pub static KEY: Rule = Rule::cel(
    "CL0701",
    "overlay-key",
    "An overlay is not for what instances only get when they are launched.",
    &[&cel::KEY_AWS_DOMAIN],
    |_| Some("select by labels of the instance type, by zone or by capacity type".into()),
);
pub static NOT_IN_WITHOUT_VALUES: Rule = Rule::cel(
    "CL0702",
    "not-in-without-values",
    "The operator NotIn of an overlay has values.",
    &[&cel::NOT_IN_WITHOUT_VALUES],
    no_hint,
);
pub static ONE_PRICE: Rule =
    Rule::cel("CL0703", "two-prices", "An overlay has price or priceAdjustment, not both.", &[&cel::ONE_PRICE], |_| {
        Some("remove one of them".into())
    });
pub static CAPACITY: Rule = Rule::cel(
    "CL0704",
    "overlay-capacity",
    "An overlay adds extended resources and huge pages, and leaves the others as they are.",
    &[&cel::EXTENDED_RESOURCES],
    |_| Some("kubelet settings of the EC2NodeClass change what pods can have of them".into()),
);
pub static NO_EFFECT: Rule = Rule::document(
    "CL0705",
    "overlay-without-effect",
    Warning,
    "An overlay has a price, an adjustment of the price, or a capacity.",
    &[Kind::NodeOverlay],
    no_effect,
);

pub static CONFLICT: Rule = Rule::revision(
    "CL0706",
    "overlay-conflict",
    Warning,
    "Overlays that set the price, or different amounts of a resource, of the same instance types have different weights.",
    conflict,
);

pub static RULES: &[&Rule] = &[&KEY, &NOT_IN_WITHOUT_VALUES, &ONE_PRICE, &CAPACITY, &NO_EFFECT, &CONFLICT];

fn no_effect(document: &Document) -> Vec<Finding> {
    let spec = document.value.get("spec").and_then(|spec| spec.as_object());
    let effects = ["price", "priceAdjustment", "capacity"];
    match spec {
        Some(spec) if !effects.iter().any(|field| spec.contains_key(*field)) => {
            let message = "the overlay changes neither a price nor a capacity";
            vec![Finding::at(&NO_EFFECT, document, "/spec", FindingPlace::Key, message)]
        }
        _ => Vec::new(),
    }
}

/// Goes through overlays in the order in which Karpenter takes them: by weight, then by name, both from the end. An
/// overlay in conflict with one that was taken is left out. O(overlays² x instance types).
fn conflict(revision: &Revision<'_>) -> Vec<Finding> {
    let mut overlays: Vec<Overlay<'_>> = revision.of(Kind::NodeOverlay).filter_map(Overlay::of).collect();
    overlays.sort_by_key(|overlay| (Reverse(overlay.weight), Reverse(overlay.object.name())));
    let mut taken: Vec<Overlay<'_>> = Vec::new();
    let mut findings = Vec::new();
    for overlay in overlays {
        let alike = taken.iter().filter(|other| other.weight == overlay.weight);
        let mut alike = alike.filter(|other| other.object.name() != overlay.object.name());
        let found = alike.find_map(|other| {
            let clash = overlay.clash(other)?;
            overlay.shares_types_with(other).then_some((other, clash))
        });
        let Some((other, (pointer, what))) = found else {
            taken.push(overlay);
            continue;
        };
        let name = other.object.name().unwrap_or_default();
        let message = format!(
            "the NodeOverlay `{name}` has the same weight, and sets {what} of the same instance types: Karpenter takes that one, by its name, and nothing of this one"
        );
        let finding = Finding::at(&CONFLICT, &overlay.object.document, &pointer, FindingPlace::Key, message);
        let finding = finding.related(&other.object.document, "/metadata/name", "the other one");
        findings.push(finding.hint("give one of them another weight: the higher one counts"));
    }
    findings
}

/// An overlay whose requirements are all known.
struct Overlay<'o> {
    object: &'o Object,
    weight: i64,
    entries: Vec<Entry>,
    /// What the overlay asks of zones and regions. No catalog of one region answers that.
    places: Vec<&'o Value>,
}

impl<'o> Overlay<'o> {
    fn of(object: &'o Object) -> Option<Self> {
        let document = &object.document;
        let lists = &object.asked.lists;
        let all: Vec<&Value> = document.items("/spec/requirements").map(|(_, entry)| entry).collect();
        let is_known =
            document.variables.open().next().is_none() && lists.iter().all(|list| list.written.len() == all.len());
        let key_of = |entry: &Value| entry.get("key").and_then(Value::as_str).map(|key| normalized(key).to_owned());
        let is_place = |entry: &&Value| key_of(entry).is_some_and(|key| PLACES.contains(&key.as_str()));
        is_known.then(|| Self {
            object,
            weight: document.value.pointer("/spec/weight").and_then(Value::as_i64).unwrap_or_default(),
            entries: lists.iter().flat_map(entries).collect(),
            places: all.into_iter().filter(is_place).collect(),
        })
    }

    fn value(&self, pointer: &str) -> Option<&'o Value> {
        self.object.document.value.pointer(pointer)
    }

    /// What both overlays set, and where. That is a price, even of the same amount, or different amounts of one
    /// resource.
    fn clash(&self, other: &Self) -> Option<(String, String)> {
        let of_price = ["/spec/price", "/spec/priceAdjustment"];
        let set = |overlay: &Self| of_price.into_iter().find(|pointer| overlay.value(pointer).is_some());
        if let Some(own) = set(self).filter(|_| set(other).is_some()) {
            return Some((own.to_owned(), "the price".to_owned()));
        }
        let mut capacities = self.object.document.members("/spec/capacity");
        let differs = |pointer: &str, amount: &Value| other.value(pointer).is_some_and(|it| it != amount);
        let found = capacities.find(|(pointer, _, amount)| differs(pointer, amount));
        found.map(|(pointer, resource, _)| (pointer, format!("another amount of {resource}")))
    }

    /// Whether both overlays mean some instance type. Nothing is said of overlays for different places.
    fn shares_types_with(&self, other: &Self) -> bool {
        let Some(matching) = MATCHING.as_ref().filter(|_| self.places == other.places) else { return false };
        let both: Vec<&Entry> =
            matching.relevant(&self.entries).into_iter().chain(matching.relevant(&other.entries)).collect();
        !matching.types(&both).is_empty()
    }
}
