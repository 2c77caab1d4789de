//! CL0300 to CL0399: node pools.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Rule, near_labels, no_hint};
use crate::api::duration::NillableDuration;
use crate::api::keys;
use crate::api::node_pool::{NodeSelectorRequirement, Operator};
use crate::api::validation::node_pool as cel;
use crate::core::model::{Quantity, Requirement, requirements};
use crate::definitions::asked::Written;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::fixes::Instead;
use crate::definitions::kinds::Kind;
use crate::definitions::suggest::{self, Hint};

const POOLS: &[Kind] = &[Kind::NodePool];
const REQUIREMENTS: &str = "/spec/template/spec/requirements";

pub static RESTRICTED_LABEL: Rule = Rule::cel(
    "CL0301",
    "restricted-label",
    "Labels of karpenter.sh, of karpenter.k8s.aws and the host name are set by the controller, not by a template.",
    &cel::LABELS,
    |_| Some("remove it, or use a domain of your own".into()),
);
pub static RESTRICTED_KEY: Rule = Rule::cel(
    "CL0302",
    "restricted-key",
    "A requirement is on a key that instance types have, or on a label of your own.",
    &[&cel::KEY_NODE_POOL, &cel::KEY_HOSTNAME, &cel::KEY_CORE_DOMAIN, &cel::KEY_AWS_DOMAIN],
    near_labels::key_meant,
);
pub static IN_WITHOUT_VALUES: Rule =
    Rule::cel("CL0303", "in-without-values", "The operator In has values.", &[&cel::IN_WITHOUT_VALUES], no_hint);
pub static COMPARISON: Rule = Rule::cel(
    "CL0304",
    "comparison-value",
    "Gt, Lt, Gte and Lte have one value, a whole number of at least 0.",
    &[&cel::COMPARISON],
    |_| Some("write one number in quotes, such as values: [\"5\"]".into()),
);
pub static MIN_VALUES: Rule = Rule::cel(
    "CL0305",
    "min-values",
    "minValues asks for no more values than the requirement lists.",
    &[&cel::MIN_VALUES],
    no_hint,
);
pub static STATIC_WEIGHT: Rule = Rule::cel(
    "CL0306",
    "weight-of-static-pool",
    "A pool with replicas has no weight.",
    &[&cel::WEIGHT_OF_STATIC_POOL],
    |_| Some("remove weight or replicas".into()),
);
pub static STATIC_LIMITS: Rule = Rule::cel(
    "CL0307",
    "limits-of-static-pool",
    "A pool with replicas can limit only its nodes.",
    &[&cel::LIMITS_OF_STATIC_POOL],
    |_| Some("limit `nodes`, or remove replicas".into()),
);
pub static STAYS_STATIC: Rule = Rule::cel(
    "CL0308",
    "static-for-ever",
    "A pool can not change between static (with replicas) and dynamic.",
    &[&cel::STATIC_STAYS_STATIC],
    |_| Some("make a new pool under another name".into()),
);
pub static IMMUTABLE: Rule =
    Rule::cel("CL0309", "immutable", "Group and kind of nodeClassRef can not be changed.", &[&cel::IMMUTABLE], |_| {
        Some("make a new pool under another name".into())
    });
pub static DUPLICATE_TAINT: Rule = Rule::document(
    "CL0310",
    "duplicate-taint",
    Error,
    "A key and effect occurs once among taints and startupTaints.",
    POOLS,
    duplicate_taint,
);
pub static CAPACITY_TYPE: Rule = Rule::document(
    "CL0311",
    "capacity-type",
    Error,
    "At least one capacity type of a requirement exists, and as many as minValues asks for.",
    POOLS,
    capacity_type,
);
pub static UNKNOWN_VALUE: Rule = Rule::document(
    "CL0312",
    "unknown-value",
    Warning,
    "Architectures, operating systems, capacity types and types of reservations are among those that exist.",
    POOLS,
    unknown_value,
);
pub static NEGATIVE_LIMIT: Rule =
    Rule::document("CL0313", "limit-quantity", Error, "A limit is a quantity of at least 0.", POOLS, limit_quantity);
pub static UNUSED_VALUES: Rule =
    Rule::document("CL0314", "unused-values", Warning, "Exists and DoesNotExist have no values.", POOLS, unused_values);
pub static CONTRADICTION: Rule = Rule::document(
    "CL0315",
    "contradiction",
    Error,
    "The requirements on one key, and the template's label of that key, allow at least one value together.",
    POOLS,
    contradiction,
);
pub static OLD_KEY: Rule = Rule::document(
    "CL0316",
    "old-key",
    Note,
    "Keys of Kubernetes that were renamed are written by their new name.",
    POOLS,
    old_key,
);

pub static PAYBACK: Rule = Rule::document(
    "CL0317",
    "payback",
    Error,
    "The annotation cutlist.dev/payback is a duration such as 1h, or Never.",
    POOLS,
    payback,
);

pub static CONSOLIDATE_AFTER: Rule = Rule::document(
    "CL0318",
    "consolidate-after-missing",
    Error,
    "A disruption block has consolidateAfter, which the definition of Karpenter 1.14 requires in it.",
    POOLS,
    consolidate_after,
);

pub static CONTROLLERS_TAINT: Rule = Rule::document(
    "CL0319",
    "taint-of-the-controller",
    Warning,
    "Taints of karpenter.sh are set and removed by the controller, not by a template.",
    POOLS,
    controllers_taint,
);

pub static RULES: &[&Rule] = &[
    &RESTRICTED_LABEL,
    &RESTRICTED_KEY,
    &IN_WITHOUT_VALUES,
    &COMPARISON,
    &MIN_VALUES,
    &STATIC_WEIGHT,
    &STATIC_LIMITS,
    &STAYS_STATIC,
    &IMMUTABLE,
    &DUPLICATE_TAINT,
    &CAPACITY_TYPE,
    &UNKNOWN_VALUE,
    &NEGATIVE_LIMIT,
    &UNUSED_VALUES,
    &CONTRADICTION,
    &OLD_KEY,
    &PAYBACK,
    &CONSOLIDATE_AFTER,
    &CONTROLLERS_TAINT,
];

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

fn values(requirement: &Value) -> Vec<&str> {
    requirement.get("values").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn duplicate_taint(document: &Document) -> Vec<Finding> {
    let mut first: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut findings = Vec::new();
    let taints = document.items("/spec/template/spec/taints");
    for (pointer, taint) in taints.chain(document.items("/spec/template/spec/startupTaints")) {
        let (Some(key), Some(effect)) = (text(taint, "key"), text(taint, "effect")) else { continue };
        let line = document.place(&pointer, FindingPlace::Value).line;
        if let Some(first) = first.get(&(key, effect)) {
            let message = format!("the taint `{key}` with effect {effect} is given twice; first on line {first}");
            findings.push(Finding::at(
                &DUPLICATE_TAINT,
                document,
                &format!("{pointer}/key"),
                FindingPlace::Value,
                message,
            ));
        } else {
            first.insert((key, effect), line);
        }
    }
    findings
}

/// A startup taint that nobody removes keeps every node from being ready; a taint that says that a node goes keeps pods away for ever.
fn controllers_taint(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for list in ["/spec/template/spec/taints", "/spec/template/spec/startupTaints"] {
        for (pointer, taint) in document.items(list) {
            let Some(key) = text(taint, "key").filter(|key| key.starts_with("karpenter.sh/")) else { continue };
            let effect = text(taint, "effect").unwrap_or_default();
            if key == keys::UNREGISTERED_TAINT && effect == "NoExecute" {
                continue;
            }
            let at = |message: String| {
                Finding::at(&CONTROLLERS_TAINT, document, &format!("{pointer}/key"), FindingPlace::Value, message)
            };
            findings.push(match key {
                keys::UNREGISTERED_TAINT => {
                    at(format!("Karpenter removes `{key}` with NoExecute only: with {effect} it stays"))
                        .hint("write `effect: NoExecute`, or leave it out: it is set where the node starts with it")
                }
                keys::DISRUPTED_TAINT => {
                    at(format!("`{key}` says that a node goes: no pod is to be put on the pool's nodes"))
                        .hint("remove it")
                }
                // A taint under `taints` stays, as it should.
                _ if list.ends_with("/taints") => continue,
                _ => at(format!("Karpenter knows no taint `{key}`, and removes none of this name"))
                    .hint("remove it, or use a domain of your own"),
            });
        }
    }
    findings
}

const CAPACITY_TYPES: [&str; 3] = [keys::ON_DEMAND, keys::RESERVED, keys::SPOT];

fn capacity_type(document: &Document) -> Vec<Finding> {
    let of_key = document.items(REQUIREMENTS).filter(|(_, entry)| text(entry, "key") == Some(keys::CAPACITY_TYPE));
    let mut findings = Vec::new();
    for (pointer, requirement) in of_key.filter(|(_, entry)| text(entry, "operator") == Some("In")) {
        let given = values(requirement);
        let valid = given.iter().filter(|value| CAPACITY_TYPES.contains(value)).count();
        let asked = requirement.get("minValues").and_then(Value::as_u64).and_then(|asked| usize::try_from(asked).ok());
        let message = if valid == 0 {
            format!("no capacity type is {}", given.join(" or "))
        } else if asked.is_some_and(|asked| valid < asked && given.len() >= asked) {
            format!("only {valid} of the values are capacity types, fewer than minValues")
        } else {
            continue;
        };
        // Of several unknown values, the one whose meaning is known comes first.
        let mut unknown = given.iter().enumerate().filter(|(_, value)| !CAPACITY_TYPES.contains(value));
        let first = unknown.clone().next();
        let Some((index, value)) = unknown.find(|(_, value)| CAPACITIES.meant(value).is_some()).or(first) else {
            continue;
        };
        let finding =
            Finding::at(&CAPACITY_TYPE, document, &format!("{pointer}/values/{index}"), FindingPlace::Value, message);
        findings.push(CAPACITIES.with_hint(finding, value));
    }
    findings
}

/// The values that a key can have, and words that people write for them.
struct Values {
    key: &'static str,
    known: &'static [&'static str],
    synonyms: &'static [(&'static str, &'static str)],
}

impl Values {
    fn synonym(&self, value: &str) -> Option<&'static str> {
        self.synonyms.iter().find(|(other, _)| *other == value).map(|(_, meant)| *meant)
    }

    /// The question whether a known one was meant.
    fn meant(&self, value: &str) -> Option<Hint> {
        let synonym = self.synonym(value).map(|meant| Hint::question(&[meant]));
        synonym.or_else(|| suggest::did_you_mean(value, self.known.iter().copied()))
    }

    /// Asks what was meant by the value that the finding is at, or says what there is.
    fn with_hint(&self, finding: Finding, value: &str) -> Finding {
        let hint = self.meant(value).unwrap_or_else(|| format!("there are {}", self.known.join(", ")).into());
        finding.hint(hint).instead(self.synonym(value).map(|meant| Instead::Text(meant.to_owned())))
    }
}

const CAPACITIES: Values =
    Values { key: keys::CAPACITY_TYPE, known: &CAPACITY_TYPES, synonyms: &[("ondemand", "on-demand")] };

const CLOSED: [Values; 4] = [
    Values {
        key: keys::ARCHITECTURE,
        known: &["amd64", "arm64"],
        synonyms: &[("x86_64", "amd64"), ("x86", "amd64"), ("aarch64", "arm64"), ("arm", "arm64")],
    },
    Values { key: keys::OPERATING_SYSTEM, known: &["linux", "windows"], synonyms: &[] },
    CAPACITIES,
    Values { key: keys::CAPACITY_RESERVATION_TYPE, known: &["default", "capacity-block"], synonyms: &[] },
];

fn unknown_value(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (pointer, requirement) in document.items(REQUIREMENTS) {
        let key = requirements::normalized(text(requirement, "key").unwrap_or_default());
        let Some(closed) = CLOSED.iter().find(|values| values.key == key) else { continue };
        let is_known = |value: &&str| closed.known.contains(value);
        let given = values(requirement);
        // Another rule speaks of `In` with no value that is known.
        let is_in = text(requirement, "operator") == Some("In");
        let none = key == keys::CAPACITY_TYPE && is_in && !given.iter().any(is_known);
        for (index, value) in given.iter().enumerate().filter(|(_, value)| !is_known(value) && !none) {
            let name = key.rsplit('/').next().unwrap_or(key);
            let at = format!("{pointer}/values/{index}");
            let message = format!("no node has the {name} `{value}`");
            findings.push(
                closed.with_hint(Finding::at(&UNKNOWN_VALUE, document, &at, FindingPlace::Value, message), value),
            );
        }
    }
    findings
}

/// Values that kubelets set on nodes of any provider. They are Go's names. Source: go.dev/doc/install/source, GOOS and
/// GOARCH.
const OF_ANY_NODE: [(&str, &[&str]); 2] = [
    (keys::ARCHITECTURE, &["386", "amd64", "arm", "arm64", "loong64", "mips64le", "ppc64le", "riscv64", "s390x"]),
    (keys::OPERATING_SYSTEM, &["linux", "windows"]),
];

/// What pods beside the definitions ask for, on nodes that may be others than Karpenter's.
pub(super) fn unknown_of_pod(document: &Document, written: &Written) -> Vec<Finding> {
    let key = requirements::normalized(&written.entry.key);
    let closed = CLOSED.iter().find(|values| values.key == key);
    let known = OF_ANY_NODE.iter().find(|(of, _)| *of == key).filter(|_| written.entry.operator == Operator::In);
    let Some((closed, (_, known))) = closed.zip(known) else { return Vec::new() };
    let unknown = written.entry.values.iter().enumerate().filter(|(_, value)| !known.contains(&value.as_str()));
    let finding = |(index, value): (usize, &String)| {
        let message = format!("no node has the {} `{value}`", key.rsplit('/').next().unwrap_or(key));
        let place = written.place(Some(index));
        closed.with_hint(Finding::at(&UNKNOWN_VALUE, document, &place, FindingPlace::Value, message), value)
    };
    unknown.map(finding).collect()
}

fn limit_quantity(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (pointer, resource, value) in document.members("/spec/limits") {
        let Some(text) = value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|n| n.to_string())) else {
            continue;
        };
        let message = match text.parse::<Quantity>() {
            Ok(quantity) if quantity.is_negative() => format!("the limit of `{resource}` is negative"),
            // A malformed quantity fails the pattern of the schema.
            Err(error @ crate::core::model::QuantityError::TooLarge(_)) => error.to_string(),
            _ => continue,
        };
        findings.push(Finding::at(&NEGATIVE_LIMIT, document, &pointer, FindingPlace::Value, message));
    }
    findings
}

fn unused_values(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (pointer, requirement) in document.items(REQUIREMENTS) {
        let operator = text(requirement, "operator").unwrap_or_default();
        if matches!(operator, "Exists" | "DoesNotExist") && !values(requirement).is_empty() {
            let message = format!("the operator {operator} does not look at values");
            let at = format!("{pointer}/values");
            let hint = if operator == "Exists" { "remove them, or use In" } else { "remove them, or use NotIn" };
            findings.push(Finding::at(&UNUSED_VALUES, document, &at, FindingPlace::Key, message).hint(hint));
        }
    }
    findings
}

fn contradiction(document: &Document) -> Vec<Finding> {
    // The requirement on each key, with the place where it was last said.
    let mut allowed: BTreeMap<String, (Requirement, String)> = BTreeMap::new();
    for (pointer, key, value) in document.members("/spec/template/metadata/labels") {
        if let Some(value) = value.as_str() {
            allowed.insert(requirements::normalized(key).to_owned(), (Requirement::is_in([value]), pointer));
        }
    }
    let mut findings = Vec::new();
    for (pointer, entry) in document.items(REQUIREMENTS) {
        let Ok(entry) = serde_json::from_value::<NodeSelectorRequirement>(entry.clone()) else { continue };
        let key = requirements::normalized(&entry.key);
        let requirement = Requirement::new(entry.operator, entry.values);
        // A single entry that allows nothing, such as In without values, has its own rule; DoesNotExist allows that there is no label.
        let alone = requirement.is_contradiction();
        let together = match allowed.get(key) {
            Some((before, at)) => {
                let together = before.intersection(&requirement);
                if together.is_contradiction() && !alone && !before.is_contradiction() {
                    let message = format!("no value of `{key}` satisfies this and what is required of it before");
                    let here = format!("{pointer}/key");
                    let finding = Finding::at(&CONTRADICTION, document, &here, FindingPlace::Value, message);
                    let finding = finding.related(document, at, "required here");
                    findings.push(finding.hint("the pool could never make a node"));
                }
                together
            }
            None => requirement,
        };
        allowed.insert(key.to_owned(), (together, format!("{pointer}/key")));
    }
    findings
}

/// Finds a `disruption` block that lacks `consolidateAfter`. Without the whole block the value is 0s.
fn consolidate_after(document: &Document) -> Vec<Finding> {
    let pointer = "/spec/disruption";
    let disruption = document.value.pointer(pointer).and_then(Value::as_object);
    // A slip such as `consolidateafter` is reported as such.
    let is_meant = |name: &String| suggest::nearest(name, ["consolidateAfter"].into_iter()).is_some();
    if disruption
        .is_none_or(|disruption| disruption.contains_key("consolidateAfter") || disruption.keys().any(is_meant))
    {
        return Vec::new();
    }
    let message = "`spec.disruption` lacks `consolidateAfter`";
    let finding = Finding::at(&CONSOLIDATE_AFTER, document, pointer, FindingPlace::Key, message);
    vec![finding.hint("add it: `consolidateAfter: 0s` is what counts without the block")]
}

fn payback(document: &Document) -> Vec<Finding> {
    let annotations = document.members("/metadata/annotations").filter(|(_, key, _)| *key == keys::PAYBACK);
    let unreadable = annotations.filter_map(|(pointer, _, value)| {
        // A value that is no text fails the schema.
        let error = value.as_str()?.parse::<NillableDuration>().err()?;
        let message = format!("`{}` can not be read: {error}", keys::PAYBACK);
        Some(
            Finding::at(&PAYBACK, document, &pointer, FindingPlace::Value, message)
                .hint("write a duration such as `1h`, or `Never`"),
        )
    });
    unreadable.collect()
}

fn old_key(document: &Document) -> Vec<Finding> {
    let keys = document.items(REQUIREMENTS).filter_map(|(pointer, entry)| Some((pointer, text(entry, "key")?)));
    keys.filter(|(_, key)| requirements::normalized(key) != *key)
        .map(|(pointer, key)| {
            let message = format!("`{key}` is an old name");
            Finding::at(&OLD_KEY, document, &format!("{pointer}/key"), FindingPlace::Value, message)
                .hint(format!("write `{}`", requirements::normalized(key)))
                .instead(Some(Instead::Text(requirements::normalized(key).to_owned())))
        })
        .collect()
}
