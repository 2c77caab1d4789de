//! The end of a run: what the fleet cost over time, as a chart, and what was done.
//!
//! The chart is drawn by hand: a price holds until the next move, and chart libraries draw slopes between points.

use crate::core::model::HourlyPrice;

use super::terminal::{COLUMNS, Style, Tone, left, right, width};

const CHART_COLUMNS: usize = 60;
const CHART_ROWS: usize = 8;
/// Eighths of a character cell, from empty to full.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Seconds since the start of the run, and the price of the fleet from then on; in ascending order.
    pub price_over_time: Vec<(u64, HourlyPrice)>,
    /// Seconds that the run took, in its own time.
    pub seconds: u64,
    pub nodes_created: usize,
    pub nodes_removed: usize,
    pub nodes_at_most: usize,
    pub nodes_at_end: usize,
    pub pods_placed: usize,
    pub pods_at_most: usize,
    pub pods_pending_at_end: usize,
    pub plans: usize,
    pub moves: usize,
    /// Pods that new nodes were planned for, and those of them that run where the plan said.
    pub pods_planned: usize,
    pub pods_as_planned: usize,
}

/// Chart and counts, at most [`COLUMNS`] wide.
pub fn run_summary(summary: &RunSummary, style: Style) -> String {
    let mut text = chart(&summary.price_over_time, summary.seconds, style);
    let mut line = |label: &str, values: &[(usize, &str)]| {
        let values: Vec<String> = values.iter().map(|(number, what)| format!("{number} {what}")).collect();
        text.push_str(&format!("{} {}\n", style.paint(Tone::Dim, &left(label, 7)), values.join(", ")));
    };
    line(
        "nodes",
        &[
            (summary.nodes_created, "created"),
            (summary.nodes_removed, "removed"),
            (summary.nodes_at_most, "at most"),
            (summary.nodes_at_end, "at the end"),
        ],
    );
    line(
        "pods",
        &[
            (summary.pods_placed, "placed"),
            (summary.pods_at_most, "at most"),
            (summary.pods_pending_at_end, "pending at the end"),
        ],
    );
    let as_planned = format!("of {} pods on the node that was planned", summary.pods_planned);
    let mut plans = vec![(summary.plans, "posted"), (summary.moves, "moves carried out")];
    plans.extend((summary.pods_planned > 0).then_some((summary.pods_as_planned, as_planned.as_str())));
    line("plans", &plans);
    let spent = spent(&summary.price_over_time, summary.seconds);
    text.push_str(&format!(
        "{} ${:.4} in {}\n",
        style.paint(Tone::Dim, &left("spent", 7)),
        spent,
        duration(summary.seconds)
    ));
    text
}

/// Price per hour over time, 60 columns by 8 rows, with dollars per hour on the left and the run's time below. `points`
/// are seconds since the start, ascending, and the price from then on; before the first it is zero. Empty without a
/// duration.
pub fn chart(points: &[(u64, HourlyPrice)], seconds: u64, style: Style) -> String {
    let top = points.iter().map(|(_, price)| *price).max().unwrap_or_default();
    if seconds == 0 || top <= HourlyPrice::ZERO {
        return String::new();
    }
    let levels: Vec<usize> = (0..CHART_COLUMNS).map(|column| level(highest_in(points, seconds, column), top)).collect();
    let labels: Vec<String> = (0..=2).map(|half| label(top, half)).collect();
    let axis = labels.iter().map(|label| width(label)).max().unwrap_or(0);
    let mut text = format!("{}\n", style.paint(Tone::Strong, "price of the fleet"));
    for row in (0..CHART_ROWS).rev() {
        let label = match row {
            row if row == CHART_ROWS - 1 => labels.get(2),
            row if row == CHART_ROWS / 2 - 1 => labels.get(1),
            _ => None,
        };
        let cells: String = levels.iter().map(|level| cell(*level, row)).collect();
        let tick = if label.is_some() { '┤' } else { '│' };
        let label = right(label.map_or("", String::as_str), axis);
        let cells = style.paint(Tone::Created, cells.trim_end());
        text.push_str(&format!("{} {tick}{cells}\n", style.paint(Tone::Dim, &label)));
    }
    let zero = right(labels.first().map_or("", String::as_str), axis);
    text.push_str(&format!("{} └{}\n", style.paint(Tone::Dim, &zero), "─".repeat(CHART_COLUMNS)));
    text.push_str(&format!("{}\n\n", style.paint(Tone::Dim, &time_axis(axis + 2, seconds))));
    text
}

/// One row that goes with [`chart`] of the same run: an amount over time, its first and last value behind it. Empty
/// when the amount was never above zero.
pub fn strip(name: &str, points: &[(u64, usize)], seconds: u64, axis_columns: usize, style: Style) -> String {
    let dollars = |amount: usize| HourlyPrice::from_nanodollars(i64::try_from(amount).unwrap_or(i64::MAX));
    let points: Vec<(u64, HourlyPrice)> = points.iter().map(|(second, amount)| (*second, dollars(*amount))).collect();
    let top = points.iter().map(|(_, amount)| *amount).max().unwrap_or_default();
    let (Some((_, first)), Some((_, last))) = (points.first(), points.last()) else { return String::new() };
    if seconds == 0 || top <= HourlyPrice::ZERO {
        return String::new();
    }
    let eighths = |column: usize| {
        let amount = highest_in(&points, seconds, column);
        level(amount, top).div_ceil(CHART_ROWS)
    };
    let cells: String = (0..CHART_COLUMNS).map(|column| cell(eighths(column), 0)).collect();
    let name = style.paint(Tone::Dim, &right(name, axis_columns));
    let cells = style.paint(Tone::Created, &cells);
    format!("{name}  {cells}  {} -> {}\n", first.nanodollars(), last.nanodollars())
}

/// Columns before the axis of [`chart`].
pub fn axis_columns(points: &[(u64, HourlyPrice)]) -> usize {
    let top = points.iter().map(|(_, price)| *price).max().unwrap_or_default();
    (0..=2).map(|half| width(&label(top, half))).max().unwrap_or(0)
}

/// The highest price within the time that a column stands for. A node that lived for seconds is seen by it.
fn highest_in(points: &[(u64, HourlyPrice)], seconds: u64, column: usize) -> HourlyPrice {
    let at = |column: usize| u128::from(seconds) * column as u128 / CHART_COLUMNS as u128;
    let (from, to) = (at(column), at(column + 1));
    let before = points.iter().rev().find(|(second, _)| u128::from(*second) <= from).map(|(_, price)| *price);
    let within =
        points.iter().filter(|(second, _)| (from + 1..to).contains(&u128::from(*second))).map(|(_, price)| *price);
    within.chain(before).max().unwrap_or_default()
}

/// Eighths of rows that a price fills: at least one for any price above zero.
fn level(price: HourlyPrice, top: HourlyPrice) -> usize {
    let full = (CHART_ROWS * 8) as i128;
    let (price, top) = (i128::from(price.nanodollars().max(0)), i128::from(top.nanodollars().max(1)));
    let level = (price * full + top / 2) / top;
    usize::try_from(level).unwrap_or(0).max(usize::from(price > 0))
}

fn cell(level: usize, row: usize) -> char {
    EIGHTHS.get(level.saturating_sub(row * 8).min(8)).copied().unwrap_or(' ')
}

/// Zero, half and whole of the highest price.
fn label(top: HourlyPrice, halves: i64) -> String {
    format!("${:.3}/h", HourlyPrice::from_nanodollars(top.nanodollars() / 2 * halves).dollars())
}

/// Times at the beginning, each third, and the end.
fn time_axis(indent: usize, seconds: u64) -> String {
    let mut line = " ".repeat(indent);
    for third in 0..=3_u64 {
        let label = duration(seconds.saturating_mul(third) / 3);
        let place = indent + CHART_COLUMNS * usize::try_from(third).unwrap_or(0) / 3;
        // The last label ends under the end of the axis.
        let place = if third == 3 { place.saturating_sub(width(&label)) } else { place };
        if third == 0 || place > width(&line) {
            line = left(&line, place);
            line.push_str(&label);
        }
    }
    debug_assert!(width(&line) <= COLUMNS, "{line}");
    line
}

/// `45s`, `5m`, `12m30s`, `2h05m`, `3d04h`
pub fn duration(seconds: u64) -> String {
    let (days, hours, minutes, rest) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) if rest == 0 => format!("{minutes}m"),
        (0, 0, _) => format!("{minutes}m{rest:02}s"),
        (0, _, 0) => format!("{hours}h"),
        (0, _, _) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

/// Dollars that were spent: the area under the chart.
fn spent(points: &[(u64, HourlyPrice)], seconds: u64) -> f64 {
    let ends = points.iter().skip(1).map(|(second, _)| *second).chain([seconds]);
    let nanodollar_seconds: i128 = points
        .iter()
        .zip(ends)
        .map(|((start, price), end)| {
            i128::from(price.nanodollars()) * i128::from(end.min(seconds).saturating_sub(*start))
        })
        .sum();
    // Nanodollars of a run fit into an i64 up to nine billion dollars.
    HourlyPrice::from_nanodollars(i64::try_from(nanodollar_seconds / 3600).unwrap_or(i64::MAX)).dollars()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(dollars: f64) -> HourlyPrice {
        HourlyPrice::from_dollars(dollars).unwrap()
    }

    fn quickstart() -> RunSummary {
        RunSummary {
            price_over_time: vec![
                (0, HourlyPrice::ZERO),
                (40, price(0.3078)),
                (400, price(0.5130)),
                (760, price(0.2052)),
                (830, HourlyPrice::ZERO),
            ],
            seconds: 900,
            nodes_created: 2,
            nodes_removed: 2,
            nodes_at_most: 2,
            pods_placed: 9,
            pods_at_most: 20,
            plans: 5,
            moves: 4,
            pods_planned: 9,
            pods_as_planned: 8,
            ..RunSummary::default()
        }
    }

    #[test]
    fn draws_steps() {
        insta::assert_snapshot!(run_summary(&quickstart(), Style::Plain));
    }

    #[test]
    fn a_short_spike_is_seen_and_a_cheap_node_is_not_nothing() {
        let spike = [(0, price(0.001)), (5000, price(10.0)), (5001, price(0.001))];
        let chart = chart(&spike, 100_000, Style::Plain);
        assert!(chart.contains('█') && chart.contains('▁'), "{chart}");
    }

    #[test]
    fn nothing_is_drawn_of_nothing_and_every_line_fits() {
        assert_eq!(chart(&[], 100, Style::Plain), "");
        assert_eq!(chart(&[(0, price(1.0))], 0, Style::Plain), "");
        for points in [vec![(0, price(9.0e8))], vec![(u64::MAX, price(1.0))], vec![(0, HourlyPrice::MAX)]] {
            for line in chart(&points, u64::MAX, Style::Plain).lines() {
                assert!(width(line) <= COLUMNS && line.trim_end() == line, "{line}");
            }
        }
    }

    #[test]
    fn money_is_the_area() {
        assert!((spent(&[(0, price(1.0)), (1800, price(3.0))], 3600) - 2.0).abs() < 1e-9);
        assert!((spent(&[(1800, price(1.0))], 3600) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn durations_are_short() {
        assert_eq!(
            [0, 45, 300, 750, 7200, 7500, 270_000].map(duration),
            ["0s", "45s", "5m", "12m30s", "2h", "2h05m", "3d03h"]
        );
    }
}
