//! Whether a pod has a place on any other node at all.

use crate::disrupt::rehome::{Rooms, prefers_a_new_node};
use crate::model::IndexVec;
use crate::model::index::next;
use crate::scheduler::class::VariantIndex;
use crate::scheduler::{ClassIndex, Engine, HostIndex};

/// For each class, the first node that has room for one more pod of it. Room only shrinks while nodes are done without, so what was
/// passed over once needs no second look, unless topology has a say.
pub(super) struct FirstRoom {
    first: IndexVec<ClassIndex, HostIndex>,
}

impl FirstRoom {
    pub fn new(classes: usize) -> Self {
        Self { first: IndexVec::repeat(HostIndex::default(), classes) }
    }

    /// Whether a node but this one has room for a pod of the class.
    pub fn any_room(&mut self, engine: &Engine<'_, '_>, class: ClassIndex, but: HostIndex, rooms: &Rooms) -> bool {
        let problem = engine.problem;
        let variants = &problem.classes[class].variants;
        let forgets = variants.len() > 1
            || variants.iter().any(|variant| !problem.variants[*variant].constraints.is_empty())
            || !problem.classes[class].anti_affinity.is_empty();
        let all = rooms.next.last();
        let mut may_have_room = |variant: &VariantIndex| {
            let start = if forgets { HostIndex::default() } else { self.first[class] };
            let find = |first: HostIndex| {
                let filling = engine.find_existing(class, *variant, first, Some(&rooms.filling));
                let next = all.and_then(|all| engine.find_existing(class, *variant, first, Some(all)));
                filling.into_iter().chain(next).min()
            };
            let found = find(start);
            if !forgets {
                self.first[class] = found.unwrap_or(problem.nodes.end());
            }
            match found {
                Some(host) if host == but => find(next(host)).is_some(),
                found => found.is_some(),
            }
        };
        for (level, variant) in variants.iter().enumerate() {
            if may_have_room(variant) {
                return true;
            }
            if prefers_a_new_node(engine, class, level) {
                return false;
            }
        }
        false
    }
}
