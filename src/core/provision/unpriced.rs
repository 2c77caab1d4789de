//! Instance types that would do and are not chosen, since nobody knows what they cost.

use crate::model::Requirements;
use crate::scheduler::offerings::TypeIndex;
use crate::scheduler::template::Template;
use crate::scheduler::{ClassIndex, Engine, Refusal, vectors};

/// The names of those that the pool and these requirements leave and that no price is known of, where no others are left. Labels that
/// no instance type has are not looked at. O(requirements x types).
pub fn alone_left<'t>(template: &'t Template, requirements: &Requirements) -> Vec<&'t str> {
    names_with_room(template, requirements, |_| true)
}

/// What would take a pod of the class but for its price, where nothing else keeps the pod from the pool. O(requirements x types).
pub fn would_do<'p>(
    engine: &Engine<'p, '_>,
    class: ClassIndex,
    template: &'p Template,
    obstacles: &[Refusal],
) -> Vec<&'p str> {
    let is_of_types = |refusal: &Refusal| match refusal {
        Refusal::Requirement { key } => template.offerings.defines(key),
        Refusal::Resource { .. } | Refusal::Offering => true,
        _ => false,
    };
    let pods = &engine.problem.classes[class];
    let Some(variant) = pods.variants.last().filter(|_| obstacles.iter().all(is_of_types)) else { return Vec::new() };
    let has_room = |position: TypeIndex| vectors::fits(&pods.request, &template.room[position]);
    names_with_room(template, &engine.problem.variants[*variant].requirements, has_room)
}

fn names_with_room<'t>(
    template: &'t Template,
    requirements: &Requirements,
    has_room: impl Fn(TypeIndex) -> bool,
) -> Vec<&'t str> {
    let offerings = &template.offerings;
    let mut left = offerings.compile(&template.requirements);
    for (key, requirement) in requirements.iter().filter(|(key, _)| offerings.defines(key)) {
        offerings.restrict(&mut left, key, requirement);
    }
    let mut names = Vec::new();
    for position in left.each_type().filter(|position| has_room(*position)) {
        let entry = &offerings.types[position];
        if entry.is_without_price(left.slots) {
            names.push(entry.name.as_str());
        } else if entry.available & left.slots != 0 {
            return Vec::new();
        }
    }
    names
}
