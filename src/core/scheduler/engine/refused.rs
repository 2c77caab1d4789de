//! Why a pod does not go somewhere, without allocating: most tries fail, and nobody asks why.

use super::Engine;
use crate::scheduler::class::VariantIndex;
use crate::scheduler::host::HostIndex;
use crate::scheduler::quota::QuotaIndex;
use crate::scheduler::refusal::Refusal;
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::topology::{GroupIndex, GroupKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused<'p> {
    /// Taints, labels or requirements of the pool, found when the problem was compiled.
    Pool(VariantIndex, TemplateIndex),
    Requirement(&'p str),
    /// `available` is looked up only for explanations.
    Resource {
        dimension: usize,
        requested: i64,
        available: i64,
    },
    HostPort,
    Volume,
    Constraint(GroupIndex),
    Offering,
    /// `planned` is taken by other nodes to be created.
    Limit {
        quota: QuotaIndex,
        resource: usize,
        planned: i64,
        needed: i64,
    },
    MinValues(&'p str),
    /// Too many pods of its workload are together; only while that is avoided, so never the reason why a pod waits.
    Concentration,
}

impl<'p> Engine<'p, '_> {
    /// The same as data that outlives the engine.
    pub(super) fn refusal(&self, refused: Refused<'p>) -> Refusal {
        match refused {
            Refused::Pool(variant, template) => match self.problem.fit_of_template(variant, template) {
                Err(refusal) => refusal.clone(),
                Ok(_) => Refusal::Offering,
            },
            Refused::Requirement(key) => Refusal::Requirement { key: key.to_owned() },
            Refused::Resource { dimension, requested, available } => Refusal::Resource {
                name: self.problem.dimensions.name(dimension).to_owned(),
                requested,
                available: available.max(0),
            },
            Refused::HostPort => Refusal::HostPort,
            Refused::Volume => Refusal::Volume,
            Refused::Constraint(group) => self.constraint_refusal(group),
            Refused::Offering | Refused::Concentration => Refusal::Offering,
            Refused::Limit { quota, resource, planned, needed } => {
                let quota = &self.problem.quotas[quota];
                Refusal::Limit {
                    scope: quota.scope.clone(),
                    resource: self.problem.limited.name(resource).to_owned(),
                    limit: quota.limits[resource].unwrap_or(i64::MAX),
                    used: quota.used[resource].saturating_add(planned),
                    needed,
                }
            }
            Refused::MinValues(key) => Refusal::MinValues { key: key.to_owned() },
        }
    }

    /// The limit that an open node exceeds, where limits were ignored when it was opened.
    pub fn limit_refusal(&self, host: HostIndex) -> Option<Refusal> {
        let open = self.open_node(host)?;
        let capacity = &open.limit_capacity;
        let (quota, resource) = self.limit_exceeded(open.template, capacity, capacity)?;
        let planned = self.planned[quota][resource].saturating_sub(capacity[resource]);
        Some(self.refusal(Refused::Limit { quota, resource, planned, needed: capacity[resource] }))
    }

    /// Whether some limit keeps some type from being bought.
    pub fn is_near_limits(&self) -> bool {
        let nothing = self.problem.limited.nothing();
        let mut templates = self.problem.templates.enumerated();
        templates
            .any(|(index, template)| self.limit_exceeded(index, &nothing, &template.limited_capacity_most).is_some())
    }

    pub(super) fn constraint_refusal(&self, group: GroupIndex) -> Refusal {
        if self.problem.groups[group].claim.is_some() {
            return Refusal::Volume;
        }
        let key = self.problem.domains.name(self.problem.groups[group].key).to_owned();
        match self.problem.groups[group].kind {
            GroupKind::Spread(_) => Refusal::Spread { key },
            GroupKind::Affinity => Refusal::Affinity { key },
            GroupKind::AntiAffinity => Refusal::AntiAffinity { key },
        }
    }
}
