//! What is sent to Slack is held to a schema of what it takes (`slack/message.json`).

use cutlist::api::notification::{Notification, NotificationDetail, NotificationKind};
use cutlist::render::notification::slack;
use serde_json::Value;

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/post/slack/message.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Texts that names may be, or may be made to be.
const HOSTILE: [&str; 8] = [
    "",
    " \n ",
    "<!channel> <!here> <@U012AB3CD> <#C012AB3CD> @everyone",
    "&lt;!channel&gt;",
    "<https://evil.example|click here> https://evil.example www.evil.example :fire:",
    "a\u{0}b\u{1b}[2J\u{202e}c\r\nd",
    "*bold* _it_ ~no~ `code` ```fence```",
    "\u{1f6d1}\u{1f6d1}",
];

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match value {
                Value::String(text) if name == "text" => vec![text.clone()],
                value => texts(value),
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn every_message_is_as_slack_takes_it() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for kind in NotificationKind::ALL {
        for text in HOSTILE {
            for times in [1, 50, 500] {
                let text = text.repeat(times);
                let notification = Notification {
                    title: text.clone(),
                    text: text.clone(),
                    installation: text.clone(),
                    details: vec![NotificationDetail::new(&text, &text); times.min(20)],
                    ..Notification::example(kind)
                };
                let message: Value = serde_json::from_str(&slack(&notification).text).unwrap();
                let wrong: Vec<String> = validator.iter_errors(&message).map(|it| it.to_string()).take(3).collect();
                assert!(wrong.is_empty(), "{text:.40} {times}: {wrong:?}");
                for text in texts(&message) {
                    let is_whole = |begin: &str| text.contains(begin);
                    assert!(
                        !["<!", "<@", "<#", "<h", "@e", "://", "e:fire", "www.e"].into_iter().any(is_whole),
                        "{text:.80}"
                    );
                    assert!(!text.contains(['\u{0}', '\u{1b}', '\u{202e}', '\r']), "{text:.80}");
                    assert!(text.encode_utf16().count() <= 3_000);
                }
            }
        }
    }
}

#[test]
fn the_schema_refuses_what_slack_refuses() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let good: Value = serde_json::from_str(&slack(&Notification::example(NotificationKind::PlanWaits)).text).unwrap();
    assert!(validator.is_valid(&good));
    let with = |change: &dyn Fn(&mut Value)| {
        let mut message = good.clone();
        change(&mut message);
        validator.is_valid(&message)
    };
    assert!(!with(&|it| it["blocks"][0]["text"]["type"] = "mrkdwn".into()), "a header is plain");
    assert!(!with(&|it| it["blocks"][0]["text"]["text"] = "x".repeat(151).into()));
    assert!(!with(&|it| it["blocks"][1]["text"]["text"] = "".into()));
    assert!(!with(&|it| it["blocks"][1]["text"]["text"] = "x".repeat(3_001).into()));
    assert!(!with(&|it| it["blocks"] = vec![it["blocks"][1].clone(); 51].into()));
    assert!(!with(&|it| it["blocks"][2]["fields"] = vec![it["blocks"][2]["fields"][0].clone(); 11].into()));
}
