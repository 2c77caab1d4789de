//! Post-build substitution as Flux does it: `${NAME}`, `${NAME:=default}`, `${NAME:-default}`, and `$${NAME}` for a
//! literal `${NAME}`. It works on the values of a document, so every place stays that of the file as it is written, and
//! a value can not change the structure around it.
//!
//! A variable without a value is left as written: Flux would put nothing there, which is seldom what was meant.
//! Source: Flux, Kustomization, "Post build variable substitution".

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::document::{Document, disagreement, spans};
use super::limits;

/// Switches substitution off for one object, as annotation or label with the value `disabled`.
pub const SWITCH: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// What was not replaced, and where (pointer inside the document).
#[derive(Debug, Default)]
pub struct Substituted {
    pub undefined: Vec<(String, String)>,
    /// Forms that are not supported, as written.
    pub unsupported: Vec<(String, String)>,
}

/// Replaces variables in every text of the document, keys included.
pub fn apply(document: &mut Document, variables: &BTreeMap<String, String>) -> Substituted {
    let mut substituted = Substituted::default();
    if is_switched_off(&document.value) {
        return substituted;
    }
    let mut value = std::mem::take(&mut document.value);
    let mut walk = Walk { document, variables, substituted: &mut substituted, ambiguous: Vec::new() };
    walk.value(&mut value, &mut String::new());
    let ambiguous = walk.ambiguous;
    document.ambiguous.extend(ambiguous);
    document.value = value;
    substituted
}

fn is_switched_off(value: &Value) -> bool {
    let metadata = |of| value.get("metadata").and_then(|metadata| metadata.get(of)?.get(SWITCH)?.as_str());
    [metadata("annotations"), metadata("labels")].contains(&Some("disabled"))
}

struct Walk<'a> {
    document: &'a Document,
    variables: &'a BTreeMap<String, String>,
    substituted: &'a mut Substituted,
    ambiguous: Vec<(String, super::document::Disagreement)>,
}

impl Walk<'_> {
    fn value(&mut self, value: &mut Value, pointer: &mut String) {
        match value {
            Value::String(text) if text.contains("${") => {
                let new = self.text(text, pointer);
                if new != *text {
                    *value = self.resolve(new, pointer);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let length = pointer.len();
                    pointer.push_str(&format!("/{index}"));
                    self.value(item, pointer);
                    pointer.truncate(length);
                }
            }
            Value::Object(map) => {
                if map.keys().any(|key| key.contains("${")) {
                    // Renaming moves a member's pointer away from its place; the nearest place around it is used then.
                    let renamed: Map<String, Value> = std::mem::take(map)
                        .into_iter()
                        .map(|(key, value)| (self.text(&key, &spans::join(pointer, &key)), value))
                        .collect();
                    *map = renamed;
                }
                for (key, item) in map.iter_mut() {
                    let length = pointer.len();
                    pointer.push('/');
                    pointer.push_str(&spans::escape(key));
                    self.value(item, pointer);
                    pointer.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// What was written without quotes is read again, so that `${CPU}` can be a number; quoted text stays text.
    fn resolve(&mut self, text: String, pointer: &str) -> Value {
        let origin = self.document.origin(pointer);
        if !origin.spans.is_plain(&origin.root) {
            return Value::String(text);
        }
        if let Some(what) = disagreement(&text) {
            self.ambiguous.push((pointer.to_owned(), what));
        }
        match serde_yaml::from_str::<Value>(&text) {
            Ok(scalar @ (Value::Number(_) | Value::Bool(_) | Value::Null)) => scalar,
            _ => Value::String(text),
        }
    }

    fn text(&mut self, text: &str, pointer: &str) -> String {
        let substituted = &mut *self.substituted;
        expand(text, self.variables, 0, &mut |miss| match miss {
            Miss::Undefined(name) => substituted.undefined.push((name.to_owned(), pointer.to_owned())),
            Miss::Unsupported(form) => substituted.unsupported.push((form.to_owned(), pointer.to_owned())),
        })
    }
}

enum Miss<'t> {
    Undefined(&'t str),
    Unsupported(&'t str),
}

fn expand(text: &str, variables: &BTreeMap<String, String>, depth: usize, miss: &mut dyn FnMut(Miss<'_>)) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        if before.ends_with('$') {
            // `$${NAME}` stands for `${NAME}`; the first of the two is written already.
            out.push('{');
            rest = after;
            continue;
        }
        let Some((inner, behind)) = split_at_closing(after) else {
            out.push_str("${");
            rest = after;
            break;
        };
        match replacement(inner, variables, depth, miss) {
            Replacement::Text(value) => out.push_str(&value),
            Replacement::Undefined(name) => {
                miss(Miss::Undefined(name));
                out.push_str(&format!("${{{inner}}}"));
            }
            Replacement::Unsupported => {
                let form = format!("${{{inner}}}");
                miss(Miss::Unsupported(&form));
                out.push_str(&form);
            }
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

enum Replacement<'t> {
    Text(String),
    Undefined(&'t str),
    Unsupported,
}

/// What stands for `inner`, the text between the braces.
fn replacement<'t>(
    inner: &'t str,
    variables: &BTreeMap<String, String>,
    depth: usize,
    miss: &mut dyn FnMut(Miss<'_>),
) -> Replacement<'t> {
    let (name, operation) = split_name(inner);
    if name.is_empty() {
        return Replacement::Unsupported;
    }
    let default = [":=", ":-", "="].iter().find_map(|operator| operation.strip_prefix(operator));
    match (variables.get(name), default) {
        (_, None) if !operation.is_empty() => Replacement::Unsupported,
        (Some(value), _) if !(value.is_empty() && default.is_some()) => Replacement::Text(value.clone()),
        (_, Some(_)) if depth >= limits::SUBSTITUTION_DEPTH => Replacement::Unsupported,
        (_, Some(default)) => Replacement::Text(expand(default, variables, depth + 1, miss)),
        (_, None) => Replacement::Undefined(name),
    }
}

/// Splits off `[_A-Za-z][_A-Za-z0-9]*` at the start.
fn split_name(text: &str) -> (&str, &str) {
    let end = text.find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
    let (name, rest) = text.split_at_checked(end.unwrap_or(text.len())).unwrap_or((text, ""));
    if name.starts_with(|first: char| first.is_ascii_digit()) { ("", text) } else { (name, rest) }
}

/// Splits behind `${` at the brace that closes it.
fn split_at_closing(text: &str) -> Option<(&str, &str)> {
    let mut open = 1_usize;
    let mut before = ' ';
    for (index, character) in text.char_indices() {
        match character {
            '{' if before == '$' => open += 1,
            '}' => {
                open -= 1;
                if open == 0 {
                    let (inner, rest) = text.split_at_checked(index)?;
                    return Some((inner, rest.strip_prefix('}')?));
                }
            }
            _ => {}
        }
        before = character;
    }
    None
}

/// Names of variables that occur in `text`, whether or not they will be replaced.
pub fn names(text: &str) -> BTreeSet<&str> {
    text.split("${").skip(1).map(|after| split_name(after).0).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> (String, Vec<String>) {
        let variables = [("NAME", "demo"), ("EMPTY", ""), ("_x9", "y")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut misses = Vec::new();
        let out = expand(text, &variables, 0, &mut |miss| {
            misses.push(match miss {
                Miss::Undefined(name) => name.to_owned(),
                Miss::Unsupported(form) => format!("? {form}"),
            });
        });
        (out, misses)
    }

    #[test]
    fn replaces_as_flux_does() {
        for (text, expected) in [
            ("role-${NAME}", "role-demo"),
            ("${NAME}${_x9}", "demoy"),
            ("${OTHER:=fallback}", "fallback"),
            ("${OTHER:-fallback}", "fallback"),
            ("${EMPTY:=fallback}", "fallback"),
            ("${EMPTY}", ""),
            ("${OTHER:=${NAME}-x}", "demo-x"),
            ("$${NAME}", "${NAME}"),
            ("$${NAME} ${NAME}", "${NAME} demo"),
            ("$NAME ${", "$NAME ${"),
            ("${NAME", "${NAME"),
        ] {
            assert_eq!(run(text), (expected.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn leaves_what_it_can_not_replace_and_says_so() {
        assert_eq!(run("a ${OTHER} b"), ("a ${OTHER} b".to_owned(), vec!["OTHER".to_owned()]));
        assert_eq!(run("${NAME/a/b}"), ("${NAME/a/b}".to_owned(), vec!["? ${NAME/a/b}".to_owned()]));
        assert_eq!(run("${#NAME}"), ("${#NAME}".to_owned(), vec!["? ${#NAME}".to_owned()]));
        assert_eq!(run("${1}"), ("${1}".to_owned(), vec!["? ${1}".to_owned()]));
    }

    #[test]
    fn ends_on_endless_nesting() {
        let text = format!("{}x{}", "${A:=".repeat(500), "}".repeat(500));
        let (out, misses) = run(&text);
        assert!(!out.is_empty() && misses.len() == 1, "{misses:?}");
    }

    #[test]
    fn lists_the_names_that_occur() {
        assert_eq!(names("${A} $${B} ${C:=${D}} ${1} $E"), BTreeSet::from(["A", "B", "C", "D"]));
    }
}
