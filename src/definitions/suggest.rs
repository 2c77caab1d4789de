//! "Did you mean".

pub use crate::core::model::suggest::nearest;

/// What a hint asks whether it was meant, if that is all it says.
pub fn meant(hint: &str) -> Option<&str> {
    let meant = hint.strip_prefix("did you mean `")?.strip_suffix("`?")?;
    (!meant.contains('`')).then_some(meant)
}
