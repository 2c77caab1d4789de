//! What the last plan was made from: while nothing of it changed, another plan would say the same.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::controller::claims::Claims;
use crate::core::inputs::RefusedOffering;
use crate::core::snapshot::Snapshot;

/// Time alone opens a budget's window, ends a pod's protection or expires a node: in most clusters that is seen this late at most.
const AGE_MAX: SignedDuration = SignedDuration::from_secs(60);
/// With each so many pods more it is seen so much later: a plan takes longer there, and one each minute would take some percent of a
/// processor where nothing happens.
const PODS_FOR_EACH_AGE: usize = 30_000;

/// Empty before the first plan, and after anything else than the cluster changed.
#[derive(Debug, Default)]
pub struct InputsSeen {
    seen: Option<(Arc<Snapshot>, Vec<RefusedOffering>, Timestamp)>,
    /// Whether nothing was under way, and only a change from outside would have changed the plan.
    pub settled: bool,
}

impl InputsSeen {
    pub fn new(snapshot: &Arc<Snapshot>, claims: &Claims, settled: bool, now: Timestamp) -> Self {
        Self { seen: Some((snapshot.clone(), claims.refused().to_vec(), now)), settled }
    }

    /// Whether the cluster is as it was, which costs a comparison of pointers for each object that is.
    pub fn is_same(&self, snapshot: &Arc<Snapshot>, claims: &Claims, now: Timestamp) -> bool {
        self.seen.as_ref().is_some_and(|(seen, refused, at)| {
            now.duration_since(*at) < age_max(seen.pods.len())
                && now >= *at
                && refused == claims.refused()
                && (Arc::ptr_eq(seen, snapshot) || seen == snapshot)
        })
    }
}

fn age_max(pods: usize) -> SignedDuration {
    AGE_MAX.saturating_mul(i32::try_from(pods.div_ceil(PODS_FOR_EACH_AGE).max(1)).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_clusters_at_rest_are_planned_less_often() {
        for (pods, minutes) in [(0, 1), (30_000, 1), (30_001, 2), (150_000, 5)] {
            assert_eq!(age_max(pods), SignedDuration::from_mins(minutes), "{pods} pods");
        }
    }
}
