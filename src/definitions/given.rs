//! The variables that the operator gives, and whose values may be shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use crate::core::plan::{Plan, Precondition};

use super::Diagnostic;

/// Values for `${NAME}` beside those of `cutlist.yaml`, which they override. What `{:?}` prints does not have the
/// values.
#[derive(Clone, Default)]
pub struct GivenVariables {
    /// Values that the operator typed.
    pub typed: BTreeMap<String, String>,
    /// Values that the operator wanted taken from the environment. What is shown has the name in the place of such a
    /// value.
    pub from_environment: BTreeMap<String, String>,
    /// Names that occur in the files, that nobody gave, and that the environment has.
    pub only_in_environment: BTreeSet<String>,
    /// Which cluster the definitions are read for, where that was said; else `cutlist.yaml` may say it.
    pub cluster: Option<String>,
}

impl fmt::Debug for GivenVariables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.typed.keys().chain(self.from_environment.keys()).collect();
        formatter.debug_tuple("GivenVariables").field(&names).finish()
    }
}

impl GivenVariables {
    /// All values. A typed one comes before one of the environment.
    pub fn values(&self) -> BTreeMap<String, String> {
        let values = self.from_environment.iter().chain(&self.typed);
        values.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// What hides the values that came from the environment.
    pub fn masks(&self) -> Masks {
        Masks::new(self.hidden().map(|(name, value)| (name.clone(), value.clone())))
    }

    /// The variables whose values are not shown; a value that was typed over one of the environment came from elsewhere.
    pub fn hidden(&self) -> impl Iterator<Item = (&String, &String)> {
        self.from_environment.iter().filter(|(name, _)| !self.typed.contains_key(*name))
    }
}

/// Values that are not shown, and the names that stand in their place.
#[derive(Clone, Default)]
pub struct Masks {
    /// Longest values first, so that one inside another does not break it.
    values: Vec<Hidden>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Hidden {
    value: String,
    /// The name of the variable.
    name: String,
    /// The value is a word that stands in many other texts. It is hidden only where it is all of a text, or quoted in
    /// one.
    only_quoted: bool,
}

/// Shorter values are parts of too many words.
const SHORT: usize = 4;
/// Shorter words of a value with blanks stand in too many other texts, and so do shorter beginnings.
const SHORT_WORD: usize = 8;
/// What stands behind text that was cut.
const CUT: [&str; 2] = ["...", "…"];

/// Members of plans and findings whose text is one of a fixed set.
const FIXED: [&str; 4] = ["kind", "code", "severity", "packing"];

impl fmt::Debug for Masks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.values.iter().map(|hidden| &hidden.name)).finish()
    }
}

impl Masks {
    fn new(values: impl Iterator<Item = (String, String)>) -> Self {
        let mut masks = Self::default();
        for (name, value) in values.filter(|(_, value)| !value.trim().is_empty()) {
            // Text is also shown trimmed, line by line, and escaped as Rust and JSON do.
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORT).map(str::to_owned);
            let escaped = Value::String(value.clone()).to_string();
            let escaped = escaped.trim_matches('"').to_owned();
            let number = serde_yaml::from_str::<serde_json::Number>(&value).ok().map(|number| number.to_string());
            let whole = [value.clone(), value.trim().to_owned(), escaped].into_iter().chain(lines).chain(number);
            let whole = whole.map(|form| (form.len() < SHORT, form));
            // A schedule is judged field by field.
            let words = value.split_whitespace().map(|word| (word.len() < SHORT_WORD, word.to_owned()));
            // A path or a key is named by one of its parts.
            let parts = value.split(|it: char| !it.is_alphanumeric()).filter(|part| part.len() >= SHORT_WORD);
            let parts = parts.filter(|part| is_no_word(part)).map(|part| (false, part.to_owned()));
            let forms = whole.chain(words).chain(parts);
            masks.values.extend(forms.map(|(only_quoted, value)| Hidden { value, name: name.clone(), only_quoted }));
        }
        masks.values.sort_by(|one, other| (other.value.len(), one).cmp(&(one.value.len(), other)));
        // The first of two that are alike hides more.
        masks.values.dedup_by(|one, other| (&one.value, &one.name) == (&other.value, &other.name));
        masks
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Leaves out values that `is_public` knows. They are no secret, as they are words that stand in what is shown
    /// anyway.
    #[must_use]
    pub fn without(mut self, is_public: impl Fn(&str) -> bool) -> Self {
        self.values.retain(|hidden| !is_public(&hidden.value));
        self
    }

    /// The plan with a number that covers names in the place of hidden values: whoever has a plan could try which value
    /// gives its number. A hidden value comes from the operator's environment, and stays the same for as long as the
    /// process runs.
    #[must_use]
    pub fn numbered(&self, mut plan: Plan) -> Plan {
        if !self.is_empty() {
            plan.id = plan.hash_without(|json| self.value(json));
        }
        plan
    }

    /// The plan with names in the place of what is hidden. It keeps its numbers. `None` where it can not be read any
    /// more with these names in it.
    pub fn shown(&self, plan: Plan) -> Option<Plan> {
        if self.is_empty() {
            return Some(plan);
        }
        let mut json = serde_json::to_value(&plan).ok()?;
        self.value(&mut json);
        let mut shown: Plan = serde_json::from_value(json).ok()?;
        // A hidden value may stand in a number by chance.
        shown.id = plan.id;
        if let Some((shown, against)) = shown.against.as_mut().zip(plan.against) {
            shown.plan_id = against.plan_id;
        }
        Some(shown)
    }

    /// These masks, with the hashes in a plan that cover hidden values: those of NodePools that have some.
    #[must_use]
    pub fn with_hashes_of(&self, plan: &Plan, hidden_pools: &BTreeMap<&str, &BTreeSet<String>>) -> Self {
        let mut masks = self.clone();
        let of_base = plan.against.iter().flat_map(|against| &against.steps_no_longer_planned);
        let steps = plan.steps.iter().chain(of_base).filter(|step| hidden_pools.contains_key(step.node_pool.as_str()));
        let hashes: BTreeSet<(&str, &str)> = steps
            .flat_map(|step| &step.preconditions)
            .filter_map(|precondition| match precondition {
                Precondition::NodePoolUnchanged { name, hash } => Some((hash.as_str(), name.as_str())),
                _ => None,
            })
            .collect();
        let hashes = hashes.into_iter().map(|(hash, pool)| self.of_hash(hash, pool));
        // Hashes come before all values. A value may stand in a hash by chance, and the rest of the hash would be
        // shown.
        masks.values.splice(0..0, hashes);
        masks
    }

    /// The text in the place of a hash is shown. The name of the pool in it may be hidden itself.
    fn of_hash(&self, hash: &str, pool: &str) -> Hidden {
        Hidden { value: hash.to_owned(), name: format!("hash of NodePool {}", self.text(pool)), only_quoted: false }
    }

    /// The text with `${NAME}` where a hidden value was.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for Hidden { value, name, only_quoted } in &self.values {
            let shown = format!("${{{name}}}");
            if text == *value {
                return shown;
            }
            if !only_quoted {
                text = text.replace(value.as_str(), &shown);
                hide_beginnings(&mut text, value, &shown);
                continue;
            }
            for quote in ['`', '"', '\''] {
                text = text.replace(&format!("{quote}{value}{quote}"), &format!("{quote}{shown}{quote}"));
            }
        }
        text
    }

    /// Hides what is hidden in every text in `value`, keys included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                *map = std::mem::take(map)
                    .into_iter()
                    .map(|(key, mut item)| {
                        // These have a fixed set of words, which programs go by.
                        if !(FIXED.contains(&key.as_str()) && item.is_string()) {
                            self.value(&mut item);
                        }
                        (self.text(&key), item)
                    })
                    .collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    pub(super) fn diagnostics<'d>(&self, diagnostics: impl Iterator<Item = &'d mut Diagnostic>) {
        if self.is_empty() {
            return;
        }
        for diagnostic in diagnostics {
            diagnostic.message = self.text(&diagnostic.message);
            diagnostic.hint = diagnostic.hint.as_deref().map(|hint| self.text(hint));
            diagnostic.object = diagnostic.object.as_deref().map(|object| self.text(object));
            for related in &mut diagnostic.related {
                related.message = self.text(&related.message);
            }
        }
    }
}

/// Whether the part has more than small letters. Then it is no word that others use.
fn is_no_word(part: &str) -> bool {
    part.chars().any(|character| !character.is_lowercase())
}

/// Puts `shown` where text begins as the value does and was then cut.
fn hide_beginnings(text: &mut String, value: &str, shown: &str) {
    let Some(head) = value.get(..value.char_indices().nth(SHORT_WORD).map_or(0, |(end, _)| end)) else { return };
    let mut from = 0;
    while let Some(at) = text.get(from..).filter(|_| !head.is_empty()).and_then(|rest| rest.find(head)) {
        let begin = from + at;
        let rest = text.get(begin..).unwrap_or_default();
        let alike = rest.chars().zip(value.chars()).take_while(|(one, other)| one == other);
        let end = begin + alike.map(|(character, _)| character.len_utf8()).sum::<usize>();
        let is_cut = text.get(end..).is_some_and(|behind| CUT.iter().any(|cut| behind.starts_with(cut)));
        if is_cut {
            text.replace_range(begin..end, shown);
            from = begin + shown.len();
        } else {
            from = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(values: &[(&str, &str)]) -> Masks {
        Masks::new(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_value_is_hidden_wherever_it_stands() {
        let masks = masks(&[
            ("TOKEN", "ghp_abc"),
            ("LONG", "ghp_abcdef"),
            ("GEN", "5"),
            ("PEM", "line one\nline two"),
            ("SIZE", "73190.5824e3"),
            ("ARN", "production/wJalrXUt+bPxRfiCYK"),
        ]);
        for (text, shown) in [
            ("label ghp_abc, and ghp_abcdef", "label ${TOKEN}, and ${LONG}"),
            ("`weight` is \"5\", and must be at least 15", "`weight` is \"${GEN}\", and must be at least 15"),
            ("5", "${GEN}"),
            ("got line one\\nline two", "got ${PEM}"),
            ("  line two", "  ${PEM}"),
            ("`nodes` is \"line one\\nli..., no number", "`nodes` is \"${PEM}..., no number"),
            ("`two` is no minute", "`${PEM}` is no minute"),
            ("two lines", "two lines"),
            ("`cpu` is 73190582.4", "`cpu` is ${SIZE}"),
            ("the name is `bPxRfiCYK`", "the name is `${ARN}`"),
            ("the path is `production`", "the path is `production`"),
        ] {
            assert_eq!(masks.text(text), shown);
        }
        assert!(!format!("{masks:?}").contains("ghp"));
    }

    #[test]
    fn what_stands_for_a_hash_hides_the_name_of_the_pool() {
        let masks = masks(&[("TEAM", "ghp_abc")]);
        assert_eq!(masks.of_hash("1234", "ghp_abc-spot").name, "hash of NodePool ${TEAM}-spot");
        assert_eq!(masks.of_hash("1234", "spot").name, "hash of NodePool spot");
    }

    #[test]
    fn keys_are_texts_too() {
        let mut value = serde_json::json!({ "ghp_abc": ["x-ghp_abc", 5, null] });
        masks(&[("TOKEN", "ghp_abc")]).value(&mut value);
        assert_eq!(value, serde_json::json!({ "${TOKEN}": ["x-${TOKEN}", 5, null] }));
    }
}
