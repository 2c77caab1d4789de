//! Fields in which two forms of a definition differ, as people name them.

use serde_json::Value;

/// Longer values are cut.
const VALUE_CHARACTERS_MAX: usize = 80;

/// Fields that may hold secrets: that they differ is said, and not in what.
const SECRET: [&str; 1] = ["userData"];

/// Annotations of this prefix that the apply of others leaves behind say the whole object again.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// `spec.limits.cpu`; members of a list by their place: `spec.disruption.budgets[0].nodes`.
    pub path: String,
    /// `None` where it was not there, or is not shown.
    pub before: Option<String>,
    pub after: Option<String>,
    /// Whether both values are kept back, since they may hold secrets.
    pub is_secret: bool,
}

/// The fields in the order of the head's form, those that are gone last.
pub fn differing(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare(Some(before), Some(after), "", &mut found);
    found
}

fn compare(before: Option<&Value>, after: Option<&Value>, path: &str, found: &mut Vec<FieldChange>) {
    if before == after {
        return;
    }
    let name = path.rsplit('.').next().unwrap_or(path);
    if SECRET.contains(&name) || path.ends_with(LAST_APPLIED) {
        found.push(FieldChange { path: path.to_owned(), before: None, after: None, is_secret: true });
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let gone = before.keys().filter(|key| !after.contains_key(*key));
            for key in after.keys().chain(gone) {
                compare(before.get(key), after.get(key), &below(path, key), found);
            }
        }
        // What came as a whole is said field by field, as far as it has any.
        (None, Some(Value::Object(fields))) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| compare(None, Some(value), &below(path, key), found));
        }
        (Some(Value::Object(fields)), None) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| compare(Some(value), None, &below(path, key), found));
        }
        (Some(Value::Array(before)), Some(Value::Array(after)))
            if before.len() == after.len() && before.iter().chain(after).all(Value::is_object) =>
        {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                compare(Some(before), Some(after), &format!("{path}[{index}]"), found);
            }
        }
        _ => found.push(FieldChange {
            path: path.to_owned(),
            before: before.map(shown),
            after: after.map(shown),
            is_secret: false,
        }),
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => without_secrets(other).to_string(),
    };
    match text.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn without_secrets(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !SECRET.contains(&key.as_str()) && key.as_str() != LAST_APPLIED);
            Value::Object(kept.map(|(key, value)| (key.clone(), without_secrets(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_secrets).collect()),
        other => other.clone(),
    }
}
