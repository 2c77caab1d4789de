//! A real cluster, through its API server.
//!
//! Watches feed one snapshot, which is brought up to date when it is looked at; every write is seen at once, whether or not its
//! event came already. Nothing is decided here.
//!
//! | what | where |
//! |---|---|
//! | approving a plan | `approval.rs` |
//! | which cluster, with which rights | `connection.rs` |
//! | a kind as the API server sends it | `watched.rs` |
//! | what watches say of one kind, until it is looked at | `reflector.rs`, `following.rs` |
//! | what objects of one owner have in common, kept once | `shared_by_owner.rs` |
//! | the port: observation and writes | `cluster.rs`, `writes.rs` |
//! | everything once, without watching | `once.rs` |
//! | what may be asked of the API server, and by whom | `permissions.rs` |
//! | custom resource definitions | `definitions.rs` |
//! | nodes of a cloud without kubelets | `nodes.rs` |
//! | definitions that somebody else applies | `definitions_source.rs` |
//! | who leads, who else acts | `leadership.rs`, `others.rs` |
//! | Events on the objects concerned | `events.rs`, `event_limits.rs` |
//! | what people elsewhere were told | `notified.rs` |
//! | how often it was called, and for how long at most | `calls.rs`, `whole_call.rs` |
//! | errors of the client as errors of a port | `failure.rs` |

mod applied_last;
mod approval;
mod calls;
mod cluster;
mod connection;
mod definitions;
mod definitions_source;
mod event_limits;
mod events;
mod failure;
mod following;
mod kubeconfig;
mod leadership;
mod merge_patch;
pub mod nodes;
mod notified;
mod once;
mod others;
pub mod permissions;
mod reflector;
mod server_time;
mod shared_by_owner;
#[cfg(test)]
mod tests;
mod watched;
mod whole_call;
mod without_election;
mod writes;

pub use applied_last::applied_last;
pub use approval::{Approval, approve, user_name};
pub use calls::Calls;
pub use cluster::KubernetesCluster;
pub use connection::{ConnectError, Connection, connect};
pub use definitions::{install_definitions, missing_definition};
pub use definitions_source::ClusterDefinitions;
pub use events::EventRecorder;
pub use leadership::Leadership;
pub use notified::NotedInCluster;
pub use once::{node_labels, node_plans, read_once};
pub use others::{OtherEnforcer, Own, Renewals, cluster_identity, other_enforcer, other_leader};
pub use server_time::ServerTime;
pub use without_election::{Taken, take as take_lease};
