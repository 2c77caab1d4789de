//! JSON merge patch (RFC 7386).

use serde_json::Value;

/// Applies `patch` to `target`: objects are merged, `null` removes, everything else replaces.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            fields.shift_remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merges_objects_removes_nulls_and_replaces_lists() {
        let mut node = json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"taints": [{"key": "x"}]}});
        merge(&mut node, &json!({"metadata": {"labels": {"a": null, "c": "3"}}, "spec": {"taints": []}}));
        assert_eq!(node, json!({"metadata": {"labels": {"b": "2", "c": "3"}}, "spec": {"taints": []}}));
    }
}
