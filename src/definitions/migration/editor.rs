//! Edits of one document as byte ranges of its text: everything that is not itself moved or replaced stays as it is.
//!
//! Each edit is made twice, in the text and in the value, and counts only where the text then says the value. So one that an alias, a
//! merge key or an unusual form would turn into something else is refused, and the document stays as it was before it.

use std::ops::Range;

use serde_json::Value;

use super::cut::{Cut, Piece, Region};
use super::emit::{self, Manner};
use super::tree::{self, Content, Entry, Node, behind_colon, column, column_behind_dashes, line_end, line_start};
use crate::definitions::document::{read_value, spans};

/// Why an edit is left to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditRefusal {
    /// It comes from an alias or a merge key, or others are made from it.
    Alias,
    /// A comment would be lost, or stand at another thing.
    Comment,
    /// There is already something.
    Taken,
    /// It is written in a form that is not known here.
    Form,
}

/// Where among the members of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot<'a> {
    First,
    Last,
    After(&'a str),
}

#[derive(Clone, Debug)]
pub struct Editor {
    text: String,
    value: Value,
    tree: Node,
}

impl Editor {
    /// `None` for text that is no YAML, or that has values which Kubernetes does not know.
    pub fn of(text: &str) -> Option<Self> {
        let (tree, value) = (tree::parse(text)?, read_value(text).ok()?);
        Some(Self { text: text.to_owned(), value, tree })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    pub fn tree(&self) -> &Node {
        &self.tree
    }

    /// Takes the edits back that were made since this one was kept.
    pub fn restore(&mut self, kept: Self) {
        *self = kept;
    }

    /// Renames the member, keeping its quotes.
    pub fn rename(&mut self, pointer: &str, name: &str) -> Result<(), EditRefusal> {
        let key = self.entry(pointer)?.key.clone();
        let written = self.requoted(&key, name);
        let mut value = self.value.clone();
        let members = object(&mut value, spans::parent(pointer)).ok_or_else(|| self.refusal())?;
        if members.contains_key(name) {
            return Err(EditRefusal::Taken);
        }
        let member = members.shift_remove(&spans::last(pointer)).ok_or_else(|| self.refusal())?;
        members.insert(name.to_owned(), member);
        self.put(&[(key, written)], value)
    }

    /// Writes another scalar, keeping the quotes.
    pub fn set(&mut self, pointer: &str, new: &Value) -> Result<(), EditRefusal> {
        let node = self.node(pointer)?;
        if node.content != Content::Scalar {
            return Err(self.refusal());
        }
        let range = node.start..node.end;
        let written = match new.as_str() {
            Some(text) => self.requoted(&range, text),
            None => new.to_string(),
        };
        let written = if range.is_empty() { format!(" {written}") } else { written };
        let mut value = self.value.clone();
        *value.pointer_mut(pointer).ok_or_else(|| self.refusal())? = new.clone();
        self.put(&[(range, written)], value)
    }

    /// Takes the member out, with the comments that belong to it.
    pub fn remove(&mut self, pointer: &str) -> Result<Cut, EditRefusal> {
        let around = spans::parent(pointer);
        let parent = self.node(around)?;
        let entry = self.entry(pointer)?;
        let mut value = self.value.clone();
        let members = object(&mut value, around).ok_or_else(|| self.refusal())?;
        let old = members.shift_remove(&spans::last(pointer)).ok_or_else(|| self.refusal())?;
        let (cut, edits) = if parent.is_flow() {
            let cut = Cut::of_flow(&self.text, entry, old, self.manner());
            (cut, vec![(self.flow_range(parent, entry)?, String::new())])
        } else {
            let region = self.region(entry).ok_or(EditRefusal::Form)?;
            let comments = self.comments_in(&(region.above..region.end));
            let edits = if parent.entries().len() == 1 {
                let colon = self.colon(self.entry(around)?).ok_or(EditRefusal::Form)?;
                vec![(colon..colon, " {}".to_owned()), (region.above..region.end, String::new())]
            } else {
                vec![(self.with_a_blank_line(region), String::new())]
            };
            (Cut::of_block(&self.text, entry, &region, old, comments), edits)
        };
        self.put(&edits, value)?;
        Ok(cut)
    }

    /// Puts a member into the mapping, which may be empty or not written.
    pub fn insert(&mut self, parent: &str, key: &str, piece: &Piece, spot: Spot<'_>) -> Result<(), EditRefusal> {
        let mut value = self.value.clone();
        let slot = value.pointer_mut(parent).ok_or_else(|| self.refusal())?;
        if slot.is_null() {
            *slot = Value::Object(serde_json::Map::new());
        }
        let members = slot.as_object_mut().ok_or(EditRefusal::Form)?;
        if members.insert(key.to_owned(), piece.value().clone()).is_some() {
            return Err(EditRefusal::Taken);
        }
        let placed = self.placed(parent, key, piece, spot).and_then(|edits| self.put(&edits, value.clone()));
        // A text whose end is that of the file would end otherwise with something behind it.
        if placed.is_err() && spot == Spot::Last && !self.text.ends_with('\n') {
            return self.placed(parent, key, piece, Spot::First).and_then(|edits| self.put(&edits, value));
        }
        placed
    }

    /// What to write so that the member is in the mapping.
    fn placed(&self, parent: &str, key: &str, piece: &Piece, spot: Spot<'_>) -> Result<Edits, EditRefusal> {
        let node = self.node(parent)?;
        match &node.content {
            Content::Mapping { is_flow: false, entries } => self.in_block(entries, key, piece, spot),
            Content::Mapping { entries, .. } if !entries.is_empty() => self.in_flow(entries, key, piece, spot),
            Content::Mapping { .. } | Content::Scalar => self.in_empty(parent, key, piece),
            Content::Alias | Content::Sequence { .. } => Err(self.refusal()),
        }
    }

    /// Takes the member from one place to another. A mapping that has no other goes with it, and its comments as well.
    pub fn relocate(&mut self, from: &str, parent: &str, key: &str) -> Result<(), EditRefusal> {
        let kept = self.clone();
        let moved = self.relocated(from, parent, key);
        if moved.is_err() {
            self.restore(kept);
        }
        moved
    }

    fn relocated(&mut self, from: &str, parent: &str, key: &str) -> Result<(), EditRefusal> {
        if self.value.pointer(parent).is_none() {
            let (outer, name) = (spans::parent(parent), spans::last(parent));
            let mut outer_first = self.clone();
            if self.value.pointer(outer).is_none() {
                let empty = Piece::New(Value::Object(serde_json::Map::new()));
                outer_first.insert(spans::parent(outer), &spans::last(outer), &empty, Spot::Last)?;
            }
            outer_first.insert(outer, &name, &Piece::New(Value::Object(serde_json::Map::new())), Spot::Last)?;
            self.restore(outer_first);
        }
        let mut cut = self.remove(from)?;
        let around = spans::parent(from);
        let is_emptied = self.value.pointer(around).and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
        if is_emptied && !format!("{parent}/").starts_with(&format!("{around}/")) {
            cut.take_comments(&self.remove(around)?);
        }
        self.insert(parent, key, &Piece::Cut(cut), Spot::Last)
    }

    /// Writes another member in the place of this one. Comments in what goes are kept above it.
    pub fn replace(&mut self, pointer: &str, key: &str, new: &Value) -> Result<(), EditRefusal> {
        let around = spans::parent(pointer);
        let parent = self.node(around)?;
        let entry = self.entry(pointer)?;
        let mut value = self.value.clone();
        let members = object(&mut value, around).ok_or_else(|| self.refusal())?;
        members.shift_remove(&spans::last(pointer)).ok_or_else(|| self.refusal())?;
        if members.insert(key.to_owned(), new.clone()).is_some() {
            return Err(EditRefusal::Taken);
        }
        let manner = self.manner();
        let edit = if parent.is_flow() {
            let range = entry.key.start..entry.value.end;
            if !self.comments_in(&range).is_empty() {
                return Err(EditRefusal::Comment);
            }
            (range, self.flow_member(entry.key.start, key, new))
        } else {
            let region = self.region(entry).ok_or(EditRefusal::Form)?;
            let mut lines = emit::entry(key, new, manner);
            let mut comments = self.comments_in(&(entry.key.end..region.end));
            let is_one_line =
                entry.value.content == Content::Scalar && line_end(&self.text, entry.key.end) == region.end;
            if let Some(last) = lines.last_mut().filter(|_| is_one_line) {
                comments.drain(..).for_each(|comment| last.push_str(&format!(" {comment}")));
            }
            let lines: Vec<String> = comments.into_iter().chain(lines).collect();
            (region.start..region.end, self.block(&lines, region.column, region.end))
        };
        self.put(&[edit], value)
    }

    /// Adds an item to a list.
    pub fn append(&mut self, pointer: &str, item: &Value) -> Result<(), EditRefusal> {
        let mut value = self.value.clone();
        let items = value.pointer_mut(pointer).and_then(Value::as_array_mut).ok_or_else(|| self.refusal())?;
        items.push(item.clone());
        let node = self.node(pointer)?;
        let Content::Sequence { is_flow, items } = &node.content else { return Err(self.refusal()) };
        let manner = self.manner();
        let edit = match items.last() {
            None => (node.start..node.end, format!("[{}]", emit::on_one_line(item, manner))),
            Some(last) if *is_flow => {
                (last.end..last.end, format!("{}{}", self.separator(last.start), self.flow_value(last.start, item)))
            }
            Some(last) => {
                let first = items.first().unwrap_or(last);
                let behind = column_behind_dashes(&self.text, first.start).ok_or(EditRefusal::Form)?;
                let dash = self.text.get(line_start(&self.text, first.start)..first.start).and_then(|it| it.rfind('-'));
                let dash = dash.filter(|dash| *dash < behind).ok_or(EditRefusal::Form)?;
                let lines = match last.is_flow() {
                    true => vec![format!("- {}", emit::on_one_line(item, manner))],
                    false => emit::item(item, manner),
                };
                let end = self.end_of(last.end, dash);
                (end..end, self.block(&lines, dash, end))
            }
        };
        self.put(&[edit], value)
    }

    /// Makes `[{ INNER: VALUE }]` of the value, under another name.
    pub fn wrap(&mut self, pointer: &str, key: &str, inner: &str) -> Result<(), EditRefusal> {
        let mut value = self.value.clone();
        let members = object(&mut value, spans::parent(pointer)).ok_or_else(|| self.refusal())?;
        let old = members.shift_remove(&spans::last(pointer)).ok_or_else(|| self.refusal())?;
        if members.insert(key.to_owned(), serde_json::json!([{ inner: old }])).is_some() {
            return Err(EditRefusal::Taken);
        }
        let (entry, manner) = (self.entry(pointer)?, self.manner());
        let node = &entry.value;
        let renamed = (entry.key.clone(), self.requoted(&entry.key, key));
        let inner = emit::text(inner, manner);
        let container = self.node(spans::parent(pointer))?;
        let raw = self.text.get(node.start..node.end).unwrap_or_default();
        if container.is_flow() || (node.is_flow() && raw.contains('\n')) {
            let edits =
                [renamed, (node.start..node.start, format!("[{{ {inner}: ")), (node.end..node.end, " }]".to_owned())];
            return self.put(&edits, value);
        }
        let region = self.region(entry).ok_or(EditRefusal::Form)?;
        let dash = region.column + manner.list_step;
        let newline = self.newline();
        if node.is_flow() {
            let before = self.colon(entry).ok_or(EditRefusal::Form)?..node.start;
            let between = self.text.get(before.clone()).unwrap_or_default();
            if !between.trim().is_empty() {
                return Err(self.refusal());
            }
            let start = format!("{newline}{}- {inner}: ", " ".repeat(dash));
            return self.put(&[renamed, (before, start)], value);
        }
        // The lines below the key stand deeper now.
        let below = line_end(&self.text, entry.key.end);
        let column = column(&self.text, node.start).ok_or_else(|| self.refusal())?;
        let deeper = (dash + 2 + manner.step).saturating_sub(column);
        let lines = self.text.get(below..region.end).unwrap_or_default();
        let lines: String = lines.split_inclusive('\n').map(|line| emit::indented_raw(line, deeper)).collect();
        let lines = format!("{}- {inner}:{newline}{lines}", " ".repeat(dash));
        self.put(&[renamed, (below..region.end, lines)], value)
    }

    /// Puts the members of a block, line by line, into the place of the mapping that has them.
    pub fn unwrap_block(&mut self, pointer: &str) -> Result<(), EditRefusal> {
        let mut value = self.value.clone();
        let members = object(&mut value, spans::parent(pointer)).ok_or_else(|| self.refusal())?;
        let inner = members.shift_remove(&spans::last(pointer)).ok_or_else(|| self.refusal())?;
        for (name, member) in inner.as_object().ok_or(EditRefusal::Form)? {
            if members.insert(name.clone(), member.clone()).is_some() {
                return Err(EditRefusal::Taken);
            }
        }
        let entry = self.entry(pointer)?;
        let region = self.region(entry).ok_or(EditRefusal::Form)?;
        let inner =
            column(&self.text, entry.value.start).filter(|_| !entry.value.is_flow()).ok_or(EditRefusal::Form)?;
        let below = line_end(&self.text, entry.key.end);
        let by = inner.checked_sub(region.column).ok_or(EditRefusal::Form)?;
        let less = |line: &str| {
            let blanks = line.len() - line.trim_start_matches(' ').len();
            line.get(blanks.min(by)..).unwrap_or_default().to_owned()
        };
        let comments = self.comments_in(&(entry.key.end..below));
        let mut written: String =
            comments.iter().map(|it| format!("{}{it}{}", " ".repeat(region.column), self.newline())).collect();
        written.extend(self.text.get(below..region.end).unwrap_or_default().split_inclusive('\n').map(less));
        self.put(&[(region.start..region.end, written)], value)
    }

    /// The comments in a part of the text.
    pub fn comments_in(&self, range: &Range<usize>) -> Vec<String> {
        let mut scalars = Vec::new();
        self.tree.scalars(&mut scalars);
        let written = self.text.get(range.clone()).unwrap_or_default();
        let mut found = Vec::new();
        let mut done = 0;
        for (offset, _) in written.match_indices('#') {
            let at = range.start + offset;
            let before = self.text.get(..at).and_then(|text| text.chars().next_back());
            let begins = before.is_none_or(char::is_whitespace);
            if offset < done || !begins || scalars.iter().any(|scalar| scalar.contains(&at)) {
                continue;
            }
            let line = written.get(offset..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            found.push(line.trim_end().to_owned());
            done = offset + line.len();
        }
        found
    }

    /// The lines of a member of a block mapping; `None` where its key does not begin its line.
    pub fn region(&self, entry: &Entry) -> Option<Region> {
        let column = column(&self.text, entry.key.start)?;
        let start = line_start(&self.text, entry.key.start);
        let mut above = start;
        while above > 0 {
            let line = line_start(&self.text, above - 1);
            let written = self.text.get(line..above).unwrap_or_default();
            let trimmed = written.trim_start_matches(' ');
            if !trimmed.starts_with('#') || written.len() - trimmed.len() != column {
                break;
            }
            above = line;
        }
        Some(Region { above, start, end: self.end_of(entry.value.end.max(entry.key.end), column), column })
    }

    /// Where the lines end that belong to what ends here: comments that stand deeper than its column are part of it.
    fn end_of(&self, last: usize, column: usize) -> usize {
        let mut end = line_end(&self.text, last);
        let mut next = end;
        while next < self.text.len() {
            let after = line_end(&self.text, next);
            let line = self.text.get(next..after).unwrap_or_default();
            let trimmed = line.trim_start_matches(' ');
            if trimmed.starts_with('#') && line.len() - trimmed.len() > column {
                end = after;
            } else if !trimmed.trim().is_empty() {
                break;
            }
            next = after;
        }
        end
    }

    /// What is taken out with a region: of blank lines around it one is enough.
    fn with_a_blank_line(&self, region: Region) -> Range<usize> {
        let is_blank = |line: &str| line.trim().is_empty();
        let before = region.above.checked_sub(1).map(|end| line_start(&self.text, end));
        let blank_before = before.filter(|start| is_blank(self.text.get(*start..region.above).unwrap_or_default()));
        let after = self.text.get(region.end..line_end(&self.text, region.end)).unwrap_or_default();
        let is_deeper = after.len() - after.trim_start_matches(' ').len() >= region.column && !is_blank(after);
        match blank_before {
            Some(start) if !is_deeper => start..region.end,
            _ => region.above..region.end,
        }
    }

    /// A member of a flow mapping with the comma that is then too many.
    fn flow_range(&self, parent: &Node, entry: &Entry) -> Result<Range<usize>, EditRefusal> {
        let entries = parent.entries();
        let index = entries.iter().position(|it| it.key == entry.key).ok_or(EditRefusal::Form)?;
        let next = entries.get(index + 1);
        let before = index.checked_sub(1).and_then(|before| entries.get(before));
        let range = match (before, next) {
            (_, Some(next)) => entry.key.start..next.key.start,
            (Some(before), None) => before.value.end..entry.value.end,
            (None, None) => parent.start + 1..parent.end - 1,
        };
        if self.comments_in(&range).is_empty() { Ok(range) } else { Err(EditRefusal::Comment) }
    }

    fn in_block(&self, entries: &[Entry], key: &str, piece: &Piece, spot: Spot<'_>) -> Result<Edits, EditRefusal> {
        let first = entries.first().ok_or(EditRefusal::Form)?;
        let column = column_behind_dashes(&self.text, first.key.start).ok_or(EditRefusal::Form)?;
        let after = |entry: &Entry| self.end_of(entry.value.end.max(entry.key.end), column);
        let at = match spot {
            Spot::First => self.region(first).ok_or(EditRefusal::Form)?.above,
            Spot::Last => entries.last().map(after).ok_or(EditRefusal::Form)?,
            Spot::After(name) => entries.iter().find(|it| it.name == name).map(after).ok_or_else(|| self.refusal())?,
        };
        Ok(vec![(at..at, self.block(&piece.lines(key, self.manner()), column, at))])
    }

    fn in_flow(&self, entries: &[Entry], key: &str, piece: &Piece, spot: Spot<'_>) -> Result<Edits, EditRefusal> {
        if piece.has_comments() {
            return Err(EditRefusal::Comment);
        }
        let (first, last) = entries.first().zip(entries.last()).ok_or(EditRefusal::Form)?;
        let member = self.flow_member(first.key.start, key, piece.value());
        let separator = self.separator(first.key.start);
        let edit = match spot {
            Spot::First => (first.key.start..first.key.start, format!("{member}{separator}")),
            Spot::Last => (last.value.end..last.value.end, format!("{separator}{member}")),
            Spot::After(name) => {
                let entry = entries.iter().find(|it| it.name == name).ok_or_else(|| self.refusal())?;
                (entry.value.end..entry.value.end, format!("{separator}{member}"))
            }
        };
        Ok(vec![edit])
    }

    /// Into a mapping that has no member, or is not written.
    fn in_empty(&self, parent: &str, key: &str, piece: &Piece) -> Result<Edits, EditRefusal> {
        let node = self.node(parent)?;
        let entry = self.entry(parent)?;
        let written = self.text.get(node.start..node.end).unwrap_or_default();
        let inner = written.trim_start_matches('{').trim_end_matches('}');
        if !inner.trim().is_empty() && !["null", "~"].contains(&inner.trim()) {
            return Err(self.refusal());
        }
        let manner = self.manner();
        let is_in_block = !self.node(spans::parent(parent))?.is_flow();
        if !is_in_block {
            if piece.has_comments() {
                return Err(EditRefusal::Comment);
            }
            let new = serde_json::json!({ key: piece.value() });
            return Ok(vec![(node.start..node.end, self.flow_value(entry.key.start, &new))]);
        }
        let column = column_behind_dashes(&self.text, entry.key.start).ok_or(EditRefusal::Form)?;
        let colon = self.colon(entry).ok_or(EditRefusal::Form)?;
        if !self.text.get(colon..node.start).unwrap_or_default().trim().is_empty() {
            return Err(self.refusal());
        }
        let at = line_end(&self.text, node.end);
        let lines = self.block(&piece.lines(key, manner), column + manner.step, at);
        Ok(vec![(colon..node.end, String::new()), (at..at, lines)])
    }

    /// Lines as they stand at this place of a block.
    fn block(&self, lines: &[String], column: usize, at: usize) -> String {
        let newline = self.newline();
        let is_at_end = at == self.text.len() && !self.text.ends_with('\n');
        let lines = lines.iter().map(|line| emit::indented(line, column)).collect::<Vec<_>>().join(newline);
        if !is_at_end {
            return format!("{lines}{newline}");
        }
        // What is replaced was the last line; what is added comes behind it.
        lines
    }

    /// A member of a flow mapping, in the manner of the one that begins here.
    fn flow_member(&self, at: usize, key: &str, value: &Value) -> String {
        format!("{}: {}", emit::text(key, self.manner()), self.flow_value(at, value))
    }

    fn flow_value(&self, at: usize, value: &Value) -> String {
        let manner = self.manner();
        match column(&self.text, at).filter(|_| manner.is_json) {
            Some(column) => {
                let lines = emit::on_lines(value, manner).into_iter().enumerate();
                let lines = lines.map(|(index, line)| if index == 0 { line } else { emit::indented(&line, column) });
                lines.collect::<Vec<_>>().join(self.newline())
            }
            None => emit::on_one_line(value, manner),
        }
    }

    /// What stands between members of a flow collection, of which one begins here.
    fn separator(&self, at: usize) -> String {
        match column(&self.text, at) {
            Some(column) => format!(",{}{}", self.newline(), " ".repeat(column)),
            None => ", ".to_owned(),
        }
    }

    /// Behind the colon of the member.
    fn colon(&self, entry: &Entry) -> Option<usize> {
        behind_colon(&self.text, entry.key.end)
    }

    /// In the quotes that stand there, or in some where the text needs them.
    fn requoted(&self, range: &Range<usize>, text: &str) -> String {
        let is_simple = !text.contains(['"', '\'', '\\']) && !text.chars().any(char::is_control);
        let quote = self.text.get(range.clone()).and_then(|old| old.chars().next());
        match quote.filter(|quote| matches!(quote, '"' | '\'') && is_simple) {
            Some(quote) => format!("{quote}{text}{quote}"),
            None => emit::text(text, self.manner()),
        }
    }

    pub fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    pub fn manner(&self) -> Manner {
        let quoted = |entry: &Entry| self.text.get(entry.key.clone()).is_some_and(|key| key.starts_with('"'));
        let is_json = self.tree.is_flow() && self.tree.entries().first().is_some_and(quoted);
        let step = self.step_of(&self.tree).filter(|step| (1..=8).contains(step)).unwrap_or(2);
        Manner { is_json, step, list_step: self.list_step_of(&self.tree).unwrap_or(step.min(2)) }
    }

    /// By how much a mapping is deeper than the key that it belongs to.
    fn step_of(&self, node: &Node) -> Option<usize> {
        node.entries().iter().find_map(|entry| {
            let inner = entry.value.entries().first()?;
            let own = column(&self.text, entry.key.start)?;
            column(&self.text, inner.key.start)?.checked_sub(own).filter(|step| *step > 0)
        })
    }

    /// The same of a list.
    fn list_step_of(&self, node: &Node) -> Option<usize> {
        if let Content::Sequence { items, .. } = &node.content {
            return items.iter().find_map(|item| self.list_step_of(item));
        }
        node.entries().iter().find_map(|entry| match &entry.value.content {
            Content::Sequence { is_flow: false, items } => {
                let own = column_behind_dashes(&self.text, entry.key.start)?;
                let first = items.first()?.start;
                let line = self.text.get(line_start(&self.text, first)..first)?;
                line.rfind('-').and_then(|dash| dash.checked_sub(own))
            }
            _ => self.list_step_of(&entry.value),
        })
    }

    fn node(&self, pointer: &str) -> Result<&Node, EditRefusal> {
        self.tree.at(pointer).ok_or_else(|| self.refusal())
    }

    fn entry(&self, pointer: &str) -> Result<&Entry, EditRefusal> {
        self.tree.entry(pointer).ok_or_else(|| self.refusal())
    }

    /// Why something is not as it should be.
    fn refusal(&self) -> EditRefusal {
        if self.tree.has_alias() { EditRefusal::Alias } else { EditRefusal::Form }
    }

    /// Makes the edits, where the text then says what is meant.
    pub fn put(&mut self, edits: &[(Range<usize>, String)], meant: Value) -> Result<(), EditRefusal> {
        let mut edits: Vec<&(Range<usize>, String)> = edits.iter().collect();
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        let mut text = String::with_capacity(self.text.len());
        let mut done = 0;
        for (range, written) in edits {
            text.push_str(self.text.get(done..range.start).ok_or(EditRefusal::Form)?);
            let is_behind = range.start == self.text.len() && range.is_empty() && !text.is_empty();
            if is_behind && !written.is_empty() && !self.text.ends_with('\n') {
                text.push_str(self.newline());
            }
            text.push_str(written);
            done = range.end;
        }
        text.push_str(self.text.get(done..).ok_or(EditRefusal::Form)?);
        let tree = tree::parse(&text).ok_or_else(|| self.refusal())?;
        if read_value(&text).ok().as_ref() != Some(&meant) {
            return Err(self.refusal());
        }
        (self.text, self.value, self.tree) = (text, meant, tree);
        Ok(())
    }
}

type Edits = Vec<(Range<usize>, String)>;

fn object<'v>(value: &'v mut Value, pointer: &str) -> Option<&'v mut serde_json::Map<String, Value>> {
    value.pointer_mut(pointer)?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The text after an edit, or why it was refused; then the text is what it was.
    fn edited(text: &str, edit: impl FnOnce(&mut Editor) -> Result<(), EditRefusal>) -> Result<String, EditRefusal> {
        let mut editor = Editor::of(text).unwrap();
        let outcome = edit(&mut editor);
        assert!(outcome.is_ok() || editor.text() == text, "{}", editor.text());
        outcome.map(|()| editor.text().to_owned())
    }

    #[test]
    fn what_others_are_made_from_stays() {
        for (text, pointer) in [
            ("a: &x\n  b: 1\nc: *x\nd: 1\n", "/a"),
            ("a: &x\n  b: 1\n  e: 2\nc: *x\n", "/a/b"),
            ("a: &x\n  b: 1\n  e: 2\nc: *x\n", "/c/b"),
            ("a: &x { b: 1, e: 2 }\nc: { <<: *x, d: 1 }\n", "/c/b"),
        ] {
            assert_eq!(edited(text, |it| it.remove(pointer).map(drop)), Err(EditRefusal::Alias), "{text}");
            assert_eq!(edited(text, |it| it.set(pointer, &json!(5))), Err(EditRefusal::Alias), "{text}");
        }
        assert_eq!(edited("a: &x 1\nb: *x\n", |it| it.set("/b", &json!(2))), Err(EditRefusal::Alias));
        // What nobody else has may go.
        assert_eq!(edited("a: &x\n  b: 1\nc: 2\n", |it| it.remove("/a").map(drop)).as_deref(), Ok("c: 2\n"));
    }

    #[test]
    fn places_that_are_taken_stay() {
        assert_eq!(edited("a: 1\nb: 2\n", |it| it.rename("/a", "b")), Err(EditRefusal::Taken));
        assert_eq!(edited("a: { b: 1 }\nc: { b: 2 }\n", |it| it.relocate("/a/b", "/c", "b")), Err(EditRefusal::Taken));
        let insert = |it: &mut Editor| it.insert("", "a", &Piece::New(json!(2)), Spot::Last);
        assert_eq!(edited("a: 1\n", insert), Err(EditRefusal::Taken));
        assert_eq!(edited("a: 1\nb: 2\n", |it| it.replace("/a", "b", &json!(3))), Err(EditRefusal::Taken));
        assert_eq!(edited("a:\n  b: 1\nb: 2\n", |it| it.relocate("/a/b", "", "b")), Err(EditRefusal::Taken));
    }

    #[test]
    fn comments_in_flow_collections_are_not_lost() {
        for text in ["a: {\n  b: 1, # one\n  c: 2\n}\n", "a: {\n  b: 1,\n  # two\n  c: 2\n}\n"] {
            assert_eq!(edited(text, |it| it.remove("/a/c").map(drop)), Err(EditRefusal::Comment), "{text}");
        }
        assert_eq!(edited("a: {b: 1, c: 2,}\n", |it| it.remove("/a/c").map(drop)).as_deref(), Ok("a: {b: 1,}\n"));
    }

    #[test]
    fn a_number_sign_in_a_text_is_no_comment() {
        let text = "a: 'x # y' # z\nb: |\n  # text\n  more\n# above\nc: http://x/#y\n";
        let editor = Editor::of(text).unwrap();
        assert_eq!(editor.comments_in(&(0..text.len())), ["# z", "# above"]);
        let moved = edited(text, |it| it.remove("/c").map(drop));
        assert_eq!(moved.as_deref(), Ok("a: 'x # y' # z\nb: |\n  # text\n  more\n"));
    }

    #[test]
    fn a_mapping_that_is_emptied_goes_with_its_comments() {
        let text = "# outer\na: # head\n  # inner\n  b: 1 # tail\nc:\n  d: 2\n";
        let moved = edited(text, |it| it.relocate("/a/b", "/c", "b"));
        assert_eq!(moved.as_deref(), Ok("c:\n  d: 2\n  # inner\n  # outer\n  # head\n  b: 1 # tail\n"));
        let new = edited("a:\n  b: 1\n", |it| it.relocate("/a/b", "/c/d", "b"));
        assert_eq!(new.as_deref(), Ok("c:\n  d:\n    b: 1\n"));
    }

    #[test]
    fn blocks_of_text_are_moved_with_their_lines() {
        let text = "a:\n    x: |-\n        one\n          two\n\n        three\n    y: \"a\n      b\"\nc:\n  - d: 1\n";
        let moved = edited(text, |it| it.relocate("/a/x", "/c/0", "x")).unwrap();
        assert_eq!(
            moved,
            "a:\n    y: \"a\n      b\"\nc:\n  - d: 1\n    x: |-\n        one\n          two\n\n        three\n"
        );
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let insert = |it: &mut Editor| it.insert("/a", "c", &Piece::New(json!(2)), Spot::Last);
        assert_eq!(edited("a:\n  b: 1", insert).as_deref(), Ok("a:\n  b: 1\n  c: 2"));
        assert_eq!(edited("a:", insert).as_deref(), Ok("a:\n  c: 2"));
        assert_eq!(edited("a: {}", insert).as_deref(), Ok("a:\n  c: 2"));
        assert_eq!(edited("a: { b: 1 }", insert).as_deref(), Ok("a: { b: 1, c: 2 }"));
        let text = "a:\n  b: |\n    one\n    two";
        assert_eq!(edited(text, insert).as_deref(), Ok("a:\n  c: 2\n  b: |\n    one\n    two"));
        assert_eq!(edited("a: {}\r\nd: 1\r\n", insert).as_deref(), Ok("a:\r\n  c: 2\r\nd: 1\r\n"));
    }
}
