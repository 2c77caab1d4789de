//! CL0340, CL0341 and CL0345: budgets of workloads that hold every drain up, or that nobody takes.
//! Source: Kubernetes, "Specifying a Disruption Budget for your Application", and Karpenter, "Disruption".

use serde_json::Value;

use super::Rule;
use crate::definitions::diagnostic::Severity::Warning;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::suggest::Hint;

pub static NEVER_EVICTED: Rule =
    Rule::pass("CL0340", "never-evicted", Warning, "A PodDisruptionBudget lets some pod of its workload be evicted.");

pub static BOTH_BOUNDS: Rule = Rule::pass(
    "CL0341",
    "both-bounds",
    Warning,
    "A PodDisruptionBudget has minAvailable or maxUnavailable, and not both.",
);

pub static BOUND: Rule = Rule::pass(
    "CL0345",
    "malformed-bound",
    Warning,
    "minAvailable and maxUnavailable are a number of pods, or a share of them up to `100%`.",
);

pub static RULES: &[&Rule] = &[&NEVER_EVICTED, &BOTH_BOUNDS];

/// By its code, this rule comes behind those of other files.
pub static MORE_RULES: &[&Rule] = &[&BOUND];

const BOUNDS: [&str; 2] = ["/spec/minAvailable", "/spec/maxUnavailable"];

/// What is wrong with a PodDisruptionBudget beside the definitions, and what it says of drains. Other kinds have nothing.
pub fn of_workload(document: &Document) -> Vec<Finding> {
    let is_budget = document.str("/kind") == Some("PodDisruptionBudget")
        && document.str("/apiVersion").is_some_and(|version| version.starts_with("policy/"));
    if !is_budget {
        return Vec::new();
    }
    let malformed = BOUNDS.into_iter().filter_map(|pointer| malformed(document, pointer));
    malformed.chain(of_drains(document)).collect()
}

/// A bound that the API server refuses.
fn malformed(document: &Document, pointer: &str) -> Option<Finding> {
    let at = |message: String| Finding::at(&BOUND, document, pointer, FindingPlace::Value, message);
    let wrong = match document.value.pointer(pointer)? {
        Value::Null => return None,
        Value::String(text) if text.contains("${") || text.contains("{{") => return None,
        Value::String(text) => match share(text) {
            Some(0..=100) => return None,
            Some(_) => at(format!("`{text}` is more than all pods: the API server refuses the object")),
            None => {
                at(format!("`{text}` is no share of the pods: the API server refuses the object")).hint(meant(text))
            }
        },
        Value::Number(number) if number.as_u64().is_some() => return None,
        Value::Number(number) => at(format!("`{number}` is no number of pods: the API server refuses the object")),
        _ => at("it is neither a number of pods nor a share of them: the API server refuses the object".to_owned()),
    };
    let has_hint = wrong.hint.is_some();
    Some(if has_hint { wrong } else { wrong.hint("write a number from 0 on, or a share such as `50%`") })
}

/// The number before the percent sign. It is the greatest number where it is more than can be counted.
fn share(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%').filter(|it| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()))?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// What to write for text that is no share.
fn meant(text: &str) -> Hint {
    let without_blanks: String = text.split_whitespace().collect();
    match without_blanks.parse::<u64>() {
        Ok(number) if number <= 100 => {
            format!("write {number} without quotes for so many pods, or `{number}%` for a share of them").into()
        }
        Ok(number) => format!("write {number} without quotes for so many pods").into(),
        Err(_) if share(&without_blanks).is_some() => Hint::question(&[&without_blanks]),
        Err(_) => "write a number from 0 on, or a share such as `50%`".into(),
    }
}

/// What a PodDisruptionBudget says of drains.
fn of_drains(document: &Document) -> Option<Finding> {
    let written = |field: &str| {
        let value = document.value.pointer(field)?;
        value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|number| number.to_string()))
    };
    let (most, least) = ("/spec/maxUnavailable", "/spec/minAvailable");
    if written(most).is_some() && written(least).is_some() {
        let message = "minAvailable and maxUnavailable exclude each other: the API server refuses the object";
        let finding = Finding::at(&BOTH_BOUNDS, document, most, FindingPlace::Key, message);
        return Some(finding.related(document, least, "minAvailable").hint("remove one of them"));
    }
    let at = match () {
        () if written(most).is_some_and(|text| ["0", "0%"].contains(&text.as_str())) => most,
        () if written(least).as_deref() == Some("100%") => least,
        () => return None,
    };
    // A budget that selects nothing holds nothing up.
    document.value.pointer("/spec/selector").filter(|selector| selector.is_object())?;
    let message = "no pod of it is ever evicted: Karpenter leaves its nodes alone, and a drain of one waits for the terminationGracePeriod, or for ever";
    let finding = Finding::at(&NEVER_EVICTED, document, at, FindingPlace::Value, message);
    Some(finding.hint("write `maxUnavailable: 1`; where pods must not be moved at all, say so at the pods: karpenter.sh/do-not-disrupt"))
}
