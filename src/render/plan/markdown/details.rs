//! The folded part of a comment: the nodes of each pool, the pods that wait, the nodes that stay.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::core::model::HourlyPrice;
use crate::core::plan::{HeldBack, NodeCounts, Pending, Placement, Plan, ReasonCode, Risk, Step, StepKind, with_place};
use crate::core::preview::{caused_steps, steps_anyway, steps_taken_away};
use crate::render::terminal::{clean, left, width, wrap};

use super::super::alike::risks_by_code;
use super::super::groups::{Action, Folding, Group, Row, fold, rows, unfolded, use_of_created};
use super::super::units::{count, difference_per_hour, kinds, thousands, use_of};
use super::super::workloads::by_workload;
use super::escape::{code, fenced, in_fence, prose};

/// How much is told; each level is shorter than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::render) enum Detail {
    Everything,
    /// Without what the base revision plans as well.
    ChangeOnly,
    Folded,
    FoldedByPool,
    /// The rows of each list that matter most, and how many more there are.
    FewRows,
    CountsOnly,
}

impl Detail {
    pub(in crate::render) const ALL: [Self; 6] =
        [Self::Everything, Self::ChangeOnly, Self::Folded, Self::FoldedByPool, Self::FewRows, Self::CountsOnly];

    fn folding(self) -> Folding {
        match self {
            Self::Everything | Self::ChangeOnly => Folding::Nothing,
            Self::Folded => Folding::SameType,
            Self::FoldedByPool | Self::FewRows | Self::CountsOnly => Folding::SamePool,
        }
    }

    /// The level that is shorter by one.
    pub(super) fn next(self) -> Option<Self> {
        Self::ALL.into_iter().find(|detail| *detail > self)
    }

    /// Entries of a list that are shown; the rest is counted.
    pub(in crate::render) fn rows(self, usual: usize) -> usize {
        if self == Self::FewRows { usual.min(FEW_ROWS) } else { usual }
    }
}

/// The items in their own order, or with the heaviest first where not all are shown.
fn most_first<T>(items: impl IntoIterator<Item = T>, shown: usize, weight: impl Fn(&T) -> usize) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    if items.len() > shown {
        items.sort_by_key(|item| Reverse(weight(item)));
    }
    items
}

/// Sentences in a diff are cut into lines of this many columns, which a comment shows without scrolling.
const COLUMNS: usize = 110;
/// Pools, groups of pods and nodes that are listed; the rest is counted.
const POOLS_MAX: usize = 100;
/// Pools of one move that a summary names. Consolidation may empty nodes of many at once.
const POOLS_NAMED_MAX: usize = 5;
const GROUPS_MAX: usize = 20;
const EXAMPLES_MAX: usize = 3;
/// Rows of a list for which there is little room. A shorter list would not be worth its heading.
const FEW_ROWS: usize = 5;

/// A folded part for each pool, and for pools of which one takes the place of another, with deletions first.
pub(super) fn pools(plan: &Plan, detail: Detail, text: &mut String) {
    let (caused, anyway): (Vec<&Step>, Vec<&Step>) = (caused_steps(plan).collect(), steps_anyway(plan));
    match &plan.against {
        None => section(&plan.steps.iter().collect::<Vec<_>>(), detail, text),
        Some(_) => {
            let gone: Vec<&Step> = steps_taken_away(plan).iter().collect();
            titled("Because of this change", &caused, detail, text);
            titled("No longer planned", &gone, detail, text);
            if detail == Detail::Everything {
                titled("Would happen anyway", &anyway, detail, text);
            } else if let Some((named, _)) = kinds(&NodeCounts::of(anyway)) {
                text.push_str(&format!("\n{named} would happen anyway\n"));
            }
        }
    }
}

/// A folded part for each pool of these steps, under a title.
pub(in crate::render) fn titled(title: &str, steps: &[&Step], detail: Detail, text: &mut String) {
    if !steps.is_empty() {
        text.push_str(&format!("\n#### {title}\n"));
        section(steps, detail, text);
    }
}

fn section(steps: &[&Step], detail: Detail, text: &mut String) {
    let mut pools: BTreeMap<BTreeSet<&str>, Vec<Group<'_>>> = BTreeMap::new();
    for group in unfolded(steps.iter().copied()) {
        pools.entry(group.node_pools()).or_default().push(group);
    }
    let rest = pools.len().saturating_sub(POOLS_MAX);
    let shown = detail.rows(POOLS_MAX);
    let unfolded = if detail == Detail::CountsOnly { 0 } else { shown };
    let pools = most_first(pools, shown, |(_, groups)| nodes_that_go(groups));
    for (index, (pools, groups)) in pools.into_iter().take(POOLS_MAX).enumerate() {
        let summary = pool_summary(&pools, &groups);
        if index >= unfolded {
            text.push_str(&format!("\n- {summary}\n"));
            continue;
        }
        let mut groups = fold(&groups, detail.folding());
        groups.sort_by_key(|group| group.action);
        folded_part(&summary, &fenced("diff", &diff(&groups, detail.folding())), text);
    }
    if rest > 0 {
        text.push_str(&format!("\nand {} like these\n", count(rest, "more part")));
    }
}

fn nodes_that_go(groups: &[Group<'_>]) -> usize {
    groups.iter().map(|group| group.of(StepKind::Remove).count()).sum()
}

fn folded_part(summary: &str, body: &str, text: &mut String) {
    // The blank line makes forges read Markdown again.
    text.push_str(&format!("\n<details><summary>{summary}</summary>\n\n{body}\n</details>\n"));
}

/// `pool default: −2 +1, -$0.0846/h`, `pools batch, general: −2 +1, -$0.0960/h`
fn pool_summary(pools: &BTreeSet<&str>, groups: &[Group<'_>]) -> String {
    let number = |kind| groups.iter().map(|group| group.of(kind).count()).sum::<usize>();
    let signs = [(StepKind::Remove, '−'), (StepKind::Create, '+'), (StepKind::Adopt, '='), (StepKind::Hold, '!')];
    let counts: Vec<String> = signs
        .into_iter()
        .map(|(kind, sign)| (number(kind), sign))
        .filter(|(number, _)| *number > 0)
        .map(|(number, sign)| format!("{sign}{}", thousands(&number.to_string())))
        .collect();
    let change: HourlyPrice = groups.iter().map(Group::change).sum();
    let mut named: Vec<String> = pools.iter().take(POOLS_NAMED_MAX).map(|pool| code(pool)).collect();
    let more = pools.len().saturating_sub(named.len());
    named.extend((more > 0).then(|| format!("and {} more", thousands(&more.to_string()))));
    let noun = if pools.len() == 1 { "pool" } else { "pools" };
    format!("{noun} {}: <b>{}</b>, {}", named.join(", "), counts.join(" "), difference_per_hour(change))
}

/// The groups as a diff: forges colour lines by their first sign.
fn diff(groups: &[Group<'_>], folding: Folding) -> String {
    let listed: Vec<(&Group<'_>, Vec<Row>)> = groups.iter().map(|group| (group, rows(group, folding))).collect();
    let widest = |cell: fn(&Row) -> &str| {
        listed.iter().flat_map(|(_, rows)| rows).map(|row| width(&clean(cell(row))).min(40)).max().unwrap_or(0)
    };
    let (name, instance_type) = (widest(|row| &row.name), widest(|row| &row.instance_type));
    let (capacity_type, zone) = (widest(|row| &row.capacity_type), widest(|row| &row.zone));
    let mut text = String::new();
    for (group, rows) in &listed {
        if group.action == Action::Replace {
            let times =
                if group.members > 1 { format!("{} x ", thousands(&group.members.to_string())) } else { String::new() };
            text.push_str(&format!("! {times}replace, {}\n", difference_per_hour(group.change())));
        }
        for row in rows {
            let sign = match row.kind {
                StepKind::Create => '+',
                StepKind::Remove => '-',
                StepKind::Adopt => '=',
                StepKind::Hold => '!',
            };
            let wave = if row.wave.is_empty() { String::new() } else { format!("  {}", row.wave) };
            text.push_str(&format!(
                "{sign} {}  {}  {}  {}  {}{wave}\n",
                left(&clean(&row.name), name),
                left(&clean(&row.instance_type), instance_type),
                left(&clean(&row.capacity_type), capacity_type),
                left(&clean(&row.zone), zone),
                row.price
            ));
        }
        for sentence in sentences(group) {
            for part in wrap(&clean(&sentence), COLUMNS) {
                // `in_fence` comes last: cleaning would take away what keeps a name from being a mention.
                text.push_str(&format!("#   {}\n", in_fence(&part)));
            }
        }
    }
    text
}

/// Three sentences about a group: its pods, how full its new nodes are, and why its steps are done.
fn sentences(group: &Group<'_>) -> Vec<String> {
    let holds_pods = |step: &&Step| group.action != Action::Replace || step.kind == StepKind::Remove;
    let pods: Vec<&str> =
        group.steps.iter().copied().filter(holds_pods).flat_map(|step| &step.pods).map(String::as_str).collect();
    let mut sentences = Vec::new();
    if !pods.is_empty() {
        let mut workloads = by_workload(pods.iter().copied());
        let rest = workloads.split_off(workloads.len().min(GROUPS_MAX));
        if !rest.is_empty() {
            workloads.push(format!("and {}", count(rest.len(), "more workload")));
        }
        sentences.push(format!("{}: {}", count(pods.len(), "pod"), workloads.join(", ")));
    }
    let (requested, allocatable) = use_of_created(group);
    let usage = use_of(&requested, &allocatable);
    if !usage.is_empty() {
        sentences.push(usage.replace("  ", ", "));
    }
    let reasons = group.reasons();
    if let Some((reason, _)) = reasons.first() {
        let others = reasons.len() - 1;
        let more =
            if others > 0 { format!(" (and {} like it)", thousands(&others.to_string())) } else { String::new() };
        sentences.push(with_place(&format!("{}{more}", reason.text), group.definition_of(reason)));
    }
    sentences
}

pub(in crate::render) fn placements(placements: &[Placement], detail: Detail, text: &mut String) {
    let mut by_node: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for placement in placements {
        by_node.entry(&placement.node).or_default().push(&placement.pod);
    }
    if by_node.is_empty() {
        return;
    }
    let summary = format!("{} on {}", count(placements.len(), "pod"), count(by_node.len(), "existing node"));
    if detail == Detail::CountsOnly {
        text.push_str(&format!("\n- {summary}\n"));
        return;
    }
    let mut body = String::new();
    let rows = detail.rows(GROUPS_MAX);
    let rest = by_node.len().saturating_sub(rows);
    for (node, pods) in most_first(by_node, rows, |(_, pods)| pods.len()).into_iter().take(rows) {
        let workloads = by_workload(pods.iter().copied());
        let shown: Vec<String> = workloads.iter().take(rows).map(|workload| code(workload)).collect();
        let more = workloads.len().saturating_sub(rows);
        let more = if more > 0 { format!(" and {}", count(more, "more workload")) } else { String::new() };
        body.push_str(&format!("- {} on {}: {}{more}\n", count(pods.len(), "pod"), code(node), shown.join(", ")));
    }
    if rest > 0 {
        body.push_str(&format!("- and {}\n", count(rest, "more node")));
    }
    folded_part(&summary, &body, text);
}

/// The pods that wait. `how`: what is said of all of them, such as `pending`.
pub(in crate::render) fn pending(groups: &[Pending], how: &str, detail: Detail, text: &mut String) {
    if groups.is_empty() {
        return;
    }
    let pods = groups.iter().map(|group| group.pods.len()).sum();
    let summary = format!("{} {how}", count(pods, "pod"));
    if detail == Detail::CountsOnly {
        text.push_str(&format!("\n- {summary}\n"));
        return;
    }
    let mut body = String::new();
    let rows = detail.rows(GROUPS_MAX);
    for group in most_first(groups, rows, |group| group.pods.len()).into_iter().take(rows) {
        let workloads: Vec<String> =
            by_workload(group.pods.iter().map(String::as_str)).iter().take(rows).map(|it| code(it)).collect();
        body.push_str(&format!("- **{}**: {}\n", count(group.pods.len(), "pod"), workloads.join(", ")));
        for reason in group.reasons.iter().take(rows) {
            let pool =
                if reason.node_pool.is_empty() { String::new() } else { format!("{}: ", code(&reason.node_pool)) };
            body.push_str(&format!("  - {pool}{}\n", prose(&with_place(&reason.text, reason.definition.as_ref()))));
        }
        if let Some(change) = &group.smallest_change {
            body.push_str(&format!("  - would help: **{}**\n", prose(change)));
        }
    }
    let rest = groups.len().saturating_sub(rows);
    if rest > 0 {
        body.push_str(&format!("- and {}\n", count(rest, "more group")));
    }
    folded_part(&summary, &body, text);
}

/// The nodes that stay. `how`: what is said of all of them, such as `held back`.
pub(in crate::render) fn held_back(nodes: &[HeldBack], how: &str, detail: Detail, text: &mut String) {
    let mut by_code: BTreeMap<ReasonCode, Vec<&HeldBack>> = BTreeMap::new();
    for held in nodes {
        by_code.entry(held.code).or_default().push(held);
    }
    if by_code.is_empty() {
        return;
    }
    let summary = format!("{} {how}", count(nodes.len(), "node"));
    if detail == Detail::CountsOnly {
        text.push_str(&format!("\n- {summary}\n"));
        return;
    }
    let mut body = String::from("| reason | nodes | such as | |\n|---|---:|---|---|\n");
    let rows = detail.rows(by_code.len());
    let rest = by_code.len().saturating_sub(rows);
    for (reason, nodes) in most_first(by_code, rows, |(_, nodes)| nodes.len()).into_iter().take(rows) {
        let examples: Vec<String> = nodes.iter().take(EXAMPLES_MAX).map(|held| code(&held.node)).collect();
        let sentence =
            nodes.first().map_or_else(String::new, |held| prose(&with_place(&held.text, held.definition.as_ref())));
        let number = thousands(&nodes.len().to_string());
        body.push_str(&format!("| {reason:?} | {number} | {} | {sentence} |\n", examples.join(", ")));
    }
    if rest > 0 {
        body.push_str(&format!("| and {} | | | |\n", count(rest, "more reason")));
    }
    folded_part(&summary, &body, text);
}

pub(in crate::render) fn risks(risks: &[Risk], detail: Detail, text: &mut String) {
    let by_code = risks_by_code(risks);
    if by_code.is_empty() {
        return;
    }
    let summary = count(risks.len(), "risk");
    if detail == Detail::CountsOnly {
        text.push_str(&format!("\n- {summary}\n"));
        return;
    }
    let mut body = String::from("| risk | | such as |\n|---|---:|---|\n");
    let rows = detail.rows(by_code.len());
    let rest = by_code.len().saturating_sub(rows);
    for (risk, all) in most_first(by_code, rows, |(_, all)| all.len()).into_iter().take(rows) {
        let first = all.first().map_or_else(String::new, |it| format!("{}: {}", code(&it.subject), prose(&it.text)));
        body.push_str(&format!("| {risk:?} | {} | {first} |\n", thousands(&all.len().to_string())));
    }
    if rest > 0 {
        body.push_str(&format!("| and {} | | |\n", count(rest, "more kind")));
    }
    folded_part(&summary, &body, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: &str, number: u32, pool: &str, price: f64) -> Step {
        let step = serde_json::json!({
            "kind": kind, "move": number, "nodePool": pool, "nodeClaim": format!("{pool}-{kind}-{number}"), "instanceType": "m5.large",
            "zone": "us-east-1a", "capacityType": "on-demand", "pricePerHour": price, "pods": [],
            "reason": { "code": "Underutilized", "text": "" }, "preconditions": [], "allocatable": {}, "requested": {}
        });
        serde_json::from_value(step).unwrap()
    }

    /// A pool is not said to lose, or to get, a node of another one.
    #[test]
    fn a_move_out_of_several_pools_is_in_no_single_one() {
        let steps = [
            step("create", 1, "batch", 0.2),
            step("remove", 1, "general", 0.2),
            step("remove", 1, "batch", 0.1),
            step("remove", 2, "general", 0.1),
        ];
        let mut text = String::new();
        section(&steps.iter().collect::<Vec<_>>(), Detail::CountsOnly, &mut text);
        let of_both = "- pools <code>batch</code>, <code>general</code>: <b>−2 +1</b>, -$0.1000/h";
        assert_eq!(text, format!("\n{of_both}\n\n- pool <code>general</code>: <b>−1</b>, -$0.1000/h\n"));
    }
}
