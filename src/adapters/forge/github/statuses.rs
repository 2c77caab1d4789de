//! Words for states, conclusions and annotations.

use serde_json::{Value, json};

use crate::adapters::forge::dialect::{Annotation, Conclusion, Level, Status, text};
use crate::adapters::forge::issues::{state_of, state_word};

pub(super) fn written(status: &Status) -> Value {
    let mut body =
        json!({ "state": state_word(status.state), "context": status.context, "description": status.description });
    if let (Some(link), Some(body)) = (&status.link, body.as_object_mut()) {
        body.insert("target_url".to_owned(), json!(link));
    }
    body
}

/// Of the combined status of a commit.
pub(super) fn read(answer: &Value) -> Vec<Status> {
    let known = |status: &Value| {
        Some(Status {
            context: text(&status["context"]),
            state: state_of(status["state"].as_str()?),
            description: text(&status["description"]),
            link: status["target_url"].as_str().map(str::to_owned),
        })
    };
    answer["statuses"].as_array().into_iter().flatten().filter_map(known).collect()
}

pub(super) fn conclusion(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Success => "success",
        Conclusion::Neutral => "neutral",
        Conclusion::Failure => "failure",
    }
}

pub(super) fn annotation(annotation: &Annotation) -> Value {
    json!({
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": match annotation.level {
            Level::Notice => "notice",
            Level::Warning => "warning",
            Level::Failure => "failure",
        },
        "message": annotation.text,
    })
}
