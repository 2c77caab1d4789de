//! CL0340 and CL0341: budgets of workloads that hold every drain up, or that nobody takes.
//! Source: Kubernetes, "Specifying a Disruption Budget for your Application", and Karpenter, "Disruption".

use super::Rule;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, Place};

pub static NEVER_EVICTED: Rule =
    Rule::pass("CL0340", "never-evicted", Warning, "A PodDisruptionBudget lets some pod of its workload be evicted.");

pub static BOTH_BOUNDS: Rule = Rule::pass(
    "CL0341",
    "both-bounds",
    Warning,
    "A PodDisruptionBudget has minAvailable or maxUnavailable, and not both.",
);

pub static RULES: &[&Rule] = &[&NEVER_EVICTED, &BOTH_BOUNDS];

/// What a PodDisruptionBudget beside the definitions says of drains. Other kinds have nothing.
pub fn of_workload(document: &Document) -> Option<Finding> {
    let is_budget = document.str("/kind") == Some("PodDisruptionBudget")
        && document.str("/apiVersion").is_some_and(|version| version.starts_with("policy/"));
    let written = |field: &str| {
        let value = document.value.pointer(field)?;
        value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
    };
    let (most, least) = ("/spec/maxUnavailable", "/spec/minAvailable");
    if is_budget && written(most).is_some() && written(least).is_some() {
        let message = "minAvailable and maxUnavailable exclude each other: the API server refuses the object";
        let finding = Finding::at(&BOTH_BOUNDS, document, most, Place::Key, message);
        return Some(finding.related(document, least, "minAvailable").hint("remove one of them"));
    }
    let at = match () {
        () if !is_budget => return None,
        () if written(most).is_some_and(|text| ["0", "0%"].contains(&text.as_str())) => most,
        () if written(least).as_deref() == Some("100%") => least,
        () => return None,
    };
    // One that selects nothing holds nothing up.
    document.value.pointer("/spec/selector").filter(|selector| selector.is_object())?;
    let message = "no pod of it is ever evicted: Karpenter leaves its nodes alone, and a drain of one waits for the terminationGracePeriod, or for ever";
    let finding = Finding::at(&NEVER_EVICTED, document, at, Place::Value, message);
    Some(finding.hint("write `maxUnavailable: 1`; where pods must not be moved at all, say so at the pods: karpenter.sh/do-not-disrupt"))
}
