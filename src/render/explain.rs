//! Rules of lint, for people at a terminal.

use super::terminal::{Style, Tone, left};
use crate::definitions::RuleDescription;

/// One line for each rule.
pub fn list(rules: &[RuleDescription]) -> String {
    let name_columns = rules.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let line = |rule: &RuleDescription| {
        let severity = left(rule.severity.word(), "warning".len());
        let (code, name) = (Style::Coloured.paint(Tone::Strong, rule.code), left(rule.name, name_columns));
        format!("{code}  {severity}  {name}  {}\n", rule.summary)
    };
    rules.iter().map(line).collect()
}

/// Everything about one rule. Its page is Markdown, and what is fenced there is indented here.
pub fn page(rule: &RuleDescription) -> String {
    let head = Style::Coloured.paint(Tone::Strong, &format!("{} {}", rule.code, rule.name));
    let mut out = format!("{head} ({})\n\n", rule.severity.word());
    let mut is_inside = false;
    let mut was_blank = true;
    for line in rule.page.lines() {
        if line.starts_with("```") {
            is_inside = !is_inside;
            continue;
        }
        let indent = if is_inside && !line.is_empty() { "    " } else { "" };
        let is_blank = line.is_empty();
        if !(is_blank && was_blank) {
            out.push_str(&format!("{indent}{line}\n"));
        }
        was_blank = is_blank;
    }
    out
}
