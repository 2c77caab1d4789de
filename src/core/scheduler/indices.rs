//! Positions of what the scheduler counts by number: a type for each, so that none is taken for another.

use crate::model::index::index;

index! {
    /// Position in [`super::Problem::classes`].
    pub struct ClassIndex;
    /// Position in [`super::Problem::variants`].
    pub struct VariantIndex;
}

index! {
    /// Position of a workload whose pods are counted together.
    pub struct WorkloadIndex;
    /// An instance type in a zone, where it is bought as spot.
    pub struct SpotPool;
}

index! {
    /// Position of an instance type in [`super::offerings::Offerings::types`].
    pub struct TypeIndex;
    /// Position of a slot in [`super::offerings::Offerings::slots`].
    pub struct SlotIndex;
}

index! {
    /// Position in [`super::Problem::daemons`].
    pub struct DaemonIndex;
}

index! {
    /// Position of a host in the engine: first the nodes that exist, then those that would be created.
    pub struct HostIndex;
}

index! {
    /// Position of a quota in [`super::Problem::quotas`].
    pub struct QuotaIndex;
}

index! {
    /// Position of a template in [`super::Problem::templates`].
    pub struct TemplateIndex;
}

index! {
    /// Position in [`super::Problem::groups`].
    pub struct GroupIndex;
    /// Position of a topology key in [`super::topology::Domains`].
    pub struct KeyIndex;
}
