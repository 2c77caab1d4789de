//! Words for states, conclusions and annotations.

use serde_json::{Value, json};

use crate::adapters::forge::dialect::{Annotation, Conclusion, Level, State, Status, text};

pub(super) fn written(status: &Status) -> Value {
    let mut body =
        json!({ "state": state(status.state), "context": status.context, "description": status.description });
    if let (Some(link), Some(body)) = (&status.link, body.as_object_mut()) {
        body.insert("target_url".to_owned(), json!(link));
    }
    body
}

fn state(state: State) -> &'static str {
    match state {
        State::Pending => "pending",
        State::Success => "success",
        State::Failure => "failure",
        State::Error => "error",
    }
}

/// Of the combined status of a commit.
pub(super) fn read(answer: &Value) -> Vec<Status> {
    let known = |status: &Value| {
        Some(Status {
            context: text(&status["context"]),
            state: match status["state"].as_str()? {
                "pending" => State::Pending,
                "success" => State::Success,
                "failure" => State::Failure,
                _ => State::Error,
            },
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
