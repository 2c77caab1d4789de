//! The most that all pods together may say. What one pod may is limited where it is read ([`crate::snapshot::limits`]); many
//! pods that each stay within that, and that are each a little different, would still make a plan take minutes.
//!
//! The work of a pod is counted, never timed. When there is too much of it, the pods that make most are left out first: whoever asks
//! for as little as most people do never waits for those who ask for more.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use crate::model::Resources;
use crate::snapshot::limits::terms;
use crate::snapshot::{Pod, PodIndex, Snapshot};

/// Work that each kind of pod may make without being counted: five constraints, any four of which may be given up.
const FREE: usize = 25;
/// What kinds of pods may make beyond that, in a cluster without nodes. A unit takes some ten microseconds, for each 500 nodes.
const WORK_MAX: usize = 100_000;
const NODES_AT_DOUBLE: usize = 500;

/// Said of those that are left out.
pub const TOO_MUCH: &str = "terms that are too many together with those of all pods: preferences times constraints are more work than \
                            one plan may take";
pub const TOO_MANY_RESOURCES: &str =
    "names of resources that are too many together with those of all pods: 256 is the most beside those of nodes";

/// Resources that neither Kubernetes nor a node of the cluster has by that name. Each takes a place in what every instance type offers.
const RESOURCE_NAMES_MAX: usize = 256;

/// What it takes to look for a place for a pod: each preference that is given up is another look, at every constraint.
fn work(pod: &Pod, namespaces: usize) -> usize {
    let terms = terms(pod);
    let looks = 1 + terms.preferences + terms.node_terms.saturating_sub(1);
    let constraints = 1 + terms.constraints;
    looks * constraints
        // A spread counts the nodes that some term allows.
        + terms.spreads * terms.node_terms
        // Pods of required affinity have to satisfy all terms together.
        + terms.required_affinity * terms.required_affinity
        + terms.values / 10
        + terms.namespace_selectors * namespaces / 10
}

/// Pods that make too much work together with all others. `identity` tells pods apart that are looked at apart.
pub fn too_much<K: Eq + Hash>(
    snapshot: &Snapshot,
    mut identity: impl FnMut(PodIndex, &Pod) -> K,
) -> BTreeSet<PodIndex> {
    let namespaces = snapshot.namespaces.len();
    let excess = |pod: &Pod| work(pod, namespaces).saturating_sub(FREE);
    let pods = snapshot.pods.enumerated().filter(|(_, pod)| !pod.is_terminal());
    let large: Vec<(usize, PodIndex)> =
        pods.map(|(position, pod)| (excess(pod), position)).filter(|(excess, _)| *excess > 0).collect();
    let most = WORK_MAX / (1 + snapshot.nodes.len() / NODES_AT_DOUBLE);
    // Whoever has few of them has few kinds of them.
    if large.iter().fold(0, |sum: usize, (excess, _)| sum.saturating_add(*excess)) <= most {
        return BTreeSet::new();
    }
    let mut kinds: HashMap<K, usize> = HashMap::new();
    let mut sizes = Vec::new();
    let mut kind_of_pod = Vec::new();
    for (excess, position) in large {
        let next = kinds.len();
        let kind = *kinds.entry(identity(position, &snapshot.pods[position])).or_insert(next);
        if kind == next {
            sizes.push((excess, kind));
        }
        kind_of_pod.push((position, kind));
    }
    let refused: BTreeSet<usize> = beyond(sizes, most).into_iter().collect();
    kind_of_pod.into_iter().filter(|(_, kind)| refused.contains(kind)).map(|(pod, _)| pod).collect()
}

/// What does not fit into `most` when the smallest come first.
fn beyond(mut sizes: Vec<(usize, usize)>, most: usize) -> Vec<usize> {
    sizes.sort_unstable();
    let mut sum = 0_usize;
    let fitting = sizes.iter().take_while(|(size, _)| {
        sum = sum.saturating_add(*size);
        sum <= most
    });
    let fits = fitting.count();
    sizes.into_iter().skip(fits).map(|(_, item)| item).collect()
}

/// Pods that name resources which are too many together, those with the most names first. O(pods + names log names) where they are not.
pub fn too_many_resources<'r>(
    requests: impl Iterator<Item = (PodIndex, &'r Resources)> + Clone,
    snapshot: &Snapshot,
) -> BTreeSet<PodIndex> {
    let is_counted = |name: &str| name.contains('/');
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for (_, resources) in requests.clone() {
        names.extend(resources.iter().map(|(name, _)| name).filter(|name| is_counted(name)));
    }
    if names.len() <= RESOURCE_NAMES_MAX {
        return BTreeSet::new();
    }
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for node in &snapshot.nodes {
        let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        known.extend(allocatable.into_iter().flatten().map(|(name, _)| name.as_str()));
    }
    let mut by_names: Vec<(usize, PodIndex, &Resources)> =
        requests.map(|(pod, resources)| (resources.iter().count(), pod, resources)).collect();
    by_names.sort_unstable_by_key(|(names, pod, _)| (*names, *pod));
    let mut further: BTreeSet<&str> = BTreeSet::new();
    let mut refused = BTreeSet::new();
    for (_, pod, resources) in by_names {
        let unknown = || {
            let names = resources.iter().map(|(name, _)| name);
            names.filter(|name| is_counted(name) && !known.contains(name) && !further.contains(name))
        };
        let unknown: Vec<&str> = unknown().collect();
        if further.len() + unknown.len() > RESOURCE_NAMES_MAX {
            refused.insert(pod);
        } else {
            further.extend(unknown);
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_left_out_first() {
        assert_eq!(beyond(vec![(5, 0), (0, 1), (90, 2), (5, 3)], 100), Vec::<usize>::new());
        assert_eq!(beyond(vec![(50, 0), (0, 1), (90, 2), (5, 3)], 100), [2]);
        assert_eq!(beyond(vec![(usize::MAX, 0), (usize::MAX, 1)], 100), [0, 1]);
    }
}
