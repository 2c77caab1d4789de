//! Templates of operators, in Jinja: what a webhook gets instead of our JSON.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::Value;

use super::{Body, JSON, PLAIN};
use crate::api::notification::{Notification, NotificationKind};

/// The most bytes of a template, and of what comes of it.
const BYTES_MAX: usize = 64 << 10;
/// Steps that one rendering may take, so that loops in loops end.
const FUEL: u64 = 50_000;
const NAME: &str = "template";

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error("the template has more than {} KiB", BYTES_MAX >> 10)]
    TooLong,
    #[error("the template can not be read: {0}")]
    Syntax(String),
    #[error("the template makes nothing of {}: {cause}", kind.word())]
    Fails { kind: NotificationKind, cause: String },
    #[error("what the template makes of {} is no JSON", kind.word())]
    NoJson { kind: NotificationKind, source: serde_json::Error },
    #[error("what the template makes of {} has more than {} KiB", kind.word(), BYTES_MAX >> 10)]
    LongBody { kind: NotificationKind },
}

/// A template that was tried with every kind of notification.
#[derive(Clone, Debug)]
pub struct Template {
    environment: Environment<'static>,
    source: String,
    is_json: bool,
}

impl Template {
    /// The template, once it was tried with every kind of notification. `is_json`: values are written as JSON, and what
    /// comes of the template must be JSON.
    pub fn new(source: String, is_json: bool) -> Result<Self, TemplateError> {
        if source.len() > BYTES_MAX {
            return Err(TemplateError::TooLong);
        }
        // The filters and tests of this environment reach neither files nor network.
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_fuel(Some(FUEL));
        environment.set_auto_escape_callback(move |_| if is_json { AutoEscape::Json } else { AutoEscape::None });
        environment.template_from_str(&source).map_err(|error| TemplateError::Syntax(in_one_line(&error)))?;
        let template = Self { environment, source, is_json };
        for kind in NotificationKind::ALL {
            template.body(&Notification::example(kind))?;
        }
        Ok(template)
    }

    pub fn body(&self, notification: &Notification) -> Result<Body, TemplateError> {
        let kind = notification.kind;
        let fails = |error: minijinja::Error| TemplateError::Fails { kind, cause: in_one_line(&error) };
        let values = minijinja::value::Serde(notification);
        let text = self.environment.render_named_str(NAME, &self.source, values).map_err(fails)?;
        if text.len() > BYTES_MAX {
            return Err(TemplateError::LongBody { kind });
        }
        if self.is_json {
            let _json: Value = serde_json::from_str(&text).map_err(|source| TemplateError::NoJson { kind, source })?;
        }
        Ok(Body { content_type: if self.is_json { JSON } else { PLAIN }, text })
    }
}

fn in_one_line(error: &minijinja::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(source: &str, is_json: bool) -> Result<String, String> {
        let notification = Notification {
            title: "a \"quoted\" <title>\n".to_owned(),
            ..Notification::example(NotificationKind::RolloutHalted)
        };
        let template = Template::new(source.to_owned(), is_json).map_err(|error| error.to_string())?;
        template.body(&notification).map(|body| body.text).map_err(|error| error.to_string())
    }

    #[test]
    fn values_stay_values_in_json() {
        let source = r#"{ "summary": {{ title }}, "pool": {{ nodePool | default(none) }}, "for": [{% for it in details %}{{ it.name }}{% if not loop.last %},{% endif %}{% endfor %}] }"#;
        let value: Value = serde_json::from_str(&made(source, true).unwrap()).unwrap();
        assert_eq!(value["summary"], "a \"quoted\" <title>\n");
        assert_eq!((&value["pool"], &value["for"][0]), (&Value::from("example"), &Value::from("Price change")));
        assert_eq!(made("{{ kind }}: {{ cluster }}", false).unwrap(), "rollout-halted: example");
    }

    #[test]
    fn a_template_that_can_not_work_is_refused_at_once() {
        for (source, is_json, error) in [
            ("{{ title", true, "the template can not be read"),
            ("{{ titel }}", false, "the template makes nothing of plan-waits"),
            ("{ \"a\": }", true, "is no JSON"),
            (
                "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
                false,
                "makes nothing of",
            ),
        ] {
            let found = made(source, is_json).unwrap_err();
            assert!(found.contains(error), "{source}: {found}");
        }
        let long = Template::new("x".repeat(BYTES_MAX + 1), false).unwrap_err();
        assert_eq!(long.to_string(), "the template has more than 64 KiB");
    }
}
