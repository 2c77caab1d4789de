//! Where each key and value of a document stands, by JSON pointer.

use crate::definitions::diagnostic::Span;

#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The key, for a member of a mapping.
    pub key: Option<Span>,
    pub value: Span,
    /// Where what stands there ends in the file, on whatever line; a span is of one line.
    pub end: usize,
    /// Written without quotes, and not as a block.
    pub plain: bool,
    /// It stands for what is written elsewhere.
    pub is_alias: bool,
}

/// The nodes in the order in which they are written.
#[derive(Debug, Default)]
pub struct WrittenSpans {
    nodes: Vec<Entry>,
    has_references: bool,
}

/// Sorted by pointer. Each value of each document has an entry for as long as anything is known of the document, so entries are small: a
/// table of hashes takes four times the room.
#[derive(Debug, Default)]
pub struct SpanIndex {
    nodes: Box<[Entry]>,
    /// Whether anything stands for something else: an alias, or a merge key.
    has_references: bool,
}

#[derive(Debug)]
struct Entry {
    pointer: Box<str>,
    key: Option<NarrowSpan>,
    value: NarrowSpan,
    end: u32,
    plain: bool,
    /// For an alias: the pointer of what it stands for.
    alias: Option<Box<str>>,
}

/// A [`Span`] of half the size. No file that is read is so large that a place in it does not fit.
#[derive(Clone, Copy, Debug)]
struct NarrowSpan {
    line: u32,
    column: u32,
    start_byte: u32,
    end_byte: u32,
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl From<Span> for NarrowSpan {
    fn from(span: Span) -> Self {
        Self {
            line: narrow(span.line),
            column: narrow(span.column),
            start_byte: narrow(span.start_byte),
            end_byte: narrow(span.end_byte),
        }
    }
}

impl From<NarrowSpan> for Span {
    fn from(span: NarrowSpan) -> Self {
        Self {
            line: span.line as usize,
            column: span.column as usize,
            start_byte: span.start_byte as usize,
            end_byte: span.end_byte as usize,
        }
    }
}

impl Entry {
    fn node(&self) -> Node {
        let (key, value) = (self.key.map(Span::from), self.value.into());
        Node { key, value, end: self.end as usize, plain: self.plain, is_alias: self.alias.is_some() }
    }
}

/// The key under which other mappings are merged into one.
pub const MERGE_KEY: &str = "<<";
/// Aliases may stand for aliases, and merge keys bring merge keys; nobody writes more than two or three levels.
const LOOKUPS: usize = 64;

impl WrittenSpans {
    /// `alias` is the pointer of what an alias stands for.
    pub fn add(&mut self, pointer: &str, node: Node, alias: Option<String>) {
        self.has_references |= alias.is_some() || last_as_written(pointer) == MERGE_KEY;
        self.nodes.push(Entry {
            pointer: pointer.into(),
            key: node.key.map(NarrowSpan::from),
            value: node.value.into(),
            end: narrow(node.end),
            plain: node.plain,
            alias: alias.map(String::into_boxed_str),
        });
    }

    /// The position of the node that was added last.
    pub fn last(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// The collection at this position ends here.
    pub fn close(&mut self, position: usize, end: usize) {
        if let Some(node) = self.nodes.get_mut(position) {
            node.end = narrow(end);
        }
    }
}

impl From<WrittenSpans> for SpanIndex {
    /// Of two nodes at one pointer the first is kept: a duplicate key is reported, and its second value is not used.
    fn from(written: WrittenSpans) -> Self {
        let mut nodes = written.nodes;
        nodes.sort_by(|one, other| one.pointer.cmp(&other.pointer));
        nodes.dedup_by(|later, first| later.pointer == first.pointer);
        Self { nodes: nodes.into_boxed_slice(), has_references: written.has_references }
    }
}

impl SpanIndex {
    pub fn get(&self, pointer: &str) -> Option<Node> {
        self.find(pointer, &mut { LOOKUPS }).map(Entry::node)
    }

    fn exact(&self, pointer: &str) -> Option<&Entry> {
        let found = self.nodes.binary_search_by(|entry| (*entry.pointer).cmp(pointer)).ok()?;
        self.nodes.get(found)
    }

    /// Looks at the pointer itself, then at what its aliases stand for, then into what its merge keys bring.
    fn find(&self, pointer: &str, lookups: &mut usize) -> Option<&Entry> {
        if let Some(entry) = self.exact(pointer) {
            return Some(entry);
        }
        if !self.has_references {
            return None;
        }
        *lookups = lookups.checked_sub(1)?;
        let mut outer = pointer;
        loop {
            let rest = pointer.strip_prefix(outer)?;
            if let Some(target) = self.exact(outer).and_then(|entry| entry.alias.as_ref()) {
                return self.find(&format!("{target}{rest}"), lookups);
            }
            let merge = format!("{outer}/{MERGE_KEY}");
            // What is under the merge key itself is no member that it brings.
            let is_member = !rest.is_empty() && rest.split('/').nth(1) != Some(MERGE_KEY);
            if is_member && self.exact(&merge).is_some() {
                let items = (0..).map(|index| format!("{merge}/{index}"));
                let items = items.take_while(|item| self.exact(item).is_some());
                let found = std::iter::once(merge.clone()).chain(items);
                let mut found = found.filter_map(|source| self.find(&format!("{source}{rest}"), lookups));
                if let Some(entry) = found.next() {
                    return Some(entry);
                }
            }
            outer = outer.rsplit_once('/')?.0;
        }
    }

    /// The value at `pointer`, or the nearest one around it.
    pub fn value(&self, pointer: &str) -> Span {
        self.nearest(pointer).map(|(node, exact)| if exact { node.value } else { head(node) }).unwrap_or_default()
    }

    /// The key at `pointer`; for an item of a list its value; else the nearest key around it.
    pub fn key(&self, pointer: &str) -> Span {
        self.nearest(pointer).map(|(node, _)| head(node)).unwrap_or_default()
    }

    pub fn is_plain(&self, pointer: &str) -> bool {
        self.get(pointer).is_some_and(|node| node.plain)
    }

    fn nearest(&self, pointer: &str) -> Option<(Node, bool)> {
        if let Some(node) = self.get(pointer) {
            return Some((node, true));
        }
        let mut outer = pointer;
        while let Some((around, _)) = outer.rsplit_once('/') {
            outer = around;
            if let Some(node) = self.get(outer) {
                return Some((node, false));
            }
        }
        None
    }
}

fn head(node: Node) -> Span {
    node.key.unwrap_or(node.value)
}

/// One more part at the end of a pointer.
pub fn join(pointer: &str, part: &str) -> String {
    format!("{pointer}/{}", escape(part))
}

/// A key as a part of a JSON pointer (RFC 6901).
pub fn escape(part: &str) -> String {
    // Hardly any key has one of them.
    match part.contains(['~', '/']) {
        true => part.replace('~', "~0").replace('/', "~1"),
        false => part.to_owned(),
    }
}

pub fn unescape(part: &str) -> String {
    match part.contains('~') {
        true => part.replace("~1", "/").replace("~0", "~"),
        false => part.to_owned(),
    }
}

fn last_as_written(pointer: &str) -> &str {
    pointer.rsplit('/').next().unwrap_or_default()
}

/// The last part, unescaped: the name of the field that a pointer points at.
pub fn last(pointer: &str) -> String {
    unescape(last_as_written(pointer))
}

/// What of a pointer is below another one, empty at that one itself; `None` where it is elsewhere.
pub fn below<'p>(outer: &str, inner: &'p str) -> Option<&'p str> {
    inner.strip_prefix(outer).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The pointer without its last part.
pub fn parent(pointer: &str) -> &str {
    pointer.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// `spec.template.spec.requirements[1].key`, as Kubernetes writes paths.
pub fn field_path(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1).map(unescape) {
        let index = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if index || part.contains(['.', '/']) {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&part);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(line: usize) -> Node {
        Node { key: None, value: Span { line, ..Span::default() }, end: 0, plain: true, is_alias: false }
    }

    #[test]
    fn the_first_of_two_at_one_place_counts_and_references_are_followed() {
        let mut written = WrittenSpans::default();
        for (line, pointer) in ["", "/b", "/a", "/a/c", "/b", "/d"].into_iter().enumerate() {
            written.add(pointer, node(line), (pointer == "/d").then(|| "/a".to_owned()));
        }
        written.add("/e", node(9), None);
        written.add("/e/<<", node(9), Some("/a".to_owned()));
        let spans = SpanIndex::from(written);
        let line = |pointer: &str| spans.get(pointer).map(|it| it.value.line);
        assert_eq!(
            ["", "/a", "/b", "/a/c", "/d/c", "/e/c", "/e/x"].map(line),
            [Some(0), Some(2), Some(1), Some(3), Some(3), Some(3), None]
        );
    }
}
