//! Whether a node is as large as its claim says: pods were planned for that.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use crate::model::Resources;
use crate::model::resources::format_amount;
use cutlist_api::node_claim::NodeClaim;

use super::conditions;

/// A node that has less than this part of what was expected, in hundredths, is not what was launched.
const HUNDREDTHS_MIN: i128 = 90;

/// Notes on the claim of an initialized node whether its node is as expected; gives what is wrong when that is new.
/// Source: the reference, section 5.
pub(super) fn note(claim: &mut Cow<'_, NodeClaim>, node: &Node, now: Timestamp) -> Option<String> {
    let type_ = conditions::CONSISTENT_STATE_FOUND;
    let Some(fault) = fault(claim, node) else {
        if !claim.is_true(type_) {
            conditions::set(claim.to_mut(), type_, "True", type_, "", now);
        }
        return None;
    };
    let before = claim.condition(type_);
    let is_new = before.is_none_or(|condition| condition.status != "False" || condition.message != fault);
    conditions::set(claim.to_mut(), type_, "False", "ConsistencyCheckFailed", &fault, now);
    is_new.then_some(fault)
}

/// The first requested resource that the node has too little of.
fn fault(claim: &NodeClaim, node: &Node) -> Option<String> {
    let expected = &claim.status.as_ref()?.capacity;
    let found = node.status.as_ref().and_then(|status| status.capacity.as_ref());
    claim.spec.resources.requests.keys().find_map(|name| {
        let amount = |text: String| Some(Resources::amount(name, text.trim().parse().ok()?));
        let expected = expected.get(name).map_or(Some(0), |quantity| amount(quantity.to_string()))?;
        let found = found.and_then(|it| it.get(name)).map_or(Some(0), |quantity| amount(quantity.0.clone()))?;
        let is_less = i128::from(found) * 100 < i128::from(expected) * HUNDREDTHS_MIN;
        is_less.then(|| {
            let amounts = [expected, found].map(|amount| format_amount(name, amount));
            format!("expected {} of resource {name}, but found {}", amounts[0], amounts[1])
        })
    })
}
