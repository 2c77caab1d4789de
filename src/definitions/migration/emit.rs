//! Values as they are written into a text: as blocks, on one line, or as JSON.

use serde_json::Value;

use crate::definitions::fixes;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    pub is_json: bool,
    /// Columns that each level is deeper.
    pub step: usize,
    /// Columns that a list is deeper than its key.
    pub list_step: usize,
}

/// A scalar, or a list or mapping on one line.
pub fn on_one_line(value: &Value, manner: Manner) -> String {
    let inner = |value: &Value| on_one_line(value, manner);
    match value {
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{}: {}", text(name, manner), inner(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(", ")),
        Value::String(written) => text(written, manner),
        other => other.to_string(),
    }
}

/// A text as a scalar, also as a key.
pub fn text(text: &str, manner: Manner) -> String {
    let plain = if manner.is_json { None } else { Some(fixes::in_yaml(text)).filter(|written| written == text) };
    plain.unwrap_or_else(|| Value::from(text).to_string())
}

/// Lines of `key: value`, the first without indentation, the others deeper by what belongs to them.
pub fn entry(key: &str, value: &Value, manner: Manner) -> Vec<String> {
    let key = text(key, manner);
    match value {
        Value::Object(members) if !members.is_empty() => {
            let inner = members.iter().flat_map(|(name, value)| entry(name, value, manner));
            std::iter::once(format!("{key}:")).chain(inner.map(|line| indented(&line, manner.step))).collect()
        }
        Value::Array(items) if items.iter().any(|item| !is_scalar(item)) => {
            let inner = items.iter().flat_map(|value| item(value, manner));
            std::iter::once(format!("{key}:")).chain(inner.map(|line| indented(&line, manner.list_step))).collect()
        }
        _ => vec![format!("{key}: {}", on_one_line(value, manner))],
    }
}

/// Lines of `- value`.
pub fn item(value: &Value, manner: Manner) -> Vec<String> {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let lines = members.iter().flat_map(|(name, value)| entry(name, value, manner)).enumerate();
            lines.map(|(index, line)| if index == 0 { format!("- {line}") } else { indented(&line, 2) }).collect()
        }
        _ => vec![format!("- {}", on_one_line(value, manner))],
    }
}

/// Lines of JSON or a flow collection, the first without indentation; the last ends with the closing bracket.
pub fn on_lines(value: &Value, manner: Manner) -> Vec<String> {
    let (open, inner, close): (_, Vec<Vec<String>>, _) = match value {
        Value::Object(members) if !members.is_empty() => {
            let inner = members.iter().map(|(name, value)| {
                let mut lines = on_lines(value, manner);
                if let Some(first) = lines.first_mut() {
                    *first = format!("{}: {first}", text(name, manner));
                }
                lines
            });
            ("{", inner.collect(), "}")
        }
        Value::Array(items) if items.iter().any(|item| !is_scalar(item)) => {
            ("[", items.iter().map(|item| on_lines(item, manner)).collect(), "]")
        }
        _ => return vec![on_one_line(value, manner)],
    };
    let count = inner.len();
    let mut lines = vec![open.to_owned()];
    for (index, mut of_member) in inner.into_iter().enumerate() {
        if let Some(last) = of_member.last_mut().filter(|_| index + 1 < count) {
            last.push(',');
        }
        lines.extend(of_member.iter().map(|line| indented(line, manner.step)));
    }
    lines.push(close.to_owned());
    lines
}

pub fn indented(line: &str, columns: usize) -> String {
    if line.trim().is_empty() { line.trim().to_owned() } else { format!("{}{line}", " ".repeat(columns)) }
}

/// A line with its end, deeper by so many columns.
pub fn indented_raw(line: &str, columns: usize) -> String {
    if line.trim().is_empty() { line.to_owned() } else { format!("{}{line}", " ".repeat(columns)) }
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const YAML: Manner = Manner { is_json: false, step: 2, list_step: 2 };
    const JSON: Manner = Manner { is_json: true, step: 2, list_step: 2 };

    #[test]
    fn values_are_written_as_people_write_them() {
        let value = json!([{ "tags": { "a/b": "*", "Name": "x y" } }, { "id": "subnet-1" }]);
        assert_eq!(
            entry("terms", &value, YAML).join("\n"),
            "terms:\n  - tags:\n      a/b: \"*\"\n      Name: \"x y\"\n  - id: subnet-1"
        );
        let flat = Manner { list_step: 0, ..YAML };
        assert_eq!(entry("a", &json!([{ "b": 1 }]), flat).join("\n"), "a:\n- b: 1");
        assert_eq!(on_one_line(&json!({ "a": ["m", "2"] }), YAML), "{ a: [m, \"2\"] }");
        assert_eq!(on_one_line(&json!({ "a": ["m", "2"] }), JSON), "{ \"a\": [\"m\", \"2\"] }");
        assert_eq!(on_lines(&json!({ "a": { "b": 1 } }), JSON).join("\n"), "{\n  \"a\": {\n    \"b\": 1\n  }\n}");
    }
}
