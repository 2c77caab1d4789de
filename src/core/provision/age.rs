//! The order in which pods are served that are otherwise alike: the oldest first, then by UID, then by name.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::model::IndexVec;
use crate::snapshot::{Objects, Pod, PodIndex};

/// By position in the snapshot: of two pods the one of the lesser rank is served first.
#[derive(Debug, Default)]
pub struct Ages {
    ranks: IndexVec<PodIndex, usize>,
}

impl Ages {
    /// Puts pods in this order; of the others nothing is known afterwards. O(pods x log pods), most of it on numbers: moments are
    /// few, and UIDs differ soon after what all of them have in common.
    pub fn sort(pods: &Objects<Pod>, positions: &mut [PodIndex]) -> Self {
        let moments = moments(pods, positions);
        let shared = shared_start(positions.iter().map(|position| pods[*position].metadata.uid.as_bytes()));
        let key = |position: &PodIndex| {
            let metadata = &pods[*position].metadata;
            let moment = moments.get(&metadata.creation_timestamp.as_deref()).copied();
            (moment, start(&metadata.uid.as_bytes()[shared..]), *position)
        };
        let mut keys: Vec<_> = positions.iter().map(key).collect();
        let order = |one: &(_, u128, PodIndex), two: &(_, u128, PodIndex)| {
            (one.0, one.1).cmp(&(two.0, two.1)).then_with(|| compare(&pods[one.2], &pods[two.2]))
        };
        keys.sort_by(order);
        let mut ranks = IndexVec::repeat(0, pods.len());
        for two in keys.windows(2) {
            ranks[two[1].2] = ranks[two[0].2] + usize::from(order(&two[0], &two[1]).is_lt());
        }
        positions.iter_mut().zip(&keys).for_each(|(position, key)| *position = key.2);
        Self { ranks }
    }

    pub fn rank(&self, position: PodIndex) -> usize {
        self.ranks[position]
    }
}

fn compare(one: &Pod, two: &Pod) -> Ordering {
    fn key(pod: &Pod) -> impl Iterator<Item = u8> {
        let parts = [pod.metadata.namespace.as_str(), "/", pod.metadata.name.as_str()];
        parts.into_iter().flat_map(str::bytes)
    }
    let by_time = one.metadata.creation_timestamp.cmp(&two.metadata.creation_timestamp);
    by_time.then_with(|| one.metadata.uid.cmp(&two.metadata.uid)).then_with(|| key(one).cmp(key(two)))
}

/// Creation times, numbered in their order.
fn moments<'p>(pods: &'p Objects<Pod>, positions: &[PodIndex]) -> BTreeMap<Option<&'p str>, usize> {
    let mut moments: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for position in positions {
        moments.entry(pods[*position].metadata.creation_timestamp.as_deref()).or_default();
    }
    moments.values_mut().enumerate().for_each(|(number, moment)| *moment = number);
    moments
}

/// How many bytes all texts begin with alike.
fn shared_start<'t>(mut texts: impl Iterator<Item = &'t [u8]>) -> usize {
    let first = texts.next().unwrap_or_default();
    texts.fold(first.len(), |shared, text| first[..shared].iter().zip(text).take_while(|(one, two)| one == two).count())
}

/// The first bytes as a number that is less where they come before others.
fn start(text: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = text.len().min(bytes.len());
    bytes[..length].copy_from_slice(&text[..length]);
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(created: Option<&str>, uid: &str, name: &str) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.creation_timestamp = created.map(str::to_owned);
        pod.metadata.uid = uid.to_owned();
        (pod.metadata.namespace, pod.metadata.name) =
            name.split_once('/').map(|(space, name)| (space.to_owned(), name.to_owned())).unwrap();
        pod
    }

    #[test]
    fn moments_count_before_uids_and_uids_before_names() {
        let long = "pod-0123456789012345";
        let pods = Objects::from(vec![
            pod(Some("2026-01-02T00:00:00Z"), "pod-1", "a/a"),
            pod(Some("2026-01-01T00:00:00Z"), "pod-2", "a/a"),
            pod(Some("2026-01-01T00:00:00Z"), &format!("{long}2"), "a/a"),
            pod(Some("2026-01-01T00:00:00Z"), &format!("{long}1"), "a/a"),
            pod(Some("2026-01-01T00:00:00Z"), "pod-", "a/a"),
            pod(Some("2026-01-01T00:00:00Z"), "pod-", "a-b/a"),
            pod(Some("2026-01-01T00:00:00Z"), "pod-", "a/a"),
            pod(None, "pod-9", "z/z"),
        ]);
        let mut positions: Vec<PodIndex> = pods.enumerated().map(|(position, _)| position).collect();
        let ages = Ages::sort(&pods, &mut positions);
        assert_eq!(positions, [7, 5, 4, 6, 3, 2, 1, 0].map(PodIndex::from));
        assert_eq!(positions.iter().map(|position| ages.rank(*position)).collect::<Vec<_>>(), [0, 1, 2, 2, 3, 4, 5, 6]);
    }
}
