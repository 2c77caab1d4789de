//! From what keeps a pod from a pool to what could be changed about it. Whether that is enough is for a trial to say.

use crate::api::keys;
use crate::core::model::resources::{CPU, EPHEMERAL_STORAGE, MEMORY};
use crate::core::provision::explain::{amount, restricting, sides, values};
use crate::core::scheduler::quota::Scope;
use crate::core::scheduler::volumes::NODE_NAME;
use crate::core::scheduler::{ClassIndex, Engine, Refusal};

use super::change::Change;

/// Whose side is changed where both could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Pool,
    Pod,
}

/// The change that would do away with a refusal, if there is one. `limit` and `used` tell what the pool's limit of a
/// resource is and what is taken of it.
pub fn propose(
    engine: &Engine<'_, '_>,
    class: ClassIndex,
    pool: &str,
    refusal: &Refusal,
    side: Side,
    limit_and_use: &dyn Fn(&Scope, &str) -> (i64, i64),
) -> Option<Change> {
    let node_pool = || pool.to_owned();
    match refusal {
        Refusal::Limit { scope, resource, needed, .. } => {
            let (limit, used) = limit_and_use(scope, resource);
            let (resource, from) = (resource.clone(), amount(resource, limit));
            let to = at_least(&resource, used.saturating_add(*needed));
            match scope {
                Scope::NodePool => Some(Change::RaiseLimit { node_pool: node_pool(), resource, from, to }),
                Scope::Cluster => Some(Change::RaiseClusterLimit { resource, from, to }),
                // What is reserved is agreed with EC2, not with the definitions.
                Scope::Reservation(_) => None,
            }
        }
        Refusal::Taint(taint) => Some(Change::Tolerate { taint: taint.clone() }),
        Refusal::Requirement { key } if side == Side::Pod => Some(Change::DropSelector { key: key.clone() }),
        Refusal::Requirement { key } => wider_pool(engine, class, pool, key),
        Refusal::Resource { name, requested, available } => Some(Change::LowerRequest {
            resource: name.clone(),
            from: amount(name, *requested),
            to: at_most(name, *available),
        })
        .filter(|_| *available > 0 && available < requested),
        Refusal::Spread { key } => Some(Change::PreferSpread { key: key.clone() }),
        Refusal::Affinity { key } => Some(Change::PreferAffinity { key: key.clone() }),
        Refusal::AntiAffinity { key } => Some(Change::PreferAntiAffinity { key: key.clone() }),
        Refusal::HostPort => Some(Change::DropHostPorts),
        Refusal::MinValues { key } => Some(Change::DropMinValues { node_pool: node_pool(), key: key.clone() }),
        Refusal::Volume | Refusal::Devices | Refusal::Offering | Refusal::EmptyPool => None,
    }
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
            Some(Change::AddLabel { node_pool, key: key.to_owned(), value: values.first()?.clone() })
        }
        (None, _) => {
            let (own, requirement) = restricting(&sides, key)?;
            // A pool that says what it is called can not say otherwise.
            let is_own_name = own == keys::NODE_POOL || values(requirement).is_empty();
            (!is_own_name).then(|| Change::DropRequirement { node_pool, key: own.to_owned() })
        }
    }
}

/// Rounded up to what people write in limits: whole cores, whole GiB.
pub fn at_least(resource: &str, needed: i64) -> String {
    let unit = match resource {
        CPU => 1000,
        MEMORY | EPHEMERAL_STORAGE => 1 << 30,
        _ => 1,
    };
    amount(resource, needed.saturating_add(unit - 1) / unit * unit)
}

/// Rounded down to as many digits as are shown, so that what is shown fits.
fn at_most(resource: &str, available: i64) -> String {
    const MEBIBYTE: i64 = 1 << 20;
    match resource {
        MEMORY | EPHEMERAL_STORAGE if available < MEBIBYTE => available.to_string(),
        MEMORY | EPHEMERAL_STORAGE => {
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
    use crate::core::model::Resources;

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
