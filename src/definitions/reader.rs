//! The pipeline over all files of a revision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::Context;
use super::diagnostic::{Severity, Span};
use super::document::{self, Document};
use super::findings::{self, Finding, Place};
use super::kinds::{Class, Kind, classify};
use super::revision::{Object, Revision};
use super::rules::{self, Check, kinds as kind_rules, reading};
use super::{Definition, Definitions, files, limits, schema, substitution, unread};
use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::{cluster_fields, settings};
use crate::api::source::SourceFile;

pub fn read(sources: &[SourceFile], variables: &BTreeMap<String, String>) -> Definitions {
    let mut sources: Vec<&SourceFile> = sources.iter().filter(|file| file.has_content() && files::is_candidate(&file.path)).collect();
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    let context = Context::of(&sources, variables);
    let mut reading = Reading { context, ..Reading::default() };
    for (index, source) in sources.iter().enumerate() {
        if files::is_selected(&source.path, &reading.context.paths) {
            reading.file(index, source);
        }
    }
    let revision = Revision { paths: sources.iter().map(|s| s.path.as_str()).collect(), objects: reading.objects };
    reading.findings.extend(reading.context.unused_paths(&sources));
    reading.findings.extend(undefined_variables(&reading.undefined));
    for rule in rules::all() {
        if let Check::Revision(check) = rule.check {
            reading.findings.extend(check(&revision));
        }
    }
    let mut definitions = typed(revision, &mut reading.findings);
    definitions.files_read = reading.files_read;
    definitions.documents_read = reading.documents_read;
    definitions.documents_skipped = reading.documents_skipped;
    definitions.diagnostics = diagnostics(reading.findings, &sources);
    definitions
}

pub fn settings_variables(sources: &[SourceFile]) -> BTreeMap<String, String> {
    let sources: Vec<&SourceFile> = sources.iter().filter(|source| source.path == settings::FILE_NAME).collect();
    Context::of(&sources, &BTreeMap::new()).variables
}

#[derive(Default)]
struct Reading {
    context: Context,
    findings: Vec<Finding>,
    objects: Vec<Object>,
    /// First finding for each variable without a value, and how often it occurs.
    undefined: BTreeMap<String, (Finding, usize)>,
    files_read: usize,
    documents_read: usize,
    documents_skipped: usize,
}

impl Reading {
    fn file(&mut self, index: usize, source: &SourceFile) {
        if self.context.templates.iter().any(|folder| source.path.starts_with(folder.as_str())) {
            let message = "a template of a Helm chart is not read";
            let finding = Finding::at_span(&reading::TEMPLATE, index, Span::start(), message);
            self.findings.push(finding.hint("lint what it renders: helm template CHART > rendered.yaml"));
            return;
        }
        self.files_read += 1;
        let text = match text_of(index, source) {
            Ok(text) => text,
            Err(finding) => return self.findings.push(*finding),
        };
        let parsed = document::parse(index, &text);
        self.documents_read += parsed.count;
        let mut found = parsed.findings;
        let mut no_object = None;
        let documents = parsed.documents.len();
        for document in parsed.documents {
            match classify(&document.value) {
                Class::NoObject => {
                    self.documents_skipped += 1;
                    let finding =
                        unread::no_settings(&document, &source.path).unwrap_or_else(|| unread::no_object(&document));
                    if std::ptr::eq(finding.rule, &kind_rules::NO_OBJECT) {
                        no_object.get_or_insert(finding);
                    } else {
                        found.push(finding);
                    }
                }
                class => self.document(class, document, source, &mut found),
            }
        }
        // One note for a file, and none where a file has objects as well, or findings anyway.
        if let Some(note) = no_object
            && documents == 1
            && found.is_empty()
            && !files::is_of_another_tool(&source.path)
        {
            found.push(note);
        }
        if found.len() > limits::FILE_FINDINGS {
            let more = found.len() - limits::FILE_FINDINGS;
            found.sort_by_key(|finding| (finding.rule.severity, finding.span.line, finding.span.column));
            found.truncate(limits::FILE_FINDINGS);
            found.push(Finding::at_span(&reading::TOO_MANY, index, Span::start(), format!("{more} more findings")));
        }
        self.findings.extend(found);
    }

    fn document(&mut self, class: Class, mut document: Document, source: &SourceFile, found: &mut Vec<Finding>) {
        match class {
            Class::Read(kind) => {
                if let Some(finding) = unread::misplaced(kind, &document, &source.path) {
                    self.documents_skipped += 1;
                    return found.push(finding);
                }
                let mut own = Vec::new();
                if kind.is_object() {
                    let substituted = substitution::apply(&mut document, &self.context.variables);
                    self.misses(&document, substituted, &mut own);
                }
                own.extend(ambiguous(&document));
                if kind.is_object() {
                    own.extend(unread::set_by_cluster(&document));
                }
                own.extend(schema::check(kind, &mut document));
                for rule in rules::all() {
                    if let Check::Document(kinds, check) = rule.check
                        && kinds.contains(&kind)
                    {
                        own.extend(check(&document));
                    }
                }
                let usable = !document.broken && !own.iter().any(|f| f.rule.severity == Severity::Error);
                let staged = self.context.staged.contains(&source.path);
                self.objects.push(Object { kind, document, usable, staged });
                found.extend(own);
            }
            Class::Foreign => {
                self.documents_skipped += 1;
                found.extend(unread::no_settings(&document, &source.path));
                found.extend(schema::unknown_fields_of_workload(&document));
            }
            Class::Old(old) => found.extend(unread::outdated(old, &document)),
            Class::Unread { note } => {
                self.documents_skipped += 1;
                found.push(Finding::at(&kind_rules::UNKNOWN_KIND, &document, "/kind", Place::Value, note));
            }
            Class::Unknown { meant } => {
                self.documents_skipped += 1;
                found.push(unread::unknown(&document, meant));
            }
            Class::Incomplete { missing } => {
                if files::is_of_another_tool(&source.path) {
                    self.documents_skipped += 1;
                } else {
                    found.push(unread::incomplete(missing, &document));
                }
            }
            Class::NoObject => {}
        }
    }

    fn misses(&mut self, document: &Document, substituted: substitution::Substituted, found: &mut Vec<Finding>) {
        for (name, pointer) in substituted.undefined {
            let entry = self.undefined.entry(name.clone());
            let finding = || {
                let message = format!("`${{{name}}}` has no value: left as written");
                let mut finding = Finding::at(&reading::UNDEFINED_VARIABLE, document, &pointer, Place::Value, message);
                finding.span = document.occurrence(&pointer, &format!("${{{name}}}")).unwrap_or(finding.span);
                finding
            };
            entry.or_insert_with(|| (finding(), 0)).1 += 1;
        }
        for (form, pointer) in substituted.unsupported {
            let message = format!("`{form}` is not a form of substitution that is supported: left as written");
            let mut finding = Finding::at(&reading::SUBSTITUTION, document, &pointer, Place::Value, message);
            finding.span = document.occurrence(&pointer, &form).unwrap_or(finding.span);
            let hint = format!(
                "if it is for a shell, write `${form}`, or annotate the object with `{}: disabled`",
                substitution::SWITCH
            );
            found.push(finding.hint(hint));
        }
    }
}

/// The file as text.
fn text_of(index: usize, source: &SourceFile) -> Result<Arc<str>, Box<Finding>> {
    let content = &source.content;
    if content.len() > limits::FILE_BYTES {
        let message =
            format!("the file has {} bytes, more than the {} that are read", content.len(), limits::FILE_BYTES);
        return Err(Box::new(Finding::at_span(&reading::TOO_LARGE, index, Span::start(), message)));
    }
    str::from_utf8(content).map(Into::into).map_err(|error| {
        let before = &content[..error.valid_up_to()];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let span = Span { line, column, start_byte: before.len(), end_byte: before.len() };
        let utf16 = content.starts_with(&[0xff, 0xfe]) || content.starts_with(&[0xfe, 0xff]);
        let message = if utf16 { "the file is UTF-16, not UTF-8" } else { "the file is not UTF-8 text" };
        Box::new(Finding::at_span(&reading::ENCODING, index, span, message).hint("save it as UTF-8"))
    })
}

fn ambiguous(document: &Document) -> Vec<Finding> {
    let finding = |(pointer, what): &(String, document::Disagreement)| {
        let written = document.written(pointer).unwrap_or_default();
        let message = format!("`{written}` {}", what.meanings());
        Finding::at(&reading::AMBIGUOUS, document, pointer, Place::Value, message).hint(what.instead(&written))
    };
    document.ambiguous.iter().map(finding).collect()
}

fn undefined_variables(undefined: &BTreeMap<String, (Finding, usize)>) -> Vec<Finding> {
    let finding = |(name, (finding, places)): (&String, &(Finding, usize))| {
        let mut finding = finding.clone();
        if *places > 1 {
            finding.message.push_str(&format!(" ({places} places)"));
        }
        finding.hint(format!("give it with --variable {name}=VALUE, in cutlist.yaml, or in the environment"))
    };
    undefined.iter().map(finding).collect()
}

/// Values of the documents in which no error was found.
fn typed(revision: Revision<'_>, findings: &mut Vec<Finding>) -> Definitions {
    let mut definitions = Definitions { definitions_found: revision.objects.len(), ..Definitions::default() };
    // An error of a rule over all documents makes those it names unusable as well.
    let refused: BTreeSet<(usize, String)> = findings
        .iter()
        .filter(|finding| finding.rule.severity == Severity::Error && matches!(finding.rule.check, Check::Revision(_)))
        .filter_map(|finding| Some((finding.file, finding.object.clone()?)))
        .collect();
    for object in revision.objects.into_iter().filter(|object| object.usable && !object.staged) {
        let mut document = object.document;
        cluster_fields::remove_from_metadata(&mut document.value);
        if document.name().is_some_and(|name| refused.contains(&(document.file, name))) {
            continue;
        }
        let path = revision.paths.get(document.file).copied().unwrap_or_default();
        let result = match object.kind {
            Kind::NodePool => definition(&document, path, "").map(|value| definitions.node_pools.push(value)),
            Kind::EC2NodeClass => definition(&document, path, "").map(|value| definitions.node_classes.push(value)),
            Kind::NodeOverlay => definition(&document, path, "").map(|value| definitions.node_overlays.push(value)),
            Kind::CapacityBuffer => {
                definition(&document, path, "").map(|value| definitions.capacity_buffers.push(value))
            }
            Kind::PodTemplate => definition(&document, path, "").map(|value| definitions.pod_templates.push(value)),
            Kind::DisruptionBudget => {
                definition(&document, path, "").map(|value| definitions.disruption_budgets.push(value))
            }
            Kind::Settings if document.value.get("spec").is_none() => Ok(()),
            Kind::Settings => {
                definition(&document, path, "/spec").map(|value: Definition<_>| definitions.settings = value.value)
            }
            Kind::Scenario => definition(&document, path, "/spec").map(|value| definitions.scenario = Some(value)),
        };
        findings.extend(result.err().map(|finding| *finding));
    }
    keep_templates_of_buffers(&mut definitions);
    definitions
}

/// Pod templates that no buffer names are somebody else's.
fn keep_templates_of_buffers(definitions: &mut Definitions) {
    let buffers = &definitions.capacity_buffers;
    let namespace = |metadata: &ObjectMeta| metadata.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let is_named = |template: &ObjectMeta| {
        let names = |buffer: &CapacityBuffer| {
            let reference = buffer.spec.pod_template_ref.as_ref();
            reference.is_some_and(|it| Some(&it.name) == template.name.as_ref())
                && namespace(&buffer.metadata) == namespace(template)
        };
        buffers.iter().any(|buffer| names(&buffer.value))
    };
    definitions.pod_templates.retain(|template| is_named(&template.value.metadata));
}

fn definition<T: DeserializeOwned>(
    document: &Document,
    path: &str,
    pointer: &str,
) -> Result<Definition<T>, Box<Finding>> {
    let value = document.value.pointer(pointer).unwrap_or(&Value::Null);
    let line = document.place("", Place::Value).line;
    T::deserialize(value).map(|value| Definition { value, file: path.to_owned(), line }).map_err(|error| {
        let message = format!("the document can not be read: {error}");
        Box::new(Finding::at(&reading::UNREADABLE, document, "", Place::Value, message))
    })
}

/// Sorted by place, without repetition.
fn diagnostics(found: Vec<Finding>, sources: &[&SourceFile]) -> Vec<super::Diagnostic> {
    let mut found = findings::without_repetition(found);
    found.sort_by(|one, other| {
        let key = |f: &Finding| (f.file, f.span.line, f.span.column, f.rule.code);
        key(one).cmp(&key(other)).then_with(|| one.message.cmp(&other.message))
    });
    let path = |file: usize| sources.get(file).map_or("", |source| source.path.as_str());
    found.into_iter().map(|finding| finding.diagnostic(path)).collect()
}
