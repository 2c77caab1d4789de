//! CL0342: workloads of one pod on pools that consolidate; and what a PodDisruptionBudget makes of the number of pods (CL0340).

use serde_json::Value;

use super::Rule;
use super::evictions::NEVER_EVICTED;
use super::offers::{Offer, Pods};
use super::one_pool::{is_at_rest, is_open, is_static};
use crate::api::keys;
use crate::definitions::asked::lists_of_pod;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::{Document, spans};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::providers::is_of_another_provider;
use crate::definitions::revision::Object;
use crate::definitions::workloads::{OfPlace, Workload, Workloads};

pub static SINGLE_REPLICA: Rule = Rule::pass(
    "CL0342",
    "single-replica",
    Note,
    "A workload on a pool that consolidates has more than one pod, or says that its pod is not to be moved.",
);

pub static RULES: &[&Rule] = &[&SINGLE_REPLICA];

const PODS: &str = "/spec/template/spec";
const ANNOTATIONS: &str = "/spec/template/metadata/annotations";

/// At most this many pools are asked whether they take a workload. Where there are more, most take it.
const POOLS_MAX: usize = 100;

/// What workloads beside the definitions say of drains, held against the pools that there are.
pub fn of_workloads(workloads: &Workloads, objects: &[Object]) -> Vec<Finding> {
    let is_pool = |object: &&Object| object.kind == Kind::NodePool && !object.staged && consolidates(object);
    let offers: Vec<Offer<'_>> = objects.iter().filter(is_pool).filter_map(Offer::of).take(POOLS_MAX).collect();
    let mut findings = Vec::new();
    for place in workloads.places() {
        findings.extend(place.of_fixed_size().filter_map(|workload| single_replica(workload, place, &offers)));
        findings.extend(place.with_selected().filter_map(|(budget, selected)| never_evicted(budget, &selected)));
    }
    findings
}

/// Whether nodes of the pool go for being underutilized.
fn consolidates(pool: &Object) -> bool {
    let document = &pool.document;
    let disruption = |field: &str| document.str(&format!("/spec/disruption/{field}"));
    let blocks = |budget: &Value| {
        let is_nothing = budget.get("nodes").and_then(Value::as_str).is_some_and(|it| it.trim_end_matches('%') == "0");
        let reasons = budget.get("reasons").and_then(Value::as_array);
        let is_of_it = reasons.is_none_or(|reasons| reasons.iter().any(|reason| reason == "Underutilized"));
        is_nothing && is_of_it && budget.get("schedule").is_none()
    };
    let is_blocked = document.items("/spec/disruption/budgets").any(|(_, budget)| blocks(budget));
    let makes_none = is_static(document) || is_at_rest(document);
    let is_unknown = is_open(document) || is_of_another_provider(document);
    disruption("consolidateAfter") != Some("Never")
        && disruption("consolidationPolicy") != Some("WhenEmpty")
        && !(is_blocked || makes_none || is_unknown)
}

fn single_replica(workload: &Workload, place: &OfPlace, offers: &[Offer<'_>]) -> Option<Finding> {
    let document = &workload.document;
    let annotation = format!("{ANNOTATIONS}/{}", spans::escape(keys::DO_NOT_DISRUPT));
    // Whoever has a budget has thought of drains.
    let is_said = document.value.pointer(&annotation).is_some() || place.has_budget(workload);
    if workload.replicas != 1 || is_said {
        return None;
    }
    let pods = Pods::new(document, PODS, &lists_of_pod(document, PODS));
    let pool = offers.iter().find(|offer| offer.takes(&pods))?.pool;
    let message = format!(
        "the only pod may be on nodes of NodePool `{pool}`, which consolidates: it ends before another one starts elsewhere"
    );
    let finding = Finding::at(&SINGLE_REPLICA, document, "/spec/replicas", FindingPlace::Value, message);
    Some(finding.hint(format!(
        "write 2 or more, with a PodDisruptionBudget; or annotate its pods `{}: \"true\"` if they must not be moved",
        keys::DO_NOT_DISRUPT
    )))
}

/// A budget that keeps as many pods as there are.
fn never_evicted(budget: &Document, selected: &[&Workload]) -> Option<Finding> {
    let at = "/spec/minAvailable";
    let least = budget.value.pointer(at)?;
    let pods: u64 = selected.iter().map(|it| it.replicas).fold(0, u64::saturating_add);
    let kept = match least.as_str() {
        // A share is rounded up, as the disruption controller does. Another rule says of 100% that it keeps all pods,
        // without any workload.
        Some(text) => {
            let share: u64 = text.strip_suffix('%')?.parse().ok().filter(|share| *share < 100)?;
            pods.checked_mul(share)?.div_ceil(100)
        }
        None => least.as_u64()?,
    };
    if pods == 0 || kept < pods {
        return None;
    }
    let named = selected.iter().filter_map(|it| it.document.name()).collect::<Vec<_>>().join(", ");
    let have = if selected.len() == 1 { "has" } else { "have" };
    let message = format!(
        "no pod of it is ever evicted: it keeps {kept}, and {named} {have} {pods}; Karpenter leaves the nodes alone, and a drain of one waits for the terminationGracePeriod, or for ever"
    );
    let finding = Finding::at(&NEVER_EVICTED, budget, at, FindingPlace::Value, message);
    let finding =
        selected.iter().fold(finding, |finding, it| finding.related(&it.document, "/spec/replicas", "replicas"));
    Some(finding.hint("write `maxUnavailable: 1` in its place, or run more pods"))
}
