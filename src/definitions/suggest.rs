//! "Did you mean".

pub use crate::core::model::suggest::nearest;
