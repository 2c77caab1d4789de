//! What happens to nodes: a line for each, replacements as one block, the pods concerned, the reason.

use crate::core::model::HourlyPrice;
use crate::core::plan::{Step, StepKind, with_place};
use crate::render::terminal::{COLUMNS, Tone, clean, clip, left, right, width, wrap};

use super::super::groups::{Action, Folding, Group, Row, groups, rows, use_of_created};
use super::super::units::{count, thousands, use_of};
use super::super::workloads::by_workload;
use super::{LABEL, Page};

/// Groups that are shown. The rest is counted, and the JSON form has every step.
const GROUPS_SHOWN_MAX: usize = 60;
/// Lines of workloads under a group.
const WORKLOAD_LINES_MAX: usize = 3;
/// Characters of a cell. Nothing that EC2 sells has a longer name, and made-up names are cut.
const CELL_MAX: usize = 22;

const DETAIL_INDENT: usize = 6;

struct Table {
    name: usize,
    instance_type: usize,
    capacity_type: usize,
    zone: usize,
    price: usize,
    wave: usize,
    /// Columns for workloads, so that the figures of use behind them stand under each other.
    workloads: usize,
    /// Columns before the signs of the deepest row.
    deepest: usize,
}

/// Nodes of a replacement stand under its title.
const ROW_INDENT: usize = 2;
const REPLACEMENT_INDENT: usize = 4;

struct Block<'a> {
    group: Group<'a>,
    rows: Vec<Row>,
    workloads: Vec<String>,
}

/// The steps, followed by a blank line each.
pub(super) fn section(steps: &[&Step], page: &mut Page) {
    let (groups, folding) = groups(steps.iter().copied());
    let hidden: usize = groups.iter().skip(GROUPS_SHOWN_MAX).map(|group| group.steps.len()).sum();
    let hidden_groups = groups.len().saturating_sub(GROUPS_SHOWN_MAX);
    let blocks: Vec<Block<'_>> = groups.into_iter().take(GROUPS_SHOWN_MAX).map(|group| block(group, folding)).collect();
    let table = Table::over(&blocks);
    for (index, block) in blocks.iter().enumerate() {
        let shares_reason = blocks.get(index + 1).is_some_and(|next| shares_reason(block, next));
        draw(block, &table, !shares_reason, page);
        if !shares_reason {
            page.blank();
        }
    }
    if folding != Folding::Nothing {
        let hidden = match hidden_groups {
            0 => String::new(),
            groups => format!(" and {} ({}) left out", count(groups, "group"), count(hidden, "step")),
        };
        let line =
            format!("  {} in all, those alike folded{hidden}; -o json has every one", count(steps.len(), "step"));
        let line = page.style.paint(Tone::Dim, &line);
        page.line(&line);
        page.blank();
    }
}

fn block(group: Group<'_>, folding: Folding) -> Block<'_> {
    let rows = rows(&group, folding);
    let holds_pods = |step: &&Step| group.action != Action::Replace || step.kind == StepKind::Remove;
    let pods = group.steps.iter().copied().filter(holds_pods).flat_map(|step| &step.pods);
    let workloads = by_workload(pods.map(String::as_str));
    Block { group, rows, workloads }
}

/// Whether both are steps of one move with one reason: these stand together, with the reason once.
fn shares_reason(block: &Block<'_>, next: &Block<'_>) -> bool {
    let only = |block: &Block<'_>| match block.group.steps.as_slice() {
        [step] => Some((step.move_number, step.reason.clone())),
        _ => None,
    };
    block.group.action == next.group.action && only(block).is_some() && only(block) == only(next)
}

impl Table {
    fn over(blocks: &[Block<'_>]) -> Self {
        let rows = || blocks.iter().flat_map(|block| &block.rows);
        let widest =
            |cell: fn(&Row) -> &str| rows().map(|row| width(&clean(cell(row))).min(CELL_MAX)).max().unwrap_or(0);
        let mut table = Self {
            name: 0,
            instance_type: widest(|row| &row.instance_type),
            capacity_type: widest(|row| &row.capacity_type),
            zone: widest(|row| &row.zone),
            price: rows().map(|row| width(&row.price.to_string())).max().unwrap_or(0),
            wave: rows().map(|row| width(&row.wave)).max().unwrap_or(0),
            workloads: 0,
            deepest: ROW_INDENT,
        };
        if blocks.iter().any(|block| block.group.action == Action::Replace) {
            table.deepest = REPLACEMENT_INDENT;
        }
        let room = table.room_for_name();
        table.name = rows().map(|row| width(&clean(&row.name))).filter(|columns| *columns <= room).max().unwrap_or(0);
        table.workloads = blocks
            .iter()
            .map(|block| width(&block.workloads.join(", ")))
            .filter(|columns| *columns <= 32)
            .max()
            .unwrap_or(0)
            .max(16);
        table
    }

    /// Columns that are left for names in the deepest indentation.
    fn room_for_name(&self) -> usize {
        let wave = if self.wave > 0 { self.wave + 2 } else { 0 };
        let others = self.instance_type + self.capacity_type + self.zone + self.price + wave;
        // Indentation, sign, and the gaps between the columns.
        COLUMNS.saturating_sub(others + self.deepest + 2 + 3 + 2 + 2 + 3)
    }

    fn cells(&self, row: &Row) -> String {
        let cell = |text: &str, columns: usize| left(&clip(&clean(text), CELL_MAX), columns);
        format!(
            "{}  {}  {}   {}  {}",
            cell(&row.instance_type, self.instance_type),
            cell(&row.capacity_type, self.capacity_type),
            cell(&row.zone, self.zone),
            right(&row.price.to_string(), self.price),
            row.wave
        )
    }
}

fn sign(kind: StepKind) -> (&'static str, Tone) {
    match kind {
        StepKind::Create => ("+", Tone::Created),
        StepKind::Remove => ("-", Tone::Removed),
        StepKind::Adopt => ("=", Tone::Adopted),
        StepKind::Hold => ("!", Tone::Replaced),
    }
}

fn draw(block: &Block<'_>, table: &Table, with_reason: bool, page: &mut Page) {
    let replaces = block.group.action == Action::Replace;
    if replaces {
        let title = page.style.paint(Tone::Replaced, &format!("~ {}", replacement(&block.group)));
        page.line(&format!("  {title}"));
    }
    let indent = if replaces { REPLACEMENT_INDENT } else { ROW_INDENT };
    for row in &block.rows {
        draw_row(row, table, indent, page);
    }
    details(block, table, page);
    if with_reason {
        because(&block.group, page);
    }
}

/// `replace 2 nodes with 1, saves $0.1239/h`
fn replacement(group: &Group<'_>) -> String {
    let removed = group.of(StepKind::Remove).count();
    let created = group.of(StepKind::Create).count();
    let times = if group.members > 1 { format!("{} x ", thousands(&group.members.to_string())) } else { String::new() };
    let change = group.change();
    let money = match change.cmp(&HourlyPrice::ZERO) {
        std::cmp::Ordering::Less => format!("saves {}", -change),
        std::cmp::Ordering::Equal => "same price".to_owned(),
        std::cmp::Ordering::Greater => format!("costs {change} more"),
    };
    if group.members > 1 {
        return format!("{times}replace, {} with {}, {money}", count(removed, "node"), thousands(&created.to_string()));
    }
    format!("replace {} with {created}, {money}", count(removed, "node"))
}

fn draw_row(row: &Row, table: &Table, indent: usize, page: &mut Page) {
    let (mark, tone) = sign(row.kind);
    let name = clean(&row.name);
    let indentation = " ".repeat(indent);
    let cells = table.cells(row);
    // Names in replacements are indented deeper; the columns behind stand where they do for all others.
    let name_columns = table.name + table.deepest.saturating_sub(indent);
    if width(&name) <= name_columns {
        let name = left(&name, name_columns);
        let line = format!("{indentation}{} {}   {cells}", page.style.paint(tone, mark), page.style.paint(tone, &name));
        page.line(&line);
        return;
    }
    for (index, part) in wrap(&name, COLUMNS - indent - 2).iter().enumerate() {
        let mark = if index == 0 { mark } else { " " };
        let line = format!("{indentation}{} {}", page.style.paint(tone, mark), page.style.paint(tone, part));
        page.line(&line);
    }
    page.line(&format!("{indentation}  {}   {cells}", " ".repeat(name_columns)));
}

/// The pods, by workload, and how full the new nodes are.
fn details(block: &Block<'_>, table: &Table, page: &mut Page) {
    let group = &block.group;
    let of_pods = match group.action {
        Action::Replace => group.of(StepKind::Remove).map(|step| step.pods.len()).sum::<usize>(),
        Action::Remove | Action::Create | Action::Adopt | Action::Hold => {
            group.steps.iter().map(|step| step.pods.len()).sum()
        }
    };
    let (requested, allocatable) = use_of_created(group);
    let usage = use_of(&requested, &allocatable);
    if of_pods == 0 && usage.is_empty() {
        return;
    }
    let label = count(of_pods, "pod");
    let label_columns = LABEL.max(width(&label) + 2);
    let workloads = block.workloads.join(", ");
    let beside = DETAIL_INDENT + label_columns + table.workloads + 2;
    let fits = width(&workloads) <= table.workloads && beside + width(&usage) <= COLUMNS;
    let indentation = " ".repeat(DETAIL_INDENT);
    let label = page.style.paint(Tone::Plain, &left(&label, label_columns));
    if fits {
        let line = format!("{indentation}{label}{}  {usage}", left(&workloads, table.workloads));
        page.line(&line);
        return;
    }
    let lines = shortened(&block.workloads, COLUMNS - DETAIL_INDENT - label_columns);
    for (index, part) in lines.iter().enumerate() {
        let label = if index == 0 { label.clone() } else { " ".repeat(label_columns) };
        page.line(&format!("{indentation}{label}{part}"));
    }
    if !usage.is_empty() {
        page.detail(DETAIL_INDENT, "uses", &usage.replace("  ", ", "), Tone::Plain);
    }
}

/// The workloads on a few lines, with the number of those that are not whole on them.
fn shortened(workloads: &[String], columns: usize) -> Vec<String> {
    let mut lines = wrap(&workloads.join(", "), columns);
    if lines.len() > WORKLOAD_LINES_MAX {
        lines.truncate(WORKLOAD_LINES_MAX);
        // Blanks are where lines end, and are not counted.
        let signs = |text: &str| text.chars().filter(|sign| !sign.is_whitespace()).count();
        let shown: usize = lines.iter().map(|line| signs(line)).sum();
        let ends = workloads.iter().scan(0, |behind, workload| {
            let end = *behind + signs(workload);
            // The comma.
            *behind = end + 1;
            Some(end)
        });
        let hidden = ends.filter(|end| *end > shown).count();
        lines.push(format!("and {}", count(hidden, "more workload")));
    }
    lines
}

fn because(group: &Group<'_>, page: &mut Page) {
    let reasons = group.reasons();
    let Some((reason, _)) = reasons.first() else { return };
    let like_it = match reasons.len() {
        1 => String::new(),
        others => format!(" (and {} like it)", thousands(&(others - 1).to_string())),
    };
    let sentence = with_place(&format!("{}{like_it}", reason.text), group.definition_of(reason));
    page.detail(DETAIL_INDENT, "because", &sentence, Tone::Plain);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_that_are_not_whole_are_counted() {
        let workloads = ["aa x2", "bb", "cc x3", "dd", "ee"].map(str::to_owned);
        assert_eq!(shortened(&workloads, 6), ["aa x2,", "bb, cc", "x3,", "and 2 more workloads"]);
        assert_eq!(shortened(&workloads, 12), ["aa x2, bb,", "cc x3, dd,", "ee"]);
        // What begins on the last line and ends behind it is left out.
        let long = ["aa x2", "bb", "cccc x3", "ee"].map(str::to_owned);
        assert_eq!(shortened(&long, 6), ["aa x2,", "bb,", "cccc", "and 2 more workloads"]);
    }
}
