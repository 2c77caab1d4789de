//! `cutlist run` with receivers of notifications: each is told by a task of its own, so that one that is away holds nothing up.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use jiff::Timestamp;
use kube::Client;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::now;
use crate::adapters::http::{Secret, SecretSource};
use crate::adapters::kubernetes::{Leadership, Notified, note_notified, notified};
use crate::adapters::notifications::{DeliveryError, Message, Receiver};
use crate::adapters::operations::Metrics;
use crate::api::notification::{Notification, NotificationKind};
use crate::cli::arguments::NotificationArguments;
use crate::cli::exit::Failure;
use crate::cli::inputs::{FileKind, read_text};
use crate::cli::output;
use crate::controller::events::Event;
use crate::controller::notifications::{Outbox, Told};
use crate::core::plan::Plan;
use crate::ports::{PortError, chain};
use crate::render::notification::{Body, Template, TemplateError, json, slack};

const SLACK: &str = "slack";
const SLACK_VARIABLE: &str = "CUTLIST_NOTIFY_SLACK_URL";
const WEBHOOK: &str = "webhook";
const WEBHOOK_VARIABLE: &str = "CUTLIST_NOTIFY_WEBHOOK_URL";

/// A receiver that is away is left alone for so long at first. It doubles.
const PAUSE: Duration = Duration::from_secs(2);
const PAUSE_MAX: Duration = Duration::from_mins(15);
/// How often a message is sent that the receiver does not take for what it is.
const REFUSALS_MAX: u32 = 3;
/// How often it is looked what was not written down.
const LOOK: Duration = Duration::from_mins(1);
/// How long a message that is under way may take when a stop is requested.
const FINISH_WITHIN: Duration = Duration::from_secs(5);

/// How a receiver wants it.
enum Form {
    Slack,
    Json,
    Template(Box<Template>),
}

impl Form {
    fn body(&self, notification: &Notification) -> Result<Body, TemplateError> {
        match self {
            Self::Slack => Ok(slack(notification)),
            Self::Json => Ok(json(notification)),
            Self::Template(template) => template.body(notification),
        }
    }
}

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

/// What the controller speaks to; never waits.
#[derive(Clone, Default)]
pub struct Teller(Vec<(Arc<Mutex<Outbox>>, Arc<Notify>)>);

impl Teller {
    /// A plan was made, posted or not.
    pub fn planned(&self, plan: &Plan) {
        self.each(|outbox, now| outbox.planned(plan, now));
    }

    pub fn heard(&self, event: &Event) {
        self.each(|outbox, now| outbox.heard(event, now));
    }

    fn each(&self, mut tell: impl FnMut(&mut Outbox, Timestamp) -> bool) {
        for (outbox, news) in &self.0 {
            if tell(&mut lock(outbox), now()) {
                news.notify_one();
            }
        }
    }
}

fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tasks that tell, for as long as this process leads.
pub struct Notifications {
    pub teller: Teller,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

/// What tasks have in common.
pub struct Around {
    pub client: Client,
    pub leadership: Leadership,
    pub metrics: Metrics,
    pub installation: String,
}

impl Notifications {
    pub fn start(arguments: &NotificationArguments, around: Around) -> Result<Self, Failure> {
        let (stop, stopped) = watch::channel(false);
        let ledger = Arc::new(Ledger { client: around.client, kept: tokio::sync::Mutex::new(None) });
        let mut notifications = Self { teller: Teller::default(), tasks: JoinSet::new(), stop };
        for (receiver, form) in receivers(arguments)? {
            let kinds: &[NotificationKind] = &arguments.notify_on;
            let outbox = Arc::new(Mutex::new(Outbox::new(kinds, &around.installation, output::hidden())));
            let news = Arc::new(Notify::new());
            notifications.teller.0.push((outbox.clone(), news.clone()));
            let channel = Channel {
                receiver,
                form,
                outbox,
                news,
                ledger: ledger.clone(),
                leadership: around.leadership.clone(),
                metrics: around.metrics.clone(),
                stopped: stopped.clone(),
                least: PAUSE,
                pause: PAUSE,
                refusals: 0,
            };
            notifications.tasks.spawn(channel.tell());
        }
        Ok(notifications)
    }

    /// Lets messages that are under way come to their end, and be written down as told.
    pub async fn finish(mut self) {
        let _nobody = self.stop.send(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(FINISH_WITHIN, all).await.is_err() {
            tracing::warn!("a notification was under way, and may come again");
        }
    }
}

/// What is written down of what was told, by all receivers.
struct Ledger {
    client: Client,
    kept: tokio::sync::Mutex<Option<Notified>>,
}

impl Ledger {
    async fn read(&self, receiver: &str) -> Result<Told, PortError> {
        let mut kept = self.kept.lock().await;
        let all = match kept.as_ref() {
            Some(all) => all,
            None => kept.insert(notified(&self.client).await?),
        };
        Ok(all.get(receiver).cloned().unwrap_or_default())
    }

    async fn keep(&self, receiver: &str, told: Told) -> Result<(), PortError> {
        let mut kept = self.kept.lock().await;
        let mut all = kept.clone().unwrap_or_default();
        if all.get(receiver).cloned().unwrap_or_default() == told {
            return Ok(());
        }
        all.insert(receiver.to_owned(), told);
        note_notified(&self.client, &all).await?;
        *kept = Some(all);
        Ok(())
    }
}

/// One receiver, and what it is told.
struct Channel {
    receiver: Receiver,
    form: Form,
    outbox: Arc<Mutex<Outbox>>,
    news: Arc<Notify>,
    ledger: Arc<Ledger>,
    leadership: Leadership,
    metrics: Metrics,
    stopped: watch::Receiver<bool>,
    /// How long the receiver is left alone after one failure, and after the next.
    least: Duration,
    pause: Duration,
    /// How often the receiver did not take the message that is sent now.
    refusals: u32,
}

impl Channel {
    async fn tell(mut self) {
        // Nothing is said before it is known what was said.
        while let Err(error) = self.remember().await {
            self.complain(&chain(&error), self.pause);
            if self.is_stopped_within(self.pause).await {
                return;
            }
            self.pause = longer(self.pause);
        }
        self.pause = self.least;
        let mut dropped = 0;
        while !*self.stopped.borrow() {
            self.write_down().await;
            let (due, next, left_out) = {
                let outbox = lock(&self.outbox);
                (outbox.due(now()).cloned(), outbox.next_due(), outbox.dropped())
            };
            for _ in dropped..left_out {
                self.metrics.notified(self.receiver.name(), "dropped");
            }
            dropped = left_out;
            let pause = match due {
                Some(notification) if self.leadership.leads() => self.send(&notification).await,
                _ => Some(until(next)),
            };
            let Some(pause) = pause else { continue };
            let is_away = self.pause > self.least;
            tokio::select! {
                () = self.news.notified(), if !is_away => {}
                is_stopped = stopped_within(&mut self.stopped, pause) => if is_stopped { return },
            }
        }
    }

    async fn remember(&self) -> Result<(), PortError> {
        let told = self.ledger.read(self.receiver.name()).await?;
        lock(&self.outbox).remember(told);
        Ok(())
    }

    /// Tried again at each look, where it fails.
    async fn write_down(&self) {
        let told = lock(&self.outbox).told().clone();
        if let Err(error) = self.ledger.keep(self.receiver.name(), told).await {
            output::say(&format!("what was told to {} is not written down: {}", self.receiver.name(), chain(&error)));
        }
    }

    /// How long to wait now; `None`: there may be more to tell.
    async fn send(&mut self, notification: &Notification) -> Option<Duration> {
        let name = self.receiver.name();
        let body = match self.form.body(notification) {
            Ok(body) => body,
            Err(error) => {
                self.give_up(notification, &chain(&error));
                return None;
            }
        };
        let message = Message { key: &notification.key, content_type: body.content_type, text: &body.text };
        let Err(error) = self.receiver.deliver(message).await else {
            self.metrics.notified(name, "sent");
            lock(&self.outbox).done(&notification.key, now());
            (self.pause, self.refusals) = (self.least, 0);
            self.write_down().await;
            return None;
        };
        self.metrics.notified(name, "failed");
        if error.is_of_message() {
            self.refusals += 1;
            if self.refusals >= REFUSALS_MAX {
                self.give_up(notification, &chain(&error));
                return None;
            }
        }
        let pause = self.pause.max(error.wait().unwrap_or_default());
        self.complain(&chain(&error), pause);
        self.pause = longer(self.pause);
        Some(pause)
    }

    /// A message that can not be told does not keep others waiting.
    fn give_up(&mut self, notification: &Notification, why: &str) {
        self.metrics.notified(self.receiver.name(), "given_up");
        output::say(&format!("{} is not told {}: {why}", self.receiver.name(), notification.key));
        lock(&self.outbox).done(&notification.key, now());
        (self.pause, self.refusals) = (self.least, 0);
    }

    fn complain(&self, why: &str, pause: Duration) {
        output::say(&format!("{} is told again in {} s: {why}", self.receiver.name(), pause.as_secs()));
    }

    async fn is_stopped_within(&mut self, pause: Duration) -> bool {
        stopped_within(&mut self.stopped, pause).await
    }
}

/// Whether a stop comes before the time is over.
async fn stopped_within(stopped: &mut watch::Receiver<bool>, pause: Duration) -> bool {
    // Whoever would say it is gone: so is what this is for.
    tokio::time::timeout(pause, stopped.wait_for(|it| *it)).await.is_ok()
}

fn until(next: Option<Timestamp>) -> Duration {
    let next = next.map(|next| Duration::try_from(next.duration_since(now())).unwrap_or_default());
    next.map_or(LOOK, |next| next.clamp(Duration::from_secs(1), LOOK))
}

fn longer(pause: Duration) -> Duration {
    pause.saturating_mul(2).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests;
