//! Fields that a cluster sets on an object, and that `kubectl get -o yaml` writes down. They are no part of what the
//! object's author asks for.

use serde_json::Value;

use super::keys;

/// Members of `metadata`. Source: `ObjectMeta` of k8s.io/apimachinery/pkg/apis/meta/v1, what it calls read-only or
/// populated by the system; owners are objects of one cluster, by UID.
const METADATA: [&str; 9] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
    "ownerReferences",
];
const FINALIZERS: [&str; 1] = [keys::TERMINATION_FINALIZER];
const ANNOTATIONS: [&str; 5] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    keys::NODE_POOL_HASH,
    keys::NODE_POOL_HASH_VERSION,
    keys::EC2_NODE_CLASS_HASH,
    keys::EC2_NODE_CLASS_HASH_VERSION,
];

/// JSON pointers of those fields that the object has. A null counts as absent.
pub fn found(object: &Value) -> Vec<String> {
    let is_set = |pointer: &String| object.pointer(pointer).is_some_and(|value| !value.is_null());
    let metadata = METADATA.iter().map(|field| format!("/metadata/{field}"));
    let annotations = ANNOTATIONS.iter().map(|key| format!("/metadata/annotations/{}", key.replace('/', "~1")));
    let own = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten().enumerate();
    let own = own.filter(|(_, name)| name.as_str().is_some_and(|name| FINALIZERS.contains(&name)));
    let finalizers: Vec<String> = own.map(|(index, _)| format!("/metadata/finalizers/{index}")).collect();
    let status = std::iter::once("/status".to_owned());
    metadata.chain(annotations).filter(is_set).chain(finalizers).chain(status.filter(is_set)).collect()
}

/// Whether the metadata may hold such fields.
pub fn may_be_in_metadata(object: &Value) -> bool {
    let metadata = object.get("metadata").and_then(Value::as_object);
    metadata.is_some_and(|it| {
        it.keys().any(|key| ["finalizers", "annotations"].contains(&key.as_str()) || METADATA.contains(&key.as_str()))
    })
}

/// Takes such fields off the metadata of an object. The status stays: some read it, and nobody applies it.
pub fn remove_from_metadata(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for field in METADATA {
        metadata.shift_remove(field);
    }
    if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|name| name.as_str().is_none_or(|name| !FINALIZERS.contains(&name)));
        if finalizers.is_empty() {
            metadata.shift_remove("finalizers");
        }
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        for key in ANNOTATIONS {
            annotations.shift_remove(key);
        }
        if annotations.is_empty() {
            metadata.shift_remove("annotations");
        }
    }
}
