//! What an object asks of instance types and places: requirements, labels, the selectors and affinities of pods.

mod reading;

use super::kinds::Kind;
use crate::api::keys;
use crate::api::node_pool::{NodePool, NodeSelectorRequirement};

pub use reading::{containers, lists_of_pod, pods_of};

/// Kinds that ask for instance types or places.
pub const KINDS: [Kind; 3] = [Kind::NodePool, Kind::NodeOverlay, Kind::PodTemplate];

/// Labels of places. They have a rule of their own, which knows the region.
pub const PLACES: [&str; 3] = [keys::ZONE, keys::ZONE_ID, keys::REGION];

/// One requirement, or one label of a selector, and where it stands.
#[derive(Clone, Debug)]
pub struct Written {
    pub pointer: String,
    pub entry: NodeSelectorRequirement,
    /// Whether this is a label. The value of a label stands at the pointer itself.
    pub is_label: bool,
}

impl Written {
    pub fn place(&self, value: Option<usize>) -> String {
        match value {
            _ if self.is_label => self.pointer.clone(),
            Some(index) => format!("{}/values/{index}", self.pointer),
            None => format!("{}/operator", self.pointer),
        }
    }
}

/// Requirements that count together.
#[derive(Clone, Debug)]
pub struct List {
    /// What the list is part of. A finding about all of the list stands there.
    pub pointer: String,
    pub written: Vec<Written>,
}

/// What one object asks of instance types and places: worked out once, and kept with the object for all rules about it.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub lists: Vec<List>,
    /// What a pool that names places says of them.
    pub places: Option<NodePool>,
}
