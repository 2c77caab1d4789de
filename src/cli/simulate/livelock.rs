//! A simulation in which the controller never comes to rest: something is done again and again, which is a mistake of ours.

use std::collections::BTreeMap;

use anyhow::anyhow;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::core::snapshot::{Pod, Snapshot};

/// For how long looks may follow each other as fast as they may, while no pod and no node comes or goes: some 1,200 of them.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);
/// Looks that are this far apart do not follow each other.
const APART: SignedDuration = SignedDuration::from_secs(5);

/// Objects that an error names.
const NAMES_MAX: usize = 5;

/// Since when nothing came of looks that followed each other as fast as they may.
#[derive(Debug, Default)]
pub struct Livelock {
    since: Timestamp,
    last: Option<Timestamp>,
    /// Nodes, claims of nodes, pods on nodes, pods evicted: each look that gets somewhere changes one of them.
    progress: [usize; 4],
}

impl Livelock {
    /// Takes note of a look that had to wait for the one before; since when there were too many such in vain.
    pub fn see(&mut self, snapshot: &Snapshot, evicted: usize, now: Timestamp) -> Option<Timestamp> {
        let bound = snapshot.pods.iter().filter(|pod| pod.spec.node_name.is_some()).count();
        let progress = [snapshot.nodes.len(), snapshot.node_claims.len(), bound, evicted];
        let follows = self.last.is_some_and(|last| now.duration_since(last) < APART);
        if !follows || progress != self.progress {
            self.since = now;
        }
        self.last = Some(now);
        self.progress = progress;
        (now.duration_since(self.since) > PATIENCE).then_some(self.since)
    }
}

/// What the error says; `before` and `after`: the cluster at two looks.
pub fn error(since: &str, before: &Snapshot, after: &Snapshot) -> anyhow::Error {
    let changed = changed(before, after);
    let what = match (changed.len(), changed.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ")) {
        (0, _) => "no object changes".to_owned(),
        (count, names) if count > NAMES_MAX => format!("{names} and {} more change all the time", count - NAMES_MAX),
        (1, name) => format!("{name} changes all the time"),
        (_, names) => format!("{names} change all the time"),
    };
    anyhow!("the controller does not come to rest: since {since} of virtual time it looks again and again, and {what}")
}

/// Objects that differ, as `Node n1`; of the kinds that a controller changes.
fn changed(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let name = |metadata: &ObjectMeta| metadata.name.clone().unwrap_or_default();
    let pod = |pod: &Pod| pod.key();
    let mut changed = differ("NodePool", before.node_pools.iter(), after.node_pools.iter(), |it| name(&it.metadata));
    changed.extend(differ("NodeClaim", before.node_claims.iter(), after.node_claims.iter(), |it| name(&it.metadata)));
    changed.extend(differ("Node", before.nodes.iter(), after.nodes.iter(), |it| name(&it.metadata)));
    changed.extend(differ("Pod", before.pods.iter(), after.pods.iter(), pod));
    changed.extend(differ("NodePlan", before.node_plans.iter(), after.node_plans.iter(), |it| name(&it.metadata)));
    changed
}

fn differ<'a, T: PartialEq + 'a>(
    kind: &str,
    before: impl Iterator<Item = &'a T>,
    after: impl Iterator<Item = &'a T>,
    name: impl Fn(&T) -> String,
) -> Vec<String> {
    let mut known: BTreeMap<String, &T> = before.map(|object| (name(object), object)).collect();
    let mut names: Vec<String> =
        after.filter(|object| known.remove(&name(object)) != Some(object)).map(&name).collect();
    names.extend(known.into_keys());
    names.sort();
    names.into_iter().map(|name| format!("{kind} {name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BuildNode, node, pod};

    #[test]
    fn only_looks_in_vain_count() {
        let at = |second: usize| Timestamp::from_second(1_795_165_200 + i64::try_from(second).unwrap()).unwrap();
        let nodes = |count: usize| Snapshot { nodes: vec![node("a"); count].into(), ..Snapshot::default() };
        let mut livelock = Livelock::default();
        let mut in_vain = |count, second| livelock.see(&nodes(count), 0, at(second));
        assert!((0..300).all(|second| in_vain(second / 50, second).is_none()), "nodes come");
        assert!((60..120).all(|second| in_vain(1, second * 10).is_none()), "the looks are far apart");
        let found: Vec<_> = (2_000..2_063).filter_map(|second| in_vain(1, second)).collect();
        assert_eq!(found, [at(2_000); 2]);
    }

    #[test]
    fn says_what_changes() {
        let snapshot = |nodes, pods| Snapshot { nodes: Vec::into(nodes), pods: Vec::into(pods), ..Snapshot::default() };
        let before = snapshot(vec![node("a"), node("b")], vec![pod("one")]);
        let after = snapshot(vec![node("a").taint("team", "a", "NoSchedule"), node("b")], vec![pod("two")]);
        let text = error("39s", &before, &after).to_string();
        let what = "Node a, Pod default/one, Pod default/two change all the time";
        assert_eq!(
            text,
            format!(
                "the controller does not come to rest: since 39s of virtual time it looks again and again, and {what}"
            )
        );
        assert!(error("39s", &before, &before).to_string().ends_with("and no object changes"));
    }
}
