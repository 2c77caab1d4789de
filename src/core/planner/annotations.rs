//! Annotations by which somebody means to keep pods or nodes from being moved, and which do not.

use std::collections::BTreeSet;

use crate::lifecycle::do_not_disrupt::{Protection, protection};
use crate::plan::{Note, NoteCode};
use crate::scheduler::Problem;
use crate::snapshot::Pod;
use cutlist_api::keys;

/// So many are named, the others counted.
const NAMED_MAX: usize = 5;
/// So much is shown of what an annotation says.
const VALUE_CHARACTERS_MAX: usize = 40;

/// What annotations do not do that they are written for. O(pods + nodes).
pub fn notes(problem: &Problem<'_>) -> Vec<Note> {
    let notes = [of_pods(problem), of_nodes(problem), of_old_names(problem), of_cluster_autoscaler(problem)];
    notes.into_iter().flatten().collect()
}

fn running<'p>(problem: &Problem<'p>) -> impl Iterator<Item = &'p Pod> {
    let runs = |pod: &&Pod| pod.spec.node_name.is_some() && !pod.is_terminal() && !pod.is_terminating();
    problem.snapshot.pods.iter().filter(runs)
}

/// Pods whose annotation asks for protection in words that give none.
fn of_pods(problem: &Problem<'_>) -> Option<Note> {
    let unreadable = running(problem).filter(|pod| protection(pod) == Protection::Unreadable);
    let written = |pod: &Pod| pod.metadata.annotations.get(keys::DO_NOT_DISRUPT).map(|text| quoted(text));
    let named = unreadable.map(|pod| format!("{} ({})", pod.key(), written(pod).unwrap_or_default()));
    let named = self::named(named, ["pod", "pods"])?;
    let protects = "protects only as `true` or a positive duration such as `1h30m`";
    Some(note(format!("annotation {} {protects}, so not {named}", keys::DO_NOT_DISRUPT)))
}

/// On nodes the reference knows no durations.
fn of_nodes(problem: &Problem<'_>) -> Option<Note> {
    let machines = problem.machines.iter().filter(|machine| machine.is_managed() && !machine.is_being_removed());
    let written = machines.filter_map(|machine| {
        let written = machine.annotation(keys::DO_NOT_DISRUPT).filter(|it| !matches!(*it, "true" | "false"))?;
        Some(format!("{} ({})", machine.name, quoted(written)))
    });
    let named = named(written, ["node", "nodes"])?;
    Some(note(format!("annotation {} protects a node only as `true`, so not {named}", keys::DO_NOT_DISRUPT)))
}

/// Pods that carry names of versions before v1, and not the one that counts. Source: the reference's v1 migration guide.
fn of_old_names(problem: &Problem<'_>) -> Option<Note> {
    let old_name = |pod: &Pod| {
        let annotations = &pod.metadata.annotations;
        let is_asked = |name: &&&str| annotations.get(**name).is_some_and(|value| value != "false");
        let old = keys::OLD_DO_NOT_DISRUPT.iter().find(is_asked)?;
        (!annotations.contains_key(keys::DO_NOT_DISRUPT)).then(|| format!("{} (`{old}`)", pod.key()))
    };
    let named = named(running(problem).filter_map(old_name), ["pod", "pods"])?;
    let counts = keys::DO_NOT_DISRUPT;
    Some(note(format!("annotations of older versions protect nothing, so not {named}: write {counts}")))
}

/// Pods that ask Cluster Autoscaler to leave them where they are, on nodes that are none of its own.
fn of_cluster_autoscaler(problem: &Problem<'_>) -> Option<Note> {
    let managed: BTreeSet<&str> = problem.machines.iter().filter(|it| it.is_managed()).map(|it| it.name).collect();
    let is_meant = |pod: &&Pod| {
        let annotations = &pod.metadata.annotations;
        let is_managed = pod.spec.node_name.as_deref().is_some_and(|node| managed.contains(node));
        let asks = annotations.get(keys::SAFE_TO_EVICT).is_some_and(|value| value == "false");
        is_managed && asks && !annotations.contains_key(keys::DO_NOT_DISRUPT)
    };
    let named = named(running(problem).filter(is_meant).map(Pod::key), ["pod", "pods"])?;
    let (asked, counts) = (keys::SAFE_TO_EVICT, keys::DO_NOT_DISRUPT);
    Some(note(format!(
        "annotation {asked} is for Cluster Autoscaler and protects nothing here, so not {named}: write {counts}"
    )))
}

/// An annotation may hold 256 KiB, and the text of a plan is cut where it is long: whoever writes one must not take the place of the rest.
fn quoted(value: &str) -> String {
    match value.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("`{}...`", value.get(..end).unwrap_or_default()),
        None => format!("`{value}`"),
    }
}

/// `pod shop/a`, `pods shop/a, shop/b, and 3 more`; `None`: there are none.
fn named(which: impl Iterator<Item = String>, [one, several]: [&str; 2]) -> Option<String> {
    let mut named: Vec<String> = which.collect();
    named.sort();
    let noun = if named.len() == 1 { one } else { several };
    let rest = named.len().saturating_sub(NAMED_MAX);
    named.truncate(NAMED_MAX);
    if rest > 0 {
        named.push(format!("and {rest} more"));
    }
    (!named.is_empty()).then(|| format!("{noun} {}", named.join(", ")))
}

fn note(text: String) -> Note {
    Note::new(NoteCode::InvalidDoNotDisruptAnnotation, text)
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_value_is_shown_as_far_as_it_says_something() {
        assert_eq!(quoted("1x"), "`1x`");
        assert_eq!(quoted(&"x".repeat(100_000)), format!("`{}...`", "x".repeat(40)));
    }
}
