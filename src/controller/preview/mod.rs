//! What a change of definitions would do to a cluster: data in, a document out (`api::preview`). `cutlist preview` and the controller
//! that looks at open pull requests call the same functions, so that both say the same.
//!
//! Nothing of the change is executed: its files are text that is parsed.

mod causes;
mod inputs;
mod limits;
mod of_base;
mod unplanned;

use std::collections::BTreeSet;

use crate::api::preview::{
    PreviewCause, PreviewMarkdown, PreviewSeverity, PreviewSnapshot, PreviewTarget, PreviewVerdict,
};
use crate::api::source::SourceFile;
use crate::controller::revisions::inputs::from_root;
use crate::core::check::judged;
use crate::core::plan::{DefinitionPlace, Plan, Revision, compare};
use crate::core::planner::decide;
use crate::core::preview as figures;
use crate::definitions::changes::{Change, Side, changes};
use crate::definitions::renderers::{self, Unseen};
use crate::definitions::{Definitions, Diagnostic, Severity};
use crate::render::preview::{self as render, NextDay};

use unplanned::Planned;

pub use inputs::{Surroundings, with_inputs};
pub use of_base::after_base;

/// One revision that was read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    pub revision: &'a Revision,
    pub files: &'a [SourceFile],
    pub definitions: &'a Definitions,
    /// What its reader noticed.
    pub notes: &'a [crate::core::plan::Note],
    /// Where the paths of the files begin, from the root of the repository: empty, or with `/` at its end.
    pub prefix: &'a str,
}

impl<'a> Reading<'a> {
    fn side(&self) -> Side<'a> {
        Side { definitions: self.definitions, files: self.files }
    }
}

/// A change: what it goes into, and what would be there with it.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    pub base: Reading<'a>,
    /// Of the merge: [`Reading::files`] are those that would be applied.
    pub merged: Reading<'a>,
}

/// Whom the preview is about.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    pub cluster: String,
    pub environment: String,
    /// `None`: the living cluster.
    pub snapshot: Option<PreviewSnapshot>,
    /// Of [`render::next_day`]; empty where nobody asked.
    pub next_24_hours: NextDay,
}

/// A target, and the plan that it was made from.
#[derive(Clone, Debug)]
pub struct Previewed {
    pub target: PreviewTarget,
    pub plan: Option<Plan>,
}

/// The target where there is nothing to plan: nothing of ours changed, or it can not be used. `None`: plan it.
pub fn without_plan(proposal: &Proposal<'_>, cluster: &str, environment: &str) -> Option<PreviewTarget> {
    let target = |verdict, headline: String, causes| {
        let (cluster, environment) = (cluster.to_owned(), environment.to_owned());
        short(PreviewTarget { cluster, environment, verdict, headline, causes, ..PreviewTarget::default() })
    };
    let (base, merged) = (proposal.base.definitions, proposal.merged.definitions);
    let is_same = differing(proposal).is_empty() && errors(base) == errors(merged) && !broken_files_differ(proposal);
    if merged.has_errors() && !is_same {
        let found = found_in(merged);
        // The author of the change reads it, who may have nothing to do with it.
        let is_as_before = errors(merged).iter().all(|error| errors(base).contains(error));
        let subject = if is_as_before { "as the base, this can not be used" } else { "can not be used" };
        let headline = format!("{subject}: {}", invalid(&found, proposal.merged.prefix));
        return Some(target(
            PreviewVerdict::Invalid,
            headline,
            found.into_iter().map(|it| of_finding(it, proposal)).collect(),
        ));
    }
    // Where the base can not be used and the merge can, what was in force last is not what stands in the base.
    let unseen = unseen(proposal);
    if is_same && let Some(first) = unseen.first() {
        let headline = not_known(first);
        let causes = unseen.iter().map(|it| of_unseen(it, proposal)).collect();
        return Some(target(PreviewVerdict::NotKnown, headline, causes));
    }
    if is_same {
        return Some(target(PreviewVerdict::Untouched, NOTHING_CHANGED.to_owned(), Vec::new()));
    }
    None
}

/// What is said of the next 24 hours where nodes come or go in them that would without the change.
const WITH_ANYWAY: &str = "What would happen without this change is in that as well.";

/// What is said of the next 24 hours where a plan waits: nobody is there who approves it.
const AS_IF_APPROVED: &str = "What waits for an approval counts as approved in that.";

/// What is said where nothing of ours changed.
const NOTHING_CHANGED: &str = "nothing changed that decides about nodes";

/// The target where the head can not be merged. The paths are those from the root of the repository.
pub fn conflicting(
    places: &[DefinitionPlace],
    further: usize,
    base: &str,
    cluster: &str,
    environment: &str,
) -> PreviewTarget {
    let cause = |place: &DefinitionPlace| PreviewCause {
        path: place.file.clone(),
        line: u32::try_from(place.line).unwrap_or(u32::MAX),
        severity: PreviewSeverity::Error,
        text: format!("{base} changed this, too: merge it into the branch, or rebase"),
    };
    let paths: Vec<String> = places.iter().map(|place| place.file.clone()).collect();
    short(PreviewTarget {
        cluster: cluster.to_owned(),
        environment: environment.to_owned(),
        verdict: PreviewVerdict::Invalid,
        headline: render::conflict(base, &paths, further),
        causes: places.iter().map(cause).collect(),
        ..PreviewTarget::default()
    })
}

/// The target for which no plan could be made, by no fault of the definitions.
pub fn failed(why: String, cluster: &str, environment: &str) -> PreviewTarget {
    let (cluster, environment) = (cluster.to_owned(), environment.to_owned());
    let verdict = PreviewVerdict::Failed;
    short(PreviewTarget { cluster, environment, verdict, headline: why, ..PreviewTarget::default() })
}

/// The target of a snapshot that tells nothing of the cluster. What a plan says by it would be read as if it were so, and is left out.
fn nothing_known(
    why: String,
    cluster: String,
    environment: String,
    snapshot: Option<PreviewSnapshot>,
) -> PreviewTarget {
    let headline = format!("nothing is known of this cluster: {why}");
    let (verdict, not_known) = (PreviewVerdict::NotKnown, Some(why));
    short(PreviewTarget { cluster, environment, verdict, headline, not_known, snapshot, ..PreviewTarget::default() })
}

/// Plans the merge and the base on the same cluster at the same moment, and says what is different. Where the base can not be used, the
/// merge stands alone, and what the base has taken over all the same is what it takes away. Two plans, each as [`decide()`] takes.
pub fn planned(proposal: &Proposal<'_>, subject: Subject, on: &Surroundings<'_>) -> Previewed {
    let base_definitions = proposal.base.definitions;
    let base = (!base_definitions.has_errors())
        .then(|| with_inputs(&proposal.base, None, on, |inputs| judged(inputs, decide)));
    let plan = with_inputs(&proposal.merged, Some(base_definitions), on, |inputs| judged(inputs, decide));
    let mut hidden_pools = base_definitions.hidden_pools();
    hidden_pools.extend(proposal.merged.definitions.hidden_pools());
    let hidden = on.hidden.with_hashes_of(&plan, &hidden_pools);
    let hidden = base.as_ref().map_or_else(|| hidden.clone(), |base| hidden.with_hashes_of(base, &hidden_pools));
    let base = base.map(|base| hidden.numbered(base));
    let plan = hidden.numbered(match &base {
        Some(base) => compare(plan, base),
        None => plan,
    });
    let (Some(plan), Some(base)) = (hidden.shown(plan), base.map_or(Some(None), |base| hidden.shown(base).map(Some)))
    else {
        let why = "what is hidden can not be kept out of it".to_owned();
        return Previewed { target: failed(why, &subject.cluster, &subject.environment), plan: None };
    };
    // The digest is of what is shown as well: what is hidden could be guessed by a hash of it.
    let identity = figures::identity(&plan);
    let plan = base.iter().fold(plan, figures::with_reasons_of_base);
    let changed = differing(proposal);
    let limits = limits_reached(proposal, &plan, on);
    let [risks, held_back, pending] = figures::counts(&plan, base.as_ref(), on.snapshot);
    let beside =
        Planned { changes: &changed, plan: &plan, base: base.as_ref(), snapshot: on.snapshot, limits: &limits };
    if let Some(why) = beside.not_known(base_definitions).filter(|_| plan.is_sound()) {
        return Previewed {
            target: nothing_known(why, subject.cluster, subject.environment, subject.snapshot),
            plan: None,
        };
    }
    let verdict = match &base {
        _ if !plan.is_sound() => PreviewVerdict::Failed,
        Some(base) if !figures::has_effect(&plan, base) && !beside.makes_a_difference() => PreviewVerdict::NoEffect,
        _ => PreviewVerdict::Changes,
    };
    let headline = headline(proposal, &beside, on);
    let mut causes = causes::of(&changed, proposal, &plan, base.as_ref());
    causes.extend(unseen(proposal).iter().map(|it| of_unseen(it, proposal)));
    let mut target = PreviewTarget {
        cluster: subject.cluster,
        environment: subject.environment,
        verdict,
        headline,
        not_known: None,
        snapshot: subject.snapshot,
        plan: Some(identity),
        figures: Some(figures::figures(&plan)),
        risks,
        held_back,
        pending,
        next_24_hours: next_24_hours(subject.next_24_hours, &beside),
        causes,
        markdown: PreviewMarkdown::default(),
    };
    target.markdown = render::pieces(&target, &plan, base.as_ref());
    Previewed { target, plan: Some(plan) }
}

/// What is said of them, and how it is meant.
fn next_24_hours(day: NextDay, beside: &Planned<'_>) -> Vec<String> {
    let mut sentences = day.sentences;
    if day.nodes_change && figures::happens_anyway(beside.plan) {
        sentences.push(WITH_ANYWAY.to_owned());
    }
    if day.simulated && beside.waits_for_approval().is_some() {
        sentences.push(AS_IF_APPROVED.to_owned());
    }
    sentences
}

/// None where the base can not be used: what was in force last is not known.
fn limits_reached(proposal: &Proposal<'_>, plan: &Plan, on: &Surroundings<'_>) -> Vec<String> {
    let Proposal { base, merged } = proposal;
    if base.definitions.has_errors() {
        return Vec::new();
    }
    limits::reached(&base.definitions.beside(on.snapshot), &merged.definitions.beside(on.snapshot), on.snapshot, plan)
}

/// What the change does to nodes, behind what matters more and no step shows, and before what is not known.
fn headline(proposal: &Proposal<'_>, beside: &Planned<'_>, on: &Surroundings<'_>) -> String {
    let settled = proposal.merged.definitions.beside(on.snapshot).open;
    let removal = beside.waits_for_approval().or_else(|| beside.pools_removed());
    let before = [removal, beside.sentence(&settled, &on.hidden)].into_iter().flatten();
    let mut parts: Vec<String> = before.chain([render::headline(beside.plan, beside.base)]).collect();
    if beside.base.is_none() {
        let why = invalid(&found_in(proposal.base.definitions), proposal.base.prefix);
        parts.push(format!("the base can not be used ({why}): this mends it, and nothing is compared"));
    }
    parts.extend(unseen(proposal).first().map(not_known));
    parts.join("; ")
}

fn short(mut target: PreviewTarget) -> PreviewTarget {
    target.markdown = render::short_pieces(&target);
    target
}

fn differing(proposal: &Proposal<'_>) -> Vec<Change> {
    let Proposal { base, merged } = proposal;
    changes(base.side(), merged.side())
}

/// Whether a file in which there are errors is another one: what it defines may not be known at all.
fn broken_files_differ(proposal: &Proposal<'_>) -> bool {
    let Proposal { base, merged } = proposal;
    let content = |reading: &Reading<'_>, path: &str| {
        reading.files.iter().find(|file| file.path == path).map(|file| file.content.clone())
    };
    let found = [base, merged].into_iter().flat_map(|reading| found_in(reading.definitions));
    let paths: BTreeSet<&str> = found.map(|it| it.file.as_str()).collect();
    paths.into_iter().any(|path| content(base, path) != content(merged, path))
}

/// What differs and is read by others than this program: what comes of it is not known.
fn unseen(proposal: &Proposal<'_>) -> Vec<Unseen> {
    renderers::unseen(proposal.base.side(), proposal.merged.side())
}

fn not_known(found: &Unseen) -> String {
    format!("{} is not known here", found.what)
}

fn of_unseen(found: &Unseen, proposal: &Proposal<'_>) -> PreviewCause {
    PreviewCause {
        path: from_root(proposal.merged.prefix, &found.file),
        line: u32::try_from(found.line).unwrap_or(u32::MAX),
        severity: PreviewSeverity::Notice,
        text: not_known(found),
    }
}

fn errors(definitions: &Definitions) -> Vec<(&str, &str, &str)> {
    let errors = definitions.diagnostics.iter().filter(|it| it.severity == Severity::Error);
    errors.map(|it| (it.code.as_str(), it.file.as_str(), it.message.as_str())).collect()
}

fn found_in(definitions: &Definitions) -> Vec<&Diagnostic> {
    definitions.diagnostics.iter().filter(|it| it.severity == Severity::Error).collect()
}

/// `2 errors, such as pools.yaml:7: unknown field`
fn invalid(errors: &[&Diagnostic], prefix: &str) -> String {
    let said = |it: &&Diagnostic| format!("{}:{}: {}", from_root(prefix, &it.file), it.span.line, it.message);
    let first = errors.first().map_or_else(String::new, said);
    match errors.len() {
        1 => first,
        several => format!("{several} errors, such as {first}"),
    }
}

fn of_finding(finding: &Diagnostic, proposal: &Proposal<'_>) -> PreviewCause {
    PreviewCause {
        path: from_root(proposal.merged.prefix, &finding.file),
        line: u32::try_from(finding.span.line).unwrap_or(u32::MAX),
        severity: PreviewSeverity::Error,
        text: format!("{} {}: {}", finding.code, finding.rule, finding.message),
    }
}
