//! NodeOverlays, asked one offering at a time: which of them counts for it.

use std::cmp::Ordering;

use crate::catalog::{Catalog, InstanceType, Offering};
use crate::inputs::Inputs;
use crate::model::resources::MEMORY;
use crate::model::{HourlyPrice, Resources};
use cutlist_api::keys;
use cutlist_api::node_overlay::{NodeOverlay, OverlayRequirement};
use cutlist_api::node_pool::{NodePool, Operator};

/// The overlays that are applied, heaviest first.
pub(super) fn applied<'a>(inputs: &Inputs<'a>) -> Vec<&'a NodeOverlay> {
    let mut applied: Vec<&NodeOverlay> = Vec::new();
    for overlay in heaviest_first(inputs) {
        if applied.iter().all(|other| weight(other) != weight(overlay) || !conflict(other, overlay, inputs)) {
            applied.push(overlay);
        }
    }
    applied
}

/// The catalog with what overlays for one type alone say of offerings whose price nobody knows; `None` where there are none.
pub(super) fn with_prices_of_previews(inputs: &Inputs<'_>) -> Option<Catalog> {
    let mut priced: Option<Catalog> = None;
    for overlay in heaviest_first(inputs) {
        let of_type: Vec<&OverlayRequirement> = overlay
            .spec
            .requirements
            .iter()
            .filter(|it| matches!(it.key.as_str(), keys::INSTANCE_TYPE | "beta.kubernetes.io/instance-type"))
            .collect();
        let [OverlayRequirement { operator: Operator::In, values, .. }] = of_type.as_slice() else { continue };
        let ([name], Some(price)) = (&values[..], &overlay.spec.price) else { continue };
        let price = price.parse().ok().and_then(HourlyPrice::from_dollars);
        let catalog = priced.as_ref().unwrap_or(inputs.catalog);
        let is_unknown =
            |it: &Offering| it.capacity_type == keys::ON_DEMAND && !it.available && it.price == HourlyPrice::ZERO;
        let position =
            catalog.instance_types.iter().position(|it| it.name == *name && it.offerings.iter().any(is_unknown));
        let (Some(position), Some(price)) = (position, price) else { continue };
        let offerings = &mut priced.get_or_insert_with(|| inputs.catalog.clone()).instance_types[position].offerings;
        for offering in offerings.iter_mut().filter(|it| is_unknown(it)) {
            (offering.price, offering.available) = (price, true);
        }
    }
    priced
}

fn heaviest_first<'a>(inputs: &Inputs<'a>) -> Vec<&'a NodeOverlay> {
    if !inputs.policy.feature_gates.node_overlay {
        return Vec::new();
    }
    let mut all: Vec<&NodeOverlay> = inputs.node_overlays.iter().collect();
    for overlay in &inputs.snapshot.node_overlays {
        let ours = overlay
            .metadata
            .labels
            .iter()
            .flatten()
            .any(|(key, value)| key == "app.kubernetes.io/managed-by" && value == "cutlist");
        if !ours && inputs.node_overlays.iter().all(|defined| defined.metadata.name != overlay.metadata.name) {
            all.push(overlay);
        }
    }
    all.sort_by(|one, two| match weight(two).cmp(&weight(one)) {
        Ordering::Equal => two.metadata.name.cmp(&one.metadata.name),
        unequal => unequal,
    });
    all
}

fn weight(overlay: &NodeOverlay) -> i32 {
    overlay.spec.weight.unwrap_or_default()
}

fn has_price(overlay: &NodeOverlay) -> bool {
    overlay.spec.price.is_some() || overlay.spec.price_adjustment.is_some()
}

/// Whether both set one price, or different amounts of one resource.
fn conflict(one: &NodeOverlay, two: &NodeOverlay, inputs: &Inputs<'_>) -> bool {
    let amounts_differ = one.spec.capacity.iter().any(|(name, amount)| {
        let other = two.spec.capacity.get(name);
        other.is_some_and(|other| parsed(name, &amount.to_string()) != parsed(name, &other.to_string()))
    });
    inputs.node_pools.iter().any(|pool| {
        inputs.catalog.instance_types.iter().any(|instance_type| {
            let meant = |overlay| -> Vec<bool> {
                let offerings = instance_type.offerings.iter();
                offerings.map(|offering| is_for(overlay, pool, instance_type, offering)).collect()
            };
            let (of_one, of_two) = (meant(one), meant(two));
            let one_price =
                has_price(one) && has_price(two) && of_one.iter().zip(&of_two).any(|(one, two)| *one && *two);
            one_price || (amounts_differ && of_one.contains(&true) && of_two.contains(&true))
        })
    })
}

fn parsed(name: &str, amount: &str) -> Option<Resources> {
    Resources::parse([(name, amount.to_owned())]).ok()
}

fn is_for(overlay: &NodeOverlay, pool: &NodePool, instance_type: &InstanceType, offering: &Offering) -> bool {
    overlay.spec.requirements.iter().all(|requirement| {
        let of_pool = pool.spec.template.metadata.labels.get(&requirement.key);
        let values: Vec<&str> = match requirement.key.as_str() {
            keys::NODE_POOL => pool.metadata.name.as_deref().into_iter().collect(),
            keys::INSTANCE_TYPE => vec![&instance_type.name],
            keys::ZONE => vec![&offering.zone],
            keys::ZONE_ID => offering.zone_id.as_deref().into_iter().collect(),
            keys::CAPACITY_TYPE => vec![&offering.capacity_type],
            key => match of_pool {
                Some(value) => vec![value],
                None => instance_type.requirements.get(key).into_iter().flatten().map(String::as_str).collect(),
            },
        };
        satisfies(requirement, &values)
    })
}

fn satisfies(requirement: &OverlayRequirement, values: &[&str]) -> bool {
    let listed = |value: &&&str| requirement.values.iter().any(|it| it == **value);
    let compared = |holds: fn(i64, i64) -> bool| {
        let bound = requirement.values.first().and_then(|bound| bound.parse::<i64>().ok());
        values
            .iter()
            .filter_map(|value| value.parse::<i64>().ok())
            .any(|value| bound.is_some_and(|it| holds(value, it)))
    };
    match requirement.operator {
        Operator::In => values.iter().any(|value| listed(&value)),
        Operator::NotIn => values.is_empty() || values.iter().any(|value| !listed(&value)),
        Operator::Exists => !values.is_empty(),
        Operator::DoesNotExist => values.is_empty(),
        Operator::Gt => compared(|value, bound| value > bound),
        Operator::Lt => compared(|value, bound| value < bound),
        Operator::Gte => compared(|value, bound| value >= bound),
        Operator::Lte => compared(|value, bound| value <= bound),
    }
}

/// The price that counts for an offering.
pub(super) fn price(
    applied: &[&NodeOverlay],
    pool: &NodePool,
    instance_type: &InstanceType,
    offering: &Offering,
) -> HourlyPrice {
    let mut priced = applied.iter().filter(|overlay| has_price(overlay));
    let Some(overlay) = priced.find(|overlay| is_for(overlay, pool, instance_type, offering)) else {
        return offering.price;
    };
    let dollars = |text: &str| text.parse::<f64>().unwrap_or_default();
    let before = offering.price.dollars();
    let after = match (&overlay.spec.price, &overlay.spec.price_adjustment) {
        (Some(price), _) => dollars(price),
        (None, Some(text)) => match text.strip_suffix('%') {
            Some(percent) => before * (1.0 + dollars(percent) / 100.0),
            None => before + dollars(text),
        },
        (None, None) => before,
    };
    HourlyPrice::from_dollars(after.max(0.0)).unwrap_or(offering.price)
}

/// The type with the resources that overlays give it in a pool.
pub(super) fn with_capacity(applied: &[&NodeOverlay], pool: &NodePool, instance_type: &InstanceType) -> InstanceType {
    let mut changed = instance_type.clone();
    // The heaviest comes last, and so has the last word.
    let mut added = Resources::new();
    for overlay in applied.iter().rev() {
        if instance_type.offerings.iter().any(|offering| is_for(overlay, pool, instance_type, offering)) {
            for (name, amount) in &overlay.spec.capacity {
                parsed(name, &amount.to_string()).into_iter().for_each(|amount| added.set(name, amount.get(name)));
            }
        }
    }
    for (name, amount) in added.iter() {
        changed.capacity.set(name, amount);
        if name.starts_with("hugepages-") {
            changed.overhead.set(MEMORY, changed.overhead.get(MEMORY) + amount);
        }
    }
    changed
}
