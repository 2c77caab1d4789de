//! Fields of definitions and rules of lint, for who reads them in an editor: Markdown.

use crate::definitions::RuleDescription;
use crate::definitions::editing::fields::Field;

/// A field: its path and type, what it is, and what may be written.
pub fn field(field: &Field) -> String {
    let mut head = format!("`{}`", field.path);
    if !field.type_name.is_empty() {
        head.push_str(&format!(" {}", field.type_name));
    }
    if field.is_required {
        head.push_str(", required");
    }
    let mut parts = vec![head];
    parts.extend(field.description.map(str::to_owned));
    let mut lines = Vec::new();
    let values: Vec<String> = field.values.iter().map(|value| format!("`{}`", shown(value))).collect();
    if !values.is_empty() {
        lines.push(format!("- one of {}", values.join(", ")));
    }
    if let Some(default) = field.default {
        lines.push(format!("- default `{}`", shown(default)));
    }
    lines.extend(field.bounds.iter().map(|bound| format!("- {bound}")));
    lines.extend(field.rules.iter().map(|rule| format!("- {rule}")));
    if !lines.is_empty() {
        parts.push(lines.join("\n"));
    }
    parts.join("\n\n") + "\n"
}

/// The value as JSON, but a text without its quotes.
fn shown(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A rule of lint, with its examples.
pub fn rule(rule: &RuleDescription) -> String {
    format!("**{} {}** ({})\n\n{}", rule.code, rule.name, rule.severity.word(), rule.page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_says_all_that_its_schema_does() {
        let (default, value) = (serde_json::json!("a"), serde_json::json!("b"));
        let leaked: &'static serde_json::Value = Box::leak(Box::new(default));
        let field = Field {
            path: "spec.a".to_owned(),
            type_name: "string".to_owned(),
            description: Some("What it is."),
            is_required: true,
            default: Some(leaked),
            values: vec![leaked, Box::leak(Box::new(value))],
            bounds: vec!["at least 1".to_owned()],
            rules: vec!["must be so"],
        };
        let expected = "`spec.a` string, required\n\nWhat it is.\n\n- one of `a`, `b`\n- default `a`\n- at least 1\n- must be so\n";
        assert_eq!(super::field(&field), expected);
    }
}
