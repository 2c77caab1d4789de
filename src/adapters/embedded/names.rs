//! What objects are called, and how moments are written on them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub(super) fn name_of(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}

/// `namespace/name`
pub(super) fn key_of(metadata: &ObjectMeta) -> String {
    format!("{}/{}", metadata.namespace.as_deref().unwrap_or("default"), metadata.name.as_deref().unwrap_or_default())
}

/// RFC 3339, whole seconds, as Kubernetes writes times.
pub(super) fn written(moment: Timestamp) -> String {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment).to_string()
}
