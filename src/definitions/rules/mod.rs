//! Every rule, as data: code, name, severity, one line of documentation, and how it is checked.
//!
//! To add one: write it in the file of its subject (or a new one), with the next free code of that file's hundred, name it in that
//! file's `RULES`, and explain it in the `.md` beside that file: a paragraph, an example that breaks it and one that does not (both
//! are tested), and the source. A code is never reused.

pub mod ages;
pub mod applications;
pub mod auto_mode;
pub mod blocked_reasons;
pub mod budgets;
pub mod capacity_buffer;
pub mod clock_changes;
pub mod deliveries;
pub mod do_not_disrupt;
pub mod ec2_limits;
pub mod ec2_node_class;
pub mod evictions;
pub mod expiry;
pub mod explained;
pub mod exposure;
pub mod files;
pub mod image_architecture;
pub mod image_lock;
pub mod kinds;
pub mod kubelet;
pub mod kubelet_limits;
pub mod kubelet_types;
pub mod kustomize;
pub mod labels;
pub mod launching;
pub mod limits;
pub mod min_values;
pub mod missing_limits;
pub mod near_labels;
pub mod node_config;
pub mod node_overlay;
pub mod node_pool;
pub mod of_class;
mod offers;
pub mod one_pool;
pub mod one_zone;
pub mod openings;
pub mod others;
pub mod overlaps;
pub mod pruning;
pub mod reading;
pub mod recreation;
pub mod references;
pub mod removed_pools;
pub mod requirements;
pub mod reserved;
pub mod schema;
pub mod shadowed_budgets;
pub mod single_replica;
pub mod spot;
pub mod suppression;
pub mod told_apart;
pub mod types_left;
pub mod unlimited;
pub mod unserved;
mod user_data_parts;
pub mod variables;
pub mod versions;
pub mod volumes;
pub mod zones;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(super) use super::rule::no_hint;
pub use super::rule::{Check, HintOfValue, Rule};
use super::suggest::{self, Hint};

impl Rule {
    /// Whether a finding of the rule may depend on more than the file that it is in.
    pub(super) fn is_of_several(&self) -> bool {
        let of_workloads =
            [&evictions::NEVER_EVICTED, &single_replica::SINGLE_REPLICA, &unserved::UNSERVED].map(|it| it.code);
        let of_deliveries = [
            &recreation::RECREATED,
            &recreation::REPLACED,
            &pruning::PRUNED,
            &applications::WITHOUT_WAVES,
            &applications::TEMPLATED_NAME,
        ]
        .map(|it| it.code);
        let is_of_files = of_workloads.contains(&self.code) || of_deliveries.contains(&self.code);
        matches!(self.check, Check::Revision(_)) || is_of_files
    }

    /// Whether the rule finds something only where more is known than the files: another revision, or that the files
    /// are a whole clone.
    pub(super) fn is_of_more_than_files(&self) -> bool {
        [&removed_pools::REMOVED, &removed_pools::RENAMED, &deliveries::PATH_MISSING]
            .map(|it| it.code)
            .contains(&self.code)
    }

    /// Whether what the rule says of a field is true whatever else the object has.
    pub(super) fn is_of_one_field(&self) -> bool {
        use schema::{NOT_ONE_OF, OUT_OF_RANGE, PATTERN, UNKNOWN_FIELD, UNQUOTED, WRONG_TYPE};
        let codes = [&UNKNOWN_FIELD, &WRONG_TYPE, &UNQUOTED, &NOT_ONE_OF, &PATTERN, &OUT_OF_RANGE].map(|it| it.code);
        let of_versions = [&versions::FIELD, &versions::VALUE, &versions::UNRELEASED].map(|it| it.code);
        codes.contains(&self.code) || of_versions.contains(&self.code)
    }
}

/// The rule of the registry, and its hint, for a CEL rule of a kind's schema.
pub fn of_cel(expression: &str, message: &str) -> Option<(&'static Rule, HintOfValue)> {
    // One expression may mean different things on different mappings; the message tells them apart.
    static BY_TEXT: LazyLock<HashMap<(&'static str, &'static str), &'static Rule>> = LazyLock::new(|| {
        let of_rule = |rule: &'static Rule| match rule.check {
            Check::Cel(expressions, _) => expressions.iter().map(|cel| ((cel.rule, cel.message), rule)).collect(),
            _ => Vec::new(),
        };
        all().iter().copied().flat_map(of_rule).collect()
    });
    let rule = BY_TEXT.get(&(expression, message))?;
    match rule.check {
        Check::Cel(_, hint) => Some((rule, hint)),
        _ => None,
    }
}

/// The rule with this code or name.
pub fn find(word: &str) -> Option<&'static Rule> {
    all().iter().copied().find(|rule| rule.code == word || rule.name == word)
}

/// The code or name of a rule that is like the word.
pub fn nearest(word: &str) -> Option<&'static str> {
    suggest::nearest(word, all().iter().flat_map(|rule| [rule.code, rule.name]))
}

/// The question whether the code or name of a rule was meant that is like the word.
pub(super) fn did_you_mean(word: &str) -> Option<Hint> {
    suggest::did_you_mean(word, all().iter().flat_map(|rule| [rule.code, rule.name]))
}

/// The codes or names of rules that may have been meant: `unpinned` by `unpinned-alias`, `464` by `CL0464`. The most likely come first.
pub fn like(word: &str) -> Vec<&'static str> {
    /// More suggestions are no help.
    const SUGGESTIONS_MAX: usize = 5;
    /// Shorter parts are in too many names.
    const PART_MIN: usize = 3;
    let word = word.trim().to_lowercase().replace(['_', ' '], "-");
    if let Ok(number) = word.strip_prefix("cl").unwrap_or(&word).parse::<u32>() {
        let code = format!("CL{number:04}");
        return all().iter().map(|rule| rule.code).filter(|known| *known == code).collect();
    }
    if let Some(nearest) = nearest(&word) {
        return vec![nearest];
    }
    let names = || all().iter().map(|rule| rule.name);
    let has_word = |name: &str, word: &str| name.split('-').any(|part| part == word);
    let mut found: Vec<&str> = names().filter(|name| word.len() >= PART_MIN && name.contains(word.as_str())).collect();
    // A whole word of a name says more than a part of one.
    found.sort_by_key(|name| !has_word(name, &word));
    if found.is_empty() {
        let meant = suggest::nearest(&word, names().flat_map(|name| name.split('-')));
        found.extend(meant.into_iter().flat_map(|meant| names().filter(move |name| has_word(name, meant))));
    }
    found.truncate(SUGGESTIONS_MAX);
    found
}

/// Every rule, ordered by code.
pub fn all() -> &'static [&'static Rule] {
    static ALL: LazyLock<Vec<&'static Rule>> = LazyLock::new(|| {
        [
            reading::RULES,
            kustomize::RULES,
            reading::MORE_RULES,
            kinds::RULES,
            labels::RULES,
            kinds::MORE_RULES,
            variables::RULES,
            schema::RULES,
            versions::RULES,
            schema::MORE_RULES,
            node_pool::RULES,
            limits::RULES,
            near_labels::RULES,
            missing_limits::RULES,
            requirements::RULES,
            zones::RULES,
            requirements::MORE_RULES,
            zones::MORE_RULES,
            min_values::RULES,
            of_class::RULES,
            ages::RULES,
            spot::RULES,
            one_zone::RULES,
            image_architecture::RULES,
            evictions::RULES,
            single_replica::RULES,
            expiry::RULES,
            evictions::MORE_RULES,
            do_not_disrupt::RULES,
            unserved::RULES,
            budgets::RULES,
            clock_changes::RULES,
            blocked_reasons::RULES,
            openings::RULES,
            shadowed_budgets::RULES,
            ec2_node_class::RULES,
            launching::RULES,
            ec2_limits::RULES,
            exposure::RULES,
            launching::MORE_RULES,
            node_config::RULES,
            volumes::RULES,
            kubelet::RULES,
            unlimited::RULES,
            kubelet_limits::RULES,
            reserved::RULES,
            kubelet_types::RULES,
            references::RULES,
            auto_mode::RULES,
            overlaps::RULES,
            removed_pools::RULES,
            recreation::RULES,
            deliveries::RULES,
            pruning::RULES,
            applications::RULES,
            files::RULES,
            image_lock::RULES,
            node_overlay::RULES,
            capacity_buffer::RULES,
            suppression::RULES,
        ]
        .concat()
    });
    &ALL
}
