//! `minValues`: how varied the types are that a node could be of.

use std::borrow::Cow;

use super::Engine;
use super::refused::Refused;
use crate::scheduler::host::OpenNode;
use crate::scheduler::offerings::OfferingSet;

impl<'p> Engine<'p, '_> {
    /// The types that a node could be of must still have as many different values as the pool asks for, or as was lowered to.
    pub(super) fn check_min_values(&self, open: &OpenNode) -> Result<(), Refused<'p>> {
        let template = &self.problem.templates[open.template];
        if template.min_values.is_empty() {
            return Ok(());
        }
        let set = self.could_be(open);
        for (position, (key, least)) in template.min_values.iter().enumerate() {
            let least = open.min_values.get(position).unwrap_or(least);
            if template.offerings.values_of(&set, key).len() < *least {
                return Err(Refused::MinValues(key));
            }
        }
        Ok(())
    }

    /// By key of the template's `minValues`, what is asked for or, if that is less, what there is; empty if all is there.
    pub(super) fn attainable_min_values(&self, open: &OpenNode) -> Vec<usize> {
        let template = &self.problem.templates[open.template];
        if template.min_values.is_empty() {
            return Vec::new();
        }
        let set = self.could_be(open);
        let attainable = |(key, least): &(String, usize)| template.offerings.values_of(&set, key).len().min(*least);
        let values: Vec<usize> = template.min_values.iter().map(attainable).collect();
        let is_lower = values.iter().zip(&template.min_values).any(|(value, (_, least))| value < least);
        if is_lower { values } else { Vec::new() }
    }

    /// What a launch could choose from in the slots of the node: a set that was cut to what is to be bought says nothing of that. O(types).
    fn could_be<'o>(&self, open: &'o OpenNode) -> Cow<'o, OfferingSet> {
        if !open.is_cut {
            return Cow::Borrowed(&open.set);
        }
        let template = &self.problem.templates[open.template];
        let mut set = open.allowed.in_slots(open.set.slots);
        set.keep_types(&template.rooms.fitting(&open.requested, set.types()));
        self.keep_within_limits(open, &mut set, |_| false);
        template.offerings.prune(&mut set);
        Cow::Owned(set)
    }
}
