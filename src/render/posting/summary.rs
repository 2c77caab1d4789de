//! A target shown by its data alone, for previews whose Markdown is missing, broken, or not to be trusted.

use crate::api::preview::{PreviewCount, PreviewFigures, PreviewTarget};
use crate::core::model::HourlyPrice;
use crate::render::plan::count;
use crate::render::plan::markdown::escape::prose;

/// Lines of one kind. The rest is counted.
const LINES_MAX: usize = 10;
const TEXT_CHARACTERS_MAX: usize = 300;

/// Verdict, figures, risks, what is held back and what waits.
pub fn summary(target: &PreviewTarget) -> String {
    let mut text = format!("**{}**\n", cut(&target.headline));
    if let Some(figures) = &target.figures {
        text.push_str(&table(figures));
    }
    for (title, counts) in
        [("Risks", &target.risks), ("Pods that wait", &target.pending), ("Held back", &target.held_back)]
    {
        text.push_str(&lines(title, counts));
    }
    text
}

fn table(figures: &PreviewFigures) -> String {
    let price = |dollars: f64| {
        serde_json::from_value(dollars.into()).map_or_else(|_| "?".to_owned(), |price: HourlyPrice| price.to_string())
    };
    format!(
        "\n| | nodes | per hour |\n|---|---:|---:|\n| before | {} | {} |\n| after | {} | {} |\n\n\
         {} created, {} replaced, {} removed; {} moved, {} pending\n",
        figures.nodes_before,
        price(figures.price_per_hour_before),
        figures.nodes_after,
        price(figures.price_per_hour_after),
        figures.nodes_created,
        figures.nodes_replaced,
        figures.nodes_removed,
        pods(figures.pods_moved),
        pods(figures.pods_pending),
    )
}

fn pods(number: u64) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), "pod")
}

fn lines(title: &str, counts: &[PreviewCount]) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}:\n");
    for it in counts.iter().take(LINES_MAX) {
        text.push_str(&format!("- {} × {}: {}\n", it.count, cut(&it.code), cut(&it.text)));
    }
    let rest = counts.len().saturating_sub(LINES_MAX);
    if rest > 0 {
        text.push_str(&format!("- and {rest} more kinds\n"));
    }
    text
}

fn cut(text: &str) -> String {
    let cut: String = text.chars().take(TEXT_CHARACTERS_MAX).collect();
    prose(&cut.split_whitespace().collect::<Vec<_>>().join(" "))
}
