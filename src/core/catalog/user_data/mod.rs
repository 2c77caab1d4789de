//! What an instance is told when it boots: how it joins the cluster, and what the EC2NodeClass adds.
//!
//! [`render`] makes the text for an image family out of a [`Bootstrap`]. The same input gives the same bytes, whatever the
//! order of maps, so that equal launches have equal launch templates. What the class says (`spec.userData`) is merged, not
//! replaced: in front of our part where parts are run one after the other, below our values where settings are one document.
//! What loses against ours, and what may not do what was meant, is a [`Finding`]; what does not parse is an error with its line.
//!
//! Behaviour: reference, section 6.3. Sources: nodeadm (`awslabs/amazon-eks-ami`), `bootstrap.sh` of the same, the settings of
//! Bottlerocket, `Start-EKSBootstrap.ps1`, cloud-init.

mod al2;
mod al2023;
pub mod bottlerocket;
mod error;
mod kubelet;
mod labels;
mod mime_parts;
mod parts;
mod taints;
mod windows;

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use cutlist_api::ec2_node_class::{AmiFamily, EC2NodeClassSpec, InstanceStorePolicy};
use cutlist_api::node_pool::Taint;

pub use error::UserDataError;
pub use labels::registers_itself_with;

/// What EC2 takes, before it is encoded. Source: the EC2 user guide, "Run commands when you launch an EC2 instance".
pub const BYTES_MAX: usize = 16_384;

/// From this size on it is said how little room is left: nine tenths, as in the reference.
const BYTES_NEAR_MAX: usize = BYTES_MAX / 10 * 9;

/// What an instance has to know to join a cluster, before it is written in the words of its image family.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Bootstrap {
    pub cluster: Cluster,
    /// Labels that the node is to have. Those that a kubelet may not give itself are left out.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Taints and startup taints of the NodeClaim; that of nodes which have not registered is added.
    #[serde(default)]
    pub taints: Vec<Taint>,
    /// `spec.kubelet` of the class.
    #[serde(default)]
    pub kubelet: BTreeMap<String, serde_json::Value>,
    /// Pods that a node of these instance types takes.
    pub max_pods: i64,
    #[serde(default)]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Version of the image, such as `v1.46.0` or `latest`; only Bottlerocket asks, see [`bottlerocket::version_of`].
    #[serde(default)]
    pub image_version: Option<String>,
    /// `spec.userData` of the class.
    #[serde(default)]
    pub user_data: Option<String>,
}

/// The cluster that an instance joins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cluster {
    pub name: String,
    /// URL of the API server.
    pub endpoint: String,
    /// PEM in base64, as EKS gives it.
    #[serde(default)]
    pub certificate_authority: Option<String>,
    /// Addresses of Services, `10.100.0.0/16` or an IPv6 range; nodeadm does without nothing else.
    #[serde(default)]
    pub service_cidr: Option<String>,
    /// Address of the Service `kube-dns`, which kubelets use unless the class names another one.
    #[serde(default)]
    pub dns_address: Option<IpAddr>,
}

impl Cluster {
    /// Pods and Services have IPv6 addresses: known by that of `kube-dns`, else by the range of Services.
    pub fn is_ipv6(&self) -> bool {
        let by_range = || self.service_cidr.as_deref().is_some_and(|range| range.contains(':'));
        self.dns_address.map_or_else(by_range, |address| address.is_ipv6())
    }
}

/// The text that an instance gets, and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserData {
    pub text: String,
    pub findings: Vec<Finding>,
}

impl UserData {
    /// As EC2's API takes it.
    pub fn encoded(&self) -> String {
        BASE64_STANDARD.encode(&self.text)
    }
}

/// Something in `spec.userData` that may not do what was meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub code: FindingCode,
    /// In `spec.userData`, from 1.
    pub line: Option<usize>,
    pub text: String,
    /// What the class has, and with which value, where ours is put in its place.
    pub replaced: Option<String>,
}

impl Finding {
    fn new(code: FindingCode, line: Option<usize>, text: String) -> Self {
        Self { code, line, text, replaced: None }
    }

    /// That ours is put in the place of what the class has.
    fn replaced(code: FindingCode, line: usize, what: String, by: &str) -> Self {
        Self { replaced: Some(what.clone()), ..Self::new(code, Some(line), format!("{what} is replaced by {by}")) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingCode {
    /// The version of a NodeConfig, which loses against the one that is merged with it.
    VersionReplaced,
    /// A value that loses against the one that the cluster, the NodePool or the class has.
    Overridden,
    /// A setting that is kept and is not known: an instance that does not know it either refuses to start.
    UnknownSetting,
    /// A script without a `#!` line, which cloud-init can not start.
    NoInterpreter,
    /// A field of the class that changes nothing on images of its family.
    WithoutEffect,
    /// Comments alone.
    NothingInIt,
    /// Text before the first part or behind the last one, which is in no part.
    TextOutsideParts,
    /// Little room is left before EC2 refuses it.
    NearTheLimit,
}

/// The user data of an instance with an image of this family. Nothing in it depends on the instance type but `max_pods`.
pub fn render(family: AmiFamily, bootstrap: &Bootstrap) -> Result<UserData, UserDataError> {
    let mut findings = Vec::new();
    let text = match family {
        AmiFamily::AL2 => al2::render(bootstrap, &mut findings),
        AmiFamily::AL2023 => al2023::render(bootstrap, &mut findings),
        AmiFamily::Bottlerocket => bottlerocket::render(bootstrap, &mut findings),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
            windows::render(family, bootstrap, &mut findings)
        }
        // Whoever makes the image knows how it joins; not a byte is changed.
        AmiFamily::Custom => Ok(bootstrap.user_data.clone().unwrap_or_default()),
    }?;
    if text.len() > BYTES_MAX {
        return Err(UserDataError::TooLarge {
            bytes: text.len(),
            encoded_bytes: encoded_length(text.len()),
            of_class: bootstrap.user_data.as_ref().map_or(0, String::len),
        });
    }
    if text.len() >= BYTES_NEAR_MAX {
        let text = format!("the user data has {} bytes of the {BYTES_MAX} that EC2 takes", text.len());
        findings.push(Finding::new(FindingCode::NearTheLimit, None, text));
    }
    findings.sort();
    findings.dedup();
    Ok(UserData { text, findings })
}

/// What keeps the user data of a class from being merged with ours, and what in it may not do what was meant, whatever the cluster and the
/// node are. Of the values that ours replace it says nothing: they are those of a cluster.
pub fn check(family: AmiFamily, user_data: &str) -> Result<Vec<Finding>, UserDataError> {
    let user_data = Some(user_data.to_owned());
    let mut findings = render(family, &Bootstrap { user_data, ..anywhere() })?.findings;
    findings.retain(|finding| !matches!(finding.code, FindingCode::Overridden | FindingCode::VersionReplaced));
    Ok(findings)
}

/// What of the user data of a class may not do what was meant, also where something else of the class or any cluster says otherwise. Nothing
/// where it can not be merged, see [`check`].
pub fn without_effect(class: &EC2NodeClassSpec) -> Vec<Finding> {
    let kubelet = class.kubelet.clone().unwrap_or_default();
    let bootstrap = Bootstrap {
        max_pods: kubelet.get("maxPods").and_then(serde_json::Value::as_i64).unwrap_or_default(),
        kubelet,
        instance_store_policy: class.instance_store_policy,
        user_data: class.user_data.clone(),
        ..anywhere()
    };
    let mut findings = render(class.resolved_ami_family(), &bootstrap).map(|made| made.findings).unwrap_or_default();
    for finding in &mut findings {
        // The value is that of no cluster.
        if let (FindingCode::Overridden, Some(line), Some(what)) = (finding.code, finding.line, finding.replaced.take())
        {
            *finding = Finding::replaced(finding.code, line, what, "what the cluster, the class or the NodePool has");
        }
    }
    // Lint has rules of their own for the size, for other fields, and for a NodeConfig of another version.
    let of_other_rules =
        |code| matches!(code, FindingCode::NearTheLimit | FindingCode::WithoutEffect | FindingCode::VersionReplaced);
    findings.retain(|finding| !of_other_rules(finding.code));
    findings
}

/// Any cluster: nothing of it is in the class's part.
fn anywhere() -> Bootstrap {
    let cluster = Cluster {
        name: "any".to_owned(),
        endpoint: "https://any".to_owned(),
        certificate_authority: Some("YW55".to_owned()),
        service_cidr: Some("10.100.0.0/16".to_owned()),
        dns_address: Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 100, 0, 10))),
    };
    Bootstrap { cluster, ..Bootstrap::default() }
}

fn encoded_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// What the class adds; `None` where that is nothing.
fn custom(bootstrap: &Bootstrap) -> Option<&str> {
    bootstrap.user_data.as_deref().filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_on_what_is_encoded_and_not_on_the_encoding() {
        let of = |bytes: usize| {
            let user_data = Some("x".repeat(bytes));
            render(AmiFamily::Custom, &Bootstrap { user_data, ..Bootstrap::default() })
        };
        assert_eq!(of(BYTES_NEAR_MAX - 1).unwrap().findings, []);
        let full = of(BYTES_MAX).unwrap();
        assert_eq!(full.findings[0].code, FindingCode::NearTheLimit);
        assert_eq!(full.encoded().len(), encoded_length(BYTES_MAX));
        let refused = of(BYTES_MAX + 1).unwrap_err().to_string();
        assert_eq!(
            refused,
            "the user data has 16385 bytes (21848 in base64), and EC2 takes 16384 before they are encoded; 16385 of \
             them are spec.userData of the class: shorten it, or let it fetch the rest"
        );
    }

    #[test]
    fn a_class_can_be_asked_without_a_cluster() {
        for (family, text) in [
            (AmiFamily::Bottlerocket, "[settings]\nmotd = hello there\n"),
            (AmiFamily::Bottlerocket, "[settings.kubernetes\nmax-pods = 20\n"),
            (AmiFamily::Bottlerocket, "[settings]\nmotd = \"a\"\nmotd = \"b\"\n"),
            (AmiFamily::Bottlerocket, "#!/bin/bash\nA=1\necho $A\n"),
            (AmiFamily::Bottlerocket, "{\"settings\": {\"motd\": \"x=1\"}}\n"),
            (
                AmiFamily::AL2023,
                "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--A\n\nx\n--A--\n",
            ),
        ] {
            let found = check(family, text);
            assert!(matches!(found, Err(UserDataError::Malformed { .. })), "{text}: {found:?}");
        }
        for (family, text) in [
            (AmiFamily::Bottlerocket, "[settings.kubernetes]\nmax-pods = 20\n"),
            (AmiFamily::AL2023, "#!/bin/bash\necho hello\n"),
            (AmiFamily::AL2, "#!/bin/bash\necho hello\n"),
            (AmiFamily::Windows2022, "Write-Host hello\n"),
        ] {
            assert_eq!(check(family, text), Ok(Vec::new()), "{text}");
        }
        let large = check(AmiFamily::AL2023, &format!("#!/bin/bash\n{}", "x".repeat(BYTES_MAX)));
        assert!(matches!(large, Err(UserDataError::TooLarge { .. })), "{large:?}");
    }

    #[test]
    fn what_loses_against_any_cluster_is_said_without_one() {
        let of = |alias: &str, kubelet: serde_json::Value, user_data: &str| {
            let class = serde_json::json!({ "amiSelectorTerms": [{ "alias": alias }], "subnetSelectorTerms": [],
                "securityGroupSelectorTerms": [], "kubelet": kubelet, "userData": user_data });
            let findings = without_effect(&serde_json::from_value(class).unwrap());
            findings.into_iter().map(|it| format!("{:?} {:?} {}", it.code, it.line, it.text)).collect::<Vec<_>>()
        };
        let bottlerocket = "[settings.kubernetes]\nmax-pods = 20\nlog-level = 3\n";
        let replaced = "Overridden Some(2) settings.kubernetes.max-pods is replaced by what the cluster, the class or the NodePool has";
        assert_eq!(of("bottlerocket@latest", serde_json::json!({}), bottlerocket), [replaced]);
        assert_eq!(
            of("bottlerocket@latest", serde_json::json!({ "maxPods": 20 }), bottlerocket),
            [""; 0],
            "it is the same"
        );
        let config =
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 20\n";
        let found = of("al2023@latest", serde_json::json!({ "maxPods": 30 }), config);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("spec.kubelet.config.maxPods: `20` is replaced by what the cluster"), "{found:?}");
        let named =
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: x is replaced by y\n";
        let found = of("al2023@latest", serde_json::json!({}), named);
        let expected = "spec.cluster.name: `\"x is replaced by y\"` is replaced by what the cluster";
        assert!(found.len() == 1 && found[0].contains(expected), "whatever the value says: {found:?}");
        assert_eq!(
            of("al2023@latest", serde_json::json!({ "podsPerCore": -1 }), "echo hello"),
            [""; 0],
            "another rule says it"
        );
        assert!(of("al2023@latest", serde_json::json!({}), "echo hello")[0].starts_with("NoInterpreter"));
    }

    #[test]
    fn the_family_of_addresses_is_that_of_kube_dns() {
        let cluster = |dns: Option<&str>, range: Option<&str>| Cluster {
            dns_address: dns.map(|address| address.parse().unwrap()),
            service_cidr: range.map(str::to_owned),
            ..Cluster::default()
        };
        assert!(cluster(Some("fd00::a"), None).is_ipv6());
        assert!(cluster(None, Some("fd12:3456::/108")).is_ipv6());
        assert!(!cluster(Some("10.100.0.10"), Some("fd12:3456::/108")).is_ipv6());
        assert!(!cluster(None, None).is_ipv6());
    }
}
