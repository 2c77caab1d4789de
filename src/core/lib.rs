//! DECIDE. Pure: no I/O, no clock, no randomness but the seed, no Kubernetes or AWS client.
//!
//! Objects are read, and nodes are filled, on all processors, by rayon's maps alone: a map keeps the order of its items, so the same
//! input gives the same bytes.
//!
//! The rooms in their order; each uses those above it and no other (`tests/rings.rs`).
//!
//! | room | what is there |
//! |---|---|
//! | `model` | quantities, resources, requirements, money, hashes of definitions |
//! | `catalog` | what EC2 sells: instance types, offerings, prices |
//! | `snapshot` | the cluster as a value |
//! | `plan` | the plan as it is published: data alone |
//! | `preview` | two plans side by side: what a change causes, and what would be so anyway |
//! | `inputs` | all that a plan is made of |
//! | `prepare` | defaults that count for pods although they do not say them; pods of CapacityBuffers; prices of preview types |
//! | `lifecycle` | the life of one NodeClaim, and what ends it |
//! | `devices` | which devices a pod gets of those a node has |
//! | `kube_scheduler` | kube-scheduler's filters, one pod and one node at a time: for the judge and for the embedded cluster |
//! | `offer` | which offerings a NodePool may buy, at what price |
//! | `scheduler` | the compiled problem, and the engine that places pods and takes them back |
//! | `programs` | linear programs of bins and items, without a word of Kubernetes |
//! | `provision` | where pending pods go, and what is bought for them |
//! | `disrupt` | which nodes may go, and which should |
//! | `planner` | the plan made of all that; start at [`planner::decide()`] |
//! | `why` | why one pod or one node is where it is |
//! | `check` | the judge: it knows the inputs and the plan, and nothing of how the plan was made |

pub mod catalog;
pub mod check;
pub mod devices;
pub mod disrupt;
pub mod inputs;
pub mod kube_scheduler;
pub mod lifecycle;
pub mod model;
pub mod offer;
pub mod plan;
pub mod planner;
pub mod prepare;
pub mod preview;
pub mod programs;
pub mod provision;
pub mod scheduler;
pub mod snapshot;
pub mod why;

#[cfg(test)]
extern crate self as cutlist_core;
#[cfg(test)]
mod testing;
