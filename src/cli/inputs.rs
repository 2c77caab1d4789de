//! From what was typed to the inputs of a plan: definitions, snapshots, catalog.

use std::path::Path;

use anyhow::Context;
use jiff::Timestamp;

use super::arguments::{DefinitionArguments, InputArguments, PackingArgument};
use super::exit::Failure;
use super::{facts_file, output, settings};
use crate::adapters::git;
use crate::api::cloud_facts::CloudFacts;
use crate::api::settings::Packing;
use crate::controller::facts as controller_facts;
use crate::controller::preview::{Reading, Surroundings, with_inputs as with_inputs_in};
use crate::core::catalog::regions::{self, Region, SaidBy};
use crate::core::catalog::{self, Catalog};
use crate::core::inputs::Inputs;
use crate::core::plan::{Note, NoteCode};
use crate::core::prepare::lost_nodes;
use crate::core::snapshot::{Snapshot, read};
use crate::definitions::rules::{self, Rule};
use crate::definitions::{Definitions, Diagnostic};
use crate::ports::RevisionContent;
use crate::render::diagnostics::{self, LintReport};
use crate::render::plan::count;

pub use super::files::{FileKind, is_stdin, read_file, read_text};

/// Everything that was read for one revision.
pub struct ReadInputs {
    pub head: ReadRevision,
    /// What is in force before the head; `None`: nothing is known of it.
    pub base: Option<ReadRevision>,
    pub snapshot: Snapshot,
    pub catalog: Catalog,
    pub region_said_by: SaidBy,
    pub now: Timestamp,
    /// What a file says of EC2; the snapshot has it already.
    pub facts: Option<CloudFacts>,
    /// What came up on the way, beside what the revision's content says.
    pub notes: Vec<Note>,
}

/// Reads the definitions of the revision, the snapshots and the catalog.
pub fn read_all(arguments: &InputArguments) -> Result<ReadInputs, Failure> {
    let head = read_revision(arguments, arguments.revision.as_deref())?;
    read_cluster(arguments, head)
}

/// Reads what a plan needs beside the definitions.
pub fn read_cluster(arguments: &InputArguments, head: ReadRevision) -> Result<ReadInputs, Failure> {
    let (snapshot, notes) = read_snapshots(arguments)?;
    with_cluster(arguments, head, snapshot, notes)
}

/// The same where the cluster was read before. `notes`: what its reader noticed.
pub fn with_cluster(
    arguments: &InputArguments,
    head: ReadRevision,
    snapshot: Snapshot,
    mut notes: Vec<Note>,
) -> Result<ReadInputs, Failure> {
    let facts = arguments.planning.facts.as_deref().map(facts_file::read).transpose()?;
    let mut snapshot = match &facts {
        Some(facts) => {
            let (overlaid, others) = controller_facts::overlaid(&snapshot, facts);
            notes.extend(others.into_iter().map(note_of_other_class));
            overlaid
        }
        None => snapshot,
    };
    lost_nodes::come_back(&mut snapshot);
    let of_facts = facts.as_ref().map(|facts| facts.region.as_str());
    let (catalog, region_said_by, assumptions) = catalog(arguments, &head.definitions, &snapshot, of_facts)?;
    if let Some(region) = of_facts.filter(|region| *region != catalog.region) {
        let error = anyhow::anyhow!("the facts are of {region}, and the plan is for {}", catalog.region);
        return Err(Failure::failed(error).with_hint(
            "pull them in the region of the plan: that of spec.region of cutlist.yaml, of the nodes, or of the file of --catalog",
        ));
    }
    notes.extend(assumptions);
    output::show_words_of(&catalog);
    let now = arguments.planning.now.unwrap_or_else(Timestamp::now);
    Ok(ReadInputs { head, base: None, snapshot, catalog, region_said_by, now, facts, notes })
}

fn note_of_other_class(class: String) -> Note {
    let text = format!(
        "the facts of EC2NodeClass {class} are about another definition than the cluster has: its status counts; `cutlist facts pull` \
         asks anew"
    );
    Note::new(NoteCode::FactsOfOtherClass, text)
}

/// A revision and what it defines.
#[derive(Clone)]
pub struct ReadRevision {
    pub content: RevisionContent,
    pub definitions: Definitions,
}

pub fn read_revision(arguments: &InputArguments, reference: Option<&str>) -> Result<ReadRevision, Failure> {
    let path = arguments.path.as_path();
    if is_stdin(path) && reference.is_some() {
        let error = anyhow::anyhow!("what comes from standard input has no revisions");
        return Err(Failure::usage(error).with_hint("name the folder of a clone"));
    }
    if is_stdin(path) {
        if arguments.snapshot.iter().any(|path| is_stdin(path)) {
            let error = anyhow::anyhow!("definitions and snapshot can not both come from standard input");
            return Err(Failure::usage(error));
        }
        return with_definitions(arguments, definitions_of_stdin()?);
    }
    let content = match reference {
        Some(reference) => git::read_revision(path, reference),
        None => git::read_folder(path),
    };
    let content = content.map_err(Failure::of_repository)?;
    with_definitions(arguments, content)
}

/// The same of a folder without one of its files, whose content is given apart.
pub fn read_without(arguments: &InputArguments, name: &str) -> Result<(ReadRevision, Option<Vec<u8>>), Failure> {
    let mut content = git::read_folder(&arguments.path).map_err(Failure::of_repository)?;
    let position = content.files.iter().position(|file| file.path == name && file.has_content());
    let file = position.map(|position| content.files.remove(position).content);
    Ok((with_definitions(arguments, content)?, file))
}

fn with_definitions(arguments: &InputArguments, content: RevisionContent) -> Result<ReadRevision, Failure> {
    let read = read_content(content, &arguments.planning.definitions);
    if read.definitions.has_errors() {
        return Err(unusable(&read.content, &read.definitions, &arguments.path));
    }
    if arguments.path.is_file() && holds_no_object(&read.definitions) {
        let path = arguments.path.display();
        let failure = Failure::failed(anyhow::anyhow!("{path} holds no definition"));
        return Err(failure.with_hint(format!("`cutlist lint {path}` says what is in it")));
    }
    Ok(read)
}

/// What the content defines, with errors if it has any.
pub fn read_content(mut content: RevisionContent, arguments: &DefinitionArguments) -> ReadRevision {
    let definitions = settings::read_definitions(&content.files, arguments);
    // What is left out of a plan is said with it.
    let left_out = |diagnostic: &&Diagnostic| LEFT_OUT.iter().any(|rule| rule.code == diagnostic.code);
    for diagnostic in definitions.diagnostics.iter().filter(left_out) {
        let Diagnostic { file, span, message, .. } = diagnostic;
        let text = format!("{}:{}: {message}", shown(file), span.line);
        content.notes.push(Note::new(NoteCode::LeftOut, text));
    }
    content.notes.extend(without_definitions(&definitions));
    ReadRevision { content, definitions }
}

/// Of a file that was named this is a mistake; of a folder it is one of many.
fn holds_no_object(definitions: &Definitions) -> bool {
    let is_said = definitions.diagnostics.iter().any(|it| it.code == rules::kinds::NO_OBJECT.code);
    definitions.definitions_found == 0 && is_said
}

/// A pipe whose first program failed, or a folder next to the right one: the plan would only say that there is nothing to do.
fn without_definitions(definitions: &Definitions) -> Option<Note> {
    let text = match definitions.files_read {
        0 => "no definitions were found, so there is nothing to plan: there is no file to read".to_owned(),
        files => format!("no definitions were found, so there is nothing to plan: {} read", count(files, "file")),
    };
    (definitions.definitions_found == 0).then(|| Note::new(NoteCode::NoDefinitions, text))
}

/// Findings that say that something is not in the definitions, or is not as another program would build it.
static LEFT_OUT: [&Rule; 5] = [
    &rules::kinds::NOT_A_DEFINITION,
    &rules::kinds::MISPLACED_FILE,
    &rules::reading::TEMPLATE,
    &rules::kustomize::NOT_CARRIED_OUT,
    &rules::kustomize::APART,
];

/// The file that is read from standard input, and how it is shown.
const STDIN_FILE: &str = "stdin.yaml";
pub const STDIN_SHOWN: &str = "<stdin>";

fn shown(file: &str) -> &str {
    if file == STDIN_FILE { STDIN_SHOWN } else { file }
}

/// A stream of definitions from standard input.
pub fn definitions_of_stdin() -> Result<RevisionContent, Failure> {
    let bytes = read_file(Path::new("-"), FileKind::Definitions).context("standard input").map_err(Failure::failed)?;
    Ok(git::of_text(STDIN_FILE, bytes, "standard input"))
}

/// Shows what is wrong, and says that no plan is made from it.
fn unusable(content: &RevisionContent, definitions: &Definitions, path: &Path) -> Failure {
    let mut report = LintReport::new();
    report.add(definitions, |file| shown(file).to_owned());
    let source = |name: &str| {
        let file = content.files.iter().find(|file| shown(&file.path) == name)?;
        std::str::from_utf8(&file.content).ok()
    };
    output::complain(&diagnostics::text(&report, source, true));
    let error = anyhow::anyhow!("no plan is made from definitions with errors");
    let path = path.display();
    let several = definitions.diagnostics.iter().any(|it| it.code == rules::kustomize::SEVERAL.code);
    Failure::failed(error).with_hint(if several {
        format!("`cutlist plan {path}/FOLDER` plans one of the kustomizations")
    } else {
        format!("`cutlist lint {path}` shows them again")
    })
}

/// Reads the live cluster, or all snapshots into one; none is an empty cluster.
pub fn read_snapshots(arguments: &InputArguments) -> Result<(Snapshot, Vec<Note>), Failure> {
    let paths = &arguments.snapshot;
    if arguments.cluster.are_given() {
        if !paths.is_empty() {
            let error = anyhow::anyhow!("--snapshot and a live cluster (--kubeconfig, --context) exclude each other");
            return Err(Failure::usage(error));
        }
        let (snapshot, notes) = super::cluster::read(&arguments.cluster)?;
        let notes = notes.into_iter().map(|text| Note::new(NoteCode::Cluster, text)).collect();
        return Ok((snapshot, notes));
    }
    let mut snapshot = Snapshot::default();
    let mut notes = Vec::new();
    if paths.is_empty() {
        notes.push(Note::new(NoteCode::NoSnapshot, "no snapshot was given: planned for an empty cluster".to_owned()));
    }
    for path in paths {
        let place = || format!("snapshot {}", path.display());
        let bytes = read_file(path, FileKind::Snapshot).map_err(|error| Failure::of_file(place(), error))?;
        let report = read::read(&bytes, &mut snapshot).with_context(place).map_err(|error| {
            Failure::failed(error)
                .with_hint("write it with `kubectl get nodes,nodeclaims,nodepools,pods,... -A -o json`")
        })?;
        notes.extend(report.notes.into_iter().map(|text| Note::new(NoteCode::Snapshot, text)));
    }
    Ok((snapshot, notes))
}

/// The catalog of the file, else the built-in one of the region that settings, nodes or pools name; and who named it.
fn catalog(
    arguments: &InputArguments,
    definitions: &Definitions,
    snapshot: &Snapshot,
    of_facts: Option<&str>,
) -> Result<(Catalog, SaidBy, Vec<Note>), Failure> {
    if let Some(path) = &arguments.planning.catalog {
        return Ok((catalog_of_file(path)?, SaidBy::Settings, Vec::new()));
    }
    let (region, note) = match (region(definitions, snapshot), of_facts) {
        // EC2 was asked there.
        ((Region { said_by: SaidBy::Nobody, .. }, _), Some(name)) => {
            (Region { name: name.to_owned(), said_by: SaidBy::Settings }, None)
        }
        (found, _) => found,
    };
    let catalog = Catalog::built_in(&region.name).map_err(|error| {
        Failure::failed(error).with_hint("set spec.region in cutlist.yaml, or give a catalog with --catalog")
    })?;
    let assumptions = catalog::assumptions(&region.name).into_iter();
    let assumptions = assumptions.map(|assumed| Note::new(code_of(assumed.subject), assumed.text));
    Ok((catalog, region.said_by, note.into_iter().chain(assumptions).collect()))
}

/// The catalog that a file holds, as `catalog --output json` or `catalog pull` writes it.
pub fn catalog_of_file(path: &Path) -> Result<Catalog, Failure> {
    let place = || format!("catalog {}", path.display());
    let bytes = read_file(path, FileKind::Catalog).map_err(|error| Failure::of_file(place(), error))?;
    Catalog::parse(bytes).with_context(place).map_err(Failure::failed)
}

fn code_of(assumed: catalog::Assumed) -> NoteCode {
    match assumed {
        catalog::Assumed::SpotPrices => NoteCode::SpotPricesAssumed,
        catalog::Assumed::OnDemandPrices => NoteCode::PricesOfOtherRegion,
    }
}

/// Where the plan is for, and what to tell of how that is known.
fn region(definitions: &Definitions, snapshot: &Snapshot) -> (Region, Option<Note>) {
    let pools: Vec<_> = definitions.node_pools.iter().map(|pool| pool.value.clone()).collect();
    let nodes = snapshot.nodes.iter().filter_map(|node| node.metadata.labels.as_ref());
    let region = regions::find(definitions.settings.region.as_deref(), nodes, &pools);
    let note = match region.said_by {
        SaidBy::Settings | SaidBy::Nodes => None,
        // It would have been the same without them.
        SaidBy::NodePools if region.name == regions::DEFAULT_REGION => None,
        SaidBy::NodePools => Some(Note::new(
            NoteCode::RegionOfZones,
            format!("region {}: the zones that the NodePools name are in it", region.name),
        )),
        SaidBy::Nobody => Some(Note::new(
            NoteCode::RegionAssumed,
            format!("region {} is only assumed: set spec.region in cutlist.yaml", region.name),
        )),
    };
    (region, note)
}

/// Hands over the inputs of a plan for the revision that was read.
pub fn with_inputs<T>(arguments: &InputArguments, read: &ReadInputs, then: impl FnOnce(&Inputs<'_>) -> T) -> T {
    with_inputs_of(arguments, read, &read.head, read.base.as_ref(), then)
}

/// The same for any revision of the definitions, on the same cluster. `base`: what it is compared with.
pub fn with_inputs_of<T>(
    arguments: &InputArguments,
    read: &ReadInputs,
    revision: &ReadRevision,
    base: Option<&ReadRevision>,
    then: impl FnOnce(&Inputs<'_>) -> T,
) -> T {
    let reading = reading_of(revision);
    with_inputs_in(&reading, base.map(|base| &base.definitions), &surroundings(arguments, read), then)
}

/// The revision as previews take it.
pub fn reading_of(revision: &ReadRevision) -> Reading<'_> {
    let RevisionContent { revision: id, files, notes, .. } = &revision.content;
    Reading { revision: id, files, definitions: &revision.definitions, notes, prefix: "" }
}

/// What was read beside the definitions, as previews take it.
pub fn surroundings<'a>(arguments: &InputArguments, read: &'a ReadInputs) -> Surroundings<'a> {
    Surroundings {
        snapshot: &read.snapshot,
        catalog: &read.catalog,
        region_said_by: read.region_said_by,
        packing: arguments.planning.packing.map(|packing| match packing {
            PackingArgument::Cheapest => Packing::Cheapest,
            PackingArgument::Karpenter => Packing::Karpenter,
        }),
        seed: arguments.planning.seed,
        now: read.now,
        facts: read.facts.as_ref(),
        notes: &read.notes,
        hidden: output::hidden(),
    }
}
