//! What is left of plans whose objects are forgotten: which nodes they created and removed, for what and for how much. Kept in a ring
//! of pages, which are `NodePlan` objects of bounded size, so that nothing new has to be allowed and nothing grows for ever.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::node_plan::NodePlan;
use crate::core::snapshot::Snapshot;
use crate::core::why::node::kept;

/// A page is written as a whole, once for each plan that is forgotten.
const PAGE_BYTES_MAX: usize = 128 * 1024;
/// Some 2,500 nodes.
const PAGES: usize = 24;

/// The pages to write before these plans are forgotten: the last one with what there is room for, and those after it. The oldest
/// page is begun anew when all are full. Entries that are there already, since a process ended in between, are not written again.
pub fn pages_with(snapshot: &Snapshot, forgotten: &[&NodePlan]) -> Vec<NodePlan> {
    let pages_there = || snapshot.node_plans.iter().filter(|plan| plan.page_number().is_some());
    let last = pages_there().max_by_key(|page| (written_last(page), page.page_number()));
    let mut page = last.cloned().unwrap_or_else(|| NodePlan::page(0));
    let mut bytes = entries(&page).iter().map(|entry| entry.to_string().len()).sum::<usize>();
    let mut pages = Vec::new();
    let mut is_changed = false;
    let known: BTreeSet<String> = pages_there().flat_map(entries).map(identity).collect();
    let steps = forgotten.iter().flat_map(|plan| kept(plan)).map(|kept| json!(kept));
    for entry in steps.filter(|entry| !known.contains(&identity(entry))) {
        let size = entry.to_string().len();
        if bytes + size > PAGE_BYTES_MAX && bytes > 0 {
            let next = (page.page_number().unwrap_or(0) + 1) % PAGES;
            pages.extend(is_changed.then_some(page));
            (page, bytes) = (NodePlan::page(next), 0);
        }
        page.status.get_or_insert_default().history.push(entry);
        bytes += size;
        is_changed = true;
    }
    pages.extend(is_changed.then_some(page));
    pages
}

fn entries(page: &NodePlan) -> &[Value] {
    page.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
}

/// The plan, and the claim of its step.
fn identity(entry: &Value) -> String {
    let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}", text("/decision/planId"), text("/nodeClaim"))
}

/// RFC 3339: the moment that the newest entry speaks of.
fn written_last(page: &NodePlan) -> Option<String> {
    let at = |entry: &Value| entry.pointer("/decision/at").and_then(Value::as_str).map(str::to_owned);
    entries(page).iter().filter_map(at).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::why::node::Kept;
    use crate::testing::object;

    /// A plan that was carried out: it removed this many nodes.
    fn plan(number: usize, nodes: usize) -> NodePlan {
        let at = format!("2026-11-20T09:{:02}:{:02}Z", number / 60, number % 60);
        let step = |node: usize| {
            json!({
                "kind": "remove", "move": 1, "nodePool": "default", "nodeClaim": format!("default-{number}-{node}"),
                "node": format!("node-{number}-{node}"), "instanceType": "m6i.large", "zone": "a",
                "capacityType": "spot", "pricePerHour": 0.1, "pods": ["shop/web-1", "shop/web-2"],
                "reason": { "code": "Empty", "text": "Empty for 30s" }, "preconditions": [],
                "allocatable": {}, "requested": {},
            })
        };
        let plan = json!({
            "version": 1, "id": format!("{number:064}"), "revision": { "id": "abc", "reference": "main" },
            "cluster": "demo", "generatedFor": at, "catalogDate": "2026-11-20", "seed": 0, "packing": "cheapest",
            "steps": (0..nodes).map(step).collect::<Vec<_>>(), "placements": [], "pending": [], "heldBack": [],
            "budgets": [], "notes": [], "summary": {
                "nodesBefore": 1, "nodesAfter": 1, "nodesCreated": 0, "nodesReplaced": 0, "nodesRemoved": 0,
                "pricePerHourBefore": 0.1, "pricePerHourAfter": 0.1, "podsPlaced": 0, "podsPending": 0,
                "podsDisrupted": 0, "candidates": 0, "candidatesExamined": 0,
            },
        });
        object(json!({
            "apiVersion": "cutlist.dev/v1alpha1", "kind": "NodePlan", "metadata": { "name": format!("plan-{number}") },
            "spec": {
                "planId": format!("{number:064}"), "revision": { "id": "abc", "reference": "main" }, "generatedFor": at,
                "nodesCreated": 0, "nodesRemoved": nodes, "priceChange": "", "plan": plan,
            },
            "status": { "phase": "Applied", "movesBegun": [1] },
        }))
    }

    fn write(snapshot: &mut Snapshot, pages: Vec<NodePlan>) {
        for page in pages {
            snapshot.node_plans.retain(|plan| plan.metadata.name != page.metadata.name);
            snapshot.node_plans.push(page);
        }
    }

    #[test]
    fn thousands_of_nodes_are_kept_and_no_more() {
        let mut snapshot = Snapshot::default();
        for number in 0..150 {
            let forgotten = plan(number, 40);
            let pages = pages_with(&snapshot, &[&forgotten]);
            assert!(!pages.is_empty());
            write(&mut snapshot, pages);
            // The process ended before the plan was forgotten.
            assert_eq!(pages_with(&snapshot, &[&forgotten]), []);
        }
        let pages: Vec<&NodePlan> = snapshot.node_plans.iter().collect();
        assert_eq!(pages.len(), PAGES);
        assert!(
            pages
                .iter()
                .all(|page| page.page_number().is_some() && json!(page).to_string().len() < PAGE_BYTES_MAX + 4096)
        );
        let all: Vec<Kept> = pages
            .iter()
            .flat_map(|page| entries(page))
            .map(|entry| serde_json::from_value(entry.clone()).unwrap())
            .collect();
        assert!(all.len() > 2_500, "{}", all.len());
        let has = |node: &str| all.iter().any(|kept| kept.node.as_deref() == Some(node));
        assert!(has("node-149-39") && has("node-100-0") && !has("node-0-0"));
    }

    #[test]
    fn a_plan_that_did_nothing_leaves_nothing() {
        let mut idle = plan(1, 2);
        idle.status.as_mut().unwrap().moves_begun.clear();
        assert_eq!(pages_with(&Snapshot::default(), &[&idle, &plan(2, 0)]), []);
    }
}
