//! Logs as JSON lines on standard error: `level`, `time`, `logger`, `message`, then the fields of the event.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event as TracingEvent, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::cli::output::Masked;
use crate::controller::events::{Event, Level};

/// The name Karpenter's lines carry.
const LOGGER: &str = "controller";
/// Of one text of a library.
const CHARACTERS_MAX: usize = 500;

/// From now on `tracing` writes to standard error.
pub fn start() {
    let lines = tracing_subscriber::fmt::layer().event_format(Lines).with_writer(|| Masked::new(std::io::stderr()));
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(targets()));
    // Somebody else's subscriber is as good.
    let _already_set = tracing::subscriber::set_global_default(subscriber);
}

/// Of libraries only what has gone wrong. The client of Kubernetes writes answers that it can not read into its log, whole: lists
/// of objects with the user data of every class. What was wrong with them is in the error.
fn targets() -> Targets {
    Targets::new()
        .with_target(LOGGER, LevelFilter::INFO)
        .with_target("cutlist", LevelFilter::INFO)
        .with_target("kube_client::client", LevelFilter::OFF)
        .with_default(LevelFilter::WARN)
}

/// A text of a library, which may quote what it was given.
fn cut(text: String) -> String {
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Logs an event of the controller at the moment of its clock.
pub fn record(now: Timestamp, event: &Event) {
    let (time, message) = (now.to_string(), event.message());
    let fields = event.fields().into_iter().chain(event.former_fields());
    let fields: Map<String, Value> = fields.map(|(key, value)| (key.to_owned(), value)).collect();
    let fields = Value::Object(fields).to_string();
    match event.level() {
        Level::Debug => tracing::debug!(target: LOGGER, time, fields, "{message}"),
        Level::Info => tracing::info!(target: LOGGER, time, fields, "{message}"),
        Level::Warn => tracing::warn!(target: LOGGER, time, fields, "{message}"),
        Level::Error => tracing::error!(target: LOGGER, time, fields, "{message}"),
    }
}

struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &TracingEvent<'_>) -> fmt::Result {
        let mut visitor = Fields::default();
        event.record(&mut visitor);
        if event.metadata().target() != LOGGER {
            for value in visitor.0.values_mut() {
                if let Value::String(text) = value {
                    *text = cut(std::mem::take(text));
                }
            }
        }
        let mut object = Map::new();
        object.insert("level".to_owned(), json!(event.metadata().level().as_str()));
        for key in ["time", "message"] {
            if let Some(value) = visitor.0.shift_remove(key) {
                object.insert(key.to_owned(), value);
            }
            if key == "time" {
                object.insert("logger".to_owned(), json!(event.metadata().target()));
            }
        }
        let nested = visitor.0.shift_remove("fields");
        object.extend(visitor.0);
        let nested = nested.as_ref().and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
        if let Some(Value::Object(fields)) = nested {
            object.extend(fields);
        }
        writeln!(writer, "{}", Value::Object(object))
    }
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), json!(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), json!(value));
    }
}
