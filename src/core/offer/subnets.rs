//! The subnets of an EC2NodeClass, as far as anybody has said which they are: nodes are launched where there is one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::inputs::Inputs;
use cutlist_api::ec2_node_class::{EC2NodeClass, Subnet};

/// What is known of the subnets of a class.
#[derive(Debug, Default)]
pub struct Subnets<'a> {
    /// Those that its terms select; empty where nobody says.
    found: Vec<&'a Subnet>,
    /// The zones that the cloud named when it was asked.
    asked: Option<Vec<String>>,
    /// What is free in them by id, as far as the cloud said.
    free: BTreeMap<&'a str, u64>,
}

/// A node takes an address, and each of its pods: with fewer no node is of use.
const ADDRESSES_MIN: u64 = 2;

impl<'a> Subnets<'a> {
    /// By the status of the applied class, if its terms are those of the definitions; else by that of the definitions, which may have
    /// been read from a cluster; else by the ids that the terms name. O(subnets of all classes).
    pub fn of(inputs: &Inputs<'a>, class: &'a EC2NodeClass) -> Self {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        let applied = inputs.snapshot.node_classes.iter().find(|it| it.metadata.name == class.metadata.name);
        let is_same = applied.map(|it| is_same(&it.spec.subnet_selector_terms, &class.spec.subnet_selector_terms));
        let asked = inputs.policy.zones_with_subnet.get(name).cloned();
        let by_applied = applied.filter(|_| is_same == Some(true)).and_then(EC2NodeClass::status_now);
        let by_definition = class.status.as_ref().filter(|_| is_same != Some(false));
        let said = by_applied.into_iter().chain(by_definition).find(|status| !status.subnets.is_empty());
        let found = said.map_or_else(|| by_id(inputs, class), |status| status.subnets.iter().collect::<Vec<_>>());
        let counted = inputs.policy.free_addresses.as_ref();
        let free = |subnet: &&'a Subnet| Some((subnet.id.as_str(), *counted?.get(&subnet.id)?));
        let free = found.iter().filter_map(free).collect();
        Self { found, asked, free }
    }

    /// The zones in which its terms find a subnet; `None` where nobody says.
    pub fn zones_found(&self) -> Option<BTreeSet<&'a str>> {
        (!self.found.is_empty()).then(|| self.found.iter().map(|subnet| subnet.zone.as_str()).collect())
    }

    /// The zones whose subnets have no addresses for another node, with what is left in each subnet. One of which that is not known may have
    /// some.
    pub fn full(&self) -> BTreeMap<&'a str, Vec<(&'a str, u64)>> {
        let mut left: BTreeMap<&str, Vec<(&str, Option<u64>)>> = BTreeMap::new();
        for subnet in &self.found {
            let free = self.free.get(subnet.id.as_str()).copied();
            left.entry(&subnet.zone).or_default().push((&subnet.id, free));
        }
        let known = |(zone, subnets): (&'a str, Vec<(&'a str, Option<u64>)>)| {
            let subnets: Option<Vec<_>> = subnets.into_iter().map(|(id, free)| Some((id, free?))).collect();
            Some((zone, subnets.filter(|subnets| subnets.iter().all(|(_, free)| *free < ADDRESSES_MIN))?))
        };
        left.into_iter().filter_map(known).collect()
    }

    /// The zones in which its nodes can be launched; `None` where nobody says, and any has to do.
    pub fn zones(&self) -> Option<Vec<String>> {
        let full = self.full();
        let found = self.zones_found().map(|mut found| {
            found.retain(|zone| !full.contains_key(zone));
            found
        });
        let asked = self.asked.as_ref().map(|asked| asked.iter().map(String::as_str).collect::<BTreeSet<_>>());
        let zones = match (found, asked) {
            (Some(found), Some(asked)) => &found & &asked,
            (found, asked) => found.or(asked)?,
        };
        Some(zones.into_iter().map(str::to_owned).collect())
    }

    /// By zone the id that it has in the account, where the subnets say: names of zones are each account's own.
    pub fn zone_ids(&self) -> BTreeMap<&'a str, &'a str> {
        self.found.iter().filter_map(|subnet| Some((subnet.zone.as_str(), subnet.zone_id.as_deref()?))).collect()
    }
}

/// Where each term names a subnet that some class has found.
fn by_id<'a>(inputs: &Inputs<'a>, class: &EC2NodeClass) -> Vec<&'a Subnet> {
    let classes = inputs.snapshot.node_classes.iter().chain(inputs.node_classes);
    let known = classes.filter_map(|class| class.status.as_ref()).flat_map(|status| &status.subnets);
    let known: BTreeMap<&str, &Subnet> = known.map(|subnet| (subnet.id.as_str(), subnet)).collect();
    let of_term = class.spec.subnet_selector_terms.iter().map(|term| known.get(term.id.as_deref()?).copied());
    of_term.collect::<Option<_>>().unwrap_or_default()
}

/// Whether the terms of a selector are the same, in any order.
pub(super) fn is_same<T: Serialize>(one: &[T], other: &[T]) -> bool {
    // Plain data always has a JSON form.
    let terms = |terms: &[T]| -> BTreeSet<String> {
        terms.iter().map(|term| serde_json::to_string(term).unwrap_or_default()).collect()
    };
    terms(one) == terms(other)
}
