//! An object as a text of which each line is one value, so that the line of a finding says what it is about.

use std::fmt::Write as _;

use serde_json::Value;

pub struct Written {
    /// JSON, which is YAML.
    pub text: String,
    /// Of each line, as the API server writes fields.
    paths: Vec<String>,
}

impl Written {
    pub fn of(value: &Value) -> Self {
        let mut written = Self { text: String::new(), paths: Vec::new() };
        written.value("", value, "", "", 0);
        written
    }

    /// What stands on this line, from 1.
    pub fn path(&self, line: usize) -> &str {
        self.paths.get(line.saturating_sub(1)).map_or("", String::as_str)
    }

    fn line(&mut self, depth: usize, text: &str, path: &str) {
        writeln!(self.text, "{:1$}{text}", "", depth * 2).unwrap();
        self.paths.push(path.to_owned());
    }

    fn value(&mut self, key: &str, value: &Value, path: &str, end: &str, depth: usize) {
        let comma = |index: usize, all: usize| if index + 1 < all { "," } else { "" };
        match value {
            Value::Object(members) if !members.is_empty() => {
                self.line(depth, &format!("{key}{{"), path);
                for (index, (name, member)) in members.iter().enumerate() {
                    let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    let key = format!("{}: ", Value::String(name.clone()));
                    self.value(&key, member, &inner, comma(index, members.len()), depth + 1);
                }
                self.line(depth, &format!("}}{end}"), path);
            }
            Value::Array(items) if !items.is_empty() => {
                self.line(depth, &format!("{key}["), path);
                for (index, item) in items.iter().enumerate() {
                    self.value("", item, &format!("{path}[{index}]"), comma(index, items.len()), depth + 1);
                }
                self.line(depth, &format!("]{end}"), path);
            }
            scalar => self.line(depth, &format!("{key}{scalar}{end}"), path),
        }
    }
}
