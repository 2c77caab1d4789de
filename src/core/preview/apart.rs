//! What a plan reports, in two parts: what is so because of the change, and what would be so without it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use jiff::Timestamp;

use super::number;
use crate::plan::{HeldBack, Pending, Plan, ReasonCode, Risk};
use crate::snapshot::Snapshot;
use cutlist_api::node_claim::NodeClaim;
use cutlist_api::preview::PreviewCount;

/// The two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByCause<T> {
    pub caused: Vec<T>,
    pub anyway: Vec<T>,
}

/// Without a base nothing is known to be so anyway.
fn apart<T: Clone>(all: &[T], is_anyway: impl Fn(&T) -> bool) -> ByCause<T> {
    let (anyway, caused) = all.iter().cloned().partition(|item| is_anyway(item));
    ByCause { caused, anyway }
}

/// A risk is the same when it is of one kind for the same pods or workload.
pub fn risks(plan: &Plan, base: Option<&Plan>) -> ByCause<Risk> {
    let of_base: BTreeSet<_> =
        base.iter().flat_map(|base| &base.risks).map(|risk| (risk.code, risk.subject.as_str())).collect();
    apart(&plan.risks, |risk| of_base.contains(&(risk.code, risk.subject.as_str())))
}

/// A node is held back as before when it is for the same reason, whatever figures are in the sentence.
pub fn held_back(plan: &Plan, base: Option<&Plan>) -> ByCause<HeldBack> {
    let of_base: BTreeSet<_> =
        base.iter().flat_map(|base| &base.held_back).map(|held| (held.node.as_str(), held.code)).collect();
    apart(&plan.held_back, |held| of_base.contains(&(held.node.as_str(), held.code)))
}

/// Pods that wait with the base as well are no news, whatever they wait for. A group with pods of both is two groups.
pub fn pending(plan: &Plan, base: Option<&Plan>) -> ByCause<Pending> {
    let of_base: BTreeSet<&str> =
        base.iter().flat_map(|base| &base.pending).flat_map(|group| &group.pods).map(String::as_str).collect();
    let part = |is_anyway: bool| {
        let groups = plan.pending.iter().map(|group| {
            let pods = group.pods.iter().filter(|pod| of_base.contains(pod.as_str()) == is_anyway).cloned().collect();
            Pending { pods, ..group.clone() }
        });
        groups.filter(|group| !group.pods.is_empty()).collect()
    };
    ByCause { caused: part(false), anyway: part(true) }
}

pub(super) fn counts_of_risks(plan: &Plan, base: Option<&Plan>) -> Vec<PreviewCount> {
    let apart = risks(plan, base);
    let rows = |risks: &[Risk]| {
        risks.iter().map(|risk| Row::new(&risk.code, 1, format!("{}: {}", risk.subject, risk.text))).collect()
    };
    counted(rows(&apart.caused), rows(&apart.anyway))
}

pub(super) fn counts_of_held_back(plan: &Plan, base: Option<&Plan>, snapshot: &Snapshot) -> Vec<PreviewCount> {
    let apart = held_back(plan, base);
    let claims = claims_by_node(snapshot);
    let row = |held: &HeldBack| Row::new(&held.code, 1, format!("{}: {}", held.node, held.text));
    let caused = apart.caused.iter().map(row).collect();
    // What the change causes has not been so before.
    let since = |held: &HeldBack| claims.get(held.node.as_str()).and_then(|claim| waits_since(claim, held.code));
    let anyway = apart.anyway.iter().map(|held| Row { since: since(held), ..row(held) }).collect();
    counted(caused, anyway)
}

pub(super) fn counts_of_pending(plan: &Plan, base: Option<&Plan>) -> Vec<PreviewCount> {
    let apart = pending(plan, base);
    let rows = |groups: &[Pending]| {
        let row = |group: &Pending| {
            let first = group.pods.first().map_or("", String::as_str);
            let (code, text) =
                group.reasons.first().map_or((ReasonCode::InvalidPod, ""), |it| (it.code, it.text.as_str()));
            Row::new(&code, group.pods.len(), format!("{first}: {text}"))
        };
        groups.iter().map(row).collect()
    };
    counted(rows(&apart.caused), rows(&apart.anyway))
}

/// What is counted together with others of its code.
struct Row {
    code: String,
    count: usize,
    text: String,
    since: Option<Timestamp>,
}

impl Row {
    fn new(code: &impl Debug, count: usize, text: String) -> Self {
        Self { code: format!("{code:?}"), count, text, since: None }
    }
}

/// By code, in the order of the alphabet. The sentence is that of one that is caused, where there is one.
fn counted(caused: Vec<Row>, anyway: Vec<Row>) -> Vec<PreviewCount> {
    let mut counts: BTreeMap<String, (PreviewCount, Option<Timestamp>)> = BTreeMap::new();
    for (row, is_anyway) in caused.into_iter().map(|row| (row, false)).chain(anyway.into_iter().map(|row| (row, true)))
    {
        let Row { code, count, text, since } = row;
        let empty = || (PreviewCount { code: code.clone(), text, ..PreviewCount::default() }, None);
        let (sum, earliest) = counts.entry(code.clone()).or_insert_with(empty);
        sum.count += number(count);
        sum.anyway += if is_anyway { number(count) } else { 0 };
        *earliest = [*earliest, since].into_iter().flatten().min();
        sum.since = earliest.map(|since| since.to_string());
    }
    counts.into_values().map(|(count, _)| count).collect()
}

fn claims_by_node(snapshot: &Snapshot) -> BTreeMap<&str, &NodeClaim> {
    let mut claims = BTreeMap::new();
    for claim in &snapshot.node_claims {
        let node = claim.status.as_ref().and_then(|status| status.node_name.as_deref());
        let names = [node, claim.metadata.name.as_deref()];
        claims.extend(names.into_iter().flatten().map(|name| (name, claim)));
    }
    claims
}

/// Since when a node has been held back for this, as far as its claim says: since it was last disturbed, since it drifted, since moving its
/// pods could be tried. Other obstacles may have come up at any time since.
fn waits_since(claim: &NodeClaim, code: ReasonCode) -> Option<Timestamp> {
    let true_since = |kind: &str| {
        let condition = claim.condition(kind).filter(|condition| condition.status == "True")?;
        Some(condition.last_transition_time.0)
    };
    match code {
        ReasonCode::ConsolidateAfterNotElapsed => claim.last_pod_event(),
        ReasonCode::WaitsForCanary | ReasonCode::RolloutHalted => true_since("Drifted"),
        ReasonCode::NotCheaper | ReasonCode::PaybackTooLong => true_since("Consolidatable"),
        _ => None,
    }
}
