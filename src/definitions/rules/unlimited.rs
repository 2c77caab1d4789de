//! CL0505 to CL0519: reasons, and hours, of which no budget of a pool speaks. Budgets only restrict: what they do not speak of, nothing
//! limits.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Rule;
use super::budgets::{FIRST_SECOND, LAST_SECOND, Window, speaks_of, united};
use super::one_pool::is_static;
use crate::api::disruption_budget::DisruptionBudgetSpec;
use crate::api::node_pool::DisruptionReason;
use crate::definitions::diagnostic::Severity::Note;
use crate::definitions::document::Document;
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::Kind;
use crate::definitions::revision::{Object, Revision};

pub static UNLIMITED: Rule = Rule::revision(
    "CL0505",
    "nothing-limits",
    Note,
    "For each reason, and at each hour, some budget limits how many nodes are disrupted.",
    unlimited,
);

pub static RULES: &[&Rule] = &[&UNLIMITED];

const BUDGETS: &str = "/spec/disruption/budgets";
const REASONS: [DisruptionReason; 3] =
    [DisruptionReason::Underutilized, DisruptionReason::Empty, DisruptionReason::Drifted];

fn unlimited(revision: &Revision<'_>) -> Vec<Finding> {
    let over_pools: Vec<DisruptionBudgetSpec> = revision
        .of(Kind::DisruptionBudget)
        .filter_map(|budget| serde_json::from_value(budget.document.value.get("spec")?.clone()).ok())
        .collect();
    revision.of(Kind::NodePool).flat_map(|pool| of_pool(pool, &over_pools)).collect()
}

/// Finds reasons for which no budget is there at every hour. Reasons with the same budgets have one finding together.
fn of_pool(pool: &Object, over_pools: &[DisruptionBudgetSpec]) -> Vec<Finding> {
    let document = &pool.document;
    let budgets: Vec<(String, &Value)> = document.items(BUDGETS).collect();
    let known = REASONS.map(|reason| format!("{reason:?}"));
    let mut named = budgets.iter().flat_map(|(_, it)| it.get("reasons").and_then(Value::as_array)).flatten();
    // Nobody knows what a misspelt reason is meant to be.
    if named.any(|reason| reason.as_str().is_none_or(|reason| !known.iter().any(|known| known == reason))) {
        return Vec::new();
    }
    let mut by_budgets: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
    let occurring = REASONS.into_iter().filter(|reason| occurs(document, *reason));
    for reason in occurring.filter(|reason| !over_pools.iter().any(|budget| limits(budget, pool, *reason))) {
        let name = format!("{reason:?}");
        let speaking: Vec<usize> = budgets
            .iter()
            .enumerate()
            .filter(|(_, (_, budget))| speaks_of(budget, &name))
            .map(|(position, _)| position)
            .collect();
        let pointers: Vec<&str> = speaking.iter().map(|position| budgets[*position].0.as_str()).collect();
        if !covers_every_hour(document, &pointers) {
            by_budgets.entry(speaking).or_default().push(name);
        }
    }
    let finding = |(speaking, reasons): (Vec<usize>, Vec<String>)| {
        let reasons = reasons.join(" and ");
        let windows: Vec<String> =
            speaking.iter().filter_map(|position| Some(Window::at(document, &budgets[*position].0)?.said())).collect();
        let (place, message) = match speaking.last() {
            Some(last) => {
                let message = format!("outside of {} nothing limits {reasons}", windows.join(" and "));
                (format!("{}/schedule", budgets[*last].0), message)
            }
            None => match budgets.last() {
                Some((last, _)) => {
                    (format!("{last}/reasons"), format!("nothing limits {reasons}: no budget of the pool names it"))
                }
                None => (BUDGETS.to_owned(), format!("nothing limits {reasons}: the list of budgets is empty")),
            },
        };
        let finding = Finding::at(&UNLIMITED, document, &place, FindingPlace::Value, message);
        Some(
            finding
                .hint("budgets only restrict: add one for all reasons, without a schedule, for what shall hold always"),
        )
    };
    by_budgets.into_iter().filter_map(finding).collect()
}

/// Whether nodes of the pool are ever disrupted for the reason.
fn occurs(document: &Document, reason: DisruptionReason) -> bool {
    let disruption = |field: &str| document.str(&format!("/spec/disruption/{field}"));
    match reason {
        DisruptionReason::Drifted => true,
        _ if is_static(document) || disruption("consolidateAfter") == Some("Never") => false,
        DisruptionReason::Underutilized => disruption("consolidationPolicy") != Some("WhenEmpty"),
        DisruptionReason::Empty => true,
    }
}

/// Whether one of these budgets has no schedule, or their windows leave no hour. What can not be read is not judged.
fn covers_every_hour(document: &Document, budgets: &[&str]) -> bool {
    let has_schedule = |budget: &&&str| document.value.pointer(&format!("{budget}/schedule")).is_some();
    if budgets.iter().any(|budget| !has_schedule(&budget)) {
        return true;
    }
    if budgets.is_empty() {
        // Where there is no list, the default of 10% is for every reason. An empty list stays empty.
        return document.value.pointer(BUDGETS).is_none();
    }
    let open: Option<Vec<_>> = budgets.iter().map(|budget| Window::at(document, budget)?.in_force()).collect();
    open.is_none_or(|open| united(open) == [(FIRST_SECOND, LAST_SECOND)])
}

/// Whether a budget over pools limits this one for the reason at every hour.
fn limits(budget: &DisruptionBudgetSpec, pool: &Object, reason: DisruptionReason) -> bool {
    let selector = budget.node_pool_selector.clone().unwrap_or_default();
    let label = |key: &str| {
        let labels = pool.document.value.pointer("/metadata/labels");
        labels.and_then(|labels| labels.get(key)).and_then(Value::as_str)
    };
    let selects = (selector.names.is_empty() || selector.names.iter().any(|name| pool.name() == Some(name)))
        && selector.match_labels.iter().all(|(key, value)| label(key) == Some(value));
    let restricts = budget.nodes != "100%" || budget.money_per_hour.is_some();
    let speaks = budget.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason));
    selects && restricts && speaks && budget.schedule.is_none()
}
