//! READ. Text of a repository to validated definitions. Pure: files come in as bytes.
//!
//! The way of a file: bytes, text, documents with the place of each value (`document`), what kustomizations make of them
//! (`kustomize`), and Flux and Argo CD of that (`afterwards`), variables (`substitution`), the
//! kind (`kinds`), the schema and CEL rules of the kind (`schema`), and the rules of the registry (`rules`), first on
//! each document, then on all of them together. Nothing stops at the first mistake: what is broken is reported and left
//! out, the rest goes on.

mod afterwards;
mod ahead;
mod amounts;
mod architectures;
mod argo;
mod asked;
pub mod baseline;
mod before;
mod beside;
mod broken;
pub mod changes;
mod chart_values;
mod context;
mod counted;
pub mod diagnostic;
mod document;
pub mod editing;
mod files;
mod findings;
pub mod fingerprint;
mod fixes;
pub mod flux;
mod generators;
mod given;
mod globs;
mod held;
mod judging;
mod kinds;
mod kustomize;
mod limits;
mod made;
mod memory;
pub mod migration;
mod misses;
mod not_read;
mod open;
mod own_baseline;
mod parsing;
pub mod patterns;
mod places;
mod providers;
mod reader;
pub mod renderers;
mod revision;
mod roots;
mod rule;
pub mod rules;
mod schema;
mod scopes;
mod shortening;
mod substitution;
pub mod suggest;
mod suppression;
mod templates;
mod typed;
mod unread;
mod variables;
mod versions;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PodTemplate;

use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::image_lock::ImageLock;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_pool::NodePool;
use crate::api::scenario::Scenario;
use crate::api::settings::Settings;
use crate::api::source::SourceFile;
use crate::core::catalog::regions::{self, Region};
use crate::core::plan::{DefinitionPlace, Note};
use reader::Aside;

pub use before::Before;
pub use broken::BrokenDefinition;
pub use diagnostic::{Diagnostic, Fix, Related, RuleDescription, Severity, Suppressed, SuppressedBy};
pub use files::is_candidate;
pub use fixes::apply as apply_fixes;
pub use given::{GivenVariables, Masks};
pub use memory::Memory;
pub use not_read::NotRead;
pub use open::OpenDefinition;
pub use schema::{PublishedSchema, for_others as published_schemas};
pub use versions::{FactKind, KarpenterVersion, UnknownVersion};

/// One parsed, validated document and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition<T> {
    pub value: T,
    pub file: String,
    /// The line of the document, from 1.
    pub line: usize,
    /// The places of fields that reasons name, by JSON pointer. With a kustomization each may stand in another file.
    /// The document itself has the empty pointer.
    pub places: BTreeMap<String, DefinitionPlace>,
    /// Variables that stood in the document, by the pointer of the text, or of the member whose key they stood in.
    pub variables: BTreeMap<String, BTreeSet<String>>,
    /// SHA-256 of what was written, in hexadecimal, where the value has fields of the cluster in the place of open variables, or what is
    /// shown nowhere in the place of others.
    pub hash_as_written: Option<String>,
    /// The variables in it whose values are shown nowhere.
    pub hidden_variables: BTreeSet<String>,
}

/// What a revision defines, as far as it could be read; and everything that was found on the way.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    pub settings: Settings,
    pub node_pools: Vec<Definition<NodePool>>,
    pub node_classes: Vec<Definition<EC2NodeClass>>,
    pub node_overlays: Vec<Definition<NodeOverlay>>,
    pub capacity_buffers: Vec<Definition<CapacityBuffer>>,
    /// The pod templates that a buffer of the definitions names.
    pub pod_templates: Vec<Definition<PodTemplate>>,
    pub disruption_budgets: Vec<Definition<DisruptionBudget>>,
    /// Only the embedded world plays it.
    pub scenario: Option<Definition<Scenario>>,
    /// The places are those of classes by their names, and of images by `CLASS/IMAGE`.
    pub image_lock: Option<Definition<ImageLock>>,
    /// The findings that count, in the order file, line, column, code.
    pub diagnostics: Vec<Diagnostic>,
    /// Findings that do not count, in the same order. Only `lint` has some, as otherwise everything counts.
    pub suppressed: Vec<Suppressed>,
    /// Paths of the files that were looked at, in order.
    pub paths_read: Vec<String>,
    /// What the reader of a plan should know of the variables.
    pub notes: Vec<Note>,
    /// Definitions with variables that have no value. Those whose value can be read are among the others, too.
    pub open: Vec<OpenDefinition>,
    /// Objects in which an error was found, or whose names others have: they are in no other list, and were not taken away.
    pub broken: Vec<BrokenDefinition>,
    /// Files that are among the others and are not read. What was defined in them is not gone.
    pub not_read: Vec<NotRead>,
    /// Fields of what Flux and Argo CD are told, by file and line. They are carried out in the definitions, or are for
    /// another cluster.
    pub carried_out: BTreeSet<(String, usize)>,
    /// Hides the values that came from the environment.
    pub masks: Masks,
    /// Files and documents that were looked at.
    pub files_read: usize,
    pub documents_read: usize,
    /// Documents of the kinds that are read, broken ones too.
    pub definitions_found: usize,
    /// Objects of other kinds, which are not our business.
    pub documents_skipped: usize,
}

impl Definitions {
    /// The NodePools with values that are shown nowhere, by name, with the variables that have these values.
    pub fn hidden_pools(&self) -> BTreeMap<&str, &BTreeSet<String>> {
        let hidden = self.node_pools.iter().filter(|pool| !pool.hidden_variables.is_empty());
        hidden.filter_map(|pool| Some((pool.value.metadata.name.as_deref()?, &pool.hidden_variables))).collect()
    }

    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Whether the revision can take force. With an error anywhere it can not, since a definition that is left out looks
    /// like one that was deleted: the last good revision stays. Nor can it where a variable without a value hides whether
    /// there is one.
    pub fn revision_usable(&self) -> bool {
        !self.has_errors() && self.unchecked().next().is_none()
    }

    /// Definitions that can not be judged, or not be read, before their variables have values.
    pub fn unchecked(&self) -> impl Iterator<Item = &OpenDefinition> {
        self.open.iter().filter(|open| open.unchecked)
    }

    /// The region that the definitions are for, as far as they say it themselves.
    pub fn region(&self) -> Region {
        regions::find(self.settings.region.as_deref(), [], self.node_pools.iter().map(|pool| &pool.value))
    }

    /// The files of pools, classes and what goes with them, with those that can not be used. Some files come more than
    /// once.
    pub fn files_of_objects(&self) -> impl Iterator<Item = &str> {
        fn files<T>(definitions: &[Definition<T>]) -> impl Iterator<Item = &str> {
            definitions.iter().map(|it| it.file.as_str())
        }
        files(&self.node_pools)
            .chain(files(&self.node_classes))
            .chain(files(&self.node_overlays))
            .chain(files(&self.capacity_buffers))
            .chain(files(&self.disruption_budgets))
            .chain(self.open.iter().map(|it| it.file.as_str()))
            .chain(self.broken.iter().map(|it| it.file.as_str()))
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }
}

/// Reads every `*.yaml`, `*.yml` and `*.json` among `files` that the settings let in. Never stops at the first mistake.
/// Variables that are given override those of `cutlist.yaml`.
pub fn read(files: &[SourceFile], given: &GivenVariables) -> Definitions {
    let mut definitions = reader::read(files, given, reader::Purpose::Use, Aside::default());
    let notes = renderers::notes(files, &definitions);
    definitions.notes.extend(notes);
    definitions
}

/// Reads files to judge each of them, and not to use them together. Kustomizations that define the same stand side by
/// side, and what none of them takes is read as well.
pub fn lint(files: &[SourceFile], given: &GivenVariables) -> Definitions {
    reader::read(files, given, reader::Purpose::Judge, Aside::default())
}

/// What is asked of [`lint_with`] beyond what the files say.
#[derive(Clone, Copy, Debug, Default)]
pub struct LintOptions<'a> {
    /// What the definitions were before: what may not change is held against it.
    pub before: Option<&'a Before>,
    /// The Karpenter that is installed; it takes the place of the one that `cutlist.yaml` names.
    pub karpenter: Option<KarpenterVersion>,
    /// Another baseline takes the place of the one that `cutlist.yaml` names.
    pub without_own_baseline: bool,
    /// The files are those of a whole repository, from its root.
    pub is_root: bool,
    /// The folder of the files from the root of their repository, from which a baseline may know them. Empty where there is none.
    pub folder: &'a str,
    /// The paths of the files as the user writes them, by the paths that they have here. `None` where these are the same.
    pub typed: Option<&'a BTreeMap<String, String>>,
}

/// The same as [`lint`], with more asked.
pub fn lint_with(files: &[SourceFile], given: &GivenVariables, options: LintOptions<'_>) -> Definitions {
    reader::read(files, given, reader::Purpose::Judge, Aside { options, ..Aside::default() })
}

/// The same as [`lint_with`], with what the files define, for [`LintOptions`].
pub fn lint_before(files: &[SourceFile], given: &GivenVariables, options: LintOptions<'_>) -> (Definitions, Before) {
    let mut before = Before::default();
    let aside = Aside { objects: Some(&mut before), options, ..Aside::default() };
    (reader::read(files, given, reader::Purpose::Judge, aside), before)
}

/// The same as [`lint_with`], for files that change again and again. What did not change is not worked out anew.
pub fn lint_again(
    files: &[SourceFile],
    given: &GivenVariables,
    options: LintOptions<'_>,
    memory: &mut Memory,
) -> Definitions {
    reader::read(files, given, reader::Purpose::Judge, Aside { memory: Some(memory), options, ..Aside::default() })
}

/// The rule with this code or name, for reports and `explain`.
pub fn rule_description(word: &str) -> Option<RuleDescription> {
    rules::find(word).map(rules::explained::describe)
}

/// Whether Flux or Argo CD may be told something in the file, which may be meant for one cluster of several.
pub fn is_told_to_others(file: &SourceFile) -> bool {
    let text = str::from_utf8(&file.content).unwrap_or_default();
    file.has_content() && [flux::GROUP, argo::GROUP].iter().any(|group| text.contains(group))
}

/// The names in `${NAME}` that occur in files that `read` would look at.
pub fn variable_names(files: &[SourceFile]) -> BTreeSet<String> {
    let texts =
        files.iter().filter(|file| is_candidate(&file.path)).filter_map(|file| str::from_utf8(&file.content).ok());
    texts.flat_map(substitution::names).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
