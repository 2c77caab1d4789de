//! What counts of a pod although the pod does not say it: defaults that somebody else sets.
//!
//! [`complete`] writes them into the pods before planning, so that the planner has one place to look at: the pod. Pods that
//! are not made yet, such as those of DaemonSets on new nodes, get theirs when their template is read.

pub mod buffers;
pub mod classes_of_catalog;
pub mod classes_of_cluster;
pub mod limit_range;
pub mod lost_nodes;
pub mod preview_prices;
pub mod priority;
pub mod runtime_class;
pub mod topology_spread;

use std::borrow::Cow;

use crate::inputs::Inputs;
use crate::snapshot::Snapshot;

/// The snapshot with every default written out, and with the pods of CapacityBuffers; the same one where there is nothing to write. O(pods) when there is.
pub fn complete<'a>(inputs: &Inputs<'a>) -> Cow<'a, Snapshot> {
    let constraints = &inputs.policy.scheduling.default_topology_spread_constraints;
    let lacks_priorities = priority::is_missing(inputs.snapshot);
    let buffers = buffers::pods(inputs);
    if constraints.is_empty() && !lacks_priorities && buffers.is_empty() {
        return Cow::Borrowed(inputs.snapshot);
    }
    let mut completed = inputs.snapshot.clone();
    if lacks_priorities {
        priority::apply(&mut completed);
    }
    completed.pods.extend(buffers);
    if !constraints.is_empty() {
        topology_spread::apply(&mut completed, constraints);
    }
    Cow::Owned(completed)
}
