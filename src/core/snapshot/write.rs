//! Snapshot to text: plain Kubernetes objects, trimmed and redacted.

use serde_json::Value;

use super::kinds::KINDS;
use super::objects::Snapshot;

/// One `List` of plain Kubernetes objects as JSON, each on a line of its own, in the order kind, namespace, name. Secrets,
/// environment values, commands, user data and all annotations but those that matter are left out. Reading it back gives the
/// same snapshot as reading the objects themselves.
///
/// The error is that of a value that JSON can not express; no object that was read has one.
pub fn write(snapshot: &Snapshot) -> Result<String, serde_json::Error> {
    let mut text = String::from(
        "{\n\"apiVersion\": \"v1\",\n\"kind\": \"List\",\n\"metadata\": {\"resourceVersion\": \"\"},\n\"items\": [",
    );
    let mut separator = "\n";
    let mut hand_over = |object: &Value| {
        text.push_str(separator);
        text.push_str(&serde_json::to_string(object)?);
        separator = ",\n";
        Ok(())
    };
    for kind in KINDS {
        (kind.write)(snapshot, &mut hand_over)?;
    }
    text.push_str("\n]\n}\n");
    Ok(text)
}
