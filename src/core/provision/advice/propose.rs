//! From what keeps a pod from a pool to what could be changed about it. Whether that is enough is for a trial to say.

use std::collections::BTreeSet;

use crate::catalog::{InstanceType, for_node_class, volume_of_pods};
use crate::inputs::Inputs;
use crate::model::requirements::{is_restricted, is_well_known};
use crate::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, format_amount, is_in_bytes};
use crate::plan::change::Change;
use crate::provision::amounts::amount;
use crate::provision::explain::{Sides, opts_out, restricting, sides, values, zones_of_volumes};
use crate::scheduler::offerings::TypeEntry;
use crate::scheduler::quota::LimitScope;
use crate::scheduler::topology::GroupKind;
use crate::scheduler::vectors;
use crate::scheduler::volumes::NODE_NAME;
use crate::scheduler::{ClassIndex, Engine, Refusal};
use cutlist_api::ec2_node_class::{EC2NodeClass, EC2NodeClassSpec, InstanceStorePolicy};
use cutlist_api::keys;
use cutlist_api::node_pool::Operator;

const GIBIBYTE: i64 = 1 << 30;
/// EC2 makes none larger.
const VOLUME_BYTES_MAX: i64 = 64 << 40;
/// Each comes closer by most of what was missing.
const ENLARGEMENTS_MAX: usize = 12;
/// Labels by which pods ask for nodes of managed node groups, or for those that somebody else makes.
const OF_OTHER_NODES: [&str; 2] = ["eks.amazonaws.com/", "alpha.eksctl.io/"];
/// What pods ask for a device of a DeviceClass by, where that has no other name for it.
const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";
/// Resources of devices that instance types have or have not.
const OF_INSTANCES: [&str; 5] = ["nvidia.com/", "amd.com/", "aws.amazon.com/", "habana.ai/", "vpc.amazonaws.com/"];

/// Whose side is changed where both could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Pool,
    Pod,
}

/// The change that would do away with a refusal, if there is one. `limit` and `used` tell what the pool's limit of a
/// resource is and what is taken of it.
pub fn propose(
    (engine, class): (&Engine<'_, '_>, ClassIndex),
    pool: &str,
    refusal: &Refusal,
    side: Side,
    limit_and_use: &dyn Fn(&LimitScope, &str) -> (i64, i64),
    inputs: Changed<'_, '_>,
) -> Option<Change> {
    let node_pool = || pool.to_owned();
    match refusal {
        Refusal::Limit { scope, resource, needed, .. } => {
            let (limit, used) = limit_and_use(scope, resource);
            let (resource, from) = (resource.clone(), amount(resource, limit));
            let to = at_least(&resource, used.saturating_add(*needed));
            match scope {
                LimitScope::NodePool => Some(Change::RaiseLimit { node_pool: node_pool(), resource, from, to }),
                LimitScope::Cluster => Some(Change::RaiseClusterLimit { resource, from, to }),
                // What is reserved is agreed with EC2, not with the definitions.
                LimitScope::Reservation(_) | LimitScope::EarlyEnds(_) => None,
            }
        }
        Refusal::Taint(taint) => Some(Change::Tolerate { taint: taint.clone() }),
        // What a pod must not run on it is not to be talked into.
        Refusal::Requirement { key } if sides(engine, class, pool, key).is_some_and(|it| opts_out(&it, key)) => None,
        Refusal::Requirement { key } if side == Side::Pod => Some(Change::DropSelector { key: key.clone() }),
        Refusal::Requirement { key } => wider_pool(engine, class, pool, key),
        // Volumes are no request that could be lower.
        Refusal::Resource { name, .. } if name == vectors::ATTACHABLE_VOLUMES => None,
        Refusal::Resource { name, requested, available } => {
            let short = Short { resource: name, requested: *requested, available: *available };
            let more = if side == Side::Pool { more_on_a_node(engine, pool, &short, inputs) } else { None };
            more.or_else(|| lower_request(&short))
        }
        // A spread that is only a wish may not ask for them: the API server refuses it.
        Refusal::Spread { key } if asks_for_domains(engine, class, key) => {
            Some(Change::DropMinDomains { key: key.clone() })
        }
        Refusal::Spread { key } => Some(Change::PreferSpread { key: key.clone() }),
        Refusal::Affinity { key } => Some(Change::PreferAffinity { key: key.clone() }),
        Refusal::AntiAffinity { key } => Some(Change::PreferAntiAffinity { key: key.clone() }),
        Refusal::HostPort => Some(Change::DropHostPorts),
        Refusal::MinValues { key } => Some(Change::DropMinValues { node_pool: node_pool(), key: key.clone() }),
        Refusal::Volume => zones_for_volumes(engine, class, pool),
        Refusal::Devices | Refusal::Offering | Refusal::EmptyPool => None,
    }
}

/// The zones of the volumes, where the pool names others. One that may have no subnet there is tried like any other change.
fn zones_for_volumes(engine: &Engine<'_, '_>, class: ClassIndex, pool: &str) -> Option<Change> {
    let values = zones_of_volumes(engine, class);
    let template = engine.problem.templates.iter().find(|it| it.name == pool && !it.is_reserved())?;
    let offered = template.requirements.get(keys::ZONE)?;
    let is_new = !values.is_empty() && !values.iter().any(|value| offered.allows(value));
    is_new.then(|| Change::OfferValues { node_pool: pool.to_owned(), key: keys::ZONE.to_owned(), values })
}

/// Whether a spread of the class over the label has `minDomains`.
fn asks_for_domains(engine: &Engine<'_, '_>, class: ClassIndex, key: &str) -> bool {
    let problem = engine.problem;
    let constraints =
        problem.classes[class].variants.iter().flat_map(|variant| &problem.variants[*variant].constraints);
    constraints.map(|group| &problem.groups[*group]).any(|group| {
        let asks = matches!(&group.kind, GroupKind::Spread(spread) if spread.min_domains > 0);
        asks && problem.domains.name(group.key) == key
    })
}

/// The inputs as they were, and as the changes that are tried make them.
#[derive(Clone, Copy)]
pub struct Changed<'i, 'a> {
    pub before: &'i Inputs<'a>,
    pub now: &'i Inputs<'i>,
}

/// What one node lacks.
struct Short<'s> {
    resource: &'s str,
    requested: i64,
    available: i64,
}

/// Where nothing can be had of more than there is.
fn lower_request(short: &Short<'_>) -> Option<Change> {
    let Short { resource, requested, available } = *short;
    let change = Change::LowerRequest {
        resource: resource.to_owned(),
        from: amount(resource, requested),
        to: at_most(resource, available),
    };
    (available > 0 && available < requested).then_some(change)
}

/// What makes nodes of a pool offer more: larger disks, or an overlay of what no instance type has by itself.
fn more_on_a_node(engine: &Engine<'_, '_>, pool: &str, short: &Short<'_>, inputs: Changed<'_, '_>) -> Option<Change> {
    match short.resource {
        EPHEMERAL_STORAGE => larger_disk(engine, pool, short, inputs),
        CPU | MEMORY | PODS => None,
        _ => overlay(pool, short, inputs),
    }
}

fn class_of_pool<'i>(inputs: &'i Inputs<'_>, pool: &str) -> Option<&'i EC2NodeClass> {
    let pool = inputs.node_pools.iter().find(|it| it.metadata.name.as_deref() == Some(pool))?;
    let name = &pool.spec.template.spec.node_class_ref.name;
    inputs.node_classes.iter().find(|class| class.metadata.name.as_ref() == Some(name))
}

/// The disks of the instance where an allowed type has them and they do, else a larger volume.
fn larger_disk(engine: &Engine<'_, '_>, pool: &str, short: &Short<'_>, inputs: Changed<'_, '_>) -> Option<Change> {
    let (before, class) = (class_of_pool(inputs.before, pool)?, class_of_pool(inputs.now, pool)?);
    let node_class = class.metadata.name.clone()?;
    let template = engine.problem.templates.iter().find(|it| it.name == pool && !it.is_reserved())?;
    let mut offered = template.offerings.compile(&template.requirements);
    template.offerings.prune(&mut offered);
    let allowed = offered.each_type().map(|position| template.offerings.types[position].name.as_str());
    let allowed: BTreeSet<&str> = allowed.collect();
    let types = inputs.now.catalog.instance_types.iter().filter(|it| allowed.contains(it.name.as_str()));
    let on_a_node = |instance_type: &InstanceType, spec: &EC2NodeClassSpec| {
        for_node_class(instance_type, spec).allocatable().get(EPHEMERAL_STORAGE)
    };
    let with_disks = EC2NodeClassSpec { instance_store_policy: Some(InstanceStorePolicy::RAID0), ..class.spec.clone() };
    let is_new = class.spec.instance_store_policy.is_none();
    if is_new && types.clone().any(|it| on_a_node(it, &with_disks) >= short.requested) {
        return Some(Change::UseInstanceStore { node_class });
    }
    let (device, bytes) = volume_of_pods(&class.spec)?;
    // Once is enough: it is made as large as it has to be.
    if volume_of_pods(&before.spec)?.1 != bytes {
        return None;
    }
    let first = types.clone().next()?;
    let now = on_a_node(first, &class.spec);
    let enlarged = |size: i64| Change::EnlargeVolume {
        node_class: node_class.clone(),
        device: device.clone(),
        from: format_amount(EPHEMERAL_STORAGE, bytes),
        to: at_least(EPHEMERAL_STORAGE, size),
    };
    let missing = |size: i64| {
        let mut larger = class.clone();
        enlarged(size).apply_to_node_class(&mut larger);
        short.requested - short.available - (on_a_node(first, &larger.spec) - now)
    };
    let (mut too_small, mut size) = (bytes, bytes);
    for _ in 0..ENLARGEMENTS_MAX {
        let left = missing(size);
        if left <= 0 {
            let least = least_size(too_small, size, |size| missing(size) <= 0);
            return (least <= VOLUME_BYTES_MAX).then(|| enlarged(least));
        }
        too_small = size;
        // A part of it is kept back for the kubelet to notice in time that the disk is full.
        size = size.saturating_add(left / 9 * 10).saturating_add(GIBIBYTE);
    }
    None
}

/// The least size in whole GiB that is enough, of those above one that is too small, up to one that is enough. O(log of them).
fn least_size(too_small: i64, enough: i64, is_enough: impl Fn(i64) -> bool) -> i64 {
    let (mut below, mut least) = (too_small / GIBIBYTE, enough.saturating_add(GIBIBYTE - 1) / GIBIBYTE);
    while least - below > 1 {
        let middle = below + (least - below) / 2;
        if is_enough(middle * GIBIBYTE) {
            least = middle;
        } else {
            below = middle;
        }
    }
    least * GIBIBYTE
}

/// Of what EC2 sells nothing can be made up: those are resources that an agent on the node offers, and huge pages.
fn overlay(pool: &str, short: &Short<'_>, inputs: Changed<'_, '_>) -> Option<Change> {
    let resource = short.resource;
    let is_sold = OF_INSTANCES.iter().any(|prefix| resource.starts_with(prefix))
        || inputs.now.catalog.instance_types.iter().any(|it| it.capacity.get(resource) > 0);
    let change = Change::AddOverlay {
        node_pool: pool.to_owned(),
        resource: resource.to_owned(),
        amount: format_amount(resource, short.requested),
    };
    let name = change.overlay()?.metadata.name;
    let is_there = inputs.now.node_overlays.iter().chain(&inputs.now.snapshot.node_overlays);
    let is_there = is_there.into_iter().any(|overlay| overlay.metadata.name == name);
    let may = inputs.now.policy.feature_gates.node_overlay && !is_sold && !is_there && !is_of_driver(resource, inputs);
    (may && short.available == 0).then_some(change)
}

/// Whether a DeviceClass stands behind the resource: its driver makes devices of it, and no node has an amount of it in its status.
fn is_of_driver(resource: &str, inputs: Changed<'_, '_>) -> bool {
    let mut classes = inputs.before.snapshot.device_classes.iter();
    let by_name = resource.strip_prefix(DEVICE_CLASS_PREFIX);
    classes.any(|class| {
        class.spec.extended_resource_name.as_deref() == Some(resource)
            || by_name.is_some_and(|name| class.metadata.name.as_deref() == Some(name))
    })
}

/// Whether a template may set this label: not one that the controller sets or that instance types have.
fn may_be_label(key: &str, value: &str) -> bool {
    let edge = |letter: Option<char>| letter.is_none_or(|letter| letter.is_ascii_alphanumeric());
    let inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let is_value =
        value.len() <= 63 && value.chars().all(inner) && edge(value.chars().next()) && edge(value.chars().next_back());
    let is_of_others = OF_OTHER_NODES.iter().any(|prefix| key.starts_with(prefix));
    is_value && !is_restricted(key) && !is_well_known(key) && !is_of_others
}

fn wider_pool(engine: &Engine<'_, '_>, class: ClassIndex, pool: &str, key: &str) -> Option<Change> {
    let sides = sides(engine, class, pool, key)?;
    let node_pool = pool.to_owned();
    if matches!(key, keys::NODE_POOL | NODE_NAME) || sides.asked.is_contradiction() {
        return None;
    }
    let asked = sides.asked.values().map(|values| values.iter().cloned().collect::<Vec<_>>());
    match (sides.offered, asked) {
        (Some(_), Some(values)) => Some(Change::OfferValues { node_pool, key: key.to_owned(), values }),
        (Some(_), None) => Some(Change::DropRequirement { node_pool, key: key.to_owned() }),
        (None, Some(values)) if !sides.pool.offerings.defines(key) => {
            let value = values.iter().find(|value| may_be_label(key, value))?.clone();
            Some(Change::AddLabel { node_pool, key: key.to_owned(), value })
        }
        (None, _) => {
            let (own, requirement) = restricting(&sides, key)?;
            // A pool that says what it is called can not say otherwise.
            let is_own_name = own == keys::NODE_POOL || values(requirement).is_empty();
            let own = own.to_owned();
            (!is_own_name).then(|| match value_to_offer(engine, class, &sides, key, &own) {
                Some(value) => Change::OfferValues { node_pool, key: own, values: vec![value] },
                None => Change::DropRequirement { node_pool, key: own },
            })
        }
    }
}

/// The value of a label that the pool restricts, with which it would have what is asked for, of the cheapest type that has room: without
/// any requirement there it would buy for all other pods whatever is cheapest. `None` where the pool has no list of values.
fn value_to_offer(
    engine: &Engine<'_, '_>,
    class: ClassIndex,
    sides: &Sides<'_>,
    key: &str,
    restricted: &str,
) -> Option<String> {
    let entries = sides.pool.requirements.get(restricted)?.to_entries(restricted);
    if !entries.iter().all(|entry| matches!(entry.operator, Operator::In | Operator::NotIn)) {
        return None;
    }
    let offerings = &sides.pool.offerings;
    let mut set = offerings.all();
    offerings.restrict(&mut set, key, sides.asked);
    for (own, requirement) in sides.pool.requirements.iter().filter(|(own, _)| *own != restricted) {
        if offerings.defines(own) {
            offerings.restrict(&mut set, own, requirement);
        }
    }
    let request = &engine.problem.classes[class].request;
    let has_room = |entry: &&TypeEntry| vectors::shortage(request, &entry.allocatable).is_none();
    let fitting = offerings.offered(&set).map(|(_, entry)| entry).find(has_room)?;
    fitting.requirements.get(restricted)?.first().cloned()
}

/// Rounded up to what people write in limits: whole cores, whole GiB.
pub fn at_least(resource: &str, needed: i64) -> String {
    let unit = match resource {
        CPU => 1000,
        _ if is_in_bytes(resource) => 1 << 30,
        _ => 1,
    };
    amount(resource, needed.saturating_add(unit - 1) / unit * unit)
}

/// Rounded down to as many digits as are shown, so that what is shown fits.
fn at_most(resource: &str, available: i64) -> String {
    const MEBIBYTE: i64 = 1 << 20;
    match resource {
        // Whole pages.
        _ if resource.starts_with("hugepages-") => format_amount(resource, available),
        _ if is_in_bytes(resource) && available < MEBIBYTE => available.to_string(),
        _ if is_in_bytes(resource) => {
            let tenths = (i128::from(available) * 10) >> 30;
            if tenths < 10 {
                format!("{}Mi", available / MEBIBYTE)
            } else {
                format!("{}.{}Gi", tenths / 10, tenths % 10).replace(".0Gi", "Gi")
            }
        }
        _ => amount(resource, available),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Resources;

    #[test]
    fn no_volume_is_larger_than_it_has_to_be() {
        for needed in 101..=120 {
            let least = least_size(100 * GIBIBYTE, 120 * GIBIBYTE, |size| size >= needed * GIBIBYTE);
            assert_eq!(least, needed * GIBIBYTE);
        }
        assert_eq!(least_size(100 * GIBIBYTE, 101 * GIBIBYTE + 1, |_| true), 101 * GIBIBYTE);
    }

    #[test]
    fn what_is_shown_is_never_more_than_there_is_nor_less_than_is_needed() {
        for (resource, bytes) in [(MEMORY, 14_162 << 20), (MEMORY, 999 << 20), (MEMORY, 77), (CPU, 7_910), ("gpu", 4)] {
            let parsed = |text: &str| Resources::amount(resource, text.parse().unwrap());
            assert!(parsed(&at_most(resource, bytes)) <= bytes, "{resource} {bytes}");
            assert!(parsed(&at_least(resource, bytes)) >= bytes, "{resource} {bytes}");
        }
        assert_eq!(at_most(MEMORY, 14_162 << 20), "13.8Gi");
        assert_eq!((at_least(CPU, 13_100), at_least(MEMORY, 14_162 << 20)), ("14".into(), "14Gi".into()));
    }
}
