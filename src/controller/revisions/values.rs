//! Values of variables that a revision has no more, and the cluster has.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use crate::core::snapshot::{Objects, Snapshot};
use crate::definitions::{Definition, Definitions};

/// An object that would be written with the names of variables in the place of their values.
#[derive(Debug, PartialEq, Eq)]
pub struct Lost {
    kind: &'static str,
    name: String,
    variables: Vec<String>,
}

/// O(open definitions x objects of their kind).
pub fn lost(definitions: &Definitions, snapshot: &Snapshot) -> Vec<Lost> {
    let of_definition = definitions.open.iter().filter_map(|open| {
        // What the cluster knows of it may have filled it in.
        let (to_write, applied) = versions(open.kind, &open.name, definitions, snapshot)?;
        let variables: Vec<String> = open.lost(&to_write, &applied).into_iter().map(str::to_owned).collect();
        (!variables.is_empty()).then(|| Lost { kind: open.kind, name: open.name.clone(), variables })
    });
    of_definition.collect()
}

/// An object as it is defined, and as it is applied.
fn versions(kind: &str, name: &str, definitions: &Definitions, snapshot: &Snapshot) -> Option<(Value, Value)> {
    match kind {
        "NodePool" => both(&definitions.node_pools, &snapshot.node_pools, |it| &it.metadata, name),
        "EC2NodeClass" => both(&definitions.node_classes, &snapshot.node_classes, |it| &it.metadata, name),
        "NodeOverlay" => both(&definitions.node_overlays, &snapshot.node_overlays, |it| &it.metadata, name),
        _ => None,
    }
}

fn both<T: Serialize>(
    defined: &[Definition<T>],
    applied: &Objects<T>,
    metadata: impl Fn(&T) -> &ObjectMeta,
    name: &str,
) -> Option<(Value, Value)> {
    let is_it = |object: &T| metadata(object).name.as_deref() == Some(name);
    let defined = defined.iter().map(|it| &it.value).find(|it| is_it(it))?;
    let applied = applied.iter().find(|it| is_it(it))?;
    Some((serde_json::to_value(defined).ok()?, serde_json::to_value(applied).ok()?))
}

impl fmt::Display for Lost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, variables } = self;
        write!(out, "{kind} {name} ({})", variables.join(", "))
    }
}
