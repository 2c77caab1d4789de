//! What a launch may become, divided among as few launch templates as do.

use std::collections::BTreeMap;

use crate::api::keys;
use crate::core::catalog::arithmetic::EFA;
use crate::core::catalog::node_class::image_for;
use crate::core::catalog::user_data::Finding;
use crate::core::catalog::{InstanceType, NodeClassSettings};
use crate::core::model::resources::PODS;
use crate::ports::Offering;

use super::content::Variant;
use super::{LaunchSpecification, LaunchTemplate, Resolved, TemplateError};

/// A template, and what is launched from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// [`LaunchTemplate::name`].
    pub name: String,
    pub template: LaunchTemplate,
    pub capacity_type: String,
    /// Each with its place in the launch, ascending.
    pub offerings: Vec<(usize, Offering)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grouped {
    /// In the order of their first offerings.
    pub groups: Vec<Group>,
    pub left_out: Vec<(Offering, LeftOut)>,
    /// About the class's user data, each once.
    pub findings: Vec<Finding>,
}

/// Why an offering is not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// The catalog does not have the type (any more).
    UnknownInstanceType,
    /// None of the class's images runs on the type.
    NoImage,
    /// It is to be launched into a reservation, and the claim names none.
    NoReservation,
}

impl std::fmt::Display for LeftOut {
    /// Behind the name of the type.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::UnknownInstanceType => "is not sold in the region any more",
            Self::NoImage => "runs none of the images of the class",
            Self::NoReservation => "is to be launched into a reservation, and the NodeClaim names none",
        })
    }
}

/// The templates for a launch. Types of one image, one number of pods and one number of fabric adapters share one; those whose content comes out
/// the same do, too. `types` is the catalog's list. O(offerings x types' lookup).
pub fn group(
    resolved: &Resolved<'_>,
    specification: &LaunchSpecification,
    types: &[InstanceType],
) -> Result<Grouped, TemplateError> {
    if resolved.images.is_empty() {
        return Err(TemplateError::Unresolved { node_class: resolved.node_class.to_owned(), what: "image" });
    }
    let settings = NodeClassSettings::read(resolved.class).0;
    let by_name: BTreeMap<&str, &InstanceType> = types.iter().map(|it| (it.name.as_str(), it)).collect();
    let mut of_type: BTreeMap<&str, Option<InstanceType>> = BTreeMap::new();
    let mut names: BTreeMap<Variant, String> = BTreeMap::new();
    let mut grouped = Grouped::default();
    for (place, offering) in specification.offerings.iter().enumerate() {
        let name = offering.instance_type.as_str();
        let of_class = || by_name.get(name).map(|instance_type| settings.apply(instance_type));
        let instance_type = of_type.entry(name).or_insert_with(of_class);
        let variant = match variant(resolved, specification, offering, instance_type.as_ref()) {
            Ok(variant) => variant,
            Err(why) => {
                grouped.left_out.push((offering.clone(), why));
                continue;
            }
        };
        let name = match names.get(&variant) {
            Some(name) => name.clone(),
            None => {
                let name = grouped.add(resolved, specification, &variant)?;
                names.insert(variant, name.clone());
                name
            }
        };
        let is_it = |group: &&mut Group| group.name == name && group.capacity_type == offering.capacity_type;
        if let Some(group) = grouped.groups.iter_mut().find(is_it) {
            group.offerings.push((place, offering.clone()));
        }
    }
    grouped.findings.sort();
    grouped.findings.dedup();
    Ok(grouped)
}

impl Grouped {
    /// Makes the template of a variant, unless another variant had the same content. Returns its name.
    fn add(
        &mut self,
        resolved: &Resolved<'_>,
        specification: &LaunchSpecification,
        variant: &Variant,
    ) -> Result<String, TemplateError> {
        let (template, findings) = resolved.template(specification, variant)?;
        self.findings.extend(findings);
        let name = template.name();
        let is_it = |group: &Group| group.name == name && group.capacity_type == variant.capacity_type;
        if !self.groups.iter().any(is_it) {
            let capacity_type = variant.capacity_type.clone();
            self.groups.push(Group { name: name.clone(), template, capacity_type, offerings: Vec::new() });
        }
        Ok(name)
    }
}

fn variant(
    resolved: &Resolved<'_>,
    specification: &LaunchSpecification,
    offering: &Offering,
    instance_type: Option<&InstanceType>,
) -> Result<Variant, LeftOut> {
    let instance_type = instance_type.ok_or(LeftOut::UnknownInstanceType)?;
    let image = image_for(instance_type, &specification.labels, resolved.images).ok_or(LeftOut::NoImage)?;
    if offering.capacity_type == keys::RESERVED && specification.reservation.is_none() {
        return Err(LeftOut::NoReservation);
    }
    // What the class says is said to the kubelet, too; less pods by core is reckoned there.
    let stated = resolved.class.kubelet.as_ref().and_then(|kubelet| kubelet.get("maxPods")?.as_i64());
    Ok(Variant {
        image_id: image.id.clone(),
        max_pods: stated.unwrap_or_else(|| instance_type.capacity.get(PODS)),
        efa_count: if specification.wants_efa { instance_type.capacity.get(EFA) } else { 0 },
        capacity_type: offering.capacity_type.clone(),
    })
}

#[cfg(test)]
mod tests;
