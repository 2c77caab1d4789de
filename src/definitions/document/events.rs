//! The pass over the parser's events: places, and what is wrong with the YAML itself.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Marker, Parser, ScalarStyle};

use super::conflict;
use super::scalars::{self, Disagreement};
use super::spans::{self, Node, WrittenSpans};
use crate::definitions::diagnostic::{Severity, Span};
use crate::definitions::findings::Finding;
use crate::definitions::limits;
use crate::definitions::rule::Rule;
use crate::definitions::rules::reading;

#[derive(Debug, Default)]
pub struct Scan {
    pub documents: Vec<ScannedDocument>,
    /// What is wrong with none of the documents alone.
    pub findings: Vec<Finding>,
}

#[derive(Debug, Default)]
pub struct ScannedDocument {
    /// Bytes of the text, from after the `---`.
    pub range: Range<usize>,
    pub spans: WrittenSpans,
    pub ambiguous: Vec<(String, Disagreement)>,
    /// Nothing but comments.
    pub empty: bool,
    /// It says twice what it is, or an object in its list does: then the first says nothing.
    pub has_two_kinds: bool,
    /// Has findings that make it unusable, but its values can be read.
    pub broken: bool,
    /// Its values can not be read: broken syntax, or beyond a limit.
    pub unreadable: bool,
    pub first_alias: Option<Span>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
}

/// Where a text begins in its file. Lines and columns are counted from 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    pub byte: usize,
    pub line: usize,
    pub column: usize,
}

/// Walks every document of `text`. A broken document ends at the next `---`.
pub fn scan(file: usize, text: &str, start: Start) -> Scan {
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(false);
    // Beyond our own limit, so that ours speaks first; a key may be as long as a scalar.
    options.flow_nesting_limit = 4 * limits::DEPTH;
    options.block_nesting_limit = 4 * limits::DEPTH;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut walk = Walk { file, text, start, scan: Scan::default(), document: None };
    loop {
        match parser.next_event() {
            None => break,
            Some(Ok((event, span))) => walk.event(event, &span),
            Some(Err(error)) => {
                walk.syntax_error(&error);
                if !matches!(parser.proceed_next_document(), Ok(true)) {
                    break;
                }
            }
        }
        if walk.scan.documents.len() >= limits::FILE_DOCUMENTS {
            walk.scan.findings.push(too_many(file));
            break;
        }
    }
    walk.scan
}

/// That a file holds more documents than are read.
pub fn too_many(file: usize) -> Finding {
    let message = format!("more than {} documents in one file: the rest is not read", limits::FILE_DOCUMENTS);
    Finding::at_span(&reading::LIMIT, file, Span::default(), message)
}

struct Walk<'t> {
    file: usize,
    text: &'t str,
    start: Start,
    scan: Scan,
    document: Option<Open>,
}

/// The document that is being walked.
#[derive(Default)]
struct Open {
    scanned: ScannedDocument,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Anchor>,
    aliases: usize,
    /// That were read so far, with those that aliases stand for.
    values: usize,
    /// Of each frame of the stack its anchor, if it has one, the values before it, and its position among the spans.
    opened: Vec<(usize, usize, usize)>,
    /// Collections inside a key, which are not followed.
    inside_key: usize,
    /// Where the last word of it ends, in the file: a block has no end of its own.
    end_of_last: usize,
}

struct Anchor {
    pointer: String,
    scalar: Option<String>,
    /// What an alias of it stands for.
    values: usize,
}

impl Open {
    fn pop(&mut self) {
        self.stack.pop();
        let Some((anchor, before, position)) = self.opened.pop() else { return };
        self.scanned.spans.close(position, self.end_of_last);
        if let Some(anchor) = self.anchors.get_mut(&anchor) {
            anchor.values = self.values.saturating_sub(before);
        }
    }
}

enum Frame {
    Mapping { pointer: String, keys: HashMap<String, Span>, pending: Option<(String, Span)> },
    Sequence { pointer: String, next: usize },
}

/// A node as it arrives, before it is known whether it is a key.
struct Arrival {
    span: Span,
    scalar: Option<String>,
    plain: bool,
    anchor: usize,
    alias: Option<usize>,
}

impl Walk<'_> {
    fn event(&mut self, event: Event<'_>, at: &granit_parser::Span) {
        let span = self.span(at.start, at.end);
        self.note_end(at, span);
        match event {
            Event::DocumentStart(explicit, version) => {
                if let Some(version) = version.filter(|version| (version.major, version.minor) != (1, 1)) {
                    self.version(version.major, version.minor, span);
                }
                let start = if explicit { at.end } else { at.start };
                let start = start.byte_offset().unwrap_or(0);
                let start = if explicit { start } else { line_start(self.text, start) };
                let scanned = ScannedDocument { range: start..start, empty: true, ..ScannedDocument::default() };
                self.document = Some(Open { scanned, ..Open::default() });
            }
            Event::DocumentEnd => {
                let end = at.start.byte_offset().unwrap_or(self.text.len());
                self.close(end);
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.tag(tag.as_deref(), span);
                let plain = style == ScalarStyle::Plain;
                let arrival = Arrival { span, scalar: Some(text.into_owned()), plain, anchor, alias: None };
                let tagged = tag.is_some();
                self.scalar(arrival, tagged);
            }
            Event::Alias(target) => self.alias(target, span),
            Event::SequenceStart(_, anchor, tag) => {
                self.tag(tag.as_deref(), span);
                self.open(anchor, span, |pointer| Frame::Sequence { pointer, next: 0 });
            }
            Event::MappingStart(_, anchor, tag) => {
                self.tag(tag.as_deref(), span);
                self.open(anchor, span, |pointer| Frame::Mapping { pointer, keys: HashMap::new(), pending: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = &mut self.document {
                    if open.inside_key > 0 {
                        open.inside_key -= 1;
                    } else {
                        open.pop();
                    }
                }
            }
            _ => {}
        }
    }

    /// Blocks and values that are not written have no width. A block scalar takes the line ends behind it along.
    fn note_end(&mut self, at: &granit_parser::Span, span: Span) {
        let Some(open) = &mut self.document else { return };
        let range = at.start.byte_offset().unwrap_or_default()..at.end.byte_offset().unwrap_or_default();
        let written = self.text.get(range).unwrap_or_default().trim_end();
        if !written.is_empty() {
            open.end_of_last = span.start_byte + written.len();
        }
    }

    /// From the first to the last character on the first line: a finding underlines one line.
    fn span(&self, start: Marker, end: Marker) -> Span {
        let start_byte = start.byte_offset().unwrap_or(0).min(self.text.len());
        let end_byte = end.byte_offset().unwrap_or(start_byte).clamp(start_byte, self.text.len());
        let slice = self.text.get(start_byte..end_byte).unwrap_or_default();
        let length = slice.find(['\n', '\r']).unwrap_or(slice.len());
        let (line, column) = self.line_and_column(&start);
        Span { line, column, start_byte: start_byte + self.start.byte, end_byte: start_byte + length + self.start.byte }
    }

    /// In the file, from 1.
    fn line_and_column(&self, marker: &Marker) -> (usize, usize) {
        let before = if marker.line() == 1 { self.start.column } else { 0 };
        (self.start.line + marker.line(), before + marker.col() + 1)
    }

    fn scalar(&mut self, arrival: Arrival, tagged: bool) {
        let Some(open) = &mut self.document else { return };
        if open.inside_key > 0 {
            return;
        }
        // An empty document has one scalar without text and without place.
        if open.stack.is_empty() && arrival.plain && arrival.scalar.as_deref().is_some_and(str::is_empty) {
            return;
        }
        open.scanned.empty = false;
        let ambiguous = arrival.scalar.as_deref().filter(|_| arrival.plain && !tagged).and_then(scalars::disagreement);
        let Some(pointer) = self.place(arrival) else { return };
        if let (Some(what), Some(open)) = (ambiguous, &mut self.document) {
            open.scanned.ambiguous.push((pointer, what));
        }
    }

    fn alias(&mut self, target: usize, span: Span) {
        let Some(open) = &mut self.document else { return };
        open.scanned.empty = false;
        open.scanned.first_alias.get_or_insert(span);
        open.aliases += 1;
        if open.aliases == limits::DOCUMENT_ALIASES + 1 {
            let message = format!("more than {} aliases in one document", limits::DOCUMENT_ALIASES);
            self.refuse(&reading::LIMIT, span, message);
        }
        let Some(open) = self.document.as_mut().filter(|open| open.inside_key == 0) else { return };
        let before = open.values;
        open.values = before.saturating_add(open.anchors.get(&target).map_or(1, |anchor| anchor.values));
        let is_too_much = open.values > limits::DOCUMENT_VALUES && before <= limits::DOCUMENT_VALUES;
        let is_part_of_itself = open.opened.iter().any(|(anchor, ..)| *anchor == target);
        let scalar = open.anchors.get(&target).and_then(|anchor| anchor.scalar.clone());
        if is_part_of_itself {
            let message = "the alias stands for what it is a part of, without end".to_owned();
            self.refuse(&reading::UNREADABLE, span, message);
        } else if is_too_much {
            let message =
                format!("with this alias the document stands for more than {} values", limits::DOCUMENT_VALUES);
            self.refuse(&reading::LIMIT, span, message);
        }
        self.place(Arrival { span, scalar, plain: false, anchor: 0, alias: Some(target) });
    }

    /// The values of the document are not read.
    fn refuse(&mut self, rule: &'static Rule, span: Span, message: String) {
        if let Some(open) = &mut self.document {
            open.scanned.unreadable = true;
        }
        self.scan.findings.push(Finding::at_span(rule, self.file, span, message).hint(OF_ALIASES));
    }

    fn open(&mut self, anchor: usize, span: Span, frame: impl FnOnce(String) -> Frame) {
        let Some(open) = &mut self.document else { return };
        open.scanned.empty = false;
        if open.inside_key > 0 {
            open.inside_key += 1;
            return;
        }
        let (depth, before) = (open.stack.len(), open.values);
        // A mapping begins where its first key does; the span of the event is empty there.
        match self.place(Arrival { span, scalar: None, plain: false, anchor, alias: None }) {
            Some(pointer) => {
                if let Some(open) = &mut self.document {
                    open.stack.push(frame(pointer));
                    open.opened.push((anchor, before, open.scanned.spans.last()));
                    if depth == limits::DEPTH {
                        open.scanned.unreadable = true;
                        let message = format!("nested deeper than {} levels", limits::DEPTH);
                        self.scan.findings.push(Finding::at_span(&reading::LIMIT, self.file, span, message));
                    }
                }
            }
            None => {
                if let Some(open) = &mut self.document {
                    open.inside_key = 1;
                }
            }
        }
    }

    /// Gives the node its pointer, or `None` when it was a key.
    fn place(&mut self, arrival: Arrival) -> Option<String> {
        let (file, offset) = (self.file, self.start.byte);
        let text = self.text;
        let open = self.document.as_mut()?;
        let (pointer, key) = match open.stack.last_mut() {
            None => (String::new(), None),
            Some(Frame::Sequence { pointer, next }) => {
                let index = *next;
                *next += 1;
                (format!("{pointer}/{index}"), None)
            }
            Some(Frame::Mapping { pointer, pending: pending @ Some(_), .. }) => {
                let (name, span) = pending.take()?;
                (spans::join(pointer, &name), Some(span))
            }
            Some(Frame::Mapping { pointer, keys, pending }) => {
                let is_object = pointer.is_empty() || spans::parent(pointer) == "/items";
                let (name, findings) = key(file, &arrival, keys, is_template(text, arrival.span.start_byte - offset));
                let is_twice = findings.iter().any(|it| std::ptr::eq(it.rule, &reading::DUPLICATE_KEY));
                open.scanned.has_two_kinds |= is_twice && is_object && ["kind", "apiVersion"].contains(&name.as_str());
                *pending = Some((name, arrival.span));
                if arrival.anchor != 0 {
                    let anchor = Anchor { pointer: String::new(), scalar: arrival.scalar, values: 1 };
                    open.anchors.insert(arrival.anchor, anchor);
                }
                open.scanned.broken |= findings.iter().any(|finding| finding.rule.severity == Severity::Error);
                self.scan.findings.extend(findings);
                return None;
            }
        };
        open.values += usize::from(arrival.alias.is_none());
        let alias = arrival.alias.and_then(|target| open.anchors.get(&target)).map(|anchor| anchor.pointer.clone());
        if arrival.anchor != 0 {
            let anchor = Anchor { pointer: pointer.clone(), scalar: arrival.scalar, values: 1 };
            open.anchors.insert(arrival.anchor, anchor);
        }
        let (mut span, end) = (arrival.span, open.end_of_last);
        if span.start_byte == span.end_byte {
            span.end_byte = first_token(text, span.start_byte - offset) + offset;
        }
        let node = Node { key, value: span, end, plain: arrival.plain, is_alias: alias.is_some() };
        open.scanned.spans.add(&pointer, node, alias);
        Some(pointer)
    }

    /// A directive above the document. Its finding goes to the document.
    fn version(&mut self, major: u32, minor: u32, at: Span) {
        let before = self.text.get(..at.start_byte.saturating_sub(self.start.byte)).unwrap_or_default();
        let span = before.rfind("%YAML").map_or(at, |start| {
            let line = before.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let (start_byte, end_byte) = (start + self.start.byte, start + line.trim_end().len() + self.start.byte);
            let lines = before.get(..start).unwrap_or_default().matches('\n').count();
            Span { line: lines + 1, column: 1, start_byte, end_byte }
        });
        let message =
            format!("kubectl and kustomize read YAML 1.1 alone, and refuse a document of YAML {major}.{minor}");
        let finding = Finding::at_span(&reading::SYNTAX, self.file, span, message);
        self.scan.findings.push(finding.hint("remove the directive"));
    }

    fn tag(&mut self, tag: Option<&granit_parser::Tag>, span: Span) {
        let Some(tag) = tag.filter(|tag| tag.is_custom()) else { return };
        let message = format!("the tag `{}` means nothing to Kubernetes", tag.original());
        let finding = Finding::at_span(&reading::TAG, self.file, span, message).hint("remove the tag");
        self.scan.findings.push(finding);
        if let Some(open) = &mut self.document {
            open.scanned.broken = true;
        }
    }

    fn close(&mut self, end: usize) {
        if let Some(mut open) = self.document.take() {
            open.scanned.range.end = end.max(open.scanned.range.start);
            open.scanned.findings = std::mem::take(&mut self.scan.findings);
            self.scan.documents.push(open.scanned);
        }
    }

    fn syntax_error(&mut self, error: &granit_parser::ScanError) {
        let marker = *error.marker();
        let start = marker.byte_offset().unwrap_or_else(|| byte_of(self.text, marker.index()));
        let start = start.min(self.text.len());
        let end = first_token(self.text, start);
        let (line, column) = self.line_and_column(&marker);
        let span = Span { line, column, start_byte: start + self.start.byte, end_byte: end + self.start.byte };
        let limit = matches!(error.kind(), granit_parser::ErrorKind::RecursionLimitExceeded);
        let already = self.document.as_ref().is_some_and(|open| open.scanned.unreadable);
        if !already {
            let rule = if limit { &reading::LIMIT } else { &reading::SYNTAX };
            let is_mark = line_of(self.text, start).is_some_and(|line| line.trim_end() == conflict::BETWEEN);
            let message = if is_mark { conflict::MESSAGE.to_owned() } else { sentence(&error.info()) };
            let mut finding = Finding::at_span(rule, self.file, span, message);
            if let Some(hint) = syntax_hint(self.text, start) {
                finding = finding.hint(hint);
            }
            self.scan.findings.push(finding);
        }
        let mut open = self.document.take().unwrap_or_default();
        open.scanned.unreadable = true;
        open.scanned.empty = false;
        open.scanned.findings = std::mem::take(&mut self.scan.findings);
        self.scan.documents.push(open.scanned);
    }
}

/// Checks a key of a mapping; gives the text it stands for.
fn key(file: usize, arrival: &Arrival, keys: &mut HashMap<String, Span>, is_template: bool) -> (String, Vec<Finding>) {
    let Some(text) = arrival.scalar.clone() else {
        let message = "a key must be text, not a mapping or a list".to_owned();
        let finding = Finding::at_span(&reading::COMPLEX_KEY, file, arrival.span, message);
        return (String::new(), vec![finding.maybe_hint(is_template.then(|| OF_TEMPLATE.to_owned()))]);
    };
    if text == spans::MERGE_KEY && arrival.plain && keys.insert(text.clone(), arrival.span).is_none() {
        let message = "merge keys are not YAML 1.2, and not every program that reads this file knows them".to_owned();
        let finding = Finding::at_span(&reading::MERGE_KEY, file, arrival.span, message);
        return (text, vec![finding.hint("repeat the fields, or use an alias for the whole value")]);
    }
    if let Some(first) = keys.get(&text) {
        let line = first.line;
        let message = format!("`{text}` is given twice; first on line {line}");
        let finding = Finding::at_span(&reading::DUPLICATE_KEY, file, arrival.span, message);
        return (text, vec![finding.hint("keep one of them: some programs take the first, some the last")]);
    }
    keys.insert(text.clone(), arrival.span);
    (text, Vec::new())
}

pub const OF_ALIASES: &str =
    "write out what the aliases stand for: definitions need few of them, and no aliases of aliases";

pub const OF_TEMPLATE: &str = "this looks like a template: render it first (`helm template`), and lint the result";

/// Whether a mapping that begins here is what `{{ .Values.name }}` is to YAML.
fn is_template(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    before.ends_with('{') && text.get(start..).is_some_and(|rest| rest.starts_with('{'))
}

/// The start of the line, where only blanks are before `start`: lines that are indented alike must stay so.
fn line_start(text: &str, start: usize) -> usize {
    let before = text.get(..start).unwrap_or_default();
    start - before.len() + before.trim_end_matches(' ').len()
}

/// The end of the word at `start`, for a node whose event has no width of its own.
fn first_token(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let length = rest.find([' ', '\n', '\r', '\t', ':', ',']).unwrap_or(rest.len());
    start + length.max(rest.chars().next().filter(|c| !matches!(c, '\n' | '\r')).map_or(0, char::len_utf8))
}

/// Bytes before the character `index`.
fn byte_of(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(byte, _)| byte)
}

/// The parser's message in our form: lower case, no period.
fn sentence(message: &str) -> String {
    let message = message.trim().trim_end_matches('.');
    let mut characters = message.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// The line in which a byte stands.
fn line_of(text: &str, byte: usize) -> Option<&str> {
    let line_start = text.get(..byte)?.rfind('\n').map_or(0, |newline| newline + 1);
    text.get(line_start..)?.lines().next()
}

/// The mistakes that people make.
fn syntax_hint(text: &str, start: usize) -> Option<String> {
    let line = line_of(text, start)?;
    if line.trim_end() == conflict::BETWEEN {
        return Some(conflict::HINT.to_owned());
    }
    let indentation: String = line.chars().take_while(|c| c.is_whitespace()).collect();
    if indentation.contains('\t') {
        return Some("indent with spaces: YAML does not allow tabs".to_owned());
    }
    if line.contains("{{") {
        return Some(OF_TEMPLATE.to_owned());
    }
    if text.get(..start).is_some_and(|before| before.ends_with('$')) && text.get(start..)?.starts_with('{') {
        return Some(
            "put the value in quotes: inside of `{ }` and `[ ]` the `{` of a variable begins a mapping".to_owned(),
        );
    }
    if text.get(start..)?.starts_with('*') {
        return Some(
            "an alias needs its `&` above; put the value in quotes if it is text, such as a schedule".to_owned(),
        );
    }
    if start >= text.trim_end().len() {
        return Some("the file seems to be cut off".to_owned());
    }
    None
}
