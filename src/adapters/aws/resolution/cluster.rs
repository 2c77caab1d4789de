//! Whose nodes these are, and what they have to know of their cluster.

use std::net::IpAddr;

use super::super::api::account::ClusterAnswer;
use crate::api::ec2_node_class::AmiFamily;

/// The cluster that is driven, and who drives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Of the EKS cluster.
    pub cluster: String,
    pub region: String,
    pub installation: String,
    /// What the API server says, `1.34`: used where EKS does not tell.
    pub kubernetes_version: Option<String>,
}

/// A minor version of Kubernetes, by which images are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    major: u32,
    minor: u32,
}

impl KubernetesVersion {
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// From `1.34`, `v1.34.2-eks-1234` or `1.34+`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        let major = parts.next()?.parse().ok()?;
        let minor: String = parts.next()?.chars().take_while(char::is_ascii_digit).collect();
        Some(Self { major, minor: minor.parse().ok()? })
    }
}

impl std::fmt::Display for KubernetesVersion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// The addresses of Services, without which an AL2023 node does not start.
pub fn service_cidr(cluster: &ClusterAnswer) -> Option<&str> {
    cluster.service_ipv4_cidr.as_deref().or(cluster.service_ipv6_cidr.as_deref()).filter(|cidr| !cidr.is_empty())
}

/// Of the range of Services, the address that EKS gives the Service `kube-dns`.
const DNS_HOST: u8 = 10;

/// The address at which pods ask for names: the tenth of the range of Services, as EKS makes it and nodeadm reckons it. Images of other
/// families guess it by the range of the VPC, wrongly where the cluster has a range of its own, and AL2 does not start with IPv6 without it.
/// `None` where EKS says no range, or one that nobody can read.
pub fn dns_address(cluster: &ClusterAnswer) -> Option<IpAddr> {
    let (base, _) = service_cidr(cluster)?.split_once('/')?;
    Some(match base.parse().ok()? {
        IpAddr::V4(base) => IpAddr::V4(u32::from(base).checked_add(u32::from(DNS_HOST))?.into()),
        IpAddr::V6(base) => IpAddr::V6(u128::from(base).checked_add(u128::from(DNS_HOST))?.into()),
    })
}

/// Whether nodes of the family have to be told the addresses of Services.
pub fn needs_service_cidr(family: AmiFamily) -> bool {
    match family {
        AmiFamily::AL2023 => true,
        AmiFamily::AL2
        | AmiFamily::Bottlerocket
        | AmiFamily::Custom
        | AmiFamily::Windows2019
        | AmiFamily::Windows2022
        | AmiFamily::Windows2025 => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_every_form() {
        for text in ["1.34", "v1.34.2-eks-113cf36", "1.34+"] {
            assert_eq!(KubernetesVersion::parse(text), Some(KubernetesVersion::new(1, 34)), "{text}");
        }
        assert!(KubernetesVersion::new(1, 9) < KubernetesVersion::new(1, 33));
        for text in ["", "one", "1", "1.x"] {
            assert_eq!(KubernetesVersion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_asked_for_at_the_tenth_address_of_services() {
        let of = |ipv4: Option<&str>, ipv6: Option<&str>| {
            let cluster = ClusterAnswer {
                endpoint: String::new(),
                certificate_authority: String::new(),
                version: "1.34".to_owned(),
                service_ipv4_cidr: ipv4.map(str::to_owned),
                service_ipv6_cidr: ipv6.map(str::to_owned),
                vpc_id: None,
            };
            dns_address(&cluster).map(|address| address.to_string())
        };
        assert_eq!(of(Some("172.20.0.0/16"), None).as_deref(), Some("172.20.0.10"));
        assert_eq!(of(Some("192.168.240.0/24"), None).as_deref(), Some("192.168.240.10"));
        assert_eq!(of(None, Some("fd12:3456:789a::/108")).as_deref(), Some("fd12:3456:789a::a"));
        for range in ["", "somewhere", "10.100.0.0", "255.255.255.255/32"] {
            assert_eq!(of(Some(range), None), None, "{range}");
        }
    }
}
