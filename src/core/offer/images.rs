//! The images of an EC2NodeClass, as far as anybody has said which they are: a node is launched of a type that one of them is for.
//! Source: reference, section 6.2.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::InstanceType;
use crate::catalog::node_class::{accepts, says_images_unknown};
use crate::inputs::Inputs;
use crate::model::Requirements;
use cutlist_api::ec2_node_class::{Ami, EC2NodeClass};

use super::subnets::is_same;

/// What is known of the images of a class. The first that fits counts.
#[derive(Clone, Copy, Debug)]
pub enum Images<'i> {
    /// Those of `cutlist.lock`, which alone count: nobody reviewed another.
    Locked(&'i [Ami]),
    /// What its terms find. Where not `all` are known, there may be one for any type.
    Found {
        images: &'i [Ami],
        all: bool,
    },
    Unknown,
}

impl<'i> Images<'i> {
    /// By the status of the applied class, if its terms are those of the definitions.
    pub fn of(inputs: &'i Inputs<'_>, class: &EC2NodeClass) -> Self {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        if let Some(locked) = inputs.policy.images.of_class(name) {
            return Self::Locked(locked);
        }
        let applied = inputs.snapshot.node_classes.iter().find(|it| it.metadata.name == class.metadata.name);
        let applied = applied.filter(|it| is_same(&it.spec.ami_selector_terms, &class.spec.ami_selector_terms));
        let Some(status) = applied.and_then(EC2NodeClass::status_now).filter(|status| !status.amis.is_empty()) else {
            return Self::Unknown;
        };
        let is_unknown = status.conditions.iter().any(says_images_unknown);
        Self::Found { images: &status.amis, all: !is_unknown }
    }

    /// Where all are known.
    pub fn whole(self) -> Option<&'i [Ami]> {
        match self {
            Self::Locked(images) | Self::Found { images, all: true } => Some(images),
            Self::Found { all: false, .. } | Self::Unknown => None,
        }
    }

    /// The names of the types that no image is for, where that is known. O(types x images).
    pub fn lacking<'t>(self, types: impl IntoIterator<Item = &'t InstanceType>) -> BTreeSet<String> {
        let Some(images) = self.whole() else { return BTreeSet::new() };
        let images: Vec<Requirements> =
            images.iter().map(|image| Requirements::from_entries(&image.requirements)).collect();
        let labels = BTreeMap::new();
        let has_one = |it: &&InstanceType| images.iter().any(|image| accepts(image, it, &labels));
        types.into_iter().filter(|it| !has_one(it)).map(|it| it.name.clone()).collect()
    }
}
