//! The fields of what is said of revisions and definitions.

use serde_json::{Value, json};

use super::Event;

impl Event {
    pub(super) fn revision_fields(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::RevisionFound { revision, title, rewritten, notes } => vec![
                ("revision", json!(revision)),
                ("title", json!(title)),
                ("rewritten", json!(rewritten)),
                ("notes", json!(notes)),
            ],
            Self::Linted { files, documents, diagnostics, .. } => {
                vec![("files", json!(files)), ("documents", json!(documents)), ("findings", json!(diagnostics))]
            }
            Self::RevisionRefused { revision, in_force } | Self::OlderRevisionHeld { revision, in_force } => {
                vec![("revision", json!(revision)), ("in-force", json!(in_force))]
            }
            Self::OfAnotherCluster { revision, in_force, because } => {
                vec![("revision", json!(revision)), ("in-force", json!(in_force)), ("because", json!(because))]
            }
            Self::RevisionUnsigned { revision, in_force, unsigned, further, node_pools: _ } => {
                let because: Vec<String> = unsigned.iter().map(ToString::to_string).collect();
                vec![
                    ("revision", json!(revision)),
                    ("in-force", json!(in_force)),
                    ("because", json!(because)),
                    ("further", json!(further)),
                ]
            }
            Self::RemovalHeld { revision, in_force, node_pools } => {
                vec![("revision", json!(revision)), ("in-force", json!(in_force)), ("NodePools", json!(node_pools))]
            }
            Self::RepositoryUnreachable { error } => vec![("error", json!(error))],
            Self::DefinitionApplied { kind, name, .. } | Self::DefinitionPruned { kind, name } => {
                vec![("kind", json!(kind)), ("name", json!(name))]
            }
            Self::PruneWaits { kind, name, nodes } => {
                vec![("kind", json!(kind)), ("name", json!(name)), ("nodes", json!(nodes))]
            }
            _ => Vec::new(),
        }
    }
}
