//! What one NodePool says of itself, for the rules that ask whether it makes nodes, and which.

use serde_json::Value;

use crate::core::model::Quantity;
use crate::definitions::document::Document;

/// Whether the pool keeps a number of nodes, whatever pods there are.
pub(super) fn is_static(pool: &Document) -> bool {
    pool.value.pointer("/spec/replicas").is_some()
}

/// The weight of the pool, or 0 where it has none. Pools with more weight come first.
pub(super) fn weight(pool: &Document) -> u64 {
    pool.value.pointer("/spec/weight").and_then(Value::as_u64).unwrap_or_default()
}

/// Whether a variable in the pool has no value, so that not all of the pool is known.
pub(super) fn is_open(pool: &Document) -> bool {
    pool.variables.open().next().is_some()
}

/// Whether a limit of 0 keeps the pool from making nodes.
pub(super) fn is_at_rest(pool: &Document) -> bool {
    let is_zero = |limit: &Value| match limit {
        Value::String(text) => text.parse::<Quantity>().is_ok_and(|quantity| quantity.units() == 0),
        limit => limit.as_i64() == Some(0),
    };
    pool.members("/spec/limits").any(|(.., limit)| is_zero(limit))
}
