//! Things of which there is only so much: what a pool may have, what the whole cluster may have.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::model::Resources;

pub use super::indices::QuotaIndex;

/// Whose limits they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitScope {
    /// `spec.limits` of a NodePool.
    NodePool,
    /// `spec.limits` of `cutlist.yaml`.
    Cluster,
    /// What is left of the capacity reservation with this id.
    Reservation(String),
    /// Nodes of a pool that may be on their way, since instances of it ended before they joined: what is known of them.
    EarlyEnds(String),
}

/// Amounts by position in [`Limited`]; shared, since nodes of one type take the same.
pub type LimitedCapacity = Rc<[i64]>;

/// The resources that some limit names.
#[derive(Clone, Debug, Default)]
pub struct Limited {
    pub(super) names: Vec<String>,
}

impl Limited {
    pub(super) fn new<'l>(limits: impl Iterator<Item = &'l Resources>) -> Self {
        let names: BTreeSet<&str> = limits.flat_map(|limits| limits.iter().map(|(name, _)| name)).collect();
        Self { names: names.into_iter().map(str::to_owned).collect() }
    }

    pub fn name(&self, resource: usize) -> &str {
        &self.names[resource]
    }

    /// What of a capacity limits count.
    pub fn capacity(&self, capacity: &Resources) -> LimitedCapacity {
        self.names.iter().map(|name| capacity.get(name)).collect()
    }

    /// The amounts by name.
    pub fn resources(&self, amounts: &[i64]) -> Resources {
        self.names.iter().cloned().zip(amounts.iter().copied()).collect()
    }

    pub fn nothing(&self) -> LimitedCapacity {
        self.names.iter().map(|_| 0).collect()
    }
}

/// Limits, and what the nodes that are there take of them.
#[derive(Clone, Debug)]
pub struct Quota {
    pub scope: LimitScope,
    /// By position in [`Limited`]; `None` where there is no limit.
    pub limits: Vec<Option<i64>>,
    pub used: LimitedCapacity,
}

impl Quota {
    /// The first resource of which less is left than a node of this capacity takes, when `planned` is already taken on
    /// top of what is used, and `given_back` is not.
    pub fn exceeded(&self, planned: &[i64], given_back: &[i64], capacity: &[i64]) -> Option<usize> {
        let exceeds = |(resource, limit): (usize, &Option<i64>)| {
            let limit = (*limit)?;
            let left = limit
                .saturating_sub(self.used[resource])
                .saturating_sub(planned[resource])
                .saturating_add(given_back[resource]);
            (capacity[resource] > left).then_some(resource)
        };
        self.limits.iter().enumerate().find_map(exceeds)
    }

    /// Of how many resources a node of this capacity takes more than is left, and by how many thousandths of the limits together.
    pub fn excess(&self, planned: &[i64], capacity: &[i64]) -> (usize, i128) {
        let excesses = self.limits.iter().enumerate().filter_map(|(resource, limit)| {
            let limit = i128::from((*limit)?);
            let taken =
                [self.used[resource], planned[resource], capacity[resource]].map(i128::from).iter().sum::<i128>();
            (taken > limit).then(|| (taken - limit).saturating_mul(1000) / limit.max(1))
        });
        excesses.fold((0, 0), |(count, sum), excess| (count + 1, sum + excess))
    }
}
