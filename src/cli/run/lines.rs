//! A log line for people: time, message, `key=value` fields, wrapped and aligned.

use serde_json::Value;

use crate::controller::events::{Event, Level};
use crate::render::terminal::{COLUMNS, Style, Tone, clean, left, width};

const TIME_COLUMNS: usize = 9;
/// Wide enough for most of Karpenter's messages; a longer one pushes its fields to the right.
const MESSAGE_COLUMNS: usize = 27;

/// The event as one line, or more where its fields do not fit; with a line feed at the end.
pub fn line(time: &str, event: &Event, style: Style) -> String {
    let tone = match event.level() {
        Level::Debug | Level::Info => Tone::Plain,
        Level::Warn => Tone::Replaced,
        Level::Error => Tone::Removed,
    };
    let message = left(event.message(), MESSAGE_COLUMNS);
    let mut text = format!("{}{}", style.paint(Tone::Dim, &left(time, TIME_COLUMNS)), style.paint(tone, &message));
    let mut column = TIME_COLUMNS + width(&message);
    let indent = TIME_COLUMNS + MESSAGE_COLUMNS;
    for (key, value) in event.fields() {
        let value = clean(&plain(&value));
        if value.is_empty() || value == "null" {
            continue;
        }
        let words = format!("{key}={value}");
        for (position, word) in words.split(' ').enumerate() {
            if column + 1 + width(word) > COLUMNS && column > indent {
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                column = indent;
            }
            text.push(' ');
            text.push_str(&painted(word, position == 0, style));
            column += 1 + width(word);
        }
    }
    let text: Vec<&str> = text.lines().map(str::trim_end).collect();
    text.join("\n") + "\n"
}

/// The key dimmed, so that the eye finds the value.
fn painted(word: &str, is_first: bool, style: Style) -> String {
    match word.split_once('=').filter(|_| is_first) {
        Some((key, value)) => format!("{}{value}", style.paint(Tone::Dim, &format!("{key}="))),
        None => word.to_owned(),
    }
}

/// A value without the quotes and braces that only machines need.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => match fields.get("name").filter(|_| fields.len() == 1) {
            Some(name) => plain(name),
            None => {
                let fields: Vec<_> = fields.iter().map(|(key, value)| format!("{key} {}", plain(value))).collect();
                format!("{{{}}}", fields.join(", "))
            }
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_messages_stay_on_their_line() {
        let title = "a\u{1b}]0;b\u{7}\n::error::c".to_owned();
        let event = Event::DefinitionPruned { kind: "NodePool", name: title };
        let text = line("+00:03", &event, Style::Plain);
        assert!(text.ends_with("name=a\u{fffd}]0;b\u{fffd}\u{fffd}::error::c\n"), "{text:?}");
    }

    #[test]
    fn fields_wrap_under_each_other_and_stay_within_the_page() {
        let event = Event::LaunchedNodeClaim {
            node_claim: "default-7k2mp".to_owned(),
            provider_id: "aws:///ap-northeast-2b/i-0123456789abcdef0".to_owned(),
            instance_type: "c7a.2xlarge".to_owned(),
            zone: "ap-northeast-2b".to_owned(),
            capacity_type: "on-demand".to_owned(),
            allocatable: [("cpu".to_owned(), 7910), ("pods".to_owned(), 58)].into_iter().collect(),
        };
        let text = line("+00:03", &event, Style::Plain);
        let expected = "\
+00:03   launched nodeclaim          NodeClaim=default-7k2mp
                                     provider-id=aws:///ap-northeast-2b/i-0123456789abcdef0
                                     instance-type=c7a.2xlarge zone=ap-northeast-2b
                                     capacity-type=on-demand allocatable={cpu 7910m, pods 58}
";
        assert_eq!(text, expected);
    }
}
