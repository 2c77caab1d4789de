//! Pools whose DaemonSets do not run in all zones and on all capacity types: the room of a node depends on its slot there.

use std::collections::BTreeMap;

use crate::model::Requirements;
use crate::model::requirements::normalized;
use crate::scheduler::daemons::Daemon;
use crate::scheduler::offerings::{Offerings, Slots, alone, bits, is_slot_label};
use crate::scheduler::template::Template;

use super::fits::offering_set;

/// A template for each set of slots with the same DaemonSets, those with fewest first; the template itself where all slots have the
/// same. O(slots x DaemonSets that name slots).
pub(super) fn divided(template: Template, daemons: &[Daemon]) -> Vec<Template> {
    // How many nodes a static pool has is counted by template, and so are the zones that a node must be able to be in.
    if template.is_static() || template.min_values.iter().any(|(key, _)| is_slot_label(normalized(key))) {
        return vec![template];
    }
    let named = named_by(&template, daemons);
    let mut parts: BTreeMap<(usize, Vec<bool>), Slots> = BTreeMap::new();
    for slot in bits(if named.is_empty() { 0 } else { template.offerings.all().slots }) {
        let runs: Vec<bool> = named.iter().map(|slots| slots & alone(slot) != 0).collect();
        *parts.entry((runs.iter().filter(|runs| **runs).count(), runs)).or_default() |= alone(slot);
    }
    let parts = parts.into_values().filter(|slots| slots & template.set.slots != 0);
    let parts: Vec<Slots> = parts.collect();
    match parts.as_slice() {
        [] | [_] => vec![template],
        parts => parts.iter().filter_map(|slots| part(&template, *slots)).collect(),
    }
}

/// The slots that DaemonSets of the template name, once for each term that does not name all of the template's.
fn named_by(template: &Template, daemons: &[Daemon]) -> Vec<Slots> {
    let tolerating = daemons.iter().filter(|daemon| daemon.tolerates(&template.taints));
    let terms = tolerating.flat_map(|daemon| &daemon.requirements).filter(|term| names_slots(term));
    let terms = terms.filter(|term| offering_set(term, template).is_ok());
    let mut named: Vec<Slots> = terms.map(|term| slots_of_term(term, &template.offerings)).collect();
    named.retain(|slots| template.set.slots & !slots != 0);
    named.sort_unstable();
    named.dedup();
    named
}

fn names_slots(term: &Requirements) -> bool {
    term.iter().any(|(key, _)| is_slot_label(normalized(key)))
}

/// The slots that the labels of slots in a term leave.
pub(super) fn slots_of_term(term: &Requirements, offerings: &Offerings) -> Slots {
    let mut set = offerings.all();
    for (key, requirement) in term.iter().filter(|(key, _)| is_slot_label(normalized(key))) {
        offerings.restrict(&mut set, key, requirement);
    }
    set.slots
}

/// The template in some of its slots.
fn part(template: &Template, slots: Slots) -> Option<Template> {
    let mut set = template.set.in_slots(template.set.slots & slots);
    template.offerings.prune(&mut set).then(|| Template { set, part: slots, ..template.clone() })
}
