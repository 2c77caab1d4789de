//! That nothing but the node itself is in the way of what would replace it.

use std::fmt;

/// What a node takes, and a replacement beside it would need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnPlace {
    /// Of the limits of its NodePool.
    Limit,
    /// An instance of a capacity reservation that has no other left.
    Reservation { id: String },
}

impl OwnPlace {
    /// What somebody could do.
    pub fn advice(&self) -> String {
        match self {
            Self::Limit => "raise the limit".to_owned(),
            Self::Reservation { id } => format!("enlarge capacity reservation {id}"),
        }
    }
}

impl fmt::Display for OwnPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => out.write_str("it takes what its replacement would need of the limits of its NodePool"),
            Self::Reservation { id } => write!(out, "it takes the last instance of capacity reservation {id}"),
        }
    }
}
