//! The message of a Slack incoming webhook, in Block Kit.
//! Source: docs.slack.dev, "Sending messages using incoming webhooks", "Blocks", "Formatting message text".

use serde_json::{Value, json};

use super::{Body, JSON};
use crate::api::notification::{Notification, NotificationKind};
use crate::render::terminal::clean;

/// The most characters that Slack takes in a header.
const HEADER_MAX: usize = 150;
/// The most characters that Slack takes in a text object.
const TEXT_MAX: usize = 3_000;
/// The most characters that Slack takes in a field of a section, and the most fields.
const FIELD_MAX: usize = 2_000;
const FIELDS_MAX: usize = 10;
/// Nobody reads longer values in a column.
const VALUE_MAX: usize = 200;

/// The message. Its texts are `plain_text` wherever Slack takes that, since no part of a name is a mention, a link or a
/// mark there.
pub fn slack(notification: &Notification) -> Body {
    let Notification { kind, title, text, details, installation, at, .. } = notification;
    let mut blocks = vec![
        json!({ "type": "header", "text": plain(&format!("{} {title}", sign(*kind)), HEADER_MAX) }),
        json!({ "type": "section", "text": plain(text, TEXT_MAX) }),
    ];
    let fields: Vec<Value> = details
        .iter()
        .take(FIELDS_MAX)
        .map(|detail| plain(&format!("{}\n{}", detail.name, cut(&detail.value, VALUE_MAX)), FIELD_MAX))
        .collect();
    if !fields.is_empty() {
        blocks.push(json!({ "type": "section", "fields": fields }));
    }
    let from = format!("Cutlist, installation {installation}, {at}");
    blocks.push(json!({ "type": "context", "elements": [plain(&from, TEXT_MAX)] }));
    let message = json!({
        // Notifications of desktops and telephones show this text.
        "text": escaped(&cut(&neutral(&format!("{title}: {text}")), TEXT_MAX / 2)),
        "mrkdwn": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    });
    Body { content_type: JSON, text: message.to_string() }
}

fn sign(kind: NotificationKind) -> char {
    match kind {
        NotificationKind::PlanWaits => '\u{23f3}',
        NotificationKind::RolloutHalted | NotificationKind::PlanFailed => '\u{1f6d1}',
        NotificationKind::BudgetReached => '\u{1f4b0}',
        NotificationKind::PlanApplied => '\u{2705}',
    }
}

fn plain(text: &str, most: usize) -> Value {
    let text = cut(&neutral(text), most);
    // Slack refuses a message with an empty text.
    let text = if text.trim().is_empty() { "-".to_owned() } else { text };
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

/// The text with a space without width behind each sign that begins a mention, a link, an entity or an emoji, so that
/// it is none.
fn neutral(text: &str) -> String {
    let mut neutral = String::new();
    for line in text.split('\n') {
        if !neutral.is_empty() {
            neutral.push('\n');
        }
        let mut before = ' ';
        for character in clean(line).chars() {
            neutral.push(character);
            // `a: b` and `10:30` stay as they are.
            let begins = matches!(character, '@' | '#' | '<' | '&' | '!')
                || (character == ':' && before.is_ascii_alphanumeric() && !before.is_ascii_digit());
            if begins {
                neutral.push('\u{200b}');
            }
            before = character;
        }
    }
    neutral.replace("www.", "www\u{200b}.")
}

/// The three characters that Slack reads as its own in texts that are no `plain_text`.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The beginning of the text, at most so many units as JavaScript counts them. Of those there are never fewer than
/// characters.
fn cut(text: &str, most: usize) -> String {
    if text.encode_utf16().count() <= most {
        return text.to_owned();
    }
    let mut units = 0;
    let fits = |character: &char| {
        units += character.len_utf16();
        units < most
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('\u{2026}');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::notification::NotificationDetail;

    #[test]
    fn nothing_in_a_name_is_anything_but_text() {
        assert_eq!(neutral("<!channel> @here #a"), "<\u{200b}!\u{200b}channel> @\u{200b}here #\u{200b}a");
        assert_eq!(neutral("https://a.example at 10:30"), "https:\u{200b}//a.example at 10:30");
        assert_eq!(neutral("a\u{1b}[2Jb\rc\u{202e}"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}");
        assert_eq!(escaped("<a> & b"), "&lt;a&gt; &amp; b");
    }

    #[test]
    fn texts_end_where_slack_ends_them() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab\u{2026}");
        // Two units each.
        assert_eq!(cut(&"\u{1f6d1}".repeat(3), 5), "\u{1f6d1}\u{1f6d1}\u{2026}");
        let long = NotificationDetail::new("Revision", "x".repeat(9_000));
        let notification = Notification {
            title: "@".repeat(4_000),
            text: "&".repeat(9_000),
            details: vec![long; 20],
            ..Notification::example(NotificationKind::PlanWaits)
        };
        let message: Value = serde_json::from_str(&slack(&notification).text).unwrap();
        assert_eq!(message["blocks"][2]["fields"].as_array().unwrap().len(), FIELDS_MAX);
        let units = |value: &Value| value.as_str().unwrap().encode_utf16().count();
        assert!(units(&message["blocks"][0]["text"]["text"]) <= HEADER_MAX);
        assert!(units(&message["blocks"][1]["text"]["text"]) <= TEXT_MAX);
    }

    #[test]
    fn an_empty_text_is_none() {
        assert_eq!(plain(" ", 10)["text"], "-");
    }
}
