//! Each receiver of notifications is told by a task of its own, so that one that is away holds nothing up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::outbox::Outbox;
use crate::api::notification::Notification;
use crate::controller::events::Event;
use crate::core::plan::Plan;
use crate::ports::notifications::{Message, NotificationLedger, Notified, Receiver, Told};
use crate::ports::{Clock, PortError, chain};
use crate::render::notification::{Body, Template, TemplateError, json, slack};

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
pub enum Form {
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

/// What all tasks of one process have in common.
pub trait Telling: Send + Sync + 'static {
    type Receiver: Receiver;
    type Ledger: NotificationLedger;
    type Clock: Clock + Send + Sync;

    fn ledger(&self) -> &Self::Ledger;
    fn clock(&self) -> &Self::Clock;
    /// Whether this process leads: no other tells anything.
    fn leads(&self) -> bool;
    /// Counts what became of a message. `outcome`: sent, failed (and tried again), given_up, dropped.
    fn count(&self, receiver: &str, outcome: &str);
    /// Tells whoever runs this program.
    fn say(&self, text: &str);
}

/// What the controller speaks to; never waits.
#[derive(Clone, Default)]
pub struct Teller(Vec<(Arc<Mutex<Outbox>>, Arc<Notify>)>);

impl Teller {
    /// A plan was made, posted or not.
    pub fn planned(&self, plan: &Plan, now: Timestamp) {
        self.each(|outbox| outbox.planned(plan, now));
    }

    pub fn heard(&self, event: &Event, now: Timestamp) {
        self.each(|outbox| outbox.heard(event, now));
    }

    fn each(&self, mut tell: impl FnMut(&mut Outbox) -> bool) {
        for (outbox, news) in &self.0 {
            if tell(&mut lock(outbox)) {
                news.notify_one();
            }
        }
    }
}

fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tasks that tell, for as long as this process leads.
pub struct Notifications<T: Telling> {
    common: Arc<Common<T>>,
    teller: Teller,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    pause: Duration,
}

impl<T: Telling> Notifications<T> {
    /// Nobody is told yet.
    pub fn new(telling: T) -> Self {
        Self::with_pause(telling, PAUSE)
    }

    /// The same, where a receiver that is away is left alone for another time at first.
    pub fn with_pause(telling: T, pause: Duration) -> Self {
        let common = Arc::new(Common { telling, notified: tokio::sync::Mutex::new(None) });
        let (stop, _) = watch::channel(false);
        Self { common, teller: Teller::default(), tasks: JoinSet::new(), stop, pause }
    }

    /// Begins to tell one more receiver what comes into the outbox.
    pub fn add(&mut self, receiver: T::Receiver, form: Form, outbox: Outbox) {
        let (outbox, news) = (Arc::new(Mutex::new(outbox)), Arc::new(Notify::new()));
        self.teller.0.push((outbox.clone(), news.clone()));
        let channel = Channel {
            common: self.common.clone(),
            receiver,
            form,
            outbox,
            news,
            stopped: self.stop.subscribe(),
            least: self.pause,
            pause: self.pause,
            refusals: 0,
        };
        self.tasks.spawn(channel.tell());
    }

    /// Speaks to all receivers that were added.
    pub fn teller(&self) -> Teller {
        self.teller.clone()
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

/// What tasks share.
struct Common<T> {
    telling: T,
    /// What is written down of what was told, by all receivers; `None`: not read yet.
    notified: tokio::sync::Mutex<Option<Notified>>,
}

impl<T: Telling> Common<T> {
    fn now(&self) -> Timestamp {
        self.telling.clock().now()
    }

    async fn read(&self, receiver: &str) -> Result<Told, PortError> {
        let mut notified = self.notified.lock().await;
        let all = match notified.as_ref() {
            Some(all) => all,
            None => notified.insert(self.telling.ledger().read().await?),
        };
        Ok(all.get(receiver).cloned().unwrap_or_default())
    }

    async fn keep(&self, receiver: &str, told: Told) -> Result<(), PortError> {
        let mut notified = self.notified.lock().await;
        let mut all = notified.clone().unwrap_or_default();
        if all.get(receiver).cloned().unwrap_or_default() == told {
            return Ok(());
        }
        all.insert(receiver.to_owned(), told);
        self.telling.ledger().note(&all).await?;
        *notified = Some(all);
        Ok(())
    }
}

/// One receiver, and what it is told.
struct Channel<T: Telling> {
    common: Arc<Common<T>>,
    receiver: T::Receiver,
    form: Form,
    outbox: Arc<Mutex<Outbox>>,
    news: Arc<Notify>,
    stopped: watch::Receiver<bool>,
    /// How long the receiver is left alone after one failure, and after the next.
    least: Duration,
    pause: Duration,
    /// How often the receiver did not take the message that is sent now.
    refusals: u32,
}

impl<T: Telling> Channel<T> {
    async fn tell(mut self) {
        // Nothing is said before it is known what was said.
        while let Err(error) = self.remember().await {
            self.complain(&chain(&error), self.pause);
            if stopped_within(&mut self.stopped, self.pause).await {
                return;
            }
            self.pause = longer(self.pause);
        }
        self.pause = self.least;
        let mut dropped = 0;
        while !*self.stopped.borrow() {
            self.write_down().await;
            let now = self.common.now();
            let (due, next, left_out) = {
                let outbox = lock(&self.outbox);
                (outbox.due(now).cloned(), outbox.next_due(), outbox.dropped())
            };
            for _ in dropped..left_out {
                self.common.telling.count(self.receiver.name(), "dropped");
            }
            dropped = left_out;
            let pause = match due {
                Some(notification) if self.common.telling.leads() => self.send(&notification).await,
                _ => Some(until(next, now)),
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
        let told = self.common.read(self.receiver.name()).await?;
        lock(&self.outbox).remember(told);
        Ok(())
    }

    /// Tried again at each look, where it fails.
    async fn write_down(&self) {
        let told = lock(&self.outbox).told().clone();
        let name = self.receiver.name();
        if let Err(error) = self.common.keep(name, told).await {
            self.common.telling.say(&format!("what was told to {name} is not written down: {}", chain(&error)));
        }
    }

    /// How long to wait now; `None`: there may be more to tell.
    async fn send(&mut self, notification: &Notification) -> Option<Duration> {
        let body = match self.form.body(notification) {
            Ok(body) => body,
            Err(error) => {
                self.give_up(notification, &chain(&error));
                return None;
            }
        };
        let message = Message { key: &notification.key, content_type: body.content_type, text: &body.text };
        let Err(undelivered) = self.receiver.deliver(message).await else {
            self.common.telling.count(self.receiver.name(), "sent");
            lock(&self.outbox).done(&notification.key, self.common.now());
            (self.pause, self.refusals) = (self.least, 0);
            self.write_down().await;
            return None;
        };
        self.common.telling.count(self.receiver.name(), "failed");
        if undelivered.is_of_message {
            self.refusals += 1;
            if self.refusals >= REFUSALS_MAX {
                self.give_up(notification, &undelivered.why);
                return None;
            }
        }
        let pause = self.pause.max(undelivered.wait.unwrap_or_default());
        self.complain(&undelivered.why, pause);
        self.pause = longer(self.pause);
        Some(pause)
    }

    /// A message that can not be told does not keep others waiting.
    fn give_up(&mut self, notification: &Notification, why: &str) {
        let (telling, name) = (&self.common.telling, self.receiver.name());
        telling.count(name, "given_up");
        telling.say(&format!("{name} is not told {}: {why}", notification.key));
        lock(&self.outbox).done(&notification.key, self.common.now());
        (self.pause, self.refusals) = (self.least, 0);
    }

    fn complain(&self, why: &str, pause: Duration) {
        let name = self.receiver.name();
        self.common.telling.say(&format!("{name} is told again in {} s: {why}", pause.as_secs()));
    }
}

/// Whether a stop comes before the time is over.
async fn stopped_within(stopped: &mut watch::Receiver<bool>, pause: Duration) -> bool {
    // Whoever would say it is gone: so is what this is for.
    tokio::time::timeout(pause, stopped.wait_for(|it| *it)).await.is_ok()
}

fn until(next: Option<Timestamp>, now: Timestamp) -> Duration {
    let next = next.map(|next| Duration::try_from(next.duration_since(now)).unwrap_or_default());
    next.map_or(LOOK, |next| next.clamp(Duration::from_secs(1), LOOK))
}

fn longer(pause: Duration) -> Duration {
    pause.saturating_mul(2).min(PAUSE_MAX)
}
