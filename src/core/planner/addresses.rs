//! What new nodes and their pods take of the addresses that are free in the subnets of their class.

use std::collections::BTreeMap;

use crate::inputs::Inputs;
use crate::model::resources::PODS;
use crate::model::words::pods_text;
use crate::offer::Subnets;
use crate::plan::{CloudFact, CloudFactCode, Step, StepKind};

/// Subnets that one fact names.
const SUBNETS_NAMED_MAX: usize = 3;

/// What is launched of a class in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Launched {
    nodes: u64,
    /// With those of DaemonSets. On the host's network a pod takes no address, which is not counted off here.
    pods: u64,
    /// Addresses of the prefixes that the nodes are given as a whole, of which their pods take theirs.
    prefixed: u64,
}

impl Launched {
    /// One address for the interface of each node, those of its prefixes, and one for each pod beside them.
    fn addresses(self) -> u64 {
        self.nodes + self.prefixed.max(self.pods)
    }
}

/// Addresses of a prefix. Source: the EC2 user guide, "Assign prefixes to network interfaces".
const OF_A_PREFIX: u64 = 16;

/// For each class and zone that this plan launches in, what is free there and what is left, and which zones are left out because nothing
/// is; nothing where no cloud was asked.
/// O(steps + subnets).
pub fn facts(inputs: &Inputs<'_>, steps: &[Step]) -> Vec<CloudFact> {
    let Some(free) = &inputs.policy.free_addresses else { return Vec::new() };
    let mut launched: BTreeMap<(&str, &str), Launched> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.kind == StepKind::Create) {
        let mut pools = inputs.node_pools.iter();
        let pool = pools.find(|pool| pool.metadata.name.as_deref() == Some(&step.node_pool));
        let Some(pool) = pool else { continue };
        let class = pool.spec.template.spec.node_class_ref.name.as_str();
        let entry = launched.entry((class, &step.zone)).or_default();
        entry.prefixed += prefixes(inputs, class) * OF_A_PREFIX;
        entry.nodes += 1;
        entry.pods += u64::try_from(step.requested.get(PODS)).unwrap_or_default().max(step.pods.len() as u64);
    }
    let full = inputs.node_classes.iter().flat_map(|class| {
        let name = class.metadata.name.as_deref().unwrap_or_default();
        Subnets::of(inputs, class).full().into_iter().map(move |(zone, subnets)| full(name, zone, &subnets))
    });
    let launched = launched.iter().map(|((class, zone), launched)| of_zone(inputs, free, class, zone, *launched));
    launched.chain(full).collect()
}

/// Prefixes of a node of the class.
fn prefixes(inputs: &Inputs<'_>, class: &str) -> u64 {
    let class = inputs.node_classes.iter().find(|it| it.metadata.name.as_deref() == Some(class));
    let count = class.and_then(|class| class.spec.ip_prefix_count);
    count.and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
}

/// A zone that is left out.
fn full(class: &str, zone: &str, subnets: &[(&str, u64)]) -> CloudFact {
    let text = format!("{}: no node is launched there until some are free", named(subnets));
    fact(class, zone, CloudFactCode::AddressesShort, 0, text)
}

fn of_zone(
    inputs: &Inputs<'_>,
    free: &BTreeMap<String, u64>,
    class: &str,
    zone: &str,
    launched: Launched,
) -> CloudFact {
    let applied = inputs.snapshot.node_classes.iter().find(|it| it.metadata.name.as_deref() == Some(class));
    let subnets = applied.and_then(|class| class.status_now()).into_iter().flat_map(|status| &status.subnets);
    let subnets = subnets.filter(|subnet| subnet.zone == zone);
    let known: Vec<(&str, u64)> =
        subnets.filter_map(|subnet| Some((subnet.id.as_str(), *free.get(&subnet.id)?))).collect();
    let (code, text) = said(&known, launched);
    fact(class, zone, code, usize::try_from(launched.nodes).unwrap_or(usize::MAX), text)
}

fn fact(class: &str, zone: &str, code: CloudFactCode, nodes: usize, text: String) -> CloudFact {
    CloudFact {
        node_class: class.to_owned(),
        subject: format!("addresses {zone}"),
        code,
        before: Vec::new(),
        after: None,
        nodes,
        replaces: BTreeMap::new(),
        used: false,
        text,
        definition: None,
    }
}

fn named(subnets: &[(&str, u64)]) -> String {
    let mut named: Vec<String> =
        subnets.iter().take(SUBNETS_NAMED_MAX).map(|(subnet, free)| format!("{subnet} {free} free")).collect();
    if subnets.len() > SUBNETS_NAMED_MAX {
        named.push(format!("{} more", subnets.len() - SUBNETS_NAMED_MAX));
    }
    named.join(", ")
}

fn said(known: &[(&str, u64)], launched: Launched) -> (CloudFactCode, String) {
    let nodes = if launched.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", launched.nodes) };
    let prefixes = launched.prefixed / OF_A_PREFIX;
    let nodes = if prefixes == 0 { nodes } else { format!("{nodes} with {prefixes} prefixes of {OF_A_PREFIX}") };
    let pods = pods_text(usize::try_from(launched.pods).unwrap_or(usize::MAX));
    let needed = launched.addresses();
    let takes = format!("this plan takes up to {needed} ({nodes}, {pods})");
    if known.is_empty() {
        return (CloudFactCode::AddressesUnknown, format!("how many are free is not known; {takes}"));
    }
    let total: u64 = known.iter().map(|(_, free)| *free).sum();
    let named = named(known);
    match total.checked_sub(needed) {
        Some(left) => (CloudFactCode::AddressesFree, format!("{named}; {takes} -> {left} left")),
        None => (
            CloudFactCode::AddressesShort,
            format!(
                "{named}; {takes}, {} more than there are: some of its nodes will have to be elsewhere",
                needed - total
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_and_what_lacks_is_said() {
        let launched = Launched { nodes: 2, pods: 58, prefixed: 0 };
        type Case = (&'static [(&'static str, u64)], CloudFactCode, &'static str);
        let cases: [Case; 3] = [
            (
                &[("subnet-a", 200), ("subnet-b", 11)],
                CloudFactCode::AddressesFree,
                "subnet-a 200 free, subnet-b 11 free; this plan takes up to 60 (2 nodes, 58 pods) -> 151 left",
            ),
            (
                &[("subnet-b", 31)],
                CloudFactCode::AddressesShort,
                "subnet-b 31 free; this plan takes up to 60 (2 nodes, 58 pods), 29 more than there are: some of its nodes will have to be \
                 elsewhere",
            ),
            (
                &[],
                CloudFactCode::AddressesUnknown,
                "how many are free is not known; this plan takes up to 60 (2 nodes, 58 pods)",
            ),
        ];
        for (known, code, text) in cases {
            assert_eq!(said(known, launched), (code, text.to_owned()));
        }
        let (_, text) = said(&[("subnet-a", 200)], Launched { prefixed: 64, ..launched });
        assert_eq!(
            text,
            "subnet-a 200 free; this plan takes up to 66 (2 nodes with 4 prefixes of 16, 58 pods) -> 134 left"
        );
    }
}
