//! The resource kinds as Rust types: Karpenter's (`karpenter.sh/v1`, `karpenter.k8s.aws/v1`) and our own
//! (`cutlist.dev/v1alpha1`). Field names, defaults and validation are those of the reference, Karpenter 1.14.
//!
//! This ring is plain data. It knows no other ring.

pub mod approval_rules;
pub mod capacity_buffer;
pub mod cloud_facts;
pub mod cluster_fields;
pub mod definitions;
pub mod disruption_budget;
pub mod duration;
pub mod ec2_node_class;
pub mod event_reason;
pub mod image_lock;
pub mod kustomization;
pub mod lint_settings;
pub mod node_claim;
pub mod node_overlay;
pub mod node_plan;
pub mod node_pool;
pub mod notification;
pub mod preview;
pub mod scenario;
pub mod settings;
pub mod signing_policy;
pub mod source;
pub mod validation;

/// Label, annotation and taint keys that more than one room needs.
pub mod keys;
