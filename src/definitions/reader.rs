//! The pipeline over all files of a revision.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::amounts::Amounts;
use super::before::Before;
use super::context::Context;
use super::diagnostic::{Diagnostic, Severity, Span, Suppressed, SuppressedBy};
use super::document::{self, Document, Parsed};
use super::findings::{self, Finding, Place};
use super::given::GivenVariables;
use super::judging::{self, Judged};
use super::kinds::{Class, Kind, classify};
use super::kustomize::{self, Build, Layout, Role};
use super::memory::{JudgedOfFile, Memory};
use super::misses::Misses;
use super::not_read::{self, NotRead};
use super::open::{self, OpenDefinition};
use super::places;
use super::revision::{Object, Revision};
use super::rules::{self, Check, kinds as kind_rules, kustomize as kustomize_rules, reading};
use super::scopes::{self, Scope};
use super::suppression::{Chosen, Ignores, SortedOut};
use super::{Definition, Definitions, files, limits, schema, substitution, unread};
use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::source::{SourceFile, Standing};
use crate::api::{cluster_fields, kustomization};

/// What the files are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To plan and to apply what they define together.
    Use,
    /// To say what is wrong with any of them.
    Judge,
}

/// What a reading knows and leaves beside the files.
#[derive(Debug, Default)]
pub struct Aside<'a> {
    /// What is known of files that did not change is not worked out again. It is of one purpose.
    pub memory: Option<&'a mut Memory>,
    /// What was defined before.
    pub before: Option<&'a Before>,
    /// Where to put what is defined now, to be held against another time.
    pub objects: Option<&'a mut Before>,
}

pub fn read(sources: &[SourceFile], given: &GivenVariables, purpose: Purpose, aside: Aside<'_>) -> Definitions {
    let Aside { mut memory, before, objects: kept } = aside;
    let is_read = |file: &&SourceFile| match &file.standing {
        Standing::Own => files::is_candidate(&file.path),
        Standing::LinkNotFollowed | Standing::Submodule => true,
        Standing::Named | Standing::Applied => true,
        Standing::LinkTo(_) => false,
    };
    let links: Vec<&SourceFile> = sources.iter().filter(|file| matches!(file.standing, Standing::LinkTo(_))).collect();
    let mut sources: Vec<&SourceFile> = sources.iter().filter(is_read).collect();
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    let context = Context::of(&sources, &given.values());
    let (parsed, known) = known_or_parsed(&sources, &context, memory.as_deref_mut());
    let layout = Layout::of(&sources, &links, &parsed, &context.paths);
    let tops = match layout.of_root().filter(|_| purpose == Purpose::Use) {
        Some(root) => vec![root],
        None => layout.tops.clone(),
    };
    let (builds, used, findings) = kustomize::build(&layout, &parsed, &tops);
    let mut reading = Reading { context, findings, purpose: Some(purpose), before, ..Reading::default() };
    reading.judged = memory.is_some().then_some(known);
    for (index, (source, parsed)) in sources.iter().zip(&parsed).enumerate() {
        let how = how(index, source, &layout, used.contains(&index), purpose, &reading.context.paths);
        reading.file(index, source, parsed, how);
    }
    for build in builds {
        reading.build(build, &sources);
    }
    reading.findings.extend(reading.context.unused_paths(&sources));
    reading.findings.extend(reading.misses.findings(given));
    let objects = std::mem::take(&mut reading.objects);
    if let Some(kept) = kept {
        let paths: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
        *kept = Before::of(&objects, &paths);
    }
    let scopes = match purpose {
        Purpose::Judge => scopes::apart(objects),
        Purpose::Use => {
            let (scope, findings) = scopes::together(objects, |build| layout.name(build));
            reading.findings.extend(findings);
            vec![scope]
        }
    };
    let mut definitions: Option<Definitions> = None;
    for scope in scopes {
        let found = judged(scope, &sources, &mut reading.findings);
        definitions.get_or_insert(found);
    }
    let mut definitions = definitions.unwrap_or_default();
    definitions.notes = reading.misses.notes();
    definitions.not_read = reading.not_read;
    definitions.files_read = reading.files_read;
    definitions.documents_read = reading.documents_read;
    definitions.documents_skipped = reading.documents_skipped;
    definitions.definitions_found = reading.definitions_found;
    definitions.paths_read = reading.paths_read;
    let found = findings::without_repetition(reading.findings);
    let sorted = match purpose {
        Purpose::Use => SortedOut { kept: found, suppressed: Vec::new() },
        Purpose::Judge => {
            let chosen = reading.context.settings.as_ref().map(Chosen::of).unwrap_or_default();
            let is_whole = reading.context.settings.is_some();
            definitions.settings.lint = chosen.settings.clone();
            reading.ignores.sort_out(found, &chosen, is_whole, |file| path_of(&sources, file))
        }
    };
    definitions.diagnostics = diagnostics(sorted.kept, &sources);
    definitions.suppressed = suppressed(sorted.suppressed, &sources);
    definitions.masks = given.masks();
    let of_suppressed = definitions.suppressed.iter_mut().map(|suppressed| &mut suppressed.diagnostic);
    definitions.masks.diagnostics(definitions.diagnostics.iter_mut().chain(of_suppressed));
    if let Some((memory, judged)) = memory.zip(reading.judged) {
        memory.keep(&sources, parsed, judged);
    }
    definitions
}

/// Holds the objects of a scope against each other; gives the values of those in which no error was found.
fn judged(scope: Scope, sources: &[&SourceFile], findings: &mut Vec<Finding>) -> Definitions {
    let paths = sources.iter().map(|source| source.path.as_str()).collect();
    let (objects, judge) = scope.into_parts();
    let revision = Revision { paths, objects };
    findings.retain(|finding| !rules::image_lock::answers(&revision, finding));
    for rule in rules::all() {
        if let Check::Revision(check) = rule.check {
            findings.extend(
                check(&revision)
                    .into_iter()
                    .filter(|finding| judge.judges(finding) && !open::hides_of(&revision, finding)),
            );
        }
    }
    typed(revision, findings)
}

/// Every file, with what is known of its documents from an earlier reading.
fn known_or_parsed(
    sources: &[&SourceFile],
    context: &Context,
    mut memory: Option<&mut Memory>,
) -> (Vec<Parsed>, Vec<JudgedOfFile>) {
    if let Some(memory) = memory.as_deref_mut() {
        memory.begin(sources, context);
    }
    let parse = parser(sources, context);
    let known_or_parsed = |(index, source): (usize, &&SourceFile)| {
        let known = memory.as_deref_mut().and_then(|memory| memory.recall(index, source));
        known.unwrap_or_else(|| (parse(index, source), JudgedOfFile::new()))
    };
    sources.iter().enumerate().map(known_or_parsed).unzip()
}

/// Parses every file that may be needed: of a repository with kustomizations also those that the settings leave out.
fn parser<'c>(sources: &[&SourceFile], context: &'c Context) -> impl Fn(usize, &SourceFile) -> Parsed + use<'c> {
    let has_kustomizations = sources.iter().any(|source| kustomization::is_file(&source.path));
    move |index, source| {
        let is_needed = has_kustomizations || is_asked_for(source, &context.paths);
        if !source.has_content() || !is_needed || context.template_of(&source.path).is_some() {
            return Parsed::default();
        }
        match text_of(index, source) {
            Ok(text) => document::parse(index, &text),
            Err(finding) => Parsed { findings: vec![*finding], ..Parsed::default() },
        }
    }
}

/// What a cluster has is asked for whatever the paths of the settings are: they are those of the repository that it came from.
fn is_asked_for(source: &SourceFile, paths: &[String]) -> bool {
    let is_own = source.standing == Standing::Own;
    source.standing == Standing::Applied || (is_own && files::is_selected(&source.path, paths))
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Skipped,
    /// A kustomization used it: its objects are judged as it built them.
    Counted(Role),
    /// The same, and what is wrong with it wherever it is used.
    InPart(Role),
    Whole,
    /// Whole, and it is part of nothing that is built.
    Apart,
    NotRead,
}

fn how(
    index: usize,
    source: &SourceFile,
    layout: &Layout<'_>,
    is_used: bool,
    purpose: Purpose,
    paths: &[String],
) -> How {
    let is_asked_for = is_asked_for(source, paths);
    let role = layout.role(index);
    let judges = purpose == Purpose::Judge && is_asked_for;
    match (matches!(source.standing, Standing::LinkNotFollowed | Standing::Submodule), role, is_used) {
        (true, ..) => How::NotRead,
        (_, Role::Resource | Role::Patch, true) if judges => How::InPart(role),
        (_, Role::Patch, false) if judges => How::InPart(role),
        (.., true) => How::Counted(role),
        (_, Role::Kustomization | Role::Part, false) if is_asked_for => How::Counted(role),
        (_, Role::Plain, false) if is_asked_for => How::Whole,
        (_, Role::Apart, false) if judges => How::Apart,
        (_, Role::Resource | Role::Apart | Role::Patch, false)
            if judges || (is_asked_for && layout.tops.is_empty()) =>
        {
            How::Whole
        }
        _ => How::Skipped,
    }
}

/// Where a document comes from.
#[derive(Clone, Copy)]
enum Origin<'p> {
    /// From a file, as it stands there: which one of its documents it is.
    Written(usize),
    /// From the kustomization of this path.
    Built(&'p str),
}

#[derive(Default)]
struct Reading<'b> {
    context: Context,
    findings: Vec<Finding>,
    objects: Vec<Object>,
    misses: Misses,
    ignores: Ignores,
    paths_read: Vec<String>,
    /// Charts whose templates were passed over.
    charts: BTreeSet<String>,
    not_read: Vec<NotRead>,
    amounts: Amounts,
    purpose: Option<Purpose>,
    /// What was defined before.
    before: Option<&'b Before>,
    /// What is known of documents, and is kept for the next time; by the index of the file. `None`: nothing is.
    judged: Option<Vec<JudgedOfFile>>,
    files_read: usize,
    documents_read: usize,
    documents_skipped: usize,
    definitions_found: usize,
}

impl Reading<'_> {
    fn file(&mut self, index: usize, source: &SourceFile, parsed: &Parsed, how: How) {
        if how == How::NotRead {
            let (not_read, finding) = not_read::passed_over(index, source);
            self.not_read.push(not_read);
            return self.findings.extend(finding);
        }
        if how == How::Skipped {
            return;
        }
        if let Some(chart) = self.context.template_of(&source.path) {
            self.not_read.push(NotRead { path: source.path.clone(), why: not_read::OF_A_CHART });
            // One note for a chart, at its first template.
            if self.charts.insert(chart.to_owned()) {
                let message = "templates of a Helm chart are not read";
                let finding = Finding::at_span(&reading::TEMPLATE, index, Span::start(), message);
                self.findings.push(finding.hint("lint what the chart renders: helm template CHART | cutlist lint -"));
            }
            return;
        }
        self.files_read += 1;
        self.paths_read.push(source.path.clone());
        if let Ok(text) = str::from_utf8(&source.content) {
            self.ignores.comments(index, text);
        }
        self.documents_read += parsed.count;
        let mut found = parsed.findings.clone();
        match how {
            How::Whole | How::Apart => self.documents(source, parsed, &mut found),
            How::InPart(role) => self.in_part(parsed, role, &mut found),
            How::Counted(role) => {
                let is_ours = |it: &&Document| matches!(classify(&it.value), Class::Read(_));
                let objects = parsed.documents.iter().filter(is_ours).count();
                self.definitions_found += if role == Role::Resource { objects } else { 0 };
            }
            How::Skipped | How::NotRead => {}
        }
        let is_ours = |it: &Document| matches!(classify(&it.value), Class::Read(kind) if kind.is_object());
        if how == How::Apart
            && let Some(document) = parsed.documents.iter().find(|it| is_ours(it))
        {
            let message = "the kustomization beside this file does not name it: it is no part of what is built";
            let finding = Finding::at(&kustomize_rules::APART, document, "/kind", Place::Key, message);
            found.push(finding.hint("name it under `resources`, or remove it"));
        }
        if found.len() > limits::FILE_FINDINGS {
            let more = found.len() - limits::FILE_FINDINGS;
            found.sort_by_key(|finding| (finding.rule.severity, finding.span.line, finding.span.column));
            found.truncate(limits::FILE_FINDINGS);
            found.push(Finding::at_span(&reading::TOO_MANY, index, Span::start(), format!("{more} more findings")));
        }
        self.findings.extend(found);
    }

    fn documents(&mut self, source: &SourceFile, parsed: &Parsed, found: &mut Vec<Finding>) {
        let mut no_object = None;
        for (number, document) in parsed.documents.iter().enumerate() {
            match classify(&document.value) {
                Class::NoObject => {
                    self.documents_skipped += 1;
                    let finding =
                        unread::no_settings(document, &source.path).unwrap_or_else(|| unread::no_object(document));
                    if std::ptr::eq(finding.rule, &kind_rules::NO_OBJECT) {
                        no_object.get_or_insert(finding);
                    } else {
                        found.push(finding);
                    }
                }
                class => self.document(class, document, Origin::Written(number), source, found),
            }
        }
        // One note for a file, and none where a file has objects as well, or findings anyway.
        if let Some(note) = no_object
            && parsed.documents.len() == 1
            && found.is_empty()
            && !files::is_of_another_tool(&source.path)
        {
            found.push(note);
        }
    }

    /// What is wrong in a document wherever it is used: what is missing in it may come from elsewhere.
    fn in_part(&mut self, parsed: &Parsed, role: Role, found: &mut Vec<Finding>) {
        for document in &parsed.documents {
            let class = classify(&document.value);
            self.documents_skipped += usize::from(!matches!(class, Class::Read(_) | Class::Old(_)));
            let Class::Read(kind) = class else { continue };
            self.ignores.annotation(document);
            self.definitions_found += usize::from(role == Role::Resource);
            let mut document = kustomize::without_directives(document);
            substitution::apply(kind, &mut document, &self.context.variables);
            found.extend(judging::ambiguous(kind, &document));
            let checked = schema::check(kind, &mut document, None, &mut false);
            found.extend(checked.into_iter().filter(|finding| finding.rule.is_of_one_field()));
        }
    }

    /// Objects as a kustomization built them.
    fn build(&mut self, build: Build, sources: &[&SourceFile]) {
        let place = path_of(sources, build.top);
        let mut found = Vec::new();
        for document in build.documents {
            let Some(source) = sources.get(document.file) else { continue };
            let objects = self.objects.len();
            match classify(&document.value) {
                // The files say it already.
                Class::NoObject | Class::Incomplete { .. } => {}
                class => {
                    let (skipped, counted) = (self.documents_skipped, self.definitions_found);
                    self.document(class, &document, Origin::Built(place), source, &mut found);
                    (self.documents_skipped, self.definitions_found) = (skipped, counted);
                }
            }
            self.objects.iter_mut().skip(objects).for_each(|object| object.build = Some(build.top));
        }
        self.findings.extend(found);
    }

    fn document(
        &mut self,
        class: Class,
        document: &Document,
        origin: Origin<'_>,
        source: &SourceFile,
        found: &mut Vec<Finding>,
    ) {
        self.ignores.annotation(document);
        match class {
            Class::Read(kind) => {
                if let Some(finding) = unread::misplaced(kind, document, &source.path) {
                    self.documents_skipped += 1;
                    return found.push(finding);
                }
                self.definitions_found += 1;
                let judged = self.judged(kind, document, origin, source);
                let mut own = Vec::new();
                self.misses.add(&judged.document, judged.misses.clone(), &mut own);
                // Files of many clusters may be judged at once; those of one are planned with.
                let is_planned_with = self.purpose == Some(Purpose::Use);
                own.extend(is_planned_with.then(|| self.amounts.one_more(kind, &judged.document)).flatten());
                let usable = judged.is_usable(&own);
                let Judged { document, findings, unchecked, is_too_long, .. } = judged;
                found.extend(findings.into_iter().chain(own));
                if is_too_long || self.amounts.is_beyond(kind) {
                    return;
                }
                let staged = self.context.staged.contains(&source.path);
                self.objects.push(Object { kind, document, usable, unchecked, staged, build: None });
            }
            Class::Foreign => {
                self.documents_skipped += 1;
                found.extend(unread::no_settings(document, &source.path));
                found.extend(schema::unknown_fields_of_workload(document));
                found.extend(rules::requirements::of_workload(document));
                found.extend(rules::auto_mode::fields_of_class(document));
            }
            Class::Old(old) => found.extend(unread::outdated(old, document)),
            Class::Unread { note } => {
                self.documents_skipped += 1;
                found.push(Finding::at(&kind_rules::UNKNOWN_KIND, document, "/kind", Place::Value, note));
            }
            Class::Unknown { meant } => {
                self.documents_skipped += 1;
                found.push(unread::unknown(document, meant));
            }
            Class::Incomplete { missing } => {
                if files::is_of_another_tool(&source.path) {
                    self.documents_skipped += 1;
                } else {
                    found.push(unread::incomplete(missing, document));
                }
            }
            Class::NoObject => {}
        }
    }
}

impl Reading<'_> {
    /// What is known of the document, or else is worked out, and kept where it stands in a file.
    fn judged(&mut self, kind: Kind, document: &Document, origin: Origin<'_>, source: &SourceFile) -> Judged {
        let place = match origin {
            Origin::Written(_) => source.path.as_str(),
            Origin::Built(by) => by,
        };
        let old = |value: &Value| self.before.and_then(|before| before.find(place, kind, value));
        // Of what a cluster has variables were replaced, and what looks like one is meant as it stands there.
        let variables = (source.standing != Standing::Applied).then_some(&self.context.variables);
        let judge = || Judged::of(kind, document.clone(), variables, old);
        let of_file = self.judged.as_mut().and_then(|judged| judged.get_mut(document.file));
        match (of_file, origin) {
            (Some(of_file), Origin::Written(number)) => of_file.entry(number).or_insert_with(judge).clone(),
            _ => judge(),
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

/// Values of the documents in which no error was found.
fn typed(revision: Revision<'_>, findings: &mut Vec<Finding>) -> Definitions {
    let mut definitions = Definitions::default();
    // An error of a rule over all documents makes those it names unusable as well.
    let refused: BTreeSet<(usize, String)> = findings
        .iter()
        .filter(|finding| finding.rule.severity == Severity::Error && matches!(finding.rule.check, Check::Revision(_)))
        .filter_map(|finding| Some((finding.file, finding.object.clone()?)))
        .collect();
    let revision_paths = revision.paths;
    for object in revision.objects.into_iter().filter(|object| object.usable && !object.staged) {
        let mut document = object.document;
        cluster_fields::remove_from_metadata(&mut document.value);
        if document.name().is_some_and(|name| refused.contains(&(document.file, name))) {
            continue;
        }
        let path = revision_paths.get(document.file).copied().unwrap_or_default();
        let open = OpenDefinition::of(object.kind, &document, path, object.unchecked);
        let result = match object.kind {
            Kind::NodePool => {
                definition(&document, &revision_paths, "").map(|value| definitions.node_pools.push(value))
            }
            Kind::EC2NodeClass => {
                definition(&document, &revision_paths, "").map(|value| definitions.node_classes.push(value))
            }
            Kind::NodeOverlay => {
                definition(&document, &revision_paths, "").map(|value| definitions.node_overlays.push(value))
            }
            Kind::CapacityBuffer => {
                definition(&document, &revision_paths, "").map(|value| definitions.capacity_buffers.push(value))
            }
            Kind::PodTemplate => {
                definition(&document, &revision_paths, "").map(|value| definitions.pod_templates.push(value))
            }
            Kind::DisruptionBudget => {
                definition(&document, &revision_paths, "").map(|value| definitions.disruption_budgets.push(value))
            }
            Kind::Settings if document.value.get("spec").is_none() => Ok(()),
            Kind::Settings => definition(&document, &revision_paths, "/spec")
                .map(|value: Definition<_>| definitions.settings = value.value),
            Kind::Scenario => {
                definition(&document, &revision_paths, "/spec").map(|value| definitions.scenario = Some(value))
            }
            Kind::ImageLock => definition(&document, &revision_paths, "/spec").map(|mut value: Definition<_>| {
                value.places = places::of_locked(&document, &revision_paths);
                definitions.image_lock = Some(value);
            }),
        };
        let unread = result.err();
        match open {
            // That it can not be read may be the variable's doing.
            Some(open) => {
                definitions.open.push(OpenDefinition { unchecked: open.unchecked || unread.is_some(), ..open });
            }
            None => findings.extend(unread.map(|finding| *finding)),
        }
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
    paths: &[&str],
    pointer: &str,
) -> Result<Definition<T>, Box<Finding>> {
    let value = document.value.pointer(pointer).unwrap_or(&Value::Null);
    let own = places::of(document, "", paths);
    let places = places::of_fields(document, paths);
    let variables = document.variables.names().clone();
    let definition = |value| Definition { value, file: own.file, line: own.line, places, variables };
    T::deserialize(value).map(definition).map_err(|error| {
        let message = format!("the document can not be read: {error}");
        Box::new(Finding::at(&reading::UNREADABLE, document, "", Place::Value, message))
    })
}

/// Sorted by place.
fn diagnostics(mut found: Vec<Finding>, sources: &[&SourceFile]) -> Vec<Diagnostic> {
    found.sort_by(in_order);
    found.into_iter().map(|finding| finding.diagnostic(|file| path_of(sources, file))).collect()
}

fn suppressed(mut found: Vec<(Finding, SuppressedBy, String)>, sources: &[&SourceFile]) -> Vec<Suppressed> {
    found.sort_by(|(one, ..), (other, ..)| in_order(one, other));
    let suppressed = |(finding, by, reason): (Finding, SuppressedBy, String)| {
        let diagnostic = finding.diagnostic(|file| path_of(sources, file));
        Suppressed { diagnostic, by, reason }
    };
    found.into_iter().map(suppressed).collect()
}

fn in_order(one: &Finding, other: &Finding) -> Ordering {
    let key = |f: &Finding| (f.file, f.span.line, f.span.column, f.rule.code);
    key(one).cmp(&key(other)).then_with(|| one.message.cmp(&other.message))
}

fn path_of<'p>(sources: &[&'p SourceFile], file: usize) -> &'p str {
    sources.get(file).map_or("", |source| source.path.as_str())
}
