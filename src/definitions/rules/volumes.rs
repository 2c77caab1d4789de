//! CL0485: block devices that are none of the image, so that what is written of them does not reach the pods.
//! Source: Karpenter's reference, `EC2NodeClass`, default block device mappings of each family.

use serde_json::Value;

use super::Rule;
use super::kubelet_types::CLASSES;
use crate::api::ec2_node_class::AmiFamily;
use crate::core::catalog::node_class::ephemeral_device;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};

pub static NOT_FOR_PODS: Rule = Rule::document(
    "CL0485",
    "volume-not-for-pods",
    Warning,
    "Where volumes are written, the one that holds what pods write is among them.",
    CLASSES,
    not_for_pods,
);

pub static RULES: &[&Rule] = &[&NOT_FOR_PODS];

const MAPPINGS: &str = "/spec/blockDeviceMappings";

/// Devices that are the root volume of some family.
const ROOTS: [&str; 2] = ["/dev/sda1", "/dev/xvda"];

fn not_for_pods(document: &Document) -> Vec<Finding> {
    let alias = document.str("/spec/amiSelectorTerms/0/alias").unwrap_or_default();
    let family = alias.split('@').next().unwrap_or_default();
    let device = AmiFamily::of_alias(family).and_then(ephemeral_device);
    let Some(device) = device else { return Vec::new() };
    let name = |mapping: &Value| mapping.get("deviceName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_root = |mapping: &Value| mapping.get("rootVolume").and_then(Value::as_bool) == Some(true);
    let mut mappings = document.items(MAPPINGS).map(|(at, mapping)| (at, name(mapping), is_root(mapping))).peekable();
    let Some((at, first, _)) = mappings.peek().cloned() else { return Vec::new() };
    // A disk under any other name may be one that the nodes mount themselves.
    if !mappings.all(|(_, name, is_root)| !is_root && name != device && ROOTS.contains(&name.as_str())) {
        return Vec::new();
    }
    let message = format!(
        "images of {family} keep what pods write on {device}, which is not among these: it has the size that the image gives it"
    );
    let finding = Finding::at(&NOT_FOR_PODS, document, &format!("{at}/deviceName"), FindingPlace::Value, message);
    let hint = match AmiFamily::of_alias(family) {
        Some(AmiFamily::Bottlerocket) => format!("add one for {device}: {first} is the system's own"),
        _ => format!("write `deviceName: {device}`"),
    };
    vec![finding.hint(hint)]
}
