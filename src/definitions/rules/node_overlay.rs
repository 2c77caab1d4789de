//! CL0700 to CL0799: node overlays.

use super::{Rule, no_hint};
use crate::api::validation::node_overlay as cel;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, Place};
use crate::definitions::kinds::Kind;

pub static KEY: Rule = Rule::cel(
    "CL0701",
    "overlay-key",
    "An overlay is not for what instances only get when they are launched.",
    &[&cel::KEY_AWS_DOMAIN],
    |_| Some("select by labels of the instance type, by zone or by capacity type".to_owned()),
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
        Some("remove one of them".to_owned())
    });
pub static CAPACITY: Rule = Rule::cel(
    "CL0704",
    "overlay-capacity",
    "An overlay adds extended resources and huge pages, and leaves the others as they are.",
    &[&cel::EXTENDED_RESOURCES],
    |_| Some("kubelet settings of the EC2NodeClass change what pods can have of them".to_owned()),
);
pub static NO_EFFECT: Rule = Rule::document(
    "CL0705",
    "overlay-without-effect",
    Warning,
    "An overlay has a price, an adjustment of the price, or a capacity.",
    &[Kind::NodeOverlay],
    no_effect,
);

pub static RULES: &[&Rule] = &[&KEY, &NOT_IN_WITHOUT_VALUES, &ONE_PRICE, &CAPACITY, &NO_EFFECT];

fn no_effect(document: &Document) -> Vec<Finding> {
    let spec = document.value.get("spec").and_then(|spec| spec.as_object());
    let effects = ["price", "priceAdjustment", "capacity"];
    match spec {
        Some(spec) if !effects.iter().any(|field| spec.contains_key(*field)) => {
            let message = "the overlay changes neither a price nor a capacity";
            vec![Finding::at(&NO_EFFECT, document, "/spec", Place::Key, message)]
        }
        _ => Vec::new(),
    }
}
