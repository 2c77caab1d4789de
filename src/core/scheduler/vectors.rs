//! Resources as vectors of integers, one dimension for each resource that some pod asks for.

use std::collections::BTreeMap;

use crate::model::Resources;
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS};

use super::attachable::{ANY_NUMBER, Attachable};

/// Amounts by dimension, in the units of [`Resources`].
pub type Vector = Box<[i64]>;

/// Positions of the dimensions that always exist.
pub const CPU_DIMENSION: usize = 0;
pub const MEMORY_DIMENSION: usize = 1;

/// What pods with volumes of EBS ask of a node, by the name that nodes had for it before drivers said it themselves.
pub const ATTACHABLE_VOLUMES: &str = "attachable-volumes-csi-ebs.csi.aws.com";

/// The resources that count. A resource that nobody asks for restricts nobody, so it has no dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimensions {
    names: Vec<String>,
    position: BTreeMap<String, usize>,
    /// Where volumes are counted: their dimension, and how many go on a node of which type.
    volumes: Option<(usize, Attachable)>,
}

impl Default for Dimensions {
    fn default() -> Self {
        let mut dimensions = Self { names: Vec::new(), position: BTreeMap::new(), volumes: None };
        for name in [CPU, MEMORY, PODS, EPHEMERAL_STORAGE] {
            dimensions.intern(name);
        }
        dimensions
    }
}

impl Dimensions {
    pub fn intern(&mut self, name: &str) {
        if !self.position.contains_key(name) {
            self.position.insert(name.to_owned(), self.names.len());
            self.names.push(name.to_owned());
        }
    }

    /// From now on volumes of EBS are counted like a resource.
    pub fn count_volumes(&mut self, attachable: Attachable) {
        self.intern(ATTACHABLE_VOLUMES);
        self.volumes = Some((self.position[ATTACHABLE_VOLUMES], attachable));
    }

    pub fn count(&self) -> usize {
        self.names.len()
    }

    pub fn name(&self, dimension: usize) -> &str {
        &self.names[dimension]
    }

    /// Amounts of resources without a dimension are left out.
    pub fn vector(&self, resources: &Resources) -> Vector {
        let mut vector = vec![0; self.count()].into_boxed_slice();
        for (name, amount) in resources.iter() {
            if let Some(dimension) = self.position.get(name) {
                vector[*dimension] = amount;
            }
        }
        vector
    }

    /// What a pod asks for, with so many volumes of EBS. One with more than is known of any type gets a node for itself: some take more.
    pub fn request(&self, resources: &Resources, volumes: i64) -> Vector {
        let mut vector = self.vector(resources);
        if let Some((dimension, attachable)) = &self.volumes {
            vector[*dimension] = volumes.min(attachable.most());
        }
        vector
    }

    /// What a node offers. Of volumes as many as its type takes; any number where no type is named.
    pub fn room(&self, resources: &Resources, instance_type: Option<&str>) -> Vector {
        let mut vector = self.vector(resources);
        if let Some((dimension, attachable)) = &self.volumes {
            vector[*dimension] = instance_type.map_or(ANY_NUMBER, |name| attachable.of_type(name));
        }
        vector
    }

    /// Without volumes, of which neither pods nor nodes say how many.
    pub fn resources(&self, vector: &[i64]) -> Resources {
        let named = self.names.iter().cloned().zip(vector.iter().copied());
        named.filter(|(name, amount)| *amount != 0 && name != ATTACHABLE_VOLUMES).collect()
    }
}

/// Whether every positive amount asked for is there.
pub fn fits(request: &[i64], free: &[i64]) -> bool {
    request.iter().zip(free).all(|(request, free)| request <= free || *request <= 0)
}

/// The first dimension in which the request is more than is free.
pub fn shortage(request: &[i64], free: &[i64]) -> Option<usize> {
    request.iter().zip(free).position(|(request, free)| request > free && *request > 0)
}

/// How many of these requests fit side by side, at most `limit`.
pub fn copies(request: &[i64], free: &[i64], limit: usize) -> usize {
    let most = request
        .iter()
        .zip(free)
        .filter(|(request, _)| **request > 0)
        .map(|(request, free)| (*free).max(0) / request)
        .min();
    most.map_or(limit, |most| usize::try_from(most).unwrap_or(usize::MAX).min(limit))
}

pub fn add(to: &mut [i64], amounts: &[i64], times: i64) {
    for (sum, amount) in to.iter_mut().zip(amounts) {
        *sum = sum.saturating_add(amount.saturating_mul(times));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_asked_fits_even_where_less_than_nothing_is_free() {
        assert!(fits(&[0, 1], &[-5, 1]));
        assert_eq!(shortage(&[1, 2], &[1, 1]), Some(1));
    }

    #[test]
    fn copies_is_the_scarcest_dimension() {
        assert_eq!(copies(&[1000, 2, 0], &[7760, 100, 0], 20), 7);
        assert_eq!(copies(&[0, 0, 0], &[1, 1, 1], 20), 20);
        assert_eq!(copies(&[1, 0, 0], &[-1, 0, 0], 20), 0);
    }
}
