//! Every rule, as data: code, name, severity, one line of documentation, and how it is checked.
//!
//! To add one: write it in the file of its subject (or a new one), with the next free code of that file's hundred, name it in that
//! file's `RULES`, and explain it in the `.md` beside that file: a paragraph, an example that breaks it and one that does not (both
//! are tested), and the source. A code is never reused.

pub mod ages;
pub mod auto_mode;
pub mod blocked_reasons;
pub mod budgets;
pub mod capacity_buffer;
pub mod clock_changes;
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
pub mod one_pool;
pub mod one_zone;
pub mod openings;
pub mod overlaps;
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
pub mod unlimited;
pub mod variables;
pub mod versions;
pub mod zones;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::api::validation::CelRule;

use super::diagnostic::Severity;
use super::document::Document;
use super::findings::Finding;
use super::kinds::Kind;
use super::revision::Revision;
use super::suggest;

pub struct Rule {
    /// `CL0001` and up; one code, one meaning.
    pub code: &'static str,
    /// In words: `duplicate-key`.
    pub name: &'static str,
    pub severity: Severity,
    /// One line for the documentation.
    pub summary: &'static str,
    pub check: Check,
}

/// Makes a hint from the value at fault; of a mapping's member, from its key.
pub type Hint = fn(&str) -> Option<String>;

/// How a rule is checked.
pub enum Check {
    /// While the text is read or held against the schema; the pass names the rule itself.
    Pass,
    /// By CEL rules of the kind's schema.
    Cel(&'static [&'static CelRule], Hint),
    /// On each document of these kinds.
    Document(&'static [Kind], fn(&Document) -> Vec<Finding>),
    /// On all documents together.
    Revision(fn(&Revision<'_>) -> Vec<Finding>),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.code, self.name)
    }
}

impl Rule {
    /// About the text, before its kind is known.
    pub(super) fn is_of_yaml(&self) -> bool {
        self.code.starts_with("CL00") && self.severity == Severity::Error
    }

    /// About the form that a schema gives.
    pub(super) fn is_of_schema(&self) -> bool {
        self.code.starts_with("CL02")
    }

    /// Whether what it says may hang on more than the file that it is found in.
    pub(super) fn is_of_several(&self) -> bool {
        let of_workloads = [&evictions::NEVER_EVICTED, &single_replica::SINGLE_REPLICA].map(|it| it.code);
        matches!(self.check, Check::Revision(_)) || of_workloads.contains(&self.code)
    }

    /// Whether it is found only where definitions are held against another revision.
    pub(super) fn is_of_a_change(&self) -> bool {
        [&removed_pools::REMOVED, &removed_pools::RENAMED].map(|it| it.code).contains(&self.code)
    }

    /// What it says of a field is true whatever else the object has.
    pub(super) fn is_of_one_field(&self) -> bool {
        use schema::{NOT_ONE_OF, OUT_OF_RANGE, PATTERN, UNKNOWN_FIELD, UNQUOTED, WRONG_TYPE};
        let codes = [&UNKNOWN_FIELD, &WRONG_TYPE, &UNQUOTED, &NOT_ONE_OF, &PATTERN, &OUT_OF_RANGE].map(|it| it.code);
        let of_versions = [&versions::FIELD, &versions::VALUE, &versions::UNRELEASED].map(|it| it.code);
        codes.contains(&self.code) || of_versions.contains(&self.code)
    }

    pub(super) const fn pass(
        code: &'static str,
        name: &'static str,
        severity: Severity,
        summary: &'static str,
    ) -> Self {
        Self { code, name, severity, summary, check: Check::Pass }
    }

    /// An error that the schema's own rules find.
    pub(super) const fn cel(
        code: &'static str,
        name: &'static str,
        summary: &'static str,
        expressions: &'static [&'static CelRule],
        hint: Hint,
    ) -> Self {
        Self { code, name, severity: Severity::Error, summary, check: Check::Cel(expressions, hint) }
    }

    pub(super) const fn document(
        code: &'static str,
        name: &'static str,
        severity: Severity,
        summary: &'static str,
        kinds: &'static [Kind],
        check: fn(&Document) -> Vec<Finding>,
    ) -> Self {
        Self { code, name, severity, summary, check: Check::Document(kinds, check) }
    }

    pub(super) const fn revision(
        code: &'static str,
        name: &'static str,
        severity: Severity,
        summary: &'static str,
        check: fn(&Revision<'_>) -> Vec<Finding>,
    ) -> Self {
        Self { code, name, severity, summary, check: Check::Revision(check) }
    }
}

/// The rule of the registry, and its hint, for a CEL rule of a kind's schema.
pub fn of_cel(expression: &str, message: &str) -> Option<(&'static Rule, Hint)> {
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

/// For rules whose message says it all.
pub(super) fn no_hint(_: &str) -> Option<String> {
    None
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
pub(super) fn did_you_mean(word: &str) -> Option<String> {
    suggest::did_you_mean(word, all().iter().flat_map(|rule| [rule.code, rule.name]))
}

/// The codes or names of rules that may have been meant: `unpinned` by `unpinned-alias`, `464` by `CL0464`. The most likely come first.
pub fn like(word: &str) -> Vec<&'static str> {
    /// More are no help.
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
            min_values::RULES,
            of_class::RULES,
            ages::RULES,
            spot::RULES,
            one_zone::RULES,
            image_architecture::RULES,
            evictions::RULES,
            single_replica::RULES,
            expiry::RULES,
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
