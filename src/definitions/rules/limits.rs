//! CL0320 and CL0321: limits of a pool that limit nothing, or everything.

use serde_json::Value;

use super::Rule;
use super::one_pool::is_static;
use super::types_left::TypesLeft;
use crate::core::catalog::matching::Matching;
use crate::core::model::{Quantity, Resources, resources};
use crate::definitions::diagnostic::Severity::{Note, Warning};
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::providers::is_of_auto_mode;
use crate::definitions::suggest::{self, Hint};

const LIMITS: &str = "/spec/limits";

pub static OF_NOTHING: Rule = Rule::document(
    "CL0320",
    "limit-of-nothing",
    Warning,
    "A limit is of a resource that nodes have, and has a value.",
    &[Kind::NodePool],
    of_nothing,
);
pub static BELOW_ALL: Rule = Rule::pass(
    "CL0321",
    "limit-below-every-type",
    Warning,
    "The limits of a pool leave room for one node of some instance type that matches.",
);

pub static RULES: &[&Rule] = &[&OF_NOTHING, &BELOW_ALL];

/// Resources of nodes on EC2. Others come from device plugins, by names with a domain of their own.
pub(in crate::definitions) const KNOWN: [&str; 13] = [
    resources::CPU,
    resources::MEMORY,
    resources::EPHEMERAL_STORAGE,
    resources::PODS,
    resources::NODES,
    "nvidia.com/gpu",
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "habana.ai/gaudi",
    "vpc.amazonaws.com/pod-eni",
    "vpc.amazonaws.com/efa",
    "vpc.amazonaws.com/PrivateIPv4Address",
];

/// Words that people write for these resources.
const SYNONYMS: [(&str, &str); 13] = [
    ("gpu", "nvidia.com/gpu"),
    ("gpus", "nvidia.com/gpu"),
    ("nvidia", "nvidia.com/gpu"),
    ("npu", "aws.amazon.com/neuron"),
    ("neuron", "aws.amazon.com/neuron"),
    ("neuroncore", "aws.amazon.com/neuroncore"),
    ("mem", resources::MEMORY),
    ("ram", resources::MEMORY),
    ("cores", resources::CPU),
    ("vcpu", resources::CPU),
    ("vcpus", resources::CPU),
    ("disk", resources::EPHEMERAL_STORAGE),
    ("storage", resources::EPHEMERAL_STORAGE),
];

fn of_nothing(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for resource in KNOWN {
        // A limit without a value is dropped here, as the API server drops it, but stands in the file.
        let pointer = spans::join(LIMITS, resource);
        let is_written = document.spans.get(&format!("{}{pointer}", document.root)).is_some();
        if is_written && document.parts.is_empty() && document.value.pointer(&pointer).is_none_or(Value::is_null) {
            let message = format!("`{resource}` has no value: nothing is limited");
            let finding = Finding::at(&OF_NOTHING, document, &pointer, FindingPlace::Key, message);
            findings.push(finding.hint("write a quantity, such as \"1000\" for cpu or 1000Gi for memory"));
        }
    }
    findings.extend(document.members(LIMITS).filter_map(|(pointer, resource, value)| {
        let amount = value.as_str().filter(|amount| is_count(resource) && amount.ends_with('i'))?;
        let message = format!("`{resource}` is a count, and `{amount}` an amount of bytes: nothing is limited");
        let finding = Finding::at(&OF_NOTHING, document, &pointer, FindingPlace::Value, message);
        Some(finding.hint("write a number such as \"1000\""))
    }));
    for (pointer, resource, _) in document.members(LIMITS).filter(|(.., value)| !value.is_null()) {
        let at = |message: String| Finding::at(&OF_NOTHING, document, &pointer, FindingPlace::Key, message);
        let is_known = KNOWN.contains(&resource) || resource.starts_with("hugepages-") || resource.contains("${");
        if is_known {
            continue;
        }
        let synonym = SYNONYMS.iter().find(|(other, _)| other.eq_ignore_ascii_case(resource));
        let question = synonym.map(|(_, meant)| Hint::question(&[meant]));
        let question = question.or_else(|| suggest::did_you_mean(resource, KNOWN.into_iter()));
        if resource.contains('/') && question.is_none() {
            continue;
        }
        let hint = match question {
            Some(question) => question,
            None => format!("nodes have {}, and others by names with a domain", KNOWN[..5].join(", ")).into(),
        };
        findings.push(at(format!("no node has the resource `{resource}`: nothing is limited")).hint(hint));
    }
    findings
}

/// Whether the resource is a count, of which nobody means `Gi`.
fn is_count(resource: &str) -> bool {
    [resources::CPU, resources::PODS, resources::NODES].contains(&resource) || resource.ends_with("/gpu")
}

pub(super) fn below_all(document: &Document, types: &TypesLeft<'_>, matching: &Matching<'_>) -> Vec<Finding> {
    let limits: Vec<(String, &str, i64)> = document.members(LIMITS).filter_map(limit).collect();
    // Another rule speaks of the limit of nodes of static pools.
    if limits.is_empty() || is_static(document) || is_of_auto_mode(document) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (pointer, resource, _) in limits.iter().filter(|(.., limit)| *limit == 0) {
        // People put a pool to rest with a limit of 0.
        let message = format!("the limit of `{resource}` is 0: the pool makes no node");
        let mut finding = Finding::at(&BELOW_ALL, document, pointer, FindingPlace::Value, message);
        finding.severity = Note;
        findings.push(finding);
    }
    if !findings.is_empty() {
        return findings;
    }
    for (pointer, resource, limit) in &limits {
        let Some((least, name)) = matching.least(resource, &types.types) else { continue };
        if *limit < least {
            let message = format!("the limit of `{resource}` is less than the smallest instance type that matches has");
            let amount = resources::format_amount(resource, least);
            let hint = match *resource {
                resources::MEMORY | resources::EPHEMERAL_STORAGE => " (a number without a unit is bytes)",
                resources::CPU => " (`m` is thousandths)",
                _ => "",
            };
            let finding = Finding::at(&BELOW_ALL, document, pointer, FindingPlace::Value, message);
            findings.push(finding.hint(format!("the pool makes no node: `{name}` has {amount}{hint}")));
        }
    }
    findings
}

/// The pointer, the resource and the amount of a limit, in the unit of [`Resources`].
fn limit<'d>((pointer, resource, value): (String, &'d str, &Value)) -> Option<(String, &'d str, i64)> {
    let text = value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))?;
    let quantity = text.parse::<Quantity>().ok().filter(|quantity| !quantity.is_negative())?;
    Some((pointer, resource, Resources::amount(resource, quantity)))
}
