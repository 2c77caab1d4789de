//! Definitions of Karpenter before version 1, rewritten as those of version 1. Pure: texts go in, and texts come out.
//!
//! | what | where |
//! |---|---|
//! | where each node of a document stands | `tree.rs` |
//! | edits, each of which is refused where the text would then say anything else | `editor.rs` |
//! | what is cut out, and what is written anew | `cut.rs`, `emit.rs` |
//! | one object, and all of them | `object_editor.rs`, `file_set.rs` |
//! | the kinds | `node_pool.rs`, `provisioner.rs`, `node_class.rs` with `selectors.rs` |
//! | what is decided over all files together | `kubelet.rs` |
//! | labels and annotations | `names.rs` |
//! | fields that lint takes out of an object | `removal.rs` |
//!
//! What can not be decided, or not be written safely, is left as it is and named: [`Migration::by_hand`]. The result is read as `lint`
//! reads it, and an error that is found in it is named, too.

mod cut;
mod editor;
mod emit;
mod file_set;
mod kubelet;
mod names;
mod node_class;
mod node_pool;
mod object_editor;
mod provisioner;
pub mod removal;
mod selectors;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::context::Context;
use super::diagnostic::Severity;
use super::document::{self, Parsed};
use super::given::GivenVariables;
use super::kinds::{Class, OLD_KINDS, classify};
use super::kustomize::{Layout, Role};
use super::roots::Roots;
use super::{Diagnostic, files, limits};
use crate::api::kustomization;
use crate::api::source::{SourceFile, Standing};
use file_set::{EditedFile, FileSet, Object};

/// What became of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Migration {
    /// By path, in order.
    pub changed: Vec<Changed>,
    /// What was decided that somebody may want to know; in the order of files and lines.
    pub notes: Vec<Remark>,
    /// What is left to people; in the same order.
    pub by_hand: Vec<Remark>,
    /// Objects that are of version 1 now.
    pub migrated: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub path: String,
    pub before: String,
    pub after: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub file: String,
    /// As the file is, from 1.
    pub line: usize,
    /// Once the change is written.
    pub line_after: usize,
    /// `NodePool/default`, as it is called in the file.
    pub object: Option<String>,
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Migration {
    /// What became of files that are called otherwise by the user, too.
    pub fn add(&mut self, other: Self, typed: impl Fn(&str) -> String) {
        let of_remark = |remark: Remark| Remark { file: typed(&remark.file), ..remark };
        self.changed.extend(other.changed.into_iter().map(|it| Changed { path: typed(&it.path), ..it }));
        self.notes.extend(other.notes.into_iter().map(of_remark));
        self.by_hand.extend(other.by_hand.into_iter().map(of_remark));
        self.migrated += other.migrated;
    }
}

/// Works out what the files are in version 1.
pub fn migrate(sources: &[SourceFile]) -> Migration {
    let links: Vec<&SourceFile> = sources.iter().filter(|it| matches!(it.standing, Standing::LinkTo(_))).collect();
    let mut files: Vec<&SourceFile> =
        sources.iter().filter(|it| it.has_content() && files::is_candidate(&it.path)).collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let context = Context::new(&files, &BTreeMap::new());
    let parse = |(index, source): (usize, &&SourceFile)| match text_of(source) {
        Ok(text) if context.template_of(&source.path).is_none() => document::parse(index, &Arc::from(text)),
        _ => Parsed::default(),
    };
    let parsed: Vec<Parsed> = files.par_iter().enumerate().map(parse).collect();
    let layout = Layout::of(&files, &links, &parsed, (&context.paths, &Roots::default()));
    let mut set = FileSet::default();
    let (mut notes, mut by_hand) = (Vec::new(), Vec::new());
    for (index, (source, parsed)) in files.iter().zip(&parsed).enumerate() {
        let is_skipped = context.baseline.as_deref() == Some(source.path.as_str())
            || source.standing != Standing::Own
            || !files::is_selected(&source.path, &context.paths);
        if is_skipped {
            continue;
        }
        if context.template_of(&source.path).is_some() {
            notes.extend(of_template(source));
            continue;
        }
        by_hand.extend(of_kustomization(source));
        match edited_file(source, parsed) {
            Ok(Some(edited)) => {
                by_hand.extend(unread(&edited));
                add(&mut set, edited, layout.role(index) == Role::Patch);
            }
            Ok(None) => {}
            Err(remark) => by_hand.push(*remark),
        }
    }
    kubelet::migrate(&mut set);
    (0..set.objects.len()).for_each(|object| of_kind(&mut set, object));
    finish(sources, &set, (notes, by_hand))
}

/// The text of a file that is read.
fn text_of(source: &SourceFile) -> Result<&str, &'static str> {
    if source.content.len() > limits::FILE_BYTES {
        return Err("it is larger than any file of definitions");
    }
    str::from_utf8(&source.content).map_err(|_| "it is not UTF-8 text")
}

const HINT: &str = "mend it, and migrate it then";

/// The file to be edited; or why one that has to be is left alone.
fn edited_file(source: &SourceFile, parsed: &Parsed) -> Result<Option<EditedFile>, Box<Remark>> {
    let left = |line: usize, why: &str, hint: &str| {
        let message = format!("the file is left as it is: {why}");
        let (file, hint) = (source.path.clone(), Some(hint.to_owned()));
        Err(Box::new(Remark { file, line, line_after: line, object: None, message, hint }))
    };
    let text = match text_of(source) {
        Ok(text) if may_be_ours(text) => text,
        Ok(_) => return Ok(None),
        Err(why) if is_old(&String::from_utf8_lossy(&source.content)) => return left(1, why, HINT),
        Err(_) => return Ok(None),
    };
    let broken = parsed.findings.iter().find(|it| it.severity == Severity::Error);
    match broken {
        None => match EditedFile::of(&source.path, without_mark(text)) {
            None if is_old(text) => left(1, "it is written in a form that is not known here", HINT),
            edited => Ok(edited),
        },
        Some(finding) if is_old(text) => {
            left(finding.span.line, &finding.message, finding.hint.as_deref().unwrap_or(HINT))
        }
        Some(_) => Ok(None),
    }
}

/// What stands in the template of a chart is no YAML before it is rendered.
fn of_template(source: &SourceFile) -> Option<Remark> {
    let line = text_of(source).ok()?.lines().position(is_old)? + 1;
    let message = "a template of a Helm chart is not read: rewrite it by hand; `helm template CHART | cutlist migrate -` shows what comes out \
                   of it";
    let (file, message) = (source.path.clone(), message.to_owned());
    Some(Remark { file, line, line_after: line, object: None, message, hint: None })
}

/// Of words that any definition has which is of interest here.
fn may_be_ours(text: &str) -> bool {
    text.contains("karpenter") || names::is_old(text)
}

fn is_old(text: &str) -> bool {
    OLD_KINDS.iter().any(|old| text.contains(old.api_version))
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

const BYTE_ORDER_MARK: char = '\u{feff}';

fn add(set: &mut FileSet, edited: EditedFile, is_patch: bool) {
    let number = set.files.len();
    for (document, root, value) in edited.values() {
        let old = match classify(value) {
            Class::Old(old) => Some(old),
            Class::Read(_) => None,
            _ => continue,
        };
        let mut object = Object::new(number, (document, root), value, old);
        object.is_partial = is_patch;
        set.objects.push(object);
    }
    set.files.push(edited);
}

/// Documents of old versions that are written in a form which is not known here.
fn unread(edited: &EditedFile) -> Vec<Remark> {
    let line_of = |text: &str| text.lines().position(is_old);
    let old = edited.unread().filter_map(|(before, text)| Some(before + line_of(text)? + 1));
    let remark = |line: usize| Remark {
        file: edited.path.clone(),
        line,
        line_after: line,
        object: None,
        message: "the document is left as it is: it is written in a form that can not be changed safely".to_owned(),
        hint: Some("write it with plain keys, and migrate it then".to_owned()),
    };
    old.map(remark).collect()
}

fn of_kind(set: &mut FileSet, object: usize) {
    let old = set.objects.get(object).and_then(|object| object.old);
    set.with(object, |object| {
        match old.map(|old| old.kind) {
            Some("NodePool") => node_pool::migrate(object),
            Some("Provisioner") => provisioner::migrate(object),
            Some("EC2NodeClass") => node_class::migrate(object),
            Some("AWSNodeTemplate") => node_class::migrate_template(object),
            Some(kind) => object.by_hand(
                "/kind",
                format!("a {kind} is left as it is: controllers make them"),
                "remove it from the repository",
            ),
            None => {}
        }
        names::migrate(object);
    });
}

/// Patches and other parts of a kustomization may name a version.
fn of_kustomization(source: &SourceFile) -> Vec<Remark> {
    let Ok(text) = text_of(source) else { return Vec::new() };
    if !kustomization::is_file(&source.path) {
        return Vec::new();
    }
    let code = |line: &str| line.split(" #").next().unwrap_or(line).trim_start().to_owned();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, code(line)));
    let old = lines.filter_map(|(line, text)| {
        let old = OLD_KINDS.iter().find(|old| !text.starts_with('#') && text.contains(old.api_version))?;
        Some(Remark {
            file: source.path.clone(),
            line,
            line_after: line,
            object: None,
            message: format!("the kustomization names {}: what stands in it is left as it is", old.api_version),
            hint: Some(format!("write what is patched there as it is in v1: {}", old.now)),
        })
    });
    old.collect()
}

fn finish(sources: &[SourceFile], set: &FileSet, (mut notes, mut by_hand): (Vec<Remark>, Vec<Remark>)) -> Migration {
    let mut after = sources.to_vec();
    let places: BTreeMap<String, usize> = after
        .iter()
        .enumerate()
        .filter(|(_, it)| it.has_content())
        .map(|(index, it)| (it.path.clone(), index))
        .collect();
    let mut changed = Vec::new();
    for edited in &set.files {
        let text = edited.after();
        let source = places.get(&edited.path).and_then(|index| after.get_mut(*index));
        if let Some(source) = source.filter(|_| text != edited.before) {
            let mark = if source.content.starts_with(BYTE_ORDER_MARK.to_string().as_bytes()) { "\u{feff}" } else { "" };
            let (before, text) = (format!("{mark}{}", edited.before), format!("{mark}{text}"));
            source.content = text.clone().into_bytes();
            changed.push(Changed { path: edited.path.clone(), before, after: text });
        }
    }
    let (of_objects, said) = set.remarks();
    notes.extend(of_objects);
    by_hand.extend(said);
    if !changed.is_empty() {
        by_hand.extend(refused(&after, &changed, set));
    }
    let order = |one: &Remark, other: &Remark| {
        (&one.file, one.line, &one.message).cmp(&(&other.file, other.line, &other.message))
    };
    notes.sort_by(order);
    by_hand.sort_by(order);
    Migration { changed, notes, by_hand, migrated: set.migrated() }
}

/// Errors that lint finds in what was made. They were there before, mostly, in a version that nobody checks any more.
fn refused(after: &[SourceFile], changed: &[Changed], set: &FileSet) -> Vec<Remark> {
    let definitions = super::lint(after, &GivenVariables::default());
    let of_file: BTreeMap<&str, &Changed> = changed.iter().map(|it| (it.path.as_str(), it)).collect();
    let is_new = |it: &&Diagnostic| {
        let label = it.object.as_deref().unwrap_or_default();
        it.severity == Severity::Error
            && of_file.contains_key(it.file.as_str())
            && !set.is_left_by_hand(&it.file, label)
            && !OLD_VERSION_CODES.contains(&it.code.as_str())
    };
    let mut lines = BTreeSet::new();
    let errors =
        definitions.diagnostics.iter().filter(is_new).filter(|it| lines.insert((&it.file, it.span.line, &it.message)));
    let remark = |it: &Diagnostic| {
        let texts = of_file.get(it.file.as_str());
        let line = texts.map_or(it.span.line, |file| line_before(file, it.span.line));
        Remark {
            file: it.file.clone(),
            line,
            line_after: it.span.line,
            object: it.object.clone(),
            message: format!("lint refuses what is made of it: {} ({})", it.message, it.code),
            hint: it.hint.clone().or_else(|| Some(format!("`cutlist explain {}` says more", it.code))),
        }
    };
    errors.map(remark).collect()
}

const OLD_VERSION_CODES: [&str; 1] = [super::rules::kinds::OLD_VERSION.code];

/// Where a line was before, as far as one like it was there: the one that is as far from the nearest end.
fn line_before(file: &Changed, line: usize) -> usize {
    let (before, after): (Vec<&str>, Vec<&str>) = (file.before.lines().collect(), file.after.lines().collect());
    let Some(text) = after.get(line.saturating_sub(1)).map(|it| it.trim()) else { return line };
    let earlier = after.iter().take(line.saturating_sub(1)).filter(|it| it.trim() == text).count();
    let alike = before.iter().enumerate().filter(|(_, it)| it.trim() == text).map(|(index, _)| index + 1);
    let alike: Vec<usize> = alike.collect();
    alike.get(earlier).or(alike.last()).copied().unwrap_or_else(|| line.min(before.len().max(1)))
}
