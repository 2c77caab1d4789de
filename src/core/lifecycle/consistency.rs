//! Whether a node is as large as its claim says: pods were planned for that.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use crate::api::node_claim::NodeClaim;
use crate::core::model::Resources;
use crate::core::model::resources::format_amount;

use super::conditions;

/// A node that has less than this part of what was expected, in hundredths, is not what was launched.
const LEAST_HUNDREDTHS: i128 = 90;

/// Notes on the claim of an initialized node whether its node is as expected; gives what is wrong when that is new.
/// Source: the reference, section 5.
pub(super) fn note(claim: &mut NodeClaim, node: &Node, now: Timestamp) -> Option<String> {
    let type_ = conditions::CONSISTENT_STATE_FOUND;
    let Some(fault) = fault(claim, node) else {
        if !claim.is_true(type_) {
            conditions::set(claim, type_, "True", type_, "", now);
        }
        return None;
    };
    let before = claim.condition(type_);
    let is_new = before.is_none_or(|condition| condition.status != "False" || condition.message != fault);
    conditions::set(claim, type_, "False", "ConsistencyCheckFailed", &fault, now);
    is_new.then_some(fault)
}

/// The first requested resource that the node has too little of.
fn fault(claim: &NodeClaim, node: &Node) -> Option<String> {
    let expected = claim.status.iter().flat_map(|status| &status.capacity);
    let expected = Resources::parse(expected.map(|(name, quantity)| (name.as_str(), quantity.to_string()))).ok()?;
    let found = node.status.iter().filter_map(|status| status.capacity.as_ref()).flatten();
    let found = Resources::parse(found.map(|(name, quantity)| (name.as_str(), quantity.0.clone()))).ok()?;
    claim.spec.resources.requests.keys().find_map(|name| {
        let (expected, found) = (expected.get(name), found.get(name));
        let is_less = i128::from(found) * 100 < i128::from(expected) * LEAST_HUNDREDTHS;
        is_less.then(|| {
            let amounts = [expected, found].map(|amount| format_amount(name, amount));
            format!("expected {} of resource {name}, but found {}", amounts[0], amounts[1])
        })
    })
}
