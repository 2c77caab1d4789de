//! The catalog as an EC2NodeClass leaves it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::catalog::node_class::NodeClassSettings;
use crate::catalog::{InstanceType, Offering};
use crate::inputs::Inputs;
use cutlist_api::ec2_node_class::{Ami, EC2NodeClass};
use cutlist_api::keys;

use super::Types;
use super::images::Images;
use super::quotas::Quotas;
use super::refused::Refusals;
use super::subnets::Subnets;

/// What a class offers, and what that was made of.
#[derive(Clone, Debug)]
pub(super) struct OfClass {
    made_of: MadeOf,
    pub types: Types,
    /// The names of the types that it has no image for.
    pub lacking: BTreeSet<String>,
}

/// Beside the catalog.
#[derive(Clone, Debug, PartialEq)]
struct MadeOf {
    class: EC2NodeClass,
    /// Where all are known.
    images: Option<Vec<Ami>>,
    zone_ids: BTreeMap<String, String>,
    refusals: Rc<Refusals>,
    quotas: Rc<Quotas>,
}

impl OfClass {
    /// `before`: what was made of this catalog for a class of this name, and is taken where it would be made again. O(types).
    pub fn new(
        inputs: &Inputs<'_>,
        class: &EC2NodeClass,
        (refusals, quotas): (&Rc<Refusals>, &Rc<Quotas>),
        before: Option<&Self>,
    ) -> Self {
        let zone_ids = Subnets::of(inputs, class).zone_ids();
        let made_of = MadeOf {
            class: class.clone(),
            images: Images::of(inputs, class).whole().map(<[Ami]>::to_vec),
            zone_ids: zone_ids.into_iter().map(|(zone, id)| (zone.to_owned(), id.to_owned())).collect(),
            refusals: Rc::clone(refusals),
            quotas: Rc::clone(quotas),
        };
        if let Some(before) = before.filter(|before| before.made_of == made_of) {
            return before.clone();
        }
        let (types, lacking) = made_of.types(inputs);
        Self { made_of, types, lacking }
    }
}

impl MadeOf {
    /// The catalog as the class leaves it, and the names of the types that it has no image for.
    fn types(&self, inputs: &Inputs<'_>) -> (Types, BTreeSet<String>) {
        let sold = &inputs.catalog.instance_types;
        if inputs.catalog.node_class.is_some() {
            let mut types = sold.clone();
            self.refusals.leave_out(&mut types);
            return (Rc::new(types), BTreeSet::new());
        }
        let settings = NodeClassSettings::read(&self.class.spec).0;
        let mut types: Vec<InstanceType> = sold.iter().map(|sold| settings.apply(sold)).collect();
        self.refusals.leave_out(&mut types);
        self.quotas.leave_out(&mut types);
        // What is reserved is counted, and offered apart.
        let is_reserved = |offering: &Offering| offering.capacity_type == keys::RESERVED;
        for instance_type in types.iter_mut().filter(|it| it.offerings.iter().any(is_reserved)) {
            instance_type.offerings.iter_mut().filter(|it| is_reserved(it)).for_each(|it| it.available = false);
        }
        let lacking = self.images.as_deref().map(|images| Images::Locked(images).lacking(&types)).unwrap_or_default();
        for instance_type in types.iter_mut().filter(|it| lacking.contains(&it.name)) {
            instance_type.offerings.iter_mut().for_each(|it| it.available = false);
        }
        name_zones(&mut types, &self.zone_ids);
        (Rc::new(types), lacking)
    }
}

/// Gives zones the ids that they have in the account. Whatever is sold there gets the same.
fn name_zones(types: &mut [InstanceType], zone_ids: &BTreeMap<String, String>) {
    let is_other = |offering: &Offering| {
        let id = zone_ids.get(&offering.zone);
        id.is_some_and(|id| offering.zone_id.as_ref() != Some(id))
    };
    for instance_type in types.iter_mut().filter(|it| it.offerings.iter().any(is_other)) {
        for offering in &mut instance_type.offerings {
            if let Some(id) = zone_ids.get(&offering.zone) {
                offering.zone_id = Some(id.clone());
            }
        }
    }
}
