//! CL0474 to CL0476: what EC2 and IAM take of volumes, tags and names. The API server takes more, and then nothing is launched.
//! Sources: the EBS user guide, "Amazon EBS volume types"; the EC2 user guide, "Tag your Amazon EC2 resources"; the IAM user guide, "IAM and AWS STS
//! quotas".

use std::collections::BTreeSet;

use serde_json::Value;

use super::Rule;
use super::kubelet_types::CLASSES;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};

pub static VOLUME: Rule = Rule::document(
    "CL0474",
    "volume-limits",
    Warning,
    "Volumes are within the bounds of their type, and each has a device of its own.",
    CLASSES,
    volumes,
);
pub static TAGS: Rule =
    Rule::document("CL0475", "tag-limits", Warning, "Tags are as many and as long as EC2 takes.", CLASSES, tags);
pub static NAMES: Rule = Rule::document(
    "CL0476",
    "iam-name",
    Warning,
    "Names of a role and of an instance profile are as IAM takes them.",
    CLASSES,
    names,
);

pub static RULES: &[&Rule] = &[&VOLUME, &TAGS, &NAMES];

const MAPPINGS: &str = "/spec/blockDeviceMappings";
/// What a volume of type gp3 has where the class says nothing.
const GP3_IOPS: i64 = 3_000;

/// Operations a second that a volume of a type can have.
struct Iops {
    kind: &'static str,
    least: i64,
    most: i64,
    per_gibibyte: i64,
}

const IOPS: [Iops; 3] = [
    Iops { kind: "gp3", least: GP3_IOPS, most: 80_000, per_gibibyte: 500 },
    Iops { kind: "io1", least: 100, most: 64_000, per_gibibyte: 50 },
    Iops { kind: "io2", least: 100, most: 256_000, per_gibibyte: 1_000 },
];
/// MiB a second of a volume of type gp3.
const THROUGHPUT_MIN: i64 = 125;
const THROUGHPUT_MAX: i64 = 2_000;
/// A volume of type gp3 has a quarter MiB a second for each operation.
const OPERATIONS_PER_MEBIBYTE: i64 = 4;

fn volumes(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut devices = BTreeSet::new();
    for (mapping, value) in document.items(MAPPINGS) {
        if value.is_object() && value.get("ebs").is_none_or(Value::is_null) {
            let message = "the device has no `ebs`, so it is no volume, and nothing is launched";
            let finding = Finding::at(&VOLUME, document, &mapping, FindingPlace::Value, message);
            findings.push(finding.hint("write `ebs` with `volumeSize` or `snapshotID`, or leave the device out"));
        }
        match value.get("deviceName").and_then(Value::as_str) {
            None => {
                let message = "the volume has no deviceName, without which EC2 attaches none";
                let finding = Finding::at(&VOLUME, document, &mapping, FindingPlace::Value, message);
                findings.push(finding.hint("write `deviceName: /dev/xvda`, or the device that the image has"));
            }
            Some(device) if !devices.insert(device) => {
                let message = format!("two volumes have the device {device}: EC2 takes one");
                let pointer = format!("{mapping}/deviceName");
                findings.push(Finding::at(&VOLUME, document, &pointer, FindingPlace::Value, message));
            }
            Some(_) => {}
        }
        findings.extend(of_volume(document, &format!("{mapping}/ebs")));
    }
    findings
}

fn of_volume(document: &Document, ebs: &str) -> Vec<Finding> {
    let at = |field: &str| format!("{ebs}/{field}");
    let number = |field: &str| document.value.pointer(&at(field)).and_then(Value::as_i64);
    let mut findings = Vec::new();
    let mut found = |field: &str, message: String| {
        findings.push(Finding::at(&VOLUME, document, &at(field), FindingPlace::Value, message));
    };
    let is_encrypted = document.value.pointer(&at("encrypted")).and_then(Value::as_bool);
    if document.str(&at("kmsKeyID")).is_some() && is_encrypted == Some(false) {
        found("kmsKeyID", "EC2 takes no key for a volume that is not encrypted".to_owned());
    }
    for field in ["iops", "throughput"] {
        if let Some(number) = number(field).filter(|number| *number < 0) {
            found(field, format!("a volume has no {number} of it"));
            return findings;
        }
    }
    let Some(bounds) = IOPS.iter().find(|bounds| document.str(&at("volumeType")) == Some(bounds.kind)) else {
        return findings;
    };
    let kind = bounds.kind;
    let iops = number("iops");
    let gibibytes = document.str(&at("volumeSize")).and_then(|size| size.strip_suffix("Gi")?.parse::<i64>().ok());
    if let Some(iops) = iops {
        let by_size = gibibytes.map(|size| size.saturating_mul(bounds.per_gibibyte).max(bounds.least));
        // Another rule speaks of too few operations for gp3.
        if iops > bounds.most || (iops < bounds.least && kind != "gp3") {
            let (least, most) = (bounds.least, bounds.most);
            found("iops", format!("a volume of type {kind} has {least} to {most} iops, and not {iops}"));
        } else if let Some(most) = by_size.filter(|most| iops > *most) {
            found("iops", format!("a volume of type {kind} of this size has at most {most} iops, and not {iops}"));
        }
    }
    if let Some(throughput) = number("throughput").filter(|_| kind == "gp3") {
        let by_iops = iops.unwrap_or(GP3_IOPS).max(GP3_IOPS) / OPERATIONS_PER_MEBIBYTE;
        if !(THROUGHPUT_MIN..=THROUGHPUT_MAX).contains(&throughput) {
            let range = format!("{THROUGHPUT_MIN} to {THROUGHPUT_MAX} MiB a second");
            found("throughput", format!("a volume of type gp3 has {range}, and not {throughput}"));
        } else if throughput > by_iops {
            let message =
                format!("with its iops a volume of type gp3 has at most {by_iops} MiB a second, and not {throughput}");
            found("throughput", message);
        }
    }
    findings
}

fn tags(document: &Document) -> Vec<Finding> {
    /// The tags of one resource.
    const TAGS_MAX: usize = 50;
    /// Tags that whoever launches sets: the cluster's twice, pool, class, claim and name. Cutlist adds its own:
    /// installation, launch and the part of the launch.
    const SET_AT_LAUNCH: usize = 9;
    const KEY_MAX: usize = 128;
    const VALUE_MAX: usize = 256;
    let mut findings = Vec::new();
    let count = document.members("/spec/tags").count();
    let room = TAGS_MAX - SET_AT_LAUNCH;
    if count > room {
        let message = format!(
            "there are {count} tags, and EC2 takes {TAGS_MAX} of an instance: with those that a launch sets there is room for {room}"
        );
        findings.push(Finding::at(&TAGS, document, "/spec/tags", FindingPlace::Key, message));
    }
    for (pointer, key, value) in document.members("/spec/tags") {
        let length = key.chars().count();
        if length > KEY_MAX {
            let message = format!("the key of a tag has {length} characters, and EC2 takes {KEY_MAX}");
            findings.push(Finding::at(&TAGS, document, &pointer, FindingPlace::Key, message));
        }
        let length = value.as_str().map_or(0, |value| value.chars().count());
        if length > VALUE_MAX {
            let message = format!("the value of a tag has {length} characters, and EC2 takes {VALUE_MAX}");
            findings.push(Finding::at(&TAGS, document, &pointer, FindingPlace::Value, message));
        }
    }
    findings
}

/// The name in `arn:aws:iam::111122223333:role/path/NAME`, or in `path/NAME`.
fn name_behind_path(text: &str) -> Option<&str> {
    let (_, name) = text.rsplit_once('/').filter(|_| !text.contains("${"))?;
    (!name.is_empty()).then_some(name)
}

fn names(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (field, what, most) in [("role", "a role", 64), ("instanceProfile", "an instance profile", 128)] {
        let pointer = format!("/spec/{field}");
        if let Some(name) = document.str(&pointer).filter(|_| field == "role").and_then(name_behind_path) {
            let message =
                "role is more than the name, with which Karpenter compares that of the role in its instance profile";
            let finding = Finding::at(&NAMES, document, &pointer, FindingPlace::Value, message);
            findings.push(finding.hint(format!("write the name alone: `{name}`")));
            continue;
        }
        // Another rule speaks of the ARN of a profile, and a variable may become anything.
        let name = document.str(&pointer).filter(|name| !name.contains([':', '/']) && !name.contains("${"));
        let Some(name) = name else { continue };
        let is_allowed = |character: char| character.is_ascii_alphanumeric() || "+=,.@_-".contains(character);
        let at = |message: String| Finding::at(&NAMES, document, &pointer, FindingPlace::Value, message);
        if let Some(other) = name.chars().find(|character| !is_allowed(*character)) {
            let message = format!("the name of {what} has no `{other}`: IAM takes letters, digits and `+=,.@_-`");
            let is_left_over = name.contains(['<', '$', '{']);
            let hint = is_left_over.then(|| "a placeholder is left in it: write the name".to_owned());
            findings.push(at(message).maybe_hint(hint));
        } else if name.len() > most {
            findings.push(at(format!("the name of {what} has {} characters, and IAM takes {most}", name.len())));
        }
    }
    findings
}
