//! Which values of topology keys there are: those of nodes, and those that nodes to come may have.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::model::{IndexVec, Requirements};
use crate::snapshot::nodes::Machine;

use super::class::{ClassIndex, PodClass, Variant, VariantIndex};
use super::offerings::OfferingSet;
use super::template::Template;
use super::topology::Domains;

/// Values of a topology key that nodes of a template may have.
pub fn template_values(template: &Template, set: &OfferingSet, filter: &Requirements, key: &str) -> Vec<String> {
    if !template.chooses(key) {
        return template.offerings.values_of(set, key).into_iter().map(str::to_owned).collect();
    }
    let Some(mine) = template.requirements.get(key) else { return Vec::new() };
    let asked = filter.get(key).map(|asked| mine.intersection(asked));
    let values = asked.as_ref().unwrap_or(mine).listed().map(Cow::into_owned).unwrap_or_default();
    values.into_iter().filter(|value| template.offerings.may_have(set, key, value)).collect()
}

/// O(keys x (templates x values + machines)).
pub fn intern_domains(domains: &mut Domains, machines: &[Machine<'_>], templates: &[Template]) {
    for key in domains.keys() {
        if domains.is_hostname(key) {
            continue;
        }
        let name = domains.name(key).to_owned();
        for template in templates {
            for value in template_values(template, &template.set, &Requirements::new(), &name) {
                domains.intern(key, &value);
            }
        }
        for machine in machines {
            if let Some(value) = machine.label(&name) {
                domains.intern(key, value);
            }
        }
    }
}

/// Where a pool leaves the values of a topology key to its nodes, those that pods ask for by name are domains too.
/// O(keys x (templates + requirements)).
pub fn intern_values_asked_for(
    domains: &mut Domains,
    templates: &[Template],
    variants: &IndexVec<VariantIndex, Variant>,
    classes: &IndexVec<ClassIndex, PodClass>,
) {
    for key in domains.keys() {
        let name = domains.name(key).to_owned();
        if domains.is_hostname(key) || !templates.iter().any(|template| template.leaves_to_each_node(&name)) {
            continue;
        }
        let of_volumes = classes.iter().flat_map(|pods| &pods.volume_alternatives);
        let asked = variants.iter().map(|variant| &variant.requirements).chain(of_volumes);
        let listed = asked.filter_map(|requirements| requirements.get(&name)?.listed());
        let values: BTreeSet<String> = listed.flat_map(Cow::into_owned).collect();
        values.iter().for_each(|value| {
            domains.intern(key, value);
        });
    }
}
