//! What was not done and why, what the reader should know, and the sums.

use std::collections::BTreeMap;

use crate::core::plan::{BudgetState, LongestDrain, Plan, Summary, Unlimited, with_place};
use crate::render::chart::duration;
use crate::render::terminal::{COLUMNS, Tone, clean, left, width, wrap, wrap_first};

use super::super::alike::{HeldBackAlike, PendingAlike, held_back_alike, pending_alike, risks_by_code};
use super::super::units::{change, costs, count, difference, distance_of, fewer_nodes, money, thousands};
use super::super::workloads::by_workload;
use super::Page;

/// How much of each list is shown; the rest is counted, and the JSON form has it.
const NODES_MAX: usize = 10;
const PENDING_GROUPS_MAX: usize = 20;
const POOLS_MAX: usize = 6;
const EXAMPLES_MAX: usize = 3;
/// Different sentences that are shown for one reason code.
const TEXTS_MAX: usize = 4;
const BUDGETS_MAX: usize = 8;
/// Columns of a name that a sentence stands beside. A longer name stands on a line of its own, so that the sentence
/// keeps room.
const LABEL_MAX: usize = 30;

/// Pods that find a place on a node that exists, by node.
pub(super) fn placements(plan: &Plan, page: &mut Page) {
    let mut by_node: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for placement in &plan.placements {
        by_node.entry(&placement.node).or_default().push(&placement.pod);
    }
    if by_node.is_empty() {
        return;
    }
    let mut nodes: Vec<(&str, Vec<&str>)> = by_node.into_iter().collect();
    nodes.sort_by(|left, right| right.1.len().cmp(&left.1.len()).then_with(|| left.0.cmp(right.0)));
    let rest = nodes.split_off(nodes.len().min(NODES_MAX));
    page.title("placed on nodes that exist");
    let columns = nodes.iter().map(|(node, _)| width(&clean(node))).filter(|columns| *columns <= 48).max().unwrap_or(0);
    let numbers = nodes.iter().map(|(_, pods)| width(&count(pods.len(), "pod"))).max().unwrap_or(0);
    for (node, pods) in &nodes {
        let node = left(&clean(node), columns);
        let head = format!("{}  {node}  ", left(&count(pods.len(), "pod"), numbers));
        let workloads = by_workload(pods.iter().copied()).join(", ");
        let indent = 2 + width(&head);
        if indent + 16 > COLUMNS {
            page.line(&format!("  {head}"));
            continue;
        }
        for (index, part) in wrap_first(&workloads, COLUMNS - indent, 3).iter().enumerate() {
            let head = if index == 0 { head.clone() } else { " ".repeat(width(&head)) };
            page.line(&format!("  {head}{part}"));
        }
    }
    if !rest.is_empty() {
        let pods = rest.iter().map(|(_, pods)| pods.len()).sum();
        page.line(&format!("  and {} on {}", count(pods, "pod"), count(rest.len(), "more node")));
    }
    page.blank();
}

/// Pods that stay pending, with the reason of each pool, nearest first. Those that read alike are one group.
pub(super) fn pending(plan: &Plan, page: &mut Page) {
    if plan.pending.is_empty() {
        return;
    }
    page.title("stay pending");
    let groups = pending_alike(&plan.pending);
    for group in groups.iter().take(PENDING_GROUPS_MAX) {
        pending_group(group, page);
    }
    if let Some(rest) = groups.get(PENDING_GROUPS_MAX..).filter(|rest| !rest.is_empty()) {
        let pods = rest.iter().map(|group| group.pods).sum();
        page.line(&format!("  and {} in {}", count(pods, "pod"), count(rest.len(), "more group")));
    }
    page.blank();
}

fn pending_group(alike: &PendingAlike<'_>, page: &mut Page) {
    let head = count(alike.pods, "pod");
    let pods = alike.groups.iter().flat_map(|group| &group.pods).map(String::as_str);
    let workloads = by_workload(pods).join(", ");
    let indent = 4 + width(&head) + 2;
    for (index, part) in wrap_first(&workloads, COLUMNS - indent, 3).iter().enumerate() {
        let line = if index == 0 {
            format!("  {} {}  {part}", page.style.paint(Tone::Replaced, "!"), page.style.paint(Tone::Strong, &head))
        } else {
            format!("{}{part}", " ".repeat(indent))
        };
        page.line(&line);
    }
    let Some(group) = alike.groups.first() else { return };
    let like_it = |others: usize| if others == 0 { String::new() } else { format!(" (and {others} like it)") };
    let pool = |name: &str| if name.is_empty() { "pod".to_owned() } else { clean(name) };
    let shown = group.reasons.iter().take(POOLS_MAX);
    let columns =
        shown.clone().map(|reason| width(&pool(&reason.node_pool))).filter(|it| *it <= LABEL_MAX).max().unwrap_or(0);
    for reason in shown {
        let pool = pool(&reason.node_pool);
        let others = alike.other_texts(|other| {
            let same = other.reasons.iter().find(|it| it.node_pool == reason.node_pool && it.code == reason.code);
            same.map(|it| it.text.as_str())
        });
        let text = with_place(&format!("{}{}", reason.text, like_it(others)), reason.definition.as_ref());
        if width(&pool) <= LABEL_MAX {
            page.detail(6, &left(&pool, columns), &text, Tone::Plain);
        } else {
            page.line(&format!("      {}", page.style.paint(Tone::Dim, &pool)));
            page.detail(6, "", &text, Tone::Plain);
        }
    }
    let more = group.reasons.len().saturating_sub(POOLS_MAX);
    if more > 0 {
        page.detail(6, "", &format!("and {}", count(more, "more pool")), Tone::Dim);
    }
    if let Some(change) = &group.smallest_change {
        let others = alike.other_texts(|other| other.smallest_change.as_deref());
        page.detail(6, "would help:", &format!("{change}{}", like_it(others)), Tone::Created);
    }
}

/// Nodes that could have gone and stay: by reason, and below each reason the different sentences about it.
pub(super) fn held_back(plan: &Plan, page: &mut Page) {
    let by_code = held_back_alike(&plan.held_back);
    if by_code.is_empty() {
        return;
    }
    page.title("held back");
    let columns = by_code.keys().map(|code| width(&format!("{code:?}"))).max().unwrap_or(0);
    let rows = || by_code.values().flat_map(|rows| rows.iter().take(TEXTS_MAX));
    let numbers = rows().map(|row| width(&count(row.nodes.len(), "node"))).max().unwrap_or(0);
    for (code, rows) in &by_code {
        for (index, row) in rows.iter().take(TEXTS_MAX).enumerate() {
            let code = if index == 0 { format!("{code:?}") } else { String::new() };
            let number = count(row.nodes.len(), "node");
            held_back_row(row, &format!("  {}  {}  ", left(&code, columns), left(&number, numbers)), page);
        }
        if let Some(rest) = rows.get(TEXTS_MAX..).filter(|rest| !rest.is_empty()) {
            let nodes = rest.iter().map(|row| row.nodes.len()).sum();
            let text = format!("and {} for {}", count(nodes, "node"), count(rest.len(), "other reason"));
            page.line(&format!("  {}  {}", " ".repeat(columns), page.style.paint(Tone::Dim, &text)));
        }
    }
    page.blank();
}

fn held_back_row(row: &HeldBackAlike<'_>, head: &str, page: &mut Page) {
    let mut examples: Vec<String> = row.nodes.iter().take(EXAMPLES_MAX).map(|node| clean(node)).collect();
    let widest = examples.iter().map(|example| width(example)).max().unwrap_or(0);
    if row.nodes.len() > EXAMPLES_MAX {
        examples.push(format!("and {} more", thousands(&(row.nodes.len() - EXAMPLES_MAX).to_string())));
    }
    let beside = width(head) + widest < COLUMNS;
    let indent = if beside { width(head) } else { 6 };
    if !beside {
        page.line(head);
    }
    for (index, part) in wrap(&examples.join(", "), COLUMNS - indent).iter().enumerate() {
        let head = if index == 0 && beside { head.to_owned() } else { " ".repeat(indent) };
        page.line(&format!("{head}{part}"));
    }
    let like_it = match row.texts {
        0 | 1 => String::new(),
        texts => format!(" (and {} like it)", thousands(&(texts - 1).to_string())),
    };
    for part in wrap(&clean(&with_place(&format!("{}{like_it}", row.text), row.definition)), COLUMNS - indent) {
        let line = format!("{}{}", " ".repeat(indent), page.style.paint(Tone::Dim, &part));
        page.line(&line);
    }
}

/// The workloads that may be gone for a while, by kind of risk: some of each kind, and how many more there are.
pub(super) fn risks(plan: &Plan, page: &mut Page) {
    let by_code = risks_by_code(&plan.risks);
    if by_code.is_empty() {
        return;
    }
    page.title("risks");
    for (code, risks) in by_code {
        page.line(&format!("  {code:?}"));
        for risk in risks.iter().take(TEXTS_MAX) {
            for part in wrap(&clean(&format!("{}: {}", risk.subject, risk.text)), COLUMNS - 6) {
                page.line(&format!("      {part}"));
            }
        }
        if let Some(rest) = risks.len().checked_sub(TEXTS_MAX).filter(|rest| *rest > 0) {
            let text = format!("and {} more", thousands(&rest.to_string()));
            page.line(&format!("      {}", page.style.paint(Tone::Dim, &text)));
        }
    }
    page.blank();
}

pub(super) fn notes(plan: &Plan, page: &mut Page) {
    for note in &plan.notes {
        let indent = "note: ".len();
        for (index, part) in wrap(&clean(&note.sentence()), COLUMNS - indent).iter().enumerate() {
            let line = format!("{}{part}", if index == 0 { "note: " } else { "      " });
            let line = page.style.paint(Tone::Dim, &line);
            page.line(&line);
        }
    }
    if !plan.notes.is_empty() {
        page.blank();
    }
}

pub(super) fn summary(plan: &Plan, page: &mut Page) {
    let summary = &plan.summary;
    let line = page.style.paint(Tone::Strong, &counts(plan));
    page.line(&line);
    let tone = match change(summary).nanodollars() {
        ..0 => Tone::Created,
        0 => Tone::Plain,
        1.. => Tone::Replaced,
    };
    let money_line = page.style.paint(tone, &money(change(summary)));
    let distance = distance_of(summary, &plan.held_back).map_or_else(String::new, |distance| format!(", {distance}"));
    page.line(&format!("{money_line}{distance}"));
    if let Some(against) = &plan.against {
        let difference = difference(summary.price_per_hour_after - against.summary.price_per_hour_after);
        let base = revision_name(&against.revision);
        for line in wrap(&format!("the change alone: {difference} against {base}"), COLUMNS) {
            page.line(&line);
        }
    }
    let costs = costs(summary).map(|costs| format!("after it: {costs}"));
    for text in costs.into_iter().chain(fewer_nodes(summary)) {
        wrap(&text, COLUMNS).iter().for_each(|line| page.line(line));
    }
    if let Some(drain) = &summary.longest_drain {
        for line in wrap(&clean(&format!("longest drain: {}", longest_drain(drain))), COLUMNS) {
            page.line(&line);
        }
    }
    let mut states = vec![
        format!("held back: {}", thousands(&plan.held_back.len().to_string())),
        format!("pending: {}", thousands(&summary.pods_pending.to_string())),
        format!(
            "nodes: {} -> {}{}",
            thousands(&summary.nodes_before.to_string()),
            thousands(&summary.nodes_after.to_string()),
            match summary.nodes_leaving {
                0 => String::new(),
                leaving => format!(" ({} already leaving)", thousands(&leaving.to_string())),
            }
        ),
    ];
    if summary.candidates_examined < summary.candidates {
        states.push(format!(
            "examined: {} of {}",
            thousands(&summary.candidates_examined.to_string()),
            count(summary.candidates, "candidate")
        ));
    }
    budgets(plan, &states.join("    "), page);
}

fn revision_name(revision: &crate::core::plan::Revision) -> String {
    super::revision(revision)
}

/// `1 to create, 0 to replace, 1 to remove, 5 pods placed, 0 pods disrupted`
pub(in super::super) fn counts(plan: &Plan) -> String {
    let Summary { nodes_created, nodes_replaced, nodes_removed, pods_placed, pods_disrupted, .. } = &plan.summary;
    let number = |number: &usize| thousands(&number.to_string());
    let mut parts = vec![
        format!("{} to create", number(nodes_created)),
        format!("{} to replace", number(nodes_replaced)),
        format!("{} to remove", number(nodes_removed)),
    ];
    for (kind, words) in
        [(crate::core::plan::StepKind::Adopt, "to adopt"), (crate::core::plan::StepKind::Hold, "to confirm")]
    {
        let steps = plan.steps.iter().filter(|step| step.kind == kind).count();
        if steps > 0 {
            parts.push(format!("{} {words}", number(&steps)));
        }
    }
    parts.push(format!("{} placed", count(*pods_placed, "pod")));
    let buffered = plan.summary.buffer_pods_placed + plan.summary.buffer_pods_pending;
    if buffered > 0 {
        let placed = number(&plan.summary.buffer_pods_placed);
        parts.push(format!("room for {placed} of {}", count(buffered, "buffer pod")));
    }
    parts.push(format!("{} disrupted", count(*pods_disrupted, "pod")));
    parts.join(", ")
}

/// `3m on node-001: 6 pods behind PodDisruptionBudget shop/web go 1 at a time, up to 30s each`
pub(in super::super) fn longest_drain(drain: &LongestDrain) -> String {
    let length = drain.seconds.map_or_else(|| "without end".to_owned(), duration);
    format!("{length} on {}: {}", drain.node, drain.text)
}

/// Writes the budgets behind the other states where they fit on the line, else each on a line of its own.
fn budgets(plan: &Plan, states: &str, page: &mut Page) {
    let mut active: Vec<String> = plan.budgets.iter().filter(|budget| budget.active).map(budget).collect();
    active.extend(plan.unlimited.iter().map(unlimited));
    let rest = active.len().saturating_sub(BUDGETS_MAX);
    let shown: Vec<String> = active.into_iter().take(BUDGETS_MAX).collect();
    let joined = format!("{states}    budgets: {}", shown.join(", "));
    if shown.is_empty() {
        page.line(states);
    } else if rest == 0 && width(&joined) <= COLUMNS {
        page.line(&joined);
    } else {
        page.line(states);
        for (index, budget) in shown.iter().enumerate() {
            for (line, part) in wrap(budget, COLUMNS - 9).iter().enumerate() {
                let head = if index == 0 && line == 0 { "budgets: " } else { "         " };
                page.line(&format!("{head}{part}"));
            }
        }
        if rest > 0 {
            page.line(&format!("         and {rest} more"));
        }
    }
}

/// `nothing limits Drifted of default now`
pub(in super::super) fn unlimited(unlimited: &Unlimited) -> String {
    clean(&format!("nothing limits {} of {} now", unlimited.reason, unlimited.node_pool))
}

/// `default 10 % allows 1 of 1 now`, `default 10 % (no nodes yet)`
pub(in crate::render) fn budget(budget: &BudgetState) -> String {
    let nodes = budget.nodes.strip_suffix('%').map_or_else(|| budget.nodes.clone(), |share| format!("{share} %"));
    let reasons = if budget.reasons.is_empty() { String::new() } else { format!(" for {}", budget.reasons.join(", ")) };
    let mut used = if budget.used > 0 { format!(", {} used by this plan", budget.used) } else { String::new() };
    if budget.forced > 0 {
        let verb = if budget.forced == 1 { "goes" } else { "go" };
        used.push_str(&format!(", {} {verb} without asking it", budget.forced));
    }
    if budget.nodes_counted == 0 {
        return clean(&format!("{} {nodes}{reasons} (no nodes yet)", budget.name));
    }
    if let Some(window) = &budget.denied_by {
        return clean(&format!("{} {nodes}{reasons} allows nothing now: {window}", budget.name));
    }
    let money = budget.money.map_or_else(String::new, |money| {
        let used =
            if budget.used + budget.forced > 0 { format!(", {} used", money.used_per_hour) } else { String::new() };
        format!("; {} of {}{used}", money.allowed_per_hour, money.limit_per_hour)
    });
    let BudgetState { name, allowed, nodes_counted, .. } = budget;
    clean(&format!("{name} {nodes}{reasons} allows {allowed} of {nodes_counted} now{used}{money}"))
}
