//! `cutlist preview`: what a change in Git would do to clusters, before it is merged.

mod places;
mod snapshots;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::anyhow;
use jiff::Timestamp;

use super::arguments::{
    FormOutput, InputArguments, PlanOutput, PlanningArguments, PreviewArguments, SimulateArguments,
};
use super::exit::{Failure, Outcome};
use super::inputs::{self, ReadRevision};
use super::output::Form;
use super::signing::{Base, NAMED_MAX, Signing};
use super::{output, simulate, why};
use crate::adapters::git::{self, Merge, SignedHistory};
use crate::api::node_plan::NodePlan;
use crate::api::preview::{FORMAT_VERSION, KIND, Preview, PreviewRevision, PreviewSignatures, PreviewVerdict};
use crate::controller::preview::{Previewed, Proposal, Reading, Subject, conflicting, failed, planned, without_plan};
use crate::core::plan::{DefinitionPlace, NoteCode, Plan, Revision};
use crate::core::snapshot::Snapshot;
use crate::definitions;
use crate::ports::chain;
use crate::ports::pull_requests::Question;
use crate::render::preview::{self as render, NextDay};
use crate::render::terminal::Style;

pub(super) use places::without_folders;
use snapshots::{Cluster, Saved};

/// More pods than this are not simulated for a day: it would take longer than a reviewer waits.
const SIMULATED_PODS_MAX: usize = 10_000;

pub fn run(arguments: &PreviewArguments) -> Result<Outcome, Failure> {
    output::refuse_one_place(&arguments.output, "-o json=preview.json -o text")?;
    let (preview, plans) = made(arguments, &|_, _| {})?;
    tell_uncommitted(arguments);
    for FormOutput { form, file } in &arguments.output {
        let style = if file.is_some() { Style::Plain } else { Style::Coloured };
        let (text, kind) = match form {
            PlanOutput::Text => (render::text(&preview, &plans, style), Form::Page),
            PlanOutput::Markdown => (render::markdown(&preview), Form::Document),
            PlanOutput::Json => (render::json(&preview).map_err(Failure::failed)?, Form::Data),
        };
        match file {
            Some(file) => output::file(file, &text, kind).map_err(Failure::failed)?,
            None => output::print(&text, kind)?,
        }
    }
    outcome(arguments, &preview, &plans)
}

/// What is in no commit is in no preview, which whoever tries a change at a desk may not think of.
fn tell_uncommitted(arguments: &PreviewArguments) {
    if arguments.head != "HEAD" {
        return;
    }
    // What can not be read is not part of a commit either, and was no reason to make no preview.
    let notes = git::read_folder(&arguments.path).map(|content| content.notes).unwrap_or_default();
    for note in notes.iter().filter(|note| note.code == NoteCode::UncommittedChanges) {
        output::say(&format!("note: {}; what is not committed is not in this preview", note.text));
    }
}

/// Is told that a cluster and its environment are going to be planned for, which may take a while.
pub(super) type Begins<'b> = &'b dyn Fn(&str, &str);

/// The document, with the plan of each target that has one. Blocks while it reads and plans.
pub(super) fn made(arguments: &PreviewArguments, begins: Begins<'_>) -> Result<(Preview, Vec<Option<Plan>>), Failure> {
    let signing = Signing::of(&arguments.signing, &arguments.planning.definitions)?;
    let clusters = snapshots::clusters(arguments)?;
    let now = arguments.planning.now.unwrap_or_else(Timestamp::now);
    let mut preview = Preview {
        kind: KIND.to_owned(),
        version: FORMAT_VERSION,
        generated_for: now.to_string(),
        ..Preview::default()
    };
    let mut proposals = Proposals::default();
    let mut all = Vec::new();
    for cluster in &clusters {
        let proposal = proposals.of(arguments, cluster)?;
        let revision = |revision: &Revision| {
            let Revision { id, reference } = revision.clone();
            PreviewRevision { id, reference }
        };
        (preview.base, preview.head) = (revision(&proposal.base.content.revision), revision(&proposal.head));
        if let Ok(merged) = &proposal.merged {
            let reference = format!("{} into {}", arguments.head, arguments.base);
            preview.merge = Some(PreviewRevision { id: merged.content.revision.id.clone(), reference });
        }
        all.push(of_cluster(arguments, cluster, proposal, now, begins));
    }
    all.sort_by(|one, two| {
        let key = |it: &Previewed| (it.target.cluster.clone(), it.target.environment.clone());
        key(one).cmp(&key(two))
    });
    let (targets, plans): (Vec<_>, Vec<Option<Plan>>) = all.into_iter().map(|it| (it.target, it.plan)).unzip();
    preview.targets = targets;
    if let Some(signing) = signing {
        let folders: BTreeSet<&str> = clusters.iter().map(|cluster| cluster.folder.as_str()).collect();
        let signatures = signatures(arguments, &signing, &preview, &folders);
        preview.signatures =
            Some(signatures.map_err(|error| Failure::failed(error.context("look who signed the head")))?);
    }
    Ok((preview, plans))
}

/// The commits that are proposed, as the controller will judge them when they are merged: the merge itself is not made yet.
fn signatures(
    arguments: &PreviewArguments,
    signing: &Signing,
    preview: &Preview,
    folders: &BTreeSet<&str>,
) -> anyhow::Result<PreviewSignatures> {
    let history = SignedHistory::open(&arguments.path)?;
    let branch = arguments.base.trim_start_matches("refs/heads/").trim_start_matches("origin/");
    let base = Base::Commit(preview.base.id.clone());
    let mut unsigned: Vec<String> = Vec::new();
    for folder in folders {
        for commit in signing.unsigned(&history, folder, branch, &base, &preview.head.id)? {
            let sentence = output::shown(&commit.to_string());
            if !unsigned.contains(&sentence) {
                unsigned.push(sentence);
            }
        }
    }
    let further = unsigned.len().saturating_sub(NAMED_MAX) as u64;
    unsigned.truncate(NAMED_MAX);
    Ok(PreviewSignatures { unsigned, further })
}

/// The answer to a question for each cluster, as if the change were merged. Blocks while it reads and plans.
pub(super) fn answered(arguments: &PreviewArguments, question: &Question) -> Result<Vec<(String, String)>, Failure> {
    let now = arguments.planning.now.unwrap_or_else(Timestamp::now);
    let mut proposals = Proposals::default();
    let answer = |cluster: &Cluster| {
        let proposed = proposals.of(arguments, cluster)?;
        let Ok(merged) = &proposed.merged else {
            return Err(Failure::failed(anyhow!("the head can not be merged")));
        };
        let name = cluster.name_for(&merged.definitions);
        if merged.definitions.has_errors() {
            return Err(Failure::failed(anyhow!("the definitions can not be used")));
        }
        let (inputs, saved) = (inputs_of(arguments, cluster, now), cluster.read(arguments, now)?);
        let mut read = inputs::with_cluster(&inputs, merged.clone(), saved.snapshot, saved.notes)?;
        read.base = Some(proposed.base.clone());
        Ok((name, output::hidden().text(&why::answered(question, &inputs, &read)?)))
    };
    snapshots::clusters(arguments)?.iter().map(answer).collect()
}

/// The plans that were posted in each cluster, by its name: empty for the living one. Blocks while it reads.
pub(super) fn node_plans(arguments: &PreviewArguments) -> Result<Vec<(String, Vec<NodePlan>)>, Failure> {
    let read = |cluster: Cluster| {
        let plans = cluster.node_plans(arguments, Timestamp::now())?;
        Ok((cluster.name, plans))
    };
    snapshots::clusters(arguments)?.into_iter().map(read).collect()
}

/// Folder, variables with their values, and the cluster where files tell what is for which one.
type WhatIsRead = (String, Vec<(String, String)>, Option<String>);

/// Clusters that have the same definitions share what was read of them.
#[derive(Default)]
struct Proposals(BTreeMap<WhatIsRead, Read>);

impl Proposals {
    fn of(&mut self, arguments: &PreviewArguments, cluster: &Cluster) -> Result<&Read, Failure> {
        let key = |name: Option<&String>| (cluster.folder.clone(), cluster.variables.clone(), name.cloned());
        let is_known = self.0.contains_key(&key(None));
        let read = if is_known { None } else { Some(Read::of(arguments, cluster)?) };
        let name = read.as_ref().is_some_and(Read::tells_clusters_apart).then_some(&cluster.name);
        Ok(match (self.0.entry(key(name)), read) {
            (Entry::Occupied(known), _) => known.into_mut(),
            (Entry::Vacant(new), Some(read)) => new.insert(read),
            (Entry::Vacant(new), None) => new.insert(Read::of(arguments, cluster)?),
        })
    }
}

/// Both revisions of one folder, and what they define.
struct Read {
    head: Revision,
    base: ReadRevision,
    merged: Result<ReadRevision, Conflicts>,
    prefix: String,
}

/// What both changed.
struct Conflicts {
    places: Vec<DefinitionPlace>,
    further: usize,
}

impl Read {
    fn of(arguments: &PreviewArguments, cluster: &Cluster) -> Result<Self, Failure> {
        let read = git::read_merge(&arguments.path, &cluster.folder, &arguments.base, &arguments.head);
        let git::Proposal { base, head, merge, prefix } = read.map_err(Failure::of_repository)?;
        let given = cluster.given(arguments);
        let defined = |content| inputs::read_content(content, &given);
        let merged = match merge {
            Merge::Content(content) => Ok(defined(*content)),
            Merge::Conflicts { places, further } => Err(Conflicts { places, further }),
        };
        Ok(Self { head, base: defined(base), merged, prefix })
    }

    /// Whether what another cluster gets may be something else, by what Flux and Argo CD are told in the files.
    fn tells_clusters_apart(&self) -> bool {
        let revisions = std::iter::once(&self.base).chain(self.merged.as_ref().ok());
        revisions.flat_map(|it| &it.content.files).any(definitions::is_told_to_others)
    }
}

/// A cluster of which something is wrong is a verdict about it, and the others are previewed all the same.
fn of_cluster(
    arguments: &PreviewArguments,
    cluster: &Cluster,
    read: &Read,
    now: Timestamp,
    begins: Begins<'_>,
) -> Previewed {
    let (name, environment) = (cluster.name.as_str(), arguments.environment.as_str());
    let without = |target| Previewed { target, plan: None };
    let merged = match &read.merged {
        Ok(merged) => merged,
        Err(Conflicts { places, further }) => {
            return without(conflicting(places, *further, &arguments.base, name, environment));
        }
    };
    let reading = |revision| Reading { prefix: &read.prefix, ..inputs::reading_of(revision) };
    let proposal = Proposal { base: reading(&read.base), merged: reading(merged) };
    let name = cluster.name_for(&merged.definitions);
    if let Some(target) = without_plan(&proposal, &name, environment) {
        return without(target);
    }
    begins(&name, environment);
    let simulation = simulate::of_next_day(inputs_of(arguments, cluster, now));
    let saved = match cluster.read(arguments, now) {
        Ok(saved) => saved,
        Err(failure) => return without(failed(sentence(&failure, arguments), &name, environment)),
    };
    match plan(arguments, &simulation, &proposal, (&read.base, merged), saved, (&name, environment)) {
        Ok(previewed) => previewed,
        Err(failure) => without(failed(sentence(&failure, arguments), &name, environment)),
    }
}

fn plan(
    arguments: &PreviewArguments,
    simulation: &SimulateArguments,
    proposal: &Proposal<'_>,
    (base, merged): (&ReadRevision, &ReadRevision),
    saved: Saved,
    (cluster, environment): (&str, &str),
) -> Result<Previewed, Failure> {
    let Saved { snapshot, document, notes } = saved;
    let next_24_hours =
        |read| if arguments.without_simulation { NextDay::default() } else { next_day(arguments, simulation, read) };
    let mut read = inputs::with_cluster(&simulation.inputs, merged.clone(), snapshot, notes)?;
    read.base = Some(base.clone());
    read.now = simulation.inputs.planning.now.unwrap_or(read.now);
    let subject = Subject {
        cluster: cluster.to_owned(),
        environment: environment.to_owned(),
        snapshot: document,
        next_24_hours: next_24_hours(&read),
    };
    Ok(planned(proposal, subject, &inputs::surroundings(&simulation.inputs, &read)))
}

/// A few sentences; why there are none, where there are none.
fn next_day(arguments: &PreviewArguments, simulation: &SimulateArguments, read: &inputs::ReadInputs) -> NextDay {
    let not_simulated = |why| NextDay { sentences: vec![why], ..NextDay::default() };
    let Snapshot { pods, .. } = &read.snapshot;
    if pods.len() > SIMULATED_PODS_MAX {
        return not_simulated(format!("Not simulated: {} pods would take too long.", pods.len()));
    }
    match simulate::next_day(simulation, read) {
        Ok(simulation) => render::next_day(&simulation),
        Err(failure) => not_simulated(format!("They could not be simulated: {}.", sentence(&failure, arguments))),
    }
}

/// What a plan is made from, for one cluster; its snapshot is read apart.
fn inputs_of(arguments: &PreviewArguments, cluster: &Cluster, now: Timestamp) -> InputArguments {
    let definitions = cluster.given(arguments);
    InputArguments {
        path: arguments.path.clone(),
        revision: None,
        snapshot: Vec::new(),
        cluster: arguments.live.clone(),
        planning: PlanningArguments { now: Some(now), definitions, ..arguments.planning.clone() },
    }
}

fn sentence(failure: &Failure, arguments: &PreviewArguments) -> String {
    // It goes to where others read it, not through the door of this program's own errors.
    output::shown(&without_folders(&chain(&*failure.error), arguments))
}

fn outcome(arguments: &PreviewArguments, preview: &Preview, plans: &[Option<Plan>]) -> Result<Outcome, Failure> {
    if plans.iter().flatten().any(|plan| !plan.is_sound()) {
        let error = anyhow!("a plan is wrong by a mistake in cutlist: its note BreaksRule says how");
        return Err(Failure::internal(error).with_hint("please report it with `cutlist snapshot` and the definitions"));
    }
    let has = |verdict| preview.targets.iter().any(|target| target.verdict == verdict);
    let is_unsigned = preview.signatures.as_ref().is_some_and(|signatures| !signatures.unsigned.is_empty());
    // Whoever lets changes through by the code lets none through of which nobody knows anything.
    let is_unknown = preview.targets.iter().any(|target| target.not_known.is_some());
    if is_unsigned || is_unknown || has(PreviewVerdict::Invalid) || has(PreviewVerdict::Failed) {
        return Ok(Outcome::Findings);
    }
    let differs = arguments.detailed_exitcode && has(PreviewVerdict::Changes);
    Ok(if differs { Outcome::Changes } else { Outcome::Clean })
}
