//! Patches: where they are written, and which objects they are for.

use std::sync::Arc;

use serde_json::Value;

use super::builder::{Builder, not_there};
use super::layout::Target;
use super::select::Selector;
use super::weight::weight;
use super::{DEFAULT_NAMESPACE, Item, merge, operations};
use crate::definitions::diagnostic::Severity;
use crate::definitions::document::{
    self, Document, Origin, Parsed, spans::Node, spans::SpanIndex, spans::WrittenSpans,
};
use crate::definitions::findings::{Finding, FindingPlace};
use crate::definitions::kinds::{Class, Kind, classify};
use crate::definitions::rules::kustomize as rules;
use crate::definitions::suggest::{self, Hint};

/// An entry of a list of patches.
pub(super) struct Found<'d> {
    kustomization: &'d Document,
    /// Of the entry.
    pointer: String,
    documents: Vec<Document>,
    target: Option<Selector>,
    may_rename: bool,
    may_change_kind: bool,
}

/// The entries of one field, without those in which something is wrong. Their files are named from the folder `around`.
pub(super) fn of<'d>(builder: &mut Builder<'_>, around: &str, document: &'d Document, field: &str) -> Vec<Found<'d>> {
    let entries: Vec<(String, &Value)> = document.items(&format!("/{field}")).collect();
    entries.into_iter().filter_map(|(pointer, entry)| found(builder, around, document, pointer, entry)).collect()
}

fn found<'d>(
    builder: &mut Builder<'_>,
    around: &str,
    document: &'d Document,
    pointer: String,
    entry: &Value,
) -> Option<Found<'d>> {
    let text = |member: &str| entry.get(member).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let problem = |builder: &mut Builder<'_>, at: &str, message: String| {
        builder.findings.push(Finding::at(&rules::INVALID, document, at, FindingPlace::Value, message));
    };
    let documents = match (entry.as_str(), text("path"), text("patch")) {
        (Some(text), ..) if text.contains('\n') || text.contains(": ") => inline(builder, document, &pointer, text),
        (Some(path), ..) => from_file(builder, around, document, &pointer, path),
        (None, Some(path), None) => from_file(builder, around, document, &format!("{pointer}/path"), path),
        (None, None, Some(text)) => inline(builder, document, &format!("{pointer}/patch"), text),
        (None, Some(_), Some(_)) => {
            problem(builder, &pointer, "a patch has either `path` or `patch`".to_owned());
            None
        }
        (None, None, None) => {
            problem(builder, &pointer, "a patch has `path` or `patch`".to_owned());
            None
        }
    }?;
    if builder.is_too_much() {
        return None;
    }
    let selector = entry.get("target").filter(|target| !target.is_null()).map(Selector::of).transpose();
    let target = match selector {
        Ok(target) => {
            builder.may_take(target.as_ref().map_or(0, Selector::bytes));
            target
        }
        Err((field, message)) => {
            problem(builder, &format!("{pointer}/target/{field}"), message);
            return None;
        }
    };
    let is_nothing = |it: &Document| it.value.is_null() || it.value.as_array().is_some_and(Vec::is_empty);
    if documents.iter().all(is_nothing) {
        let at = ["path", "patch"].into_iter().find(|member| entry.get(*member).is_some());
        let at = at.map_or_else(|| pointer.clone(), |member| format!("{pointer}/{member}"));
        let finding = Finding::at(&rules::INVALID, document, &at, FindingPlace::Value, "there is nothing in the patch");
        builder.findings.push(finding.hint("remove the entry: the kustomization can not be built with it"));
        return None;
    }
    // What the entry does is gone through all the same: it may hold more mistakes.
    if target.is_some() && !pointer.starts_with("/patchesJson6902/") {
        builder.findings.extend(not_told_apart(&documents));
    }
    let option = |name: &str| entry.pointer(&format!("/options/{name}")) == Some(&Value::Bool(true));
    let (may_rename, may_change_kind) = (option("allowNameChange"), option("allowKindChange"));
    Some(Found { kustomization: document, pointer, documents, target, may_rename, may_change_kind })
}

fn from_file(
    builder: &mut Builder<'_>,
    around: &str,
    document: &Document,
    pointer: &str,
    path: &str,
) -> Option<Vec<Document>> {
    match builder.layout.target(around, path) {
        Target::File(file) => {
            builder.used.insert(file);
            let first = builder.parsed.get(file).and_then(|parsed| parsed.documents.first());
            if first.is_some_and(|first| is_json_in_vain(&first.text)) {
                builder.findings.push(no_json(document, pointer));
                return None;
            }
            // What is wrong in it is said where it stands.
            let is_read = |parsed: &&Parsed| !parsed.documents.is_empty() || parsed.all().next().is_none();
            builder.parsed.get(file).filter(is_read).map(|parsed| parsed.documents.clone())
        }
        Target::Remote | Target::Missing | Target::Folder | Target::Kustomization(_) => {
            builder.findings.push(not_there(document, pointer, path));
            None
        }
    }
}

/// What kustomize reads a patch by, before it looks for objects: of a part of an object it wants kind and name, whatever the target says, and one
/// part alone.
fn not_told_apart(documents: &[Document]) -> Option<Finding> {
    let mut parts = documents.iter().filter(|it| it.value.is_object());
    let is_named = |part: &&Document| {
        let name = part.value.pointer("/metadata/name").filter(|name| !name.is_null());
        let kind = part.str("/kind").unwrap_or_default();
        !kind.is_empty() && name.is_some_and(|name| name.as_str() != Some(""))
    };
    if let Some(part) = parts.clone().find(|part| !is_named(part)) {
        let message = "a patch that is a part of an object has `kind` and `metadata.name`, also where a `target` says what it is for";
        let finding = Finding::at(&rules::INVALID, part, "", FindingPlace::Key, message);
        return Some(
            finding.hint("add both; with a target any name will do. The kustomization can not be built without them"),
        );
    }
    let second = parts.nth(1)?;
    let message = "with a `target` there is one patch in an entry: the kustomization can not be built";
    let finding = Finding::at(&rules::INVALID, second, "", FindingPlace::Key, message);
    Some(finding.hint("make an entry of its own of each"))
}

/// Whether kustomize takes the text for JSON, which it is not: it does so with all that begins with a bracket.
fn is_json_in_vain(text: &str) -> bool {
    text.starts_with('[') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
}

fn no_json(document: &Document, pointer: &str) -> Finding {
    let message = "kustomize takes a patch that begins with `[` for JSON, and this is none";
    let finding = Finding::at(&rules::INVALID, document, pointer, FindingPlace::Value, message);
    finding.hint("begin each operation with `- `, or put every key and text in double quotes: the kustomization can not be built")
}

/// A patch that is text in the kustomization: with its places there, if it is written as a block.
pub(super) fn inline(
    builder: &mut Builder<'_>,
    document: &Document,
    pointer: &str,
    text: &str,
) -> Option<Vec<Document>> {
    if is_json_in_vain(text) {
        builder.findings.push(no_json(document, pointer));
        return None;
    }
    let parsed = document::parse(document.file, &Arc::from(text));
    if let Some(error) = parsed.all().find(|finding| finding.rule.severity == Severity::Error) {
        let message = format!("the patch can not be read: {}", error.message);
        builder.findings.push(Finding::at(&rules::INVALID, document, pointer, FindingPlace::Value, message));
        return None;
    }
    let origin = document.origin(pointer);
    if let Some(in_place) = block(&origin, text) {
        let is_same = in_place.len() == parsed.documents.len()
            && in_place.iter().zip(&parsed.documents).all(|(one, other)| one.value == other.value);
        if is_same {
            return Some(in_place);
        }
    }
    let mut spans = WrittenSpans::default();
    let value = origin.spans.value(&origin.root);
    spans.add("", Node { key: None, value, end: value.end_byte, plain: false, is_alias: false }, None);
    let spans = Arc::new(SpanIndex::from(spans));
    let placed = |it: Document| {
        // Where it is known what stands for each value.
        let it = if it.value.is_array() { it.read_by_kubectl() } else { it };
        Document {
            spans: Arc::clone(&spans),
            text: Arc::clone(&origin.text),
            ambiguous: Vec::new(),
            root: String::new(),
            ..it
        }
    };
    Some(parsed.documents.into_iter().map(placed).collect())
}

/// Reads a block of lines where it stands. Everything around it is blanked, and lines that are indented alike are a
/// document like any other; what stands between two documents does so at the begin of a line.
fn block(origin: &Origin, text: &str) -> Option<Vec<Document>> {
    let start = origin.spans.value(&origin.root).start_byte;
    let rest = origin.text.get(start..)?;
    let begin = if rest.starts_with('|') {
        start + rest.find('\n')? + 1
    } else {
        origin.text.get(..start)?.rfind('\n').map_or(0, |newline| newline + 1)
    };
    let lines = text.lines().count();
    let length: usize = origin.text.get(begin..)?.split_inclusive('\n').take(lines).map(str::len).sum();
    let block = origin.text.get(begin..begin + length)?;
    let blank = |text: &str| text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect::<String>();
    let block: String = block.split_inclusive('\n').map(separator_first).collect();
    let masked: Arc<str> = format!("{}{block}", blank(origin.text.get(..begin)?)).into();
    let parsed = document::parse(origin.file, &masked);
    let documents = parsed.documents.into_iter();
    Some(documents.map(|it| Document { text: Arc::clone(&origin.text), ..it }).collect())
}

/// A line of as many bytes; in one that separates two documents the spaces before the dashes come after them.
fn separator_first(line: &str) -> String {
    let indented = line.trim_start_matches(' ');
    match indented.strip_prefix("---") {
        Some(rest) if rest.trim().is_empty() => format!("---{}{rest}", " ".repeat(line.len() - indented.len())),
        _ => line.to_owned(),
    }
}

/// Applies an entry to all objects that it is for.
pub(super) fn apply(builder: &mut Builder<'_>, found: &Found<'_>, items: &mut Vec<Item>) {
    for patch in &found.documents {
        let chosen: Vec<usize> = match &found.target {
            Some(target) => (0..items.len()).filter(|it| items.get(*it).is_some_and(|it| target.fits(it))).collect(),
            None => (0..items.len()).filter(|it| items.get(*it).is_some_and(|it| is_named_by(it, patch))).collect(),
        };
        if chosen.is_empty() {
            // What it is for may be in what is not read, which is said there.
            if !builder.may_hold_more() {
                builder.findings.extend(without_object(found, patch, items));
            }
            continue;
        }
        let patched = chosen.iter().filter_map(|index| items.get(*index)).map(|item| weight(&item.document.value));
        if !builder.may_take(patched.sum::<usize>() + chosen.len() * weight(&patch.value)) {
            return;
        }
        match &*patch.value {
            Value::Array(_) if found.target.is_some() => {
                // So kustomize reads operations, wherever they are written.
                let patch = &patch.clone().read_by_kubectl();
                for index in chosen {
                    let Some(item) = items.get_mut(index) else { continue };
                    if let Err((pointer, message)) = operations::apply(item, patch) {
                        let finding = Finding::at(&rules::INVALID, patch, &pointer, FindingPlace::Value, message);
                        builder.findings.push(finding.hint(OPERATION_HINT));
                    }
                }
            }
            Value::Object(_) => merge_into(found, patch, &chosen, items),
            _ => {
                let message = "a patch is a part of an object, or a list of operations for a `target`";
                builder.findings.push(Finding::at(&rules::INVALID, patch, "", FindingPlace::Value, message));
            }
        }
    }
}

const OPERATION_HINT: &str = "the kustomization can not be built with it";

fn merge_into(found: &Found<'_>, patch: &Document, chosen: &[usize], items: &mut Vec<Item>) {
    let mut removed = Vec::new();
    for index in chosen {
        let Some(item) = items.get_mut(*index) else { continue };
        let before = item.identity();
        if !merge::apply(item, patch) {
            removed.push(*index);
            continue;
        }
        for (may, pointer) in [(found.may_rename, "/metadata/name"), (found.may_change_kind, "/kind")] {
            let value = patch.value.pointer(pointer).filter(|value| may && value.is_string());
            if let (Some(value), Some(old)) = (value, item.document.value.pointer_mut(pointer)) {
                *old = value.clone();
                item.written(pointer, patch.origin(pointer));
            }
        }
        item.remember(before);
    }
    let mut index = 0;
    items.retain(|_| {
        index += 1;
        !removed.contains(&(index - 1))
    });
}

/// Whether a patch without a target is for the object: by kind, name and namespace.
fn is_named_by(item: &Item, patch: &Document) -> bool {
    let own = (patch.str("/metadata/name").unwrap_or_default(), namespace_of(patch));
    is_of_kind_of(item, patch) && item.identities().any(|it| it == own)
}

fn is_of_kind_of(item: &Item, patch: &Document) -> bool {
    let text = |pointer: &str| patch.str(pointer).unwrap_or_default();
    item.kind() == text("/kind") && item.text("/apiVersion") == text("/apiVersion")
}

fn namespace_of(patch: &Document) -> &str {
    patch.str("/metadata/namespace").filter(|it| !it.is_empty()).unwrap_or(DEFAULT_NAMESPACE)
}

/// The namespace of an object of the kind and name, which the patch does not say.
fn other_namespace(items: &[Item], patch: &Document) -> Option<String> {
    let name = patch.str("/metadata/name")?;
    let item = items.iter().find(|item| is_of_kind_of(item, patch) && item.names().any(|it| it == name))?;
    let (_, namespace) = item.identities().filter(|(it, _)| *it == name).last()?;
    Some(format!("that of the resources is in the namespace `{namespace}`: write it under `metadata` of the patch"))
}

const NO_OBJECT_HINT: &str = "a patch changes an object of the `resources`; the kustomization can not be built";

/// What is said of a patch that is for nothing.
fn without_object(found: &Found<'_>, patch: &Document, items: &[Item]) -> Option<Finding> {
    if found.target.is_none() {
        if patch.value.is_array() {
            let message = "a list of operations needs a `target`";
            return Some(Finding::at(
                &rules::INVALID,
                found.kustomization,
                &found.pointer,
                FindingPlace::Value,
                message,
            ));
        }
        return match classify(&patch.value) {
            Class::NoObject | Class::Incomplete { .. } => {
                let message =
                    "a patch without a `target` has apiVersion, kind and metadata.name of the object it is for";
                Some(Finding::at(&rules::INVALID, patch, "", FindingPlace::Key, message))
            }
            Class::Foreign => None,
            _ => {
                let kind = patch.str("/kind").unwrap_or_default();
                let message =
                    format!("there is no {kind} `{}` for this patch", patch.str("/metadata/name").unwrap_or_default());
                let finding = Finding::at(&rules::INVALID, patch, "/metadata/name", FindingPlace::Value, message);
                Some(finding.hint(other_namespace(items, patch).unwrap_or_else(|| NO_OBJECT_HINT.to_owned())))
            }
        };
    }
    // A component is for many, some of which have what it patches.
    if found.kustomization.str("/kind") == Some("Component") {
        return None;
    }
    let pointer = format!("{}/target", found.pointer);
    let kind = found.kustomization.str(&format!("{pointer}/kind")).unwrap_or_default();
    let names = || Kind::ALL.iter().filter(|kind| kind.is_object()).map(|kind| kind.name());
    let is_ours = names().any(|name| name == kind);
    let meant = suggest::nearest(kind, names()).filter(|_| !is_ours && !kind.is_empty());
    if !is_ours && meant.is_none() {
        return None;
    }
    let message = "no object is meant by this target: the patch changes nothing";
    let finding = Finding::at(&rules::WITHOUT_EFFECT, found.kustomization, &pointer, FindingPlace::Key, message);
    Some(finding.maybe_hint(meant.map(|meant| Hint::question(&[meant]))))
}

#[cfg(test)]
mod tests {
    use crate::api::source::SourceFile;
    use crate::definitions::{GivenVariables, lint};

    /// Variables without quotes in a flow mapping are no YAML: that is what is to be mended, and not what patches it.
    #[test]
    fn what_is_in_a_broken_file_is_not_missed() {
        let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: ${CLUSTER}-general}\n";
        let kustomization = "resources: [pool.yaml]\npatches:\n- target: {kind: NodePool}\n  patch: \"- {op: remove, path: /spec/weight}\"\n\
                             - patch: \"{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {weight: 1}}\"\n";
        let files = [SourceFile::new("kustomization.yaml", kustomization), SourceFile::new("pool.yaml", pool)];
        let found = lint(&files, &GivenVariables::default()).diagnostics;
        let codes: Vec<(&str, usize)> = found.iter().map(|it| (it.code.as_str(), it.span.line)).collect();
        assert_eq!(codes, [("CL0003", 3)], "{found:?}");
        assert!(found.iter().all(|it| it.hint.as_deref().is_some_and(|hint| hint.contains("in quotes"))), "{found:?}");
    }
}
