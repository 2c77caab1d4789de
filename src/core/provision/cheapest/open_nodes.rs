//! Opening nodes, and putting pods on those that are open.

use crate::provision::choice::{capacity_of, choose};
use crate::provision::karpenter::place_on_open;
use crate::scheduler::Demand;
use crate::scheduler::class::VariantIndex;
use crate::scheduler::offerings::{Slots, TypeIndex};
use crate::scheduler::template::TemplateIndex;
use crate::scheduler::{ClassIndex, Engine, HostIndex};

/// Opens a node of one type, in one of these slots, for one pod of the class; `None` when that is not allowed.
pub fn open(
    engine: &mut Engine<'_, '_>,
    class: ClassIndex,
    variant: VariantIndex,
    template: TemplateIndex,
    instance_type: TypeIndex,
    slots: Slots,
) -> Option<HostIndex> {
    let wanted = engine.problem.templates[template].set.only(instance_type, slots);
    let open = engine.opened(class, variant, template, Some(&wanted)).ok()?;
    let choice = choose(engine, &open)?;
    let capacity = capacity_of(engine, &open, &choice);
    Some(engine.open(class, open, capacity))
}

/// Puts pods on the nodes opened from `first` on, as far as these take them; the demand is what is left.
pub fn use_those_open(
    engine: &mut Engine<'_, '_>,
    first: HostIndex,
    demand: &mut Demand,
    variant_of: impl Fn(ClassIndex) -> Option<VariantIndex>,
) {
    for (class, left) in demand.iter_mut() {
        let Some(variant) = variant_of(*class) else { continue };
        while *left > 0 && place_on_open(engine, first, *class, variant).is_some() {
            *left -= 1;
        }
    }
    demand.retain(|_, left| *left > 0);
}

/// Puts one more pod on an open node, if it takes it.
pub fn add(engine: &mut Engine<'_, '_>, class: ClassIndex, variant: VariantIndex, host: HostIndex) -> bool {
    match engine.narrowed(class, variant, host) {
        Ok(narrowed) => {
            engine.place_on_open(class, host, narrowed);
            true
        }
        Err(_) => false,
    }
}
