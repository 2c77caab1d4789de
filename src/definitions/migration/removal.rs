//! Fields that are taken out of one object, and all else stays: comments, too, whatever they are about.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use super::editor::Editor;
use super::tree::{self, Content, Node};
use crate::definitions::diagnostic::{Fix, Span};
use crate::definitions::document::{Document, spans};

/// What to write for lines of the file so that the object is without these fields; `None` where none of them can be taken out safely. A
/// mapping or list that has nothing else goes with them.
pub fn fix(document: &Document, pointers: &[String]) -> Option<Fix> {
    let stands_here = |pointer: &String| document.file_of(pointer) == document.file;
    let root = document.spans.get(&document.root).filter(|_| pointers.iter().all(stands_here))?;
    // The object alone: it may be one of thousands in a list.
    let text = &document.text;
    let own = root.value.start_byte..end_of(text, root.end);
    let before = text.get(tree::line_start(text, own.start)..own.start)?;
    let is_blank = before.bytes().all(|byte| matches!(byte, b' ' | b'-'));
    let blanks = if is_blank { " ".repeat(before.len()) } else { String::new() };
    let written = format!("{blanks}{}", text.get(own.clone())?);
    let mut editor = Editor::of(&written)?;
    // What stands beside a dash, or begins a file, stays there.
    let is_alone = is_blank && !before.contains('-');
    let head = if is_alone { String::new() } else { head(editor.tree(), &written)?.to_owned() };
    take_out(&mut editor, pointers)?;
    let after = editor.text().strip_prefix(&head)?;
    let (range, text_there) = difference(written.get(head.len()..)?, after);
    let shift = own.start - blanks.len() + head.len();
    let (start_byte, end_byte) = (shift + range.start, shift + range.end);
    let line = root.value.line + text.get(own.start.min(start_byte)..start_byte)?.matches('\n').count();
    let of_line = text.get(tree::line_start(text, start_byte)..start_byte)?;
    let column = of_line.trim_start_matches('\u{feff}').chars().count() + 1;
    Some(Fix { span: Span { line, column, start_byte, end_byte }, text: text_there.to_owned() })
}

/// The end of the line, where nothing else stands there: a line goes with its end.
fn end_of(text: &str, end: usize) -> usize {
    let of_line = tree::line_end(text, end);
    let rest = text.get(end..of_line).unwrap_or_default().trim_start();
    if rest.is_empty() || rest.starts_with('#') { of_line } else { end }
}

/// What the object begins with.
fn head<'t>(tree: &Node, text: &'t str) -> Option<&'t str> {
    if tree.is_flow() {
        return text.get(..=tree.start);
    }
    text.get(..tree.entries().first()?.key.end)
}

fn take_out(editor: &mut Editor, pointers: &[String]) -> Option<()> {
    let pointers = with_what_is_emptied(editor.tree(), pointers);
    let mut meant = editor.value().clone();
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    // Items of a list from the last: those before keep their numbers.
    for pointer in pointers.iter().rev() {
        let Some(range) = range_of(editor, pointer, &pointers) else { continue };
        remove(&mut meant, pointer)?;
        edits.push((range, String::new()));
    }
    if edits.is_empty() { None } else { editor.put(&edits, meant).ok() }
}

/// With the mapping or list in place of all that it has. In the order of the items of a list.
fn with_what_is_emptied(tree: &Node, pointers: &[String]) -> Vec<String> {
    let own: BTreeSet<&str> = pointers.iter().map(String::as_str).collect();
    let mut with: Vec<String> = Vec::new();
    for pointer in pointers {
        let around = spans::parent(pointer);
        let count = pointers.iter().filter(|other| spans::parent(other) == around).count();
        let is_emptied = around.matches('/').count() > 1
            && !own.contains(around)
            && tree.at(around).is_some_and(|node| children(node).len() == count);
        let pointer = if is_emptied { around } else { pointer.as_str() };
        if !with.iter().any(|known| known == pointer) {
            with.push(pointer.to_owned());
        }
    }
    with
}

/// What is cut out for one of them; `None` where it stands elsewhere, or something would be lost with it.
fn range_of(editor: &Editor, pointer: &str, all: &[String]) -> Option<Range<usize>> {
    let (text, around) = (editor.text(), spans::parent(pointer));
    let parent = editor.tree().at(around)?;
    let children = children(parent);
    let index = children.iter().position(|(name, _)| *name == spans::last(pointer))?;
    let (_, own) = children.get(index)?;
    let range = if parent.is_flow() {
        let stays = |(name, _): &&(String, Range<usize>)| !all.contains(&spans::join(around, name));
        let before = children.get(..index)?.iter().rev().find(stays);
        match (before, children.get(index + 1)) {
            // What stands between those that go goes with the later one.
            (Some(_), _) => children.get(index.checked_sub(1)?)?.1.end..own.end,
            (None, Some((_, next))) => own.start..next.start,
            (None, None) => own.clone(),
        }
    } else {
        let is_item = matches!(parent.content, Content::Sequence { .. });
        let line = tree::line_start(text, own.start);
        let dashes = text.get(line..own.start)?.matches('-').count();
        tree::column_behind_dashes(text, own.start).filter(|_| dashes == usize::from(is_item))?;
        let end = tree::line_end(text, own.end);
        line..end
    };
    editor.comments_in(&range).is_empty().then_some(range)
}

/// Names, or numbers, and where each stands with its key.
fn children(node: &Node) -> Vec<(String, Range<usize>)> {
    match &node.content {
        Content::Mapping { entries, .. } => {
            let range = |entry: &tree::Entry| entry.key.start..entry.value.end.max(entry.key.end);
            entries.iter().map(|entry| (entry.name.clone(), range(entry))).collect()
        }
        Content::Sequence { items, .. } => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item.start..item.end)).collect()
        }
        Content::Scalar | Content::Alias => Vec::new(),
    }
}

fn remove(value: &mut Value, pointer: &str) -> Option<Value> {
    let name = spans::last(pointer);
    match value.pointer_mut(spans::parent(pointer))? {
        Value::Object(members) => members.shift_remove(&name),
        Value::Array(items) => name.parse().ok().filter(|index| *index < items.len()).map(|index| items.remove(index)),
        _ => None,
    }
}

/// The whole lines in which two texts differ: of the first where they stand, of the second what they are.
fn difference<'a>(one: &str, other: &'a str) -> (Range<usize>, &'a str) {
    let same: usize = one
        .split_inclusive('\n')
        .zip(other.split_inclusive('\n'))
        .take_while(|(one, other)| one == other)
        .map(|(line, _)| line.len())
        .sum();
    let (rest, other_rest) = (one.get(same..).unwrap_or_default(), other.get(same..).unwrap_or_default());
    let same_at_end: usize = rest
        .rsplit('\n')
        .zip(other_rest.rsplit('\n'))
        .take_while(|(one, other)| one == other)
        .map(|(line, _)| line.len() + 1)
        .sum();
    let same_at_end = same_at_end.saturating_sub(1).min(rest.len()).min(other_rest.len());
    let end = one.len() - same_at_end;
    (same..end, other.get(same..other.len() - same_at_end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::api::cluster_fields;
    use crate::definitions::{apply_fixes, document};

    /// The text without what a cluster sets, as far as it can be taken out.
    fn without(text: &str) -> String {
        let read = document::parse(0, &Arc::from(text));
        let fixes: Vec<_> =
            read.documents.iter().filter_map(|it| super::fix(it, &cluster_fields::found(&it.value))).collect();
        for fix in &fixes {
            let before = text.get(..fix.span.start_byte).unwrap();
            let column = before.rsplit('\n').next().unwrap().trim_start_matches('\u{feff}').chars().count() + 1;
            assert_eq!((fix.span.line, fix.span.column), (before.matches('\n').count() + 1, column), "{text}");
        }
        apply_fixes(text, &fixes.iter().collect::<Vec<_>>())
    }

    const HASH: &str = "karpenter.sh/nodepool-hash";

    #[test]
    fn what_a_cluster_sets_is_taken_out_and_nothing_else() {
        let block = format!(
            "# Ours.\nmetadata:\n  annotations:\n    # Of the team.\n    team: shop # and others\n    {HASH}: \"1\"\n  \
             # It has a name.\n  name: a\n  uid: x\n  resourceVersion: '7'\n  managedFields:\n  - manager: kubectl\n    \
             fieldsV1:\n      f:spec: {{}}\n\n# What is asked for.\nspec: {{}}\nstatus:\n  nodes: 3\n# The end.\n"
        );
        let meant = "# Ours.\nmetadata:\n  annotations:\n    # Of the team.\n    team: shop # and others\n  \
                     # It has a name.\n  name: a\n\n# What is asked for.\nspec: {}\n# The end.\n";
        assert_eq!(without(&block), meant);
        assert_eq!(without(&block.replace('\n', "\r\n")), meant.replace('\n', "\r\n"));
        assert_eq!(without(&format!("\u{feff}{block}")), format!("\u{feff}{meant}"));
        for (text, meant) in [
            // What has nothing else goes with it.
            ("metadata:\n  annotations:\n    HASH: |\n      {}\n\n  name: a\n", "metadata:\n\n  name: a\n"),
            ("metadata: {name: a, annotations: {HASH: \"1\"}}\n", "metadata: {name: a}\n"),
            ("metadata:\n  finalizers:\n  - karpenter.sh/termination\n  name: a\n", "metadata:\n  name: a\n"),
            (
                "metadata:\n  finalizers:\n  - keep.me/x\n  - karpenter.sh/termination\n",
                "metadata:\n  finalizers:\n  - keep.me/x\n",
            ),
            (
                "metadata: {finalizers: [karpenter.sh/termination, keep.me/x]}\n",
                "metadata: {finalizers: [keep.me/x]}\n",
            ),
            ("metadata: {uid: x, name: a, generation: 1, selfLink: y}\n", "metadata: {name: a}\n"),
            ("metadata: {uid: x, generation: 1, name: a}\nstatus: {}", "metadata: {name: a}\n"),
            ("metadata: {name: a, uid: x, labels: {b: c}}\n", "metadata: {name: a, labels: {b: c}}\n"),
            (
                "{\n  \"metadata\": {\n    \"name\": \"a\",\n    \"uid\": \"x\"\n  },\n  \"status\": {\"nodes\": 1}\n}\n",
                "{\n  \"metadata\": {\n    \"name\": \"a\"\n  }\n}\n",
            ),
            // Of several documents, and of lists.
            (
                "---\nmetadata:\n  uid: x\n  name: a\n---\nstatus: {}\nspec: {}\n",
                "---\nmetadata:\n  name: a\n---\nspec: {}\n",
            ),
            (
                "kind: List\nitems:\n- metadata:\n    name: a\n    uid: x\n  status:\n    nodes: 3\n- metadata: {uid: y, name: b}\n",
                "kind: List\nitems:\n- metadata:\n    name: a\n- metadata: {name: b}\n",
            ),
        ] {
            assert_eq!(without(&text.replace("HASH", HASH)), meant, "{text}");
        }
    }

    #[test]
    fn what_would_take_something_else_along_is_left_to_people() {
        for text in [
            // A comment, an anchor that others name, what comes from elsewhere, what stands beside a dash, and what would be a null.
            "metadata:\n  name: a\n  uid: x # of the old cluster\n",
            "metadata:\n  name: a\n  annotations:\n    # Why?\n    HASH: a\n",
            "metadata:\n  uid: &x a\n  name: *x\n",
            "metadata: &m {name: a}\nstatus: &s {a: b}\nspec: {<<: *s}\n",
            "kind: List\nitems:\n- status: {}\n  metadata: {name: a}\n",
            "metadata:\n  uid: x\n",
        ] {
            let text = text.replace("HASH", HASH);
            assert_eq!(without(&text), text);
        }
        let some = "metadata:\n  name: a\n  uid: x # of the old cluster\n  generation: 1\n";
        assert_eq!(without(some), "metadata:\n  name: a\n  uid: x # of the old cluster\n");
    }
}
