//! The table, in Markdown.

#![cfg(test)]

use crate::ours::Planned;
use crate::peer::Solved;
use crate::program::Failure;

pub struct Row {
    pub title: String,
    pub pods: usize,
    /// Absent when there is no reference to compare with.
    pub reference: Option<Result<Solved, Failure>>,
    pub karpenter: Result<Planned, Failure>,
    pub cheapest: Result<Planned, Failure>,
}

const HEAD: &str = "\
| scenario | pods | reference s | before, after s | nodes | $/h | left | MiB | `karpenter` s | nodes | $/h | left | faster | `cheapest` s | nodes | $/h | left | over bound | price | MiB |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

pub fn head() -> &'static str {
    HEAD
}

pub fn row(row: &Row) -> String {
    let reference = match &row.reference {
        None => " | | | | |".to_owned(),
        Some(Err(failure)) => format!("{} | | | | |", failed(failure)),
        Some(Ok(solved)) => reference(solved),
    };
    let karpenter = ours(&row.karpenter);
    let cheapest = ours(&row.cheapest);
    let solved = row.reference.as_ref().and_then(|reference| reference.as_ref().ok());
    let faster = match (solved, &row.karpenter) {
        (Some(solved), Ok(planned)) => faster(solved, planned, row.pods),
        _ => String::new(),
    };
    let over_bound = row.cheapest.as_ref().ok().and_then(|planned| planned.over_bound);
    let over_bound = over_bound.map_or(String::new(), |part| format!("{:.1} %", part * 100.0));
    let price = match (solved.map(Solved::best), &row.cheapest) {
        (Some(pass), Ok(planned)) if pass.unplaced_count == planned.unplaced && pass.price_per_hour > 0.0 => {
            format!("{:+.0} %", (planned.price / pass.price_per_hour - 1.0) * 100.0)
        }
        _ => String::new(),
    };
    let memory = [&row.karpenter, &row.cheapest].into_iter().flatten().map(|planned| planned.peak_memory_bytes).max();
    let memory = memory.map_or(String::new(), |bytes| (bytes / (1 << 20)).to_string());
    let Row { title, pods, .. } = row;
    format!(
        "| {title} | {pods} | {reference} | {karpenter} | {faster} | {cheapest} | {over_bound} | {price} | {memory} |\n"
    )
}

fn reference(solved: &Solved) -> String {
    let pass = solved.best();
    let reached = if pass.timed_out { " (limit)" } else { "" };
    let more = if pass.order_complete { "" } else { ">" };
    format!(
        "{}{reached} | {}, {more}{} | {} | {:.2} | {} | {}",
        duration(solved.least(|pass| pass.solve_seconds)),
        duration(solved.least(|pass| pass.prepare_seconds)),
        duration(solved.least(|pass| pass.order_seconds)),
        pass.node_count,
        pass.price_per_hour,
        pass.unplaced_count,
        solved.peak_memory_bytes / (1 << 20),
    )
}

fn ours(planned: &Result<Planned, Failure>) -> String {
    match planned {
        Err(failure) => format!("{} | | |", failed(failure)),
        Ok(planned) => format!(
            "{} | {} | {:.2} | {}",
            duration(planned.decide_seconds),
            planned.nodes_created,
            planned.price,
            planned.unplaced
        ),
    }
}

/// Pods placed in a second against pods placed in a second: where the reference ran out of time, it placed fewer.
fn faster(solved: &Solved, planned: &Planned, pods: usize) -> String {
    let rate = |unplaced: usize, seconds: f64| {
        let placed = u32::try_from(pods.saturating_sub(unplaced)).unwrap();
        f64::from(placed) / seconds
    };
    let theirs = solved.runs.iter().map(|pass| rate(pass.unplaced_count, pass.solve_seconds)).fold(0.0, f64::max);
    let ratio = rate(planned.unplaced, planned.decide_seconds) / theirs;
    if ratio >= 10.0 { format!("{ratio:.0} x") } else { format!("{ratio:.1} x") }
}

fn failed(failure: &Failure) -> String {
    match failure {
        Failure::TooLong(seconds) => format!("> {seconds}"),
        Failure::Ended(said) => format!("failed: {}", said.replace('|', "/")),
    }
}

/// Three digits.
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 100.0 => format!("{seconds:.0}"),
        seconds if seconds >= 10.0 => format!("{seconds:.1}"),
        seconds if seconds >= 1.0 => format!("{seconds:.2}"),
        seconds => format!("{seconds:.4}"),
    }
}
