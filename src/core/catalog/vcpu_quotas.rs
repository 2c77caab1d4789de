//! The quotas of an account for instances, which are counted in virtual processors: one for each group of families and each way of buying.
//! Source: Service Quotas, service `ec2`; EC2's user guide on on-demand and spot instance quotas.

use cutlist_api::keys;

use super::InstanceType;

/// A quota of the account in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VcpuQuota {
    /// As Service Quotas has it: `L-1216C47A`.
    pub code: &'static str,
    /// `on-demand standard`
    pub name: &'static str,
    pub capacity_type: &'static str,
    /// The letters with which the names of its families begin, up to the first that is no letter.
    families: &'static [&'static str],
}

const STANDARD: &[&str] = &["a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"];
const G_AND_VT: &[&str] = &["g", "gr", "vt"];

const fn on_demand(code: &'static str, name: &'static str, families: &'static [&'static str]) -> VcpuQuota {
    VcpuQuota { code, name, capacity_type: keys::ON_DEMAND, families }
}

const fn spot(code: &'static str, name: &'static str, families: &'static [&'static str]) -> VcpuQuota {
    VcpuQuota { code, name, capacity_type: keys::SPOT, families }
}

/// Those that are known here. New accounts have none at all for most families with accelerators.
pub const VCPU_QUOTAS: &[VcpuQuota] = &[
    on_demand("L-1216C47A", "on-demand standard", STANDARD),
    on_demand("L-DB2E81BA", "on-demand G and VT", G_AND_VT),
    on_demand("L-417A185B", "on-demand P", &["p"]),
    on_demand("L-6E869C2A", "on-demand DL", &["dl"]),
    on_demand("L-74FC7D96", "on-demand F", &["f"]),
    on_demand("L-1945791B", "on-demand Inf", &["inf"]),
    on_demand("L-2C3B7624", "on-demand Trn", &["trn"]),
    on_demand("L-7295265B", "on-demand X", &["x"]),
    spot("L-34B43A08", "spot standard", STANDARD),
    spot("L-3819A6DF", "spot G and VT", G_AND_VT),
    spot("L-7212CCBC", "spot P", &["p"]),
    spot("L-85EED4F7", "spot DL", &["dl"]),
    spot("L-88CF9481", "spot F", &["f"]),
    spot("L-B5D1601B", "spot Inf", &["inf"]),
    spot("L-6B0D517C", "spot Trn", &["trn"]),
    spot("L-E3A00192", "spot X", &["x"]),
];

/// The quota that instances of this type and capacity type count for; `None` where it has one that is not known here, such as that of P5 and
/// later on spot. Reserved capacity has counted since it was reserved, and does not count again.
pub fn quota_of(instance_type: &str, capacity_type: &str) -> Option<&'static VcpuQuota> {
    let letters = instance_type.find(|character: char| !character.is_ascii_lowercase()).unwrap_or(instance_type.len());
    let (family, generation) = instance_type.split_at_checked(letters)?;
    if family == "p" && capacity_type == keys::SPOT && !generation.starts_with(['2', '3', '4']) {
        return None;
    }
    VCPU_QUOTAS.iter().find(|quota| quota.capacity_type == capacity_type && quota.families.contains(&family))
}

/// The code of it.
pub fn code_of(instance_type: &str, capacity_type: &str) -> Option<&'static str> {
    quota_of(instance_type, capacity_type).map(|quota| quota.code)
}

impl InstanceType {
    /// Virtual processors; `None` where its labels do not say.
    pub fn vcpus(&self) -> Option<u64> {
        self.requirements.get(keys::INSTANCE_CPU)?.first()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_counts_for_the_quota_of_its_letters() {
        for (instance_type, capacity_type, expected) in [
            ("m5.large", keys::ON_DEMAND, Some("L-1216C47A")),
            ("im4gn.large", keys::SPOT, Some("L-34B43A08")),
            ("inf2.xlarge", keys::ON_DEMAND, Some("L-1945791B")),
            ("is4gen.large", keys::ON_DEMAND, Some("L-1216C47A")),
            ("gr6.4xlarge", keys::SPOT, Some("L-3819A6DF")),
            ("p4d.24xlarge", keys::SPOT, Some("L-7212CCBC")),
            ("p5.48xlarge", keys::SPOT, None),
            ("p5.48xlarge", keys::ON_DEMAND, Some("L-417A185B")),
            ("trn1.2xlarge", keys::SPOT, Some("L-6B0D517C")),
            ("t3.micro", keys::ON_DEMAND, Some("L-1216C47A")),
            ("x2idn.16xlarge", keys::ON_DEMAND, Some("L-7295265B")),
            ("m5.large", keys::RESERVED, None),
            ("mac1.metal", keys::ON_DEMAND, None),
            ("u-6tb1.metal", keys::ON_DEMAND, None),
            ("hpc6a.48xlarge", keys::ON_DEMAND, None),
            ("", keys::SPOT, None),
            ("é", keys::SPOT, None),
            ("vt1.3xlarge", keys::ON_DEMAND, Some("L-DB2E81BA")),
            ("m7i-flex.large", keys::ON_DEMAND, Some("L-1216C47A")),
        ] {
            assert_eq!(quota_of(instance_type, capacity_type).map(|quota| quota.code), expected, "{instance_type}");
        }
    }
}
