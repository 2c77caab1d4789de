//! A document as it stands in its text: from where to where each node goes, so that it can be cut out and put elsewhere.

use std::ops::Range;

use granit_parser::{Event, Parser};

use crate::definitions::document::spans;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Bytes of what stands there, without anchor, comments and the blanks around it. A value that is not written is empty.
    pub start: usize,
    pub end: usize,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Scalar,
    Alias,
    Mapping { is_flow: bool, entries: Vec<Entry> },
    Sequence { is_flow: bool, items: Vec<Node> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub key: Range<usize>,
    pub value: Node,
}

/// Where the documents of a text stand, from after the `---`; `None` where the text is no YAML.
pub fn documents(text: &str) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut start = 0;
    for event in Parser::new_from_str(text) {
        let (event, at) = event.ok()?;
        let (from, to) = (at.start.byte_offset()?, at.end.byte_offset()?);
        match event {
            // What stands before a document without `---` belongs to it.
            Event::DocumentStart(is_explicit, _) => start = if is_explicit { to } else { line_start(text, from) },
            Event::DocumentEnd => found.push(start..from.max(start)),
            _ => {}
        }
    }
    Some(found)
}

/// The one document of a text.
pub fn parse(text: &str) -> Option<Node> {
    let mut builder = Builder { text, open: Vec::new(), root: None };
    for event in Parser::new_from_str(text) {
        let (event, at) = event.ok()?;
        let (from, to) = (at.start.byte_offset()?, at.end.byte_offset()?);
        match event {
            Event::Scalar(name, ..) => builder.add(node(text, from, to, Content::Scalar), Some(name.into_owned()))?,
            Event::Alias(_) => builder.add(node(text, from, to, Content::Alias), None)?,
            Event::MappingStart(..) => {
                let is_flow = text.get(from..)?.starts_with('{');
                builder.open.push(Open {
                    start: from,
                    content: Content::Mapping { is_flow, entries: Vec::new() },
                    key: None,
                });
            }
            Event::SequenceStart(..) => {
                let is_flow = text.get(from..)?.starts_with('[');
                builder.open.push(Open {
                    start: from,
                    content: Content::Sequence { is_flow, items: Vec::new() },
                    key: None,
                });
            }
            Event::MappingEnd | Event::SequenceEnd => builder.close(to)?,
            _ => {}
        }
    }
    builder.root
}

struct Builder<'t> {
    text: &'t str,
    open: Vec<Open>,
    root: Option<Node>,
}

struct Open {
    start: usize,
    content: Content,
    /// A key whose value is still to come.
    key: Option<(String, Range<usize>)>,
}

impl Builder<'_> {
    /// `None` for a key that is no text: Kubernetes has none.
    fn add(&mut self, mut node: Node, name: Option<String>) -> Option<()> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        match &mut open.content {
            Content::Mapping { entries, .. } => match open.key.take() {
                None => open.key = Some((name?, node.start..node.end)),
                Some((name, key)) => {
                    if node.content == Content::Scalar && node.start == node.end {
                        // It has no place of its own.
                        let colon = behind_colon(self.text, key.end).unwrap_or(key.end);
                        (node.start, node.end) = (colon, colon);
                    }
                    entries.push(Entry { name, key, value: node });
                }
            },
            Content::Sequence { items, .. } => items.push(node),
            Content::Scalar | Content::Alias => return None,
        }
        Some(())
    }

    fn close(&mut self, end: usize) -> Option<()> {
        let open = self.open.pop()?;
        let end_of_last = match &open.content {
            Content::Mapping { is_flow: false, entries } => entries.last().map(|entry| entry.value.end),
            Content::Sequence { is_flow: false, items } => items.last().map(|item| item.end),
            _ => None,
        };
        self.add(Node { start: open.start, end: end_of_last.unwrap_or(end), content: open.content }, None)
    }
}

/// Without the line ends that a block scalar takes with it.
fn node(text: &str, start: usize, end: usize, content: Content) -> Node {
    let written = text.get(start..end).unwrap_or_default();
    Node { start, end: start + written.trim_end().len(), content }
}

impl Node {
    /// What the pointer points at, as far as it stands here and comes neither from an alias nor from a merge key.
    pub fn at(&self, pointer: &str) -> Option<&Self> {
        self.walk(pointer).last().copied().flatten()
    }

    /// The entry of a mapping that the pointer points at.
    pub fn entry(&self, pointer: &str) -> Option<&Entry> {
        let name = spans::last(pointer);
        self.at(spans::parent(pointer))?.entries().iter().find(|entry| entry.name == name)
    }

    /// Each node on the way, this one first; `None` for the first that is not there, and then nothing more.
    fn walk(&self, pointer: &str) -> Vec<Option<&Self>> {
        let mut way = vec![Some(self)];
        for part in pointer.split('/').skip(1).map(spans::unescape) {
            let Some(Some(node)) = way.last() else { break };
            let next = match &node.content {
                Content::Mapping { entries, .. } => entries.iter().find(|it| it.name == part).map(|it| &it.value),
                Content::Sequence { items, .. } => part.parse::<usize>().ok().and_then(|index| items.get(index)),
                Content::Scalar | Content::Alias => None,
            };
            way.push(next);
        }
        way
    }

    /// Where a person would look for what the pointer points at: its key, or the nearest thing around it.
    pub fn place(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            if let Some(entry) = self.entry(pointer).filter(|_| !pointer.is_empty()) {
                return entry.key.start;
            }
            match self.at(pointer) {
                Some(node) => return node.start,
                None => pointer = spans::parent(pointer),
            }
        }
    }

    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Mapping { entries, .. } => entries,
            _ => &[],
        }
    }

    pub fn is_flow(&self) -> bool {
        matches!(self.content, Content::Mapping { is_flow: true, .. } | Content::Sequence { is_flow: true, .. })
    }

    /// All scalars in it, keys as well.
    pub fn scalars(&self, found: &mut Vec<Range<usize>>) {
        match &self.content {
            Content::Scalar | Content::Alias => found.push(self.start..self.end),
            Content::Mapping { entries, .. } => entries.iter().for_each(|entry| {
                found.push(entry.key.clone());
                entry.value.scalars(found);
            }),
            Content::Sequence { items, .. } => items.iter().for_each(|item| item.scalars(found)),
        }
    }

    /// Whether an alias is in it.
    pub fn has_alias(&self) -> bool {
        match &self.content {
            Content::Scalar => false,
            Content::Alias => true,
            Content::Mapping { entries, .. } => entries.iter().any(|entry| entry.value.has_alias()),
            Content::Sequence { items, .. } => items.iter().any(Self::has_alias),
        }
    }
}

/// Behind the colon that comes next, if nothing but blanks is before it.
pub fn behind_colon(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let trimmed = rest.trim_start();
    trimmed.starts_with(':').then(|| at + rest.len() - trimmed.len() + 1)
}

/// Where the line begins that this byte is in.
pub fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// Where the next line begins, or the text ends.
pub fn line_end(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| at + newline + 1)
}

/// Blanks before the byte on its line, if nothing else is there.
pub fn column(text: &str, at: usize) -> Option<usize> {
    let before = text.get(line_start(text, at)..at)?;
    before.bytes().all(|byte| byte == b' ').then_some(before.len())
}

/// The same, where dashes of lists may stand before it, too.
pub fn column_behind_dashes(text: &str, at: usize) -> Option<usize> {
    let before = text.get(line_start(text, at)..at)?;
    before.bytes().all(|byte| byte == b' ' || byte == b'-').then_some(before.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written<'t>(text: &'t str, pointer: &str) -> &'t str {
        let root = parse(text).unwrap();
        let node = root.at(pointer).unwrap();
        text.get(node.start..node.end).unwrap()
    }

    #[test]
    fn nodes_end_where_they_end() {
        let text =
            "a: 1 # one\nb:\n  c: &x 'two'\n  d: [1, {e: 2}] # x\n  f: |\n    text\n    more\n\n# end\ng:\nh: *x\n";
        assert_eq!(written(text, "/a"), "1");
        assert_eq!(written(text, "/b"), "c: &x 'two'\n  d: [1, {e: 2}] # x\n  f: |\n    text\n    more");
        assert_eq!(written(text, "/b/c"), "'two'");
        assert_eq!(written(text, "/b/d"), "[1, {e: 2}]");
        assert_eq!(written(text, "/b/d/1"), "{e: 2}");
        assert_eq!(written(text, "/b/f"), "text\n    more", "a block begins at its first line");
        assert_eq!(written(text, "/g"), "");
        assert_eq!(parse(text).unwrap().at("/g").unwrap().start, text.find("g:").unwrap() + 2);
        assert_eq!(parse(text).unwrap().at("/h").unwrap().content, Content::Alias);
        assert_eq!(written(text, "/h"), "*x");
    }

    #[test]
    fn documents_are_found_with_their_comments() {
        let text = "# first\na: 1\n# last\n---\n# second\nb: 2\n# end\n";
        let found: Vec<&str> = documents(text).unwrap().into_iter().map(|range| text.get(range).unwrap()).collect();
        assert_eq!(found, ["a: 1\n# last\n", "\n# second\nb: 2\n# end\n"]);
        assert_eq!(documents("a: [1"), None);
    }

    #[test]
    fn lists_have_places_for_their_items() {
        let text = "a:\n- b: 1\n  c: 2\n-\n  b: 3\n";
        assert_eq!(written(text, "/a/0"), "b: 1\n  c: 2");
        assert_eq!(written(text, "/a/1"), "b: 3");
    }
}
