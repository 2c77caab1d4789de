//! A file's text to its documents: values as JSON, and the place of each value.
//!
//! Two passes read the same bytes. `events` walks the parser's events and knows where everything stands, finds what is
//! wrong with the YAML itself, and goes on after a broken document; `value` gives the values. Everything later speaks
//! of JSON pointers and looks the place up in [`spans::SpanIndex`].

mod conflict;
mod events;
mod ours;
mod scalars;
mod shared;
pub mod spans;
mod stream;
mod value;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::diagnostic::Span;
use super::findings::{Finding, FindingPlace};
use super::limits;
use super::rules::reading;
use super::variables::Variables;
use spans::SpanIndex;

pub use events::OF_TEMPLATE;
pub use scalars::{Disagreement, disagreement};
pub use shared::SharedValue;
pub use value::{read as read_value, scalar};

/// One document of a file, or one item of a `List`; or what a kustomization made of it.
#[derive(Clone, Debug)]
pub struct Document {
    /// Index of the file it stands in.
    pub file: usize,
    pub value: SharedValue,
    pub spans: Arc<SpanIndex>,
    /// The whole file.
    pub text: Arc<str>,
    /// Pointer of this document inside the YAML document: empty, or `/items/3`.
    pub root: String,
    /// Plain scalars that programs read differently, by pointer; a finding only where we use the document.
    pub ambiguous: Vec<(String, Disagreement)>,
    /// The YAML has duplicate keys: reported already, and the document can not be used.
    pub broken: bool,
    /// Which texts hold variables, once they were looked for.
    pub variables: Variables,
    /// Parts that stand elsewhere, by pointer: what a patch wrote.
    pub parts: Vec<(String, Origin)>,
}

/// Where a value stands: a node of a YAML document in a file.
#[derive(Clone, Debug)]
pub struct Origin {
    pub file: usize,
    pub spans: Arc<SpanIndex>,
    pub text: Arc<str>,
    /// Pointer of the value inside the YAML document.
    pub root: String,
}

impl Origin {
    /// The same place of the same text, as it was read once.
    fn is_same(&self, other: &Self) -> bool {
        (self.file, &self.root) == (other.file, &other.root)
            && Arc::ptr_eq(&self.spans, &other.spans)
            && Arc::ptr_eq(&self.text, &other.text)
    }
}

impl Document {
    /// Whether the other one says the same at the same places of the same texts.
    pub fn is_same(&self, other: &Self) -> bool {
        let is_same_part = |((pointer, origin), (at, from)): (&(String, Origin), &(String, Origin))| {
            pointer == at && origin.is_same(from)
        };
        let (own, others) = (self.origin(""), other.origin(""));
        own.is_same(&others)
            && self.value == other.value
            && (self.file, self.broken) == (other.file, other.broken)
            && self.ambiguous == other.ambiguous
            && self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(is_same_part)
    }

    /// Where what `pointer` points at was written.
    pub fn origin(&self, pointer: &str) -> Origin {
        let under = |(outer, origin): &(String, Origin)| {
            let rest = spans::below(outer, pointer)?;
            Some((outer.len(), Origin { root: format!("{}{rest}", origin.root), ..origin.clone() }))
        };
        // Of two at one pointer the later one wrote over the earlier.
        let nearest = self.parts.iter().filter_map(under).max_by_key(|(length, _)| *length);
        nearest.map_or_else(
            || Origin {
                file: self.file,
                spans: Arc::clone(&self.spans),
                text: Arc::clone(&self.text),
                root: format!("{}{pointer}", self.root),
            },
            |(_, origin)| origin,
        )
    }

    /// The file in which what `pointer` points at stands.
    pub fn file_of(&self, pointer: &str) -> usize {
        if self.parts.is_empty() { self.file } else { self.origin(pointer).file }
    }

    /// The place of what `pointer` (inside this document) points at.
    pub fn place(&self, pointer: &str, place: FindingPlace) -> Span {
        let origin = self.origin(pointer);
        match place {
            FindingPlace::Key => origin.spans.key(&origin.root),
            FindingPlace::Value => origin.spans.value(&origin.root),
        }
    }

    /// `NodePool/default`, or the kind alone.
    pub fn name(&self) -> Option<String> {
        let kind = self.value.get("kind")?.as_str()?;
        match self.value.pointer("/metadata/name").and_then(Value::as_str) {
            Some(name) => Some(format!("{kind}/{name}")),
            None => Some(kind.to_owned()),
        }
    }

    /// A scalar as it stands in the file. `None` for one that a kustomization made: then something else stands at its place.
    pub fn written(&self, pointer: &str) -> Option<String> {
        let text = self.text_at(pointer)?;
        let is_it = text.contains("${") || self.value.pointer(pointer).is_none_or(|value| may_be_written(value, &text));
        is_it.then_some(text)
    }

    /// What stands in the file at the place of a scalar, whatever was made of it.
    pub fn text_at(&self, pointer: &str) -> Option<String> {
        let span = self.place(pointer, FindingPlace::Value);
        self.origin(pointer).text.get(span.start_byte..span.end_byte).map(str::to_owned)
    }

    /// Where `form`, a substitution, first stands in the key or value at `pointer`, whose text may go over many lines.
    pub fn occurrence(&self, pointer: &str, place: FindingPlace, form: &str) -> Option<Span> {
        let value = self.place(pointer, place);
        let text = self.origin(pointer).text;
        let rest = text.get(value.start_byte..)?;
        let escaped = |offset: usize| rest.get(..offset).is_some_and(|before| before.ends_with('$'));
        let (offset, _) = rest.match_indices(form).find(|(offset, _)| !escaped(*offset))?;
        let start_byte = value.start_byte + offset;
        let before = text.get(..start_byte)?;
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = value.line + rest.get(..offset)?.matches('\n').count();
        let column = before.get(line_start..)?.trim_start_matches('\u{feff}').chars().count() + 1;
        Some(Span { line, column, start_byte, end_byte: start_byte + form.len() })
    }

    /// With scalars that programs read differently as kubectl reads them.
    #[must_use]
    pub fn read_by_kubectl(mut self) -> Self {
        let read =
            |(pointer, what): &(String, Disagreement)| Some((pointer.clone(), what.value(&self.written(pointer)?)?));
        let values: Vec<(String, Value)> = self.ambiguous.iter().filter_map(read).collect();
        for (pointer, value) in values {
            if let Some(old) = self.value.pointer_mut(&pointer) {
                *old = value;
            }
        }
        self
    }

    /// Text at a pointer.
    pub fn str(&self, pointer: &str) -> Option<&str> {
        self.value.pointer(pointer)?.as_str()
    }

    /// `karpenter.sh`; nothing for what is of the core of Kubernetes.
    pub fn group(&self) -> &str {
        self.str("/apiVersion").and_then(|text| text.split_once('/')).map_or("", |(group, _)| group)
    }

    /// Entries of the list at a pointer, each with its own pointer.
    pub fn items(&self, pointer: &str) -> impl Iterator<Item = (String, &Value)> {
        let items = self.value.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        items.enumerate().map(move |(index, item)| (format!("{pointer}/{index}"), item))
    }

    /// Members of the mapping at a pointer: own pointer, key, value.
    pub fn members(&self, pointer: &str) -> impl Iterator<Item = (String, &str, &Value)> {
        let members = self.value.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        members.map(move |(key, value)| (spans::join(pointer, key), key.as_str(), value))
    }

    /// The key of each member of the mapping at a pointer, and its line.
    pub fn lines_of_members(&self, pointer: &str) -> impl Iterator<Item = (&str, usize)> {
        self.members(pointer).map(|(at, key, _)| (key, self.place(&at, FindingPlace::Key).line))
    }
}

/// Whether a number or a boolean may stand in a file as this: it is a word of another form where something else stands at its place. Text may
/// be written in any way.
pub fn may_be_written(value: &Value, text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n"];
    match value {
        Value::Number(_) => text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)),
        Value::Bool(_) => words.iter().any(|word| text.eq_ignore_ascii_case(word)),
        _ => true,
    }
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Parsed {
    pub documents: Vec<Document>,
    /// Documents with content, also those that could not be read.
    pub count: usize,
    pub findings: Vec<Finding>,
    /// What is wrong with documents that are nothing of ours: it counts where somebody says that the file is.
    pub aside: Vec<Finding>,
    /// Whether one of those could not be read.
    pub has_unread: bool,
}

impl Parsed {
    /// Of a file that is no text of ours.
    pub fn of_no_text(finding: Finding, content: &[u8]) -> Self {
        // Without the zeros of UTF-16.
        let text: Vec<u8> = content.iter().copied().filter(|byte| *byte != 0).collect();
        let is_too_large = std::ptr::eq(finding.rule, &reading::TOO_LARGE);
        let is_ours = is_too_large || ours::may_be_in(&String::from_utf8_lossy(&text));
        let mut parsed = Self { has_unread: !is_ours, ..Self::default() };
        parsed.add(vec![finding], is_ours);
        parsed
    }

    /// Of a file with both sides of a merge. Read as one they would make no sense.
    fn of_conflicts(file: usize, conflicts: Vec<Span>, text: &str) -> Self {
        let is_ours = ours::may_be_in(text);
        let mut parsed = Self { count: 1, has_unread: !is_ours, ..Self::default() };
        let finding = |span| Finding::at_span(&reading::SYNTAX, file, span, conflict::MESSAGE).hint(conflict::HINT);
        parsed.add(conflicts.into_iter().map(finding).collect(), is_ours);
        parsed
    }

    /// Everything that is wrong, whatever the documents are.
    pub fn all(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().chain(&self.aside)
    }

    /// Whether a document of it could not be read.
    pub fn lacks_some(&self) -> bool {
        self.has_unread || self.count > self.documents.len()
    }

    /// Of a file called so, whose first sign is a brace: kubectl takes nothing but JSON then.
    pub fn hold_to_json(&mut self, file: usize, file_text: &str) {
        let text = file_text.strip_prefix('\u{feff}').unwrap_or(file_text);
        let is_broken = self.all().any(|finding| std::ptr::eq(finding.rule, &reading::SYNTAX));
        if is_broken || !text.trim_start().starts_with('{') {
            return;
        }
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
        let Some(error) = values.find_map(Result::err) else { return };
        // Its column counts bytes, from 1.
        let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let offset = (before + error.column().saturating_sub(1)).min(text.len());
        let of_line = text.get(before..offset).unwrap_or_default();
        let start_byte = offset + file_text.len() - text.len();
        let span = Span { line: error.line(), column: of_line.chars().count() + 1, start_byte, end_byte: start_byte };
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        let finding = Finding::at_span(&reading::SYNTAX, file, span, format!("this is YAML, and no JSON: {message}"));
        let hint = "kubectl takes nothing but JSON from a file that begins with a brace: mend it";
        let is_ours = self.documents.iter().any(|document| ours::may_be(&document.value));
        self.add(vec![finding.hint(hint)], is_ours);
    }

    /// What is wrong with a document.
    fn add(&mut self, found: Vec<Finding>, is_ours: bool) {
        let findings = if is_ours { &mut self.findings } else { &mut self.aside };
        findings.extend(found);
    }
}

/// Parses the whole text of a file.
pub fn parse(file: usize, file_text: &Arc<str>) -> Parsed {
    let text = file_text.strip_prefix('\u{feff}').unwrap_or(file_text);
    let conflicts = conflict::places(file_text);
    if !conflicts.is_empty() {
        return Parsed::of_conflicts(file, conflicts, text);
    }
    let scan = stream::scan(file, text, file_text.len() - text.len());
    let mut parsed = Parsed { findings: scan.findings, ..Parsed::default() };
    for mut scanned in scan.documents {
        let mut found = std::mem::take(&mut scanned.findings);
        if scanned.empty {
            parsed.findings.extend(found);
            continue;
        }
        parsed.count += 1;
        if scanned.unreadable {
            // Where it ends is not known either.
            let is_ours = ours::may_be_in(text.get(scanned.range.start..).unwrap_or_default());
            parsed.add(found, is_ours);
            parsed.has_unread |= !is_ours;
            continue;
        }
        let slice = text.get(scanned.range.clone()).unwrap_or_default();
        let spans = Arc::new(SpanIndex::from(scanned.spans));
        match value::read(slice) {
            Ok(value) => {
                let is_ours = ours::may_be(&value) || (scanned.has_two_kinds && ours::may_be_in(slice));
                parsed.add(found, is_ours);
                let document = Document {
                    file,
                    value: value.into(),
                    spans,
                    text: Arc::clone(file_text),
                    root: String::new(),
                    ambiguous: scanned.ambiguous,
                    broken: scanned.broken,
                    variables: Variables::default(),
                    parts: Vec::new(),
                };
                split_list(document, &mut parsed);
            }
            Err(error) => {
                if !scanned.broken {
                    let rule = if error.limit { &reading::LIMIT } else { &reading::UNREADABLE };
                    let offset = scanned.range.start;
                    let place = error.place.and_then(|place| span_in(text, offset, place));
                    let moved = |span: Span| {
                        let by = file_text.len() - text.len();
                        Span { start_byte: span.start_byte + by, end_byte: span.end_byte + by, ..span }
                    };
                    let of_alias = scanned.first_alias.filter(|_| error.of_aliases);
                    let span = of_alias.unwrap_or_else(|| place.map_or_else(|| spans.value(""), moved));
                    let hint = error.of_aliases.then(|| events::OF_ALIASES.to_owned());
                    found.push(Finding::at_span(rule, file, span, error.message).maybe_hint(hint));
                }
                let is_ours = ours::may_be_at(&spans, file_text) || (scanned.has_two_kinds && ours::may_be_in(slice));
                parsed.add(found, is_ours);
                parsed.has_unread |= !is_ours;
            }
        }
    }
    parsed
}

/// A place that is counted from where a document begins in the text, at the end of its line at most.
fn span_in(text: &str, offset: usize, (line, column): (usize, usize)) -> Option<Span> {
    let before = text.get(..offset)?;
    let lines_before = before.matches('\n').count();
    let start: usize = text.get(offset..)?.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let here = text.get(offset + start..)?.lines().next().unwrap_or_default();
    let column = column.saturating_sub(1).min(here.chars().count());
    let in_line: usize = here.chars().take(column).map(char::len_utf8).sum();
    // Behind the marker the first line goes on.
    let marker = if line == 1 { before.rsplit('\n').next().unwrap_or_default().chars().count() } else { 0 };
    let start_byte = offset + start + in_line;
    Some(Span { line: lines_before + line, column: marker + column + 1, start_byte, end_byte: start_byte })
}

/// `kubectl get -o yaml` writes many objects as one `List`; each item is a document of its own, and may be a list again. They are as deep in each
/// other as what a document may nest, at most.
fn split_list(mut document: Document, parsed: &mut Parsed) {
    let kind = document.value.get("kind").and_then(Value::as_str).filter(|kind| kind.ends_with("List"));
    let Some(kind) = kind.map(str::to_owned) else {
        parsed.documents.push(document);
        return;
    };
    let Some(items) = document.value.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take) else {
        parsed.documents.push(document);
        return;
    };
    parsed.count = (parsed.count + items.len()).saturating_sub(1);
    let mut ambiguous = ambiguous_by_item(&document);
    for (index, mut value) in items.into_iter().enumerate() {
        let at = format!("/items/{index}");
        if parsed.documents.len() >= limits::FILE_DOCUMENTS {
            let message = format!("more than {} objects in one file: the rest is not read", limits::FILE_DOCUMENTS);
            let is_said = parsed.findings.iter().any(|finding| finding.message == message);
            let finding = Finding::at(&reading::LIMIT, &document, &at, FindingPlace::Value, message);
            parsed.findings.extend((!is_said).then_some(finding));
            return;
        }
        name_kind(&mut value, &kind, &document);
        let item = Document {
            file: document.file,
            value: value.into(),
            spans: Arc::clone(&document.spans),
            text: Arc::clone(&document.text),
            root: format!("{}{at}", document.root),
            ambiguous: ambiguous.remove(&index).unwrap_or_default(),
            broken: document.broken,
            variables: Variables::default(),
            parts: Vec::new(),
        };
        split_list(item, parsed);
    }
}

/// An item of a `NodePoolList` may leave out what it is.
fn name_kind(item: &mut Value, kind: &str, list: &Document) {
    let Some(kind) = kind.strip_suffix("List").filter(|kind| !kind.is_empty()) else { return };
    let (Some(members), Some(version)) = (item.as_object_mut(), list.str("/apiVersion")) else { return };
    if !members.contains_key("kind") && !members.contains_key("apiVersion") {
        members.insert("apiVersion".to_owned(), version.into());
        members.insert("kind".to_owned(), kind.into());
    }
}

/// What is ambiguous in each item of a list, from the item on.
fn ambiguous_by_item(document: &Document) -> BTreeMap<usize, Vec<(String, Disagreement)>> {
    let mut by_item: BTreeMap<usize, Vec<(String, Disagreement)>> = BTreeMap::new();
    for (pointer, what) in &document.ambiguous {
        let Some(rest) = pointer.strip_prefix("/items/") else { continue };
        let number = rest.split('/').next().unwrap_or_default();
        if let (Ok(index), Some(rest)) = (number.parse(), rest.strip_prefix(number)) {
            by_item.entry(index).or_default().push((rest.to_owned(), *what));
        }
    }
    by_item
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Parsed {
        parse(0, &Arc::from(text))
    }

    #[test]
    fn lists_in_lists_are_their_items() {
        let text = "kind: List\nitems:\n- kind: ConfigMap\n- kind: List\n  items:\n  - {kind: NodePool, a: yes}\n  - kind: NodePoolList\n    items: [{kind: Pod, b: {c: no}}]\n";
        let documents = parsed(text).documents;
        let kinds: Vec<&str> = documents.iter().filter_map(|it| it.str("/kind")).collect();
        assert_eq!(kinds, ["ConfigMap", "NodePool", "Pod"]);
        let lines: Vec<usize> = documents.iter().map(|it| it.place("/kind", FindingPlace::Value).line).collect();
        assert_eq!(lines, [3, 6, 8]);
        let ambiguous: Vec<&str> = documents.iter().flat_map(|it| &it.ambiguous).map(|(at, _)| at.as_str()).collect();
        assert_eq!(ambiguous, ["/a", "/b/c"]);
    }

    #[test]
    fn items_may_leave_out_what_their_list_says() {
        let documents =
            parsed("apiVersion: karpenter.sh/v1\nkind: NodePoolList\nitems:\n- metadata: {name: a}\n").documents;
        let [pool] = documents.as_slice() else { panic!("{documents:?}") };
        assert_eq!((pool.str("/apiVersion"), pool.str("/kind")), (Some("karpenter.sh/v1"), Some("NodePool")));
        assert_eq!(pool.place("/kind", FindingPlace::Value).line, 4);
    }

    #[test]
    fn both_sides_of_a_merge_are_not_read_as_one() {
        let side = "apiVersion: karpenter.sh/v1\nkind: NodePool\n";
        let read = parsed(&format!("<<<<<<< HEAD\n{side}=======\n{side}>>>>>>> other\n"));
        let [finding] = read.findings.as_slice() else { panic!("{:?}", read.findings) };
        assert_eq!((finding.span.line, finding.rule.code, read.documents.len()), (1, "CL0003", 0));
        // A mark that was forgotten.
        let read = parsed("kind: NodePool\nspec:\n  a: 1\n=======\n  b: 2\n");
        assert!(
            read.findings.iter().any(|it| it.span.line == 4 && it.message == conflict::MESSAGE),
            "{:?}",
            read.findings
        );
    }

    #[test]
    fn what_aliases_make_too_much_of_is_said_at_an_alias() {
        let head = "apiVersion: karpenter.sh/v1\nkind: NodePool\n";
        let levels = |last: usize| {
            let level = |level: usize| format!("a{level}: &a{level} [{}]\n", format!("*a{},", level - 1).repeat(10));
            format!("{head}a0: &a0 [x]\n{}", (1..=last).map(level).collect::<String>())
        };
        for (text, line, code) in [
            (levels(8), 9, "CL0007"),
            (levels(5), 4, "CL0007"),
            (format!("{head}metadata: &a {{name: *a}}\n"), 3, "CL0010"),
        ] {
            let read = parsed(&text);
            let found: Vec<_> =
                read.findings.iter().map(|it| (it.span.line, it.rule.code, it.hint.is_some())).collect();
            assert_eq!(found, [(line, code, true)], "{:?}", read.findings);
        }
    }

    #[test]
    fn values_of_json_one_after_the_other_are_documents() {
        let text = "\u{feff}{\"kind\": \"A\",\n \"b\": 1}\n\n  {\"kind\": \"B\"}{\"é\": 1, \"kind\": \"C\"}\n";
        let read = parsed(text);
        assert!(read.findings.is_empty() && read.aside.is_empty(), "{:?}", read.aside);
        let kinds: Vec<&str> = read.documents.iter().filter_map(|it| it.str("/kind")).collect();
        assert_eq!((kinds, read.count), (vec!["A", "B", "C"], 3));
        let places = read.documents.iter().map(|it| {
            let span = it.place("/kind", FindingPlace::Value);
            (span.line, span.column, text.get(span.start_byte..span.end_byte).unwrap())
        });
        assert_eq!(places.collect::<Vec<_>>(), [(1, 10, "\"A\""), (4, 12, "\"B\""), (4, 33, "\"C\"")]);
        let broken = parsed("{\"kind\": \"NodePool\"}\n{\"kind\": \n");
        assert!(!broken.findings.is_empty());
    }

    #[test]
    fn what_a_long_list_has_beyond_the_limit_is_said() {
        let items = "- kind: ConfigMap\n".repeat(limits::FILE_DOCUMENTS + 2);
        let read = parsed(&format!("kind: List\nitems:\n{items}"));
        assert_eq!(read.documents.len(), limits::FILE_DOCUMENTS);
        let [finding] = &read.findings[..] else { panic!("{:?}", read.findings) };
        assert_eq!(finding.message, "more than 10000 objects in one file: the rest is not read");
        assert_eq!(finding.span.line, limits::FILE_DOCUMENTS + 3);
        assert!(read.lacks_some());
    }
}
