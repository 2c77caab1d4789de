//! Where nodes could be bought for pods of a class.

use crate::model::Requirements;
use crate::scheduler::class::{ClassIndex, VariantIndex};
use crate::scheduler::domains::template_values;
use crate::scheduler::offerings::OfferingSet;
use crate::scheduler::spreading::Reached;
use crate::scheduler::template::{Template, TemplateIndex};

use super::Problem;

/// Where nodes could be bought for pods of a class, by key and domain. `request`: what they must have room for, where that matters.
pub(super) fn reached_by(problem: &Problem<'_>, class: ClassIndex, request: Option<&[i64]>) -> Reached {
    let keys = problem.domains.keys();
    let mut reached: Reached = keys.clone().map(|key| vec![false; problem.domains.count(key)]).collect();
    let pods = &problem.classes[class];
    for variant in &pods.variants {
        for template in problem.templates.indices() {
            // Nearly always one template gets everywhere.
            if reached.iter().flatten().all(|reached| *reached) {
                return reached;
            }
            for (set, requirements) in bought_for(problem, class, (*variant, template), request) {
                for key in keys.clone().filter(|key| !problem.domains.is_hostname(*key)) {
                    let name = problem.domains.name(key);
                    let values = template_values(&problem.templates[template], &set, &requirements, name);
                    for domain in values.iter().filter_map(|value| problem.domains.get(key, value)) {
                        reached[key][domain.position()] = true;
                    }
                }
            }
        }
    }
    reached
}

/// What a pod asks for of each resource, where some node that could be bought for it has no room for that.
pub(super) fn short_request<'p>(problem: &'p Problem<'_>, class: ClassIndex) -> Option<&'p [i64]> {
    let pods = &problem.classes[class];
    let is_short = |variant: &VariantIndex| {
        problem.templates.enumerated().any(|(index, template)| {
            let set = problem.purchasable(*variant, index);
            set.is_ok_and(|set| !template.rooms.all_fit(&pods.request, set.types()))
        })
    };
    pods.variants.iter().any(is_short).then_some(&*pods.request)
}

/// What could be bought of a template for one pod, with what is then asked of its labels; once for each place that its volumes can
/// be reached from.
fn bought_for(
    problem: &Problem<'_>,
    class: ClassIndex,
    (variant, index): (VariantIndex, TemplateIndex),
    request: Option<&[i64]>,
) -> Vec<(OfferingSet, Requirements)> {
    let template = &problem.templates[index];
    let Ok(set) = problem.purchasable(variant, index) else { return Vec::new() };
    let Some(set) = request.map_or_else(|| Some(set.clone()), |request| with_room(template, set, request)) else {
        return Vec::new();
    };
    let own = &problem.variants[variant].requirements;
    let alternatives = &problem.classes[class].volume_alternatives;
    if alternatives.is_empty() {
        return vec![(set, own.clone())];
    }
    let within = |volumes: &Requirements| {
        let mut both = own.clone();
        both.extend(volumes);
        Some((restricted(template, &set, volumes)?, both))
    };
    alternatives.iter().filter_map(within).collect()
}

/// What is left of a set with room for one pod beside the DaemonSets.
fn with_room(template: &Template, set: &OfferingSet, request: &[i64]) -> Option<OfferingSet> {
    let mut set = set.clone();
    set.keep_types(&template.rooms.fitting(request, set.types()));
    template.offerings.prune(&mut set).then_some(set)
}

fn restricted(template: &Template, set: &OfferingSet, requirements: &Requirements) -> Option<OfferingSet> {
    if template.requirements.refusal(requirements).is_some() {
        return None;
    }
    let mut set = set.clone();
    for (key, requirement) in requirements.iter().filter(|(key, _)| template.offerings.defines(key)) {
        template.offerings.restrict(&mut set, key, requirement);
    }
    template.offerings.prune(&mut set).then_some(set)
}
