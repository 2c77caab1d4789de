//! Hints that ask "did you mean". Core makes them, as its own explanations have some, too.

pub use crate::core::model::suggest::{Hint, did_you_mean, is_like, is_slip, nearest};
