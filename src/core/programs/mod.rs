//! Linear programs over bins and items: what may be bought for what, at which price. No word of Kubernetes, which `tests/tidy.rs` holds: a bin is
//! what can be bought any number of times, an item is so many pieces that are alike.
//!
//! `filling` fills one bin at given prices of items, `covering` chooses among filled bins, `generation` finds further ones, `dual` and
//! `ascent` make lower bounds of `prices`, `grouping` and `parts` make programs smaller, `columns` and `whole_pieces` make whole numbers.

pub mod ascent;
pub mod columns;
pub mod covering;
pub mod dual;
pub mod filling;
pub mod generation;
pub mod grouping;
pub mod parts;
pub mod prices;
pub mod whole_pieces;

/// A count as a number to calculate with.
pub fn number(count: usize) -> f64 {
    as_number(i64::try_from(count).unwrap_or(i64::MAX))
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of amounts; fifteen digits are plenty for a guide")]
pub fn as_number(amount: i64) -> f64 {
    amount as f64
}
