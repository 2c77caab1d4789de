//! Changes as JSON merge patches (RFC 7396).

use serde_json::{Map, Value};

/// What makes `after` of `before` as a merge patch: what is not there any more is null in it, since what it leaves out stays.
pub(super) fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return after.clone() };
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let there = after.iter().map(|(key, value)| match before.get(key) {
        Some(before) => (key.clone(), merge_patch(before, value)),
        None => (key.clone(), value.clone()),
    });
    gone.chain(there).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_gone_is_taken_away() {
        let before = json!({ "phase": "WaitsForApproval", "message": "move 1 waits", "resources": { "cpu": "4", "memory": "8Gi" } });
        let after = json!({ "phase": "Applied", "resources": { "cpu": "2" }, "conditions": [1] });
        let expected = json!({
            "phase": "Applied", "message": null, "resources": { "cpu": "2", "memory": null }, "conditions": [1],
        });
        assert_eq!(merge_patch(&before, &after), expected);
        assert_eq!(merge_patch(&Value::Null, &after), after);
        assert_eq!(merge_patch(&before, &Value::Null), Value::Null);
    }
}
