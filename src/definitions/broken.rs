//! Objects that can not be used: an error was found in them, or others have their names. They are in the files all the same, and have not
//! gone.

use k8s_openapi::api::core::v1::PodTemplate;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::document::Document;
use super::kinds::Kind;
use super::places;
use crate::api::capacity_buffer::CapacityBuffer;
use crate::api::cluster_fields;
use crate::api::disruption_budget::DisruptionBudget;
use crate::api::ec2_node_class::EC2NodeClass;
use crate::api::node_overlay::NodeOverlay;
use crate::api::node_pool::NodePool;

/// An object that can not be used, as far as it can be told which one it is.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenDefinition {
    pub kind: &'static str,
    /// `name`, or `namespace/name`.
    pub name: String,
    /// The object in the form of its kind. An object without that form stands as it is written.
    pub value: Value,
    /// Whether the object has the form of its kind.
    pub has_form: bool,
    pub file: String,
    /// The line of the object, from 1.
    pub line: usize,
}

impl BrokenDefinition {
    /// Gives `None` for a document that is no object, or has no name.
    pub(super) fn of(kind: Kind, document: &Document, paths: &[&str]) -> Option<Self> {
        if !kind.is_object() {
            return None;
        }
        let written = without_fields_of_cluster(document);
        let form = in_form(kind, &written);
        let own = places::of(document, "", paths);
        Some(Self {
            kind: kind.name(),
            name: name_of(kind.name(), &written)?,
            has_form: form.is_some(),
            value: form.unwrap_or(written),
            file: own.file,
            line: own.line,
        })
    }
}

/// Whether objects of the kind live in namespaces. What lives in none may name one all the same, and nobody looks at it.
pub(super) fn is_namespaced(kind: &str) -> bool {
    Kind::ALL.into_iter().find(|it| it.name() == kind).is_none_or(Kind::is_namespaced)
}

/// `name`, or `namespace/name`.
pub(super) fn name_of(kind: &str, object: &Value) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name")?;
    let namespace = text("/metadata/namespace").filter(|_| is_namespaced(kind));
    Some(namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}")))
}

fn without_fields_of_cluster(document: &Document) -> Value {
    let mut value = document.value.clone().into_value();
    if cluster_fields::may_be_in_metadata(&value) {
        cluster_fields::remove_from_metadata(&mut value);
    }
    value
}

/// The object as it would be among the definitions, so that it can be held against one that is there.
fn in_form(kind: Kind, written: &Value) -> Option<Value> {
    match kind {
        Kind::NodePool => form::<NodePool>(written),
        Kind::EC2NodeClass => form::<EC2NodeClass>(written),
        Kind::NodeOverlay => form::<NodeOverlay>(written),
        Kind::CapacityBuffer => form::<CapacityBuffer>(written),
        Kind::PodTemplate => form::<PodTemplate>(written),
        Kind::DisruptionBudget => form::<DisruptionBudget>(written),
        Kind::Settings | Kind::Scenario | Kind::ImageLock => None,
    }
}

fn form<T: DeserializeOwned + Serialize>(written: &Value) -> Option<Value> {
    serde_json::to_value(T::deserialize(written).ok()?).ok()
}
