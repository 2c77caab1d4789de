//! CL0506: settings of the kubelet with which it does not start, or its node takes no pod. Karpenter takes them, and passes them on.
//! Source: `ValidateKubeletConfiguration` of Kubernetes, `pkg/kubelet/apis/config/validation`, and its defaults.

use serde_json::Value;

use super::Rule;
use super::kubelet_types::{CLASSES, KUBELET};
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::suggest::{self, Hint};

pub static UNUSABLE: Rule = Rule::document(
    "CL0506",
    "kubelet-does-not-start",
    Warning,
    "The kubelet starts with the settings that it gets, and its node takes pods.",
    CLASSES,
    unusable,
);

pub static RULES: &[&Rule] = &[&UNUSABLE];

/// Words that a setting takes.
const WORDS: [(&str, &[&str]); 4] = [
    ("cpuManagerPolicy", &["none", "static"]),
    ("memoryManagerPolicy", &["None", "Static"]),
    ("topologyManagerPolicy", &["none", "best-effort", "restricted", "single-numa-node"]),
    ("topologyManagerScope", &["container", "pod"]),
];
/// The percentage that counts where the class says nothing.
const IMAGE_GC_HIGH: u64 = 85;
const IMAGE_GC_LOW: u64 = 80;

fn unusable(document: &Document) -> Vec<Finding> {
    let at = |field: &str| spans::join(KUBELET, field);
    let number = |field: &str| document.value.pointer(&at(field)).and_then(Value::as_u64);
    let mut findings = Vec::new();
    let mut found = |field: &str, message: String, hint: Option<Hint>| {
        let finding = Finding::at(&UNUSABLE, document, &at(field), FindingPlace::Value, message);
        findings.push(finding.maybe_hint(hint));
    };
    for (field, words) in WORDS {
        let Some(word) = document.str(&at(field)).filter(|word| !words.contains(word) && !word.contains("${")) else {
            continue;
        };
        let message = format!("the kubelet knows no {field} `{word}`, and does not start");
        let hint = suggest::did_you_mean(word, words.iter().copied());
        found(field, message, Some(hint.unwrap_or_else(|| format!("there are {}", words.join(", ")).into())));
    }
    // Another rule speaks of thresholds that are both there and the wrong way round.
    let (high, low) = (number("imageGCHighThresholdPercent"), number("imageGCLowThresholdPercent"));
    match (high, low) {
        (None, Some(low)) if low >= IMAGE_GC_HIGH => {
            let message =
                format!("imageGCHighThresholdPercent is {IMAGE_GC_HIGH} by itself, and must be more than {low}");
            found("imageGCLowThresholdPercent", message, Some("write both".into()));
        }
        (Some(high), None) if high <= IMAGE_GC_LOW => {
            let message =
                format!("imageGCLowThresholdPercent is {IMAGE_GC_LOW} by itself, and must be less than {high}");
            found("imageGCHighThresholdPercent", message, Some("write both".into()));
        }
        _ => {}
    }
    if number("containerLogMaxFiles").is_some_and(|files| files <= 1) {
        found(
            "containerLogMaxFiles",
            "the kubelet keeps more than one file of a log, or does not start".to_owned(),
            None,
        );
    }
    let is_one_by_one = document.value.pointer(&at("serializeImagePulls")) == Some(&Value::Bool(true));
    if is_one_by_one && number("maxParallelImagePulls").is_some_and(|pulls| pulls > 1) {
        let message = "the kubelet pulls images at once only with `serializeImagePulls: false`, or does not start";
        found("maxParallelImagePulls", message.to_owned(), None);
    }
    if number("maxPods") == Some(0) {
        found("maxPods", "a node with `maxPods: 0` takes no pod".to_owned(), None);
    }
    findings.extend(thousandths(document));
    findings
}

/// `500m` of memory is half a byte.
fn thousandths(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for field in ["kubeReserved", "systemReserved"] {
        for resource in ["memory", "ephemeral-storage"] {
            let pointer = spans::join(&spans::join(KUBELET, field), resource);
            let Some(amount) = document.str(&pointer).filter(|amount| amount.ends_with('m')) else { continue };
            let message = format!("`{amount}` of {resource} is thousandths of a byte: nothing is reserved");
            let finding = Finding::at(&UNUSABLE, document, &pointer, FindingPlace::Value, message);
            findings.push(finding.hint(format!("write `{}Mi` if mebibytes are meant", amount.trim_end_matches('m'))));
        }
    }
    findings
}
