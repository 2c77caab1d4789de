//! Nodes or NodeClaims that are of one instance by what they say: their pools are in doubt until one of them is gone.

use std::sync::Arc;

use crate::core::snapshot::Snapshot;
use crate::core::snapshot::doubled::doubled;

/// Notes them among the doubts of the snapshot.
pub fn doubt(snapshot: &mut Arc<Snapshot>) {
    let doubled = doubled(snapshot);
    if snapshot.doubts.doubled != doubled {
        Arc::make_mut(snapshot).doubts.doubled = doubled;
    }
}
