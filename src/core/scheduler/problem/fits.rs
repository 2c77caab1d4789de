//! What requirements and tolerations leave of a template.

use crate::model::Requirements;
use crate::model::requirements::normalized;
use crate::scheduler::class::Variant;
use crate::scheduler::offerings::{OfferingSet, Slots, is_slot_label};
use crate::scheduler::refusal::Refusal;
use crate::scheduler::taints::repelling;
use crate::scheduler::template::Template;

/// Requirements of a variant against a template: taints first, then labels, then what is offered.
pub(super) fn template_fit(variant: &Variant, template: &Template) -> Result<OfferingSet, Refusal> {
    if let Some(taint) = repelling(&template.taints, &variant.tolerations, variant.soft_taints_repel) {
        return Err(Refusal::Taint(taint.to_string()));
    }
    if variant.needs_existing {
        return Err(Refusal::Devices);
    }
    offering_set(&variant.requirements, template)
}

/// What of a template's offerings satisfies requirements.
pub(super) fn offering_set(requirements: &Requirements, template: &Template) -> Result<OfferingSet, Refusal> {
    if template.set.types().is_clear() {
        return Err(Refusal::EmptyPool);
    }
    if let Some(key) = template.requirements.refusal(requirements) {
        return Err(Refusal::Requirement { key: key.to_owned() });
    }
    let mut set = template.set.clone();
    for (key, requirement) in requirements.iter().filter(|(key, _)| template.offerings.defines(key)) {
        template.offerings.restrict(&mut set, key, requirement);
        if !template.offerings.prune(&mut set) {
            return Err(Refusal::Requirement { key: key.to_owned() });
        }
    }
    Ok(set)
}

/// The slots that requirements leave of a template's; of a reservation those that it is in.
pub(super) fn named_slots(requirements: &Requirements, template: &Template) -> Slots {
    let mut set = match template.is_reserved() {
        true => template.set.clone(),
        false => template.offerings.compile(&template.requirements),
    };
    for (key, requirement) in requirements.iter().filter(|(key, _)| is_slot_label(normalized(key))) {
        template.offerings.restrict(&mut set, key, requirement);
    }
    set.slots & template.part
}
