//! CL0346: annotations that are to keep Karpenter from a pod or a node, and do not.
//! Source: Karpenter, "Disruption", pod-level and node-level controls; its migration guide to version 1.

use serde_json::Value;

use super::Rule;
use crate::api::duration::go_nanoseconds;
use crate::api::keys;
use crate::definitions::asked::pods_of;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::fixes::Instead;
use crate::definitions::kinds::Kind;
use crate::definitions::suggest::{self, Hint};

pub static UNPROTECTED: Rule = Rule::document(
    "CL0346",
    "not-protected",
    Warning,
    "What protects pods or nodes is the annotation `karpenter.sh/do-not-disrupt` at them, with a value that counts.",
    &[Kind::NodePool],
    of_pool,
);

pub static RULES: &[&Rule] = &[&UNPROTECTED];

/// Whose annotations they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Pods,
    Nodes,
    /// The annotations of an object that makes pods. The pods have annotations of their own.
    Workload,
}

fn of_pool(document: &Document) -> Vec<Finding> {
    faults(document, "/spec/template/metadata/annotations", Whose::Nodes)
}

/// Findings in a workload beside the definitions. Other kinds have none, as whoever makes pods of them may copy
/// annotations.
pub fn of_workload(document: &Document) -> Vec<Finding> {
    const OWN: &str = "/metadata/annotations";
    const GROUPS: [&str; 3] = ["", "apps", "batch"];
    let spec = pods_of(document).filter(|_| GROUPS.contains(&document.group()));
    match spec.and_then(|spec| spec.strip_suffix("/spec")) {
        None => Vec::new(),
        Some("") => faults(document, OWN, Whose::Pods),
        Some(template) => {
            let mut findings = faults(document, &format!("{template}{OWN}"), Whose::Pods);
            findings.extend(faults(document, OWN, Whose::Workload));
            findings
        }
    }
}

fn faults(document: &Document, annotations: &str, whose: Whose) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_there = document.members(annotations).any(|(_, key, _)| key == keys::DO_NOT_DISRUPT);
    for (pointer, key, value) in document.members(annotations) {
        // An annotation that asks for nothing needs no other name.
        let asks = value.as_str() != Some("false");
        let finding = match (key == keys::DO_NOT_DISRUPT, whose) {
            (true, Whose::Workload) => asks.then(|| of_the_workload(document, &pointer)),
            (true, _) => value.as_str().and_then(|text| unreadable(document, &pointer, text, whose)),
            (false, Whose::Workload) => None,
            (false, _) if is_there || !asks => None,
            (false, _) => of_another_name(document, &pointer, key),
        };
        findings.extend(finding);
    }
    findings
}

fn of_the_workload(document: &Document, pointer: &str) -> Finding {
    let kind = document.value.get("kind").and_then(Value::as_str).unwrap_or_default();
    let message = format!("the annotation is that of the {kind}, and not of its pods: it protects none of them");
    let finding = Finding::at(&UNPROTECTED, document, pointer, FindingPlace::Key, message);
    finding.hint("write it under `metadata.annotations` of the pod template")
}

/// A value that protects nothing. Another rule speaks of a value that is no text.
fn unreadable(document: &Document, pointer: &str, text: &str, whose: Whose) -> Option<Finding> {
    let is_ambiguous = document.ambiguous.iter().any(|(at, _)| at == pointer);
    let is_open = text.contains("${") || text.contains("{{");
    let is_period = whose == Whose::Pods && go_nanoseconds(text).is_some_and(|nanoseconds| nanoseconds > 0);
    if matches!(text, "true" | "false") || is_ambiguous || is_open || is_period {
        return None;
    }
    let (message, hint) = match whose {
        Whose::Nodes => (format!("`{text}` protects no node: only `true` does"), "write \"true\""),
        _ => (
            format!("`{text}` protects no pod: only `true` does, or a duration since the pod started"),
            "write \"true\", or a duration in hours, minutes and seconds, such as `1h30m`",
        ),
    };
    let finding = Finding::at(&UNPROTECTED, document, pointer, FindingPlace::Value, message);
    let is_yes = ["true", "yes", "y", "on", "1"].iter().any(|word| text.trim().eq_ignore_ascii_case(word));
    Some(match is_yes {
        true => finding.hint(Hint::question(&["true"])).instead(Some(Instead::Text("true".to_owned()))),
        false => finding.hint(hint),
    })
}

/// An older name, or a slip.
fn of_another_name(document: &Document, pointer: &str, key: &str) -> Option<Finding> {
    let wanted = keys::DO_NOT_DISRUPT;
    let is_old = keys::OLD_DO_NOT_DISRUPT.contains(&key);
    let has_its_name = key.rsplit('/').next() == wanted.rsplit('/').next();
    if !(is_old || has_its_name || suggest::nearest(key, std::iter::once(wanted)).is_some()) {
        return None;
    }
    let message = match is_old {
        true => format!("`{key}` protects nothing since Karpenter 1"),
        false => format!("`{key}` protects nothing: Karpenter knows no such annotation"),
    };
    let finding = Finding::at(&UNPROTECTED, document, pointer, FindingPlace::Key, message);
    let instead = is_old.then(|| Instead::Text(wanted.to_owned()));
    Some(finding.hint(Hint::question(&[wanted])).instead(instead))
}
