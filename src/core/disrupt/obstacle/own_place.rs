//! That nothing but the node itself is in the way of what would replace it.

use std::fmt;

use crate::scheduler::engine::GivesBack;

/// What a node takes, and a replacement beside it would need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnPlace {
    /// Of these limits.
    Limit(GivesBack),
    /// An instance of a capacity reservation that has no other left.
    Reservation { id: String },
    /// Of this quota of the account.
    Quota { code: &'static str, name: &'static str },
    /// The last instance of a reservation, where nothing that its NodePool asks for now could have the instance: what it asks for.
    OtherReservation { id: String, asked: String },
}

impl OwnPlace {
    /// What somebody could do.
    pub fn advice(&self) -> String {
        match self {
            Self::Limit(GivesBack { of_pool: true, of_cluster: true }) => "raise the limits".to_owned(),
            Self::Limit(_) => "raise the limit".to_owned(),
            Self::Reservation { id } => format!("enlarge capacity reservation {id}"),
            Self::Quota { code, .. } => format!("ask AWS for a larger quota {code}"),
            Self::OtherReservation { id, .. } => format!(
                "let the NodePool allow what capacity reservation {id} has, or its EC2NodeClass select a reservation of what the NodePool \
                 allows"
            ),
        }
    }
}

impl fmt::Display for OwnPlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit(limits) => {
                let whose = match (limits.of_pool, limits.of_cluster) {
                    (true, true) => "its NodePool and of cutlist.yaml",
                    (false, true) => "cutlist.yaml",
                    _ => "its NodePool",
                };
                write!(out, "it takes what its replacement would need of the limits of {whose}")
            }
            Self::Reservation { id } => write!(out, "it takes the last instance of capacity reservation {id}"),
            Self::Quota { code, name } => {
                write!(out, "it takes what its replacement would need of the account's quota {name} {code}")
            }
            Self::OtherReservation { id, asked } => {
                write!(
                    out,
                    "it takes the last instance of capacity reservation {id}, where its replacement could not be, since {asked}"
                )
            }
        }
    }
}
