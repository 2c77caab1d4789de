//! What may be written in the place of a key or value, keeping its quotes. That is only a scalar on one line that
//! stands in the file as it is, and not what a variable, an alias or a patch made.

use serde_json::Value;

use super::diagnostic::Fix;
use super::document::{Document, SharedValue, may_be_written, spans};
use super::findings::FindingPlace;
use super::suggest;

/// A key or value as it stands in its file.
#[derive(Clone, Debug)]
pub struct Scalar {
    text: String,
    quote: Option<char>,
    beside: Beside,
}

/// The keys beside a key, or the texts beside a text of a list. The key or text must not become one of these. They are
/// looked up only when something is written, so that none of thousands of findings in one mapping copies all its keys.
#[derive(Clone, Debug)]
struct Beside {
    document: SharedValue,
    /// The pointer of the mapping or the list.
    around: String,
    place: FindingPlace,
}

impl Beside {
    fn has(&self, own: &str, text: &str) -> bool {
        match (self.place, self.document.pointer(&self.around)) {
            (FindingPlace::Key, Some(Value::Object(members))) => text != own && members.contains_key(text),
            (FindingPlace::Value, Some(Value::Array(items))) => items.iter().any(|item| item == text),
            _ => false,
        }
    }
}

/// What is written instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// This text, in the quotes that stand there, or in some where it needs them.
    Text(String),
    /// Exactly this YAML.
    Yaml(String),
}

impl Scalar {
    /// Gives `None` for what is no scalar, or is not what stands in the file.
    pub fn at(document: &Document, pointer: &str, place: FindingPlace) -> Option<Self> {
        let origin = document.origin(pointer);
        let node = origin.spans.get(&origin.root)?;
        let span = document.place(pointer, place);
        let written = origin.text.get(span.start_byte..span.end_byte)?;
        let quote = written.chars().next().filter(|first| matches!(first, '"' | '\''));
        let inner = match quote {
            Some(quote) => written.strip_prefix(quote)?.strip_suffix(quote)?,
            None => written,
        };
        // Escapes are rare, and left to people.
        if inner.contains(['\\', '"', '\'']) {
            return None;
        }
        let is_same = match place {
            FindingPlace::Key => node.key == Some(span) && inner == spans::last(pointer),
            FindingPlace::Value => {
                !node.is_alias
                    && match document.value.pointer(pointer)? {
                        Value::String(text) => text == inner,
                        // A number can be written in many ways, but it is one word.
                        value @ (Value::Number(_) | Value::Bool(_)) => {
                            quote.is_none() && !inner.contains([' ', '&', '*', '$']) && may_be_written(value, inner)
                        }
                        Value::Null | Value::Array(_) | Value::Object(_) => false,
                    }
            }
        };
        let beside = || Beside { document: document.value.clone(), around: spans::parent(pointer).to_owned(), place };
        is_same.then(|| Self { text: inner.to_owned(), quote, beside: beside() })
    }

    /// Whether this is `meant` but for a slip of the fingers.
    pub fn is_slip_of(&self, meant: &str) -> bool {
        suggest::is_slip(&self.text, meant)
    }

    /// The YAML for it; `None` where a key, or a text of a list, would come twice.
    pub fn written(&self, instead: &Instead) -> Option<String> {
        match instead {
            Instead::Yaml(yaml) => Some(yaml.clone()),
            Instead::Text(text) if self.beside.has(&self.text, text) => None,
            Instead::Text(text) if text.contains(['"', '\'', '\\']) || text.chars().any(char::is_control) => None,
            Instead::Text(text) => Some(match self.quote {
                Some(quote) => format!("{quote}{text}{quote}"),
                None => in_yaml(text),
            }),
        }
    }
}

/// The text as a scalar, in quotes where it needs some. The text has no quotes itself.
pub fn in_yaml(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { format!("\"{text}\"") }
}

/// Whether the text needs no quotes to stay this text, inside a flow collection too.
fn is_plain(text: &str) -> bool {
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let has_letter = text.contains(|character: char| character.is_ascii_alphabetic());
    let is_safe = |character: char| character.is_ascii_alphanumeric() || "-_./@".contains(character);
    let is_text = serde_yaml::from_str::<Value>(text).is_ok_and(|value| value == text);
    starts_well && has_letter && text.chars().all(is_safe) && is_text && super::document::disagreement(text).is_none()
}

/// The text with the fixes in it. Of two that overlap, the first counts.
pub fn apply(text: &str, fixes: &[&Fix]) -> String {
    let mut fixes = fixes.to_vec();
    fixes.sort_by_key(|fix| (fix.span.start_byte, fix.span.end_byte));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for fix in fixes {
        let (start, end) = (fix.span.start_byte, fix.span.end_byte);
        if start < done || end < start {
            continue;
        }
        let (Some(before), Some(_)) = (text.get(done..start), text.get(start..end)) else { continue };
        out.push_str(before);
        out.push_str(&fix.text);
        done = end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definitions::diagnostic::Span;

    #[test]
    fn fixes_do_not_overlap() {
        let fix = |start_byte: usize, end_byte: usize, text: &str| Fix {
            span: Span { start_byte, end_byte, ..Span::start() },
            text: text.to_owned(),
        };
        let fixes = [fix(4, 6, "yy"), fix(0, 1, "x"), fix(5, 7, "never"), fix(90, 95, "beyond")];
        assert_eq!(apply("a é b c", &fixes.iter().collect::<Vec<_>>()), "x éyy c");
    }

    #[test]
    fn quotes_stay_and_come_where_they_are_needed() {
        let document = serde_json::json!({ "spto": 1, "weight": 1, "list": ["spto", "spot"] });
        let beside =
            |around: &str, place| Beside { document: document.clone().into(), around: around.to_owned(), place };
        let scalar = |quote| Scalar { text: "spto".to_owned(), quote, beside: beside("", FindingPlace::Key) };
        let text = |text: &str| Instead::Text(text.to_owned());
        assert_eq!(scalar(Some('\'')).written(&text("spot")).as_deref(), Some("'spot'"));
        for plain in ["spot", "720h", "16Gi", "kubernetes.io/arch", "al2023@latest"] {
            assert_eq!(scalar(None).written(&text(plain)).as_deref(), Some(plain));
        }
        for needs in ["5", "true", "no", "a: b", "a b", "", "null", "@daily", "1e3", "2026-11-20", "0x1f"] {
            assert_eq!(scalar(None).written(&text(needs)), Some(format!("\"{needs}\"")), "{needs}");
        }
        assert_eq!(scalar(None).written(&text("weight")), None, "a key does not come twice");
        let of_list = Scalar { text: "spto".to_owned(), quote: None, beside: beside("/list", FindingPlace::Value) };
        assert_eq!(of_list.written(&text("spot")), None, "nor does a text of a list");
        assert_eq!(scalar(None).written(&text("a\"b")), None);
        assert_eq!(scalar(Some('"')).written(&Instead::Yaml("5".to_owned())).as_deref(), Some("5"));
    }
}
