//! Prices of instance types that nobody publishes yet, as NodeOverlays give them. Behaviour: reference, section 3.13.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Catalog, Offering};
use crate::inputs::Inputs;
use crate::model::HourlyPrice;
use crate::model::requirements::normalized;
use cutlist_api::keys;
use cutlist_api::node_overlay::NodeOverlay;
use cutlist_api::node_pool::Operator;

/// The catalog, in which a type without a price has the one of the heaviest NodeOverlay that is for this type alone; the same one where
/// there is no such overlay. O(overlays), and O(types) where there is one.
pub fn catalog<'a>(inputs: &Inputs<'a>) -> Cow<'a, Catalog> {
    if !inputs.policy.feature_gates.node_overlay {
        return Cow::Borrowed(inputs.catalog);
    }
    let mut overlays = overlays_in_force(inputs);
    overlays.sort_by_key(|overlay| (Reverse(overlay.spec.weight.unwrap_or(0)), Reverse(overlay.metadata.name.clone())));
    let mut prices: BTreeMap<&str, HourlyPrice> = BTreeMap::new();
    for (name, price) in overlays.into_iter().filter_map(price_of_one_type) {
        prices.entry(name).or_insert(price);
    }
    let mut types = inputs.catalog.instance_types.iter().filter(|it| prices.contains_key(it.name.as_str()));
    if !types.any(|it| it.offerings.iter().any(Offering::lacks_price)) {
        return Cow::Borrowed(inputs.catalog);
    }
    Cow::Owned(inputs.catalog.priced(&prices))
}

/// The type and its price, of an overlay that names one type and says what it costs.
fn price_of_one_type(overlay: &NodeOverlay) -> Option<(&str, HourlyPrice)> {
    let price = overlay.spec.price.as_deref()?.parse().ok().and_then(HourlyPrice::from_dollars)?;
    let is_of_type = |key: &str| normalized(key) == keys::INSTANCE_TYPE;
    let mut of_type = overlay.spec.requirements.iter().filter(|requirement| is_of_type(&requirement.key));
    let (only, further) = (of_type.next()?, of_type.next());
    match only.values.as_slice() {
        [name] if only.operator == Operator::In && further.is_none() => Some((name.as_str(), price)),
        _ => None,
    }
}

/// The overlays of the definitions, and those of the cluster that nobody applied from definitions.
pub fn overlays_in_force<'a>(inputs: &Inputs<'a>) -> Vec<&'a NodeOverlay> {
    let defined: BTreeSet<Option<&str>> =
        inputs.node_overlays.iter().map(|overlay| overlay.metadata.name.as_deref()).collect();
    let is_applied = |overlay: &NodeOverlay| {
        let labels = overlay.metadata.labels.as_ref();
        labels.and_then(|labels| labels.get(keys::MANAGED_BY)).is_some_and(|manager| manager == keys::FIELD_MANAGER)
    };
    let others = inputs.snapshot.node_overlays.iter();
    let others = others.filter(|overlay| !defined.contains(&overlay.metadata.name.as_deref()) && !is_applied(overlay));
    inputs.node_overlays.iter().chain(others).collect()
}
