//! CL0500 to CL0504: `kubelet` of a node class, an open map in the schema that the controller reads strictly.

use serde_json::Value;

use super::kubelet_types::{CLASSES, KUBELET};
use super::{Rule, kubelet_types};
use crate::api::ec2_node_class::{AmiFamily, EC2NodeClassSpec};
use crate::core::model::Quantity;
use crate::definitions::diagnostic::Severity::Error;
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::suggest;
pub static FIELD: Rule = Rule::document(
    "CL0500",
    "kubelet-field",
    Error,
    "kubelet has the fields of KubeletConfiguration, without registerWithTaints, which the controller sets.",
    CLASSES,
    fields,
);
pub static FAMILY: Rule = Rule::document(
    "CL0501",
    "kubelet-family",
    Error,
    "Image families other than AL2023 and Custom know few fields of kubelet.",
    CLASSES,
    family,
);
pub static EVICTION: Rule = Rule::document(
    "CL0502",
    "kubelet-eviction",
    Error,
    "Eviction thresholds are on signals that exist, and each soft one has a grace period.",
    CLASSES,
    eviction,
);
pub static RESERVED: Rule = Rule::document(
    "CL0503",
    "kubelet-reserved",
    Error,
    "Reservations are of cpu, memory, ephemeral-storage and pid, and at least 0.",
    CLASSES,
    reserved,
);
pub static NUMBERS: Rule = Rule::document(
    "CL0504",
    "kubelet-number",
    Error,
    "Counts are at least 0; thresholds of image collection are percentages, the high above the low.",
    CLASSES,
    numbers,
);

pub static RULES: &[&Rule] = &[&FIELD, &FAMILY, &EVICTION, &RESERVED, &NUMBERS];

fn fields(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (pointer, name, _) in document.members(KUBELET) {
        if kubelet_types::names().any(|field| field == name) {
            continue;
        }
        let (message, hint) = if name == "registerWithTaints" {
            let hint = "give taints in spec.template.spec.taints of the NodePool".into();
            ("registerWithTaints is set by the controller".to_owned(), Some(hint))
        } else {
            (format!("the kubelet has no setting `{name}`"), suggest::did_you_mean(name, kubelet_types::names()))
        };
        findings.push(Finding::at(&FIELD, document, &pointer, FindingPlace::Key, message).maybe_hint(hint));
    }
    findings
}

fn family(document: &Document) -> Vec<Finding> {
    let spec = document.value.get("spec").cloned().unwrap_or_default();
    let Ok(spec) = serde_json::from_value::<EC2NodeClassSpec>(spec) else { return Vec::new() };
    let family = spec.resolved_ami_family();
    if matches!(family, AmiFamily::AL2023 | AmiFamily::Custom) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (pointer, name, value) in document.members(KUBELET) {
        let known = kubelet_types::names().any(|field| field == name);
        let passed_on = family.takes_kubelet_field(name);
        let many = name == "clusterDNS" && value.as_array().is_some_and(|addresses| addresses.len() > 1);
        let message = match (known && !passed_on, many) {
            (true, _) => format!("images of {family:?} do not take `{name}`"),
            (_, true) => format!("images of {family:?} take one address of clusterDNS"),
            _ => continue,
        };
        findings.push(Finding::at(&FAMILY, document, &pointer, FindingPlace::Key, message));
    }
    findings
}

const SIGNALS: [&str; 6] = [
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
];

fn eviction(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for field in ["evictionHard", "evictionSoft"] {
        for (pointer, signal, value) in document.members(&format!("{KUBELET}/{field}")) {
            if !SIGNALS.contains(&signal) {
                let message = format!("there is no eviction signal `{signal}`");
                let hint = suggest::did_you_mean(signal, SIGNALS.into_iter())
                    .unwrap_or_else(|| format!("there are {}", SIGNALS.join(", ")).into());
                findings.push(Finding::at(&EVICTION, document, &pointer, FindingPlace::Key, message).hint(hint));
            } else if !value.as_str().is_some_and(is_threshold) {
                let message = format!("`{signal}` is neither a percentage from \"0%\" to \"100%\" nor a quantity");
                findings.push(Finding::at(&EVICTION, document, &pointer, FindingPlace::Value, message));
            }
        }
    }
    let pairs = [("evictionSoft", "evictionSoftGracePeriod"), ("evictionSoftGracePeriod", "evictionSoft")];
    for (one, other) in pairs {
        for (pointer, signal, _) in document.members(&format!("{KUBELET}/{one}")) {
            let there = document.value.pointer(&spans::join(&format!("{KUBELET}/{other}"), signal)).is_some();
            if !there && SIGNALS.contains(&signal) {
                let message = format!("`{signal}` is in {one} and not in {other}");
                findings.push(Finding::at(&EVICTION, document, &pointer, FindingPlace::Key, message));
            }
        }
    }
    findings
}

fn is_threshold(text: &str) -> bool {
    match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().is_ok_and(|percent| (0.0..=100.0).contains(&percent)),
        None => text.parse::<Quantity>().is_ok_and(|quantity| !quantity.is_negative()),
    }
}

const RESERVABLE: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pid"];

fn reserved(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for field in ["kubeReserved", "systemReserved"] {
        for (pointer, resource, value) in document.members(&format!("{KUBELET}/{field}")) {
            if !RESERVABLE.contains(&resource) {
                let message = format!("`{resource}` can not be reserved");
                let hint = format!("reservable are {}", RESERVABLE.join(", "));
                findings.push(Finding::at(&RESERVED, document, &pointer, FindingPlace::Key, message).hint(hint));
                continue;
            }
            let text = value.as_str().map(str::to_owned).or_else(|| value.is_number().then(|| value.to_string()));
            if !text.is_some_and(|text| text.parse::<Quantity>().is_ok_and(|quantity| !quantity.is_negative())) {
                let message = format!("`{resource}` is not a quantity of at least 0");
                findings.push(Finding::at(&RESERVED, document, &pointer, FindingPlace::Value, message));
            }
        }
    }
    findings
}

fn numbers(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for field in ["podsPerCore", "evictionMaxPodGracePeriod", "maxPods"] {
        let pointer = format!("{KUBELET}/{field}");
        if let Some(value) = document.value.pointer(&pointer).filter(|value| value.as_u64().is_none()) {
            let hint = value.as_str().map(|text| match text.parse::<u64>() {
                Ok(number) => format!("write it without quotes: {number}"),
                Err(_) => "expressions need the gate NodeClassCEL, which is not supported".to_owned(),
            });
            let message = format!("`{field}` must be a whole number of at least 0");
            findings.push(Finding::at(&NUMBERS, document, &pointer, FindingPlace::Value, message).maybe_hint(hint));
        }
    }
    let percent = |field: &str| document.value.pointer(&format!("{KUBELET}/{field}")).and_then(Value::as_u64);
    let (high, low) = ("imageGCHighThresholdPercent", "imageGCLowThresholdPercent");
    for field in [high, low] {
        let pointer = format!("{KUBELET}/{field}");
        if document.value.pointer(&pointer).is_some() && percent(field).is_none_or(|percent| percent > 100) {
            let message = format!("`{field}` must be a whole number from 0 to 100");
            findings.push(Finding::at(&NUMBERS, document, &pointer, FindingPlace::Value, message));
        }
    }
    if percent(high).zip(percent(low)).is_some_and(|(high, low)| high <= low && high <= 100) {
        let message = format!("{high} must be more than {low}");
        findings.push(Finding::at(&NUMBERS, document, &format!("{KUBELET}/{high}"), FindingPlace::Value, message));
    }
    findings
}
