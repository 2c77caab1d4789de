//! CL0333: what a pool requires of nodes, held against what its class makes of them: the operating system, reservations, placement groups.

use std::collections::BTreeMap;

use super::Rule;
use super::references::references;
use crate::api::ec2_node_class::EC2NodeClassSpec;
use crate::api::keys;
use crate::core::catalog::node_class::windows_build;
use crate::core::model::Requirement;
use crate::core::model::requirements::normalized;
use crate::definitions::asked::Written;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

pub static EXCLUDED: Rule = Rule::revision(
    "CL0333",
    "excluded-by-class",
    Warning,
    "Nodes of the class of a pool can have the labels that the pool requires.",
    excluded,
);

pub static RULES: &[&Rule] = &[&EXCLUDED];

/// What the nodes of a class have of one label.
struct Fixed {
    key: &'static str,
    /// The values of the label on these nodes. There are none where the nodes do not have the label.
    values: Vec<&'static str>,
    /// The values on other nodes. Another rule speaks of a requirement that allows none of these either.
    elsewhere: &'static [&'static str],
    why: String,
}

fn excluded(revision: &Revision<'_>) -> Vec<Finding> {
    let mut classes: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for class in revision.of(Kind::EC2NodeClass) {
        classes.entry(class.name().unwrap_or_default()).or_default().push(class);
    }
    let mut findings = Vec::new();
    for (pool, name) in references(revision) {
        // Where two classes have one name, nobody knows which of them is meant.
        let Some([class]) = classes.get(name).map(Vec::as_slice) else { continue };
        let is_open = |document: &Document| document.variables.open().next().is_some();
        if !is_open(&class.document) {
            findings.extend(of_pool(pool, &class.document));
        }
    }
    findings
}

fn of_pool(pool: &Object, class: &Document) -> Vec<Finding> {
    let written = || pool.asked.lists.iter().flat_map(|list| &list.written);
    let mut findings = Vec::new();
    for fixed in fixed_by(class) {
        let of_key: Vec<&Written> = written().filter(|it| normalized(&it.entry.key) == fixed.key).collect();
        let allowed = of_key.iter().map(|it| Requirement::new(it.entry.operator, it.entry.values.clone()));
        let Some(allowed) = allowed.reduce(|one, other| one.intersection(&other)) else { continue };
        let allows = |values: &[&str]| values.iter().any(|value| allowed.allows(value));
        let is_met = allows(&fixed.values) || (fixed.values.is_empty() && allowed.allows_absence());
        let is_said = allowed.is_contradiction() || !(fixed.elsewhere.is_empty() || allows(fixed.elsewhere));
        let Some(last) = of_key.last().filter(|_| !is_met && !is_said) else { continue };
        let place = if last.is_label { last.pointer.clone() } else { format!("{}/key", last.pointer) };
        let message = format!("no node of its class has `{}` as this asks: {}", fixed.key, fixed.why);
        let finding = Finding::at(&EXCLUDED, &pool.document, &place, FindingPlace::Value, message);
        findings.push(finding.related(class, "/metadata/name", "the class").hint("the pool makes no node"));
    }
    findings
}

/// As Karpenter gives labels to the instance types of a class. Source: reference, section 2.3.
fn fixed_by(class: &Document) -> Vec<Fixed> {
    let spec = class.value.get("spec").cloned().unwrap_or_default();
    let Ok(spec) = serde_json::from_value::<EC2NodeClassSpec>(spec) else { return Vec::new() };
    let family = spec.resolved_ami_family();
    let fixed =
        |key, values: &[&'static str], elsewhere, why: String| Fixed { key, values: values.to_vec(), elsewhere, why };
    let mut all = match windows_build(family) {
        Some(build) => vec![
            fixed(keys::OPERATING_SYSTEM, &["windows"], &["linux"], format!("images of {family:?} run windows")),
            fixed(keys::ARCHITECTURE, &["amd64"], &["arm64"], format!("images of {family:?} are for amd64 alone")),
            fixed(keys::WINDOWS_BUILD, &[build], &[], format!("images of {family:?} have the build {build}")),
        ],
        None => vec![
            fixed(keys::OPERATING_SYSTEM, &["linux"], &["windows"], format!("images of {family:?} run linux")),
            fixed(keys::WINDOWS_BUILD, &[], &[], format!("images of {family:?} run linux")),
        ],
    };
    if spec.capacity_reservation_selector_terms.is_empty() {
        let why = || "it selects no capacity reservations".to_owned();
        all.push(fixed(keys::CAPACITY_TYPE, &[keys::ON_DEMAND, keys::SPOT], &[keys::RESERVED], why()));
        let of_reservations =
            [keys::CAPACITY_RESERVATION_ID, keys::CAPACITY_RESERVATION_TYPE, keys::CAPACITY_RESERVATION_INTERRUPTIBLE];
        all.extend(of_reservations.map(|key| fixed(key, &[], &[], why())));
    }
    if spec.placement_group_selector.is_none() {
        let why = || "it selects no placement group".to_owned();
        let of_groups = ["karpenter.k8s.aws/placement-group-id", "karpenter.k8s.aws/placement-group-partition"];
        all.extend(of_groups.map(|key| fixed(key, &[], &[], why())));
    }
    all
}
