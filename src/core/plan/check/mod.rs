//! The independent judge of placements and plans.
//!
//! Written straight from the objects of the Kubernetes API and from kube-scheduler's documented behaviour, one pod and
//! one node at a time, with nothing shared with the planner: a mistake made there is not made again here. Slow on purpose
//! where slow is simpler; tests, `cutlist plan` and the applier can afford it.
//!
//! `filters` answers "may this pod run on this node, and if not why".

pub mod filters;

pub use filters::{Filter, FilterContext, Refusal, refusal};
