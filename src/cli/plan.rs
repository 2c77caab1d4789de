//! `cutlist plan`

#![expect(clippy::disallowed_methods, reason = "this command reads files, the clock and its own memory use")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use jiff::Timestamp;

use super::arguments::{PackingArgument, PlanArguments, PlanOutput};
use super::exit::{Failure, Outcome};
use super::settings;
use crate::adapters::git;
use crate::api::keys;
use crate::api::settings::{Packing, Settings};
use crate::core::catalog::{self, Catalog};
use crate::core::plan::{self, Inputs, Note, Phase, Plan, Policy};
use crate::core::snapshot::{Snapshot, read};
use crate::definitions::Definitions;
use crate::ports::RevisionContent;
use crate::render::diagnostics::{self, LintReport};
use crate::render::plan as render;

/// Exit code of a plan that could not be made.
const ERROR: u8 = 1;

pub fn run(arguments: &PlanArguments) -> Result<Outcome, Failure> {
    let mut timings = Timings::start();
    let head = read_revision(arguments, arguments.revision.as_deref())?;
    let base = arguments.against.as_deref().map(|reference| read_revision(arguments, Some(reference))).transpose()?;
    let (snapshot, mut notes) = read_snapshots(&arguments.snapshot)?;
    let (catalog, assumptions) = catalog(arguments, &head.definitions.settings, &snapshot)?;
    notes.extend(assumptions);
    let now = arguments.now.unwrap_or_else(Timestamp::now);
    timings.done("read");

    let mut decide = |read: &ReadRevision, base: Option<&ReadRevision>| {
        let mut notes = notes.clone();
        notes.extend(read.content.notes.iter().cloned());
        decide(arguments, read, base, &snapshot, &catalog, now, notes, &mut timings)
    };
    let plan = match &base {
        Some(base) => {
            let of_base = decide(base, None);
            plan::compare(decide(&head, Some(base)), &of_base)
        }
        None => decide(&head, None),
    };
    let mut out = anstream::AutoStream::auto(std::io::stdout()).lock();
    let text = rendered(&plan, arguments.output).map_err(|error| Failure::usage(ERROR, error))?;
    // A reader that closed the pipe has seen enough.
    let _ = out.write_all(text.as_bytes());
    timings.done("render");
    if arguments.timings {
        anstream::eprintln!("{}", timings.json());
    }
    Ok(if arguments.detailed_exitcode && has_changes(&plan) { Outcome::Changes } else { Outcome::Clean })
}

fn has_changes(plan: &Plan) -> bool {
    let no_longer = plan.against.as_ref().is_some_and(|against| !against.steps_no_longer_planned.is_empty());
    match &plan.against {
        Some(_) => no_longer || plan.steps.iter().any(|step| step.also_in_base != Some(true)),
        None => !plan.steps.is_empty(),
    }
}

fn rendered(plan: &Plan, output: PlanOutput) -> Result<String, serde_json::Error> {
    match output {
        PlanOutput::Text => Ok(render::text(plan, render::Style::Coloured)),
        PlanOutput::Json => render::json(plan),
        PlanOutput::Markdown => Ok(render::markdown(plan)),
    }
}

/// A revision and what it defines.
struct ReadRevision {
    content: RevisionContent,
    definitions: Definitions,
}

fn read_revision(arguments: &PlanArguments, reference: Option<&str>) -> Result<ReadRevision, Failure> {
    let path = arguments.path.as_path();
    let content = match reference {
        Some(reference) => git::read_revision(path, reference),
        None => git::read_folder(path),
    };
    let content = content.map_err(|error| {
        let hint = error.hint();
        let failure = Failure::usage(ERROR, error);
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    })?;
    let definitions = settings::read_definitions(&content.files, &arguments.definitions);
    if definitions.has_errors() {
        return Err(unusable(&content, &definitions, path));
    }
    Ok(ReadRevision { content, definitions })
}

/// Shows what is wrong, and says that no plan is made from it.
fn unusable(content: &RevisionContent, definitions: &Definitions, path: &Path) -> Failure {
    let mut report = LintReport::new();
    report.add(definitions, str::to_owned);
    let source = |name: &str| {
        let file = content.files.iter().find(|file| file.path == name)?;
        std::str::from_utf8(&file.content).ok()
    };
    anstream::eprint!("{}", diagnostics::text(&report, source, true));
    let error = anyhow::anyhow!("no plan is made from definitions with errors");
    Failure::usage(ERROR, error).with_hint(format!("`cutlist lint {}` shows them again", path.display()))
}

/// Reads all snapshots into one; none is an empty cluster.
fn read_snapshots(paths: &[PathBuf]) -> Result<(Snapshot, Vec<Note>), Failure> {
    let mut snapshot = Snapshot::default();
    let mut notes = Vec::new();
    if paths.is_empty() {
        notes.push(Note {
            code: "NoSnapshot".to_owned(),
            text: "no snapshot was given: planned for an empty cluster".to_owned(),
        });
    }
    for path in paths {
        let place = || format!("snapshot {}", path.display());
        let bytes = read_file(path).with_context(place).map_err(|error| Failure::usage(ERROR, error))?;
        let report = read::read(&bytes, &mut snapshot).with_context(place).map_err(|error| {
            Failure::usage(ERROR, error)
                .with_hint("write it with `kubectl get nodes,nodeclaims,nodepools,pods,... -A -o json`")
        })?;
        notes.extend(report.notes.into_iter().map(|text| Note { code: "Snapshot".to_owned(), text }));
    }
    Ok((snapshot, notes))
}

fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    std::fs::read(path)
}

/// The catalog of the file, else the built-in one of the region that the settings or the nodes name.
fn catalog(
    arguments: &PlanArguments,
    settings: &Settings,
    snapshot: &Snapshot,
) -> Result<(Catalog, Vec<Note>), Failure> {
    if let Some(path) = &arguments.catalog {
        let place = || format!("catalog {}", path.display());
        let catalog =
            std::fs::read(path).with_context(place).and_then(|bytes| Catalog::parse(bytes).with_context(place));
        return Ok((catalog.map_err(|error| Failure::usage(ERROR, error))?, Vec::new()));
    }
    let region = region(settings, snapshot);
    let catalog = Catalog::built_in(&region).map_err(|error| {
        Failure::usage(ERROR, error).with_hint("set spec.region in cutlist.yaml, or give a catalog with --catalog")
    })?;
    let assumptions = catalog::assumptions(&region).into_iter();
    Ok((catalog, assumptions.map(|assumed| Note { code: assumed.code.to_owned(), text: assumed.text }).collect()))
}

/// The settings' region; where they say nothing, the one most nodes are in.
fn region(settings: &Settings, snapshot: &Snapshot) -> String {
    if *settings != Settings::default() {
        return settings.region.clone();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for region in snapshot.nodes.iter().filter_map(|node| node.metadata.labels.as_ref()?.get(keys::REGION)) {
        *counts.entry(region).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or_else(|| settings.region.clone(), |(region, _)| region.to_owned())
}

#[expect(
    clippy::too_many_arguments,
    reason = "these are the inputs of a plan; a struct of them is `Inputs`, which this makes"
)]
fn decide(
    arguments: &PlanArguments,
    read: &ReadRevision,
    base: Option<&ReadRevision>,
    snapshot: &Snapshot,
    catalog: &Catalog,
    now: Timestamp,
    notes: Vec<Note>,
    timings: &mut Timings,
) -> Plan {
    let definitions = &read.definitions;
    let packing = match arguments.packing {
        Some(PackingArgument::Cheapest) => Packing::Cheapest,
        Some(PackingArgument::Karpenter) => Packing::Karpenter,
        None => definitions.settings.packing,
    };
    let values =
        |definitions: &Definitions| definitions.node_pools.iter().map(|pool| pool.value.clone()).collect::<Vec<_>>();
    let of_base = base.map(|base| values(&base.definitions)).unwrap_or_default();
    let inputs = Inputs {
        revision: read.content.revision.clone(),
        cluster: &definitions.settings.cluster_name,
        node_pools: &values(definitions),
        node_classes: &definitions.node_classes.iter().map(|class| class.value.clone()).collect::<Vec<_>>(),
        node_overlays: &definitions.node_overlays.iter().map(|overlay| overlay.value.clone()).collect::<Vec<_>>(),
        disruption_budgets: &definitions
            .disruption_budgets
            .iter()
            .map(|budget| budget.value.clone())
            .collect::<Vec<_>>(),
        snapshot,
        catalog,
        policy: Policy {
            packing,
            owned_pools: of_base.into_iter().filter_map(|pool| pool.metadata.name).collect(),
            ..Policy::of(&definitions.settings)
        },
        seed: arguments.seed,
        now,
        notes,
    };
    plan::decide_in_phases(&inputs, &mut |phase| {
        timings.done(match phase {
            Phase::Compiled => "snapshot",
            Phase::Provisioned => "provision",
            Phase::Disrupted => "disrupt",
        });
    })
}

/// Seconds by phase, in the order in which phases were first finished.
struct Timings {
    last: Instant,
    seconds: BTreeMap<&'static str, f64>,
}

impl Timings {
    fn start() -> Self {
        Self { last: Instant::now(), seconds: BTreeMap::new() }
    }

    /// The time since the last phase goes to this one.
    fn done(&mut self, phase: &'static str) {
        let now = Instant::now();
        *self.seconds.entry(phase).or_default() += now.duration_since(self.last).as_secs_f64();
        self.last = now;
    }

    fn json(&self) -> String {
        let seconds = |phase: &str| self.seconds.get(phase).copied().unwrap_or_default();
        let mut timings = serde_json::Map::new();
        for phase in ["read", "snapshot", "provision", "disrupt", "render"] {
            timings.insert(phase.to_owned(), seconds(phase).into());
        }
        timings.insert("peakMemoryBytes".to_owned(), peak_memory_bytes().into());
        serde_json::Value::Object(timings).to_string()
    }
}

/// The most memory this process has held; `null` where the system does not tell (it is Linux that does).
fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
