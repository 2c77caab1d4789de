//! `cutlist run` with receivers of notifications: which ones are named, and with what they are reached.

use std::path::Path;

use anyhow::{Context, anyhow};

use crate::adapters::http::{Secret, SecretSource};
use crate::adapters::kubernetes::{Leadership, NotedInCluster};
use crate::adapters::notifications::{DeliveryError, Receiver};
use crate::adapters::operations::Metrics;
use crate::adapters::system_clock::SystemClock;
use crate::cli::arguments::NotificationArguments;
use crate::cli::exit::Failure;
use crate::cli::inputs::{FileKind, read_text};
use crate::cli::output;
use crate::controller::notifications::{Form, Notifications, Outbox, Telling};
use crate::render::notification::Template;

const SLACK: &str = "slack";
const SLACK_VARIABLE: &str = "CUTLIST_NOTIFY_SLACK_URL";
const WEBHOOK: &str = "webhook";
const WEBHOOK_VARIABLE: &str = "CUTLIST_NOTIFY_WEBHOOK_URL";

/// Receivers that were named, each with its form. What can not be right is an error.
fn receivers(arguments: &NotificationArguments) -> Result<Vec<(Receiver, Form)>, Failure> {
    let mut receivers = Vec::new();
    let plain = arguments.notify_allow_plain_http;
    let refused = |error: DeliveryError| Failure::usage(error);
    if let Some(address) = source(arguments.notify_slack_file.as_deref(), SLACK_VARIABLE) {
        receivers.push((Receiver::new(SLACK, address, plain).map_err(refused)?, Form::Slack));
    }
    if let Some(address) = source(arguments.notify_webhook_file.as_deref(), WEBHOOK_VARIABLE) {
        let form = match &arguments.notify_template {
            Some(path) => Form::Template(Box::new(template(path)?)),
            None => Form::Json,
        };
        receivers.push((Receiver::new(WEBHOOK, address, plain).map_err(refused)?, form));
    } else if arguments.notify_template.is_some() {
        return Err(Failure::usage(anyhow!("--notify-template is for a webhook, and none is named"))
            .with_hint(format!("add --notify-webhook-file FILE, or set {WEBHOOK_VARIABLE}")));
    }
    Ok(receivers)
}

fn source(file: Option<&Path>, variable: &str) -> Option<SecretSource> {
    let of_variable = || std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
    match file {
        Some(path) => Some(SecretSource::File(path.to_owned())),
        None => of_variable().map(|value| SecretSource::Variable(variable.to_owned(), Secret::new(value))),
    }
}

fn template(path: &Path) -> Result<Template, Failure> {
    let read = read_text(path, FileKind::Template);
    let text =
        read.with_context(|| format!("the template {} can not be read", path.display())).map_err(Failure::usage)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let is_json = [".json", ".json.j2", ".json.jinja"].iter().any(|end| name.ends_with(end));
    Template::new(text, is_json).with_context(|| path.display().to_string()).map_err(|error| {
        Failure::usage(error)
            .with_hint("the fields are those of schemas/notification.json: kind, title, text, cluster, plan ...")
    })
}

/// Refuses at the start what would be noticed only when there is something to tell.
pub fn check(arguments: &NotificationArguments) -> Result<(), Failure> {
    receivers(arguments).map(drop)
}

/// What the tasks that tell have in common.
pub struct Around {
    pub ledger: NotedInCluster,
    pub leadership: Leadership,
    pub metrics: Metrics,
}

impl Telling for Around {
    type Receiver = Receiver;
    type Ledger = NotedInCluster;
    type Clock = SystemClock;

    fn ledger(&self) -> &NotedInCluster {
        &self.ledger
    }

    fn clock(&self) -> &SystemClock {
        &SystemClock
    }

    fn leads(&self) -> bool {
        self.leadership.leads()
    }

    fn count(&self, receiver: &str, outcome: &str) {
        self.metrics.notified(receiver, outcome);
    }

    fn say(&self, text: &str) {
        output::say(text);
    }
}

/// Begins to tell the receivers that are named.
pub fn start(
    arguments: &NotificationArguments,
    around: Around,
    installation: &str,
) -> Result<Notifications<Around>, Failure> {
    let mut notifications = Notifications::new(around);
    for (receiver, form) in receivers(arguments)? {
        notifications.add(receiver, form, Outbox::new(&arguments.notify_on, installation, output::hidden()));
    }
    Ok(notifications)
}

#[cfg(test)]
mod tests;
