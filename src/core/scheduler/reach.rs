//! Which domains of a topology key the nodes of a template can come to be in.

use fixedbitset::FixedBitSet;

use super::offerings::{OfferingSet, Offerings, Slots, alone, is_slot_label};
use super::topology::{Domain, Domains, KeyIndex, NO_DOMAIN, OPEN_DOMAIN};

/// The domains of one key that offerings lend, by value; decided by slot, by type, or by the labels of the pool.
#[derive(Clone, Debug)]
pub enum Reach {
    Slots(Vec<(Domain, Slots)>),
    Types(Vec<(Domain, FixedBitSet)>),
    /// One value is chosen for each node.
    Pool,
}

impl Reach {
    /// O(values of the key x slots).
    pub fn new(offerings: &Offerings, domains: &Domains, key: KeyIndex) -> Self {
        let name = domains.name(key);
        if offerings.leaves_open(name) {
            return Self::Pool;
        }
        if !is_slot_label(name) {
            let types = offerings.types_by_value(name);
            return Self::Types(
                types.filter_map(|(value, types)| Some((domains.get(key, value)?, types.clone()))).collect(),
            );
        }
        let all = offerings.all();
        let in_domain = |value: &str| {
            let has_value = |slot: &Slots| offerings.values_of(&all.in_slots(*slot), name).contains(&value);
            offerings.slots.indices().map(alone).filter(has_value).fold(0, |slots, slot| slots | slot)
        };
        let values = offerings.values_of(&all, name);
        Self::Slots(values.into_iter().filter_map(|value| Some((domains.get(key, value)?, in_domain(value)))).collect())
    }

    /// The domains that a node may still come to be in, by value. `None` where the labels of the pool decide.
    pub fn possible(&self, set: &OfferingSet) -> Option<Vec<Domain>> {
        match self {
            Self::Slots(domains) => {
                Some(domains.iter().filter(|(_, slots)| slots & set.slots != 0).map(|(domain, _)| *domain).collect())
            }
            Self::Types(domains) => Some(
                domains
                    .iter()
                    .filter(|(_, types)| !types.is_disjoint(set.types()))
                    .map(|(domain, _)| *domain)
                    .collect(),
            ),
            Self::Pool => None,
        }
    }

    /// The only domain that is left, [`OPEN_DOMAIN`] for several, [`NO_DOMAIN`] for none. `None` where the labels of the
    /// pool decide.
    pub fn settled(&self, set: &OfferingSet) -> Option<Domain> {
        match self {
            Self::Slots(domains) => {
                Some(only(domains.iter().filter(|(_, slots)| slots & set.slots != 0).map(|(domain, _)| *domain)))
            }
            Self::Types(domains) => Some(only(
                domains.iter().filter(|(_, types)| !types.is_disjoint(set.types())).map(|(domain, _)| *domain),
            )),
            Self::Pool => None,
        }
    }

    /// The slots in a domain; none where slots do not decide.
    pub fn slots_of(&self, domain: Domain) -> Slots {
        match self {
            Self::Slots(domains) => {
                let there = domains.iter().filter(|(known, _)| *known == domain);
                there.fold(0, |all, (_, slots)| all | slots)
            }
            Self::Types(_) | Self::Pool => 0,
        }
    }

    /// The slots in one of these domains. `None` where slots do not decide.
    pub fn slots_in(&self, wanted: &[Domain]) -> Option<Slots> {
        match self {
            Self::Slots(_) => Some(wanted.iter().fold(0, |slots, domain| slots | self.slots_of(*domain))),
            Self::Types(_) | Self::Pool => None,
        }
    }

    /// Leaves out what is in none of these domains. False where the labels of the pool decide.
    pub fn restrict(&self, set: &mut OfferingSet, wanted: &[Domain]) -> bool {
        match self {
            Self::Slots(_) => {
                set.slots &= wanted.iter().fold(0, |slots, domain| slots | self.slots_of(*domain));
                true
            }
            Self::Types(domains) => {
                let mut kept = FixedBitSet::with_capacity(set.types().len());
                for (_, types) in domains.iter().filter(|(domain, _)| wanted.contains(domain)) {
                    kept.union_with(types);
                }
                set.keep_types(&kept);
                true
            }
            Self::Pool => false,
        }
    }
}

/// One, several or none.
pub fn only(mut domains: impl Iterator<Item = Domain>) -> Domain {
    match (domains.next(), domains.next()) {
        (Some(domain), None) => domain,
        (Some(_), Some(_)) => OPEN_DOMAIN,
        (None, _) => NO_DOMAIN,
    }
}
