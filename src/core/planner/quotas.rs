//! What a plan takes of the account's quotas for virtual processors.

use std::collections::BTreeMap;

use crate::catalog::InstanceType;
use crate::catalog::vcpu_quotas::{VCPU_QUOTAS, VcpuQuota, quota_of};
use crate::inputs::Inputs;
use crate::offer::{Coming, coming, pools_short_of_quota};
use crate::plan::{CloudFact, CloudFactCode, Step, StepKind};
use cutlist_api::cloud_facts::VcpuQuotaUse;

/// Beyond this part of a quota, in percent, it needs a look.
const FULL_PERCENT: u64 = 80;
/// NodePools that one fact names.
const POOLS_NAMED_MAX: usize = 3;

/// What this plan launches under a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Launched {
    nodes: usize,
    vcpus: u64,
}

/// For each quota that this plan takes from, or that keeps a NodePool from buying what it allows. Nodes go after others have come, so what
/// they give back does not count. Nothing where no cloud was asked. O(steps x types + pools x requirements x types).
pub fn facts(inputs: &Inputs<'_>, steps: &[Step]) -> Vec<CloudFact> {
    if inputs.policy.vcpu_quotas.is_empty() {
        return Vec::new();
    }
    let mut launched: BTreeMap<&str, Launched> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.kind == StepKind::Create) {
        let Some(quota) = quota_of(&step.instance_type, &step.capacity_type) else { continue };
        let sold = inputs.catalog.instance_types.iter().find(|it| it.name == step.instance_type);
        let entry = launched.entry(quota.code).or_default();
        entry.nodes += 1;
        entry.vcpus += sold.and_then(InstanceType::vcpus).unwrap_or_default();
    }
    let (short, coming) = (pools_short_of_quota(inputs), coming(inputs));
    let of_quota = |quota: &VcpuQuota| {
        let known = inputs.policy.vcpu_quotas.iter().find(|it| it.code == quota.code)?;
        let takes = launched.get(quota.code).copied().unwrap_or_default();
        let pools = short.get(quota.code).map(Vec::as_slice).unwrap_or_default();
        let coming = coming.get(quota.code).copied().unwrap_or_default();
        (takes != Launched::default() || !pools.is_empty()).then(|| fact(quota, known, coming, takes, pools))
    };
    VCPU_QUOTAS.iter().filter_map(of_quota).collect()
}

fn fact(quota: &VcpuQuota, known: &VcpuQuotaUse, coming: Coming, launched: Launched, pools: &[String]) -> CloudFact {
    let (code, text) = said(known, coming, launched, pools);
    let text = format!("{}: {text}", quota.name);
    CloudFact {
        node_class: String::new(),
        subject: format!("quota {}", quota.code),
        code,
        before: Vec::new(),
        after: None,
        nodes: launched.nodes,
        replaces: BTreeMap::new(),
        used: false,
        text,
        definition: None,
    }
}

fn said(
    known: &VcpuQuotaUse,
    coming: Coming,
    Launched { nodes, vcpus }: Launched,
    pools: &[String],
) -> (CloudFactCode, String) {
    let of = known.vcpus;
    let nodes = if nodes == 1 { "1 node".to_owned() } else { format!("{nodes} nodes") };
    let takes = format!("this plan takes {vcpus} ({nodes})");
    let Some(used) = known.used else {
        return (CloudFactCode::QuotaUseUnknown, format!("{of} vCPUs; how many are used is not known; {takes}"));
    };
    let mut parts = vec![format!("{used} of {of} vCPUs used")];
    if coming.claims > 0 {
        let claims =
            if coming.claims == 1 { "1 NodeClaim".to_owned() } else { format!("{} NodeClaims", coming.claims) };
        parts.push(format!("{} more by {claims} on the way to EC2", coming.vcpus));
    }
    let used = used.saturating_add(coming.vcpus);
    let after = used.saturating_add(vcpus);
    if let Some(lacking) = after.checked_sub(of).filter(|lacking| *lacking > 0 && vcpus > 0) {
        parts.push(format!("{takes}, {lacking} more than there are: EC2 will refuse some of them"));
    } else if vcpus > 0 {
        parts.push(format!("{takes} -> {after} ({} %)", percent(after, of)));
    }
    if !pools.is_empty() {
        let left = of.saturating_sub(used);
        parts.push(format!("of what {} may buy, types with more than {left} are left out", named(pools)));
    }
    let needs_a_look = after > of || !pools.is_empty() || percent(after, of) >= FULL_PERCENT;
    let code = if needs_a_look { CloudFactCode::QuotaShort } else { CloudFactCode::QuotaLeft };
    (code, parts.join("; "))
}

fn percent(part: u64, of: u64) -> u64 {
    part.saturating_mul(100).checked_div(of).unwrap_or(100)
}

/// `NodePool gpu`, `NodePools a, b, c and 2 more`
fn named(pools: &[String]) -> String {
    let mut shown: Vec<String> = pools.iter().take(POOLS_NAMED_MAX).cloned().collect();
    let what = if pools.len() == 1 { "NodePool" } else { "NodePools" };
    let rest = pools.len().saturating_sub(POOLS_NAMED_MAX);
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    if rest == 0 && shown.len() > 1 {
        let last = shown.pop().unwrap_or_default();
        return format!("{what} {} and {last}", shown.join(", "));
    }
    format!("{what} {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_and_what_lacks_is_said() {
        let quota = |vcpus, used| VcpuQuotaUse { code: "L-1216C47A".to_owned(), vcpus, used };
        let pools = ["gpu".to_owned()];
        let (one, none) = (Launched { nodes: 2, vcpus: 16 }, Launched::default());
        let coming = Coming { claims: 2, vcpus: 8 };
        let text = "612 of 640 vCPUs used; 8 more by 2 NodeClaims on the way to EC2; this plan takes 16 (2 nodes) -> 636 (99 %)";
        assert_eq!(said(&quota(640, Some(612)), coming, one, &[]), (CloudFactCode::QuotaShort, text.to_owned()));
        type Case<'a> = (VcpuQuotaUse, Launched, &'a [String], CloudFactCode, &'a str);
        let cases: [Case<'_>; 5] = [
            (
                quota(640, Some(100)),
                one,
                &[],
                CloudFactCode::QuotaLeft,
                "100 of 640 vCPUs used; this plan takes 16 (2 nodes) -> 116 (18 %)",
            ),
            (
                quota(640, Some(612)),
                one,
                &[],
                CloudFactCode::QuotaShort,
                "612 of 640 vCPUs used; this plan takes 16 (2 nodes) -> 628 (98 %)",
            ),
            (
                quota(128, Some(118)),
                one,
                &[],
                CloudFactCode::QuotaShort,
                "118 of 128 vCPUs used; this plan takes 16 (2 nodes), 6 more than there are: EC2 will refuse some of them",
            ),
            (
                quota(0, Some(0)),
                none,
                &pools,
                CloudFactCode::QuotaShort,
                "0 of 0 vCPUs used; of what NodePool gpu may buy, types with more than 0 are left out",
            ),
            (
                quota(64, None),
                one,
                &[],
                CloudFactCode::QuotaUseUnknown,
                "64 vCPUs; how many are used is not known; this plan takes 16 (2 nodes)",
            ),
        ];
        for (known, launched, pools, code, text) in cases {
            assert_eq!(said(&known, Coming::default(), launched, pools), (code, text.to_owned()));
        }
    }

    #[test]
    fn pools_are_named_up_to_three() {
        let named = |names: &[&str]| named(&names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(named(&["a"]), "NodePool a");
        assert_eq!(named(&["a", "b"]), "NodePools a and b");
        assert_eq!(named(&["a", "b", "c", "d"]), "NodePools a, b, c and 1 more");
    }
}
