//! Notifications as receivers take them: JSON, a template's text, Slack's blocks.

mod slack;
mod template;

use crate::api::notification::Notification;

pub use slack::slack;
pub use template::{Template, TemplateError};

/// The body of a message, and its content type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub content_type: &'static str,
    pub text: String,
}

pub const JSON: &str = "application/json";
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// The notification itself as JSON. Its schema is `schemas/notification.json`.
pub fn json(notification: &Notification) -> Body {
    // A notification is plain data, and always has a JSON form.
    Body { content_type: JSON, text: serde_json::to_string(notification).unwrap_or_default() }
}
