//! CL0605 to CL0619: pools whose nodes others make: EKS Auto Mode, with its node classes, or Karpenter's provider of another cloud.
//! Source: the user guide of Amazon EKS, "Create a Node Class" and "Create a Node Pool for EKS Auto Mode".

use super::Rule;
use crate::api::keys;
use crate::api::node_pool::AUTO_MODE_KIND;
use crate::core::catalog::labels::AWS_PREFIX;
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::providers::{is_of_another_provider, is_of_auto_mode};
use crate::definitions::suggest;

const POOLS: &[Kind] = &[Kind::NodePool];
const REFERENCE: &str = "/spec/template/spec/nodeClassRef";
const REQUIREMENTS: &str = "/spec/template/spec/requirements";

pub static LABEL: Rule = Rule::document(
    "CL0605",
    "label-of-other-nodes",
    Warning,
    "Pools of EKS Auto Mode ask for labels of eks.amazonaws.com, others for those of karpenter.k8s.aws.",
    POOLS,
    label,
);
pub static FIELD: Rule = Rule::pass(
    "CL0606",
    "auto-mode-field",
    Warning,
    "Fields of a NodeClass of EKS Auto Mode are spelt as they are documented.",
);
pub static POOL: Rule = Rule::document(
    "CL0607",
    "auto-mode-pool",
    Note,
    "The nodes of a pool of EKS Auto Mode are made by EKS: plans leave the pool out.",
    POOLS,
    pool,
);

pub static OF_ANOTHER_PROVIDER: Rule = Rule::document(
    "CL0608",
    "pool-of-another-provider",
    Note,
    "The nodes of a pool whose class is of another provider are made by that one: plans leave the pool out.",
    POOLS,
    of_another_provider,
);

pub static RULES: &[&Rule] = &[&LABEL, &FIELD, &POOL, &OF_ANOTHER_PROVIDER];

/// Fields of `spec`, with the fields inside each that has some. There may be newer ones, so only what looks like a slip
/// is said.
const FIELDS: [(&str, &[&str]); 15] = [
    ("advancedNetworking", &["associatePublicIPAddress", "enableV4Egress", "httpsProxy", "ipv4PrefixSize", "noProxy"]),
    ("advancedSecurity", &["fips", "kernelLockdown"]),
    ("capacityReservationSelectorTerms", &["id", "owner", "tags"]),
    ("certificateBundles", &["data", "name"]),
    ("ephemeralStorage", &["iops", "kmsKeyID", "size", "throughput"]),
    ("instanceProfile", &[]),
    ("networkPolicy", &[]),
    ("networkPolicyEventLogs", &[]),
    ("podSecurityGroupSelectorTerms", &["id", "name", "tags"]),
    ("podSubnetSelectorTerms", &["id", "tags"]),
    ("role", &[]),
    ("securityGroupSelectorTerms", &["id", "name", "tags"]),
    ("snatPolicy", &[]),
    ("subnetSelectorTerms", &["id", "tags"]),
    ("tags", &[]),
];

/// Fields of an EC2NodeClass that EKS sets itself.
const OF_KARPENTER: [&str; 8] = [
    "amiFamily",
    "amiSelectorTerms",
    "blockDeviceMappings",
    "instanceStorePolicy",
    "kubelet",
    "metadataOptions",
    "associatePublicIPAddress",
    "userData",
];

fn of_another_provider(document: &Document) -> Vec<Finding> {
    if !is_of_another_provider(document) {
        return Vec::new();
    }
    let kind = document.str(&format!("{REFERENCE}/kind")).unwrap_or_default();
    let message = format!("what looks after each {kind} makes the nodes of this pool: plans leave it out");
    vec![Finding::at(&OF_ANOTHER_PROVIDER, document, &format!("{REFERENCE}/kind"), FindingPlace::Value, message)]
}

fn pool(document: &Document) -> Vec<Finding> {
    if !is_of_auto_mode(document) {
        return Vec::new();
    }
    let message = "EKS Auto Mode makes the nodes of this pool: plans leave it out";
    vec![Finding::at(&POOL, document, &format!("{REFERENCE}/kind"), FindingPlace::Value, message)]
}

fn label(document: &Document) -> Vec<Finding> {
    let (wrong, right) = match is_of_auto_mode(document) {
        true => (AWS_PREFIX, keys::AUTO_MODE_PREFIX),
        false => (keys::AUTO_MODE_PREFIX, AWS_PREFIX),
    };
    let mut findings = Vec::new();
    for (pointer, entry) in document.items(REQUIREMENTS) {
        let Some(name) = entry.get("key").and_then(|key| key.as_str()).and_then(|key| key.strip_prefix(wrong)) else {
            continue;
        };
        let message = match is_of_auto_mode(document) {
            true => format!("nodes of EKS Auto Mode have no label {wrong}{name}"),
            false => format!("only nodes of EKS Auto Mode have the label {wrong}{name}"),
        };
        let finding = Finding::at(&LABEL, document, &format!("{pointer}/key"), FindingPlace::Value, message);
        // The other labels of Karpenter and of Auto Mode have no counterpart.
        findings.push(finding.maybe_hint(name.starts_with("instance-").then(|| format!("write `{right}{name}`"))));
    }
    findings
}

/// What looks like a slip in a NodeClass.
pub fn fields_of_class(document: &Document) -> Vec<Finding> {
    let is_class = document.str("/kind") == Some(AUTO_MODE_KIND)
        && document.str("/apiVersion").is_some_and(|version| version.starts_with("eks.amazonaws.com/"));
    let mut findings = Vec::new();
    for (pointer, field, value) in document.members("/spec").filter(|_| is_class) {
        let Some((_, inner)) = FIELDS.iter().find(|(name, _)| *name == field) else {
            findings.extend(slip(document, &pointer, field, &mut FIELDS.iter().map(|(name, _)| *name)));
            continue;
        };
        if inner.is_empty() {
            continue;
        }
        let items: Vec<String> = match value.is_array() {
            true => document.items(&pointer).map(|(item, _)| item).collect(),
            false => vec![pointer],
        };
        for (pointer, field, _) in items.iter().flat_map(|item| document.members(item)) {
            if !inner.contains(&field) {
                findings.extend(slip(document, &pointer, field, &mut inner.iter().copied()));
            }
        }
    }
    findings
}

fn slip(
    document: &Document,
    pointer: &str,
    field: &str,
    known: &mut dyn Iterator<Item = &'static str>,
) -> Option<Finding> {
    let finding = |message: String| Finding::at(&FIELD, document, pointer, FindingPlace::Key, message);
    if OF_KARPENTER.contains(&field) {
        let message = format!("`{field}` is a field of Karpenter's EC2NodeClass: EKS Auto Mode decides that itself");
        return Some(finding(message).hint("remove it"));
    }
    let hint = suggest::did_you_mean(field, known)?;
    Some(finding(format!("`{field}` is not a known field")).hint(hint))
}
