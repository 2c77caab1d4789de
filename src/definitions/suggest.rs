//! "Did you mean".

pub use crate::core::model::suggest::{did_you_mean, is_like, is_slip, nearest};

/// What a hint asks whether it was meant, if that is all it says, and it names one thing.
pub fn meant(hint: &str) -> Option<&str> {
    let meant = hint.strip_prefix("did you mean `")?.strip_suffix("`?")?;
    (!meant.contains('`')).then_some(meant)
}

/// The first of what a hint asks whether it was meant.
pub fn likeliest(hint: &str) -> Option<&str> {
    hint.strip_prefix("did you mean `")?.split('`').next()
}
