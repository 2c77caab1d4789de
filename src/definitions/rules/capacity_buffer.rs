//! CL0800 to CL0899: capacity buffers.

use super::Rule;
use super::references::{Renamed, left_behind};
use crate::api::capacity_buffer::ACTIVE_CAPACITY;
use crate::api::validation::capacity_buffer as cel;
use crate::definitions::diagnostic::Severity::{Error, Note, Warning};
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};
use crate::definitions::suggest;

const SCALABLE_KINDS: [&str; 3] = ["Deployment", "StatefulSet", "ReplicaSet"];

pub static ONE_REFERENCE: Rule = Rule::document(
    "CL0801",
    "buffer-reference",
    Error,
    "A buffer has podTemplateRef or scalableRef.",
    &[Kind::CapacityBuffer],
    one_reference,
);
pub static SCALABLE_KIND: Rule = Rule::document(
    "CL0802",
    "buffer-scalable-kind",
    Error,
    "A buffer's scalableRef names a Deployment, StatefulSet or ReplicaSet of the group apps.",
    &[Kind::CapacityBuffer],
    scalable_kind,
);
pub static STRATEGY: Rule = Rule::document(
    "CL0803",
    "buffer-strategy",
    Warning,
    "Room is kept for buffers whose provisioningStrategy is buffer.x-k8s.io/active-capacity.",
    &[Kind::CapacityBuffer],
    strategy,
);
pub static AMOUNT: Rule = Rule::document(
    "CL0804",
    "buffer-amount",
    Warning,
    "A buffer says how much room it wants, in a form that counts.",
    &[Kind::CapacityBuffer],
    amount,
);
pub static TEMPLATE_MISSING: Rule = Rule::revision(
    "CL0805",
    "buffer-template-missing",
    Note,
    "The PodTemplate that a buffer names is defined beside it, or is in the cluster.",
    template_missing,
);

pub static BOTH_REFERENCES: Rule = Rule::cel(
    "CL0806",
    "buffer-both-references",
    "A buffer has not both podTemplateRef and scalableRef.",
    &[&cel::BOTH_REFERENCES],
    |_| Some("remove one of them".into()),
);
pub static TEMPLATE_AMOUNT: Rule = Rule::cel(
    "CL0807",
    "buffer-template-amount",
    "A buffer with podTemplateRef has replicas or limits.",
    &[&cel::TEMPLATE_AMOUNT],
    |_| Some("add `replicas` or `limits`: a template has no replicas of its own".into()),
);

pub static RULES: &[&Rule] =
    &[&ONE_REFERENCE, &SCALABLE_KIND, &STRATEGY, &AMOUNT, &TEMPLATE_MISSING, &BOTH_REFERENCES, &TEMPLATE_AMOUNT];

fn has(document: &Document, field: &str) -> bool {
    document.value.pointer(&format!("/spec/{field}")).is_some()
}

fn one_reference(document: &Document) -> Vec<Finding> {
    let Some(spec) = document.value.get("spec").filter(|spec| spec.is_object()) else { return Vec::new() };
    if ["podTemplateRef", "scalableRef"].iter().any(|field| spec.get(field).is_some()) {
        return Vec::new();
    }
    let message = "the buffer says nothing of the pods it keeps room for";
    let hint = "add podTemplateRef, or scalableRef with the workload whose pods may come";
    vec![Finding::at(&ONE_REFERENCE, document, "/spec", FindingPlace::Key, message).hint(hint)]
}

fn scalable_kind(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    let text = |field: &str| document.str(&format!("/spec/scalableRef/{field}"));
    if let Some(kind) = text("kind").filter(|kind| !SCALABLE_KINDS.contains(kind)) {
        let message = format!("no room is kept for the pods of a {kind}");
        let finding = Finding::at(&SCALABLE_KIND, document, "/spec/scalableRef/kind", FindingPlace::Value, message);
        let nearest = suggest::did_you_mean(kind, SCALABLE_KINDS.into_iter());
        let hint = nearest.unwrap_or_else(|| "name a Deployment, StatefulSet or ReplicaSet".into());
        findings.push(finding.hint(hint));
    }
    let group = text("apiGroup").unwrap_or_default();
    if has(document, "scalableRef") && group != "apps" {
        let (pointer, place, message) = match text("apiGroup") {
            Some(_) => (
                "/spec/scalableRef/apiGroup",
                FindingPlace::Value,
                format!("no room is kept for pods of the group `{group}`"),
            ),
            None => ("/spec/scalableRef", FindingPlace::Key, "scalableRef has no apiGroup".to_owned()),
        };
        findings.push(Finding::at(&SCALABLE_KIND, document, pointer, place, message).hint("write `apiGroup: apps`"));
    }
    findings
}

fn strategy(document: &Document) -> Vec<Finding> {
    let pointer = "/spec/provisioningStrategy";
    match document.str(pointer).filter(|strategy| !strategy.is_empty() && *strategy != ACTIVE_CAPACITY) {
        Some(strategy) => {
            let message = format!("no room is kept by the strategy {strategy}");
            let finding = Finding::at(&STRATEGY, document, pointer, FindingPlace::Value, message);
            vec![finding.hint(format!("write `{ACTIVE_CAPACITY}`, or leave the field out"))]
        }
        None => Vec::new(),
    }
}

fn amount(document: &Document) -> Vec<Finding> {
    if !has(document, "scalableRef") && has(document, "percentage") {
        let message = "a percentage counts only with scalableRef: a template has no replicas";
        let finding = Finding::at(&AMOUNT, document, "/spec/percentage", FindingPlace::Key, message);
        return vec![finding.hint("give `replicas` or `limits`")];
    }
    let says = ["replicas", "percentage", "limits"].iter().any(|field| has(document, field));
    let is_there = document.value.get("spec").is_some_and(serde_json::Value::is_object);
    // The schema has a rule of its own about templates.
    if says || !is_there || has(document, "podTemplateRef") {
        return Vec::new();
    }
    let message = "the buffer does not say how much room it wants";
    vec![
        Finding::at(&AMOUNT, document, "/spec", FindingPlace::Key, message)
            .hint("add `replicas`, `percentage` or `limits`"),
    ]
}

fn template_missing(revision: &Revision<'_>) -> Vec<Finding> {
    let templates: Vec<(&str, &str)> =
        revision.of(Kind::PodTemplate).filter_map(|it| Some((it.namespace(), it.name()?))).collect();
    let renamed = Renamed::of(revision, Kind::PodTemplate);
    let missing = |buffer: &Object| {
        let pointer = "/spec/podTemplateRef/name";
        let name = buffer.document.str(pointer).filter(|name| !templates.contains(&(buffer.namespace(), *name)))?;
        let message =
            format!("there is no PodTemplate `{}/{name}` here: it has to be in the cluster", buffer.namespace());
        let finding = Finding::at(&TEMPLATE_MISSING, &buffer.document, pointer, FindingPlace::Value, message);
        if let Some(template) = renamed.get(name, buffer) {
            return Some(left_behind(finding, template, "podTemplateRef"));
        }
        let of_namespace = templates.iter().filter(|(namespace, _)| *namespace == buffer.namespace());
        Some(finding.maybe_hint(suggest::did_you_mean(name, of_namespace.map(|(_, name)| *name))))
    };
    revision.of(Kind::CapacityBuffer).filter_map(missing).collect()
}
