//! Where each key and value of a document stands, by JSON pointer.

use std::collections::HashMap;

use crate::definitions::diagnostic::Span;

#[derive(Clone, Debug)]
pub struct Node {
    /// The key, for a member of a mapping.
    pub key: Option<Span>,
    pub value: Span,
    /// Where what stands there ends in the file, on whatever line; a span is of one line.
    pub end: usize,
    /// Written without quotes, and not as a block.
    pub plain: bool,
    /// For an alias: the pointer of what it stands for.
    pub alias: Option<String>,
}

#[derive(Debug, Default)]
pub struct SpanIndex {
    nodes: HashMap<String, Node>,
}

/// The key under which other mappings are merged into one.
pub const MERGE_KEY: &str = "<<";
/// Aliases may stand for aliases, and merge keys bring merge keys; nobody writes more than two or three levels.
const LOOKUPS: usize = 64;

impl SpanIndex {
    /// The first node wins: a duplicate key is reported, and its second value is not used.
    pub fn insert(&mut self, pointer: &str, node: Node) {
        if !self.nodes.contains_key(pointer) {
            self.nodes.insert(pointer.to_owned(), node);
        }
    }

    /// A collection ends here.
    pub fn close(&mut self, pointer: &str, end: usize) {
        if let Some(node) = self.nodes.get_mut(pointer) {
            node.end = end;
        }
    }

    pub fn get(&self, pointer: &str) -> Option<&Node> {
        self.find(pointer, &mut { LOOKUPS })
    }

    /// Looks at the pointer itself, then at what its aliases stand for, then into what its merge keys bring.
    fn find(&self, pointer: &str, lookups: &mut usize) -> Option<&Node> {
        if let Some(node) = self.nodes.get(pointer) {
            return Some(node);
        }
        *lookups = lookups.checked_sub(1)?;
        let mut outer = pointer;
        loop {
            let rest = pointer.strip_prefix(outer)?;
            if let Some(target) = self.nodes.get(outer).and_then(|node| node.alias.as_ref()) {
                return self.find(&format!("{target}{rest}"), lookups);
            }
            let merge = format!("{outer}/{MERGE_KEY}");
            // What is under the merge key itself is no member that it brings.
            let is_member = !rest.is_empty() && rest.split('/').nth(1) != Some(MERGE_KEY);
            if is_member && self.nodes.contains_key(&merge) {
                let items = (0..).map(|index| format!("{merge}/{index}"));
                let items = items.take_while(|item| self.nodes.contains_key(item));
                let found = std::iter::once(merge.clone()).chain(items);
                let mut found = found.filter_map(|source| self.find(&format!("{source}{rest}"), lookups));
                if let Some(node) = found.next() {
                    return Some(node);
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

    fn nearest(&self, pointer: &str) -> Option<(&Node, bool)> {
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

fn head(node: &Node) -> Span {
    node.key.unwrap_or(node.value)
}

/// One more part at the end of a pointer.
pub fn join(pointer: &str, part: &str) -> String {
    format!("{pointer}/{}", escape(part))
}

/// A key as a part of a JSON pointer (RFC 6901).
pub fn escape(part: &str) -> String {
    part.replace('~', "~0").replace('/', "~1")
}

pub fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// The last part, unescaped: the name of the field that a pointer points at.
pub fn last(pointer: &str) -> String {
    unescape(pointer.rsplit('/').next().unwrap_or_default())
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
