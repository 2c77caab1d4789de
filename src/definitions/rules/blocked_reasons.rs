//! CL0414: budgets of a pool that let no node go for some reasons, at any time. Those for every reason have a rule of their own.

use serde_json::Value;

use super::Rule;
use super::budgets::is_of_none;
use super::one_pool::is_static;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;

pub static BLOCKED: Rule = Rule::document(
    "CL0414",
    "reason-blocked",
    Note,
    "For each reason some budget of a pool lets nodes go at some time.",
    &[Kind::NodePool],
    blocked,
);

pub static RULES: &[&Rule] = &[&BLOCKED];

fn blocked(document: &Document) -> Vec<Finding> {
    let budgets = document.items("/spec/disruption/budgets");
    let closed = budgets.filter(|(_, budget)| is_closed(budget));
    let finding = |(pointer, budget): (String, &Value)| {
        let reasons = budget.get("reasons")?.as_array()?.iter().filter_map(Value::as_str);
        let consequences: Vec<&str> = reasons.filter_map(|reason| consequence(document, reason)).collect();
        if consequences.is_empty() {
            return None;
        }
        let message = format!("the budget allows nothing at any time: {}", consequences.join(", and "));
        let finding = Finding::at(&BLOCKED, document, &format!("{pointer}/nodes"), FindingPlace::Value, message);
        Some(finding.hint("right if that is what is meant; else give it a schedule and a duration"))
    };
    closed.filter_map(finding).collect()
}

fn is_closed(budget: &Value) -> bool {
    is_of_none(budget) && budget.get("schedule").is_none() && budget.get("duration").is_none()
}

/// The consequence where no node goes for this reason. There is none where no node would go for it anyway.
fn consequence(document: &Document, reason: &str) -> Option<&'static str> {
    let disruption = |field: &str| document.str(&format!("/spec/disruption/{field}"));
    let is_consolidated = !is_static(document) && disruption("consolidateAfter") != Some("Never");
    match reason {
        "Drifted" => Some("new images and changed definitions reach no node that runs"),
        "Empty" if is_consolidated => Some("a node without pods stays, and is paid for"),
        "Underutilized" if is_consolidated && disruption("consolidationPolicy") != Some("WhenEmpty") => {
            Some("a node that is hardly used stays, and is paid for")
        }
        _ => None,
    }
}
