//! The pipeline over all files of a revision.

use std::cell::LazyCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde_json::Value;

use super::ahead::{self, Ahead};
use super::amounts::Amounts;
use super::argo::{self, ArgoSource};
use super::before::Before;
use super::context::Context;
use super::counted::Counted;
use super::diagnostic::{Diagnostic, Span, Suppressed, SuppressedBy};
use super::document::{Document, Parsed};
use super::findings::{self, Finding, FindingPlace};
use super::flux::FluxKustomizations;
use super::given::GivenVariables;
use super::judging::{self, Judged};
use super::kinds::{self, Class, Kind, classify};
use super::kustomize::{self, Build, Layout, Role};
use super::made::{self, How, Made};
use super::memory::{KnownJudged, Memory};
use super::misses::Misses;
use super::not_read::{self, NotRead};
use super::open;
use super::own_baseline::OwnBaseline;
use super::parsing::known_or_parsed;
use super::revision::{Object, Revision};
use super::roots::Roots;
use super::rules::{self, Check, kinds as kind_rules, kustomize as kustomize_rules, reading};
use super::scopes::{self, LintScope};
use super::shortening::shorten;
use super::suppression::{Chosen, Ignores, SortedOut};
use super::versions::{self, Installed, SaidBy};
use super::workloads::Workloads;
use super::{Definitions, LintOptions, files, limits, schema, substitution, templates, typed, unread};
use crate::api::source::{SourceFile, Standing};

pub use super::made::Purpose;

/// What a reading knows and leaves beside the files.
#[derive(Debug, Default)]
pub struct Aside<'a> {
    /// What is known of files that did not change, so that it is not worked out again. A memory is for one purpose.
    pub memory: Option<&'a mut Memory>,
    /// Where to put what is defined now, to be held against another time.
    pub objects: Option<&'a mut Before>,
    pub options: LintOptions<'a>,
}

pub fn read(sources: &[SourceFile], given: &GivenVariables, purpose: Purpose, aside: Aside<'_>) -> Definitions {
    let Aside { mut memory, objects: kept, options } = aside;
    let links: Vec<&SourceFile> = sources.iter().filter(|file| matches!(file.standing, Standing::LinkTo(_))).collect();
    let mut sources: Vec<&SourceFile> = sources.iter().filter(|file| is_read(file)).collect();
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    let (mut context, own_baseline) = context_of(&sources, given, purpose, options);
    let counted = Counted::default();
    let (parsed, known) = known_or_parsed(&sources, &context, memory.as_deref_mut(), &counted);
    let flux = flux_of(&sources, &parsed, given, &context);
    let argo = argo::sources(&sources, &parsed);
    take_folders(&mut context, (&flux, &argo), (&sources, &parsed), purpose);
    let layout = Layout::of(&sources, &links, &parsed, (&context.paths, &context.roots));
    let cluster = cluster_of(given, &context).map(str::to_owned);
    let made = made::of(&sources, &parsed, &layout, (&flux, &argo), &context, (purpose, cluster.as_deref()));
    let Made { builds, hows, changed, carried_out, findings } = made;
    // With a memory, most of what could be worked out ahead is known.
    let ahead = if memory.is_some() { Vec::new() } else { ahead_of(&sources, &parsed, &hows, &context, options) };
    let mut reading =
        Reading { context, findings, ahead, purpose: Some(purpose), before: options.before, ..Reading::default() };
    reading.findings.extend(counted.finding());
    reading.judged = memory.as_deref_mut().map(|memory| memory.judged(known, &reading.context.of_flux));
    for (index, ((source, parsed), how)) in sources.iter().zip(&parsed).zip(hows).enumerate() {
        let is_taken = !matches!(layout.role(index), Role::Plain | Role::Apart | Role::Unbuilt);
        let is_named = files::is_of_root(&source.path) || is_taken || layout.is_unreadable_delivery(index);
        reading.file(index, source, changed.get(&index).unwrap_or(parsed), (how, is_named));
    }
    for build in builds {
        reading.build(build, &sources, &layout);
    }
    reading.keep_what_is_built();
    reading.findings.extend(reading.context.unused_paths(&sources));
    reading.findings.extend(reading.misses.findings(given));
    reading.findings.extend(own_baseline.finding.clone());
    let objects = std::mem::take(&mut reading.objects);
    let paths: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    if purpose == Purpose::Judge {
        let files: Vec<&SourceFile> = sources.iter().chain(&links).copied().collect();
        reading.findings.extend(of_deliveries((&flux, &argo), &parsed, &objects, (&files, options.is_root)));
    }
    let is_all_known = !parsed.iter().any(Parsed::lacks_some);
    let gone = reading.beside_objects(&objects, &paths, is_all_known);
    if let Some(kept) = kept {
        *kept = Before::of(&objects, &paths);
    }
    let (scopes, findings) = match purpose {
        Purpose::Judge => {
            scopes::apart(objects, |file| path_of(&sources, file), |folder| scopes::typed(options.typed, folder))
        }
        Purpose::Use => {
            let (scope, findings) = scopes::together(objects, |build| layout.name(build));
            (vec![scope], findings)
        }
    };
    reading.findings.extend(findings);
    let mut definitions: Option<Definitions> = None;
    for scope in scopes {
        let found = judged(scope, &sources, &mut reading.findings, purpose == Purpose::Use);
        definitions.get_or_insert(found);
    }
    let mut definitions = definitions.unwrap_or_default();
    reading.say_what_was_read(&mut definitions);
    definitions.carried_out = carried_out;
    let with_gone: Vec<&SourceFile> = sources.iter().copied().chain(&gone).collect();
    let sorted = reading.sorted_out(&mut definitions, &with_gone);
    definitions.diagnostics = diagnostics(sorted.kept, &with_gone);
    definitions.suppressed = suppressed(sorted.suppressed, &with_gone);
    definitions.masks = given.masks();
    let of_suppressed = definitions.suppressed.iter_mut().map(|suppressed| &mut suppressed.diagnostic);
    definitions.masks.diagnostics(definitions.diagnostics.iter_mut().chain(of_suppressed));
    let of_suppressed = definitions.suppressed.iter_mut().map(|suppressed| &mut suppressed.diagnostic);
    shorten(definitions.diagnostics.iter_mut().chain(of_suppressed));
    own_baseline.apply(&mut definitions, &sources, options.folder);
    if let Some((memory, judged)) = memory.zip(reading.judged) {
        memory.keep(&sources, parsed, judged);
    }
    definitions
}

/// Whether the file is gone through. A link stands for another file, which is.
fn is_read(file: &SourceFile) -> bool {
    match &file.standing {
        Standing::Own | Standing::Template | Standing::TooLarge | Standing::Unreadable => {
            files::is_candidate(&file.path)
        }
        Standing::LinkNotFollowed | Standing::Submodule | Standing::Named | Standing::Applied => true,
        Standing::LinkTo(_) => false,
    }
}

/// What is told to Flux and Argo CD of all that they build. The first of `files` are those that were parsed, in the
/// same order.
fn of_deliveries(
    told: (&FluxKustomizations, &[ArgoSource<'_>]),
    parsed: &[Parsed],
    objects: &[Object],
    (files, is_root): (&[&SourceFile], bool),
) -> Vec<Finding> {
    let documents: Vec<&Document> = parsed.iter().flat_map(|it| &it.documents).collect();
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut findings = rules::others::of_deliveries(told, &documents, objects, &paths);
    if is_root {
        findings.extend(rules::deliveries::paths_missing(&documents, files));
    }
    findings
}

/// What can be worked out of the files one by one.
fn ahead_of(
    sources: &[&SourceFile],
    parsed: &[Parsed],
    hows: &[How],
    context: &Context,
    options: LintOptions<'_>,
) -> Vec<Ahead> {
    let files = sources.par_iter().zip(parsed).zip(hows);
    let ahead = files.map(|((source, parsed), how)| match how {
        How::Whole | How::Apart => Ahead::of(source, parsed, context, options.before),
        _ => Ahead::default(),
    });
    ahead.collect()
}

/// What is to be known before the first definition. Only a report goes by a baseline and by the Karpenter that is
/// installed. A plan is carried out without Karpenter, so a field that is newer than the installed one is no obstacle
/// to it.
fn context_of(
    sources: &[&SourceFile],
    given: &GivenVariables,
    purpose: Purpose,
    options: LintOptions<'_>,
) -> (Context, OwnBaseline) {
    let mut context = Context::new(sources, &given.values());
    context.hidden = given.hidden().map(|(name, _)| name.clone()).collect();
    if purpose == Purpose::Use {
        (context.karpenter, context.baseline) = (None, None);
        return (context, OwnBaseline::default());
    }
    let typed = options.karpenter.map(|version| Installed { version, said_by: SaidBy::CommandLine });
    context.karpenter = typed.or(context.karpenter);
    let own_baseline = match options.without_own_baseline {
        true => OwnBaseline::default(),
        false => OwnBaseline::of(&context, sources),
    };
    (context, own_baseline)
}

/// Holds the objects of a scope against each other. Gives the values of those in which no error was found.
fn judged(scope: LintScope, sources: &[&SourceFile], findings: &mut Vec<Finding>, keeps_places: bool) -> Definitions {
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
    typed::typed(revision, findings, keeps_places)
}

/// The cluster that the files are read for, where somebody says that.
fn cluster_of<'c>(given: &'c GivenVariables, context: &'c Context) -> Option<&'c str> {
    given.cluster.as_deref().or(context.cluster())
}

fn flux_of(
    sources: &[&SourceFile],
    parsed: &[Parsed],
    given: &GivenVariables,
    context: &Context,
) -> FluxKustomizations {
    let mut flux = FluxKustomizations::of(sources, parsed);
    flux.keep(cluster_of(given, context));
    flux
}

/// Takes what is known of folders by the files. A plan is for one cluster: for what nobody builds upon, with the settings at the root.
fn take_folders(
    context: &mut Context,
    (flux, argo): (&FluxKustomizations, &[ArgoSource<'_>]),
    (sources, parsed): (&[&SourceFile], &[Parsed]),
    purpose: Purpose,
) {
    context.take_flux(flux, purpose == Purpose::Judge);
    if purpose == Purpose::Judge {
        context.roots = Roots::of(flux, argo);
        context.of_own_folders = unread::of_own_folders(sources, parsed);
    }
}

/// Where a document comes from.
#[derive(Clone, Copy)]
enum Origin<'p> {
    /// The document stands in a file. The number says which one of the file's documents it is.
    Written(usize),
    /// The document was built by the kustomization of this path, or comes of the file of this path that others change.
    /// The number says which one of its objects it is.
    Built(&'p str, usize),
}

impl<'p> Origin<'p> {
    /// The path of the kustomization, or an empty text. A file that others change is applied with those beside it.
    fn built_by(self, file: &str) -> &'p str {
        match self {
            Self::Built(by, _) if by != file => by,
            Self::Written(_) | Self::Built(..) => "",
        }
    }
}

#[derive(Default)]
struct Reading<'b> {
    context: Context,
    findings: Vec<Finding>,
    /// What was found in files of objects that kustomizations take, before they are built.
    of_resources: Vec<Finding>,
    objects: Vec<Object>,
    misses: Misses,
    workloads: Workloads,
    ignores: Ignores,
    paths_read: Vec<String>,
    /// Charts whose templates were passed over.
    charts: BTreeSet<String>,
    not_read: Vec<NotRead>,
    amounts: Amounts,
    purpose: Option<Purpose>,
    /// What was defined before.
    before: Option<&'b Before>,
    /// What was worked out of each file before.
    ahead: Vec<Ahead>,
    /// What is known of documents, and is kept for the next time. `None` where nothing is kept.
    judged: Option<KnownJudged>,
    files_read: usize,
    documents_read: usize,
    documents_skipped: usize,
    definitions_found: usize,
}

impl Reading<'_> {
    fn say_what_was_read(&mut self, definitions: &mut Definitions) {
        definitions.notes = self.misses.notes();
        definitions.not_read = std::mem::take(&mut self.not_read);
        definitions.files_read = self.files_read;
        definitions.documents_read = self.documents_read;
        definitions.documents_skipped = self.documents_skipped;
        definitions.definitions_found = self.definitions_found;
        definitions.paths_read = std::mem::take(&mut self.paths_read);
    }

    /// Sorts findings that count from those that do not. All findings of definitions that are used count.
    fn sorted_out(&mut self, definitions: &mut Definitions, sources: &[&SourceFile]) -> SortedOut {
        let found = findings::without_repetition(std::mem::take(&mut self.findings));
        if self.purpose == Some(Purpose::Use) {
            return SortedOut { kept: found, suppressed: Vec::new() };
        }
        let chosen = self.context.settings.as_ref().map(Chosen::of).unwrap_or_default();
        let is_whole = self.context.settings.is_some();
        definitions.settings.lint = chosen.settings.clone();
        std::mem::take(&mut self.ignores).sort_out(found, &chosen, is_whole, |file| path_of(sources, file))
    }

    /// `is_named` says that somebody names the file as ours. Then all that is wrong with it counts.
    fn file(&mut self, index: usize, source: &SourceFile, parsed: &Parsed, (how, is_named): (How, bool)) {
        if how == How::NotRead {
            let (not_read, finding) = not_read::passed_over(index, source);
            self.not_read.push(not_read);
            if source.standing == Standing::Submodule {
                self.not_read.push(NotRead::bringing(source.path.clone(), not_read::SUBMODULE));
            }
            return self.findings.extend(finding);
        }
        if how == How::Skipped {
            return;
        }
        let of_chart_above = (source.standing == Standing::Template).then_some("");
        if let Some(chart) = self.context.template_of(&source.path).or(of_chart_above) {
            self.not_read.push(NotRead::new(source.path.clone(), not_read::OF_A_CHART));
            if str::from_utf8(&source.content).is_ok_and(|text| text.contains(Kind::NodePool.name())) {
                self.not_read.push(NotRead::bringing(source.path.clone(), not_read::OF_A_CHART));
            }
            // One note for a chart, at its first template.
            if self.charts.insert(chart.to_owned()) {
                let message = "templates of a Helm chart are not read";
                let finding = Finding::at_span(&reading::TEMPLATE, index, Span::start(), message);
                self.findings.push(finding.hint("lint what the chart renders: helm template CHART | cutlist lint -"));
            }
            return;
        }
        if self.is_template(index, source, parsed, how) {
            return;
        }
        self.files_read += 1;
        self.paths_read.push(source.path.clone());
        if source.path.contains(char::REPLACEMENT_CHARACTER) {
            let message = "the name is no UTF-8 text: it is shown with `\u{fffd}` in the place of what is none";
            let finding = Finding::at_span(&reading::NAME_NOT_TEXT, index, Span::start(), message);
            self.findings.push(finding.hint("rename it"));
        }
        if let Ok(text) = str::from_utf8(&source.content) {
            self.ignores.comments(index, text);
        }
        self.documents_read += parsed.count;
        let mut found = parsed.findings.clone();
        if is_named {
            found.extend(parsed.aside.iter().cloned());
        } else if parsed.has_unread {
            self.not_read.push(NotRead::new(source.path.clone(), not_read::UNREADABLE));
        }
        match how {
            How::Whole | How::Apart | How::Changed => self.documents(source, parsed, how, &mut found),
            How::InPart(role) => self.in_part(source, parsed, role, &mut found),
            How::Counted(role) => {
                let is_ours = |it: &&Document| matches!(classify(&it.value), Class::Read(_));
                let objects = parsed.documents.iter().filter(is_ours).count();
                self.definitions_found += if matches!(role, Role::Resource | Role::Unbuilt) { objects } else { 0 };
            }
            How::Skipped | How::NotRead => {}
        }
        let is_ours = |it: &Document| matches!(classify(&it.value), Class::Read(kind) if kind.is_object());
        if how == How::Apart
            && let Some(document) = parsed.documents.iter().find(|it| is_ours(it))
        {
            let message = "the kustomization beside this file does not name it: it is no part of what is built";
            let finding = Finding::at(&kustomize_rules::APART, document, "/kind", FindingPlace::Key, message);
            found.push(finding.hint("name it under `resources`, or remove it"));
        }
        self.findings.extend(bounded(index, found));
    }

    /// Whether the file is a template of another program, of which one note is said. A file that is to be used has to
    /// be rendered, and all that is wrong with it counts.
    fn is_template(&mut self, index: usize, source: &SourceFile, parsed: &Parsed, how: How) -> bool {
        if self.purpose == Some(Purpose::Use) || !matches!(how, How::Whole | How::Apart) {
            return false;
        }
        let is_broken = parsed.lacks_some() || parsed.documents.iter().any(|it| it.broken);
        let text = str::from_utf8(&source.content).unwrap_or_default();
        let Some(template) = templates::of(text, is_broken) else { return false };
        self.not_read.push(NotRead::new(source.path.clone(), not_read::UNREADABLE));
        let message = format!("{} are not read", template.what);
        let finding = Finding::at_span(&reading::TEMPLATE, index, Span::start(), message);
        self.findings.push(finding.hint(template.hint));
        true
    }

    /// Holds workloads, and what was there before, against all objects, whatever scope they are in. Gives the files
    /// that are gone and that findings are in. `is_all_known` says that every file could be read.
    fn beside_objects(&mut self, objects: &[Object], paths: &[&str], is_all_known: bool) -> Vec<SourceFile> {
        if self.purpose == Some(Purpose::Use) {
            return Vec::new();
        }
        let brings_nothing = is_all_known && self.not_read.is_empty();
        self.findings.extend(rules::others::of_workloads(&self.workloads, objects, brings_nothing));
        let Some(before) = self.before.filter(|_| is_all_known) else { return Vec::new() };
        let (found, files) = rules::removed_pools::removed_pools(before, objects, paths);
        self.findings.extend(found);
        files.into_iter().map(|path| SourceFile::new(path, "")).collect()
    }

    fn documents(&mut self, source: &SourceFile, parsed: &Parsed, how: How, found: &mut Vec<Finding>) {
        let mut no_object = None;
        let has_items_of_ours = LazyCell::new(|| parsed.documents.iter().any(unread::is_item_of_ours));
        for (number, document) in parsed.documents.iter().enumerate() {
            match classify(&document.value) {
                Class::NoObject => {
                    self.documents_skipped += 1;
                    let finding = unread::no_settings(document, &source.path)
                        .or_else(|| unread::no_item(document).filter(|_| *has_items_of_ours))
                        .unwrap_or_else(|| unread::no_object(document));
                    if std::ptr::eq(finding.rule, &kind_rules::NO_OBJECT) {
                        no_object.get_or_insert(finding);
                    } else {
                        found.push(finding);
                    }
                }
                class => {
                    let origin = match how {
                        How::Changed => Origin::Built(&source.path, number),
                        _ => Origin::Written(number),
                    };
                    self.document(class, document, origin, source, found);
                }
            }
        }
        // A document that stands for objects elsewhere, or for encrypted ones, takes no object away. A file without a
        // document does.
        let is_no_object = |it: &Document| matches!(classify(&it.value), Class::NoObject);
        if parsed.documents.iter().any(|it| !it.value.is_null()) && parsed.documents.iter().all(is_no_object) {
            self.not_read.push(NotRead::new(source.path.clone(), not_read::WITHOUT_OBJECTS));
        }
        // A file has one note. It has none where it has objects as well, or findings anyway.
        let unread = parsed.aside.first().filter(|_| parsed.has_unread).map(unread::no_definition);
        if let Some(note) = no_object.or(unread)
            && parsed.documents.len() <= 1
            && found.is_empty()
            && !files::is_of_another_tool(&source.path)
        {
            found.push(unread::stand_in(note, &source.content));
        }
    }

    /// Finds what is wrong in a part of an object wherever it is used. What is missing in the part may come from
    /// elsewhere, and its variables have their values where it is built.
    fn in_part(&mut self, source: &SourceFile, parsed: &Parsed, role: Role, found: &mut Vec<Finding>) {
        for document in &parsed.documents {
            let class = classify(&document.value);
            self.documents_skipped += usize::from(!matches!(class, Class::Read(_) | Class::Old(_)));
            let Class::Read(kind) = class else { continue };
            self.ignores.annotation(document);
            if kind == Kind::NodePool {
                self.workloads.add_misread_pool(document);
            }
            self.definitions_found += usize::from(matches!(role, Role::Resource | Role::Unbuilt));
            let mut document = kustomize::without_directives(document);
            match role {
                Role::Resource => {
                    substitution::apply(kind, &mut document, self.context.values_at(&source.path));
                }
                _ => substitution::leave_open(&mut document),
            }
            let mut of_document = judging::ambiguous(kind, &document);
            let mut checked = schema::check(kind, &mut document, None, &mut false);
            checked.extend(match self.context.karpenter {
                Some(installed) => versions::check(kind, &document, None, installed),
                None => versions::unreleased(kind, &document, None),
            });
            open::drop_hidden(&document, &mut checked);
            of_document.extend(checked.into_iter().filter(|finding| finding.rule.is_of_one_field()));
            match role {
                Role::Resource => self.of_resources.extend(of_document),
                _ => found.extend(of_document),
            }
        }
    }

    /// Keeps what is wrong in an object that kustomizations take, where one of them builds it so. A mistake that each
    /// of them changes counts nowhere. The finding has the name of the object in its file.
    fn keep_what_is_built(&mut self) {
        fn place(it: &Finding) -> (usize, usize, usize, &str, &str) {
            (it.file, it.span.line, it.span.column, it.rule.code, &it.message)
        }
        let mut of_resources = std::mem::take(&mut self.of_resources);
        let built: BTreeSet<_> = self.findings.iter().map(place).collect();
        of_resources.retain(|finding| built.contains(&place(finding)));
        of_resources.append(&mut self.findings);
        self.findings = of_resources;
    }

    /// Objects as a kustomization built them.
    fn build(&mut self, build: Build, sources: &[&SourceFile], layout: &Layout<'_>) {
        let (top, place) = (build.top, path_of(sources, build.top));
        let mut found = Vec::new();
        let objects_before = self.objects.len();
        for (number, document) in build.documents.into_iter().enumerate() {
            let Some(source) = sources.get(document.file) else { continue };
            let objects = self.objects.len();
            match classify(&document.value) {
                // kustomize builds nothing that lacks one of them.
                Class::NoObject => found.push(unread::incomplete("kind", &document)),
                Class::Incomplete { missing } => found.push(unread::incomplete(missing, &document)),
                class => {
                    let (skipped, counted) = (self.documents_skipped, self.definitions_found);
                    self.document(class, &document, Origin::Built(place, number), source, &mut found);
                    (self.documents_skipped, self.definitions_found) = (skipped, counted);
                }
            }
            self.objects.iter_mut().skip(objects).for_each(|object| object.build = Some(build.top));
        }
        let mut by_file: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
        found.into_iter().for_each(|finding| by_file.entry(finding.file).or_default().push(finding));
        self.findings.extend(by_file.into_iter().flat_map(|(file, found)| bounded(file, found)));
        let builds_definitions = self.objects.iter().skip(objects_before).any(|object| object.kind.is_object());
        for found in kustomize::elsewhere(layout, top) {
            let path = path_of(sources, found.file);
            self.not_read.push(NotRead::elsewhere(&found, path, place, builds_definitions));
        }
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
                    if unread::is_of_its_name(kind, &source.path) && self.context.of_own_folders.contains(&source.path)
                    {
                        self.definitions_found += 1;
                        let judged = self.judged(kind, document, origin, source);
                        return found.extend(judged.findings);
                    }
                    self.documents_skipped += 1;
                    return found.push(finding);
                }
                self.definitions_found += 1;
                let judged = self.judged(kind, document, origin, source);
                let mut own = Vec::new();
                let of_flux = self.context.names_of_flux(place_of(origin, source));
                self.misses.add(&judged.document, judged.misses.clone(), of_flux, &mut own);
                // Files of many clusters may be judged at once; those of one are planned with.
                let is_planned_with = self.purpose == Some(Purpose::Use);
                own.extend(is_planned_with.then(|| self.amounts.one_more(kind, &judged.document)).flatten());
                let usable = judged.is_usable(&own);
                let Judged { document, asked, findings, unchecked, is_too_long, .. } = judged;
                found.extend(findings.into_iter().chain(own));
                if is_too_long || self.amounts.is_beyond(kind) {
                    return;
                }
                let staged = self.context.staged.contains(&source.path);
                let given_at = self.context.given_at(place_of(origin, source), &document);
                let root = self.context.roots.around(place_of(origin, source)).map(str::to_owned);
                let build = None;
                self.objects.push(Object { kind, document, asked, given_at, usable, unchecked, staged, build, root });
            }
            Class::Foreign => {
                self.documents_skipped += 1;
                self.not_read.extend(NotRead::alike(&source.path, document));
                self.not_read.extend(NotRead::held(&source.path, document));
                self.workloads.add(document, origin.built_by(&source.path));
                found.extend(unread::no_settings(document, &source.path));
                found.extend(match (origin, self.ahead.get_mut(document.file)) {
                    (Origin::Written(number), Some(ahead)) => ahead.foreign(number, document),
                    _ => ahead::of_foreign(document),
                });
            }
            Class::Old(old) => {
                self.workloads.add_misread_pool(document);
                found.extend(unread::outdated(old, document));
            }
            Class::Unread { note } => {
                self.documents_skipped += 1;
                found.push(Finding::at(&kind_rules::NOT_A_DEFINITION, document, "/kind", FindingPlace::Value, note));
            }
            Class::Unknown { meant } => {
                self.documents_skipped += 1;
                self.workloads.add_misread_pool(document);
                found.push(unread::unknown(document, meant));
            }
            Class::Incomplete { missing } => {
                if files::is_of_another_tool(&source.path) && !kinds::is_partly_ours(&document.value) {
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
    /// What is known of the document. What is not known is worked out, and kept where the document stands in a file.
    fn judged(&mut self, kind: Kind, document: &Document, origin: Origin<'_>, source: &SourceFile) -> Judged {
        let place = place_of(origin, source);
        let old = |value: &Value| self.before.and_then(|before| before.find(place, kind, value));
        let judge = || Judged::of(kind, document.clone(), (source, place), &self.context, old);
        let Some(known) = self.judged.as_mut() else {
            let ahead = match origin {
                Origin::Written(number) => self.ahead.get_mut(document.file).and_then(|it| it.judged.remove(&number)),
                Origin::Built(..) => None,
            };
            return ahead.unwrap_or_else(judge);
        };
        match origin {
            Origin::Written(number) => match known.files.get_mut(document.file) {
                Some(of_file) => of_file.entry(number).or_insert_with(judge).clone(),
                None => judge(),
            },
            Origin::Built(by, number) => known.of_built(by, number, document, judge),
        }
    }
}

/// The findings of a file that are shown: the first ones, and how many more there are.
fn bounded(file: usize, mut found: Vec<Finding>) -> Vec<Finding> {
    if found.len() > limits::FILE_FINDINGS {
        let more = found.len() - limits::FILE_FINDINGS;
        found.sort_by_key(|finding| (finding.rule.severity, finding.span.line, finding.span.column));
        found.truncate(limits::FILE_FINDINGS);
        found.push(Finding::at_span(&reading::TOO_MANY, file, Span::start(), format!("{more} more findings")));
    }
    found
}

/// The path that variables are looked up by.
fn place_of<'p>(origin: Origin<'p>, source: &'p SourceFile) -> &'p str {
    match origin {
        Origin::Written(_) => &source.path,
        Origin::Built(by, _) => by,
    }
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
