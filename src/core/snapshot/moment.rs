//! When a snapshot was taken, as far as its objects tell.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::Snapshot;

/// The newest moment that an object of the snapshot mentions: when it was created, or when a condition of a node changed or
/// was confirmed. Kubelets confirm theirs every few minutes. `None` when nothing has a date.
pub fn newest(snapshot: &Snapshot) -> Option<Timestamp> {
    let time = |time: &Option<Time>| time.as_ref().map(|time| time.0);
    let metadata = |metadata: &ObjectMeta| time(&metadata.creation_timestamp);
    let text = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<Timestamp>().ok());
    let conditions = snapshot.nodes.iter().filter_map(|node| node.status.as_ref()?.conditions.as_ref()).flatten();
    let of_nodes =
        conditions.flat_map(|condition| [time(&condition.last_heartbeat_time), time(&condition.last_transition_time)]);
    let of_claims = snapshot.node_claims.iter().flat_map(|claim| {
        [metadata(&claim.metadata), claim.status.as_ref().and_then(|status| text(&status.last_pod_event_time))]
    });
    let of_pods =
        snapshot.pods.iter().flat_map(|pod| [text(&pod.metadata.creation_timestamp), text(&pod.status.start_time)]);
    let created = snapshot.nodes.iter().map(|node| metadata(&node.metadata));
    of_nodes.chain(of_claims).chain(of_pods).chain(created).flatten().max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::PodIndex;
    use crate::testing::pod;

    #[test]
    fn the_newest_date_counts() {
        assert_eq!(newest(&Snapshot::default()), None);
        let mut snapshot = Snapshot { pods: vec![pod("a"), pod("b")].into(), ..Snapshot::default() };
        snapshot.pods[PodIndex::from(0)].metadata.creation_timestamp = Some("2026-11-20T09:00:00Z".to_owned());
        snapshot.pods[PodIndex::from(1)].metadata.creation_timestamp = Some("yesterday".to_owned());
        assert_eq!(newest(&snapshot), "2026-11-20T09:00:00Z".parse().ok());
    }
}
