//! What a preview says in one line of plain text.

use std::collections::BTreeMap;

use crate::api::preview::{PreviewSignatures, PreviewSnapshot, PreviewTarget, PreviewVerdict};
use crate::core::model::HourlyPrice;
use crate::core::plan::simulation::{Simulation, SimulationSummary};
use crate::core::plan::{HeldBack, NodeCounts, Plan, ReasonCode};
use crate::core::preview::{Effect, held_back, other_reasons, pending, steps_anyway};
use crate::definitions::changes::{Change, ChangeKind, FieldChange, SETTINGS};
use crate::render::chart::duration;
use crate::render::plan::units::{count, difference_per_hour, kinds, money, thousands};

/// Fields that a sentence names.
const FIELDS_NAMED_MAX: usize = 3;
/// Commits that somebody else should have signed, and that are shown of those in the preview.
const UNSIGNED_MAX: usize = 20;
/// Changes of reason that a sentence names.
const REASONS_NAMED_MAX: usize = 3;
/// Paths that a sentence about conflicts names.
const PATHS_NAMED_MAX: usize = 3;

/// Reasons of nodes that stay, and of which nothing says that they should go.
const MAY_STAY: [ReasonCode; 4] = [
    ReasonCode::ConsolidateAfterNotElapsed,
    ReasonCode::ConsolidationDisabled,
    ReasonCode::NotCheaper,
    ReasonCode::PaybackTooLong,
];

/// A snapshot that is older is called old before all else.
const OLD_SECONDS: u64 = 3_600;
/// Nobody should decide by a snapshot that is older.
const TOO_OLD_SECONDS: u64 = 24 * 3_600;

/// `2 nodes replaced, 1 created, 14 pods move, 3 pods wait, +$0.3276/h (+$239.15/month)`: what the change does, and
/// nothing that would happen anyway.
pub fn headline(plan: &Plan, base: Option<&Plan>) -> String {
    let effect = Effect::of_change(plan);
    let waiting: usize = pending(plan, base).caused.iter().map(|group| group.pods.len()).sum();
    let held_back = held_back(plan, base).caused;
    let of_code = |code| held_back.iter().filter(|held| held.code == code).count();
    let mut parts = nodes_and_pods(&effect, of_code(ReasonCode::WaitsForCanary));
    // Where other nodes go, only nodes whose pods find no place are named as held back: the others go in time, by a
    // budget or after a canary.
    let is_all = effect.nodes == NodeCounts::default();
    let is_named =
        |held: &&HeldBack| held.code == ReasonCode::PodsWouldNotFit || (is_all && !MAY_STAY.contains(&held.code));
    let named: Vec<&HeldBack> = held_back.iter().filter(is_named).collect();
    if !named.is_empty() {
        parts.push(stays(&named));
    }
    if waiting > 0 {
        parts.push(waits(waiting));
    }
    if parts.is_empty() {
        parts.extend(base.and_then(|base| another_reason(plan, base)));
    }
    if effect.price_per_hour != HourlyPrice::ZERO {
        parts.push(money(effect.price_per_hour));
    } else if !parts.is_empty() {
        parts.push("same price".to_owned());
    }
    let anyway = kinds(&NodeCounts::of(steps_anyway(plan)));
    let and_anyway = anyway.map_or_else(String::new, |(named, _)| format!("; {named} would happen anyway"));
    if parts.is_empty() {
        return format!("no node changes because of this{and_anyway}");
    }
    format!("{}{and_anyway}", parts.join(", "))
}

/// What becomes of nodes, and of the pods on them. `follow`: nodes that go by the same change, after those of this plan.
fn nodes_and_pods(effect: &Effect, follow: usize) -> Vec<String> {
    let NodeCounts { created, replaced, replacements, removed, adopted, held } = effect.nodes;
    let by =
        if replacements == replaced { String::new() } else { format!(" by {}", thousands(&replacements.to_string())) };
    let mut parts = Vec::new();
    let (gone, anyway) = (removed + replaced, effect.going_anyway);
    for (nodes, done) in [(removed, "removed"), (replaced, &format!("replaced{by}"))] {
        add_nodes(nodes, done, &mut parts);
    }
    parts.extend((anyway > 0).then(|| match (gone, anyway) {
        (1, _) => "it goes anyway".to_owned(),
        (gone, anyway) if gone == anyway => format!("all {} go anyway", thousands(&gone.to_string())),
        (gone, anyway) => {
            let (anyway, gone, go) =
                (thousands(&anyway.to_string()), thousands(&gone.to_string()), verb(anyway, "goes", "go"));
            format!("{anyway} of the {gone} {go} anyway")
        }
    }));
    for (nodes, done) in
        [(created, "created"), (adopted, "taken over"), (held, "held until somebody confirms"), (follow, "to follow")]
    {
        add_nodes(nodes, done, &mut parts);
    }
    parts.extend(no_longer(&effect.taken_away));
    if effect.pods_moved > 0 {
        parts.push(format!("{} {}", count(effect.pods_moved, "pod"), verb(effect.pods_moved, "moves", "move")));
    }
    parts
}

/// Only the first count has the word `node`.
fn add_nodes(nodes: usize, done: &str, parts: &mut Vec<String>) {
    match nodes {
        0 => {}
        nodes if parts.is_empty() => parts.push(format!("{} {done}", count(nodes, "node"))),
        nodes => parts.push(format!("{} {done}", thousands(&nodes.to_string()))),
    }
}

/// `10 nodes held back (PodsWouldNotFit)`: a change may have no other effect than nodes that should go and can not.
fn stays(held_back: &[&HeldBack]) -> String {
    let mut codes: BTreeMap<String, usize> = BTreeMap::new();
    for held in held_back {
        *codes.entry(format!("{:?}", held.code)).or_default() += 1;
    }
    let codes: Vec<String> = codes.into_keys().collect();
    format!("{} held back ({})", count(held_back.len(), "node"), codes.join(", "))
}

/// `3 replacements and 1 creation no longer happen`: what the base would do, and the change takes away.
fn no_longer(nodes: &NodeCounts) -> Option<String> {
    let (named, total) = kinds(nodes)?;
    Some(format!("{named} no longer {}", verb(total, "happens", "happen")))
}

/// `3 nodes go for another reason (Empty -> NodeClassDrift)`: all that is different may be why they go.
fn another_reason(plan: &Plan, base: &Plan) -> Option<String> {
    let other = other_reasons(plan, base);
    let nodes: usize = other.values().sum();
    let kinds: Vec<String> =
        other.keys().take(REASONS_NAMED_MAX).map(|(before, now)| format!("{before} -> {now}")).collect();
    let more = if other.len() > kinds.len() { ", ..." } else { "" };
    let go = verb(nodes, "goes", "go");
    (nodes > 0).then(|| format!("{} {go} for another reason ({}{more})", count(nodes, "node"), kinds.join(", ")))
}

/// `8 pods wait`
pub fn waits(pods: usize) -> String {
    format!("{} {}", count(pods, "pod"), verb(pods, "waits", "wait"))
}

fn verb(number: usize, one: &'static str, several: &'static str) -> &'static str {
    if number == 1 { one } else { several }
}

/// `1 node removed, 2 created, 5 pods move, -$0.0672/h`: an effect in the words of the headline; empty where there is
/// none.
pub fn effect(effect: &Effect) -> String {
    let mut parts = nodes_and_pods(effect, 0);
    if effect.price_per_hour != HourlyPrice::ZERO {
        parts.push(crate::render::plan::units::signed_per_hour(effect.price_per_hour));
    }
    parts.join(", ")
}

/// `NodePool default: spec.limits.cpu 100 -> 200, and 2 more fields`
pub fn cause(change: &Change) -> String {
    let Change { kind, name, what, fields, further_fields, .. } = change;
    let subject = if *kind == SETTINGS { "cutlist.yaml".to_owned() } else { format!("{kind} {name}") };
    match what {
        ChangeKind::Added => format!("{subject} is new"),
        ChangeKind::Removed => format!("{subject} is removed"),
        ChangeKind::Renamed { from } => format!("{subject} is {from} under another name"),
        // Of a definition that can not be used no more is known for sure.
        ChangeKind::Changed if fields.is_empty() => format!("{subject} differs"),
        ChangeKind::Changed => {
            let named: Vec<String> = fields.iter().take(FIELDS_NAMED_MAX).map(field).collect();
            let more = fields.len().saturating_sub(FIELDS_NAMED_MAX) + further_fields;
            let more = if more > 0 { format!(", and {}", count(more, "more field")) } else { String::new() };
            format!("{subject}: {}{more}", named.join(", "))
        }
    }
}

/// The cause of what comes of no single line.
pub fn together() -> String {
    "several of these together, or what follows from them in other pools".to_owned()
}

fn field(field: &FieldChange) -> String {
    match (&field.before, &field.after) {
        (Some(before), Some(after)) => format!("{} {before} -> {after}", field.path),
        (None, Some(after)) => format!("{} {after} is new", field.path),
        (Some(before), None) => format!("{} {before} is gone", field.path),
        (None, None) => format!("{} differs", field.path),
    }
}

/// Why there is nothing to plan where the head can not be merged.
pub fn conflict(base: &str, paths: &[String], further: usize) -> String {
    let named: Vec<&str> = paths.iter().take(PATHS_NAMED_MAX).map(String::as_str).collect();
    let more = paths.len().saturating_sub(PATHS_NAMED_MAX) + further;
    let more = if more > 0 { format!(" and {}", count(more, "more file")) } else { String::new() };
    format!("can not be merged into {base}: both changed {}{more}", named.join(", "))
}

/// How much an old snapshot is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Staleness {
    Fresh,
    /// Its age is said before all else.
    Old,
    /// Nobody should decide by it.
    TooOld,
    /// Its objects do not tell its age.
    Unknown,
}

pub fn staleness(snapshot: &PreviewSnapshot) -> Staleness {
    match snapshot.age_seconds {
        None => Staleness::Unknown,
        Some(age) if age > TOO_OLD_SECONDS => Staleness::TooOld,
        Some(age) if age > OLD_SECONDS => Staleness::Old,
        Some(_) => Staleness::Fresh,
    }
}

/// What must be said of a snapshot before all else, if anything.
pub(super) fn warning(snapshot: &PreviewSnapshot) -> Option<String> {
    let age = || duration(snapshot.age_seconds.unwrap_or(0));
    match staleness(snapshot) {
        Staleness::Fresh => None,
        Staleness::Old => Some(format!("The snapshot is {} old: what happened since is not in this.", age())),
        Staleness::TooOld => Some(format!("The snapshot is {} old: too old to decide by. Take a new one.", age())),
        Staleness::Unknown => Some("Nothing in the snapshot tells when it was taken.".to_owned()),
    }
}

/// The clusters by verdict, with those first of which a reader must know most. Clusters of one verdict keep their
/// order.
pub fn worst_first(targets: &[PreviewTarget]) -> Vec<&PreviewTarget> {
    let rank = |target: &&PreviewTarget| match target.verdict {
        PreviewVerdict::Invalid => 0,
        PreviewVerdict::Failed => 1,
        _ if target.not_known.is_some() => 2,
        PreviewVerdict::NotKnown => 2,
        PreviewVerdict::Changes => 3,
        PreviewVerdict::NoEffect => 4,
        PreviewVerdict::Untouched => 5,
    };
    let mut targets: Vec<&PreviewTarget> = targets.iter().collect();
    targets.sort_by_key(rank);
    targets
}

/// The headline for a table of clusters. The age of the snapshot stands before it where the snapshot is old.
pub fn dated(target: &PreviewTarget) -> String {
    let headline = &target.headline;
    match target.snapshot.as_ref().map(|snapshot| (staleness(snapshot), snapshot.age_seconds.unwrap_or(0))) {
        Some((Staleness::Old | Staleness::TooOld, age)) => format!("snapshot {} old: {headline}", duration(age)),
        Some((Staleness::Unknown, _)) => format!("snapshot of unknown age: {headline}"),
        Some((Staleness::Fresh, _)) | None => headline.clone(),
    }
}

/// `snapshot of 2026-11-20T08:58:00Z (2m old), sha256:0123456789ab`
pub(super) fn of_snapshot(snapshot: &PreviewSnapshot) -> String {
    const DIGITS: usize = "sha256:".len() + 12;
    let digest = snapshot.digest.get(..DIGITS).unwrap_or(&snapshot.digest);
    match (&snapshot.taken_at, snapshot.age_seconds) {
        (Some(taken_at), Some(age)) => format!("snapshot of {taken_at} ({} old), {digest}", duration(age)),
        _ => format!("snapshot of an unknown moment, {digest}"),
    }
}

/// What is said of the next 24 hours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextDay {
    pub sentences: Vec<String>,
    /// Whether something is known of them. The sentences may say why nothing is.
    pub simulated: bool,
    /// Whether any node comes or goes in them.
    pub nodes_change: bool,
}

/// What the next 24 hours bring, in at most five sentences.
pub fn next_day(simulation: &Simulation) -> NextDay {
    const DAY_SECONDS: u64 = 24 * 3_600;
    // A shorter time says nothing, since nodes take longer to come.
    const SECONDS_MIN: u64 = 60;
    let summary = &simulation.summary;
    let within = match summary.virtual_seconds {
        DAY_SECONDS.. => String::new(),
        // The simulation ended early, since the rest would have been too much work.
        seconds => format!("The first {} of them: ", duration(seconds)),
    };
    if summary.virtual_seconds < SECONDS_MIN && !simulation.settled {
        let why = "Not simulated: too much happens at once in a cluster of this size.".to_owned();
        return NextDay { sentences: vec![why], ..NextDay::default() };
    }
    if summary.nodes_created + summary.nodes_removed == 0 {
        let mut sentences = vec![format!("{within}No node comes or goes.")];
        sentences.extend(waiting(simulation));
        return NextDay { sentences, simulated: true, nodes_change: false };
    }
    let mut sentences = vec![format!("{within}{}.", what_comes(summary))];
    let last = simulation.series.windows(2).filter_map(|pair| match pair {
        [before, after] if before.nodes != after.nodes => Some(after.second),
        _ => None,
    });
    if let Some(last) = last.max() {
        sentences.push(format!("The last node comes or goes after {}.", duration(last)));
    }
    if summary.nodes_at_most > summary.nodes_start.max(summary.nodes_end) {
        sentences.push(format!("At most {} are there at one time.", count(summary.nodes_at_most, "node")));
    }
    sentences.extend(waiting(simulation));
    if !simulation.settled {
        sentences.push("Something still moves then, or would with time.".to_owned());
    }
    NextDay { sentences, simulated: true, nodes_change: true }
}

/// `10 -> 12 nodes, 3 created, 1 removed, 5 pods move, +$0.1920/h`, without what does not happen.
fn what_comes(summary: &SimulationSummary) -> String {
    let (start, end) = (thousands(&summary.nodes_start.to_string()), thousands(&summary.nodes_end.to_string()));
    let mut parts = vec![format!("{start} -> {end} nodes")];
    for (nodes, done) in [(summary.nodes_created, "created"), (summary.nodes_removed, "removed")] {
        parts.extend((nodes > 0).then(|| format!("{} {done}", thousands(&nodes.to_string()))));
    }
    let pods = summary.pods_moved;
    parts.extend((pods > 0).then(|| format!("{} {}", count(pods, "pod"), verb(pods, "moves", "move"))));
    // Totals would mislead here: unlike the prices beside them, these leave out nodes of others.
    parts.push(difference_per_hour(summary.price_per_hour_end - summary.price_per_hour_start));
    parts.join(", ")
}

fn waiting(simulation: &Simulation) -> Option<String> {
    let pods = simulation.summary.pods_pending_end;
    (pods > 0).then(|| format!("{} still {} then.", count(pods, "pod"), verb(pods, "waits", "wait")))
}

/// A sentence for each proposed commit that somebody else should have signed; empty where there is none.
pub fn of_signatures(signatures: &PreviewSignatures) -> Vec<String> {
    let mut sentences: Vec<String> = signatures.unsigned.iter().take(UNSIGNED_MAX).cloned().collect();
    let further = signatures.further.saturating_add((signatures.unsigned.len() - sentences.len()) as u64);
    if further > 0 {
        sentences.push(format!("and {further} more"));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::plan::Revision;

    #[test]
    fn an_old_snapshot_says_so() {
        let snapshot = |age_seconds: Option<u64>| PreviewSnapshot {
            digest: format!("sha256:{}", "ab".repeat(32)),
            taken_at: age_seconds.map(|_| "2026-11-20T08:00:00Z".to_owned()),
            age_seconds,
        };
        for (age, expected) in [
            (Some(3_600), Staleness::Fresh),
            (Some(3_601), Staleness::Old),
            (Some(86_400), Staleness::Old),
            (Some(86_401), Staleness::TooOld),
            (None, Staleness::Unknown),
        ] {
            assert_eq!(staleness(&snapshot(age)), expected);
            assert_eq!(warning(&snapshot(age)).is_some(), expected != Staleness::Fresh);
        }
        assert_eq!(
            of_snapshot(&snapshot(Some(90))),
            "snapshot of 2026-11-20T08:00:00Z (1m30s old), sha256:abababababab"
        );
    }

    #[test]
    fn of_the_next_day_is_said_what_happens() {
        let summary = SimulationSummary {
            nodes_start: 10,
            nodes_end: 12,
            nodes_created: 2,
            virtual_seconds: 86_400,
            ..SimulationSummary::default()
        };
        let simulation = Simulation {
            version: 1,
            revision: Revision { id: String::new(), reference: String::new() },
            cluster: String::new(),
            began_at: String::new(),
            catalog_date: String::new(),
            seed: 1,
            packing: String::new(),
            settled: true,
            summary,
            series: Vec::new(),
            plans: Vec::new(),
            risks: Vec::new(),
            held_back: Vec::new(),
            leaving: Vec::new(),
            pending: Vec::new(),
            notes: Vec::new(),
        };
        let day = next_day(&simulation);
        assert_eq!(day.sentences, ["10 -> 12 nodes, 2 created, same price."]);
        assert!(day.simulated && day.nodes_change);
        let quiet = Simulation {
            summary: SimulationSummary { nodes_created: 0, nodes_end: 10, ..simulation.summary.clone() },
            ..simulation.clone()
        };
        let day = next_day(&quiet);
        assert!(day.sentences == ["No node comes or goes."] && day.simulated && !day.nodes_change, "{day:?}");
        let cut_short = Simulation {
            settled: false,
            summary: SimulationSummary { virtual_seconds: 0, ..simulation.summary.clone() },
            ..simulation
        };
        let day = next_day(&cut_short);
        assert!(day.sentences.len() == 1 && !day.simulated && !day.nodes_change, "{day:?}");
    }

    #[test]
    fn nodes_that_go_anyway_are_told_apart() {
        let said = |replaced: usize, going_anyway: usize| {
            let nodes = NodeCounts { replaced, replacements: replaced, ..NodeCounts::default() };
            effect(&Effect { nodes, going_anyway, ..Effect::default() })
        };
        assert_eq!(said(2, 0), "2 nodes replaced");
        assert_eq!(said(1, 1), "1 node replaced, it goes anyway");
        assert_eq!(said(2, 1), "2 nodes replaced, 1 of the 2 goes anyway");
        assert_eq!(said(2, 2), "2 nodes replaced, all 2 go anyway");
    }

    #[test]
    fn the_worst_clusters_come_first() {
        use PreviewVerdict::{Changes, Failed, Invalid, NoEffect, NotKnown, Untouched};
        let target = |verdict| PreviewTarget { verdict, ..PreviewTarget::default() };
        let unknown = PreviewTarget { not_known: Some("empty".to_owned()), ..target(NotKnown) };
        let targets = [target(Untouched), target(Changes), target(NoEffect), unknown, target(Failed), target(Invalid)];
        let sorted: Vec<PreviewVerdict> = worst_first(&targets).into_iter().map(|target| target.verdict).collect();
        assert_eq!(sorted, [Invalid, Failed, NotKnown, Changes, NoEffect, Untouched]);
    }

    #[test]
    fn a_conflict_names_some_paths() {
        let paths: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        assert_eq!(conflict("main", &paths, 2), "can not be merged into main: both changed a, b, c and 3 more files");
        assert_eq!(conflict("main", &paths[..1], 0), "can not be merged into main: both changed a");
    }
}
