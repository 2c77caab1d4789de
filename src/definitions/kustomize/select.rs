//! Which objects are meant by a selector.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::Item;

/// Bytes of a compiled pattern. Names have 253 characters at most, and patterns of them a few; classes of characters that are repeated some
/// hundred times take a tenth of a second each.
const PATTERN_BYTES_MAX: usize = 64 << 10;
/// What a pattern counts for, of what kustomizations may build: more than that takes the time of it.
const PATTERN_BYTES: usize = 16 << 10;

/// By group, version, kind, name, namespace (regular expressions that must fit the whole text), labels and annotations.
pub(super) struct Selector {
    patterns: Vec<(Field, Pattern)>,
    labels: Vec<Requirement>,
    annotations: Vec<Requirement>,
}

/// What must fit a whole text.
enum Pattern {
    /// Most are a name, which no engine is made for.
    Name(String),
    Regex(Regex),
}

impl Pattern {
    fn of(text: &str) -> Result<Self, String> {
        let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/'));
        if is_name {
            return Ok(Self::Name(text.to_owned()));
        }
        let built = RegexBuilder::new(&format!("^(?:{text})$")).size_limit(PATTERN_BYTES_MAX).build();
        built.map(Self::Regex).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => format!("`{text}` is larger than patterns may get here"),
            _ => format!("`{text}` is no regular expression"),
        })
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Name(name) => name == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Group,
    Version,
    Kind,
    Name,
    Namespace,
}

const FIELDS: [(&str, Field); 5] = [
    ("group", Field::Group),
    ("version", Field::Version),
    ("kind", Field::Kind),
    ("name", Field::Name),
    ("namespace", Field::Namespace),
];

impl Selector {
    /// From the mapping in a kustomization; on an error the field at fault and what is wrong.
    pub fn of(value: &Value) -> Result<Self, (&'static str, String)> {
        let mut patterns = Vec::new();
        for (name, field) in FIELDS {
            let Some(text) = value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()) else { continue };
            patterns.push((field, Pattern::of(text).map_err(|message| (name, message))?));
        }
        let requirements = |name: &'static str| {
            let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
            requirements(text).ok_or_else(|| (name, format!("`{text}` is no selector")))
        };
        Ok(Self { patterns, labels: requirements("labelSelector")?, annotations: requirements("annotationSelector")? })
    }

    /// What making it counts for, of what kustomizations may build.
    pub fn bytes(&self) -> usize {
        self.patterns.iter().filter(|(_, pattern)| matches!(pattern, Pattern::Regex(_))).count() * PATTERN_BYTES
    }

    /// Whether a patch with this target is for the object. Name and namespace may each be that of its file, or that it has now.
    pub fn fits(&self, item: &Item) -> bool {
        let ends = [item.identities().next(), item.identities().last()];
        let any = |fits: &dyn Fn((&str, &str)) -> bool| ends.into_iter().flatten().any(fits);
        any(&|(name, _)| self.matches(Field::Name, name))
            && any(&|(_, namespace)| self.matches(Field::Namespace, namespace))
            && self.fits_otherwise(item)
    }

    /// Whether a replacement is about the object: it may have had the name with the namespace at any time.
    pub fn fits_by_history(&self, item: &Item) -> bool {
        let is_meant = |(name, namespace): (&str, &str)| {
            self.matches(Field::Name, name) && self.matches(Field::Namespace, namespace)
        };
        item.identities().any(is_meant) && self.fits_otherwise(item)
    }

    fn matches(&self, wanted: Field, text: &str) -> bool {
        self.patterns.iter().filter(|(field, _)| *field == wanted).all(|(_, pattern)| pattern.fits(text))
    }

    fn fits_otherwise(&self, item: &Item) -> bool {
        let (group, version) = item.group_and_version();
        self.matches(Field::Group, group)
            && self.matches(Field::Version, version)
            && self.matches(Field::Kind, item.kind())
            && fit(&self.labels, item.document.value.pointer("/metadata/labels"))
            && fit(&self.annotations, item.document.value.pointer("/metadata/annotations"))
    }
}

fn fit(requirements: &[Requirement], map: Option<&Value>) -> bool {
    let map = map.and_then(Value::as_object);
    requirements.iter().all(|requirement| requirement.fits(map))
}

/// One part of a selector over labels, in Kubernetes' form as text.
#[derive(Debug, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

impl Requirement {
    fn fits(&self, map: Option<&Map<String, Value>>) -> bool {
        let value = |key: &String| map.and_then(|map| map.get(key)).and_then(Value::as_str);
        match self {
            Self::Exists(key) => value(key).is_some(),
            Self::Absent(key) => value(key).is_none(),
            Self::In(key, values) => value(key).is_some_and(|value| values.iter().any(|it| it == value)),
            Self::NotIn(key, values) => value(key).is_none_or(|value| !values.iter().any(|it| it == value)),
        }
    }
}

/// `a=b, c!=d, e in (f,g), h notin (i), j, !k`
fn requirements(text: &str) -> Option<Vec<Requirement>> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut()?.push(character);
    }
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts.map(requirement).collect()
}

fn requirement(text: &str) -> Option<Requirement> {
    let owned = |text: &str| text.trim().to_owned();
    if let Some(key) = text.strip_prefix('!') {
        return Some(Requirement::Absent(owned(key)));
    }
    if let Some((key, values)) = text.split_once('(') {
        let values: Vec<String> = values.strip_suffix(')')?.split(',').map(owned).collect();
        let (key, operator) = key.trim().rsplit_once(' ')?;
        return match operator {
            "in" => Some(Requirement::In(owned(key), values)),
            "notin" => Some(Requirement::NotIn(owned(key), values)),
            _ => None,
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Some(Requirement::NotIn(owned(key), vec![owned(value)]));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(Requirement::In(owned(key), vec![owned(value)]));
    }
    (!text.contains(char::is_whitespace)).then(|| Requirement::Exists(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_selectors_over_labels() {
        let map = serde_json::json!({ "a": "b", "e": "g" });
        let fits = |text: &str| requirements(text).map(|it| fit(&it, Some(&map)));
        for text in ["", "a=b", "a==b,e in (f, g)", "a", "!x", "x!=1", "e notin (f)", "a = b , !y"] {
            assert_eq!(fits(text), Some(true), "{text}");
        }
        for text in ["a=c", "x", "!a", "e notin (g)", "x in (a)"] {
            assert_eq!(fits(text), Some(false), "{text}");
        }
        for text in ["a b", "a in b)", "a in (b", "a near (b)"] {
            assert_eq!(fits(text), None, "{text}");
        }
    }
}
