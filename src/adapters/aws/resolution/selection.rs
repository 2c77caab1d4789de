//! One question for the selector terms of all classes: EC2 is asked for a superset by keys of tags, ids and names, and each term is
//! matched here. So ten classes cost one call, equal or not, and a new class of the same kind costs none.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::super::api::{ApiError, Filter};
use super::known::{LastAnswer, Trouble};

/// EC2 takes so many values in one filter.
const FILTER_VALUES_MAX: usize = 200;

/// What a term selects by. An id stands alone, then a name, then tags, as in the reference.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a> {
    pub id: Option<&'a str>,
    pub name: Option<&'a str>,
    pub tags: &'a BTreeMap<String, String>,
}

/// Something that terms may select.
pub trait Selectable {
    fn id(&self) -> &str;
    fn name(&self) -> Option<&str>;
    fn tags(&self) -> &BTreeMap<String, String>;
}

impl Term<'_> {
    /// Whether it selects this one. Values are matched as EC2 matches those of filters: `*` and `?` are wild.
    pub fn selects(&self, one: &impl Selectable) -> bool {
        if let Some(id) = self.id {
            return one.id() == id;
        }
        if let Some(name) = self.name {
            return one.name().is_some_and(|found| matches(name, found));
        }
        let has = |(key, value): (&String, &String)| one.tags().get(key).is_some_and(|found| matches(value, found));
        !self.tags.is_empty() && self.tags.iter().all(has)
    }

    /// For people: `tag team=shop and tag tier=*`, `id subnet-1`.
    pub fn text(&self) -> String {
        match (self.id, self.name) {
            (Some(id), _) => format!("id {id}"),
            (None, Some(name)) => format!("name {name}"),
            (None, None) => {
                let tags: Vec<String> = self.tags.iter().map(|(key, value)| format!("tag {key}={value}")).collect();
                tags.join(" and ")
            }
        }
    }

    /// The key by which EC2 is asked: one of all that a term has, and rather not `Name`, which nearly everything has.
    fn key(&self) -> Option<&str> {
        let special = self.tags.keys().find(|key| *key != "Name");
        special.or_else(|| self.tags.keys().next()).map(String::as_str)
    }
}

/// Whether a text is what a pattern of an EC2 filter means: `*` is any text, `?` any character, a backslash takes the meaning away.
/// O(pattern x text), without recursion.
pub fn matches(pattern: &str, text: &str) -> bool {
    #[derive(PartialEq)]
    enum Part {
        Any,
        One,
        Exactly(char),
    }
    let mut parts = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            '*' => Part::Any,
            '?' => Part::One,
            '\\' => Part::Exactly(letters.next().unwrap_or('\\')),
            letter => Part::Exactly(letter),
        });
    }
    let text: Vec<char> = text.chars().collect();
    let (mut at_part, mut at_text) = (0, 0);
    // Where to go on when what follows the last `*` does not fit.
    let mut back: Option<(usize, usize)> = None;
    while at_text < text.len() {
        match parts.get(at_part) {
            Some(Part::Any) => {
                back = Some((at_part + 1, at_text));
                at_part += 1;
            }
            Some(part) if *part == Part::One || *part == Part::Exactly(text[at_text]) => {
                at_part += 1;
                at_text += 1;
            }
            _ => match back {
                Some((part, from)) => {
                    back = Some((part, from + 1));
                    (at_part, at_text) = (part, from + 1);
                }
                None => return false,
            },
        }
    }
    parts.iter().skip(at_part).all(|part| *part == Part::Any)
}

/// What EC2 is asked for on behalf of all classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    tag_keys: BTreeSet<String>,
    ids: BTreeSet<String>,
    names: BTreeSet<String>,
}

/// How the filters of a Describe call are called.
#[derive(Clone, Copy, Debug)]
pub struct FilterNames {
    pub id: &'static str,
    pub name: &'static str,
}

impl Question {
    pub fn of<'t>(terms: impl IntoIterator<Item = Term<'t>>) -> Self {
        let mut question = Self::default();
        for term in terms {
            match (term.id, term.name, term.key()) {
                (Some(id), ..) => question.ids.insert(id.to_owned()),
                (None, Some(name), _) => question.names.insert(name.to_owned()),
                (None, None, Some(key)) => question.tag_keys.insert(key.to_owned()),
                (None, None, None) => false,
            };
        }
        question
    }

    pub fn of_ids(ids: impl IntoIterator<Item = String>) -> Self {
        Self { ids: ids.into_iter().collect(), ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.tag_keys.is_empty() && self.ids.is_empty() && self.names.is_empty()
    }

    /// Whether the answer to the other one answers this one.
    pub fn is_part_of(&self, other: &Self) -> bool {
        self.tag_keys.is_subset(&other.tag_keys) && self.ids.is_subset(&other.ids) && self.names.is_subset(&other.names)
    }

    /// The filters of each call: keys, ids and names are asked for apart, since filters of one call must all hold.
    pub fn calls(&self, names: FilterNames) -> Vec<Filter> {
        let parts = [("tag-key", &self.tag_keys), (names.id, &self.ids), (names.name, &self.names)];
        let mut calls = Vec::new();
        for (filter, values) in parts {
            let values: Vec<&String> = values.iter().collect();
            calls.extend(values.chunks(FILTER_VALUES_MAX).map(|chunk| Filter::new(filter, chunk.iter().copied())));
        }
        calls
    }
}

/// What EC2 listed last, and for which question.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    known: LastAnswer<Vec<T>>,
    asked: Question,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { known: LastAnswer::default(), asked: Question::default() }
    }
}

impl<T> Listed<T> {
    /// Whether it should be asked now: the answer is old, or does not cover the question.
    pub fn is_due(&self, question: &Question, lifetime: SignedDuration, now: Timestamp) -> bool {
        if question.is_empty() {
            return false;
        }
        if let Some(trouble) = &self.known.trouble {
            return trouble.may_try(now);
        }
        !question.is_part_of(&self.asked) || self.known.is_due(lifetime, now)
    }

    pub fn record(&mut self, question: Question, result: Result<Vec<T>, ApiError>, now: Timestamp) {
        if result.is_ok() {
            self.asked = question;
        }
        self.known.record(result, now);
    }

    /// What is known of a question, picked from the list; nothing where the last answer does not cover it.
    pub fn pick<U>(&self, question: &Question, pick: impl FnOnce(&[T]) -> U) -> LastAnswer<U> {
        if question.is_part_of(&self.asked) {
            return self.known.map(|all| pick(all));
        }
        LastAnswer { answer: None, trouble: self.known.trouble.clone() }
    }

    /// The list, and when it was asked for.
    pub fn listed(&self) -> Option<(&[T], Timestamp)> {
        self.known.answer.as_ref().map(|answer| (answer.value.as_slice(), answer.at))
    }

    pub fn trouble(&self) -> Option<&Trouble> {
        self.known.trouble.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::api::Action;
    use super::*;

    #[test]
    fn values_are_matched_as_ec2_does() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("private-*", "private-a", true),
            ("private-*", "public-a", false),
            ("*-eks-*-a", "x-eks-eks-b-a", true),
            ("*-eks-*-a", "x-eks-a", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("Shop", "shop", false),
            ("", "", true),
            ("", "x", false),
            ("über*", "übermut", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(matches(&"*a".repeat(200), &"a".repeat(200)));
    }

    #[test]
    fn one_question_covers_the_terms_of_all() {
        let tags = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let (one, other, none) = (tags(&[("Name", "a"), ("team", "x")]), tags(&[("team", "y")]), tags(&[]));
        let by_tags = |tags| Term { id: None, name: None, tags };
        let both =
            Question::of([by_tags(&one), by_tags(&other), Term { id: Some("subnet-1"), name: None, tags: &none }]);
        let names = FilterNames { id: "subnet-id", name: "" };
        assert_eq!(both.calls(names), [Filter::new("tag-key", ["team"]), Filter::new("subnet-id", ["subnet-1"])]);
        let further = Question::of([by_tags(&other)]);
        assert!(further.is_part_of(&both) && !both.is_part_of(&further));
        let many = Question::of_ids((0..401).map(|number| format!("subnet-{number}")));
        assert_eq!(many.calls(names).iter().map(|filter| filter.values.len()).collect::<Vec<_>>(), [200, 200, 1]);
    }

    #[test]
    fn an_answer_stays_for_those_it_was_for() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let lifetime = SignedDuration::from_mins(1);
        let (one, more) = (Question::of_ids(["a".to_owned()]), Question::of_ids(["a".to_owned(), "b".to_owned()]));
        let mut listed = Listed::default();
        listed.record(one.clone(), Ok(vec![1]), at(0));
        assert!(!listed.is_due(&one, lifetime, at(1)) && listed.is_due(&more, lifetime, at(1)));
        let error = ApiError::of(Action::DescribeSubnets, "RequestLimitExceeded", "");
        listed.record(more.clone(), Err(error), at(1));
        assert_eq!(listed.pick(&one, <[i32]>::to_vec).value(), Some(&vec![1]));
        assert_eq!(listed.pick(&more, <[i32]>::to_vec).value(), None);
        assert!(!listed.is_due(&more, lifetime, at(15)) && listed.is_due(&more, lifetime, at(16)));
    }
}
