//! Where nodes could be bought for pods of a class.

use crate::model::Requirements;
use crate::scheduler::class::{ClassIndex, VariantIndex};
use crate::scheduler::domains::template_values;
use crate::scheduler::offerings::OfferingSet;
use crate::scheduler::spreading::Reached;
use crate::scheduler::template::{Template, TemplateIndex};

use super::Problem;

/// Where nodes could be bought for pods of a class, by key and domain.
pub(super) fn reached_by(problem: &Problem<'_>, class: ClassIndex) -> Reached {
    let keys = problem.domains.keys();
    let mut reached: Reached = keys.clone().map(|key| vec![false; problem.domains.count(key)]).collect();
    let pods = &problem.classes[class];
    for variant in &pods.variants {
        for template in problem.templates.indices() {
            for (set, requirements) in bought_for(problem, class, *variant, template) {
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

/// What could be bought of a template for one pod, with what is then asked of its labels; once for each place that its volumes can
/// be reached from.
fn bought_for(
    problem: &Problem<'_>,
    class: ClassIndex,
    variant: VariantIndex,
    index: TemplateIndex,
) -> Vec<(OfferingSet, Requirements)> {
    let Ok(set) = problem.purchasable(variant, index) else { return Vec::new() };
    let own = &problem.variants[variant].requirements;
    let alternatives = &problem.classes[class].volume_alternatives;
    if alternatives.is_empty() {
        return vec![(set.clone(), own.clone())];
    }
    let template = &problem.templates[index];
    let within = |volumes: &Requirements| {
        let mut both = own.clone();
        both.extend(volumes);
        Some((restricted(template, set, volumes)?, both))
    };
    alternatives.iter().filter_map(within).collect()
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
