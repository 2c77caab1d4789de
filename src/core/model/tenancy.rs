//! Which tenancy a node gets where several are possible. Whoever plans, judges or launches asks here, so that all of them mean one node.

use super::Requirement;
use cutlist_api::keys;

/// What stands before what: a shared machine is what the reference takes where that is allowed, and costs least.
pub fn order(tenancy: &str) -> (bool, &str) {
    (tenancy != keys::DEFAULT_TENANCY, tenancy)
}

/// Of those that a claim asks for, whatever its type; `None` where it allows none that there is.
pub fn asked_for(asked: &Requirement) -> Option<&'static str> {
    preferred([keys::DEFAULT_TENANCY, keys::DEDICATED_TENANCY].into_iter(), |value| asked.allows(value))
}

/// Of those that are there, among those that are allowed.
pub fn preferred<'v>(values: impl Iterator<Item = &'v str>, is_allowed: impl Fn(&str) -> bool) -> Option<&'v str> {
    values.filter(|value| is_allowed(value)).min_by_key(|value| order(value))
}
