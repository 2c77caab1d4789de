//! What the pages beside the rules say: a paragraph, an example that breaks the rule, one that does not, and the source.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::Rule;
use crate::definitions::diagnostic::RuleDescription;

/// The pages, one for each file of rules.
const PAGES: &[&str] = &[
    include_str!("ages.md"),
    include_str!("applications.md"),
    include_str!("auto_mode.md"),
    include_str!("blocked_reasons.md"),
    include_str!("budgets.md"),
    include_str!("capacity_buffer.md"),
    include_str!("clock_changes.md"),
    include_str!("deliveries.md"),
    include_str!("do_not_disrupt.md"),
    include_str!("ec2_limits.md"),
    include_str!("ec2_node_class.md"),
    include_str!("evictions.md"),
    include_str!("expiry.md"),
    include_str!("exposure.md"),
    include_str!("files.md"),
    include_str!("image_architecture.md"),
    include_str!("image_lock.md"),
    include_str!("kinds.md"),
    include_str!("kubelet.md"),
    include_str!("kubelet_limits.md"),
    include_str!("kubelet_types.md"),
    include_str!("kustomize.md"),
    include_str!("labels.md"),
    include_str!("launching.md"),
    include_str!("limits.md"),
    include_str!("min_values.md"),
    include_str!("missing_limits.md"),
    include_str!("near_labels.md"),
    include_str!("node_config.md"),
    include_str!("node_overlay.md"),
    include_str!("node_pool.md"),
    include_str!("of_class.md"),
    include_str!("one_zone.md"),
    include_str!("openings.md"),
    include_str!("overlaps.md"),
    include_str!("pruning.md"),
    include_str!("reading.md"),
    include_str!("recreation.md"),
    include_str!("references.md"),
    include_str!("removed_pools.md"),
    include_str!("requirements.md"),
    include_str!("reserved.md"),
    include_str!("schema.md"),
    include_str!("shadowed_budgets.md"),
    include_str!("single_replica.md"),
    include_str!("spot.md"),
    include_str!("suppression.md"),
    include_str!("unlimited.md"),
    include_str!("unserved.md"),
    include_str!("variables.md"),
    include_str!("versions.md"),
    include_str!("volumes.md"),
    include_str!("zones.md"),
];

/// One rule, explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub paragraph: &'static str,
    /// An example that breaks the rule.
    pub bad: Example,
    /// An example that does not break it.
    pub good: Example,
    /// Where the rule comes from.
    pub source: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// `yaml` for what can be linted as it stands, else `text`.
    pub language: &'static str,
    pub text: &'static str,
}

/// What the page says of the rule.
pub fn of(rule: &Rule) -> Option<Explanation> {
    static BY_CODE: LazyLock<BTreeMap<&'static str, Explanation>> = LazyLock::new(|| {
        let sections = PAGES.iter().flat_map(|page| page.split("\n## ").skip(1));
        sections.filter_map(|section| Some((section.split_whitespace().next()?, read(section)?))).collect()
    });
    BY_CODE.get(rule.code).copied()
}

/// A section: heading, paragraph, `Bad:` and `Good:` each with a fenced block, `Source:`.
fn read(section: &'static str) -> Option<Explanation> {
    let (_, behind) = section.split_once('\n')?;
    let (paragraph, behind) = behind.split_once("\nBad:\n")?;
    let (bad, behind) = behind.split_once("\nGood:\n")?;
    let (good, source) = behind.split_once("\nSource: ")?;
    Some(Explanation { paragraph: paragraph.trim(), bad: block(bad)?, good: block(good)?, source: source.trim() })
}

fn block(text: &'static str) -> Option<Example> {
    let (language, behind) = text.trim().strip_prefix("```")?.split_once('\n')?;
    let text = behind.strip_suffix("```")?;
    Some(Example { language, text })
}

/// For reports: the same in one piece. A rule without a page is described by its one line.
pub fn describe(rule: &'static Rule) -> RuleDescription {
    let Rule { code, name, severity, summary, .. } = rule;
    let (code, name, severity, summary) = (*code, *name, *severity, *summary);
    let page = page(rule);
    let explanation = of(rule).map_or_else(|| summary.to_owned(), |it| in_one_line(it.paragraph));
    RuleDescription { code, name, severity, summary, explanation, page }
}

/// Markdown: the line, the paragraph, the examples, the source.
pub fn page(rule: &Rule) -> String {
    let Some(explanation) = of(rule) else { return format!("{}\n", rule.summary) };
    let fenced = |example: Example| format!("```{}\n{}```", example.language, example.text);
    format!(
        "{}\n\n{}\n\nBad:\n\n{}\n\nGood:\n\n{}\n\nSource: {}\n",
        rule.summary,
        explanation.paragraph,
        fenced(explanation.bad),
        fenced(explanation.good),
        explanation.source,
    )
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
