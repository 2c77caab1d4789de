//! What the quotas of the account leave: an instance that needs more virtual processors than are left would be refused, so it is not offered.
//! What NodeClaims will launch that are on their way is taken as used.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::matching::{Entry, Matching};
use crate::catalog::vcpu_quotas::{VcpuQuota, quota_of};
use crate::catalog::{InstanceType, Offering};
use crate::inputs::Inputs;
use crate::plan::Alternative;
use crate::snapshot::nodes::Machine;
use cutlist_api::cloud_facts::VcpuQuotaUse;
use cutlist_api::keys;
use cutlist_api::node_claim::NodeClaim;

/// What is left of each quota of which it is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// By code, virtual processors.
    left: BTreeMap<String, u64>,
}

impl Quotas {
    pub fn new(inputs: &Inputs<'_>) -> Self {
        let coming = coming(inputs);
        let known = inputs.policy.vcpu_quotas.iter();
        let left = known.filter_map(|quota| {
            let coming = coming.get(quota.code.as_str()).copied().unwrap_or_default();
            Some((quota.code.clone(), quota.vcpus.saturating_sub(quota.used?.saturating_add(coming.vcpus))))
        });
        Self { left: left.collect() }
    }

    /// The quota of which too little is left for one such instance.
    pub fn too_small_for(&self, instance_type: &InstanceType, capacity_type: &str) -> Option<&'static VcpuQuota> {
        let quota = quota_of(&instance_type.name, capacity_type)?;
        let left = self.left.get(quota.code)?;
        (instance_type.vcpus()? > *left).then_some(quota)
    }

    /// Takes what would be refused off the offer. O(offerings), and nothing where no quota is known.
    pub fn leave_out(&self, types: &mut [InstanceType]) {
        if self.left.is_empty() {
            return;
        }
        for instance_type in types {
            for capacity_type in [keys::ON_DEMAND, keys::SPOT] {
                let is_offered = |it: &Offering| it.available && it.capacity_type == capacity_type;
                // A shared list is only copied where it changes.
                if instance_type.offerings.iter().any(is_offered)
                    && self.too_small_for(instance_type, capacity_type).is_some()
                {
                    let refused = instance_type.offerings.iter_mut().filter(|it| it.capacity_type == capacity_type);
                    refused.for_each(|it| it.available = false);
                }
            }
        }
    }
}

/// NodeClaims that are not launched yet, and the virtual processors that they will take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coming {
    pub claims: usize,
    pub vcpus: u64,
}

/// By the code of a quota. EC2 counts none of them yet. Of a claim counts the offering that it asks for first; one that no plan of ours made
/// does not say what it asks for. O(claims), and nothing where no quota is known.
pub fn coming(inputs: &Inputs<'_>) -> BTreeMap<&'static str, Coming> {
    let mut coming: BTreeMap<&'static str, Coming> = BTreeMap::new();
    if inputs.policy.vcpu_quotas.is_empty() {
        return coming;
    }
    let is_coming = |claim: &&NodeClaim| {
        let has_instance = claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
        !has_instance && claim.metadata.deletion_timestamp.is_none()
    };
    for claim in inputs.snapshot.node_claims.iter().filter(is_coming) {
        let Some(first) = first_alternative(claim) else { continue };
        let Some(quota) = quota_of(&first.instance_type, &first.capacity_type) else { continue };
        let sold = inputs.catalog.instance_types.iter().find(|it| it.name == first.instance_type);
        let entry = coming.entry(quota.code).or_default();
        entry.claims += 1;
        entry.vcpus += sold.and_then(InstanceType::vcpus).unwrap_or_default();
    }
    coming
}

fn first_alternative(claim: &NodeClaim) -> Option<Alternative> {
    let all: Vec<Alternative> = serde_json::from_str(claim.annotation(keys::LAUNCH_ALTERNATIVES)?).ok()?;
    all.into_iter().next()
}

/// The quota that a machine counts for, and of which too little is left for another one like it; with the uses as they are when the machine
/// has gone. `None` where nobody knows of one.
pub fn quota_in_its_way(inputs: &Inputs<'_>, machine: &Machine<'_>) -> Option<(&'static VcpuQuota, Vec<VcpuQuotaUse>)> {
    let name = machine.label(keys::INSTANCE_TYPE).filter(|_| !inputs.policy.vcpu_quotas.is_empty())?;
    let sold = inputs.catalog.instance_types.iter().find(|it| it.name == name)?;
    let quota = Quotas::new(inputs).too_small_for(sold, machine.label(keys::CAPACITY_TYPE)?)?;
    let vcpus = sold.vcpus()?;
    let mut uses = inputs.policy.vcpu_quotas.clone();
    for of_quota in uses.iter_mut().filter(|it| it.code == quota.code) {
        of_quota.used = of_quota.used.map(|used| used.saturating_sub(vcpus));
    }
    Some((quota, uses))
}

/// By the code of a quota, the NodePools that may buy what is too large for what is left of it. O(pools x requirements x types), and nothing
/// where no quota is known.
pub fn pools_short_of_quota(inputs: &Inputs<'_>) -> BTreeMap<&'static str, Vec<String>> {
    let quotas = Quotas::new(inputs);
    let mut short: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    if quotas.left.is_empty() {
        return short;
    }
    let matching = Matching::new(&inputs.catalog.instance_types, &inputs.catalog.region);
    for pool in inputs.node_pools.iter().filter(|pool| !pool.spec.template.spec.node_class_ref.is_of_others()) {
        let entries = Entry::of_pool(pool);
        let relevant = matching.relevant(&entries);
        let is_allowed =
            |it: &&Offering| it.available && relevant.iter().all(|entry| entry.allows_offering(it).unwrap_or(true));
        let of_type = |it: &InstanceType| {
            let quotas =
                it.offerings.iter().filter(is_allowed).filter_map(|sold| quotas.too_small_for(it, &sold.capacity_type));
            quotas.map(|quota| quota.code).collect::<Vec<_>>()
        };
        let codes: BTreeSet<&'static str> = matching.types(&relevant).iter().flat_map(of_type).collect();
        for code in codes {
            short.entry(code).or_default().push(pool.metadata.name.clone().unwrap_or_default());
        }
    }
    short
}
